//! The newest text of files, as known from what the conversation read, wrote and edited.

use std::collections::HashMap;

use hermes_plugin::MessageId;
use serde_json::{Map, Value};

use crate::action::Action;
use crate::fact::CompletedCall;
use crate::policy;

/// Number of files kept, and lines kept of each.
const FILES: usize = 48;
const LINES: usize = 20_000;
/// Number of source messages kept per file, newest first.
const SOURCES: usize = 12;

/// Lines shorter than this are not distinctive.
const TELLING: usize = 24;

/// Hash of a line, or `None` if the line is too short to be distinctive.
pub(crate) fn line_hash(line: &str) -> Option<u64> {
    let line = line.trim();
    (line.len() >= TELLING).then(|| {
        // Hash eight bytes at a time: this runs over many lines.
        let mut chunks = line.as_bytes().chunks_exact(8);
        let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        let hash = chunks
            .by_ref()
            .fold(line.len() as u64, |hash, chunk| mix(hash, u64::from_le_bytes(chunk.try_into().unwrap_or_default())));
        chunks.remainder().iter().fold(hash, |hash, byte| mix(hash, u64::from(*byte)))
    })
}

/// How often a file was needed after it had left the view. Decays with time.
#[derive(Debug, Clone, Default)]
struct Credit {
    value: f64,
    /// Time in tokens of conversation.
    at: u64,
}

impl Credit {
    fn value(&self, now: u64) -> f64 {
        self.value * 0.5_f64.powf(now.saturating_sub(self.at) as f64 / policy::HALF_LIFE)
    }

    fn add(&mut self, now: u64) {
        *self = Self { value: self.value(now) + 1.0, at: now };
    }
}

/// Known text of a file.
#[derive(Debug, Clone, Default)]
pub(crate) struct File {
    pub(crate) path: String,
    /// `None` for lines that were never seen.
    pub(crate) lines: Vec<Option<String>>,
    /// Line where the assistant last continued the file; it is likely to continue after it.
    pub(crate) place: Option<usize>,
    credit: Credit,
    /// Line numbers by hash, built on first use.
    index: Option<HashMap<u64, usize>>,
    /// The newest messages that contributed text, oldest first.
    pub(crate) sources: Vec<MessageId>,
}

/// All known files, the most recently touched last.
#[derive(Debug, Clone, Default)]
pub(crate) struct Files {
    files: Vec<File>,
    /// Paths of changed files, the most recently changed last.
    edits: Vec<String>,
}

impl Files {
    /// The assistant repeated these lines, which nothing in view shows: credits the file that holds most of them.
    pub(crate) fn credit(&mut self, lines: &[u64], now: u64) {
        let mut best: Option<(usize, usize, usize)> = None;
        for (at, file) in self.files.iter_mut().enumerate() {
            let index = file.index();
            let places = lines.iter().filter_map(|line| index.get(line).copied());
            let (count, last) = places.fold((0, 0), |(count, last), place| (count + 1, last.max(place)));
            if count > 0 && best.is_none_or(|(known, ..)| count > known) {
                best = Some((count, at, last));
            }
        }
        if let Some((_, at, last)) = best {
            self.files[at].credit.add(now);
            self.files[at].place = Some(last);
        }
    }

    /// Files with credit, highest first.
    pub(crate) fn credited(&self, now: u64) -> Vec<(&File, f64)> {
        let mut files: Vec<(&File, f64)> = self.files.iter().map(|file| (file, file.credit.value(now))).collect();
        files.retain(|(_, value)| *value >= policy::LEAST_CREDIT);
        files.sort_by(|a, b| b.1.total_cmp(&a.1));
        files
    }

    /// Updates the files from a call and its result.
    pub(crate) fn take(&mut self, done: &CompletedCall<'_>, now: u64) {
        let Some(path) = done.action.path().filter(|_| !done.failed) else { return };
        let at = self.files.iter().position(|file| file.path == path);
        let mut file = match at {
            Some(at) => self.files.remove(at),
            None => File { path: path.to_owned(), ..File::default() },
        };
        let source = match done.action {
            Action::Read { from, whole, .. } => {
                let (from, lines) = read_lines(&done.result.content, *from);
                file.read(from, lines, *whole);
                done.result.id
            }
            Action::Write { content, .. } => {
                file.lines = content.lines().take(LINES).map(|line| Some(line.to_owned())).collect();
                file.place = Some(0);
                file.credit.add(now);
                done.caller
            }
            Action::Edit { changes, .. } => {
                for (old, new) in changes {
                    file.change(old, new);
                }
                done.caller
            }
            Action::Command(_) | Action::Other(_) => return,
        };
        file.index = None;
        file.sources.retain(|known| *known != source);
        file.sources.push(source);
        let many = file.sources.len().saturating_sub(SOURCES);
        file.sources.drain(..many);
        if done.action.changes_something() {
            self.edits.retain(|known| known != path);
            self.edits.push(path.to_owned());
        }
        self.files.push(file);
        if self.files.len() > FILES {
            let gone = self.files.remove(0);
            self.edits.retain(|known| *known != gone.path);
        }
    }

