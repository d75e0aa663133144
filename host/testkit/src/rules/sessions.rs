//! Sessions, leases, notes.

use hermes_conversation::{Draft, MessageId, Model, SessionId, View};
use hermes_session_store::{
    AuxiliaryRecord, Delegation, DelegationState, EngineFaults, Frozen, NewSession, Parent, ParentKind, PassageQuery,
    PromptNumber, RequestRecord, SessionError, SessionStore, Words,
};

use super::{created, new_session, nobody, refused};

pub async fn a_session_is_returned_as_it_was_created(store: &dyn SessionStore) {
    let frozen = Frozen {
        number: PromptNumber(1),
        system_prompt: "You are\0 Hermes.\n".into(),
        layers: "[]".into(),
        tools: r#"[ {"name":"a"} ]"#.into(),
        reason: "new".into(),
    };
    let new = NewSession { title: Some(" a  title ".into()), frozen: Some(frozen.clone()), ..new_session() };
    let session = store.create_session(new.clone()).await.unwrap();
    assert_eq!(session.frozen, Some(frozen));
    assert_eq!(session.title.as_deref(), Some("a title"));
    assert_eq!((&session.source, &session.engine), (&new.source, &new.engine));
    assert_eq!((&session.workspace, &session.model), (&new.workspace, &new.model));
    assert_eq!((session.started_at, session.updated_at), (new.started_at, new.started_at));
    assert_eq!((session.message_count, &session.parent), (0, &None));
    assert_eq!(store.session(&session.id).await.unwrap(), session);
    assert_ne!(created(store).await.id, session.id);
}

pub async fn a_model_and_an_engine_are_replaced(store: &dyn SessionStore) {
    let id = created(store).await.id;
    let model = Model { provider: "openrouter".into(), name: "other".into(), context_length: 8 };
    store.update_model(&id, &model).await.unwrap();
    store.update_engine(&id, "lossless").await.unwrap();
    let session = store.session(&id).await.unwrap();
    assert_eq!((session.model, session.engine.as_str()), (model, "lossless"));
}

pub async fn calls_about_an_unknown_session_name_it(store: &dyn SessionStore) {
    let id = nobody();
    let parent = Some(Parent { id: id.clone(), kind: ParentKind::Branch, through: None });
    let (request, auxiliary) = (RequestRecord::default(), AuxiliaryRecord::default());
    let faults = EngineFaults { engine: "e@1".into(), in_a_row: 1, cause: String::new() };
    let query = PassageQuery {
        text: "word".into(),
        words: Words::Any,
        roles: Vec::new(),
        tools: Vec::new(),
        within: None,
        offset: 0,
        limit: 1,
    };
    let refusals = [
        refused(store.create_session(NewSession { parent, ..new_session() }).await),
        refused(store.branch(&id, None, None, 1).await),
        refused(store.session(&id).await),
        refused(store.lease(&id).await),
        refused(store.update_model(&id, &super::model()).await),
        refused(store.update_engine(&id, "lossless").await),
        refused(store.set_title(&id, "title").await),
        refused(store.delete(std::slice::from_ref(&id), false).await),
        refused(store.discard(&id).await),
        refused(store.append(&id, &[Draft::user("word", 1)]).await),
        refused(store.end_turn(&id, &[Draft::user("word", 1)], hermes_conversation::MessageId(1), &[]).await),
        refused(store.next_turn(&id, "memory").await),
        refused(store.delivery_lease(&id, "memory").await),
        refused(store.conversation(&id).await),
        refused(store.rewind(&id, hermes_conversation::MessageId(1)).await),
        refused(store.restore(&id).await),
        refused(store.put_view(&id, &View::default(), "", "e").await),
        refused(store.view_in_force(&id).await),
        refused(store.views(&id).await),
        refused(store.summaries(&id).await),
        refused(store.summary(&id, "key").await),
        refused(store.freeze(&id, &Frozen::default(), 1).await),
        refused(store.frozen(&id, PromptNumber(1)).await),
        refused(store.record_request(&id, &request).await),
        refused(store.complete_request(&id, &request).await),
        refused(store.withdraw_request(&id, 1).await),
        refused(store.record_auxiliary(&id, &auxiliary).await),
        refused(store.complete_auxiliary(&id, &auxiliary).await),
        refused(store.withdraw_auxiliary(&id, 1).await),
        refused(store.requests(&id).await),
        refused(store.last_request(&id, None).await),
        refused(store.last_usage(&id, &request).await),
        refused(store.cache_was_reported(&id, &request).await),
        refused(store.engine_faults(&id).await),
        refused(store.set_engine_faults(&id, &faults).await),
        refused(store.search(&id, &query).await),
    ];
    for (at, refusal) in refusals.iter().enumerate() {
        assert!(matches!(refusal, SessionError::UnknownSession(named) if *named == id.0), "call {at}: {refusal}");
    }
}

