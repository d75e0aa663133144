#![allow(clippy::unwrap_used)]

use hermes_conversation::{BlobId, Draft, Refusal};

use super::*;

#[test]
fn a_message_reaches_a_plugin_as_the_contract_describes_it() {
    let bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01".to_vec();
    let picture = Media::image(bytes.clone(), None).unwrap();
    let mut draft = Draft::of_parts(Role::User, vec![Part::text("look"), Part::Image(picture)], 7);
    draft.sent = Some("look\n\n<memory-context>tea</memory-context>".to_owned());
    draft.author = Some(Author { id: "7".to_owned(), name: Some("Ada".to_owned()) });
    let parts = draft.parts.clone();
    let shown = message(draft.numbered(MessageId(5)), 40);
    assert_eq!((shown.id, shown.content.as_str(), shown.images, shown.tokens), (5, "look", 1, 40));
    assert_eq!((shown.created_at, shown.author.unwrap().name.as_deref()), (7, Some("Ada")));
    assert_eq!(shown.extra, [("parts".to_owned(), "2".to_owned())]);
    let Some(wit::Part::Image(media)) = parts.into_iter().map(part).nth(1) else { panic!("no picture") };
    let wit::MediaSource::Blob(blob) = media.source else { panic!("{:?}", media.source) };
    let hash = blake3::hash(&bytes).to_hex();
    assert_eq!((blob.hash.as_str(), blob.size), (hash.as_str(), bytes.len() as u64));
    assert_eq!((media.media_type.as_str(), media.width, media.height), ("image/png", Some(1), Some(1)));
    assert_eq!(BlobId(blob.hash).as_str().len(), 64);

    let call = ToolCall { id: "c".into(), name: "read".into(), arguments: "{ \"a\":1.0}".into() };
    let said = message(Draft::assistant("", vec![call.clone()], 1).numbered(MessageId(6)), 1);
    assert_eq!((said.tool_calls[0].arguments.as_str(), said.extra.len()), ("{ \"a\":1.0}", 0));
    let result = message(Draft::result(&call, "done", 1).numbered(MessageId(7)), 1);
    assert_eq!((result.tool_call_id.as_deref(), result.tool_name.as_deref()), (Some("c"), Some("read")));
}

#[test]
fn data_of_a_provider_stays_with_the_host() {
    let payload = ProviderPayload {
        provider: "anthropic".into(),
        model: "m".into(),
        api_mode: "messages".into(),
        data: "{\"signature\":\"secret\"}".into(),
    };
    let reasoning = part(Part::Reasoning { text: "Hm.".into(), payload: Some(payload.clone()) });
    let shown = format!("{reasoning:?} {:?}", part(Part::Provider(payload)));
    assert!(!shown.contains("secret") && shown.contains("Hm.") && shown.contains("22"), "{shown}");
    assert!(matches!(part(Part::Refusal { text: "no".into() }), wit::Part::Refusal(text) if text == "no"));
}

#[test]
fn the_model_reads_the_content_of_a_result_and_its_json_only_without_content() {
    let link = |title: Option<&str>| {
        let (uri, title) = ("https://a.test/x".to_owned(), title.map(str::to_owned));
        tools::Content::Link(tools::Link { uri, title, media_type: None, extra: Vec::new() })
    };
    let text = |text: &str| tools::Content::Text(text.to_owned());
    for (content, structured, read) in [
        (vec![text("one"), text("two")], Some("{}"), "one\ntwo"),
        (vec![link(Some("A page")), link(None)], None, "A page: https://a.test/x\nhttps://a.test/x"),
        (vec![tools::Content::Other("video".to_owned())], None, "[video]"),
        (vec![tools::Content::Image(tools::Image::Other("hologram".to_owned()))], None, "[hologram]"),
        (vec![], Some("{\"a\":1}"), "{\"a\":1}"),
        (vec![], None, ""),
    ] {
        let structured = structured.map(str::to_owned);
        let result = output(tools::Output { content, structured: structured.clone(), extra: Vec::new() });
        assert_eq!((result.content.as_str(), result.structured), (read, structured));
    }
}

#[test]
fn an_error_of_a_later_kind_counts_as_failed() {
    let error = |kind| wit::Error {
        kind,
        code: "odd".into(),
        message: "no".into(),
        retry_after_ms: Some(5),
        extra: Vec::new(),
    };
    let fault = fault_back(error(wit::ErrorKind::Other("tired".into())));
    assert_eq!((fault.kind, fault.code.as_str(), fault.retry_after_ms), (FaultKind::Failed, "odd", Some(5)));
    assert_eq!(fault_back(error(wit::ErrorKind::Conflict)).kind, FaultKind::Conflict);
}

#[test]
fn extra_keys_carry_what_has_no_field() {
    let info = |repository: Option<&str>| SessionInfo {
        id: "s".to_owned(),
        parent: None,
        platform: "cli".to_owned(),
        purpose: "primary".to_owned(),
        profile: "default".to_owned(),
        workspace: Some("/app/src".to_owned()),
        repository: repository.map(str::to_owned),
        model: Model { provider: "test".to_owned(), name: "small".to_owned(), context_length: 64_000 },
    };
    assert_eq!(session(&info(Some("/app"))).extra, [("repository".to_owned(), "/app".to_owned())]);
    assert_eq!(session(&info(None)).extra, []);

    let record = |interrupted| TurnRecord {
        session: "s".to_owned(),
        ended_at: 7,
        author: None,
        number: 1,
        user: "Plan it.".to_owned(),
        assistant: "First, ".to_owned(),
        interrupted,
        messages: MessageRange { first: MessageId(1), last: MessageId(2) },
    };
    assert_eq!(turn(&record(true)).extra, [("ended".to_owned(), "interrupted".to_owned())]);
    assert_eq!(turn(&record(false)).extra, []);
}

#[test]
fn a_refusal_for_the_size_has_its_numbers() {
    let numbers = |refusal: Refusal| match outcome(&Outcome::Refused(refusal)) {
        engine::Outcome::Refused(error) => error.extra,
        other => panic!("{other:?}"),
    };
    let pair =
        |needed: &str, room: &str| [("needed", needed), ("room", room)].map(|(k, v)| (k.to_owned(), v.to_owned()));
    assert_eq!(numbers(Refusal::TooLarge { tokens: 5_328, limit: 5_105 }), pair("5328", "5105"));
    assert_eq!(numbers(Refusal::NotSmaller { tokens: 90, before: 80 }), pair("90", "79"));
    assert_eq!(numbers(Refusal::Uncovered(MessageId(1))), []);
}
