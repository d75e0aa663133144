//! Passes SQL and searches to the host: tools `query`, `execute`, `repeat` and `search`. The tool's result is the host's answer
//! as JSON, including errors with their codes. `store`, `peruse` and `chatter` use documents and the log without measure.
//!
//! The configuration may have `prefix`, which begins the names of the tools, and statements that `catalog` carries out one by
//! one, as `[SQL, PARAMETER, …]`. A parameter is a text, or `[TEXT, TIMES]`, or several of these, joined.

use hermes_plugin::history::{self, Matching};
use hermes_plugin::sql::{self, Rows, Statement, Value};
use hermes_plugin::tools::{Effect, Invocation, Output, Tool};
use hermes_plugin::{Error, Plugin, Tools, clock, documents, log, params};
use serde_json::{Value as Json, json};

/// The plugin.
pub struct Clerk {
    prefix: String,
    catalog: Vec<Json>,
}

impl Plugin for Clerk {
    fn configure(config: &str) -> Result<Self, Error> {
        let config: Json = serde_json::from_str(config).unwrap_or_default();
        Ok(Self {
            prefix: config["prefix"].as_str().unwrap_or_default().to_owned(),
            catalog: config["catalog"].as_array().cloned().unwrap_or_default(),
        })
    }
}

impl Tools for Clerk {
    fn catalog(&self) -> Result<Vec<Tool>, Error> {
        for described in &self.catalog {
            // Errors are of no interest: the host must survive.
            let _ = sql::execute(&[statement(described)]);
        }
        let tool = |name: &str, description: &str| {
            let name = format!("{}{name}", self.prefix);
            Tool::new(&name, description, json!({ "type": "object" })).toolset("clerk").effect(Effect::Reads)
        };
        Ok(vec![
            tool("query", "Asks the database: `sql`."),
            tool("execute", "Carries out all of `sql`, a list."),
            tool("repeat", "Asks the database `times` times, and says how many microseconds each took."),
            tool("store", "Writes `count` documents of `bytes` bytes each, and says how many were kept."),
            tool("peruse", "Computes for a few milliseconds and reads a document, in turns, for `ms` milliseconds."),
            tool("chatter", "Writes `lines` lines of 16 KiB to the log."),
            tool("search", "Searches the conversation for `text` as `matching` says, at most `limit` hits."),
        ])
    }

    fn call(&mut self, invocation: &Invocation) -> Result<Output, Error> {
        let arguments: Json = invocation.parse()?;
        let sql = arguments["sql"].as_str().unwrap_or_default();
        let answer = match invocation.name.strip_prefix(&self.prefix).unwrap_or_default() {
            "query" if arguments["sql"].is_array() => {
                let Statement { sql, params } = statement(&arguments["sql"]);
                sql::query(&sql, params).map(|rows| told(&rows))
            }
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
            "store" => store(&arguments),
            "peruse" => peruse(&arguments),
            "chatter" => {
                let line = "x".repeat(16 << 10);
                (0..arguments["lines"].as_u64().unwrap_or_default()).for_each(|_| log::info(&line));
                Ok(json!("said"))
            }
            "search" => search(&arguments),
            _ => return Err(invocation.unknown()),
        };
        let answer = answer.unwrap_or_else(|error| json!({ "code": error.code, "message": error.message }));
        Ok(Output::text(answer.to_string()))
    }
}

/// A statement, as the configuration describes it.
fn statement(described: &Json) -> Statement {
    fn text(described: &Json) -> String {
        match described.as_array().map(Vec::as_slice) {
            None => described.as_str().unwrap_or_default().to_owned(),
            Some([Json::String(text), Json::Number(times)]) => {
                text.repeat(times.as_u64().and_then(|times| usize::try_from(times).ok()).unwrap_or_default())
            }
            Some(parts) => parts.iter().map(text).collect(),
        }
    }
    let mut parts = described.as_array().map(Vec::as_slice).unwrap_or_default().iter();
    let sql = parts.next().and_then(Json::as_str).unwrap_or_default();
    Statement::new(sql, parts.map(|part| Value::Text(text(part))).collect())
}

/// Documents until one is refused.
fn store(arguments: &Json) -> Result<Json, Error> {
    let bytes = arguments["bytes"].as_u64().and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or_default();
    let text = "x".repeat(bytes);
    let count = arguments["count"].as_u64().unwrap_or_default();
    for at in 0..count {
        if let Err(error) = documents::write(&format!("d{at}"), &text, None) {
            return Ok(json!({ "kept": at, "code": error.code }));
        }
    }
    Ok(json!({ "kept": count }))
}

fn peruse(arguments: &Json) -> Result<Json, Error> {
    let until = clock::now() + arguments["ms"].as_u64().unwrap_or_default();
    let mut reads = 0;
    while clock::now() < until {
        // Without asking the host, whose calls are counted.
        (0..2_000_000_u32).for_each(|step| {
            std::hint::black_box(step);
        });
        documents::read("none")?;
        reads += 1;
    }
    Ok(json!(reads))
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
