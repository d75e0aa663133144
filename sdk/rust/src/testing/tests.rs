#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;
use crate::host::log::Level;
use crate::process::{Command, End};
use crate::{
    ErrorKind, Message, Part, Role, ToolCall, clock, documents, embeddings, files, history, http, info, llm, log,
    process, random, sql, task,
};

#[test]
fn an_import_without_a_host_says_how_to_get_one() {
    let panic = std::panic::catch_unwind(|| documents::read("notes.md")).unwrap_err();
    let text = panic.downcast_ref::<String>().unwrap();
    assert!(text.contains("`documents::read`") && text.contains("testing::Host::new()"), "{text}");
    log::info("a log needs no host");
}

#[test]
fn a_host_serves_until_it_is_dropped() {
    let host = Host::new();
    assert!(std::panic::catch_unwind(Host::new).is_err());
    drop(host);
    let _next = Host::new().document("notes.md", "tea");
    assert_eq!(documents::read("notes.md").unwrap().unwrap().content, "tea");
}

#[test]
fn requests_carry_secrets_in_their_places() {
    let host = Host::new().secret("key", "k 1").secret("unset", "").reply(200).reply(200).reply(200);
    let (key, json) = (|| http::secret("key"), json!({ "auth": { "token": "" }, "text": "tea" }));
    http::Request::get("https://example.org/?a=1").query("q", "a b&c").query("key", key()).send().unwrap();
    http::Request::post("https://example.org/").form([("key", key())]).send().unwrap();
    let with_secrets = http::Request::post("https://example.org/").json_with_secrets(&json, &[("/auth/token", "key")]);
    with_secrets.unwrap().send().unwrap();
    let [get, form, document] = &host.requests()[..] else { panic!("three requests") };
    assert_eq!(get.url, "https://example.org/?a=1&q=a+b%26c&key=k+1");
    assert_eq!((form.text().as_str(), form.header("Content-Type").unwrap().contains("form")), ("key=k+1", true));
    assert_eq!(document.json::<Value>().unwrap(), json!({ "auth": { "token": "k 1" }, "text": "tea" }));

    for (name, kind, code) in [("other", ErrorKind::Denied, "secret"), ("unset", ErrorKind::Failed, "unset")] {
        let error = http::Request::get("https://example.org/").bearer_secret(name).send().unwrap_err();
        assert_eq!((error.kind, error.code.as_str()), (kind, code), "{}", error.message);
    }
    assert!(http::has_secret("key") && !http::has_secret("unset") && !http::has_secret("other"));
    assert_eq!(host.requests().len(), 3, "a refused request is not sent");
}

#[test]
fn a_response_returns_no_secret_and_a_secret_can_be_replaced() {
    let host = Host::new()
        .secret("token", "t-secret")
        .serve(|sent| Answer::json(200, json!({ "echo": sent.header("authorization") })).header("x-echo", "t-secret"));
    let response = http::Request::get("https://example.org/me").bearer_secret("token").send().unwrap();
    assert_eq!(response.json::<Value>().unwrap()["echo"], "Bearer [REDACTED]");
    assert_eq!((response.header("x-echo"), response.url()), (Some("[REDACTED]"), "https://example.org/me"));
    http::replace_secret("token", "renewed-token").unwrap();
    assert_eq!(host.secret_value("token").as_deref(), Some("renewed-token"));
    assert_eq!(http::replace_secret("token", "short").unwrap_err().code, "value");
    assert_eq!(http::replace_secret("other", "renewed-token").unwrap_err().code, "secret");
}

