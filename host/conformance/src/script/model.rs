//! A scripted model: replies of a file to `llm.complete`.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hermes_conversation::{Model, Usage, tokens};
use hermes_plugin_host::services::{Finish, ModelReply, ModelRequest, Models, Piece, Pieces};
use hermes_plugin_host::{Fault, FaultKind};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde_saphyr::Spanned;

use super::reading::{self, Delay, Flaw, Many, times_of};
use super::{FixtureUse, Pattern, Position, Rule, Run, Script, wait};
use crate::error::ConformanceError;
use crate::fixtures::model;

/// Fixtures for the import `llm`, read from a file.
#[derive(Debug, Clone)]
pub struct ModelFixtures(Arc<Script<Matcher, Reply>>);

/// Which requests a rule answers.
#[derive(Debug)]
struct Matcher {
    task: Pattern,
    /// A part of one of the messages.
    contains: Option<String>,
}

impl fmt::Display for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task {}", self.task.0)?;
        let Some(part) = &self.contains else { return Ok(()) };
        write!(f, ", containing `{}`", part.chars().take(40).collect::<String>().escape_debug())
    }
}

impl Matcher {
    fn matches(&self, request: &ModelRequest) -> bool {
        let contains = |part: &String| request.texts().any(|text| text.contains(part));
        self.task.matches(&request.task) && self.contains.as_ref().is_none_or(contains)
    }
}

#[derive(Debug, Clone)]
struct Reply {
    delay: Duration,
    content: Result<Written, Fault>,
}

#[derive(Debug, Clone)]
struct Written {
    text: String,
    finish: Finish,
    model: Option<String>,
    usage: Option<RawUsage>,
}

impl ModelFixtures {
    /// Reads a file of fixtures.
    ///
    /// # Errors
    ///
    /// Returns an error with the position of the first mistake.
    pub fn read(path: &Path) -> Result<Self, ConformanceError> {
        Self::parse(&reading::text_of(path)?).map_err(|flaw| flaw.in_file(path))
    }

    fn parse(text: &str) -> Result<Self, Flaw> {
        let rules = reading::rules::<RawRule>(text)?.into_iter().map(rule_of);
        Ok(Self(Arc::new(Script(rules.collect::<Result<_, _>>()?))))
    }
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    #[serde(default)]
    task: Option<String>,
    #[serde(default)]
    contains: Option<String>,
    reply: Spanned<Many<RawReply>>,
    #[serde(default)]
    times: Option<Spanned<u32>>,
}

#[derive(Debug, Clone, Copy, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct RawUsage {
    #[serde(default)]
    input: u32,
    #[serde(default)]
    output: u32,
}

#[derive(Debug, Clone, Copy, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Ending {
    Stop,
    Length,
    Refused,
}

/// A reply, or the error that is given in its place.
#[derive(Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Section {
    text: Option<String>,
    finish: Option<Ending>,
    model: Option<String>,
    usage: Option<RawUsage>,
    error: Option<FaultKind>,
    code: Option<String>,
    message: Option<String>,
    retry_after: Option<Delay>,
    delay: Delay,
}

/// A section, or a text as the short form of a section with only that.
struct RawReply(Section);

impl<'de> Deserialize<'de> for RawReply {
    /// A text, or a section.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = RawReply;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, or a section such as `{text: …}` or `{error: unavailable}`")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<RawReply, E> {
                Ok(RawReply(Section { text: Some(text.to_owned()), ..Section::default() }))
            }

            fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<RawReply, A::Error> {
                Section::deserialize(MapAccessDeserializer::new(entries)).map(RawReply)
            }
        }

        deserializer.deserialize_any(Either)
    }
}

fn rule_of(rule: Spanned<RawRule>) -> Result<Rule<Matcher, Reply>, Flaw> {
    let line = rule.referenced.line();
    let RawRule { task, contains, reply, times } = rule.value;
    let matcher = Matcher { task: task.map_or_else(Pattern::any, Pattern), contains };
    let Many(all) = &reply.value;
    if all.is_empty() {
        return Err(Flaw::at(&reply, "the rule has no reply"));
    }
    let one = |(at, raw): (usize, &RawReply)| {
        reply_of(raw).map_err(|why| {
            let why = if all.len() > 1 { format!("reply {}: {why}", at + 1) } else { why.to_owned() };
            Flaw::at(&reply, why)
        })
    };
    let answers: Vec<Reply> = all.iter().enumerate().map(one).collect::<Result<_, _>>()?;
    Ok(Rule { line, matcher, times: times_of(times, answers.len())?, answers })
}

fn reply_of(RawReply(raw): &RawReply) -> Result<Reply, &'static str> {
    let of_text = raw.text.is_some() || raw.finish.is_some() || raw.model.is_some() || raw.usage.is_some();
    let of_error = raw.code.is_some() || raw.message.is_some() || raw.retry_after.is_some();
    let content = match raw.error {
        Some(_) if of_text => return Err("an error has no `text`, `finish`, `model` and `usage`"),
        None if of_error => return Err("only an error has `code`, `message` and `retry_after`; add `error: KIND`"),
        Some(kind) => {
            let message = raw.message.clone().unwrap_or_else(|| "a fixture answers this error".to_owned());
            let mut fault = Fault::new(kind, raw.code.as_deref().unwrap_or_default(), message);
            fault.retry_after_ms = raw.retry_after.map(|delay| u32::try_from(delay.0.as_millis()).unwrap_or(u32::MAX));
            Err(fault)
        }
        None => Ok(Written {
            text: raw.text.clone().ok_or("it needs `text` or `error`")?,
            finish: match raw.finish {
                None | Some(Ending::Stop) => Finish::Stop,
                Some(Ending::Length) => Finish::Length,
                Some(Ending::Refused) => Finish::Refused,
            },
            model: raw.model.clone(),
            usage: raw.usage,
        }),
    };
    Ok(Reply { delay: raw.delay.0, content })
}

