// Decides which messages to fold, and writes their digest. Plain functions, which `npm test` runs in Node.js.

// The most characters of each message, and the most lines of a digest. Older messages are only counted.
export const LINE = 80;
const LINES = 200;

/** The number of messages to fold, so that the newest turns stay. It folds whole turns, which keeps calls with their results. */
export function folded(headers, keepTurns) {
  if (!headers.length) return 0;
  const newest = headers.at(-1).turn;
  return headers.findIndex(({ turn }) => turn + keepTurns > newest);
}

/** A digest with one line per message. */
export function digest(messages) {
  const listed = messages.slice(-LINES);
  const leftOut = messages.length - listed.length;
  return [...(leftOut ? [`(${leftOut} earlier messages)`] : []), ...listed.map(line)].join("\n");
}

function line({ id, role, toolName, content, toolCalls }) {
  const who = toolName ?? (role.tag === "other" ? role.val : role.tag);
  const words = Array.from(content.trim().split(/\s+/).join(" ")).slice(0, LINE).join("");
  const calls = toolCalls.map(({ name }) => name).join(", ");
  return `#${id} ${who}: ${words}${calls ? ` [calls ${calls}]` : ""}`;
}
