//! Texts of prompts: the hints for platforms, and the messages that begin each conversation.

use hermes_prompt::scan::{self, Scope};
use serde_json::{Value, json};

use super::{Translator, at};
use crate::PeerHome;

/// The platforms that both programs have.
const PLATFORMS: [&str; 2] = ["cli", "cron"];
/// The most bytes of a file of messages.
const LARGEST: u64 = 1 << 20;
/// The name of the file here.
const FILE: &str = "prefill.json";

impl Translator<'_> {
    pub(super) fn hints(&mut self, root: &Value) {
        for platform in PLATFORMS {
            let key = format!("platform_hints.{platform}");
            if let Some(hint) = at(root, &key) {
                self.used.insert(key.clone());
                self.take(&key, &key, hint);
            }
        }
    }

    /// Copies the file: a link to that home would let it change what every prompt says.
    pub(super) fn prefill(&mut self, root: &Value, peer: &PeerHome) {
        const THERE: &str = "prefill_messages_file";
        const HERE: &str = "prompt.prefill_messages_file";
        let named = [THERE, "agent.prefill_messages_file"].into_iter().find_map(|key| {
            let name = at(root, key)?.as_str().filter(|name| !name.is_empty())?;
            Some((key, name))
        });
        let Some((key, name)) = named else { return };
        self.used.insert(key.to_owned());
        let text = match peer.within(name) {
            Ok(Some(file)) => hermes_private_files::read_text(&file, LARGEST).map_err(|error| error.to_string()),
            Ok(None) => Err(format!("{name} does not exist in that home")),
            Err(why) => Err(why),
        };
        let text = text.and_then(|text| messages(name, &text));
        let text = match text {
            Ok(text) => text,
            Err(why) => return self.report.left(format!("{key}: {why}")),
        };
        let path = self.setup.home.path().join(FILE);
        if hermes_private_files::read_text(&path, LARGEST).is_ok_and(|here| here != text) {
            return self.report.left(format!("{key}: another {FILE} is here"));
        }
        let known = self.known;
        if self.take(key, HERE, &FILE.into()) && self.known == known {
            self.report.right(format!("each conversation begins with the messages of {name}: {text}"));
            self.files.push((path, text));
        }
    }
}

/// The messages of a file as they are written here: pairs of the user's and the model's, since a session refuses others.
fn messages(name: &str, text: &str) -> Result<String, String> {
    let read: Value = serde_json::from_str(text).map_err(|error| format!("{name} is not JSON: {error}"))?;
    let findings = scan::json_findings(&read, Scope::Context);
    if !findings.is_empty() {
        return Err(format!("{name} is suspicious ({})", findings.into_iter().collect::<Vec<_>>().join(", ")));
    }
    let mut kept = Vec::new();
    for (message, role) in read.as_array().into_iter().flatten().zip(["user", "assistant"].into_iter().cycle()) {
        match message["content"].as_str().filter(|content| message["role"] == role && !content.trim().is_empty()) {
            Some(content) => kept.push(json!({ "role": role, "content": content })),
            None => return Err(format!("{name}: its messages are not texts of the roles user and assistant in turn")),
        }
    }
    match kept.len() {
        0 => Err(format!("{name} has no messages")),
        odd if odd % 2 == 1 => Err(format!("{name}: its last message has no reply")),
        _ => Ok(Value::from(kept).to_string()),
    }
}
