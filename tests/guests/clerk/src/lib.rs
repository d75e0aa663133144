//! Passes SQL and searches to the host: tools `query`, `execute`, `repeat` and `search`. The tool's result is the host's answer
//! as JSON, including errors with their codes.

use hermes_plugin::history::{self, Matching};
use hermes_plugin::sql::{self, Rows, Statement, Value};
use hermes_plugin::tools::{Effect, Invocation, Output, Tool};
use hermes_plugin::{Error, Plugin, Tools, clock, params};
use serde_json::{Value as Json, json};

/// The plugin.
pub struct Clerk;

impl Plugin for Clerk {
    fn configure(_: &str) -> Result<Self, Error> {
        Ok(Self)
    }
}

impl Tools for Clerk {
    fn catalog(&self) -> Result<Vec<Tool>, Error> {
        let tool = |name: &str, description: &str| {
            Tool::new(name, description, json!({ "type": "object" })).toolset("clerk").effect(Effect::Reads)
        };
        Ok(vec![
            tool("query", "Asks the database: `sql`."),
            tool("execute", "Carries out all of `sql`, a list."),
            tool("repeat", "Asks the database `times` times, and says how many microseconds each took."),
            tool("search", "Searches the conversation for `text` as `matching` says, at most `limit` hits."),
        ])
    }

    fn call(&mut self, invocation: &Invocation) -> Result<Output, Error> {
        let arguments: Json = invocation.parse()?;
        let sql = arguments["sql"].as_str().unwrap_or_default();
        let answer = match invocation.name.as_str() {
            "query" => sql::query(sql, params![]).map(|rows| told(&rows)),
            "execute" => {
                let texts = arguments["sql"].as_array().into_iter().flatten();
                let statements: Vec<Statement> =
                    texts.map(|text| Statement::new(text.as_str().unwrap_or_default(), params![])).collect();
                sql::execute(&statements).map(|changes| json!(changes))
            }
            "repeat" => {
                let times = arguments["times"].as_u64().unwrap_or(1).max(1);
                let begin = clock::now();
                (0..times)
                    .try_for_each(|_| sql::query(sql, params![]).map(drop))
                    .map(|()| json!((clock::now() - begin) * 1000 / times))
            }
            "search" => search(&arguments),
            _ => return Err(invocation.unknown()),
        };
        let answer = answer.unwrap_or_else(|error| json!({ "code": error.code, "message": error.message }));
        Ok(Output::text(answer.to_string()))
    }
}

fn search(arguments: &Json) -> Result<Json, Error> {
    let mut query = history::Query::new(arguments["text"].as_str().unwrap_or_default());
    query.matching = match arguments["matching"].as_str() {
        Some("all") => Matching::All,
        Some("phrase") => Matching::Phrase,
        _ => Matching::Any,
    };
    query.limit = arguments["limit"].as_u64().and_then(|limit| u32::try_from(limit).ok()).unwrap_or(query.limit);
    let hits = history::search(&query)?;
    Ok(hits.iter().map(|hit| json!({ "id": hit.id, "excerpt": hit.excerpt, "score": hit.score })).collect())
}

fn told(rows: &Rows) -> Json {
    let value = |value: &Value| match value {
        Value::Null => Json::Null,
        Value::Integer(number) => json!(number),
        Value::Real(number) => json!(number),
        Value::Text(text) => json!(text),
        Value::Blob(bytes) => json!({ "bytes": bytes.len() }),
    };
    rows.rows.iter().map(|row| row.iter().map(value).collect::<Json>()).collect()
}

hermes_plugin::export!(Clerk: Tools);
