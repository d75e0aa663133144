//! What the end and the output of a hook decide.
//!
//! A guard must not be skipped, so consent has to be understood: an object counts as consent only if every member of it is known
//! and none objects. The forms of other agents are known, but the rule does not depend on this list. What is missing in the list
//! blocks.

mod json;

use std::time::Duration;

use hermes_capabilities::process::End;
use hermes_conversation::one_line_within;
use hermes_plugin_host::Verdict;

use super::seconds;
use json::Json;

/// The exit code that blocks a call, with the standard error as the reason.
const BLOCKS: i32 = 2;
/// The most characters of a reason.
const MOST_REASON: usize = 8_000;
/// The most characters of a line of the standard error, and of what a hook said.
const LAST_LINE: usize = 200;

/// What a hook answered.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) verdict: Verdict,
    pub(super) unheard: Option<Unheard>,
}

/// What a hook said without effect. `Display` continues a sentence that begins with the hook.
#[derive(Debug, Clone, thiserror::Error)]
pub(super) enum Unheard {
    #[error("wrote {0}, which is no answer")]
    Text(String),
    #[error("wants to add context ({0}), which hooks cannot do")]
    Context(String),
    /// Output that only a guard has to explain.
    #[error("{0}")]
    Odd(String),
}

impl From<Verdict> for Answer {
    fn from(verdict: Verdict) -> Self {
        Self { verdict, unheard: None }
    }
}

/// The answer of a hook, or how it failed.
pub(super) fn answer(end: End, output: &[u8], errors: &str, time: Duration) -> Result<Answer, String> {
    match end {
        End::Exited(0) => of_output(output),
        End::Exited(BLOCKS) => Ok(Verdict::Block(reason_of_refusal(output, errors)).into()),
        End::TimedOut => Err(format!("did not end within {}", seconds(time))),
        End::Exited(code) => Err(with_last_line(format!("ended with exit code {code}"), errors)),
        End::Killed(signal) => Err(with_last_line(format!("was ended by signal {signal}"), errors)),
        End::Stopped => Err("was stopped".to_owned()),
    }
}

/// The standard error, or what the output has in its place.
fn reason_of_refusal(output: &[u8], errors: &str) -> String {
    if !errors.trim().is_empty() {
        return reason(errors);
    }
    match of_output(output) {
        Ok(Answer { verdict: Verdict::Block(why), .. }) => why,
        _ => reason(&json::text_of(output)),
    }
}

/// What an object or a text says about the call, the strictest last.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Said {
    /// No objection.
    Yes,
    Ask(String),
    /// It is not understood, for this reason.
    Unclear(String),
    No(String),
}

fn of_output(output: &[u8]) -> Result<Answer, String> {
    let text = json::text_of(output);
    let found =
        json::objects(&text).map_err(|error| format!("wrote JSON that cannot be read: {error}: {}", quoted(&text)))?;
    let (mut said, mut unheard) = of_text(&found.around, &text);
    for object in &found.objects {
        let object = Object::read(object);
        unheard = unheard.or_else(|| object.unheard.clone());
        said = said.max(object.said(&text));
    }
    let verdict = match said {
        Said::Yes => Verdict::Proceed,
        Said::Ask(why) => Verdict::Ask(why),
        Said::Unclear(why) => return Err(why),
        Said::No(why) => Verdict::Block(why),
    };
    Ok(Answer { verdict, unheard })
}

/// What a word says as the value of a decision.
fn of_word(word: &str) -> Option<fn(String) -> Said> {
    match word.trim().to_ascii_lowercase().as_str() {
        "proceed" | "allow" => Some(|_| Said::Yes),
        "block" | "deny" | "reject" => Some(Said::No),
        // The peer's word for a question to the user. It is Claude Code's old word for consent, so the user decides.
        "ask" | "approve" => Some(Said::Ask),
        _ => None,
    }
}

/// Text outside of objects. No agent reads it as a decision, so it is for nobody, unless it looks like one. The second value is
/// text without effect. `output` is the text with the objects.
fn of_text(text: &str, output: &str) -> (Said, Option<Unheard>) {
    /// Beginnings of words that refuse.
    const REFUSALS: [&str; 12] = [
        "abort",
        "block",
        "denied",
        "denies",
        "deny",
        "disallow",
        "forbid",
        "permissiondecision",
        "prohibit",
        "refus",
        "reject",
        "veto",
    ];
    let text = text.trim();
    let unclear = |what: &str| {
        let fix = "write one of its forms, or nothing, and send text for people to the standard error";
        Said::Unclear(format!("wrote {}, which {what}: {fix}", quoted(output)))
    };
    if text.chars().all(|character| !character.is_alphanumeric() && character != '\0') {
        return (Said::Yes, None);
    }
    if let Some(said) = of_word(text) {
        return (said(reason("")), None);
    }
    if text.contains('\0') {
        return (unclear("is not text"), None);
    }
    let is_value = |line: &str| serde_json::from_str::<serde_json::Value>(line).is_ok();
    if is_value(text) || text.lines().any(is_value) {
        return (unclear("is JSON but no object"), None);
    }
    let words = text.to_lowercase();
    let words: Vec<&str> =
        words.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect();
    let refuses = |word: &&str| REFUSALS.iter().any(|refusal| word.starts_with(refusal));
    let refuses = words.iter().any(refuses)
        || matches!(words[..], ["no" | "stop" | "cancel"])
        || words
            .windows(2)
            .any(|pair| pair[0] == "not" && (pair[1].starts_with("allow") || pair[1].starts_with("permit")));
    match refuses {
        true => (unclear("may be a refusal, and is no answer"), None),
        false => (Said::Yes, Some(Unheard::Text(quoted(text)))),
    }
}

