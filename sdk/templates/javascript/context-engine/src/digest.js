// Decides which messages to fold, and writes their digest. Plain functions, which `npm test` runs in Node.js. `count` is a function that counts
// the tokens of a text.

// The most characters of each message, and the most lines of a digest. Older messages are only counted.
export const LINE = 80;
const LINES = 200;

export const tokensOf = (headers) => headers.reduce((sum, { tokens }) => sum + tokens, 0);

/**
 * The number of messages to fold, so that the newest turns stay: as many as configured, if they take at most so many tokens, and at least
 * one. It folds whole turns, which keeps calls with their results.
 */
export function folded(headers, keepTurns, most) {
  let start = headers.length;
  let left = most;
  for (let kept = 0; kept < keepTurns && start > 0; kept++) {
    let begin = start;
    while (begin > 0 && headers[begin - 1].turn === headers[start - 1].turn) begin--;
    left -= tokensOf(headers.slice(begin, start));
    if (kept > 0 && left < 0) break;
    start = begin;
  }
  return start;
}

/** A digest with one line per message, of at most so many tokens: the newest lines, and their number. */
export function digest(messages, most, count) {
  const lines = [];
  let left = most;
  for (const message of messages.slice(-LINES).reverse()) {
    const next = line(message);
    left -= count(next) + 1;
    if (left < 0) break;
    lines.unshift(next);
  }
  const leftOut = messages.length - lines.length;
  const text = [...(leftOut ? [`(${leftOut} earlier messages)`] : []), ...lines].join("\n");
  return { text, lines: lines.length };
}

function line({ id, role, toolName, content, toolCalls }) {
  const who = toolName ?? (role.tag === "other" ? role.val : role.tag);
  const words = Array.from(content.trim().split(/\s+/).join(" ")).slice(0, LINE).join("");
  const calls = toolCalls.map(({ name }) => name).join(", ");
  return `#${id} ${who}: ${words}${calls ? ` [calls ${calls}]` : ""}`;
}

/**
 * Excerpts of the longest messages, so that all of them take at most so many tokens; null if that is impossible. The user's newest message
 * stays in full, as the host requires.
 */
export function excerpts(messages, most, count) {
  const user = messages.findLast(({ role }) => role.tag === "user");
  const others = messages.filter((message) => message !== user);
  for (let cap = Math.max(0, ...others.map(({ tokens }) => tokens)); cap >= 20; cap = Math.floor(cap * 0.7)) {
    const short = others.filter(({ tokens }) => tokens > cap).map((message) => excerpt(message, cap, count)).filter(({ saved }) => saved > 0);
    const saved = short.reduce((sum, { saved }) => sum + saved, 0);
    if (tokensOf(messages) - saved <= most) return short.map(({ excerpt }) => excerpt);
  }
  return null;
}

/** The beginning of a message, in about so many tokens. */
function excerpt({ id, tokens, content, toolCalls }, cap, count) {
  const calls = toolCalls.filter((call) => count(call.arguments) > 20);
  const left = JSON.stringify({ left_out: "by the context engine" });
  const fixed = tokens - count(content) - calls.reduce((sum, call) => sum + count(call.arguments) - count(left), 0);
  const characters = Array.from(content);
  let length = characters.length;
  const text = () => (length < characters.length ? `${characters.slice(0, length).join("")} […]` : content);
  while (length > 0 && fixed + count(text()) > cap) length = Math.floor(length * 0.7);
  const shown = text();
  return {
    saved: Math.max(tokens - fixed - count(shown), 0),
    excerpt: { id, content: shown, arguments: calls.map((call) => [call.id, left]), keepImages: true },
  };
}
