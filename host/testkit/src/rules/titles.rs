//! Titles.

use hermes_session_store::{NewSession, Parent, ParentKind, Session, SessionError, SessionStore};

use super::{child, created, new_session, refused};

async fn titled(store: &dyn SessionStore, title: &str) -> Session {
    store.create_session(NewSession { title: Some(title.into()), ..new_session() }).await.unwrap()
}

async fn title_of(store: &dyn SessionStore, session: &Session) -> Option<String> {
    store.session(&session.id).await.unwrap().title
}

pub async fn titles_are_cleaned_and_unique(store: &dyn SessionStore) {
    let holder = titled(store, "Engine").await;
    titled(store, "Engine #7").await;
    let other = created(store).await;
    for (given, kept) in
        [("  two\n words\u{200b} ", Some("two words")), ("a\0b\u{7}c", Some("abc")), (" \u{feff}\n", None)]
    {
        assert_eq!(store.set_title(&other.id, given).await.unwrap().as_deref(), kept);
        assert_eq!(title_of(store, &other).await.as_deref(), kept);
    }
    let refusal = refused(store.set_title(&other.id, &"é".repeat(101)).await);
    assert!(matches!(refusal, SessionError::TitleTooLong { length: 101, most: 100 }));
    let refusal = refused(store.set_title(&other.id, " Engine ").await);
    assert!(
        matches!(&refusal, SessionError::TitleTaken { holder: id, free, .. } if *id == holder.id && free == "Engine #8"),
        "{refusal}"
    );
    assert_eq!(title_of(store, &other).await, None);
    assert_eq!(store.set_title(&holder.id, "Engine").await.unwrap().as_deref(), Some("Engine"));
    let taken = NewSession { title: Some("Engine".into()), ..new_session() };
    assert!(matches!(refused(store.create_session(taken).await), SessionError::TitleTaken { .. }));
    let long = "x".repeat(100);
    let parent = titled(store, &long).await;
    let branch = store.branch(&parent.id, None, None, 1).await.unwrap();
    assert_eq!(branch.title, Some(format!("{} #2", "x".repeat(97))));
}

pub async fn titles_are_numbered_in_a_branch_and_move_to_a_continuation(store: &dyn SessionStore) {
    let root = titled(store, "Engine").await;
    let branch = store.branch(&root.id, None, None, 1).await.unwrap();
    assert_eq!(branch.title.as_deref(), Some("Engine #2"));
    let second = child(store, &branch, ParentKind::Branch, None).await;
    assert_eq!(store.set_title(&second.id, "Engine").await.unwrap().as_deref(), Some("Engine #3"));
    let refusal = refused(store.set_title(&root.id, "Engine #3").await);
    assert!(matches!(refusal, SessionError::TitleTaken { .. }), "an ancestor does not take a title: {refusal}");
    let delegate = child(store, &root, ParentKind::Delegate, None).await;
    assert!(matches!(refused(store.set_title(&delegate.id, "Engine").await), SessionError::TitleTaken { .. }));
    let parent = Some(Parent { id: branch.id.clone(), kind: ParentKind::Continuation, through: None });
    let next = store.create_session(NewSession { parent, ..new_session() }).await.unwrap();
    assert_eq!(store.set_title(&next.id, "Engine #2").await.unwrap().as_deref(), Some("Engine #2"));
    assert_eq!(title_of(store, &branch).await, None);
    assert_eq!(store.set_title(&next.id, "Engine").await.unwrap().as_deref(), Some("Engine #4"));
    assert_eq!(title_of(store, &root).await.as_deref(), Some("Engine"));
}
