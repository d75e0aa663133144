//! Notices for the user about texts that are missing from the prompt or were changed for it.

use std::fmt;

/// A text that did not enter the prompt as its author wrote it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Notice {
    /// The whole text is missing.
    #[error("{source_name} cannot be read ({reason}) and is left out")]
    Unreadable {
        /// The file or folder.
        source_name: String,
        /// The system's error message.
        reason: String,
    },
    /// The path is a folder, a pipe or a device instead of a file.
    #[error("{source_name} is not a regular file and is left out")]
    NotAFile {
        /// The file.
        source_name: String,
    },
    /// A folder has the name of a context file.
    #[error(
        "{source_name} is a folder and is left out, because a context file is a text: give the folder another name, and write a file of \
         this name that imports its texts with lines such as `@docs/rules.md`"
    )]
    Folder {
        /// The folder.
        source_name: String,
    },
    /// A link leads to a file that may hold secrets, and what is in the prompt is sent to a provider.
    #[error(
        "{source_name} leads to {leads_to}, which may hold secrets by its name, and is left out: it would be sent with each request"
    )]
    Secret {
        /// The file.
        source_name: String,
        /// Where it leads, within its folder.
        leads_to: String,
    },
    /// Context files are not those of the last session here.
    #[error(
        "{} changed since the last new session in this folder: Hermes follows what is there now as yours; look at it if the change was \
         not yours", .names.join(", ")
    )]
    Changed {
        /// The files.
        names: Vec<String>,
    },
    /// A link leads outside its folder.
    #[error("{source_name} is a link that leads out of {root}, and is left out; copy the file there instead")]
    Outside {
        /// The file.
        source_name: String,
        /// The folder that the link may not leave.
        root: String,
    },
    /// The file is binary or in another encoding.
    #[error("{source_name} is not UTF-8 text without NUL bytes and is left out; save it as UTF-8 text")]
    NotText {
        /// The file.
        source_name: String,
    },
    /// The file is larger than the read limit.
    #[error("{source_name} has more than {limit} bytes and is left out; make it shorter")]
    TooLarge {
        /// The file.
        source_name: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// The file's name itself looks like an instruction.
    #[error("a context file is left out, since its name looks like an injected instruction: {source_name}")]
    Name {
        /// The file.
        source_name: String,
    },
    /// The file appeared or changed while programs of others ran.
    #[error(
        "{source_name} appeared or changed while programs of servers ran, and one of them may have written it: it is left out in this \
         session; look at it"
    )]
    Appeared {
        /// The file.
        source_name: String,
    },
    /// The folder has more files than are read.
    #[error("{source_name} has more than {limit} files of rules; those behind them are left out")]
    TooMany {
        /// The folder.
        source_name: String,
        /// Number of files read.
        limit: usize,
    },
    /// An import that is not followed.
    #[error("{source_name} imports @{path}, which {why} and is left out")]
    Import {
        /// The file that imports it.
        source_name: String,
        /// The path as it is written.
        path: String,
        /// Why it is left out.
        why: &'static str,
    },
    /// The nearer files leave no room for one further up.
    #[error(
        "{source_name} is left out, because the files of the folders below fill the room for context files; make them shorter, or set `context_file_max_chars`"
    )]
    NoRoom {
        /// The file.
        source_name: String,
    },
    /// Files that other agents would have read.
    #[error("{}", not_read(.names, .used, .settings))]
    NotRead {
        /// Files and folders with instructions.
        names: Vec<String>,
        /// The context files that are used.
        used: Vec<String>,
        /// Files and folders with settings, each with what to do about it.
        settings: Vec<(String, &'static str)>,
    },
    /// SOUL.md could not be written. The built-in identity is used, and the next start tries again.
    #[error("{source_name} cannot be created ({reason}); the built-in identity is used")]
    NotCreated {
        /// The file.
        source_name: String,
        /// The system's error message.
        reason: String,
    },
    /// Passages were blocked because they look like an attack.
    #[error("{source_name}, {}, {}", listed(.passages), left_out(.passages))]
    Blocked {
        /// The file or the memory provider.
        source_name: String,
        /// The passages in order; at least one.
        passages: Vec<Passage>,
    },
    /// Passages from outside, which the user cannot change, were kept from the model because they look like an attack.
    #[error("{source_name}, {}: kept from the model, because it looks like injected instructions", listed(.passages))]
    Withheld {
        /// The result of a tool.
        source_name: String,
        /// The passages in order; at least one.
        passages: Vec<Passage>,
    },
    /// A whole text is missing because it looks like an attack.
    #[error("{source_name} was left out because it looks like injected instructions ({}); reword it if you want it in the prompt", .patterns.join(", "))]
    Suspicious {
        /// The text and its plugin.
        source_name: String,
        /// Ids of the matching patterns, sorted.
        patterns: Vec<String>,
    },
    /// The text was too long, so its middle was cut.
    #[error("{source_name} is cut: the model is shown {kept} of {total} characters; {remedy}")]
    Truncated {
        /// The file.
        source_name: String,
        /// Characters in the prompt.
        kept: usize,
        /// Characters of the whole text.
        total: usize,
        /// How to include more of it.
        remedy: &'static str,
    },
}

/// A blocked passage. A marker line replaces it in the prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// Its first line, counted from 1.
    pub first_line: usize,
    /// Its last line.
    pub last_line: usize,
    /// Ids of the matching patterns, sorted.
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

fn not_read(names: &[String], used: &[String], settings: &[(String, &str)]) -> String {
    let mut parts = Vec::new();
    if let Some(first) = names.first() {
        let (verb, them) = if names.len() == 1 { ("is", "it") } else { ("are", "each of them") };
        let used = match used {
            [] => "no context file is used".to_owned(),
            used => format!("the instructions are from {}", used.join(" and ")),
        };
        let listed = names.join(", ");
        parts.push(format!("{listed} {verb} not read: {used}; a line such as `@{first}` in AGENTS.md imports {them}"));
    }
    let settings: Vec<String> = settings.iter().map(|(name, hint)| format!("{name} has no effect: {hint}")).collect();
    parts.extend((!settings.is_empty()).then(|| settings.join("; ")));
    parts.join("; ")
}

fn left_out(passages: &[Passage]) -> &'static str {
    match passages {
        [_] => "was left out because it looks like injected instructions; reword it if you want it in the prompt",
        _ => "were left out because they look like injected instructions; reword them if you want them in the prompt",
    }
}

fn listed(passages: &[Passage]) -> String {
    // A hostile file can have thousands; list only a few for the reader.
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
    fn a_notice_about_many_passages_stays_readable() {
        let passage = |line| Passage { first_line: line, last_line: line, patterns: vec!["c2_explicit".into()] };
        let notice = Notice::Blocked { source_name: "AGENTS.md".into(), passages: (1..=2_000).map(passage).collect() };
        let text = notice.to_string();
        assert!(text.starts_with("AGENTS.md, line 1 (c2_explicit), line 2"), "{text}");
        assert!(text.contains("line 5 (c2_explicit), 1995 more, were left out because") && text.len() < 300, "{text}");
    }
}
