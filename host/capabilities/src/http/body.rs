//! The body of a request: bytes of the plugin, or a form or a JSON document with secrets of the host in it.
//!
//! The host encodes each secret for its place, so that no value can change the text around it.

use std::fmt;
use std::ops::Range;

use serde::de::{Deserializer as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use url::form_urlencoded;

use super::error::{BODY, HttpError};
use super::value::Value;

/// Most fields of a form, and most places of secrets in a document.
const FIELDS: usize = 1_000;

/// The body of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// These bytes; empty for no body.
    Bytes(Vec<u8>),
    /// `application/x-www-form-urlencoded`, in this order.
    Form(Vec<(String, Value)>),
    /// `application/json`.
    Json {
        /// The document.
        text: String,
        /// The places of secrets by JSON Pointer, each with its secret.
        secrets: Vec<(String, Value)>,
    },
}

impl Default for Body {
    fn default() -> Self {
        Self::Bytes(Vec::new())
    }
}

impl<T: Into<Vec<u8>>> From<T> for Body {
    fn from(bytes: T) -> Self {
        Self::Bytes(bytes.into())
    }
}

impl Body {
    /// The names of the secrets in it.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &str> {
        let places = match self {
            Self::Bytes(_) => [].as_slice(),
            Self::Form(fields) => fields.as_slice(),
            Self::Json { secrets, .. } => secrets.as_slice(),
        };
        places.iter().filter_map(|(_, value)| value.secret())
    }

    /// Its `Content-Type`, if the host knows it.
    pub(super) fn content_type(&self) -> Option<&'static str> {
        match self {
            Self::Bytes(_) => None,
            Self::Form(_) => Some("application/x-www-form-urlencoded"),
            Self::Json { .. } => Some("application/json"),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Self::Bytes(bytes) if bytes.is_empty())
    }

    /// Its bytes. `text` gives the text of each value, with its secret.
    pub(super) fn encode(&self, text: impl Fn(&Value) -> Result<String, HttpError>) -> Result<Vec<u8>, HttpError> {
        let bytes = match self {
            Self::Bytes(bytes) => bytes.clone(),
            Self::Form(fields) => form(fields, text)?.into_bytes(),
            Self::Json { text: document, secrets } => json(document, secrets, text)?.into_bytes(),
        };
        if bytes.len() > BODY { Err(HttpError::Body(bytes.len())) } else { Ok(bytes) }
    }
}

fn bad(why: impl Into<String>) -> HttpError {
    HttpError::Content(why.into())
}

fn check(values: &[(String, Value)]) -> Result<(), HttpError> {
    if values.len() > FIELDS {
        return Err(bad(format!("it has {} fields, and may have {FIELDS}", values.len())));
    }
    values.iter().find_map(|(_, value)| value.fault()).map_or(Ok(()), |why| Err(bad(why)))
}

fn form(fields: &[(String, Value)], text: impl Fn(&Value) -> Result<String, HttpError>) -> Result<String, HttpError> {
    check(fields)?;
    let mut form = form_urlencoded::Serializer::new(String::new());
    for (name, value) in fields {
        form.append_pair(name, &text(value)?);
    }
    Ok(form.finish())
}

/// The document with each secret at its place; all other bytes stay.
fn json(
    document: &str,
    secrets: &[(String, Value)],
    text: impl Fn(&Value) -> Result<String, HttpError>,
) -> Result<String, HttpError> {
    check(secrets)?;
    serde_json::from_str::<IgnoredAny>(document).map_err(|error| bad(format!("it is not JSON: {error}")))?;
    let mut places = Vec::new();
    for (pointer, value) in secrets {
        let place = locate(document, pointer).map_err(|why| bad(format!("the place {pointer:?} {why}")))?;
        places.push((place, serde_json::to_string(&text(value)?).map_err(|error| bad(error.to_string()))?));
    }
    places.sort_by_key(|(place, _)| place.start);
    if places.windows(2).any(|pair| pair[0].0.end > pair[1].0.start) {
        return Err(bad("two of its secrets have the same place"));
    }
    let mut filled = document.to_owned();
    for (place, text) in places.into_iter().rev() {
        filled.replace_range(place, &text);
    }
    Ok(filled)
}

/// The bytes of the value at a JSON Pointer.
fn locate(document: &str, pointer: &str) -> Result<Range<usize>, &'static str> {
    let mut value = document.trim();
    if !pointer.is_empty() && !pointer.starts_with('/') {
        return Err("does not begin with `/`");
    }
    for step in pointer.split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        let raw = serde_json::Deserializer::from_str(value).deserialize_any(Child(&step)).map_err(|_| MISSING)?;
        value = raw?.get();
    }
    // Each value is a part of the document.
    let start = value.as_ptr() as usize - document.as_ptr() as usize;
    Ok(start..start + value.len())
}

const MISSING: &str = "does not exist in the document";

/// Finds the member or the element of this name.
struct Child<'a>(&'a str);

