//! Which pictures of a conversation a provider takes in one request. Anthropic refuses a whole request for one picture too many
//! or too large, and would refuse all later ones, so such pictures are named in words.
//!
//! A picture is left out for good, and the oldest go in batches: each change of what is left out makes the provider read
//! everything after it anew.

use hermes_conversation::{Part, Shown};
use hermes_models::ApiMode;

use super::RequestSettings;

/// The limits of `anthropic_messages` ([vision](https://platform.claude.com/docs/en/build-with-claude/vision)): pixels on a side,
/// and bytes of a picture in base64.
const MOST_SIDE: u32 = 8_000;
const MOST_BYTES: u64 = 5 << 20;
/// Pictures in a request, and how many there may be beside one that is larger than so many pixels on a side.
const MOST: usize = 100;
const MOST_BESIDE_LARGE: usize = 20;
const LARGE_SIDE: u32 = 2_000;
/// Bytes of all pictures. A request has at most 32 MB, with all texts.
const MOST_IN_ALL: u64 = 24 << 20;
/// The oldest pictures are left out in so many, or in so many bytes.
const BATCH: usize = 10;
const BATCH_BYTES: u64 = 8 << 20;

/// The pictures of a conversation that were looked at, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Album {
    pictures: Vec<Picture>,
    /// How many of the oldest are left out.
    left_out: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Picture {
    /// The longer side in pixels; 0 if it is not known.
    side: u32,
    /// Bytes in base64; 0 for an address.
    bytes: u64,
}

impl Picture {
    /// Why the provider refuses it even alone.
    fn flaw(self) -> Option<&'static str> {
        match self {
            Self { side, .. } if side > MOST_SIDE => Some("it has more than 8,000 pixels on a side"),
            Self { bytes, .. } if bytes > MOST_BYTES => Some("it has more than 3.7 MB"),
            _ => None,
        }
    }
}

impl Album {
    /// For a conversation of these messages. Nothing is looked at yet.
    pub(super) fn of(terms: &RequestSettings, messages: &[Shown]) -> Self {
        Self { pictures: Vec::new(), left_out: left_out(&pictures(terms, messages)) }
    }

    /// Whether further messages change what is left out of the earlier ones.
    pub(super) fn outgrows(&self, terms: &RequestSettings, messages: &[Shown]) -> bool {
        let new = pictures(terms, messages);
        !new.is_empty() && left_out(&[&self.pictures[..], &new].concat()) != self.left_out
    }

    /// Replaces the pictures of the next message that are not sent by words.
    pub(super) fn look_at(&mut self, terms: &RequestSettings, message: &mut Shown) {
        if !limits(terms, message) {
            return;
        }
        // A message without media is sent as its text.
        let text = &mut message.content;
        for part in message.parts.iter_mut() {
            match part {
                Part::ToolResult(result) => result.parts.iter_mut().for_each(|part| self.judge(part, text)),
                part => self.judge(part, text),
            }
        }
    }

    fn judge(&mut self, part: &mut Part, text: &mut String) {
        let Some(picture) = picture(part) else { return };
        let is_old = self.pictures.len() < self.left_out;
        self.pictures.push(picture);
        let why = picture.flaw().or_else(|| is_old.then_some("a request takes only so many, and newer ones are sent"));
        if let Some(why) = why {
            let note = format!("{} [This picture is not sent: {why}.]", part.mention().unwrap_or_default());
            text.push_str(if text.is_empty() { "" } else { "\n" });
            text.push_str(&note);
            *part = Part::text(note);
        }
    }
}

/// Whether a message is one whose pictures count.
fn limits(terms: &RequestSettings, message: &Shown) -> bool {
    let sees_images = || hermes_models::sees_images(&terms.model.provider, &terms.model.name) != Some(false);
    terms.style.mode == ApiMode::AnthropicMessages && terms.style.takes(message) && sees_images()
}

fn pictures(terms: &RequestSettings, messages: &[Shown]) -> Vec<Picture> {
    let messages = messages.iter().filter(|message| limits(terms, message));
    let parts = messages.flat_map(|message| &message.parts).flat_map(|part| match part {
        Part::ToolResult(result) => result.parts.as_slice(),
        part => std::slice::from_ref(part),
    });
    parts.filter_map(picture).collect()
}

fn picture(part: &Part) -> Option<Picture> {
    let Part::Image(media) = part else { return None };
    let side = media.width.max(media.height).unwrap_or(0);
    let bytes = media.blob().map_or(0, |blob| blob.size.div_ceil(3) * 4);
    Some(Picture { side, bytes })
}

/// How many of the oldest pictures must be left out.
fn left_out(pictures: &[Picture]) -> usize {
    let sent = |picture: &&Picture| picture.flaw().is_none();
    let all: u64 = pictures.iter().filter(sent).map(|picture| picture.bytes).sum();
    let excess = all.saturating_sub(MOST_IN_ALL).div_ceil(BATCH_BYTES) * BATCH_BYTES;
    let (mut dropped, mut by_bytes) = (0, 0);
    while dropped < excess && by_bytes < pictures.len() {
        let picture = pictures[by_bytes];
        dropped += if picture.flaw().is_none() { picture.bytes } else { 0 };
        by_bytes += 1;
    }
    let fits = |from: usize| {
        let rest = || pictures[from..].iter().filter(sent);
        let most = if rest().any(|picture| picture.side > LARGE_SIDE) { MOST_BESIDE_LARGE } else { MOST };
        rest().count() <= most
    };
    let batches = (0..=pictures.len().div_ceil(BATCH)).map(|batch| (batch * BATCH).min(pictures.len()));
    let by_count = batches.into_iter().find(|from| fits(*from)).unwrap_or(pictures.len());
    by_bytes.max(by_count)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Picture = Picture { side: 1_000, bytes: 1_000 };
    const LARGE: Picture = Picture { side: 2_500, bytes: 1_000 };
    const HEAVY: Picture = Picture { side: 1_000, bytes: 4 << 20 };

    #[test]
    fn the_oldest_pictures_are_left_out_in_batches() {
        for (count, expected) in [(0, 0), (100, 0), (101, 10), (110, 10), (111, 20), (200, 100)] {
            assert_eq!(left_out(&vec![SMALL; count]), expected, "{count}");
        }
    }

    #[test]
    fn a_large_picture_may_have_few_beside_it() {
        let with_large = |small: usize, at: usize| {
            let mut all = vec![SMALL; small];
            all.insert(at, LARGE);
            left_out(&all)
        };
        assert_eq!(with_large(19, 0), 0);
        // An old large picture goes; the newest one stays, and few others with it.
        assert_eq!((with_large(20, 0), with_large(20, 20), with_large(60, 60)), (10, 10, 50));
        assert_eq!(with_large(60, 12), 20);
    }

    #[test]
    fn all_pictures_together_leave_room_for_the_texts() {
        for (count, expected) in [(6, 0), (7, 2), (8, 2), (9, 4)] {
            assert_eq!(left_out(&vec![HEAVY; count]), expected, "{count}");
        }
    }

    #[test]
    fn a_picture_that_is_refused_alone_counts_for_nothing() {
        let huge = Picture { side: 9_000, bytes: 1 };
        let heavy = Picture { side: 1, bytes: (5 << 20) + 1 };
        assert!(huge.flaw().is_some() && heavy.flaw().is_some() && LARGE.flaw().is_none());
        assert_eq!(left_out(&[vec![huge; 30], vec![SMALL; 100]].concat()), 0);
        assert_eq!(left_out(&[huge; 150]), 0);
    }
}
