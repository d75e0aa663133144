//! The logins of `auth.json`, as far as they can be checked without their servers.

use hermes_models::LoginState;

use super::{Check, open_to_others};
use crate::Setup;

const SUBJECT: &str = "auth.json";

pub(super) fn examine(setup: &Setup) -> Vec<Check> {
    let file = setup.home.auth();
    let wanted = setup.config.settings().model.auth.clone();
    let mut checks = Vec::new();
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
            LoginState::Valid | LoginState::Refreshable => Check::ok(SUBJECT, found),
            LoginState::Expired => {
                Check::warn(SUBJECT, found, "log in again, and write the new refresh_token into the file")
            }
            LoginState::Incomplete => {
                Check::warn(SUBJECT, found, "add the missing ones of token_url, client_id and refresh_token")
            }
        });
    }
    checks
}

fn absent(setup: &Setup, name: &str) -> Check {
    let found = format!("model.auth names the login `{name}`, which is not in {}", setup.home.auth().display());
    Check::warn(SUBJECT, found, "add the login with its token_url, client_id and refresh_token, or correct model.auth")
}
