//! What both APIs accept as pictures and documents.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The types of pictures with the bytes that they begin with.
const PICTURES: &[(&str, &[u8])] = &[
    ("image/png", b"\x89PNG\r\n\x1a\n"),
    ("image/jpeg", b"\xff\xd8\xff"),
    ("image/gif", b"GIF8"),
    ("image/webp", b"RIFF"),
];
const DOCUMENTS: &[(&str, &[u8])] = &[("application/pdf", b"%PDF-")];

/// Checks a picture in base64.
pub(super) fn check_picture(media_type: &str, data: &str, place: &str) -> Result<(), String> {
    check_bytes(PICTURES, media_type, data, place)
}

/// Checks a document in base64.
pub(super) fn check_document(media_type: &str, data: &str, place: &str) -> Result<(), String> {
    check_bytes(DOCUMENTS, media_type, data, place)
}

/// The type and the base64 text of a `data:` URL.
pub(super) fn of_data_url<'a>(url: &'a str, place: &str) -> Result<(&'a str, &'a str), String> {
    let parts = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    parts.ok_or_else(|| format!("{place}: no `data:` URL with base64: {}", short(url)))
}

/// Checks an address that the provider fetches.
pub(super) fn check_address(url: &str, place: &str) -> Result<(), String> {
    match url.strip_prefix("https://") {
        Some(rest) if !rest.is_empty() && !rest.contains(char::is_whitespace) => Ok(()),
        _ => Err(format!("{place}: no `https:` address: {}", short(url))),
    }
}

fn check_bytes(known: &[(&str, &[u8])], media_type: &str, data: &str, place: &str) -> Result<(), String> {
    let Some((_, start)) = known.iter().find(|(name, _)| *name == media_type) else {
        return Err(format!("{place}: the API does not take the type `{media_type}` here"));
    };
    let bytes = STANDARD.decode(data).map_err(|error| format!("{place}: no base64: {error}"))?;
    if !bytes.starts_with(start) {
        return Err(format!("{place}: the bytes are not of the type `{media_type}`"));
    }
    Ok(())
}

fn short(text: &str) -> String {
    text.chars().take(40).collect()
}
