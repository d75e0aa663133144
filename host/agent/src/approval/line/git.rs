//! The programs that git starts because of its own arguments: by a setting, or by an option that names a command.

use super::Word;

/// Settings of git that start nothing, whatever their value, and the begin of the names of others.
const SETTINGS: &[&str] =
    &["user.name", "user.email", "core.quotepath", "core.autocrlf", "core.safecrlf", "commit.gpgsign", "gc.auto"];
const SECTIONS: &[&str] = &["advice.", "color.", "init.", "safe."];
/// Options that name a command. Git accepts the beginnings of their names too.
const COMMANDS: &[&str] = &[
    "access-hook",
    "authors-prog",
    "browser",
    "cc-cmd",
    "exec",
    "extcmd",
    "header-cmd",
    "httpd",
    "open-files-in-pager",
    "receive-pack",
    "sendmail-cmd",
    "smtp-server",
    "to-cmd",
    "upload-pack",
];
/// Options of their own that are such beginnings.
const OTHERS: &[&str] = &["cc", "header", "to"];
/// Parts of the names of options that name a command, so that options which are not known here count too.
const PARTS: &[&str] = &["-pack", "exec", "cmd", "-pager", "-filter", "-hook", "-prog", "command"];
/// Letters of options that name a command, by subcommand.
const LETTERS: &[(&str, char)] =
    &[("clone", 'u'), ("rebase", 'x'), ("difftool", 'x'), ("grep", 'O'), ("instaweb", 'd'), ("instaweb", 'b')];
/// Options whose values are texts, patterns or dates.
const DATA: &[&str] = &[
    "after",
    "author",
    "before",
    "body",
    "committer",
    "cover-letter",
    "date",
    "exclude",
    "format",
    "grep",
    "message",
    "pretty",
    "since",
    "sort",
    "subject",
    "subject-prefix",
    "trailer",
    "until",
    "word-diff-regex",
];
/// Subcommands that take texts and patterns as arguments of their own.
const OF_TEXTS: &[&str] = &["add", "commit", "diff", "grep", "log", "merge", "notes", "show", "stash", "tag"];

/// Options before the subcommand that take the next word as their value.
const TAKE_VALUES: &[&str] =
    &["-c", "-C", "--git-dir", "--work-tree", "--namespace", "--super-prefix", "--attr-source"];

/// A text that git may run.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Text {
    /// It runs it as a command line.
    Line(String),
    /// Its option is not known, and the text may be a command line.
    Perhaps(String),
}

/// The texts in these words of git that it may run.
pub(super) fn texts(words: &[Word]) -> Vec<Text> {
    let Some((arguments, subcommand)) = behind_options(words) else { return Vec::new() };
    let mut texts = Vec::new();
    for (at, word) in arguments.iter().enumerate() {
        let text = word.written();
        let next = || arguments.get(at + 1).map(Word::written);
        if let Some(option) = text.strip_prefix("--") {
            let (name, inline) = option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
            let next = || next().filter(|next| !OF_TEXTS.contains(&subcommand.as_str()) && !next.starts_with('-'));
            if name.is_empty() || DATA.contains(&name) {
                continue;
            }
            let value = inline.map(str::to_owned);
            if names_a_command(name) {
                texts.extend(value.or_else(next).map(Text::Line));
            } else {
                texts.extend(value.or_else(next).filter(|value| may_be_a_line(value)).map(Text::Perhaps));
            }
        } else if let Some(letters) = text.strip_prefix('-') {
            for (_, letter) in LETTERS.iter().filter(|(of, _)| *of == subcommand) {
                let Some((_, rest)) = letters.split_once(*letter) else { continue };
                let value = if rest.is_empty() && *letter != 'O' { next() } else { Some(rest.to_owned()) };
                texts.extend(value.filter(|value| !value.is_empty()).map(Text::Line));
            }
        }
    }
    let operands = || arguments.iter().skip_while(|word| word.is_option()).map(Word::written);
    match subcommand.as_str() {
        // Runs git in several repositories.
        "for-each-repo" => {
            for at in 0..arguments.len() {
                let rest = arguments[at..].iter().map(Word::written);
                texts.push(Text::Line(std::iter::once("git".to_owned()).chain(rest).collect::<Vec<_>>().join(" ")));
            }
        }
        "remote-ext" => texts.extend(operands().nth(1).map(Text::Line)),
        _ => {}
    }
    texts
}

/// Whether git is given no setting in these words that could make it run a program.
pub(super) fn is_plain(words: &[Word]) -> bool {
    let mut arguments = words.iter().skip(1);
    while let Some(argument) = arguments.next().filter(|argument| argument.is_option()) {
        match argument.written().as_str() {
            "-c" if !arguments.next().is_none_or(is_harmless) => return false,
            "-C" | "--git-dir" | "--work-tree" | "--namespace" => drop(arguments.next()),
            option if option.starts_with("--config-env") || option.starts_with("--exec-path=") => return false,
            _ => {}
        }
    }
    // `git clone -c …` gives settings to the new repository, and obeys them.
    let Some((arguments, subcommand)) = behind_options(words) else { return true };
    subcommand != "clone"
        || arguments.iter().enumerate().all(|(at, word)| {
            let text = word.written();
            let next = || arguments.get(at + 1).is_none_or(is_harmless);
            let own = |value: &str| is_harmless(&Word::literal(value));
            match text.strip_prefix("--") {
                Some(option) => {
                    let (name, value) =
                        option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
                    !name.starts_with("co") || !"config".starts_with(name) || value.map_or_else(next, own)
                }
                None => match text.strip_prefix('-').and_then(|letters| letters.split_once('c')) {
                    Some((_, "")) => next(),
                    // `-c` may be the value of another letter.
                    Some((_, value)) => own(value),
                    None => true,
                },
            }
        })
}

