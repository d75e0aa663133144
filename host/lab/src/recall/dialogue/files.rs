//! Reads files and folders, and recognises what is in them.

use std::fs;
use std::path::{Path, PathBuf};

use hermes_recordings::Note;
use hermes_recordings::RecordingError;
use serde_json::Value;

use super::locomo::Corrections;
use super::{Dialogue, Only, beam, locomo, longmemeval};
use crate::LabError;

/// The largest file that is read, in bytes.
const MOST: u64 = 2 << 30;

/// What is in a file.
enum Content {
    Published(Vec<Value>),
    Audited(Value),
    Corrections(Value),
    LongMemEval(Vec<Value>),
    Chat(Value),
    Questions(Value),
}

struct Found {
    path: PathBuf,
    content: Content,
}

/// Reads all dialogues of files and folders, and counts what was in no known format.
///
/// A folder stands for its `.json` files, at any depth. A chat of BEAM and its questions belong together if the questions
/// are in the same folder or directly below it. Where a folder has several chats, the shortest one counts, which is the one
/// that BEAM itself evaluates.
///
/// # Errors
///
/// [`LabError::File`], [`LabError::Dialogues`].
pub fn read(paths: &[PathBuf], only: Option<&Only>) -> Result<(Vec<Dialogue>, Vec<Note>), LabError> {
    let mut notes = Vec::new();
    let mut found: Vec<Found> = Vec::new();
    for path in paths {
        if path.is_dir() {
            for path in files_in(path)? {
                match recognise(&path)? {
                    Ok(content) => found.push(Found { path, content }),
                    Err(_) => super::add(&mut notes, "files of a folder in no known format", 1),
                }
            }
        } else {
            let content = recognise(path)?.map_err(|why| unusable(path, why))?;
            found.push(Found { path: path.clone(), content });
        }
    }
    let mut corrections = Corrections::default();
    for file in &found {
        if let Content::Corrections(value) = &file.content {
            corrections.add(value);
        }
    }
    let mut dialogues = Vec::new();
    for file in &found {
        let wrong = |why: String| unusable(&file.path, why);
        match &file.content {
            Content::Published(values) => {
                let read = values.iter().enumerate().map(|(at, value)| locomo::published(value, at, &mut corrections));
                dialogues.extend(chosen(read, only).map_err(wrong)?);
            }
            Content::LongMemEval(values) => {
                let read = values.iter().enumerate().map(|(at, value)| longmemeval::read(value, at));
                dialogues.extend(chosen(read, only).map_err(wrong)?);
            }
            Content::Audited(value) => dialogues.push(locomo::audited(value, &mut corrections).map_err(wrong)?),
            Content::Corrections(_) | Content::Chat(_) | Content::Questions(_) => {}
        }
    }
    dialogues.extend(chats(&found, &mut notes)?);
    super::add(&mut notes, "corrections that fit no question", corrections.unused());
    if dialogues.is_empty() {
        let path = paths.first().map_or_else(PathBuf::new, Clone::clone);
        return Err(unusable(&path, "no dialogue is left to ask about".to_owned()));
    }
    Ok((dialogues, notes))
}

/// The chosen dialogues of a file. Corrections are looked up for all of them.
fn chosen(read: impl Iterator<Item = Result<Dialogue, String>>, only: Option<&Only>) -> Result<Vec<Dialogue>, String> {
    let all = read.enumerate().map(|(at, dialogue)| dialogue.map_err(|why| format!("dialogue {at}: {why}")));
    let all = all.collect::<Result<Vec<_>, _>>()?;
    let several = all.len() > 1;
    let is_chosen = |at: usize| !several || only.is_none_or(|only| only.takes(at));
    Ok(all.into_iter().enumerate().filter(|(at, _)| is_chosen(*at)).map(|(_, dialogue)| dialogue).collect())
}

/// The chats with their questions.
fn chats(found: &[Found], notes: &mut Vec<Note>) -> Result<Vec<Dialogue>, LabError> {
    let mut chats: Vec<(&Path, &Path, &Value)> = Vec::new();
    for file in found {
        let Content::Chat(chat) = &file.content else { continue };
        let folder = folder_of(&file.path);
        match chats.iter_mut().find(|(known, ..)| *known == folder) {
            None => chats.push((folder, &file.path, chat)),
            Some(known) => {
                super::add(notes, "longer chats beside the one that is asked about", 1);
                if beam::length(chat) < beam::length(known.2) {
                    *known = (folder, &file.path, chat);
                }
            }
        }
    }
    let mut used = 0;
    let mut dialogues = Vec::new();
    for (folder, path, chat) in chats {
        let questions = found.iter().find_map(|file| match &file.content {
            Content::Questions(questions) => {
                let own = folder_of(&file.path);
                (own == folder || folder_of(own) == folder).then_some(questions)
            }
            _ => None,
        });
        let why = "it is a chat of BEAM without its questions, which are a file in the same folder or in one below it";
        let questions = questions.ok_or_else(|| unusable(path, why.to_owned()))?;
        used += 1;
        let name = folder.file_name().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned());
        dialogues.push(beam::read(name, chat, questions));
    }
    let all = found.iter().filter(|file| matches!(file.content, Content::Questions(_))).count() as u64;
    super::add(notes, "files of questions without a chat", all.saturating_sub(used));
    Ok(dialogues)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

/// The `.json` files below a folder, in the order of their names, with numbers by their value.
fn files_in(folder: &Path) -> Result<Vec<PathBuf>, LabError> {
    let failed = |source| RecordingError::Read { path: folder.to_owned(), source };
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        // Links are not followed, so that no folder contains itself.
        entries.push((entry.path(), entry.file_type().map_err(failed)?));
    }
    entries.sort_by_cached_key(|(path, _)| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        (name.parse::<u64>().unwrap_or(u64::MAX), name)
    });
    let mut files = Vec::new();
    for (path, kind) in entries {
        if kind.is_dir() {
            files.extend(files_in(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
    Ok(files)
}

/// The content of a file, or why it is in no known format.
fn recognise(path: &Path) -> Result<Result<Content, String>, LabError> {
    let failed = |source| RecordingError::Read { path: path.to_owned(), source };
    let bytes = fs::metadata(path).map_err(failed)?.len();
    if bytes > MOST {
        return Err(RecordingError::TooLarge { path: path.to_owned(), bytes, most: MOST }.into());
    }
    let text = fs::read(path).map_err(failed)?;
    let value: Value = match serde_json::from_slice(&text) {
        Ok(value) => value,
        Err(error) => return Ok(Err(format!("it is not JSON: {error}"))),
    };
    if Corrections::recognises(&value) {
        return Ok(Ok(Content::Corrections(value)));
    }
    if beam::is_chat(&value) {
        return Ok(Ok(Content::Chat(value)));
    }
    if beam::is_questions(&value) {
        return Ok(Ok(Content::Questions(value)));
    }
    if locomo::is_audited(&value) {
        return Ok(Ok(Content::Audited(value)));
    }
    let entries = match value {
        Value::Array(entries) => entries,
        object => vec![object],
    };
    let all = |recognises: fn(&Value) -> bool| !entries.is_empty() && entries.iter().all(recognises);
    Ok(if all(locomo::is_published) {
        Ok(Content::Published(entries))
    } else if all(longmemeval::recognises) {
        Ok(Content::LongMemEval(entries))
    } else {
        Err("it is in no known format of dialogues".to_owned())
    })
}

fn unusable(path: &Path, why: String) -> LabError {
    LabError::Dialogues { path: path.to_owned(), why }
}
