//! Checks of plans over generated conversations: each plan against the rules, then whole conversations with restarts,
//! rewinds and other disturbances.

use std::collections::HashMap;
use std::sync::Arc;

use hermes_conversation::{Conversation, Refusal, Summary, View, plan};
use hermes_engine_trials::sessions::{self, Held};
use hermes_engine_trials::verify::{self, Trial};
use hermes_plugin_host::{Catalog, Moment, Outcome, Plugins, Progress, QUIETLY, Selection, Timing};
use hermes_runtime::Runtime;
use tokio::runtime::Runtime as Tokio;

use crate::bench::{CallFailure, Session, Setup, TestBench};
use crate::conversation::{TestHistory, history, script};
use crate::engine::{STEPS, pressure, request};
use crate::error::ConformanceError;
use crate::report::{Checks, Fail, Verdict, counted};
use crate::rights::Rights;
use crate::settings::Settings;

const GROUP: &str = "plans";
/// The windows of the conversations in tokens, used in turn: small, so that folding is necessary.
const WINDOWS: [u32; 3] = [2_000, 4_000, 12_000];

/// Counts over all conversations.
#[derive(Default)]
struct Counts {
    conversations: u64,
    /// How often the window was full.
    needed: u64,
    /// How often the window was full, and a plan made room.
    relieved: u64,
    plans: u64,
    adopted: u64,
}

/// Checks that every plan keeps the rules, and that plans are made when the window is full.
pub(crate) fn check(
    here: &Tokio,
    bench: &TestBench<'_>,
    settings: &Settings,
    checks: &mut Checks,
) -> Result<(), ConformanceError> {
    let mut counts = Counts::default();
    let mut broken = None;
    for at in 0..settings.conversations {
        let seed = settings.seed.wrapping_add(at);
        if let Err(why) = here.block_on(check_conversation(bench, seed, &mut counts))? {
            broken = Some(Fail::of_seed(seed, why));
            break;
        }
    }
    let fix = "name every message once and in order, or cover it by a summary; keep calls with their results, the last \
               user message as it was said, and a summary's text and cover under its key";
    let detail = format!(
        "{} plans over {} conversations, {} of them views since",
        counts.plans, counts.conversations, counts.adopted
    );
    let failed = broken.is_some();
    checks.add(GROUP, "keep the rules that the host checks", fix, broken.map_or(Ok(detail), Err));
    let fix = "advise `now` and propose a plan when the window is full, at the latest at the moment `overflow`";
    let verdict: Verdict = if counts.adopted > 0 || counts.needed == 0 {
        Ok(format!("{} of {} times that the window was full", counts.relieved, counts.needed))
    } else if failed {
        return Ok(());
    } else {
        Err(format!("the window was full {} times, and no plan made room", counts.needed).into())
    };
    checks.add(GROUP, "make room in a full window", fix, verdict);
    Ok(())
}

/// Plays a growing conversation. The inner error says which rule was broken.
async fn check_conversation(
    bench: &TestBench<'_>,
    seed: u64,
    counts: &mut Counts,
) -> Result<Result<(), String>, ConformanceError> {
    let history = history(Conversation::default());
    let rights = if seed.is_multiple_of(2) { Rights::Granted } else { Rights::NoModel };
    let setup = Setup { rights, history: Arc::clone(&history), ..bench.setup() };
    let session = bench.open(&setup)?;
    let mut growing = GrowingConversation {
        session,
        history,
        view: View::default(),
        summaries: HashMap::new(),
        window: WINDOWS[(seed % WINDOWS.len() as u64) as usize],
    };
    counts.conversations += 1;
    for (step, draft) in script(seed).into_iter().enumerate() {
        let done = match draft {
            Some(draft) => {
                growing.history.push(draft);
                Ok(())
            }
            None => growing.request(counts).await,
        };
        if let Err(why) = done {
            return Ok(Err(format!("step {step}: {why}")));
        }
    }
    Ok(Ok(()))
}

/// A conversation and its current view.
struct GrowingConversation<'s> {
    session: Session<'s>,
    history: Arc<TestHistory>,
    view: View,
    summaries: HashMap<String, Summary>,
    window: u32,
}

impl GrowingConversation<'_> {
    async fn request(&mut self, counts: &mut Counts) -> Result<(), String> {
        let conversation = self.history.copy();
        let tokens = conversation.view_tokens(&self.view);
        let limit = self.window / 10 * 8;
        let is_full = tokens > limit;
        counts.needed += u64::from(is_full);
        let moment = if is_full { Moment::Overflow } else { Moment::MidTurn };
        let pressure = pressure(moment, tokens, self.window, !is_full);
        let instance = &self.session.instance;
        let advice =
            self.session.call("assess", instance.assess(&pressure)).await.map_err(|failure| failure.to_string())?;
        let request = request(&conversation, &self.view, pressure);
        if advice.prepare {
            for _ in 0..STEPS {
                match self.session.call("prepare", instance.prepare(&request)).await {
                    Ok(Progress::More) => {}
                    // Without a model, an error is allowed.
                    Ok(Progress::Done) | Err(CallFailure::Returned(_) | CallFailure::Down(_)) => break,
                    Err(crash) => return Err(crash.to_string()),
                }
            }
        }
        if advice.propose == Timing::NotNow && !is_full {
            return Ok(());
        }
        let proposed = self.session.call("propose", instance.propose(&request)).await;
        let Some(plan) = proposed.map_err(|failure| failure.to_string())? else { return Ok(()) };
        counts.plans += 1;
        let ground = plan::ReferenceState {
            conversation: &conversation,
            view: &self.view,
            summaries: &self.summaries,
            limit: limit.max(tokens),
            must_shrink: false,
        };
        let outcome = match plan::verify(&plan, &ground) {
            Ok(view) => {
                let is_smaller = conversation.view_tokens(&view) < tokens;
                counts.adopted += u64::from(is_smaller);
                counts.relieved += u64::from(is_smaller && is_full);
                self.adopt(view);
                Outcome::Adopted
            }
            // Perhaps no plan is small enough; the host then uses its fallback plan.
            Err(refusal @ (Refusal::TooLarge { .. } | Refusal::NotSmaller { .. })) => Outcome::Refused(refusal),
            Err(refusal) => return Err(format!("the host refuses the plan: {refusal} (`{}`)", refusal.code())),
        };
        for _ in 0..2 {
            let answer = self.session.call("settled", self.session.instance.settled(&outcome)).await;
            answer.map_err(|failure| failure.to_string())?;
        }
        Ok(())
    }

    fn adopt(&mut self, view: View) {
        for summary in view.summaries() {
            self.summaries.entry(summary.key.clone()).or_insert_with(|| summary.clone());
        }
        self.history.keep_summaries(&view);
        self.view = view;
    }
}