/// Whether a setting `NAME=VALUE` starts nothing.
fn is_harmless(setting: &Word) -> bool {
    let setting = setting.written().to_lowercase();
    let (name, value) = setting.split_once('=').unwrap_or((&setting, ""));
    SETTINGS.contains(&name)
        || SECTIONS.iter().any(|section| name.starts_with(section))
        || (name == "core.pager" && value == "cat")
}

/// The places of words that are surely the values of options before the subcommand: each is one word, whatever it expands to.
pub(in super::super) fn values(words: &[Word]) -> Vec<usize> {
    let mut values = Vec::new();
    let is_git = words.first().and_then(Word::exact).is_some_and(|name| name.rsplit('/').next() == Some("git"));
    let mut at = 1;
    while let Some(option) = words.get(at).filter(|word| is_git && word.is_option()).and_then(Word::exact) {
        let takes_value = TAKE_VALUES.contains(&option.as_str());
        if takes_value && words.get(at + 1).is_some_and(|value| !value.is_open()) {
            values.push(at + 1);
        }
        at += 1 + usize::from(takes_value);
    }
    values
}

/// The subcommand, and the words behind it.
fn behind_options(words: &[Word]) -> Option<(&[Word], String)> {
    let mut at = 1;
    while words.get(at)?.is_option() {
        at += 1 + usize::from(TAKE_VALUES.contains(&words[at].written().as_str()));
    }
    Some((&words[at + 1..], words[at].written()))
}

fn names_a_command(name: &str) -> bool {
    let is_beginning = COMMANDS.iter().any(|known| known.starts_with(name)) && !OTHERS.contains(&name);
    is_beginning || PARTS.iter().any(|part| name.contains(part))
}

/// Whether a value is more than a name, and begins with a known word.
fn may_be_a_line(value: &str) -> bool {
    value.contains(|c: char| c.is_whitespace() || ";&|<>()`".contains(c)) && !value.starts_with('$')
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::super::pattern::Pattern;
    use super::super::{Line, Unreadable};

    /// Whether `git push` may run.
    fn pushes(text: &str) -> Result<bool, Unreadable> {
        let pattern: Pattern = "git push*".parse().unwrap();
        Line::read(text).unwrap().any_command(|words| pattern.may_mean(words))
    }

    #[test]
    fn commands_in_the_options_of_git_are_found() {
        for text in [
            "git ls-remote --upload-pack='git push origin' .",
            "git ls-remote --upload-pack 'git push; :' .",
            "git ls-remote --upl='git push' .",
            "git clone -u 'git push' . x",
            "git clone -qu'git push' . x",
            "git -C x clone --upload-pack 'git push' . x",
            "git archive --exec='git push' --remote=. HEAD",
            "git fetch-pack --exec='git push' .",
            "git-fetch-pack --exec='git push' .",
            "git fetch --upload-pack='x; git push'",
            "git pull --upload-pack 'sh -c \"git push\"'",
            "git send-pack --receive-pack='git push' .",
            "git difftool --extcmd='git push' HEAD",
            "git difftool -yx 'git push' HEAD",
            "git grep -O'git push' x",
            "git grep -nO'git push' x",
            "git grep --open-files-in-pager='git push' x",
            "git rebase -x 'git push' main",
            "git rebase -ix 'git push' main",
            "git rebase --exec='git push' main",
            "git bisect run git push",
            "git submodule foreach 'git push'",
            "git send-email --sendmail-cmd='git push' x",
            "git send-email --to-cmd 'git push' x",
            "git filter-branch --env-filter 'git push'",
            "git instaweb --httpd='git push'",
            "git for-each-repo --config=x push",
            "git some-new-thing --runner='git push'",
            "sudo git ls-remote --upload-pack='git push' .",
            "x=$(git ls-remote --upload-pack='git push' .)",
            "git ls-remote --upload-pack=\"$x\" .",
        ] {
            assert_ne!(pushes(text), Ok(false), "{text}");
        }
        for text in [
            "git clone -c core.sshCommand='git push' ssh://x/y",
            "git clone --config=core.fsmonitor=x . y",
            "git clone --conf core.fsmonitor=x . y",
            "git -c core.sshCommand=\"git push $x\" fetch",
            "git --exec-path=\"$x\" fetch",
        ] {
            assert_eq!(pushes(text), Err(Unreadable), "{text}");
        }
    }

    #[test]
    fn texts_and_names_in_the_options_of_git_are_data() {
        for text in [
            "git commit -am 'git push'",
            "git commit --message='git push' --author='git push <a@b>'",
            "git log --format='%h (%an)' --grep='git push' --since='2 days ago'",
            "git grep -n 'git push('",
            "git grep --line-number 'git push'",
            "git checkout -b \"$branch\"",
            "git log --max-count=\"$n\" --oneline \"$range\"",
            "git clean -fdx \"$folder\"",
            "git add -u \"$folder\"",
            "git diff -O\"$order\"",
            "git clone --depth 1 -b main https://example.com/a.git b",
            "git clone -c user.name=me . b",
            "git format-patch --to \"$address\" main",
            "git -c user.name=\"$me\" commit -m x",
            "git stash show --include-untracked",
        ] {
            assert_eq!(pushes(text), Ok(false), "{text}");
        }
    }
}
