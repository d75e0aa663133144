//! The output of a program as a terminal would show it at the end.

/// Both outputs as text, without colours and without what was overwritten on its line.
pub(crate) fn text(output: &[u8], errors: &[u8]) -> String {
    let (output, errors) = (plain(output), plain(errors));
    match (output.is_empty(), errors.is_empty()) {
        (true, true) => "(no output)".to_owned(),
        (false, true) => output,
        (true, false) => errors,
        (false, false) => format!("{output}\n{errors}"),
    }
}

fn plain(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    // Where the line begins. A carriage return moves the cursor there, and the next character overwrites the line.
    let (mut line, mut returned) = (0, false);
    while let Some(character) = characters.next() {
        match character {
            '\u{1b}' => skip_sequence(&mut characters),
            '\r' => returned = true,
            '\n' => {
                plain.push('\n');
                (line, returned) = (plain.len(), false);
            }
            '\u{8}' => drop(plain.len().gt(&line).then(|| plain.pop())),
            character if character != '\t' && character.is_control() => {}
            character => {
                if std::mem::take(&mut returned) {
                    plain.truncate(line);
                }
                plain.push(character);
            }
        }
    }
    plain.truncate(plain.trim_end().len());
    plain
}

/// Skips a control sequence, such as a colour or a title.
fn skip_sequence(characters: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match characters.next() {
        Some('[') => drop(characters.find(|character| ('@'..='~').contains(character))),
        Some(']') => {
            while let Some(character) = characters.next() {
                if character == '\u{7}' || (character == '\u{1b}' && characters.next_if_eq(&'\\').is_some()) {
                    return;
                }
            }
        }
        Some('(' | ')') => drop(characters.next()),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_what_a_terminal_shows_at_the_end() {
        for (output, expected) in [
            ("a\nb\n\n", "a\nb"),
            ("\u{1b}[1;31mred\u{1b}[0m \u{1b}]0;title\u{7}x\u{1b}]8;;u\u{1b}\\y\u{1b}(B", "red xy"),
            (" 10 %\r 50 %\r100 %\ndone\r\n", "100 %\ndone"),
            ("twice\r", "twice"),
            ("ab\u{8}c\u{0}\td\u{7}", "ac\td"),
            ("\u{1b}[", ""),
            ("é漢", "é漢"),
        ] {
            assert_eq!(plain(output.as_bytes()), expected, "{output:?}");
        }
        assert_eq!(plain(b"a\xff"), "a\u{fffd}");
    }

    #[test]
    fn both_outputs_follow_each_other_if_the_host_separates_them() {
        assert_eq!(text(b"out\n", b"err\n"), "out\nerr");
        assert_eq!([text(b"", b"err"), text(b"out", b""), text(b"\n", b"")], ["err", "out", "(no output)"]);
    }
}