#[test]
fn each_answer_serves_one_request_that_fits() {
    let get = |url: &str| http::Request::get(url).send().map(|response| response.text());
    let host = Host::new()
        .reply_to("GET https://example.org/a/*", "for a")
        .reply("for any")
        .reply(Error::unavailable("the line is dead"));
    assert_eq!(get("https://example.org/b").unwrap(), "for any");
    assert_eq!(get("https://example.org/a/1?q=2").unwrap(), "for a");
    assert_eq!(get("https://example.org/a/1").unwrap_err().message, "the line is dead");
    let panic = std::panic::catch_unwind(|| get("https://example.org/c")).unwrap_err();
    assert!(panic.downcast_ref::<String>().unwrap().contains("no answer for `GET https://example.org/c`"));
    assert_eq!(get("ftp://example.org/").unwrap_err().code, "url");
    assert_eq!(host.requests().len(), 4);
}

#[test]
fn time_and_random_numbers_are_the_same_in_every_run() {
    let host = Host::new().utc_offset(60).seed(7);
    let begin = clock::now();
    host.advance(1_500);
    assert_eq!((clock::now() - begin, clock::utc_offset()), (1_500, 60));
    let bytes = random::bytes(20);
    drop(host);
    let _again = Host::new().at(5).seed(7);
    assert_eq!((random::bytes(20), clock::now()), (bytes.clone(), 5));
    assert_ne!(random::bytes(20), bytes);
}

#[test]
fn log_progress_and_features_are_recorded_and_set() {
    let host = Host::new().without("hermes:sql/sql").time_left(100);
    log::warn("careful");
    task::progress("half done");
    host.cancel(true);
    assert_eq!(host.log(), [(Level::Warn, "careful".to_owned())]);
    assert_eq!((host.progress(), task::time_left(), task::cancelled()), (vec!["half done".to_owned()], 100, true));
    assert!(info::has("hermes:http/http") && !info::has("hermes:sql/sql"));
}

#[test]
fn models_say_what_the_test_scripts() {
    let request = llm::Request::new("memory").message(Role::User, "When is tea?");
    let none = Host::new();
    assert_eq!(llm::complete(&request).unwrap_err().code, "no-model");
    assert_eq!(embeddings::query("tea").unwrap_err().code, "no-model");
    drop(none);

    let host = Host::new().says("tea at four").says("no, at five").says(Error::unavailable("busy")).embeddings(64);
    assert_eq!(llm::complete(&request).unwrap().text, "tea at four");
    let mut pieces = Vec::new();
    let reply = llm::stream(&request).unwrap().finish(|piece| pieces.push(piece.to_owned())).unwrap();
    assert_eq!((reply.text.as_str(), pieces.concat().as_str(), pieces.len()), ("no, at five", "no, at five", 3));
    assert_eq!(llm::stream(&request).unwrap().finish(|_| ()).unwrap_err().message, "busy");
    assert_eq!((host.prompts().len(), host.prompts()[0].task.as_str()), (3, "memory"));
    assert!(std::panic::catch_unwind(|| llm::complete(&llm::Request::new("memory"))).is_err());

    let near = |one: &str, other: &str| -> f32 {
        let (one, other) = (embeddings::query(one).unwrap(), embeddings::query(other).unwrap());
        one.iter().zip(&other).map(|(one, other)| one * other).sum()
    };
    assert!(near("green tea", "Tea, green!") > 0.99 && near("green tea", "the old ferry") < 0.5);
    assert_eq!(embeddings::query("").unwrap().len(), 64);
}

