//! Token estimates, for use before a provider has counted.
//!
//! One estimate is used everywhere. It has to be close for prose, code and scripts without spaces, and rather too high
//! than too low: the common rule of four characters per token is three times too low for Chinese. A host that has a
//! provider's count scales the estimate by it.

use crate::{Draft, Excerpt, Message, Part, Summary, ToolCall};

/// Tokens that a provider adds to each message for role and separators.
const PER_MESSAGE: u32 = 5;
/// The host's frame around a summary, and the reply that may have to follow it.
const PER_SUMMARY: u32 = 50;
/// The longer frame of the first of several consecutive summaries.
pub(crate) const FIRST_SUMMARY: u32 = 60;

/// Estimate for a text.
///
/// Words of ASCII letters cost a token for every six letters or part of six, digits one for three, other signs one
/// each, runs of blanks nothing when single; letters of other alphabets cost a token for two, signs of
/// scripts without spaces one each.
pub fn of_text(text: &str) -> u32 {
    let mut tokens = 0u32;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let run = Run::of(first);
        let (bytes, length) = if first.is_ascii() {
            // Nearly all text is ASCII, and a byte is enough to classify it.
            let bytes = rest.bytes().position(|byte| Run::ASCII[usize::from(byte)] != run).unwrap_or(rest.len());
            (bytes, bytes)
        } else {
            let alike = rest.chars().take_while(|character| Run::of(*character) == run);
            alike.fold((0, 0), |(bytes, length), character| (bytes + character.len_utf8(), length + 1))
        };
        tokens = tokens.saturating_add(run.cost(u32::try_from(length).unwrap_or(u32::MAX)));
        rest = &rest[bytes..];
    }
    tokens
}

/// The most bytes of a trimmed text that [`of_text`] counts as at most so many tokens. Nothing is cheaper than a long run of
/// blanks between two letters: eight bytes for a token.
pub fn longest_text(tokens: u32) -> usize {
    (tokens as usize).saturating_mul(9)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Run {
    Letters,
    Digits,
    Blank,
    Sign,
    Foreign,
    Dense,
}

impl Run {
    /// The classes by byte. All bytes above ASCII share a class of their own.
    const ASCII: [Self; 256] = {
        let mut runs = [Self::Dense; 256];
        let mut byte = 0;
        while byte < 0x80 {
            runs[byte] = Self::of(byte as u8 as char);
            byte += 1;
        }
        runs
    };

    const fn of(character: char) -> Self {
        match character {
            'a'..='z' | 'A'..='Z' => Run::Letters,
            '0'..='9' => Run::Digits,
            ' ' | '\t' | '\n' | '\r' => Run::Blank,
            '\0'..='\u{7f}' => Run::Sign,
            // Latin with marks, Greek, Cyrillic, Hebrew, Arabic.
            '\u{80}'..='\u{8ff}' => Run::Foreign,
            _ => Run::Dense,
        }
    }

    fn cost(self, length: u32) -> u32 {
        match self {
            Run::Letters => length.div_ceil(6),
            Run::Digits => length.div_ceil(3),
            // A single blank belongs to the next word; indentation costs little.
            Run::Blank => (length - 1).div_ceil(8),
            Run::Sign => length.div_ceil(2),
            Run::Foreign => length.div_ceil(2),
            Run::Dense => length,
        }
    }
}

fn of_calls(calls: &[ToolCall]) -> u32 {
    calls.iter().map(|call| of_text(&call.name) + of_text(&call.arguments) + 12).sum()
}

fn of_linkage(message: &Draft) -> u32 {
    PER_MESSAGE + message.tool_call_id.as_ref().map_or(0, |_| 8)
}

/// Tokens of a picture of unknown size.
const UNKNOWN_IMAGE: u32 = 1_500;
/// The minimum tokens of a document per byte: the text of a page is a small part of its file.
const BYTES_PER_FILE_TOKEN: u64 = 20;

/// A rule by which a provider counts a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageRule {
    /// By area: a token for 750 pixels, 1,600 at most.
    Area,
    /// 85, and 170 for each tile of 512 by 512 pixels, after the picture was made to fit 2,048 pixels and its shorter side
    /// 768.
    Tiles,
}

/// Estimate for a picture by a provider's rule; 1,500 where its size is unknown.
pub fn of_image(rule: ImageRule, size: Option<(u32, u32)>) -> u32 {
    let Some((width, height)) = size.filter(|(width, height)| *width > 0 && *height > 0) else { return UNKNOWN_IMAGE };
    match rule {
        ImageRule::Area => {
            let tokens = (u64::from(width) * u64::from(height)).div_ceil(750).min(1_600);
            u32::try_from(tokens).unwrap_or(1_600)
        }
        ImageRule::Tiles => {
            let (width, height) = (f64::from(width), f64::from(height));
            let fit = (2_048.0 / width.max(height)).min(1.0);
            let fit = fit * (768.0 / (width.min(height) * fit)).min(1.0);
            let tiles = |side: f64| (side * fit / 512.0).ceil().max(1.0) as u32;
            85 + 170 * tiles(width) * tiles(height)
        }
    }
}

