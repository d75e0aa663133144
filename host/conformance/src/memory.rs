//! Checks of `memory-provider` and `memory-events`: recall within its budget, repeated turns, and storage that survives a
//! restart.

use std::collections::BTreeSet;

use hermes_conversation::{MessageId, MessageRange, tokens};
use hermes_plugin_host::{
    Cause, Exports, MemoryAction, MemoryWrite, Outlook, Progress, Query, Recollection, Start, TurnRecord,
};

use crate::arguments::UNICODE;
use crate::bench::{CallFailure, Session, Setup, TestBench, ignore_errors};
use crate::difference::difference;
use crate::error::ConformanceError;
use crate::report::{Checks, Fail, Verdict, passed};

const GROUP: &str = "memory";
/// Token budgets for recall.
const BUDGETS: [u32; 6] = [0, 5, 20, 200, 1_000, 4_000];

pub(crate) async fn check(bench: &TestBench<'_>, checks: &mut Checks) -> Result<(), ConformanceError> {
    let setup = bench.setup();
    let session = bench.open(&setup)?;
    let fix = "read only what configuration and storage say: the text is frozen for the session";
    checks.add(GROUP, "has the same text for the prompt each time", fix, prompt(&session).await);
    let fix = "take a turn whatever is said in it";
    let (accepted, sent) = taken_in(&session).await;
    let was_accepted = accepted.is_ok();
    checks.add(GROUP, "accepts turns", fix, accepted);
    // A provider that stores something of its own can know a turn by that, and need not send it.
    let permissions = &bench.subject.manifest.permissions;
    let has_storage = permissions.sql || !permissions.documents.is_empty();
    if let Some(web) = &session.web {
        let fix = "send a turn before you answer, and wait for it: what waits in the instance is lost when it goes, and Hermes keeps only a turn \
                   that was not answered with success";
        // Its questions may have the same method.
        let _ = recalled(&session, QUESTION, 1_000).await;
        let unsent = web.waits_to_store().filter(|_| was_accepted && !has_storage);
        let sent = sent.and_then(|seen| match unsent {
            None => Ok(seen),
            Some(rule) => {
                Err(format!("{TURNS} turns were answered with success, and no request came for {rule}").into())
            }
        });
        checks.add(GROUP, "sends each turn before it answers", fix, sent);
    }
    let count = bench.subject.language.words().count_tokens;
    let fix = format!("give the best first and stop at `budget`: count with `{count}`, which needs no permission");
    checks.add(GROUP, "recalls within the budget", fix, within(&session).await);
    if let Some(verdict) = heard(&session).await {
        let fix = "read the fields of the answer as your service writes them: a name that is written differently reads as nothing";
        checks.add(GROUP, "recalls what its backend answers", fix, verdict);
    }
    let fix = "give each recollection a key that names what it says: one key with one text is shown once";
    checks.add(GROUP, "has a key of its own for each recollection", fix, keyed(&session).await);
    let fix = "recall must change nothing: it is asked again after a failure";
    checks.add(GROUP, "recalls the same for the same question", fix, repeated(&session).await);
    let fix = "name a turn by session and first message, and take one that is known already for done";
    checks.add(GROUP, "stores a repeated turn only once", fix, idempotent(&session).await);
    if session.web.is_some() && !has_storage {
        let fix = "send a name of the turn with it, such as its session and the id of its first message, and let the service store one name \
                   once; or ask the service, or your documents, before you send";
        checks.add(GROUP, "names a turn when it sends it again", fix, named(&session).await);
    }
    let fix = "keep what must last in documents or sql: an instance may go at any time";
    let before = recalled(&session, QUESTION, 1_000).await;
    drop(session);
    let again = bench.open(&Setup { start: Start::Resumed, ..setup.clone() })?;
    let verdict = match (before, recalled(&again, QUESTION, 1_000).await) {
        (Ok(before), Ok(after)) => equal(&before, &after),
        (Err(failure), _) | (_, Err(failure)) => Err(failure.into()),
    };
    checks.add(GROUP, "recalls the same after a restart", fix, verdict);
    let fix = "answer an error or nothing: a question may be empty, huge or in any script";
    checks.add(GROUP, "answers strange questions and turns", fix, strange(&again).await);
    if bench.exports.memory_events {
        let fix = "read the messages of the range and answer a text, empty for nothing";
        checks.add(GROUP, "says what a summary should keep, twice the same", fix, kept(&again, &setup).await);
    }
    if bench.exports.memory_prefetch {
        let fix = "give the best first and stop at `budget`, each recollection with a key of its own";
        checks.add(GROUP, "recalls ahead within the budget", fix, ahead(&again).await);
    }
    if bench.exports.memory_mirror {
        let fix = "take a write of any provider, also with an action that you do not know";
        checks.add(GROUP, "takes what other memories write", fix, mirrored(&again).await);
    }
    if bench.exports.memory_rewind {
        let fix = "forget the turns of the session from this message on; turns of other sessions stay";
        checks.add(GROUP, "forgets what the user takes back, twice too", fix, rewound(&again).await);
    }
    if bench.exports.memory_upkeep {
        let fix = "answer `done` when nothing is left to do: the host calls again after `more`";
        checks.add(GROUP, "ends its upkeep", fix, cared_for(&again).await);
    }
    Ok(())
}

