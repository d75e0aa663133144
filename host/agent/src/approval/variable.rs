//! Variables that a command line or a plugin sets: which of them can make a program start another one.
//!
//! No list of the dangerous ones is complete. So a variable counts as harmless only if it is known, or if its value can be judged:
//! where the value is plain words, a program can take no more from it than the name of a program, a file or a setting, or an
//! argument of its own. Rules do not look into files, even if the line runs one. Two questions are asked: about a variable that a
//! program gets, and about one that stays in the shell.

use std::collections::BTreeSet;

/// Variables that say how output looks.
const DISPLAY: &[&str] = &["LANG", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "FORCE_COLOR", "COLUMNS", "LINES", "CI"];

/// Further variables that name no program, file or option of a program, whatever their value.
const QUIET: &[&str] = &[
    "CARGO_TERM_COLOR",
    "DEBIAN_FRONTEND",
    "GIT_AUTHOR_DATE",
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_NAME",
    "GIT_COMMITTER_DATE",
    "GIT_COMMITTER_EMAIL",
    "GIT_COMMITTER_NAME",
    "GOARCH",
    "GOOS",
    "IFS",
    "NODE_ENV",
    "OPTARG",
    "OPTIND",
    // A pattern names a program in whatever folder.
    "PATH",
    "PYTHONHASHSEED",
    "PYTHONIOENCODING",
    "PYTHONUNBUFFERED",
    "RAILS_ENV",
    "REPLY",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "SOURCE_DATE_EPOCH",
    "TERM",
    "TZ",
];

/// Variables that name a place, an account or an amount if their value is plain: the whole name, or its end.
const DATA: &[&str] = &["AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "CARGO_TARGET_DIR", "DATABASE_URL"];
const DATA_ENDS: &[&str] = &["_DATABASE_URL", "_DB_URL", "_API_URL", "_BASE_URL", "_PORT", "_LOG_LEVEL"];
/// Variables that name folders of modules, libraries or a toolchain, whatever their value.
const PLACES: &[&str] = &[
    "CLASSPATH",
    "CMAKE_PREFIX_PATH",
    "GOPATH",
    "GOROOT",
    "JAVA_HOME",
    "M2_HOME",
    "MAVEN_HOME",
    "NODE_PATH",
    "PKG_CONFIG_PATH",
    "PYTHONPATH",
    "RUSTUP_HOME",
    "VIRTUAL_ENV",
];
/// Options of the compiler. Only those about lints start nothing.
const COMPILER: &[&str] = &["RUSTFLAGS", "RUSTDOCFLAGS"];

/// Programs that show or edit a text, and start nothing, as the value of such a variable.
const SHOWS: &[&str] = &["PAGER", "GIT_PAGER", "MANPAGER", "EDITOR", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "VISUAL"];
const SHOWN_BY: &[&str] = &["", "cat", "true", ":"];

/// Variables that shells, loaders and git obey: the begin of their names, or the whole name.
const OBEYED: &[&str] = &["BASH_", "DYLD_", "GIT_", "LD_"];
const OBEYED_WHOLE: &[&str] = &[
    "BASHOPTS",
    "ENV",
    "FPATH",
    "HOME",
    "POSIXLY_CORRECT",
    "PROMPT_COMMAND",
    "PS0",
    "PS1",
    "PS2",
    "PS3",
    "PS4",
    "SHELL",
    "SHELLOPTS",
    "XDG_CONFIG_HOME",
    "ZDOTDIR",
    // Of zsh.
    "aliases",
    "commands",
    "fpath",
    "functions",
    "galiases",
    "options",
    "saliases",
];

/// Whether a variable says only how output looks. Values that could be a path are not harmless.
pub(super) fn is_about_output(name: &str, value: &str) -> bool {
    let is_plain = value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.@:-".contains(&byte));
    is_plain && !value.contains("..") && (DISPLAY.contains(&name) || name.starts_with("LC_"))
}

/// What a program may do with a variable that it gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Given {
    /// It starts nothing because of it.
    StartsNothing,
    /// It may start one of these words as a program, with those behind it, or take them for arguments. A value has several
    /// readings, because a sign such as `+` may join or separate words.
    Words(BTreeSet<Vec<String>>),
    /// Anything.
    Unknown,
}

