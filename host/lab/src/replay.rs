//! Drives the columns through a recording.

use hermes_conversation::render::Rendering;
use hermes_conversation::{Conversation, Message, MessageId, Usage};

use crate::faults::References;
use crate::figures::{self, Effort, Figures, Point, Tally};
use crate::needles::Recovered;
use crate::report::Timing;
use crate::session::is_reply;
use crate::summariser::Written;
use crate::{Context, Recording, Terms};

/// A request that is due.
#[derive(Debug, Clone, Copy)]
pub struct Due<'a> {
    /// Unix time of the recording, in milliseconds.
    pub now_ms: u64,
    /// What of it came since the request before.
    pub new: &'a [Message],
    /// What the request before took, as its provider would have counted.
    pub last: Option<Usage>,
}

/// What ends a column; the others go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("at request {request}: {why}")]
pub struct ColumnError {
    /// Counts from 1; 0 before the first.
    pub request: u64,
    /// What failed, and what to do.
    pub why: String,
}

/// An answer of a column to a request that is due.
#[derive(Debug, Default)]
pub struct Answer {
    /// What the request shows.
    pub context: Context,
    /// Calls of the summariser that ended since the request before.
    pub summaries: Vec<Written>,
}

/// What a column leaves when the recording is over.
#[derive(Debug, Default)]
pub struct Remains {
    /// Calls of the summariser that ended since the last request.
    pub summaries: Vec<Written>,
    /// What it did beside its contexts.
    pub effort: Effort,
    /// What the user would have been told meanwhile, each once.
    pub notices: Vec<String>,
    /// What its plans took in real time.
    pub timing: Option<Timing>,
    /// What its tools find again.
    pub recovered: Option<Recovered>,
}

/// Something that decides what requests show.
pub trait Column {
    /// As the report calls it.
    fn name(&self) -> &str;

    /// A request is due.
    ///
    /// # Errors
    ///
    /// What ends the column, in words.
    fn request(&mut self, due: &Due<'_>) -> Result<Answer, String>;

    /// The recording is over: what came since the last request, and that no other one is due.
    ///
    /// # Errors
    ///
    /// What ends the column, in words.
    fn finish(&mut self, due: &Due<'_>) -> Result<Remains, String>;
}

/// No compaction, and a window without end.
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
        Ok(Answer { context: self.context.clone(), summaries: Vec::new() })
    }

    fn finish(&mut self, _: &Due<'_>) -> Result<Remains, String> {
        Ok(Remains::default())
    }
}

/// What a column came to.
#[derive(Debug)]
pub struct Outcome {
    /// As the column is called.
    pub name: String,
    /// Its figures, or what ended it.
    pub figures: Result<Figures, ColumnError>,
    /// A point for each request; up to the error, if there was one.
    pub points: Vec<Point>,
    /// What the user would have been told meanwhile, each once.
    pub notices: Vec<String>,
    /// What plans took in real time.
    pub timing: Option<Timing>,
}

impl Outcome {
    /// Of a column that did not get to its end.
    pub fn ended(name: &str, error: ColumnError) -> Self {
        Self { name: name.to_owned(), figures: Err(error), points: Vec::new(), notices: Vec::new(), timing: None }
    }
}

/// Replays a recording through a column.
pub fn replay(recording: &Recording, column: &mut dyn Column, terms: &Terms) -> Outcome {
    let references = References::of(&recording.drafts);
    let mut tally = Tally::new(*terms);
    let name = column.name().to_owned();
    let mut log = Conversation::default();
    let (mut taken, mut request, mut said, mut last) = (0, 0, 0, None);
    let fail = |request, why, tally: Tally| {
        let (_, points) = tally.finish(Effort::default(), None);
        let figures = Err(ColumnError { request, why });
        Outcome { name: name.clone(), figures, points, notices: Vec::new(), timing: None }
    };
    for (at, draft) in recording.drafts.iter().enumerate() {
        if is_reply(draft) {
            request += 1;
            let now_ms = draft.created_at;
            let due = Due { now_ms, new: &log.messages()[taken..], last };
            let answer = match column.request(&due) {
                Ok(answer) => answer,
                Err(why) => return fail(request, why, tally),
            };
            taken = log.messages().len();
            answer.summaries.iter().for_each(|written| tally.summary(written));
            if answer.context.publication.is_some() && tally.is_cold(now_ms) {
                tally.free();
            }
            last = Some(tally.request(now_ms, &answer.context, &references, log.last_user()));
        }
        said += figures::bytes(draft);
        log.push(draft.clone().numbered(MessageId(at as u64 + 1)));
    }
    tally.brought(said);
    let now_ms = log.messages().last().map_or(0, |message| message.created_at);
    match column.finish(&Due { now_ms, new: &log.messages()[taken..], last }) {
        Ok(remains) => {
            remains.summaries.iter().for_each(|written| tally.summary(written));
            let (figures, points) = tally.finish(remains.effort, remains.recovered);
            Outcome { name, figures: Ok(figures), points, notices: remains.notices, timing: remains.timing }
        }
        Err(why) => fail(request, why, tally),
    }
}
