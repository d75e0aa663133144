//! Reads the rules of fixtures for the web.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Component, Path};

use base64::Engine as _;
use hermes_capabilities::http::is_method;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde_saphyr::Spanned;
use url::Url;

use super::{Answer, Fault, Matcher};
use crate::script::reading::{Delay, Flaw, Many, Word, times_of};
use crate::script::{Pattern, Rule};

/// Most bytes of a body in a file of its own: twice what a plugin may receive.
const MOST_BODY: u64 = 16 << 20;

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawRule {
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

pub(super) fn rule_of(rule: Spanned<RawRule>, folder: &Path) -> Result<Rule<Matcher, Answer>, Flaw> {
    let line = rule.referenced.line();
    let RawRule { request, answer, times } = rule.value;
    let matcher = matcher_of(&request)?;
    let answers = answers_of(&answer, folder)?;
    Ok(Rule { line, matcher, times: times_of(times, answers.len())?, answers })
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
