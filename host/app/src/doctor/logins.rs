//! The logins of `auth.json` and the section `logins`, as far as they can be checked without their servers.

use hermes_diagnostic::{Action, Diagnose as _, Fix};
use hermes_models::LoginState;

use super::{Check, open_to_others};
use crate::Setup;

const SUBJECT: &str = "auth.json";

pub(super) fn examine(setup: &Setup) -> Vec<Check> {
    let mut checks = sections(setup);
    let file = setup.home.auth();
    let wanted = setup.config.settings().model.auth.clone();
    if !file.exists() {
        checks.extend(wanted.map(|name| absent(setup, &name)));
        return checks;
    }
    if let Some(mode) = open_to_others(&file) {
        let found = format!("{} holds tokens and can be read by others (mode {mode:o})", file.display());
        checks.push(Check::warn(SUBJECT, found, format!("chmod 600 {}", file.display())));
    }
    let logins = match setup.logins.examine() {
        Ok(logins) => logins,
        Err(why) => {
            checks.push(Check::warn(SUBJECT, why, "correct the file, or restore it from a copy"));
            return checks;
        }
    };
    checks
        .extend(wanted.filter(|name| !logins.iter().any(|(other, _)| other == name)).map(|name| absent(setup, &name)));
    for (name, state) in logins {
        let found = format!("the login `{name}`: {state}");
        checks.push(match state {
            LoginState::Valid | LoginState::Unlimited | LoginState::Refreshable => Check::ok(SUBJECT, found),
            LoginState::Expired => Check::warn(SUBJECT, found, log_in(&name)),
            LoginState::Incomplete => {
                let add = "add the missing ones of token_url, client_id and refresh_token";
                Check::warn(SUBJECT, found, log_in(&name).or(add))
            }
        });
    }
    checks
}

/// Sections that cannot be logged into.
fn sections(setup: &Setup) -> Vec<Check> {
    let names = setup.config.settings().logins.keys();
    let errors = names.filter_map(|name| setup.login_client(name).err());
    errors.map(|error| Check::warn("config", error.to_string(), error.diagnose().fix)).collect()
}

fn absent(setup: &Setup, name: &str) -> Check {
    let found = format!("model.auth names the login `{name}`, which is not in {}", setup.home.auth().display());
    Check::warn(SUBJECT, found, log_in(name).or("correct model.auth"))
}

fn log_in(name: &str) -> Fix {
    Action::LogIn { login: name.to_owned() }.into()
}
