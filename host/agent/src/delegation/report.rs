//! What the parent's model gets of its tasks: JSON with a result for each, within a budget.

use std::path::{Path, PathBuf};

use hermes_conversation::{SessionId, tokens};
use hermes_session_store::{Delegation, DelegationState};
use serde::Serialize;

use super::outcome::{INTERRUPTED, Outcome};
use super::{DelegationSettings, Parent};
use crate::kept_results;
use crate::toolbox::result::result_limits;

/// The most changed files that a result names.
const MOST_FILES: usize = 40;
/// The least tokens of a summary.
const LEAST: u32 = 100;

/// Tells the parent that the summary is not whole.
pub(super) const CUT: &str = "its last reply reached the model's output limit and is not complete";

/// How long a summary may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Budget {
    characters: usize,
    tokens: u32,
}

impl Budget {
    /// For so many results of one call to a model with this window.
    pub(super) fn of(settings: &DelegationSettings, window: u32, results: usize) -> Self {
        // The rest is for what surrounds the summaries.
        let share = result_limits(window).0 / 4 * 3 / u32::try_from(results.max(1)).unwrap_or(u32::MAX);
        let characters = usize::try_from(settings.max_summary_chars).unwrap_or(usize::MAX);
        Self { characters, tokens: share.max(LEAST) }
    }
}

#[derive(Serialize)]
struct Report<'o> {
    results: Vec<TaskReport<'o>>,
}

#[derive(Serialize)]
struct TaskReport<'o> {
    /// Its place in the call; of a task in the background, its number in the session.
    task: usize,
    /// Of a task in the background.
    #[serde(skip_serializing_if = "Option::is_none")]
    goal: Option<&'o str>,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'o str>,
    /// The file with the whole summary, if it was cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    full_summary: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changed_files: Vec<String>,
    /// Files that the parent has read, and that were changed since.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    read_again: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'o str>,
}

/// Writes the results of a call. The whole text of a summary that is too long is kept as a file.
pub(super) async fn write(parent: &Parent, outcomes: &[Outcome], budget: Budget) -> String {
    let mut results = Vec::with_capacity(outcomes.len());
    for (task, outcome) in (1..).zip(outcomes) {
        results.push(one(parent, task, outcome, budget).await);
    }
    // It has no maps with other keys than texts, so this cannot fail.
    serde_json::to_string(&Report { results }).unwrap_or_default()
}

/// Writes the result of a task in the background.
pub(super) async fn of_background(parent: &Parent, task: &Delegation, outcome: &Outcome) -> String {
    let budget = Budget::of(&parent.settings, parent.chain.window(), 1);
    let number = usize::try_from(task.number).unwrap_or(usize::MAX);
    let report = TaskReport { goal: Some(&task.goal), ..one(parent, number, outcome, budget).await };
    serde_json::to_string(&report).unwrap_or_default()
}

/// Writes that a task in the background ended with its process.
pub(super) fn of_interrupted(task: &Delegation) -> String {
    let report = TaskReport {
        task: usize::try_from(task.number).unwrap_or(usize::MAX),
        goal: Some(&task.goal),
        status: DelegationState::Interrupted.as_str(),
        summary: None,
        error: Some(INTERRUPTED),
        full_summary: None,
        changed_files: Vec::new(),
        read_again: Vec::new(),
        session: task.child.as_ref().map(SessionId::as_str),
    };
    serde_json::to_string(&report).unwrap_or_default()
}

