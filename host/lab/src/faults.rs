//! Reference faults: text that a reply repeats although its request no longer showed it.
//!
//! The references of a recorded reply are its lines that occurred earlier in the conversation. A reference that the
//! context of the request did not show is a fault, like an access to a swapped-out page. Only literal reuse is detected.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hermes_conversation::Draft;
use hermes_engine_trials::passage::{self, Line};
use hermes_recordings::is_reply;

use crate::context::{Block, Context};

/// For each recorded reply, the lines that occurred earlier.
#[derive(Debug, Clone, Default)]
pub struct References {
    replies: Vec<Vec<String>>,
}

impl References {
    /// The references of a recording.
    pub fn of(drafts: &[Draft]) -> Self {
        let mut seen = HashSet::new();
        let mut replies = Vec::new();
        for draft in drafts {
            let said = passage::said(draft);
            let lines = passage::distinct(&said);
            if is_reply(draft) {
                let known = lines.iter().filter(|line| seen.contains(&Line::of(line)));
                replies.push(known.map(|line| (*line).to_owned()).collect());
            }
            seen.extend(lines.into_iter().map(Line::of));
        }
        Self { replies }
    }

    /// The references of the reply to a request, counted from 0.
    pub fn of_reply(&self, request: usize) -> &[String] {
        self.replies.get(request).map_or(&[], Vec::as_slice)
    }
}

/// The lines that a context shows, updated from request to request.
#[derive(Debug, Default)]
pub struct Visible {
    blocks: Vec<Arc<Block>>,
    counts: HashMap<Line, u32>,
}

impl Visible {
    /// Replaces the context.
    pub fn show(&mut self, context: &Context) {
        let same = self.blocks.iter().zip(&context.blocks).take_while(|(old, new)| Arc::ptr_eq(old, new)).count();
        for block in self.blocks.drain(same..) {
            for line in block.lines() {
                if let Some(count) = self.counts.get_mut(line) {
                    *count -= 1;
                    if *count == 0 {
                        self.counts.remove(line);
                    }
                }
            }
        }
        for block in &context.blocks[same..] {
            for line in block.lines() {
                *self.counts.entry(*line).or_insert(0) += 1;
            }
            self.blocks.push(Arc::clone(block));
        }
    }

    /// Whether the context shows a line, by itself or as part of another line.
    pub fn shows(&self, line: &str) -> bool {
        self.counts.contains_key(&Line::of(line)) || self.blocks.iter().any(|block| block.text().contains(line))
    }

    /// Those of these lines that the context does not show.
    pub fn lacking(&self, references: &[String]) -> Vec<String> {
        references.iter().filter(|line| !self.shows(line)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use hermes_conversation::{MessageId, ToolCall};

    use hermes_conversation::render::Rendering;

    use super::*;
    use crate::context;

    const EDITED: &str = "    let total = prices.iter().sum::<f64>();";
    const OTHER: &str = "fn nobody_ever_calls_this_again() {}";

    fn recording() -> Vec<Draft> {
        let read = ToolCall { id: "a".into(), name: "read".into(), arguments: r#"{"path":"src/lib.rs"}"#.into() };
        let edit = ToolCall {
            id: "b".into(),
            name: "edit".into(),
            arguments: serde_json::json!({ "old": EDITED, "new": "let total: f64 = prices.iter().copied().sum();" })
                .to_string(),
        };
        vec![
            Draft::user("add it up", 1),
            Draft::assistant("", vec![read.clone()], 2),
            Draft::result(&read, format!("{OTHER}\n{EDITED}\n"), 3),
            Draft::assistant("I edit that line now.", vec![edit.clone()], 4),
            Draft::result(&edit, "done", 5),
            Draft::assistant("let total: f64 = prices.iter().copied().sum();", Vec::new(), 6),
        ]
    }

    #[test]
    fn references_include_earlier_lines_in_arguments() {
        let references = References::of(&recording());
        assert!(references.of_reply(0).is_empty());
        assert_eq!(references.of_reply(1), [EDITED.trim()]);
        assert_eq!(references.of_reply(2), ["let total: f64 = prices.iter().copied().sum();"]);
        assert!(references.of_reply(9).is_empty());
    }

    #[test]
    fn only_lines_missing_from_the_context_are_faults() {
        let recording = recording();
        let references = References::of(&recording);
        let message = |at: usize| recording[at].clone().numbered(MessageId(at as u64));
        let mut visible = Visible::default();
        let mut whole = Context::default();
        context::append(&mut whole.blocks, &mut Rendering::default(), &[message(0), message(1), message(2)]);
        visible.show(&whole);
        assert_eq!(visible.lacking(references.of_reply(1)), [""; 0]);
        let mut folded = Context::default();
        let mut rendering = Rendering::default();
        context::append(&mut folded.blocks, &mut rendering, &[message(0)]);
        visible.show(&folded);
        assert_eq!(visible.lacking(references.of_reply(1)), [EDITED.trim()]);
        // A summary that quotes the line also shows it.
        let quoting = Draft::user(format!("it says `{}` there", EDITED.trim()), 7).numbered(MessageId(9));
        context::append(&mut folded.blocks, &mut rendering, &[quoting]);
        visible.show(&folded);
        assert_eq!(visible.lacking(references.of_reply(1)), [""; 0]);
    }
}
