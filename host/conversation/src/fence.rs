//! The fences around text that the host adds to a message: recalled memories, quoted passages, what strangers wrote, and what the
//! user said during a turn. Such text comes from elsewhere. It must neither close its fence nor open another one. A model may
//! repeat a fence in its reply: there it is removed.
//!
//! Both tags of a fence carry a mark. It is drawn when the message is made, so the text in the fence cannot know it, and it is
//! stored with the message, so the bytes that were sent never change. Fences of older versions have no mark.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The fence around recalled memories.
pub const MEMORY_CONTEXT: &str = "memory-context";

/// The fence around passages of earlier messages.
pub const EARLIER_CONTEXT: &str = "earlier-context";

/// The fence around text of strangers.
pub const UNTRUSTED_TEXT: &str = "untrusted-text";

/// The fence around words of the user in a tool result.
pub const SAID_MEANWHILE: &str = "said-meanwhile";

/// The fence around results of subagents that worked in the background.
pub const SUBAGENT_RESULTS: &str = "subagent-results";

/// The fence around the text of a skill that the user called.
pub const LOADED_SKILL: &str = "loaded-skill";

/// The fence around the name of a message's author.
pub const MESSAGE_SENDER: &str = "message-sender";

/// The names of all fences.
const FENCES: [&str; 6] =
    [EARLIER_CONTEXT, MEMORY_CONTEXT, SAID_MEANWHILE, SUBAGENT_RESULTS, LOADED_SKILL, MESSAGE_SENDER];

/// Draws the marks of fences. Clones share the source.
#[derive(Clone)]
pub struct Marks(Arc<dyn Fn() -> u64 + Send + Sync>);

impl fmt::Debug for Marks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Marks")
    }
}

impl Marks {
    /// Marks from a source of numbers. Outside of tests and measurements, nobody can predict them.
    pub fn new(source: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(source))
    }

    /// The same marks in every run, for tests and measurements that must be repeatable.
    pub fn repeatable() -> Self {
        let next = AtomicU64::new(0);
        Self::new(move || next.fetch_add(1, Ordering::Relaxed))
    }

    /// Encloses lines in a fence. `tag` is its name, behind which other attributes may follow.
    ///
    /// ```
    /// use hermes_conversation::fence::{Marks, UNTRUSTED_TEXT, block};
    ///
    /// let fenced = Marks::repeatable().enclose(UNTRUSTED_TEXT, "a page");
    /// assert_eq!(fenced, "<untrusted-text mark=\"bbbbbbbbbbbb\">\na page\n</untrusted-text mark=\"bbbbbbbbbbbb\">");
    /// assert_eq!(block(&fenced, UNTRUSTED_TEXT), Some(fenced.as_str()));
    /// ```
    pub fn enclose(&self, tag: &str, lines: &str) -> String {
        let mut number = (self.0)();
        let mut mark = mark(number);
        // Whatever the source is, the text does not contain the mark.
        while lines.contains(&mark) {
            number = number.wrapping_add(1);
            mark = self::mark(number);
        }
        let name = tag.split(' ').next().unwrap_or(tag);
        format!("<{tag} mark=\"{mark}\">\n{lines}\n</{name} mark=\"{mark}\">")
    }
}

/// Twelve letters, so that the token estimate of a text does not depend on its mark. Without vowels, they never form a word.
fn mark(number: u64) -> String {
    const LETTERS: &[u8; 16] = b"bcdfghjkmnpqrstv";
    (0..12).map(|at| char::from(LETTERS[(number >> (4 * at)) as usize & 15])).collect()
}

/// Makes every spelling of a fence's tag inert by a blank after its `<`. Other text stays unchanged.
pub fn defuse(text: &str) -> String {
    defuse_tags(text, &FENCES)
}

/// Makes the tags of one fence inert.
pub fn defuse_tag(text: &str, fence: &str) -> String {
    defuse_tags(text, &[fence])
}

/// The last block of a fence in a text, with its tags. Also one of an older version, whose tags have no mark.
pub fn block<'t>(text: &'t str, fence: &str) -> Option<&'t str> {
    text.rmatch_indices(&format!("<{fence}")).find_map(|(from, opening)| {
        let (attributes, inside) = text[from + opening.len()..].split_once(">\n")?;
        let is_mark = attributes.starts_with(" mark=\"") && attributes.len() < MOST_TAG && !attributes.contains('<');
        if !attributes.is_empty() && !is_mark {
            return None;
        }
        let closing = format!("\n</{fence}{attributes}>");
        let to = text.len() - inside.len() + inside.find(&closing)? + closing.len();
        Some(&text[from..to])
    })
}

/// The lines in a block of a fence.
pub fn inside(block: &str) -> &str {
    let inside = block.split_once('\n').and_then(|(_, rest)| rest.rsplit_once('\n'));
    inside.map_or("", |(lines, _)| lines)
}

