//! Checks of `context-engine` and `context-assist`, call by call. `plans` checks whole conversations.

use hermes_conversation::{Conversation, Model, Refusal, Role, View};
use hermes_plugin_host::{
    AssistDraft, CacheState, CalledTool, Moment, Outcome, Place, PlanRequest, Pressure, Progress, Quote, ToolResult,
};
use serde_json::Value;

use crate::arguments::UNICODE;
use crate::bench::{CallFailure, Session, Setup, TestBench, ignore_errors};
use crate::conversation::{START_MS, generated, history};
use crate::difference::difference;
use crate::error::ConformanceError;
use crate::fixtures::{WINDOW, model};
use crate::report::{Checks, Fail, Verdict, counted, passed};
use crate::rights::Rights;

const GROUP: &str = "context engine";
/// The most preparation steps in a row; the host uses the same limit.
pub(crate) const STEPS: u32 = 256;
const MOMENTS: [Moment; 6] =
    [Moment::TurnStart, Moment::MidTurn, Moment::TurnEnd, Moment::Idle, Moment::Manual, Moment::Overflow];
/// The budget for quoted passages, in tokens.
const BUDGET: u32 = 1_000;

pub(crate) async fn check(bench: &TestBench<'_>, checks: &mut Checks) -> Result<(), ConformanceError> {
    let setup = Setup { history: history(generated(1, 8)), ..bench.setup() };
    let session = bench.open(&setup)?;
    let subtract = bench.subject.language.words().subtract;
    let fix = format!("an empty conversation, an empty window and a full one are all asked about; {subtract}");
    checks.add(GROUP, "assesses every moment, from empty to overfull", fix, assesses(bench, &session).await?);
    let fix = "`assess` is asked after every reply and before every request: it must change nothing";
    checks.add(GROUP, "assesses the same pressure the same", fix, assesses_alike(&session).await);
    let fix = "answer a JSON object from `status`, for `/context`";
    checks.add(GROUP, "has a status that is a JSON object", fix, status(&session).await);
    let fix = "another model may come at any time, with a larger or a smaller window";
    checks.add(GROUP, "takes another model", fix, other_model(&session).await);
    let fix = "answer `done` once nothing is left to prepare: the host calls again while it says `more`";
    checks.add(GROUP, "prepares in steps that end", fix, prepares(&session, &setup).await);
    let fix = "`settled` may come twice, late, or for the plan of another instance: treat it as information, not as a command";
    checks.add(GROUP, "accepts the outcome of a plan twice", fix, settled(&session).await);
    let unavailable = Setup { rights: Rights::NoModel, ..setup.clone() };
    let fix = "`propose` never needs a model: where nothing is prepared, texts made by rule are better than none";
    checks.add(GROUP, "proposes without a model", fix, proposes(&bench.open(&unavailable)?, &unavailable).await);
    if bench.exports.context_assist {
        let fix = "quote bytes of messages that `history` gives: `start + length` within the text, calls by their id";
        checks.add("context assist", "quotes what was said, twice the same", fix, quotes(&session, &setup).await);
    }
    Ok(())
}

pub(crate) async fn exercise(session: &Session<'_>, setup: &Setup, assists: bool) -> Result<(), CallFailure> {
    let instance = &session.instance;
    let conversation = setup.history.copy();
    let request = full(&conversation, &View::default());
    ignore_errors(session.call("assess", instance.assess(&request.pressure)).await)?;
    ignore_errors(session.call("prepare", instance.prepare(&request)).await)?;
    ignore_errors(session.call("propose", instance.propose(&request)).await)?;
    ignore_errors(session.call("settled", instance.settled(&Outcome::Stale)).await)?;
    ignore_errors(session.call("status", instance.status()).await)?;
    if assists {
        let draft = AssistDraft::User("And the ferry?".to_owned());
        ignore_errors(session.call("assist", instance.assist(draft, BUDGET)).await)?;
    }
    Ok(())
}

/// The pressure when the conversation takes this many tokens of the window.
pub(crate) fn pressure(moment: Moment, tokens: u32, window: u32, warm: bool) -> Pressure {
    let fixed_tokens = window / 10;
    let prompt_tokens = tokens.saturating_add(fixed_tokens);
    Pressure {
        moment,
        prompt_tokens,
        estimated: true,
        fixed_tokens,
        context_length: window,
        reserve: window / 10,
        room: window.saturating_sub(2 * (window / 10)),
        expected_requests: 4,
        cache: CacheState {
            warm_tokens: if warm { prompt_tokens } else { 0 },
            warm_until: warm.then_some(START_MS + 300_000),
            read_price: 0.1,
            write_price: 1.25,
            breaking: false,
        },
        last: None,
    }
}

/// A request with a full window, as after `/compress`.
fn full(conversation: &Conversation, view: &View) -> PlanRequest {
    let tokens = conversation.view_tokens(view);
    request(conversation, view, pressure(Moment::Manual, tokens, tokens.max(1_000), false))
}

pub(crate) fn request(conversation: &Conversation, view: &View, pressure: Pressure) -> PlanRequest {
    PlanRequest { pressure, view: conversation.priced_items(view), focus: None, memory_context: String::new() }
}

