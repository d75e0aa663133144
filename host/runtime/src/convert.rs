//! Conversions between the generated types and those of `hermes-conversation`.

use hermes_bindings::exported::context_engine as engine;
use hermes_bindings::exported::embedder;
use hermes_bindings::exported::memory_provider as memory;
use hermes_bindings::exported::tools;
use hermes_bindings::imported::types as wit;
use hermes_conversation::media::Source;
use hermes_conversation::part::ProviderPayload;
use hermes_conversation::{
    Author, Excerpt, Header, Item, Media, Message, MessageId, MessageRange, Model, Part, Plan, Role, Segment, Summary,
    ToolCall, Usage,
};

use crate::error::{Fault, FaultKind};
use crate::services::{EmbeddingRequest, Purpose};
use crate::types::{
    CacheState, Image, ModelAnswered, Moment, Outcome, Output, PlanRequest, Pressure, SessionInfo, TurnRecord,
};

pub(crate) fn role(role: Role) -> wit::Role {
    match role {
        Role::System => wit::Role::System,
        Role::User => wit::Role::User,
        Role::Assistant => wit::Role::Assistant,
        Role::Tool => wit::Role::Tool,
    }
}

pub(crate) fn role_back(role: wit::Role) -> Result<Role, Fault> {
    match role {
        wit::Role::System => Ok(Role::System),
        wit::Role::User => Ok(Role::User),
        wit::Role::Assistant => Ok(Role::Assistant),
        wit::Role::Tool => Ok(Role::Tool),
        wit::Role::Other(name) => {
            let why = format!("there is no role `{}`", name.escape_debug());
            Err(Fault::new(FaultKind::InvalidInput, "role", why))
        }
    }
}

pub(crate) fn range(range: MessageRange) -> wit::MessageRange {
    wit::MessageRange { first: range.first.0, last: range.last.0 }
}

pub(crate) fn range_back(range: wit::MessageRange) -> MessageRange {
    MessageRange::new(MessageId(range.first), MessageId(range.last))
}

pub(crate) fn model(model: &Model) -> wit::Model {
    wit::Model {
        provider: model.provider.clone(),
        name: model.name.clone(),
        context_length: model.context_length,
        extra: Vec::new(),
    }
}

pub(crate) fn embedding_request(request: EmbeddingRequest) -> embedder::Request {
    let purpose = match request.purpose {
        Purpose::Document => embedder::Purpose::Document,
        Purpose::Query => embedder::Purpose::Query,
    };
    embedder::Request { texts: request.texts, purpose, extra: Vec::new() }
}

pub(crate) fn usage(usage: Usage) -> wit::Usage {
    let Usage { input, output, cache_read, cache_write, reasoning } = usage;
    wit::Usage { input, output, cache_read, cache_write, reasoning, extra: Vec::new() }
}

/// The event that hooks get for a model's reply.
pub fn model_answered(model: &str, usage: Usage, elapsed_ms: u32) -> ModelAnswered {
    ModelAnswered { model: model.to_owned(), usage: self::usage(usage), elapsed_ms, extra: Vec::new() }
}

pub(crate) fn header(header: &Header) -> wit::Header {
    wit::Header {
        id: header.id.0,
        role: role(header.role),
        turn: header.turn,
        group: header.group,
        tool_name: header.tool_name.clone(),
        tokens: header.tokens,
        bytes: header.bytes,
        images: header.images,
        created_at: header.created_at,
        extra: Vec::new(),
    }
}

pub(crate) fn message(message: Message, tokens: u32) -> wit::Message {
    let Message { id, draft } = message;
    let images = draft.images();
    let parts = (!draft.parts.is_empty()).then(|| ("parts".to_owned(), draft.parts.len().to_string()));
    wit::Message {
        id: id.0,
        role: role(draft.role),
        content: draft.with_results().into_owned(),
        images,
        author: draft.author.map(peer),
        reasoning: draft.reasoning,
        tool_calls: draft.tool_calls.into_iter().map(tool_call).collect(),
        tool_call_id: draft.tool_call_id,
        tool_name: draft.tool_name,
        tokens,
        created_at: draft.created_at,
        extra: parts.into_iter().collect(),
    }
}

fn peer(author: Author) -> wit::Peer {
    wit::Peer { id: author.id, name: author.name, extra: Vec::new() }
}

fn tool_call(call: ToolCall) -> wit::ToolCall {
    wit::ToolCall { id: call.id, name: call.name, arguments: call.arguments }
}

