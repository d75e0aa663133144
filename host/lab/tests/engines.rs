//! The bundled engines in long sessions: folded text can be recovered, whatever fault the summariser has.
//!
//! `cargo xtask plugins` stages the engines. `cargo xtask test` fails without them, `cargo test` says so.
#![allow(clippy::unwrap_used)]

use std::collections::HashSet;
use std::path::Path;

use hermes_conversation::{Conversation, Draft, Item, MessageId, Shown, Summary, ToolCall, View, render, tokens};
use hermes_engine_trials::verify::{Trial, verify};
use hermes_lab::replay::{self, Answer, Column, Due, Remains};
use hermes_lab::{Contestant, Engine, FaultMode, Figures, Recording, StandIn, Terms};
use hermes_plugin_host::{Catalog, Plugins, QUIETLY, Selection};
use hermes_recordings::Format;
use hermes_runtime::Runtime;
use hermes_test_data::at_length;
use serde_json::json;

/// Selects only this engine; `None` if it is not staged.
fn plugins(engine: &str) -> Option<Plugins> {
    let staged = hermes_test_data::staged("bundled")?;
    let runtime = Runtime::new(Path::new(env!("CARGO_TARGET_TMPDIR")).join("code"));
    Some(Plugins::select(&runtime, &Catalog::vouched(&[], &staged), &Selection::only(engine), QUIETLY).unwrap())
}

/// The shape of a session.
#[derive(Debug, Clone, Copy)]
struct Shape {
    turns: u64,
    pace: Pace,
    window: u32,
    /// Lines of a result; a turn has two results.
    lines: u64,
    /// How often a filler sentence is repeated in a line.
    oil: usize,
}

/// Engines are designed for a window of 200,000 tokens; a turn takes a sixteenth of it.
const WIDE: Shape = Shape { turns: 0, pace: Pace::Hasty, window: Terms::STANDARD.window, lines: 100, oil: 4 };

/// How fast messages follow each other.
#[derive(Debug, Clone, Copy)]
enum Pace {
    /// In places so fast that a session is folded twice before a summary is written.
    Hasty,
    /// A summary takes as long as two or three messages.
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
        // The provider's cache goes cold before one turn in ten.
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

/// The user's message of a turn, in words that no other turn has. It is so long that the messages of a session exceed the
/// limit of all summaries.
fn sentence(turn: u64) -> String {
    format!(
        "In berth {turn} the lantern number {} must stay lit until the ferry {} has left the harbour with all of its \
         passengers, and whoever trims the wick of it writes the hour {turn}:{} into the book of the pier master.",
        turn * 7 + 3,
        turn * 13,
        turn % 60
    )
}

/// The id of the user's message of a turn.
fn id_of(turn: u64) -> MessageId {
    MessageId((turn - 1) * TURN + 1)
}

/// The most tokens of all summaries of a view together.
const PREFIX: u32 = 12_000;

/// Headings that occur at most once in a summary; a second one would belong to a nested summary.
const ONCE: [&str; 5] = [
    "Messages ",
    "Earlier notes:",
    "What the user said, by message number:",
    "What was done, by message number:",
    "Said by the user and not shown here:",
];

/// An engine whose views are checked when they are published.
struct CheckedEngine {
    engine: Engine,
    has_tools: bool,
    /// The frames that the host puts around summaries.
    frames: Vec<String>,
    /// The keys of all summaries so far.
    keys: HashSet<String>,
    published: u64,
}

impl CheckedEngine {
    fn start(name: &str, plugins: &Plugins, terms: Terms, mode: FaultMode, home: &Path) -> Self {
        let contestant = Contestant {
            name: name.to_owned(),
            plugins,
            terms,
            stand_in: StandIn::new(terms.bytes_per_token, mode),
            home,
            session: "long".to_owned(),
            recall: false,
        };
        let engine = Engine::start(&contestant).unwrap();
        Self { engine, has_tools: name == "lossless", frames: frames(), keys: HashSet::new(), published: 0 }
    }

    fn check(&mut self) -> Result<(), String> {
        self.published += 1;
        let view = self.engine.view();
        let size = view.summaries().map(tokens::of_summary).fold(0, u32::saturating_add);
        if size > PREFIX {
            return Err(format!("the summaries take {size} tokens"));
        }
        view.summaries().try_for_each(|summary| self.check_not_nested(summary))?;
        let conversation = self.engine.conversation();
        check_covered(&conversation, view)?;
        if self.has_tools {
            // Checks another turn each time.
            let turns = (conversation.messages().len() as u64).div_ceil(TURN);
            let turn = self.published * 31 % turns + 1;
            self.within_one_call(turn, &render::render(&conversation, view))?;
        }
        self.keys.extend(view.summaries().map(|summary| summary.key.clone()));
        Ok(())
    }

