//! `hermes memory pending`, `approve` and `reject`: writes of the model that wait for the user (`memory.write_approval`).

use std::process::ExitCode;

use hermes_notes::{Change, Notes, Operation, Pending, PendingWrite, Rules, Target, day};
use serde_json::json;

use super::notebook::{Notebook, refused};
use super::{Choice, diff, differences, printed, printed_json};
use crate::console::Console;
use crate::failure::{Failure, Kind};
use crate::launch::Setup;
use crate::moments::local;

pub(super) fn list(id: Option<u64>, json: bool, setup: &Setup, console: Console) -> Result<ExitCode, Failure> {
    let notebook = Notebook::open(setup);
    let mut writes = notebook.pending()?.writes;
    if let Some(id) = id {
        writes.retain(|write| write.id == id);
        if writes.is_empty() {
            return Err(unknown(id));
        }
    }
    if writes.is_empty() && !json {
        let hint =
            if notebook.asks() { "" } else { "; with memory.write_approval, writes of the model would wait here" };
        console.note(&format!("no write waits for your approval{hint}"));
        return Ok(ExitCode::SUCCESS);
    }
    let (mut shown, mut listed) = (String::new(), Vec::new());
    for write in &writes {
        let planned = target(write).and_then(|target| {
            let before = notebook.notes(target)?;
            Ok((applied(write, target, &before, &notebook)?, before))
        });
        let why = planned.as_ref().err().map(|failure| failure.why.clone());
        if json {
            let changes = planned.as_ref().map_or_else(|_| Vec::new(), |(after, before)| differences(before, after));
            let changes: Vec<_> =
                changes.into_iter().map(|(sign, text)| json!({ "sign": sign, "text": text })).collect();
            let mut described = json!(write);
            described["diff"] = json!(changes);
            described["impossible"] = json!(why);
            listed.push(described);
            continue;
        }
        let PendingWrite { id, at, session, target, .. } = write;
        shown.push_str(&format!("{id}  {target}  {}  session {session}\n", local(*at)));
        match planned {
            Ok((after, before)) => shown.push_str(&diff(&before, &after, console)),
            Err(failure) => shown.push_str(&format!("cannot be applied now: {}\n", failure.why)),
        }
    }
    if json { printed_json(&listed) } else { printed(&console.shown(&shown)) }
}

pub(super) fn approve(choice: &Choice, setup: &Setup, console: Console) -> Result<ExitCode, Failure> {
    let notebook = Notebook::open(setup);
    for write in chosen(choice, &notebook.pending()?)? {
        let target = target(&write)?;
        notebook.change(target, |before| {
            let after = applied(&write, target, before, &notebook)?;
            Ok(((after != *before).then_some(after), ()))
        })?;
        // Applied before it leaves the list: a process that ends here leaves a write that changes nothing any more.
        notebook.settle(&[write.id])?;
        console.note(&format!("write {} was applied to {}", write.id, target.document()));
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn reject(choice: &Choice, setup: &Setup, console: Console) -> Result<ExitCode, Failure> {
    let notebook = Notebook::open(setup);
    let ids: Vec<u64> = chosen(choice, &notebook.pending()?)?.iter().map(|write| write.id).collect();
    notebook.settle(&ids)?;
    for id in ids {
        console.note(&format!("write {id} was dropped"));
    }
    Ok(ExitCode::SUCCESS)
}

fn chosen(choice: &Choice, pending: &Pending) -> Result<Vec<PendingWrite>, Failure> {
    if choice.all {
        return Ok(pending.writes.clone());
    }
    let find = |id: &u64| pending.writes.iter().find(|write| write.id == *id).cloned().ok_or_else(|| unknown(*id));
    choice.ids.iter().map(find).collect()
}

fn unknown(id: u64) -> Failure {
    let why = format!("no write with the number {id} waits for your approval");
    Failure::new(Kind::General, "there is no such write", why, "`hermes memory pending` lists all that wait")
}

fn target(write: &PendingWrite) -> Result<Target, Failure> {
    Target::named(&write.target).ok_or_else(|| {
        let why = format!("it is for `{}`, which this version does not know", write.target);
        let fix = format!("drop it with `hermes memory reject {}`", write.id);
        Failure::new(Kind::General, format!("write {} cannot be applied", write.id), why, fix)
    })
}

/// The notes with a write, which applies as a whole.
fn applied(write: &PendingWrite, target: Target, before: &Notes, notebook: &Notebook) -> Result<Notes, Failure> {
    let changes: Vec<Change> = write.operations.iter().filter_map(Operation::change).collect();
    let limit = notebook.limit(target);
    // A fact has the day on which the model wrote it.
    let rules = Rules { limit, day: (target == Target::Facts).then(|| day(write.at)) };
    let (after, _) = before.apply_all(&changes, &rules).map_err(|(_, refusal)| {
        let mut failure = refused(target, &refusal, limit);
        failure.fix = format!("{}, or drop it with `hermes memory reject {}`", failure.fix, write.id);
        failure
    })?;
    Ok(after)
}
