//! The measures of a column, counted request by request.

use std::sync::Arc;

use hermes_conversation::{Draft, Message, Role, Usage, validity};
use hermes_engine_trials::needles::Recovered;
use hermes_engine_trials::watch::Effort;
use hermes_engine_trials::{Prices, Terms};
use hermes_testkit::Written;
use serde::{Serialize, Serializer};

use crate::cache::{Cache, Chain};
use crate::context::{Block, Context};
use crate::faults::{References, Visible};
use crate::trace::{PrefixBreak, PublicationRow, RequestRow, SummaryRow};

/// The results of a column. Tokens and costs are serialized as whole tokens; a cost is in tokens at the price of a fresh one.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Requests to the model.
    pub requests: u64,
    /// Mean tokens of a request, including system prompt and tools.
    #[serde(serialize_with = "whole")]
    pub mean_context: f64,
    /// Tokens of the largest request.
    #[serde(serialize_with = "whole")]
    pub max_context: f64,
    /// Requests larger than the window.
    pub over_window: u64,
    /// Tokens read from the provider's cache.
    #[serde(serialize_with = "whole")]
    pub read: f64,
    /// Tokens written to the cache.
    #[serde(serialize_with = "whole")]
    pub written: f64,
    /// Tokens that the cache neither read nor stored.
    #[serde(serialize_with = "whole")]
    pub fresh: f64,
    /// Tokens of new messages.
    #[serde(serialize_with = "whole")]
    pub new: f64,
    /// Calls of the summariser.
    pub summaries: u64,
    /// Tokens that the summariser read.
    #[serde(serialize_with = "whole")]
    pub summary_input: f64,
    /// Tokens that the summariser wrote.
    #[serde(serialize_with = "whole")]
    pub summary_output: f64,
    /// Cost of the requests, without the replies, which are the same in every column.
    #[serde(serialize_with = "whole")]
    pub request_cost: f64,
    /// Cost of the summariser.
    #[serde(serialize_with = "whole")]
    pub summary_cost: f64,
    /// Cost of the faults: one more request for each faulting request, and some tokens written.
    #[serde(serialize_with = "whole")]
    pub fault_tax: f64,
    /// Lines of replies that occurred earlier in the conversation.
    pub references: u64,
    /// References that the request did not show.
    pub faults: u64,
    /// Requests with at least one fault.
    pub faulting_requests: u64,
    /// Requests that did not begin with the whole previous request.
    pub breaks: u64,
    /// Breaks without a new view.
    pub avoidable_breaks: u64,
    /// Requests that a provider would refuse, or that lack the user's newest message.
    pub invalid_requests: u64,
    /// The error of the first invalid request.
    pub first_invalid: Option<String>,
    /// New views.
    pub publications: u64,
    /// New views that were fully prepared.
    pub prepared: u64,
    /// New views that the host made by rule because the window was full.
    pub by_rule: u64,
    /// New views made while the cache held only system prompt and tools.
    pub free: u64,
    /// The work of the engine.
    #[serde(flatten)]
    pub effort: Effort,
    /// What the engine's tools recovered.
    pub recovered: Option<Recovered>,
}

impl Figures {
    /// The share of sent tokens that were read from the cache.
    pub fn hit_rate(&self) -> f64 {
        ratio(self.read, self.read + self.written + self.fresh)
    }

    /// How often a token of the conversation was written to the cache.
    pub fn write_amplification(&self) -> f64 {
        ratio(self.written, self.new)
    }

    /// The cost of requests and summaries.
    pub fn cost(&self) -> f64 {
        self.request_cost + self.summary_cost
    }

    /// The cost including the fault tax.
    pub fn cost_with_tax(&self) -> f64 {
        self.cost() + self.fault_tax
    }

    /// The share of requests with a fault.
    pub fn fault_rate(&self) -> f64 {
        ratio(self.faulting_requests as f64, self.requests as f64)
    }

    /// The share of new views that were fully prepared.
    pub fn prepared_rate(&self) -> f64 {
        ratio(self.prepared as f64, self.publications as f64)
    }
}

/// Serializes tokens as a whole number.
pub(crate) fn whole<S: Serializer>(tokens: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    // Casts from floats saturate.
    serializer.serialize_u64(tokens.round() as u64)
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { 0.0 } else { part / whole }
}

/// A request in the plot.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// Tokens of the request.
    pub context: f64,
    /// Whether it was the first request of a new view.
    pub published: bool,
}

/// Computes the figures of a column.
pub struct Tally {
    terms: Terms,
    cache: Cache,
    visible: Visible,
    before: Vec<Arc<Block>>,
    points: Vec<Point>,
    contexts: f64,
    figures: Figures,
}

impl Tally {
    /// Starts with all counts at zero.
    pub fn new(terms: Terms) -> Self {
        Self {
            terms,
            cache: Cache::new(terms.prices.ttl_seconds * 1_000, terms.look_back),
            visible: Visible::default(),
            before: Vec::new(),
            points: Vec::new(),
            contexts: 0.0,
            figures: Figures::default(),
        }
    }

