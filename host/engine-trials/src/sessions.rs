//! Sessions as people hold them: from small windows to large ones, with short and long turns. They show whether an engine's
//! plans fit, which the host otherwise tells its user.

use std::path::Path;
use std::sync::Arc;

use hermes_agent::compaction::{CompactionTarget as _, STRIKES, reserve};
use hermes_conversation::{Conversation, MessageId, Usage, View};
use hermes_plugin_host::{Plugins, Start, Storage};
use tokio::runtime::Runtime;

use crate::bench::{Bench, Setting};
use crate::generate::{Event, session};
use crate::{FaultMode, StandIn, Terms, runtime};

/// The windows in tokens.
pub const WINDOWS: [u32; 5] = [8_000, 12_000, 32_000, 128_000, 200_000];
/// The parts of the room for messages that a turn takes: short, middle and long ones.
const PARTS: [u32; 3] = [50, 8, 3];
/// The most tokens of a turn.
const LONGEST_TURN: u32 = 20_000;
/// The fewest turns of a session.
const TURNS: u32 = 40;
/// How often a session fills the room for messages, at least.
const FILLINGS: u32 = 3;
/// The tokens of the prompt and the tools of a usual session.
const FIXED_TOKENS: u32 = 4_500;

/// What became of an engine's plans in a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The window in tokens.
    pub window: u32,
    /// The tokens of a turn, about.
    pub turn_tokens: u32,
    /// The number of turns.
    pub turns: u32,
    /// New views by the engine.
    pub views: usize,
    /// New views that the host made by rule.
    pub by_rule: usize,
    /// Why plans were refused, in order.
    pub refused: Vec<String>,
    /// Calls that failed.
    pub failures: u64,
    /// Whether the host called the engine no longer at the end.
    pub is_off: bool,
}

/// Holds a session for each window and each length of turns. `progress` gets the window of the next one.
///
/// # Errors
///
/// Returns an error if a session itself cannot run.
pub fn hold(plugins: &Plugins, scratch: &Path, progress: &dyn Fn(u32)) -> Result<Vec<Held>, String> {
    let runtime = runtime()?;
    let mut held = Vec::new();
    for window in WINDOWS {
        progress(window);
        for part in PARTS {
            held.push(hold_one(plugins, scratch, &runtime, window, part)?);
        }
    }
    Ok(held)
}

fn hold_one(plugins: &Plugins, scratch: &Path, runtime: &Runtime, window: u32, part: u32) -> Result<Held, String> {
    let room = window.saturating_sub(reserve(window)).saturating_sub(FIXED_TOKENS);
    let turn_tokens = (room / part).min(LONGEST_TURN);
    let turns = (FILLINGS * room / turn_tokens.max(1)).max(TURNS);
    let terms = Terms { window, fixed_tokens: FIXED_TOKENS, ..Terms::STANDARD };
    // An engine has to work without a model, too.
    let mode = if part == PARTS[1] { FaultMode::Down } else { FaultMode::Sound };
    let setting = Setting {
        plugins,
        terms,
        stand_in: StandIn::new(terms.bytes_per_token, mode),
        home: scratch,
        storage: Storage::Memory(Arc::default()),
        session: format!("session-{window}-{part}"),
        start: Start::Fresh,
        conversation: Conversation::default(),
        view: View::default(),
        views: Vec::new(),
        now_ms: 0,
    };
    let mut held =
        Held { window, turn_tokens, turns, views: 0, by_rule: 0, refused: Vec::new(), failures: 0, is_off: false };
    let _inside = runtime.enter();
    let mut bench = Bench::begin(setting)?;
    let mut next_id = 1;
    for event in session(u64::from(window) + u64::from(part), turn_tokens, turns) {
        match event {
            Event::Said(draft) => {
                runtime.block_on(bench.add_message(MessageId(next_id), &draft))?;
                next_id += 1;
            }
            Event::Request { now_ms } => {
                let done = runtime.block_on(bench.make_room(now_ms))?;
                let by_rule = done.iter().filter(|compacted| compacted.by == "host").count();
                held.by_rule += by_rule;
                held.views += done.len() - by_rule;
                bench.counted(Usage { input: bench.tokens(), ..Usage::default() });
            }
            _ => {}
        }
        let plans = bench.watched.take_plans();
        held.refused.extend(plans.refused);
        held.failures += plans.failures;
    }
    held.is_off = bench.target.faults() >= STRIKES;
    runtime.block_on(bench.kill());
    Ok(held)
}
