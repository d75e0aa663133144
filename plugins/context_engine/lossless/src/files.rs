//! The newest text of files, as far as the conversation shows it: from what was read, written and edited.

use std::collections::HashMap;

use hermes_plugin::MessageId;
use serde_json::{Map, Value};

use crate::deed::Deed;
use crate::fact::Done;
use crate::policy;

/// Files that are kept, and lines of one.
const FILES: usize = 48;
const LINES: usize = 20_000;
/// Messages that a file's text is known from, the newest ones.
const SOURCES: usize = 12;

/// Shorter lines stand everywhere.
const TELLING: usize = 24;

/// What tells a line from others; none where it is too short to tell anything.
pub(crate) fn line_hash(line: &str) -> Option<u64> {
    let line = line.trim();
    (line.len() >= TELLING).then(|| {
        // Many lines are looked at: eight bytes at a time.
        let mut chunks = line.as_bytes().chunks_exact(8);
        let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        let hash = chunks
            .by_ref()
            .fold(line.len() as u64, |hash, chunk| mix(hash, u64::from_le_bytes(chunk.try_into().unwrap_or_default())));
        chunks.remainder().iter().fold(hash, |hash, byte| mix(hash, u64::from(*byte)))
    })
}

/// How much a file was needed after it had left the view.
#[derive(Debug, Clone, Default)]
struct Credit {
    value: f64,
    /// On the clock of tokens.
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

/// What is known of a file.
#[derive(Debug, Clone, Default)]
pub(crate) struct File {
    pub(crate) path: String,
    /// None where nothing was seen of a line.
    pub(crate) lines: Vec<Option<String>>,
    /// Where it was last taken up: what comes next is likely to be taken up next.
    pub(crate) place: Option<usize>,
    credit: Credit,
    /// Lines by their hash, once somebody asked.
    index: Option<HashMap<u64, usize>>,
    /// The newest messages that it is known from, oldest first.
    pub(crate) sources: Vec<MessageId>,
}

/// The files, the one touched last at the end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Files {
    files: Vec<File>,
    /// By path, the one changed last at the end.
    edits: Vec<String>,
}

impl Files {
    /// Gives credit for lines that were written again though nothing showed them: to the file that has most of them.
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

    /// Files with credit, those with most of it first.
    pub(crate) fn credited(&self, now: u64) -> Vec<(&File, f64)> {
        let mut files: Vec<(&File, f64)> = self.files.iter().map(|file| (file, file.credit.value(now))).collect();
        files.retain(|(_, value)| *value >= policy::LEAST_CREDIT);
        files.sort_by(|a, b| b.1.total_cmp(&a.1));
        files
    }

    /// Takes a call and its result.
    pub(crate) fn take(&mut self, done: &Done<'_>, now: u64) {
        let Some(path) = done.deed.path().filter(|_| !done.failed) else { return };
        let at = self.files.iter().position(|file| file.path == path);
        let mut file = match at {
            Some(at) => self.files.remove(at),
            None => File { path: path.to_owned(), ..File::default() },
        };
        let source = match done.deed {
            Deed::Read { from, whole, .. } => {
                let (from, lines) = read_lines(&done.result.content, *from);
                file.read(from, lines, *whole);
                done.result.id
            }
            Deed::Write { content, .. } => {
                file.lines = content.lines().take(LINES).map(|line| Some(line.to_owned())).collect();
                file.place = Some(0);
                file.credit.add(now);
                done.caller
            }
            Deed::Edit { changes, .. } => {
                for (old, new) in changes {
                    file.change(old, new);
                }
                done.caller
            }
            Deed::Command(_) | Deed::Other(_) => return,
        };
        file.index = None;
        file.sources.retain(|known| *known != source);
        file.sources.push(source);
        let many = file.sources.len().saturating_sub(SOURCES);
        file.sources.drain(..many);
        if done.deed.changes_something() {
            self.edits.retain(|known| known != path);
            self.edits.push(path.to_owned());
        }
        self.files.push(file);
        if self.files.len() > FILES {
            let gone = self.files.remove(0);
            self.edits.retain(|known| *known != gone.path);
        }
    }

    /// Those changed last, the last one first.
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
                // The passage may begin and end within lines.
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
            // Never seen: it stands apart, behind what is known.
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

    /// Where its lines stand, the first of equal ones.
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

/// The lines in a result and where they begin: some tools number them, some wrap them in JSON, and some end with a note.
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

/// `12|text` and `  12<tab>text`.
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
    fn a_file_is_what_was_read_written_and_edited_of_it() {
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
    fn a_file_gains_credit_where_its_lines_are_written_again_and_loses_it_with_time() {
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
    fn hostile_edits_neither_panic_nor_grow_without_end() {
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