pub(crate) async fn exercise(session: &Session<'_>, exports: &Exports) -> Result<(), CallFailure> {
    ignore_errors(session.call("system-prompt", session.instance.system_prompt()).await)?;
    ignore_errors(sync(session, &turn(1, "My name is Ada.", "Hello Ada.")).await)?;
    ignore_errors(recalled(session, QUESTION, 1_000).await)?;
    if exports.memory_prefetch {
        ignore_errors(session.call("prefetch", session.instance.recipe().prefetch(outlook(200))).await)?;
    }
    if exports.memory_mirror {
        ignore_errors(session.call("written", session.instance.written(write(MemoryAction::Added))).await)?;
    }
    if exports.memory_rewind {
        let rewound = session.instance.turns_rewound("conformance".to_owned(), MessageId(1));
        ignore_errors(session.call("rewound", rewound).await)?;
    }
    if exports.memory_upkeep {
        ignore_errors(session.call("upkeep", session.instance.recipe().upkeep()).await)?;
    }
    if exports.memory_events {
        let range = MessageRange::new(MessageId(1), MessageId(4));
        ignore_errors(session.call("before-compact", session.instance.before_compact(range)).await)?;
    }
    Ok(())
}

const QUESTION: &str = "When does the ferry Albatross leave, and what is my name?";
const SAID: [(&str, &str); 4] = [
    ("Remember: the ferry is called Albatross and leaves at 07:45.", "I will remember that."),
    ("My name is Ada.", "Hello Ada."),
    ("Remember: lanterns need two spoons of oil a night.", "CallRecords."),
    ("What is 2 + 2?", "4"),
];

/// More turns about the ferry, so that a question finds more than a small budget has room for.
const FURTHER: u32 = 16;

/// Every turn that is stored, with its number.
fn all_turns() -> impl Iterator<Item = TurnRecord> {
    let said = SAID.into_iter().map(|(user, assistant)| (user.to_owned(), assistant));
    let further = (1..=FURTHER).map(|day| {
        let user = format!(
            "Remember: on day {day} the ferry Albatross leaves with {} lanterns and {day} barrels of oil for the pier.",
            day * 7
        );
        (user, "I will remember that.")
    });
    said.chain(further).zip(1..).map(|((user, assistant), number)| turn(number, &user, assistant))
}

/// The number of stored turns.
const TURNS: u32 = SAID.len() as u32 + FURTHER;

fn turn(number: u32, user: &str, assistant: &str) -> TurnRecord {
    // Each turn has messages of its own: the first one names it.
    let first = u64::from(number) * 4 - 3;
    TurnRecord {
        session: "conformance".to_owned(),
        number,
        ended_at: 1_700_000_000_000 + u64::from(number) * 60_000,
        author: None,
        user: user.to_owned(),
        assistant: assistant.to_owned(),
        interrupted: false,
        messages: MessageRange::new(MessageId(first), MessageId(first + 3)),
    }
}

async fn sync(session: &Session<'_>, turn: &TurnRecord) -> Result<(), CallFailure> {
    let once = || session.call("sync-turn", session.instance.sync_turn(turn));
    session.until_answered(once).await
}

async fn recalled(session: &Session<'_>, text: &str, budget: u32) -> Result<Vec<Recollection>, CallFailure> {
    let once = || {
        let query = Query { turn: TURNS + 1, author: None, text: text.to_owned(), budget, extra: Vec::new() };
        session.call("recall", session.instance.recall(query))
    };
    session.until_answered(once).await
}

/// Stores a turn, without a second attempt.
pub(crate) async fn sync_once(session: &Session<'_>) -> Result<(), CallFailure> {
    session.call("sync-turn", session.instance.sync_turn(&turn(1, SAID[0].0, SAID[0].1))).await
}

/// Whether the instance cannot be made: the host then keeps every turn.
pub(crate) async fn does_not_start(session: &Session<'_>) -> bool {
    let answer = session.instance.system_prompt().await;
    matches!(answer, Err(error) if matches!(error.cause, Cause::Start(_)))
}

/// Recalls, without a second attempt.
pub(crate) async fn recall_once(session: &Session<'_>) -> Result<Vec<Recollection>, CallFailure> {
    let query = Query { turn: 2, author: None, text: QUESTION.to_owned(), budget: 1_000, extra: Vec::new() };
    session.call("recall", session.instance.recall(query)).await
}