async fn one<'o>(parent: &Parent, task: usize, outcome: &'o Outcome, budget: Budget) -> TaskReport<'o> {
    let is_answer = outcome.state.has_answer();
    let cut = if is_answer { shortened(&outcome.text, budget) } else { None };
    let kept = match &cut {
        Some(_) => kept_results::keep(&parent.home, &parent.session, outcome.text.clone(), false).await,
        None => Ok(None),
    };
    let kept = kept.inspect_err(|error| tracing::warn!(%error, "a long summary is not kept as a file"));
    let full_summary = kept.ok().flatten().map(|kept| kept.path.display().to_string());
    let read = |path: &&PathBuf| parent.front.seen.knows(path);
    TaskReport {
        task,
        goal: None,
        status: outcome.state.as_str(),
        summary: is_answer.then(|| cut.unwrap_or_else(|| outcome.text.clone())),
        error: match outcome.state {
            DelegationState::Cut => Some(CUT),
            _ => (!is_answer).then_some(outcome.text.as_str()),
        },
        full_summary,
        changed_files: named(outcome.changed.iter(), &parent.workspace),
        read_again: named(outcome.changed.iter().filter(read), &parent.workspace),
        session: outcome.session.as_ref().map(SessionId::as_str),
    }
}

/// Paths as the model writes them, the first ones of many.
fn named<'p>(paths: impl Iterator<Item = &'p PathBuf>, workspace: &Path) -> Vec<String> {
    let workspace = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
    let mut named: Vec<String> =
        paths.map(|path| path.strip_prefix(&workspace).unwrap_or(path).display().to_string()).collect();
    let more = named.len().saturating_sub(MOST_FILES);
    if more > 0 {
        named.truncate(MOST_FILES);
        named.push(format!("and {more} more"));
    }
    named
}

/// The beginning and the end of a text that is longer than its budget.
fn shortened(text: &str, budget: Budget) -> Option<String> {
    let count = text.chars().count();
    let fits = |text: &str| tokens::of_text(text) <= budget.tokens;
    if count <= budget.characters && fits(text) {
        return None;
    }
    let mut keep = count.min(budget.characters);
    loop {
        let (head, tail) = (keep * 3 / 4, keep / 4);
        let end = text.char_indices().nth(head).map_or(text.len(), |(at, _)| at);
        let start = text.char_indices().nth(count - tail).map_or(text.len(), |(at, _)| at);
        let shown =
            format!("{}\n[{} characters are left out here.]\n{}", &text[..end], count - head - tail, &text[start..]);
        if keep == 0 || fits(&shown) {
            return Some(shown);
        }
        keep = keep * 9 / 10;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_short_summary_stays_whole_and_many_share_the_room() {
        let settings = DelegationSettings::default();
        let one = Budget::of(&settings, 200_000, 1);
        assert_eq!(one, Budget { characters: 24_000, tokens: 18_750 });
        assert_eq!(Budget::of(&settings, 200_000, 10).tokens, 1_875);
        assert_eq!(Budget::of(&settings, 2_000, 20).tokens, LEAST);
        assert_eq!(shortened("short", one), None);
        assert_eq!(shortened(&"x".repeat(24_000), one), None);
    }

    #[test]
    fn files_are_named_from_the_workspace_and_not_without_end() {
        let paths: Vec<PathBuf> = (0..50).map(|number| format!("/nowhere/w/{number:02}").into()).collect();
        let names = named(paths.iter(), Path::new("/nowhere/w"));
        assert_eq!((names[0].as_str(), names[40].as_str(), names.len()), ("00", "and 10 more", 41));
        assert_eq!(named([PathBuf::from("/other")].iter(), Path::new("/nowhere/w")), ["/other"]);
    }

    proptest! {
        #[test]
        fn a_summary_keeps_to_its_budget_and_shows_both_ends(
            text in "(?s).{0,3000}", characters in 0_usize..2_000, tokens in LEAST..600_u32,
        ) {
            let budget = Budget { characters, tokens };
            match shortened(&text, budget) {
                None => prop_assert!(text.chars().count() <= characters && tokens::of_text(&text) <= tokens),
                Some(shown) => {
                    prop_assert!(tokens::of_text(&shown) <= tokens, "{} tokens", tokens::of_text(&shown));
                    let (before, tail) = shown.rsplit_once(" characters are left out here.]\n").unwrap();
                    let (head, left) = before.rsplit_once("\n[").unwrap();
                    prop_assert!(text.starts_with(head) && text.ends_with(tail));
                    let shown = head.chars().count() + tail.chars().count();
                    prop_assert_eq!(shown + left.parse::<usize>().unwrap(), text.chars().count());
                }
            }
        }
    }
}
