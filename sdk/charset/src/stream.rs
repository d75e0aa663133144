//! Decodes a text that arrives in parts.

use std::borrow::Cow;

use encoding_rs::{Decoder, UTF_16BE, UTF_16LE};

use crate::Charset;

/// Turns the parts of a text into UTF-8. Bytes of a text that is stored as UTF-8 stay as they are.
pub struct Stream {
    /// `None` if the bytes stay.
    decoder: Option<Decoder>,
}

impl Stream {
    /// For bytes without their mark.
    pub fn new(charset: Charset) -> Self {
        let encoding = match charset {
            Charset::Utf8 | Charset::Mixed | Charset::Unknown => None,
            Charset::Utf16Le => Some(UTF_16LE),
            Charset::Utf16Be => Some(UTF_16BE),
            Charset::Legacy(encoding) => Some(encoding),
        };
        Self { decoder: encoding.map(|encoding| encoding.new_decoder_without_bom_handling()) }
    }

    /// The next part; `last` if nothing follows.
    pub fn feed<'b>(&mut self, bytes: &'b [u8], last: bool) -> Cow<'b, [u8]> {
        let Some(decoder) = &mut self.decoder else { return bytes.into() };
        let mut text = String::with_capacity(decoder.max_utf8_buffer_length(bytes.len()).unwrap_or(0));
        let _ = decoder.decode_to_string(bytes, &mut text, last);
        text.into_bytes().into()
    }
}