    fn check_not_nested(&self, Summary { key, content, .. }: &Summary) -> Result<(), String> {
        let foreign = self.frames.iter().chain(&self.keys).map(String::as_str).find(|mark| content.contains(mark));
        let is_twice = |mark: &&str| content.lines().filter(|line| line.starts_with(mark)).count() > 1;
        match foreign.or_else(|| ONCE.into_iter().find(is_twice)) {
            Some(mark) => Err(format!("`{key}` contains another summary, recognised by `{mark}`:\n{content}")),
            None => Ok(()),
        }
    }

    /// Checks that the user's message of a turn is shown or that one call of `expand` returns it. Returns true for a call.
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

impl Column for CheckedEngine {
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
            self.check()?;
        }
        Ok(answer)
    }

    fn finish(&mut self, due: &Due<'_>) -> Result<Remains, String> {
        self.engine.finish(due)
    }
}

/// Checks that every message is shown or covered by a summary.
fn check_covered(conversation: &Conversation, view: &View) -> Result<(), String> {
    let items = conversation.items(view);
    let is_covered = |id: MessageId| {
        items.iter().any(|item| match item {
            Item::Messages(range) => range.contains(id),
            Item::Excerpt(excerpt) => excerpt.id == id,
            Item::Summary(summary) => summary.covers.iter().any(|range| range.contains(id)),
        })
    };
    let lost = conversation.messages().iter().find(|message| !is_covered(message.id));
    lost.map_or(Ok(()), |lost| Err(format!("message {} is neither shown nor covered", lost.id)))
}

/// The text before and after a shown summary.
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

/// Runs a session in which every view passes the checks.
fn run_checked(name: &str, plugins: &Plugins, shape: Shape, mode: FaultMode, home: &Path) -> (CheckedEngine, Figures) {
    let terms = shape.terms();
    let mut checked = CheckedEngine::start(name, plugins, terms, mode, home);
    let outcome = replay::replay(&shape.recording(), &mut checked, &terms);
    let figures = outcome.figures.unwrap_or_else(|error| panic!("{name}, {mode:?}: {error}"));
    eprintln!("{name}, {mode:?}, {shape:?}: {} of {} publications prepared", figures.prepared, figures.publications);
    // A request that waits for slow work would be dropped as late; the user would get a notice, and it would count as failure.
    assert_eq!(outcome.notices, [""; 0], "{name}, {mode:?}");
    let Figures { effort, invalid_requests, avoidable_breaks, by_rule, over_window, .. } = figures;
    let faults = [effort.failures, effort.plans_refused].map(Option::unwrap);
    assert_eq!(faults, [0, 0], "{name}, {mode:?}: failures, refused plans");
    assert_eq!([invalid_requests, avoidable_breaks], [0, 0], "{name}, {mode:?}: {:?}", figures.first_invalid);
    assert_eq!([by_rule, over_window], [0, 0], "{name}, {mode:?}: the engine was called in time");
    (checked, figures)
}

#[test]
fn lossless_keeps_every_user_message_within_one_call_over_fifty_publications() {
    let Some(plugins) = plugins("lossless") else { return };
    let home = tempfile::tempdir().unwrap();
    let shape = Shape { turns: 300, ..WIDE };
    let (checked, figures) = run_checked("lossless", &plugins, shape, FaultMode::Sound, home.path());
    assert!(figures.publications >= 50, "{}", figures.publications);
    let shown = render::render(&checked.engine.conversation(), checked.engine.view());
    let called: Vec<u64> = (1..=shape.turns).filter(|turn| checked.within_one_call(*turn, &shown).unwrap()).collect();
    assert!((100..300).contains(&called.len()), "{} are not shown", called.len());
    for turn in called.into_iter().step_by(20) {
        let query = format!("\"{}\"", sentence(turn));
        let found = checked.engine.call("recall", &json!({ "query": query })).unwrap();
        assert!(found.contains(&format!("#{}", id_of(turn))), "{found}");
    }
}

#[test]
fn the_compressor_covers_every_folded_message_over_fifty_publications() {
    let Some(plugins) = plugins("compressor") else { return };
    let home = tempfile::tempdir().unwrap();
    let shape = Shape { turns: 300, ..WIDE };
    let (checked, figures) = run_checked("compressor", &plugins, shape, FaultMode::Sound, home.path());
    assert!(figures.publications >= 50, "{}", figures.publications);
    let conversation = checked.engine.conversation();
    for turn in 1..=shape.turns {
        assert_eq!(conversation.get(id_of(turn)).unwrap().content, sentence(turn));
    }
    assert!(
        checked.keys.iter().any(|key| key.starts_with("compressor:summary:")),
        "a model wrote some of the summaries"
    );
}

