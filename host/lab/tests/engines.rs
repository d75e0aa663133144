//! The bundled engines over long sessions: what they fold stays within reach, whatever the model that summarises does.
//!
//! `cargo xtask plugins` stages the engines. `cargo xtask test` fails without them, `cargo test` says so.
#![allow(clippy::unwrap_used)]

use std::collections::HashSet;
use std::path::Path;

use hermes_conversation::{Conversation, Draft, Item, MessageId, Shown, Summary, ToolCall, View, render, tokens};
use hermes_lab::replay::{self, Answer, Column, Due, Remains};
use hermes_lab::session::Format;
use hermes_lab::verify::{Trial, verify};
use hermes_lab::{Contestant, Engine, Figures, Recording, StandIn, Temper, Terms};
use hermes_plugin_host::{Catalog, Plugins, QUIETLY, Selection};
use hermes_runtime::Runtime;
use serde_json::json;

/// The engine alone, or none where it is not staged.
fn plugins(engine: &str) -> Option<Plugins> {
    let staged = hermes_test_data::staged("bundled")?;
    let runtime = Runtime::new(Path::new(env!("CARGO_TARGET_TMPDIR")).join("code"));
    Some(Plugins::select(&runtime, &Catalog::vouched(&[], &staged), &Selection::only(engine), QUIETLY).unwrap())
}

/// A session.
#[derive(Debug, Clone, Copy)]
struct Shape {
    turns: u64,
    pace: Pace,
    window: u32,
    /// Of a result; a turn has two.
    lines: u64,
    /// How often a line says that a lamp needs oil.
    oil: usize,
}

/// A window of 200,000 tokens is what engines are made for; a turn takes a sixteenth of it.
const WIDE: Shape = Shape { turns: 0, pace: Pace::Hasty, window: Terms::STANDARD.window, lines: 100, oil: 4 };

/// How fast messages follow each other.
#[derive(Debug, Clone, Copy)]
enum Pace {
    /// In some stretches so fast that a session is folded twice before a summary is written.
    Hasty,
    /// So fast that a summary takes as long as two or three messages.
    Brisk,
    /// Every summary is written long before it is needed.
    Calm,
}

/// Messages of a turn: the user's, two calls with their results, a reply.
const TURN: u64 = 6;

impl Shape {
    fn terms(&self) -> Terms {
        Terms { window: self.window, ..Terms::STANDARD }
    }

    fn recording(&self) -> Recording {
        let mut now_ms = 1_767_225_600_000;
        let drafts = (1..=self.turns).flat_map(|number| self.turn(number, &mut now_ms)).collect();
        Recording { name: "long".to_owned(), format: Format::OpenAi, drafts, images: 0, notes: Vec::new() }
    }

    fn turn(&self, number: u64, now_ms: &mut u64) -> Vec<Draft> {
        // Before one turn in ten the provider's cache goes cold.
        *now_ms += if number.is_multiple_of(10) { 400_000 } else { 5_000 };
        let pace = match (self.pace, number / 5 % 3) {
            (Pace::Hasty, 0) => 1_000,
            (Pace::Hasty, 1) | (Pace::Brisk, _) => 12_000,
            _ => 40_000,
        };
        let mut then = || {
            *now_ms += pace;
            *now_ms
        };
        let mut drafts = vec![Draft::user(sentence(number), then())];
        for step in 0..2 {
            let call = ToolCall {
                id: format!("call-{number}-{step}"),
                name: "read".to_owned(),
                arguments: json!({ "path": format!("src/berth_{}/part_{step}.rs", number % 40) }).to_string(),
            };
            drafts.push(Draft::assistant("", vec![call.clone()], then()));
            let oil = "a lamp without oil is no lamp, ".repeat(self.oil);
            let line =
                |line| format!("    let lantern_{line} = berth_{number}.take({step}, {line}).expect(\"{oil}\");\n");
            drafts.push(Draft::result(&call, (0..self.lines).map(line).collect::<String>(), then()));
        }
        let reply = format!("Berth {number} is lit; lantern_{} was out.", number % self.lines);
        drafts.push(Draft::assistant(reply, Vec::new(), then()));
        drafts
    }
}

