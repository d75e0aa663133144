//! One turn: from the user's message to an answer without tool calls.

mod budget;
mod calls;
mod cut;
#[cfg(test)]
mod history_tests;
mod refused_tool;

use std::time::Instant;

use hermes_conversation::fence::{self, Scrubber};
use hermes_conversation::part::Reader;
use hermes_conversation::render::Repairs;
use hermes_conversation::{
    Author, Draft, MessageId, Model, Part, Role, ToolCall, Usage, closing, render, tokens, validity,
};
use hermes_diagnostic::{Action, Notice};
use hermes_models::{Delta, Finish, ModelError, Persistence, Reply, Request, ToolChoice, limit_below};
use hermes_plugin_host::{AssistDraft, Cause, Moment, OnFailure, Peer, Query};
use hermes_protocol::{EventKind, TurnEnd, TurnNumber, UserMessage};
use tokio_util::sync::CancellationToken;

use crate::breaker::{Change, OpenBreaker};
use crate::delegation::Reports;
use crate::error::AgentError;
use crate::feed::About;
use crate::host::Host;
use crate::live::Live;
use crate::memory::Shown;
use crate::outgoing::PendingRequest;
use crate::recall::Recall;
use crate::served::ServedModel;
use crate::serving::Attempts;
use crate::toolbox::result::result_limits;
use crate::turn::budget::Budget;
use crate::{assist, compaction, learned, memory, reload, room, sender, serving, skills, without_tool};

/// How often a request is folded and sent again after the provider rejected it as too long.
const MAX_OVERFLOWS: u32 = 3;
/// Marks a reply that the user stopped.
pub(crate) const STOPPED: &str = "[The user stopped the reply here.]";

/// The text of a refusal that came without one.
const DECLINED: &str = "[The model declined to answer.]";

/// A complete reply, or the part before a stop.
enum Replied {
    Whole(Box<Reply>),
    /// The user stopped the reply; contains the received text.
    Stopped(String),
    /// The model failed.
    Failed {
        error: ModelError,
        /// Whether a part of the reply was shown.
        shown: bool,
    },
}

/// What the user says.
pub(crate) struct Said {
    pub(crate) message: UserMessage,
    /// The skill that the text calls.
    pub(crate) skill: Option<String>,
}

pub(crate) async fn run(
    host: &Host,
    live: &mut Live,
    message: Said,
    stop: &CancellationToken,
) -> Result<TurnEnd, AgentError> {
    reload::take_over(host, live).await?;
    serving::turn_begins(host, live).await?;
    without_tool::tell(host, live);
    live.compaction.compactor.turn_begins();
    let changed = [live.engine_change.take(), live.prefix.drift.take()].into_iter().flatten();
    let joined = changed.reduce(|engine, prompt| Notice::new(format!("{}; {}", engine.text, prompt.text), prompt.fix));
    if let Some(notice) = joined {
        live.front.feed.notice(notice);
    }
    live.log.close_open_turn().await?;
    let text = message.message.text.clone();
    let mut said = user_message(host, live, message, stop).await?;
    let told = live.front.checkpoints.tell_undone(&mut said).await;
    let room = result_limits(host.chain.window()).0;
    let reports =
        Reports::waiting(host.store.as_ref(), &live.log.session, &live.front.tasks, room, &host.settings.marks).await;
    if let Some(reports) = &reports {
        let text = fence::defuse_tag(said.text_sent(), fence::SUBAGENT_RESULTS);
        said.sent = Some(format!("{text}\n\n{}", reports.block));
    }
    let first = live.log.journal.append(&[said]).await?[0].id;
    live.front.checkpoints.turn_begins(first, &text, told).await;
    if let Some(reports) = reports {
        reports.delivered(host.store.as_ref(), &live.log.session, first).await;
    }
    let turn = live.log.journal.conversation().headers().last().map(|header| TurnNumber(header.turn));
    live.front.feed.set_turn(turn);
    live.front.feed.publish_about(About::message(first), EventKind::TurnStarted);

    let end = answer(host, live, first, stop).await;
    live.front.checkpoints.turn_ends().await;
    let end = end?;
    live.plugins.deliveries.queued();
    if matches!(end, TurnEnd::Answered { .. } | TurnEnd::Cut { .. } | TurnEnd::OutOfBudget { .. }) {
        room::turn_ended(host, live).await?;
    }
    Ok(end)
}