    /// Changed files, the most recent first.
    pub(crate) fn edited(&self) -> impl Iterator<Item = &File> {
        self.edits.iter().rev().filter_map(|path| self.get(path))
    }

    pub(crate) fn get(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }
}

impl File {
    fn read(&mut self, from: usize, lines: Vec<String>, whole: bool) {
        if whole && from == 0 {
            self.lines = lines.into_iter().map(Some).collect();
        } else {
            let end = (from + lines.len()).min(LINES);
            if self.lines.len() < end {
                self.lines.resize(end, None);
            }
            for (at, line) in (from..end).zip(lines) {
                self.lines[at] = Some(line);
            }
        }
        self.lines.truncate(LINES);
    }

    fn change(&mut self, old: &str, new: &str) {
        let old: Vec<&str> = old.split('\n').collect();
        let mut new: Vec<String> = new.split('\n').map(str::to_owned).collect();
        let count = new.len();
        let at = match self.find(&old) {
            Some(at) => {
                let end = at + old.len() - 1;
                // The passage can begin and end in mid-line.
                let (first, last) = (self.text(at), self.text(end));
                let (head, rest) = if old.len() == 1 {
                    let begins = first.find(old[0]).unwrap_or(0);
                    (first[..begins].to_owned(), first[begins + old[0].len()..].to_owned())
                } else {
                    let begins = first.len() - old[0].len();
                    (first[..begins].to_owned(), last[old[old.len() - 1].len()..].to_owned())
                };
                new[0].insert_str(0, &head);
                new[count - 1].push_str(&rest);
                self.lines.splice(at..=end, new.into_iter().map(Some));
                at
            }
            // The passage is unknown: append it after the known lines, with a gap.
            None => {
                if !self.lines.is_empty() {
                    self.lines.push(None);
                }
                let at = self.lines.len();
                self.lines.extend(new.into_iter().map(Some));
                at
            }
        };
        self.lines.truncate(LINES);
        self.place.get_or_insert(at);
    }

    /// Line numbers by hash; of equal lines the first.
    fn index(&mut self) -> &HashMap<u64, usize> {
        let lines = &self.lines;
        self.index.get_or_insert_with(|| {
            let mut index = HashMap::new();
            for (at, line) in lines.iter().enumerate() {
                if let Some(hash) = line.as_deref().and_then(line_hash) {
                    index.entry(hash).or_insert(at);
                }
            }
            index
        })
    }

    fn text(&self, at: usize) -> &str {
        self.lines[at].as_deref().unwrap_or_default()
    }

    fn find(&self, old: &[&str]) -> Option<usize> {
        let last = old.len() - 1;
        let known = |at: usize| self.lines[at].as_deref();
        (0..(self.lines.len() + 1).saturating_sub(old.len())).find(|&at| {
            if last == 0 {
                return known(at).is_some_and(|line| line.contains(old[0]));
            }
            known(at).is_some_and(|line| line.ends_with(old[0]))
                && known(at + last).is_some_and(|line| line.starts_with(old[last]))
                && (1..last).all(|n| known(at + n) == Some(old[n]))
        })
    }
}

/// The lines in a result, and the number of the first. Some tools number lines, wrap them in JSON, or append a note.
fn read_lines(result: &str, from: usize) -> (usize, Vec<String>) {
    let unwrapped = result.starts_with('{').then(|| serde_json::from_str::<Map<String, Value>>(result).ok()).flatten();
    let wrapped = unwrapped.as_ref().and_then(|fields| fields.get("content")?.as_str());
    let text = wrapped.unwrap_or(result);
    let mut lines: Vec<&str> = text.lines().take(LINES).collect();
    if lines
        .last()
        .is_some_and(|last| last.contains("more lines") || last.starts_with("... (") || last.starts_with('['))
    {
        lines.pop();
    }
    let numbered: Option<Vec<(usize, &str)>> = lines.iter().map(|line| number(line)).collect();
    match numbered.filter(|lines| lines.windows(2).all(|pair| pair[1].0 == pair[0].0 + 1)) {
        Some(numbered) if !numbered.is_empty() => {
            (numbered[0].0.saturating_sub(1), numbered.into_iter().map(|(_, line)| line.to_owned()).collect())
        }
        _ => (from, lines.into_iter().map(str::to_owned).collect()),
    }
}

