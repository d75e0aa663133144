//! What the end and the output of a hook decide.
//!
//! A guard must not be skipped by a misunderstanding. So only two outputs are consent: silence, and an object whose members are
//! all known and do not object. The forms of other agents are known too. A form that is missing in the list blocks the call, so
//! an incomplete list is safe. Text without an object also blocks, because no list of words tells a refusal from the report of a
//! linter. At the other moments a hook decides nothing, so its text is information.

mod json;

use std::time::Duration;

use hermes_capabilities::process::End;
use hermes_conversation::one_line_within;
use hermes_plugin_host::Verdict;

use super::seconds;
use json::{Found, Json};

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
    #[error("wrote {0} beside its answer")]
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

/// The answer of a hook, or how it failed. `guards` says whether it decides about a call.
pub(super) fn answer(end: End, output: &[u8], errors: &str, time: Duration, guards: bool) -> Result<Answer, String> {
    match end {
        End::Exited(0) => of_output(output, guards),
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
    match of_output(output, true) {
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

/// How a hook agrees, for the message about one that was not understood.
const CONSENT: &str =
    "to agree, end with exit code 0 and write nothing, or write `{}`; text for people goes to the standard error";

fn of_output(output: &[u8], guards: bool) -> Result<Answer, String> {
    let text = json::text_of(output);
    let Found { objects, mut around } = match json::objects(&text) {
        Ok(found) => found,
        // The report of a linter may quote code.
        Err(_) if !guards => return Ok(Verdict::Proceed.into()),
        Err(error) => return Err(format!("wrote JSON that cannot be read: {error}: {}; {CONSENT}", quoted(&text))),
    };
    let (records, objects): (Vec<_>, Vec<_>) = objects.into_iter().partition(|members| is_log_record(members));
    for (_, value) in records.iter().flatten() {
        if let Json::Text(text) = value {
            around.push('\n');
            around.push_str(text);
        }
    }
    let objects: Vec<Object> = objects.iter().map(|members| Object::read(members)).collect();
    let (mut said, mut unheard) = match guards {
        false => (Said::Yes, None),
        true if objects.iter().any(|object| !object.decisions.is_empty()) => of_text_beside(&around, &text),
        // Fences and brackets around an object say nothing.
        true if !objects.is_empty() && !around.contains(is_said) => (Said::Yes, None),
        true => (of_text_alone(&text), None),
    };
    // At the other moments, an object may be the report of a linter.
    for object in objects.iter().filter(|object| guards || object.is_answer()) {
        unheard = unheard.or_else(|| object.unheard.clone());
        said = said.max(object.said(&text));
    }
    let verdict = match said {
        Said::Yes => Verdict::Proceed,
        Said::Ask(why) => Verdict::Ask(why),
        Said::Unclear(why) if guards => return Err(format!("{why}; {CONSENT}")),
        Said::Unclear(why) => return Err(why),
        Said::No(why) => Verdict::Block(why),
    };
    Ok(Answer { verdict, unheard })
}

/// Whether an object is a line of a log, which counts as text. Such a line has a harmless level, a message, and otherwise only
/// times and places.
fn is_log_record(members: &[(String, Json)]) -> bool {
    const LEVELS: [&str; 4] = ["level", "severity", "lvl", "loglevel"];
    const QUIET: [&str; 3] = ["info", "debug", "trace"];
    const MESSAGES: [&str; 3] = ["msg", "message", "event"];
    const PLACES: [&str; 13] = [
        "time",
        "timestamp",
        "@timestamp",
        "ts",
        "logger",
        "name",
        "caller",
        "target",
        "module",
        "pid",
        "hostname",
        "service",
        "v",
    ];
    let has = |known: &[&str]| members.iter().any(|(name, _)| known.contains(&&*name.to_ascii_lowercase()));
    let is_known = |(name, value): &(String, Json)| {
        let name = &*name.to_ascii_lowercase();
        match value {
            Json::Text(text) if LEVELS.contains(&name) => QUIET.contains(&&*text.trim().to_ascii_lowercase()),
            Json::Text(_) => MESSAGES.contains(&name) || PLACES.contains(&name),
            Json::Number => PLACES.contains(&name),
            _ => false,
        }
    };
    has(&LEVELS) && has(&MESSAGES) && members.iter().all(is_known)
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

/// Text without an object: nothing, or a word that decides.
fn of_text_alone(text: &str) -> Said {
    match of_word(text) {
        _ if text.trim().is_empty() => Said::Yes,
        Some(said) => said(reason("")),
        None => Said::Unclear(format!("wrote {}, which is no answer", quoted(text))),
    }
}

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

/// Whether a line is as a whole a count that refuses nothing: `3 checked, 0 blocked`.
fn is_count_of_none(line: &str) -> bool {
    line.trim().trim_end_matches('.').to_lowercase().split(',').all(|part| {
        let words: Vec<&str> = part.split_whitespace().collect();
        let [count, word] = words[..] else { return false };
        let is_word = word.chars().all(char::is_alphabetic);
        let is_none = ["0", "nothing"].contains(&count);
        let is_number = count.bytes().all(|byte| byte.is_ascii_digit());
        is_word && (is_none || (is_number && !REFUSALS.iter().any(|refusal| word.starts_with(refusal))))
    })
}

/// Whether a character is more than decoration.
fn is_said(character: char) -> bool {
    character.is_alphanumeric() || character == '\0'
}

/// Judges the text around objects that decide. The objects are the answer, so the text has no effect unless it may be a refusal.
/// The second value is text without effect. `output` is the text with the objects.
fn of_text_beside(text: &str, output: &str) -> (Said, Option<Unheard>) {
    const PERMITS: [&str; 5] = ["allow", "permit", "run", "execut", "proceed"];
    let text = text.trim();
    if !text.contains(is_said) {
        return (Said::Yes, None);
    }
    let is_value = |line: &str| serde_json::from_str::<serde_json::Value>(line).is_ok();
    let words = text.lines().filter(|line| !is_count_of_none(line)).collect::<Vec<_>>().join("\n").to_lowercase();
    let words: Vec<&str> =
        words.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect();
    let refuses = |at: usize| {
        REFUSALS.iter().any(|refusal| words[at].starts_with(refusal))
            || (["not", "never"].contains(&words[at])
                && words.get(at + 1).is_some_and(|next| PERMITS.iter().any(|permits| next.starts_with(permits))))
    };
    let may_refuse = text.contains('\0')
        || is_value(text)
        || text.lines().any(is_value)
        || matches!(words[..], ["no" | "stop" | "cancel"])
        || (0..words.len()).any(refuses);
    match may_refuse {
        true => (Said::Unclear(format!("wrote {}, whose text may be a refusal", quoted(output))), None),
        false => (Said::Yes, Some(Unheard::Text(quoted(text)))),
    }
}

/// What is known of an object.
#[derive(Default)]
struct Object {
    decisions: Vec<fn(String) -> Said>,
    /// Whether it has the member in which answers for agents are.
    is_for_agents: bool,
    /// The texts by their rank in [`REASONS`].
    reasons: Vec<(usize, String)>,
    /// A member that is not understood.
    unclear: Option<String>,
    /// A member that makes sense only together with a refusal.
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
            self.is_for_agents |= known == "hookspecificoutput";
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

    /// Whether it is meant for an agent.
    fn is_answer(&self) -> bool {
        self.is_for_agents || !self.decisions.is_empty() || self.unheard.is_some()
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