/// Creates the user's message with recalled memories and passages. A stop ends the wait for them.
async fn user_message(
    host: &Host,
    live: &mut Live,
    Said { message, skill }: Said,
    stop: &CancellationToken,
) -> Result<Draft, AgentError> {
    let sender = sender::line(&message, &live.log.journal.conversation());
    let UserMessage { text, attached, author, .. } = message;
    let author = author.or_else(|| host.settings.author.clone());
    let Model { provider, name, .. } = &host.chain.now().model;
    let window = host.chain.window();
    let has_images = attached.iter().any(|part| matches!(part, Part::Image(_)));
    if has_images && hermes_models::sees_images(provider, name) == Some(false) {
        return Err(AgentError::NoVision { model: name.clone() });
    }
    let room = live.room_for_messages(host);
    // A summary of the previous conversation must fit beside the message.
    let room = room - room / 4;
    let (texts, media): (Vec<Part>, Vec<Part>) =
        attached.into_iter().partition(|part| matches!(part, Part::Text { .. }));
    let texts = texts.iter().filter_map(|part| if let Part::Text { text } = part { Some(text.as_str()) } else { None });
    // What is recalled depends on the user's own words only.
    let whole = Some(text.as_str())
        .filter(|text| !text.trim().is_empty())
        .into_iter()
        .chain(texts)
        .collect::<Vec<_>>()
        .join("\n\n");
    let words = (!whole.is_empty()).then(|| Part::text(&whole));
    let parts = words.into_iter().chain(media).collect();
    let mut draft = Draft::of_parts(Role::User, parts, live.log.clock.now());
    if let Some(skill) = &skill {
        let called = live.plugins.toolbox.skills().called(skill, &text, &host.settings.marks).await;
        draft.sent = Some(called.map_err(|why| AgentError::Skill { skill: skill.clone(), why })?);
    }
    if let Some(line) = sender {
        draft.sent = Some(sender::before(draft.text_sent(), &line, &host.settings.marks));
    }
    draft.author.clone_from(&author);
    // The name of a skill says nothing about what the user wants to know.
    let asked = if skill.is_some() { skills::arguments_of(&text) } else { text.as_str() };
    let is_silent = asked.trim().is_empty();
    let size = tokens::of_draft(&draft);
    if size > room {
        return Err(AgentError::MessageTooLong { tokens: size, room, window });
    }
    let turn = live.log.journal.conversation().headers().last().map_or(0, |header| header.turn) + 1;
    let budget = memory::budget(window).min(room - size);
    let author = author.map(|Author { id, name }| Peer { id, name, extra: Vec::new() });
    let query = Query { turn, author, text: asked.to_owned(), budget, extra: Vec::new() };
    // Without text there is nothing to search for.
    let memories = if is_silent { &[] } else { live.plugins.memories.as_slice() };
    let now = live.log.clock.now();
    let recall = stop.run_until_cancelled(live.plugins.recalls.recall(memories, &query, now)).await;
    let Recall { recalled, failed, late, breakers } = recall.unwrap_or_default();
    for change in breakers {
        tell_breaker(host, live, change).await;
    }
    // The user already saw the suspension notice.
    for error in failed.into_iter().filter(|error| !matches!(error.cause, Cause::Suspended { .. })) {
        live.plugins.notices.notice(format!("{error}; the turn continues without this memory"));
    }
    for provider in late {
        let text =
            format!("the memory `{provider}` is slow; the turn continues, and what it recalls serves the next one");
        live.plugins.notices.notice(Notice::new(text, Action::ShowPlugin { plugin: provider }));
    }
    if !recalled.is_empty() {
        let shown = Shown::in_view(&live.log.journal.conversation(), live.log.journal.view());
        let mut suspicious = Vec::new();
        let (text, marks) = (draft.text_sent(), &host.settings.marks);
        let sent = memory::with_recollections(text, &recalled, &shown, budget, marks, &mut suspicious);
        draft.sent = sent.or(draft.sent);
        for notice in suspicious.iter().map(ToString::to_string) {
            // A provider may recall the same memory for every message.
            if live.plugins.recalls.is_new(&notice) {
                live.plugins.notices.notice(notice);
            }
        }
    }
    let budget = assist::budget(window).min(room.saturating_sub(tokens::of_text(draft.text_sent())));
    // Skip `assist` while the engine is still proposing: its answer would arrive too late.
    let quotes = if is_silent || live.compaction.compactor.is_proposing() {
        Vec::new()
    } else {
        let quotes = live.compaction.assistant.consult(|| AssistDraft::User(asked.to_owned()), budget);
        stop.run_until_cancelled(quotes).await.unwrap_or_default()
    };
    let block =
        live.compaction.assistant.block(&quotes, &live.log.journal.conversation(), live.log.journal.view(), budget);
    if let Some(block) = block {
        draft.sent = Some(format!("{}\n\n{block}", draft.text_sent()));
    }
    Ok(draft)
}

