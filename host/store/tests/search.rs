//! What a search finds and what it never shows. Every text is a valid query.
#![allow(clippy::unwrap_used)]

use hermes_conversation::{Draft, Message, MessageId, Model, Role, SessionId, ToolCall};
use hermes_store::{Hit, NewSession, Parent, ParentKind, SearchQuery, SessionError, Sort, Store, StoreError};
use proptest::prelude::*;
use rusqlite::Connection;
use tempfile::TempDir;

fn new_session() -> NewSession {
    NewSession {
        source: "cli".into(),
        workspace: "/home/ada".into(),
        engine: "compressor".into(),
        model: Model { provider: "offline".into(), name: "small".into(), context_length: 32_000 },
        title: None,
        frozen: None,
        started_at: 1_795_300_000_000,
        parent: None,
    }
}

fn store() -> (TempDir, Store, SessionId) {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let session = store.create_session(new_session()).unwrap().id;
    (home, store, session)
}

/// A store with these messages of the user.
fn said(texts: &[&str]) -> (TempDir, Store, SessionId) {
    let (home, store, session) = store();
    let drafts: Vec<Draft> = (1..).zip(texts).map(|(at, text)| Draft::user(*text, at)).collect();
    store.append(&session, &drafts).unwrap();
    (home, store, session)
}

fn found(store: &Store, query: &SearchQuery) -> Vec<u64> {
    store.search(query).unwrap().iter().map(|hit| hit.message.0).collect()
}

/// The positions of the found messages, in order.
fn numbers(store: &Store, text: &str) -> Vec<u64> {
    found(store, &SearchQuery { sort: Sort::Oldest, ..SearchQuery::new(text) })
}

fn shown(hit: &Hit) -> String {
    hit.snippet.iter().map(|part| if part.matched { format!(">{}<", part.text) } else { part.text.clone() }).collect()
}

/// A connection of another program, which can execute any SQL.
fn other(store: &Store) -> Connection {
    let other = Connection::open(store.path()).unwrap();
    other.pragma_update(None, "foreign_keys", true).unwrap();
    other
}

#[test]
fn each_kind_of_text_is_found_and_nothing_else() {
    let (_home, store, _) = said(&[
        "first of all, don't panic",
        "open src/main.rs and look",
        "write to a@b.c about it",
        "ported from C++ to Rust",
        "C is a letter, and c code is old",
        "重试时的错误处理很重要",
        "没有错，误会了",
        "this is the exact phrase, word by word",
        "an exact copy of a phrase",
        "the deployment was deployed by a deployer",
        "deplorable",
        "a C# shop with F#",
        "run it with --force or -f",
        "copy .env to /etc/hermes/.env",
        "un café très noir",
        "das Wort heißt Straße",
        "see https://example.org/a/b?c=d#e for more",
        "get_next_title in C:\\Users\\ada",
        "party 🙂 time",
        "Кошка спит на диване",
        "エラーを処理する",
        "오류를 처리한다",
        "fn TokenStreamBuilder()",
        "tab\tand\0nul",
    ]);
    for (text, numbers_) in [
        ("don't panic", &[1][..]),
        ("PANIC", &[1]),
        ("src/main.rs", &[2]),
        ("a@b.c", &[3]),
        ("don’t panic", &[1]),
        // The text occurs nowhere, but its words do.
        ("a-b-c", &[3, 17]),
        ("C++", &[4]),
        ("c", &[3, 4, 5, 12, 17, 18]),
        ("错误处理", &[6]),
        ("错误", &[6]),
        ("错", &[6, 7]),
        ("误会", &[7]),
        ("\"exact phrase\"", &[8]),
        ("exact phrase", &[8, 9]),
        ("deploy*", &[10]),
        ("deplo*", &[10, 11]),
        ("deploying", &[10]),
        ("C#", &[12]),
        ("--force", &[13]),
        (".env", &[14]),
        ("/etc/hermes", &[14]),
        ("cafe tres", &[15]),
        ("cafe\u{301}", &[15]),
        ("Straße", &[16]),
        ("https://example.org/a/b?c=d#e", &[17]),
        ("get_next_title", &[18]),
        ("C:\\Users\\ada", &[18]),
        ("🙂", &[19]),
        ("party 🙂", &[19]),
        ("кошка", &[20]),
        ("エラー", &[21]),
        ("処理", &[21]),
        ("처리", &[22]),
        ("오류", &[22]),
        ("nul", &[24]),
        ("exact -copy", &[8]),
        ("exact NOT phrase", &[]),
        ("panic OR 错误", &[1, 6]),
        ("C++ OR 误会 OR panic", &[1, 4, 7]),
        ("rust C++", &[4]),
        ("rust -C++", &[]),
        ("C++ -rust", &[]),
        ("deploy* -deplorable 错误 OR deplorable", &[11]),
        ("", &[]),
        ("*", &[]),
        ("NOT panic", &[]),
    ] {
        assert_eq!(numbers(&store, text), numbers_, "{text:?}");
    }
}

