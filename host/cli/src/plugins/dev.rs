//! `hermes plugins dev`: rebuilds a plugin project at every change and lets the sessions of the home use the result, without a line
//! in the configuration.

mod consent;
mod log;

use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use hermes_app::plugins::{Manifest, Runtime};
use hermes_authoring::{Built, Project, Slot, Watch};
use tokio::process::{Child, Command};

use self::consent::Agreed;
use self::log::Tail;
use crate::console::{Console, Tone, print};
use crate::failure::{Failure, Kind};
use crate::launch;
use crate::progress::Terminal;
use crate::text;
use crate::wording;
use hermes_app::{ModelChoice, Reporter as _};

/// The wait after a change: editors often save several files, and each in several steps.
const DEBOUNCE: Duration = Duration::from_millis(200);
/// How often the plugin's log is read.
const POLL: Duration = Duration::from_millis(200);

/// The project, and the command that builds it.
#[derive(Debug, Clone, Args)]
pub(crate) struct DevArguments {
    /// The project folder, with a plugin.yaml and the build file of its language: Cargo.toml, build.py, package.json, build.go or Makefile
    #[arg(default_value = ".")]
    path: PathBuf,
    /// Try the plugin after each build: send this prompt in a new session and print the answer
    #[arg(short = 'z', long = "try", value_name = "PROMPT")]
    attempt: Option<String>,
    /// Do not ask for confirmation, and let sessions use the plugin with everything that it requests
    #[arg(short, long)]
    yes: bool,
    /// Build with this command instead of the one of the language; it runs in the project folder, without a shell
    #[arg(long, value_name = "COMMAND", conflicts_with = "cargo")]
    build: Option<String>,
    /// Allow draft interfaces of the contract, which a later version of Hermes may change or remove
    #[arg(long)]
    allow_draft: bool,
    /// Arguments for cargo
    #[arg(last = true, value_name = "CARGO ARGUMENTS")]
    cargo: Vec<String>,
}

/// Builds and watches until Ctrl-C.
pub(crate) async fn run(arguments: &DevArguments, console: Console) -> Result<ExitCode, Failure> {
    let setup = launch::setup(console)?;
    setup.own()?;
    let project = Project::open(&arguments.path, arguments.build.as_deref(), &arguments.cargo)?;
    let name = project.manifest()?.name;
    let agreed = Agreed::installed(&name)?;
    let slot = Slot::hold(&setup.home.plugins(), &name)?;
    let development = Development {
        tail: Tail::at_end(setup.home.logs().join(format!("{name}.jsonl"))),
        runtime: Arc::new(setup.runtime()),
        is_disabled: setup.selection(&ModelChoice::default()).disabled.contains(&name),
        arguments: arguments.clone(),
        project,
        slot,
        name,
        agreed,
        is_placed: false,
        console,
    };
    let folder = development.project.folder().display();
    development.say(Tone::Faint, &format!("developing `{}` in {folder}; ctrl-c ends", development.name));
    // Ctrl-C drops everything: a running build and a running session are killed, and the slot is emptied.
    tokio::select! {
        // Start listening before the first build: an unhandled signal would end the process without cleanup.
        biased;
        _ = tokio::signal::ctrl_c() => Ok(ExitCode::SUCCESS),
        ended = development.run() => ended,
    }
}

struct Development {
    project: Project,
    slot: Slot,
    name: String,
    arguments: DevArguments,
    /// Whether `plugins.disabled` names the plugin.
    is_disabled: bool,
    /// What the plugin may do; none before the first agreement.
    agreed: Option<Agreed>,
    /// Whether sessions use a build of it.
    is_placed: bool,
    runtime: Arc<Runtime>,
    tail: Tail,
    console: Console,
}

/// Why a build does not reach sessions.
enum Setback {
    /// The next change may help.
    Build(Failure),
    /// The developer did not agree.
    Consent(Failure),
}

impl From<Failure> for Setback {
    fn from(failure: Failure) -> Self {
        Self::Build(failure)
    }
}

