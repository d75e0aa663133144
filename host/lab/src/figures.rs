//! The measures of a column, counted request by request.

use std::sync::Arc;

use hermes_conversation::{Draft, Message, Role, Usage, validity};
use serde::Serialize;

use crate::cache::{Cache, Chain};
use crate::context::{Block, Context};
use crate::faults::{References, Visible};
use crate::needles::Recovered;
use crate::summariser::Written;
use crate::{Prices, Terms};

/// What a column came to. Tokens and costs are told in whole tokens; costs in tokens at the price of a fresh one.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Requests to the model.
    pub requests: u64,
    /// Mean tokens of a request, system prompt and tools included.
    pub mean_context: f64,
    /// Most tokens of a request.
    pub max_context: f64,
    /// Requests larger than the window.
    pub over_window: u64,
    /// Tokens read from the provider's cache.
    pub read: f64,
    /// Tokens written to it.
    pub written: f64,
    /// Tokens that no cache had to do with.
    pub fresh: f64,
    /// Tokens that the conversation brought.
    pub new: f64,
    /// Calls of the summariser.
    pub summaries: u64,
    /// Tokens that it read.
    pub summary_input: f64,
    /// Tokens that it wrote.
    pub summary_output: f64,
    /// What the requests cost; the replies, which are the same in every column, are left out.
    pub request_cost: f64,
    /// What the summariser cost.
    pub summary_cost: f64,
    /// What it costs that replies refer to text that was not shown: another request each, and some tokens written.
    pub fault_tax: f64,
    /// Lines of replies that were said before.
    pub references: u64,
    /// Of them, those that the request did not show.
    pub faults: u64,
    /// Requests that lacked at least one.
    pub faulting_requests: u64,
    /// Requests whose beginning was not that of the one before.
    pub breaks: u64,
    /// Of them, those without a new view.
    pub avoidable_breaks: u64,
    /// Requests that a provider would refuse, or without the user's newest words.
    pub invalid_requests: u64,
    /// What was wrong with the first of them.
    pub first_invalid: Option<String>,
    /// New views.
    pub publications: u64,
    /// Of them, those that nothing had to be waited for.
    pub prepared: u64,
    /// Of them, those that the host made by rule because the window was full.
    pub by_rule: u64,
    /// Of them, those made when the cache held nothing beyond system prompt and tools anyway.
    pub free: u64,
    /// What engines report of themselves.
    #[serde(flatten)]
    pub effort: Effort,
    /// What its tools find again.
    pub recovered: Option<Recovered>,
}

/// What a column did beside its contexts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Effort {
    /// How often a plan was asked for; none where columns have no plans.
    pub plans_asked: Option<u64>,
    /// Plans that were refused.
    pub plans_refused: Option<u64>,
    /// Plans that did not pay yet.
    pub plans_deferred: Option<u64>,
    /// Calls that failed or were late.
    pub failures: Option<u64>,
    /// Messages behind which passages were brought back without being asked for.
    pub assisted: Option<u64>,
}

impl Figures {
    /// Tokens that were read, of all that were sent.
    pub fn hit_rate(&self) -> f64 {
        ratio(self.read, self.read + self.written + self.fresh)
    }

    /// How often a token of the conversation was written to the cache.
    pub fn write_amplification(&self) -> f64 {
        ratio(self.written, self.new)
    }

    /// Requests and summaries.
    pub fn cost(&self) -> f64 {
        self.request_cost + self.summary_cost
    }

    /// The same with the fault tax.
    pub fn cost_with_tax(&self) -> f64 {
        self.cost() + self.fault_tax
    }

    /// Requests that lacked text, of all.
    pub fn fault_rate(&self) -> f64 {
        ratio(self.faulting_requests as f64, self.requests as f64)
    }

    /// Of the new views, those that nothing had to be waited for.
    pub fn prepared_rate(&self) -> f64 {
        ratio(self.prepared as f64, self.publications as f64)
    }
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { 0.0 } else { part / whole }
}

/// A request, as the plot draws it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// Tokens of the request.
    pub context: f64,
    /// It was the first one of a new view.
    pub published: bool,
}

