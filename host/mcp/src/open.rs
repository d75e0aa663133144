//! The open requests, and the assignment of errors without an id to them.
//!
//! A server that cannot read a request, or loses its id, answers with an error without an id. No call would get that error, and
//! the call that failed would wait until its time is up. Each request gets one answer. So as soon as there are as many such
//! errors as open requests, each open request has failed.

use std::collections::{BTreeSet, VecDeque};

use rmcp::RoleClient;
use rmcp::model::{ClientNotification, JsonRpcMessage, NumberOrString, RequestId, ServerJsonRpcMessage};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};

/// The most errors without a request that are kept.
const MOST: usize = 64;
/// The code of an error about an unknown method.
const UNKNOWN_METHOD: i32 = -32_601;

/// The requests of one connection that are open.
#[derive(Debug, Default)]
pub(crate) struct OpenRequests {
    open: BTreeSet<i64>,
    /// The smallest and the largest id so far. Answers to earlier requests that come late or twice are known by them.
    so_far: Option<(i64, i64)>,
    /// Errors that name no open request.
    stray: VecDeque<ServerJsonRpcMessage>,
    /// Notifications that an error without an id may still answer. Some servers answer notifications in their turn, although the
    /// protocol forbids it.
    notified: usize,
    /// The largest id before the last of them. With the answer to a later request, all of them are over.
    notified_behind: i64,
}

