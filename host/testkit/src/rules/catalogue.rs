//! All sessions together: what people type, export and import, pruning, usage, the state of the store.

use std::io::{self, Cursor, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use hermes_conversation::{Draft, MessageId, SessionId, Usage};
use hermes_session_store::{
    AuxiliaryRecord, Depth, Kept, Layout, Matching, NewSession, ParentKind, PruneFilter, RequestRecord, SearchQuery,
    SessionError, SessionStore, StoreError, Totals, TransferError, Trust,
};

use super::{child, created, new_session, refused, say};

/// What an export wrote.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Written {
    fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }
}

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

async fn exported(store: &dyn SessionStore, sessions: Option<&[SessionId]>) -> Vec<u8> {
    let written = Written::default();
    store.export(sessions, Layout::Lines, Box::new(written.clone())).await.unwrap();
    written.bytes()
}

pub async fn a_session_is_found_by_what_a_person_types(store: &dyn SessionStore) {
    let folder = Path::new("/home/ada/engine");
    assert_eq!(store.newest_session(folder).await.unwrap(), None);
    let old = created(store).await;
    say(store, &old, "Ab").await;
    let newest = created(store).await;
    store.append(&newest.id, &[Draft::user("C", 2)]).await.unwrap();
    store.set_title(&old.id, "The Harbour").await.unwrap();
    for typed in [old.id.as_str(), "The Harbour", "the harbour"] {
        assert_eq!(store.resolve_session(typed).await.unwrap(), old.id, "{typed}");
    }
    let date = &old.id.as_str()[..4];
    let ambiguous = refused(store.resolve_session(date).await);
    assert!(matches!(&ambiguous, SessionError::AmbiguousSession { candidates, .. } if candidates.len() == 2));
    assert!(matches!(refused(store.resolve_session("nothing").await), SessionError::UnknownSession(_)));
    assert_eq!(store.newest_session(folder).await.unwrap(), Some(newest.id.clone()));
    assert_eq!(store.newest_session(Path::new("/elsewhere")).await.unwrap(), None);
    let next = child(store, &old, ParentKind::Continuation, None).await;
    say(store, &next, "D").await;
    assert_eq!(store.chain(&next.id).await.unwrap(), [old.id.clone(), next.id.clone()]);
    assert_eq!(store.sessions().await.unwrap().len(), 3);
    assert_eq!(store.conversations(None).await.unwrap().len(), 2, "a continued session is listed once");
}

pub async fn all_sessions_are_searched_with_snippets(store: &dyn SessionStore) {
    let session = created(store).await;
    let text = Draft::user("the ship left the harbour", 1);
    store.append(&session.id, &[text, Draft::user("a train", 2)]).await.unwrap();
    let hits = store.search_all(&SearchQuery::new("harbour")).await.unwrap();
    assert_eq!((hits.len(), &hits[0].session), (1, &session.id));
    assert!(hits[0].snippet.iter().any(|fragment| fragment.matched && fragment.text == "harbour"), "{hits:?}");
    let query = SearchQuery::new("which harbour");
    assert_eq!(store.search_all(&query).await.unwrap(), []);
    assert!(store.may_be_question(&query) && !store.may_be_question(&SearchQuery::new("\"which harbour\"")));
    let loose = SearchQuery { matching: Matching::Any, ..query };
    assert!(!store.search_all(&loose).await.unwrap().is_empty());
    assert_eq!(store.missing_in_search().await.unwrap(), 0);
}

pub async fn an_export_is_imported_once_and_waits_for_the_user_if_it_is_a_strangers(store: &dyn SessionStore) {
    let kept = created(store).await;
    let gone = created(store).await;
    for session in [&kept, &gone] {
        say(store, session, "AbC").await;
    }
    let file = exported(store, Some(std::slice::from_ref(&gone.id))).await;
    let conversation = store.conversation(&gone.id).await.unwrap();
    store.delete(std::slice::from_ref(&gone.id), false).await.unwrap();
    let stranger = String::from_utf8(file).unwrap().replace("/home/ada/engine", "/home/eve/engine").into_bytes();
    let open = |bytes: &[u8]| Box::new(Cursor::new(bytes.to_vec()));
    let examined = store.examine_import(open(&stranger)).await.unwrap();
    assert_eq!((&examined.sessions, examined.messages), (&vec![gone.id.clone()], 3));
    assert!(store.session(&gone.id).await.is_err(), "a trial changes nothing");
    let now = new_session().started_at + 1;
    let done = store.import(open(&stranger), now, Trust::OwnFiles).await.unwrap();
    assert_eq!((done.sessions, done.is_own), (vec![gone.id.clone()], false));
    assert!(store.session(&gone.id).await.unwrap().imported);
    let texts = |messages: &[hermes_conversation::Message]| {
        messages.iter().map(|message| message.content.clone()).collect::<Vec<_>>()
    };
    assert_eq!(texts(&store.conversation(&gone.id).await.unwrap()), texts(&conversation));
    let again = store.import(open(&stranger), now, Trust::OwnFiles).await.unwrap();
    assert_eq!((again.sessions, again.skipped), (Vec::new(), vec![gone.id]));
    let refused = store.import(open(b"no export\n"), now, Trust::OwnFiles).await.unwrap_err();
    assert!(matches!(refused, StoreError::Transfer(TransferError::Import { line: 1, .. })), "{refused}");
}