async fn prompt(session: &Session<'_>) -> Verdict {
    let ask = || session.call("system-prompt", session.instance.system_prompt());
    let wrong = |failure| ordinary(session, failure);
    let (first, second) = (ask().await.map_err(wrong)?, ask().await.map_err(wrong)?);
    if first == second { Ok(format!("{} bytes", first.len())) } else { Err(difference(&first, &second).into()) }
}

/// Stores all turns. The second verdict says whether each was sent in its own call, if it was sent at all.
async fn taken_in(session: &Session<'_>) -> (Verdict, Verdict) {
    let take = || session.web.as_ref().map_or_else(Vec::new, |web| web.take_sent());
    let mut sent = passed();
    for turn in all_turns() {
        take();
        let answer = sync(session, &turn).await;
        let requests = take();
        let of = |other: &TurnRecord| requests.iter().any(|request| request.holds(&other.user));
        let earlier = all_turns().take_while(|earlier| earlier.number < turn.number).find(|earlier| of(earlier));
        if let Some(earlier) = earlier.filter(|_| sent.is_ok()) {
            let (one, other) = (earlier.number, turn.number);
            sent = Err(
                format!("turn {one} was answered with success, and sent only while turn {other} was stored").into()
            );
        }
        if let Err(failure) = answer {
            return (Err(ordinary(session, failure)), sent);
        }
    }
    (Ok(format!("{TURNS} turns")), sent)
}

/// The failure of an ordinary call. The fix concerns what this call met, such as a request without a rule in the fixtures, and
/// not the subject of the check.
fn ordinary(session: &Session<'_>, failure: CallFailure) -> Fail {
    let fail = Fail::from(failure);
    match session.web.as_ref().and_then(|web| web.missed()) {
        _ if fail.is_excused => fail,
        Some(missed) => Fail {
            why: format!("{} ({missed})", fail.why),
            fix: Some(
                "write a rule for this request, or correct the request: what no rule matches is answered with 501",
            ),
            ..fail
        },
        None => Fail { fix: fail.fix.or(Some("this call is an ordinary one: put right what the line names")), ..fail },
    }
}

/// Recalls what the question finds. A failure is that of an ordinary call.
async fn found(session: &Session<'_>, budget: u32) -> Result<Vec<Recollection>, Fail> {
    recalled(session, QUESTION, budget).await.map_err(|failure| ordinary(session, failure))
}

/// Whether anything is recalled. `None` if the backend does not answer with anything to recall.
async fn heard(session: &Session<'_>) -> Option<Verdict> {
    let web = session.web.as_ref()?;
    web.take_spoke();
    let recalled = found(session, 4_000).await;
    let spoke = web.take_spoke();
    spoke.then(|| match recalled?.len() {
        0 => Err("its backend answers with texts, and `recall` gives nothing".into()),
        _ => passed(),
    })
}

/// Whether the requests that store a turn tell a repeated turn from a new one with the same words.
async fn named(session: &Session<'_>) -> Verdict {
    let Some(web) = &session.web else { return passed() };
    let one = turn(TURNS + 40, "Remember: the harbour master is called Grace.", "I will remember that.");
    let messages = turn(TURNS + 41, "", "").messages;
    let other = TurnRecord { number: one.number + 1, messages, ..one.clone() };
    let mut sent = Vec::new();
    for turn in [&one, &one, &other] {
        web.take_sent();
        // Why it is not taken is the finding of another check.
        if sync(session, turn).await.is_err() {
            return Ok("it did not take the turn".to_owned());
        }
        let storing = web.take_sent().into_iter().filter(|request| request.method != "GET" && request.holds(&one.user));
        sent.push(storing.flat_map(|request| request.values()).collect::<BTreeSet<String>>());
    }
    let [first, again, new] = &sent[..] else { return passed() };
    if again.is_empty() {
        return Ok("it does not send it again".to_owned());
    }
    match first.intersection(again).any(|value| !new.contains(value)) {
        true => passed(),
        false => Err(
            "a turn that is delivered twice is sent twice, and nothing in the requests tells that it is the same turn"
                .into(),
        ),
    }
}

async fn within(session: &Session<'_>) -> Verdict {
    let mut most = 0;
    for budget in BUDGETS {
        let found = found(session, budget).await?;
        let took: u32 = found.iter().map(|recollection| tokens::of_text(&recollection.text)).sum();
        if took > budget {
            return Err(format!("with room for {budget} tokens it gives {took}").into());
        }
        most = most.max(found.len());
    }
    Ok(format!("up to {most} recollections"))
}

async fn keyed(session: &Session<'_>) -> Verdict {
    has_keys(&found(session, 4_000).await?)?;
    passed()
}

