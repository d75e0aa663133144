//! Scripted HTTP: answers of a file in place of the network, or one answer for every request. `rules` reads the file.

mod rules;

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use hermes_capabilities::http::{Piece, ScriptedAnswer, SentRequest, Transport};

use self::rules::{RawRule, rule_of};
use super::reading::{self, Flaw};
use super::{FixtureUse, Pattern, Position, Run, Script, locked, wait};
use crate::error::ConformanceError;

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
    fn is_for(&self, method: &str, url: &str) -> bool {
        self.method.matches(method) && self.url.matches(url)
    }

    /// What differs in a request of the same method and address; `None` for another one.
    fn difference(&self, request: &SentRequest) -> Option<String> {
        let address = request.url.split('?').next().unwrap_or_default();
        let own = Pattern(self.url.0.split('?').next().unwrap_or_default().to_owned());
        if !self.method.matches(&request.method) || !own.matches(address) {
            return None;
        }
        for (name, pattern) in &self.headers {
            match request.headers.iter().find(|(sent, _)| sent == name) {
                None => return Some(format!("its header `{name}` is missing")),
                Some((_, value)) if !pattern.matches(value) => return Some(format!("its header `{name}` differs")),
                Some(_) => {}
            }
        }
        let body = self.body.as_ref().filter(|part| !String::from_utf8_lossy(&request.body).contains(part.as_str()));
        Some(match body {
            Some(_) => "its body differs".to_owned(),
            None => "its query differs, or the rule has answered as often as it may".to_owned(),
        })
    }

    fn matches(&self, request: &SentRequest) -> bool {
        let url = match self.url.0.contains('?') {
            true => request.url.as_str(),
            // Without a query in the pattern, any query matches.
            false => request.url.split('?').next().unwrap_or_default(),
        };
        let has_header = |(name, pattern): &(String, Pattern)| {
            request.headers.iter().any(|(sent, value)| sent == name && pattern.matches(value))
        };
        self.is_for(&request.method, url)
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

    /// Whether it is a success whose JSON has a text of several words.
    fn has_a_sentence(&self) -> bool {
        fn has(value: &serde_json::Value) -> bool {
            match value {
                serde_json::Value::String(text) => text.split_whitespace().nth(2).is_some(),
                serde_json::Value::Array(items) => items.iter().any(has),
                serde_json::Value::Object(members) => members.values().any(has),
                _ => false,
            }
        }
        self.status < 300 && self.fault.is_none() && serde_json::from_slice(&self.body).is_ok_and(|value| has(&value))
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
            sent: Mutex::default(),
            missed: Mutex::default(),
            spoke: AtomicBool::new(false),
        })
    }

    /// Says that no rule matches a request, with what differs in the first rule of its method and address.
    fn nearly(&self, request: &SentRequest) -> String {
        let address = request.url.split('?').next().unwrap_or_default();
        let near = self.run.rules().find_map(|(line, matcher)| Some((line, matcher.difference(request)?)));
        let near =
            near.map_or_else(String::new, |(line, what)| format!("; the rule in line {line} is for it, but {what}"));
        format!("no fixture matches {} {address}{near}", request.method)
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
    /// What was sent since it was taken.
    sent: Mutex<Vec<SentRequest>>,
    /// Why no rule matched the last request; `None` if one did.
    missed: Mutex<Option<String>>,
    /// Whether a rule has answered with a text of several words.
    spoke: AtomicBool,
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

    /// The requests since the last call of this function.
    pub(crate) fn take_sent(&self) -> Vec<SentRequest> {
        std::mem::take(&mut *locked(&self.sent))
    }

    /// The last request, if no rule of the fixtures matched it, and the rule that nearly did.
    pub(crate) fn missed(&self) -> Option<String> {
        locked(&self.missed).clone()
    }

    /// A rule for requests that store something, if no request came for it.
    pub(crate) fn waits_to_store(&self) -> Option<String> {
        let idle = self.web.run.idle();
        let stores = |matcher: &&&Matcher| ["POST", "PUT", "PATCH"].contains(&matcher.method.0.as_str());
        idle.iter().find(stores).map(ToString::to_string)
    }

    /// Whether a rule has answered with a text of several words since the last call of this function, such as with something remembered.
    pub(crate) fn take_spoke(&self) -> bool {
        self.spoke.swap(false, Ordering::Relaxed)
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
            let answer = self.web.run.answer(&self.position, |matcher| matcher.matches(&request), line);
            *locked(&self.missed) = None;
            if answer.as_ref().is_some_and(Answer::has_a_sentence) {
                self.spoke.store(true, Ordering::Relaxed);
            }
            answer.unwrap_or_else(|| match self.web.is_stand_in {
                true => Answer::error(503, &[], "there are no fixtures, so this stand-in is always unavailable"),
                false => {
                    *locked(&self.missed) = Some(self.web.nearly(&request));
                    Answer::error(501, &[], "no fixture matches the request")
                }
            })
        });
        locked(&self.sent).push(request);
        answer.give().await
    }
}

#[cfg(test)]
mod tests;
