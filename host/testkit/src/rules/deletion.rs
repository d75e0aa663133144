//! Deletion.

use std::slice;

use hermes_session_store::{ParentKind, SessionError, SessionStore};

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
