//! What the user is told about texts that did not enter the prompt as they stand on the disk.

use std::fmt;

/// A text, or a part of one, that is not in the prompt as its author wrote it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Notice {
    /// Nothing of it is in the prompt.
    #[error("{source_name} cannot be read ({reason}) and is left out")]
    Unreadable {
        /// The file or folder.
        source_name: String,
        /// As the system says it.
        reason: String,
    },
    /// A folder, a pipe or a device in the place of a file.
    #[error("{source_name} is no regular file and is left out")]
    NotAFile {
        /// The file.
        source_name: String,
    },
    /// A link to somewhere else.
    #[error("{source_name} is a link that leads out of {root}, and is left out; copy the file there instead")]
    Outside {
        /// The file.
        source_name: String,
        /// The folder that it may not leave.
        root: String,
    },
    /// Binary, or in another encoding.
    #[error("{source_name} is no UTF-8 text without NUL bytes and is left out; save it as UTF-8 text")]
    NotText {
        /// The file.
        source_name: String,
    },
    /// More than is ever read of a file.
    #[error("{source_name} has more than {limit} bytes and is left out; make it shorter")]
    TooLarge {
        /// The file.
        source_name: String,
        /// In bytes.
        limit: u64,
    },
    /// A name that would itself be an instruction.
    #[error("a context file is left out, since its name looks like an injected instruction: {source_name}")]
    Name {
        /// The file.
        source_name: String,
    },
    /// More files than are read of a folder.
    #[error("{source_name} has more than {limit} files of rules; those behind them are left out")]
    TooMany {
        /// The folder.
        source_name: String,
        /// How many are read.
        limit: usize,
    },
    /// The built-in identity is used, and will be tried to be written again.
    #[error("{source_name} cannot be created ({reason}); the built-in identity is used")]
    NotCreated {
        /// The file.
        source_name: String,
        /// As the system says it.
        reason: String,
    },
    /// Passages that look like an attack.
    #[error("{source_name}: {} left out as possible injected instructions: {}; reword what is meant well", count(.passages), listed(.passages))]
    Blocked {
        /// The file or the memory provider.
        source_name: String,
        /// In their order, at least one.
        passages: Vec<Passage>,
    },
    /// The middle is missing.
    #[error("{source_name} is cut: the model is shown {kept} of {total} characters; {remedy}")]
    Truncated {
        /// The file.
        source_name: String,
        /// Characters in the prompt.
        kept: usize,
        /// Characters there are.
        total: usize,
        /// How more of it can be had.
        remedy: &'static str,
    },
}

/// A passage that was replaced by a line that says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// Its first line, counted from 1.
    pub first_line: usize,
    /// Its last line.
    pub last_line: usize,
    /// The ids of the patterns that it matches, sorted.
    pub patterns: Vec<String>,
}

impl fmt::Display for Passage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first_line == self.last_line {
            write!(f, "line {}", self.first_line)?;
        } else {
            write!(f, "lines {}-{}", self.first_line, self.last_line)?;
        }
        write!(f, " ({})", self.patterns.join(", "))
    }
}

fn count(passages: &[Passage]) -> String {
    match passages.len() {
        1 => "a passage is".to_owned(),
        more => format!("{more} passages are"),
    }
}

fn listed(passages: &[Passage]) -> String {
    // A hostile file may have thousands, and a person reads this.
    const MOST: usize = 5;
    let mut names: Vec<String> = passages.iter().take(MOST).map(Passage::to_string).collect();
    if passages.len() > MOST {
        names.push(format!("{} more", passages.len() - MOST));
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_of_many_passages_stays_readable() {
        let passage = |line| Passage { first_line: line, last_line: line, patterns: vec!["c2_explicit".into()] };
        let notice = Notice::Blocked { source_name: "AGENTS.md".into(), passages: (1..=2_000).map(passage).collect() };
        let text = notice.to_string();
        assert!(text.starts_with("AGENTS.md: 2000 passages are left out as possible injected instructions"), "{text}");
        assert!(text.contains("line 5 (c2_explicit), 1995 more;") && text.len() < 300, "{text}");
    }
}
