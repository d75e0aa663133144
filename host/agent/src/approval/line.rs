//! The commands in a line of the shell, found as a shell finds them.
//!
//! The reader knows quotes, operators, redirections, here-documents and every place where a shell starts another command. It runs and
//! expands nothing. A word keeps what is unknown about it: a file pattern or an expansion may become any text. What is plain enough
//! to be judged exactly is narrow ([`Line::is_plain`]), so that a construct which this reader understands in another way than the
//! user's shell is never taken for a plain one. For the rest it finds too many commands rather than too few.

#[cfg(test)]
mod attack;
mod reader;
#[cfg(test)]
mod tests;

use super::code;

/// The commands in a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// Every simple command, at any depth.
    pub(super) commands: Vec<Vec<Word>>,
    /// Whether it is only simple commands of literal words and file patterns, joined by `&&`, `||`, `;`, `|` and line breaks, perhaps in
    /// subshells. Output may go to `/dev/null` or another output.
    pub(super) is_plain: bool,
}

/// A line that cannot be read, such as one with an open quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unreadable;

/// A word after the removal of quotes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Word(Vec<Atom>);

/// A part of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Atom {
    Char(char),
    /// One character of a file name.
    One,
    /// Any characters of a file name.
    Many,
    /// An expansion: any text, perhaps several words.
    Any,
}

/// Programs and builtins that run a command in their arguments, besides shells and interpreters.
const RUN_OTHERS: &[&str] = &[
    ".",
    "builtin",
    "chroot",
    "chrt",
    "command",
    "eval",
    "exec",
    "fd",
    "find",
    "flock",
    "ionice",
    "make",
    "nice",
    "npx",
    "parallel",
    "runuser",
    "script",
    "setarch",
    "source",
    "stdbuf",
    "strace",
    "su",
    "systemd-run",
    "taskset",
    "time",
    "trap",
    "unshare",
    "watch",
];
/// Words of git after which it runs a command of its arguments.
const GIT_RUNS: &[&str] = &["foreach", "run", "--exec", "-x", "--tree-filter", "--index-filter", "--msg-filter"];
/// Shells: what they read may be anything that another command writes.
const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "ash", "fish"];

impl Line {
    /// Reads a line, or a script of several lines.
    pub(super) fn read(text: &str) -> Result<Self, Unreadable> {
        let mut line = reader::read(text)?;
        line.is_plain &= !text.chars().any(|c| c.is_control() && c != '\n' && c != '\t');
        line.is_plain &= !line.commands.is_empty();
        Ok(line)
    }

    /// The line of a program with these arguments.
    pub(super) fn of_program<'a>(words: impl IntoIterator<Item = &'a str>) -> Self {
        Self { commands: vec![words.into_iter().map(Word::literal).collect()], is_plain: true }
    }

    /// Whether a test is true of a command that may run, also of one that others start with their arguments: `sudo git push`,
    /// `sh -c "git push"`.
    pub(super) fn any_command(&self, mut test: impl FnMut(&[Word]) -> bool) -> Result<bool, Unreadable> {
        /// A line that hides a command deeper than this is not read.
        const DEEPEST: usize = 6;
        /// The most arguments of a program that runs one of them.
        const MOST_ARGUMENTS: usize = 1_000;
        let mut is_any = false;
        let mut waiting = vec![(self.commands.clone(), 0)];
        while let Some((commands, depth)) = waiting.pop() {
            let has_shell = commands.iter().any(|words| words.first().is_some_and(|word| word.is_named(SHELLS)));
            for words in &commands {
                is_any |= test(words);
                let starts_others = starts_others(words);
                if starts_others || has_shell {
                    for word in words.iter().skip(1).filter(|word| word.may_be_a_line()) {
                        if depth == DEEPEST {
                            return Err(Unreadable);
                        }
                        waiting.push((Self::read(&word.written())?.commands, depth + 1));
                    }
                }
                if starts_others {
                    if words.len() > MOST_ARGUMENTS {
                        return Err(Unreadable);
                    }
                    is_any |= (1..words.len()).any(|at| test(&words[at..]));
                }
            }
        }
        Ok(is_any)
    }
}

