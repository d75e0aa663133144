//! Scripted HTTP: answers of a file in place of the network, or one answer for every request.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Component, Path};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use hermes_capabilities::http::{Piece, ScriptedAnswer, SentRequest, Transport, is_method};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde_saphyr::Spanned;
use url::Url;

use super::reading::{self, Delay, Flaw, Many, Word};
use super::{FixtureUse, Pattern, Position, Rule, Run, Script, locked, wait};
use crate::error::ConformanceError;

/// Most bytes of a body in a file of its own: twice what a plugin may receive.
const MOST_BODY: u64 = 16 << 20;
/// The time between the bytes of a body that drips.
const DRIP: Duration = Duration::from_millis(250);
/// Bytes of each part of an over-long body.
const PART: usize = 64 << 10;

/// Fixtures for the import `http`, read from a file.
#[derive(Debug, Clone)]
pub struct HttpFixtures(Arc<Script<Matcher, Answer>>);

/// Which requests a rule answers.
#[derive(Debug)]
struct Matcher {
    method: Pattern,
    url: Pattern,
    /// A part of the body.
    body: Option<String>,
    headers: Vec<(String, Pattern)>,
}

impl fmt::Display for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method.0, self.url.0)
    }
}

impl Matcher {
    fn matches(&self, request: &SentRequest) -> bool {
        let url = match self.url.0.contains('?') {
            true => request.url.as_str(),
            // Without a query in the pattern, any query matches.
            false => request.url.split('?').next().unwrap_or_default(),
        };
        let has_header = |(name, pattern): &(String, Pattern)| {
            request.headers.iter().any(|(sent, value)| sent == name && pattern.matches(value))
        };
        self.method.matches(&request.method)
            && self.url.matches(url)
            && self.body.as_ref().is_none_or(|part| String::from_utf8_lossy(&request.body).contains(part))
            && self.headers.iter().all(has_header)
    }
}

/// An answer, or a fault in its place.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Arc<[u8]>,
    delay: Duration,
    fault: Option<Fault>,
}

/// What is wrong with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Fault {
    /// The connection is refused.
    Refuse,
    /// The body is neither text nor JSON, whatever its type says.
    Garbage,
    /// The connection ends after half of the body.
    CutOff,
    /// The body arrives byte by byte.
    Drip,
    /// The body never ends.
    OverLong,
}

impl Answer {
    /// An answer that says in JSON what is wrong.
    pub(crate) fn error(status: u16, headers: &[(&str, &str)], why: &str) -> Self {
        let body = serde_json::json!({ "error": why }).to_string();
        let mut answer = Self { body: body.into_bytes().into(), ..Self::empty(status) };
        answer.headers.push(("content-type".to_owned(), "application/json".to_owned()));
        answer.headers.extend(headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        answer
    }

    pub(crate) fn faulty(fault: Fault) -> Self {
        Self { fault: Some(fault), ..Self::empty(200) }
    }

    pub(crate) fn late(delay: Duration) -> Self {
        Self { delay, ..Self::empty(200) }
    }

    fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Arc::from([]), delay: Duration::ZERO, fault: None }
    }

    async fn give(self) -> Result<ScriptedAnswer, String> {
        wait(self.delay).await;
        let now = |bytes: Vec<u8>| Piece { wait: Duration::ZERO, bytes: Ok(bytes) };
        let body: Box<dyn Iterator<Item = Piece> + Send> = match self.fault {
            None => Box::new(std::iter::once(now(self.body.to_vec()))),
            Some(Fault::Refuse) => return Err("connection refused".to_owned()),
            Some(Fault::Garbage) => Box::new(std::iter::once(now(garbage()))),
            Some(Fault::CutOff) => {
                let bytes = if self.body.is_empty() {
                    b"{\"cut\":".to_vec()
                } else {
                    self.body[..self.body.len() / 2].to_vec()
                };
                let why = "connection closed before the whole answer arrived".to_owned();
                Box::new([now(bytes), Piece { wait: Duration::ZERO, bytes: Err(why) }].into_iter())
            }
            Some(Fault::Drip) => {
                let bytes = if self.body.is_empty() { vec![b' '; 4_096] } else { self.body.to_vec() };
                Box::new(bytes.into_iter().map(|byte| Piece { wait: DRIP, bytes: Ok(vec![byte]) }))
            }
            Some(Fault::OverLong) => Box::new(std::iter::repeat_with(move || now(vec![b' '; PART]))),
        };
        Ok(ScriptedAnswer { status: self.status, headers: self.headers, body })
    }
}

