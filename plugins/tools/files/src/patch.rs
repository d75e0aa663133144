//! `patch`: replaces text in a file, or applies a patch to several, all or nothing.

mod assumed;
mod edit;
mod hunks;
mod matching;
mod names;
mod parse;
mod plan;
mod replace;

#[cfg(test)]
mod tests;

use hermes_plugin::Error;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::parameters as schema;
use plan::Plan;

pub(crate) const DESCRIPTION: &str = "Change files of the workspace in place: old_string to new_string in one file, or a patch of several. \
    If any part does not fit, nothing changes.";

pub(crate) fn parameters() -> Value {
    schema(
        json!({
            "mode": { "type": "string", "enum": ["replace", "patch"] },
            "path": { "type": "string", "description": "replace: the file." },
            "old_string": { "type": "string", "description": "replace: text that occurs once." },
            "new_string": { "type": "string" },
            "replace_all": { "type": "boolean", "description": "replace: every occurrence." },
            "patch": {
                "type": "string",
                "description": "patch: a unified diff, or V4A: `*** Begin Patch`, for each file `*** Update File: PATH` (or Add, \
                    Delete; `*** Move to: PATH`) with hunks of `@@ line above`, ` kept`, `-removed`, `+added` lines, `*** End Patch`.",
            },
        }),
        &[],
    )
}

#[derive(Deserialize)]
pub(crate) struct Arguments {
    #[serde(default)]
    mode: Option<Mode>,
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    old_string: Option<String>,
    #[serde(default)]
    new_string: Option<String>,
    #[serde(default)]
    replace_all: Option<bool>,
    #[serde(default)]
    patch: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    Replace,
    Patch,
}

pub(crate) fn run(arguments: &Arguments) -> Result<String, Error> {
    let has_patch = arguments.patch.as_ref().is_some_and(|patch| !patch.trim().is_empty());
    let mode = arguments.mode.unwrap_or(if has_patch { Mode::Patch } else { Mode::Replace });
    let mut plan = Plan::default();
    match mode {
        Mode::Replace => {
            let missing = |name: &str| {
                Error::invalid(format!("{name} is missing: replace needs path, old_string and new_string"))
            };
            let path =
                arguments.path.as_deref().filter(|path| !path.trim().is_empty()).ok_or_else(|| missing("path"))?;
            let old = arguments.old_string.as_deref().ok_or_else(|| missing("old_string"))?;
            let new = arguments.new_string.as_deref().ok_or_else(|| missing("new_string"))?;
            if old.is_empty() {
                let why = "old_string is empty: give the text to replace; write_file creates a file";
                return Err(Error::invalid(why));
            }
            plan.replace(path, old, new, arguments.replace_all.unwrap_or_default())?;
        }
        Mode::Patch => {
            let patch = arguments.patch.as_deref().filter(|_| has_patch);
            let patch = patch.ok_or_else(|| Error::invalid("patch is missing: give a unified diff or a V4A patch"))?;
            for change in parse::parse(patch)? {
                plan.change(&change)?;
            }
        }
    }
    plan.carry_out()
}
