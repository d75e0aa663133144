// UTF-8. QuickJS has no TextEncoder and no TextDecoder.

/** The bytes of a text in UTF-8. */
export function encode(text) {
  const escaped = encodeURIComponent(text.toWellFormed?.() ?? text);
  return Uint8Array.from(escaped.match(/%[0-9A-F]{2}|[^%]/g) ?? [], (part) =>
    part.length === 3 ? parseInt(part.slice(1), 16) : part.charCodeAt(0),
  );
}

/** The text of bytes in UTF-8. Invalid bytes become U+FFFD. */
export function decode(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; ) {
    const first = bytes[at];
    const length = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    const rest = Array.from(bytes.subarray(at + 1, at + length));
    const whole = first >= 0x80 && first < 0xc2 ? false : rest.length === length - 1 && rest.every((byte) => byte >> 6 === 2);
    const code = rest.reduce((sum, byte) => (sum << 6) | (byte & 0x3f), length === 1 ? first : first & (0x7f >> length));
    const least = [0, 0, 0x80, 0x800, 0x10000][length];
    const valid = whole && code >= least && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
    text += valid ? String.fromCodePoint(code) : "\u{fffd}";
    at += valid ? length : 1;
  }
  return text;
}
