//! `hermes plugins logs`: shows and follows a plugin's log.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use hermes_app::PluginLog;
use hermes_app::files::open_regular;
use serde_json::{Map, Value};

use crate::console::{Console, Tone, print};
use crate::failure::{Failure, Kind};
use crate::launch;
use crate::plugins::Inventory;
use crate::text;

/// Most bytes of a log that are read.
const MOST_BYTES: u64 = 64 << 20;
/// How often `--follow` looks for new lines.
const POLL: Duration = Duration::from_millis(250);

pub(crate) fn run(name: &str, lines: usize, follow: bool, json: bool, console: Console) -> Result<ExitCode, Failure> {
    let setup = launch::read()?;
    // The name becomes part of a path.
    let is_allowed = |sign: char| sign.is_ascii_lowercase() || sign.is_ascii_digit() || "-_".contains(sign);
    if name.is_empty() || !name.chars().all(is_allowed) {
        let fix = "`hermes plugins list` shows the names";
        return Err(Failure::new(Kind::Usage, format!("`{name}` has no log"), "it is not a plugin name", fix));
    }
    let PluginLog { path, older } = setup.home.plugin_log(name);
    let mut newest: VecDeque<String> = VecDeque::new();
    let older = read(&older, lines, &mut newest)?;
    let current = read(&path, lines, &mut newest)?;
    if older.is_none() && current.is_none() {
        // A plugin that was removed may have left a log; a name without either is a mistake.
        Inventory::of(setup)?.found(name)?;
    }
    if older.is_none() && current.is_none() && !follow {
        console.note(&format!("`{name}` has logged nothing yet ({} does not exist)", path.display()));
        return Ok(ExitCode::SUCCESS);
    }
    for line in newest {
        print(&shown(&line, json, console))?;
    }
    if !follow {
        return Ok(ExitCode::SUCCESS);
    }
    let mut file = current.map_or_else(|| wait_for(&path), Ok)?;
    loop {
        match next(&mut file).map_err(|error| unreadable(&path, &error))? {
            Some(line) => print(&shown(&line, json, console))?,
            None if was_rotated(&mut file, &path) => file = wait_for(&path)?,
            None => std::thread::sleep(POLL),
        }
    }
}

/// Appends the lines of a log, and keeps the newest `most` lines. None if the file does not exist.
fn read(path: &Path, most: usize, newest: &mut VecDeque<String>) -> Result<Option<BufReader<File>>, Failure> {
    let mut file = match open_regular(path) {
        Ok(file) => BufReader::new(file),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(path, &error)),
    };
    // Hermes begins a new file long before this size; of anything else, the end is enough.
    let size = file.get_ref().metadata().map_or(0, |found| found.len());
    if let Some(before) = size.checked_sub(MOST_BYTES).filter(|before| *before > 0) {
        file.seek(SeekFrom::Start(before)).map_err(|error| unreadable(path, &error))?;
    }
    while let Some(line) = next(&mut file).map_err(|error| unreadable(path, &error))? {
        newest.push_back(line);
        if newest.len() > most {
            newest.pop_front();
        }
    }
    Ok(Some(file))
}

/// Whether a new log has replaced this one, which was read to its end.
fn was_rotated(file: &mut BufReader<File>, path: &Path) -> bool {
    let Ok(current) = std::fs::metadata(path) else { return false };
    let Ok(own) = file.get_ref().metadata() else { return false };
    #[cfg(unix)]
    let is_other = {
        use std::os::unix::fs::MetadataExt;
        (current.dev(), current.ino()) != (own.dev(), own.ino())
    };
    #[cfg(not(unix))]
    let is_other = current.len() < own.len();
    is_other && file.fill_buf().is_ok_and(<[u8]>::is_empty)
}

