//! Thinking that a model writes into its text, as many locally run models do.
//!
//! An opening tag counts only at the beginning of the reply, and its thinking ends at the closing tag of the same kind, because
//! thoughts may contain other tags and quote tags. Tags inside a text belong to the text, because the user may have asked about
//! them. If the thinking is never closed although the reply ended by itself, all of it is text.
//!
//! The harmony format marks every passage with its channel. If a reply begins with such a mark, all marks at the places that the
//! format allows count. The channel `final` is the text.
//!
//! The templates of some models write the opening tag into the prompt, so that the reply has only the closing one. Once the whole
//! text has arrived, [`unopened`] decides whether such a tag closes thinking or is only mentioned in the text.

mod tag;
mod unopened;

use self::tag::{Header, Mark, Opening, Tag};
pub(super) use self::unopened::unopened;

/// The most white space that is held back until the following text shows what it belongs to. Models do not write more.
const MOST_BLANKS: usize = 256;
/// The most bytes that are examined at once.
const LONGEST_LOOK: usize = 1 << 10;
/// Between two passages of thinking, or of text.
const BETWEEN: &str = "\n\n";

/// Separates thinking from text while both arrive.
#[derive(Debug, Default)]
pub(super) struct Inline {
    state: State,
    /// The bytes that may still turn out to be text or thinking.
    held: String,
    /// All thinking so far.
    thoughts: String,
    /// Everything since the last opening tag, with the tag.
    unclosed: String,
    /// The length of the thinking before the last opening tag.
    closed: usize,
    /// The length of that tag.
    opened: usize,
    /// Tags in the thinking that are open, and where in `unclosed` the last one was closed.
    open: usize,
    inner: Option<(usize, usize)>,
    /// Some of the text is out.
    said: bool,
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
enum State {
    /// Nothing but white space so far, or nothing but white space since the last thinking.
    #[default]
    Start,
    /// In thinking with this tag.
    Thinking(Tag),
    /// In a passage of the harmony format.
    Passage {
        is_text: bool,
    },
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
        // Held-back text is examined again with each tag.
        let (mut pieces, mut rest) = (Vec::new(), more);
        while !rest.is_empty() {
            let (next, behind) = rest.split_at(rest.floor_char_boundary(LONGEST_LOOK));
            self.held.push_str(next);
            pieces.append(&mut self.advance(false));
            rest = behind;
        }
        pieces
    }

    /// Sorts what is held back; all that can be sorted if the text has `ended`.
    fn advance(&mut self, ended: bool) -> Vec<Piece> {
        let mut pieces = Vec::new();
        loop {
            let goes_on = match self.state.clone() {
                State::Start => self.start(ended, &mut pieces),
                State::Thinking(tag) => self.think(&tag, ended, &mut pieces),
                State::Passage { is_text } => self.passage(is_text, ended, &mut pieces),
                State::Text => {
                    let text = std::mem::take(&mut self.held);
                    self.say(&text, &mut pieces);
                    false
                }
            };
            if !goes_on {
                return pieces;
            }
        }
    }

    fn say(&mut self, text: &str, pieces: &mut Vec<Piece>) {
        if !text.is_empty() {
            self.said = true;
            pieces.push(Piece::Text(text.to_owned()));
        }
    }

    /// Finds what the reply, or its text behind thinking, begins with. Whether the state changed.
    fn start(&mut self, ended: bool, pieces: &mut Vec<Piece>) -> bool {
        let begun = self.held.trim_start();
        let is_behind = self.is_behind();
        let (length, state) = match tag::opening(begun, is_behind) {
            Opening::Tag(tag, length) => (length, State::Thinking(tag)),
            Opening::Closing(length) => {
                // The end of thinking that had ended already.
                self.held = begun[length..].to_owned();
                return true;
            }
            Opening::Passage(header, length) => match header {
                Header::Text => {
                    if self.said {
                        pieces.push(Piece::Text(BETWEEN.to_owned()));
                    }
                    self.held = begun[length..].to_owned();
                    self.state = State::Passage { is_text: true };
                    return true;
                }
                // The server left this call in the text, so only the text can show it.
                Header::Call => {
                    let header = begun[..length].to_owned();
                    self.held = begun[length..].to_owned();
                    self.state = State::Passage { is_text: true };
                    self.say(&header, pieces);
                    return true;
                }
                Header::Thinking => (length, State::Passage { is_text: false }),
            },
            Opening::Maybe if !ended && self.held.len() <= MOST_BLANKS => return false,
            Opening::Maybe | Opening::None => {
                let text = self.rest_of_start();
                self.state = State::Text;
                self.say(&text, pieces);
                return true;
            }
        };
        begun[..length].clone_into(&mut self.unclosed);
        self.opened = length;
        self.held = begun[length..].to_owned();
        self.closed = self.thoughts.len();
        (self.open, self.inner, self.state) = (0, None, state);
        true
    }

    /// Whether there was thinking, or a mark of it.
    fn is_behind(&self) -> bool {
        !self.thoughts.is_empty() || !self.unclosed.is_empty()
    }

