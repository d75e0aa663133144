//! Pictures and files of messages: what they are, how large, and where their bytes are.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::part::Bytes;

/// The limit of one picture or file: 20 MB.
pub const MOST_BYTES: usize = 20_000_000;

/// The types of pictures that models read.
pub(crate) const PICTURE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/webp", "image/gif"];

/// Characters of an address in the line that names a picture.
const LONGEST_ADDRESS: usize = 200;

/// The hash of a blob's bytes, in hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct BlobId(pub String);

impl BlobId {
    /// The id of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(blake3::hash(bytes).to_hex().to_string())
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A picture or a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Media {
    /// The source of its bytes.
    #[serde(flatten)]
    pub source: Source,
    /// Such as `image/png`.
    pub media_type: String,
    /// The file name without folders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Pixels, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    /// Pixels, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub height: Option<u32>,
}

/// The source of the bytes of a picture or file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The store, by the hash of the content.
    Blob(Blob),
    /// An `https:` address. The host never fetches it: the provider does.
    Url(String),
}

/// Bytes in the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Blob {
    /// The hash of the bytes.
    pub hash: BlobId,
    /// The number of bytes.
    pub size: u64,
    /// The bytes: only before they are stored, in an export, and while a request is rendered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Bytes>,
}

/// Why something cannot be a picture or file of a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MediaError {
    /// It is empty.
    #[error("it is empty")]
    Empty,
    /// It is larger than [`MOST_BYTES`].
    #[error("it has {} MB; at most {} MB can be sent", size.div_ceil(1_000_000), MOST_BYTES / 1_000_000)]
    TooLarge {
        /// Its bytes.
        size: usize,
    },
    /// Its first bytes belong to no format that models read.
    #[error("it is not a PNG, JPEG, WebP or GIF image")]
    NotAnImage,
    /// The address is not `https:`.
    #[error("`{0}` does not begin with `https://`, the only kind of address that can be sent")]
    Address(String),
}

impl Media {
    /// A picture from its bytes. Type and size are read from the bytes. Folders in the name are removed.
    ///
    /// # Errors
    ///
    /// [`MediaError::Empty`], [`MediaError::TooLarge`] and [`MediaError::NotAnImage`].
    pub fn image(bytes: Vec<u8>, name: Option<&str>) -> Result<Self, MediaError> {
        check_size(bytes.len())?;
        let (media_type, size) = sniff(&bytes).ok_or(MediaError::NotAnImage)?;
        let (width, height) = size.unzip();
        let blob = Blob { hash: BlobId::of(&bytes), size: bytes.len() as u64, bytes: Some(Bytes(bytes.into())) };
        Ok(Self { source: Source::Blob(blob), media_type: media_type.to_owned(), name: bare(name), width, height })
    }

    /// A document of any type.
    ///
    /// # Errors
    ///
    /// [`MediaError::Empty`] and [`MediaError::TooLarge`].
    pub fn file(bytes: Vec<u8>, media_type: &str, name: Option<&str>) -> Result<Self, MediaError> {
        check_size(bytes.len())?;
        let blob = Blob { hash: BlobId::of(&bytes), size: bytes.len() as u64, bytes: Some(Bytes(bytes.into())) };
        let (source, media_type) = (Source::Blob(blob), media_type.to_owned());
        Ok(Self { source, media_type, name: bare(name), width: None, height: None })
    }

    /// A picture on the web.
    ///
    /// # Errors
    ///
    /// [`MediaError::Address`].
    pub fn image_at(url: &str) -> Result<Self, MediaError> {
        if !url.starts_with("https://") {
            return Err(MediaError::Address(url.chars().take(200).collect()));
        }
        let media_type = "image".to_owned();
        Ok(Self { source: Source::Url(url.to_owned()), media_type, name: None, width: None, height: None })
    }

    /// The blob, where the bytes are in the store.
    pub fn blob(&self) -> Option<&Blob> {
        match &self.source {
            Source::Blob(blob) => Some(blob),
            Source::Url(_) => None,
        }
    }

    /// The bytes, if they are loaded.
    pub fn bytes(&self) -> Option<&[u8]> {
        self.blob()?.bytes.as_ref().map(|bytes| &*bytes.0)
    }

    /// Puts the bytes in, or removes them.
    pub fn set_bytes(&mut self, bytes: Option<Arc<[u8]>>) {
        if let Source::Blob(blob) = &mut self.source {
            blob.bytes = bytes.map(Bytes);
        }
    }

