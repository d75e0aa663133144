//! Patterns of commands, such as `git status*`.
//!
//! A pattern is compared word by word with a command after the removal of quotes, never with its text. For a permission every word
//! must be known; for a prohibition it is enough that a command may be meant.

use std::fmt;
use std::str::FromStr;

use super::line::{Line, Word, git};

/// A pattern of commands.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Pattern {
    words: Vec<Wanted>,
    /// Whether any further arguments may follow.
    is_open: bool,
    written: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Wanted {
    /// A word, in which `*` stands for any characters.
    Word(String),
    /// Any number of words.
    Words,
}

/// Whether a word before the next one of a pattern may be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Skip {
    No,
    /// Only together with its value, the word behind it.
    WithNext,
    AloneOrWithNext,
}

impl FromStr for Pattern {
    type Err = ();

    /// `*` as a word of its own stands for any arguments. At the end of the pattern, `*` behind a letter or a digit ends the word, and
    /// any arguments may follow: `git status*` is not `git statusx`. Elsewhere `*` stands for characters of its word.
    fn from_str(text: &str) -> Result<Self, ()> {
        let is_plain = |c: char| !c.is_control() && !"'\"\\$`;&|<>(){}?#!".contains(c);
        let mut words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        if words.is_empty() || !text.chars().all(is_plain) {
            return Err(());
        }
        let written = words.join(" ");
        let mut is_open = false;
        if let Some(last) = words.last_mut()
            && let Some(rest) = last.strip_suffix('*')
        {
            is_open = true;
            if rest.is_empty() {
                words.pop();
            } else if rest.ends_with(char::is_alphanumeric) {
                *last = rest.to_owned();
            }
        }
        let words =
            words.into_iter().map(|word| if word == "*" { Wanted::Words } else { Wanted::Word(word) }).collect();
        Ok(Self { words, is_open, written })
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

impl Pattern {
    /// Whether it names a program, as a permission must.
    pub(super) fn names_a_program(&self) -> bool {
        matches!(self.words.first(), Some(Wanted::Word(name)) if !name.contains('*'))
    }

    /// Whether it covers a command for certain.
    pub(super) fn covers(&self, command: &[Word]) -> bool {
        // A program is what its name says, so it must be known.
        command.first().is_some_and(|name| name.exact().is_some())
            && self.matches(command, |wanted, word| word.exact().is_some_and(|text| fits(wanted, &text)), |_| Skip::No)
    }

    /// Whether a command may be meant: a program by its name in whatever folder, with options before the next word of the pattern.
    pub(super) fn may_mean(&self, command: &[Word]) -> bool {
        let Some((name, arguments)) = command.split_first() else { return false };
        if name.is_open() {
            return true;
        }
        let fits = |wanted: &str, word: &Word| word.may_be(wanted);
        let skip = |is_option| if is_option { Skip::AloneOrWithNext } else { Skip::No };
        let Some(Wanted::Word(program)) = self.words.first() else {
            return self.matches(command, fits, |at| skip(command[at].is_option()));
        };
        let rest = Self { words: self.words[1..].to_vec(), ..self.clone() };
        let values = git::values(command);
        name.may_be_program(program)
            && rest.matches(arguments, fits, |at| match values.contains(&(at + 2)) {
                true => Skip::WithNext,
                false => skip(arguments[at].is_option()),
            })
    }

    /// Compares word by word. `skip` says which words may be left out.
    fn matches(&self, words: &[Word], fits: impl Fn(&str, &Word) -> bool, skip: impl Fn(usize) -> Skip) -> bool {
        // The places in `words` that the pattern so far may have reached.
        let mut reached = vec![false; words.len() + 2];
        reached[0] = true;
        for wanted in &self.words {
            let mut next = vec![false; words.len() + 2];
            for at in 0..words.len() {
                let skip = if reached[at] { skip(at) } else { Skip::No };
                reached[at + 1] |= skip == Skip::AloneOrWithNext;
                reached[at + 2] |= skip != Skip::No;
            }
            for (at, word) in words.iter().enumerate().filter(|(at, _)| reached[*at]) {
                match wanted {
                    Wanted::Words => next[at..=words.len()].fill(true),
                    // It may be several words.
                    Wanted::Word(wanted) if fits(wanted, word) && word.is_open() => return true,
                    Wanted::Word(wanted) => next[at + 1] |= fits(wanted, word),
                }
            }
            next[words.len()] |= *wanted == Wanted::Words && reached[words.len()];
            reached = next;
        }
        reached[words.len()] || (self.is_open && reached[..words.len()].contains(&true))
    }
}

/// Whether a word fits one of the pattern.
fn fits(wanted: &str, text: &str) -> bool {
    match wanted.split_once('*') {
        None => wanted == text,
        Some((begin, rest)) => text.strip_prefix(begin).is_some_and(|text| {
            // `*` names no folder above.
            !text.split('/').any(|part| part == "..")
                && text.char_indices().map(|(at, _)| at).chain([text.len()]).any(|at| fits(rest, &text[at..]))
        }),
    }
}

/// Whether every command of a line is covered by one of the patterns for certain.
pub(super) fn cover<'p>(patterns: impl Iterator<Item = &'p Pattern> + Clone, line: &Line) -> bool {
    line.is_plain && line.commands.iter().all(|command| patterns.clone().any(|pattern| pattern.covers(command)))
}

/// Commands whose further arguments start no other program and change no file, and the usual ones that build and test the project.
const SAFE: &[&str] = &[
    "git status",
    "git rev-parse",
    "git ls-files",
    "git describe",
    "ls",
    "pwd",
    "cat",
    "head",
    "tail",
    "wc",
    "stat",
    "du",
    "df",
    "which",
    "cargo build",
    "cargo check",
    "cargo clippy",
    "cargo doc",
    "cargo fmt",
    "cargo test",
    "cargo nextest run",
    "go build",
    "go test",
    "go vet",
    "npm test",
    "pnpm test",
    "yarn test",
    "pytest",
    "ruff check",
    "mypy",
];

/// The pattern that a permanent approval of a line may have: only if it is a single command of a known kind.
pub(super) fn safe(line: &Line) -> Option<Pattern> {
    let [command] = line.commands.as_slice() else { return None };
    let known = SAFE.iter().filter_map(|known| format!("{known}*").parse::<Pattern>().ok());
    known.filter(|pattern| line.is_plain && pattern.covers(command)).max_by_key(|pattern| pattern.words.len())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Pattern {
        text.parse().unwrap()
    }

    #[test]
    fn a_pattern_covers_whole_words() {
        for (wanted, covered, not_covered) in [
            (
                "git status*",
                &["git status", "git status -s", "'git' \"status\"", "g\\it status", "git   status --  src"][..],
                &["git", "git statusx", "git stash", "git -c a=b status", "/usr/bin/git status", "GIT status"][..],
            ),
            ("git status", &["git status"], &["git status -s"]),
            ("npm run test:*", &["npm run test:unit", "npm run test: x", "npm run test:a -- b"], &["npm run test"]),
            ("git * --dry-run", &["git push --dry-run", "git --dry-run", "git a b --dry-run"], &["git push", "git"]),
            ("./scripts/*", &["./scripts/build a"], &["./scripts/../evil", "./scriptsx", "scripts/build"]),
            ("ls *", &["ls", "ls -l", "ls a*", "ls [ab].rs"], &["lsof", "l*"]),
            ("echo a*z b", &["echo az b", "echo abz b"], &["echo a z b", "echo a* b"]),
            ("*", &["rm", "rm -rf x"], &[]),
        ] {
            for line in covered {
                assert!(pattern(wanted).covers(&Line::read(line).unwrap().commands[0]), "{wanted}: {line}");
            }
            for line in not_covered {
                assert!(!pattern(wanted).covers(&Line::read(line).unwrap().commands[0]), "{wanted}: {line}");
            }
        }
    }

    #[test]
    fn a_prohibition_covers_what_may_be_meant() {
        for (wanted, meant, not_meant) in [
            (
                "git push*",
                &[
                    "git push",
                    "git -C sub push",
                    "git -c a=b --no-pager push -f",
                    "/usr/bin/git push",
                    "GIT PUSH",
                    "g?t push",
                    "git p*",
                    "git $X",
                    "$X push",
                    "git -C $X status",
                    "git -C \"$X\" push",
                    "git -C \"$X\" -C \"$Y\" push",
                    "git -C \"$@\" status",
                    "git \"$X\"",
                    "git --no-pager \"$X\" status",
                    "git -v \"$X\"",
                    "\"$X\" push",
                ][..],
                &[
                    "git -C \"$X\" status",
                    "git -c color.ui=\"$X\" --git-dir \"$Y\" log",
                    "\"$X\" pull",
                    "git pull",
                    "git stash list",
                    "echo git push",
                    "git commit -m push",
                    "github push",
                    "git add *.rs",
                ][..],
            ),
            ("git push", &["git push", "git -v push"], &["git push origin"]),
            ("git diff push*", &["git diff -C push", "git diff -C \"$X\""], &["git diff -C pull"]),
            ("git -C secret*", &["git -C \"$X\" status", "git -C secret log"], &["git -C public log"]),
            ("rm *", &["rm x", "rm", "/bin/rm -r x"], &["rmdir x", "cargo rm x"]),
            ("* --force*", &["x --force", "git push a --force b"], &["x --forced"]),
            (
                "docker compose up*",
                &["docker compose -f x up -d", "docker --host y compose up"],
                &["docker compose down"],
            ),
        ] {
            for line in meant {
                assert!(pattern(wanted).may_mean(&Line::read(line).unwrap().commands[0]), "{wanted}: {line}");
            }
            for line in not_meant {
                assert!(!pattern(wanted).may_mean(&Line::read(line).unwrap().commands[0]), "{wanted}: {line}");
            }
        }
    }

    #[test]
    fn a_pattern_is_words_and_stars_and_a_permission_names_a_program() {
        for wrong in ["", "  ", "a;b", "a | b", "$X", "`a`", "a 'b'", "a > b", "a\nb;", "a\u{7}"] {
            assert!(wrong.parse::<Pattern>().is_err(), "{wrong}");
        }
        for (text, names) in [("git*", true), ("git status", true), ("*", false), ("* push", false), ("g*t x", false)] {
            assert_eq!(pattern(text).names_a_program(), names, "{text}");
        }
        assert_eq!(pattern(" git   status* ").to_string(), "git status*");
    }

    #[test]
    fn a_safe_pattern_is_formed_for_a_single_known_command_only() {
        let formed = |line: &str| safe(&Line::read(line).unwrap()).map(|pattern| pattern.to_string());
        for (line, expected) in [
            ("git status -s", Some("git status*")),
            ("cargo test -p x", Some("cargo test*")),
            ("ls", Some("ls*")),
            ("git diff", None),
            ("git push", None),
            ("git status; rm x", None),
            ("git status > x", None),
            ("python x", None),
            ("git -c core.fsmonitor=x status", None),
        ] {
            assert_eq!(formed(line).as_deref(), expected, "{line}");
        }
    }
}
