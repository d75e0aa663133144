//! The commands in a line of the shell, found as a shell finds them.
//!
//! The reader knows quotes, operators, redirections, here-documents and every place where a shell starts another command. It runs and
//! expands nothing. A word keeps what is unknown about it: a file pattern or an expansion may become any text. Only few lines
//! count as plain and are judged exactly ([`Line::is_plain`]), so that a construct which the user's shell reads differently never
//! passes for a plain one. In all other lines the reader finds too many commands rather than too few.

#[cfg(test)]
mod attack;
mod builtin;
pub(super) mod git;
mod reader;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use super::{code, variable};

/// The commands in a line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Line {
    /// Every simple command, at any depth.
    pub(super) commands: Vec<Vec<Word>>,
    /// Whether it is only simple commands of literal words and file patterns, joined by `&&`, `||`, `;`, `|` and line breaks, perhaps in
    /// subshells. Output may go to `/dev/null` or another output. No builtin evaluates text or changes what other commands mean.
    pub(super) is_plain: bool,
    /// The texts of here-documents and here-strings.
    texts: Vec<Word>,
    /// Words with `$` or backquotes that are plain characters at first.
    literals: Vec<String>,
    /// Whether a shell evaluates words that it has already expanded, as in arithmetic.
    evaluates: bool,
    /// Whether a command gets what another one writes, or a text of the line.
    is_fed: bool,
    /// Whether a variable is set that may make programs start others.
    sets_unknown: bool,
    /// The words in the values of other variables that programs get: they may be a program that is started, or its arguments.
    values: BTreeSet<Vec<String>>,
    /// Whether its input comes later, so that a shell in it may read any command.
    has_open_input: bool,
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
    /// An expansion in quotes: any text, which stays in its word.
    Text,
}

/// Programs and builtins that run a command in their arguments, besides shells and interpreters.
const RUN_OTHERS: &[&str] = &[
    "at",
    "batch",
    "builtin",
    "bunx",
    "bwrap",
    "capsh",
    "catchsegv",
    "cgexec",
    "choom",
    "chpst",
    "chroot",
    "chrt",
    "command",
    "compgen",
    "complete",
    "coreutils",
    "cpulimit",
    "dbus-launch",
    "dbus-run-session",
    "direnv",
    "dumb-init",
    "eatmydata",
    "entr",
    "envdir",
    "eval",
    "exec",
    "expect",
    "fakeroot",
    "faketime",
    "fd",
    "find",
    "firejail",
    "flock",
    "gdb",
    "gosu",
    "hyperfine",
    "i386",
    "ionice",
    "jobs",
    "linux32",
    "linux64",
    "lldb",
    "ltrace",
    "make",
    "mapfile",
    "nice",
    "npx",
    "nsenter",
    "numactl",
    "parallel",
    "perf",
    "pgrphack",
    "pipx",
    "pkexec",
    "pnpx",
    "prlimit",
    "proxychains",
    "proxychains4",
    "readarray",
    "rlwrap",
    "rr",
    "run0",
    "runuser",
    "script",
    "setarch",
    "setpriv",
    "setuidgid",
    "sg",
    "socat",
    "softlimit",
    "ssh-agent",
    "start-stop-daemon",
    "stdbuf",
    "strace",
    "su",
    "su-exec",
    "systemd-inhibit",
    "systemd-run",
    "taskset",
    "time",
    "tini",
    "torify",
    "torsocks",
    "trap",
    "tsocks",
    "uclampset",
    "uname26",
    "unbuffer",
    "unshare",
    "uvx",
    "valgrind",
    "watch",
    "watchexec",
    "x86_64",
    "xinit",
    "xvfb-run",
];
/// Programs that run a command of their arguments behind one of these words.
const RUN_BEHIND: &[(&str, &[&str])] = &[
    ("git", &["foreach", "run", "--exec", "-x", "--tree-filter", "--index-filter", "--msg-filter"]),
    ("docker", &["run", "exec"]),
    ("podman", &["run", "exec"]),
    ("npm", &["exec", "x"]),
    ("pnpm", &["exec", "dlx"]),
    ("yarn", &["exec", "dlx"]),
    ("uv", &["run"]),
    ("poetry", &["run"]),
    ("pipenv", &["run"]),
    ("conda", &["run"]),
    ("bundle", &["exec"]),
    ("mise", &["exec", "x"]),
    ("nix", &["-c", "--command"]),
    ("nix-shell", &["--run", "--command"]),
    ("kubectl", &["exec", "run"]),
    ("tmux", &["new", "new-session", "neww", "new-window", "run", "run-shell", "send-keys", "send"]),
];
/// Programs that give their input to a shell if no command follows their options.
const START_A_SHELL: &[&str] = &[
    "at", "batch", "chroot", "fakeroot", "i386", "linux32", "linux64", "newgrp", "nsenter", "parallel", "runuser",
    "script", "setarch", "sg", "ssh", "su", "unshare",
];

