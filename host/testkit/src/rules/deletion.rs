//! Deletion.

use std::slice;

use hermes_session_store::{AuxiliaryRecord, ParentKind, RequestRecord, SessionError, SessionStore};

use super::{child, created, refused, said, say};

pub async fn a_deletion_takes_delegates_and_spares_inherited_messages(store: &dyn SessionStore) {
    let root = created(store).await;
    let empty = child(store, &root, ParentKind::Branch, None).await;
    let delegate = child(store, &root, ParentKind::Delegate, None).await;
    let below = child(store, &delegate, ParentKind::Delegate, None).await;
    say(store, &below, "Xx").await;
    let deletion = store.delete(slice::from_ref(&root.id), false).await.unwrap();
    assert_eq!(deletion.sessions, [below.id, delegate.id, root.id.clone()]);
    assert_eq!(deletion.detached, slice::from_ref(&empty.id));
    assert_eq!(store.session(&empty.id).await.unwrap().parent, None);
    assert!(matches!(refused(store.session(&root.id).await), SessionError::UnknownSession(_)));

    let root = created(store).await;
    say(store, &root, "Aa").await;
    let branch = child(store, &root, ParentKind::Branch, None).await;
    let refusal = refused(store.delete(slice::from_ref(&root.id), false).await);
    assert!(
        matches!(&refusal, SessionError::HasChildren { children, .. } if *children == [branch.id.clone()]),
        "{refusal}"
    );
    let refusal = refused(store.delete(&[branch.id.clone(), super::nobody()], false).await);
    assert!(matches!(refusal, SessionError::UnknownSession(_)));
    assert_eq!(said(store, &branch).await, "Aa");
    let deletion = store.delete(slice::from_ref(&root.id), true).await.unwrap();
    assert_eq!(deletion.sessions, [branch.id, root.id]);
}

pub async fn a_leased_session_is_not_deleted(store: &dyn SessionStore) {
    let root = created(store).await;
    let delegate = child(store, &root, ParentKind::Delegate, None).await;
    let lease = store.lease(&delegate.id).await.unwrap();
    let refusal = refused(store.delete(slice::from_ref(&root.id), false).await);
    assert!(matches!(refusal, SessionError::InUse { session, .. } if session == delegate.id));
    store.session(&root.id).await.unwrap();
    drop(lease);
    store.delete(slice::from_ref(&root.id), false).await.unwrap();
}

pub async fn only_a_session_in_which_nothing_was_said_is_discarded(store: &dyn SessionStore) {
    let bare = created(store).await;
    let lease = store.lease(&bare.id).await.unwrap();
    assert!(store.discard(&bare.id).await.unwrap());
    drop(lease);
    assert!(matches!(refused(store.session(&bare.id).await), SessionError::UnknownSession(_)));

    let rewound = created(store).await;
    let said = say(store, &rewound, "A").await;
    store.rewind(&rewound.id, said[0]).await.unwrap();
    let (asked, asked_beside, parent) = (created(store).await, created(store).await, created(store).await);
    store.record_request(&asked.id, &RequestRecord::default()).await.unwrap();
    store.record_auxiliary(&asked_beside.id, &AuxiliaryRecord::default()).await.unwrap();
    let branch = child(store, &parent, ParentKind::Branch, None).await;
    for kept in [rewound, asked, asked_beside, parent, branch] {
        assert!(!store.discard(&kept.id).await.unwrap());
        store.session(&kept.id).await.unwrap();
    }
}
