//! Reads files of fixtures: YAML, hence also JSON, with the position of every error. The size to which a text may expand is
//! limited before it is parsed.

use std::fmt;
use std::fs;
use std::marker::PhantomData;
use std::path::Path;
use std::time::Duration;

use hermes_plugin_host::yaml::Limits;
use serde::de::value::{MapAccessDeserializer, StrDeserializer, U64Deserializer};
use serde::de::{self, Deserialize, DeserializeOwned, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, Spanned, UserMessageFormatter};

use crate::error::ConformanceError;

/// Most bytes of a file of fixtures. A large body belongs into a file of its own.
const MOST_BYTES: u64 = 4 << 20;
/// The longest delay.
const LONGEST: Duration = Duration::from_secs(600);

/// What is wrong with fixtures, and where. The line is 0 without a position.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Flaw {
    pub(super) line: u64,
    pub(super) column: u64,
    pub(super) why: String,
}

impl Flaw {
    pub(super) fn at<T>(spanned: &Spanned<T>, why: impl Into<String>) -> Self {
        Self::of(spanned.referenced, why)
    }

    fn of(location: Location, why: impl Into<String>) -> Self {
        Self { line: location.line(), column: location.column(), why: why.into() }
    }

    pub(super) fn in_file(self, path: &Path) -> ConformanceError {
        let Self { line, column, why } = self;
        let why = if line == 0 { why } else { format!("line {line}, column {column}: {why}") };
        ConformanceError::Fixtures { path: path.to_owned(), why }
    }
}

/// The text of a file.
pub(super) fn text_of(path: &Path) -> Result<String, ConformanceError> {
    let error = |source| ConformanceError::Read { path: path.to_owned(), source };
    let size = fs::metadata(path).map_err(error)?.len();
    if size > MOST_BYTES {
        let why =
            format!("it is larger than {} MiB; put large bodies into files of their own (`file:`)", MOST_BYTES >> 20);
        return Err(ConformanceError::Fixtures { path: path.to_owned(), why });
    }
    let bytes = fs::read(path).map_err(error)?;
    String::from_utf8(bytes).map_err(|_| {
        let why = "it is not UTF-8 text; give binary bodies as `base64` or `file`".to_owned();
        ConformanceError::Fixtures { path: path.to_owned(), why }
    })
}

/// The rules of a text, each with its position.
pub(super) fn rules<T: DeserializeOwned>(text: &str) -> Result<Vec<Spanned<T>>, Flaw> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let rules: Option<Vec<Spanned<T>>> =
        serde_saphyr::from_str_with_options(text, options()).map_err(|error| syntax(&error))?;
    match rules {
        Some(rules) if !rules.is_empty() => Ok(rules),
        _ => Err(Flaw { line: 0, column: 0, why: "it contains no rules".to_owned() }),
    }
}

fn options() -> serde_saphyr::Options {
    Limits { nodes: 250_000, depth: 64, aliases: 1_024, bytes: MOST_BYTES as usize }.options()
}

fn syntax(error: &serde_saphyr::Error) -> Flaw {
    let text = error.without_snippet().render_with_formatter(&UserMessageFormatter);
    // The position goes to the front of the message.
    let text = text.split(" at line ").next().unwrap_or(&text);
    let why = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match error.location() {
        Some(location) => Flaw::of(location, why),
        None => Flaw { line: 0, column: 0, why },
    }
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

/// One value or a list of them.
#[derive(Debug)]
pub(super) struct Many<T>(pub(super) Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Many<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrList<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for OneOrList<T> {
            type Value = Many<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an answer, or a list of answers")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Many<T>, A::Error> {
                let mut all = Vec::new();
                while let Some(item) = items.next_element()? {
                    all.push(item);
                }
                Ok(Many(all))
            }

            fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<Many<T>, A::Error> {
                Ok(Many(vec![T::deserialize(MapAccessDeserializer::new(entries))?]))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Many<T>, E> {
                Ok(Many(vec![T::deserialize(StrDeserializer::new(text))?]))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Many<T>, E> {
                Ok(Many(vec![T::deserialize(U64Deserializer::new(number))?]))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Many<T>, E> {
                let number = u64::try_from(number)
                    .map_err(|_| de::Error::invalid_value(de::Unexpected::Signed(number), &self))?;
                self.visit_u64(number)
            }
        }

        deserializer.deserialize_any(OneOrList(PhantomData))
    }
}

/// A text that may be written as a number or a flag, such as the value of a header.
#[derive(Debug, Clone)]
pub(super) struct Word(pub(super) String);

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Plain;

        impl Visitor<'_> for Plain {
            type Value = Word;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Word, E> {
                Ok(Word(text.to_owned()))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Word, E> {
                Ok(Word(number.to_string()))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Word, E> {
                Ok(Word(number.to_string()))
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Word, E> {
                Ok(Word(number.to_string()))
            }

            fn visit_bool<E: de::Error>(self, flag: bool) -> Result<Word, E> {
                Ok(Word(flag.to_string()))
            }
        }

        deserializer.deserialize_any(Plain)
    }
}

/// A time such as `300ms` or `2s`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Delay(pub(super) Duration);

impl Delay {
    fn parse(text: &str) -> Option<Self> {
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let number: u64 = text[..digits].parse().ok()?;
        let time = match &text[digits..] {
            "ms" => Duration::from_millis(number),
            "s" => Duration::from_secs(number),
            _ => return None,
        };
        (time <= LONGEST).then_some(Self(time))
    }
}

impl<'de> Deserialize<'de> for Delay {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Word(text) = Word::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            let text = text.chars().take(40).collect::<String>();
            de::Error::custom(format!("`{}` is not a time such as `300ms` or `2s`, up to 600s", text.escape_debug()))
        })
    }
}