/// Case and the kind of apostrophe are ignored in the index, the query and the comparison.
#[test]
fn case_and_typographic_apostrophes_are_ignored() {
    let (_home, store, _) = said(&[
        "’tis the season",
        "'tis written plainly",
        "we don’t know, and rock’n’roll++ is loud",
        "İSTANBUL++ and +İ+",
        "Ο ΔΡΌΜΟΣ++ ΌΜΟΣ",
        "ο δρόμος++ όμος",
        "STRASSE++ ẞ++ and ſ++",
    ]);
    for (text, expected) in [
        ("’tis", &[1, 2][..]),
        ("'TIS", &[1, 2]),
        ("don’t*", &[3]),
        ("don't*", &[3]),
        ("rock’n’roll++", &[3]),
        ("Rock'n'Roll++", &[3]),
        ("istanbul++", &[4]),
        ("İstanbul++", &[4]),
        ("İstan*", &[4]),
        ("istan*", &[4]),
        ("+i+", &[4]),
        ("δρόμος++", &[5, 6]),
        ("ΔΡΌΜΟΣ++", &[5, 6]),
        ("δρόμοσ*", &[5, 6]),
        ("ß++", &[7]),
        ("ſ++", &[7]),
    ] {
        assert_eq!(numbers(&store, text), expected, "{text}");
    }
    let hits = store.search(&SearchQuery::new("istan*")).unwrap();
    assert_eq!(shown(&hits[0]), ">İSTANBUL<++ and +İ+");
}

#[test]
fn parts_of_words_are_found_if_no_word_matches() {
    let (_home, store, _) = said(&["fn TokenStreamBuilder()", "a stream of tokens"]);
    assert_eq!(numbers(&store, "StreamBuild"), [1]);
    assert_eq!(numbers(&store, "eamBuil okenStr"), [1]);
    // Excluded terms are compared as words.
    assert_eq!(numbers(&store, "eamBuil -okenStr"), [1]);
    assert_eq!(numbers(&store, "eamBuil -TokenStreamBuilder"), [0; 0]);
    // A matching word prevents the search of parts.
    assert_eq!(numbers(&store, "stream"), [2]);
    // The same applies to the page after the last one.
    let behind = SearchQuery { offset: 1, ..SearchQuery::new("stream") };
    assert_eq!(found(&store, &behind), [0; 0]);
}

#[test]
fn tool_calls_are_searched_and_reasoning_and_sent_texts_are_not() {
    let (_home, store, session) = store();
    let call = ToolCall {
        id: "call_secretid".into(),
        name: "run_command".into(),
        arguments: r#"{"command":"kubectl rollout","why":["\u9519\u8bef"],"port":8080}"#.into(),
    };
    let broken = ToolCall { id: "b".into(), name: "edit".into(), arguments: "{\"path\":\"half/a/file".into() };
    let asked = Draft { sent: Some("hello recalled".into()), ..Draft::user("hello", 1) };
    let thought = Draft { reasoning: Some("pondered".into()), ..Draft::assistant("", vec![call.clone(), broken], 2) };
    let drafts = [asked, thought, Draft::result(&call, "restarted", 3)];
    store.append(&session, &drafts).unwrap();
    for (text, numbers_) in [
        ("rollout", &[2][..]),
        ("错误", &[2]),
        ("8080", &[2]),
        ("half/a/file", &[2]),
        ("run_command", &[2, 3]),
        ("restarted", &[3]),
        ("recalled", &[]),
        ("pondered", &[]),
        ("secretid", &[]),
        ("arguments", &[]),
    ] {
        assert_eq!(numbers(&store, text), numbers_, "{text}");
    }
    assert_eq!(
        shown(&store.search(&SearchQuery::new("rollout")).unwrap()[0]),
        "run_command kubectl >rollout< 错误 8080\nedit {\"path\":\"half/a/file"
    );
}

