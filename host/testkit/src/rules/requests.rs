//! The ledger.

use hermes_conversation::{MessageId, Usage, ViewId};
use hermes_session_store::{AuxiliaryRecord, PromptNumber, RequestRecord, SessionStore};

use super::{created, say};

fn request(model: &str, through: Option<MessageId>, usage: Option<Usage>) -> RequestRecord {
    RequestRecord {
        number: 99,
        sent_at: 7,
        provider: "anthropic".into(),
        model: model.into(),
        answered_by: Some(format!("vendor/{model}")),
        api_mode: "anthropic_messages".into(),
        prompt: PromptNumber(1),
        view: ViewId::WHOLE,
        through,
        bytes: 1_000,
        fingerprint: "f".into(),
        prefix_bytes: 10,
        cause: Some("first request".into()),
        culprit: Some("nobody".into()),
        cache_ttl: Some("1h".into()),
        ephemeral: Some("{}".into()),
        usage,
        cost: Some(0.25),
        saved: Some(0.5),
        lost: None,
        payloads_replayed: 2,
        payloads_dropped: 1,
    }
}

pub async fn requests_are_numbered_and_summed_up(store: &dyn SessionStore) {
    let session = created(store).await;
    let ids = say(store, &session, "Aa").await;
    let usage = Usage { input: u32::MAX, output: 2, cache_read: 3, cache_write: 4, reasoning: 0 };
    let given = [request("m", Some(ids[0]), Some(usage)), request("m", None, None), request("m", None, Some(usage))];
    for (number, given) in (1..).zip(&given) {
        assert_eq!(store.record_request(&session.id, given).await.unwrap(), number);
    }
    let numbered = |(number, given): (u64, &RequestRecord)| RequestRecord { number, ..given.clone() };
    let expected: Vec<RequestRecord> = (1..).zip(&given).map(numbered).collect();
    assert_eq!(store.requests(&session.id).await.unwrap(), expected);
    let totals = store.session(&session.id).await.unwrap().totals;
    assert_eq!((totals.input, totals.output), (2 * u64::from(u32::MAX), 4));
    assert_eq!((totals.cache_read, totals.cache_write, totals.requests), (6, 8, 3));
    assert!((totals.cost - 0.75).abs() < 1e-9);
    assert_eq!(store.requests(&created(store).await.id).await.unwrap(), []);
}

pub async fn a_request_is_recorded_before_its_reply_and_completed_once(store: &dyn SessionStore) {
    let session = created(store).await;
    let open = RequestRecord { cost: None, saved: None, answered_by: None, cause: None, ..request("m", None, None) };
    let number = store.record_request(&session.id, &open).await.unwrap();
    let totals = store.session(&session.id).await.unwrap().totals;
    assert_eq!((totals.requests, totals.input), (1, 0));
    // A process that dies now leaves the row without a report.
    assert_eq!(store.requests(&session.id).await.unwrap(), [RequestRecord { number, ..open.clone() }]);
    let usage = Some(Usage { input: 5, output: 2, ..Usage::default() });
    let done = RequestRecord { number, ..request("m", None, usage) };
    store.complete_request(&session.id, &done).await.unwrap();
    let again = RequestRecord { usage: Some(Usage { input: 99, ..Usage::default() }), ..done.clone() };
    store.complete_request(&session.id, &again).await.unwrap();
    store.withdraw_request(&session.id, number).await.unwrap();
    assert_eq!(store.requests(&session.id).await.unwrap(), [done]);
    let totals = store.session(&session.id).await.unwrap().totals;
    assert_eq!((totals.requests, totals.input, totals.output), (1, 5, 2));
    assert!((totals.cost - 0.25).abs() < 1e-9);

    let refused = store.record_request(&session.id, &open).await.unwrap();
    store.withdraw_request(&session.id, refused).await.unwrap();
    assert_eq!(store.requests(&session.id).await.unwrap().len(), 1);
    assert_eq!(store.session(&session.id).await.unwrap().totals.requests, 1);
    let asked = AuxiliaryRecord { plugin: "p".into(), task: "t".into(), ..AuxiliaryRecord::default() };
    let number = store.record_auxiliary(&session.id, &asked).await.unwrap();
    assert_ne!(store.record_auxiliary(&session.id, &asked).await.unwrap(), number);
    store.complete_auxiliary(&session.id, &AuxiliaryRecord { number, usage, ..asked }).await.unwrap();
    store.withdraw_auxiliary(&session.id, number).await.unwrap();
    // They are no part of the session's totals.
    assert_eq!(store.session(&session.id).await.unwrap().totals.requests, 1);
}

pub async fn the_last_request_and_usage_are_found_by_message_and_route(store: &dyn SessionStore) {
    let session = created(store).await;
    let ids = say(store, &session, "AaBb").await;
    let usage = |input, cache_read| Some(Usage { input, cache_read, ..Usage::default() });
    let like = |model: &str| request(model, None, None);
    assert_eq!(store.last_request(&session.id, None).await.unwrap(), None);
    for given in [
        request("small", Some(ids[0]), usage(1, 0)),
        request("large", Some(ids[1]), usage(2, 5)),
        request("small", Some(ids[2]), usage(3, 0)),
        request("small", Some(ids[3]), None),
    ] {
        store.record_request(&session.id, &given).await.unwrap();
    }
    let last = async |through: Option<MessageId>| {
        store.last_request(&session.id, through).await.unwrap().map(|request| request.number)
    };
    assert_eq!((last(None).await, last(Some(ids[2])).await), (Some(4), Some(3)));
    assert_eq!((last(Some(ids[0])).await, last(Some(MessageId(0))).await), (Some(1), None));
    assert_eq!(store.last_usage(&session.id, &like("small")).await.unwrap(), usage(3, 0));
    assert_eq!(store.last_usage(&session.id, &like("absent")).await.unwrap(), None);
    assert!(store.cache_was_reported(&session.id, &like("large")).await.unwrap());
    assert!(!store.cache_was_reported(&session.id, &like("small")).await.unwrap());
}

pub async fn past_requests_of_all_sessions_are_found_by_route_and_time(store: &dyn SessionStore) {
    let (one, two) = (created(store).await, created(store).await);
    let usage = |input| Some(Usage { input, ..Usage::default() });
    for (session, model, sent_at, usage) in [
        (&one, "m", 30, usage(3)),
        (&two, "m", 20, usage(2)),
        (&two, "other", 25, usage(9)),
        (&one, "m", 10, usage(1)),
        (&two, "m", 40, None),
    ] {
        let sent = RequestRecord { sent_at, ..request(model, None, usage) };
        store.record_request(&session.id, &sent).await.unwrap();
    }
    let like = request("m", None, None);
    let found = async |since, most| {
        let rows = store.requests_since(&like, since, most).await.unwrap();
        rows.into_iter().map(|row| (row.session, row.sent_at, row.input)).collect::<Vec<_>>()
    };
    let (a, b) = (one.id.clone(), two.id.clone());
    let expected = [(b.clone(), 20, Some(2)), (a, 30, Some(3)), (b, 40, None)];
    assert_eq!(found(15, 10).await, expected);
    assert_eq!(found(0, 2).await, expected[1..]);
    assert_eq!(found(41, 10).await, []);
    let last = &store.requests_since(&like, 40, 1).await.unwrap()[0];
    assert_eq!((last.bytes, &last.cache_ttl), (like.bytes, &like.cache_ttl));
}