/// The parts of a message, described; the bytes of pictures, files and provider payloads stay here.
pub(crate) fn part(part: Part) -> wit::Part {
    match part {
        Part::Text { text } => wit::Part::Text(text),
        Part::Image(picture) => wit::Part::Image(media(picture)),
        Part::File(file) => wit::Part::File(media(file)),
        Part::Reasoning { text, payload } => {
            wit::Part::Reasoning(wit::ReasoningPart { text, item: payload.map(provider_item), extra: Vec::new() })
        }
        Part::ToolCall(call) => wit::Part::ToolCall(tool_call(call)),
        Part::ToolResult(result) => wit::Part::ToolResult(wit::ToolResultPart {
            call_id: result.call_id,
            parts: result.parts.into_iter().filter_map(result_part).collect(),
            failed: result.failed,
            structured: result.structured,
            extra: Vec::new(),
        }),
        Part::Refusal { text } => wit::Part::Refusal(text),
        Part::Provider(payload) => wit::Part::ProviderItem(provider_item(payload)),
    }
}

fn result_part(part: Part) -> Option<wit::ResultPart> {
    match part {
        Part::Text { text } | Part::Refusal { text } => Some(wit::ResultPart::Text(text)),
        Part::Image(picture) => Some(wit::ResultPart::Image(media(picture))),
        Part::File(file) => Some(wit::ResultPart::File(media(file))),
        Part::Reasoning { .. } | Part::ToolCall(_) | Part::ToolResult(_) | Part::Provider(_) => None,
    }
}

fn media(media: Media) -> wit::Media {
    let Media { source, media_type, name, width, height } = media;
    let source = match source {
        Source::Blob(blob) => wit::MediaSource::Blob(wit::Blob { hash: blob.hash.0, size: blob.size }),
        Source::Url(url) => wit::MediaSource::Url(url),
    };
    wit::Media { source, media_type, name, width, height, extra: Vec::new() }
}

fn provider_item(payload: ProviderPayload) -> wit::ProviderItem {
    let ProviderPayload { provider, model, api_mode, data } = payload;
    wit::ProviderItem { provider, model, api_mode, size: data.len() as u64, extra: Vec::new() }
}

pub(crate) fn session(info: &SessionInfo) -> wit::Session {
    wit::Session {
        id: info.id.clone(),
        parent_id: info.parent.clone(),
        title: None,
        platform: info.platform.clone(),
        purpose: info.purpose.clone(),
        profile: info.profile.clone(),
        user: None,
        channel: None,
        workspace: info.workspace.clone(),
        model: model(&info.model),
        extra: info.repository.iter().map(|root| ("repository".to_owned(), root.clone())).collect(),
    }
}

pub(crate) fn pressure(pressure: &Pressure) -> engine::Pressure {
    engine::Pressure {
        moment: moment(pressure.moment),
        prompt_tokens: pressure.prompt_tokens,
        estimated: pressure.estimated,
        fixed_tokens: pressure.fixed_tokens,
        context_length: pressure.context_length,
        reserve: pressure.reserve,
        expected_requests: pressure.expected_requests,
        cache: cache(pressure.cache),
        last: pressure.last.map(usage),
        extra: vec![("room".to_owned(), pressure.room.to_string())],
    }
}

fn moment(moment: Moment) -> engine::Moment {
    match moment {
        Moment::TurnStart => engine::Moment::TurnStart,
        Moment::MidTurn => engine::Moment::MidTurn,
        Moment::TurnEnd => engine::Moment::TurnEnd,
        Moment::Idle => engine::Moment::Idle,
        Moment::Manual => engine::Moment::Manual,
        Moment::Overflow => engine::Moment::Overflow,
    }
}

fn cache(cache: CacheState) -> engine::CacheState {
    let CacheState { warm_tokens, warm_until, read_price, write_price, breaking } = cache;
    engine::CacheState { warm_tokens, warm_until, read_price, write_price, breaking, extra: Vec::new() }
}

pub(crate) fn plan_request(request: &PlanRequest) -> engine::Request {
    engine::Request {
        pressure: pressure(&request.pressure),
        view: request.view.iter().map(|(item, tokens)| shown(item, *tokens)).collect(),
        focus: request.focus.clone(),
        memory_context: request.memory_context.clone(),
        extra: Vec::new(),
    }
}

fn shown(item: &Item, tokens: u32) -> engine::Item {
    match item {
        Item::Messages(messages) => engine::Item::Messages(range(*messages)),
        Item::Excerpt(excerpt) => engine::Item::Excerpt(engine::ShownExcerpt { id: excerpt.id.0, tokens }),
        Item::Summary(summary) => engine::Item::Summary(engine::ShownSummary {
            key: summary.key.clone(),
            tokens,
            covers: summary.covers.iter().copied().map(range).collect(),
        }),
    }
}

pub(crate) fn plan_back(plan: engine::Plan) -> Plan {
    let segments = plan
        .segments
        .into_iter()
        .map(|segment| match segment {
            engine::Segment::Keep(range) => Segment::Keep(range_back(range)),
            engine::Segment::Restore(range) => Segment::Restore(range_back(range)),
            engine::Segment::Excerpt(excerpt) => Segment::Excerpt(Excerpt {
                id: MessageId(excerpt.id),
                content: excerpt.content,
                arguments: excerpt.arguments,
                keep_images: excerpt.keep_images,
            }),
            engine::Segment::Summary(summary) => Segment::Summary(Summary {
                key: summary.key,
                content: summary.content,
                covers: summary.covers.into_iter().map(range_back).collect(),
            }),
            engine::Segment::KeepSummary(key) => Segment::KeepSummary(key),
        })
        .collect();
    Plan { segments, reason: plan.reason, extra: plan.extra }
}

