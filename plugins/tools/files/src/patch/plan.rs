//! What a call changes in which files: computed as a whole, then carried out, and taken back if a part fails.

use std::rc::Rc;

use hermes_plugin::Error;
use hermes_plugin::files::{self, Kind};

use super::assumed::Assumed;
use super::edit::{self, Shown};
use super::parse::{Change, Row};
use super::{hunks, replace};
use crate::read::{MAX_WHOLE, peek};
use crate::text::{Text, lines};
use crate::{ROOT, count, path};

/// The files that a call changes.
#[derive(Default)]
pub(super) struct Plan {
    files: Vec<File>,
    /// What the answer says about modes that are not set.
    modes: Vec<String>,
}

/// A file before and after the call.
struct File {
    path: String,
    before: Option<Before>,
    now: Option<Text>,
    /// The path that it had before the call, if it moves.
    from: Option<String>,
    assumed: Assumed,
}

struct Before {
    bytes: Rc<Vec<u8>>,
    version: String,
}

/// The memory that the files of a call may need. A plugin has 64 MiB.
const ROOM: usize = 52 << 20;

/// The memory that a change of a text needs at most: several copies of it, and tables of its lines.
fn room(bytes: &[u8]) -> usize {
    let is_plain = std::str::from_utf8(bytes).is_ok();
    // Other encodings have up to twice as many bytes as UTF-8, beside the bytes of the file.
    let copies = if is_plain { 4 + usize::from(bytes.contains(&b'\r')) } else { 11 };
    let count = |end: u8| bytes.iter().filter(|byte| **byte == end).count();
    copies * bytes.len() + 48 * count(b'\n').max(count(b'\r'))
}

fn too_large(path: &str, than: String) -> Error {
    let way_out = "change it with a program, such as `sed` or a short script";
    Error::invalid(format!("{path} has {than} patch can change: {way_out}")).with_code("too-large")
}

impl Before {
    /// What stays in memory until the end of the call: the file before and after it.
    fn held(&self) -> usize {
        3 * self.bytes.len()
    }
}

impl Plan {
    /// Replaces a text in a file.
    pub(super) fn replace(&mut self, path: &str, old: &str, new: &str, all: bool) -> Result<(), Error> {
        let path = path::locate(path)?;
        let file = self.opened(&path)?;
        let text = file.text(&path)?;
        let (edits, assumed) = replace::edits(&path, text, old, new, all)?;
        file.now = Some(text.edited(&path, &edits)?);
        file.assumed.extend(assumed);
        Ok(())
    }

    /// Adds a change of a patch.
    pub(super) fn change(&mut self, change: &Change) -> Result<(), Error> {
        match change {
            Change::Add { path, lines } => {
                let path = path::locate_named_file(path)?;
                self.absent(&path)?;
                let line = |row: &Row| format!("{}{}", row.text, row.ending("\n"));
                self.put(&path, Text::new(lines.iter().map(line).collect()), None);
            }
            Change::Delete { path, hunks } => {
                let path = path::locate_named(path)?;
                let file = self.peeked(&path, !hunks.is_empty())?;
                let shows_all = !hunks.is_empty();
                if shows_all {
                    let text = file.text(&path)?;
                    let (edits, assumed) = hunks::edits(&path, text, hunks)?;
                    let left = lines(&text.edited(&path, &edits)?.content).len();
                    if left > 0 {
                        let left = count(left as u64, "line");
                        let why = format!(
                            "the patch deletes {path}, but would leave {left} of it. Read the file again, and remove each \
                             line or use `*** Delete File: {path}`"
                        );
                        return Err(Error::invalid(why));
                    }
                    file.assumed.extend(assumed);
                }
                file.now = None;
                if shows_all {
                    self.confirm(&path)?;
                }
            }
            Change::Mode { path, mode } => {
                let path = path::locate_named(path)?;
                self.modes.push(format!(
                    "[the mode {mode} of {path} was not set, because patch changes only text: set it with chmod]"
                ));
            }
            Change::Update { path, to, hunks } => {
                let path = path::locate_named(path)?;
                // A file that only moves was not read by the model.
                let file = if hunks.is_empty() { self.peeked(&path, false)? } else { self.opened(&path)? };
                let text = file.text(&path)?;
                let (edits, assumed) = hunks::edits(&path, text, hunks)?;
                file.now = Some(text.edited(&path, &edits)?);
                file.assumed.extend(assumed.clone());
                if let Some(to) = to {
                    let moved = file.now.take();
                    let to = path::locate_named_file(to)?;
                    self.absent(&to)?;
                    if let Some(text) = moved {
                        self.put(&to, text, Some(path)).assumed.extend(assumed);
                    }
                }
            }
        }
        Ok(())
    }

