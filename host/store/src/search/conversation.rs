//! Searches one conversation: the visible messages of a session and its ancestors.

use hermes_conversation::{MessageId, SessionId};
use hermes_session_store::Passage;
use rusqlite::Connection;

use super::{SearchQuery, find, plans, snippet};
use crate::error::Fault;
use crate::{Store, StoreError, lineage};

impl Store {
    /// Searches the conversation of a session: with the messages of its ancestors, without rewound ones. Every text is a
    /// valid query. A session in the query limits the search to one of these sessions.
    ///
    /// A phrase is found anywhere in a message, even in the part of a long message that is not indexed.
    pub fn search_conversation(&self, session: &SessionId, query: &SearchQuery) -> Result<Vec<Passage>, StoreError> {
        let plans = plans(query);
        self.read(|connection| {
            let lineage = lineage::of(connection, session)?;
            let (plan, found) = find(connection, &plans, query, Some(&lineage))?;
            let mut passages = Vec::with_capacity(found.len());
            let mut texts = Vec::with_capacity(found.len());
            for (place, found) in (query.offset..).zip(found) {
                let (session, text) = searched_text(connection, found.message)?;
                let score = found.score.unwrap_or_else(|| 1.0 / (place as f64 + 1.0));
                passages.push(Passage { message: found.message, session, excerpt: String::new(), score });
                texts.push(text);
            }
            let excerpts = snippet::snippets(plan, &texts, snippet::EXCERPT)?;
            for (passage, excerpt) in passages.iter_mut().zip(excerpts) {
                passage.excerpt = excerpt.into_iter().map(|fragment| fragment.text).collect();
            }
            Ok(passages)
        })
    }
}