fn wait_for(path: &Path) -> Result<BufReader<File>, Failure> {
    loop {
        match open_regular(path) {
            Ok(file) => return Ok(BufReader::new(file)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => std::thread::sleep(POLL),
            Err(error) => return Err(unreadable(path, &error)),
        }
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    let fix = "check the permissions of the file";
    Failure::new(Kind::General, format!("{} cannot be read", path.display()), error.to_string(), fix)
}

/// The next complete line. None if there is none, or its end is not written yet.
fn next(file: &mut BufReader<File>) -> std::io::Result<Option<String>> {
    let mut line = Vec::new();
    let read = file.by_ref().take(1 << 20).read_until(b'\n', &mut line)?;
    if read == 0 {
        return Ok(None);
    }
    if !line.ends_with(b"\n") && read < 1 << 20 {
        file.seek(SeekFrom::Current(-i64::try_from(read).unwrap_or_default()))?;
        return Ok(None);
    }
    Ok(Some(String::from_utf8_lossy(&line).trim_end().to_owned()))
}

fn shown(line: &str, json: bool, console: Console) -> String {
    if json {
        return text::escaped(line) + "\n";
    }
    let Ok(Value::Object(mut fields)) = serde_json::from_str::<Value>(line) else {
        return format!("{}\n", text::line(line));
    };
    let mut word = |name: &str| match fields.shift_remove(name) {
        Some(Value::String(text)) => text,
        Some(other) => other.to_string(),
        None => String::new(),
    };
    let (time, level, _, message) = (word("time"), word("level"), word("session"), word("text"));
    let tone = match level.as_str() {
        "error" => Tone::Bad,
        "warn" => Tone::Warning,
        _ => Tone::Faint,
    };
    let time: String = time.chars().take(19).collect::<String>().replace('T', " ");
    let rest = rest(&fields);
    let gap = if rest.is_empty() || message.is_empty() { "" } else { "  " };
    let message = text::line(&format!("{message}{gap}{rest}"));
    format!("{} {} {message}\n", text::line(&time), console.paint(tone, &format!("{:<5}", text::line(&level))))
}

fn rest(fields: &Map<String, Value>) -> String {
    let pair = |(name, value): (&String, &Value)| match value {
        Value::String(text) => format!("{name}={text}"),
        other => format!("{name}={other}"),
    };
    fields.iter().map(pair).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_line_is_shown_as_text_without_control_sequences() {
        let line = r#"{"time":"2026-11-22T10:00:00.5Z","level":"warn","session":"s","text":"odd \u001b[2J","n":3}"#;
        assert_eq!(shown(line, false, Console::plain(true)), "2026-11-22 10:00:00 warn  odd \\u{1b}[2J n=3\n");
        assert_eq!(shown("no json", false, Console::plain(true)), "no json\n");
    }

    #[test]
    fn an_incomplete_line_is_left_for_later() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"one\ntw").unwrap();
        let mut read = BufReader::new(File::open(file.path()).unwrap());
        assert_eq!(next(&mut read).unwrap().as_deref(), Some("one"));
        assert_eq!(next(&mut read).unwrap(), None);
        file.write_all(b"o\n").unwrap();
        assert_eq!(next(&mut read).unwrap().as_deref(), Some("two"));
    }

    #[test]
    fn the_rotated_log_comes_first_and_a_new_log_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let PluginLog { path, older } = hermes_app::Home::at(folder.path()).plugin_log("mine");
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        std::fs::write(&older, "one\ntwo\n").unwrap();
        std::fs::write(&path, "three\n").unwrap();
        let mut newest = VecDeque::new();
        read(&older, 2, &mut newest).unwrap().unwrap();
        let mut file = read(&path, 2, &mut newest).unwrap().unwrap();
        assert_eq!(newest, ["two", "three"]);
        assert!(!was_rotated(&mut file, &path));
        std::fs::rename(&path, &older).unwrap();
        assert!(!was_rotated(&mut file, &path), "there is no new log yet");
        std::fs::write(&path, "four\n").unwrap();
        assert!(was_rotated(&mut file, &path));
        assert_eq!(next(&mut wait_for(&path).unwrap()).unwrap().as_deref(), Some("four"));
    }
}