/// What the user says in a turn, in words that no other turn has: so long that the sentences of a session are more than all
/// summaries may hold.
fn sentence(turn: u64) -> String {
    format!(
        "In berth {turn} the lantern number {} must stay lit until the ferry {} has left the harbour with all of its \
         passengers, and whoever trims the wick of it writes the hour {turn}:{} into the book of the pier master.",
        turn * 7 + 3,
        turn * 13,
        turn % 60
    )
}

/// The user's message of a turn.
fn id_of(turn: u64) -> MessageId {
    MessageId((turn - 1) * TURN + 1)
}

/// Tokens that the summaries of a view may take together.
const PREFIX: u32 = 12_000;

/// How parts of a summary begin that it has once at most: a second one would be that of another summary.
const ONCE: [&str; 5] = [
    "Messages ",
    "Earlier notes:",
    "What the user said, by message number:",
    "What was done, by message number:",
    "Said by the user and not shown here:",
];

/// An engine, each view of which is judged when it is published.
struct Judged {
    engine: Engine,
    has_tools: bool,
    /// What the host puts around summaries.
    frames: Vec<String>,
    /// Of all summaries so far.
    keys: HashSet<String>,
    published: u64,
}

impl Judged {
    fn start(name: &str, plugins: &Plugins, terms: Terms, temper: Temper, home: &Path) -> Self {
        let contestant = Contestant {
            name: name.to_owned(),
            plugins,
            terms,
            stand_in: StandIn::new(terms, temper),
            home,
            session: "long".to_owned(),
            recall: false,
        };
        let engine = Engine::start(&contestant).unwrap();
        Self { engine, has_tools: name == "lossless", frames: frames(), keys: HashSet::new(), published: 0 }
    }

    fn judge(&mut self) -> Result<(), String> {
        self.published += 1;
        let view = self.engine.view();
        let size = view.summaries().map(tokens::of_summary).fold(0, u32::saturating_add);
        if size > PREFIX {
            return Err(format!("the summaries take {size} tokens"));
        }
        view.summaries().try_for_each(|summary| self.not_nested(summary))?;
        let conversation = self.engine.conversation();
        none_is_lost(&conversation, view)?;
        if self.has_tools {
            // Another turn each time.
            let turns = (conversation.messages().len() as u64).div_ceil(TURN);
            let turn = self.published * 31 % turns + 1;
            self.within_one_call(turn, &render::render(&conversation, view))?;
        }
        self.keys.extend(view.summaries().map(|summary| summary.key.clone()));
        Ok(())
    }

    fn not_nested(&self, Summary { key, content, .. }: &Summary) -> Result<(), String> {
        let foreign = self.frames.iter().chain(&self.keys).map(String::as_str).find(|mark| content.contains(mark));
        let is_twice = |mark: &&str| content.lines().filter(|line| line.starts_with(mark)).count() > 1;
        match foreign.or_else(|| ONCE.into_iter().find(is_twice)) {
            Some(mark) => Err(format!("`{key}` holds another summary, as `{mark}` tells:\n{content}")),
            None => Ok(()),
        }
    }

    /// What the user said in a turn is shown, or `expand` gives it at once. True where it had to be called.
    fn within_one_call(&self, turn: u64, shown: &[Shown]) -> Result<bool, String> {
        let sentence = sentence(turn);
        if shown.iter().any(|shown| shown.content.contains(&sentence)) {
            return Ok(false);
        }
        let answer = self.engine.call("expand", &json!({ "ref": format!("#{}", id_of(turn)) }))?;
        match answer.split_once('\n') {
            Some((_, text)) if text == sentence => Ok(true),
            _ => Err(format!("what the user said in turn {turn} is neither shown nor brought back: {answer}")),
        }
    }
}

impl Column for Judged {
    fn name(&self) -> &str {
        self.engine.name()
    }

    fn request(&mut self, due: &Due<'_>) -> Result<Answer, String> {
        let answer = self.engine.request(due)?;
        let waited = self.engine.now_ms() - due.now_ms;
        if waited > 0 {
            return Err(format!("the request waited {waited} ms for the summariser"));
        }
        if answer.context.publication.is_some() {
            self.judge()?;
        }
        Ok(answer)
    }

