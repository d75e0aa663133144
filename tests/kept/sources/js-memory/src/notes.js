// Notes in a text, one per line. Plain functions, which `npm test` runs in Node.js.

// The most characters of a note, and the fewest of a word that is compared.
const NOTE = 300;
const WORD = 3;

const lines = (text) => text.split("\n").filter(Boolean);
const words = (text) => new Set((text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).filter((word) => word.length >= WORD));

/** The notes in a text: the rest of each line that begins with the keyword. */
export function inText(text, keyword) {
  return lines(text).flatMap((line) => {
    const [first, ...rest] = line.trim().split(/\s+/);
    const note = Array.from(rest.join(" ")).slice(0, NOTE).join("");
    return note && first.replace(/[:,.!]+$/, "").toLowerCase() === keyword.toLowerCase() ? [note] : [];
  });
}

/** The notes with new ones appended, or null if all are known already. */
export function added(notes, fresh) {
  const known = new Set(lines(notes));
  const before = known.size;
  fresh.forEach((note) => known.add(note));
  return known.size > before ? [...known, ""].join("\n") : null;
}

/** Notes that share a word with the question. Most shared words first, then newest first. */
export function about(notes, question) {
  const wanted = words(question);
  return lines(notes)
    .map((note, at) => ({ note, at, shared: [...words(note)].filter((word) => wanted.has(word)).length }))
    .filter(({ shared }) => shared > 0)
    .sort((one, other) => other.shared - one.shared || other.at - one.at)
    .map(({ note }) => note);
}
