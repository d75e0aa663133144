//! The tools, with the names and arguments that users of Honcho know.

use hermes_plugin::tools::{Effect, Invocation, Output, Tool};
use hermes_plugin::{Error, Toolbox, Tools, arguments, llm, task};
use serde_json::{Value, json};

use crate::Honcho;
use crate::config::{Level, RecallMode};
use crate::dialectic::limited;
use crate::names::identity;
use crate::store::{Excerpt, Pair};

/// Tokens of excerpts.
const EXCERPTS: u32 = 800;
const MOST_EXCERPTS: u32 = 2_000;
/// Tokens of a snapshot, if the user has set no budget.
const SNAPSHOT: u32 = 2_000;
/// Items of a search.
const FOUND: u32 = 20;
/// Most lines of a card, and characters of one.
const CARD: usize = 200;
const LINE: usize = 2_000;
/// Most characters of a conclusion.
const CONCLUSION: usize = 10_000;
/// Characters of a query that are read.
const QUERY: usize = 4_000;
/// A tool has 30 s; the question ends before.
const ANSWER: u32 = 28_000;

/// Read a person's card: a short list of lasting facts such as name, role and preferences. Cheap, without a model. With `card`,
/// replace it. It fills by itself over time, so an empty card is no error.
#[arguments]
struct Profile {
    /// `user` (the default), `ai`, or the id of another peer.
    peer: Option<String>,
    /// The new card, one fact per line. It replaces the present one.
    card: Option<Vec<String>>,
}

/// Search what was said in all earlier conversations of a person, by meaning and words. Returns excerpts, without a model.
/// For one thing that was said; `honcho_reasoning` is for questions that need several.
#[arguments]
struct Search {
    /// What to look for: a name, a topic, a description.
    query: String,
    /// How much to return, in tokens: 800 by default, at most 2000.
    max_tokens: Option<u32>,
    /// `user` (the default), `ai`, or the id of another peer.
    peer: Option<String>,
}

/// What is known at present about a person and this conversation: summary, facts, card and latest messages. Without a model and
/// without a query.
#[arguments]
struct Context {
    /// `user` (the default), `ai`, or the id of another peer.
    peer: Option<String>,
}

/// Ask a question about a person; a model reads their history and answers in words. The slowest of these tools: for one fact use
/// `honcho_search`, for the lasting ones `honcho_profile`.
#[arguments]
struct Reasoning {
    /// The question.
    query: String,
    /// How thoroughly to think. `minimal` is for a single fact; without it, the configured level.
    reasoning_level: Option<Level>,
    /// `user` (the default), `ai`, or the id of another peer.
    peer: Option<String>,
}

/// Keep a conclusion about a person for later conversations, such as a preference or a correction. Give exactly one of
/// `conclusion`, `delete_id` and `list`. Deleting is for private data; for a fact that is wrong, write the right one.
#[arguments]
struct Conclude {
    /// A sentence to keep, which can be understood alone.
    conclusion: Option<String>,
    /// The id of a conclusion to delete, as `list` shows it.
    delete_id: Option<String>,
    /// Lists conclusions with their ids.
    list: Option<bool>,
    /// With `list`: what they should be about. Without it, the newest.
    query: Option<String>,
    /// Whom it is about: `user` (the default), `ai`, or the id of another peer.
    peer: Option<String>,
}

impl Honcho {
    fn tools() -> Toolbox<Self> {
        Toolbox::new("memory")
            .tool("honcho_profile", Self::profile)
            .tool("honcho_search", Self::search)
            .effect(Effect::Reads)
            .parallel(true)
            .tool("honcho_context", Self::context)
            .effect(Effect::Reads)
            .parallel(true)
            .tool("honcho_reasoning", Self::reasoning)
            .effect(Effect::Reads)
            .parallel(true)
            .tool("honcho_conclude", Self::conclude)
    }

    fn about(&self, peer: Option<&str>) -> Pair {
        let observed = match peer.map(str::trim) {
            None | Some("" | "user") => self.place.user.clone(),
            Some("ai") => self.place.ai.clone(),
            Some(other) => identity(other),
        };
        self.pair(&observed)
    }

    fn profile(&mut self, arguments: Profile) -> Result<Output, Error> {
        let pair = self.about(arguments.peer.as_deref());
        let Some(card) = arguments.card else {
            let card = self.store.card(&pair)?;
            let mut answer = json!({ "peer": pair.observed, "card": card });
            if card.is_empty() {
                answer["hint"] = json!(
                    "The card is empty. It fills over time from what is said; honcho_search finds what was said."
                );
            }
            return Ok(json_output(&answer));
        };
        let card: Vec<String> = card.iter().map(|line| one_line(line)).filter(|line| !line.is_empty()).collect();
        if card.len() > CARD || card.iter().any(|line| line.chars().count() > LINE) {
            let why = format!("a card has at most {CARD} lines of at most {LINE} characters: shorten it");
            return Err(Error::invalid(why));
        }
        self.store.set_card(&pair, &card)?;
        Ok(json_output(&json!({ "peer": pair.observed, "card": card, "message": "card replaced" })))
    }

