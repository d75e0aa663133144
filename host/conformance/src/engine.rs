//! `context-engine` and `context-assist`, call by call. Whole conversations are the business of [`plans`](crate::plans).

use hermes_conversation::{Conversation, Model, Refusal, Role, View};
use hermes_plugin_host::{
    AssistDraft, CacheState, CalledTool, Moment, Outcome, Place, PlanRequest, Pressure, Progress, Quote, ToolResult,
};
use serde_json::Value;

use crate::arguments::UNICODE;
use crate::conversation::{START_MS, Spoken, generated};
use crate::error::ConformanceError;
use crate::fixtures::{WINDOW, model};
use crate::lifecycle::differing;
use crate::report::{Checks, Fail, Verdict, fine};
use crate::rights::Rights;
use crate::stand::{Ill, Scene, Stand, Worker, alive};

const GROUP: &str = "context engine";
/// Steps of slow work in a row; the host stops there too.
pub(crate) const STEPS: u32 = 256;
const MOMENTS: [Moment; 6] =
    [Moment::TurnStart, Moment::MidTurn, Moment::TurnEnd, Moment::Idle, Moment::Manual, Moment::Overflow];
/// Room for what is brought back, in tokens.
const BUDGET: u32 = 1_000;

pub(crate) async fn check(stand: &Stand<'_>, checks: &mut Checks) -> Result<(), ConformanceError> {
    let scene = Scene { history: std::sync::Arc::new(Spoken::of(generated(1, 8))), ..stand.scene() };
    let worker = stand.put_on(&scene)?;
    let fix =
        "an empty conversation, an empty window and a full one are all asked about; subtract with `saturating_sub`";
    checks.add(GROUP, "assesses every moment, from empty to overfull", fix, assesses(stand, &worker).await?);
    let fix = "`assess` is asked after every reply and before every request: it must change nothing";
    checks.add(GROUP, "assesses the same pressure the same", fix, assesses_alike(&worker).await);
    let fix = "answer a JSON object from `status`, for `/context`";
    checks.add(GROUP, "has a status that is a JSON object", fix, status(&worker).await);
    let fix = "another model may come at any time, with a larger or a smaller window";
    checks.add(GROUP, "takes another model", fix, other_model(&worker).await);
    let fix = "answer `done` once nothing is left to prepare: the host calls again while it says `more`";
    checks.add(GROUP, "prepares in steps that end", fix, prepares(&worker, &scene).await);
    let fix =
        "`settled` may come twice, late, or for a plan of an instance that is gone: take it for news, not for an order";
    checks.add(GROUP, "is told twice what became of a plan", fix, settled(&worker).await);
    let away = Scene { rights: Rights::ModelAway, ..scene.clone() };
    let fix = "`propose` never needs a model: where nothing is prepared, texts made by rule are better than none";
    checks.add(GROUP, "proposes without a model", fix, proposes(&stand.put_on(&away)?, &away).await);
    if stand.exports.context_assist {
        let fix = "quote bytes of messages that `history` gives: `start + length` within the text, calls by their id";
        checks.add("context assist", "quotes what was said, twice the same", fix, quotes(&worker, &scene).await);
    }
    Ok(())
}

pub(crate) async fn exercise(worker: &Worker<'_>, scene: &Scene, assists: bool) -> Result<(), Ill> {
    let instance = &worker.instance;
    let conversation = scene.history.conversation();
    let request = full(&conversation, &View::default());
    alive(worker.ask("assess", instance.assess(&request.pressure)).await)?;
    alive(worker.ask("prepare", instance.prepare(&request)).await)?;
    alive(worker.ask("propose", instance.propose(&request)).await)?;
    alive(worker.ask("settled", instance.settled(&Outcome::Stale)).await)?;
    alive(worker.ask("status", instance.status()).await)?;
    if assists {
        let draft = AssistDraft::User("And the ferry?".to_owned());
        alive(worker.ask("assist", instance.assist(draft, BUDGET)).await)?;
    }
    Ok(())
}

/// How full the window is, when the conversation takes so many tokens of it.
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

/// A view that fills the window: `/compress` was said.
fn full(conversation: &Conversation, view: &View) -> PlanRequest {
    let tokens = conversation.view_tokens(view);
    request(conversation, view, pressure(Moment::Manual, tokens, tokens.max(1_000), false))
}

pub(crate) fn request(conversation: &Conversation, view: &View, pressure: Pressure) -> PlanRequest {
    PlanRequest { pressure, view: conversation.priced_items(view), focus: None, memory_context: String::new() }
}