pub(crate) fn outcome(outcome: &Outcome) -> engine::Outcome {
    match outcome {
        Outcome::Adopted => engine::Outcome::Adopted,
        Outcome::Stale => engine::Outcome::Stale,
        Outcome::Deferred => engine::Outcome::Deferred,
        Outcome::Refused(refusal) => {
            let error = fault(Fault::new(FaultKind::InvalidInput, refusal.code(), refusal.to_string()));
            let numbers =
                refusal.size().map_or_else(Vec::new, |(needed, room)| vec![("needed", needed), ("room", room)]);
            let extra = numbers.into_iter().map(|(key, tokens)| (key.to_owned(), tokens.to_string())).collect();
            engine::Outcome::Refused(wit::Error { extra, ..error })
        }
    }
}

/// Texts, links and content of unknown kinds become one text; a result that is only structured becomes its JSON.
pub(crate) fn output(output: tools::Output) -> Output {
    let (mut texts, mut images) = (Vec::new(), Vec::new());
    for content in output.content {
        match content {
            tools::Content::Text(text) => texts.push(text),
            tools::Content::Link(link) => texts.push(match link.title {
                Some(title) => format!("{title}: {}", link.uri),
                None => link.uri,
            }),
            tools::Content::Image(tools::Image::Url(url)) => images.push(Image::Url(url)),
            tools::Content::Image(tools::Image::Bytes(bytes)) => images.push(Image::Bytes(bytes)),
            tools::Content::Image(tools::Image::Other(kind)) | tools::Content::Other(kind) => {
                texts.push(format!("[{kind}]"));
            }
        }
    }
    let mut content = texts.join("\n");
    if content.is_empty() && images.is_empty() {
        content = output.structured.clone().unwrap_or_default();
    }
    Output { content, images, structured: output.structured, extra: output.extra }
}

pub(crate) fn turn(turn: &TurnRecord) -> memory::Turn {
    memory::Turn {
        session_id: turn.session.clone(),
        ended_at: turn.ended_at,
        author: turn.author.clone().map(peer),
        number: turn.number,
        user: turn.user.clone(),
        assistant: turn.assistant.clone(),
        messages: range(turn.messages),
        extra: turn.interrupted.then(|| ("ended".to_owned(), "interrupted".to_owned())).into_iter().collect(),
    }
}

pub(crate) fn fault(fault: Fault) -> wit::Error {
    let kind = match fault.kind {
        FaultKind::InvalidInput => wit::ErrorKind::InvalidInput,
        FaultKind::Unavailable => wit::ErrorKind::Unavailable,
        FaultKind::Denied => wit::ErrorKind::Denied,
        FaultKind::Timeout => wit::ErrorKind::Timeout,
        FaultKind::Cancelled => wit::ErrorKind::Cancelled,
        FaultKind::Conflict => wit::ErrorKind::Conflict,
        FaultKind::Exhausted => wit::ErrorKind::Exhausted,
        FaultKind::Unsupported => wit::ErrorKind::Unsupported,
        FaultKind::Failed => wit::ErrorKind::Failed,
    };
    wit::Error {
        kind,
        code: fault.code,
        message: fault.message,
        retry_after_ms: fault.retry_after_ms,
        extra: Vec::new(),
    }
}

pub(crate) fn fault_back(error: wit::Error) -> Fault {
    let kind = match error.kind {
        wit::ErrorKind::InvalidInput => FaultKind::InvalidInput,
        wit::ErrorKind::Unavailable => FaultKind::Unavailable,
        wit::ErrorKind::Denied => FaultKind::Denied,
        wit::ErrorKind::Timeout => FaultKind::Timeout,
        wit::ErrorKind::Cancelled => FaultKind::Cancelled,
        wit::ErrorKind::Conflict => FaultKind::Conflict,
        wit::ErrorKind::Exhausted => FaultKind::Exhausted,
        wit::ErrorKind::Unsupported => FaultKind::Unsupported,
        wit::ErrorKind::Failed | wit::ErrorKind::Other(_) => FaultKind::Failed,
    };
    let (code, message) = (beginning(error.code, CODE), beginning(error.message, MESSAGE));
    Fault { kind, code, message, retry_after_ms: error.retry_after_ms }
}

/// The most bytes of a plugin's error code and message that the host keeps: people and models read them.
const CODE: usize = 64;
const MESSAGE: usize = 16 << 10;

fn beginning(mut text: String, bytes: usize) -> String {
    text.truncate(text.floor_char_boundary(bytes));
    text
}

#[cfg(test)]
mod tests;
