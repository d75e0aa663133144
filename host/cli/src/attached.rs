//! `@PATH` in a message of the chat: files of the session's folder that are sent with it.
//!
//! The message stays as it was typed. What names no file is text like any other.

use std::path::{Component, Path, PathBuf};

use hermes_app::files::read_regular;
use hermes_protocol::{Media, Part};

use crate::text::{self, fenced};

/// The largest file that is read.
const LARGEST: u64 = 10 << 20;
/// The most bytes that are sent of a text.
const MOST_TEXT: usize = 100 << 10;
/// The most files of one message.
const MOST_FILES: usize = 10;

/// What goes with a message.
#[derive(Debug, Default)]
pub(crate) struct Attached {
    /// Texts and pictures, in the order in which the message names them.
    pub(crate) parts: Vec<Part>,
    /// Lines that tell the user what was attached, and what was not.
    pub(crate) lines: Vec<String>,
}

/// The word at the end of a text that begins with `@`: where the `@` is, and what follows it. A path with spaces is in quotation
/// marks.
pub(crate) fn begun(text: &str) -> Option<(usize, &str)> {
    if let Some(at) = text.rfind("@\"")
        && is_begin(&text[..at])
        && !text[at + 2..].contains('"')
    {
        return Some((at, &text[at + 2..]));
    }
    let at = text.rfind('@').filter(|at| is_begin(&text[..*at]))?;
    let path = &text[at + 1..];
    (!path.contains(char::is_whitespace) && !path.starts_with('"')).then_some((at, path))
}

/// A path as it is written in a message.
pub(crate) fn written(path: &str) -> String {
    if path.contains(char::is_whitespace) { format!("@\"{path}\"") } else { format!("@{path}") }
}

/// Whether a word can begin behind this text. In `me@example.org` none does.
fn is_begin(before: &str) -> bool {
    before.chars().next_back().is_none_or(|last| last.is_whitespace() || "([{'\"".contains(last))
}

/// The words of a text that may be paths, without the `@`.
fn mentioned(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].find('@').map(|at| from + at) {
        from = at + 1;
        if !is_begin(&text[..at]) {
            continue;
        }
        let rest = &text[at + 1..];
        let path = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').map_or("", |(path, _)| path),
            None => rest.split(char::is_whitespace).next().unwrap_or_default(),
        };
        if !path.is_empty() && !found.contains(&path) {
            found.push(path);
        }
    }
    found
}

/// Reads the files that a message names. Blocks.
pub(crate) fn read(message: &str, folder: &Path, home: &Path) -> Attached {
    let mut attached = Attached::default();
    let Ok(folder) = folder.canonicalize() else { return attached };
    let home = home.canonicalize().ok();
    let mut known: Vec<PathBuf> = Vec::new();
    for path in mentioned(message) {
        let Some((path, real)) = find(path, &folder) else { continue };
        let shown = text::line(path);
        if known.contains(&real) {
            continue;
        }
        if !real.starts_with(&folder) || home.as_ref().is_some_and(|home| real.starts_with(home)) {
            attached
                .lines
                .push(format!("not attached: {shown} is outside of the session's folder, or in Hermes's home"));
            continue;
        }
        if known.len() == MOST_FILES {
            attached.lines.push(format!("not attached: {shown}, because a message has at most {MOST_FILES} files"));
            break;
        }
        match part(path, &real) {
            Ok((part, what)) => {
                attached.parts.push(part);
                attached.lines.push(format!("attached {shown}, {what}"));
            }
            Err(why) => attached.lines.push(format!("not attached: {shown} {why}")),
        }
        known.push(real);
    }
    attached
}

/// The file that a word names, also if punctuation follows it.
fn find<'a>(path: &'a str, folder: &Path) -> Option<(&'a str, PathBuf)> {
    let trimmed = path.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '}', '\'', '"']);
    [path, trimmed].into_iter().filter(|path| !path.is_empty()).find_map(|path| {
        let real = folder.join(from_user(path)).canonicalize().ok().filter(|real| real.is_file())?;
        Some((path, real))
    })
}

/// The path, with the user's home in place of `~`.
fn from_user(path: &str) -> PathBuf {
    let mut parts = Path::new(path).components();
    match (parts.next(), std::env::home_dir()) {
        (Some(Component::Normal(first)), Some(home)) if first == "~" => home.join(parts.as_path()),
        _ => PathBuf::from(path),
    }
}

