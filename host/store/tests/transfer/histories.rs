//! Random histories of sessions.

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Say(usize),
    Rewind(usize, usize),
    Branch(usize, Option<usize>),
    View(usize, bool),
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => any::<usize>().prop_map(Step::Say),
        2 => any::<(usize, usize)>().prop_map(|(session, at)| Step::Rewind(session, at)),
        2 => any::<(usize, Option<usize>)>().prop_map(|(session, at)| Step::Branch(session, at)),
        2 => any::<(usize, bool)>().prop_map(|(session, kept)| Step::View(session, kept)),
    ]
}

fn take(store: &Store, sessions: &mut Vec<Session>, step: Step) {
    let session = |at: usize| sessions[at % sessions.len()].clone();
    match step {
        Step::Say(at) => drop(store.append(&session(at).id, &[Draft::user(format!("said {at}"), 1)]).unwrap()),
        Step::Rewind(at, to) => {
            let session = session(at);
            let conversation = store.conversation(&session.id).unwrap();
            if !conversation.is_empty() {
                store.rewind(&session.id, conversation[to % conversation.len()].id).unwrap();
            }
        }
        Step::Branch(at, through) => {
            let session = session(at);
            let conversation = store.conversation(&session.id).unwrap();
            let through = through.filter(|_| !conversation.is_empty());
            let through = through.map(|through| conversation[through % conversation.len()].id);
            sessions.push(child(store, &session, ParentKind::Branch, through));
        }
        Step::View(at, kept) => {
            let session = session(at);
            let conversation = store.conversation(&session.id).unwrap();
            let (Some(first), Some(last)) = (conversation.first(), conversation.last()) else { return };
            let mut known: Vec<Summary> = store.summaries(&session.id).unwrap().into_values().collect();
            known.sort_by(|a, b| a.key.cmp(&b.key));
            let summary = known.pop().filter(|_| kept).unwrap_or_else(|| Summary {
                key: format!("{}-{}", session.id, last.id),
                content: format!("up to {}", last.content),
                covers: vec![MessageRange::new(first.id, last.id)],
            });
            let view = View { items: vec![Item::Summary(summary)], through: Some(last.id) };
            store.put_view(&session.id, &view, "", "e").unwrap();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn any_history_of_sessions_survives_export_and_import(steps in prop::collection::vec(any_step(), 1..40), half in any::<usize>()) {
        let (_home, from) = store();
        let (_other, to) = store();
        let mut sessions = vec![from.create_session(new_session()).unwrap()];
        let half = half % (steps.len() + 1);
        for (at, step) in steps.into_iter().enumerate() {
            // Some sessions are imported earlier; a session that has continued meanwhile stays unchanged.
            if at == half {
                import(&to, &exported(&from, None)).unwrap();
            }
            take(&from, &mut sessions, step);
        }
        let early: Vec<SessionId> = to.sessions().unwrap().into_iter().map(|session| session.id).collect();
        // A branch is left out if it depends on messages or rewinds after the import of its parent.
        let left_out: Vec<SessionId> =
            import(&to, &exported(&from, None)).unwrap().left_out.into_iter().map(|(id, _)| id).collect();
        for session in sessions.iter().filter(|session| !early.contains(&session.id)) {
            if left_out.contains(&session.id) {
                prop_assert!(to.session(&session.id).is_err());
            } else {
                prop_assert_eq!(drafts(&to, &session.id), drafts(&from, &session.id));
                let content = |store: &Store| -> Vec<String> {
                    store.view(&session.id).unwrap().summaries().map(|summary| summary.content.clone()).collect()
                };
                prop_assert_eq!(content(&to), content(&from));
            }
        }
        let (_third, fresh) = store();
        import(&fresh, &exported(&from, None)).unwrap();
        let ids: Vec<SessionId> = sessions.iter().map(|session| session.id.clone()).collect();
        prop_assert_eq!(canonical(&fresh, &ids), canonical(&from, &ids));
        for id in &ids {
            prop_assert_eq!(drafts(&fresh, id), drafts(&from, id));
            prop_assert_eq!(fresh.view(id).unwrap().summaries().count(), from.view(id).unwrap().summaries().count());
            prop_assert_eq!(fresh.session(id).unwrap().message_count, from.session(id).unwrap().message_count);
        }
    }
}
