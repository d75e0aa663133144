//! Searches across sessions, and the list of conversations.

use hermes_conversation::{Draft, MessageId, Role, SessionId};
use hermes_session_store::{Finding, NewSession, ParentKind, Reading, RecallOrder, RecallQuery, Session, SessionStore};

use super::{child, created, new_session, nobody, refused};

fn words(text: &str) -> RecallQuery {
    RecallQuery {
        text: text.into(),
        reading: Reading::Words,
        roles: Vec::new(),
        sources: Vec::new(),
        without_sources: Vec::new(),
        asking: None,
        since: None,
        until: None,
        order: RecallOrder::Oldest,
        limit: 20,
        neighbours: 0,
    }
}

async fn tell(store: &dyn SessionStore, session: &Session, texts: &[&str]) -> Vec<MessageId> {
    let last = store.conversation(&session.id).await.unwrap().last().map_or(0, |message| message.created_at);
    let drafts = texts.iter().zip(last + 1..).map(|(text, time)| match text.strip_prefix("model: ") {
        Some(text) => Draft::assistant(text, Vec::new(), time),
        None => Draft::user(*text, time),
    });
    let drafts: Vec<Draft> = drafts.collect();
    store.append(&session.id, &drafts).await.unwrap().iter().map(|message| message.id).collect()
}

fn ids(found: &[Finding]) -> Vec<MessageId> {
    found.iter().map(|finding| finding.message).collect()
}

pub async fn a_recall_finds_what_other_conversations_show(store: &dyn SessionStore) {
    let recalled = async |query: &RecallQuery| ids(&store.recall(query).await.unwrap());
    let old = created(store).await;
    let said = tell(store, &old, &["the golden needle", "model: in the haystack", "a silver needle"]).await;
    let asking = created(store).await;
    let own = tell(store, &asking, &["where was the needle"]).await;
    let branch = child(store, &asking, ParentKind::Branch, None).await;
    let later = tell(store, &branch, &["the needle again"]).await;
    let delegate = child(store, &old, ParentKind::Delegate, None).await;
    tell(store, &delegate, &["find the needle"]).await;

    assert_eq!(recalled(&words("needle")).await, [said[0], said[2], own[0], later[0]]);
    // The whole conversation that asks is left out, whichever of its branches asks.
    for session in [&asking, &branch] {
        let query = RecallQuery { asking: Some(session.id.clone()), ..words("needle") };
        assert_eq!(recalled(&query).await, [said[0], said[2]]);
    }
    assert_eq!(store.origin(&branch.id).await.unwrap(), asking.id);
    refused(store.recall(&RecallQuery { asking: Some(nobody()), ..words("needle") }).await);
    // A word is enough, and more are better; in the language all must occur.
    let best = RecallQuery { order: RecallOrder::Best, ..words("golden needle") };
    assert_eq!(recalled(&best).await[0], said[0]);
    let language = |text: &str| RecallQuery { reading: Reading::Language, ..words(text) };
    assert_eq!(recalled(&language("golden needle")).await, [said[0]]);
    assert_eq!(recalled(&language("golden OR haystack")).await, [said[0], said[1]]);
    for nothing in ["", " \n", "\"", "submarine"] {
        assert_eq!(recalled(&words(nothing)).await, []);
        assert_eq!(recalled(&language(nothing)).await, []);
    }
    store.rewind(&old.id, said[2]).await.unwrap();
    assert_eq!(recalled(&words("silver")).await, []);
}

pub async fn a_recall_is_filtered_and_shows_neighbours(store: &dyn SessionStore) {
    let session = created(store).await;
    let texts = ["one", "model: two", "three needle", "model: ", "model: four needle", "five"];
    let said = tell(store, &session, &texts).await;
    let cron = store.create_session(NewSession { source: "cron".into(), ..new_session() }).await.unwrap();
    let nightly = tell(store, &cron, &["nightly needle"]).await;
    let all = words("needle");
    for (query, expected) in [
        (RecallQuery { roles: vec![Role::User], ..all.clone() }, vec![said[2], nightly[0]]),
        (RecallQuery { sources: vec!["cron".into()], ..all.clone() }, vec![nightly[0]]),
        (RecallQuery { without_sources: vec!["cron".into()], ..all.clone() }, vec![said[2], said[4]]),
        (RecallQuery { since: Some(5), ..all.clone() }, vec![said[4]]),
        (RecallQuery { until: Some(3), ..all.clone() }, vec![nightly[0]]),
        (RecallQuery { order: RecallOrder::Newest, limit: 2, ..all.clone() }, vec![nightly[0], said[4]]),
    ] {
        assert_eq!(ids(&store.recall(&query).await.unwrap()), expected, "{query:?}");
    }
    let found = store.recall(&RecallQuery { neighbours: 2, limit: 1, ..all }).await.unwrap();
    let finding = &found[0];
    let texts = |neighbours: &[hermes_session_store::Neighbour]| -> Vec<String> {
        neighbours.iter().map(|neighbour| neighbour.text.clone()).collect()
    };
    assert_eq!(
        (texts(&finding.before), texts(&finding.after)),
        (
            vec!["one".to_owned(), "two".to_owned()],
            // A message without text is passed over.
            vec!["four needle".to_owned(), "five".to_owned()],
        )
    );
    assert_eq!((finding.excerpt.as_str(), finding.role, finding.created_at), ("three needle", Role::User, 3));
    assert_eq!((&finding.session, &finding.origin, finding.imported), (&session.id, &session.id, false));
}

pub async fn conversations_are_listed_and_found_by_title(store: &dyn SessionStore) {
    let old = created(store).await;
    tell(store, &old, &["first words\nof the user", "model: answer"]).await;
    let continuation = child(store, &old, ParentKind::Continuation, None).await;
    tell(store, &continuation, &["further"]).await;
    let now = new_session().started_at + 5_000;
    let newest = store.create_session(NewSession { started_at: now, ..new_session() }).await.unwrap();
    child(store, &newest, ParentKind::Delegate, None).await;
    store.set_title(&newest.id, "The Harbour").await.unwrap();
    let listed = store.conversations(Some(10)).await.unwrap();
    let listed_ids: Vec<&SessionId> = listed.iter().map(|one| &one.id).collect();
    assert_eq!(listed_ids, [&newest.id, &continuation.id]);
    assert_eq!((listed[1].preview.as_str(), listed[1].message_count), ("further", 1));
    assert_eq!(listed[1].conversation_messages, 3);
    // A branch without messages of its own has those of its parent.
    let branch = child(store, &continuation, ParentKind::Branch, None).await;
    let listed = store.conversations(Some(10)).await.unwrap();
    let listed = listed.iter().find(|one| one.id == branch.id).unwrap();
    assert_eq!(
        (listed.message_count, listed.conversation_messages, listed.preview.as_str()),
        (0, 3, "first words of the user")
    );
    assert_eq!(store.conversations(Some(1)).await.unwrap().len(), 1);
    assert_eq!(store.titled("the harbour").await.unwrap(), Some(newest.id));
    assert_eq!(store.titled("harbour").await.unwrap(), None);
}