#[test]
fn a_conversation_is_read_by_turns_and_groups() {
    let mut caller = Message::new(2, Role::Assistant, "");
    caller.tool_calls = vec![ToolCall { id: "a".into(), name: "look".into(), arguments: r#"{"at":"kettle"}"#.into() }];
    let mut result = Message::new(3, Role::Tool, "hot");
    result.tool_name = Some("look".to_owned());
    let host = Host::new()
        .messages([Message::new(1, Role::User, "Is the kettle on?"), caller, result])
        .messages([Message::new(4, Role::User, "Good.")])
        .parts(4, [Part::Text("Good.".to_owned())])
        .summary("s", "tea");
    let headers: Vec<_> = host.headers().iter().map(|header| (header.id, header.turn, header.group)).collect();
    assert_eq!(headers, [(1, 1, 1), (2, 1, 2), (3, 1, 2), (4, 2, 4)]);
    let whole = history::whole().unwrap().unwrap();
    assert_eq!(history::read_all(whole).unwrap().len(), 4);
    assert_eq!((history::all_parts(whole).unwrap()[0].id, history::summary("s").unwrap()), (4, "tea".to_owned()));
    assert_eq!(history::summary("other").unwrap_err().code, "not-found");
    let found = |query: history::Query| history::search(&query).unwrap().iter().map(|hit| hit.id).collect::<Vec<_>>();
    assert_eq!(found(history::Query::new("kettle is")), [1, 2]);
    assert_eq!(found(history::Query { roles: vec![Role::Tool], ..history::Query::new("hot") }), [3]);
    assert!(found(history::Query { matching: history::Matching::All, ..history::Query::new("kettle hot") }).is_empty());
}

#[test]
fn documents_keep_the_changes_of_other_writers() {
    let host = Host::new().document("notes.md", "one\n");
    let mut alone = true;
    let written = documents::update("notes.md", |content| {
        if std::mem::take(&mut alone) {
            documents::write("notes.md", "one\ntwo\n", Some("1"))?;
        }
        Ok::<_, Error>((Some(format!("{content}three\n")), ()))
    });
    written.unwrap();
    assert_eq!(host.document_text("notes.md").as_deref(), Some("one\ntwo\nthree\n"));
    assert_eq!(documents::read("other.md").unwrap(), None);
}

#[test]
fn statements_are_answered_by_the_test() {
    let host = Host::new().sql(|statement| {
        assert_eq!(statement.params, crate::params!["tea"]);
        Ok(sql::Rows { columns: vec!["id".to_owned()], rows: vec![crate::params![7]] })
    });
    let statement = "SELECT id FROM notes WHERE text = ?1";
    assert_eq!(sql::query_one::<(i64,)>(statement, crate::params!["tea"]).unwrap(), Some((7,)));
    drop(host);
    let _none = Host::new();
    let panic = std::panic::catch_unwind(|| sql::query(statement, Vec::new())).unwrap_err();
    assert!(panic.downcast_ref::<String>().unwrap().contains("no database for `SELECT id"));
}

#[cfg(feature = "sqlite")]
#[test]
fn statements_run_in_sqlite() {
    let _host = Host::new().database();
    let insert = |text: &str| sql::Statement::new("INSERT INTO notes (text) VALUES (?1)", crate::params![text]);
    let table = sql::Statement::new("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL)", Vec::new());
    assert_eq!(sql::execute(&[table, insert("tea")]).unwrap(), [0, 1]);
    let all = || sql::query_as::<(i64, String)>("SELECT id, text FROM notes ORDER BY id", Vec::new()).unwrap();
    assert_eq!(all(), [(1, "tea".to_owned())]);
    let broken = sql::Statement::new("INSERT INTO notes (text) VALUES (NULL)", Vec::new());
    assert_eq!(sql::execute(&[insert("milk"), broken]).unwrap_err().code, "sql");
    assert_eq!(all().len(), 1, "a failed transaction changes nothing");
    assert_eq!(sql::query("DELETE FROM notes", Vec::new()).unwrap_err().code, "sql");
}

#[test]
fn files_are_written_listed_and_searched_below_their_root() {
    let host = Host::new().file("workspace", "src/a.rs", "let tea = 4;\nlet b = 5;").file("workspace", "b.md", "Tea");
    let names = |path: &str| -> Vec<String> {
        files::entries("workspace", path).unwrap().into_iter().map(|entry| entry.path).collect()
    };
    assert_eq!((names(""), names("src")), (vec!["b.md".to_owned(), "src".to_owned()], vec!["src/a.rs".to_owned()]));
    let version = files::stat("workspace", "b.md").unwrap().version;
    let newer = files::write("workspace", "b.md", b"Coffee", Some(&version)).unwrap();
    assert!(files::write("workspace", "b.md", b"Milk", Some(&version)).unwrap_err().is(ErrorKind::Conflict));
    assert_ne!(newer, version);
    assert_eq!(host.file_content("workspace", "b.md").unwrap(), b"Coffee");
    files::rename("workspace", "b.md", "src/b.md").unwrap();
    assert!(files::rename("workspace", "src/a.rs", "src/b.md").unwrap_err().is(ErrorKind::Conflict));
    files::remove("workspace", "src/b.md").unwrap();
    assert_eq!(files::stat("workspace", "src/b.md").unwrap_err().code, "not-found");

    let pattern = |regex: &str| files::Pattern { regex: regex.to_owned(), ignore_case: true };
    let found = files::search("workspace", "src/**/*.rs", Some(&pattern("TEA")), 0, 10).unwrap();
    assert_eq!((found.found[0].line, found.found[0].text.as_str(), found.more), (1, "let tea = 4;", false));
    assert!(files::search("workspace", "*.md", None, 0, 10).unwrap().found.is_empty());
    assert!(files::search("workspace", "*", Some(&pattern("te.")), 0, 10).unwrap_err().is(ErrorKind::Unsupported));

    assert_eq!(files::read("workspace", "../x", 0, 1).unwrap_err().code, "outside");
    assert_eq!(files::read("workspace", "src", 0, 1).unwrap_err().code, "not-a-file");
    assert!(files::roots().unwrap()[0].writable && files::stat("skills", "a").unwrap_err().is(ErrorKind::Denied));
    let _host = host.root("workspace", false);
    assert_eq!(files::write("workspace", "c", b"", None).unwrap_err().code, "read-only");
}

#[test]
fn programs_have_the_outcome_that_the_test_gives() {
    let host = Host::new()
        .program("git", "main\n")
        .program("make", Error::failed("no rule"))
        .background("echo", |input| [b"> ", input].concat());
    assert_eq!(Command::new("git").run().unwrap().output_text(), "main\n");
    assert_eq!(Command::new("make").run().unwrap_err().message, "no rule");
    assert_eq!(Command::new("rm").run().unwrap_err().code, "not-granted");
    let echo = Command::new("echo").start().unwrap();
    echo.write("hi").unwrap();
    let chunk = echo.read(0).unwrap();
    assert_eq!((chunk.output_text().as_ref(), &chunk.end, echo.read(0).unwrap().output.len()), ("> hi", &None, 0));
    assert_eq!((echo.stop().unwrap(), echo.wait(0).unwrap()), (End::Stopped, Some(End::Stopped)));
    assert_eq!(echo.write("more").unwrap_err().code, "input-closed");
    assert_eq!((process::programs().unwrap().len(), host.commands().len()), (1, 4));
}

#[test]
fn a_plugin_is_configured_and_started_in_a_session() {
    struct Lamp(String);

    impl Plugin for Lamp {
        fn configure(config: &str) -> Result<Self, Error> {
            let config: Value = serde_json::from_str(config)?;
            let colour = config["colour"].as_str().ok_or_else(|| Error::invalid("colour is missing"))?;
            Ok(Self(colour.to_owned()))
        }

        fn session_start(&mut self, session: &Session, how: &Start) -> Result<(), Error> {
            self.0 += &format!(" in {} after {how:?}", session.id);
            Ok(())
        }
    }

    let host = Host::new().session(Session { id: "kitchen".to_owned(), ..session() });
    let lamp: Lamp = host.start(json!({ "colour": "red" })).unwrap();
    assert!(lamp.0.starts_with("red in kitchen after ") && lamp.0.contains("Fresh"), "{}", lamp.0);
    assert_eq!(host.start::<Lamp>(json!({})).map(|_| ()).unwrap_err().message, "colour is missing");
}