pub async fn old_sessions_are_pruned_as_the_user_agreed(store: &dyn SessionStore) {
    let started_at = new_session().started_at;
    let old = created(store).await;
    let second = created(store).await;
    let newest = store.create_session(NewSession { started_at: started_at + 9, ..new_session() }).await.unwrap();
    for session in [&old, &second, &newest] {
        say(store, session, "A").await;
    }
    let filter = PruneFilter::silent_since(started_at + 100);
    let planned = store.pruning(&filter).await.unwrap();
    let ids: Vec<&SessionId> = planned.sessions.iter().map(|session| &session.id).collect();
    assert!(ids.contains(&&old.id) && ids.contains(&&second.id), "{planned:?}");
    assert!(planned.kept.iter().any(|(_, why)| *why == Kept::Newest), "{planned:?}");
    let done = store.prune(&filter, std::slice::from_ref(&old.id)).await.unwrap();
    assert_eq!(done.sessions.iter().map(|session| &session.id).collect::<Vec<_>>(), [&old.id]);
    assert!(store.session(&second.id).await.is_ok(), "nobody agreed to it");
    let planned = store.deletion(std::slice::from_ref(&second.id), false).await.unwrap();
    assert_eq!(planned.sessions, std::slice::from_ref(&second.id));
    let branch = child(store, &second, ParentKind::Branch, None).await;
    let refusal = refused(store.delete_planned(&planned).await);
    assert!(matches!(refusal, SessionError::HasChildren { .. }), "{refusal}");
    store.delete(std::slice::from_ref(&branch.id), false).await.unwrap();
    assert_eq!(store.delete_planned(&planned).await.unwrap(), planned);
}

pub async fn usage_is_told_by_time_and_session(store: &dyn SessionStore) {
    let [session, other] = [created(store).await, created(store).await];
    let usage = Some(Usage { input: 10, output: 2, ..Usage::default() });
    let request = |sent_at| RequestRecord { sent_at, usage, cost: Some(0.5), ..RequestRecord::default() };
    store.record_request(&session.id, &request(5)).await.unwrap();
    store.record_request(&other.id, &request(7)).await.unwrap();
    let asked = AuxiliaryRecord { plugin: "p".into(), task: "t".into(), sent_at: 6, ..AuxiliaryRecord::default() };
    store.record_auxiliary(&session.id, &asked).await.unwrap();
    let told = async |since, session: Option<&SessionId>| {
        let rows = store.usage(since, session).await.unwrap();
        rows.into_iter().map(|row| (row.sent_at, row.plugin)).collect::<Vec<_>>()
    };
    assert_eq!(told(0, None).await, [(5, None), (6, Some("p".to_owned())), (7, None)]);
    assert_eq!(told(6, Some(&session.id)).await, [(6, Some("p".to_owned()))]);
    let totals = Totals { input: 99, requests: 3, cost: 1.5, ..Totals::default() };
    store.set_totals(&session.id, &totals).await.unwrap();
    assert_eq!(store.session(&session.id).await.unwrap().totals, totals);
    assert!(matches!(
        refused(store.set_totals(&SessionId("none".into()), &totals).await),
        SessionError::UnknownSession(_)
    ));
}

pub async fn finished_turns_are_queued_once_and_sent_again_at_will(store: &dyn SessionStore) {
    let session = created(store).await;
    let said = say(store, &session, "AbC").await;
    let turns = store.finished_turns(0).await.unwrap();
    assert_eq!(turns.len(), 1, "the second turn is not finished: {turns:?}");
    let MessageId(first) = turns[0].messages.first;
    assert_eq!((first, &turns[0].session), (said[0].0, &session.id));
    assert_eq!(store.queue_turns("memory", &turns).await.unwrap(), 1);
    assert_eq!(store.queue_turns("memory", &turns).await.unwrap(), 0);
    assert_eq!(store.retry_turns(Some("other")).await.unwrap(), 0);
    assert_eq!(store.retry_turns(None).await.unwrap(), 1);
    assert_eq!(store.finished_turns(2).await.unwrap(), []);
}

pub async fn a_store_counts_what_it_has_and_finds_no_damage(store: &dyn SessionStore) {
    let session = created(store).await;
    say(store, &session, "Ab").await;
    let stats = store.stats().await.unwrap();
    assert_eq!((stats.sessions, stats.messages.user, stats.messages.assistant), (1, 1, 1));
    let health = store.check(Depth::Full).await.unwrap();
    assert_eq!((health.sessions, health.messages, health.problems), (1, 2, Vec::new()));
    assert!(!store.place().is_empty());
}
