//! Starts the application with the options of the command line.

use std::sync::Arc;

pub(crate) use hermes_app::Setup;
use hermes_app::{Beginning, Desk, Home, Lifetime, ModelChoice, SessionRequest, process};

use crate::console::Console;
use crate::failure::{Failure, Kind};
use crate::logging;
use crate::progress::Terminal;
use crate::session_arguments::{ModelArguments, SessionArguments};

/// The name of this front end in prompts.
const PLATFORM: &str = "cli";

/// Reads the home without showing its warnings.
pub(crate) fn read() -> Result<Setup, Failure> {
    Ok(Setup::read(Home::locate()?, process::compiler())?)
}

/// Reads the home and shows what should be corrected in its files, but not which variables are missing: only what uses the
/// values of `config.yaml` needs them.
pub(crate) fn setup(console: Console) -> Result<Setup, Failure> {
    let setup = read()?;
    for warning in setup.warnings_about_keys() {
        console.warning(warning);
    }
    Ok(setup)
}

/// The same for what shows the values of `config.yaml`, or uses its models or servers.
pub(crate) fn setup_with_values(console: Console) -> Result<Setup, Failure> {
    let setup = read()?;
    for warning in setup.warnings() {
        console.warning(warning);
    }
    Ok(setup)
}

/// A request for a session in the current folder.
pub(crate) fn request(model: &ModelArguments, lifetime: Lifetime) -> Result<SessionRequest, Failure> {
    let workspace = std::env::current_dir().map_err(|error| {
        let why = format!("the current folder is not available: {error}");
        Failure::new(Kind::General, "the session cannot start", why, "change to a folder that exists")
    })?;
    Ok(SessionRequest { model: model.choice(), lifetime, ..SessionRequest::new(PLATFORM, workspace) })
}

/// A desk that can serve the request. Its log is begun.
pub(crate) async fn desk(
    setup: Setup,
    request: &SessionRequest,
    verbose: u8,
    console: Console,
) -> Result<Desk, Failure> {
    let desk = Desk::new(setup, Arc::new(Terminal::new(console)));
    desk.prepare(request).await?;
    let home = &desk.setup().home;
    if let Err(error) = logging::start(verbose, Some(home)) {
        console.warning(&format!("{} cannot be written: {error}", home.logs().display()));
    }
    Ok(desk)
}

impl ModelArguments {
    /// The options as the application's type.
    pub(crate) fn choice(&self) -> ModelChoice {
        let Self { provider, model, base_url, engine } = self.clone();
        ModelChoice { provider, model, base_url, engine }
    }
}

/// The failure of `--resume` without a session, where the user cannot choose one.
pub(crate) fn no_session_named() -> Failure {
    let why = "`--resume` names no session, and only a chat on a drawn terminal can show a list to choose from";
    let fix =
        "`hermes sessions list` shows all sessions: `--resume ID` resumes one, `--continue` the newest of this folder";
    Failure::new(Kind::Usage, "no session was resumed", why, fix)
}

impl SessionArguments {
    /// Whether the user wants to choose the session from a list.
    pub(crate) fn chooses(&self) -> bool {
        self.resume.as_deref() == Some("")
    }

    /// The chosen session.
    pub(crate) fn choice(&self) -> Beginning {
        match (&self.resume, self.continue_newest) {
            (Some(id), _) => Beginning::Resume { id: id.clone(), branch: self.branch },
            (None, true) => Beginning::Newest { branch: self.branch },
            (None, false) => Beginning::New,
        }
    }
}