/// Bytes that are neither UTF-8 nor JSON, with the beginning of a page in between.
fn garbage() -> Vec<u8> {
    let mut bytes = vec![0xff, 0xfe, 0x00, 0xc3, b'{', b'"'];
    bytes.extend_from_slice(b"<html><body>502 Bad Gateway\r\n");
    bytes.extend((0..512u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8));
    bytes
}

impl HttpFixtures {
    /// Reads a file of fixtures, and the files with bodies that it names.
    ///
    /// # Errors
    ///
    /// Returns an error with the position of the first mistake.
    pub fn read(path: &Path) -> Result<Self, ConformanceError> {
        let text = reading::text_of(path)?;
        Self::parse(&text, path.parent().unwrap_or(Path::new("."))).map_err(|flaw| flaw.in_file(path))
    }

    fn parse(text: &str, folder: &Path) -> Result<Self, Flaw> {
        let rules = reading::rules::<RawRule>(text)?.into_iter().map(|rule| rule_of(rule, folder));
        Ok(Self(Arc::new(Script(rules.collect::<Result<_, _>>()?))))
    }
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    request: Spanned<RawRequest>,
    answer: Spanned<Many<RawAnswer>>,
    #[serde(default)]
    times: Option<Spanned<u32>>,
}

struct RawRequest {
    method: String,
    url: String,
    body: Option<String>,
    headers: BTreeMap<String, Word>,
}

impl<'de> Deserialize<'de> for RawRequest {
    /// `METHOD URL`, an address alone, or a section.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Section {
            #[serde(default)]
            method: Option<String>,
            url: String,
            #[serde(default)]
            body: Option<String>,
            #[serde(default)]
            headers: BTreeMap<String, Word>,
        }

        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = RawRequest;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a request such as `GET https://api.example.org/*`, or a section with `method` and `url`")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<RawRequest, E> {
                let (method, url) = text.trim().split_once(' ').unwrap_or(("*", text.trim()));
                let (method, url) = (method.to_owned(), url.trim().to_owned());
                Ok(RawRequest { method, url, body: None, headers: BTreeMap::new() })
            }

            fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<RawRequest, A::Error> {
                let Section { method, url, body, headers } = Section::deserialize(MapAccessDeserializer::new(entries))?;
                Ok(RawRequest { method: method.unwrap_or_else(|| "*".to_owned()), url, body, headers })
            }
        }

        deserializer.deserialize_any(Either)
    }
}

#[derive(Default)]
struct RawAnswer {
    status: Option<u16>,
    headers: BTreeMap<String, Word>,
    text: Option<String>,
    json: Option<serde_json::Value>,
    base64: Option<String>,
    file: Option<String>,
    delay: Delay,
    fault: Option<Fault>,
}

impl<'de> Deserialize<'de> for RawAnswer {
    /// A status, the name of a fault, or a section.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields, default)]
        #[derive(Default)]
        struct Section {
            status: Option<u16>,
            headers: BTreeMap<String, Word>,
            text: Option<String>,
            // An answer of `null` is a body, too.
            #[serde(deserialize_with = "present")]
            json: Option<serde_json::Value>,
            base64: Option<String>,
            file: Option<String>,
            delay: Delay,
            fault: Option<Fault>,
        }

        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = RawAnswer;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a status, a fault, or a section such as `{status: 200, json: {}}`")
            }

            fn visit_u64<E: de::Error>(self, status: u64) -> Result<RawAnswer, E> {
                // A number beyond the range is refused with the status.
                Ok(RawAnswer { status: Some(u16::try_from(status).unwrap_or(u16::MAX)), ..RawAnswer::default() })
            }

            fn visit_i64<E: de::Error>(self, status: i64) -> Result<RawAnswer, E> {
                self.visit_u64(u64::try_from(status).unwrap_or(u64::MAX))
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<RawAnswer, E> {
                let fault = Fault::deserialize(de::value::StrDeserializer::new(name))?;
                Ok(RawAnswer { fault: Some(fault), ..RawAnswer::default() })
            }

            fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<RawAnswer, A::Error> {
                let Section { status, headers, text, json, base64, file, delay, fault } =
                    Section::deserialize(MapAccessDeserializer::new(entries))?;
                Ok(RawAnswer { status, headers, text, json, base64, file, delay, fault })
            }
        }

        deserializer.deserialize_any(Either)
    }
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<serde_json::Value>, D::Error> {
    serde_json::Value::deserialize(deserializer).map(Some)
}