pub async fn leases_exclude_each_other_until_they_are_dropped(store: &dyn SessionStore) {
    let (one, other) = (created(store).await.id, created(store).await.id);
    let lease = store.lease(&one).await.unwrap();
    assert_eq!(lease.session(), &one);
    let refusal = refused(store.lease(&one).await);
    assert!(matches!(refusal, SessionError::InUse { session, .. } if session == one));
    let _others = store.lease(&other).await.unwrap();
    drop(lease);
    let _again = store.lease(&one).await.unwrap();
}

pub async fn delegated_tasks_are_numbered_by_session_and_replaced(store: &dyn SessionStore) {
    let (one, two) = (created(store).await.id, created(store).await.id);
    let task = |goal: &str| Delegation {
        number: 0,
        child: None,
        call: "4.1".into(),
        goal: goal.into(),
        background: false,
        state: DelegationState::Waiting,
        report: None,
        delivered_in: None,
        started_at: 5,
        ended_at: None,
    };
    for (session, goal, number) in [(&one, "a", 1), (&one, "b", 2), (&two, "c", 1)] {
        assert_eq!(store.put_delegation(session, &task(goal)).await.unwrap(), number);
    }
    let done = Delegation {
        number: 1,
        child: Some(two.clone()),
        background: true,
        state: DelegationState::OutOfBudget,
        report: Some("counted".into()),
        delivered_in: Some(MessageId(9)),
        ended_at: Some(6),
        ..task("a")
    };
    assert_eq!(store.put_delegation(&one, &done).await.unwrap(), 1);
    assert_eq!(store.delegations(&one).await.unwrap(), [done, Delegation { number: 2, ..task("b") }]);
    assert_eq!(store.delegations(&two).await.unwrap(), [Delegation { number: 1, ..task("c") }]);
    let unknown = SessionId("nobody".into());
    assert!(store.delegations(&unknown).await.is_err() && store.put_delegation(&unknown, &task("d")).await.is_err());
}

pub async fn notes_and_engine_faults_are_kept_until_they_are_replaced(store: &dyn SessionStore) {
    assert_eq!(store.note("ruler").await.unwrap(), None);
    store.set_note("ruler", Some("1.2")).await.unwrap();
    store.set_note("other", Some("")).await.unwrap();
    store.set_note("ruler", Some("1.3")).await.unwrap();
    assert_eq!(store.note("ruler").await.unwrap().as_deref(), Some("1.3"));
    assert_eq!(store.note("other").await.unwrap().as_deref(), Some(""));
    store.set_note("ruler", None).await.unwrap();
    assert_eq!(store.note("ruler").await.unwrap(), None);

    let id = created(store).await.id;
    let faults = |engine: &str, in_a_row| EngineFaults { engine: engine.into(), in_a_row, cause: "late".into() };
    for kept in [faults("b@1", 1), faults("a@1", 2), faults("b@1", 3)] {
        store.set_engine_faults(&id, &kept).await.unwrap();
    }
    assert_eq!(store.engine_faults(&id).await.unwrap(), [faults("a@1", 2), faults("b@1", 3)]);
    store.set_engine_faults(&id, &faults("a@1", 0)).await.unwrap();
    assert_eq!(store.engine_faults(&id).await.unwrap(), [faults("b@1", 3)]);
    assert_eq!(store.engine_faults(&created(store).await.id).await.unwrap(), []);
}
