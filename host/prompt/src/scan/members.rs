//! JSON objects with a member twice. Parsers disagree about the value, so a scan of one of them proves nothing.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Whether an object anywhere in the JSON text has a member twice.
pub fn has_repeated_member(json: &str) -> bool {
    serde_json::from_str::<Unique>(json).is_err_and(|error| error.is_data())
}

/// A JSON value whose objects have each member once.
struct Unique;

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Members).map(|()| Self)
    }
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut names = HashSet::new();
        while let Some(name) = map.next_key::<String>()? {
            if !names.insert(name) {
                return Err(A::Error::custom("a member appears twice"));
            }
            map.next_value::<Unique>()?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element::<Unique>()?.is_some() {}
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod attack {
    use super::*;

    #[test]
    fn a_member_twice_is_found_at_any_depth_and_behind_escapes() {
        for json in [r#"{"a":1,"a":1}"#, r#"{"a":1,"b":{},"\u0061":2}"#, r#"[null,{"x":[{"a":1.5,"b":true,"a":"s"}]}]"#]
        {
            assert!(has_repeated_member(json), "{json}");
        }
        for json in [r#"{"a":{"a":1},"b":[{"a":1},{"a":-2.5e9}]}"#, "[]", "no JSON", "{", ""] {
            assert!(!has_repeated_member(json), "{json}");
        }
    }
}
