//! `hermes sessions export` and `import`.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{ArgGroup, Args, ValueEnum};
use hermes_app::files::{Patience, Place, open_regular};
use hermes_app::sessions::{Exported, Imported, Layout, SessionStore, StoreError, TransferError, Trust};
use hermes_diagnostic::Diagnose as _;
use hermes_protocol::SessionId;
use serde_json::json;

use super::{failed, printed_json, with_session};
use crate::console::Console;
use crate::failure::{Failure, Kind};
use crate::launch::Setup;
use crate::{output, text};

/// The sessions to export, and the file to write.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[command(group = ArgGroup::new("which").required(true).args(["ids", "all"]))]
pub(crate) struct ExportArguments {
    /// The sessions' ids, the beginnings of their ids, or their titles; their parents and delegated tasks are included
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Export all sessions
    #[arg(long)]
    all: bool,
    /// Write to this new file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The file's format
    #[arg(long, value_name = "FORMAT", default_value = "lines")]
    format: Format,
}

/// The format of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A JSON object on each line
    Lines,
    /// One JSON array
    Json,
}

pub(super) async fn export(arguments: &ExportArguments, setup: &Setup, console: Console) -> Result<ExitCode, Failure> {
    let first = arguments.ids.first().map_or("", String::as_str);
    let store = match setup.store_to_read()? {
        None if arguments.all => {
            return Err(Failure::new(
                Kind::General,
                "there is nothing to export",
                "no session is stored yet",
                "start a session with `hermes`",
            ));
        }
        store => with_session(store, first)?,
    };
    let mut ids: Vec<SessionId> = Vec::new();
    for id in &arguments.ids {
        ids.push(store.resolve_session(id).await.map_err(failed)?);
    }
    let which = (!arguments.all).then_some(ids.as_slice());
    let layout = match arguments.format {
        Format::Lines => Layout::Lines,
        Format::Json => Layout::Array,
    };
    let done = match output::file(arguments.output.as_deref()) {
        None => store.export(which, layout, Box::new(BufWriter::new(io::stdout()))).await.map_err(failed)?,
        Some(path) => to_file(&*store, which, layout, path, Patience::Waits(&|| output::waits(path, console))).await?,
    };
    console.note(&exported(&done));
    Ok(ExitCode::SUCCESS)
}

/// Exports one session, with its parents and delegated tasks, to a new file. A chat does not wait for the reader of a pipe.
pub(crate) async fn export_one(store: &dyn SessionStore, session: &SessionId, path: &Path) -> Result<String, Failure> {
    let which = Some(std::slice::from_ref(session));
    Ok(exported(&to_file(store, which, Layout::Lines, path, Patience::None).await?))
}

fn exported(done: &Exported) -> String {
    let (sessions, messages) = (text::counted(done.sessions, "session"), text::counted(done.messages, "message"));
    format!("{sessions} with {messages} exported")
}

/// Exports to a new file, or into what is no plain file, such as a pipe. An existing file is not overwritten, and an incomplete file is
/// removed. The file contains whole conversations, so only its owner may read it.
async fn to_file(
    store: &dyn SessionStore,
    which: Option<&[SessionId]>,
    layout: Layout,
    path: &Path,
    patience: Patience<'_>,
) -> Result<Exported, Failure> {
    let unwritable = |error: io::Error| {
        let fix = "choose another name or another folder";
        let why = match error.kind() {
            io::ErrorKind::AlreadyExists => format!("{} exists already, and nothing is overwritten", path.display()),
            _ => format!("{}: {error}", path.display()),
        };
        Failure::new(Kind::General, "the export cannot be written", why, fix)
    };
    let place = Place::of(path).map_err(unwritable)?;
    let file = place.begin(patience).map_err(unwritable)?;
    let out = BufWriter::new(file.try_clone().map_err(unwritable)?);
    let written = store.export(which, layout, Box::new(out)).await.map_err(failed);
    let Place::New(new) = place else { return written };
    let written = written.and_then(|done| file.sync_all().map(|()| done).map_err(unwritable));
    if written.is_err() {
        let _ = std::fs::remove_file(new);
    }
    written
}

