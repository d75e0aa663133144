//! Which sessions of the peer form one conversation, and how conversations descend from one another.
//!
//! A compaction of older versions of the peer ended a session and continued in a child. Here one session has the whole
//! conversation: the messages of all its links, with the last summary as a view.

use std::collections::{HashMap, HashSet};

use hermes_session_store::ParentKind;

use crate::database::SessionRow;

/// A conversation of the peer: a session, and those that continued it after a compaction.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Chain {
    /// Positions in the list of sessions, the oldest first.
    pub(crate) links: Vec<usize>,
    /// The conversation from which this one branched or that delegated it, by its first session.
    pub(crate) parent: Option<(usize, ParentKind)>,
}

/// All conversations, each after its parent.
pub(crate) fn chains(sessions: &[SessionRow]) -> Vec<Chain> {
    let by_id: HashMap<&str, usize> =
        sessions.iter().enumerate().map(|(at, session)| (session.id.as_str(), at)).collect();
    let parent_of =
        |at: usize| sessions[at].parent.as_deref().and_then(|id| by_id.get(id).copied()).filter(|of| *of != at);
    let mut next: HashMap<usize, usize> = HashMap::new();
    for at in 0..sessions.len() {
        if let Some(parent) = parent_of(at).filter(|parent| continues(&sessions[*parent], &sessions[at])) {
            let best = next.entry(parent).or_insert(at);
            if rank(&sessions[at]) > rank(&sessions[*best]) {
                *best = at;
            }
        }
    }
    let continuing: HashSet<usize> = next.values().copied().collect();
    let mut first_of: HashMap<usize, usize> = HashMap::new();
    let mut links_of: HashMap<usize, Vec<usize>> = HashMap::new();
    // A cycle has no beginning: its sessions are conversations of their own.
    let beginnings = (0..sessions.len()).filter(|at| !continuing.contains(at)).chain(0..sessions.len());
    for first in beginnings {
        if first_of.contains_key(&first) {
            continue;
        }
        let mut links = Vec::new();
        let mut at = Some(first);
        while let Some(link) = at.filter(|link| !first_of.contains_key(link)) {
            first_of.insert(link, first);
            links.push(link);
            at = next.get(&link).copied();
        }
        links_of.insert(first, links);
    }
    let parent_of_chain = |first: usize| {
        let parent = first_of[&parent_of(first)?];
        (parent != first).then_some((parent, kind(&sessions[first])))
    };
    in_order(sessions.len(), &links_of, parent_of_chain)
}

/// Parents come first. A conversation that is its own ancestor loses its parent.
fn in_order(
    count: usize,
    links_of: &HashMap<usize, Vec<usize>>,
    parent_of: impl Fn(usize) -> Option<(usize, ParentKind)>,
) -> Vec<Chain> {
    let mut done: HashSet<usize> = HashSet::new();
    let mut chains = Vec::new();
    for first in (0..count).filter(|at| links_of.contains_key(at)) {
        let mut path = Vec::new();
        let mut at = Some(first);
        while let Some(link) = at.filter(|link| !done.contains(link) && !path.contains(link)) {
            path.push(link);
            at = parent_of(link).map(|(parent, _)| parent);
        }
        for link in path.into_iter().rev() {
            let parent = parent_of(link).filter(|(parent, _)| done.contains(parent));
            chains.push(Chain { links: links_of[&link].clone(), parent });
            done.insert(link);
        }
    }
    chains
}

/// Whether the child is the same conversation after a compaction.
fn continues(parent: &SessionRow, child: &SessionRow) -> bool {
    let is_machine = matches!(child.source.as_str(), "tool" | "subagent");
    parent.end_reason.as_deref() == Some("compression") && !child.is_branch && !child.is_delegate && !is_machine
}

/// Which of several children the peer itself resumes: one that was compacted again, then one that has not ended.
fn rank(child: &SessionRow) -> (bool, bool) {
    (child.end_reason.as_deref() == Some("compression"), !child.has_ended)
}

fn kind(session: &SessionRow) -> ParentKind {
    let is_machine = matches!(session.source.as_str(), "tool" | "subagent");
    if session.is_delegate || (is_machine && !session.is_branch) { ParentKind::Delegate } else { ParentKind::Branch }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, parent: Option<&str>, end_reason: Option<&str>) -> SessionRow {
        SessionRow {
            id: id.into(),
            source: "cli".into(),
            parent: parent.map(str::to_owned),
            end_reason: end_reason.map(str::to_owned),
            has_ended: end_reason.is_some(),
            ..SessionRow::default()
        }
    }

    fn shown(sessions: &[SessionRow]) -> Vec<(String, Option<(String, ParentKind)>)> {
        let id = |at: usize| sessions[at].id.clone();
        let chains = chains(sessions).into_iter();
        let chains = chains.map(|chain| {
            let links = chain.links.iter().map(|at| id(*at)).collect::<Vec<_>>().join(" ");
            (links, chain.parent.map(|(parent, kind)| (id(parent), kind)))
        });
        chains.collect()
    }

    #[test]
    fn sessions_that_continue_after_a_compaction_are_one_conversation() {
        let sessions = [
            row("c", Some("b"), None),
            row("a", None, Some("compression")),
            row("b", Some("a"), Some("compression")),
            row("old", Some("a"), Some("user_exit")),
        ];
        let old = ("old".to_owned(), Some(("a".to_owned(), ParentKind::Branch)));
        assert_eq!(shown(&sessions), [("a b c".to_owned(), None), old]);
    }

    #[test]
    fn branches_and_delegates_know_the_conversation_that_they_come_from() {
        let sessions = [
            SessionRow { is_branch: true, ..row("branch", Some("b"), None) },
            SessionRow { is_delegate: true, ..row("child", Some("a"), None) },
            SessionRow { source: "subagent".into(), ..row("older", Some("b"), None) },
            row("a", None, Some("compression")),
            row("b", Some("a"), None),
            row("lost", Some("gone"), None),
        ];
        let of_a = |name: &str, kind| (name.to_owned(), Some(("a".to_owned(), kind)));
        assert_eq!(
            shown(&sessions),
            [
                ("a b".to_owned(), None),
                of_a("branch", ParentKind::Branch),
                of_a("child", ParentKind::Delegate),
                of_a("older", ParentKind::Delegate),
                ("lost".to_owned(), None),
            ]
        );
    }

    mod attack {
        use super::*;

        #[test]
        fn sessions_that_are_their_own_ancestors_are_kept_once() {
            let ends = Some("compression");
            let circle = [row("a", Some("c"), ends), row("b", Some("a"), ends), row("c", Some("b"), ends)];
            assert_eq!(shown(&circle), [("a b c".to_owned(), None)]);
            let branches = [row("x", Some("y"), None), row("y", Some("x"), None), row("z", Some("z"), None)];
            let found = shown(&branches);
            assert_eq!(found.len(), 3);
            assert_eq!(found.iter().filter(|(_, parent)| parent.is_none()).count(), 2);
        }
    }
}
