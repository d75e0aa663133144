//! From bytes to text: the encoding is that of the byte order mark, of the header, or of the page's own declaration.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// Where a page declares its encoding, as browsers look for it.
const DECLARATION: usize = 1024;

/// The text of a body. `content_type` is the header.
pub(crate) fn decoded(body: &[u8], content_type: &str) -> String {
    let labelled = Encoding::for_bom(body)
        .map(|(encoding, _)| encoding)
        .or_else(|| label(content_type.as_bytes()))
        .or_else(|| label(&body[..body.len().min(DECLARATION)]));
    // Without a declaration, most pages are UTF-8, and the rest is what browsers assume.
    let encoding = labelled.unwrap_or_else(|| if std::str::from_utf8(body).is_ok() { UTF_8 } else { WINDOWS_1252 });
    encoding.decode(body).0.into_owned()
}

/// The encoding that follows `charset=` or XML's `encoding=`.
fn label(text: &[u8]) -> Option<&'static Encoding> {
    let text = String::from_utf8_lossy(text).to_ascii_lowercase();
    ["charset", "encoding"].iter().find_map(|word| {
        text.match_indices(word).find_map(|(at, _)| {
            let value = text[at + word.len()..].trim_start().strip_prefix('=')?;
            let value = value.trim_start().trim_start_matches(['"', '\'']);
            let end = value.find(|sign: char| !(sign.is_ascii_alphanumeric() || "-_:.".contains(sign)));
            Encoding::for_label(&value.as_bytes()[..end.unwrap_or(value.len())])
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_encoding_is_found_in_mark_header_declaration_and_bytes() {
        let latin = b"caf\xe9";
        for (body, content_type, text) in [
            ("café".as_bytes(), "text/html", "café"),
            (latin.as_slice(), "text/html", "café"),
            (latin, "text/html; charset=ISO-8859-1", "café"),
            (b"\x83n\x83\x8d\x81[", "text/plain; charset=\"Shift_JIS\"", "ハロー"),
            (b"<meta charset='koi8-r'>\xd4\xc5\xd3\xd4", "text/html", "<meta charset='koi8-r'>тест"),
            (b"<?xml encoding=\"windows-1251\"?>\xf2", "application/xml", "<?xml encoding=\"windows-1251\"?>т"),
            (b"\xef\xbb\xbfcaf\xc3\xa9", "text/html; charset=latin1", "café"),
            (b"\xff\xfec\0a\0f\0\xe9\0", "text/html", "café"),
            (latin, "text/html; charset=no-such-thing", "café"),
            (b"", "", ""),
        ] {
            assert_eq!(decoded(body, content_type), text, "{content_type}");
        }
    }
}
