//! The whole texts of results that are too long for the model, as files that `read_file` shows in parts.
//!
//! Each session has a folder of its own, the only one that its plugins can read. The log has these texts too, so that a file may be
//! lost at any time. A file has the digest of its text as name, so that equal results share one.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use hermes_conversation::SessionId;
use hermes_plugin_host::{results_folder, session_results};
use hermes_prompt::scan;

/// The most bytes of the files of all sessions; the oldest are removed.
const MOST_BYTES: u64 = 256 << 20;
/// How long a file stays.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Ends the name of a file with text of strangers, which reaches the model only in its fence, whichever tool reads it.
const UNTRUSTED: &str = ".untrusted.txt";
/// The longest line that `read_file` shows whole, in characters.
const LONGEST_LINE: usize = 2_000;

/// A file with the whole text of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) path: PathBuf,
    pub(crate) lines: usize,
}

/// Writes a text into the session's folder, and makes room for it. `None` if the session has none.
pub(crate) async fn keep(
    home: &Path,
    session: &SessionId,
    text: String,
    is_untrusted: bool,
) -> io::Result<Option<Kept>> {
    let Some(folder) = session_results(home, session.as_str()) else { return Ok(None) };
    let results = results_folder(home);
    let written =
        tokio::task::spawn_blocking(move || write(&results, &folder, &text, is_untrusted, MOST_BYTES)).await?;
    written.map(Some)
}

/// Gives a branch the results of its parent, which its conversation names. Does nothing if the branch has results already.
pub(crate) fn inherit(home: &Path, parent: &SessionId, branch: &SessionId) -> io::Result<()> {
    let folders = session_results(home, parent.as_str()).zip(session_results(home, branch.as_str()));
    let Some((from, to)) = folders.filter(|(from, to)| from.is_dir() && !to.exists()) else { return Ok(()) };
    hermes_private_files::create_folder(&to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let copy = to.join(entry.file_name());
        // Not every file system has links.
        if entry.file_type()?.is_file() && std::fs::hard_link(entry.path(), &copy).is_err() {
            std::fs::copy(entry.path(), copy)?;
        }
    }
    Ok(())
}

/// Removes the folder of a session that has kept nothing.
pub(crate) fn tidy(home: &Path, session: &SessionId) {
    if let Some(folder) = session_results(home, session.as_str()) {
        // A folder with files stays.
        let _ = std::fs::remove_dir(folder);
    }
}

