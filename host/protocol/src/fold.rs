//! Applies events to a snapshot.

use crate::event::{Event, EventKind};
use crate::snapshot::{CountedReply, OpenQuestion, RunningCall, Snapshot};

impl Snapshot {
    /// Updates the state with an event.
    pub fn apply(&mut self, event: &Event) {
        if let EventKind::Snapshot(snapshot) = &event.kind {
            self.clone_from(snapshot);
            return;
        }
        self.last_message = self.last_message.max(event.message);
        match &event.kind {
            EventKind::Opened { protocol, model, engine, .. } => {
                self.protocol.clone_from(protocol);
                self.model = Some(model.clone());
                self.engine = Some(engine.clone());
            }
            EventKind::Switched { model, engine } => {
                self.model = Some(model.clone());
                self.engine = Some(engine.clone());
            }
            EventKind::ModeChosen { mode } => {
                if let Some(status) = &mut self.status {
                    status.mode = *mode;
                }
            }
            EventKind::TurnStarted => {
                self.turn = event.turn;
                self.clear_reply();
            }
            EventKind::Text { text } => self.text.push_str(text),
            EventKind::Reasoning { text } => self.reasoning.push_str(text),
            EventKind::ReplyDone | EventKind::ReplyCut => self.clear_reply(),
            EventKind::ToolStarted { name, arguments } => {
                if let Some(call) = &event.call {
                    let (call, name, arguments) = (call.clone(), name.clone(), arguments.clone());
                    self.running.push(RunningCall { call, name, arguments });
                }
            }
            EventKind::ToolFinished { .. } => {
                // A model may use one id for two calls; each result ends one of them.
                if let Some(at) = self.running.iter().position(|running| Some(&running.call) == event.call.as_ref()) {
                    self.running.remove(at);
                }
            }
            EventKind::Used { model, usage, elapsed_ms } => {
                self.counted = Some(CountedReply { model: model.clone(), usage: *usage, elapsed_ms: *elapsed_ms });
            }
            EventKind::StatusChanged { status } | EventKind::CompressionEnded { status, .. } => {
                self.status = Some(status.clone());
            }
            EventKind::TurnEnded { status, .. } => {
                self.status = Some(status.clone());
                self.turn = None;
                self.running.clear();
                self.clear_reply();
            }
            EventKind::TaskChanged { task } => {
                self.tasks.retain(|known| known.number != task.number);
                if !task.state.is_over() {
                    self.tasks.push(task.clone());
                    self.tasks.sort_by_key(|task| task.number);
                }
            }
            EventKind::Rewound { .. } => self.last_message = event.message,
            EventKind::Asked { question, query } => {
                self.questions.push(OpenQuestion { question: *question, query: query.clone() });
            }
            EventKind::Closed { question, .. } => self.questions.retain(|open| open.question != *question),
            EventKind::Ended => self.ended = true,
            EventKind::Snapshot(_)
            | EventKind::StepStarted { .. }
            | EventKind::Thinking
            | EventKind::CallForming { .. }
            | EventKind::Compacted { .. }
            | EventKind::Steered { .. }
            | EventKind::CompressionStarted
            | EventKind::CompressionPreviewed { .. }
            | EventKind::PromptRebuilt { .. }
            | EventKind::Branched { .. }
            | EventKind::FilesRestored { .. }
            | EventKind::Notice { .. }
            | EventKind::Progress { .. } => {}
        }
    }

    fn clear_reply(&mut self) {
        self.text.clear();
        self.reasoning.clear();
    }
}

#[cfg(test)]
mod tests {
    use hermes_conversation::MessageId;

    use super::*;
    use crate::id::{CallId, Epoch, Position};

    fn about(message: Option<u64>, call: Option<&str>, kind: EventKind) -> Event {
        Event {
            position: Position { epoch: Epoch("e".to_owned()), sequence: 1 },
            session: None,
            turn: None,
            message: message.map(MessageId),
            call: call.map(|call| CallId(call.to_owned())),
            kind,
        }
    }

    #[test]
    fn no_message_behind_a_rewind_is_the_last_one() {
        let mut snapshot = Snapshot::default();
        for message in [3, 4, 7] {
            snapshot.apply(&about(Some(message), None, EventKind::ReplyDone));
        }
        assert_eq!(snapshot.last_message, Some(MessageId(7)));
        snapshot.apply(&about(Some(4), None, EventKind::Rewound { messages: 2 }));
        assert!(snapshot.last_message.is_none_or(|last| last <= MessageId(4)), "{:?}", snapshot.last_message);
    }

    #[test]
    fn a_result_ends_one_of_two_calls_with_its_id() {
        let started = || EventKind::ToolStarted { name: "read".to_owned(), arguments: "{}".to_owned() };
        let finished = || EventKind::ToolFinished {
            name: "read".to_owned(),
            content: String::new(),
            failed: false,
            elapsed_ms: 1,
            refused: None,
            changes: Vec::new(),
        };
        let mut snapshot = Snapshot::default();
        let mut running = Vec::new();
        for kind in [started(), started(), finished(), finished()] {
            snapshot.apply(&about(None, Some("c"), kind));
            running.push(snapshot.running.len());
        }
        assert_eq!(running, [1, 2, 1, 0]);
    }
}
