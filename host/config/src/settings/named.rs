//! Settings that are one of a few names.

use std::fmt;

use serde::de::{Deserializer, Error, Unexpected, Visitor};

/// Implements `Deserialize` and `JsonSchema` for an enum with a constant `NAMES`, the name of each of its values.
macro_rules! named {
    ($type:ident) => {
        impl<'de> ::serde::Deserialize<'de> for $type {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::settings::named::read(&Self::NAMES, deserializer)
            }
        }

        impl ::schemars::JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut ::schemars::SchemaGenerator) -> ::schemars::Schema {
                ::schemars::json_schema!({ "type": "string", "enum": Self::NAMES.map(|(name, _)| name) })
            }
        }
    };
}

pub(super) use named;

/// Reads one of these names.
pub(super) fn read<'de, T: Copy, D: Deserializer<'de>>(names: &[(&str, T)], deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_any(Named(names))
}

struct Named<'a, T>(&'a [(&'a str, T)]);

impl<T: Copy> Visitor<'_> for Named<'_, T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one of the names")
    }

    /// `off` without quotes is false in YAML.
    fn visit_bool<E: Error>(self, given: bool) -> Result<T, E> {
        let off = self.0.iter().find(|(name, _)| *name == "off" && !given);
        off.map(|(_, value)| *value).ok_or_else(|| E::invalid_value(Unexpected::Bool(given), &self))
    }

    fn visit_str<E: Error>(self, given: &str) -> Result<T, E> {
        let found = self.0.iter().find(|(name, _)| *name == given.trim());
        found.map(|(_, value)| *value).ok_or_else(|| E::invalid_value(Unexpected::Str(given), &self))
    }
}