/// Tells the user of a breaker that opened or closed, and keeps its state for other processes.
async fn tell_breaker(host: &Host, live: &Live, change: Change) {
    let Change { provider, open, line } = change;
    if let Some(line) = line {
        let fix = Action::ShowPlugin { plugin: provider.clone() };
        live.plugins.notices.notice(if open.is_some() { Notice::new(line, fix) } else { Notice::from(line) });
    }
    let note = open.and_then(|open| serde_json::to_string(&open).ok());
    if let Err(error) = host.store.set_note(&OpenBreaker::note(&provider), note.as_deref()).await {
        tracing::warn!(%error, provider, "the state of a breaker is not stored");
    }
}

async fn answer(
    host: &Host,
    live: &mut Live,
    first: MessageId,
    stop: &CancellationToken,
) -> Result<TurnEnd, AgentError> {
    let mut moment = Moment::TurnStart;
    let budget = Budget::of(host, live);
    for step in 1..=budget.steps {
        live.front.feed.publish(EventKind::StepStarted { step, limit: budget.steps });
        let replied = loop {
            match reply(host, live, moment, ToolChoice::Auto, stop).await {
                Ok(replied) => break replied,
                Err(error) => {
                    let error = refused_tool::explained(host, live, error);
                    if !without_tool::goes_on(host, live, &error, stop).await? {
                        return Err(error);
                    }
                }
            }
        };
        let mut reply = match replied {
            Replied::Whole(reply) => *reply,
            Replied::Stopped(partial) => return stopped(live, first, &partial).await,
            Replied::Failed { error, .. } => return Err(error.into()),
        };
        show_silent_refusal(live, &mut reply);
        let cut = cut::mark(&live.front.feed, &mut reply);
        let (draft, calls) = assistant_message(host, reply, live.log.clock.now());
        let text = draft.content.clone();
        let stored = if calls.is_empty() {
            // One write ends the turn and queues it for the memory providers: no crash separates the two.
            live.log.journal.end_turn(&[draft], first, &live.plugins.deliveries.providers()).await?
        } else {
            live.log.journal.append(&[draft]).await?
        };
        live.front.feed.publish_about(About::message(stored[0].id), EventKind::ReplyDone);
        if calls.is_empty() {
            return Ok(cut.unwrap_or(TurnEnd::Answered { text }));
        }
        live.front.feed.publish(EventKind::StatusChanged { status: live.status(host) });
        let closing = (step == budget.steps).then(|| budget.last_results());
        if !calls::run(host, live, &calls, stored[0].id, closing.as_deref(), stop).await? {
            let drafts = closing::close(&live.log.journal.conversation(), live.log.clock.now());
            live.log.journal.end_turn(&drafts, first, &live.plugins.deliveries.providers()).await?;
            return Ok(TurnEnd::Interrupted);
        }
        moment = Moment::MidTurn;
    }
    budget.summarise(host, live, first, stop).await
}

/// Gives a refusal without text a text, and shows it.
fn show_silent_refusal(live: &Live, reply: &mut Reply) {
    if word_silent_refusal(reply) {
        live.front.feed.publish(EventKind::Text { text: reply.text.clone() });
    }
}

/// Gives a refusal without text a text. False for any other reply.
fn word_silent_refusal(reply: &mut Reply) -> bool {
    let is_silent = reply.finish == Finish::Refused && reply.text.trim().is_empty();
    if is_silent {
        DECLINED.clone_into(&mut reply.text);
    }
    is_silent
}

