//! The code and the remedy of each unusable input of the lab.

use hermes_diagnostic::{Diagnose, Fix, Parts};

use crate::LabError;

hermes_diagnostic::codes! {
    /// The codes of the lab.
    pub mod codes {
        DIALOGUES = "lab.dialogues", Category::General, "a file contains no dialogues with questions";
        PRICES = "lab.prices", Category::General, "a file of prices cannot be used";
        TERMS = "lab.terms", Category::Usage, "a setting of the lab is out of range";
        COLUMN = "lab.column", Category::Usage, "two columns have the same name";
        COMMAND = "lab.command", Category::Usage, "the command of a column cannot be understood";
    }
}

impl Diagnose for LabError {
    fn parts(&self) -> Parts {
        let (code, fix) = match self {
            Self::File(error) => return error.parts(),
            Self::Dialogues { .. } => (
                codes::DIALOGUES,
                Fix::words("give a file of LoCoMo or LongMemEval").or("a folder with a chat of BEAM and its questions"),
            ),
            Self::Prices { .. } => {
                (codes::PRICES, Fix::words("give input, cache_write, cache_read and output as numbers"))
            }
            Self::Terms { least, .. } => (codes::TERMS, Fix::words(format!("choose at least {least}"))),
            Self::SameColumn { name } => (
                codes::COLUMN,
                Fix::words(format!("name `{name}` only once")).or("give the external command another name"),
            ),
            Self::Command { .. } => (codes::COMMAND, Fix::words("close its quotes, and name a program")),
        };
        (code, "the lab cannot start".into(), fix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_an_error_with_cause_and_remedy() {
        let path = || "recording.jsonl".into();
        let errors = [
            LabError::Dialogues { path: path(), why: "it is not JSON".into() },
            LabError::Prices { path: path(), why: "`input` is 0".into() },
            LabError::Terms { window: 1, fixed: 15_000, least: 30_000 },
            LabError::SameColumn { name: "none".into() },
            LabError::Command { name: "peer".into(), command: "'".into() },
        ];
        let diagnostics: Vec<_> = errors.iter().map(Diagnose::diagnose).collect();
        assert_eq!(hermes_diagnostic::gaps(codes::ALL, &diagnostics), Vec::<String>::new());
    }
}
