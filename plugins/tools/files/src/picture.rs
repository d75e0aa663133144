//! Pictures that `read_file` shows: their format and size, and whether a model can take them.
//!
//! A provider refuses a request with a picture that is too large or cut off, and so every later request of the conversation. Such a
//! picture therefore never gets into a result.

use std::fmt;

use hermes_plugin::Error;
use hermes_plugin::tools::{Image, Output};

use crate::count;

/// The most bytes of a picture: 5 MiB in base64, the smallest limit of the large providers.
pub(crate) const MOST_BYTES: u64 = (5 << 20) / 4 * 3;
/// The most pixels of a side, which is another limit of theirs.
const MOST_PIXELS: u32 = 8_000;

/// A format that models read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Png,
    Jpeg,
    Gif,
    WebP,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Png => "PNG",
            Self::Jpeg => "JPEG",
            Self::Gif => "GIF",
            Self::WebP => "WebP",
        })
    }
}

impl Format {
    /// The format of a file that begins with these bytes.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Self::Gif),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Self::WebP),
            _ => None,
        }
    }

    /// Width and height in pixels, if the file is whole.
    fn size(self, bytes: &[u8]) -> Option<(u32, u32)> {
        let (size, is_whole) = match self {
            // The last chunk is empty.
            Self::Png => ((big(bytes, 16, 4)?, big(bytes, 20, 4)?), has_late(bytes, b"\0\0\0\0IEND\xaeB`\x82")),
            Self::Jpeg => (jpeg_size(bytes)?, has_late(bytes, &[0xff, 0xd9])),
            Self::Gif => ((little(bytes, 6, 2)?, little(bytes, 8, 2)?), has_late(bytes, b";")),
            Self::WebP => (webp_size(bytes)?, u64::from(little(bytes, 4, 4)?) + 8 <= bytes.len() as u64),
        };
        (is_whole && size.0 > 0 && size.1 > 0).then_some(size)
    }
}

/// The result of reading a picture of `total` bytes; `bytes` has all of them, unless they are too many to be shown.
pub(crate) fn show(path: &str, format: Format, bytes: Vec<u8>, total: u64) -> Result<Output, Error> {
    let refused =
        |why: String, code: &str| Err(Error::invalid(format!("{path} is a {format} picture: {why}")).with_code(code));
    if total > MOST_BYTES {
        let why =
            format!("it has {total} bytes, and a model can be shown {MOST_BYTES}; make a smaller copy and read that");
        return refused(why, "too-large");
    }
    let Some((width, height)) = format.size(&bytes) else {
        return refused("it is damaged or cut off, so no model can be shown it".to_owned(), "damaged");
    };
    if width.max(height) > MOST_PIXELS {
        let why = format!(
            "it has {width} x {height} pixels, and a model can be shown {MOST_PIXELS} on each side; make a smaller copy and \
             read that"
        );
        return refused(why, "too-large");
    }
    let about = format!(
        "[{path} is a {format} picture of {width} x {height} pixels, {}. It is attached, unless your model takes no pictures.]",
        count(total, "byte")
    );
    Ok(Output::text(about).image(Image::Bytes(bytes)))
}

/// Whether the bytes are among the last ones: some programs append others.
fn has_late(bytes: &[u8], end: &[u8]) -> bool {
    const LATE: usize = 64 << 10;
    let late = &bytes[bytes.len().saturating_sub(LATE)..];
    late.windows(end.len()).any(|window| window == end)
}

fn number(bytes: &[u8], at: usize, length: usize) -> Option<impl DoubleEndedIterator<Item = u32>> {
    Some(bytes.get(at..at + length)?.iter().map(|byte| u32::from(*byte)))
}

fn big(bytes: &[u8], at: usize, length: usize) -> Option<u32> {
    Some(number(bytes, at, length)?.fold(0, |sum, byte| sum << 8 | byte))
}

fn little(bytes: &[u8], at: usize, length: usize) -> Option<u32> {
    Some(number(bytes, at, length)?.rev().fold(0, |sum, byte| sum << 8 | byte))
}