impl Line {
    /// Reads a line, or a script of several lines, as every shell may read it.
    pub(super) fn read(text: &str) -> Result<Self, Unreadable> {
        Self::read_as(text, false)
    }

    /// Reads a line as bash does, in which `[[` begins an expression.
    pub(super) fn read_of_bash(text: &str) -> Result<Self, Unreadable> {
        Self::read_as(text, true)
    }

    fn read_as(text: &str, is_bash: bool) -> Result<Self, Unreadable> {
        let mut line = reader::read(text, is_bash)?;
        line.is_plain &= !text.chars().any(|c| c.is_control() && c != '\n' && c != '\t');
        line.is_plain &= !line.commands.is_empty() && builtin::are_inert(&line.commands);
        Ok(line)
    }

    /// The line of a program with these arguments.
    pub(super) fn of_program<'a>(words: impl IntoIterator<Item = &'a str>) -> Self {
        Self { commands: vec![words.into_iter().map(Word::literal).collect()], is_plain: true, ..Self::default() }
    }

    /// The same line with this input, which a shell may read as commands.
    #[must_use]
    pub(super) fn with_input(mut self, input: &[u8]) -> Self {
        if !input.is_empty() {
            self.texts.push(Word::literal(&String::from_utf8_lossy(input)));
            self.is_fed = true;
        }
        self
    }

    /// The same line with an input that is written while it runs.
    #[must_use]
    pub(super) fn with_open_input(self) -> Self {
        Self { has_open_input: true, ..self }
    }

    /// The same line with variables that it gets from elsewhere.
    #[must_use]
    pub(super) fn with_variables<'a>(mut self, variables: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        self.sets_unknown |= variables.into_iter().any(|(name, value)| !variable::starts_nothing(name, Some(value)));
        self
    }

    /// Whether a test is true of a command that may run, also of one that others start with their arguments: `sudo git push`,
    /// `sh -c "git push"`.
    ///
    /// An error means that a command may hide which is not read, after all that can be read were tested.
    #[cfg(test)]
    pub(super) fn any_command(&self, test: impl Fn(&[Word]) -> bool) -> Result<bool, Unreadable> {
        let (found, is_read) = self.first_command(|words| test(words).then_some(()));
        if is_read { Ok(found.is_some()) } else { Err(Unreadable) }
    }

    /// The first result of a test over the commands that may run, those that other commands start with their arguments included.
    /// The flag says whether every command could be read.
    pub(super) fn first_command<T>(&self, test: impl Fn(&[Word]) -> Option<T>) -> (Option<T>, bool) {
        let mut hidden = Hidden { is_input_unread: self.has_open_input, ..Hidden::default() };
        hidden.lines.push((self.clone(), 0));
        let (mut hit, mut read, mut at, mut expanded) = (None, 0, 0, 0);
        loop {
            while let Some((line, depth)) = hidden.lines.get(at).cloned() {
                at += 1;
                hidden.evaluates |= line.evaluates;
                hidden.is_unread |= line.sets_unknown;
                hidden.values.extend(line.values.iter().cloned());
                for words in &line.commands {
                    hidden.take(words, depth, &mut |command| hit = hit.take().or_else(|| test(command)));
                }
            }
            // A shell in any of them may read what the commands of all of them write, and evaluate their texts.
            if hidden.evaluates && expanded < hidden.lines.len() {
                let (line, depth) = hidden.lines[expanded].clone();
                expanded += 1;
                let found = line.literals.iter().filter_map(|text| reader::read_expansions(text).ok());
                found.for_each(|found| hidden.push(found, depth));
            } else if hidden.has_shell && read < hidden.lines.len() {
                let (line, depth) = hidden.lines[read].clone();
                read += 1;
                hidden.take_data(&line, depth);
            } else if at == hidden.lines.len() {
                break;
            }
        }
        let is_unread = hidden.is_unread
            || (hidden.is_input_unread && hidden.reads_input)
            || hidden.may_be_started(|command| test(command).is_some());
        (hit, !is_unread)
    }
}

