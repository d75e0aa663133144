//! Lines that Hermes wraps itself, so that foreign text never begins a row of the screen: a continuation is indented.

/// The narrowest text beside a label or another column. On a narrower terminal the text is below it.
pub const NARROWEST: usize = 24;
/// Columns before a text that is below its label.
pub const INDENT: usize = 2;

/// The columns of a text at most: characters outside of ASCII may be two columns wide, except blocks, which bars consist of.
pub fn columns(text: &str) -> usize {
    text.chars().map(width).sum()
}

fn width(character: char) -> usize {
    if character.is_ascii() || matches!(character, '\u{2580}'..='\u{259f}') { 1 } else { 2 }
}

/// A text of at most so many columns; its end is `…` if it was cut.
pub fn fitted(text: &str, most: usize) -> String {
    hermes_terminal::cut(text, most, columns)
}

/// The first rows of a text on a terminal with this many columns, and how many rows follow.
pub fn begin(text: &str, columns: Option<usize>, most: usize) -> (String, usize) {
    let width = columns.unwrap_or(usize::MAX).max(1);
    let rows = |line: &str| self::columns(line).div_ceil(width).max(1);
    let (mut begin, mut left) = (Vec::new(), most);
    for line in text.lines() {
        if left == 0 {
            break;
        }
        begin.push(fitted(line, width.saturating_mul(left)));
        left = left.saturating_sub(rows(line));
    }
    (begin.join("\n"), text.lines().map(rows).sum::<usize>().saturating_sub(most))
}

/// The lines of a text within a width: broken at spaces, between wide characters, and within words that are too long.
pub fn wrapped(text: &str, width: Option<usize>) -> Vec<String> {
    match width {
        Some(most) => hermes_terminal::broken(text, most, self::width),
        None => vec![text.to_owned()],
    }
}

/// A text whose continuations begin after `indent` columns, on a terminal with this many columns.
pub fn hanging(text: &str, indent: usize, columns: Option<usize>) -> Vec<String> {
    // The last column stays free: some terminals wrap as soon as it is used.
    let Some(most) = columns.map(|columns| columns.saturating_sub(1).max(1)) else { return vec![text.to_owned()] };
    if self::columns(text) <= most {
        return vec![text.to_owned()];
    }
    // A wide character needs two columns.
    let indent = indent.min(most.saturating_sub(2));
    let body = text.trim_start_matches(' ');
    let lead = (text.len() - body.len()).min(most - 1);
    let head = wrapped(body, Some(most - lead)).swap_remove(0);
    let rest = body[head.len()..].trim_matches(' ');
    let mut lines = vec![format!("{:lead$}{head}", "")];
    if !rest.is_empty() {
        lines.extend(wrapped(rest, Some(most - indent)).iter().map(|line| format!("{:indent$}{line}", "")));
    }
    lines
}

/// A labelled text: the label in the first `margin` columns, the text on its right. On a narrow terminal the label has a line of
/// its own. `paint` colours the label.
pub fn labelled(
    label: &str,
    text: &str,
    margin: usize,
    columns: Option<usize>,
    paint: impl Fn(&str) -> String,
) -> String {
    let lines = |indent: usize| wrapped(text, columns.map(|columns| columns.saturating_sub(indent + 1).max(1)));
    if columns.is_some_and(|columns| columns < margin + NARROWEST + 1) {
        let mut out = format!("{}\n", paint(label));
        lines(INDENT).iter().for_each(|line| out.push_str(&format!("{:INDENT$}{line}\n", "")));
        return out;
    }
    let width = margin.saturating_sub(1);
    let label = paint(&format!("{label:<width$}"));
    let mut out = String::new();
    for (at, line) in lines(margin).iter().enumerate() {
        out.push_str(&if at == 0 { format!("{label} {line}\n") } else { format!("{:margin$}{line}\n", "") });
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_begin_of_a_text_has_so_many_rows_of_the_terminal() {
        let text = format!("one\n{}\nthree", "x".repeat(35));
        for (columns, most, begin, more) in [
            (None, 2, format!("one\n{}", "x".repeat(35)), 1),
            (Some(10), 9, text.clone(), 0),
            (Some(10), 5, format!("one\n{}", "x".repeat(35)), 1),
            (Some(10), 3, format!("one\n{}…", "x".repeat(18)), 3),
            (Some(10), 1, "one".to_owned(), 5),
        ] {
            assert_eq!(super::begin(&text, columns, most), (begin, more), "{columns:?}, {most}");
        }
    }
}

#[cfg(test)]
mod attack {
    use super::*;

    fn row(label: &str, text: &str, columns: Option<usize>) -> Vec<String> {
        labelled(label, text, 12, columns, str::to_owned).lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_text_never_begins_at_the_left_edge_at_any_width() {
        let forged = "permissions none requested";
        for padding in 0..150 {
            let text = format!("{}{forged} 漢字 {forged}", "x".repeat(padding));
            for columns in 1..=140 {
                let has_own_line = usize::from(columns < 12 + NARROWEST + 1);
                for line in row("description", &text, Some(columns)).iter().skip(has_own_line) {
                    assert!(super::columns(line) < columns.max(5), "{columns}: {line}");
                    assert!(!line.starts_with("permissions") && !line.starts_with("none"), "{columns}: {line}");
                }
                for line in hanging(&format!("- {text}"), 4, Some(columns)).iter().skip(1) {
                    assert!(super::columns(line) < columns.max(5), "{columns}: {line}");
                    assert!(line.starts_with(' ') || columns < 4, "{columns}: {line}");
                }
            }
        }
    }

    #[test]
    fn a_text_that_is_cut_says_so_and_fits() {
        for most in 2..40 {
            let cut = fitted("green tea 漢字 from the harbour", most);
            assert!(columns(&cut) <= most && (most >= 31 || cut.ends_with('…')), "{most}: {cut}");
        }
        assert_eq!((fitted("tea", 3), fitted("green tea", 8)), ("tea".to_owned(), "green…".to_owned()));
    }

    #[test]
    fn nothing_is_lost_and_a_pipe_is_not_wrapped() {
        let text = "Looks at tea, and at nothing else that a user would ever want to look at in a kitchen.";
        let words = |lines: &[String]| lines.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
        for columns in 30..100 {
            assert_eq!(words(&row("about", text, Some(columns))), format!("about {text}"));
            assert_eq!(words(&hanging(text, 4, Some(columns))), text);
            assert!(hanging(&format!("  {text}"), 4, Some(columns))[0].starts_with("  L"));
        }
        assert_eq!(row("about", &text.repeat(9), None).len(), 1);
        assert_eq!(hanging(&text.repeat(9), 4, None).len(), 1);
    }
}