    /// The text that was held back where the reply, or its text behind thinking, begins.
    fn rest_of_start(&mut self) -> String {
        let held = std::mem::take(&mut self.held);
        // The blank lines behind thinking belong to the tag.
        if self.is_behind() { held.trim_start().to_owned() } else { held }
    }

    fn think(&mut self, tag: &Tag, ended: bool, pieces: &mut Vec<Piece>) -> bool {
        match tag.next(&self.held, &self.unclosed, ended) {
            Mark::None(at) => {
                self.add(at, pieces);
                false
            }
            Mark::Opening(at, length) => {
                self.open += 1;
                self.add(at + length, pieces);
                true
            }
            Mark::Closing(at, length) if self.open > 0 => {
                self.open -= 1;
                self.add(at + length, pieces);
                self.inner = Some((self.unclosed.len() - length, length));
                true
            }
            Mark::Closing(at, length) => {
                self.end(at, length, pieces);
                true
            }
        }
    }

    /// A passage of the harmony format up to its end. Whether the state changed.
    fn passage(&mut self, is_text: bool, ended: bool, pieces: &mut Vec<Piece>) -> bool {
        let (at, length, is_end) = tag::end_of_passage(&self.held, ended);
        if !is_text && is_end {
            self.end(at, length, pieces);
            return true;
        }
        if !is_text {
            self.add(at, pieces);
            return false;
        }
        let rest = self.held.split_off(at);
        let text = std::mem::replace(&mut self.held, rest);
        self.say(&text, pieces);
        if is_end {
            self.held.drain(..length);
            self.state = State::Start;
        }
        is_end
    }

    /// Ends the thinking at a tag.
    fn end(&mut self, at: usize, length: usize, pieces: &mut Vec<Piece>) {
        let rest = self.held.split_off(at + length);
        self.held.truncate(self.held[..at].trim_end().len());
        self.add(self.held.len(), pieces);
        self.held = rest;
        self.state = State::Start;
    }

    /// Adds the beginning of what is held back to the thinking, without the white space at its end.
    fn add(&mut self, at: usize, pieces: &mut Vec<Piece>) {
        let blanks = self.held[..at].trim_end().len();
        let at = if at - blanks > MOST_BLANKS { at } else { blanks };
        let rest = self.held.split_off(at);
        let thought = std::mem::replace(&mut self.held, rest);
        self.unclosed.push_str(&thought);
        let begins = self.thoughts.len() == self.closed;
        let thought = if begins { thought.trim_start() } else { &thought };
        if thought.is_empty() {
            return;
        }
        if begins && self.closed > 0 {
            self.thoughts.push_str(BETWEEN);
            pieces.push(Piece::Reasoning(BETWEEN.to_owned()));
        }
        self.thoughts.push_str(thought);
        pieces.push(Piece::Reasoning(thought.to_owned()));
    }

    /// The rest of the text at the end of the reply, from the bytes that were held back. If thinking was never closed although
    /// the reply ended by itself, all of it was text.
    pub(super) fn rest(&mut self, ended_by_itself: bool) -> String {
        let pieces = self.advance(true);
        let mut text: String = pieces
            .into_iter()
            .filter_map(|piece| match piece {
                Piece::Text(text) => Some(text),
                Piece::Reasoning(_) => None,
            })
            .collect();
        let is_thinking = matches!(self.state, State::Thinking(_) | State::Passage { is_text: false });
        if is_thinking {
            let unclosed = std::mem::take(&mut self.unclosed) + &std::mem::take(&mut self.held);
            if let Some((at, length)) = self.inner {
                // One of the tags inside the thinking was only mentioned. Everything after the last closing tag is text.
                self.thoughts.truncate(self.closed);
                self.thoughts.push_str(if self.closed > 0 { BETWEEN } else { "" });
                self.thoughts.push_str(unclosed[self.opened..at].trim());
                text.push_str(unclosed[at + length..].trim_start());
            } else if ended_by_itself && !self.said {
                self.thoughts.truncate(self.closed);
                text.push_str(&unclosed);
            } else {
                self.thoughts.truncate(self.thoughts.trim_end().len());
            }
        }
        self.state = State::Text;
        text
    }

