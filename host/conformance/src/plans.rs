//! Plans over generated conversations: judged one by one against the rules, then in whole conversations with everything that
//! may happen to one.

use std::collections::HashMap;
use std::sync::Arc;

use hermes_conversation::{Refusal, Summary, View, plan};
use hermes_lab::verify::{self, Trial};
use hermes_plugin_host::{Catalog, Moment, Outcome, Plugins, Progress, QUIETLY, Selection, Timing};
use hermes_runtime::Runtime;
use tokio::runtime::Runtime as Tokio;

use crate::conversation::{Spoken, script};
use crate::engine::{STEPS, pressure, request};
use crate::error::ConformanceError;
use crate::exam::Settings;
use crate::report::{Checks, Fail, Verdict};
use crate::rights::Rights;
use crate::stand::{Ill, Scene, Stand, Worker};

const GROUP: &str = "plans";
/// Windows of the conversations, in turn: small, so that there is need to fold.
const WINDOWS: [u32; 3] = [2_000, 4_000, 12_000];

/// What was seen of plans.
#[derive(Default)]
struct Seen {
    conversations: u64,
    /// The window was full.
    needed: u64,
    plans: u64,
    adopted: u64,
}

/// Every plan keeps the rules, and there are some.
pub(crate) fn check(
    here: &Tokio,
    stand: &Stand<'_>,
    settings: &Settings,
    checks: &mut Checks,
) -> Result<(), ConformanceError> {
    let mut seen = Seen::default();
    let mut broken = None;
    for at in 0..settings.conversations {
        let seed = settings.seed.wrapping_add(at);
        if let Err(why) = here.block_on(one(stand, seed, &mut seen))? {
            broken = Some(Fail::of_seed(seed, why));
            break;
        }
    }
    let fix = "name every message once and in order, or cover it by a summary; keep calls with their results, the last \
               user message as it was said, and a summary's text and cover under its key";
    let told =
        format!("{} plans over {} conversations, {} of them views since", seen.plans, seen.conversations, seen.adopted);
    let failed = broken.is_some();
    checks.add(GROUP, "keep the rules that the host checks", fix, broken.map_or(Ok(told), Err));
    let fix = "advise `now` and propose a plan when the window is full, at the latest at the moment `overflow`";
    let verdict: Verdict = if seen.adopted > 0 || seen.needed == 0 {
        Ok(format!("{} times of {} that the window was full", seen.adopted, seen.needed))
    } else if failed {
        return Ok(());
    } else {
        Err(format!("the window was full {} times, and no plan made room", seen.needed).into())
    };
    checks.add(GROUP, "make room in a full window", fix, verdict);
    Ok(())
}

/// A conversation as it grows. The answer says which rule was broken.
async fn one(stand: &Stand<'_>, seed: u64, seen: &mut Seen) -> Result<Result<(), String>, ConformanceError> {
    let spoken = Arc::new(Spoken::default());
    let rights = if seed.is_multiple_of(2) { Rights::Granted } else { Rights::ModelAway };
    let scene = Scene { rights, history: Arc::clone(&spoken), ..stand.scene() };
    let worker = stand.put_on(&scene)?;
    let mut desk = Desk {
        worker,
        spoken,
        view: View::default(),
        summaries: HashMap::new(),
        window: WINDOWS[(seed % WINDOWS.len() as u64) as usize],
    };
    seen.conversations += 1;
    for (step, said) in script(seed).into_iter().enumerate() {
        let done = match said {
            Some(draft) => {
                desk.spoken.say(draft);
                Ok(())
            }
            None => desk.request(seen).await,
        };
        if let Err(why) = done {
            return Ok(Err(format!("step {step}: {why}")));
        }
    }
    Ok(Ok(()))
}

/// A conversation with the view in force.
struct Desk<'s> {
    worker: Worker<'s>,
    spoken: Arc<Spoken>,
    view: View,
    summaries: HashMap<String, Summary>,
    window: u32,
}