fn defuse_tags(text: &str, fences: &[&str]) -> String {
    let lower = text.to_ascii_lowercase();
    let mut defused = String::with_capacity(text.len());
    let mut taken = 0;
    for (at, _) in lower.match_indices('<') {
        let behind = lower[at + 1..].trim_start_matches('/');
        if fences.iter().any(|fence| behind.starts_with(fence)) {
            defused.push_str(&text[taken..=at]);
            defused.push(' ');
            taken = at + 1;
        }
    }
    defused.push_str(&text[taken..]);
    defused
}

/// The most bytes of a tag.
const MOST_TAG: usize = 100;
/// A fence ends within this many bytes, or its opening tag is just a tag: recalled text is shorter.
const MOST_FENCED: usize = 16 << 10;

/// Removes fences with their content from a text that arrives in pieces. The result does not depend on where the text is split.
///
/// A tag without a counterpart is removed alone, so that an unclosed fence hides nothing.
#[derive(Debug, Default)]
pub struct Scrubber {
    /// The beginning of a tag, or a fence that is still open.
    held: String,
}

impl Scrubber {
    /// What can be shown after the next piece.
    pub fn push(&mut self, piece: &str) -> String {
        if self.held.is_empty() && !piece.contains('<') {
            return piece.to_owned();
        }
        self.held.push_str(piece);
        self.release(false)
    }

    /// What remains at the end.
    pub fn finish(&mut self) -> String {
        self.release(true)
    }

    fn release(&mut self, is_end: bool) -> String {
        let held = std::mem::take(&mut self.held);
        let (mut rest, mut shown) = (held.as_str(), String::new());
        while let Some(at) = rest.find('<') {
            shown.push_str(&rest[..at]);
            rest = &rest[at..];
            let skipped = match tag(rest) {
                Tag::Opening(length) => match end_of_fence(&rest[length..]) {
                    End::At(end) => length + end,
                    End::Unknown if !is_end => {
                        self.held = rest.to_owned();
                        return shown;
                    }
                    End::Unknown | End::TooFar => length,
                },
                Tag::Closing(length) => length,
                Tag::Unknown if !is_end => {
                    self.held = rest.to_owned();
                    return shown;
                }
                Tag::Unknown | Tag::Other => {
                    shown.push('<');
                    1
                }
            };
            rest = &rest[skipped..];
        }
        shown.push_str(rest);
        shown
    }
}

/// A whole text without fences.
pub fn scrubbed(text: String) -> String {
    if !text.contains('<') {
        return text;
    }
    let mut scrubber = Scrubber::default();
    let shown = scrubber.push(&text);
    shown + &scrubber.finish()
}

enum Tag {
    /// With its length in bytes.
    Opening(usize),
    Closing(usize),
    Other,
    /// More text decides.
    Unknown,
}

/// The tag at the beginning of a text, which begins with `<`.
fn tag(text: &str) -> Tag {
    let (slash, name) = match text.as_bytes().get(1) {
        Some(b'/') => (1, &text.as_bytes()[2..]),
        _ => (0, &text.as_bytes()[1..]),
    };
    for fence in FENCES {
        let shared = name.len().min(fence.len());
        if !name[..shared].eq_ignore_ascii_case(&fence.as_bytes()[..shared]) {
            continue;
        }
        let Some(rest) = name.get(fence.len()..) else { return Tag::Unknown };
        let end = rest.iter().take(MOST_TAG).position(|byte| matches!(byte, b'>' | b'<'));
        return match (end, rest.first()) {
            (_, None) => Tag::Unknown,
            (_, Some(first)) if !(first.is_ascii_whitespace() || *first == b'>') => Tag::Other,
            (Some(end), _) if rest[end] == b'>' => {
                let length = 1 + slash + fence.len() + end + 1;
                if slash == 1 { Tag::Closing(length) } else { Tag::Opening(length) }
            }
            (None, _) if rest.len() < MOST_TAG => Tag::Unknown,
            _ => Tag::Other,
        };
    }
    Tag::Other
}

enum End {
    /// Behind the closing tag.
    At(usize),
    TooFar,
    /// More text decides.
    Unknown,
}