async fn assesses(stand: &Stand<'_>, worker: &Worker<'_>) -> Result<Verdict, ConformanceError> {
    let nothing = Scene { history: Default::default(), ..stand.scene() };
    let empty = stand.put_on(&nothing)?;
    let mut asked = 0;
    for worker in [&empty, worker] {
        for moment in MOMENTS {
            for (tokens, window) in [(0, WINDOW), (WINDOW / 2, WINDOW), (WINDOW * 4, WINDOW), (u32::MAX, 1), (0, 0)] {
                for warm in [false, true] {
                    let pressure = pressure(moment, tokens, window, warm);
                    asked += 1;
                    if let Err(ill) = worker.ask("assess", worker.instance.assess(&pressure)).await {
                        return Ok(Err(format!("{moment:?}, {tokens} tokens of {window}: {ill}").into()));
                    }
                    if tokens == u32::MAX {
                        let conversation = Conversation::default();
                        let request = request(&conversation, &View::default(), pressure);
                        if let Err(died) = alive(worker.ask("propose", worker.instance.propose(&request)).await) {
                            return Ok(Err(format!("a window of {window}: {died}").into()));
                        }
                    }
                }
            }
        }
    }
    Ok(Ok(format!("{asked} times")))
}

async fn assesses_alike(worker: &Worker<'_>) -> Verdict {
    let pressure = pressure(Moment::MidTurn, WINDOW / 4 * 3, WINDOW, true);
    let first = worker.ask("assess", worker.instance.assess(&pressure)).await.map_err(Fail::from)?;
    let second = worker.ask("assess", worker.instance.assess(&pressure)).await.map_err(Fail::from)?;
    let (first, second) = (format!("{first:?}"), format!("{second:?}"));
    if first == second { fine() } else { Err(differing(&first, &second).into()) }
}

async fn status(worker: &Worker<'_>) -> Verdict {
    let text = worker.ask("status", worker.instance.status()).await.map_err(Fail::from)?;
    match serde_json::from_str(&text) {
        Ok(Value::Object(_)) => fine(),
        _ => Err(format!("`{text}` is no JSON object").into()),
    }
}

async fn other_model(worker: &Worker<'_>) -> Verdict {
    for context_length in [WINDOW * 8, 4_000, 1, 0, WINDOW] {
        let model = Model { context_length, ..model() };
        for _ in 0..2 {
            let told = worker.ask("model-changed", worker.instance.model_changed(&model)).await;
            told.map_err(|ill| Fail::from(format!("a window of {context_length}: {ill}")))?;
        }
    }
    fine()
}

async fn prepares(worker: &Worker<'_>, scene: &Scene) -> Verdict {
    let request = full(&scene.history.conversation(), &View::default());
    for step in 0..STEPS {
        match worker.ask("prepare", worker.instance.prepare(&request)).await {
            Ok(Progress::Done) => return Ok(format!("{} steps", step + 1)),
            Ok(Progress::More) => {}
            Err(ill) => return Err(ill.into()),
        }
    }
    Err(format!("it says `more` {STEPS} times in a row").into())
}

async fn settled(worker: &Worker<'_>) -> Verdict {
    let refused = Outcome::Refused(Refusal::Uncovered(hermes_conversation::MessageId(1)));
    for outcome in [refused, Outcome::Stale, Outcome::Deferred, Outcome::Adopted] {
        for _ in 0..2 {
            let told = worker.ask("settled", worker.instance.settled(&outcome)).await;
            told.map_err(|ill| Fail::from(format!("{outcome:?}: {ill}")))?;
        }
    }
    fine()
}

async fn proposes(worker: &Worker<'_>, scene: &Scene) -> Verdict {
    let request = full(&scene.history.conversation(), &View::default());
    // An error says that there is no model to prepare with, and may.
    alive(worker.ask("prepare", worker.instance.prepare(&request)).await).map_err(Fail::from)?;
    let plan = worker.ask("propose", worker.instance.propose(&request)).await.map_err(Fail::from)?;
    Ok(if plan.is_some() { "a plan by rule".to_owned() } else { "none, which leaves it to the host".to_owned() })
}

async fn quotes(worker: &Worker<'_>, scene: &Scene) -> Verdict {
    let conversation = scene.history.conversation();
    let said = conversation.messages().iter().find(|message| message.role == Role::User);
    let said = said.map_or_else(String::new, |message| message.content.clone());
    let call = CalledTool { id: "call-9".to_owned(), name: "read_file".to_owned(), arguments: "{}".to_owned() };
    let mut given = 0;
    for draft in [
        AssistDraft::User(said),
        AssistDraft::User(String::new()),
        AssistDraft::User(UNICODE.to_owned()),
        AssistDraft::Tool(ToolResult { call, content: "lantern ".repeat(5_000) }),
    ] {
        for budget in [0, 50, BUDGET] {
            let ask = || worker.ask("assist", worker.instance.assist(draft.clone(), budget));
            let (first, second) = (ask().await.map_err(Fail::from)?, ask().await.map_err(Fail::from)?);
            let (one, other) = (format!("{first:?}"), format!("{second:?}"));
            if one != other {
                return Err(differing(&one, &other).into());
            }
            for quote in &first {
                is_there(&conversation, quote)?;
            }
            given += first.len();
        }
    }
    Ok(format!("{given} quotes"))
}

fn is_there(conversation: &Conversation, quote: &Quote) -> Result<(), Fail> {
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