/// The lines that others hide.
#[derive(Default)]
struct Hidden {
    /// Each with its depth.
    lines: Vec<(Line, usize)>,
    /// Whether one of them runs a shell.
    has_shell: bool,
    /// Whether a shell reads its input as commands.
    reads_input: bool,
    /// Whether a shell evaluates words.
    evaluates: bool,
    /// Whether one is not read.
    is_unread: bool,
    /// The words in the values of variables.
    values: BTreeSet<Vec<String>>,
    /// Whether this holds for what is written, which matters if a shell reads it as commands.
    is_input_unread: bool,
}

impl Hidden {
    /// A line that hides a command deeper than this is not read.
    const DEEPEST: usize = 6;
    /// The most lines.
    const MOST: usize = 10_000;
    /// The most arguments of a program that runs one of them.
    const MOST_ARGUMENTS: usize = 1_000;
    /// The most of them that set variables or name a command that does.
    const MOST_SETTING: usize = 100;
    /// The most words that are tested because of the values of variables.
    const MOST_VALUES: usize = 50_000;

    fn push(&mut self, line: Line, depth: usize) {
        if line.commands.is_empty() {
            return;
        }
        match depth < Self::DEEPEST && self.lines.len() < Self::MOST {
            true => self.lines.push((line, depth + 1)),
            false => self.is_unread = true,
        }
    }

    /// Reads a text that `by` may run. In other languages than that of shells, nothing is set for a program in this way.
    fn read(&mut self, text: &str, by: &Word, depth: usize) {
        let is_of_shell = !by.exact().is_some_and(|name| code::is_other_language(&name));
        match Line::read(text) {
            Ok(line) => {
                let sets_unknown = line.sets_unknown && is_of_shell;
                let values = if is_of_shell { line.values } else { BTreeSet::new() };
                self.push(Line { sets_unknown, values, ..line }, depth);
            }
            Err(Unreadable) => self.is_unread = true,
        }
    }

    fn read_input(&mut self, text: &str, depth: usize) {
        match Line::read(text) {
            Ok(line) => self.push(line, depth),
            Err(Unreadable) => self.is_input_unread = true,
        }
    }