async fn assesses(bench: &TestBench<'_>, session: &Session<'_>) -> Result<Verdict, ConformanceError> {
    let nothing = Setup { history: history(Conversation::default()), ..bench.setup() };
    let empty = bench.open(&nothing)?;
    let mut calls = 0;
    for session in [&empty, session] {
        for moment in MOMENTS {
            for (tokens, window) in [(0, WINDOW), (WINDOW / 2, WINDOW), (WINDOW * 4, WINDOW), (u32::MAX, 1), (0, 0)] {
                for warm in [false, true] {
                    let pressure = pressure(moment, tokens, window, warm);
                    calls += 1;
                    if let Err(failure) = session.call("assess", session.instance.assess(&pressure)).await {
                        return Ok(Err(format!("{moment:?}, {tokens} tokens of {window}: {failure}").into()));
                    }
                    if tokens == u32::MAX {
                        let conversation = Conversation::default();
                        let request = request(&conversation, &View::default(), pressure);
                        if let Err(crash) =
                            ignore_errors(session.call("propose", session.instance.propose(&request)).await)
                        {
                            return Ok(Err(format!("a window of {window}: {crash}").into()));
                        }
                    }
                }
            }
        }
    }
    Ok(Ok(format!("{calls} times")))
}

async fn assesses_alike(session: &Session<'_>) -> Verdict {
    let pressure = pressure(Moment::MidTurn, WINDOW / 4 * 3, WINDOW, true);
    let first = session.call("assess", session.instance.assess(&pressure)).await.map_err(Fail::from)?;
    let second = session.call("assess", session.instance.assess(&pressure)).await.map_err(Fail::from)?;
    let (first, second) = (format!("{first:?}"), format!("{second:?}"));
    if first == second { passed() } else { Err(difference(&first, &second).into()) }
}

async fn status(session: &Session<'_>) -> Verdict {
    let text = session.call("status", session.instance.status()).await.map_err(Fail::from)?;
    match serde_json::from_str(&text) {
        Ok(Value::Object(_)) => passed(),
        _ => Err(format!("`{text}` is no JSON object").into()),
    }
}

async fn other_model(session: &Session<'_>) -> Verdict {
    for context_length in [WINDOW * 8, 4_000, 1, 0, WINDOW] {
        let model = Model { context_length, ..model() };
        for _ in 0..2 {
            let answer = session.call("model-changed", session.instance.model_changed(&model)).await;
            answer.map_err(|failure| Fail::from(format!("a window of {context_length}: {failure}")))?;
        }
    }
    passed()
}

async fn prepares(session: &Session<'_>, setup: &Setup) -> Verdict {
    let request = full(&setup.history.copy(), &View::default());
    for step in 0..STEPS {
        match session.call("prepare", session.instance.prepare(&request)).await {
            Ok(Progress::Done) => return Ok(counted(step as usize + 1, "step")),
            Ok(Progress::More) => {}
            Err(failure) => return Err(failure.into()),
        }
    }
    Err(format!("it says `more` {STEPS} times in a row").into())
}

async fn settled(session: &Session<'_>) -> Verdict {
    let refused = Outcome::Refused(Refusal::Uncovered(hermes_conversation::MessageId(1)));
    for outcome in [refused, Outcome::Stale, Outcome::Deferred, Outcome::Adopted] {
        for _ in 0..2 {
            let answer = session.call("settled", session.instance.settled(&outcome)).await;
            answer.map_err(|failure| Fail::from(format!("{outcome:?}: {failure}")))?;
        }
    }
    passed()
}

async fn proposes(session: &Session<'_>, setup: &Setup) -> Verdict {
    let request = full(&setup.history.copy(), &View::default());
    // An error is allowed here: there is no model to prepare with.
    ignore_errors(session.call("prepare", session.instance.prepare(&request)).await).map_err(Fail::from)?;
    let plan = session.call("propose", session.instance.propose(&request)).await.map_err(Fail::from)?;
    Ok(if plan.is_some() { "a plan by rule".to_owned() } else { "none, which leaves it to the host".to_owned() })
}

async fn quotes(session: &Session<'_>, setup: &Setup) -> Verdict {
    let conversation = setup.history.copy();
    let question = conversation.messages().iter().find(|message| message.role == Role::User);
    let question = question.map_or_else(String::new, |message| message.content.clone());
    let call = CalledTool { id: "call-9".to_owned(), name: "read_file".to_owned(), arguments: "{}".to_owned() };
    let mut given = 0;
    for draft in [
        AssistDraft::User(question),
        AssistDraft::User(String::new()),
        AssistDraft::User(UNICODE.to_owned()),
        AssistDraft::Tool(ToolResult { call, content: "lantern ".repeat(5_000) }),
    ] {
        for budget in [0, 50, BUDGET] {
            let call = || session.call("assist", session.instance.assist(draft.clone(), budget));
            let (first, second) = (call().await.map_err(Fail::from)?, call().await.map_err(Fail::from)?);
            let (one, other) = (format!("{first:?}"), format!("{second:?}"));
            if one != other {
                return Err(difference(&one, &other).into());
            }
            for quote in &first {
                quote_exists(&conversation, quote)?;
            }
            given += first.len();
        }
    }
    Ok(format!("{given} quotes"))
}

fn quote_exists(conversation: &Conversation, quote: &Quote) -> Result<(), Fail> {
    let id = hermes_conversation::MessageId(quote.id);
    let message = conversation.get(id).ok_or_else(|| format!("there is no message {id}"))?;
    let text = match &quote.place {
        Place::Text => &message.content,
        Place::Arguments(call) => {
            let made = message.tool_calls.iter().find(|known| known.id == *call);
            &made.ok_or_else(|| format!("message {id} makes no call `{call}`"))?.arguments
        }
    };
    let end = u64::from(quote.start) + u64::from(quote.length);
    if quote.length == 0 || end > text.len() as u64 {
        return Err(format!("bytes {}-{end} of message {id}, which has {}", quote.start, text.len()).into());
    }
    Ok(())
}