    /// The patch has shown every line of the file: reading it whole counts as the model's reading.
    fn confirm(&self, path: &str) -> Result<(), Error> {
        let version = self.known(path).and_then(|at| self.files[at].before.as_ref()).map(|before| &before.version);
        match version {
            Some(version) if files::read(ROOT, path, 0, MAX_WHOLE)?.version != *version => {
                Err(Error::conflict(format!("{path} changed while it was read: try again")))
            }
            _ => Ok(()),
        }
    }

    fn known(&self, path: &str) -> Option<usize> {
        self.files.iter().position(|file| file.path == path)
    }

    /// The file as it is after the changes so far. Reading it whole counts as the model's reading.
    fn opened(&mut self, path: &str) -> Result<&mut File, Error> {
        self.loaded(path, true, |path| files::read(ROOT, path, 0, MAX_WHOLE))
    }

    /// Opens a file for a change that does not prove that the model has read it, so the host still asks the user. The encoding
    /// matters only if the text is changed.
    fn peeked(&mut self, path: &str, is_text: bool) -> Result<&mut File, Error> {
        self.loaded(path, is_text, peek)
    }

    fn loaded(
        &mut self,
        path: &str,
        is_text: bool,
        read: impl Fn(&str) -> Result<files::Slice, Error>,
    ) -> Result<&mut File, Error> {
        let at = match self.known(path) {
            Some(at) => at,
            None => {
                let slice = read(path)?;
                if slice.total > slice.content.len() as u64 {
                    return Err(too_large(path, format!("{} bytes, more than the {MAX_WHOLE} that", slice.total)));
                }
                if is_text {
                    let held: usize = self.files.iter().filter_map(|file| file.before.as_ref()).map(Before::held).sum();
                    if held + room(&slice.content) > ROOM {
                        let lines = slice.content.iter().filter(|byte| **byte == b'\n').count();
                        let size = format!("{} bytes in {}", slice.total, count(lines as u64, "line"));
                        let with = if held > 0 { "with the other files of the call " } else { "" };
                        return Err(too_large(path, format!("{size}, {with}more than")));
                    }
                }
                let now = match Text::decode(path, &slice.content) {
                    Ok(text) => text,
                    Err(error) if is_text => return Err(error),
                    Err(_) => Text::opaque(&slice.content),
                };
                let now = Some(now);
                let before = Some(Before { bytes: Rc::new(slice.content), version: slice.version });
                self.files.push(File { path: path.to_owned(), before, now, from: None, assumed: Assumed::default() });
                self.files.len() - 1
            }
        };
        Ok(&mut self.files[at])
    }

    /// Refuses a path that has a file already.
    fn absent(&self, path: &str) -> Result<(), Error> {
        let exists = match self.known(path) {
            Some(at) => self.files[at].now.is_some(),
            None => match files::stat(ROOT, path) {
                Ok(_) => true,
                Err(error) if error.code == "not-found" => false,
                Err(error) => return Err(error),
            },
        };
        if exists {
            return Err(Error::invalid(format!("{path} exists already: change it with `*** Update File: {path}`")));
        }
        Ok(())
    }