/// The scripted model of one test run.
pub(crate) struct FixtureModel(Run<Matcher, Reply>);

impl FixtureModel {
    pub(crate) fn new(fixtures: &ModelFixtures) -> Arc<Self> {
        Arc::new(Self(Run::new(Arc::clone(&fixtures.0))))
    }

    /// The model of one session.
    pub(crate) fn open(self: &Arc<Self>) -> SessionModel {
        SessionModel { position: self.0.start(), model: Arc::clone(self) }
    }

    /// What was used of the fixtures.
    pub(crate) fn usage(&self) -> FixtureUse {
        self.0.usage(str::to_owned)
    }
}

/// The scripted model of one session.
pub(crate) struct SessionModel {
    model: Arc<FixtureModel>,
    position: Position,
}

#[async_trait]
impl Models for SessionModel {
    fn resolve(&self, _: &str) -> Result<Model, Fault> {
        Ok(model())
    }

    async fn stream(&self, request: ModelRequest, pieces: &Pieces) -> Result<ModelReply, Fault> {
        let line = || format!("task {}", request.task);
        let reply = self.model.0.answer(&self.position, |matcher| matcher.matches(&request), line);
        let Some(Reply { delay, content }) = reply else {
            let why = format!("no fixture matches a request of the task `{}`", request.task);
            return Err(Fault::new(FaultKind::Unavailable, "no-fixture", why));
        };
        wait(delay).await;
        let Written { text, finish, model: name, usage } = content?;
        for piece in pieces_of(&text) {
            pieces.push(Piece::Text(piece.to_owned()));
            tokio::task::yield_now().await;
        }
        let source: u32 = request.texts().map(tokens::of_text).sum();
        let usage = usage.unwrap_or(RawUsage { input: source, output: tokens::of_text(&text) });
        let usage = Usage { input: usage.input, output: usage.output, ..Usage::default() };
        Ok(ModelReply { text, finish, model: name.unwrap_or_else(|| model().name), usage })
    }

    fn count_tokens(&self, text: &str) -> u32 {
        tokens::of_text(text)
    }
}

/// A text word by word, as a model streams it.
fn pieces_of(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(' ')
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_conversation::Role;
    use hermes_plugin_host::services::PromptMessage;

    use super::*;

    fn request(task: &str, text: &str) -> ModelRequest {
        ModelRequest {
            task: task.to_owned(),
            messages: vec![PromptMessage::text(Role::User, text)],
            max_tokens: None,
            temperature: None,
            schema: None,
        }
    }

    fn session(text: &str) -> (Arc<FixtureModel>, SessionModel) {
        let model = FixtureModel::new(&ModelFixtures::parse(text).unwrap());
        let session = model.open();
        (model, session)
    }

    #[tokio::test]
    async fn replies_come_by_task_and_text_in_turn() {
        let text = "- task: memory\n  contains: ferry\n  reply:\n  - {error: unavailable, message: busy, retry_after: 2s}\n  - \
                    {text: at 07:45, finish: length, usage: {input: 7, output: 3}, model: small}\n- reply: none\n";
        let (model, session) = session(text);
        let error = session.complete(request("memory", "the ferry")).await.unwrap_err();
        assert_eq!(
            (error.kind, error.message.as_str(), error.retry_after_ms),
            (FaultKind::Unavailable, "busy", Some(2_000))
        );
        let reply = session.complete(request("memory", "the ferry")).await.unwrap();
        assert_eq!((reply.text.as_str(), reply.finish, reply.model.as_str()), ("at 07:45", Finish::Length, "small"));
        assert_eq!((reply.usage.input, reply.usage.output), (7, 3));
        assert_eq!(session.complete(request("compression", "the ferry")).await.unwrap().text, "none");
        assert_eq!((model.usage().requests, model.usage().unused), (3, Vec::<String>::new()));
    }

    #[tokio::test]
    async fn a_request_without_a_rule_is_recorded() {
        let (model, session) = session("- {task: memory, reply: yes it is}\n");
        let error = session.complete(request("compression", "x")).await.unwrap_err();
        assert_eq!((error.kind, error.code.as_str()), (FaultKind::Unavailable, "no-fixture"));
        let found = model.usage();
        assert_eq!(found.unused, ["line 1: task memory"]);
        assert_eq!(found.unmatched[0].request, "task compression");
    }

    #[test]
    fn a_mistake_is_reported_with_its_line() {
        for (text, line, part) in [
            ("- task: memory\n", 1, "reply"),
            ("- reply: a\n- reply: {}\n", 2, "`text` or `error`"),
            ("- reply: a\n- reply: {error: broken}\n", 2, "broken"),
            ("- reply: a\n- reply: {text: a, error: failed}\n", 2, "an error has no"),
            ("- reply: a\n- reply: [a, {text: a, message: b}]\n", 2, "reply 2: only an error"),
            ("- reply: []\n", 1, "no reply"),
            ("- reply: a\n  times: 0\n", 2, "never"),
            ("- reply: a\n  tmes: 1\n", 2, "tmes"),
            ("- reply: {text: a, delay: soon}\n", 1, "soon"),
            ("- reply: {text: a, finish: end}\n", 1, "end"),
        ] {
            let flaw = ModelFixtures::parse(text).unwrap_err();
            assert!(flaw.line == line && flaw.why.contains(part), "{text}: {flaw:?}");
        }
    }
}
