//! Whatever a model once said, the next requests are valid for every provider: odd replies go through the assembly of their wire
//! format into a log, and the log through each wire format into requests, which are held against the rules of the providers.
#![allow(clippy::unwrap_used)]

mod rules;
mod said;

use std::cell::RefCell;
use std::fs::File;
use std::io::Write as _;

use hermes_conversation::part::Reader;
use hermes_conversation::render::Rendering;
use hermes_conversation::{Conversation, Draft, Message, MessageId, Shown, View, closing, validity};
use hermes_models::invariants::replies;
use hermes_models::{ApiMode, Breakpoints, Dialect, Prefix, Request, Style, System, ToolChoice, body};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::{Value, json};

use self::rules::{Ids, Rules};
use self::said::Round;
use super::{cut, is_empty, message_of, word_silent_refusal};

/// How many replies are made; `cargo xtask verify-history` sets it.
const REPLIES: &str = "HERMES_HISTORY_REPLIES";
/// A file that gets some of the requests, a line of JSON each, for a check with the types of the official SDKs.
const BODIES: &str = "HERMES_HISTORY_BODIES";
/// Odd replies of one conversation.
const ODD: usize = 8;
/// Requests behind each of them.
const BEHIND: usize = 5;
/// Of so many conversations, the last requests of one are written to the file.
const WRITTEN: u64 = 25;

const TOOLS: &str = r#"[{"type":"function","function":{"name":"write_file","description":"","parameters":{"type":"object","properties":{}}}}]"#;

/// A provider: where it is, what it speaks, and what it takes.
struct Place {
    provider: &'static str,
    url: &'static str,
    mode: ApiMode,
    rules: Rules,
}

impl Place {
    fn style(&self) -> Style {
        Style::of_route(self.mode, self.provider, &self.url.parse().unwrap(), "m")
    }

    fn model(&self) -> Reader<'static> {
        Reader { provider: self.provider, model: "m", api_mode: self.mode.as_str() }
    }
}

fn places() -> Vec<Place> {
    let chat = |provider, url, rules| Place { provider, url, mode: ApiMode::ChatCompletions, rules };
    let messages = |provider, url, rules| Place { provider, url, mode: ApiMode::AnthropicMessages, rules };
    let any = Rules { ids: Ids::Any, reasons: false };
    let reasons = Rules { reasons: true, ..any };
    vec![
        chat("custom", "http://127.0.0.1:1/v1", any),
        chat("openai", "https://api.openai.com/v1", Rules { ids: Ids::AtMost(40), ..any }),
        chat("mistral", "https://api.mistral.ai/v1", Rules { ids: Ids::Nine, ..any }),
        chat("openrouter", "https://openrouter.ai/api/v1", any),
        chat("deepseek", "https://api.deepseek.com/v1", reasons),
        chat("gemini", "https://generativelanguage.googleapis.com/v1beta/openai", any),
        messages("anthropic", "https://api.anthropic.com", Rules { ids: Ids::Plain, ..any }),
        messages("kimi", "https://api.moonshot.ai/anthropic", Rules { ids: Ids::Plain, ..reasons }),
        Place {
            provider: "openai",
            url: "https://api.openai.com/v1",
            mode: ApiMode::Responses,
            rules: Rules { ids: Ids::AtMost(64), ..any },
        },
    ]
}

/// A conversation with a model, and the requests that continue it at each provider.
struct Session {
    log: Conversation,
    next: u64,
    rendering: Rendering,
    taken: usize,
    places: Vec<(Place, Prefix)>,
    /// Replies that were stored.
    stored: usize,
}

impl Session {
    fn new() -> Self {
        let of = |place: Place| {
            let prefix = Prefix::new(place.style(), TOOLS, System::plain("be brief")).unwrap();
            (place, prefix)
        };
        let places = places().into_iter().map(of).collect();
        Self { log: Conversation::default(), next: 1, rendering: Rendering::default(), taken: 0, places, stored: 0 }
    }

    fn push(&mut self, draft: Draft) {
        self.log.push(draft.numbered(MessageId(self.next)));
        self.next += 1;
    }

    /// The next request at each provider. The bytes that were sent stay, and a process that begins anew writes the same ones.
    fn request(&mut self) -> Vec<(&Place, Value)> {
        let new: Vec<Message> = self.log.messages()[self.taken..].to_vec();
        self.taken = self.log.messages().len();
        let shown = self.rendering.follow(&new);
        let whole = Rendering::of(&self.log, &View::default()).1;
        validity::check(&whole).unwrap();
        let mut bodies = Vec::new();
        for (place, prefix) in &mut self.places {
            extend(place, prefix, &shown);
            let mut again = Prefix::new(place.style(), TOOLS, System::plain("be brief")).unwrap();
            extend(place, &mut again, &whole);
            assert_eq!(again.bytes(), prefix.bytes(), "{}: a resumed session sends other bytes", place.provider);
            let request = Request {
                model: "m",
                prefix,
                breakpoints: Breakpoints::default(),
                max_tokens: None,
                temperature: None,
                schema: None,
                tool_choice: ToolChoice::Auto,
                effort: None,
            };
            let body = body(&request, &Dialect::PLAIN).unwrap();
            bodies.push((&*place, serde_json::from_slice(&body.to_vec()).unwrap()));
        }
        bodies
    }

