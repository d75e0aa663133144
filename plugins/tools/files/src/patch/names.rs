//! The names of files in unified diffs, as git and diff write them.

use hermes_plugin::Error;

/// Stands for no file.
pub(super) const NONE: &str = "/dev/null";

/// A name as it stands in a diff. Git puts one in quotes that has quotation marks, backslashes, control characters or, by default, bytes
/// that are not ASCII.
pub(super) fn read(written: &str) -> Result<String, Error> {
    match quoted(written)? {
        Some((name, _)) => Ok(name),
        None => Ok(written.to_owned()),
    }
}

/// A name of `---` or `+++`. A tab ends it; a time can follow.
pub(super) fn of_file(written: &str) -> Result<String, Error> {
    if let Some((name, _)) = quoted(written)? {
        return Ok(name);
    }
    Ok(match written.split_once('\t') {
        // So git marks a name with blanks, which can end in some.
        Some((name, _)) => name.to_owned(),
        None => written.trim_end().to_owned(),
    })
}

/// Both names of `diff --git`, with their prefixes. `None` if they cannot be told apart, which no diff of git has that needs them.
pub(super) fn of_git(written: &str) -> Result<Option<(String, String)>, Error> {
    if let Some((old, rest)) = quoted(written)? {
        return rest.strip_prefix(' ').map(|new| Ok((old, read(new)?))).transpose();
    }
    // A name in quotes has its quotation marks escaped, so the first is that of its beginning.
    if let Some((at, _)) = written.match_indices(" \"").next()
        && let Some((new, "")) = quoted(&written[at + 1..])?
    {
        return Ok(Some((written[..at].to_owned(), new)));
    }
    // Git only writes the names without quotes and without lines of their own if they are the same but for their prefixes.
    let mut splits = written.match_indices(' ').map(|(at, _)| (&written[..at], &written[at + 1..]));
    let middle = written.len() / 2;
    let even = written.is_char_boundary(middle) && written[middle..].starts_with(' ');
    let even = even.then(|| (&written[..middle], &written[middle + 1..]));
    let is_same = |pair: &(&str, &str)| pair.0 == pair.1 || prefixes(pair.0, pair.1).is_some();
    let found = even.filter(is_same).or_else(|| splits.find(is_same));
    Ok(found.map(|(old, new)| (old.to_owned(), new.to_owned())))
}

/// The lengths of the prefixes of two names that are different but for their first folder, such as `a/` and `b/`.
pub(super) fn prefixes(old: &str, new: &str) -> Option<(usize, usize)> {
    let ((one, rest), (other, same)) = (old.split_once('/')?, new.split_once('/')?);
    (one != other && rest == same && !rest.is_empty()).then_some((one.len() + 1, other.len() + 1))
}

/// A name in quotes at the beginning, and what follows it.
fn quoted(written: &str) -> Result<Option<(String, &str)>, Error> {
    let Some(body) = written.strip_prefix('"') else { return Ok(None) };
    let mut name = Vec::new();
    let mut rest = body.bytes().enumerate();
    while let Some((at, byte)) = rest.next() {
        match byte {
            b'"' => {
                let name = String::from_utf8(name).map_err(|_| {
                    Error::invalid(format!("the name {written} is not UTF-8, and the tools only know names in UTF-8"))
                })?;
                return Ok(Some((name, &body[at + 1..])));
            }
            b'\\' => {
                let wrong = || Error::invalid(format!("the name {written} has an escape that git does not write"));
                let (_, escape) = rest.next().ok_or_else(wrong)?;
                name.push(match escape {
                    b'a' => 0x07,
                    b'b' => 0x08,
                    b't' => b'\t',
                    b'n' => b'\n',
                    b'v' => 0x0b,
                    b'f' => 0x0c,
                    b'r' => b'\r',
                    b'"' | b'\\' => escape,
                    b'0'..=b'3' => {
                        let mut octal = || rest.next().filter(|(_, digit)| matches!(digit, b'0'..=b'7'));
                        let (Some((_, second)), Some((_, third))) = (octal(), octal()) else { return Err(wrong()) };
                        ((escape - b'0') << 6) | ((second - b'0') << 3) | (third - b'0')
                    }
                    _ => return Err(wrong()),
                });
            }
            _ => name.push(byte),
        }
    }
    // A quotation mark alone is a part of the name.
    Ok(None)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_git_quotes_them() {
        for (written, name) in [
            (r#""na\303\257ve.txt""#, "naïve.txt"),
            (r#""we\"ird""#, "we\"ird"),
            (r#""a\\b\tc\nd\033""#, "a\\b\tc\nd\u{1b}"),
            ("plain name", "plain name"),
            ("日本.txt", "日本.txt"),
            ("\"half", "\"half"),
        ] {
            assert_eq!(read(written).unwrap(), name, "{written}");
        }
        for (written, why) in [(r#""\377""#, "not UTF-8"), (r#""\q""#, "escape"), (r#""\38""#, "escape")] {
            assert!(read(written).unwrap_err().message.contains(why), "{written}");
        }
    }

    #[test]
    fn a_tab_ends_the_name_of_a_file() {
        for (written, name) in [
            ("a/my notes b.txt\t", "a/my notes b.txt"),
            ("a/ends in a blank \t", "a/ends in a blank "),
            ("x.c\t2020-01-01 00:00", "x.c"),
            ("x.c  ", "x.c"),
            ("\"b/\\303\\251\"\t2020", "b/é"),
        ] {
            assert_eq!(of_file(written).unwrap(), name, "{written}");
        }
    }

    #[test]
    fn the_two_names_of_git_are_told_apart() {
        let pair = |written| of_git(written).unwrap().map(|(old, new)| format!("{old}|{new}"));
        for (written, expected) in [
            ("a/f b/f", "a/f|b/f"),
            ("a/x b/y b/x b/y", "a/x b/y|b/x b/y"),
            ("i/a b w/a b", "i/a b|w/a b"),
            ("old/f new/f", "old/f|new/f"),
            ("a a a a", "a a|a a"),
            ("before/x y b/x y", "before/x y|b/x y"),
            (r#""a/\303\251" "b/\303\251""#, "a/é|b/é"),
            (r#"a/e "b/\303\251""#, "a/e|b/é"),
            (r#""a/\303\251" b/e"#, "a/é|b/e"),
            ("a/é b/é", "a/é|b/é"),
        ] {
            assert_eq!(pair(written).unwrap(), expected, "{written}");
        }
        assert_eq!(pair("a/one b/other"), None);
    }
}