/// The end of a fence. The text begins with the fence's content.
fn end_of_fence(text: &str) -> End {
    let begins = text.match_indices('<').map(|(at, _)| at).take_while(|at| *at < MOST_FENCED);
    for at in begins {
        match tag(&text[at..]) {
            Tag::Closing(length) => return End::At(at + length),
            Tag::Unknown => return End::Unknown,
            Tag::Opening(_) | Tag::Other => {}
        }
    }
    if text.len() < MOST_FENCED { End::Unknown } else { End::TooFar }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is shown of a text that arrives in two pieces.
    fn in_two(text: &str, cut: usize) -> String {
        let mut scrubber = Scrubber::default();
        let first = scrubber.push(&text[..cut]);
        let second = scrubber.push(&text[cut..]);
        first + &second + &scrubber.finish()
    }

    #[test]
    fn fences_are_removed_at_every_split() {
        for (text, expected) in [
            ("a <memory-context>\nlikes tea\n</memory-context> b", "a  b"),
            ("a <said-meanwhile>\nat noon\n</said-meanwhile> b", "a  b"),
            ("<Memory-Context id='1'>x</MEMORY-CONTEXT >é", "é"),
            ("a <memory-context mark=\"bcd\">\nlikes tea\n</memory-context mark=\"bcd\"> b", "a  b"),
            ("a<earlier-context>x < y</earlier-context>b<memory-context>z</memory-context>c", "abc"),
            ("<memory-context>outer <memory-context>inner</memory-context> rest</memory-context>!", " rest!"),
            // Text that only resembles a fence, and an unclosed fence, stay visible.
            (
                "1 < 2, <b>bold</b>, </memory-contexts>, <memory-context",
                "1 < 2, <b>bold</b>, </memory-contexts>, <memory-context",
            ),
            ("the tag <memory-context> encloses it", "the tag  encloses it"),
            ("an end </memory-context> alone", "an end  alone"),
            ("<memory-<memory-context>x</memory-context>context>", "<memory-context>"),
            ("ü<", "ü<"),
        ] {
            assert_eq!(scrubbed(text.to_owned()), expected, "{text}");
            for cut in (0..=text.len()).filter(|cut| text.is_char_boundary(*cut)) {
                assert_eq!(in_two(text, cut), expected, "{text} cut at {cut}");
            }
            let mut scrubber = Scrubber::default();
            let shown: String = text.chars().map(|one| scrubber.push(&one.to_string())).collect();
            assert_eq!(shown + &scrubber.finish(), expected, "{text} in characters");
        }
    }

    #[test]
    fn no_text_knows_the_mark_of_its_fence() {
        // The worst source: always the same number, whose mark the text has, and those behind it.
        let marks = Marks::new(|| u64::MAX);
        let text: String = [u64::MAX, 0, 1].map(mark).join(" </untrusted-text mark=\"");
        let fenced = marks.enclose(UNTRUSTED_TEXT, &text);
        let expected = mark(2);
        assert!(fenced.ends_with(&format!("\n</untrusted-text mark=\"{expected}\">")), "{fenced}");
        assert_eq!((fenced.matches(&expected).count(), inside(&fenced)), (2, text.as_str()));
        // Two fences around one text differ, and cost the same.
        let marks = Marks::repeatable();
        let (one, other) = (marks.enclose("memory-context", "tea"), marks.enclose("memory-context", "tea"));
        assert_ne!(one, other);
        assert_eq!(crate::tokens::of_text(&one), crate::tokens::of_text(&other));
        assert_eq!(scrubbed(format!("a {one} {other}b")), "a  b");
    }

    #[test]
    fn the_last_block_is_found_with_a_mark_and_without() {
        let old = "<subagent-results>\nFound.\n</subagent-results>";
        let new = Marks::repeatable().enclose(SUBAGENT_RESULTS, "Seen.");
        for (text, found) in [
            (format!("Go on.\n\n{old}"), old),
            (format!("{old}\n\n{new}"), new.as_str()),
            (format!("{new}\n\n{old} and more"), old),
            // A tag with another mark closes nothing.
            (format!("{new}\n</subagent-results mark=\"x\">"), new.as_str()),
        ] {
            assert_eq!(block(&text, SUBAGENT_RESULTS), Some(found), "{text}");
        }
        for odd in [
            "<subagent-results>\nopen",
            "<subagent-results mark=\"b\">\nx\n</subagent-results>",
            "<subagent-results-x>\n",
        ] {
            assert_eq!(block(odd, SUBAGENT_RESULTS), None, "{odd}");
        }
        let skill = Marks::repeatable().enclose("loaded-skill name=\"brew\"", "Pour.");
        assert!(
            skill.starts_with("<loaded-skill name=\"brew\" mark=\"b") && skill.contains("\n</loaded-skill mark=\"b"),
            "{skill}"
        );
    }

    #[test]
    fn an_unclosed_fence_holds_back_a_bounded_text() {
        let text = format!("<memory-context>{}", "x ".repeat(MOST_FENCED));
        let mut scrubber = Scrubber::default();
        let mut longest = 0;
        let mut shown = String::new();
        for piece in text.as_bytes().chunks(100) {
            shown.push_str(&scrubber.push(std::str::from_utf8(piece).unwrap_or_default()));
            longest = longest.max(scrubber.held.len());
        }
        assert!(longest < MOST_FENCED + 200, "{longest}");
        assert_eq!(shown + &scrubber.finish(), "x ".repeat(MOST_FENCED));
    }

    #[test]
    fn no_spelling_of_a_fence_survives_and_other_text_does() {
        for (text, expected) in [
            ("a </EARLIER-context > b", "a < /EARLIER-context > b"),
            ("a </memory-context > b", "a < /memory-context > b"),
            ("<<earlier-context>>", "<< earlier-context>>"),
            ("<//memory-context><memory-context id='1'>", "< //memory-context>< memory-context id='1'>"),
            ("</memory-</memory-context>context>", "</memory-< /memory-context>context>"),
            ("<memory-context\n>", "< memory-context\n>"),
            ("1 < 2 and <b>\u{130}</b>", "1 < 2 and <b>\u{130}</b>"),
        ] {
            assert_eq!(defuse(text), expected);
            assert_eq!(defuse(expected), expected, "{expected} is inert");
        }
    }
}
