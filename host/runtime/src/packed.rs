//! Bytes of the program that are needed only once in a home: the bundled plugins and their compiled code.

use std::borrow::Cow;
use std::io::{self, Read as _};

use flate2::read::ZlibDecoder;

/// Bytes as they are, or deflated, as the build includes them in the program.
#[derive(Debug, Clone, Copy)]
pub enum Packed<'a> {
    /// As they are.
    Plain(&'a [u8]),
    /// In zlib's format.
    Deflated {
        /// The deflated bytes.
        bytes: &'a [u8],
        /// The size of what they unpack to, in bytes.
        length: usize,
    },
}

impl<'a> Packed<'a> {
    /// The bytes as they were before.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::InvalidData`] if they do not unpack to the stated length: the program is damaged.
    pub fn unpack(self) -> io::Result<Cow<'a, [u8]>> {
        let (bytes, length) = match self {
            Self::Plain(bytes) => return Ok(Cow::Borrowed(bytes)),
            Self::Deflated { bytes, length } => (bytes, length),
        };
        let mut unpacked = Vec::with_capacity(length);
        // One byte more would show that the length is wrong.
        ZlibDecoder::new(bytes).take(length as u64 + 1).read_to_end(&mut unpacked)?;
        if unpacked.len() != length {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a file inside the program is damaged"));
        }
        Ok(Cow::Owned(unpacked))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;

    use super::*;

    #[test]
    fn bytes_come_out_as_they_went_in_and_damage_is_an_error() {
        let whole: Vec<u8> = (0..10_000_u32).flat_map(|number| (number % 251).to_le_bytes()).collect();
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&whole).unwrap();
        let bytes = encoder.finish().unwrap();
        let length = whole.len();
        assert!(bytes.len() < length / 10);
        assert_eq!(Packed::Deflated { bytes: &bytes, length }.unpack().unwrap(), whole);
        assert_eq!(Packed::Plain(&whole).unpack().unwrap(), whole);
        for (bytes, length) in
            [(&bytes[..bytes.len() / 2], length), (&bytes[..], length - 1), (&bytes, length + 1), (&whole, length)]
        {
            assert!(Packed::Deflated { bytes, length }.unpack().is_err(), "{length}");
        }
    }
}
