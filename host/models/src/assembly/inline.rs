//! Thinking that a model writes into its text, as many models on own machines do.
//!
//! An opening tag counts only where the reply begins, and its thinking ends at the first closing tag. Tags amid a text belong to the
//! text: the user may have asked about them. If the thinking is never closed, although the reply ended by itself, all of it is text.
//!
//! The templates of some models write the opening tag into the prompt, so that the reply has only the closing one. Such a tag is told
//! from a word of the text by [`unopened`], once the whole text is there.

/// Opening and closing tags, in lower case.
const TAGS: &[(&str, &str)] = &[
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<seed:think>", "</seed:think>"),
    ("<mm:think>", "</mm:think>"),
    ("[think]", "[/think]"),
    ("◁think▷", "◁/think▷"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|channel>thought", "<channel|>"),
];
/// White space that is held back until the text behind it tells what it belongs to. Nobody writes more.
const MOST_BLANKS: usize = 256;
/// Between two passages of thinking.
const BETWEEN: &str = "\n\n";

/// Separates thinking from text while both arrive.
#[derive(Debug, Default)]
pub(super) struct Inline {
    state: State,
    /// What is not yet known to be text or thinking.
    held: String,
    /// All thinking so far.
    thoughts: String,
    /// What came since the last opening tag, with the tag.
    unclosed: String,
    /// The length of the thinking before the last opening tag.
    closed: usize,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing but white space so far, or nothing but white space since the last thinking.
    #[default]
    Start,
    /// In thinking that ends with this tag.
    Thinking(&'static str),
    Text,
}

/// What a piece of a text turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    Reasoning(String),
}

impl Inline {
    /// Takes more of the text of a reply, in the order in which it is written.
    pub(super) fn take(&mut self, more: &str) -> Vec<Piece> {
        if self.state == State::Text {
            return vec![Piece::Text(more.to_owned())];
        }
        self.held.push_str(more);
        let mut pieces = Vec::new();
        loop {
            let before = self.state;
            match self.state {
                State::Start => self.start(&mut pieces),
                State::Thinking(closing) => self.think(closing, &mut pieces),
                State::Text => break,
            }
            if self.state == before {
                break;
            }
        }
        pieces
    }

    fn start(&mut self, pieces: &mut Vec<Piece>) {
        let begun = self.held.trim_start();
        let lower = begun.to_ascii_lowercase();
        if let Some((opening, closing)) = TAGS.iter().find(|(opening, _)| lower.starts_with(opening)) {
            let rest = begun[opening.len()..].to_owned();
            begun[..opening.len()].clone_into(&mut self.unclosed);
            self.closed = self.thoughts.len();
            self.held = rest;
            self.state = State::Thinking(closing);
            return;
        }
        let may_open = TAGS.iter().any(|(opening, _)| opening.starts_with(&lower));
        if !may_open || self.held.len() > MOST_BLANKS {
            let text = self.rest_of_start();
            self.state = State::Text;
            if !text.is_empty() {
                pieces.push(Piece::Text(text));
            }
        }
    }

    /// The text that was held back where the reply, or its text behind thinking, begins.
    fn rest_of_start(&mut self) -> String {
        let held = std::mem::take(&mut self.held);
        // The blank lines behind thinking belong to the tag.
        if self.thoughts.is_empty() && self.unclosed.is_empty() { held } else { held.trim_start().to_owned() }
    }

    fn think(&mut self, closing: &'static str, pieces: &mut Vec<Piece>) {
        let lower = self.held.to_ascii_lowercase();
        let (thought, rest) = match lower.find(closing) {
            Some(at) => {
                let rest = self.held.split_off(at);
                self.state = State::Start;
                (std::mem::take(&mut self.held).trim_end().to_owned(), rest[closing.len()..].to_owned())
            }
            None => {
                let at = self.held.len() - begun(&lower, closing);
                let blanks = self.held[..at].trim_end().len();
                let at = if at - blanks > MOST_BLANKS { at } else { blanks };
                let rest = self.held.split_off(at);
                (std::mem::take(&mut self.held), rest)
            }
        };
        self.unclosed.push_str(&thought);
        let begins = self.thoughts.len() == self.closed;
        let thought = if begins { thought.trim_start() } else { &thought };
        if !thought.is_empty() {
            if begins && self.closed > 0 {
                self.thoughts.push_str(BETWEEN);
                pieces.push(Piece::Reasoning(BETWEEN.to_owned()));
            }
            self.thoughts.push_str(thought);
            pieces.push(Piece::Reasoning(thought.to_owned()));
        }
        self.held = rest;
    }

    /// What was held back when the reply ended: the rest of its text. If its thinking was never closed, although the reply ended by
    /// itself, all of it is text.
    pub(super) fn rest(&mut self, ended_by_itself: bool) -> String {
        match self.state {
            State::Text => String::new(),
            State::Start => {
                self.state = State::Text;
                self.rest_of_start()
            }
            State::Thinking(_) if ended_by_itself => {
                self.state = State::Text;
                let text = std::mem::take(&mut self.unclosed) + &std::mem::take(&mut self.held);
                self.thoughts.truncate(self.closed);
                text
            }
            State::Thinking(_) => {
                self.thoughts.push_str(self.held.trim_end());
                self.held.clear();
                String::new()
            }
        }
    }

    /// The thinking that was found.
    pub(super) fn into_thoughts(self) -> String {
        self.thoughts
    }
}

/// How many bytes at the end of a text begin a tag.
fn begun(text: &str, tag: &str) -> usize {
    (1..tag.len())
        .rev()
        .filter(|length| tag.is_char_boundary(*length))
        .find(|length| text.ends_with(&tag[..*length]))
        .unwrap_or(0)
}

/// Separates thinking whose opening tag was in the prompt: the thinking, and the text behind its closing tag.
pub(super) fn unopened(text: &str) -> Option<(&str, &str)> {
    let lower = text.to_ascii_lowercase();
    let closings = TAGS.iter().filter_map(|(_, closing)| Some((lower.find(closing)?, closing.len())));
    let (at, length) = closings.min()?;
    // A text that names the opening tag is about tags.
    if TAGS.iter().any(|(opening, _)| lower[..at].contains(opening)) {
        return None;
    }
    let (before, behind) = (&text[..at], &text[at + length..]);
    (!is_code(before) && is_apart(before, behind)).then(|| (before.trim(), behind.trim_start()))
}

/// Whether the place behind this text is in a block or a span of code.
fn is_code(before: &str) -> bool {
    let fences = before.lines().filter(|line| line.trim_start().starts_with("```")).count();
    let line = before.rsplit('\n').next().unwrap_or_default();
    fences % 2 == 1 || line.matches('`').count() % 2 == 1 || line.starts_with("    ") || line.starts_with('\t')
}

/// Whether a tag between these texts separates them, and is no word of a sentence or a quotation.
fn is_apart(before: &str, behind: &str) -> bool {
    const BLANK: [char; 2] = [' ', '\t'];
    let said = before.trim_end_matches(BLANK);
    let is_spaced = said.len() < before.len();
    let (last, next) = (said.chars().next_back(), behind.chars().next());
    let begins_line = last.is_none_or(|last| last == '\n');
    let ends_line = behind.trim_start_matches(BLANK).chars().next().is_none_or(|next| matches!(next, '\n' | '\r'));
    let ends_sentence = last.is_some_and(|last| ".!?…。！？".contains(last));
    let is_glued = next.is_some_and(|next| next.is_alphanumeric() || "#*".contains(next) && last != Some(next))
        && !last.is_some_and(|last| "([{<“‘«„`'\"".contains(last));
    begins_line || ends_line && (!is_spaced || ends_sentence) || is_glued && !is_spaced
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reasoning and text of a reply that ended by itself or was cut.
    fn separated(pieces: &[&str], ended_by_itself: bool) -> (String, String) {
        let mut inline = Inline::default();
        let mut text = String::new();
        for piece in pieces.iter().flat_map(|piece| inline.take(piece)) {
            if let Piece::Text(more) = piece {
                text.push_str(&more);
            }
        }
        text.push_str(&inline.rest(ended_by_itself));
        (inline.into_thoughts(), text)
    }

    const REPLIES: &[(&str, &str, &str)] = &[
        ("<think>\nhm\n</think>\n\nAnswer.", "hm", "Answer."),
        ("\n <THINK>hm</Think>Answer", "hm", "Answer"),
        ("<think>\n\n</think>\n\nAnswer.", "", "Answer."),
        ("<think>a</think>\n<think>b</think>c", "a\n\nb", "c"),
        ("[THINK]hm[/THINK]so", "hm", "so"),
        ("◁think▷grüße◁/think▷ja", "grüße", "ja"),
        ("<thinking>x < y </thin</thinking> so", "x < y </thin", "so"),
        ("<think>hm</think>", "hm", ""),
        ("  plain", "", "  plain"),
        ("`<think>` is a tag", "", "`<think>` is a tag"),
        ("The tag <think> opens and </think> closes.", "", "The tag <think> opens and </think> closes."),
        ("<thin ice", "", "<thin ice"),
        ("<think>never closed", "", "<think>never closed"),
        ("<th", "", "<th"),
        ("", "", ""),
        (" \n", "", " \n"),
    ];

    #[test]
    fn thinking_at_the_beginning_is_told_from_text() {
        for (reply, thoughts, text) in REPLIES {
            assert_eq!(separated(&[reply], true), ((*thoughts).to_owned(), (*text).to_owned()), "{reply:?}");
        }
        assert_eq!(separated(&["<think>cut o"], false), ("cut o".to_owned(), String::new()));
        assert_eq!(separated(&["<think>cut </thi"], false), ("cut </thi".to_owned(), String::new()));
    }

    #[test]
    fn a_closing_tag_alone_separates_unless_the_text_is_about_it() {
        for (text, expected) in [
            ("hm\n</think>\n\nAnswer.", Some(("hm", "Answer."))),
            ("hm.</think>Answer", Some(("hm.", "Answer"))),
            ("hm. </think>\n\nAnswer", Some(("hm.", "Answer"))),
            ("</think>\n\nAnswer", Some(("", "Answer"))),
            ("hm\n</think>", Some(("hm", ""))),
            ("a\n</think>\nb `</think>`", Some(("a", "b `</think>`"))),
            ("Write `</think>` there", None),
            ("The word </think> closes it", None),
            ("It ends with \"</think>\".", None),
            ("<think> opens and\n</think>\ncloses", None),
            ("```\nhm\n</think>\n```\n", None),
            ("```\nx\n```\nhm\n</think>\nso", Some(("```\nx\n```\nhm", "so"))),
            ("    </think>\n", None),
            ("The closing tag is </think>", None),
            ("Okay.</think>**So**", Some(("Okay.", "**So**"))),
            ("**</think>** is bold", None),
            ("none", None),
        ] {
            assert_eq!(unopened(text), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn a_reply_gives_the_same_however_it_is_split(
            which in 0..REPLIES.len(), cuts in proptest::collection::vec(0usize..40, 0..8), by_itself in any::<bool>(),
        ) {
            let reply = REPLIES[which].0;
            let mut at: Vec<usize> = cuts.into_iter().map(|cut| reply.floor_char_boundary(cut)).collect();
            at.extend([0, reply.len()]);
            at.sort_unstable();
            let pieces: Vec<&str> = at.windows(2).map(|pair| &reply[pair[0]..pair[1]]).collect();
            prop_assert_eq!(separated(&pieces, by_itself), separated(&[reply], by_itself));
        }

        #[test]
        fn nothing_of_a_text_is_lost(text in "[<>/think a\n`]{0,60}", size in 1usize..5) {
            let pieces: Vec<String> = text.as_bytes().chunks(size).map(|piece| String::from_utf8_lossy(piece).into_owned()).collect();
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            let (thoughts, said) = separated(&pieces, true);
            let letters = |text: &str| text.matches('a').count();
            prop_assert_eq!(letters(&thoughts) + letters(&said), letters(&text));
        }
    }
}
