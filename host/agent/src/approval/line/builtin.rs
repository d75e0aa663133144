//! What the builtins of a shell do with their arguments: some evaluate them as text, and some change what later commands mean.

use std::collections::BTreeSet;

use super::super::variable;
use super::{Atom, Word, git};

/// Builtins of bash, dash and ksh whose arguments are data. Other builtins evaluate some arguments, set variables such as `PATH`, or
/// change what the names of commands mean.
const INERT: &[&str] =
    &[":", "cd", "dirs", "echo", "false", "help", "kill", "popd", "pushd", "pwd", "times", "true", "type"];
/// The other builtins.
const OTHERS: &[&str] = &[
    ".",
    "[",
    "alias",
    "autoload",
    "bg",
    "bind",
    "break",
    "builtin",
    "caller",
    "chdir",
    "command",
    "compgen",
    "complete",
    "compopt",
    "continue",
    "coproc",
    "declare",
    "disown",
    "enable",
    "enum",
    "eval",
    "exec",
    "exit",
    "export",
    "fc",
    "fg",
    "float",
    "functions",
    "getopts",
    "hash",
    "history",
    "integer",
    "jobs",
    "let",
    "local",
    "logout",
    "mapfile",
    "nameref",
    "print",
    "printf",
    "read",
    "readarray",
    "readonly",
    "return",
    "set",
    "shift",
    "shopt",
    "source",
    "suspend",
    "test",
    "trap",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
    "unsetopt",
    "setopt",
    "wait",
    "whence",
];
/// Builtins that evaluate an index in the name of a variable, or an expression.
const EVALUATORS: &[&str] = &[
    "compgen",
    "complete",
    "declare",
    "getopts",
    "integer",
    "let",
    "local",
    "mapfile",
    "nameref",
    "read",
    "readarray",
    "readonly",
    "typeset",
    "unset",
    "wait",
];
/// Options of a shell that change how the next line is read, or which variables programs get.
const READING: &[&str] =
    &["expand_aliases", "extglob", "posix", "allexport", "keyword", "history", "histexpand", "aliases"];
/// The same as letters.
const READING_LETTERS: &[char] = &['a', 'k', 'H'];
/// Options of a shell that name a file with commands.
const START_FILES: &[&str] = &["--rcfile", "--init-file"];
/// Whether a line with these commands means what its words say: no command evaluates text or changes what another one means.
pub(super) fn are_inert(commands: &[Vec<Word>]) -> bool {
    let names = |known: &[&str]| {
        commands.iter().any(|words| words[0].exact().is_some_and(|name| known.contains(&name.as_str())))
    };
    // In another folder, another program has this path.
    let is_relative = |name: String| name.contains('/') && !name.starts_with('/');
    let moves = names(&["cd", "popd", "pushd", "command"]);
    commands.iter().all(|words| is_inert(words))
        && !(moves && commands.iter().any(|words| words[0].exact().is_some_and(is_relative)))
}

fn is_inert(words: &[Word]) -> bool {
    let Some((name, arguments)) = words.split_first() else { return true };
    let Some(name) = name.exact() else { return false };
    let exact = || arguments.iter().map(Word::exact).collect::<Option<Vec<_>>>();
    match name.as_str() {
        name if INERT.contains(&name) => true,
        // Some shells evaluate numbers. `-v` and `-R` evaluate an index.
        "test" | "[" => exact().is_some_and(|arguments| {
            arguments.iter().all(|text| text != "-v" && text != "-R" && !text.contains(['$', '`']))
        }),
        "printf" => prints_only(arguments),
        // `pipefail` and ending at errors: the line does less.
        "set" => exact().is_some_and(|arguments| {
            let is_flag = |text: &String| {
                text == "pipefail"
                    || text
                        .strip_prefix('-')
                        .is_some_and(|flags| !flags.is_empty() && flags.chars().all(|c| "euo".contains(c)))
            };
            !arguments.is_empty() && arguments.iter().all(is_flag)
        }),
        "exit" => exact().is_some_and(|codes| codes.iter().all(|code| code.bytes().all(|byte| byte.is_ascii_digit()))),
        "command" => match arguments.first().map(Word::exact) {
            Some(Some(option)) if option == "-v" || option == "-V" => true,
            Some(Some(name)) if !name.starts_with('-') => is_inert(arguments),
            _ => false,
        },
        name => !OTHERS.contains(&name),
    }
}