fn has_keys(found: &[Recollection]) -> Result<(), Fail> {
    let mut keys = BTreeSet::new();
    for recollection in found {
        if recollection.key.trim().is_empty() {
            return Err(format!("`{}` has no key", recollection.text).into());
        }
        if !keys.insert(&recollection.key) {
            return Err(format!("the key `{}` is used twice", recollection.key).into());
        }
    }
    Ok(())
}

async fn repeated(session: &Session<'_>) -> Verdict {
    let first = found(session, 1_000).await?;
    let second = found(session, 1_000).await?;
    equal(&first, &second)
}

async fn idempotent(session: &Session<'_>) -> Verdict {
    let before = found(session, 4_000).await?;
    for _ in 0..3 {
        for turn in all_turns() {
            sync(session, &turn).await.map_err(|failure| ordinary(session, failure))?;
        }
    }
    let after = found(session, 4_000).await?;
    equal(&before, &after)
}

fn equal(before: &[Recollection], after: &[Recollection]) -> Verdict {
    let (before, after) = (format!("{before:?}"), format!("{after:?}"));
    if before == after { passed() } else { Err(difference(&before, &after).into()) }
}

async fn strange(session: &Session<'_>) -> Verdict {
    let huge = "Wo ist die Fähre? ".repeat(20_000);
    for text in ["", " ", UNICODE, "\" OR 1=1 --", "a AND (b", "*", &huge] {
        ignore_errors(recalled(session, text, 500).await).map_err(Fail::from)?;
        ignore_errors(recalled(session, text, 0).await).map_err(Fail::from)?;
        ignore_errors(sync(session, &turn(100, text, text)).await).map_err(Fail::from)?;
    }
    passed()
}

async fn kept(session: &Session<'_>, setup: &Setup) -> Verdict {
    let Some(whole) = setup.history.conversation().whole() else { return passed() };
    let call = || session.call("before-compact", session.instance.before_compact(whole));
    let (first, second) = (call().await.map_err(Fail::from)?, call().await.map_err(Fail::from)?);
    if first == second { passed() } else { Err(difference(&first, &second).into()) }
}

fn outlook(budget: u32) -> Outlook {
    Outlook { turn: TURNS, author: None, text: QUESTION.to_owned(), budget, extra: Vec::new() }
}

async fn ahead(session: &Session<'_>) -> Verdict {
    let mut most = 0;
    for budget in BUDGETS {
        let call = || session.call("prefetch", session.instance.recipe().prefetch(outlook(budget)));
        let found = session.until_answered(call).await.map_err(|failure| ordinary(session, failure))?;
        let took: u32 = found.iter().map(|recollection| tokens::of_text(&recollection.text)).sum();
        if took > budget {
            return Err(format!("with room for {budget} tokens it gives {took}").into());
        }
        has_keys(&found)?;
        most = most.max(found.len());
    }
    Ok(format!("up to {most} recollections"))
}

fn write(action: MemoryAction) -> MemoryWrite {
    let previous = (!matches!(action, MemoryAction::Added)).then(|| "Ada likes coffee.".to_owned());
    MemoryWrite {
        provider: "builtin".to_owned(),
        session_id: "conformance".to_owned(),
        action,
        target: "user".to_owned(),
        text: "Ada likes tea.".to_owned(),
        previous,
        at: 1_700_000_000_000,
        extra: Vec::new(),
    }
}

async fn mirrored(session: &Session<'_>) -> Verdict {
    use MemoryAction::{Added, Other, Removed, Replaced};
    for action in [Added, Replaced, Removed, Other("merged".to_owned())] {
        let call = || session.call("written", session.instance.written(write(action.clone())));
        session.until_answered(call).await.map_err(Fail::from)?;
    }
    passed()
}

async fn rewound(session: &Session<'_>) -> Verdict {
    // The last turn that was stored, and a session that never was.
    let last = turn(TURNS, "", "").messages.first;
    for (name, first) in [("conformance", last), ("conformance", last), ("elsewhere", MessageId(1))] {
        let call = || session.call("rewound", session.instance.turns_rewound(name.to_owned(), first));
        session.until_answered(call).await.map_err(Fail::from)?;
    }
    passed()
}

/// The most steps of an upkeep that has little to do.
const STEPS: usize = 1_000;

async fn cared_for(session: &Session<'_>) -> Verdict {
    for step in 1..=STEPS {
        let call = || session.call("upkeep", session.instance.recipe().upkeep());
        if session.until_answered(call).await.map_err(Fail::from)? == Progress::Done {
            return Ok(format!("after {step} {}", if step == 1 { "step" } else { "steps" }));
        }
    }
    Err(format!("it says `more` after {STEPS} steps").into())
}