#[test]
fn a_hit_contains_its_session_and_its_neighbours() {
    let (_home, store, session) = store();
    store.set_title(&session, "Networks").unwrap();
    let long = "é".repeat(300);
    let drafts = [
        Draft::user("before", 5),
        Draft::assistant("bridged networks", Vec::new(), 6),
        Draft::assistant("closed", Vec::new(), 7).by_host(),
        Draft::user(long, 8),
    ];
    let messages = store.append(&session, &drafts).unwrap();
    let hits = store.search(&SearchQuery::new("network")).unwrap();
    let [hit] = hits.as_slice() else { panic!("{hits:?}") };
    assert_eq!((hit.message, &hit.session, hit.role), (messages[1].id, &session, Role::Assistant));
    assert_eq!((hit.title.as_deref(), hit.source.as_str(), hit.model.as_str()), (Some("Networks"), "cli", "small"));
    assert_eq!((hit.created_at, hit.session_started_at, hit.tool_name.clone()), (6, 1_795_300_000_000, None));
    assert_eq!(shown(hit), "bridged >networks<");
    let (before, after) = (hit.before.clone().unwrap(), hit.after.clone().unwrap());
    assert_eq!((before.message, before.role, before.text.as_str()), (messages[0].id, Role::User, "before"));
    // Texts of the host are skipped here too.
    assert_eq!((after.message, after.text), (messages[3].id, "é".repeat(200)));
    let first = &store.search(&SearchQuery::new("before")).unwrap()[0];
    assert_eq!(first.before, None);
}

fn rewind(store: &Store, session: &SessionId, message: MessageId) {
    let sql = "INSERT INTO rewound (session_id, message_id, rewound_at) VALUES (?1, ?2, 1)";
    other(store).execute(sql, (session.as_str(), message.0.cast_signed())).unwrap();
}

#[test]
fn rewound_messages_and_texts_of_the_host_are_never_found() {
    let (_home, store, session) = store();
    let texts = "needle 错误 C++ 🙂 src/needle.rs";
    let drafts: Vec<Draft> = (1..=4).map(|at| Draft::user(texts, at)).collect();
    let messages = store.append(&session, &drafts).unwrap();
    store.append(&session, &[Draft::assistant(texts, Vec::new(), 9).by_host()]).unwrap();
    let branch = store.create_session(new_session()).unwrap().id;
    rewind(&store, &session, messages[1].id);
    // A rewind in another session does not affect this one.
    rewind(&store, &branch, messages[2].id);
    for text in [
        "needle",
        "错误",
        "错",
        "C++",
        "C#  OR C++",
        "🙂",
        "need*",
        "eedl",
        "\"错误 C\"",
        "needle OR C++",
        "needle -thread",
    ] {
        for sort in [Sort::Rank, Sort::Newest, Sort::Oldest] {
            let mut numbers = found(&store, &SearchQuery { sort, ..SearchQuery::new(text) });
            numbers.sort_unstable();
            assert_eq!(numbers, [1, 3, 4], "{text} {sort:?}");
        }
    }
    let hits = store.search(&SearchQuery { sort: Sort::Oldest, ..SearchQuery::new("needle") }).unwrap();
    assert_eq!(hits[0].after.as_ref().unwrap().message, messages[2].id);
    assert_eq!(hits[1].before.as_ref().unwrap().message, messages[0].id);
    assert_eq!(hits[2].after, None);
}

