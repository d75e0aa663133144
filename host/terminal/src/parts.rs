//! Lines of parts. On a narrow terminal, the less important parts are left out.

use crate::layout::{printable, shortened, width};

/// Between two parts.
const BETWEEN: &str = " · ";

/// A part of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// What it says.
    pub text: String,
    /// The part with the lowest weight gives way first.
    pub weight: u8,
}

impl Part {
    /// A part of this weight.
    pub fn new(text: impl Into<String>, weight: u8) -> Self {
        Self { text: text.into(), weight }
    }
}

/// The parts on one line. The last one that is left is cut if it does not fit alone.
pub fn joined(parts: &[Part], columns: usize) -> String {
    let mut parts: Vec<&Part> = parts.iter().filter(|part| !part.text.is_empty()).collect();
    loop {
        let line = parts.iter().map(|part| printable(&part.text)).collect::<Vec<_>>().join(BETWEEN);
        if width(&line) <= columns || parts.len() <= 1 {
            return shortened(&line, columns);
        }
        let least = (0..parts.len()).min_by_key(|at| parts[*at].weight).unwrap_or(0);
        parts.remove(least);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_important_part_gives_way_first() {
        let parts = [Part::new("tea", 3), Part::new("", 9), Part::new("12 tokens", 1), Part::new("stop", 2)];
        for (columns, line) in [(40, "tea · 12 tokens · stop"), (21, "tea · stop"), (9, "tea"), (2, "t…"), (1, "…")]
        {
            assert_eq!(joined(&parts, columns), line, "{columns}");
        }
        assert_eq!(joined(&[Part::new("漢字漢字", 1)], 5), "漢字…");
        assert_eq!(joined(&[], 5), "");
    }
}
