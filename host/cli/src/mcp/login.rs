//! `hermes mcp login` and `logout`: the login to a server on the web that asks for one.
//!
//! The tokens are kept with those of providers. They are bound to the server's address: another address in the same section gets
//! none of them.

use std::process::ExitCode;

use clap::Args;
use hermes_app::servers::{self, Endpoint, KnownClient, ServerDefinition, login_name};

use crate::console::Console;
use crate::failure::{Failure, Kind};
use crate::launch::Setup;
use crate::login::{self, LogoutArguments};

/// A login to a server.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub(crate) struct McpLoginArguments {
    /// The server's name
    pub(super) name: String,
    /// Open the page of the login in a browser: the program in $BROWSER, or the system's
    #[arg(long)]
    browser: bool,
    /// The id that the login server gave you for this program, where it registers none by itself
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// The variable with the password that belongs to the id, if there is one
    #[arg(long, value_name = "VARIABLE", requires = "client_id")]
    client_secret_env: Option<String>,
    /// What the tokens shall allow beside what the login allows already, in place of what the server asks for
    #[arg(long)]
    scope: Option<String>,
    /// The port of this machine that the browser is sent back to [default: a free one]
    #[arg(long)]
    port: Option<u16>,
}

/// The end of a login.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub(crate) struct McpLogoutArguments {
    /// The server's name
    name: String,
    /// Only remove the login from this machine; its tokens stay valid
    #[arg(long)]
    local: bool,
}

pub(super) async fn log_in(
    setup: &Setup,
    definition: &ServerDefinition,
    arguments: &McpLoginArguments,
    console: Console,
) -> Result<ExitCode, Failure> {
    let name = &definition.name;
    let refused = |why: &str, fix: String| Failure::new(Kind::Usage, "there is nothing to log in to", why, fix);
    let Endpoint::Web(address) = &definition.endpoint else {
        let fix = format!("set its key below `env` in `mcp_servers.{name}`");
        return Err(refused(&format!("`{name}` is a program"), fix));
    };
    if address.headers.keys().any(|header| header.eq_ignore_ascii_case("authorization")) {
        let fix = format!("remove the header from `mcp_servers.{name}.headers` first");
        return Err(refused("the header `Authorization` is set for it, and comes before a login", fix));
    }
    let secret = arguments.client_secret_env.as_deref().map(|variable| {
        std::env::var(variable).map_err(|error| {
            let fix = "set the variable, or leave the option out";
            Failure::new(Kind::Usage, "the login cannot begin", format!("`{variable}`: {error}"), fix)
        })
    });
    let login = login_name(name);
    let known = KnownClient {
        id: arguments.client_id.clone(),
        secret: secret.transpose()?,
        scope: arguments.scope.as_ref().map(|wanted| wider(wanted, setup.logins.scope_for(&login, &address.url))),
        port: arguments.port,
    };
    // What helps is about this server, and not about a provider of models.
    let again = |failure: Failure| Failure {
        fix: format!("run `hermes mcp login {name}` again, or ask the server's operator"),
        ..failure
    };
    setup.own()?;
    let client = servers::server_login(name, address, &known).await.map_err(|error| again(error.into()))?;
    login::log_in(setup, &client, arguments.browser, console).await.map_err(again)?;
    console.note(&format!("`hermes mcp test {name}` lists its tools; new sessions use them"));
    Ok(ExitCode::SUCCESS)
}

/// A scope with what the login allows already: a server that wants more names only that.
fn wider(wanted: &str, known: Option<String>) -> String {
    let known = known.unwrap_or_default();
    let mut words: Vec<&str> = Vec::new();
    for word in known.split_whitespace().chain(wanted.split_whitespace()) {
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words.join(" ")
}

pub(super) async fn log_out(arguments: &McpLogoutArguments, console: Console) -> Result<ExitCode, Failure> {
    let logout = LogoutArguments { name: login_name(&arguments.name), local: arguments.local };
    login::log_out(&logout, console).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wider_login_keeps_what_was_allowed() {
        for (known, wanted, all) in [
            (None, "a:write", "a:write"),
            (Some("a:read"), "a:write", "a:read a:write"),
            (Some("a:read  a:write"), "a:write b", "a:read a:write b"),
        ] {
            assert_eq!(wider(wanted, known.map(str::to_owned)), all);
        }
    }
}