/// A branch shows its parent's conversation of the time when the branch was created.
#[test]
fn a_rewound_message_is_found_as_long_as_a_branch_shows_it() {
    let (_home, store, session) = said(&["before needle", "needle", "needle again"]);
    let finds = |expected: &[u64]| {
        for text in ["needle", "need*", "eedl"] {
            assert_eq!(numbers(&store, text), expected, "{text}");
        }
    };
    let of = |parent: &SessionId, kind, through: u64| {
        let parent = Some(Parent { id: parent.clone(), kind, through: Some(MessageId(through)) });
        store.create_session(NewSession { parent, ..new_session() }).unwrap().id
    };
    let delegate = Some(Parent { id: session.clone(), kind: ParentKind::Delegate, through: None });
    store.create_session(NewSession { parent: delegate, ..new_session() }).unwrap();
    let branch = of(&session, ParentKind::Branch, 2);
    store.rewind(&session, MessageId(2)).unwrap();
    assert_eq!(store.conversation(&branch).unwrap().len(), 2);
    // The third message comes after the branch point.
    finds(&[1, 2]);
    // A later branch does not contain the message.
    store.branch(&session, None, None, 1).unwrap();
    let continuation = of(&branch, ParentKind::Continuation, 2);
    store.rewind(&branch, MessageId(2)).unwrap();
    assert_eq!(store.conversation(&branch).unwrap().len(), 1);
    assert_eq!(store.conversation(&continuation).unwrap().len(), 2);
    finds(&[1, 2]);
    store.rewind(&continuation, MessageId(2)).unwrap();
    finds(&[1]);
    store.restore(&branch).unwrap();
    finds(&[1, 2]);
    store.delete(&[branch, continuation], false).unwrap();
    finds(&[1]);
}

#[test]
fn a_deleted_session_is_not_found() {
    let (_home, store, session) = said(&["needle", "C++ 错误", "thread"]);
    let kept = store.create_session(new_session()).unwrap().id;
    store.append(&kept, &[Draft::user("needle", 9)]).unwrap();
    other(&store).execute("DELETE FROM sessions WHERE id = ?1", [session.as_str()]).unwrap();
    assert_eq!(numbers(&store, "needle OR C++ OR 错误 OR thread"), [4]);
    assert!(store.check_search().unwrap());
}