/// Uses the higher rule: any model may read the conversation next.
fn of_media(message: &Draft) -> u32 {
    of_parts(&message.parts)
}

/// Estimate for the pictures, files and payloads among parts, also in results; text is not counted.
pub fn of_parts(parts: &[Part]) -> u32 {
    let inner = parts.iter().flat_map(|part| match part {
        Part::ToolResult(result) => result.parts.as_slice(),
        other => std::slice::from_ref(other),
    });
    inner.map(of_part).fold(0, u32::saturating_add)
}

fn of_part(part: &Part) -> u32 {
    match part {
        Part::Image(image) => {
            let size = image.width.zip(image.height);
            of_image(ImageRule::Area, size).max(of_image(ImageRule::Tiles, size))
        }
        Part::File(file) => {
            let bytes = file.blob().map_or(0, |blob| blob.size);
            u32::try_from(bytes / BYTES_PER_FILE_TOKEN).unwrap_or(u32::MAX).max(UNKNOWN_IMAGE)
        }
        // The provider counts it as a part of the context.
        part => part.payload().map_or(0, |payload| u32::try_from(payload.data.len() / 4).unwrap_or(u32::MAX)),
    }
}

/// Estimate for a message as it is sent.
pub fn of_message(message: &Message) -> u32 {
    of_draft(&message.draft)
}

/// Estimate for a message that is not stored yet.
pub fn of_draft(message: &Draft) -> u32 {
    let said = of_linkage(message) + of_text(message.text_sent()) + of_calls(&message.tool_calls);
    said.saturating_add(of_media(message))
}

/// Estimate for a shortened message.
pub fn of_excerpt(message: &Message, excerpt: &Excerpt) -> u32 {
    let text = crate::excerpt::excerpt_text(message, excerpt);
    let calls = crate::excerpt::shortened_calls(message, excerpt);
    let said = of_linkage(message) + of_text(&text) + of_calls(&calls);
    // A shortened message has no payloads, and pictures only if they stay.
    let kept = message.inner_parts().filter(|part| excerpt.keep_images && part.media().is_some());
    kept.map(of_part).fold(said, u32::saturating_add)
}

/// Estimate for a summary in its frame, after another one.
pub fn of_summary(summary: &Summary) -> u32 {
    PER_SUMMARY + of_text(&summary.content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_near_one_token_for_four_to_five_characters() {
        let text = "The quick brown fox jumps over the lazy dog, and then it rests in the warm afternoon sun.";
        let tokens = of_text(text) as usize;
        assert!(tokens >= text.len() / 5 && tokens <= text.len() / 3, "{tokens} for {}", text.len());
    }

    #[test]
    fn chinese_is_counted_by_the_sign() {
        assert_eq!(of_text("错误处理"), 4);
    }

    #[test]
    fn pictures_are_counted_by_each_providers_rule() {
        let by = |rule, width, height| of_image(rule, Some((width, height)));
        assert_eq!(by(ImageRule::Area, 750, 100), 100);
        assert_eq!(by(ImageRule::Area, 4_000, 3_000), 1_600);
        assert_eq!(by(ImageRule::Tiles, 512, 512), 255);
        assert_eq!(by(ImageRule::Tiles, 1_024, 1_024), 765);
        assert_eq!(by(ImageRule::Tiles, 4_096, 8_192), 1_105);
        assert_eq!(of_image(ImageRule::Tiles, None), 1_500);
        assert_eq!(by(ImageRule::Area, 0, 9), 1_500);
    }

    #[test]
    fn a_longer_text_than_the_longest_costs_more() {
        for cheap in [" ".repeat(9) + "letter", "a".to_owned(), " a".to_owned(), "1".repeat(3), "é".repeat(2)] {
            let text = cheap.repeat(1_000);
            let text = text.trim();
            let tokens = of_text(text);
            assert!(text.len() <= longest_text(tokens), "{cheap:?}: {} bytes are {tokens} tokens", text.len());
        }
        let blanks = format!("a{}b", " ".repeat(100_000));
        assert!(blanks.len() <= longest_text(of_text(&blanks)));
    }

    #[test]
    fn nothing_costs_nothing() {
        assert_eq!(of_text(""), 0);
    }
}
