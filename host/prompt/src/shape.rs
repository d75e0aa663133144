//! Cuts context files to the length allowed in the prompt.

/// Default limit in characters.
pub const LEAST: usize = 20_000;
/// Limit in characters for the largest window.
pub const MOST: usize = 500_000;

/// The limit in characters of a context file: the user's setting, else six percent of the window at four characters per token,
/// between [`LEAST`] and [`MOST`]; [`LEAST`] if the window is unknown.
pub fn limit(configured: Option<usize>, context_length: Option<u32>) -> usize {
    configured.unwrap_or_else(|| {
        let of_window = context_length.map_or(0, |tokens| u64::from(tokens) * 24 / 100);
        usize::try_from(of_window).unwrap_or(MOST).clamp(LEAST, MOST)
    })
}

/// A shortened text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The beginning, a marker line, and the end.
    pub text: String,
    /// Characters kept of the beginning.
    pub head: usize,
    /// Characters kept of the end.
    pub tail: usize,
    /// Characters of the whole text.
    pub total: usize,
}

/// Keeps the first 70 and the last 20 percent of the limit, around a marker line. `None` if the text fits.
pub fn around(source: &str, text: &str, limit: usize, remedy: &str) -> Option<Cut> {
    cut(source, text, limit, limit / 10 * 7 + limit % 10 * 7 / 10, limit / 5, remedy)
}

/// Keeps the beginning, followed by a marker line. `None` if the text fits.
pub fn beginning(source: &str, text: &str, limit: usize, remedy: &str) -> Option<Cut> {
    cut(source, text, limit, limit, 0, remedy)
}

fn cut(source: &str, text: &str, limit: usize, head: usize, tail: usize, remedy: &str) -> Option<Cut> {
    // A text has at least as many bytes as characters.
    let total = if text.len() > limit { text.chars().count() } else { return None };
    if total <= limit {
        return None;
    }
    let at = |character: usize| text.char_indices().nth(character).map_or(text.len(), |(at, _)| at);
    let (first, last) = (&text[..at(head)], &text[at(total - tail)..]);
    let kept = if tail > 0 { format!("the first {head} and the last {tail}") } else { format!("the first {head}") };
    let marker = format!("[{source}: {kept} of {total} characters; {remedy}]");
    let text = format!("{first}\n\n{marker}\n\n{last}").trim().to_owned();
    Some(Cut { text, head, tail, total })
}

/// The text after YAML front matter, and the number of lines removed; the whole text if it has no front matter.
pub fn without_front_matter(text: &str) -> (&str, usize) {
    let mut lines = text.split_inclusive('\n');
    let mut behind = match lines.next() {
        Some(first) if first.trim_end() == "---" => first.len(),
        _ => return (text, 0),
    };
    for (before, line) in lines.enumerate() {
        behind += line.len();
        if line.trim_end() == "---" {
            return (&text[behind..], before + 2);
        }
    }
    (text, 0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_limit_follows_the_window_unless_it_is_set() {
        let cases = [
            (None, None, 20_000),
            (None, Some(32_000), 20_000),
            (None, Some(200_000), 48_000),
            (None, Some(1_000_000), 240_000),
            (None, Some(u32::MAX), 500_000),
            (Some(5_000), Some(1_000_000), 5_000),
            (Some(0), None, 0),
        ];
        for (configured, window, expected) in cases {
            assert_eq!(limit(configured, window), expected, "{configured:?} {window:?}");
        }
    }

    #[test]
    fn a_long_text_keeps_both_ends_around_a_marker_with_its_name() {
        let cut = around("AGENTS.md", "0123456789abcdefghij", 10, "read_file shows the rest").unwrap();
        assert_eq!(
            cut.text,
            "0123456\n\n[AGENTS.md: the first 7 and the last 2 of 20 characters; read_file shows the rest]\n\nij"
        );
    }

    #[test]
    fn only_closed_front_matter_is_removed() {
        let cases = [
            ("---\na: 1\n---\nbody\n---\n", ("body\n---\n", 3)),
            ("---\r\n---\r\nbody", ("body", 2)),
            ("---\na: 1\n---", ("", 3)),
            ("---\na: 1\n", ("---\na: 1\n", 0)),
            ("\n---\n---\n", ("\n---\n---\n", 0)),
            ("", ("", 0)),
        ];
        for (text, expected) in cases {
            assert_eq!(without_front_matter(text), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn a_cut_never_splits_characters(text in "[aé错👨]{0,40}", limit in 0..40usize) {
            match around("x", &text, limit, "rest") {
                None => prop_assert!(text.chars().count() <= limit),
                Some(cut) => {
                    prop_assert_eq!((cut.head, cut.tail), ((limit as f64 * 0.7 + 1e-9) as usize, limit / 5));
                    let head: String = text.chars().take(cut.head).collect();
                    prop_assert!(cut.text.starts_with(&head));
                    let tail: String = text.chars().skip(cut.total - cut.tail).collect();
                    prop_assert!(cut.text.ends_with(&tail));
                }
            }
        }
    }
}