    /// The thinking that was found.
    pub(super) fn into_thoughts(self) -> String {
        self.thoughts
    }
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
        // Tags in other spellings.
        ("<think >hm</think > so", "hm", "so"),
        ("<think type=\"deep\">hm</think\n>so", "hm", "so"),
        ("<thoughts>hm</thoughts>so", "hm", "so"),
        ("<any:Think>hm</any:think>so", "hm", "so"),
        ("<think about it> so", "", "<think about it> so"),
        ("<think/>so", "", "<think/>so"),
        ("<b>so</b>", "", "<b>so</b>"),
        ("<rethink>so</rethink>", "", "<rethink>so</rethink>"),
        // Tags in thinking.
        ("<think>a <think>b</think> c</think>so", "a <think>b</think> c", "so"),
        ("<think>\n<think>\nhm</think>\n\nso", "<think>\nhm", "so"),
        ("<think><think>hm</think></think>so", "<think>hm</think>", "so"),
        ("<think>hm</think></think>\nso", "hm", "so"),
        ("<think>They ask for <think> and </think>.</think>so", "They ask for <think> and", ".</think>so"),
        ("<think>They ask for `<think>` and `</think>`.</think>so", "They ask for `<think>` and `</think>`.", "so"),
        (
            "<think>They say \"</think>\" and <think> ends</think>so </think>",
            "They say \"</think>\" and <think> ends",
            "so </think>",
        ),
        ("<think>They run `ls`</think>`ls` lists", "They run `ls`", "`ls` lists"),
        ("<think>hm</thinking> on</think>so", "hm</thinking> on", "so"),
        ("<think>hm</think>The tag `</think>` closes", "hm", "The tag `</think>` closes"),
        // The marks of harmony.
        (
            "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>so<|return|>",
            "hm",
            "so",
        ),
        (
            "<|start|>assistant<|channel|>analysis<|message|>hm<|end|>\n<|start|>assistant<|channel|>final<|message|>so",
            "hm",
            "so",
        ),
        ("<|channel|>analysis<|message|>hm<|channel|>final <|constrain|>json<|message|>{}", "hm", "{}"),
        (
            "<|channel|>analysis<|message|>a<|end|><|channel|>commentary<|message|>b<|end|><|channel|>final<|message|>so",
            "a\n\nb",
            "so",
        ),
        ("<|channel|>final<|message|>so<|end|>", "", "so"),
        ("<|start|>assistant<|message|>so<|end|>", "", "so"),
        ("<|channel|>final<|message|>`<|end|>` and <|start|> are marks", "", "`<|end|>` and <|start|> are marks"),
        ("<|channel|>analysis<|message|>hm <|end|> on<|end|>", "hm <|end|> on", ""),
        ("<|channel|>analysis<|message|>never closed", "", "<|channel|>analysis<|message|>never closed"),
        (
            "<|channel|>commentary to=functions.ls <|constrain|>json<|message|>{}<|call|>",
            "",
            "<|channel|>commentary to=functions.ls <|constrain|>json<|message|>{}",
        ),
        (
            "The mark <|channel|>final<|message|> begins it.<|end|>",
            "",
            "The mark <|channel|>final<|message|> begins it.<|end|>",
        ),
        ("<|channel|> is a mark", "", "<|channel|> is a mark"),
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

    const WORDS: &[&str] = &[
        "a",
        " ",
        "\n",
        "`",
        "<think>",
        "</think>",
        "<think ",
        "<|start|>",
        "assistant",
        "<|channel|>",
        "final",
        "analysis",
        "<|message|>",
        "<|end|>",
        "<|return|>",
        "[think]",
        "[/think]",
        "<",
        ">",
    ];

    /// A text without everything from a mark of harmony to the end of a header in the same line.
    fn without_headers(text: &str) -> String {
        let mut parts: Vec<&str> = text.split("<|message|>").collect();
        let last = parts.pop().unwrap_or_default();
        let kept = parts.into_iter().map(|part| {
            let line = part.rfind('\n').map_or(0, |at| at + 1);
            let header = ["<|start|>", "<|channel|>"].iter().filter_map(|mark| part[line..].find(mark)).min();
            &part[..header.map_or(part.len(), |at| line + at)]
        });
        kept.chain([last]).collect()
    }

    proptest! {
        #[test]
        fn a_reply_gives_the_same_however_it_is_split(
            which in 0..REPLIES.len(), cuts in proptest::collection::vec(0usize..120, 0..8), by_itself in any::<bool>(),
        ) {
            let reply = REPLIES[which].0;
            let mut at: Vec<usize> = cuts.into_iter().map(|cut| reply.floor_char_boundary(cut)).collect();
            at.extend([0, reply.len()]);
            at.sort_unstable();
            let pieces: Vec<&str> = at.windows(2).map(|pair| &reply[pair[0]..pair[1]]).collect();
            prop_assert_eq!(separated(&pieces, by_itself), separated(&[reply], by_itself));
        }

        #[test]
        fn nothing_of_a_text_is_lost(
            text in prop_oneof!["[<>/think a\n`]{0,60}".boxed(), proptest::collection::vec(proptest::sample::select(WORDS), 0..12).prop_map(|words| words.concat()).boxed()],
            size in 1usize..5,
        ) {
            let pieces: Vec<String> = text.as_bytes().chunks(size).map(|piece| String::from_utf8_lossy(piece).into_owned()).collect();
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            let (thoughts, said) = separated(&pieces, true);
            let letters = |text: &str| text.matches('a').count();
            let kept = letters(&thoughts) + letters(&said);
            // A header is not part of the text.
            prop_assert!(letters(&without_headers(&text)) <= kept && kept <= letters(&text), "{thoughts:?} {said:?}");
        }
    }
}