/// Whether a reply is empty, so that a second request may help.
fn is_empty(reply: &Reply) -> bool {
    reply.text.trim().is_empty() && reply.tool_calls.is_empty() && reply.finish != Finish::Refused
}

/// Stores the received part of a stopped reply with a mark, and queues the turn for the memory providers.
async fn stopped(live: &Live, first: MessageId, partial: &str) -> Result<TurnEnd, AgentError> {
    let partial = partial.trim_end();
    let note = if partial.is_empty() { STOPPED.to_owned() } else { format!("{partial}\n\n{STOPPED}") };
    let draft = Draft::assistant(note, Vec::new(), live.log.clock.now()).by_host();
    live.log.journal.end_turn(&[draft], first, &live.plugins.deliveries.providers()).await?;
    Ok(TurnEnd::Interrupted)
}

fn assistant_message(host: &Host, reply: Reply, now: u64) -> (Draft, Vec<ToolCall>) {
    let ServedModel { provider, model, .. } = host.chain.now();
    let api_mode = provider.style().mode.as_str();
    message_of(reply, &Reader { provider: &model.provider, model: &model.name, api_mode }, now)
}

/// The message of a reply that this model wrote, and its calls.
fn message_of(reply: Reply, writer: &Reader<'_>, now: u64) -> (Draft, Vec<ToolCall>) {
    let Reply { text, reasoning, tool_calls, finish, mut parts, .. } = reply;
    parts.iter_mut().filter_map(Part::payload_mut).for_each(|payload| {
        payload.provider = writer.provider.to_owned();
        payload.model = writer.model.to_owned();
        payload.api_mode = writer.api_mode.to_owned();
    });
    if finish == Finish::Refused && !parts.iter().any(|part| matches!(part, Part::Refusal { .. })) {
        parts.retain(|part| matches!(part, Part::Reasoning { .. }));
        if let Some(text) = reasoning.clone().filter(|_| parts.is_empty()) {
            parts.push(Part::Reasoning { text, payload: None });
        }
        parts.push(Part::Refusal { text: text.clone() });
    }
    let mut draft = Draft::assistant(text, tool_calls.clone(), now);
    draft.reasoning = reasoning;
    if !parts.is_empty() {
        draft = draft.with_parts(parts);
    }
    (draft, tool_calls)
}

/// Fails if a suspended plugin must end the turn.
fn check_halt(host: &Host, live: &Live) -> Result<(), AgentError> {
    if let Some((plugin, why)) = live.plugins.halt.why() {
        return Err(AgentError::Halted { plugin, why, is_engine: false });
    }
    if host.plugins.on_engine_failure() == OnFailure::Stop && live.compaction.faults >= compaction::STRIKES {
        let plugin = live.plugins.engine.name().to_owned();
        let why = format!("the context engine `{plugin}` failed {} times in a row", live.compaction.faults);
        return Err(AgentError::Halted { plugin, why, is_engine: true });
    }
    Ok(())
}

