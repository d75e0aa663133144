//! What the answers show, and in how many bytes.

use hermes_agent::session_search::Discover;
use hermes_conversation::{MessageId, SessionId};
use hermes_session_store::ParentKind;
use serde_json::json;

use crate::fixture::{Archive, BEGUN};

#[tokio::test]
async fn a_question_in_other_words_finds_what_was_said_and_shows_it_in_context() {
    let mut archive = Archive::new();
    let (old, said) = archive
        .said(&["Which port does the staging proxy use?", "It listens on 8443.", "Deploying it now.", "Deployed."])
        .await;
    archive.said(&["A recipe: bread", "Flour, water, salt."]).await;
    let (asking, _) = archive.said(&["what was the port of the staging proxy again?"]).await;
    let search = archive.search(Some(&asking.id));
    let answer = search.call(r#"{"query": "what port had we configured for the staging proxies?"}"#).await.unwrap();
    assert_eq!(answer.shown, said[..3], "{}", answer.text);
    let [heading, question, reply, _] = answer.text.lines().skip(3).collect::<Vec<_>>()[..] else {
        panic!("{}", answer.text)
    };
    assert!(heading.starts_with(old.id.as_str()) && heading.ends_with(" · cli"), "{heading}");
    assert_eq!(question, format!(">{} U: Which port does the staging proxy use?", said[0]));
    assert_eq!(reply, format!(" {} A: It listens on 8443.", said[1]));
    assert!(answer.text.starts_with("Quoted from earlier conversations: possibly stale"), "{}", answer.text);
    // From another session of the asking conversation, and with stems.
    let later = archive.session("cli", Some((&asking, ParentKind::Continuation))).await;
    let answer = archive.search(Some(&later.id)).call(r#"{"query": "deploy staging"}"#).await.unwrap();
    assert!(answer.text.contains(old.id.as_str()) && !answer.text.contains(asking.id.as_str()), "{}", answer.text);
}

#[tokio::test]
async fn ten_hits_take_at_most_4_kb_and_each_is_shown_with_two_neighbours_on_either_side() {
    let long = |word: &str| format!("{} {word} {}", "many words before ".repeat(40), "and words after it ".repeat(80));
    for conversations in [1, 10] {
        let mut archive = Archive::new();
        let mut hits = Vec::new();
        for number in 0..conversations {
            let title = format!("Conversation {number} with a title of some length, as models write them");
            let session = archive.session("cli", None).await;
            archive.store.set_title(&session.id, &title).await.unwrap();
            for _ in 0..10 / conversations {
                let texts: Vec<String> =
                    [0, 1, 2, 3, 4].map(|at| long(if at == 2 { "needle" } else { "hay" })).to_vec();
                let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
                hits.push(archive.say(&session, &texts).await);
            }
        }
        let answer = archive.call(json!({"query": "needle"})).await;
        assert!(answer.text.len() <= 4096, "{}", answer.text.len());
        assert_eq!(answer.text.matches("\n>").count(), 10);
        assert_eq!(answer.text.matches("needle").count(), 10, "{}", answer.text);
        let mut shown = answer.shown.clone();
        shown.sort_unstable();
        assert_eq!(shown, hits.concat(), "{}", answer.text);
        let most = archive.call(json!({"query": "needle hay words", "limit": 40})).await;
        assert!(most.text.len() <= 4 * 4096 && most.text.matches("\n>").count() == 40, "{}", most.text.len());
    }
}

#[tokio::test]
async fn one_talkative_conversation_does_not_hide_the_others() {
    let mut archive = Archive::new();
    let (quiet, _) = archive.said(&["once we spoke about the needle, and at length about much else"]).await;
    let (talkative, _) = archive.said(&["needle"; 20]).await;
    let found = archive.search(None).discover(&Discover::new("needle")).await.unwrap();
    let counts: Vec<(&SessionId, usize)> =
        found.conversations.iter().map(|one| (&one.origin, one.hits.len())).collect();
    assert_eq!(counts, [(&talkative.id, 9), (&quiet.id, 1)]);
}

#[tokio::test]
async fn operators_work_and_otherwise_words_are_searched() {
    let mut archive = Archive::new();
    let (_, said) = archive.said(&["docker compose", "podman", "the docker network", "错误处理在重试时"]).await;
    let hits = async |query: &str| {
        let found = archive.search(None).discover(&Discover::new(query)).await.unwrap();
        let mut ids: Vec<MessageId> = found.hits().map(|hit| hit.message).collect();
        ids.sort_unstable();
        (ids, found.widened)
    };
    for (query, expected, widened) in [
        ("docker OR podman", &[0, 1, 2][..], false),
        ("docker NOT network", &[0], false),
        ("\"docker network\"", &[2], false),
        ("\"network docker\"", &[0, 2], true),
        ("compo*", &[0], false),
        ("docker AND podman", &[0, 1, 2], true),
        ("错误", &[3], false),
        ("错误处理", &[3], false),
    ] {
        let expected: Vec<MessageId> = expected.iter().map(|at: &usize| said[*at]).collect();
        assert_eq!(hits(query).await, (expected, widened), "{query}");
    }
    for query in
        ["\"", "* * *", "NOT", "OR OR", "a\0b", "col:x ^y {z}", "don't panic", "../../etc", "\u{202e}", "NEAR(a, 3)"]
    {
        hits(query).await;
    }
}

#[tokio::test]
async fn filters_and_sources_decide_what_is_searched() {
    let mut archive = Archive::new();
    let (cli, said) = archive.said(&["needle one", "needle two"]).await;
    let mut of = Vec::new();
    for source in ["cron", "subagent", "tool"] {
        let session = archive.session(source, None).await;
        archive.say(&session, &["needle needle needle"]).await;
        of.push(session.id);
    }
    let delegate = archive.session("cli", Some((&cli, ParentKind::Delegate))).await;
    archive.say(&delegate, &["needle of a delegate"]).await;
    let found = async |arguments: serde_json::Value| {
        let answer = archive.call(arguments).await;
        let lines = answer.text.lines().filter(|line| line.starts_with("2026"));
        lines.map(|line| line.split(' ').next().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    // Scheduled runs come last, and machines never.
    assert_eq!(found(json!({"query": "needle"})).await, [cli.id.as_str(), of[0].as_str()]);
    assert_eq!(found(json!({"query": "needle", "source": "cron"})).await, [of[0].as_str()]);
    assert_eq!(found(json!({"query": "needle", "source": "subagent"})).await, [of[1].as_str()]);
    assert_eq!(found(json!({})).await, [of[0].as_str(), cli.id.as_str()]);
    let until = jiff::Timestamp::from_millisecond((BEGUN + 3_000).cast_signed()).unwrap().to_string();
    let answer = archive.call(json!({"query": "needle", "until": until, "role_filter": "user"})).await;
    assert_eq!(answer.shown, said, "{}", answer.text);
    assert_eq!(answer.text.matches("\n>").count(), 1);
    let nothing = archive.call(json!({"query": "needle", "role_filter": "tool"})).await;
    assert!(nothing.text.starts_with("No message in conversations matches \"needle\"."), "{}", nothing.text);
}

#[tokio::test]
async fn a_conversation_is_read_within_8_kb_whatever_it_contains() {
    let mut archive = Archive::new();
    let lines = "a\n".repeat(50_000);
    let texts: Vec<&str> = std::iter::repeat_n(["short", lines.as_str()], 40).flatten().collect();
    let (session, said) = archive.said(&texts).await;
    let whole = archive.call(json!({"session_id": session.id.as_str()})).await;
    assert!(whole.text.len() <= 8 << 10, "{}", whole.text.len());
    assert_eq!(whole.shown, [&said[..20], &said[70..]].concat());
    assert!(whole.text.contains("[50 messages between"), "{}", whole.text);
    assert_eq!(whole.text.matches("    short\n").count(), 15);
    let around = |window| json!({"session_id": session.id.as_str(), "around_message_id": said[40].0, "window": window});
    let part = archive.call(around(2)).await;
    assert_eq!(part.shown, said[38..43]);
    assert!(part.text.contains(&format!("\n>{} user:\n    short\n", said[40])), "{}", part.text);
    assert!(
        part.text.contains("[38 messages before]") && part.text.ends_with("[37 messages after]\n"),
        "{}",
        part.text
    );
    let one = json!({"session_id": session.id.as_str(), "around_message_id": said[41].0, "window": 0});
    let one = archive.call(one).await;
    assert!((4 << 10..=8 << 10).contains(&one.text.len()), "{}", one.text.len());
}

#[tokio::test]
async fn what_does_not_exist_is_named_with_what_to_do() {
    let mut archive = Archive::new();
    let (one, said) = archive.said(&["one"]).await;
    let (other, _) = archive.said(&["other"]).await;
    archive.store.set_title(&other.id, "The Harbour").await.unwrap();
    let search = archive.search(Some(&one.id));
    for (arguments, part) in [
        (json!({"session_id": "nobody"}), "there is no session \"nobody\"; a search with `query`"),
        (json!({"session_id": one.id.as_str()}), "belongs to this conversation"),
        (json!({"session_id": other.id.as_str(), "around_message_id": said[0].0}), "message 1 is not in session"),
    ] {
        let error = search.call(&arguments.to_string()).await.unwrap_err();
        assert!(error.contains(part), "{error}");
    }
    let by_title = search.call(r#"{"session_id": "the harbour"}"#).await.unwrap();
    assert!(by_title.text.contains("    other\n"), "{}", by_title.text);
    let titled = search.call(r#"{"query": "the harbour"}"#).await.unwrap();
    assert!(titled.text.contains("\"The Harbour\" (the title matches)"), "{}", titled.text);
}
