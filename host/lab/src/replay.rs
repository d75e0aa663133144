//! Replays a recording through columns.

use hermes_conversation::render::Rendering;
use hermes_conversation::{Conversation, Message, MessageId, Usage};
use hermes_engine_trials::needles::Recovered;
use hermes_engine_trials::timing::Timing;
use hermes_engine_trials::trace::Plans;
use hermes_engine_trials::watch::Effort;
use hermes_recordings::is_reply;
use hermes_testkit::Written;

use crate::faults::References;
use crate::figures::{self, Figures, Point, Tally};
use crate::trace::{EndRow, RequestRow, Row};
use crate::{Context, Recording, Terms};

/// A request to answer.
#[derive(Debug, Clone, Copy)]
pub struct Due<'a> {
    /// The Unix time of the recording, in milliseconds.
    pub now_ms: u64,
    /// The messages since the previous request.
    pub new: &'a [Message],
    /// The usage of the previous request, as its provider would have counted it.
    pub last: Option<Usage>,
}

/// The error that ends a column; the other columns continue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("at request {request}: {why}")]
pub struct ColumnError {
    /// The number of the request, starting at 1; 0 before the first.
    pub request: u64,
    /// What failed, and what to do.
    pub why: String,
}

/// A column's answer to a request.
#[derive(Debug, Default)]
pub struct Answer {
    /// The messages of the request.
    pub context: Context,
    /// The summariser's calls since the previous request.
    pub summaries: Vec<Written>,
    /// What became of its plans since the previous request; `None` for columns without plans.
    pub plans: Option<Plans>,
}

/// The final results of a column.
#[derive(Debug, Default)]
pub struct Remains {
    /// The summariser's calls since the last request.
    pub summaries: Vec<Written>,
    /// What became of its plans since the last request.
    pub plans: Option<Plans>,
    /// Its work apart from the contexts.
    pub effort: Effort,
    /// The notices that the user would have seen, without duplicates.
    pub notices: Vec<String>,
    /// The real time that its plans took.
    pub timing: Option<Timing>,
    /// What its tools recovered.
    pub recovered: Option<Recovered>,
}

/// A strategy that decides what requests show.
pub trait Column {
    /// Its name in the report.
    fn name(&self) -> &str;

    /// Answers a request.
    ///
    /// # Errors
    ///
    /// Returns the reason that ends the column.
    fn request(&mut self, due: &Due<'_>) -> Result<Answer, String>;

    /// Ends the recording, with the messages since the last request.
    ///
    /// # Errors
    ///
    /// Returns the reason that ends the column.
    fn finish(&mut self, due: &Due<'_>) -> Result<Remains, String>;
}

/// No compaction, in an unlimited window.
#[derive(Debug, Default)]
pub struct Everything {
    context: Context,
    rendering: Rendering,
}

impl Column for Everything {
    fn name(&self) -> &'static str {
        "none"
    }

    fn request(&mut self, due: &Due<'_>) -> Result<Answer, String> {
        crate::context::append(&mut self.context.blocks, &mut self.rendering, due.new);
        Ok(Answer { context: self.context.clone(), summaries: Vec::new(), plans: None })
    }

    fn finish(&mut self, _: &Due<'_>) -> Result<Remains, String> {
        Ok(Remains::default())
    }
}

/// The result of a column.
#[derive(Debug)]
pub struct Outcome {
    /// The name of the column.
    pub name: String,
    /// Its figures, or the error that ended it.
    pub figures: Result<Figures, ColumnError>,
    /// One point for each request, up to an error.
    pub points: Vec<Point>,
    /// The notices that the user would have seen, without duplicates.
    pub notices: Vec<String>,
    /// The real time that its plans took.
    pub timing: Option<Timing>,
    /// A row for each request, up to an error, and one for the end.
    pub trace: Vec<Row>,
}

impl Outcome {
    /// The result of a column that failed.
    pub fn ended(name: &str, error: ColumnError) -> Self {
        Self::failed(name.to_owned(), error, Vec::new(), Vec::new())
    }

    fn failed(name: String, error: ColumnError, points: Vec<Point>, mut trace: Vec<Row>) -> Self {
        trace.push(Row::End(EndRow { error: Some(error.to_string()), ..EndRow::default() }));
        Self { name, figures: Err(error), points, notices: Vec::new(), timing: None, trace }
    }
}

/// Replays a recording through a column.
pub fn replay(recording: &Recording, column: &mut dyn Column, terms: &Terms) -> Outcome {
    let references = References::of(&recording.drafts);
    let mut tally = Tally::new(*terms);
    let name = column.name().to_owned();
    let mut log = Conversation::default();
    let (mut taken, mut request, mut bytes, mut last) = (0, 0, 0, None);
    let mut trace = Vec::new();
    let fail = |request, why, tally: Tally, trace| {
        let (_, points) = tally.finish(Effort::default(), None);
        Outcome::failed(name.clone(), ColumnError { request, why }, points, trace)
    };
    for (at, draft) in recording.drafts.iter().enumerate() {
        if is_reply(draft) {
            request += 1;
            let now_ms = draft.created_at;
            let due = Due { now_ms, new: &log.messages()[taken..], last };
            let answer = match column.request(&due) {
                Ok(answer) => answer,
                Err(why) => return fail(request, why, tally, trace),
            };
            taken = log.messages().len();
            let summaries = answer.summaries.iter().map(|written| tally.summary(written)).collect();
            let (usage, row) = tally.request(now_ms, &answer.context, &references, log.last_user());
            trace.push(Row::Request(Box::new(RequestRow { summaries, plans: answer.plans, ..row })));
            last = Some(usage);
        }
        bytes += figures::bytes(draft);
        log.push(draft.clone().numbered(MessageId(at as u64 + 1)));
    }
    tally.brought(bytes);
    let now_ms = log.messages().last().map_or(0, |message| message.created_at);
    match column.finish(&Due { now_ms, new: &log.messages()[taken..], last }) {
        Ok(remains) => {
            let Remains { summaries, plans, effort, notices, timing, recovered } = remains;
            let summaries = summaries.iter().map(|written| tally.summary(written)).collect();
            trace.push(Row::End(EndRow { error: None, summaries, plans }));
            let (figures, points) = tally.finish(effort, recovered);
            Outcome { name, figures: Ok(figures), points, notices, timing, trace }
        }
        Err(why) => fail(request, why, tally, trace),
    }
}
