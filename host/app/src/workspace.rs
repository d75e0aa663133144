//! The files of a session's folder, for messages that name one.

use std::path::Path;
use std::time::{Duration, Instant};

use hermes_checkpoints::Ignored;
use ignore::WalkBuilder;

/// The names of at most this many files of a folder, as paths in it, the shortest first. What git ignores is left out, and so are
/// names with control characters or quotes. The search ends after `patience`.
pub fn files(folder: &Path, most: usize, patience: Duration) -> Vec<String> {
    let until = Instant::now() + patience;
    let mut walk = WalkBuilder::new(folder);
    let ignored = Ignored::below(folder).and_of_searches();
    // Hidden files can be attached too; git's own cannot be of use.
    walk.standard_filters(false).filter_entry(move |entry| {
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        entry.file_name() != ".git" && !ignored.is_ignored(entry.path(), is_folder)
    });
    let files = walk.build().take_while(|_| Instant::now() < until).filter_map(Result::ok);
    let files = files.filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    let names = files.filter_map(|entry| entry.path().strip_prefix(folder).ok()?.to_str().map(str::to_owned));
    let is_plain = |name: &String| !name.contains(|character: char| character.is_control() || character == '"');
    let mut names: Vec<String> = names.filter(is_plain).take(most).collect();
    names.sort_by(|one, other| (one.len(), one).cmp(&(other.len(), other)));
    names
}
