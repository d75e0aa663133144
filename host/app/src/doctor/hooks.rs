//! The shell hooks, as far as they can be checked without running one.

use hermes_diagnostic::Diagnose as _;

use super::Check;
use crate::Setup;

const SUBJECT: &str = "hooks";

pub(super) fn examine(setup: &Setup) -> Vec<Check> {
    let hooks = match setup.shell_hooks() {
        Ok(hooks) => hooks,
        Err(error) => return vec![Check::fail(SUBJECT, error.diagnose())],
    };
    let check = |hook: &hermes_agent::ShellHook| match hook.find() {
        Some(_) => Check::ok(SUBJECT, hook.described()),
        None => {
            let found = format!("{}: there is no program `{}`", hook.described(), hook.program());
            Check::warn(SUBJECT, found, format!("install it, or correct `{}` in config.yaml", hook.key()))
        }
    };
    hooks.iter().map(check).collect()
}
