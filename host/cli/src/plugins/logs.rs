//! `hermes plugins logs`: what a plugin said about itself.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::console::{Console, Tone, print};
use crate::failure::{Failure, Kind};
use crate::launch::Setup;
use crate::text;

/// How often a log that is followed is looked at.
const PAUSE: Duration = Duration::from_millis(250);

pub(crate) fn run(name: &str, lines: usize, follow: bool, json: bool, console: Console) -> Result<ExitCode, Failure> {
    let home = Setup::read()?.home;
    // The name becomes part of a path.
    let is_name = |sign: char| sign.is_ascii_lowercase() || sign.is_ascii_digit() || "-_".contains(sign);
    if name.is_empty() || !name.chars().all(is_name) {
        let fix = "`hermes plugins list` shows their names";
        return Err(Failure::new(Kind::Usage, format!("`{name}` has no log"), "it is not the name of a plugin", fix));
    }
    let path = home.logs().join(format!("{name}.jsonl"));
    let mut file = match File::open(&path) {
        Ok(file) => BufReader::new(file),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !follow => {
            console.note(&format!("`{name}` has logged nothing yet: there is no {}", path.display()));
            return Ok(ExitCode::SUCCESS);
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => wait_for(&path)?,
        Err(error) => return Err(unreadable(&path, &error)),
    };
    let mut newest: VecDeque<String> = VecDeque::new();
    while let Some(line) = next(&mut file).map_err(|error| unreadable(&path, &error))? {
        newest.push_back(line);
        if newest.len() > lines {
            newest.pop_front();
        }
    }
    for line in newest {
        print(&shown(&line, json, console))?;
    }
    if !follow {
        return Ok(ExitCode::SUCCESS);
    }
    loop {
        match next(&mut file).map_err(|error| unreadable(&path, &error))? {
            Some(line) => print(&shown(&line, json, console))?,
            None => std::thread::sleep(PAUSE),
        }
    }
}

fn wait_for(path: &std::path::Path) -> Result<BufReader<File>, Failure> {
    loop {
        match File::open(path) {
            Ok(file) => return Ok(BufReader::new(file)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => std::thread::sleep(PAUSE),
            Err(error) => return Err(unreadable(path, &error)),
        }
    }
}

fn unreadable(path: &std::path::Path, error: &std::io::Error) -> Failure {
    let fix = "see that the file can be read";
    Failure::new(Kind::General, format!("{} cannot be shown", path.display()), error.to_string(), fix)
}

/// The next whole line; one that is still being written is waited with.
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
        return format!("{}\n", console.shown(line));
    }
    let Ok(Value::Object(mut fields)) = serde_json::from_str::<Value>(line) else {
        return format!("{}\n", text::line(line));
    };
    let mut word = |name: &str| match fields.shift_remove(name) {
        Some(Value::String(text)) => text,
        Some(other) => other.to_string(),
        None => String::new(),
    };
    let (time, level, _, said) = (word("time"), word("level"), word("session"), word("text"));
    let tone = match level.as_str() {
        "error" => Tone::Bad,
        "warn" => Tone::Warning,
        _ => Tone::Faint,
    };
    let time: String = time.chars().take(19).collect::<String>().replace('T', " ");
    let rest = rest(&fields);
    let gap = if rest.is_empty() || said.is_empty() { "" } else { "  " };
    let said = text::line(&format!("{said}{gap}{rest}"));
    format!("{} {} {said}\n", text::line(&time), console.paint(tone, &format!("{:<5}", text::line(&level))))
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
    fn a_line_is_told_in_words_and_steers_no_terminal() {
        let line = r#"{"time":"2026-11-22T10:00:00.5Z","level":"warn","session":"s","text":"odd \u001b[2J","n":3}"#;
        assert_eq!(shown(line, false, Console::plain(true)), "2026-11-22 10:00:00 warn  odd n=3\n");
        assert_eq!(shown("no json", false, Console::plain(true)), "no json\n");
    }

    #[test]
    fn a_line_that_is_still_written_is_waited_with() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"one\ntw").unwrap();
        let mut read = BufReader::new(File::open(file.path()).unwrap());
        assert_eq!(next(&mut read).unwrap().as_deref(), Some("one"));
        assert_eq!(next(&mut read).unwrap(), None);
        file.write_all(b"o\n").unwrap();
        assert_eq!(next(&mut read).unwrap().as_deref(), Some("two"));
    }
}
