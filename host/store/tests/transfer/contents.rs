//! What an export contains, and what an import makes of it.

use super::*;

#[test]
fn imported_sessions_equal_the_exported_ones() {
    let (_home, from) = store();
    let family = family(&from);
    let ids = family.each_ref().map(|session| session.id.clone());
    let file = exported(&from, None);

    let (_home, to) = store();
    // Another session first, so that all ids differ.
    let before = to.create_session(new_session()).unwrap();
    to.append(&before.id, &[Draft::user("x", 1), Draft::user("y", 2)]).unwrap();
    to.put_view(&before.id, &View::default(), "", "e").unwrap();
    let imported = import(&to, &file).unwrap();
    assert_eq!((imported.sessions.as_slice(), imported.messages), (ids.as_slice(), 12));
    assert_eq!((imported.skipped.len(), imported.renamed.len(), imported.detached.len()), (0, 0, 0));

    assert_eq!(canonical(&to, &ids), canonical(&from, &ids));
    for session in &family {
        assert_eq!(drafts(&to, &session.id), drafts(&from, &session.id));
        let arrived = to.session(&session.id).unwrap();
        let through = arrived.parent.as_ref().and_then(|parent| parent.through);
        let parent = session.parent.clone().map(|parent| Parent { through, ..parent });
        assert_eq!(arrived, Session { parent, imported: true, ..session.clone() });
        let shape = |store: &Store| {
            let view = store.view(&session.id).unwrap();
            (view.items.len(), view.summaries().cloned().map(|summary| summary.content).collect::<Vec<_>>())
        };
        assert_eq!(shape(&to), shape(&from), "{}", session.id);
    }
    // Rewound messages can still be restored.
    assert!(matches!(to.restore(&ids[0]), Err(StoreError::Session(SessionError::SaidSince { .. }))));
    assert_eq!(to.requests(&ids[0]).unwrap().len(), 2);
    assert_eq!(to.frozen(&ids[0], PromptNumber(1)).unwrap(), from.frozen(&ids[0], PromptNumber(1)).unwrap());

    // A second import changes nothing.
    let again = import(&to, &file).unwrap();
    assert_eq!((again.sessions.len(), again.skipped.as_slice()), (0, ids.as_slice()));
    assert_eq!(canonical(&to, &ids), canonical(&from, &ids));
}

#[test]
fn an_export_includes_the_ancestors_of_a_session() {
    let (_home, from) = store();
    let [root, branch, nested, delegate] = family(&from);
    let other = from.create_session(new_session()).unwrap();
    let ids = |file: &[u8]| -> Vec<String> {
        let sessions = records(file).into_iter().filter(|record| record["type"] == "session");
        sessions.map(|record| record["id"].as_str().unwrap().to_owned()).collect()
    };
    let of = |which: &[&Session]| {
        let which: Vec<SessionId> = which.iter().map(|session| session.id.clone()).collect();
        ids(&exported(&from, Some(&which)))
    };
    assert_eq!(of(&[&nested]), [root.id.0.clone(), branch.id.0.clone(), nested.id.0.clone()]);
    assert_eq!(of(&[&delegate]), std::slice::from_ref(&delegate.id.0));
    assert_eq!(of(&[&root, &other]), [root.id.0.clone(), delegate.id.0.clone(), other.id.0]);

    // A delegate becomes an independent session in a store without its parent, and stays a delegate otherwise.
    let (_home, to) = store();
    let alone = exported(&from, Some(std::slice::from_ref(&delegate.id)));
    assert_eq!(import(&to, &alone).unwrap().detached, std::slice::from_ref(&delegate.id));
    assert_eq!(to.session(&delegate.id).unwrap().parent, None);
    let (_home, to) = store();
    import(&to, &exported(&from, Some(std::slice::from_ref(&branch.id)))).unwrap();
    assert_eq!(import(&to, &alone).unwrap().detached, []);
    assert_eq!(to.session(&delegate.id).unwrap().parent.unwrap().id, root.id);
    // Its parents exist already: the new session is attached to the stored ones.
    let imported = import(&to, &exported(&from, Some(std::slice::from_ref(&nested.id)))).unwrap();
    assert_eq!((imported.sessions.as_slice(), imported.skipped.len()), (std::slice::from_ref(&nested.id), 2));
    assert_eq!(drafts(&to, &nested.id), drafts(&from, &nested.id));
    assert_eq!(drafts(&to, &branch.id), drafts(&from, &branch.id));
    let error = from.export(Some(&[SessionId("nobody".into())]), Layout::Lines, &mut Vec::new()).unwrap_err();
    assert!(matches!(error, StoreError::Session(SessionError::UnknownSession(_))));
}

