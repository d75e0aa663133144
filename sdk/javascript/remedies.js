// From the habit to what a plugin has: where an error is in the author's files, and what to write instead. Runs in components and in Node.js.

/** The author's line in a stack: ` at run (/src/plugin.js:7:54)`. */
export function placeIn(stack) {
  const frames = Array.from(stack.matchAll(/\(?\/?([^\s()]+\.m?js):(\d+)(?::\d+)?\)?$/gm), ([, file, line]) => ({ file, line }));
  const own = frames.find(({ file }) => file.startsWith("src/")) ?? frames.find(({ file }) => !/^(vendor|build)\//.test(file));
  return own && `${own.file}:${own.line}`;
}

const DATA = "keep data with `documents` or `sql` of hermes-plugin";
const FILES = `a plugin has no files: ${DATA}, and ask for the user's files with \`hermes:files/files@1.0.0\``;
const NODE = "a plugin has no modules of Node.js: hermes-plugin has `request`, `documents`, `sql`, `randomBytes` and `encode`";
const TIMER = "a plugin has no timers: do the work at once; the host waits for the call";
const WEB = "send requests with `request` of hermes-plugin, which returns the response at once";
const ADDRESS = "write addresses as texts; `request` of hermes-plugin encodes its `query` and its `form`";

export const LOCALES = "`Intl` is not in plugins: format by hand, or bundle a library";

const GLOBALS = {
  fetch: WEB,
  XMLHttpRequest: WEB,
  WebSocket: WEB,
  EventSource: WEB,
  setTimeout: TIMER,
  setInterval: TIMER,
  setImmediate: TIMER,
  requestAnimationFrame: TIMER,
  Worker: "a plugin has no threads: do one thing after the other; the host runs several calls at once by itself",
  process: "a plugin has no environment variables: read the configuration in `configured`, and give secrets to `request` as `secret(name)`",
  require: `write \`import\` in place of \`require\`; ${NODE}`,
  Buffer: "use Uint8Array, and `encode` and `decode` of hermes-plugin",
  crypto: "use `randomBytes` and `randomUUID` of hermes-plugin",
  localStorage: DATA,
  sessionStorage: DATA,
  indexedDB: DATA,
  URL: ADDRESS,
  URLSearchParams: ADDRESS,
  FormData: ADDRESS,
  Deno: NODE,
  Bun: NODE,
  Intl: LOCALES,
  __dirname: FILES,
  __filename: FILES,
};

/** What to write in place of a global that only browsers and Node.js have, as a part of a sentence. */
export function remedy(text) {
  if (/BigInt.*JSON/i.test(text)) return "; write `String(value)` for an integer beyond 2^53, which is a BigInt";
  const name = text.match(/^'?([\w$]+)'? is not defined$/)?.[1];
  if (!name) return "";
  const instead = Object.hasOwn(GLOBALS, name) ? GLOBALS[name] : "a plugin has the globals of ECMAScript and what it imports: is it misspelled, or only in browsers and Node.js?";
  return `; ${instead}`;
}

/** What to write in place of a module that cannot be found. */
export function moduleRemedy(name) {
  if (/^(node:)?fs(\/|$)/.test(name)) return FILES;
  if (/^(node:)?(http|https|net|tls|dgram|undici)(\/|$)/.test(name) || /^(axios|node-fetch|got|ws)$/.test(name)) return WEB;
  if (/^(node:)?child_process$/.test(name)) return "a plugin starts no programs itself: ask for them with `hermes:process/process@1.0.0`";
  if (name.startsWith("node:")) return NODE;
  return name.startsWith(".") ? "is the file there, and does its name end in `.js`?" : `write \`npm install ${name}\`; packages of plain ECMAScript work`;
}
