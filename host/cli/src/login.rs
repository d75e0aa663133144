//! `hermes login` and `hermes logout`: logs in to a provider, lists the logins, and ends one.

mod browser;

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use hermes_app::logins::{KnownLogin, LoggedOut, LoginClient, LoginState, LoginStep};
use hermes_app::models::known_provider;
use serde_json::json;

use crate::console::{Console, Tone, print};
use crate::failure::{Failure, Kind};
use crate::launch::{self, Setup};
use crate::table::{Align, Table};
use crate::text;

/// What to log in to.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub(crate) struct LoginArguments {
    /// The login's name: `openrouter`, or a section below `logins` in config.yaml
    #[arg(required_unless_present = "list")]
    name: Option<String>,
    /// Open the page of the provider in a browser: the program in $BROWSER, or the system's
    #[arg(long, conflicts_with = "list")]
    browser: bool,
    /// List the logins that can be made, and those that exist
    #[arg(long, conflicts_with = "name")]
    list: bool,
    /// Print JSON
    #[arg(long, requires = "list")]
    json: bool,
}

/// What to log out of.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub(crate) struct LogoutArguments {
    /// The login's name
    pub(crate) name: String,
    /// Only remove the login from this machine; its tokens stay valid
    #[arg(long)]
    pub(crate) local: bool,
}

