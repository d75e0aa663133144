//! Errors as their readers need them: what failed, why, and what to do, under a stable code.
//!
//! Each crate keeps its own error enum and implements [`Diagnose`] for it. A [`Fix`] is words about the situation or a
//! typed [`Action`]; only a front end knows which command, button or request carries an action out. This crate depends on
//! no other crate of the project.
//!
//! ```
//! use hermes_diagnostic::{Action, Category, Diagnostic, codes};
//!
//! codes! {
//!     /// The codes of a shop.
//!     pub mod shop {
//!         CLOSED = "shop.closed", Category::General, "the shop is closed";
//!     }
//! }
//!
//! let diagnostic = Diagnostic::new(shop::CLOSED, "nothing was sold", "the shop is closed", "come back tomorrow");
//! assert_eq!(diagnostic.to_string(), "nothing was sold: the shop is closed; come back tomorrow");
//! ```

#![forbid(unsafe_code)]

mod action;
mod code;
mod figures;
mod fix;
mod gaps;
pub mod general;
mod json;
mod notice;

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;

pub use action::Action;
pub use code::{Category, Code};
pub use figures::{counted, grouped};
pub use fix::{Fix, Step};
pub use gaps::gaps;
pub use json::json_fault;
pub use notice::Notice;

/// A report of a failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// Stable across versions; `docs/use/errors.md` lists all.
    pub code: Code,
    /// What failed, as a clause: `the session cannot be opened`.
    pub what: String,
    /// Why it failed.
    pub why: String,
    /// What to do about it.
    pub fix: Fix,
}

impl Diagnostic {
    /// Builds a report from its parts.
    pub fn new(code: Code, what: impl Into<String>, why: impl Into<String>, fix: impl Into<Fix>) -> Self {
        Self { code, what: what.into(), why: why.into(), fix: fix.into() }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.why)?;
        if self.fix.is_empty() { Ok(()) } else { write!(f, "; {}", self.fix) }
    }
}

impl std::error::Error for Diagnostic {}

/// What an error knows beside its cause: its code, what failed (as a clause), and what to do.
pub type Parts = (Code, Cow<'static, str>, Fix);

/// An error that knows its code and its remedy. Its `Display` gives the cause without the remedy.
pub trait Diagnose: fmt::Display {
    /// The code, what failed as a clause, and what to do.
    fn parts(&self) -> Parts;

    /// All of it as a value.
    fn diagnose(&self) -> Diagnostic {
        let (code, what, fix) = self.parts();
        Diagnostic { code, what: what.into_owned(), why: self.to_string(), fix }
    }

    /// Cause and remedy in one line, for a list of notices.
    fn sentence(&self) -> String {
        let (_, _, fix) = self.parts();
        if fix.is_empty() { self.to_string() } else { format!("{self}; {fix}") }
    }
}

impl<E: Diagnose> From<E> for Diagnostic {
    fn from(error: E) -> Self {
        error.diagnose()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    codes! {
        /// For the tests below.
        mod oven {
            HOT = "oven.hot", Category::General, "the oven is too hot";
            COLD = "oven.cold", Category::Usage, "the oven is too cold";
        }
    }

    struct Hot;

    impl fmt::Display for Hot {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("the oven is at 900 degrees; it glows")
        }
    }

    impl Diagnose for Hot {
        fn parts(&self) -> Parts {
            let fix = Fix::words("wait").or(Action::DisablePlugin { plugin: "oven".to_owned() });
            (oven::HOT, "the bread burned".into(), fix)
        }
    }

    #[test]
    fn a_semicolon_in_the_cause_stays_in_the_cause() {
        let diagnostic = Diagnostic::from(Hot);
        assert_eq!(diagnostic.why, "the oven is at 900 degrees; it glows");
        assert_eq!(diagnostic.fix.to_string(), "wait, or disable the plugin `oven`");
    }

    #[test]
    fn a_report_serialises_with_its_code_and_typed_actions() {
        let json = serde_json::to_value(Hot.diagnose()).unwrap();
        assert_eq!(json["code"], "oven.hot");
        assert_eq!(json["fix"][0], serde_json::json!({"words": "wait"}));
        assert_eq!(json["fix"][1], serde_json::json!({"action": {"kind": "disable-plugin", "plugin": "oven"}}));
    }

    #[test]
    fn a_module_of_codes_lists_all_of_them() {
        assert_eq!(oven::ALL, [oven::HOT, oven::COLD]);
        assert_eq!((oven::COLD.name(), oven::COLD.category()), ("oven.cold", Category::Usage));
        assert_eq!(oven::COLD.meaning(), "the oven is too cold");
    }
}