/// Whether these arguments of `printf` set no variable.
fn prints_only(arguments: &[Word]) -> bool {
    let is_behind_options = arguments.first().and_then(Word::exact).as_deref() == Some("--");
    let arguments = &arguments[usize::from(is_behind_options)..];
    let Some(format) = arguments.first().and_then(Word::exact) else { return false };
    // `%n` sets a variable. ksh evaluates the arguments of numbers.
    let sets = format.split('%').skip(1).any(|part| {
        part.trim_start_matches(|c: char| c.is_ascii_digit() || "#-+ '.*hlLjzt".contains(c)).starts_with('n')
    });
    let has_text = arguments[1..].iter().any(|word| word.0.iter().any(|atom| matches!(atom, Atom::Char('$' | '`'))));
    let has_number = format.split('%').skip(1).any(|part| !part.starts_with(['s', 'b', 'q', 'c']));
    let is_option = !is_behind_options && format.starts_with('-');
    !(is_option || sets || (has_text && has_number))
}

/// Whether a command evaluates text in its arguments.
pub(super) fn evaluates(words: &[Word]) -> bool {
    let Some(name) = words.first().and_then(Word::exact) else { return false };
    let arguments = words[1..].iter().map(|word| word.exact().unwrap_or_default()).collect::<Vec<_>>();
    match name.as_str() {
        "test" | "[" => arguments.iter().any(|text| text == "-v" || text == "-R"),
        "printf" => arguments.first().is_some_and(|text| text.is_empty() || text.starts_with("-v")),
        "export" => words[1..].iter().any(Word::is_evaluated_later),
        name => EVALUATORS.contains(&name),
    }
}

/// Whether later words may mean something else than they say: by an alias, another program for a name, or other rules of reading.
pub(super) fn changes_meanings(words: &[Word]) -> bool {
    let Some(name) = words.first().and_then(Word::exact) else { return false };
    let has = |test: &dyn Fn(&str) -> bool| words[1..].iter().any(|word| word.exact().is_none_or(|text| test(&text)));
    match name.rsplit('/').next().unwrap_or_default() {
        "alias" => has(&|text| text.contains('=')),
        "hash" => has(&|text| text.starts_with('-') && text.contains('p')),
        "enable" => has(&|text| text.starts_with('-') && text.contains('f')),
        "shopt" => has(&|text| READING.contains(&text)),
        "set" => has(&|text| READING.contains(&text) || has_letter(text)),
        "setopt" | "emulate" => true,
        "git" => !git::is_plain(words),
        _ => words[0].is_named(super::code::SHELLS) && starts_otherwise(&words[1..]),
    }
}

/// Whether the options of a shell change how it reads commands, or name a file with commands that it reads first.
fn starts_otherwise(arguments: &[Word]) -> bool {
    let mut arguments = arguments.iter().map(|word| word.exact().unwrap_or_default());
    while let Some(option) = arguments.next().filter(|text| text.starts_with(['-', '+'])) {
        let option = option.as_str();
        let named = if ["-o", "+o", "-O", "+O"].contains(&option) { arguments.next() } else { None };
        if START_FILES.contains(&option) || has_letter(option) || named.is_some_and(|name| READING.contains(&&*name)) {
            return true;
        }
    }
    false
}

/// Whether a word of options has a letter that changes how lines are read.
fn has_letter(text: &str) -> bool {
    text.starts_with(['-', '+']) && !text.starts_with("--") && text.contains(READING_LETTERS)
}

/// Whether a variable that is set before this command reaches no program: it is a builtin that starts none.
pub(super) fn keeps_variables(words: &[Word]) -> bool {
    const OTHERS: &[&str] =
        &["read", "printf", "test", "[", "mapfile", "readarray", "getopts", "local", "set", "shift"];
    words[0].exact().is_some_and(|name| INERT.contains(&name.as_str()) || OTHERS.contains(&name.as_str()))
}

/// Programs that start another one with variables of their arguments.
const GIVE: &[&str] = &["env", "sudo", "doas", "run0", "systemd-run", "pkexec"];
/// Builtins that set variables.
const SET: &[&str] = &[
    "declare",
    "export",
    "getopts",
    "local",
    "mapfile",
    "nameref",
    "printf",
    "read",
    "readarray",
    "readonly",
    "setenv",
    "typeset",
];

/// Whether a word names a command that sets variables.
pub(super) fn sets(word: &Word) -> bool {
    let name = word.exact();
    let name = name.as_deref().and_then(|name| name.rsplit('/').next()).unwrap_or_default();
    GIVE.contains(&name) || SET.contains(&name)
}