    fn put(&mut self, path: &str, text: Text, from: Option<String>) -> &mut File {
        let at = self.known(path).unwrap_or_else(|| {
            self.files.push(File {
                path: path.to_owned(),
                before: None,
                now: None,
                from: None,
                assumed: Assumed::default(),
            });
            self.files.len() - 1
        });
        let file = &mut self.files[at];
        (file.now, file.from) = (Some(text), from);
        file
    }

    /// Writes all files, or leaves all as they were. The answer shows the changes.
    pub(super) fn carry_out(self) -> Result<String, Error> {
        for file in &self.files {
            let size = file.now.as_ref().map_or(0, Text::size);
            if size > MAX_WHOLE as usize {
                let why = format!(
                    "{} would have {size} bytes, more than the {MAX_WHOLE} that can be written at once: nothing was changed",
                    file.path
                );
                return Err(Error::invalid(why).with_code("too-large"));
            }
        }
        let mut answers = Vec::new();
        let mut done = Done::default();
        // So that little has to be brought back, removals come last.
        let (kept, removed): (Vec<&File>, Vec<&File>) = self.files.iter().partition(|file| file.now.is_some());
        for file in kept.into_iter().chain(removed) {
            match self.write(file, &mut done) {
                Ok(answer) => answers.extend(answer),
                Err(error) => return Err(done.take_back(file.from.as_ref().unwrap_or(&file.path), error)),
            }
        }
        if answers.is_empty() && !self.modes.is_empty() {
            let why = "the patch changes only the modes of files, and patch changes only text: set a mode with chmod";
            return Err(Error::invalid(why));
        }
        if answers.is_empty() {
            return Err(Error::invalid("the patch leaves every file as it is: nothing was changed"));
        }
        answers.extend(self.modes);
        Ok(answers.join("\n"))
    }

    fn moved_to(&self, path: &str) -> bool {
        self.files.iter().any(|file| file.from.as_deref() == Some(path) && file.before.is_none())
    }

    fn write(&self, file: &File, done: &mut Done) -> Result<Option<String>, Error> {
        let path = &file.path;
        let source = file.from.as_deref().and_then(|from| self.known(from)).map(|at| &self.files[at]);
        let source = source.filter(|source| source.now.is_none() && file.before.is_none());
        let moved = source.and_then(|source| source.before.as_ref().map(|before| (&source.path, before)));
        Ok(Some(match (&file.before, &file.now) {
            (None, Some(now)) => match moved {
                Some((from, before)) => {
                    done.making_folders(path);
                    files::rename(ROOT, from, path)?;
                    done.undo.push(Undo::MoveBack { from: from.clone(), to: path.clone() });
                    let changed = Self::overwrite(path, before, now, done)?;
                    let shown = changed.then(|| shown(path, before, now)).transpose()?.unwrap_or_default();
                    answer("moved", &format!("{from} to {path}"), &shown, &file.assumed)
                }
                None => {
                    done.making_folders(path);
                    files::write(ROOT, path, &now.encode(), None)?;
                    done.undo.push(Undo::Remove(path.clone()));
                    let added = now.content.lines().count();
                    answer("created", path, &Shown { added, ..Shown::default() }, &file.assumed)
                }
            },
            (Some(before), Some(now)) => match Self::overwrite(path, before, now, done)? {
                true => answer("patched", path, &shown(path, before, now)?, &file.assumed),
                false => return Ok(None),
            },
            (Some(_), None) if self.moved_to(path) => return Ok(None),
            (Some(before), None) => {
                files::remove(ROOT, path)?;
                done.undo.push(Undo::Write { path: path.clone(), bytes: Rc::clone(&before.bytes), version: None });
                let removed = before.bytes.split_inclusive(|byte| *byte == b'\n').count();
                answer("deleted", path, &Shown { removed, ..Shown::default() }, &file.assumed)
            }
            (None, None) => return Ok(None),
        }))
    }

