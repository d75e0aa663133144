//! The lines of a question as rows of a terminal. What Hermes says is broken between words; what others wrote, such as a command,
//! stays exact.

use crate::text::hanging;

/// The lines with breaks between the words of what Hermes says. What others wrote, such as a command, stays one line: it is shown
/// exactly, and can be copied.
pub(super) fn wrapped(lines: &[String], columns: usize) -> Vec<String> {
    let wrap = |line: &String| {
        if !is_ours(line) {
            return vec![line.clone()];
        }
        // Further lines are below the text of a field, or a little behind the margin.
        let margin = line.len() - line.trim_start().len();
        let text = line[margin..].find("  ").map(|at| margin + at);
        let text = text.map_or(margin, |at| line.len() - line[at..].trim_start().len());
        let indent = if margin > 0 && text < columns / 2 { text } else { 2 };
        hanging(line, indent, Some(columns))
    };
    lines.iter().flat_map(wrap).collect()
}

/// The rows of a line of the question on a terminal that is drawn.
pub(super) fn of_line(line: &str, columns: usize) -> Vec<String> {
    match is_ours(line) {
        // There the last column is free already.
        true => wrapped(&[line.to_owned()], columns + 1),
        false => exact_rows(line, columns),
    }
}

/// The rows of a line of others within a width. A row ends behind the escape of a line feed or at a single space, or it is full and
/// the text goes on in the next one: nothing of the text is ambiguous. Further rows are indented, so that none looks like a line
/// of Hermes.
pub(super) fn exact_rows(line: &str, columns: usize) -> Vec<String> {
    let margin = line.len() - line.trim_start_matches(' ').len();
    let label = line[margin..].find("  ").map(|at| margin + at);
    let indent = match label.map(|at| line.len() - line[at..].trim_start_matches(' ').len()) {
        _ if margin > 2 => margin + 2,
        Some(text) if margin > 0 && text * 2 < columns => text,
        _ => 2,
    };
    let indent = if indent * 2 < columns { indent } else { 0 };
    let (mut rows, mut rest, mut lead) = (Vec::new(), line, 0);
    loop {
        let room = columns.saturating_sub(lead).max(2);
        let (mut end, mut used) = (rest.len(), 0);
        for (at, character) in rest.char_indices() {
            used += if character.is_ascii() { 1 } else { 2 };
            if used > room {
                end = at;
                break;
            }
        }
        let is_all = end == rest.len();
        if is_all && rows.is_empty() {
            return vec![rest.to_owned()];
        }
        if let Some(feed) = behind_line_feed(&rest[..end]).filter(|at| *at < rest.len()) {
            rows.push(format!("{:lead$}{}", "", &rest[..feed]));
            (rest, lead) = (&rest[feed..], indent);
            continue;
        }
        if is_all {
            rows.push(format!("{:lead$}{rest}", ""));
            return rows;
        }
        let bytes = rest.as_bytes();
        let is_single =
            |at: usize| at > 0 && bytes[at] == b' ' && bytes[at - 1] != b' ' && bytes.get(at + 1) != Some(&b' ');
        // A row with wide characters may end early because the next one is wide.
        let may_break = rest[..end].is_ascii() && bytes[end].is_ascii();
        let least = if rows.is_empty() { indent.max(end / 2) } else { end / 2 };
        let space = (least..end).rev().find(|at| may_break && is_single(*at));
        rows.push(format!("{:lead$}{}", "", &rest[..space.unwrap_or(end)]));
        rest = &rest[space.map_or(end, |at| at + 1)..];
        lead = indent;
    }
}

/// The place behind the first escape of a line feed. A backslash that is escaped itself begins none.
fn behind_line_feed(text: &str) -> Option<usize> {
    let mut is_escape = false;
    text.bytes().enumerate().find_map(|(at, byte)| {
        let is_feed = is_escape && byte == b'n';
        is_escape = byte == b'\\' && !is_escape;
        is_feed.then_some(at + 1)
    })
}

/// Whether a line of the question is Hermes's own words, which may be broken anywhere between words.
fn is_ours(line: &str) -> bool {
    const OURS: [&str; 5] = ["approval: ", "  because ", "  pattern ", "  sandbox ", "  session "];
    OURS.iter().any(|ours| line.starts_with(ours))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMAND: &str = r#"  command  sh -c "one two  three four_and_five_and_six seven""#;

    #[test]
    fn the_rows_of_a_command_are_unambiguous_and_indented() {
        let rows = exact_rows(COMMAND, 30);
        let expected = [
            "  command  sh -c \"one",
            "           two  three",
            "           four_and_five_and_s",
            "           ix seven\"",
        ];
        assert_eq!(rows, expected);
        assert_eq!(
            exact_rows("    +     let tea = 1; // and more", 20),
            ["    +     let tea =", "      1; // and more"]
        );
        let script = r#"  command  sh -c "cat <<X\none\n  two\nX\nprintf 'a\\nb'""#;
        assert_eq!(exact_rows(script, 80), [script]);
        assert_eq!(
            exact_rows(script, 40),
            [
                r#"  command  sh -c "cat <<X\n"#,
                r"           one\n",
                r"             two\n",
                r"           X\n",
                r#"           printf 'a\\nb'""#
            ]
        );
        for columns in 6..60 {
            // The columns of the label and the indentation of the other rows.
            let script = format!("  command  sh -c \"{}\"", "one two\\n  three\\\\n four\\n".repeat(6));
            for (line, label) in [(COMMAND, 11), (&"x".repeat(200), 2), (&"a b c ".repeat(30), 2), (&script, 11)] {
                let indent = if label * 2 < columns { label } else { 2 };
                let rows = exact_rows(line, columns);
                let mut joined = String::new();
                for (at, row) in rows.iter().enumerate() {
                    joined.push_str(if at == 0 { row } else { &row[indent..] });
                    let ends_a_line = row.ends_with("\\n") && !row.ends_with("\\\\n");
                    let is_space = row.len() < columns && !ends_a_line && at + 1 < rows.len();
                    joined.push_str(if is_space { " " } else { "" });
                    assert!(row.len() <= columns, "{columns}: {row}");
                }
                assert_eq!(joined, line, "{columns}");
            }
            let wide = format!("  input    {}", "漢字 ".repeat(20));
            let rows = exact_rows(&wide, columns);
            assert!(rows.iter().all(|row| crate::text::columns(row) <= columns), "{columns}: {rows:?}");
            assert_eq!(rows.concat().replace(' ', ""), wide.replace(' ', ""));
        }
    }
}