/// Parses `12|text` and `  12<tab>text`.
fn number(line: &str) -> Option<(usize, &str)> {
    let (number, text) = line.split_once(['|', '\t'])?;
    Some((number.trim().parse().ok()?, text))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_plugin::Message;

    use super::*;
    use crate::fact::Reader;
    use crate::testing::{calls, result};

    fn take(files: &mut Files, reader: &mut Reader, arguments: &str, answer: &str, id: u64) {
        let pair: [Message; 2] = [calls(id, &[("a", "tool", arguments)]), result(id + 1, "a", "tool", answer)];
        for message in &pair {
            reader.read(message, id, |done| files.take(done, 0));
        }
    }

    fn text(file: &File) -> Vec<&str> {
        file.lines.iter().map(|line| line.as_deref().unwrap_or("?")).collect()
    }

    #[test]
    fn a_file_is_assembled_from_reads_writes_and_edits() {
        let (mut files, mut reader) = (Files::default(), Reader::default());
        take(&mut files, &mut reader, r#"{"path":"a","offset":3}"#, "3|three\n4|four", 1);
        assert_eq!(text(files.get("a").unwrap()), ["?", "?", "three", "four"]);
        take(&mut files, &mut reader, r#"{"path":"a","oldText":"ree\nfo","newText":"i\ns\nfi"}"#, "done", 3);
        let file = files.get("a").unwrap();
        assert_eq!(text(file), ["?", "?", "thi", "s", "fiur"]);
        assert_eq!((file.place, file.sources.as_slice()), (Some(2), &[2, 3][..]));
        take(&mut files, &mut reader, r#"{"path":"a","oldText":"unknown","newText":"loose"}"#, "done", 5);
        assert_eq!(text(files.get("a").unwrap()), ["?", "?", "thi", "s", "fiur", "?", "loose"]);
        take(&mut files, &mut reader, r#"{"path":"a"}"#, "one\ntwo", 7);
        assert_eq!(text(files.get("a").unwrap()), ["one", "two"]);
        take(&mut files, &mut reader, r#"{"path":"b","content":"x\ny"}"#, "done", 9);
        take(&mut files, &mut reader, r#"{"path":"b","oldText":"x","newText":"z"}"#, "error: no", 11);
        assert_eq!(text(files.get("b").unwrap()), ["x", "y"], "what failed changed nothing");
        let edited: Vec<&str> = files.edited().map(|file| file.path.as_str()).collect();
        assert_eq!(edited, ["b", "a"]);
    }

    #[test]
    fn a_file_gains_credit_when_its_lines_are_repeated_and_loses_it_with_time() {
        let (mut files, mut reader) = (Files::default(), Reader::default());
        let plan: String = (0..50).map(|n| format!("this is step number {n} of the plan\\n")).collect();
        take(&mut files, &mut reader, &format!(r#"{{"path":"plan","content":"{plan}"}}"#), "done", 1);
        take(&mut files, &mut reader, r#"{"path":"other"}"#, "this is step number 7 of the plan", 3);
        assert!(files.credited(0).is_empty(), "one credit for having been written is not enough");
        let line = |n: usize| line_hash(&format!("  this is step number {n} of the plan")).unwrap();
        files.credit(&[line(7), line(9), 12345], 0);
        let credited = files.credited(0);
        assert_eq!((credited.len(), credited[0].0.path.as_str(), credited[0].0.place), (1, "plan", Some(9)));
        assert!(files.credited(100_000).is_empty());
    }

    #[test]
    fn hostile_edits_neither_panic_nor_grow_without_limit() {
        let (mut files, mut reader) = (Files::default(), Reader::default());
        for id in 0..200 {
            let arguments = format!(r#"{{"path":"f{}","oldText":"","newText":"é\n\n渡"}}"#, id % 70);
            take(&mut files, &mut reader, &arguments, "done", id * 2 + 1);
        }
        assert!(files.files.len() <= FILES && files.edits.len() <= FILES);
        take(&mut files, &mut reader, r#"{"path":"g","offset":99999999999}"#, "x", 900);
        assert!(files.get("g").unwrap().lines.len() <= LINES);
    }
}
