//! Views, summaries, frozen prompts.

use hermes_conversation::{Excerpt, Item, MessageId, Summary, View, ViewId};
use hermes_session_store::{Frozen, ParentKind, PromptNumber, SessionError, SessionStore, StoredView};

use super::{child, created, range, refused, say};

fn summary(key: &str, content: &str, covers: (MessageId, MessageId)) -> Summary {
    Summary { key: key.into(), content: content.into(), covers: vec![range(covers.0, covers.1)] }
}

/// A view of one summary.
pub(super) fn view_of(summary: Summary, through: MessageId) -> View {
    View { items: vec![Item::Summary(summary)], through: Some(through) }
}

/// A view with a summary of the first message. The key is also the summary's text.
pub(super) fn named(key: &str, first: MessageId, through: MessageId) -> View {
    view_of(summary(key, key, (first, first)), through)
}

pub async fn views_round_trip_and_the_newest_is_in_force(store: &dyn SessionStore) {
    let session = created(store).await;
    let ids = say(store, &session, "AaBbCcDdEe").await;
    assert_eq!(store.view_in_force(&session.id).await.unwrap(), StoredView::default());
    assert_eq!(store.view(ViewId::WHOLE).await.unwrap(), Some(View::default()));
    let first = View {
        items: vec![
            Item::Messages(range(ids[0], ids[0])),
            Item::Summary(summary("s1", "first\0\n", (ids[1], ids[2]))),
            Item::Excerpt(Excerpt {
                id: ids[3],
                content: Some("cut\0".into()),
                arguments: vec![("call".into(), "{}".into())],
                keep_images: false,
            }),
            Item::Messages(range(ids[4], ids[9])),
        ],
        through: Some(ids[9]),
    };
    let one = store.put_view(&session.id, &first, "the window is full", "compressor").await.unwrap();
    let in_force = StoredView { id: one, engine: "compressor".into(), view: first.clone() };
    assert_eq!(store.view_in_force(&session.id).await.unwrap(), in_force);

    let second = view_of(summary("s2", "second", (ids[0], ids[8])), ids[9]);
    let two = store.put_view(&session.id, &second, "asked for", "lossless").await.unwrap();
    assert_ne!(two, one);
    assert_eq!(store.view_in_force(&session.id).await.unwrap().id, two);
    // The chain keeps both, and each is found by its id.
    let views = store.views(&session.id).await.unwrap();
    let chain: Vec<(ViewId, u64, &str, &str)> =
        views.iter().map(|view| (view.id, view.number, view.engine.as_str(), view.reason.as_str())).collect();
    assert_eq!(chain, [(one, 1, "compressor", "the window is full"), (two, 2, "lossless", "asked for")]);
    assert_eq!((&views[0].view, &views[1].view), (&first, &second));
    assert_eq!(store.view(one).await.unwrap(), Some(first));
    assert_eq!(store.view(ViewId(u64::MAX >> 1)).await.unwrap(), None);
    // Summaries stay available when their view is replaced.
    let mut keys: Vec<String> = store.summaries(&session.id).await.unwrap().into_keys().collect();
    keys.sort();
    assert_eq!(keys, ["s1", "s2"]);
    let found = store.summary(&session.id, "s1").await.unwrap();
    assert_eq!(found, Some(summary("s1", "first\0\n", (ids[1], ids[2]))));
    assert_eq!(store.summary(&session.id, "s3").await.unwrap(), None);
}

pub async fn a_summary_never_changes_under_its_key(store: &dyn SessionStore) {
    let session = created(store).await;
    let ids = say(store, &session, "AaBb").await;
    let kept = summary("s1", "text", (ids[0], ids[1]));
    let view = view_of(kept.clone(), ids[3]);
    store.put_view(&session.id, &view, "", "e").await.unwrap();
    let again = store.put_view(&session.id, &view, "", "e").await.unwrap();
    for changed in [summary("s1", "other", (ids[0], ids[1])), summary("s1", "text", (ids[0], ids[0]))] {
        let items = vec![Item::Summary(summary("new", "new", (ids[2], ids[2]))), Item::Summary(changed)];
        let refusal = refused(store.put_view(&session.id, &View { items, through: None }, "", "e").await);
        assert!(matches!(refusal, SessionError::SummaryChanged { key, .. } if key == "s1"));
    }
    assert_eq!(store.view_in_force(&session.id).await.unwrap().id, again);
    assert_eq!(store.summary(&session.id, "new").await.unwrap(), None);
    assert_eq!(store.views(&session.id).await.unwrap().len(), 2);
}

