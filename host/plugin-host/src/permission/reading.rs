//! Reads and writes permissions as YAML and JSON. The parser checks every value, so that errors have a position.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use super::{Address, Llm};

/// The most entries of a list. Nobody reads a longer list before consenting to it.
const MOST: usize = 64;
/// The most bytes of a name.
const NAME: usize = 64;

/// A value that is written as text.
pub(super) mod text {
    use super::*;

    pub(crate) fn serialize<T: fmt::Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(crate) fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
    where
        T: FromStr<Err: fmt::Display>,
        D: Deserializer<'de>,
    {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// The audience of a secret: only encrypted connections, or the user's own network. An address of the configuration is
/// checked when it is known.
pub(super) fn audience<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Address, D::Error> {
    let address = Address::deserialize(deserializer)?;
    if address.site().is_some_and(hermes_capabilities::http::Site::is_every_host) {
        return Err(de::Error::custom(format!(
            "a secret must not be sent to every host ({address}): name the host that it is for"
        )));
    }
    if address.is_protected() || address.template().is_some() {
        return Ok(address);
    }
    Err(de::Error::custom(format!(
        "a secret must not be sent unencrypted to {address}: use https, or the IP address of a host in your own network"
    )))
}

/// `true`, `false`, or `{tasks: [...], budget: N}`.
pub(super) mod llm {
    use super::*;

    #[derive(serde::Serialize, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Section {
        #[serde(default, deserialize_with = "tasks", skip_serializing_if = "Option::is_none")]
        tasks: Option<Vec<String>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        budget: Option<u64>,
    }

    fn tasks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
        let tasks: Vec<String> = few(deserializer)?;
        if tasks.is_empty() {
            return Err(de::Error::custom("`tasks` is empty: leave it out for all tasks"));
        }
        match tasks.iter().find(|task| !is_plain(task)) {
            Some(task) => {
                Err(de::Error::custom(format!("`{}` is not a task such as compression", task.escape_debug())))
            }
            None => Ok(Some(tasks)),
        }
    }

    pub(crate) fn serialize<S: Serializer>(llm: &Option<Llm>, serializer: S) -> Result<S::Ok, S::Error> {
        match llm {
            Some(Llm { tasks: None, budget: None }) => serializer.serialize_bool(true),
            Some(Llm { tasks, budget }) => Section { tasks: tasks.clone(), budget: *budget }.serialize(serializer),
            None => serializer.serialize_bool(false),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Llm>, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = Option<Llm>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false, or a section with `tasks` and `budget`")
            }

            fn visit_bool<E>(self, flag: bool) -> Result<Option<Llm>, E> {
                Ok(flag.then(Llm::default))
            }

            fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<Option<Llm>, A::Error> {
                let section = Section::deserialize(de::value::MapAccessDeserializer::new(entries))?;
                Ok(Some(Llm { tasks: section.tasks, budget: section.budget }))
            }
        }

        deserializer.deserialize_any(Either)
    }
}

/// A list that is short enough to read.
pub(super) fn few<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    struct Few<T>(std::marker::PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Few<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<T>, A::Error> {
            let mut list = Vec::new();
            while list.len() < MOST {
                match items.next_element()? {
                    Some(item) => list.push(item),
                    None => return Ok(list),
                }
            }
            match items.next_element::<IgnoredAny>()? {
                None => Ok(list),
                Some(_) => Err(de::Error::custom(format!("the list has more than {MOST} entries: shorten it"))),
            }
        }
    }

    deserializer.deserialize_seq(Few(std::marker::PhantomData))
}

pub(super) fn documents<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let names: Vec<String> = few(deserializer)?;
    let fits = |name: &str| is_of(name, ".-_") && !name.starts_with('.');
    match names.iter().find(|name| !fits(name)) {
        Some(name) => Err(de::Error::custom(format!(
            "`{}` is not the name of a document: use up to 64 letters, digits, `.`, `_` and `-`, as in NOTES.md",
            name.escape_debug()
        ))),
        None => Ok(names),
    }
}

pub(super) fn root<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let root = String::deserialize(deserializer)?;
    if super::right::ROOTS.contains(&root.as_str()) {
        return Ok(root);
    }
    let root = root.escape_debug();
    Err(de::Error::custom(format!(
        "`{root}` is not a folder that a plugin can request: use `workspace`, `skills` or `results`"
    )))
}

pub(super) fn get() -> Vec<String> {
    vec!["GET".to_owned()]
}

pub(super) fn methods<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let methods: Vec<String> = few(deserializer)?;
    if methods.is_empty() {
        return Err(de::Error::custom("`methods` is empty: leave it out for GET"));
    }
    match methods.iter().find(|method| !hermes_capabilities::http::is_method(method)) {
        Some(method) => Err(de::Error::custom(format!(
            "`{}` is not an allowed method: use one such as GET or POST, in capitals, but not CONNECT or TRACE",
            method.escape_debug()
        ))),
        None => Ok(methods),
    }
}

pub(super) fn secret_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let name = String::deserialize(deserializer)?;
    if is_plain(&name) {
        return Ok(name);
    }
    let name = name.escape_debug();
    Err(de::Error::custom(format!("`{name}` is not the name of a secret: use up to 64 letters, digits, `_` and `-`")))
}

fn is_plain(name: &str) -> bool {
    is_of(name, "-_")
}

fn is_of(name: &str, others: &str) -> bool {
    (1..=NAME).contains(&name.len()) && name.chars().all(|c| c.is_ascii_alphanumeric() || others.contains(c))
}

macro_rules! checked_text {
    ($(#[$doc:meta])* $name:ident, $fits:expr, $refusal:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// The text, if it has the form.
            pub fn new(text: &str) -> Option<Self> {
                let fits: fn(&str) -> bool = $fits;
                fits(text).then(|| Self(text.to_owned()))
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::new(&text).ok_or_else(|| de::Error::custom(format!($refusal, text.escape_debug())))
            }
        }
    };
}

checked_text!(
    /// The name of an environment variable.
    EnvironmentName,
    |name| is_of(name, "_") && !name.starts_with(|first: char| first.is_ascii_digit()),
    "`{}` is not the name of a variable: use up to 64 letters, digits and `_`, as in EXAMPLE_API_KEY"
);

checked_text!(
    /// A program: a name that is looked up in `PATH`, or an absolute path.
    Program,
    |program| {
        // Users can consent only to a name that is shown exactly as it is.
        let plain = program.chars().all(|c| c.is_ascii_graphic() && !"`\"'$*?|&;<>(){}[]!~#%^\\=,".contains(c));
        let name = !program.contains('/') && !program.starts_with(['.', '-']);
        let path = program.starts_with('/') && program.split('/').skip(1).all(|part| !["", ".", ".."].contains(&part));
        plain && (1..=256).contains(&program.len()) && (name || path)
    },
    "`{}` is neither a program such as git nor an absolute path such as /usr/bin/git"
);
