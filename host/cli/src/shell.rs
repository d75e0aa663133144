//! `!COMMAND` in a chat on a terminal: the user's own command in the session's folder.
//!
//! It runs as in another terminal: with the user's rights and variables, without a question and without a sandbox, because the
//! user has typed it. The model reads command and output with the next message.

use std::io;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use hermes_app::process::{End, OwnProgram};
use hermes_terminal::{Activity, Part};
use tokio::io::AsyncReadExt as _;
use tokio_util::sync::CancellationToken;

use crate::console::Tone;
use crate::live::Live;
use crate::screen::Screen;
use crate::text::{self, fenced};

/// The most bytes that the model reads of the begin of an output, and of its end.
const MOST_EACH: usize = 8 << 10;
/// How long a line may be unfinished before it is shown.
const UNFINISHED: Duration = Duration::from_millis(300);
/// The pause after a full buffer, so that a flood leaves keys and drawing their turn.
const BREATH: Duration = Duration::from_millis(10);
/// The longest line that is shown as one.
const LONGEST_LINE: usize = 16 << 10;

/// The command of a line that begins with `!`. Whatever reads lines puts a space in front of one that the user has not typed.
pub(crate) fn command(line: &str) -> Option<&str> {
    line.strip_prefix('!').map(str::trim)
}

/// The message of a line: without the space that makes a `!` text.
pub(crate) fn message(line: &str) -> &str {
    line.strip_prefix(' ').filter(|text| text.starts_with('!')).unwrap_or(line)
}

/// Runs a command to its end, or until the user stops it, and shows its output. Returns what the model reads of it.
///
/// # Errors
///
/// When it cannot be started.
pub(crate) async fn run(
    line: &str,
    folder: &Path,
    screen: &mut Screen,
    live: Option<&Live>,
    stop: &CancellationToken,
) -> io::Result<String> {
    let shell = std::env::var_os("SHELL").filter(|shell| Path::new(shell).is_file()).unwrap_or_else(|| "sh".into());
    let mut command = Command::new(shell);
    command.arg("-c").arg(line).current_dir(folder);
    let begun = Instant::now();
    let mut program = OwnProgram::watch(&command).await?;
    if let Some(live) = live {
        let activity = Activity { text: format!("! {}", text::line(line)), since: begun };
        live.ui().set_activities(vec![activity], vec![Part::new("ctrl-c stops", 1)]);
    }
    let mut output = Output::default();
    let end = tokio::select! {
        biased;
        () = stop.cancelled() => Ok(End::Stopped),
        end = follow(&mut program, &mut output, screen) => end,
    };
    program.end().await;
    output.end(screen);
    if let Some(live) = live {
        live.ui().set_activities(Vec::new(), Vec::new());
    }
    let how = how(end?);
    let seconds = begun.elapsed().as_secs();
    let told = "the model reads this with your next message";
    screen.line(Tone::Faint, &format!("{how} · {seconds} s · {told}"));
    Ok(output.told(line, &how))
}

async fn follow(program: &mut OwnProgram, output: &mut Output, screen: &mut Screen) -> io::Result<End> {
    if let Some(mut pipe) = program.output.take() {
        let mut buffer = vec![0; 16 << 10];
        loop {
            match tokio::time::timeout(UNFINISHED, pipe.read(&mut buffer)).await {
                Ok(Ok(count @ 1..)) => {
                    output.add(&buffer[..count], screen);
                    if count == buffer.len() {
                        tokio::time::sleep(BREATH).await;
                    }
                }
                Ok(_) => break,
                Err(_) => output.show_rest(screen),
            }
        }
    }
    program.ended().await
}

fn how(end: End) -> String {
    match end {
        End::Exited(code) => format!("exit code {code}"),
        End::Killed(signal) => format!("ended by signal {signal}"),
        End::TimedOut | End::Stopped => "stopped".to_owned(),
    }
}

/// The output of a command: what is not shown yet, and what the model will read.
#[derive(Default)]
struct Output {
    line: Vec<u8>,
    head: Vec<u8>,
    tail: Vec<u8>,
    left_out: usize,
}

impl Output {
    fn add(&mut self, bytes: &[u8], screen: &mut Screen) {
        self.keep(bytes);
        self.line.extend_from_slice(bytes);
        if let Some(at) = self.line.iter().rposition(|byte| *byte == b'\n') {
            let whole: Vec<u8> = self.line.drain(..=at).collect();
            show(&whole[..at], screen);
        }
        if self.line.len() > LONGEST_LINE {
            self.show_rest(screen);
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = MOST_EACH - self.head.len();
        let (head, tail) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        self.tail.extend_from_slice(tail);
        let beyond = self.tail.len().saturating_sub(MOST_EACH);
        self.tail.drain(..beyond);
        self.left_out += beyond;
    }

    /// Shows a line that has no end yet.
    fn show_rest(&mut self, screen: &mut Screen) {
        if !self.line.is_empty() {
            show(&std::mem::take(&mut self.line), screen);
        }
    }

    fn end(&mut self, screen: &mut Screen) {
        self.show_rest(screen);
    }

    /// What the model reads.
    fn told(&self, command: &str, how: &str) -> String {
        let mut kept = self.head.clone();
        if self.left_out > 0 {
            kept.extend_from_slice(format!("\n[{} bytes are left out]\n", self.left_out).as_bytes());
        }
        kept.extend_from_slice(&self.tail);
        let kept = last_states(&String::from_utf8_lossy(&kept));
        let kept = kept.trim_end();
        let kept = if kept.is_empty() { "(no output)" } else { kept };
        fenced(
            "Before this message, the user ran a command in the session's folder:",
            "",
            &format!("$ {command}\n{kept}\n[{how}]"),
        )
    }
}

/// Shows lines. Of one that overwrites itself, such as a progress bar, the last state is shown.
fn show(bytes: &[u8], screen: &mut Screen) {
    screen.line(Tone::Plain, &last_states(&String::from_utf8_lossy(bytes)));
}

/// The lines of a program's output, cleaned and without colours, each in its last state.
fn last_states(output: &str) -> String {
    let lines = output.split('\n').map(|line| {
        let line = line.trim_end_matches('\r');
        text::output(line.rsplit('\r').next().unwrap_or(line))
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_text_that_begins_with_the_mark_is_a_command() {
        for (text, expected) in
            [("!ls -l\n", Some("ls -l")), ("! ls", Some("ls")), ("!", Some("")), (" !ls", None), ("wow!", None)]
        {
            assert_eq!(command(text), expected, "{text:?}");
        }
    }

    #[test]
    fn of_a_long_output_the_model_reads_begin_and_end_in_a_fence_that_nothing_closes() {
        let mut output = Output::default();
        output.keep(b"first\n```\n");
        for _ in 0..1000 {
            output.keep(&[b'x'; 100]);
        }
        output.keep(b"\x1b[31mlast\x1b[0m\n");
        let told = output.told("make", "exit code 2");
        assert!(told.contains("\n````\n$ make\nfirst\n```\n"), "{told}");
        assert!(told.contains("bytes are left out]") && told.ends_with("last\n[exit code 2]\n````"), "{told}");
        assert!(told.len() < 2 * MOST_EACH + 300 && !told.contains('\u{1b}'));
        assert!(Output::default().told("true", "exit code 0").contains("$ true\n(no output)\n[exit code 0]"));
    }
}