/// Makes room and requests a reply. Repeats the request after an overflow or an empty reply, or with another model.
async fn reply(
    host: &Host,
    live: &mut Live,
    mut moment: Moment,
    tool_choice: ToolChoice,
    stop: &CancellationToken,
) -> Result<Replied, AgentError> {
    let (mut overflows, mut empty) = (0, 0);
    // Whether a compaction was tried after a refusal that may be about the size, and the window that the refusal named.
    let mut guessed: Option<Option<u32>> = None;
    // The error if a request that the provider refused as too long cannot be shortened.
    let mut too_long = None;
    let mut attempts = Attempts::default();
    loop {
        check_halt(host, live)?;
        let room = room::make_room(host, live, moment, stop).await.map_err(|error| match (error, too_long.take()) {
            (AgentError::WindowFull { .. }, Some(refused)) => refused,
            (error, _) => error,
        })?;
        if !room {
            return Ok(Replied::Stopped(String::new()));
        }
        let (sent, window) = (live.compaction.compactor.ruler().counted(live.estimate()), host.chain.window());
        let replied = ask(host, live, tool_choice, &attempts, stop).await?;
        // The guess was right: the shorter request is accepted.
        if let (Replied::Whole(_), Some(Some(limit))) = (&replied, guessed) {
            serving::learn(host, live, limit).await;
        }
        match replied {
            // The same request would use up the limit again.
            Replied::Whole(reply) if is_empty(&reply) && cut::is_cut(&reply) => {
                let model = host.chain.now().model.name.clone();
                return Err(AgentError::CutBeforeText { model, thought: cut::has_thought(&reply) });
            }
            Replied::Whole(reply) if is_empty(&reply) => {
                empty += 1;
                if empty > 1 {
                    return Err(AgentError::EmptyReply { model: host.chain.now().model.name.clone() });
                }
            }
            Replied::Failed { error: ModelError::TooLong { message, limit }, .. }
                if overflows < MAX_OVERFLOWS && host.settings.compression =>
            {
                overflows += 1;
                let limit = limit.or_else(|| limit_below(&message, sent));
                let learned = match limit {
                    Some(limit) if serving::learn(host, live, limit).await => {
                        format!("Hermes keeps to {limit} tokens for `{}`, ", host.chain.now().model.name)
                    }
                    _ => String::new(),
                };
                live.front.feed.notice(format!(
                    "the provider rejected the request as too long ({message}); {learned}compacting and trying again"
                ));
                too_long = Some(AgentError::WindowSmaller { window, limit, message });
                moment = Moment::Overflow;
            }
            Replied::Failed { error, shown: false }
                if guessed.is_none() && host.settings.compression && error.may_be_size(sent, window) =>
            {
                guessed = Some(limit_below(&error.to_string(), sent));
                live.front.feed.notice(format!("{error}; perhaps it is too long: compacting and trying once more"));
                too_long = Some(error.into());
                moment = Moment::Overflow;
            }
            // Half an answer is followed by no other one.
            Replied::Failed { error, shown: false } => {
                serving::after_failure(host, live, &mut attempts, error).await?;
            }
            replied => return Ok(replied),
        }
    }
}

/// The line for the user if the model gets a repaired log instead of the stored one.
fn incomplete(repairs: Repairs) -> String {
    let only_results = Repairs { calls_answered: repairs.calls_answered, ..Repairs::default() };
    match repairs.calls_answered {
        1 if repairs == only_results => {
            "1 tool call of this session has no stored result, perhaps after a crash; the model \
                                         is told that it was interrupted and may have run"
                .to_owned()
        }
        calls if repairs == only_results => format!(
            "{calls} tool calls of this session have no stored result, perhaps after a crash; the model is told that they \
             were interrupted and may have run"
        ),
        _ => format!(
            "the log of this session is damaged ({repairs}); the log is left unchanged, and the model gets a corrected copy"
        ),
    }
}