impl Desk<'_> {
    async fn request(&mut self, seen: &mut Seen) -> Result<(), String> {
        let conversation = self.spoken.conversation();
        let tokens = conversation.view_tokens(&self.view);
        let limit = self.window / 10 * 8;
        let is_full = tokens > limit;
        seen.needed += u64::from(is_full);
        let moment = if is_full { Moment::Overflow } else { Moment::MidTurn };
        let pressure = pressure(moment, tokens, self.window, !is_full);
        let instance = &self.worker.instance;
        let advice = self.worker.ask("assess", instance.assess(&pressure)).await.map_err(|ill| ill.to_string())?;
        let request = request(&conversation, &self.view, pressure);
        if advice.prepare {
            for _ in 0..STEPS {
                match self.worker.ask("prepare", instance.prepare(&request)).await {
                    Ok(Progress::More) => {}
                    // Without a model an error is as good an answer.
                    Ok(Progress::Done) | Err(Ill::Answered(_)) => break,
                    Err(died) => return Err(died.to_string()),
                }
            }
        }
        if advice.propose == Timing::NotNow && !is_full {
            return Ok(());
        }
        let proposed = self.worker.ask("propose", instance.propose(&request)).await;
        let Some(plan) = proposed.map_err(|ill| ill.to_string())? else { return Ok(()) };
        seen.plans += 1;
        let ground = plan::Ground {
            conversation: &conversation,
            view: &self.view,
            summaries: &self.summaries,
            limit: limit.max(tokens),
            must_shrink: false,
        };
        let outcome = match plan::verify(&plan, &ground) {
            Ok(view) => {
                seen.adopted += u64::from(conversation.view_tokens(&view) < tokens);
                self.adopt(view);
                Outcome::Adopted
            }
            // It may be that no plan is small enough; the host has its last resort.
            Err(refusal @ (Refusal::TooLarge { .. } | Refusal::NotSmaller { .. })) => Outcome::Refused(refusal),
            Err(refusal) => return Err(format!("the host refuses the plan: {refusal} (`{}`)", refusal.code())),
        };
        for _ in 0..2 {
            let told = self.worker.ask("settled", self.worker.instance.settled(&outcome)).await;
            told.map_err(|ill| ill.to_string())?;
        }
        Ok(())
    }

    fn adopt(&mut self, view: View) {
        for summary in view.summaries() {
            self.summaries.entry(summary.key.clone()).or_insert_with(|| summary.clone());
        }
        self.spoken.show(&view);
        self.view = view;
    }
}

/// Whole conversations in the host's own compaction, with restarts, kills, rewinds, branches and other models.
pub(crate) fn losslessness(
    runtime: &Runtime,
    stand: &Stand<'_>,
    settings: &Settings,
    checks: &mut Checks,
) -> Result<(), ConformanceError> {
    let fix =
        "what an engine keeps by message id must be compared with `observe`; the seed makes the conversation again";
    let verdict = match selected(runtime, stand) {
        Ok(plugins) => {
            let trial = Trial {
                plugins: &plugins,
                other: None,
                seed: settings.seed,
                conversations: settings.conversations,
                turns: settings.turns,
                jobs: settings.jobs,
                scratch: stand.folders.path(),
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

/// The engine alone, as a session would have it.
fn selected(runtime: &Runtime, stand: &Stand<'_>) -> Result<Plugins, String> {
    let subject = stand.subject;
    let name = subject.manifest.name.clone();
    let config = serde_json::from_str(&stand.config).map_err(|error| error.to_string())?;
    let selection = Selection { entries: HashMap::from([(name.clone(), config)]), ..Selection::only(&name) };
    let catalog = Catalog::alone(subject.manifest.clone(), subject.code.clone());
    Plugins::select(runtime, &catalog, &selection, QUIETLY).map_err(|error| error.to_string())
}