impl Development {
    async fn run(mut self) -> Result<ExitCode, Failure> {
        let changes = Arc::new(tokio::sync::Notify::new());
        let _watcher = self.watch(&changes)?;
        loop {
            let built_from = self.project.state();
            let mut session = match self.rebuild().await {
                Ok(()) => self.attempt().unwrap_or_else(|failure| {
                    self.console.report(&failure);
                    None
                }),
                // No build has reached sessions yet.
                Err(Setback::Consent(failure)) if self.agreed.is_none() => return Err(failure),
                Err(Setback::Build(failure) | Setback::Consent(failure)) => {
                    self.console.report(&failure);
                    self.say(Tone::Faint, "sessions keep the last successful build; waiting for the next change");
                    None
                }
            };
            // A session of the earlier build ends with it.
            while self.project.state() == built_from {
                self.follow(&changes, &mut session).await?;
            }
        }
    }

    /// Prints new lines of the plugin's log, and the end of the session that tries it, until a file changes.
    async fn follow(&mut self, changes: &tokio::sync::Notify, session: &mut Option<Child>) -> Result<(), Failure> {
        let changed = changes.notified();
        tokio::pin!(changed);
        loop {
            for line in self.tail.lines() {
                print(&format!("{}\n", text::line(&line)))?;
            }
            let ended = async {
                match session.as_mut() {
                    Some(session) => session.wait().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = &mut changed => {
                    tokio::time::sleep(DEBOUNCE).await;
                    return Ok(());
                }
                () = tokio::time::sleep(POLL) => {}
                status = ended => {
                    *session = None;
                    let how = match status {
                        Ok(status) if status.success() => "the session ended".to_owned(),
                        Ok(status) => format!("the session ended with {status}"),
                        Err(error) => format!("the end of the session is not known: {error}"),
                    };
                    self.say(Tone::Faint, &format!("{how}; waiting for the next change"));
                }
            }
        }
    }

    /// Starts a session with the prompt of `--try`. It ends with the value.
    fn attempt(&self) -> Result<Option<Child>, Failure> {
        let Some(prompt) = &self.arguments.attempt else { return Ok(None) };
        self.say(Tone::Faint, &format!("trying it in a new session: {prompt}"));
        let failed = |error: std::io::Error| {
            let fix = "start a session in another terminal with `hermes`";
            Failure::new(Kind::General, "no session was started", error.to_string(), fix)
        };
        let mut hermes = Command::new(std::env::current_exe().map_err(failed)?);
        hermes.arg(format!("--oneshot={prompt}")).stdin(Stdio::null()).kill_on_drop(true);
        hermes.spawn().map(Some).map_err(failed)
    }

    /// Builds and checks the plugin, asks what it may do, and puts it into its slot.
    async fn rebuild(&mut self) -> Result<(), Setback> {
        let begun = Instant::now();
        let manifest = self.project.manifest().map_err(Failure::from)?;
        if manifest.name != self.name {
            let why = format!("its name changed from `{}` to `{}`", self.name, manifest.name);
            let fix = "stop with ctrl-c and start `hermes plugins dev` again";
            return Err(Failure::new(Kind::Plugin, "the plugin cannot be reloaded", why, fix).into());
        }
        let built = self.project.build(&manifest).await.map_err(Failure::from)?;
        let mut kinds = match &built {
            Some(built) => self.check(&manifest, built).await?,
            None => Vec::new(),
        };
        let skills = self.project.skills().map_err(Failure::from)?;
        if !skills.is_empty() && !kinds.contains(&"skills") {
            kinds.push("skills");
        }
        let until_asked = begun.elapsed();
        self.agree(&manifest, &kinds).await?;
        let asked = begun.elapsed();
        let bytes = built.as_ref().map(|built| built.bytes.as_slice());
        let text = self.project.manifest_text().map_err(Failure::from)?;
        let used_as = self.slot.place(&manifest, &text, bytes, &kinds, &skills).map_err(Failure::from)?;
        let took = until_asked + begun.elapsed().saturating_sub(asked);
        let size =
            bytes.map_or_else(String::new, |bytes| format!(", {} KiB", text::grouped((bytes.len() as u64) >> 10)));
        self.say(
            Tone::Good,
            &format!(
                "built `{}` {} ({}{size}) in {:.1} s; running sessions use it from their next turn",
                self.name,
                manifest.version,
                kinds.join(", "),
                took.as_secs_f64()
            ),
        );
        if self.is_disabled {
            let hint = format!(
                "`plugins.disabled` in config.yaml names `{}`, so no session uses it; `hermes plugins enable {}` takes it out",
                self.name, self.name
            );
            self.say(Tone::Warning, &hint);
        } else if !self.is_placed && self.arguments.attempt.is_none() {
            let how = format!(
                "while this command runs, new sessions use it {}: start one with `hermes` in another terminal",
                used_as.phrase()
            );
            self.say(Tone::Faint, &how);
        }
        self.is_placed = true;
        if let Some(why) = self.complaint().await {
            self.console.warning(&why);
        }
        Ok(())
    }

    /// Checks a component and compiles it: sessions use the code from the cache, so they need not compile it. Returns its exports.
    async fn check(&self, manifest: &Manifest, built: &Built) -> Result<Vec<&'static str>, Failure> {
        let Built { component, bytes } = built;
        super::check_drafts(manifest, bytes, self.arguments.allow_draft, "the plugin cannot be reloaded")?;
        let (runtime, name, console) = (Arc::clone(&self.runtime), self.name.clone(), self.console);
        let (bytes, manifest) = (bytes.clone(), manifest.clone());
        let checked = tokio::task::spawn_blocking(move || {
            let shown = Terminal::new(console);
            hermes_authoring::draft_exports(&runtime, &manifest, &bytes, &|elapsed| shown.compiling(&name, elapsed))
        });
        let refused = |why: String| {
            let fix = "correct the plugin; `hermes plugins new` creates a working one of each kind";
            Failure::new(Kind::Plugin, format!("{} cannot be used", component.display()), why, fix)
        };
        let checked = checked.await.map_err(|error| refused(error.to_string()))?;
        checked.map_err(refused)
    }

