//! `memory-provider` and `memory-events`: recall within its budget, turns that may come twice, and what outlives a restart.

use std::collections::BTreeSet;

use hermes_conversation::{MessageId, MessageRange, tokens};
use hermes_plugin_host::{Query, Recollection, Start, TurnRecord};

use crate::arguments::UNICODE;
use crate::error::ConformanceError;
use crate::lifecycle::differing;
use crate::report::{Checks, Fail, Verdict, fine};
use crate::stand::{Ill, Scene, Stand, Worker, alive};

const GROUP: &str = "memory";
/// What a turn has room for, in tokens.
const BUDGETS: [u32; 4] = [20, 200, 1_000, 4_000];

pub(crate) async fn check(stand: &Stand<'_>, checks: &mut Checks) -> Result<(), ConformanceError> {
    let scene = stand.scene();
    let worker = stand.put_on(&scene)?;
    let fix = "read only what configuration and storage say: the text is frozen for the session";
    checks.add(GROUP, "has the same text for the prompt each time", fix, prompt(&worker).await);
    let fix = "take a turn whatever is said in it";
    checks.add(GROUP, "takes in turns", fix, taken_in(&worker).await);
    let fix = "give the best first and stop at `budget`: count with `llm::count_tokens`, which needs no permission";
    checks.add(GROUP, "recalls within the budget", fix, within(&worker).await);
    let fix = "give each recollection a key that names what it says: one key with one text is shown once";
    checks.add(GROUP, "has a key of its own for each recollection", fix, keyed(&worker).await);
    let fix = "recall must change nothing: it is asked again after a failure";
    checks.add(GROUP, "recalls the same for the same question", fix, repeated(&worker).await);
    let fix = "name a turn by session and number, and take one that is known already for done";
    checks.add(GROUP, "takes a turn that comes twice once", fix, idempotent(&worker).await);
    let fix = "keep what must last in documents or sql: an instance may go at any time";
    let before = recalled(&worker, QUESTION, 1_000).await;
    drop(worker);
    let again = stand.put_on(&Scene { start: Start::Resumed, ..scene.clone() })?;
    let verdict = match (before, recalled(&again, QUESTION, 1_000).await) {
        (Ok(before), Ok(after)) => equal(&before, &after),
        (Err(ill), _) | (_, Err(ill)) => Err(ill.into()),
    };
    checks.add(GROUP, "recalls the same after a restart", fix, verdict);
    let fix = "answer an error or nothing: a question may be empty, huge or in any script";
    checks.add(GROUP, "answers strange questions and turns", fix, strange(&again).await);
    if stand.exports.memory_events {
        let fix = "read the messages of the range and answer a text, empty for nothing";
        checks.add(GROUP, "says what a summary should keep, twice the same", fix, kept(&again, &scene).await);
    }
    Ok(())
}

pub(crate) async fn exercise(worker: &Worker<'_>, events: bool) -> Result<(), Ill> {
    alive(worker.ask("system-prompt", worker.instance.system_prompt()).await)?;
    alive(sync(worker, &turn(1, "My name is Ada.", "Hello Ada.")).await)?;
    alive(recalled(worker, QUESTION, 1_000).await)?;
    if events {
        let range = MessageRange::new(MessageId(1), MessageId(4));
        alive(worker.ask("before-compact", worker.instance.before_compact(range)).await)?;
    }
    Ok(())
}

const QUESTION: &str = "When does the ferry Albatross leave, and what is my name?";
const SAID: [(&str, &str); 4] = [
    ("Remember: the ferry is called Albatross and leaves at 07:45.", "I will remember that."),
    ("My name is Ada.", "Hello Ada."),
    ("Remember: lanterns need two spoons of oil a night.", "Noted."),
    ("What is 2 + 2?", "4"),
];

fn turn(number: u32, user: &str, assistant: &str) -> TurnRecord {
    let messages = MessageRange::new(MessageId(1), MessageId(4));
    TurnRecord { number, user: user.to_owned(), assistant: assistant.to_owned(), messages }
}

