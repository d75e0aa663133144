//! How many requests with tools a turn may make, and the request after them, which asks for a summary.
//!
//! The last results tell the model that no call follows, so that the summary needs no message of its own: roles alternate, and
//! each request extends the previous one.

use hermes_conversation::{Draft, MessageId, ToolCall};
use hermes_models::{Reply, ToolChoice};
use hermes_plugin_host::Moment;
use hermes_protocol::{EventKind, RefusedBy, TurnEnd};
use tokio_util::sync::CancellationToken;

use super::{Replied, assistant_message, cut, reply, show_silent_refusal, stopped};
use crate::error::AgentError;
use crate::feed::About;
use crate::host::Host;
use crate::live::Live;

/// The limit of a turn, and the setting that it comes from.
pub(super) struct Budget {
    pub(super) steps: u32,
    setting: &'static str,
}

impl Budget {
    pub(super) fn of(host: &Host, live: &Live) -> Self {
        let (steps, setting) = match live.is_delegate {
            true => (host.settings.delegation.max_iterations, "delegation.max_iterations"),
            false => (host.settings.max_turns, "agent.max_turns"),
        };
        Self { steps: steps.max(1), setting }
    }

    /// What the results of the last calls end with.
    pub(super) fn last_results(&self) -> String {
        let Self { steps, setting } = self;
        format!(
            "[This turn has made {steps} requests, the limit of {setting}, so your next reply ends it: calls in that reply are \
             not run. Write a text: what you did and found, what is still to be done, and how to go on. After the user's next \
             message you can call tools again.]"
        )
    }

    /// Asks for a summary, and ends the turn with it. Without a summary, the turn ends with a note of the host.
    pub(super) async fn summarise(
        &self,
        host: &Host,
        live: &mut Live,
        first: MessageId,
        stop: &CancellationToken,
    ) -> Result<TurnEnd, AgentError> {
        let Self { steps, setting } = self;
        let text =
            format!("the turn has made {steps} requests, the limit of {setting}; asking the model for a summary");
        live.front.feed.notice_again(text);
        live.front.feed.publish(EventKind::StepStarted { step: steps + 1, limit: *steps });
        let replied = match reply(host, live, Moment::MidTurn, ToolChoice::None, stop).await {
            Ok(Replied::Stopped(partial)) => return stopped(live, first, &partial).await,
            Ok(Replied::Whole(mut reply)) => {
                show_silent_refusal(live, &mut reply);
                // The mark in the summary says that it was cut.
                cut::mark(&live.front.feed, &mut reply);
                Some(*reply)
            }
            Ok(Replied::Failed { error, .. }) => without_summary(live, &error.into()),
            Err(error @ (AgentError::Model(_) | AgentError::EmptyReply { .. } | AgentError::CutBeforeText { .. })) => {
                without_summary(live, &error)
            }
            Err(error) => return Err(error),
        };
        let now = live.log.clock.now();
        let replied = replied.map(|reply| assistant_message(host, reply, now));
        let summary = replied.as_ref().map(|(draft, _)| draft.content.clone()).filter(|text| !text.trim().is_empty());
        let calls = replied.as_ref().map(|(_, calls)| calls.clone()).unwrap_or_default();
        let is_reply = replied.is_some();
        let drafts = self.closing_messages(replied, now);
        let stored = live.log.journal.end_turn(&drafts, first, &live.plugins.deliveries.providers()).await?;
        if is_reply {
            live.front.feed.publish_about(About::message(stored[0].id), EventKind::ReplyDone);
        }
        for (call, result) in calls.iter().zip(&stored[1..]) {
            publish_refused(live, call, result.id, &result.content);
        }
        Ok(TurnEnd::OutOfBudget { steps: *steps, setting: (*setting).to_owned(), summary })
    }

    /// The reply, a result for each call in it, and the host's note if the reply does not end the turn by itself.
    fn closing_messages(&self, replied: Option<(Draft, Vec<ToolCall>)>, now: u64) -> Vec<Draft> {
        let Self { steps, setting } = self;
        let (draft, calls) = replied.map_or((None, Vec::new()), |(draft, calls)| (Some(draft), calls));
        let refusal = format!("not run: this turn has made {steps} requests, the limit of {setting}");
        let results = calls.iter().map(|call| Draft::result(call, refusal.as_str(), now).by_host());
        let note =
            format!("[Stopped after {steps} steps of this turn, the limit of {setting}. Say \"go on\" to continue.]");
        let note = Draft::assistant(note, Vec::new(), now).by_host();
        let is_closed = draft.is_some() && calls.is_empty();
        draft.into_iter().chain(results).chain((!is_closed).then_some(note)).collect()
    }
}

/// Says why there is no summary.
fn without_summary(live: &Live, error: &AgentError) -> Option<Reply> {
    live.front.feed.notice(format!("there is no summary: {error}"));
    None
}

/// Shows a call that was not run with its result.
fn publish_refused(live: &Live, call: &ToolCall, result: MessageId, content: &str) {
    let (name, arguments) = (call.name.clone(), call.arguments.clone());
    let feed = &live.front.feed;
    feed.publish_about(About::call(&call.id), EventKind::ToolStarted { name: name.clone(), arguments });
    let about = About { message: Some(result), ..About::call(&call.id) };
    let content = content.to_owned();
    let (refused, changes) = (Some(RefusedBy::Rule), Vec::new());
    feed.publish_about(about, EventKind::ToolFinished { name, content, failed: true, elapsed_ms: 0, refused, changes });
}