impl OpenRequests {
    /// A message to the server.
    pub(crate) fn sent(&mut self, message: &TxJsonRpcMessage<RoleClient>) {
        match message {
            JsonRpcMessage::Request(request) => {
                if let NumberOrString::Number(id) = request.id {
                    self.open.insert(id);
                    let (first, last) = self.so_far.unwrap_or((id, id));
                    self.so_far = Some((first.min(id), last.max(id)));
                }
            }
            JsonRpcMessage::Notification(notification) => {
                self.notified += 1;
                self.notified_behind = self.so_far.map_or(i64::MIN, |(_, last)| last);
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification {
                    cancelled.params.request_id.iter().for_each(|id| self.close(id));
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
    }

    /// Nobody waits for the answer any more.
    pub(crate) fn close(&mut self, id: &RequestId) {
        if let NumberOrString::Number(id) = id {
            self.open.remove(id);
        }
        if self.open.is_empty() {
            self.stray.clear();
        }
    }

    /// A message of the server: the same if somebody waits for it, and else what can be handed on in its place.
    pub(crate) fn received(&mut self, message: RxJsonRpcMessage<RoleClient>) -> Option<RxJsonRpcMessage<RoleClient>> {
        let id = match &message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => return Some(message),
        };
        let is_known = match id {
            Some(NumberOrString::Number(id)) => self.so_far.is_some_and(|(first, last)| (first..=last).contains(id)),
            Some(NumberOrString::String(_)) | None => false,
        };
        if let Some(id) = id
            && is_known
        {
            if matches!(id, NumberOrString::Number(id) if *id > self.notified_behind) {
                self.notified = 0;
            }
            self.close(id);
            return Some(message);
        }
        let stray = match message {
            JsonRpcMessage::Error(error) if self.notified > 0 && error.error.code.0 == UNKNOWN_METHOD => {
                self.notified -= 1;
                return None;
            }
            JsonRpcMessage::Error(error) => JsonRpcMessage::Error(error),
            JsonRpcMessage::Response(response) => error_in_place_of(&response.id)?,
            other => other,
        };
        if self.stray.len() < MOST && !self.open.is_empty() {
            self.stray.push_back(stray);
        }
        None
    }

    /// An error for a request that it can only mean.
    pub(crate) fn meant(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        if self.open.is_empty() || self.stray.len() < self.open.len() {
            return None;
        }
        let id = self.open.pop_first()?;
        let mut message = self.stray.pop_front()?;
        if let JsonRpcMessage::Error(error) = &mut message {
            error.id = Some(NumberOrString::Number(id));
        }
        Some(message)
    }
}

/// An error in place of a result for a request that nobody made.
fn error_in_place_of(id: &RequestId) -> Option<ServerJsonRpcMessage> {
    let why = format!("it answers the request {id:?}, which was not made", id = id.to_string());
    serde_json::from_value(crate::mended::unreadable(&serde_json::Value::Null, &why)).ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// What somebody waits for after these messages: sent ones begin with `>`.
    fn received(messages: &[Value]) -> Vec<(i64, String)> {
        let mut requests = OpenRequests::default();
        let mut answers = Vec::new();
        let mut hand_on = |message: &RxJsonRpcMessage<RoleClient>| match message {
            JsonRpcMessage::Error(error) => match &error.id {
                Some(NumberOrString::Number(id)) => answers.push((*id, error.error.message.to_string())),
                _ => panic!("{error:?}"),
            },
            JsonRpcMessage::Response(response) => match response.id {
                NumberOrString::Number(id) => answers.push((id, "result".to_owned())),
                NumberOrString::String(_) => panic!("{response:?}"),
            },
            _ => {}
        };
        for message in messages {
            let mut message = message.clone();
            message["jsonrpc"] = "2.0".into();
            if message.get("method").is_some() {
                requests.sent(&serde_json::from_value(message).unwrap());
            } else {
                let message: RxJsonRpcMessage<RoleClient> = serde_json::from_value(message).unwrap();
                requests.received(message).iter().for_each(&mut hand_on);
            }
            while let Some(message) = requests.meant() {
                hand_on(&message);
            }
        }
        answers
    }

    #[test]
    fn an_error_without_a_request_ends_the_one_that_it_can_only_mean() {
        let ask = |id: i64| json!({"id": id, "method": "ping"});
        let answer = |id: i64| json!({"id": id, "result": {}});
        let error = |words: &str| json!({"error": {"code": -32_700, "message": words}});
        let unknown = || json!({"error": {"code": -32_601, "message": "unknown"}});
        let notify = || json!({"method": "notifications/initialized"});
        let cancel = |id: i64| json!({"method": "notifications/cancelled", "params": {"requestId": id}});
        let result = |id: i64| (id, "result".to_owned());
        let failed = |id: i64, words: &str| (id, words.to_owned());
        /// The messages in their order, and how each request ends.
        type Case<'a> = (&'a [Value], &'a [(i64, String)]);
        let cases: [Case<'_>; 17] = [
            (&[ask(1), error("no")], &[failed(1, "no")]),
            // It waits until one is left.
            (&[ask(1), ask(2), error("no"), answer(1)], &[result(1), failed(2, "no")]),
            (&[ask(1), ask(2), error("a"), error("b")], &[failed(1, "a"), failed(2, "b")]),
            (&[ask(1), ask(2), error("no"), cancel(1)], &[failed(2, "no")]),
            // Nobody waits, or nobody waits any more.
            (&[error("no"), ask(1)], &[]),
            (&[ask(1), ask(2), error("no"), answer(1), cancel(2), ask(3)], &[result(1), failed(2, "no")]),
            (&[ask(1), ask(2), ask(3), error("no"), cancel(1), cancel(2), cancel(3), ask(4)], &[failed(3, "no")]),
            (&[ask(1), json!({"id": -1, "error": {"code": 1, "message": "no"}})], &[failed(1, "no")]),
            (&[ask(1), json!({"id": "x", "error": {"code": 1, "message": "no"}})], &[failed(1, "no")]),
            (
                &[ask(1), json!({"id": 9, "result": {}})],
                &[failed(1, "its answer cannot be read: it answers the request \"9\", which was not made")],
            ),
            // An answer that comes twice or late means nobody else.
            (&[ask(1), answer(1), ask(2), answer(1)], &[result(1), result(1)]),
            (&[ask(1), cancel(1), ask(2), answer(1), answer(2)], &[result(1), result(2)]),
            // A server that answers a notification.
            (&[notify(), ask(1), unknown(), answer(1)], &[result(1)]),
            (&[notify(), ask(1), unknown(), unknown()], &[failed(1, "unknown")]),
            // It does so in its turn: no error behind a later answer means the notification.
            (&[notify(), ask(1), answer(1), ask(2), unknown()], &[result(1), failed(2, "unknown")]),
            (
                &[ask(0), answer(0), notify(), ask(1), answer(1), ask(2), unknown()],
                &[result(0), result(1), failed(2, "unknown")],
            ),
            (&[ask(1), notify(), ask(2), answer(1), unknown(), answer(2)], &[result(1), result(2)]),
        ];
        for (messages, expected) in cases {
            assert_eq!(received(messages), expected, "{messages:?}");
        }
    }
}
