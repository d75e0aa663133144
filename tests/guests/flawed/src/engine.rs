//! An engine that folds whole turns into one line, with possible flaws.

use hermes_plugin::context_assist::{Draft, Place, Quote};
use hermes_plugin::context_engine::{Advice, Item, Moment, Plan, Pressure, Request, Segment, Summary, Timing};
use hermes_plugin::{ContextAssist, ContextEngine, Error, Header, MessageId, MessageRange, Model, Progress, Role};

use crate::Flawed;

impl ContextEngine for Flawed {
    fn model_changed(&mut self, _: Model) -> Result<(), Error> {
        Ok(())
    }

    fn observe(&mut self, headers: Vec<Header>) -> Result<(), Error> {
        self.headers.extend(headers);
        Ok(())
    }

    fn rewound(&mut self, first: MessageId) -> Result<(), Error> {
        self.headers.retain(|header| header.id < first);
        Ok(())
    }

    fn assess(&mut self, pressure: &Pressure) -> Advice {
        if self.has("subtracts") {
            let left = pressure.context_length.checked_sub(pressure.prompt_tokens).expect("there is room");
            return Advice::new(false, if left < 100 { Timing::Now } else { Timing::NotNow });
        }
        let is_full = pressure.prompt_tokens >= pressure.context_length / 10 * 8;
        let due = is_full || matches!(pressure.moment, Moment::Overflow | Moment::Manual);
        Advice::new(true, if due { Timing::Now } else { Timing::NotNow })
    }

    fn prepare(&mut self, _: &Request) -> Result<Progress, Error> {
        Ok(if self.has("never-done") { Progress::More } else { Progress::Done })
    }

    fn propose(&mut self, request: &Request) -> Result<Option<Plan>, Error> {
        if self.has("never-proposes") {
            return Ok(None);
        }
        let Some(newest) = self.headers.last().map(|header| header.turn) else { return Ok(None) };
        let mut folded = self.headers.iter().take_while(|header| header.turn < newest).count();
        if self.has("splits-calls")
            && let Some(result) = self.headers.iter().position(|header| header.role == Role::Tool)
        {
            folded = result;
        }
        if folded == 0 || folded == self.headers.len() {
            return Ok(None);
        }
        let covers = MessageRange::new(self.headers[0].id, self.headers[folded - 1].id);
        let key = format!("flawed:{}", covers.last);
        if request.view.iter().any(|item| matches!(item, Item::Summary(summary) if summary.key == key)) {
            return Ok(None);
        }
        let rest = MessageRange::new(self.headers[folded].id, self.headers[self.headers.len() - 1].id);
        let content = format!("{folded} messages were said before.");
        let mut segments = vec![Segment::Restore(rest)];
        if !self.has("loses") {
            segments.insert(0, Segment::Summary(Summary { key, content, covers: vec![covers] }));
        }
        Ok(Some(Plan { segments, reason: "the window is full".to_owned(), extra: Vec::new() }))
    }

    fn status(&self) -> String {
        if self.has("odd-status") { "fine".to_owned() } else { format!("{{\"messages\":{}}}", self.headers.len()) }
    }
}

impl ContextAssist for Flawed {
    fn assist(&mut self, _: &Draft, _: u32) -> Result<Vec<Quote>, Error> {
        let Some(first) = self.headers.iter().find(|header| header.role == Role::User && header.bytes > 0) else {
            return Ok(Vec::new());
        };
        let length = if self.has("quotes-beyond") { first.bytes + 1 } else { 1 };
        Ok(vec![Quote { id: first.id, place: Place::Text, start: 0, length }])
    }
}
