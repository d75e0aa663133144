//! The log and its search.

use hermes_conversation::{Draft, MessageId, Role, ToolCall};
use hermes_session_store::{ParentKind, PassageQuery, SessionError, SessionStore, Words};

use super::{child, created, letters, range, refused, said, say};

pub async fn messages_are_returned_as_they_were_appended(store: &dyn SessionStore) {
    let session = created(store).await;
    let call = ToolCall { id: "call\0".into(), name: "read".into(), arguments: r#"{ "path": "ä" }"#.into() };
    let mut user = Draft::user("hello\0\n", 1);
    user.sent = Some("hello, recalled".into());
    let mut assistant = Draft::assistant("", vec![call.clone()], 2);
    assistant.reasoning = Some("because".into());
    let drafts =
        [user, assistant, Draft::result(&call, "the file", 3), Draft::assistant("done", Vec::new(), 4).by_host()];
    let stored = store.append(&session.id, &drafts).await.unwrap();
    assert_eq!(stored.iter().map(|message| message.draft.clone()).collect::<Vec<_>>(), drafts);
    assert_eq!(store.conversation(&session.id).await.unwrap(), stored);
    assert_eq!(store.session(&session.id).await.unwrap().message_count, 4);
}

pub async fn an_append_is_all_or_nothing_and_ordered(store: &dyn SessionStore) {
    let (session, other) = (created(store).await, created(store).await);
    let first = say(store, &session, "Aa").await;
    let between = say(store, &other, "X").await;
    let system = Draft { role: Role::System, ..Draft::user("no", 1) };
    let refusal = refused(store.append(&session.id, &[Draft::user("lost", 1), system]).await);
    assert!(matches!(refusal, SessionError::SystemMessage));
    assert_eq!(store.append(&session.id, &[]).await.unwrap(), []);
    let then = say(store, &session, "Bb").await;
    let ids: Vec<MessageId> = [first, between, then].concat();
    assert!(ids.is_sorted_by(|one, next| one < next), "{ids:?}");
    assert_eq!(said(store, &session).await, "AaBb");
    let stored = store.session(&session.id).await.unwrap();
    assert_eq!(stored.message_count, 4);
    let late = stored.updated_at + 5;
    store.append(&session.id, &[Draft::user("C", late), Draft::user("D", 1)]).await.unwrap();
    assert_eq!(store.session(&session.id).await.unwrap().updated_at, late);
}

pub async fn parallel_appends_lose_nothing(store: &dyn SessionStore) {
    let (one, other) = (created(store).await, created(store).await);
    let (mine, yours) = tokio_free_join(
        async {
            for _ in 0..20 {
                say(store, &one, "Aa").await;
            }
        },
        async {
            for _ in 0..20 {
                say(store, &other, "Bb").await;
            }
        },
    )
    .await;
    assert_eq!((mine, yours), ((), ()));
    assert_eq!(said(store, &one).await, "Aa".repeat(20));
    assert_eq!(said(store, &other).await, "Bb".repeat(20));
}

/// Polls two futures alternately, so that this crate needs no async runtime.
async fn tokio_free_join<A, B>(one: impl Future<Output = A>, other: impl Future<Output = B>) -> (A, B) {
    use std::task::Poll;
    let (mut one, mut other) = (std::pin::pin!(one), std::pin::pin!(other));
    let (mut first, mut second) = (None, None);
    std::future::poll_fn(move |context| {
        if first.is_none()
            && let Poll::Ready(done) = one.as_mut().poll(context)
        {
            first = Some(done);
        }
        if second.is_none()
            && let Poll::Ready(done) = other.as_mut().poll(context)
        {
            second = Some(done);
        }
        match (first.take(), second.take()) {
            (Some(first), Some(second)) => Poll::Ready((first, second)),
            pair => {
                (first, second) = pair;
                Poll::Pending
            }
        }
    })
    .await
}

pub async fn a_branch_shows_its_parents_conversation_up_to_its_start(store: &dyn SessionStore) {
    let root = created(store).await;
    let ids = say(store, &root, "AaBbCc").await;
    let branch = store.branch(&root.id, Some(ids[3]), None, 7).await.unwrap();
    assert_eq!(branch.parent.as_ref().map(|parent| parent.through), Some(Some(ids[3])));
    let whole = child(store, &root, ParentKind::Branch, None).await;
    let delegate = child(store, &root, ParentKind::Delegate, None).await;
    say(store, &root, "Dd").await;
    say(store, &branch, "Xx").await;
    let nested = child(store, &branch, ParentKind::Continuation, None).await;
    say(store, &nested, "Yy").await;
    for (session, expected) in
        [(&root, "AaBbCcDd"), (&branch, "AaBbXx"), (&whole, "AaBbCc"), (&delegate, ""), (&nested, "AaBbXxYy")]
    {
        assert_eq!(said(store, session).await, expected);
    }
    assert_eq!(store.session(&nested.id).await.unwrap().message_count, 2);
    // The branch does not show `Cc`.
    let refusal = refused(store.branch(&branch.id, Some(ids[5]), None, 8).await);
    assert!(matches!(refusal, SessionError::NoSuchMessage { message, .. } if message == ids[5]));
}

pub async fn a_search_finds_only_what_the_conversation_shows(store: &dyn SessionStore) {
    let (root, stranger) = (created(store).await, created(store).await);
    let call = ToolCall { id: "c".into(), name: "read".into(), arguments: "{}".into() };
    let drafts = [
        Draft::user("where is the golden needle", 1),
        Draft::assistant("", vec![call.clone()], 2),
        Draft::result(&call, "the needle is in the haystack", 3),
        Draft::assistant("found it", Vec::new(), 4),
        Draft::user("another golden thing", 5),
    ];
    let ids: Vec<MessageId> = store.append(&root.id, &drafts).await.unwrap().iter().map(|message| message.id).collect();
    store.append(&stranger.id, &[Draft::user("needle elsewhere", 1)]).await.unwrap();
    let branch = child(store, &root, ParentKind::Branch, Some(ids[3])).await;
    let all = PassageQuery {
        text: "golden needle".into(),
        words: Words::Any,
        roles: Vec::new(),
        tools: Vec::new(),
        within: None,
        offset: 0,
        limit: 10,
    };
    let found = async |session: &hermes_session_store::Session, query: &PassageQuery| -> Vec<MessageId> {
        let mut found: Vec<MessageId> =
            store.search(&session.id, query).await.unwrap().iter().map(|passage| passage.message).collect();
        found.sort_unstable();
        found
    };
    // An answer to a question may also name what was said beside the messages with its words, but nothing else.
    let any = async |session: &hermes_session_store::Session, query: &PassageQuery, beside: &[MessageId]| {
        let mut found = found(session, query).await;
        found.retain(|message| !beside.contains(message));
        found
    };
    assert_eq!(any(&root, &all, &[ids[3]]).await, [ids[0], ids[2], ids[4]]);
    assert_eq!(any(&branch, &all, &[ids[3]]).await, [ids[0], ids[2]]);
    assert_eq!(found(&root, &PassageQuery { words: Words::All, ..all.clone() }).await, [ids[0]]);
    let phrase = PassageQuery { words: Words::Phrase, text: "the haystack".into(), ..all.clone() };
    assert_eq!(found(&root, &phrase).await, [ids[2]]);
    assert_eq!(found(&root, &PassageQuery { roles: vec![Role::User], ..all.clone() }).await, [ids[0], ids[4]]);
    assert_eq!(found(&root, &PassageQuery { tools: vec!["read".into()], ..all.clone() }).await, [ids[2]]);
    let within = PassageQuery { within: Some(range(ids[1], ids[3])), ..all.clone() };
    assert_eq!(any(&root, &within, &[ids[3]]).await, [ids[2]]);
    assert_eq!(found(&root, &PassageQuery { offset: 1, limit: 1, ..all.clone() }).await.len(), 1);
    assert_eq!(found(&root, &PassageQuery { text: " ".into(), ..all.clone() }).await, []);
    let passages = store.search(&branch.id, &phrase).await.unwrap();
    assert_eq!((&passages[0].session, passages[0].excerpt.contains("haystack")), (&root.id, true));
    // A rewound message is not found.
    store.rewind(&root.id, ids[4]).await.unwrap();
    assert_eq!(any(&root, &all, &[ids[3]]).await, [ids[0], ids[2]]);
    assert_eq!(letters(&[]), "");
}