    /// Counts a request. Returns the usage that its provider would report, and the row of the trace without the column's
    /// own work. `newest` is the user's last message.
    pub fn request(
        &mut self,
        now_ms: u64,
        context: &Context,
        references: &References,
        newest: Option<&Message>,
    ) -> (Usage, RequestRow) {
        let cold = context.publication.is_some() && self.is_cold(now_ms);
        let figures = &mut self.figures;
        let number = usize::try_from(figures.requests).unwrap_or(usize::MAX);
        let mut chain = Chain::new(f64::from(self.terms.fixed_tokens));
        for block in &context.blocks {
            chain.push(block.hash(), self.terms.tokens(block.bytes()));
        }
        let served = self.cache.serve(now_ms, &chain, &chain.marks());
        let tokens = chain.tokens();
        let prices = &self.terms.prices;
        figures.requests += 1;
        figures.read += served.read;
        figures.written += served.written;
        figures.fresh += served.fresh;
        let cost = served.read * prices.cache_read + served.written * prices.cache_write + served.fresh * prices.input;
        figures.request_cost += cost;
        figures.max_context = figures.max_context.max(tokens);
        figures.over_window += u64::from(tokens > f64::from(self.terms.window));
        self.contexts += tokens;
        figures.mean_context = self.contexts / figures.requests as f64;

        self.visible.show(context);
        let references = references.of_reply(number);
        let lacking = self.visible.lacking(references);
        figures.references += references.len() as u64;
        figures.faults += lacking.len() as u64;
        let mut fault_tax = 0.0;
        if !lacking.is_empty() {
            figures.faulting_requests += 1;
            fault_tax = tokens * prices.cache_read + f64::from(self.terms.fault_tokens) * prices.cache_write;
            figures.fault_tax += fault_tax;
        }

        let invalid = check(context, newest).err();
        if let Some(why) = &invalid {
            figures.invalid_requests += 1;
            figures.first_invalid.get_or_insert_with(|| format!("request {}: {why}", number + 1));
        }

        let same = |(old, new): &(&Arc<Block>, &Arc<Block>)| Arc::ptr_eq(old, new) || old.hash() == new.hash();
        let kept = self.before.iter().zip(&context.blocks).take_while(same).count();
        let broke = kept < self.before.len();
        let prefix_break = match &context.publication {
            _ if !broke => None,
            Some(_) => Some(PrefixBreak::NewView),
            None => Some(PrefixBreak::Avoidable),
        };
        figures.breaks += u64::from(broke);
        figures.avoidable_breaks += u64::from(prefix_break == Some(PrefixBreak::Avoidable));
        if let Some(publication) = &context.publication {
            figures.publications += 1;
            figures.free += u64::from(cold);
            figures.prepared += u64::from(publication.prepared);
            figures.by_rule += u64::from(publication.by_rule);
        }
        self.points.push(Point { context: tokens, published: context.publication.is_some() });
        self.before.clone_from(&context.blocks);
        // Casts from floats saturate.
        let [input, cache_read, cache_write] = [tokens, served.read, served.written].map(|tokens| tokens as u32);
        let row = RequestRow {
            request: figures.requests,
            now_ms,
            tokens,
            read: served.read,
            written: served.written,
            fresh: served.fresh,
            cost,
            fault_tax,
            references: references.len(),
            lacking,
            prefix_break,
            invalid,
            publication: context.publication.clone().map(|publication| PublicationRow { publication, cold }),
            ..RequestRow::default()
        };
        (Usage { input, cache_read, cache_write, ..Usage::default() }, row)
    }

    /// Counts new messages of this many bytes.
    pub fn brought(&mut self, bytes: u64) {
        self.figures.new += self.terms.tokens(bytes);
    }

    /// Whether the cache is cold, before the request is counted.
    fn is_cold(&self, now_ms: u64) -> bool {
        let mut chain = Chain::new(f64::from(self.terms.fixed_tokens));
        for block in &self.before {
            chain.push(block.hash(), self.terms.tokens(block.bytes()));
        }
        self.cache.warm(now_ms, &chain) <= f64::from(self.terms.fixed_tokens)
    }

    /// Counts a call of the summariser.
    pub fn summary(&mut self, written: &Written) -> SummaryRow {
        let Prices { input, output, summariser, .. } = self.terms.prices;
        self.figures.summaries += 1;
        self.figures.summary_input += written.input;
        self.figures.summary_output += written.output;
        let cost = (written.input * input + written.output * output) * summariser;
        self.figures.summary_cost += cost;
        SummaryRow { input: written.input, output: written.output, cost }
    }

    /// Returns the figures, and a point for each request.
    pub fn finish(mut self, effort: Effort, recovered: Option<Recovered>) -> (Figures, Vec<Point>) {
        let figures = &mut self.figures;
        figures.effort = effort;
        figures.recovered = recovered;
        (self.figures, self.points)
    }
}

/// Checks that a provider would accept the context, and that it shows the user's newest message unchanged.
fn check(context: &Context, newest: Option<&Message>) -> Result<(), String> {
    let frames: Vec<_> = context.blocks.iter().map(|block| block.frame().clone()).collect();
    validity::check(&frames).map_err(|invalid| invalid.to_string())?;
    let Some(newest) = newest else { return Ok(()) };
    // A column out of process may have joined it with an earlier message.
    let is_shown = |block: &Arc<Block>| block.role() == Role::User && block.content().contains(newest.text_sent());
    if context.blocks.iter().any(is_shown) {
        Ok(())
    } else {
        Err(format!("the newest message of the user, {}, is not shown as it was said", newest.id))
    }
}

/// Bytes of a message, counted as for a block.
pub(crate) fn bytes(draft: &Draft) -> u64 {
    let calls: usize = draft.tool_calls.iter().map(|call| call.id.len() + call.name.len() + call.arguments.len()).sum();
    (draft.text_sent().len() + calls + draft.tool_call_id.as_ref().map_or(0, String::len)) as u64
}