async fn sync(worker: &Worker<'_>, turn: &TurnRecord) -> Result<(), Ill> {
    worker.ask("sync-turn", worker.instance.sync_turn(turn)).await
}

async fn recalled(worker: &Worker<'_>, text: &str, budget: u32) -> Result<Vec<Recollection>, Ill> {
    let query = Query { turn: SAID.len() as u32 + 1, text: text.to_owned(), budget, extra: Vec::new() };
    worker.ask("recall", worker.instance.recall(query)).await
}

async fn prompt(worker: &Worker<'_>) -> Verdict {
    let first = worker.ask("system-prompt", worker.instance.system_prompt()).await.map_err(Fail::from)?;
    let second = worker.ask("system-prompt", worker.instance.system_prompt()).await.map_err(Fail::from)?;
    if first == second { Ok(format!("{} bytes", first.len())) } else { Err(differing(&first, &second).into()) }
}

async fn taken_in(worker: &Worker<'_>) -> Verdict {
    for ((user, assistant), number) in SAID.into_iter().zip(1..) {
        sync(worker, &turn(number, user, assistant)).await.map_err(Fail::from)?;
    }
    fine()
}

async fn within(worker: &Worker<'_>) -> Verdict {
    let mut most = 0;
    for budget in BUDGETS {
        let found = recalled(worker, QUESTION, budget).await.map_err(Fail::from)?;
        let took: u32 = found.iter().map(|recollection| tokens::of_text(&recollection.text)).sum();
        if took > budget {
            return Err(format!("with room for {budget} tokens it gives {took}").into());
        }
        most = most.max(found.len());
    }
    Ok(format!("up to {most} recollections"))
}

async fn keyed(worker: &Worker<'_>) -> Verdict {
    let found = recalled(worker, QUESTION, 4_000).await.map_err(Fail::from)?;
    let mut keys = BTreeSet::new();
    for recollection in &found {
        if recollection.key.trim().is_empty() {
            return Err(format!("`{}` has no key", recollection.text).into());
        }
        if !keys.insert(&recollection.key) {
            return Err(format!("the key `{}` stands twice", recollection.key).into());
        }
    }
    fine()
}

async fn repeated(worker: &Worker<'_>) -> Verdict {
    let first = recalled(worker, QUESTION, 1_000).await.map_err(Fail::from)?;
    let second = recalled(worker, QUESTION, 1_000).await.map_err(Fail::from)?;
    equal(&first, &second)
}

async fn idempotent(worker: &Worker<'_>) -> Verdict {
    let before = recalled(worker, QUESTION, 4_000).await.map_err(Fail::from)?;
    for _ in 0..3 {
        for ((user, assistant), number) in SAID.into_iter().zip(1..) {
            sync(worker, &turn(number, user, assistant)).await.map_err(Fail::from)?;
        }
    }
    let after = recalled(worker, QUESTION, 4_000).await.map_err(Fail::from)?;
    equal(&before, &after)
}

fn equal(before: &[Recollection], after: &[Recollection]) -> Verdict {
    let (before, after) = (format!("{before:?}"), format!("{after:?}"));
    if before == after { fine() } else { Err(differing(&before, &after).into()) }
}

async fn strange(worker: &Worker<'_>) -> Verdict {
    let huge = "Wo ist die Fähre? ".repeat(20_000);
    for text in ["", " ", UNICODE, "\" OR 1=1 --", "a AND (b", "*", &huge] {
        alive(recalled(worker, text, 500).await).map_err(Fail::from)?;
        alive(recalled(worker, text, 0).await).map_err(Fail::from)?;
        alive(sync(worker, &turn(100, text, text)).await).map_err(Fail::from)?;
    }
    fine()
}

async fn kept(worker: &Worker<'_>, scene: &Scene) -> Verdict {
    let Some(whole) = scene.history.conversation().whole() else { return fine() };
    let asked = || worker.ask("before-compact", worker.instance.before_compact(whole));
    let (first, second) = (asked().await.map_err(Fail::from)?, asked().await.map_err(Fail::from)?);
    if first == second { fine() } else { Err(differing(&first, &second).into()) }
}