/// The failure if a file that is no export is known as that of another program.
fn foreign(path: &Path, error: &StoreError) -> Option<Failure> {
    let StoreError::Transfer(TransferError::Import { line: 0..=2, .. }) = error else { return None };
    let why = format!("{} is no export of Hermes: {}", path.display(), hermes_app::files::recognised(path)?);
    let fix = "give a file that `hermes sessions export` wrote; sessions of other agents are not continued here, but `hermes \
               lab replay FILE` measures engines on them";
    let what = "nothing was imported".to_owned();
    Some(Failure { what, why, fix: fix.into(), ..Failure::from(error.diagnose()) })
}

pub(super) async fn import(
    path: &Path,
    (dry_run, trust): (bool, bool),
    json: bool,
    setup: &Setup,
    console: Console,
) -> Result<ExitCode, Failure> {
    let unreadable = |error: io::Error| {
        let fix = "check that the file exists and can be read";
        Failure::new(Kind::General, "the file cannot be imported", format!("{}: {error}", path.display()), fix)
    };
    if path.is_dir() {
        let why = format!("{} is a folder", path.display());
        let fix = "give a file that `hermes sessions export` wrote; import several files one by one";
        return Err(Failure::new(Kind::General, "the file cannot be imported", why, fix));
    }
    let file = if path == Path::new("-") { spooled() } else { open_regular(path) }.map_err(unreadable)?;
    let file = Box::new(BufReader::new(file));
    let trust = if trust { Trust::ThisFile } else { Trust::OwnFiles };
    let done = match dry_run {
        true => setup.store_to_try().map_err(failed)?.store.examine_import(file).await,
        false => setup.store().map_err(failed)?.import(file, crate::moments::now(), trust).await,
    }
    .map_err(|error| foreign(path, &error).unwrap_or_else(|| failed(error)))?;
    if json {
        let renamed: Vec<_> = done.renamed.iter().map(|(id, title)| json!({"id": id, "title": title})).collect();
        return printed_json(&json!({
            "dry_run": dry_run,
            "sessions": done.sessions,
            "messages": done.messages,
            "skipped": done.skipped,
            "renamed": renamed,
            "detached": done.detached,
            "own": done.is_own,
            "trusted": done.is_own || trust == Trust::ThisFile,
            "of_file": done.of_file,
            "left_out": done.left_out.iter().map(|(id, parent)| json!({"id": id, "parent": parent})).collect::<Vec<_>>(),
        }));
    }
    notes(&done, dry_run).iter().chain(&decided(&done, trust)).for_each(|note| console.note(note));
    Ok(ExitCode::SUCCESS)
}

/// The most bytes of standard input that are copied to the temporary folder.
const LARGEST_COPY: u64 = 2 << 30;

/// A seekable copy of standard input, because an import reads its input twice.
fn spooled() -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    let copied = io::copy(&mut io::stdin().lock().take(LARGEST_COPY + 1), &mut file)?;
    if copied > LARGEST_COPY {
        let why = "it has more than 2 GiB: save it as a file and import that file";
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(file)
}

/// The most sessions of a kind that are named.
const MOST: usize = 20;

/// A note for each of the first items, and one with the number of the others.
fn first<T>(items: &[T], note: impl Fn(&T) -> String) -> impl Iterator<Item = String> {
    let more = items.len().checked_sub(MOST).filter(|more| *more > 0);
    let more =
        more.map(|more| format!("and the same for {}; --json lists them", text::counted(more as u64, "more session")));
    items.iter().take(MOST).map(note).chain(more)
}

fn notes(done: &Imported, dry_run: bool) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(first(&done.renamed, |(session, title)| {
        let title = text::exact(title);
        format!("session {session} gets the title `{title}`, because another session has its title")
    }));
    notes.extend(first(&done.detached, |session| {
        format!("session {session} loses its parent, which is neither in the file nor stored")
    }));
    notes.extend(first(&done.left_out, |(session, parent)| {
        format!(
            "session {session} skipped: it continues session {parent}, and the stored session {parent} is another one"
        )
    }));
    if !done.skipped.is_empty() {
        let count = text::counted(done.skipped.len() as u64, "session");
        notes.push(format!("{count} skipped: already stored"));
    }
    let sessions = text::counted(done.sessions.len() as u64, "session");
    let messages = text::counted(done.messages, "message");
    notes.push(format!("{sessions} with {messages} {}", if dry_run { "would be imported" } else { "imported" }));
    notes
}