    fn search(&mut self, arguments: Search) -> Result<Output, Error> {
        let query = given(&arguments.query, "query")?;
        let pair = self.about(arguments.peer.as_deref());
        let found = self.store.search(&pair.observed, &limited(query, QUERY), FOUND)?;
        let tokens = arguments.max_tokens.unwrap_or(EXCERPTS).clamp(1, MOST_EXCERPTS);
        let excerpts = within(found, tokens);
        if excerpts.is_empty() {
            return Ok(json_output(&json!({ "excerpts": [], "hint": "Nothing that was said fits. Try other words." })));
        }
        Ok(json_output(&json!({ "excerpts": excerpts })))
    }

    fn context(&mut self, arguments: Context) -> Result<Output, Error> {
        let pair = self.about(arguments.peer.as_deref());
        let tokens = self.config.context_tokens.unwrap_or(SNAPSHOT);
        let session = self.place.session.clone();
        let known = self.store.known(&pair, &session, "", tokens)?;
        Ok(json_output(&json!({
            "peer": pair.observed,
            "session": session,
            "summary": known.summary,
            "representation": limited(&known.facts.join("\n"), tokens as usize * 4),
            "card": known.card,
            "recent_messages": within(known.recent, tokens / 2),
        })))
    }

    fn reasoning(&mut self, arguments: Reasoning) -> Result<Output, Error> {
        let query = given(&arguments.query, "query")?;
        let pair = self.about(arguments.peer.as_deref());
        let asked = arguments.reasoning_level.filter(|_| self.config.dialectic_dynamic);
        let level = asked.unwrap_or(self.config.dialectic_reasoning_level);
        let question = limited(query, self.config.dialectic_max_input_chars);
        let time = task::time_left().saturating_sub(1_000).clamp(1, ANSWER);
        let session = self.place.session.clone();
        let answer = self.store.ask(&pair, &session, &question, level, time).map_err(|error| {
            let is_slow = error.is(hermes_plugin::ErrorKind::Timeout);
            let error = if is_slow {
                error.context("the answer takes too long: ask for less, or with a lower reasoning_level")
            } else {
                error
            };
            if error.code == "no-model" {
                error.context("no model answers questions about memories; honcho_search needs none")
            } else {
                error
            }
        })?;
        Ok(json_output(&match answer {
            Some(answer) => json!({ "answer": answer }),
            None => json!({ "answer": null, "hint": "Nothing is known about this yet." }),
        }))
    }

    fn conclude(&mut self, arguments: Conclude) -> Result<Output, Error> {
        let some = |text: Option<String>| text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let (conclusion, id) = (some(arguments.conclusion), some(arguments.delete_id));
        let pair = self.about(arguments.peer.as_deref());
        match (conclusion, id, arguments.list == Some(true)) {
            (Some(conclusion), None, false) => {
                if conclusion.chars().count() > CONCLUSION {
                    return Err(Error::invalid(format!("a conclusion has at most {CONCLUSION} characters")));
                }
                let session = self.place.session.clone();
                let id = self.store.conclude(&pair, &session, &conclusion)?;
                Ok(json_output(&json!({ "peer": pair.observed, "id": id, "message": "conclusion kept" })))
            }
            (None, Some(id), false) => {
                self.store.forget(&id)?;
                Ok(json_output(&json!({ "id": id, "message": "conclusion deleted" })))
            }
            (None, None, true) => {
                let query = some(arguments.query).map(|query| limited(&query, QUERY));
                let found = self.store.conclusions(&pair, query.as_deref(), FOUND)?;
                let shown: Vec<Value> = found
                    .iter()
                    .map(|one| json!({ "id": one.id, "conclusion": limited(&one.content, LINE), "created_at": one.at }))
                    .collect();
                Ok(json_output(&json!({ "peer": pair.observed, "conclusions": shown })))
            }
            _ => Err(Error::invalid("give exactly one of `conclusion`, `delete_id` and `list: true`")),
        }
    }
}

impl Tools for Honcho {
    fn catalog(&self) -> Result<Vec<Tool>, Error> {
        Ok(match self.config.recall_mode {
            RecallMode::Context => Vec::new(),
            RecallMode::Hybrid | RecallMode::Tools => Self::tools().catalog(),
        })
    }

    fn call(&mut self, invocation: &Invocation) -> Result<Output, Error> {
        Self::tools().call(self, invocation)
    }
}

fn json_output(answer: &Value) -> Output {
    Output::text(answer.to_string())
}

fn given<'a>(text: &'a str, name: &str) -> Result<&'a str, Error> {
    let text = text.trim();
    if text.is_empty() { Err(Error::invalid(format!("`{name}` is empty"))) } else { Ok(text) }
}

fn one_line(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// As many excerpts as fit, the last one cut.
fn within(found: Vec<Excerpt>, tokens: u32) -> Vec<Value> {
    let mut left = tokens;
    let mut shown = Vec::new();
    for excerpt in found {
        if left == 0 {
            break;
        }
        // A token has about four characters; the host's count is exact where the text is short enough.
        let text = limited(&excerpt.text, left as usize * 4);
        left = left.saturating_sub(llm::count_tokens(&text).max(1));
        shown.push(json!({ "peer": excerpt.peer, "session": excerpt.session, "at": excerpt.at, "text": text }));
    }
    shown
}