pub(crate) async fn run(arguments: &LoginArguments, console: Console) -> Result<ExitCode, Failure> {
    let setup = launch::setup(console)?;
    let Some(name) = &arguments.name else { return list(&setup, arguments.json, console) };
    let client = setup.login_client(name)?;
    setup.own()?;
    log_in(&setup, &client, arguments.browser, console).await?;
    let model = &setup.config.settings().model;
    if model.auth.as_deref() != Some(client.name()) {
        let name = text::line(name);
        let command = match known_provider(&name).filter(|_| client.is_for_key()) {
            Some(row) if model.provider.as_deref() != Some(row.id) => format!("hermes setup {name} --login"),
            _ => format!("hermes config set model.auth {name}"),
        };
        console.note(&format!("to use it for the session's model, run `{command}`"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Logs in and stores the tokens, unless the user presses Ctrl-C.
pub(crate) async fn log_in(
    setup: &Setup,
    client: &LoginClient,
    browser: bool,
    console: Console,
) -> Result<(), Failure> {
    tokio::select! {
        // Ctrl-C first, so that it is listened for before the address is shown.
        biased;
        _ = tokio::signal::ctrl_c() => {
            let fix = format!("run `hermes login {}` again", text::line(client.name()));
            Err(Failure::new(Kind::Interrupted, "nothing was stored", "you pressed ctrl-c", fix))
        }
        done = steps(setup, client, browser, console) => done,
    }
}

async fn steps(setup: &Setup, client: &LoginClient, browser: bool, console: Console) -> Result<(), Failure> {
    let mut broken = None;
    let mut show = |step: LoginStep<'_>| {
        if let Err(failure) = shown(&step, console) {
            broken.get_or_insert(failure);
        }
        if let Some(page) = page(&step).filter(|_| browser)
            && let Err(why) = browser::open(page)
        {
            console.note(&format!("no browser can be started: {why}; open the address yourself"));
        }
    };
    let logged_in = setup.log_in(client, &mut show).await?;
    if let Some(failure) = broken {
        return Err(failure);
    }
    let name = text::line(client.name());
    let life = match (logged_in.is_refreshable, logged_in.expires_in) {
        (true, _) => "Hermes refreshes its token when it expires".to_owned(),
        (false, Some(seconds)) => format!("its token expires in {} and cannot be refreshed", time(seconds)),
        (false, None) if client.is_for_key() => "its key does not expire by itself".to_owned(),
        (false, None) => "its token does not expire by itself".to_owned(),
    };
    print(&format!("logged in to `{name}`; {life}\n"))
}

/// The page that a step wants to be opened.
fn page<'a>(step: &LoginStep<'a>) -> Option<&'a str> {
    match *step {
        LoginStep::EnterCode { page, page_with_code, .. } => Some(page_with_code.unwrap_or(page).as_str()),
        LoginStep::Open { page, .. } => Some(page.as_str()),
        LoginStep::Waiting { .. } => None,
    }
}

/// Shows a step. Addresses are those of parsed URLs, which hold no control character.
fn shown(step: &LoginStep<'_>, console: Console) -> Result<(), Failure> {
    match *step {
        LoginStep::EnterCode { page, page_with_code, code, valid } => {
            let code = text::title(code);
            let mut lines = format!("open {page} in any browser and enter the code\n\n    {code}\n\n");
            if let Some(page) = page_with_code {
                lines.push_str(&format!("or open {page}\n"));
            }
            lines.push_str(&format!("waiting for you; the code is valid for {} (ctrl-c stops)\n", span(valid)));
            print(&lines)
        }
        LoginStep::Open { page, redirect, valid } => print(&format!(
            "open this address in a browser on this machine\n\n    {page}\n\n\
             waiting for you for {} (ctrl-c stops); the browser is sent back to {redirect}\n",
            span(valid)
        )),
        LoginStep::Waiting { why } => {
            console.note(&format!("{why}; trying again"));
            Ok(())
        }
    }
}

pub(crate) async fn log_out(arguments: &LogoutArguments, console: Console) -> Result<ExitCode, Failure> {
    let setup = launch::setup(console)?;
    let LogoutArguments { name, local } = arguments;
    let done = setup.log_out(name, *local).await?;
    let fate = match done {
        LoggedOut::Revoked => "its tokens are revoked".to_owned(),
        LoggedOut::StaysValid { host, keys_page } => {
            let page = keys_page.map_or_else(String::new, |page| format!(": {page}"));
            format!("the key or token that it held stays valid at {host} until you delete it there{page}")
        }
        LoggedOut::Removed if *local => "its tokens stay valid until they expire".to_owned(),
        LoggedOut::Removed => "it has no revoke_url, so its tokens stay valid until they expire".to_owned(),
    };
    print(&format!("logged out of `{}`; {fate}\n", text::line(name)))?;
    Ok(ExitCode::SUCCESS)
}

fn list(setup: &Setup, json: bool, console: Console) -> Result<ExitCode, Failure> {
    let logins = setup.known_logins()?;
    if json {
        let rows: Vec<_> = logins
            .iter()
            .map(|login| json!({"name": login.name, "flow": login.flow, "state": login.state.map(LoginState::name)}))
            .collect();
        print(&text::json(&json!(rows)))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(&[Align::Left, Align::Left, Align::Left]);
    table.head(["login", "flow", "state"]);
    for KnownLogin { name, flow, state } in &logins {
        let (tone, state) = match state {
            None => (Tone::Faint, "not logged in".to_owned()),
            Some(state @ (LoginState::Valid | LoginState::Unlimited | LoginState::Refreshable)) => {
                (Tone::Good, state.to_string())
            }
            Some(state) => (Tone::Warning, state.to_string()),
        };
        table.row([(Tone::Plain, text::line(name)), (Tone::Plain, flow.unwrap_or("-").to_owned()), (tone, state)]);
    }
    print(&table.text(console))?;
    Ok(ExitCode::SUCCESS)
}

fn time(seconds: u64) -> String {
    span(Duration::from_secs(seconds))
}

/// A time in words: `15 minutes`.
fn span(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..120 => text::counted(seconds, "second"),
        seconds @ 120..7_200 => text::counted(seconds / 60, "minute"),
        seconds @ 7_200..172_800 => text::counted(seconds / 3_600, "hour"),
        seconds => text::counted(seconds / 86_400, "day"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_worded_in_the_largest_fitting_unit() {
        for (seconds, words) in
            [(1, "1 second"), (119, "119 seconds"), (900, "15 minutes"), (7_200, "2 hours"), (259_200, "3 days")]
        {
            assert_eq!(time(seconds), words);
        }
    }
}