    /// Tests a command and those that it starts with its arguments.
    fn take(&mut self, words: &[Word], depth: usize, test: &mut impl FnMut(&[Word])) {
        let runs_others = starts_others(words);
        let setting = || words.iter().filter(|word| word.0.contains(&Atom::Char('=')) || builtin::sets(word)).count();
        if runs_others && (words.len() > Self::MOST_ARGUMENTS || setting() > Self::MOST_SETTING) {
            self.is_unread = true;
            test(words);
            return;
        }
        let full = with_input(words);
        // The input of `xargs` is a command only behind a program that runs others, as in `xargs sudo`.
        let is_argument = |at: usize| {
            let before = words[..at.min(words.len())].iter().skip(1).rfind(|word| !word.is_option());
            words.get(at) != Some(&full[at]) && !before.is_some_and(|word| starts_others(std::slice::from_ref(word)))
        };
        for from in 0..if runs_others { full.len() } else { 1 } {
            if is_argument(from) {
                continue;
            }
            let command = &full[from..];
            let of_git = command_of_git(command);
            test(command);
            if let Some(command) = &of_git {
                test(command);
            }
            if command[0].exact().is_some() && (of_git.is_some() || command[0].is_named(&["git"])) {
                for text in git::texts(of_git.as_deref().unwrap_or(command)) {
                    match text {
                        git::Text::Line(text) => self.read(&text, &command[0], depth),
                        git::Text::Perhaps(text) => {
                            if let Ok(line) = Line::read(&text) {
                                self.push(line, depth);
                            }
                        }
                    }
                }
            }
            self.is_unread |= builtin::changes_meanings(command) || builtin::sets_unknown(command, &mut self.values);
            self.evaluates |= builtin::evaluates(command);
            self.has_shell |= command[0].is_named(code::SHELLS);
            if reads_input(command) {
                (self.has_shell, self.reads_input) = (true, true);
            }
        }
        for (at, own) in words.iter().enumerate().skip(1).filter(|_| runs_others) {
            let word = if is_argument(at) { own } else { &full[at] };
            if word.may_be_a_line() {
                self.read(&word.written(), &words[0], depth);
            }
            // `-qc…`
            for text in word.values() {
                if let Ok(line) = Line::read(&text) {
                    self.push(line, depth);
                }
            }
            // `--split-string=…`, `-S…`, `-o ProxyCommand=…`
            if let Some(text) = of_option(words, at) {
                self.read(&text, &words[0], depth);
            }
        }
    }

    /// Whether a command of the test may run because of the value of a variable: its words are a program with arguments, or a
    /// program that starts others, or arguments of a program that may get the variable.
    fn may_be_started(&self, test: impl Fn(&[Word]) -> bool) -> bool {
        if self.values.is_empty() {
            return false;
        }
        let commands: Vec<&[Word]> = self
            .lines
            .iter()
            .flat_map(|(line, _)| &line.commands)
            .flat_map(|words| (0..if starts_others(words) { words.len() } else { 1 }).map(|from| &words[from..]))
            .collect();
        let of_commands: usize = commands.iter().map(|command| command.len() + 1).sum();
        let of_values: usize = self.values.iter().map(|words| words.len() * (words.len() + of_commands)).sum();
        if of_values > Self::MOST_VALUES {
            return true;
        }
        let is_meant =
            |command: &[Word]| test(command) || command_of_git(command).is_some_and(|command| test(&command));
        let more = Word(vec![Atom::Any]);
        self.values.iter().any(|words| {
            let words: Vec<Word> = words.iter().map(|word| Word::literal(word)).chain([more.clone()]).collect();
            (0..words.len() - 1).any(|from| {
                let value = &words[from..];
                let among = |own: &[Word]| is_meant(&[own, value].concat());
                starts_others(&value[..1])
                    || is_meant(value)
                    || commands.iter().any(|command| among(&command[..1]) || (command.len() > 1 && among(command)))
            })
        })
    }