/// Whether a command sets a variable, for the shell or for a program, that may make a program start another one. `values` gets the
/// words of values that may name one.
pub(super) fn sets_unknown(words: &[Word], values: &mut BTreeSet<Vec<String>>) -> bool {
    let Some(name) = words.first().and_then(Word::exact) else { return false };
    let arguments = &words[1..];
    let mut is_given = |word: &Word| match word.assignment() {
        Some((name, value)) => variable::given(&name, value.as_deref()).known_up_to(values),
        None => word.exact().is_some_and(|name| variable::given(&name, None).known_up_to(values)),
    };
    let is_own = |word: &Word| match word.assignment() {
        Some((name, _)) => variable::stays_in_the_shell(&name),
        None => {
            word.exact().is_some_and(|text| variable::stays_in_the_shell(text.split('[').next().unwrap_or_default()))
        }
    };
    let operands = || arguments.iter().filter(|word| !word.is_option());
    let has_option = |letter: char| {
        let options = arguments.iter().take_while(|word| word.is_option());
        options.filter_map(Word::exact).any(|text| !text.starts_with("--") && text.contains(letter))
    };
    match name.rsplit('/').next().unwrap_or_default() {
        // From then on, one name stands for another one.
        "declare" | "typeset" | "local" if has_option('n') => true,
        "nameref" => true,
        "export" | "setenv" => !operands().all(&mut is_given),
        "declare" | "typeset" | "local" if has_option('x') => !operands().all(&mut is_given),
        "declare" | "typeset" | "local" | "readonly" => !operands().all(is_own),
        "read" | "mapfile" | "readarray" | "getopts" => !operands().all(is_own),
        "printf" => arguments.iter().enumerate().any(|(at, word)| {
            let is_option = at == 0 && word.exact().is_some_and(|text| text == "-v");
            is_option && !arguments.get(1).is_some_and(is_own)
        }),
        name if GIVE.contains(&name) => arguments
            .iter()
            .filter_map(|word| word.assignment().filter(|(name, _)| !name.starts_with('-') || name.contains("env")))
            .any(|(name, value)| !variable::given(&name, value.as_deref()).known_up_to(values)),
        _ => false,
    }
}

/// What a command writes into a pipe.
pub(super) enum Written {
    Nothing,
    Text(String),
    Unknown,
}

pub(super) fn written(words: &[Word]) -> Written {
    const SILENT: &[&str] = &[
        ":", "[", "cd", "exit", "export", "false", "mkdir", "rm", "set", "shopt", "sleep", "tee", "test", "touch",
        "true", "umask", "unset", "wait",
    ];
    let Some(name) = words.first().and_then(Word::exact) else { return Written::Unknown };
    let joined = |words: &[Word]| words.iter().map(Word::written).collect::<Vec<_>>().join(" ");
    match name.rsplit('/').next().unwrap_or_default() {
        "echo" => {
            let is_option = |word: &&Word| {
                word.exact().is_some_and(|text| ["-n", "-e", "-E", "-ne", "-en"].contains(&text.as_str()))
            };
            let options = words[1..].iter().take_while(is_option).count();
            unescaped(&joined(&words[1 + options..]))
        }
        "printf" => {
            let Some((format, arguments)) = words[1..].split_first() else { return Written::Nothing };
            let Some(format) = format.exact().filter(|format| !format.starts_with('-')) else {
                return Written::Unknown;
            };
            let mut text = String::new();
            let mut arguments = arguments.iter();
            loop {
                let before = arguments.len();
                let mut rest = format.as_str();
                while let Some((plain, behind)) = rest.split_once('%') {
                    text.push_str(plain);
                    match behind.chars().next() {
                        Some('%') => text.push('%'),
                        Some('s' | 'b') => text.push_str(&arguments.next().map(Word::written).unwrap_or_default()),
                        _ => return Written::Unknown,
                    }
                    rest = &behind[1..];
                }
                text.push_str(rest);
                if arguments.len() == 0 || arguments.len() == before {
                    return unescaped(&text);
                }
            }
        }
        "cat" if words[1..].iter().all(|word| word.exact().is_some_and(|text| text == "-")) => Written::Nothing,
        name if SILENT.contains(&name) => Written::Nothing,
        _ => Written::Unknown,
    }
}

/// A text with the line breaks that `\n` stands for.
fn unescaped(text: &str) -> Written {
    let text = text.replace("\\n", "\n").replace("\\t", "\t");
    if text.contains('\\') { Written::Unknown } else { Written::Text(text) }
}