/// Removes the kept results of sessions that are gone.
pub fn remove_kept_results(home: &Path, is_gone: impl Fn(&SessionId) -> bool) -> io::Result<()> {
    let folders = match std::fs::read_dir(results_folder(home)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        folders => folders?,
    };
    for entry in folders {
        let entry = entry?;
        let Ok(session) = entry.file_name().into_string().map(SessionId) else { continue };
        if entry.file_type()?.is_dir() && is_gone(&session) {
            std::fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

/// Whether a call is about a kept text of strangers: its arguments name the file, or its result does.
pub(crate) fn is_of_strangers(arguments: &str, result: &str) -> bool {
    // An escape in the JSON hides nothing.
    let arguments: serde_json::Value = serde_json::from_str(arguments).unwrap_or_default();
    result.contains(UNTRUSTED) || scan::texts(&arguments).iter().any(|text| text.contains(UNTRUSTED))
}

fn write(results: &Path, folder: &Path, text: &str, is_untrusted: bool, most: u64) -> io::Result<Kept> {
    let paged = paged(text);
    hermes_private_files::create_folder(folder)?;
    make_room(results, most.saturating_sub(paged.len() as u64), SystemTime::now())?;
    let digest = blake3::hash(text.as_bytes()).to_hex();
    let path = folder.join(format!("{}{}", &digest[..32], if is_untrusted { UNTRUSTED } else { ".txt" }));
    hermes_private_files::write_atomically(&path, paged.as_bytes())?;
    Ok(Kept { path, lines: paged.lines().count() })
}

/// The text with lines that `read_file` shows whole: longer ones are divided.
fn paged(text: &str) -> Cow<'_, str> {
    if text.lines().all(|line| line.chars().nth(LONGEST_LINE).is_none()) {
        return Cow::Borrowed(text);
    }
    let mut paged = String::with_capacity(text.len() + text.len() / LONGEST_LINE + 1);
    let mut length = 0;
    for character in text.chars() {
        if character == '\n' {
            length = 0;
        } else if length == LONGEST_LINE {
            paged.push('\n');
            length = 1;
        } else {
            length += 1;
        }
        paged.push(character);
    }
    Cow::Owned(paged)
}

/// Removes files that are too old, and then the oldest ones until the others have at most so many bytes.
fn make_room(results: &Path, most: u64, now: SystemTime) -> io::Result<()> {
    let is_old = |at: SystemTime| now.duration_since(at).is_ok_and(|age| age > LONGEST);
    let mut files: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
    for folder in std::fs::read_dir(results)? {
        let folder = folder?;
        let found = folder.metadata()?;
        if !found.is_dir() {
            continue;
        }
        // Another process may remove these things at the same time.
        for entry in std::fs::read_dir(folder.path()).into_iter().flatten().flatten() {
            if let Some(found) = entry.metadata().ok().filter(std::fs::Metadata::is_file) {
                files.push((found.modified()?, found.len(), entry.path()));
            }
        }
        if is_old(found.modified()?) {
            // Only if it is empty. A session that has just begun may have kept nothing yet.
            let _ = std::fs::remove_dir(folder.path());
        }
    }
    let mut bytes: u64 = files.iter().map(|(_, size, _)| size).sum();
    files.sort();
    for (at, size, path) in files {
        if bytes <= most && !is_old(at) {
            break;
        }
        let _ = std::fs::remove_file(path);
        bytes -= size;
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn id(name: &str) -> SessionId {
        SessionId(name.to_owned())
    }

    fn kept(home: &Path, session: &str, text: &str) -> Kept {
        write(&results_folder(home), &session_results(home, session).unwrap(), text, false, MOST_BYTES).unwrap()
    }

    #[test]
    fn a_text_is_kept_once_for_its_owner_alone() {
        let home = tempfile::tempdir().unwrap();
        let one = kept(home.path(), "s", "one\ntwo\n");
        assert_eq!((std::fs::read_to_string(&one.path).unwrap().as_str(), one.lines), ("one\ntwo\n", 2));
        assert_eq!(kept(home.path(), "s", "one\ntwo\n"), one);
        assert_ne!(kept(home.path(), "s", "one\n").path, one.path);
        assert_eq!(std::fs::read_dir(home.path().join("results/s")).unwrap().count(), 2);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
            let folder = one.path.parent().unwrap();
            assert_eq!((mode(&one.path), mode(folder), mode(folder.parent().unwrap())), (0o600, 0o700, 0o700));
        }
    }

    #[test]
    fn a_session_whose_id_is_a_path_keeps_nothing() {
        for session in ["", "..", "../other", "a/b", "a.b"] {
            assert_eq!(session_results(Path::new("/home"), session), None, "{session}");
        }
    }

    #[test]
    fn lines_that_are_too_long_are_divided_and_lose_nothing() {
        let long = format!("short\n{}\r\n\n{}", "é".repeat(4_001), "x".repeat(2_000));
        let paged = paged(&long);
        assert!(paged.lines().all(|line| line.chars().count() <= LONGEST_LINE + 1), "{paged}");
        assert_eq!(paged.lines().count(), 6);
        assert_eq!(paged.replace('\n', ""), long.replace('\n', ""));
        assert_eq!(super::paged("a\nb"), "a\nb");
    }

    #[test]
    fn old_files_and_the_oldest_ones_of_all_sessions_make_room() {
        let home = tempfile::tempdir().unwrap();
        let texts = [("a", "1".repeat(40)), ("b", "2".repeat(40)), ("a", "3".repeat(40))];
        let files = texts.each_ref().map(|(session, text)| kept(home.path(), session, text).path);
        let now = SystemTime::now();
        let ages = [3, 2, 1].map(|hours| now - Duration::from_secs(hours * 3_600));
        for (file, at) in files.iter().zip(ages) {
            std::fs::File::options().write(true).open(file).unwrap().set_modified(at).unwrap();
        }
        let left = || files.each_ref().map(|file| file.exists());
        make_room(&results_folder(home.path()), 100, now).unwrap();
        assert_eq!(left(), [false, true, true]);
        make_room(&results_folder(home.path()), 100, ages[1] + LONGEST + Duration::from_secs(1)).unwrap();
        assert_eq!(left(), [false, false, true]);
        make_room(&results_folder(home.path()), 100, now + LONGEST * 2).unwrap();
        assert_eq!(left(), [false; 3]);
    }

    #[test]
    fn a_branch_has_the_results_of_its_parent_and_a_deleted_session_has_none() {
        let home = tempfile::tempdir().unwrap();
        let parent = kept(home.path(), "parent", "text");
        inherit(home.path(), &id("parent"), &id("branch")).unwrap();
        inherit(home.path(), &id("nobody"), &id("other")).unwrap();
        let copy = home.path().join("results/branch").join(parent.path.file_name().unwrap());
        remove_kept_results(home.path(), |session| session.as_str() == "parent").unwrap();
        assert_eq!((parent.path.exists(), std::fs::read_to_string(copy).unwrap().as_str()), (false, "text"));
        tidy(home.path(), &id("branch"));
        assert!(home.path().join("results/branch").is_dir(), "a folder with files is removed");
        assert!(!home.path().join("results/other").exists());
        remove_kept_results(&home.path().join("nowhere"), |_| true).unwrap();
    }
}