    /// Reads what the commands of a line write, as a shell may.
    fn take_data(&mut self, line: &Line, depth: usize) {
        for text in &line.texts {
            self.read_input(&text.written(), depth);
        }
        for words in &line.commands {
            let is_shell =
                (0..words.len()).any(|from| words[from].is_named(code::SHELLS) || reads_input(&words[from..]));
            if reads_input(words) || (is_shell && starts_others(words)) {
                continue;
            }
            for word in words.iter().skip(1).filter(|word| word.may_be_a_line()) {
                self.read_input(&word.written(), depth);
            }
            match builtin::written(words) {
                builtin::Written::Text(text) => self.read_input(&text, depth),
                builtin::Written::Nothing => {}
                builtin::Written::Unknown => self.is_input_unread |= line.is_fed,
            }
        }
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
        || name.starts_with("ld-linux")
        || name.starts_with("ld-musl")
        || name.starts_with("ld.so")
        || RUN_BEHIND.iter().any(|(known, behind)| known.eq_ignore_ascii_case(name) && among_words(behind))
}

/// The command line in an option of a program that takes one there, whatever it contains: `ssh -o ProxyCommand=…`, and `env -S…`, which
/// puts its own arguments behind the words of the option.
fn of_option(words: &[Word], at: usize) -> Option<String> {
    let text = words[at].written();
    let is_behind = |names: &[&str]| words[..at].iter().any(|word| word.exact().is_some_and(|_| word.is_named(names)));
    if is_behind(&["env"]) {
        let letters = text.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
        let split = letters.and_then(|letters| letters.split_once('S')).map(|(_, line)| line);
        let line = split.or_else(|| text.strip_prefix("--split-string").map(|line| line.trim_start_matches('=')))?;
        let rest = words[at + 1..].iter().map(Word::written);
        return Some(std::iter::once(line.to_owned()).chain(rest).collect::<Vec<_>>().join(" "));
    }
    let is_setting = is_behind(&["ssh", "scp", "sftp"]) && text.contains('=');
    text.split_once('=').filter(|_| is_setting).map(|(_, line)| line.to_owned())
}

/// Whether a command reads its input as commands.
fn reads_input(words: &[Word]) -> bool {
    let Some((name, arguments)) = words.split_first() else { return false };
    // A path with a variable in it is a script, as any other path.
    let is_input = |word: &Word| match word.exact() {
        Some(text) => text == "-" || text.starts_with("/dev/") || text.starts_with("/proc/"),
        None => !word.0.contains(&Atom::Char('/')),
    };
    if name.is_named(&[".", "source"]) {
        return arguments.first().is_some_and(is_input);
    }
    if name.is_named(code::SHELLS) {
        let mut operands = arguments.iter();
        while let Some(word) = operands.next() {
            match word.exact().as_deref() {
                Some("-s" | "-") => return true,
                Some("-o" | "+o" | "-O" | "+O" | "--rcfile" | "--init-file") => drop(operands.next()),
                Some(option) if option.starts_with("--") || option.starts_with('+') => {}
                Some(option) if option.starts_with('-') && option.contains('c') => return false,
                Some(option) if option.starts_with('-') && option.contains('s') => return true,
                Some(option) if option.starts_with('-') => {}
                // Of its applets, only shells read commands.
                Some(applet) if name.is_named(&["busybox", "toybox"]) && code::SHELLS.contains(&applet) => {}
                _ => return is_input(word),
            }
        }
        return !name.is_named(&["busybox", "toybox"]) || arguments.iter().any(|word| word.is_named(code::SHELLS));
    }
    let is_of = |known: &[&str]| name.exact().is_some_and(|_| name.is_named(known));
    if is_of(&["make", "gmake"]) {
        // A makefile has commands behind `:` and `;`.
        let texts = || arguments.iter().map(|word| word.exact().unwrap_or_default());
        let is_file = |text: &str| text.starts_with("/dev/") || text.starts_with("/proc/") || text == "-";
        return texts().any(|text| {
            is_file(&text)
                || is_file(text.trim_start_matches("-f")) && text.starts_with("-f")
                || text.split_once('=').is_some_and(|(_, file)| is_file(file))
        });
    }
    if is_of(&["sudo", "doas"]) {
        return arguments.iter().any(|word| word.exact().is_some_and(|text| text == "-s" || text == "-i"));
    }
    if is_of(&["at", "batch"]) {
        return true;
    }
    is_of(START_A_SHELL) && arguments.iter().filter(|word| !word.is_option()).count() <= 1
}

/// The command with the arguments that it takes from its input.
fn with_input(words: &[Word]) -> Vec<Word> {
    let mut words = words.to_vec();
    if !words.iter().any(|word| word.exact().is_some_and(|text| text.ends_with("xargs") || text.ends_with("parallel")))
    {
        return words;
    }
    let mut places = vec!["{}".to_owned()];
    for (at, word) in words.iter().enumerate() {
        let Some(text) = word.exact() else { continue };
        if text == "-I" || text == "--replace" {
            places.extend(words.get(at + 1).and_then(Word::exact));
        } else if let Some(place) = text.strip_prefix("-I").or_else(|| text.strip_prefix("--replace=")) {
            places.push(place.to_owned());
        }
    }
    for word in words.iter_mut().skip(1) {
        let place = |text: &String| places.iter().find(|place| !place.is_empty() && text.contains(place.as_str()));
        let Some(text) = word.exact() else { continue };
        if let Some(place) = place(&text) {
            let parts = text.split(place.as_str()).map(|part| Word::literal(part).0);
            *word = Word(parts.collect::<Vec<_>>().join(&Atom::Any));
        }
    }
    words.push(Word(vec![Atom::Any]));
    words
}

/// `git-push` is `git push`.
fn command_of_git(words: &[Word]) -> Option<Vec<Word>> {
    let (name, arguments) = words.split_first()?;
    let name = name.exact()?;
    let command = name.rsplit('/').next()?.strip_prefix("git-")?;
    Some([Word::literal("git"), Word::literal(command)].into_iter().chain(arguments.iter().cloned()).collect())
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

    /// Whether a word that sets a variable is evaluated: an index, or a variable that a shell expands at other times.
    fn is_evaluated_later(&self) -> bool {
        let name: Vec<Atom> = self.0.iter().copied().take_while(|atom| *atom != Atom::Char('=')).collect();
        let name = Self(name).exact();
        name.is_none_or(|name| ["PS0", "PS1", "PS4", "PROMPT_COMMAND", "BASH_ENV", "ENV"].contains(&name.as_str()))
    }

    /// The name of the variable that `NAME=VALUE` sets, and its value if that is known.
    fn assignment(&self) -> Option<(String, Option<String>)> {
        let at = self.0.iter().position(|atom| *atom == Atom::Char('='))?;
        let name = self.0[..at].iter().map_while(|atom| match atom {
            Atom::Char(c) if !"[+".contains(*c) => Some(*c),
            _ => None,
        });
        Some((name.collect(), Self(self.0[at + 1..].to_vec()).exact()))
    }

    /// What may be a line in an option: the text behind `=`, or behind its letters.
    fn values(&self) -> Vec<String> {
        let text = self.written();
        let Some(letters) = text.strip_prefix('-').filter(|text| text.contains(char::is_whitespace)) else {
            return Vec::new();
        };
        let of_letters = if letters.starts_with('-') { 0..0 } else { 1..4 };
        let of_letters = of_letters.filter_map(|count| letters.get(count..).map(str::to_owned));
        text.split_once('=').map(|(_, value)| value.to_owned()).into_iter().chain(of_letters).collect()
    }

    fn may_be_a_line(&self) -> bool {
        self.0
            .iter()
            .any(|atom| matches!(atom, Atom::Any | Atom::Text) || matches!(atom, Atom::Char(c) if !is_of_a_name(*c)))
    }

    /// The word as a script that a shell reads.
    fn written(&self) -> String {
        self.0
            .iter()
            .map(|atom| match atom {
                Atom::Char(c) => c.to_string(),
                Atom::One => "?".to_owned(),
                Atom::Many => "*".to_owned(),
                Atom::Any | Atom::Text => "${_}".to_owned(),
            })
            .collect()
    }
}

fn is_of_a_name(c: char) -> bool {
    c.is_alphanumeric() || "-_./:=@%+,".contains(c)
}

/// Whether two patterns have a text in common.
fn overlap(one: &[Atom], other: &[Atom]) -> bool {
    let open = |atom: &Atom| matches!(atom, Atom::Many | Atom::Any | Atom::Text);
    // `reached[n]` says whether the atoms of `one` so far can match the first n atoms of `other`. An atom for any text may also
    // match nothing.
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
                    (_, Atom::Many | Atom::Any | Atom::Text) => {
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
