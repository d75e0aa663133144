//! The fences around text that the host adds to a message: recalled memories, quoted passages, and what the user said during
//! a turn. Such text comes from elsewhere. It must neither close its fence nor open another one. A model may repeat a fence in
//! its reply: there it is removed.

/// The fence around words of the user in a tool result.
pub const SAID_MEANWHILE: &str = "said-meanwhile";

/// The fence around results of subagents that worked in the background.
pub const SUBAGENT_RESULTS: &str = "subagent-results";

/// The fence around the text of a skill that the user called.
pub const LOADED_SKILL: &str = "loaded-skill";

/// The names of all fences.
const FENCES: [&str; 5] = ["earlier-context", "memory-context", SAID_MEANWHILE, SUBAGENT_RESULTS, LOADED_SKILL];

/// Makes every spelling of a fence's tag inert by a blank after its `<`. Other text stays unchanged.
pub fn defuse(text: &str) -> String {
    defuse_tags(text, &FENCES)
}

/// Makes the tags of one fence inert.
pub fn defuse_tag(text: &str, fence: &str) -> String {
    defuse_tags(text, &[fence])
}

/// The last block of a fence in a text, with its tags.
pub fn block<'t>(text: &'t str, fence: &str) -> Option<&'t str> {
    let (opening, closing) = (format!("<{fence}>\n"), format!("\n</{fence}>"));
    let from = text.rfind(&opening)?;
    let to = from + text[from..].find(&closing)? + closing.len();
    Some(&text[from..to])
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

/// Removes fences with their content from a text that arrives in pieces. What it gives out does not depend on the pieces.
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

/// Where the fence ends whose content begins the text.
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
            ("a<earlier-context>x < y</earlier-context>b<memory-context>z</memory-context>c", "abc"),
            ("<memory-context>outer <memory-context>inner</memory-context> rest</memory-context>!", " rest!"),
            // What only looks like a fence, or was not closed, hides nothing.
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