    /// Takes a reply as a turn does. False if the turn fails because of it.
    fn answer(&mut self, place: &Place, round: &Round) -> bool {
        let Some(mut reply) = replies::read(place.mode, place.style().echo, &round.events) else { return false };
        if is_empty(&reply) {
            return false;
        }
        word_silent_refusal(&mut reply);
        cut::marked(&mut reply);
        let (draft, calls) = message_of(reply, &place.model(), 0);
        self.push(draft);
        self.stored += 1;
        for (at, call) in calls.iter().enumerate() {
            if round.damage.loses(at) {
                continue;
            }
            let result = Draft::result(call, round.result.clone(), 0);
            if round.damage.repeats(at) {
                self.push(result.clone());
            }
            self.push(result);
        }
        if let Some(stray) = round.damage.stray() {
            let call =
                hermes_conversation::ToolCall { id: stray.into(), name: "lost".into(), arguments: String::new() };
            self.push(Draft::result(&call, "from nowhere", 0));
        }
        !calls.is_empty() && !round.damage.any()
    }

    /// Whether the next request needs a message of the user.
    fn close(&mut self, round: &Round) {
        if round.damage.is_closed() {
            for draft in closing::close(&self.log, 0) {
                self.push(draft);
            }
        }
    }
}

fn extend(place: &Place, prefix: &mut Prefix, shown: &[Shown]) {
    let style = place.style();
    let before = prefix.bytes().to_vec();
    for message in shown.iter().filter(|message| style.takes(message)) {
        let mut message = message.clone();
        message.keep_payloads_for(&place.model());
        prefix.push(&style.render(&message));
    }
    assert!(prefix.bytes().starts_with(&before), "{}: bytes that were sent change", place.provider);
}

fn check(place: &Place, body: &Value) -> Result<(), TestCaseError> {
    place.rules.check(place.mode, body).map_err(|why| {
        TestCaseError::fail(format!("{} would refuse this as {}: {why}\n{body}", place.provider, place.mode.as_str()))
    })
}

/// What was done, and where some of the requests are written.
#[derive(Default)]
struct Tally {
    conversations: u64,
    replies: usize,
    stored: usize,
    requests: usize,
    file: Option<File>,
}

impl Tally {
    /// Writes the last requests of a conversation.
    fn write(&mut self, bodies: &[(&'static str, ApiMode, Value)]) {
        let Some(file) = &mut self.file else { return };
        for (provider, mode, body) in bodies {
            let line = json!({"wire": mode.as_str(), "provider": provider, "body": body});
            writeln!(file, "{line}").unwrap();
        }
    }
}

#[test]
fn no_reply_makes_a_later_request_invalid_for_any_provider() {
    let asked = std::env::var(REPLIES).ok().map(|count| count.parse::<u32>().unwrap());
    let replies = asked.unwrap_or(400);
    // The usual run has the same replies each time; `cargo xtask verify-history` has others.
    let rng_seed = if asked.is_some() { RngSeed::Random } else { RngSeed::Fixed(36) };
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: replies.div_ceil(u32::try_from(ODD).unwrap()),
        failure_persistence: None,
        rng_seed,
        ..ProptestConfig::default()
    });
    let file = std::env::var_os(BODIES).map(|path| File::create(path).unwrap());
    let tally = RefCell::new(Tally { file, ..Tally::default() });
    let outcome = runner.run(&said::conversation(&places(), ODD), |(writer, rounds)| {
        let places = places();
        let mut session = Session::new();
        let mut needs_user = true;
        let (mut checked, mut last) = (0, Vec::new());
        let plain = vec![Round::plain(places[writer].mode); BEHIND];
        for round in rounds.iter().chain(&plain) {
            if needs_user {
                session.close(round);
                session.push(Draft::user(round.user.clone(), 0));
            }
            last.clear();
            for (place, body) in session.request() {
                check(place, &body)?;
                checked += 1;
                last.push((place.provider, place.mode, body));
            }
            needs_user = !session.answer(&places[writer], round);
        }
        let mut tally = tally.borrow_mut();
        tally.conversations += 1;
        tally.replies += rounds.len();
        tally.stored += session.stored;
        tally.requests += checked;
        if tally.conversations.is_multiple_of(WRITTEN) {
            tally.write(&last);
        }
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    let Tally { replies, stored, requests, .. } = tally.into_inner();
    println!(
        "{replies} odd replies, {stored} messages stored, {requests} requests checked at {} providers",
        places().len()
    );
    assert!(stored > replies / 2, "most replies are read: {stored} of {replies}");
}
