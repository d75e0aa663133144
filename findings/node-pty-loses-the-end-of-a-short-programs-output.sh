#!/usr/bin/env bash
# @lydell/node-pty 1.1.0 (npm, Node 22.23.3): node-pty 1.1.0 with programs built for it, as some terminal agents use it. On Linux.
#
# A program that writes more than a few KiB to its terminal and ends at once often loses the end of its output. Of 100 runs of `seq 1 5000`, 40 to
# 80 lack some KiB, and many break off within a line. `onExit` reports exit code 0, and waiting after it brings nothing more. Python's `pty`
# reads the same output whole each time, so the system still has it. Nothing is lost if the program lives a moment longer than its last
# write: with `sh -c 'seq 1 5000; sleep 0.3'` all of 20 runs are whole. An agent that shows a model what a command printed should use a pipe
# where it needs no terminal. With this library it cannot tell a short output from a cut one.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund node@22.23.3 @lydell/node-pty@1.1.0
cat > try.mjs <<'JS'
import pty from "@lydell/node-pty";

const whole = Array.from({ length: 5000 }, (_, at) => `${at + 1}\r\n`).join("");

// Runs a program, and waits for a while after its end. Resolves to what was read.
const run = (program, args) =>
  new Promise((resolve, reject) => {
    let read = "";
    const terminal = pty.spawn(program, args, { cols: 80, rows: 24 });
    terminal.onData((piece) => (read += piece));
    terminal.onExit(({ exitCode }) => setTimeout(() => (exitCode === 0 ? resolve(read) : reject(new Error(`exit code ${exitCode}`))), 200));
  });

const count = async (runs, program, args) => {
  let cut = 0;
  for (let at = 0; at < runs; at++) {
    const read = await run(program, args);
    if (!whole.startsWith(read)) throw new Error("something other than the end is missing");
    if (read.length < whole.length) cut++;
  }
  return cut;
};
console.log(await count(100, "seq", ["1", "5000"]), await count(20, "sh", ["-c", "seq 1 5000; sleep 0.3"]));
JS
cat > try.py <<'PY'
import os, pty


def run():
    process, terminal = pty.fork()
    if process == 0:
        os.execvp("seq", ["seq", "1", "5000"])
    read = b""
    while True:
        try:
            piece = os.read(terminal, 4096)
        except OSError:  # the end of a terminal
            break
        read += piece
    os.close(terminal)
    os.waitpid(process, 0)
    return read


whole = b"".join(b"%d\r\n" % at for at in range(1, 5001))
print(sum(run() != whole for _ in range(100)))
PY
read -r cut slow < <(node_modules/.bin/node try.mjs)
python=$(python3 try.py)
echo "cut with node-pty: $cut of 100; with a pause at the end: $slow of 20; with Python's pty: $python of 100"
[ "$cut" -gt 0 ] && [ "$slow" = 0 ] && [ "$python" = 0 ]
