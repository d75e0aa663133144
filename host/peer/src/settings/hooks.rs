//! Hooks: programs that run at moments of the agent loop, with the user's rights and without a sandbox.

use serde_json::{Map, Value, json};

use super::exact::{line, word};
use super::{Translator, is_empty};

/// The moments there, each with the moment here.
const MOMENTS: [(&str, &str); 6] = [
    ("pre_tool_call", "before-tool"),
    ("post_tool_call", "after-tool"),
    ("pre_api_request", "before-model"),
    ("pre_llm_call", "before-model"),
    ("post_api_request", "after-model"),
    ("post_llm_call", "after-model"),
];
/// The longest time that a hook may take, there and here.
const LONGEST: u64 = 300;

impl Translator<'_> {
    pub(super) fn hooks(&mut self, root: &Value) {
        let Some(section) = root["hooks"].as_object() else { return };
        self.used.extend(["hooks", "hooks_auto_accept"].map(str::to_owned));
        for (moment, _) in section.iter().filter(|(_, entries)| !is_empty(entries)) {
            if !MOMENTS.iter().any(|(there, _)| there == moment) {
                self.report.left(format!("hooks.{moment}: hooks do not run at this moment here"));
            }
        }
        let mut done: Vec<&str> = Vec::new();
        for (_, here) in MOMENTS {
            if !done.contains(&here) {
                done.push(here);
                self.moment(section, here);
            }
        }
    }

    /// Takes the hooks of a moment. The peer has several names for one.
    fn moment(&mut self, section: &Map<String, Value>, here: &str) {
        let to = format!("hooks.{here}");
        let mut rows: Vec<Value> = Vec::new();
        let mut from: Vec<&str> = Vec::new();
        for (there, _) in MOMENTS.iter().filter(|(_, moment)| *moment == here) {
            for (at, entry) in section.get(*there).and_then(Value::as_array).into_iter().flatten().enumerate() {
                let with: Vec<Value> = match row(entry, here) {
                    Some(row) => rows.iter().cloned().chain([row]).collect(),
                    None => {
                        self.report.left(format!("hooks.{there}[{at}]: it has no `command`"));
                        continue;
                    }
                };
                // Try one hook at a time and undo the trial, so that an unusable hook does not exclude the others.
                let before = (self.edit.clone(), self.report.clone());
                let set = self.set(&to, &with.clone().into(), "the hook");
                (self.edit, self.report) = before;
                match set {
                    Ok(()) => {
                        rows = with;
                        from.push(there);
                    }
                    Err(why) => self.report.left(format!("hooks.{there}[{at}]: {why}")),
                }
            }
        }
        if rows.is_empty() {
            return;
        }
        from.dedup();
        let from = format!("hooks.{}", from.join(", hooks."));
        let (news, rows) = (self.known, Value::from(rows));
        if !self.take(&from, &to, &rows) || self.known > news {
            return;
        }
        for row in rows.as_array().into_iter().flatten() {
            let tools = row["matcher"].as_str().map_or_else(String::new, |matcher| format!(" of {}", word(matcher)));
            let effect = if here == "before-tool" { "; if it fails, the call does not run" } else { "" };
            self.report.right(format!(
                "the program {} runs at {here}{tools}, with your rights and without a sandbox{effect}",
                line(row["command"].as_str().unwrap_or_default())
            ));
        }
        self.report.changed(format!(
            "{to}: the hook reads `{here}` as `hook_event_name`, and only before-tool decides anything; see docs/use/hooks.md"
        ));
    }
}

/// An entry as it is written here.
fn row(entry: &Value, moment: &str) -> Option<Value> {
    let text = |name: &str| entry[name].as_str().map(str::trim).filter(|text| !text.is_empty());
    let mut row = Map::from_iter([("command".to_owned(), text("command")?.into())]);
    // The peer ignores one where there is no tool.
    if let Some(matcher) = text("matcher").filter(|_| moment.ends_with("-tool")) {
        row.insert("matcher".to_owned(), matcher.into());
    }
    let timeout = entry["timeout"].as_u64().or_else(|| text("timeout")?.parse().ok());
    if let Some(timeout) = timeout.filter(|seconds| *seconds > 0) {
        row.insert("timeout".to_owned(), json!(timeout.min(LONGEST)));
    }
    Some(row.into())
}