#[test]
fn a_branch_is_not_attached_to_a_different_parent() {
    let (_home, from) = store();
    let [root, branch, ..] = family(&from);
    let file = exported(&from, Some(std::slice::from_ref(&branch.id)));
    let mut changed = records(&file);
    let message = changed.iter().position(|record| record["type"] == "message").unwrap();
    changed[message]["content"] = json!("something else");
    let (_home, to) = store();
    let without_branch = exported(&from, Some(std::slice::from_ref(&root.id)));
    import(&to, &without_branch).unwrap();
    let done = import(&to, &lines(&changed)).unwrap();
    assert_eq!(done.left_out, [(branch.id.clone(), root.id.clone())]);
    assert!(matches!(to.session(&branch.id), Err(StoreError::Session(SessionError::UnknownSession(_)))));
}

#[test]
fn sessions_with_a_different_parent_are_left_out_of_an_import() {
    let (_home, from) = store();
    let [root, branch, nested, delegate] = family(&from);
    let other = from.create_session(new_session()).unwrap();
    let mut changed = records(&exported(&from, None));
    let message = at(&changed, "message", 0);
    changed[message]["content"] = json!("something else");
    let (_home, to) = store();
    let done = import(&to, &exported(&from, Some(std::slice::from_ref(&root.id)))).unwrap();
    assert_eq!(done.sessions, [root.id.clone(), delegate.id.clone()]);
    let done = import(&to, &lines(&changed)).unwrap();
    assert_eq!(done.left_out, [(branch.id.clone(), root.id), (nested.id, branch.id)]);
    assert_eq!((done.sessions, done.skipped.len()), (vec![other.id], 2));
}

#[test]
fn a_taken_title_gets_the_next_number() {
    let (_home, from) = store();
    let [root, ..] = family(&from);
    let (_home, to) = store();
    let holder = to.create_session(NewSession { title: Some("Engine".into()), ..new_session() }).unwrap();
    let imported = import(&to, &exported(&from, None)).unwrap();
    assert_eq!(imported.renamed, [(root.id.clone(), "Engine #2".to_owned())]);
    assert_eq!(to.session(&root.id).unwrap().title.as_deref(), Some("Engine #2"));
    assert_eq!(to.session(&holder.id).unwrap().title.as_deref(), Some("Engine"));
}

#[test]
fn both_layouts_of_an_export_are_json_and_can_be_imported() {
    let (_home, from) = store();
    let ids = family(&from).map(|session| session.id);
    let mut array = Vec::new();
    let count = from.export(None, Layout::Array, &mut array).unwrap();
    assert_eq!((count.sessions, count.messages), (4, 12));
    let records: Vec<Value> = serde_json::from_slice(&array).unwrap();
    assert_eq!(records[0]["format"], "hermes-sessions");
    let seal = &records.last().unwrap()["seal"];
    assert_eq!(records.last().unwrap(), &json!({"type": "end", "sessions": 4, "messages": 12, "seal": seal}));
    let (_home, to) = store();
    import(&to, &array).unwrap();
    assert_eq!(canonical(&to, &ids), canonical(&from, &ids));
    let (_home, empty) = store();
    let nothing = exported(&empty, None);
    assert_eq!(import(&to, &nothing).unwrap(), Imported::default());
}

/// Accepts a number of bytes and then fails, like a full disk.
struct Narrow(usize);

impl Write for Narrow {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0 < bytes.len() {
            return Err(std::io::ErrorKind::BrokenPipe.into());
        }
        self.0 -= bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_export_that_cannot_be_written_is_an_error() {
    let (_home, from) = store();
    family(&from);
    for room in [0, 10, 3_000] {
        let error = from.export(None, Layout::Lines, &mut Narrow(room)).unwrap_err();
        assert!(
            matches!(error, StoreError::Transfer(TransferError::Output(source)) if source.kind() == std::io::ErrorKind::BrokenPipe)
        );
    }
}

#[test]
fn times_in_the_future_become_the_time_of_the_import() {
    let (_home, from) = store();
    let [root, ..] = family(&from);
    let mut records = records(&exported(&from, None));
    records[1]["updated_at"] = json!(NOW + 1);
    let (_home, to) = store();
    import(&to, &lines(&records)).unwrap();
    assert_eq!(to.session(&root.id).unwrap().updated_at, NOW);
}
