//! Long-term memory in short texts. `USER.md` and `MEMORY.md` are part of the system prompt, and `FACTS.md` is recalled when a
//! message mentions one of its entries. The user can edit all three at any time. The working state of a conversation is for
//! this conversation only. The model edits all of them with the tool `memory`.
//!
//! All writes go through `documents`, so concurrent sessions do not overwrite each other. Changes appear in the prompt of
//! the next session, because the prompt of a running session is frozen.

mod answer;
mod facts;
mod failure;
mod request;
mod working;

use std::num::NonZeroUsize;

use hermes_notes::{Change, Done, Notes, Pending, Rules, Target, day, percent, thousands, tidy, usage};
use hermes_plugin::memory_provider::{Query, Recollection};
use hermes_plugin::tools::{Effect, Invocation, Output, Tool};
use hermes_plugin::{
    Error, ErrorKind, Instance, MemoryEvents, MemoryProvider, MemoryUpkeep, MessageRange, Progress, Setup, Tools,
    clock, documents, log,
};
use serde::Deserialize;
use serde_json::{Value, json};

use facts::Facts;
use failure::failure;
use request::{Arguments, Place, Request};

/// Attempts of a write, each with five looks at the document, while other sessions write it too.
const ATTEMPTS: u32 = 8;
/// Purposes of sessions that do not write: what a delegate or a timer notes is not what the user said.
const READERS: [&str; 3] = ["subagent", "cron", "flush"];

struct Builtin {
    config: Config,
    session: String,
    may_write: bool,
    facts: Facts,
}

/// Sizes in characters.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Config {
    #[serde(rename = "memory_char_limit", default = "memory_limit")]
    memory: NonZeroUsize,
    #[serde(rename = "user_char_limit", default = "user_limit")]
    user: NonZeroUsize,
    #[serde(rename = "facts_char_limit", default = "facts_limit")]
    facts: NonZeroUsize,
    /// Writes wait until the user approves them.
    #[serde(default)]
    write_approval: bool,
    /// Tidying is proposed while a session is idle.
    #[serde(default)]
    background_tidy: bool,
}

fn memory_limit() -> NonZeroUsize {
    const { NonZeroUsize::new(2_200).expect("not zero") }
}

fn user_limit() -> NonZeroUsize {
    const { NonZeroUsize::new(1_375).expect("not zero") }
}

fn facts_limit() -> NonZeroUsize {
    const { NonZeroUsize::new(50_000).expect("not zero") }
}

fn title(target: Target) -> &'static str {
    match target {
        Target::Memory => "MEMORY (your notes)",
        Target::User => "USER PROFILE (who the user is)",
        Target::Facts => "FACTS (what happened)",
    }
}

impl Config {
    fn limit(self, target: Target) -> usize {
        match target {
            Target::Memory => self.memory.get(),
            Target::User => self.user.get(),
            Target::Facts => self.facts.get(),
        }
    }

    fn rules(self, target: Target) -> Rules {
        // The user's day, not that of Greenwich.
        let offset = i64::from(clock::utc_offset()) * 60_000;
        let today = || day(clock::now().saturating_add_signed(offset));
        Rules { limit: self.limit(target), day: (target == Target::Facts).then(today) }
    }
}

impl Instance for Builtin {
    type Config = Config;

    fn new(setup: Setup<Config>) -> Result<Self, Error> {
        Ok(Self {
            config: setup.config,
            may_write: !READERS.contains(&setup.session.purpose.as_str()),
            session: setup.session.id,
            facts: Facts::default(),
        })
    }
}

impl MemoryProvider for Builtin {
    fn system_prompt(&mut self) -> Result<String, Error> {
        let mut blocks = Vec::new();
        for target in [Target::Memory, Target::User] {
            let limit = self.config.limit(target);
            // A read error must not look like an empty document: the `?` keeps the session's earlier text.
            let Some(document) = documents::read(target.document())? else { continue };
            let notes = Notes::parse(&document.content);
            if notes.chars() > limit {
                log::warn(format!(
                    "{} has {} characters, more than its limit of {}: the prompt contains all of it, but nothing can be added",
                    target.document(),
                    thousands(notes.chars()),
                    thousands(limit),
                ));
            }
            blocks.extend(block(target, &notes, limit));
        }
        Ok(blocks.join("\n\n"))
    }

    fn recall(&mut self, query: &Query) -> Result<Vec<Recollection>, Error> {
        let state = working::of(&self.session)?;
        // The model wrote it itself: it is shown again when the conversation does not contain it any more.
        let state =
            state.map(|text| Recollection::new("working", format!("Working state of this conversation:\n{text}")));
        let mut recalled: Vec<Recollection> = state.into_iter().collect();
        recalled.extend(self.facts.find(&query.text)?);
        Ok(recalled)
    }
}

impl MemoryEvents for Builtin {
    fn before_compact(&mut self, _: MessageRange) -> Result<String, Error> {
        Ok(working::of(&self.session)?.unwrap_or_default())
    }
}

impl MemoryUpkeep for Builtin {
    fn upkeep(&mut self) -> Result<Progress, Error> {
        if self.config.background_tidy {
            for target in Target::ALL {
                self.propose_tidying(target)?;
            }
        }
        Ok(Progress::Done)
    }
}

impl Tools for Builtin {
    fn catalog(&self) -> Result<Vec<Tool>, Error> {
        if !self.may_write {
            return Ok(Vec::new());
        }
        Ok(vec![request::tool(self.config).toolset("memory").effect(Effect::Writes)])
    }

