//! Texts on their way to a server.

/// How the tags of the host's frame around what a memory recalled begin.
const OPENING: &str = "<memory-context";
const CLOSING: &str = "</memory-context";
/// The most bytes of a tag behind its name, such as a mark.
const ATTRIBUTES: usize = 100;

/// A text without the host's frames of recalled memories, so that no memory is stored as something that was said. A frame without an
/// end reaches to the end of the text.
pub fn without_fence(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let (mut kept, mut from) = (String::new(), 0);
    while let Some((begin, after)) = tag(&lower, OPENING, from) {
        kept.push_str(text[from..begin].trim_end());
        from = tag(&lower, CLOSING, after).map_or(text.len(), |(_, end)| end);
    }
    kept.push_str(&text[from..]);
    kept.trim().to_owned()
}

/// Where the next such tag begins and ends, at or behind a place.
fn tag(text: &str, tag: &str, from: usize) -> Option<(usize, usize)> {
    text[from..].match_indices(tag).find_map(|(at, _)| {
        let (begin, behind) = (from + at, from + at + tag.len());
        let is_whole = text[behind..].starts_with(|next: char| next == '>' || next.is_ascii_whitespace());
        let end = text[behind..].bytes().take(ATTRIBUTES).position(|byte| matches!(byte, b'>' | b'<'))?;
        (is_whole && text.as_bytes()[behind + end] == b'>').then_some((begin, behind + end + 1))
    })
}

/// At most so many bytes of a text, whole characters.
pub fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// A text in pieces of at most `most` characters, each but the first with a mark in front. They end after a blank where one is near.
pub fn pieces(text: &str, most: usize, mark: &str) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    loop {
        let mark = if pieces.is_empty() { "" } else { mark };
        let room = most.saturating_sub(mark.chars().count()).max(1);
        let Some((end, _)) = rest.char_indices().nth(room) else {
            pieces.push(format!("{mark}{rest}"));
            return pieces;
        };
        // Only the last tenth: a text without blanks must not become a piece per word.
        let near = rest.floor_char_boundary(end - end / 10);
        let end = rest[near..end].rfind(char::is_whitespace).map_or(end, |at| {
            let at = near + at;
            at + rest[at..].chars().next().map_or(1, char::len_utf8)
        });
        pieces.push(format!("{mark}{}", &rest[..end]));
        rest = &rest[end..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recalled_texts_are_not_stored() {
        let framed = "When is tea?\n\n<memory-context>\n[Recalled by the memory.]\n\nAt four.\n</memory-context>";
        assert_eq!(without_fence(framed), "When is tea?");
        assert_eq!(without_fence("a <MEMORY-CONTEXT>x</Memory-Context> b <memory-context>y"), "a b");
        assert_eq!(without_fence("<memory-context></memory-context>"), "");
        assert_eq!(without_fence("İ <memory-context>x</memory-context> é"), "İ é");
        assert_eq!(without_fence("the tag </memory-context> alone"), "the tag </memory-context> alone");
        let marked = "Tea?\n\n<memory-context mark=\"bcdf\">\nAt four.\n</memory-context mark=\"bcdf\"> Yes";
        assert_eq!(without_fence(marked), "Tea? Yes");
        assert_eq!(
            without_fence("a <memory-contexts> b <memory-context < c"),
            "a <memory-contexts> b <memory-context < c"
        );
    }

    #[test]
    fn a_long_text_is_sent_in_pieces_that_together_are_the_text() {
        assert_eq!(pieces("short", 10, "… "), ["short"]);
        let words = "é word ".repeat(1_000);
        for text in [words.as_str(), &"x".repeat(5_000)] {
            let pieces = pieces(text, 100, "[more] ");
            assert!(pieces.iter().all(|piece| piece.chars().count() <= 100) && pieces.len() > 40);
            let joined: String =
                pieces.iter().enumerate().map(|(at, piece)| if at == 0 { piece } else { &piece[7..] }).collect();
            assert_eq!(joined, text);
        }
        assert_eq!(cut("aé", 2), "a");
    }
}
