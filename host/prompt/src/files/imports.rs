//! `@path` in a context file names another file, which becomes part of the prompt behind it.

use std::path::{Component, Path, PathBuf};

use pulldown_cmark::{Event, Parser, Tag, TagEnd, TextMergeStream};

/// The most files from one to another.
pub(super) const DEEPEST: usize = 5;
/// The most files that are imported into a prompt.
pub(super) const MOST: usize = 32;
/// The most paths of missing files that are remembered.
pub(super) const MOST_AWAITED: usize = 256;
/// Characters that end a sentence or a bracket, but not a path.
const BEHIND: [char; 11] = ['.', ',', ';', ':', '!', '?', ')', ']', '}', '"', '\''];
/// Files with these ends are texts for people and agents.
const TEXTS: [&str; 5] = ["md", "mdc", "markdown", "txt", "rst"];

/// The paths behind `@` in a Markdown text, in their order. Code, comments and links have none, nor have addresses such as
/// `me@example.org`.
pub(super) fn named(text: &str) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    let (mut in_code, mut in_link) = (false, false);
    // A line of a file that git wrote in place of a link is the path alone.
    for event in TextMergeStream::new(Parser::new(text)) {
        match event {
            Event::Start(Tag::CodeBlock(_)) => in_code = true,
            Event::End(TagEnd::CodeBlock) => in_code = false,
            Event::Start(Tag::Link { .. }) => in_link = true,
            Event::End(TagEnd::Link) => in_link = false,
            Event::Text(text) if !in_code && !in_link => {
                for path in in_words(&text) {
                    if !paths.contains(&path) {
                        paths.push(path);
                    }
                }
            }
            _ => {}
        }
    }
    paths
}

/// The paths of words that begin with `@`. A backslash keeps a blank in the path.
fn in_words(text: &str) -> Vec<String> {
    let mut paths = Vec::new();
    let mut before = ' ';
    let mut rest = text;
    while let Some(at) = rest.find('@') {
        let begins = rest[..at].chars().next_back().unwrap_or(before);
        let word = &rest[at + 1..];
        let mut path = String::new();
        let mut escaped = false;
        let mut end = word.len();
        for (at, character) in word.char_indices() {
            match character {
                _ if escaped => escaped = false,
                '\\' => {
                    escaped = true;
                    continue;
                }
                _ if character.is_whitespace() => {
                    end = at;
                    break;
                }
                _ => {}
            }
            path.push(character);
        }
        let path = path.trim_end_matches(BEHIND);
        let is_path = !path.is_empty() && !path.contains(['@', '<', '>', '`']);
        if (begins.is_whitespace() || "([{\"'".contains(begins)) && is_path {
            paths.push(path.to_owned());
        }
        before = word[..end].chars().next_back().unwrap_or('@');
        rest = &word[end..];
    }
    paths
}

/// The path that is all of a text: what git writes in place of a link where a system knows none.
pub(super) fn written_link(text: &str) -> Option<&str> {
    let path = text.trim();
    let is_path = path.contains(['/', '.']) && !path.contains(|c: char| c.is_whitespace() || "@#*`<>:".contains(c));
    (is_path && is_of_text(Path::new(path))).then_some(path)
}

/// Whether a name must be a file, so that a missing file is a mistake. Names such as `@someone` and `@scope/package` need not be
/// files.
pub(super) fn means_file(path: &str) -> bool {
    path.starts_with("./") || path.starts_with("../") || path.starts_with('/') || is_of_text(Path::new(path))
}

/// The path of a missing file: its existing part with links resolved, and the rest unchanged.
pub(super) fn place(file: &Path) -> Option<PathBuf> {
    let mut place = PathBuf::new();
    let mut exists = true;
    for part in file.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(place.pop()),
            part => place.push(part),
        }
        exists = exists
            && place.canonicalize().is_ok_and(|real| {
                place = real;
                true
            });
    }
    place.is_absolute().then_some(place)
}

/// Why a path below this root may not be imported. A hidden file such as `.env` may only if it is a text.
pub(super) fn refusal(root: &Path, inside: &Path) -> Option<&'static str> {
    let is_hidden = |part: Component<'_>| part.as_os_str().as_encoded_bytes().starts_with(b".");
    if !is_of_text(inside) && inside.components().any(is_hidden) {
        Some("is a hidden file that is no text")
    } else if hermes_private_files::is_secret(root, inside) {
        Some("may hold secrets, by its name,")
    } else {
        None
    }
}

/// Whether a file is a private key, judged by its content. A text for people may contain a key as an example.
pub(super) fn is_key(inside: &Path, text: &str) -> bool {
    text.contains("PRIVATE KEY-----") && (!is_of_text(inside) || text.trim_start().starts_with("-----BEGIN "))
}

fn is_of_text(path: &Path) -> bool {
    path.extension().is_some_and(|end| TEXTS.iter().any(|text| end.eq_ignore_ascii_case(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_begins_with_a_sign_names_a_file_outside_of_code() {
        for (text, expected) in [
            ("@AGENTS.md", &["AGENTS.md"][..]),
            ("# P\r\n@docs/rules.md\r\n", &["docs/rules.md"]),
            ("See @README for it, and (@package.json).", &["README", "package.json"]),
            ("- one\n- @a.md\n  - @b/c_d_e.md, @*x*.md", &["a.md", "b/c_d_e.md"]),
            ("@a.md @a.md", &["a.md"]),
            ("@my\\ rules.md", &["my rules.md"]),
            ("@~/notes.md @../up.md @/abs.md", &["~/notes.md", "../up.md", "/abs.md"]),
            ("me@example.org, a@b, @", &[]),
            ("`@a.md` and ``@b.md``", &[]),
            ("```\n@a.md\n```\n~~~sh\n@b.md\n~~~\n\n    @c.md\n", &[]),
            ("<!-- @a.md -->\n\n[@b.md](https://example.org/@c.md)", &[]),
            ("> @quoted.md", &["quoted.md"]),
        ] {
            assert_eq!(named(text), expected, "{text:?}");
        }
    }

    #[test]
    fn people_and_packages_are_no_files() {
        for (path, expected) in
            [("docs/rules.md", true), ("./x", true), ("someone", false), ("types/node", false), ("app.route", false)]
        {
            assert_eq!(means_file(path), expected, "{path}");
        }
        for (path, expected) in [
            ("docs/x.rs", true),
            (".env", false),
            (".aws/key", false),
            (".claude/x.md", true),
            (".hidden/x.md", true),
            (".hidden/x", false),
            (".ssh/x.md", false),
            (".docker/x.md", true),
            (".docker/config.json", false),
            ("keys/id_rsa", false),
            ("conf/secrets.yaml", false),
        ] {
            assert_eq!(refusal(Path::new("/nowhere"), Path::new(path)).is_none(), expected, "{path}");
        }
        assert_eq!(written_link("docs/RULES.md\n"), Some("docs/RULES.md"));
        assert_eq!((written_link("Use tabs."), written_link("a.md b.md"), written_link("src")), (None, None, None));
    }
}