    fn call(&mut self, invocation: &Invocation) -> Result<Output, Error> {
        if invocation.name != "memory" {
            return Err(invocation.unknown());
        }
        if !self.may_write {
            let error = "this session does not write memories: report what matters in your answer instead";
            return Err(failure("read-only", json!({ "error": error })));
        }
        let request = Request::read(invocation.parse::<Arguments>()?)?;
        match request.place {
            Place::Session => working::write(&self.session, &request).map(|answer| Output::text(answer.to_string())),
            Place::Notes(target) if self.config.write_approval => self.stage(target, &request),
            Place::Notes(target) => self.write(target, &request),
        }
    }
}

impl Builtin {
    fn write(&self, target: Target, request: &Request) -> Result<Output, Error> {
        let rules = self.config.rules(target);
        let (answer, done) = update(target.document(), |text| {
            let (notes, done) = answer::apply(target, text, request, &rules)?;
            let is_new = done.iter().any(|done| *done != Done::Duplicate);
            let answer = answer::success(target, &notes, request, &done, rules.limit);
            Ok((is_new.then(|| notes.text()), (answer, done)))
        })?;
        let mut output = Output::text(answer.to_string());
        for (change, done) in request.changes.iter().zip(&done) {
            let (target, text) = (target.name(), change.text());
            output = match done {
                Done::Added => output.memory_write("added", target, text, None),
                Done::Replaced(old) => output.memory_write("replaced", target, text, Some(old)),
                Done::Removed(old) => output.memory_write("removed", target, "", Some(old)),
                Done::Duplicate => output,
            };
        }
        Ok(output)
    }

    /// Queues a write for the user's approval. What is not possible now is refused now.
    fn stage(&self, target: Target, request: &Request) -> Result<Output, Error> {
        let rules = self.config.rules(target);
        let text = documents::read(target.document())?.map(|document| document.content).unwrap_or_default();
        let (notes, done) = answer::apply(target, &text, request, &rules)?;
        if done.iter().all(|done| *done == Done::Duplicate) {
            return Ok(Output::text(answer::success(target, &notes, request, &done, rules.limit).to_string()));
        }
        let id = self.queue(target, &request.changes)?.ok_or_else(|| {
            let error =
                format!("{} writes wait for the user's approval already; ask the user to decide", Pending::MOST);
            failure("too-many-pending", json!({ "error": error }))
        })?;
        Ok(Output::text(
            json!({
                "success": true,
                "done": true,
                "staged": true,
                "pending_id": id,
                "target": target.name(),
                "message": format!(
                    "the write waits for the user's approval (`hermes memory approve {id}`); do not repeat it, and do not \
                     say that it is saved"
                ),
            })
            .to_string(),
        ))
    }

    /// The number of the queued write, also if the same one waits already; none if too many wait.
    fn queue(&self, target: Target, changes: &[Change]) -> Result<Option<u64>, Error> {
        update(Pending::DOCUMENT, |text| {
            let mut pending = read_pending(text)?;
            let operations: Vec<_> = changes.iter().map(hermes_notes::Operation::from).collect();
            let same =
                pending.writes.iter().find(|write| write.target == target.name() && write.operations == operations);
            if let Some(same) = same {
                return Ok((None, Some(same.id)));
            }
            let Some(id) = pending.push(clock::now(), &self.session, target.name(), changes) else {
                return Ok((None, None));
            };
            Ok((Some(json!(pending).to_string()), Some(id)))
        })
    }

    /// Queues what would make a document tidy, so that the user sees it before it applies.
    fn propose_tidying(&self, target: Target) -> Result<(), Error> {
        let Some(document) = documents::read(target.document())? else { return Ok(()) };
        let notes = Notes::parse(&document.content);
        let changes = tidy(&notes, &day(clock::now())).changes();
        // A mark that does not fit would be refused when the user approves it.
        let rules = Rules { limit: self.config.limit(target), day: None };
        if changes.is_empty() || notes.apply_all(&changes, &rules).is_err() {
            return Ok(());
        }
        if let Some(id) = self.queue(target, &changes)? {
            log::info(format!("tidying of {} waits for approval as number {id}", target.document()));
        }
        Ok(())
    }
}

hermes_plugin::export!(Builtin: MemoryProvider, MemoryEvents, MemoryUpkeep, Tools);

fn read_pending(text: &str) -> Result<Pending, Error> {
    if text.is_empty() {
        return Ok(Pending::default());
    }
    serde_json::from_str(text).map_err(|error| {
        // Replacing it would lose writes that the user has not seen.
        Error::failed(format!("the list of pending writes is damaged ({error}); nothing was written"))
    })
}

/// Changes a document, and goes on while other writers are faster.
fn update<T>(name: &str, mut change: impl FnMut(&str) -> Result<(Option<String>, T), Error>) -> Result<T, Error> {
    let mut left = ATTEMPTS;
    loop {
        left -= 1;
        match documents::update(name, &mut change) {
            Err(error) if error.kind == ErrorKind::Conflict && error.code.is_empty() && left > 0 => {}
            outcome => return outcome,
        }
    }
}

fn block(target: Target, notes: &Notes, limit: usize) -> Option<String> {
    let (title, usage) = (title(target), usage(notes.chars(), limit));
    (!notes.entries().is_empty()).then(|| format!("{title} [{usage}]\n\n{}", notes.text()))
}

/// What the model should do about a document that is nearly full.
fn advice(target: Target, chars: usize, limit: usize) -> Option<Value> {
    let percent = percent(chars, limit);
    (chars * 5 > limit * 4).then(|| {
        json!(format!(
            "{} is {percent}% full: merge entries that belong together, and shorten or remove old ones, in one call with \
             `operations`",
            target.name()
        ))
    })
}

#[cfg(test)]
mod tests;
