//! Memory of people across sessions: what each peer said, a card and facts about them, and answers to questions about them. It is kept
//! on a Honcho server, or in a database of the plugin's own.
//!
//! `recall` reads what is known, which takes one request; the dialectic, which takes seconds, is asked in `prefetch`, for the turn
//! after. `sync_turn` stores turns under names of their own, so that a turn that is delivered again is stored once.

mod client;
mod config;
mod dialectic;
mod local;
mod names;
mod places;
mod server;
mod store;
#[cfg(test)]
mod tests;
mod tools;

use hermes_guest_backend::{cut, for_turn, pieces, without_fence};
use hermes_plugin::memory_extras::{Action, Write};
use hermes_plugin::memory_provider::{Query, Recollection, Turn};
use hermes_plugin::{
    Error, Instance, MemoryMirror, MemoryPrefetch, MemoryProvider, MemoryRewind, MemoryUpkeep, Progress, Setup, llm,
    log,
};

use config::{Config, InjectionFrequency, Mode, RecallMode};
use dialectic::{Cadence, limited};
use local::Local;
use names::Place;
use server::Server;
use store::{Known, Pair, Said, Store};

/// Bytes of a message that are stored; the rest is left out.
const MESSAGE: usize = 2 << 20;
/// Stands before every piece of a message but the first.
const CONTINUED: &str = "[continued] ";
/// Bytes of a text that is recalled.
const RECALLED: usize = 8_000;
/// Bytes of a message that are searched for.
const ASKED: usize = 8_000;
/// Recollections that the host takes.
const RECOLLECTIONS: usize = 200;

pub(crate) struct Honcho {
    config: Config,
    place: Place,
    conversation: String,
    store: Box<dyn Store>,
    /// The turn in which what is known was recalled.
    recalled: Option<u32>,
    dialectic: Cadence,
}

impl Instance for Honcho {
    type Config = Config;

    fn check(config: &Config) -> Result<(), Error> {
        config.check()
    }

    fn new(setup: Setup<Config>) -> Result<Self, Error> {
        let Setup { config, session, .. } = setup;
        let place = Place::of(&config, &session);
        // Without a database, a server still serves this session.
        let place = places::keep(&session.id, &place).or_else(|error| match config.mode {
            Mode::Server => {
                log::info(format!("the session's name on the server is not kept: {error}"));
                Ok(place)
            }
            Mode::Local => Err(error),
        })?;
        let store: Box<dyn Store> = match config.mode {
            Mode::Server => Box::new(Server::new(&config, names::workspace(&config, &session))),
            Mode::Local => Box::new(Local::new(config.observes().1.others)?),
        };
        Ok(Self { config, place, conversation: session.id, store, recalled: None, dialectic: Cadence::default() })
    }
}

impl Honcho {
    /// Whose knowledge about a peer counts: the agent's, if it observes others.
    fn pair(&self, observed: &str) -> Pair {
        let observer = if self.config.observes().1.others { self.place.ai.as_str() } else { observed };
        Pair { observer: observer.to_owned(), observed: observed.to_owned() }
    }

    /// The peer who wrote a message.
    fn author(&self, query: &Query) -> String {
        match &query.author {
            Some(author) => names::user(&self.config, Some(author)),
            None => self.place.user.clone(),
        }
    }

    fn budget(&self, query: &Query) -> u32 {
        query.budget.min(self.config.context_tokens.unwrap_or(u32::MAX))
    }

    /// The place of a turn. Other conversations stored their place when they began.
    fn place_of(&self, conversation: &str) -> Result<Place, Error> {
        if conversation == self.conversation {
            return Ok(self.place.clone());
        }
        let kept = places::of(conversation)?;
        // Its own session is the only one that cannot be wrong.
        Ok(kept.unwrap_or_else(|| Place { session: names::identity(conversation), ..self.place.clone() }))
    }
}

impl MemoryProvider for Honcho {
    fn recall(&mut self, query: &Query) -> Result<Vec<Recollection>, Error> {
        let is_first_only = self.config.injection_frequency == InjectionFrequency::FirstTurn;
        if self.config.recall_mode == RecallMode::Tools || is_trivial(&query.text) || (is_first_only && query.turn > 1)
        {
            return Ok(Vec::new());
        }
        let every = self.config.context_cadence;
        // The memories of an earlier recall are still part of the conversation.
        if self.recalled.is_some_and(|recalled| query.turn > recalled && query.turn - recalled < every) {
            return Ok(Vec::new());
        }
        let pair = self.pair(&self.author(query));
        let tokens = self.budget(query);
        let session = self.place.session.clone();
        let known = self.store.known(&pair, &session, cut(&without_fence(&query.text), ASKED), tokens)?;
        self.recalled = Some(query.turn);
        Ok(recollections(&pair.observed, known, tokens))
    }

