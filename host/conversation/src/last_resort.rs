//! The host's own plan, for a full window without a plan of the engine: by rule, without a model.

use std::collections::HashMap;

use crate::{
    Conversation, Excerpt, Item, Message, MessageRange, Plan, Role, Segment, Summary, View, covers, digest, reminder,
    tokens,
};

/// A plan that fits `limit` tokens: the newest groups in full, always the last message of the user, the view's
/// summaries while there is room, and a digest of the rest.
///
/// `None` if not even the user's last message and the newest group with shortened results fit.
pub fn plan(
    conversation: &Conversation,
    view: &View,
    summaries: &HashMap<String, Summary>,
    limit: u32,
) -> Option<Plan> {
    let user = conversation.last_user()?;
    let limit = limit.checked_sub(reminder::most_tokens(conversation))?;
    // A fifth for the digest, a fifth for existing summaries, the rest for messages.
    let for_digest = limit / 5;
    let mut left =
        limit.checked_sub(for_digest)?.checked_sub(conversation.headers()[conversation.position(user.id)?].tokens)?;
    let (tail, spent) = tail(conversation, user, left)?;
    left -= spent;

    let kept: Vec<&Summary> = keep_summaries(conversation, view, left.min(limit / 5));
    let mut accounted = vec![false; conversation.messages().len()];
    accounted[conversation.position(user.id)?] = true;
    for summary in &kept {
        covers::spans(&summary.covers, conversation).into_iter().for_each(|span| accounted[span].fill(true));
    }
    for segment in &tail {
        if let Segment::Restore(range) = segment {
            accounted[conversation.span(*range)].fill(true);
        }
        if let Segment::Excerpt(excerpt) = segment {
            accounted[conversation.position(excerpt.id)?] = true;
        }
    }

    let mut segments: Vec<Segment> = kept.iter().map(|summary| Segment::KeepSummary(summary.key.clone())).collect();
    let folded: Vec<&Message> =
        conversation.messages().iter().zip(&accounted).filter(|(_, accounted)| !**accounted).map(|(m, _)| m).collect();
    if !folded.is_empty() {
        segments.push(Segment::Summary(Summary {
            key: unused_key(conversation, summaries),
            content: digest(&folded, for_digest.saturating_sub(160)),
            covers: covers_of(conversation, &accounted),
        }));
    }
    let user_is_in_tail =
        tail.iter().any(|segment| matches!(segment, Segment::Restore(range) if range.contains(user.id)));
    if !user_is_in_tail {
        segments.push(Segment::Restore(MessageRange::one(user.id)));
    }
    segments.extend(tail);
    Some(Plan {
        segments,
        reason: "the window is full: older messages were folded by rule".to_owned(),
        extra: Vec::new(),
    })
}

/// The newest groups that fit. The newest group is always included, if necessary with shortened results.
fn tail(conversation: &Conversation, user: &Message, room: u32) -> Option<(Vec<Segment>, u32)> {
    // Half of the room, so that the next turns fit too.
    let comfortable = room / 2;
    let headers = conversation.headers();
    let mut start = headers.len();
    let mut spent = 0;
    while start > 0 {
        let group = headers[start - 1].group;
        let begin = headers.partition_point(|header| header.group < group);
        let cost: u32 = headers[begin..start].iter().filter(|header| header.id != user.id).map(|h| h.tokens).sum();
        if spent + cost > comfortable {
            break;
        }
        spent += cost;
        start = begin;
    }
    if start < headers.len() {
        let range = MessageRange::new(headers[start].id, headers[headers.len() - 1].id);
        return Some((vec![Segment::Restore(range)], spent));
    }
    let group = headers.last()?.group;
    let begin = headers.partition_point(|header| header.group < group);
    let newest = &conversation.messages()[begin..];
    let results = u32::try_from(newest.iter().filter(|message| message.role == Role::Tool).count()).unwrap_or(u32::MAX);
    let fixed: u32 = newest.iter().filter(|m| m.role != Role::Tool).map(tokens::of_message).sum();
    let each = room.checked_sub(fixed)?.checked_div(results)?;
    let mut spent = fixed;
    let mut segments = Vec::new();
    for message in newest {
        if message.role == Role::Tool && tokens::of_message(message) > each {
            let excerpt = shorten(message, each)?;
            spent += tokens::of_excerpt(message, &excerpt);
            segments.push(Segment::Excerpt(excerpt));
        } else {
            spent += if message.role == Role::Tool { tokens::of_message(message) } else { 0 };
            segments.push(Segment::Restore(MessageRange::one(message.id)));
        }
    }
    (spent <= room).then_some((segments, spent))
}

/// The head and tail of a text, with a line between them that says what is missing.
fn shorten(message: &Message, budget: u32) -> Option<Excerpt> {
    let text: Vec<char> = message.text_sent().chars().collect();
    let mut keep = text.len();
    while keep > 0 {
        keep = keep * 3 / 4;
        let head: String = text[..keep * 2 / 3].iter().collect();
        let rest: String = text[text.len() - keep / 3..].iter().collect();
        let left_out = text.len() - keep * 2 / 3 - keep / 3;
        let content =
            format!("{head}\n[{left_out} characters left out; the whole is message {} of the log]\n{rest}", message.id);
        let excerpt = Excerpt { id: message.id, content: Some(content), arguments: Vec::new(), keep_images: false };
        if tokens::of_excerpt(message, &excerpt) <= budget {
            return Some(excerpt);
        }
    }
    None
}

fn keep_summaries<'a>(conversation: &Conversation, view: &'a View, room: u32) -> Vec<&'a Summary> {
    let mut left = room;
    let mut kept: Vec<&Summary> = Vec::new();
    for summary in view.summaries().collect::<Vec<_>>().into_iter().rev() {
        let cost = conversation.item_tokens(&Item::Summary(summary.clone()));
        if cost > left {
            break;
        }
        left -= cost;
        kept.push(summary);
    }
    kept.reverse();
    kept
}

fn covers_of(conversation: &Conversation, accounted: &[bool]) -> Vec<MessageRange> {
    let mut covers: Vec<MessageRange> = Vec::new();
    let mut open = false;
    for (message, accounted) in conversation.messages().iter().zip(accounted) {
        match covers.last_mut() {
            _ if *accounted => {}
            Some(last) if open => last.last = message.id,
            _ => covers.push(MessageRange::one(message.id)),
        }
        open = !accounted;
    }
    covers
}

fn unused_key(conversation: &Conversation, summaries: &HashMap<String, Summary>) -> String {
    let last = conversation.messages().last().map_or(0, |message| message.id.0);
    let mut key = format!("host:{last}");
    let mut count = 1;
    while summaries.contains_key(&key) {
        count += 1;
        key = format!("host:{last}:{count}");
    }
    key
}