/// What the file decides for the sessions, and whether it is used.
fn decided(done: &Imported, trust: Trust) -> Vec<String> {
    if done.of_file.is_empty() {
        return Vec::new();
    }
    if done.is_own {
        return vec!["this home wrote the file: its folders and system prompts are used".to_owned()];
    }
    /// The most characters of a folder; the question at resuming shows all of them.
    const MOST_OF_FOLDER: usize = 500;
    let mut notes = Vec::new();
    notes.extend(first(&done.of_file, |of_file| {
        let folder = text::exact_within(&of_file.workspace.display().to_string(), MOST_OF_FOLDER);
        let prompt = match of_file.prompt_characters {
            0 => "no system prompt".to_owned(),
            characters => format!(
                "a system prompt of {} and {}",
                text::counted(characters, "character"),
                text::counted(of_file.tools, "tool")
            ),
        };
        format!("the file decides for session {}: the folder {folder}, and {prompt}", of_file.session)
    }));
    notes.push(match trust {
        Trust::ThisFile => "these folders and system prompts are used, because of --trust".to_owned(),
        Trust::OwnFiles => "these folders and system prompts are used only if you agree when you resume a session; \
                            `hermes prompt ID --text` shows a prompt"
            .to_owned(),
    });
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_import_reports_every_change() {
        let id = |id: &str| SessionId(id.into());
        let done = Imported {
            sessions: vec![id("a"), id("b")],
            messages: 1_234,
            skipped: vec![id("c")],
            renamed: vec![(id("a"), "Engine #2".into())],
            detached: vec![id("b")],
            left_out: vec![(id("d"), id("c"))],
            ..Imported::default()
        };
        assert_eq!(
            notes(&done, false),
            [
                "session a gets the title `Engine #2`, because another session has its title",
                "session b loses its parent, which is neither in the file nor stored",
                "session d skipped: it continues session c, and the stored session c is another one",
                "1 session skipped: already stored",
                "2 sessions with 1,234 messages imported",
            ]
        );
        assert_eq!(notes(&Imported::default(), true), ["0 sessions with 0 messages would be imported"]);
    }

    mod attack {
        use std::path::PathBuf;

        use hermes_app::sessions::OfFile;

        use super::*;

        #[test]
        fn thousands_of_renamed_sessions_do_not_hide_what_the_file_decides() {
            let ids = |count: usize| (0..count).map(|at| SessionId(format!("s{at}")));
            let done = Imported {
                renamed: ids(8_000).map(|id| (id, "x #2".to_owned())).collect(),
                detached: ids(8_000).collect(),
                left_out: ids(8_000).map(|id| (id.clone(), id)).collect(),
                ..Imported::default()
            };
            let notes = notes(&done, false);
            assert_eq!(notes.len(), 3 * (MOST + 1) + 1);
            assert_eq!(notes[MOST], "and the same for 7,980 more sessions; --json lists them");
        }

        #[test]
        fn a_folder_and_a_title_hide_no_character() {
            let of_file = OfFile {
                session: SessionId("s".into()),
                workspace: PathBuf::from(format!("/pro\u{200b}ject/{}", "x".repeat(9_000))),
                prompt_characters: 0,
                tools: 0,
            };
            let renamed = vec![(SessionId("s".into()), "a\u{2800}b".to_owned())];
            let done = Imported { of_file: vec![of_file], renamed, ..Imported::default() };
            let decided = decided(&done, Trust::OwnFiles);
            assert!(decided[0].contains(r"the folder /pro\u{200b}ject/xx") && decided[0].len() < 700, "{decided:?}");
            assert!(notes(&done, false)[0].contains(r"`a\u{2800}b`"));
        }
    }
}