fn rule_of(rule: Spanned<RawRule>, folder: &Path) -> Result<Rule<Matcher, Answer>, Flaw> {
    let line = rule.referenced.line();
    let RawRule { request, answer, times } = rule.value;
    let matcher = matcher_of(&request)?;
    let answers = answers_of(&answer, folder)?;
    Ok(Rule { line, matcher, times: times_of(times, answers.len())?, answers })
}

/// Checks `times` against the number of answers.
pub(super) fn times_of(times: Option<Spanned<u32>>, answers: usize) -> Result<Option<u32>, Flaw> {
    let Some(times) = times else { return Ok(None) };
    if (times.value as usize) < answers.max(1) {
        let why = match times.value {
            0 => "`times` is 0, so the rule never answers".to_owned(),
            times => format!("`times` is {times}, but the rule has {answers} answers"),
        };
        return Err(Flaw::at(&times, why));
    }
    Ok(Some(times.value))
}

fn matcher_of(request: &Spanned<RawRequest>) -> Result<Matcher, Flaw> {
    let RawRequest { method, url, body, headers } = &request.value;
    let shown = |text: &str| text.chars().take(80).collect::<String>().escape_debug().to_string();
    if method != "*" && !is_method(method) {
        let why = format!("`{}` is not a method such as GET; write the request as `METHOD URL`", shown(method));
        return Err(Flaw::at(request, why));
    }
    let url = match url.as_str() {
        "*" => Pattern::any(),
        text => {
            let parsed = Url::parse(text).ok().filter(|url| ["http", "https"].contains(&url.scheme()));
            let why = || format!("`{}` is not an address such as https://api.example.org/*", shown(text));
            Pattern(parsed.ok_or_else(|| Flaw::at(request, why()))?.to_string())
        }
    };
    let headers = headers.iter().map(|(name, value)| (name.to_lowercase(), Pattern(value.0.clone()))).collect();
    Ok(Matcher { method: Pattern(method.clone()), url, body: body.clone(), headers })
}

fn answers_of(answers: &Spanned<Many<RawAnswer>>, folder: &Path) -> Result<Vec<Answer>, Flaw> {
    let Many(all) = &answers.value;
    if all.is_empty() {
        return Err(Flaw::at(answers, "the rule has no answer"));
    }
    let one = |(at, answer): (usize, &RawAnswer)| {
        answer_of(answer, folder).map_err(|why| {
            let why = if all.len() > 1 { format!("answer {}: {why}", at + 1) } else { why };
            Flaw::at(answers, why)
        })
    };
    all.iter().enumerate().map(one).collect()
}

fn answer_of(raw: &RawAnswer, folder: &Path) -> Result<Answer, String> {
    let status = raw.status.unwrap_or(200);
    if !(200..=599).contains(&status) {
        return Err(format!("the status must be a number from 200 to 599, and it is {status}"));
    }
    let bodies = [raw.text.is_some(), raw.json.is_some(), raw.base64.is_some(), raw.file.is_some()];
    if bodies.iter().filter(|given| **given).count() > 1 {
        return Err("it has several bodies; give one of `text`, `json`, `base64` and `file`".to_owned());
    }
    let (body, kind) = match raw {
        RawAnswer { text: Some(text), .. } => (text.clone().into_bytes(), Some("text/plain; charset=utf-8")),
        RawAnswer { json: Some(json), .. } => (json.to_string().into_bytes(), Some("application/json")),
        RawAnswer { base64: Some(text), .. } => {
            let text: String = text.split_whitespace().collect();
            let bytes = base64::engine::general_purpose::STANDARD.decode(text);
            (bytes.map_err(|error| format!("`base64` cannot be decoded: {error}"))?, Some("application/octet-stream"))
        }
        RawAnswer { file: Some(name), .. } => (body_file(folder, name)?, None),
        RawAnswer { .. } => (Vec::new(), None),
    };
    let mut headers = Vec::new();
    for (name, value) in &raw.headers {
        let is_name = !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte));
        if !is_name || value.0.chars().any(char::is_control) {
            return Err(format!("the header `{}` cannot be sent", name.escape_debug()));
        }
        headers.push((name.to_lowercase(), value.0.clone()));
    }
    if let Some(kind) = kind.filter(|_| headers.iter().all(|(name, _)| name != "content-type")) {
        headers.push(("content-type".to_owned(), kind.to_owned()));
    }
    Ok(Answer { status, headers, body: body.into(), delay: raw.delay.0, fault: raw.fault })
}