    pub(crate) fn mention(&self, what: &str) -> String {
        match (&self.name, &self.source) {
            (Some(name), _) => format!("[{what}: {name}, {}]", self.media_type),
            (None, Source::Url(url)) if url.chars().count() > LONGEST_ADDRESS => {
                format!("[{what}: {}…]", url.chars().take(LONGEST_ADDRESS).collect::<String>())
            }
            (None, Source::Url(url)) => format!("[{what}: {url}]"),
            (None, Source::Blob(_)) => format!("[{what}: {}]", self.media_type),
        }
    }
}

fn check_size(size: usize) -> Result<(), MediaError> {
    match size {
        0 => Err(MediaError::Empty),
        size if size > MOST_BYTES => Err(MediaError::TooLarge { size }),
        _ => Ok(()),
    }
}

fn bare(name: Option<&str>) -> Option<String> {
    let name = name?.rsplit(['/', '\\']).next()?;
    let plain: String = name.chars().filter(|character| !character.is_control()).take(200).collect();
    (!plain.is_empty()).then_some(plain)
}

/// The type of a picture by its first bytes.
pub(crate) fn picture_type(bytes: &[u8]) -> Option<&'static str> {
    sniff(bytes).map(|(media_type, _)| media_type)
}

/// The type of a picture by its first bytes, and its size in pixels, if found.
fn sniff(bytes: &[u8]) -> Option<(&'static str, Option<(u32, u32)>)> {
    let two = |at: usize, big: bool| {
        let pair: [u8; 2] = bytes.get(at..at + 2)?.try_into().ok()?;
        Some(u32::from(if big { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) }))
    };
    let four = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        return Some(("image/png", four(16).zip(four(20))));
    }
    if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") {
        return Some(("image/gif", two(6, false).zip(two(8, false))));
    }
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        let size = match bytes.get(12..16) {
            Some(b"VP8 ") => two(26, false).zip(two(28, false)).map(|(w, h)| (w & 0x3fff, h & 0x3fff)),
            Some(b"VP8L") => bytes.get(21..25).and_then(|bits| {
                let bits = u32::from_le_bytes(bits.try_into().ok()?);
                Some(((bits & 0x3fff) + 1, ((bits >> 14) & 0x3fff) + 1))
            }),
            Some(b"VP8X") => bytes.get(24..30).map(|size| {
                let three = |at: usize| u32::from_le_bytes([size[at], size[at + 1], size[at + 2], 0]) + 1;
                (three(0), three(3))
            }),
            _ => None,
        };
        return Some(("image/webp", size));
    }
    if bytes.starts_with(b"\xff\xd8\xff") {
        return Some(("image/jpeg", jpeg_size(bytes)));
    }
    None
}