/// Runs whole conversations in the host's own compaction, with restarts, kills, rewinds, branches and model changes.
pub(crate) fn losslessness(
    runtime: &Runtime,
    bench: &TestBench<'_>,
    settings: &Settings,
    checks: &mut Checks,
) -> Result<(), ConformanceError> {
    let fix =
        "what an engine keeps by message id must be compared with `observe`; the seed makes the conversation again";
    let verdict = match selected(runtime, bench) {
        Ok(plugins) => {
            let trial = Trial {
                plugins: &plugins,
                other: None,
                seed: settings.seed,
                conversations: settings.conversations,
                turns: settings.turns,
                jobs: settings.jobs,
                trace: false,
                scratch: bench.folders.path(),
            };
            match verify::verify(&trial, &|_| ()).map_err(ConformanceError::Surroundings)? {
                proof if proof.failed == 0 => {
                    let count = |what| proof.counts.get(what).copied().unwrap_or_default();
                    Ok(format!(
                        "{} conversations, {} requests, {} new views",
                        count("conversations"),
                        count("requests"),
                        count("publications")
                    ))
                }
                proof => Err(proof.failures.first().map_or_else(
                    || format!("{} conversations failed", proof.failed).into(),
                    |first| {
                        let why = format!(
                            "{} of {} conversations failed; the first with {} turns, event {}: {}",
                            proof.failed, settings.conversations, first.turns, first.event, first.why
                        );
                        Fail::of_seed(first.seed, why)
                    },
                )),
            }
        }
        Err(why) => Err(why.into()),
    };
    checks.add(GROUP, "lose nothing, whatever happens to a conversation", fix, verdict);
    Ok(())
}

/// Holds whole sessions with the host's own compaction. In none of them may the host refuse a plan or stop calling the engine.
pub(crate) fn sessions(
    runtime: &Runtime,
    bench: &TestBench<'_>,
    checks: &mut Checks,
    progress: &(dyn Fn(&str) + Sync),
) {
    let fix = "fit a plan into the room that `pressure.extra` gives under `room`: keep fewer turns, shorten long messages, or \
               propose nothing; the error in `settled(refused)` has the tokens as `needed` and `room`";
    let next = |window: u32| progress(&format!("sessions in a window of {window} tokens"));
    let held = selected(runtime, bench).and_then(|plugins| sessions::hold(&plugins, bench.folders.path(), &next));
    let verdict = held.map_err(Fail::from).and_then(|held| match held.iter().find(|held| !is_well(held)) {
        Some(first) => Err(missed(first, &held).into()),
        None => Ok(format!(
            "{} sessions, {} new views, {} by the host's rule",
            held.len(),
            held.iter().map(|held| held.views).sum::<usize>(),
            held.iter().map(|held| held.by_rule).sum::<usize>()
        )),
    });
    checks.add(GROUP, "fit in whole sessions, in windows of 8,000 to 200,000 tokens", fix, verdict);
}

fn is_well(held: &Held) -> bool {
    held.refused.is_empty() && held.failures == 0 && !held.is_off
}

/// What went wrong in the first session, and in how many.
fn missed(first: &Held, all: &[Held]) -> String {
    let what = match (first.refused.first(), first.failures) {
        (Some(why), _) => format!("the host refuses {}, the first because {why}", counted(first.refused.len(), "plan")),
        (None, failures) => format!("{} failed", counted(usize::try_from(failures).unwrap_or(usize::MAX), "call")),
    };
    let end = if first.is_off { ", and no longer calls the engine" } else { "" };
    format!(
        "{} of {} sessions; in a window of {} tokens with {} turns of {}: {what}{end}",
        all.iter().filter(|held| !is_well(held)).count(),
        all.len(),
        first.window,
        first.turns,
        first.turn_tokens
    )
}

/// Selects only this engine, as a session would.
fn selected(runtime: &Runtime, bench: &TestBench<'_>) -> Result<Plugins, String> {
    let subject = bench.subject;
    let name = subject.manifest.name.clone();
    let config = serde_json::from_str(&bench.config).map_err(|error| error.to_string())?;
    let selection = Selection { entries: HashMap::from([(name.clone(), config)]), ..Selection::only(&name) };
    let catalog = Catalog::alone(subject.manifest.clone(), subject.code.clone());
    Plugins::select(runtime, &catalog, &selection, QUIETLY).map_err(|error| error.to_string())
}
