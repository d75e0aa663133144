// UTF-8. QuickJS has no TextEncoder and no TextDecoder.

/** The bytes of a text in UTF-8. */
export function encode(text) {
  const escaped = encodeURIComponent(text.toWellFormed?.() ?? text);
  return Uint8Array.from(escaped.match(/%[0-9A-F]{2}|[^%]/g) ?? [], (part) =>
    part.length === 3 ? parseInt(part.slice(1), 16) : part.charCodeAt(0),
  );
}

/** The text of bytes in UTF-8. What is invalid becomes U+FFFD, as the standard of encodings says, or with `fatal` a TypeError. */
export function decode(bytes, fatal = false) {
  const parts = [];
  for (let at = 0; at < bytes.length; ) {
    let run = at;
    while (run < bytes.length && run - at < 8192 && bytes[run] < 0x80) run++;
    if (run > at) {
      parts.push(String.fromCharCode.apply(null, bytes.subarray(at, run)));
      at = run;
      continue;
    }
    const first = bytes[at++];
    const more = first < 0xc2 || first > 0xf4 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
    let code = more ? first & (0x3f >> more) : -1;
    // The byte behind the first one excludes halves of characters, overlong forms and numbers beyond U+10FFFF.
    let [least, most] = [{ 0xe0: 0xa0, 0xf0: 0x90 }[first] ?? 0x80, { 0xed: 0x9f, 0xf4: 0x8f }[first] ?? 0xbf];
    for (let left = more; left > 0; left--) {
      if (!(bytes[at] >= least && bytes[at] <= most)) {
        code = -1;
        break;
      }
      code = (code << 6) | (bytes[at++] & 0x3f);
      [least, most] = [0x80, 0xbf];
    }
    if (code < 0 && fatal) throw new TypeError("the bytes are not UTF-8");
    parts.push(code < 0 ? "\u{fffd}" : String.fromCodePoint(code));
  }
  return parts.join("");
}