    /// Why sessions cannot start the build with the configuration that they would give it.
    async fn complaint(&self) -> Option<String> {
        let setup = launch::read().ok()?;
        let why = wording::notice(&hermes_authoring::complaint(&setup, &self.runtime, &self.name).await?);
        let name = &self.name;
        Some(format!(
            "`{name}` does not start with its current configuration: {}; `plugins.entries.{name}` in config.yaml is its configuration",
            text::exact_within(&why, 1_000)
        ))
    }

    /// Asks the developer about what was not agreed to yet.
    async fn agree(&mut self, manifest: &Manifest, exports: &[&'static str]) -> Result<(), Setback> {
        let (before, yes, console) = (self.agreed.clone(), self.arguments.yes, self.console);
        let (manifest, exports) = (manifest.clone(), exports.to_vec());
        let folder = self.project.folder().display().to_string();
        let (answer, answered) = tokio::sync::oneshot::channel();
        // A thread that waits for an answer must not keep ctrl-c waiting.
        let asking = std::thread::Builder::new().spawn(move || {
            let _ = answer.send(Agreed::widened(before, &manifest, &exports, &folder, yes, console));
        });
        let unanswered = |why: String| {
            let fix = "end other programs, or raise the limits of threads and memory";
            Setback::Consent(Failure::new(Kind::General, "no session uses the project", why, fix))
        };
        asking.map_err(|error| unanswered(error.to_string()))?;
        let agreed = answered.await.map_err(|error| unanswered(error.to_string()))?;
        self.agreed = Some(agreed.map_err(Setback::Consent)?);
        Ok(())
    }

    fn watch(&self, changes: &Arc<tokio::sync::Notify>) -> Result<Watch, Failure> {
        let changes = Arc::clone(changes);
        Ok(Watch::begin(&self.project, move || changes.notify_one())?)
    }

    fn say(&self, tone: Tone, line: &str) {
        // A closed standard output cannot be reported anywhere.
        let _ = print(&format!("{}\n", self.console.paint(tone, &text::line(line))));
    }
}
