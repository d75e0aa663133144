#!/usr/bin/env bash
# rustyline 19.0.0 (crates.io), a line editor for terminals, with its default features and with `buffer-redux`.
#
# The editor reads up to 1,024 bytes of the terminal at once, and with the default features each `readline` has a buffer of its own. What came
# in the same read behind the end of the line is dropped with that buffer: lines that a user types ahead while the program works, or that
# another program writes into the terminal together, are lost, and no error says so. On a fast machine each line comes in a read of its own,
# so it is seen only now and then. The optional feature `buffer-redux` keeps the buffer for the next call; its name says nothing of it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mkdir src
cat > Cargo.toml <<'TOML'
[package]
name = "try"
version = "0.0.0"
edition = "2024"

[dependencies]
rustyline = "=19.0.0"

[features]
kept = ["rustyline/buffer-redux"]
TOML
cat > src/main.rs <<'RUST'
fn main() -> rustyline::Result<()> {
    let mut editor = rustyline::DefaultEditor::new()?;
    while let Ok(line) = editor.readline("> ") {
        println!("\nread {line}");
        if line == "last" {
            break;
        }
    }
    Ok(())
}
RUST
cat > try.py <<'PY'
import os, pty, select, sys, time


def run(program):
    """What a program reads of three lines that arrive at once."""
    process, terminal = pty.fork()
    if process == 0:
        os.environ["TERM"] = "xterm"
        os.execv(program, [program])
    shown, sent, until = b"", False, time.monotonic() + 60
    while time.monotonic() < until:
        if select.select([terminal], [], [], 5 if sent else 1)[0]:
            try:
                piece = os.read(terminal, 4096)
            except OSError:
                break
            if not piece:
                break
            shown += piece
        elif sent:
            break
        if b"> " in shown and not sent:
            os.write(terminal, b"first\rsecond\rlast\r")
            sent = True
    os.kill(process, 9)
    os.waitpid(process, 0)
    return [line.removeprefix("read ").strip() for line in shown.decode().splitlines() if line.startswith("read ")]


lost, kept = run("./plain"), run("./kept")
print("three lines at once, with the default features:", lost)
print("three lines at once, with buffer-redux:", kept)
sys.exit(not (lost == ["first"] and kept == ["first", "second", "last"]))
PY
cargo build --quiet --target-dir target
cp target/debug/try plain
cargo build --quiet --target-dir target --features kept
cp target/debug/try kept
python3 try.py