/// The figures of `tests/evidence/measurements.md`: what was written there must stay found.
#[test]
fn lossless_finds_the_needles_of_a_recorded_session_again() {
    let Some(plugins) = plugins("lossless") else { return };
    let Some(path) = hermes_test_data::recorded("data/coding-session.jsonl") else { return };
    let recording = Recording::read(&path).unwrap().remove(0);
    let home = tempfile::tempdir().unwrap();
    let terms = Terms::STANDARD;
    let contestant = Contestant {
        name: "lossless".to_owned(),
        plugins: &plugins,
        terms,
        stand_in: StandIn::new(terms.bytes_per_token, FaultMode::Sound),
        home: home.path(),
        session: "recorded".to_owned(),
        recall: true,
    };
    let outcome = replay::replay(&recording, &mut Engine::start(&contestant).unwrap(), &terms);
    let found = outcome.figures.unwrap().recovered.unwrap();
    assert_eq!((found.messages, found.whole), (996, 996), "{:?}", found.first_broken);
    assert_eq!((found.needles, found.by_phrase), (240, 240));
    assert!(found.by_words >= 180 && found.text_by_words >= 75, "by three words: {found:?}");
}

/// The usual run has the first two.
const FAULTS: [FaultMode; 5] =
    [FaultMode::Hostile, FaultMode::Down, FaultMode::Slow, FaultMode::Empty, FaultMode::Oversized];

fn faults() -> impl Iterator<Item = FaultMode> {
    FAULTS.into_iter().take(at_length(2, FAULTS.len()))
}

fn assert_prepared(figures: &Figures, least: u64) {
    let Figures { publications, prepared, .. } = *figures;
    assert!(publications >= least, "{publications} publications");
    assert!(prepared * 100 >= publications * 99, "{prepared} of {publications} publications were prepared");
}

#[test]
fn no_fault_of_the_summariser_delays_lossless_or_loses_text() {
    let Some(plugins) = plugins("lossless") else { return };
    let shape = Shape { turns: 400, ..WIDE };
    for mode in faults() {
        let home = tempfile::tempdir().unwrap();
        let (checked, figures) = run_checked("lossless", &plugins, shape, mode, home.path());
        assert_prepared(&figures, 130);
        for message in checked.engine.conversation().messages().iter().step_by(13) {
            let read = checked.engine.read_back(message.id);
            assert_eq!(read, Ok(()), "{mode:?}: message {}", message.id);
        }
    }
}

#[test]
fn no_fault_of_the_summariser_delays_the_compressor() {
    let Some(plugins) = plugins("compressor") else { return };
    for mode in faults() {
        let home = tempfile::tempdir().unwrap();
        let shape = Shape { turns: 330, ..WIDE };
        let (_, figures) = run_checked("compressor", &plugins, shape, mode, home.path());
        assert_prepared(&figures, 50);
    }
}

/// In a small window, only a few results lie between the mark at which preparation starts and the mark at which the view is
/// replaced. While a model writes, nothing else is prepared in the background.
#[test]
fn the_compressor_prepares_its_views_in_time_in_small_windows_too() {
    let Some(plugins) = plugins("compressor") else { return };
    let small = Shape { turns: 50, ..WIDE };
    let shapes = [
        // A turn takes a tenth, a fourteenth and three twentieths of the window.
        (30, Shape { window: 32_000, lines: 26, ..small }),
        (20, Shape { window: 32_000, lines: 40, oil: 0, ..small }),
        (20, Shape { window: 64_000, lines: 77, ..small }),
        (20, Shape { window: 100_000, lines: 120, ..small }),
        (10, Shape { lines: 145, ..small }),
    ];
    for (least, shape) in shapes.into_iter().take(at_length(2, shapes.len())) {
        let hasty = [FaultMode::Sound, FaultMode::None].into_iter().chain(faults()).map(|mode| (mode, Pace::Hasty));
        let waits = [(FaultMode::Sound, Pace::Brisk), (FaultMode::Slow, Pace::Brisk), (FaultMode::Slow, Pace::Calm)];
        for (mode, pace) in hasty.chain(waits) {
            let home = tempfile::tempdir().unwrap();
            let (_, figures) = run_checked("compressor", &plugins, Shape { pace, ..shape }, mode, home.path());
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
            trace: false,
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