/// Walks from segment to segment up to the one that begins a frame.
fn jpeg_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        let [0xff, marker] = *bytes.get(at..at + 2)? else { return None };
        let two = |at: usize| Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        match marker {
            0xff => at += 1,
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                return Some((two(at + 7)?.into(), two(at + 5)?.into()));
            }
            0x01 | 0xd0..=0xd9 => at += 2,
            _ => at += 2 + usize::from(two(at + 2)?),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn png(width: u32, height: u32) -> Vec<u8> {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        bytes.extend_from_slice(&width.to_be_bytes());
        bytes.extend_from_slice(&height.to_be_bytes());
        bytes
    }

    #[test]
    fn type_and_size_come_from_the_bytes_and_not_from_the_name() {
        let jpeg = [b"\xff\xd8\xff\xe0\0\x04ab".as_slice(), b"\xff\xc0\0\x0b\x08\0\x20\0\x40\x01"].concat();
        let webp = [b"RIFF\0\0\0\0WEBPVP8X".as_slice(), &[0; 8], &[9, 0, 0, 4, 0, 0]].concat();
        for (bytes, media_type, size) in [
            (png(640, 480), "image/png", Some((640, 480))),
            (b"GIF89a\x10\0\x08\0".to_vec(), "image/gif", Some((16, 8))),
            (jpeg, "image/jpeg", Some((64, 32))),
            (webp, "image/webp", Some((10, 5))),
            (b"\xff\xd8\xff".to_vec(), "image/jpeg", None),
        ] {
            let media = Media::image(bytes, Some("/tmp/a.txt")).unwrap();
            assert_eq!((media.media_type.as_str(), media.width.zip(media.height)), (media_type, size));
            assert_eq!(media.name.as_deref(), Some("a.txt"));
        }
    }

    #[test]
    fn what_cannot_be_sent_is_refused_with_the_reason() {
        assert_eq!(Media::image(Vec::new(), None), Err(MediaError::Empty));
        let size = MOST_BYTES + 1;
        assert_eq!(Media::image(vec![0; size], None), Err(MediaError::TooLarge { size }));
        assert_eq!(Media::image(b"%PDF-1.7".to_vec(), None), Err(MediaError::NotAnImage));
        for address in ["http://example.com/a.png", "file:///etc/passwd", "data:image/png;base64,AAAA"] {
            assert_eq!(Media::image_at(address), Err(MediaError::Address(address.to_owned())));
        }
    }

    #[test]
    fn a_blob_is_printed_without_its_bytes_and_written_with_them() {
        let media = Media::image(png(1, 1), Some("a.png")).unwrap();
        assert!(format!("{media:?}").contains("24 bytes"));
        let json = serde_json::to_string(&media).unwrap();
        assert_eq!(serde_json::from_str::<Media>(&json).unwrap(), media);
        let mut bare = media;
        bare.set_bytes(None);
        assert!(!serde_json::to_string(&bare).unwrap().contains("bytes"));
        assert_eq!(bare.mention("image"), "[image: a.png, image/png]");
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod attack {
    use super::*;

    #[test]
    fn what_is_no_picture_is_refused_whatever_its_name() {
        for bytes in [
            &b"<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>"[..],
            b"<html><img src=x onerror=alert(1)>",
            b"#!/bin/sh\nrm -rf ~\n",
            b"\x7fELF\x02\x01\x01",
            b"%PDF-1.7",
            b"PK\x03\x04",
            b"BM\0\0\0\0",
            b"II*\0\x08\0\0\0",
            b"\0\0\x01\0\x01\0",
            b"\0\0\0\x18ftypheic",
            b"GIF88a\x01\0\x01\0",
            b"gif89a\x01\0\x01\0",
            b"\x89PNG\n\x1a\n\0\0\0\rIHDR",
            b" \x89PNG\r\n\x1a\n",
            b"RIFF\0\0\0\0WAVEfmt ",
            b"RIFF",
            b"\xff\xd8",
            b"\xef\xbb\xbfGIF89a",
        ] {
            assert_eq!(Media::image(bytes.to_vec(), Some("picture.png")), Err(MediaError::NotAnImage), "{bytes:?}");
        }
    }

    #[test]
    fn a_picture_that_lies_about_its_size_is_read_in_one_pass_to_its_end() {
        let jpeg = |rest: &[u8]| [b"\xff\xd8\xff".as_slice(), rest].concat();
        let large = |byte: u8| jpeg(&vec![byte; 10_000_000]);
        for (name, bytes) in [
            ("segments without a length", jpeg(&b"\xe0\0\0".repeat(1_000_000))),
            ("segments of the least length", jpeg(&b"\xe0\0\x02\xff".repeat(1_000_000))),
            ("markers without end", large(0xff)),
            ("zeros without end", large(0)),
            ("a segment behind the end", jpeg(b"\xe0\xff\xff")),
            ("a frame behind the end", jpeg(b"\xc0\0\x0b")),
            ("a WebP of one byte more than its name", b"RIFF\xff\xff\xff\xffWEBPV".to_vec()),
            ("a WebP that is cut off", b"RIFF\0\0\0\0WEBPVP8X\0".to_vec()),
            ("a lossless WebP that is cut off", b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f\xff".to_vec()),
            ("a GIF that is cut off", b"GIF89a\xff".to_vec()),
            ("a PNG that is cut off", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\xff\xff".to_vec()),
        ] {
            let media = Media::image(bytes, None).unwrap();
            assert_eq!(media.width.zip(media.height), None, "{name}");
        }
        let endless = [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".as_slice(), &[0xff; 8]].concat();
        let media = Media::image(endless, None).unwrap();
        assert_eq!((media.width, media.height), (Some(u32::MAX), Some(u32::MAX)));
    }

    #[test]
    fn a_name_has_no_folder_no_control_character_and_an_end() {
        let named = |name: &str| Media::file(b"x".to_vec(), "text/plain", Some(name)).unwrap().name;
        for (name, shown) in [
            ("../../.bashrc", Some(".bashrc")),
            ("/etc/passwd", Some("passwd")),
            ("..\\..\\a.txt", Some("a.txt")),
            ("a\u{1b}]0;owned\u{7}.txt", Some("a]0;owned.txt")),
            ("a\r\n[image: b]", Some("a[image: b]")),
            ("\0\u{1b}\u{9b}", None),
            ("/", None),
            ("", None),
        ] {
            assert_eq!(named(name).as_deref(), shown, "{name:?}");
        }
        assert_eq!(named(&"x".repeat(1 << 20)).map(|name| name.len()), Some(200));
    }
}