/// A file as a part of a message, and its size for the user.
fn part(path: &str, real: &Path) -> Result<(Part, String), String> {
    let size = real.metadata().map_err(|error| format!("cannot be read: {error}"))?.len();
    let shown = text::bytes(size);
    if size > LARGEST {
        return Err(format!(
            "has {shown}, and at most {} are read; ask the model to read parts of it",
            text::bytes(LARGEST)
        ));
    }
    let bytes = read_regular(real, LARGEST).map_err(|error| format!("cannot be read: {error}"))?;
    let content = match String::from_utf8(bytes) {
        Ok(content) if !content.contains('\0') => content,
        Ok(_) => return Err("is neither a text in UTF-8 nor a picture".to_owned()),
        Err(error) => {
            let name = Path::new(path).file_name().map(|name| name.to_string_lossy().into_owned());
            let picture = Media::image(error.into_bytes(), name.as_deref());
            let picture = picture.map_err(|_| "is neither a text in UTF-8 nor a picture".to_owned())?;
            return Ok((Part::Image(picture), shown));
        }
    };
    let language = Path::new(path).extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let language = if language.chars().all(|character| character.is_ascii_alphanumeric()) { language } else { "" };
    if content.len() <= MOST_TEXT {
        let intro = format!("The user attached the file `{path}`:");
        return Ok((Part::text(fenced(&intro, language, content.trim_end_matches('\n'))), shown));
    }
    let room = content.floor_char_boundary(MOST_TEXT);
    let begin = content[..room].rfind('\n').map_or(&content[..room], |at| &content[..at]);
    let of = text::bytes(begin.len() as u64);
    let intro = format!(
        "The user attached the file `{path}`. These are its first {of} of {shown}; read the rest if you need it:"
    );
    Ok((Part::text(fenced(&intro, language, begin)), format!("the first {of} of {shown}")))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_path_begins_a_word_and_may_be_quoted() {
        for (text, expected) in [
            ("see @src/a.rs and @b", vec!["src/a.rs", "b"]),
            ("@a, (@b) @a", vec!["a,", "b)", "a"]),
            ("me@example.org", vec![]),
            ("@\"my notes.txt\" now", vec!["my notes.txt"]),
            ("@ alone", vec![]),
        ] {
            assert_eq!(mentioned(text), expected, "{text}");
        }
        for (text, expected) in [
            ("@", Some((0, ""))),
            ("see @sr", Some((4, "sr"))),
            ("see @src now", None),
            ("me@ex", None),
            ("see @\"my no", Some((4, "my no"))),
            ("see @\"my notes\"", None),
            ("@a @b", Some((3, "b"))),
        ] {
            assert_eq!(begun(text), expected, "{text}");
        }
    }

    #[test]
    fn files_of_the_folder_are_attached_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("w");
        fs::create_dir_all(folder.join("src")).unwrap();
        fs::create_dir(folder.join("home")).unwrap();
        fs::write(root.path().join("outside"), "secret").unwrap();
        fs::write(folder.join("home/.env"), "KEY=x").unwrap();
        fs::write(folder.join("src/a.rs"), "fn a() {}\n```\n").unwrap();
        fs::write(folder.join("blob"), b"\x00\x01\xff").unwrap();
        fs::write(folder.join("zero"), "a\0b").unwrap();
        fs::write(folder.join("long.txt"), "a line\n".repeat(40_000)).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(root.path().join("outside"), folder.join("link")).unwrap();
        let read = |message: &str| {
            let Attached { parts, lines } = read(message, &folder, &folder.join("home"));
            let texts = parts.iter().map(|part| match part {
                Part::Text { text } => text.clone(),
                other => format!("{other:?}"),
            });
            (texts.collect::<Vec<_>>(), lines)
        };
        let (parts, lines) = read("what is @src/a.rs, and ./src/a.rs @src @nothing me@src/a.rs @./src/a.rs?");
        assert_eq!(parts, ["The user attached the file `src/a.rs`:\n````rs\nfn a() {}\n```\n````"]);
        assert_eq!(lines, ["attached src/a.rs, 14 bytes"]);
        let (parts, lines) = read("@long.txt");
        assert!(parts[0].len() < MOST_TEXT + 300 && parts[0].contains("first 100.0 KiB of 273.4 KiB"), "{lines:?}");
        for path in [
            "../outside",
            "home/.env",
            "blob",
            "zero",
            #[cfg(unix)]
            "link",
        ] {
            let (parts, lines) = read(&format!("see @{path} please"));
            assert!(parts.is_empty() && lines.len() == 1 && lines[0].starts_with("not attached:"), "{path}: {lines:?}");
        }
        let absolute = folder.join("src/a.rs").display().to_string();
        assert_eq!(read(&format!("@{absolute}")).0.len(), 1);
    }
}