impl<'de> Visitor<'de> for Child<'_> {
    type Value = Result<&'de RawValue, &'static str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or an array")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut found = Err(MISSING);
        while let Some((name, value)) = members.next_entry::<String, &'de RawValue>()? {
            if name == self.0 {
                // Parsers disagree about which of the two counts.
                found = if found.is_err() { Ok(value) } else { return Ok(Err("occurs twice in the document")) };
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        let mut found = Err(MISSING);
        let mut index = 0_usize;
        while let Some(value) = elements.next_element::<&'de RawValue>()? {
            if index.to_string() == self.0 {
                found = Ok(value);
            }
            index += 1;
        }
        Ok(found)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const EVIL: &str = r#"a"b\c&d=e%20f+g</script>{"#;

    fn encode(body: &Body) -> Result<String, HttpError> {
        let text = |value: &Value| {
            Ok(match value {
                Value::Plain(text) => text.clone(),
                Value::Secret { prefix, .. } => format!("{prefix}{EVIL}"),
            })
        };
        body.encode(text).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    fn secret() -> Value {
        Value::Secret { name: "token".into(), prefix: "Bearer ".into() }
    }

    fn document(text: &str, places: &[&str]) -> Body {
        Body::Json { text: text.into(), secrets: places.iter().map(|place| ((*place).to_owned(), secret())).collect() }
    }

    #[test]
    fn a_secret_in_a_form_is_one_value() {
        let fields = vec![
            ("grant_type".to_owned(), Value::Plain("refresh_token&admin=1".into())),
            ("refresh_token".to_owned(), secret()),
            ("a=b".to_owned(), Value::Plain("ü".into())),
        ];
        let encoded = encode(&Body::Form(fields)).unwrap();
        let read: Vec<(String, String)> = form_urlencoded::parse(encoded.as_bytes()).into_owned().collect();
        let of = |name: &str, value: String| (name.to_owned(), value);
        assert_eq!(
            read,
            [
                of("grant_type", "refresh_token&admin=1".into()),
                of("refresh_token", format!("Bearer {EVIL}")),
                of("a=b", "ü".into())
            ]
        );
    }

    #[test]
    fn a_secret_in_a_document_is_one_text_and_the_rest_is_unchanged() {
        let text = r#" {"n":1.50e3,"a/b":[0,{"k~":""}, "x"], "k":null ,"z":12345678901234567890123} "#;
        let encoded = encode(&document(text, &["/k", "/a~1b/1/k~0", "/a~1b/2"])).unwrap();
        let quoted = serde_json::to_string(&format!("Bearer {EVIL}")).unwrap();
        let expected = text
            .replace(r#""k":null"#, &format!("\"k\":{quoted}"))
            .replace(r#"{"k~":""}"#, &format!("{{\"k~\":{quoted}}}"));
        assert_eq!(encoded, expected.replace(r#""x""#, &quoted));
        assert_eq!(encode(&document("\"\"", &[""])).unwrap(), quoted);
    }

    #[test]
    fn a_place_must_exist_once() {
        for (text, places, why) in [
            (r#"{"a":1}"#, &["/b"][..], "does not exist"),
            (r#"{"a":1}"#, &["a"], "does not begin"),
            (r#"{"a":1}"#, &["/a/b"], "does not exist"),
            (r#"{"a":1,"a":2}"#, &["/a"], "twice"),
            (r#"{"a":1,"\u0061":2}"#, &["/a"], "twice"),
            (r#"{"a":[1]}"#, &["/a/01"], "does not exist"),
            (r#"{"a":[1]}"#, &["/a/-"], "does not exist"),
            (r#"{"a":1}"#, &["/a", "/a"], "same place"),
            (r#"{"a":{"b":1}}"#, &["/a", "/a/b"], "same place"),
            (r#"{"a":1"#, &["/a"], "not JSON"),
            (r#"{"a":1} {"a":2}"#, &["/a"], "not JSON"),
            ("", &[], "not JSON"),
        ] {
            let error = encode(&document(text, places)).unwrap_err().to_string();
            assert!(error.contains(why), "{text} {places:?}: {error}");
        }
    }

    #[test]
    fn a_body_is_limited_after_its_secrets_were_inserted() {
        let long = "x".repeat(BODY - 3);
        let fields = |text: &str| Body::Form(vec![("a".to_owned(), Value::Plain(text.to_owned()))]);
        assert!(encode(&fields(&long)).is_ok());
        assert!(matches!(encode(&fields(&format!("{long}ab"))), Err(HttpError::Body(_))));
        let many = Body::Form(vec![("a".to_owned(), Value::Plain(String::new())); FIELDS + 1]);
        assert!(matches!(encode(&many), Err(HttpError::Content(_))));
        let prefix = Value::Secret { name: "token".into(), prefix: "a\nb".into() };
        assert!(matches!(encode(&Body::Form(vec![("a".to_owned(), prefix)])), Err(HttpError::Content(_))));
    }
}