impl Given {
    /// True if it is known, apart from the words in its value, which `values` gets.
    pub(super) fn known_up_to(self, values: &mut BTreeSet<Vec<String>>) -> bool {
        match self {
            Self::StartsNothing => true,
            Self::Words(readings) => {
                values.extend(readings);
                true
            }
            Self::Unknown => false,
        }
    }
}

/// What a program may do with this variable. The value is none if it is not known.
pub(super) fn given(name: &str, value: Option<&str>) -> Given {
    if starts_nothing(name, value) {
        return Given::StartsNothing;
    }
    let is_plain = |value: &&str| value.split_ascii_whitespace().all(is_plain);
    match value.filter(is_plain) {
        Some(value) if is_name(name) && stays_in_the_shell(name) && !has_arguments(name) => {
            let joined_by = |signs: &str| -> Vec<String> {
                let words = value.split(|c: char| !(c.is_ascii_alphanumeric() || signs.contains(c)));
                words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
            };
            let readings = ["_./-", "_./-+", "_./-+:@?=%,"].map(joined_by);
            Given::Words(readings.into_iter().filter(|words| !words.is_empty()).collect())
        }
        _ => Given::Unknown,
    }
}

/// Whether no program that gets this variable starts another one because of it. The value is none if it is not known.
pub(super) fn starts_nothing(name: &str, value: Option<&str>) -> bool {
    let is_switch = |value: &str| {
        const WORDS: &[&str] = &["true", "false", "yes", "no", "on", "off"];
        let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
        is_number || WORDS.iter().any(|word| value.eq_ignore_ascii_case(word))
    };
    DISPLAY.contains(&name)
        || QUIET.contains(&name)
        || PLACES.contains(&name)
        || name.starts_with("LC_")
        || value.is_some_and(|value| {
            (SHOWS.contains(&name) && SHOWN_BY.contains(&value))
                || (is_switch(value) && stays_in_the_shell(name) && !has_arguments(name))
                || (is_data(name) && is_plain(value))
                || (COMPILER.contains(&name) && sets_lints(value))
        })
}

fn is_name(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Whether a program takes the value of a variable for its own arguments, or for a new command: `MAVEN_ARGS`, `JAVA_OPTS`,
/// `MAKEFLAGS`, `CARGO_ALIAS_X`.
fn has_arguments(name: &str) -> bool {
    const ENDS: &[&str] = &["FLAGS", "OPTS", "OPTIONS", "ARGS", "ARGUMENTS", "PARAMS", "PARAMETERS"];
    let name = name.to_ascii_uppercase();
    name.split('_').any(|word| word == "ALIAS" || word == "ALIASES" || ENDS.iter().any(|end| word.ends_with(end)))
}

fn is_data(name: &str) -> bool {
    DATA.contains(&name) || (stays_in_the_shell(name) && DATA_ENDS.iter().any(|end| name.ends_with(end)))
}

/// Whether a value is a name, a path or an address, and no option or command line.
fn is_plain(value: &str) -> bool {
    value.starts_with(|c: char| c.is_ascii_alphanumeric() || "/._".contains(c))
        && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_./:@?=%+,-".contains(&byte))
}

/// Whether options of the compiler only say which lints count: `-D warnings -Aunused`.
fn sets_lints(value: &str) -> bool {
    let is_lint = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_lowercase())
            && text.bytes().all(|byte| byte.is_ascii_lowercase() || b"_:-".contains(&byte))
    };
    let mut words = value.split_ascii_whitespace();
    while let Some(word) = words.next() {
        let lint = ["-D", "-W", "-A", "-F"].iter().find_map(|option| word.strip_prefix(option));
        let lint = lint.and_then(|lint| if lint.is_empty() { words.next() } else { Some(lint) });
        if !lint.is_some_and(is_lint) {
            return false;
        }
    }
    true
}