/// What is known of an object.
#[derive(Default)]
struct Object {
    decisions: Vec<fn(String) -> Said>,
    /// The texts by their rank in [`REASONS`].
    reasons: Vec<(usize, String)>,
    /// A member that is not understood.
    unclear: Option<String>,
    /// A member that makes sense only beside a refusal.
    stops: Option<String>,
    unheard: Option<Unheard>,
}

/// The members with a reason, the best first.
const REASONS: [&str; 8] = [
    "permissiondecisionreason",
    "reason",
    "agentmessage",
    "message",
    "stopreason",
    "errormessage",
    "usermessage",
    "systemmessage",
];

impl Object {
    fn read(members: &[(String, Json)]) -> Self {
        let mut object = Self::default();
        object.add(members, 0);
        object
    }

    fn add(&mut self, members: &[(String, Json)], depth: usize) {
        for (name, value) in members {
            let known = name.to_ascii_lowercase().replace(['_', '-'], "");
            match (known.as_str(), value) {
                (_, Json::Null) => {}
                // Claude Code, Codex, Gemini CLI and their kin; a decision that is an object answers Claude Code's question.
                ("hookspecificoutput", Json::Object(inner)) if depth == 0 => self.add(inner, 1),
                ("decision", Json::Object(inner)) if depth == 1 => self.add(inner, 2),
                // `permission` is Cursor's.
                ("decision" | "action" | "behavior" | "permission" | "permissiondecision", Json::Text(word)) => {
                    match of_word(word) {
                        Some(said) => self.decisions.push(said),
                        None => self.do_not_understand(name),
                    }
                }
                ("continue", Json::Bool(true)) => self.decisions.push(|_| Said::Yes),
                ("continue", Json::Bool(false)) => self.decisions.push(Said::No),
                // Cline.
                ("cancel", Json::Bool(true)) => self.decisions.push(Said::No),
                ("cancel", Json::Bool(false)) => self.decisions.push(|_| Said::Yes),
                ("interrupt", Json::Bool(true)) => self.stops = Some(name.clone()),
                ("suppressoutput" | "interrupt", Json::Bool(_)) => {}
                ("hookeventname", Json::Text(_)) => {}
                ("additionalcontext" | "context" | "contextmodification", Json::Text(text)) => {
                    if !text.trim().is_empty() {
                        self.unheard = Some(Unheard::Context(quoted(text)));
                    }
                }
                (reason, Json::Text(text)) => match REASONS.iter().position(|known| *known == reason) {
                    None => self.do_not_understand(name),
                    Some(_) if text.trim().is_empty() => {}
                    Some(rank) => {
                        if reason == "stopreason" {
                            self.stops = Some(name.clone());
                        }
                        self.reasons.push((rank, text.clone()));
                    }
                },
                _ => self.do_not_understand(name),
            }
        }
    }

    fn do_not_understand(&mut self, name: &str) {
        self.unclear.get_or_insert_with(|| name.to_owned());
    }

    /// What the object says. `text` is the whole output.
    fn said(&self, text: &str) -> Said {
        let best = self.reasons.iter().min_by_key(|(rank, _)| *rank);
        let why = reason(best.map_or("", |(_, text)| text));
        // A message for the user needs no decision; a reason does.
        let is_for_user = |(rank, _): &(usize, String)| REASONS[*rank] == "systemmessage";
        let has_reason_only = self.decisions.is_empty() && !self.reasons.iter().all(is_for_user);
        let unclear = |what: String| Said::Unclear(format!("wrote {}, {what}", quoted(text)));
        let decided = self.decisions.iter().map(|said| said(why.clone())).max().unwrap_or(Said::Yes);
        match (decided, &self.unclear, &self.stops) {
            (no @ Said::No(_), ..) => no,
            (_, Some(name), _) => unclear(format!("and its member `{name}` is not understood")),
            (_, None, Some(name)) => unclear(format!("and its member `{name}` is for refusals only")),
            (Said::Yes, None, None) if has_reason_only => unclear("which has a reason and no decision".to_owned()),
            (said, None, None) => said,
        }
    }
}

fn quoted(text: &str) -> String {
    format!("`{}`", one_line_within(text, LAST_LINE))
}

fn reason(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(MOST_REASON) {
        _ if text.is_empty() => "it gave no reason".to_owned(),
        Some((at, _)) => format!("{} […]", &text[..at]),
        None => text.to_owned(),
    }
}

fn with_last_line(what: String, errors: &str) -> String {
    match errors.lines().map(str::trim).rfind(|line| !line.is_empty()) {
        Some(line) => format!("{what}: {}", one_line_within(line, LAST_LINE)),
        None => what,
    }
}

#[cfg(test)]
mod tests;