    fn sync_turn(&mut self, turn: &Turn) -> Result<(), Error> {
        if !self.config.save_messages {
            return Ok(());
        }
        let place = self.place_of(&turn.session_id)?;
        let user = turn.author.as_ref().map_or(place.user, |author| names::user(&self.config, Some(author)));
        let mut messages = Vec::new();
        for (peer, text) in [(&user, &turn.user), (&place.ai, &turn.assistant)] {
            let text = without_fence(cut(text, MESSAGE));
            if !text.is_empty() {
                let of_peer = pieces(&text, self.config.message_max_chars, CONTINUED);
                messages.extend(of_peer.into_iter().map(|piece| (peer.clone(), piece)));
            }
        }
        if messages.is_empty() {
            return Ok(());
        }
        let said = Said {
            session: place.session,
            user,
            ai: place.ai,
            conversation: turn.session_id.clone(),
            first: turn.messages.first,
            ended_at: turn.ended_at,
            messages,
        };
        self.store.store(&said).map_err(for_turn)
    }
}

impl MemoryPrefetch for Honcho {
    fn prefetch(&mut self, query: &Query) -> Result<Vec<Recollection>, Error> {
        // Before the first message there is no text: then the question is about the person.
        let is_beginning = query.turn == 0;
        if self.config.recall_mode == RecallMode::Tools || (is_trivial(&query.text) && !is_beginning) {
            return Ok(Vec::new());
        }
        let due = self.dialectic.is_due(query.turn, self.config.dialectic_cadence);
        if !due {
            return Ok(Vec::new());
        }
        let pair = self.pair(&self.author(query));
        let session = self.place.session.clone();
        let message = without_fence(cut(&query.text, ASKED));
        let answered = dialectic::ask(self.store.as_mut(), &self.config, &pair, &session, &message);
        self.dialectic.asked(query.turn, matches!(answered, Ok(Some(_))));
        let mut recalled = Vec::new();
        match answered {
            Ok(Some(answer)) => {
                recalled.push(Recollection::new("dialectic", format!("About {}: {answer}", pair.observed)));
            }
            Ok(None) => {}
            // Without a model, cards and facts still work.
            Err(error) if error.code == "no-model" => {}
            Err(error) => return Err(error),
        }
        if self.config.observes().1.me {
            let ai = self.place.ai.clone();
            let own = Pair { observer: ai.clone(), observed: ai };
            let tokens = self.budget(query) / 4;
            match self.store.known(&own, &session, &message, tokens) {
                Ok(known) => {
                    let known = Known { summary: String::new(), ..known };
                    recalled.extend(recollections(&own.observed, known, tokens));
                }
                Err(error) => log::info(format!("what is known about the agent is not recalled: {error}")),
            }
        }
        Ok(recalled)
    }
}

impl MemoryMirror for Honcho {
    /// Notes about the user become conclusions, so that they count in what is known about them.
    fn written(&mut self, write: &Write) -> Result<(), Error> {
        let is_new = matches!(write.action, Action::Added | Action::Replaced);
        if write.target != "user" || !is_new || write.text.trim().is_empty() || !self.config.save_messages {
            return Ok(());
        }
        let place = self.place_of(&write.session_id)?;
        let pair = self.pair(&place.user);
        self.store.conclude(&pair, &place.session, &limited(write.text.trim(), 10_000)).map(|_| ())
    }
}

impl MemoryRewind for Honcho {
    fn rewound(&mut self, conversation: &str, first: u64) -> Result<(), Error> {
        let place = self.place_of(conversation)?;
        self.store.rewound(&place.session, conversation, first)
    }
}

impl MemoryUpkeep for Honcho {
    fn upkeep(&mut self) -> Result<Progress, Error> {
        self.store.upkeep()
    }
}

hermes_plugin::export!(Honcho: MemoryProvider, MemoryPrefetch, MemoryMirror, MemoryRewind, MemoryUpkeep, Tools);

/// Whether a message asks nothing that a memory could help with.
fn is_trivial(text: &str) -> bool {
    const WORDS: [&str; 24] = [
        "ok",
        "okay",
        "k",
        "yes",
        "no",
        "y",
        "n",
        "yep",
        "nope",
        "sure",
        "thanks",
        "thank you",
        "thx",
        "ty",
        "great",
        "good",
        "nice",
        "cool",
        "done",
        "go on",
        "continue",
        "go ahead",
        "got it",
        "perfect",
    ];
    let text = text.trim();
    if text.is_empty() || text.starts_with('/') {
        return true;
    }
    let words = text.trim_end_matches(['.', '!', ' ']).to_lowercase();
    WORDS.contains(&words.as_str())
}

/// Each fact has a key of its own, so that the host shows it once while the model still sees it.
fn recollections(peer: &str, known: Known, tokens: u32) -> Vec<Recollection> {
    let mut left = tokens;
    let mut recalled: Vec<Recollection> = Vec::new();
    let mut add = |key: String, text: String| {
        let text = cut(&text, RECALLED).to_owned();
        let needs = llm::count_tokens(&text);
        let is_new = !recalled.iter().any(|known| known.key == key);
        if needs <= left && is_new && recalled.len() < RECOLLECTIONS {
            left -= needs;
            recalled.push(Recollection::new(key, text));
        }
    };
    if !known.card.is_empty() {
        add(format!("card:{peer}"), format!("Card of {peer}:\n- {}", known.card.join("\n- ")));
    }
    for fact in known.facts {
        add(format!("fact:{peer}:{:016x}", names::hash(&fact)), fact);
    }
    if !known.summary.trim().is_empty() {
        add("summary".to_owned(), format!("Summary of earlier parts of this conversation: {}", known.summary.trim()));
    }
    recalled
}