    fn finish(&mut self, due: &Due<'_>) -> Result<Remains, String> {
        self.engine.finish(due)
    }
}

/// Every message is shown, or a summary stands for it.
fn none_is_lost(conversation: &Conversation, view: &View) -> Result<(), String> {
    let items = conversation.items(view);
    let is_there = |id: MessageId| {
        items.iter().any(|item| match item {
            Item::Messages(range) => range.contains(id),
            Item::Excerpt(excerpt) => excerpt.id == id,
            Item::Summary(summary) => summary.covers.iter().any(|range| range.contains(id)),
        })
    };
    let lost = conversation.messages().iter().find(|message| !is_there(message.id));
    lost.map_or(Ok(()), |lost| Err(format!("message {} is neither shown nor stood for", lost.id)))
}

/// What stands before and behind the text of summaries where they are shown.
fn frames() -> Vec<String> {
    let summary =
        |key: &str| Item::Summary(Summary { key: key.to_owned(), content: "TEXT".to_owned(), covers: Vec::new() });
    let view = View { items: vec![summary("a"), summary("b")], through: None };
    let shown = render::render(&Conversation::default(), &view);
    let around = shown.iter().filter_map(|shown| shown.content.split_once("\n\nTEXT\n\n"));
    let frames: HashSet<&str> = around.flat_map(|(before, behind)| [before, behind]).collect();
    assert_eq!(frames.len(), 3, "{shown:?}");
    frames.into_iter().map(str::to_owned).collect()
}

/// A session that went through an engine, and every view of which was found good.
fn endured(name: &str, plugins: &Plugins, shape: Shape, temper: Temper, home: &Path) -> (Judged, Figures) {
    let terms = shape.terms();
    let mut judged = Judged::start(name, plugins, terms, temper, home);
    let outcome = replay::replay(&shape.recording(), &mut judged, &terms);
    let figures = outcome.figures.unwrap_or_else(|error| panic!("{name}, {temper:?}: {error}"));
    eprintln!("{name}, {temper:?}, {shape:?}: {} of {} publications prepared", figures.prepared, figures.publications);
    // A request that waited behind slow work would be given up as late, which is told to the user and counts as a failure.
    assert_eq!(outcome.notices, [""; 0], "{name}, {temper:?}");
    let Figures { effort, invalid_requests, avoidable_breaks, by_rule, over_window, .. } = figures;
    let faults = [effort.failures, effort.plans_refused].map(Option::unwrap);
    assert_eq!(faults, [0, 0], "{name}, {temper:?}: failures, refused plans");
    assert_eq!([invalid_requests, avoidable_breaks], [0, 0], "{name}, {temper:?}: {:?}", figures.first_invalid);
    assert_eq!([by_rule, over_window], [0, 0], "{name}, {temper:?}: the engine was asked in time");
    (judged, figures)
}

#[test]
fn after_fifty_publications_of_lossless_every_sentence_of_the_user_is_shown_or_one_call_away() {
    let Some(plugins) = plugins("lossless") else { return };
    let home = tempfile::tempdir().unwrap();
    let shape = Shape { turns: 300, ..WIDE };
    let (judged, figures) = endured("lossless", &plugins, shape, Temper::Sound, home.path());
    assert!(figures.publications >= 50, "{}", figures.publications);
    let shown = render::render(&judged.engine.conversation(), judged.engine.view());
    let called: Vec<u64> = (1..=shape.turns).filter(|turn| judged.within_one_call(*turn, &shown).unwrap()).collect();
    assert!((100..300).contains(&called.len()), "{} are not shown", called.len());
    for turn in called.into_iter().step_by(20) {
        let query = format!("\"{}\"", sentence(turn));
        let found = judged.engine.call("recall", &json!({ "query": query })).unwrap();
        assert!(found.contains(&format!("#{}", id_of(turn))), "{found}");
    }
}

#[test]
fn after_fifty_publications_of_the_compressor_a_summary_stands_for_all_that_is_not_shown() {
    let Some(plugins) = plugins("compressor") else { return };
    let home = tempfile::tempdir().unwrap();
    let shape = Shape { turns: 300, ..WIDE };
    let (judged, figures) = endured("compressor", &plugins, shape, Temper::Sound, home.path());
    assert!(figures.publications >= 50, "{}", figures.publications);
    let conversation = judged.engine.conversation();
    for turn in 1..=shape.turns {
        assert_eq!(conversation.get(id_of(turn)).unwrap().content, sentence(turn));
    }
    assert!(judged.keys.iter().any(|key| key.starts_with("compressor:summary:")), "a model wrote some of them");
}