#[test]
fn every_filter_limits_the_hits_and_an_empty_list_allows_nothing() {
    let (_home, store, one) = store();
    let elsewhere = NewSession { source: "serve".into(), workspace: "/srv".into(), ..new_session() };
    let two = store.create_session(elsewhere).unwrap().id;
    let empty = store.create_session(new_session()).unwrap().id;
    let call = ToolCall { id: "c".into(), name: "read_file".into(), arguments: r#"{"path":"needle"}"#.into() };
    let turn =
        [Draft::user("needle", 10), Draft::assistant("", vec![call.clone()], 20), Draft::result(&call, "needle", 30)];
    store.append(&one, &turn).unwrap();
    store.append(&two, &turn).unwrap();
    let all = SearchQuery { sort: Sort::Oldest, ..SearchQuery::new("needle") };
    for (query, numbers) in [
        (all.clone(), &[1, 2, 3, 4, 5, 6][..]),
        (SearchQuery { roles: Some(vec![Role::User]), ..all.clone() }, &[1, 4]),
        (SearchQuery { roles: Some(vec![Role::User, Role::Tool]), ..all.clone() }, &[1, 3, 4, 6]),
        (SearchQuery { roles: Some(vec![]), ..all.clone() }, &[]),
        (SearchQuery { sources: Some(vec!["serve".into()]), ..all.clone() }, &[4, 5, 6]),
        (SearchQuery { sources: Some(vec![]), ..all.clone() }, &[]),
        (SearchQuery { session: Some(one.clone()), ..all.clone() }, &[1, 2, 3]),
        (SearchQuery { session: Some(empty), ..all.clone() }, &[]),
        (SearchQuery { workspace: Some("/srv".into()), ..all.clone() }, &[4, 5, 6]),
        (SearchQuery { tools: Some(vec!["read_file".into()]), ..all.clone() }, &[2, 3, 5, 6]),
        (SearchQuery { tools: Some(vec![]), ..all.clone() }, &[]),
        (SearchQuery { since: Some(20), ..all.clone() }, &[2, 3, 5, 6]),
        (SearchQuery { until: Some(20), ..all.clone() }, &[1, 4]),
        (SearchQuery { since: Some(u64::MAX), ..all.clone() }, &[]),
        (SearchQuery { limit: 2, ..all.clone() }, &[1, 2]),
        (SearchQuery { limit: 2, offset: 3, ..all.clone() }, &[4, 5]),
        (SearchQuery { limit: 0, ..all.clone() }, &[]),
        (SearchQuery { offset: usize::MAX, limit: usize::MAX, ..all.clone() }, &[]),
        (SearchQuery { sort: Sort::Newest, limit: 2, ..all.clone() }, &[6, 5]),
    ] {
        for text in ["needle", "needl* OR nothing"] {
            assert_eq!(found(&store, &SearchQuery { text: text.into(), ..query.clone() }), numbers, "{query:?}");
        }
    }
    let unknown = SearchQuery { session: Some(SessionId("nope".into())), ..all };
    assert!(matches!(store.search(&unknown), Err(StoreError::Session(SessionError::UnknownSession(_)))));
}

#[test]
fn the_best_match_comes_first() {
    let (_home, store, _) = said(&[
        "a long story in which a needle is mentioned once among very many other words that say nothing",
        "needle, needle, needle",
        "a needle in a haystack",
    ]);
    assert_eq!(found(&store, &SearchQuery::new("needle")), [2, 3, 1]);
}

#[test]
fn hostile_queries_find_something_or_nothing_but_never_fail() {
    let (_home, store, _) = said(&["hello \"world", "NEAR(a b)", "content: x", "a\0b", "^start", "错误", "🙂👩‍👩‍👧"]);
    let long = "x ".repeat(500_000);
    let quoted = format!("\"{}", "a\"".repeat(100_000));
    let deep = "(".repeat(100_000);
    for text in [
        "\"",
        "\"\"",
        "\"\"\"",
        "\"a",
        "a\"",
        "\" \"",
        "NEAR(",
        "NEAR(a b, 3)",
        "content:x",
        "messages_fts:x",
        "rank:x",
        "{a b}: c",
        "- ",
        "-",
        "--",
        "-\"",
        "-\"a",
        "NOT",
        "OR",
        "AND",
        "OR OR OR",
        "NOT NOT a",
        "a NOT",
        "a AND",
        "^",
        "^*",
        "*",
        "**",
        "a**",
        "*a",
        "a*b*c*",
        "\0",
        "a\0b",
        "\"a\0b\"",
        "\u{1}\u{2}",
        "'",
        "''",
        "';--",
        "%",
        "_",
        "\\",
        "+",
        "a+b",
        "🙂",
        "👩‍👩‍👧",
        "\u{301}",
        "\u{200b}",
        "\u{feff}",
        "\u{10ffff}",
        "\u{e000}",
        "错",
        "\"错",
        "错\"误",
        "错*误",
        "a错",
        "\u{3099}",
        "\u{323af}",
        "\u{323af}\u{323ae}",
        "ﷺ",
        "İ",
        "ß*",
        "Σς*",
        &long,
        &quoted,
        &deep,
    ] {
        for sort in [Sort::Rank, Sort::Newest, Sort::Oldest] {
            store.search(&SearchQuery { sort, ..SearchQuery::new(text) }).unwrap();
        }
    }
}

/// Syntax of the query language between any text.
fn any_query() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        any::<String>(),
        "[a-c ]{0,4}",
        "[\u{4e00}-\u{4e05}]{1,4}",
        prop::sample::select(vec![
            "\"", "*", "-", "OR", " OR ", "AND", "NOT ", "NEAR(", "c++", "^", ":", "{", ")", "'", "\0", "🙂"
        ])
        .prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

fn any_draft() -> impl Strategy<Value = Draft> {
    let text =
        prop_oneof![any::<String>(), "[a-c ]{0,12}", "[\u{4e00}-\u{4e05}a ]{1,12}", Just("c++ 🙂 don't".to_owned())];
    let call = (any::<String>(), "[a-c]{1,3}", any::<String>()).prop_map(|(id, name, arguments)| ToolCall {
        id,
        name,
        arguments,
    });
    (text, prop::option::of(call), any::<bool>()).prop_map(|(text, call, said)| {
        let draft = match call {
            Some(call) => Draft::assistant(text, vec![call], 1),
            None => Draft::user(text, 1),
        };
        if said { draft } else { draft.by_host() }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_text_can_be_searched_in_any_text(
        drafts in prop::collection::vec(any_draft(), 1..12),
        queries in prop::collection::vec(any_query(), 1..12),
    ) {
        let (_home, store, session) = store();
        let written = store.append(&session, &drafts).unwrap();
        for text in queries {
            for sort in [Sort::Rank, Sort::Newest, Sort::Oldest] {
                let hits = store.search(&SearchQuery { sort, ..SearchQuery::new(text.as_str()) }).unwrap();
                for hit in &hits {
                    let message = written.iter().find(|message| message.id == hit.message);
                    prop_assert!(message.is_some_and(|message| message.origin == hermes_conversation::Origin::Said));
                }
                let mut ids: Vec<u64> = hits.iter().map(|hit| hit.message.0).collect();
                ids.dedup();
                prop_assert_eq!(ids.len(), hits.len());
            }
        }
    }

    /// Two characters of an unspaced script are found at every occurrence and nowhere else.
    #[test]
    fn runs_of_characters_are_found_at_any_position(
        texts in prop::collection::vec("[\u{4e00}-\u{4e04}a ，]{0,10}", 1..8),
        run in "[\u{4e00}-\u{4e04}]{1,4}",
    ) {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let (_home, store, _) = said(&texts);
        let expected: Vec<u64> =
            (1..).zip(&texts).filter(|(_, text)| text.contains(&run)).map(|(number, _)| number).collect();
        prop_assert_eq!(numbers(&store, &run), expected);
    }

    /// Indexing message by message gives the same result as a rebuild from the log.
    #[test]
    fn the_indexes_always_match_the_log(
        sessions in prop::collection::vec(prop::collection::vec(any_draft(), 0..5), 1..4),
        deleted in any::<prop::sample::Index>(),
    ) {
        let (_home, store, _) = store();
        let mut ids = Vec::new();
        for drafts in &sessions {
            ids.push(store.create_session(new_session()).unwrap().id);
            store.append(ids.last().unwrap(), drafts).unwrap();
        }
        let other = other(&store);
        other.execute("DELETE FROM sessions WHERE id = ?1", [deleted.get(&ids).as_str()]).unwrap();
        prop_assert!(store.check_search().unwrap());
        let grown = terms(&other);
        let count = store.rebuild_search().unwrap();
        prop_assert!(store.check_search().unwrap());
        prop_assert_eq!(terms(&other), grown);
        let said: i64 = other
            .query_row("SELECT count(*) FROM messages WHERE origin = 'said'", [], |row| row.get(0))
            .unwrap();
        prop_assert_eq!(count, said.cast_unsigned());
    }
}

/// All entries of the indexes.
fn terms(connection: &Connection) -> Vec<(String, i64, Option<i64>)> {
    let mut terms = Vec::new();
    for table in ["messages_fts", "messages_fts_trigram"] {
        let vocabulary =
            format!("CREATE VIRTUAL TABLE IF NOT EXISTS temp.{table}_all USING fts5vocab (main, {table}, instance)");
        connection.execute_batch(&vocabulary).unwrap();
        let mut statement =
            connection.prepare(&format!("SELECT CAST(term AS BLOB), doc, offset FROM temp.{table}_all")).unwrap();
        let rows = statement.query_map([], |row| {
            let term: Vec<u8> = row.get(0)?;
            Ok((String::from_utf8_lossy(&term).into_owned(), row.get(1)?, row.get(2)?))
        });
        terms.extend(rows.unwrap().map(Result::unwrap));
    }
    terms.sort();
    terms
}

#[test]
fn a_damaged_index_is_detected_and_rebuilt() {
    let (_home, store, _) = said(&["needle", "错误 C++"]);
    assert!(store.check_search().unwrap());
    let other = other(&store);
    for damage in [
        "DELETE FROM messages_fts WHERE rowid = 1",
        "DELETE FROM messages_fts_trigram WHERE rowid = 2",
        "UPDATE messages_fts_data SET block = x'5a5a5a5a5a5a5a5a' WHERE id > 10",
        "DELETE FROM messages_fts_trigram_data WHERE id > 10",
    ] {
        other.execute_batch(damage).unwrap();
        assert!(!store.check_search().unwrap(), "{damage}");
        assert_eq!(store.rebuild_search().unwrap(), 2);
        assert!(store.check_search().unwrap(), "{damage}");
        assert_eq!(numbers(&store, "needle OR C++"), [1, 2], "{damage}");
    }
}

/// A store of a version without search is migrated.
#[test]
fn messages_older_than_the_search_are_indexed() {
    let texts: Vec<String> = (1..=500).map(|number| format!("needle {number}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let (home, store, session) = said(&texts);
    let other = other(&store);
    other
        .execute_batch(
            "DROP TABLE messages_fts_trigram_terms; DROP TABLE messages_fts_trigram; DROP TABLE messages_fts; \
             DROP TRIGGER messages_enter_the_search; DROP TRIGGER messages_leave_the_search; \
             DROP TABLE delegations; DROP TABLE engine_faults; DROP TABLE outbox; DROP TABLE message_blobs; DROP TABLE blobs; \
             ALTER TABLE messages DROP COLUMN parts; ALTER TABLE messages DROP COLUMN author; \
             ALTER TABLE requests DROP COLUMN payloads_replayed; ALTER TABLE requests DROP COLUMN payloads_dropped; \
             ALTER TABLE requests DROP COLUMN answered_by; ALTER TABLE requests DROP COLUMN cache_ttl; DROP TABLE auxiliary_requests; DROP INDEX requests_by_time;",
        )
        .unwrap();
    // The fourth migration adds the search; it and the later ones run again.
    other.pragma_update(None, "user_version", 3).unwrap();
    drop((other, store));
    // A reader does not wait for the indexing, but can report missing messages.
    assert_eq!(Store::open_read_only(home.path()).unwrap().unwrap().missing_in_search().unwrap(), 500);
    assert_eq!(Store::open_read_only(home.path()).unwrap().unwrap().missing_in_search().unwrap(), 500);
    let store = Store::open(home.path()).unwrap();
    assert_eq!(store.missing_in_search().unwrap(), 0);
    assert_eq!(numbers(&store, "needle 1 OR needle 500"), [1, 500]);
    let written: Vec<Message> = store.append(&session, &[Draft::user("needle again", 9)]).unwrap();
    assert_eq!(numbers(&store, "again"), [written[0].id.0]);
    assert!(store.check_search().unwrap());
}

#[test]
fn an_interrupted_rebuild_is_completed_when_the_store_is_opened() {
    let texts = ["needle"; 300];
    let (home, store, _) = said(&texts);
    let other = other(&store);
    // The state after the first step.
    other
        .execute_batch(
            "DELETE FROM messages_fts WHERE rowid <= 100; DELETE FROM messages_fts_trigram WHERE rowid <= 100; \
             INSERT INTO state_meta (key, value) VALUES ('search_pending', '100');",
        )
        .unwrap();
    assert!(!store.check_search().unwrap());
    drop(store);
    let store = Store::open(home.path()).unwrap();
    assert!(store.check_search().unwrap());
    let all = SearchQuery { limit: 1000, ..SearchQuery::new("needle") };
    assert_eq!(store.search(&all).unwrap().len(), 300);
}

#[test]
fn the_end_of_a_very_long_message_is_not_indexed() {
    let text = format!("front {} middle {} end", "x ".repeat(50_000), "y ".repeat(100_000));
    let (_home, store, session) = said(&[&text]);
    assert_eq!(numbers(&store, "front middle"), [1]);
    assert_eq!(numbers(&store, "end"), [0; 0]);
    assert_eq!(store.conversation(&session).unwrap()[0].content.len(), text.len());
}

#[test]
fn a_read_only_store_can_be_searched() {
    let (home, store, _) = said(&["needle C++ 错误"]);
    drop(store);
    let store = Store::open_read_only(home.path()).unwrap().unwrap();
    for text in ["needle", "C++", "错误", "->", "eedl"] {
        assert_eq!(numbers(&store, text).len(), usize::from(text != "->"), "{text}");
    }
}
