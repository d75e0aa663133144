//! Rewinding and restoring.

use hermes_conversation::{MessageId, View};
use hermes_session_store::{ParentKind, SessionError, SessionStore};

use super::views::named;
use super::{child, created, letters, refused, said, say};

pub async fn rewound_messages_are_hidden_and_can_be_restored(store: &dyn SessionStore) {
    let (session, stranger) = (created(store).await, created(store).await);
    let ids = say(store, &session, "AaBbCc").await;
    let elsewhere = say(store, &stranger, "X").await[0];
    let refusal = refused(store.rewind(&session.id, ids[1]).await);
    assert!(matches!(refusal, SessionError::NotTheUsers { message, .. } if message == ids[1]));
    for absent in [elsewhere, MessageId(0), MessageId(u64::MAX >> 1)] {
        let refusal = refused(store.rewind(&session.id, absent).await);
        assert!(matches!(refusal, SessionError::NoSuchMessage { message, .. } if message == absent));
    }
    let refusal = refused(store.restore(&session.id).await);
    assert!(matches!(refusal, SessionError::NothingRewound(id) if id == session.id));

    let hidden = store.rewind(&session.id, ids[2]).await.unwrap();
    assert_eq!((letters(&hidden).as_str(), said(store, &session).await.as_str()), ("BbCc", "Aa"));
    assert_eq!(store.session(&session.id).await.unwrap().message_count, 2);
    assert_eq!(store.restore(&session.id).await.unwrap(), hidden);
    assert_eq!(said(store, &session).await, "AaBbCc");
    assert_eq!(store.session(&session.id).await.unwrap().message_count, 6);

    // Rewinds are undone one by one, and not once the conversation has continued.
    store.rewind(&session.id, ids[4]).await.unwrap();
    let later = say(store, &session, "Dd").await;
    store.rewind(&session.id, ids[2]).await.unwrap();
    assert_eq!(letters(&store.restore(&session.id).await.unwrap()), "BbDd");
    let refusal = refused(store.restore(&session.id).await);
    assert!(matches!(refusal, SessionError::SaidSince { message, .. } if message == later[1]));
    assert_eq!(said(store, &session).await, "AaBbDd");
}

pub async fn a_rewind_hides_the_views_that_reach_beyond_it(store: &dyn SessionStore) {
    let session = created(store).await;
    let ids = say(store, &session, "AaBbCc").await;
    let early = store.put_view(&session.id, &named("s1", ids[0], ids[1]), "", "e").await.unwrap();
    let late = store.put_view(&session.id, &named("s2", ids[0], ids[5]), "", "e").await.unwrap();
    store.rewind(&session.id, ids[2]).await.unwrap();
    assert_eq!(store.view_in_force(&session.id).await.unwrap().id, early);
    assert_eq!(store.views(&session.id).await.unwrap().len(), 1);
    assert_eq!(store.summary(&session.id, "s2").await.unwrap(), None);
    // It can still be read by its id, because earlier requests showed it.
    assert!(store.view(late).await.unwrap().is_some());
    store.restore(&session.id).await.unwrap();
    assert_eq!(store.view_in_force(&session.id).await.unwrap().id, late);
    store.rewind(&session.id, ids[0]).await.unwrap();
    assert_eq!(store.view_in_force(&session.id).await.unwrap().view, View::default());
}

pub async fn parent_and_branch_rewind_independently(store: &dyn SessionStore) {
    let root = created(store).await;
    let ids = say(store, &root, "AaBbCc").await;
    store.rewind(&root.id, ids[4]).await.unwrap();
    say(store, &root, "Dd").await;
    let branch = child(store, &root, ParentKind::Branch, None).await;
    say(store, &branch, "Ee").await;
    let nested = child(store, &branch, ParentKind::Branch, None).await;
    // The branch keeps what its parent rewinds later, and lacks what the parent rewound before.
    store.rewind(&root.id, ids[0]).await.unwrap();
    assert_eq!((said(store, &root).await.as_str(), said(store, &branch).await.as_str()), ("", "AaBbDdEe"));
    // A branch may rewind into its parent's messages.
    store.rewind(&branch.id, ids[2]).await.unwrap();
    assert_eq!((said(store, &branch).await.as_str(), said(store, &nested).await.as_str()), ("Aa", "AaBbDdEe"));
    assert_eq!(store.session(&branch.id).await.unwrap().message_count, 0);
}