const TEMPERS: [Temper; 5] = [Temper::Down, Temper::Slow, Temper::Empty, Temper::Oversized, Temper::Hostile];

fn assert_prepared(figures: &Figures, least: u64) {
    let Figures { publications, prepared, .. } = *figures;
    assert!(publications >= least, "{publications} publications");
    assert!(prepared * 100 >= publications * 99, "{prepared} of {publications} publications were prepared");
}

#[test]
fn no_temper_of_the_summariser_delays_or_loses_anything_of_lossless() {
    let Some(plugins) = plugins("lossless") else { return };
    let shape = Shape { turns: 400, ..WIDE };
    for temper in TEMPERS {
        let home = tempfile::tempdir().unwrap();
        let (judged, figures) = endured("lossless", &plugins, shape, temper, home.path());
        assert_prepared(&figures, 130);
        for message in judged.engine.conversation().messages().iter().step_by(13) {
            let read = judged.engine.read_back(message.id);
            assert_eq!(read, Ok(()), "{temper:?}: message {}", message.id);
        }
    }
}

#[test]
fn no_temper_of_the_summariser_delays_or_loses_anything_of_the_compressor() {
    let Some(plugins) = plugins("compressor") else { return };
    for temper in TEMPERS {
        let home = tempfile::tempdir().unwrap();
        let shape = Shape { turns: 330, ..WIDE };
        let (_, figures) = endured("compressor", &plugins, shape, temper, home.path());
        assert_prepared(&figures, 50);
    }
}

/// In a small window a few results are all that lies between the mark from which on work is done ahead and the one at which
/// the view is replaced, and while a model writes nothing else is done in the background.
#[test]
fn in_a_small_window_too_the_views_of_the_compressor_are_from_prepared_work() {
    let Some(plugins) = plugins("compressor") else { return };
    let small = Shape { turns: 50, ..WIDE };
    let shapes = [
        // A tenth, a fourteenth and three twentieths of the window in a turn.
        (30, Shape { window: 32_000, lines: 26, ..small }),
        (20, Shape { window: 32_000, lines: 40, oil: 0, ..small }),
        (20, Shape { window: 64_000, lines: 77, ..small }),
        (20, Shape { window: 100_000, lines: 120, ..small }),
        (10, Shape { lines: 145, ..small }),
    ];
    for (least, shape) in shapes {
        let hasty = [Temper::Sound, Temper::None].into_iter().chain(TEMPERS).map(|temper| (temper, Pace::Hasty));
        let waits = [(Temper::Sound, Pace::Brisk), (Temper::Slow, Pace::Brisk), (Temper::Slow, Pace::Calm)];
        for (temper, pace) in hasty.chain(waits) {
            let home = tempfile::tempdir().unwrap();
            let (_, figures) = endured("compressor", &plugins, Shape { pace, ..shape }, temper, home.path());
            assert_prepared(&figures, least);
        }
    }
}

#[test]
fn conversations_with_pictures_and_files_lose_none_of_them() {
    for engine in ["compressor", "lossless"] {
        let Some(plugins) = plugins(engine) else { return };
        let scratch = tempfile::tempdir().unwrap();
        let trial = Trial {
            plugins: &plugins,
            other: None,
            seed: 40,
            conversations: 30,
            turns: Some(8),
            jobs: 2,
            scratch: scratch.path(),
        };
        let proof = verify(&trial, &|_| ()).unwrap();
        assert_eq!(proof.failures, [], "{engine}");
        let count = |what: &str| proof.counts.get(what).copied().unwrap_or_default();
        assert!(count("pictures and files") > 50, "{:?}", proof.counts);
        assert!(count("publications") > 50, "{:?}", proof.counts);
        // Only the tools of this engine show single messages.
        assert!(engine != "lossless" || count("messages read back") > 10, "{:?}", proof.counts);
    }
}
