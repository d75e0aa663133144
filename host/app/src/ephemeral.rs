//! Text that goes out with every request and is not stored in the conversation.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use hermes_agent::Ephemeral;
use hermes_config::{Config, Environment};
use hermes_conversation::Role;
use serde::Deserialize;

use crate::AppError;
use crate::error::PrefillFlaw;

/// These variables override the configuration for one process.
const SYSTEM: &str = "HERMES_EPHEMERAL_SYSTEM_PROMPT";
const PREFILL: &str = "HERMES_PREFILL_MESSAGES_FILE";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Prefilled {
    role: Role,
    content: String,
}

/// Reads the variables, then the configuration.
pub(crate) fn read(config: &Config, environment: &Environment) -> Result<Ephemeral, AppError> {
    let prompt = &config.settings().prompt;
    let system = environment.var(SYSTEM).or_else(|| prompt.ephemeral_system_prompt.clone());
    // A path in the configuration is relative to the file, whatever folder the program is started in.
    let beside = config.file().parent().unwrap_or(Path::new(""));
    let configured = || prompt.prefill_messages_file.as_ref().map(|file| beside.join(file));
    let named = environment.var(PREFILL).map(|file| (PathBuf::from(file), PREFILL));
    let file = named.or_else(|| Some((configured()?, "prompt.prefill_messages_file")));
    let prefill = file.map_or_else(|| Ok(Vec::new()), |(file, setting)| prefill(&file, setting))?;
    Ok(Ephemeral { system: system.unwrap_or_default().trim().to_owned(), prefill })
}

/// The most bytes of a file with messages that precede a conversation.
const LARGEST: u64 = 4 << 20;

fn prefill(file: &Path, setting: &'static str) -> Result<Vec<(Role, String)>, AppError> {
    let refused = |flaw: PrefillFlaw| AppError::Prefill { file: file.to_owned(), setting, flaw };
    let text = hermes_private_files::read_text(file, LARGEST).map_err(|error| match error.kind() {
        ErrorKind::NotFound => refused(PrefillFlaw::Missing),
        _ => refused(PrefillFlaw::Unreadable(error.to_string())),
    })?;
    parse(&text).map_err(refused)
}

/// Accepts only messages that keep the conversation after them valid for every provider.
fn parse(text: &str) -> Result<Vec<(Role, String)>, PrefillFlaw> {
    let messages: Vec<Prefilled> =
        serde_json::from_str(text).map_err(|error| PrefillFlaw::Content(hermes_diagnostic::json_fault(&error)))?;
    for (at, message) in messages.iter().enumerate() {
        let expected = if at % 2 == 0 { Role::User } else { Role::Assistant };
        if message.role != expected {
            return Err(PrefillFlaw::Content(format!(
                "message {} has the role {} instead of {}",
                at + 1,
                message.role.as_str(),
                expected.as_str()
            )));
        }
        if message.content.trim().is_empty() {
            return Err(PrefillFlaw::Content(format!("message {} is empty", at + 1)));
        }
    }
    if messages.len() % 2 == 1 {
        return Err(PrefillFlaw::NoReply);
    }
    Ok(messages.into_iter().map(|message| (message.role, message.content)).collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn prefill_keeps_a_conversation_valid() {
        let exchange = r#"[{"role":"user","content":"hi"},{"role":"assistant","content":"hello"}]"#;
        assert_eq!(parse(exchange).unwrap().len(), 2);
        assert_eq!(parse("[]").unwrap(), []);
        for (wrong, why) in [
            (r#"[{"role":"user","content":"hi"}]"#, "last message"),
            (r#"[{"role":"assistant","content":"hi"}]"#, "message 1"),
            (r#"[{"role":"system","content":"hi"}]"#, "message 1"),
            (r#"[{"role":"user","content":" "},{"role":"assistant","content":"x"}]"#, "empty"),
            (r#"{"role":"user"}"#, "invalid type"),
            (r#"[{"role":"user","content":"hi","name":"x"}]"#, "unknown field"),
        ] {
            let refused = parse(wrong).unwrap_err().to_string();
            assert!(refused.contains(why), "{refused}");
        }
    }
}