/// The session of a message, and all searched text of it.
fn searched_text(connection: &Connection, message: MessageId) -> Result<(SessionId, String), Fault> {
    let mut statement = connection.prepare_cached(
        "SELECT session_id, search_whole(content, tool_name, tool_calls) FROM messages WHERE id = ?1",
    )?;
    Ok(statement.query_row([message.0.cast_signed()], |row| Ok((SessionId(row.get(0)?), row.get(1)?)))?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_conversation::{Draft, MessageRange, Role, ToolCall};
    use proptest::prelude::*;

    use super::*;
    use crate::search::Matching;
    use crate::testing::{child, new_session, store};
    use crate::{ParentKind, Session};

    /// A result of a tool.
    fn result(tool: &str, content: &str) -> Draft {
        Draft::result(&ToolCall { id: "c".into(), name: tool.into(), arguments: String::new() }, content, 1)
    }

    fn query(matching: Matching, text: &str) -> SearchQuery {
        SearchQuery { matching, ..SearchQuery::new(text) }
    }

    fn ids(store: &Store, session: &SessionId, query: &SearchQuery) -> Vec<u64> {
        let found = store.search_conversation(session, query).unwrap();
        assert!(found.is_sorted_by(|a, b| a.score >= b.score), "{found:?}");
        found.iter().map(|passage| passage.message.0).collect()
    }

    fn said(texts: &[&str]) -> (tempfile::TempDir, Store, Session) {
        let (home, store) = store();
        let session = store.create_session(new_session()).unwrap();
        store.append(&session.id, &texts.iter().map(|text| Draft::user(*text, 1)).collect::<Vec<_>>()).unwrap();
        (home, store, session)
    }

    #[test]
    fn a_question_finds_the_message_with_most_of_its_words() {
        let (_home, store, session) = said(&[
            "Maria plays the violin on Sundays.",
            "We went hiking with the dogs in the mountains.",
            "The dog was ill, so Maria took it to the vet.",
            "The weather was fine. The weather stays fine.",
        ]);
        for (question, first) in [
            ("When did Maria take her dog to the vet?", 3),
            ("Which instrument does Maria play?", 1),
            ("Who likes to hike OR NOT?", 2),
            ("Was the weather fine -weather?", 4),
        ] {
            assert_eq!(ids(&store, &session.id, &query(Matching::Any, question)).first(), Some(&first), "{question}");
        }
        assert_eq!(ids(&store, &session.id, &query(Matching::All, "Maria dog")), [3]);
        assert_eq!(ids(&store, &session.id, &query(Matching::All, "Maria NOT dog")), [0; 0]);
        for nothing in ["", "   \n", "submarine"] {
            for matching in [Matching::Any, Matching::All, Matching::Phrase] {
                assert_eq!(ids(&store, &session.id, &query(matching, nothing)), [0; 0]);
            }
        }
    }

    #[test]
    fn only_visible_messages_of_the_conversation_are_found() {
        let (_home, store) = store();
        let parent = store.create_session(new_session()).unwrap();
        let stranger = store.create_session(new_session()).unwrap();
        let said = |session: &Session, text: &str| store.append(&session.id, &[Draft::user(text, 1)]).unwrap()[0].id;
        let first = said(&parent, "needle one");
        said(&stranger, "needle of a stranger");
        let branch = child(&store, &parent, ParentKind::Branch, Some(first.0));
        let after = said(&parent, "needle after the branch");
        let own = said(&branch, "needle of the branch");
        let all = |session: &Session| {
            let mut found = ids(&store, &session.id, &query(Matching::Any, "needle"));
            found.sort_unstable();
            assert_eq!(found.len(), ids(&store, &session.id, &query(Matching::Phrase, "eedle")).len());
            found
        };
        assert_eq!(all(&parent), [first.0, after.0]);
        assert_eq!(all(&branch), [first.0, own.0]);
        // Rewound in its own session, it is still part of the branch.
        store.rewind(&parent.id, first).unwrap();
        assert_eq!(all(&parent), [0; 0]);
        assert_eq!(all(&branch), [first.0, own.0]);
        store.rewind(&branch.id, own).unwrap();
        assert_eq!(all(&branch), [first.0]);
        let within = |first, last| MessageRange { first: MessageId(first), last: MessageId(last) };
        let narrowed = |range| SearchQuery { within: Some(range), ..query(Matching::Any, "needle") };
        assert_eq!(ids(&store, &branch.id, &narrowed(within(first.0 + 1, u64::MAX))), [0; 0]);
        assert_eq!(ids(&store, &branch.id, &narrowed(within(0, first.0))), [first.0]);
        assert_eq!(ids(&store, &branch.id, &narrowed(within(9, 2))), [0; 0]);
        assert!(store.search_conversation(&SessionId("none".into()), &query(Matching::Any, "x")).is_err());
    }

    #[test]
    fn roles_tools_and_pages_limit_the_hits() {
        let (_home, store) = store();
        let session = store.create_session(new_session()).unwrap();
        let call = ToolCall { id: "c".into(), name: "grep".into(), arguments: r#"{"pattern":"needle"}"#.into() };
        store
            .append(
                &session.id,
                &[
                    Draft::user("needle", 1),
                    Draft::assistant("looking", vec![call], 2),
                    result("grep", "needle found"),
                    Draft::assistant("needle it is", Vec::new(), 4),
                ],
            )
            .unwrap();
        for matching in [Matching::Any, Matching::All, Matching::Phrase] {
            let base = query(matching, "needle");
            let of = |roles: &[Role]| SearchQuery { roles: Some(roles.to_vec()), ..base.clone() };
            assert_eq!(ids(&store, &session.id, &of(&[Role::User])), [1]);
            assert_eq!(ids(&store, &session.id, &of(&[Role::Tool])), [3]);
            let mut of_grep =
                ids(&store, &session.id, &SearchQuery { tools: Some(vec!["grep".into()]), ..base.clone() });
            of_grep.sort_unstable();
            assert_eq!(of_grep, [2, 3]);
            let page = |offset| ids(&store, &session.id, &SearchQuery { offset, limit: 3, ..base.clone() });
            let mut all = [page(0), page(3), page(6)].concat();
            all.sort_unstable();
            assert_eq!(all, [1, 2, 3, 4]);
        }
    }

    #[test]
    fn an_excerpt_shows_the_match_anywhere_in_a_long_message() {
        let filler = "lorem ipsum ".repeat(40_000);
        let text = format!("{filler}the needle itself{filler}");
        let (_home, store, session) = said(&[&text]);
        let excerpt = |matching, asked: &str| {
            let found = store.search_conversation(&session.id, &query(matching, asked)).unwrap();
            found.into_iter().map(|passage| passage.excerpt).collect::<Vec<_>>().join("|")
        };
        assert!(text.find("needle").unwrap() > 256 << 10, "it follows the indexed part");
        let shown = excerpt(Matching::Phrase, "needle its");
        assert!(shown.contains("the needle itself"), "{shown}");
        assert!((500..=602).contains(&shown.chars().count()), "{}", shown.chars().count());
        assert!(excerpt(Matching::Any, "ipsum").starts_with("lorem ipsum"));
    }

    #[test]
    fn an_exact_text_is_found_in_json_arguments_and_results() {
        let (_home, store) = store();
        let session = store.create_session(new_session()).unwrap();
        let code = "fn main() {\n\tprintln!(\"héllo \\\\ {}\", '错误处理');\n}";
        let json = serde_json::json!({ "path": "src/main.rs", "edits": [{ "new": code }] }).to_string();
        let ascii: String = json
            .chars()
            .flat_map(|c| match c.is_ascii() {
                true => vec![c],
                false => format!("\\u{:04x}", u32::from(c)).chars().collect(),
            })
            .collect();
        let call = |arguments: &str| ToolCall { id: "c".into(), name: "edit".into(), arguments: arguments.into() };
        store
            .append(
                &session.id,
                &[
                    Draft::assistant("", vec![call(&json)], 1),
                    result("edit", &json),
                    result("edit", &ascii),
                    Draft::assistant("", vec![call(&json[..json.len() - 3])], 4),
                    Draft::user(code, 5),
                ],
            )
            .unwrap();
        for part in ["println!(\"héllo", "{\n\tprint", "\\\\ {}\", '错误处理');\n}", "错误处理", "误处理", "llo \\\\"]
        {
            let found = ids(&store, &session.id, &query(Matching::Phrase, part));
            assert_eq!(found, [5, 4, 3, 2, 1], "{part:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

        #[test]
        fn every_substring_of_three_or_more_characters_is_found(
            texts in proptest::collection::vec("[a-cA-C \\n\"\\\\*éß错误处理々ﾟがＡ🙂\u{30000}\u{0}.-]{3,60}", 1..6),
            which in any::<prop::sample::Index>(),
            start in any::<prop::sample::Index>(),
            length in 3..20_usize,
            place in 0..3,
        ) {
            let (_home, store) = store();
            let session = store.create_session(new_session()).unwrap();
            let json = |text: &str| serde_json::json!({ "value": text }).to_string();
            let draft = |text: &String| match place {
                0 => Draft::user(text, 1),
                1 => Draft::assistant("", vec![ToolCall { id: "c".into(), name: "t".into(), arguments: json(text) }], 1),
                _ => result("t", &json(text)),
            };
            let stored = store.append(&session.id, &texts.iter().map(draft).collect::<Vec<_>>()).unwrap();
            let at = which.index(texts.len());
            let characters: Vec<char> = texts[at].chars().collect();
            let from = start.index(characters.len() - 2);
            let part: String = characters[from..(from + length).min(characters.len())].iter().collect();
            let found = ids(&store, &session.id, &query(Matching::Phrase, &part));
            prop_assert!(found.contains(&stored[at].id.0), "{:?} of {:?} in {:?}", part, texts[at], found);
        }

        #[test]
        fn every_text_is_a_valid_query(text in "\\PC{0,40}|[\"*^:(){}+OR AND NOT\\-\u{0}错]{0,30}") {
            let (_home, store, session) = said(&["one", &text]);
            for matching in [Matching::Any, Matching::All, Matching::Phrase] {
                store.search_conversation(&session.id, &query(matching, &text)).unwrap();
            }
        }
    }
}