pub async fn a_branch_inherits_the_view_of_its_start(store: &dyn SessionStore) {
    let root = created(store).await;
    let ids = say(store, &root, "AaBbCcDdEe").await;
    let (early, late) = (named("s1", ids[0], ids[4]), named("s2", ids[0], ids[9]));
    store.put_view(&root.id, &early, "", "e").await.unwrap();
    let of_root = store.put_view(&root.id, &late, "", "e").await.unwrap();
    let before = child(store, &root, ParentKind::Branch, Some(ids[2])).await;
    let between = child(store, &root, ParentKind::Branch, Some(ids[6])).await;
    let after = child(store, &root, ParentKind::Branch, None).await;
    let nested = child(store, &after, ParentKind::Branch, Some(ids[7])).await;
    let delegate = child(store, &root, ParentKind::Delegate, None).await;
    // A later view of the parent does not belong to the branch.
    store.put_view(&root.id, &named("s3", ids[0], ids[4]), "", "e").await.unwrap();
    for (session, view, known) in [
        (&before, View::default(), 0),
        (&between, early.clone(), 1),
        (&after, late, 2),
        (&nested, early, 1),
        (&delegate, View::default(), 0),
    ] {
        assert_eq!(store.view_in_force(&session.id).await.unwrap().view, view);
        assert_eq!(store.summaries(&session.id).await.unwrap().len(), known);
        assert_eq!(store.views(&session.id).await.unwrap().len(), known);
    }
    assert_eq!(store.view_in_force(&after.id).await.unwrap().id, of_root);
    // A branch may reuse a key that its parent used later, but not one that it inherited.
    let own = view_of(summary("s3", "the branch's", (ids[0], ids[0])), ids[9]);
    store.put_view(&after.id, &own, "", "e").await.unwrap();
    assert_eq!(store.view_in_force(&after.id).await.unwrap().view, own);
    let stolen = view_of(summary("s1", "another", (ids[0], ids[0])), ids[9]);
    let refusal = refused(store.put_view(&after.id, &stolen, "", "e").await);
    assert!(matches!(refusal, SessionError::SummaryChanged { .. }));
}

pub async fn frozen_prompts_are_numbered_and_inherited(store: &dyn SessionStore) {
    let frozen =
        |prompt: &str, tools: &str| Frozen { system_prompt: prompt.into(), tools: tools.into(), ..Frozen::default() };
    let session = created(store).await;
    assert_eq!(session.frozen, None);
    let given = Frozen { number: PromptNumber(9), ..frozen("prompt", "[]") };
    assert_eq!(store.freeze(&session.id, &given, 1).await.unwrap(), PromptNumber(1));
    assert_eq!(store.freeze(&session.id, &frozen("prompt", "[]"), 2).await.unwrap(), PromptNumber(1));
    let branch = child(store, &session, ParentKind::Branch, None).await;
    assert_eq!(store.freeze(&session.id, &frozen("prompt", "[ ]"), 3).await.unwrap(), PromptNumber(2));
    let newest = store.session(&session.id).await.unwrap().frozen.unwrap();
    assert_eq!((newest.number, newest.tools.as_str()), (PromptNumber(2), "[ ]"));
    let first = store.frozen(&session.id, PromptNumber(1)).await.unwrap().unwrap();
    assert_eq!((first.number, first.tools.as_str()), (PromptNumber(1), "[]"));
    assert_eq!(store.frozen(&session.id, PromptNumber(3)).await.unwrap(), None);
    assert_eq!(branch.frozen.unwrap().tools, "[]");
    assert_eq!(child(store, &session, ParentKind::Delegate, None).await.frozen, None);
}
