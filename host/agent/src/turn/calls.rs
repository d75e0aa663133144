//! The calls of a reply: they run, and each result is stored in the order of the calls.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future;

use futures_util::StreamExt;
use hermes_conversation::{MessageId, ToolCall, tokens};
use hermes_plugin_host::{AssistDraft, CalledTool, ToolResult};
use hermes_prompt::hints::SubdirectoryHints;
use hermes_protocol::EventKind;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::answer::Answer;
use crate::delegation::Reports;
use crate::error::AgentError;
use crate::feed::About;
use crate::host::Host;
use crate::live::Live;
use crate::live::compaction::SessionCompaction;
use crate::live::prefix::SessionPrefix;
use crate::toolbox::result::{self, Additions, Budgets, Made};
use crate::warming::keep_warm;
use crate::{assist, shelf, steering, untrusted};

/// Runs the calls of a reply and stores the results in the order of the calls. The last result ends with `closing`. Returns
/// false if the user stopped them.
pub(super) async fn run(
    host: &Host,
    live: &mut Live,
    calls: &[ToolCall],
    reply: MessageId,
    closing: Option<&str>,
    stop: &CancellationToken,
) -> Result<bool, AgentError> {
    let window = host.chain.window();
    let Live { log, plugins, prefix, compaction, front, .. } = live;
    let SessionPrefix { hints, frozen, outgoing, .. } = prefix;
    let (journal, clock, marks) = (&log.journal, log.clock, &host.settings.marks);
    // A tool may take longer than the provider keeps the request before it.
    let mut kept_warm = std::pin::pin!(keep_warm(host, log, frozen, outgoing));
    let SessionCompaction { compactor, assistant, .. } = compaction;
    let toolbox = &plugins.toolbox;
    let calls = &toolbox.opened(calls)[..];
    let mut budgets = Budgets::new(window, calls.len());
    let originals = toolbox.originals(calls);
    // The answers that later calls share.
    let mut shared: HashMap<usize, Answer> = HashMap::new();
    let (mut started, mut stored_results) = (0, 0);
    for run in toolbox.runs(calls) {
        for call in run {
            let (name, arguments) = (call.name.clone(), call.arguments.clone());
            front.feed.publish_about(About::call(&call.id), EventKind::ToolStarted { name, arguments });
        }
        let (send, mut answers) = mpsc::unbounded_channel();
        let answering = toolbox.start(run, reply, started, &originals);
        // Calls and warming go on while a result is stored. Without polling, a call could keep something that the storing needs,
        // such as its turn at the store.
        let answering = async move {
            let mut answering = std::pin::pin!(answering);
            while let Some(answer) = answering.next().await {
                if send.send(answer).is_err() {
                    break;
                }
            }
            drop(send);
            future::pending::<Infallible>().await
        };
        started += run.len();
        let storing = async {
            loop {
                let next = tokio::select! {
                    biased;
                    () = stop.cancelled() => return Ok(false),
                    next = answers.recv() => next,
                };
                let Some((call, answer)) = next else { return Ok(true) };
                let at = stored_results;
                let original = || originals[at].and_then(|first| shared.get(&first)).map(Answer::copy);
                let mut answer = answer.or_else(original).expect("the answers come in the order of the calls");
                // A quotation of untrusted text stays untrusted.
                answer.is_untrusted |=
                    toolbox.quotes_conversation(&call.name) && untrusted::is_in(&journal.conversation());
                if originals.contains(&Some(at)) {
                    shared.insert(at, answer.copy());
                }
                let hint = hints.as_mut().and_then(|hints| hints.for_call(&call.arguments));
                for notice in hints.iter_mut().flat_map(SubdirectoryHints::take_notices) {
                    plugins.notices.notice(notice.to_string());
                }
                let budget = assist::budget(window);
                let tool_result = || AssistDraft::Tool(tool_result(call, &answer.content));
                let quotes = if compactor.is_proposing() {
                    Vec::new()
                } else {
                    stop.run_until_cancelled(assistant.consult(tool_result, budget)).await.unwrap_or_default()
                };
                let block = assistant.block(&quotes, &journal.conversation(), journal.view(), budget);
                stored_results += 1;
                let closing = closing.filter(|_| stored_results == calls.len()).map(str::to_owned);
                let limit = result::result_limits(window).0;
                let reports = Reports::waiting(host.store.as_ref(), &log.session, &front.tasks, limit, marks).await;
                let found = reports.as_ref().map(|reports| reports.block.clone());
                let appended = [hint, block, found, closing]
                    .into_iter()
                    .flatten()
                    .reduce(|text, next| format!("{text}\n\n{next}"));
                let room = budgets.next();
                let size = tokens::of_text(&answer.content);
                budgets.spend(size.min(room));
                let text = answer.whole.as_ref().or((size > room).then_some(&answer.content));
                let kept = match text {
                    Some(text) => toolbox.keep(&host.home, &log.session, call, (text, answer.is_untrusted)).await,
                    None => None,
                };
                let steered = front.steering.waiting(limit);
                let additions = Additions { host: appended, user: steering::block(&steered, marks) };
                let made = Made { at: clock.now(), marks };
                let (result, notice) = result::result(call, &answer, room, kept.as_ref(), additions, made);
                if let Some(notice) = notice {
                    plugins.notices.notice(notice.to_string());
                }
                let stored = journal.append(&[result]).await?[0].id;
                front.steering.delivered(steered.len());
                if let Some(reports) = reports {
                    reports.delivered(host.store.as_ref(), &log.session, stored).await;
                }
                let about = About { message: Some(stored), ..About::call(&call.id) };
                let Answer { content, failed, refused, changes, elapsed_ms, .. } = answer;
                let name = call.name.clone();
                let finished = EventKind::ToolFinished { name, content, failed, elapsed_ms, refused, changes };
                front.feed.publish_about(about, finished);
                if !steered.is_empty() {
                    front.feed.publish_about(About::message(stored), EventKind::Steered { texts: steered });
                }
            }
        };
        let went_on: Result<bool, AgentError> = tokio::select! {
            biased;
            went_on = storing => went_on,
            never = answering => match never {},
            never = &mut kept_warm => match never {},
        };
        if !went_on? {
            return Ok(false);
        }
    }
    let of_others = calls.iter().map(|call| call.name.as_str()).filter(|name| toolbox.is_countable(name));
    let of_others: Vec<&str> = of_others.collect();
    if !of_others.is_empty() {
        shelf::count(host.store.as_ref(), &log.workspace, of_others.into_iter()).await;
    }
    Ok(true)
}

/// The form in which an engine gets a result before it is stored.
fn tool_result(call: &ToolCall, content: &str) -> ToolResult {
    let ToolCall { id, name, arguments } = call.clone();
    ToolResult { call: CalledTool { id, name, arguments }, content: content.to_owned() }
}