fn jpeg_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        match bytes.get(at..at + 2)? {
            // Any number of these precedes a marker.
            [0xff, 0xff] => at += 1,
            // Markers without content.
            [0xff, 0x01 | 0xd0..=0xd8] => at += 2,
            // A frame: its content begins with length, precision, height and width.
            [0xff, 0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf] => {
                return Some((big(bytes, at + 7, 2)?, big(bytes, at + 5, 2)?));
            }
            // The data begin or end without a frame.
            [0xff, 0xd9 | 0xda] => return None,
            [0xff, _] => at += 2 + big(bytes, at + 2, 2)?.max(2) as usize,
            _ => return None,
        }
    }
}

fn webp_size(bytes: &[u8]) -> Option<(u32, u32)> {
    const SIDE: u32 = 0x3fff;
    match bytes.get(12..16)? {
        b"VP8 " => Some((little(bytes, 26, 2)? & SIDE, little(bytes, 28, 2)? & SIDE)),
        b"VP8L" => little(bytes, 21, 4).map(|bits| ((bits & SIDE) + 1, (bits >> 14 & SIDE) + 1)),
        b"VP8X" => Some((little(bytes, 24, 3)? + 1, little(bytes, 27, 3)? + 1)),
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn png(width: u32, height: u32) -> Vec<u8> {
        let size = [width.to_be_bytes(), height.to_be_bytes()].concat();
        [&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..], &size, b"\x08\x02\0\0\0crc.\0\0\0\0IEND\xaeB`\x82"].concat()
    }

    fn shown(bytes: &[u8]) -> Result<String, Error> {
        let format = Format::of(bytes).unwrap();
        let total = bytes.len() as u64;
        show("a/b", format, bytes.to_vec(), total).map(|output| {
            assert_eq!(output.content.len(), 2);
            output.texts()
        })
    }

    #[test]
    fn each_format_is_shown_with_its_size() {
        let jpeg = b"\xff\xd8\xff\xe0\0\x04JF\xff\xff\xc4\0\x02\xff\xc2\0\x0b\x08\0\x05\0\x07\x01\x01\x11\0\xff\xda\0\x02x\xff\xd9\0";
        let gif = b"GIF89a\x07\0\x05\0\0\0\0;";
        let webp = |kind: &[u8], rest: &[u8]| {
            let length = (12 + rest.len()) as u32;
            [b"RIFF", &length.to_le_bytes()[..], b"WEBP", kind, &[0; 4], rest].concat()
        };
        for (format, bytes) in [
            ("PNG", png(7, 5)),
            ("JPEG", jpeg.to_vec()),
            ("GIF", gif.to_vec()),
            ("WebP", webp(b"VP8 ", b"......\x07\x40\x05\0")),
            ("WebP", webp(b"VP8L", &[b"/", &(6_u32 | 4 << 14).to_le_bytes()[..]].concat())),
            ("WebP", webp(b"VP8X", b"....\x06\0\0\x04\0\0")),
        ] {
            let expected = format!(
                "[a/b is a {format} picture of 7 x 5 pixels, {} bytes. It is attached, unless your model takes no pictures.]",
                bytes.len()
            );
            assert_eq!(shown(&bytes).unwrap(), expected);
        }
    }

    #[test]
    fn what_a_provider_would_refuse_is_refused_with_the_reason() {
        let error = shown(&png(8_001, 5)).unwrap_err();
        assert_eq!(error.code, "too-large");
        assert!(error.message.contains("8001 x 5 pixels") && error.message.contains("smaller copy"), "{error}");
        let error = show("a", Format::Png, png(7, 5), MOST_BYTES + 1).unwrap_err();
        assert!(error.message.contains("it has 3932161 bytes"), "{error}");
    }

    #[test]
    fn a_picture_that_is_cut_off_anywhere_is_refused() {
        let jpeg = b"\xff\xd8\xff\xc0\0\x0b\x08\0\x05\0\x07\x01\x01\x11\0\xff\xd9".to_vec();
        for whole in [png(7, 5), jpeg, b"GIF87a\x07\0\x05\0\0\0\0;".to_vec()] {
            assert!(shown(&whole).is_ok());
            for length in 8..whole.len() {
                assert_eq!(shown(&whole[..length]).unwrap_err().code, "damaged", "{length}");
            }
        }
        assert_eq!(shown(&png(0, 5)).unwrap_err().code, "damaged");
    }

    #[test]
    fn text_is_no_picture() {
        for text in ["", "GIF", "GIF89 is a format", "RIFF", "\u{feff}PNG", "\u{89}PNG\r\n"] {
            assert_eq!(Format::of(text.as_bytes()), None, "{text}");
        }
    }
}