/// Sends one request: the frozen prefix, then the view.
async fn ask(
    host: &Host,
    live: &mut Live,
    tool_choice: ToolChoice,
    attempts: &Attempts,
    stop: &CancellationToken,
) -> Result<Replied, AgentError> {
    let ServedModel { provider, model, .. } = host.chain.now();
    live.prefix.outgoing.catch_up(&live.prefix.frozen, &live.log.journal).await?;
    if let Some(repairs) = live.prefix.outgoing.take_repairs() {
        live.front.feed.notice(incomplete(repairs));
    }
    tokio::select! {
        biased;
        () = stop.cancelled() => return Ok(Replied::Stopped(String::new())),
        () = live.plugins.dispatcher.catch_up() => {}
    }
    check_validity(live);
    let estimate = live.estimate();
    let mut pending = live.prefix.outgoing.begin_request(&live.prefix.frozen, &live.log.journal, live.log.clock.now());
    // A process that dies during the request leaves this row, for which the provider may charge.
    match host.store.record_request(&live.log.session, &pending.record).await {
        Ok(number) => pending.record.number = number,
        // A missing ledger entry must not end the turn.
        Err(error) => tracing::warn!(%error, "a request was not recorded in the ledger"),
    }
    let request = Request {
        model: &model.name,
        prefix: live.prefix.outgoing.prefix(),
        breakpoints: live.prefix.outgoing.breakpoints(),
        max_tokens: None,
        temperature: None,
        schema: None,
        tool_choice,
        effort: host.effort,
    };
    live.plugins.dispatcher.before_model(&model.name);
    live.front.feed.publish(EventKind::Thinking);
    let begun = Instant::now();
    let (mut partial, feed) = (String::new(), &live.front.feed);
    let mut scrubber = Scrubber::default();
    let mut shown = false;
    let reply = {
        let mut on_delta = |delta: Delta<'_>| match delta {
            Delta::Text(text) => {
                shown = true;
                let text = scrubber.push(text);
                if !text.is_empty() {
                    partial.push_str(&text);
                    feed.publish(EventKind::Text { text });
                }
            }
            Delta::Reasoning(text) => {
                shown = true;
                feed.publish(EventKind::Reasoning { text: text.to_owned() });
            }
            Delta::Call(name) => feed.publish(EventKind::CallForming { name: name.to_owned() }),
            Delta::Notice(text) => feed.notice(text),
            Delta::Again => {
                shown = false;
                partial.clear();
                scrubber = Scrubber::default();
                feed.publish(EventKind::ReplyCut);
            }
        };
        let persistence = match attempts.has_another(&host.chain) {
            true => Persistence::Brief,
            // The agent that delegated goes on with what it learns, and tries its own requests again.
            false if live.is_delegate => Persistence::Usual,
            false => Persistence::Full,
        };
        let answer = provider.complete_with(persistence, &request, &mut on_delta);
        tokio::select! {
            biased;
            () = stop.cancelled() => None,
            reply = answer => Some(reply),
        }
    };
    let rest = scrubber.finish();
    if !rest.is_empty() {
        partial.push_str(&rest);
        feed.publish(EventKind::Text { text: rest });
    }
    let reply = match reply {
        Some(Ok(reply)) => scrubbed(reply),
        Some(Err(error)) => {
            if error.is_charged() {
                complete_request(host, live, pending, None, None).await;
            } else if let Err(error) = host.store.withdraw_request(&live.log.session, pending.record.number).await {
                tracing::warn!(%error, "a refused request stays in the ledger");
            }
            return Ok(Replied::Failed { error, shown });
        }
        None => {
            complete_request(host, live, pending, None, None).await;
            return Ok(Replied::Stopped(partial));
        }
    };
    let elapsed = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    live.plugins.dispatcher.after_model(&reply.model, reply.usage.unwrap_or_default(), elapsed);
    room::counted(host, live, estimate, reply.usage).await;
    complete_request(host, live, pending, reply.usage, Some(&reply.model)).await;
    serving::answered(host);
    learned::accepted(host.store.as_ref(), host.chain.now(), host.chain.window_source(), reply.usage).await;
    if let Some(usage) = reply.usage {
        let model = reply.model.clone();
        live.front.feed.publish(EventKind::Used { model, usage, elapsed_ms: elapsed });
    }
    Ok(Replied::Whole(Box::new(reply)))
}

/// A reply without the fences of recalled text, which a model sometimes repeats.
fn scrubbed(mut reply: Reply) -> Reply {
    reply.text = fence::scrubbed(reply.text);
    for part in &mut reply.parts {
        if let Part::Text { text, .. } = part {
            *text = fence::scrubbed(std::mem::take(text));
        }
    }
    reply
}

/// Completes the row of a request. `answered` is the model that the reply names.
async fn complete_request(
    host: &Host,
    live: &mut Live,
    pending: PendingRequest,
    usage: Option<Usage>,
    answered: Option<&str>,
) {
    let record = live.prefix.outgoing.finish_request(pending, usage, answered);
    if let Some(line) = live.prefix.outgoing.take_kept_warm() {
        live.front.feed.notice(line);
    }
    if let Err(error) = host.store.complete_request(&live.log.session, &record).await {
        tracing::warn!(%error, "a request was not completed in the ledger");
    }
}

/// Checks the whole conversation in debug builds, because requests are built incrementally.
fn check_validity(live: &Live) {
    if cfg!(debug_assertions) {
        let shown = render::render(&live.log.journal.conversation(), live.log.journal.view());
        if let Err(invalid) = validity::check(&shown) {
            debug_assert!(false, "the request is invalid for some providers: {invalid}");
        }
    }
}
