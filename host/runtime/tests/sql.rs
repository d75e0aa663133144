//! The imports `sql` and `history.search`, called by a component: the test guest `tests/guests/clerk`, which `cargo xtask
//! plugins` builds.
#![allow(clippy::unwrap_used)]

mod doubles;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use doubles::SearchOnly;
use hermes_capabilities::sql::Database;
use hermes_conversation::MessageId;
use hermes_runtime::services::{HistoryHit, HistoryQuery, Matching};
use hermes_runtime::{CallError, Invocation, Limit, LimitSet, Limits, Recipe, Runtime, Services, Tier};
use serde_json::{Value, json};

/// How long the search for `hang` takes: twice as long as the call's limit.
const HANG: Duration = Duration::from_secs(20);

/// Finds one message, and repeats the query in its excerpt.
async fn find(query: HistoryQuery) -> Vec<HistoryHit> {
    if query.text == "hang" {
        tokio::time::sleep(HANG).await;
    }
    let excerpt = format!("{:?} {} {}", query.matching, query.text, query.limit);
    vec![HistoryHit { id: MessageId(7), session: "s".into(), excerpt, score: 0.5 }]
}

fn recipe(code: &Path, database: Option<Arc<Database>>) -> Arc<Recipe> {
    recipe_with_time(code, database, Duration::from_secs(1))
}

/// A recipe with this time limit for tool calls.
fn recipe_with_time(code: &Path, database: Option<Arc<Database>>, tool_time: Duration) -> Arc<Recipe> {
    let staged = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-guests/clerk/clerk.wasm");
    let component = std::fs::read(&staged)
        .unwrap_or_else(|error| panic!("{}: {error}; run `cargo xtask plugins`", staged.display()));
    let tool_time = u64::try_from(tool_time.as_millis()).unwrap();
    let limits = Limits::of(Tier::Session).with(&LimitSet::default().and(Limit::ToolTime, tool_time));
    let services = Services { history: Arc::new(SearchOnly(find)), may_read: true, database, ..Services::nothing() };
    let loaded = Runtime::new(code.to_owned()).load(&component).unwrap();
    Arc::new(Recipe { services, ..Recipe::alone("clerk", loaded, limits) })
}

async fn try_call(recipe: &Arc<Recipe>, tool: &str, arguments: Value) -> Result<Value, CallError> {
    let invocation =
        Invocation { id: "call".into(), name: tool.into(), arguments: arguments.to_string(), extra: Vec::new() };
    let output = recipe.call_tool(invocation).await?;
    Ok(serde_json::from_str(&output.content).unwrap())
}

async fn call(recipe: &Arc<Recipe>, tool: &str, arguments: Value) -> Value {
    try_call(recipe, tool, arguments).await.unwrap()
}

const ENDLESS: &str = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n) SELECT count(*) FROM n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_component_keeps_its_data_and_no_statement_ends_its_instance() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("data/clerk/plugin.db");
    let clerk = recipe(home.path(), Some(Database::at(&path)));
    let stored = json!({ "sql": [
        "CREATE VIRTUAL TABLE notes USING fts5 (text)",
        "INSERT INTO notes VALUES ('tea'), ('coffee')",
        "PRAGMA user_version = 3",
    ]});
    assert!(!path.exists());
    assert_eq!(call(&clerk, "execute", stored).await, json!([0, 2, 0]));
    let tea = json!({ "sql": "SELECT rowid, text FROM notes WHERE notes MATCH 'tea'" });
    for (tool, sql, code) in [
        ("query", json!("ATTACH '/etc/passwd' AS a"), "sql"),
        ("query", json!("PRAGMA journal_mode = DELETE"), "sql"),
        ("query", json!("DELETE FROM notes"), "sql"),
        ("query", json!("SELECT 1; SELECT 2"), "sql"),
        ("query", json!("SELECT zeroblob(2147483648)"), "quota"),
        ("query", json!(ENDLESS), "quota"),
        ("execute", json!(["DELETE FROM notes", "COMMIT"]), "sql"),
        ("execute", json!(["DELETE FROM notes", ENDLESS]), "quota"),
    ] {
        let answer = call(&clerk, tool, json!({ "sql": sql })).await;
        assert_eq!(answer["code"], code, "{sql}: {answer}");
        assert_eq!(call(&clerk, "query", tea.clone()).await, json!([[1, "tea"]]), "{sql}");
    }
    // A second instance, as in another process.
    let other = recipe(home.path(), Some(Database::at(&path)));
    assert_eq!(call(&other, "query", json!({ "sql": "PRAGMA user_version" })).await, json!([[3]]));
}

#[tokio::test]
async fn a_component_without_the_right_to_sql_has_no_database() {
    let home = tempfile::tempdir().unwrap();
    let clerk = recipe(home.path(), None);
    let answer = call(&clerk, "query", json!({ "sql": "SELECT 1" })).await;
    assert!(answer["message"].as_str().unwrap().contains("no right to `sql`"), "{answer}");
    assert_eq!(std::fs::read_dir(home.path().join("data")).map_or(0, Iterator::count), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_call_stops_its_statement() {
    let home = tempfile::tempdir().unwrap();
    let database = Database::at(home.path().join("plugin.db"));
    let clerk = recipe_with_time(home.path(), Some(Arc::clone(&database)), Duration::from_secs(36_000));
    for _ in 0..4 {
        let running = try_call(&clerk, "query", json!({ "sql": ENDLESS }));
        assert!(tokio::time::timeout(Duration::from_millis(500), running).await.is_err());
    }
    // There are four connections: one is free only when a statement has ended, long before its own time is up.
    let budget = hermes_capabilities::sql::Budget::of(Duration::from_secs(600));
    let one = hermes_capabilities::sql::Statement::new("SELECT 1", []);
    tokio::task::spawn_blocking(move || database.query(&one, &budget)).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_reaches_the_host_unchanged_and_ends_within_the_calls_time() {
    let home = tempfile::tempdir().unwrap();
    let clerk = recipe_with_time(home.path(), None, HANG / 2);
    for (matching, expected) in [("any", Matching::Any), ("all", Matching::All), ("phrase", Matching::Phrase)] {
        let query = json!({ "text": "a OR b", "matching": matching, "limit": 1000 });
        let excerpt = format!("{expected:?} a OR b 100");
        assert_eq!(call(&clerk, "search", query).await, json!([{ "id": 7, "excerpt": excerpt, "score": 0.5 }]));
    }
    let answer = try_call(&clerk, "search", json!({ "text": "hang" })).await;
    assert!(
        matches!(&answer, Ok(answer) if answer["message"].as_str().is_some_and(|told| told.contains("time is up"))),
        "{answer:?}"
    );
}

/// What a query costs through the boundary. Run with `--ignored --nocapture`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn measured() {
    let home = tempfile::tempdir().unwrap();
    let clerk = recipe(home.path(), Some(Database::at(home.path().join("plugin.db"))));
    let made =
        json!({ "sql": ["CREATE TABLE kept (id INTEGER PRIMARY KEY, text)", "INSERT INTO kept VALUES (1, 'one')"] });
    call(&clerk, "execute", made).await;
    let asked = json!({ "times": 5_000, "sql": "SELECT text FROM kept WHERE id = 1" });
    println!("a small query through the boundary: {} µs", call(&clerk, "repeat", asked).await);
}