/// Counts a column.
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
    /// Nothing counted yet.
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

    /// Counts a request, and tells what its provider would report. `newest` is what the user said last.
    pub fn request(
        &mut self,
        now_ms: u64,
        context: &Context,
        references: &References,
        newest: Option<&Message>,
    ) -> Usage {
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
        figures.request_cost +=
            served.read * prices.cache_read + served.written * prices.cache_write + served.fresh * prices.input;
        figures.max_context = figures.max_context.max(tokens);
        figures.over_window += u64::from(tokens > f64::from(self.terms.window));
        self.contexts += tokens;
        figures.mean_context = self.contexts / figures.requests as f64;

        self.visible.show(context);
        let references = references.of_reply(number);
        let faults = self.visible.faults(references);
        figures.references += references.len() as u64;
        figures.faults += faults as u64;
        if faults > 0 {
            figures.faulting_requests += 1;
            figures.fault_tax += tokens * prices.cache_read + f64::from(self.terms.fault_tokens) * prices.cache_write;
        }

        if let Err(why) = check(context, newest) {
            figures.invalid_requests += 1;
            figures.first_invalid.get_or_insert_with(|| format!("request {}: {why}", number + 1));
        }

        let same = |(old, new): &(&Arc<Block>, &Arc<Block>)| Arc::ptr_eq(old, new) || old.hash() == new.hash();
        let kept = self.before.iter().zip(&context.blocks).take_while(same).count();
        let broke = kept < self.before.len();
        figures.breaks += u64::from(broke);
        figures.avoidable_breaks += u64::from(broke && context.publication.is_none());
        if let Some(publication) = &context.publication {
            figures.publications += 1;
            figures.prepared += u64::from(publication.prepared);
            figures.by_rule += u64::from(publication.by_rule);
        }
        self.points.push(Point { context: tokens, published: context.publication.is_some() });
        self.before.clone_from(&context.blocks);
        // Casts from floats saturate.
        let [input, cache_read, cache_write] = [tokens, served.read, served.written].map(|tokens| tokens as u32);
        Usage { input, cache_read, cache_write, ..Usage::default() }
    }

    /// Counts what the conversation brought, in bytes.
    pub fn brought(&mut self, bytes: u64) {
        self.figures.new += self.terms.tokens(bytes);
    }

    /// Tells of a publication that the cache had gone cold before it; to be asked before the request is counted.
    pub fn is_cold(&self, now_ms: u64) -> bool {
        let mut chain = Chain::new(f64::from(self.terms.fixed_tokens));
        for block in &self.before {
            chain.push(block.hash(), self.terms.tokens(block.bytes()));
        }
        self.cache.warm(now_ms, &chain) <= f64::from(self.terms.fixed_tokens)
    }

    /// Counts a publication as one that cost nothing.
    pub fn free(&mut self) {
        self.figures.free += 1;
    }

    /// Counts a call of the summariser.
    pub fn summary(&mut self, written: &Written) {
        let Prices { input, output, summariser, .. } = self.terms.prices;
        self.figures.summaries += 1;
        self.figures.summary_input += written.input;
        self.figures.summary_output += written.output;
        self.figures.summary_cost += (written.input * input + written.output * output) * summariser;
    }

    /// The figures, and a point for each request.
    pub fn finish(mut self, effort: Effort, recovered: Option<Recovered>) -> (Figures, Vec<Point>) {
        let figures = &mut self.figures;
        for tokens in [
            &mut figures.mean_context,
            &mut figures.max_context,
            &mut figures.read,
            &mut figures.written,
            &mut figures.fresh,
            &mut figures.new,
            &mut figures.summary_input,
            &mut figures.summary_output,
            &mut figures.request_cost,
            &mut figures.summary_cost,
            &mut figures.fault_tax,
        ] {
            *tokens = tokens.round();
        }
        figures.effort = effort;
        figures.recovered = recovered;
        (self.figures, self.points)
    }
}

/// Whether a provider would take it, and the user's newest words are in it as they were said.
fn check(context: &Context, newest: Option<&Message>) -> Result<(), String> {
    let frames: Vec<_> = context.blocks.iter().map(|block| block.frame().clone()).collect();
    validity::check(&frames).map_err(|invalid| invalid.to_string())?;
    let Some(newest) = newest else { return Ok(()) };
    // An engine out of process may have joined it with what came before it.
    let is_shown = |block: &Arc<Block>| block.role() == Role::User && block.content().contains(newest.text_sent());
    if context.blocks.iter().any(is_shown) {
        Ok(())
    } else {
        Err(format!("the newest message of the user, {}, is not shown as it was said", newest.id))
    }
}

/// Bytes of a message by the same measure as a block's.
pub(crate) fn bytes(draft: &Draft) -> u64 {
    let calls: usize = draft.tool_calls.iter().map(|call| call.id.len() + call.name.len() + call.arguments.len()).sum();
    (draft.text_sent().len() + calls + draft.tool_call_id.as_ref().map_or(0, String::len)) as u64
}
