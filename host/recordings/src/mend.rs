//! Repairs a recorded conversation.

use std::collections::HashSet;

use hermes_conversation::{Draft, Role, closing};

use super::{Recording, stamp};

/// Gives every call exactly one result right after it, and makes times non-decreasing.
pub(super) fn mend(recording: &mut Recording) {
    let drafts = std::mem::take(&mut recording.drafts);
    let mut mended: Vec<Draft> = Vec::with_capacity(drafts.len());
    let mut rest = drafts.into_iter().peekable();
    let (mut unanswered, mut stray, mut renamed) = (0, 0, 0);
    while let Some(mut draft) = rest.next() {
        if draft.role == Role::Tool {
            stray += 1;
            continue;
        }
        let mut results = Vec::new();
        while let Some(result) = rest.next_if(|next| next.role == Role::Tool) {
            results.push(result);
        }
        renamed += rename(&mut draft, &mut results);
        let mut open = draft.tool_calls.clone();
        let last = results.last().map_or(draft.created_at, |result| result.created_at);
        mended.push(draft);
        for mut result in results {
            // Some recordings omit the id of a result; their results answer the calls in order.
            let at = match &result.tool_call_id {
                Some(id) => open.iter().position(|call| call.id == *id),
                None => (!open.is_empty()).then_some(0),
            };
            let Some(at) = at else {
                stray += 1;
                continue;
            };
            let call = open.remove(at);
            result.tool_call_id = Some(call.id);
            result.tool_name.get_or_insert(call.name);
            mended.push(result);
        }
        unanswered += open.len() as u64;
        mended.extend(open.iter().map(|call| Draft::result(call, closing::INTERRUPTED_CALL, last).by_host()));
    }
    let late = fix_times(&mut mended);
    recording.drafts = mended;
    recording.note("tool calls that were never answered: answered as interrupted", unanswered);
    recording.note("results of no call, left out", stray);
    recording.note("calls of one message with the same id: renamed", renamed);
    recording.note("times before that of the message before: moved to it", late);
}

/// Makes the call ids of a message unique.
fn rename(caller: &mut Draft, results: &mut [Draft]) -> u64 {
    let mut seen = HashSet::new();
    let mut renamed = 0;
    for (at, call) in caller.tool_calls.iter_mut().enumerate() {
        if seen.insert(call.id.clone()) {
            continue;
        }
        renamed += 1;
        let unique = format!("{}#{at}", call.id);
        let old = std::mem::replace(&mut call.id, unique);
        seen.insert(call.id.clone());
        // The first result with this id answers the earlier call.
        let mut of_old = results.iter_mut().filter(|result| result.tool_call_id.as_deref() == Some(&old));
        if let Some(second) = of_old.nth(1) {
            second.tool_call_id = Some(call.id.clone());
        }
    }
    renamed
}

fn fix_times(drafts: &mut [Draft]) -> u64 {
    let mut late = 0;
    let mut now = drafts.iter().map(|draft| draft.created_at).find(|at| *at > 0).unwrap_or(stamp::BEGIN);
    for draft in drafts {
        if draft.created_at == 0 {
            now += stamp::STEP;
            draft.created_at = now;
        } else if draft.created_at < now {
            late += 1;
            draft.created_at = now;
        }
        now = draft.created_at;
    }
    late
}