/// Reads a body from a file below the folder of the fixtures.
fn body_file(folder: &Path, name: &str) -> Result<Vec<u8>, String> {
    let cannot = |why: &str| format!("the file `{}` cannot be read: {why}", name.escape_debug());
    let is_below = Path::new(name).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    let path = folder.join(name);
    let lies_below =
        || -> std::io::Result<bool> { Ok(path.canonicalize()?.starts_with(folder_of(folder).canonicalize()?)) };
    if !is_below || !lies_below().map_err(|error| cannot(&error.to_string()))? {
        return Err(cannot("it must lie in the folder of the fixtures or below"));
    }
    let size = fs::metadata(&path).map_err(|error| cannot(&error.to_string()))?.len();
    if size > MOST_BODY {
        return Err(cannot(&format!(
            "it is larger than {} MiB; `fault: over-long` sends an endless body",
            MOST_BODY >> 20
        )));
    }
    fs::read(&path).map_err(|error| cannot(&error.to_string()))
}

fn folder_of(folder: &Path) -> &Path {
    if folder.as_os_str().is_empty() { Path::new(".") } else { folder }
}

/// The web of one test run.
pub(crate) struct Web {
    run: Run<Matcher, Answer>,
    is_stand_in: bool,
}

impl Web {
    /// The web of these fixtures; without fixtures, every request is answered with 503.
    pub(crate) fn new(fixtures: Option<&HttpFixtures>) -> Arc<Self> {
        let script = fixtures.map_or_else(|| Arc::new(Script(Vec::new())), |fixtures| Arc::clone(&fixtures.0));
        Arc::new(Self { run: Run::new(script), is_stand_in: fixtures.is_none() })
    }

    /// The web of one session.
    pub(crate) fn open(self: &Arc<Self>) -> Arc<SessionWeb> {
        Arc::new(SessionWeb {
            position: self.run.start(),
            web: Arc::clone(self),
            outage: Mutex::default(),
            served: AtomicU64::new(0),
        })
    }

    /// What was used of the fixtures. `shown` removes secrets.
    pub(crate) fn usage(&self, shown: impl Fn(&str) -> String) -> FixtureUse {
        let found = self.run.usage(shown);
        if self.is_stand_in { FixtureUse { stand_in: true, unmatched: Vec::new(), ..found } } else { found }
    }
}

/// The web of one session.
pub(crate) struct SessionWeb {
    web: Arc<Web>,
    position: Position,
    /// The answer to every request, in place of the fixtures.
    outage: Mutex<Option<Answer>>,
    served: AtomicU64,
}

impl SessionWeb {
    /// Answers every request with this until it is called with none.
    pub(crate) fn break_with(&self, answer: Option<Answer>) {
        *locked(&self.outage) = answer;
    }

    /// The number of requests so far.
    pub(crate) fn served(&self) -> u64 {
        self.served.load(Ordering::Relaxed)
    }

    /// Whether the stand-in has answered a request.
    pub(crate) fn was_down(&self) -> bool {
        self.web.is_stand_in && self.served() > 0
    }
}

#[async_trait]
impl Transport for SessionWeb {
    async fn send(&self, request: SentRequest) -> Result<ScriptedAnswer, String> {
        self.served.fetch_add(1, Ordering::Relaxed);
        let outage = locked(&self.outage).clone();
        let answer = outage.unwrap_or_else(|| {
            let line = || format!("{} {}", request.method, request.url);
            self.web.run.answer(&self.position, |matcher| matcher.matches(&request), line).unwrap_or_else(|| match self
                .web
                .is_stand_in
            {
                true => Answer::error(503, &[], "there are no fixtures, so this stand-in is always unavailable"),
                false => Answer::error(501, &[], "no fixture matches the request"),
            })
        });
        answer.give().await
    }
}

#[cfg(test)]
#[path = "web_tests.rs"]
mod tests;
