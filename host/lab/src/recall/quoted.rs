//! Which messages of a dialogue a text shows, whatever surrounds or cuts them.

use std::collections::BTreeSet;

use super::Dialogue;

/// The fewest characters of a message that counts as shown when a text contains the whole of it.
const WHOLE: usize = 16;
/// The fewest characters of a piece of text that shows the message that contains it.
const PIECE: usize = 24;
/// A memory may put labels before the words of a message: a time, a name, a mark. At most this many are removed, one after the
/// other.
const LABELS: usize = 4;

/// The texts of a dialogue's messages, with blanks made equal.
pub(super) struct Texts(Vec<String>);

impl Texts {
    pub(super) fn of(dialogue: &Dialogue) -> Self {
        Self(dialogue.messages.iter().map(|message| even(&message.text)).collect())
    }

    /// The messages that a text contains, and those of which it contains a piece of a line.
    pub(super) fn shown_in(&self, text: &str) -> BTreeSet<usize> {
        let whole = even(text);
        let is_inside = |message: &String| is_long(message, WHOLE) && whole.contains(message.as_str());
        let mut shown: BTreeSet<usize> =
            (0..self.0.len()).filter(|at| self.0.get(*at).is_some_and(is_inside)).collect();
        let mut known = BTreeSet::new();
        for piece in text.lines().flat_map(|line| line.split('…')).map(even) {
            for words in unlabelled(&piece).filter(|words| is_long(words, PIECE)) {
                if !known.insert(words.to_owned()) {
                    continue;
                }
                let before = shown.len();
                let contains = |at: &usize| self.0.get(*at).is_some_and(|message| message.contains(words));
                shown.extend((0..self.0.len()).filter(contains));
                if shown.len() > before {
                    break;
                }
            }
        }
        shown
    }
}

fn is_long(text: &str, least: usize) -> bool {
    text.chars().nth(least - 1).is_some()
}

/// The text with one blank between words.
fn even(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The piece itself, then the piece without its first label, without its first two, and so on.
fn unlabelled(piece: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(piece), |text| without_label(text)).take(LABELS + 1)
}

fn without_label(text: &str) -> Option<&str> {
    let ends = [": ", "] ", "| ", "- ", ") "].iter().filter_map(|mark| Some(text.find(mark)? + mark.len()));
    text.get(ends.min()?..)
}

#[cfg(test)]
mod tests {
    use super::super::{Collection, Utterance};
    use super::*;

    #[test]
    fn a_text_shows_whole_messages_and_pieces_of_them() {
        let said = [
            "The ferry is called Albatross.",
            "Yes.",
            "Lanterns burned  through the night,\nand nobody knew why they had been lit so early.",
            "Nobody asked.",
        ];
        let messages = said.iter().map(|text| Utterance {
            role: hermes_conversation::Role::User,
            text: (*text).to_owned(),
            said_at: 0,
            session: 0,
        });
        let dialogue = Dialogue {
            name: String::new(),
            collection: Collection::LoCoMo,
            messages: messages.collect(),
            questions: Vec::new(),
            notes: Vec::new(),
        };
        let texts = Texts::of(&dialogue);
        let shown = |text: &str| texts.shown_in(text).into_iter().collect::<Vec<_>>();
        assert_eq!(shown("On Monday Ada said: The ferry is called\nAlbatross. Yes."), [0]);
        assert_eq!(shown("- [2023-05-02] Ada: …nobody knew why they had been lit…"), [2]);
        assert_eq!(shown("Yes. Nobody asked. A ferry with lanterns."), Vec::<usize>::new());
    }
}