/// Whether a variable that no program gets changes nothing but what the line itself does with it.
pub(super) fn stays_in_the_shell(name: &str) -> bool {
    !OBEYED_WHOLE.contains(&name) && !OBEYED.iter().any(|begin| name.starts_with(begin))
        || QUIET.contains(&name)
        || ["BASH_REMATCH", "BASH_SOURCE"].contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_variables_reach_a_program_unseen() {
        for (name, value) in [
            ("RUST_BACKTRACE", Some("full")),
            ("LC_ALL", None),
            ("GIT_PAGER", Some("cat")),
            ("GIT_AUTHOR_NAME", Some("a b")),
            ("DEBUG", Some("1")),
            ("MY_SWITCH", Some("TRUE")),
            ("PATH", None),
            ("CARGO_TARGET_DIR", Some("t")),
            ("AWS_PROFILE", Some("x")),
            ("JAVA_HOME", Some("x")),
            ("PYTHONPATH", None),
            ("DATABASE_URL", Some("postgres://a:b@localhost/x")),
            ("RUSTFLAGS", Some("-D warnings -Aunused")),
        ] {
            assert!(starts_nothing(name, value), "{name}");
        }
        for (name, value) in [
            ("BASH_ENV", Some("1")),
            ("ENV", Some("true")),
            ("LD_PRELOAD", Some("1")),
            ("GIT_EDITOR", Some("vi")),
            ("GIT_EDITOR", None),
            ("GIT_CONFIG_COUNT", Some("1")),
            ("GIT_SSH_COMMAND", Some("git push")),
            ("NODE_OPTIONS", Some("--require=x")),
            ("ANY_NAME", Some("x")),
            ("ANY_NAME", None),
            ("lower", Some("")),
            ("RUSTFLAGS", Some("-C linker=x")),
            ("RUSTFLAGS", Some("-D warnings -Clinker=x")),
            ("RUSTFLAGS", Some("-D -Clinker=x")),
            ("DATABASE_URL", Some("git push")),
            ("DATABASE_URL", None),
            ("CARGO_HOME", Some("x")),
            ("GIT_BASE_URL", Some("x")),
            ("MAVEN_ARGS", Some("1")),
            ("CARGO_ALIAS_QQ", Some("true")),
        ] {
            assert!(!starts_nothing(name, value), "{name}");
        }
    }

    #[test]
    fn the_words_of_a_plain_value_may_be_programs() {
        for (name, value, words) in [
            ("FOO", "bar", &["bar"][..]),
            ("FOO", "", &[]),
            ("MESSAGE", "git push", &["git push"]),
            ("COMPILER", "a=git,b:./x@1", &["a git b ./x 1", "a=git,b:./x@1"]),
            ("CXX", "g++", &["g", "g++"]),
            ("CXX", "ccache,g++", &["ccache g", "ccache g++", "ccache,g++"]),
        ] {
            let words = words.iter().map(|words| words.split(' ').map(str::to_owned).collect()).collect();
            assert_eq!(given(name, Some(value)), Given::Words(words), "{name}={value}");
        }
        for (name, value) in [
            ("FOO", None),
            ("FOO", Some("--eval=x")),
            ("FOO", Some("a -e x")),
            ("FOO", Some("a;b")),
            ("FOO", Some("|a")),
            ("FOO", Some("a$b")),
            ("FOO", Some("a\\b")),
            ("FOO", Some("é")),
            ("--setenv", Some("BASH_ENV=x")),
            ("BASH_FUNC_ls%%", Some("x")),
            ("GIT_EDITOR", Some("vi")),
            ("LD_PRELOAD", Some("x")),
            ("BASH_ENV", Some("")),
            ("PROMPT_COMMAND", Some("x")),
            // Programs read these values as further arguments.
            ("CARGO_ALIAS_QQ", Some("version")),
            ("MAVEN_ARGS", Some("deploy")),
            ("TF_CLI_ARGS_plan", Some("x")),
            ("GREP_OPTIONS", Some("x")),
            ("JAVA_OPTS", Some("x")),
            ("_JAVA_OPTIONS", Some("x")),
            ("CFLAGS", Some("x")),
            ("MAKEFLAGS", Some("x")),
            ("npm_config_flags", Some("x")),
        ] {
            assert_eq!(given(name, value), Given::Unknown, "{name}={value:?}");
        }
    }

    #[test]
    fn what_shells_obey_does_not_stay_in_them() {
        for (name, stays) in [
            ("version", true),
            ("FILES", true),
            ("IFS", true),
            ("PROMPT_COMMAND", false),
            ("BASH_ENV", false),
            ("BASH_ALIASES", false),
            ("LD_PRELOAD", false),
            ("GIT_DIR", false),
            ("HOME", false),
            ("aliases", false),
        ] {
            assert_eq!(stays_in_the_shell(name), stays, "{name}");
        }
    }
}