/// Whether a command runs others that its arguments name.
fn starts_others(words: &[Word]) -> bool {
    let Some(name) = words.first().and_then(Word::exact) else { return true };
    let name = name.rsplit('/').next().unwrap_or_default();
    let among_words =
        |known: &[&str]| words.iter().any(|word| word.exact().is_some_and(|w| known.contains(&w.as_str())));
    code::is_known(name)
        || RUN_OTHERS.iter().any(|known| known.eq_ignore_ascii_case(name))
        || (name.eq_ignore_ascii_case("git") && among_words(GIT_RUNS))
}

impl Word {
    pub(super) fn literal(text: &str) -> Self {
        Self(text.chars().map(Atom::Char).collect())
    }

    /// The text, unless a file pattern or an expansion may change it.
    pub(super) fn exact(&self) -> Option<String> {
        self.0.iter().map(|atom| if let Atom::Char(c) = atom { Some(*c) } else { None }).collect()
    }

    /// Whether it may become several words, or none.
    pub(super) fn is_open(&self) -> bool {
        self.0.contains(&Atom::Any)
    }

    /// Whether it is an option.
    pub(super) fn is_option(&self) -> bool {
        self.0.first() == Some(&Atom::Char('-'))
    }

    /// Whether the word may be this text, in any case of the letters. `*` stands for any characters in both.
    pub(super) fn may_be(&self, text: &str) -> bool {
        let wanted = text.chars().map(|c| if c == '*' { Atom::Many } else { Atom::Char(c) }).collect::<Vec<_>>();
        overlap(&self.0, &wanted)
    }

    /// Whether the word may be a program of this name, in whatever folder.
    pub(super) fn may_be_program(&self, name: &str) -> bool {
        let from = self.0.iter().rposition(|atom| *atom == Atom::Char('/')).map_or(0, |at| at + 1);
        let wanted = name.rsplit('/').next().unwrap_or(name);
        self.may_be(name) || Self(self.0[from..].to_vec()).may_be(wanted)
    }

    fn is_named(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.may_be_program(name))
    }

    fn may_be_a_line(&self) -> bool {
        self.0.iter().any(|atom| matches!(atom, Atom::Any) || matches!(atom, Atom::Char(c) if !is_of_a_name(*c)))
    }

    /// The word as a script that a shell reads.
    fn written(&self) -> String {
        self.0
            .iter()
            .map(|atom| match atom {
                Atom::Char(c) => c.to_string(),
                Atom::One => "?".to_owned(),
                Atom::Many => "*".to_owned(),
                Atom::Any => "${_}".to_owned(),
            })
            .collect()
    }
}

fn is_of_a_name(c: char) -> bool {
    c.is_alphanumeric() || "-_./:=@%+,".contains(c)
}

/// Whether two patterns have a text in common.
fn overlap(one: &[Atom], other: &[Atom]) -> bool {
    let open = |atom: &Atom| matches!(atom, Atom::Many | Atom::Any);
    // Which beginnings of `other` the atoms of `one` so far may be.
    let close = |reached: &mut Vec<bool>| {
        for at in 0..other.len() {
            if reached[at] && open(&other[at]) {
                reached[at + 1] = true;
            }
        }
    };
    let mut reached = vec![false; other.len() + 1];
    reached[0] = true;
    close(&mut reached);
    for atom in one {
        let mut next = vec![false; other.len() + 1];
        if open(atom) {
            // Any number of steps.
            let first = reached.iter().position(|is| *is);
            first.into_iter().for_each(|first| next[first..].fill(true));
        } else {
            for at in 0..other.len() {
                let fits = match (atom, &other[at]) {
                    (_, Atom::Many | Atom::Any) => {
                        next[at] |= reached[at];
                        true
                    }
                    (Atom::Char(a), Atom::Char(b)) => a.to_lowercase().eq(b.to_lowercase()),
                    _ => true,
                };
                next[at + 1] |= reached[at] && fits;
            }
        }
        close(&mut next);
        reached = next;
    }
    reached[other.len()]
}
