//! Stable names of situations.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

/// The kind of a failure, as a script tells failures apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Category {
    /// The reader of the output has gone. Nothing is wrong, and nobody reads a report.
    ReaderGone,
    /// A failure that no other category describes, such as a missing session.
    General,
    /// The request itself makes no sense, such as an unknown option.
    Usage,
    /// `config.yaml`, `.env` or the home folder.
    Configuration,
    /// The model's endpoint is down, refuses, or sends an invalid answer.
    Model,
    /// A plugin is missing or cannot be used.
    Plugin,
    /// The database of conversations.
    Store,
    /// Another process is working on the session.
    InUse,
    /// The turn used up its budget before there was an answer.
    Budget,
    /// The model's output limit ended the reply before it was whole.
    Cut,
    /// The user stopped it.
    Interrupted,
}

/// The stable name of a situation, such as `store.in-use`. The macro [`codes!`](crate::codes) makes all of them, so that a
/// crate's list of codes is always complete.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code {
    name: &'static str,
    category: Category,
    meaning: &'static str,
}

impl Code {
    #[doc(hidden)]
    pub const fn from_macro(name: &'static str, category: Category, meaning: &'static str) -> Self {
        Self { name, category, meaning }
    }

    /// `store.in-use`.
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// The category, from which a front end takes its exit code.
    pub const fn category(self) -> Category {
        self.category
    }

    /// The situation in a few words, for the list of codes.
    pub const fn meaning(self) -> &'static str {
        self.meaning
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name)
    }
}

/// Declares a module of codes and `ALL`, the list of them. See the example of the [crate](crate).
#[macro_export]
macro_rules! codes {
    ($(#[$meta:meta])* $visible:vis mod $module:ident {
        $($constant:ident = $name:literal, $category:expr, $meaning:literal;)+
    }) => {
        $(#[$meta])*
        // The caller chooses how visible the module is; its constants are as visible as that.
        #[allow(unreachable_pub)]
        $visible mod $module {
            #[allow(unused_imports)]
            use $crate::{Category, Code};
            $(
                #[doc = $meaning]
                pub const $constant: Code = Code::from_macro($name, $category, $meaning);
            )+
            /// All codes of this module.
            pub const ALL: &[Code] = &[$($constant),+];
        }
    };
}