    /// Whether the content differs. Then it was written.
    fn overwrite(path: &str, before: &Before, now: &Text, done: &mut Done) -> Result<bool, Error> {
        let bytes = now.encode();
        if bytes == *before.bytes {
            return Ok(false);
        }
        let version = files::write(ROOT, path, &bytes, Some(&before.version))?;
        done.undo.push(Undo::Write { path: path.to_owned(), bytes: Rc::clone(&before.bytes), version: Some(version) });
        Ok(true)
    }
}

impl File {
    fn text(&self, path: &str) -> Result<&Text, Error> {
        self.now
            .as_ref()
            .ok_or_else(|| Error::invalid(format!("the patch changes {path} after it deleted or moved it")))
    }
}

fn shown(path: &str, before: &Before, now: &Text) -> Result<Shown, Error> {
    Ok(edit::show(&Text::decode(path, &before.bytes)?, now))
}

fn answer(what: &str, name: &str, shown: &Shown, assumed: &Assumed) -> String {
    let counts: Vec<String> = [('+', shown.added), ('-', shown.removed)]
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(sign, count)| format!("{sign}{count}"))
        .collect();
    let counts = if counts.is_empty() { String::new() } else { format!(" ({})", counts.join(" ")) };
    let rows = [format!("{what} {name}{counts}"), shown.diff.clone(), assumed.to_string()];
    rows.into_iter().filter(|row| !row.is_empty()).collect::<Vec<_>>().join("\n")
}

/// What has been carried out.
#[derive(Default)]
struct Done {
    undo: Vec<Undo>,
}

enum Undo {
    /// Writes what a file had, if it is at this version.
    Write {
        path: String,
        bytes: Rc<Vec<u8>>,
        version: Option<String>,
    },
    Remove(String),
    /// The folder that the call made, if it is empty.
    RemoveFolder(String),
    MoveBack {
        from: String,
        to: String,
    },
}

impl Done {
    /// Notes the folders that the host will create for a file.
    fn making_folders(&mut self, path: &str) {
        let folders: Vec<&str> = path.match_indices('/').map(|(at, _)| &path[..at]).collect();
        let is_missing = |folder: &&&str| matches!(files::stat(ROOT, folder), Err(error) if error.code == "not-found");
        let missing: Vec<String> = folders.iter().filter(is_missing).map(|folder| (*folder).to_owned()).collect();
        self.undo.extend(missing.into_iter().map(Undo::RemoveFolder));
    }

    /// Takes everything back. The error says what failed, and that no file has changed, or which have.
    fn take_back(self, failed: &str, error: Error) -> Error {
        let (mut left, mut changed) = (Vec::new(), false);
        for undo in self.undo.into_iter().rev() {
            let (path, taken_back) = match &undo {
                Undo::Write { path, bytes, version } => {
                    (path, files::write(ROOT, path, bytes, version.as_deref()).map(drop))
                }
                Undo::Remove(path) => (path, files::remove(ROOT, path)),
                Undo::MoveBack { from, to } => (to, files::rename(ROOT, to, from)),
                Undo::RemoveFolder(path) => {
                    // Another program may use it by now, and then it stays.
                    if files::stat(ROOT, path).is_ok_and(|entry| entry.kind == Kind::Directory) {
                        let _ = files::remove(ROOT, path);
                    }
                    continue;
                }
            };
            changed = true;
            if let Err(error) = taken_back {
                left.push(format!("{path} ({})", error.message));
            }
        }
        let outcome = match (left.is_empty(), changed) {
            (true, false) => "No file was changed".to_owned(),
            (true, true) => "The files changed before it were restored, so no file has changed".to_owned(),
            (false, _) => {
                format!("These files could not be restored and stay changed: {}. Tell the user", left.join(", "))
            }
        };
        Error { message: format!("{failed}: {}. {outcome}", error.message.trim_end_matches('.')), ..error }
    }
}
