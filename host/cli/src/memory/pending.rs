//! `hermes memory pending`, `approve` and `reject`: writes of the model that wait for the user (`memory.write_approval`).

use std::process::ExitCode;

use hermes_app::memory::{Notebook, NotebookError, PendingWrite};
use serde_json::json;

use super::{Choice, diff, differences, failed, printed, printed_json};
use crate::console::Console;
use crate::failure::{Failure, Kind};
use crate::launch::Setup;
use crate::moments::local;

pub(super) fn list(id: Option<u64>, json: bool, setup: &Setup, console: Console) -> Result<ExitCode, Failure> {
    let notebook = Notebook::open(setup);
    let mut writes = notebook.pending().map_err(failed)?;
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
        let planned = notebook.with_write(write);
        let why = planned.as_ref().err().map(ToString::to_string);
        if json {
            let changes = planned.as_ref().map_or_else(|_| Vec::new(), |(before, after)| differences(before, after));
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
            Ok((before, after)) => shown.push_str(&diff(&before, &after, console)),
            Err(error) => shown.push_str(&format!("cannot be applied now: {error}\n")),
        }
    }
    if json { printed_json(&listed) } else { printed(&console.shown(&shown)) }
}

pub(super) fn approve(choice: &Choice, setup: &Setup, console: Console) -> Result<ExitCode, Failure> {
    let notebook = Notebook::open(setup);
    for write in chosen(choice, &notebook.pending().map_err(failed)?)? {
        let target = notebook.approve(&write).map_err(|error| {
            let is_refused = matches!(error, NotebookError::Refused { .. });
            let failure = failed(error);
            let drop = format!("{}, or drop it with `hermes memory reject {}`", failure.fix, write.id);
            Failure { fix: if is_refused { drop } else { failure.fix }, ..failure }
        })?;
        console.note(&format!("write {} was applied to {}", write.id, target.document()));
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn reject(choice: &Choice, setup: &Setup, console: Console) -> Result<ExitCode, Failure> {
    let notebook = Notebook::open(setup);
    let ids: Vec<u64> = chosen(choice, &notebook.pending().map_err(failed)?)?.iter().map(|write| write.id).collect();
    notebook.settle(&ids).map_err(failed)?;
    for id in ids {
        console.note(&format!("write {id} was dropped"));
    }
    Ok(ExitCode::SUCCESS)
}

fn chosen(choice: &Choice, pending: &[PendingWrite]) -> Result<Vec<PendingWrite>, Failure> {
    if choice.all {
        return Ok(pending.to_vec());
    }
    let find = |id: &u64| pending.iter().find(|write| write.id == *id).cloned().ok_or_else(|| unknown(*id));
    choice.ids.iter().map(find).collect()
}

fn unknown(id: u64) -> Failure {
    let why = format!("no write with the number {id} waits for your approval");
    Failure::new(Kind::General, "there is no such write", why, "`hermes memory pending` lists all that wait")
}
