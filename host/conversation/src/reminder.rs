//! Reminders: what the model still has to know of a tool result that its view no longer shows, such as a list of open tasks.
//!
//! A tool gives the text with its result, and it is valid until the next result of the tool with such a text. A view shows it
//! where it shows the result shortened, or behind its last summary. The text follows from the log and the view alone, so the
//! messages of a view stay the same until the next one is adopted.

use std::collections::{BTreeMap, HashSet};

use crate::part::Part;
use crate::{Conversation, Item, Message, MessageId, View, fence, one_line_within, tokens};

/// The most bytes of one reminder.
pub const LONGEST: usize = 8 << 10;
/// The most bytes of all reminders of a view. Those of the newest results are shown.
const MOST: usize = 2 * LONGEST;

/// The most bytes of a tool's name in a frame.
const LONGEST_NAME: usize = 64;

/// The reminder of a result; empty if the model need not be reminded of anything any more.
pub(crate) fn of_message(message: &Message) -> Option<&str> {
    message.parts.iter().find_map(|part| match part {
        Part::ToolResult(result) => result.reminder.as_deref(),
        _ => None,
    })
}

/// The reminders of a view in their frames, by the position of the item that they follow.
pub(crate) fn of_view(conversation: &Conversation, view: &View) -> BTreeMap<usize, String> {
    let mut shown: BTreeMap<usize, String> = BTreeMap::new();
    let Some(through) = view.through else { return shown };
    // Later results follow the view in full.
    for (message, text) in valid(conversation, through) {
        let Some(at) = place(view, message.id) else { continue };
        let framed = framed(message, text);
        match shown.get_mut(&at) {
            Some(others) => *others = format!("{framed}\n\n{others}"),
            None => drop(shown.insert(at, framed)),
        }
    }
    shown
}

/// Estimate for reminders in their frames.
pub(crate) fn tokens(framed: &str) -> u32 {
    tokens::of_text(framed)
}

/// Estimate for all reminders that a view of the whole conversation can show.
pub(crate) fn most_tokens(conversation: &Conversation) -> u32 {
    let Some(last) = conversation.messages().last() else { return 0 };
    let framed = valid(conversation, last.id).map(|(message, text)| tokens(&framed(message, text)));
    framed.fold(0, u32::saturating_add)
}

/// The results up to a message whose reminders are valid there, newest first, each with its text.
fn valid(conversation: &Conversation, through: MessageId) -> impl Iterator<Item = (&Message, &str)> {
    let (mut tools, mut left) = (HashSet::new(), MOST);
    let newest = conversation.reminding().filter(move |message| message.id <= through);
    let newest = newest.filter(move |message| tools.insert(message.tool_name.as_deref()));
    let texts = newest.filter_map(|message| of_message(message).map(|text| (message, text.trim())));
    texts.filter(|(_, text)| !text.is_empty()).take_while(move |(_, text)| {
        let room = left.checked_sub(text.len());
        left = room.unwrap_or_default();
        room.is_some()
    })
}

/// The item that the reminder of a result follows; `None` if the view shows the result itself.
fn place(view: &View, result: MessageId) -> Option<usize> {
    for (at, item) in view.items.iter().enumerate() {
        match item {
            Item::Messages(range) if range.contains(result) => return None,
            Item::Excerpt(excerpt) if excerpt.id == result => return excerpt.content.is_some().then_some(at),
            _ => {}
        }
    }
    // A verified view has one: every message is shown or covered.
    view.items.iter().rposition(|item| matches!(item, Item::Summary(_)))
}

fn framed(message: &Message, text: &str) -> String {
    // An imported conversation can name any tool.
    let tool = one_line_within(message.tool_name.as_deref().unwrap_or("unknown"), LONGEST_NAME);
    fence::defuse(&format!("[Kept from a result of the tool `{tool}`. A later result of it counts more.]\n{text}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::part::ToolResult;
    use crate::render::render;
    use crate::{Draft, Excerpt, MessageRange, Plan, Segment, Summary, ToolCall, last_resort, plan, validity};

    fn call(id: u64, name: &str) -> ToolCall {
        ToolCall { id: format!("c{id}"), name: name.to_owned(), arguments: "{}".to_owned() }
    }

    /// A user's message, and then a call with its result for each of these tools and reminders.
    fn conversation(results: &[(&str, Option<&str>)]) -> Conversation {
        let mut conversation = Conversation::default();
        let mut id = 0;
        let mut push = |conversation: &mut Conversation, draft: Draft| {
            id += 1;
            conversation.push(draft.numbered(MessageId(id)));
        };
        push(&mut conversation, Draft::user("go", 1));
        for (at, (tool, reminder)) in (0..).zip(results) {
            let call = call(at, tool);
            push(&mut conversation, Draft::assistant("", vec![call.clone()], 1));
            let said = format!("{tool} says a lot, {}", "word ".repeat(400));
            let result = ToolResult {
                call_id: call.id.clone(),
                tool_name: Some(call.name.clone()),
                parts: vec![Part::text(said.clone())],
                failed: false,
                structured: None,
                reminder: reminder.map(str::to_owned),
            };
            push(&mut conversation, Draft::result(&call, said, 1).with_parts(vec![Part::ToolResult(result)]));
        }
        push(&mut conversation, Draft::user("and now?", 1));
        conversation
    }

    fn range(first: u64, last: u64) -> MessageRange {
        MessageRange::new(MessageId(first), MessageId(last))
    }

    fn folded(first: u64, last: u64) -> Item {
        let covers = vec![range(first, last)];
        Item::Summary(Summary { key: format!("s{first}"), content: "they talked".to_owned(), covers })
    }

    fn view(items: Vec<Item>, through: u64) -> View {
        View { items, through: Some(MessageId(through)) }
    }

    fn sent(conversation: &Conversation, view: &View) -> String {
        let shown = render(conversation, view);
        assert!(validity::check(&shown).is_ok(), "{shown:?}");
        shown.iter().map(|shown| format!("{:?}: {}\n", shown.role, shown.content)).collect()
    }

    #[test]
    fn a_reminder_follows_the_last_summary_only_if_its_result_is_hidden() {
        let conversation = conversation(&[("todo", Some("old")), ("todo", Some("[ ] paint")), ("read", None)]);
        let hidden = sent(&conversation, &view(vec![folded(1, 3), folded(4, 7), Item::Messages(range(8, 8))], 8));
        assert_eq!(hidden.matches("Kept from").count(), 1, "{hidden}");
        let kept = "[End of the summary.]\n\n[Kept from a result of the tool `todo`. A later result of it counts more.]\n\
                    [ ] paint\n";
        assert!(hidden.contains(kept) && !hidden.contains("old"), "{hidden}");
        for shown in [
            View::default(),
            view(vec![folded(1, 3), Item::Messages(range(4, 8))], 8),
            // The reminder of the first result is outdated, though only this one is hidden.
            view(vec![folded(1, 3)], 3),
        ] {
            let kept = sent(&conversation, &shown).matches("Kept from").count();
            assert_eq!(kept, usize::from(shown.through == Some(MessageId(3))), "{shown:?}");
        }
    }

    #[test]
    fn a_shortened_result_ends_with_its_reminder() {
        let conversation = conversation(&[("todo", Some("[ ] paint"))]);
        let excerpt = Excerpt {
            id: MessageId(3),
            content: Some("[shortened]".to_owned()),
            arguments: Vec::new(),
            keep_images: false,
        };
        let view = view(vec![Item::Messages(range(1, 2)), Item::Excerpt(excerpt), Item::Messages(range(4, 4))], 4);
        let sent = sent(&conversation, &view);
        assert!(sent.contains("Tool: [shortened]\n\n[Kept from a result of the tool `todo`."), "{sent}");
    }

    #[test]
    fn a_result_that_an_excerpt_shows_as_it_was_is_followed_by_no_reminder() {
        let conversation = conversation(&[("todo", Some("[ ] paint"))]);
        let excerpt = Excerpt { id: MessageId(3), content: None, arguments: Vec::new(), keep_images: false };
        let view = view(vec![Item::Messages(range(1, 2)), Item::Excerpt(excerpt), Item::Messages(range(4, 4))], 4);
        let sent = sent(&conversation, &view);
        assert!(sent.contains("Tool: todo says a lot") && !sent.contains("Kept from"), "{sent}");
    }

    #[test]
    fn an_empty_reminder_and_one_without_room_are_not_shown() {
        let long = "x".repeat(MOST - 10);
        let done = conversation(&[("todo", Some("[ ] paint")), ("todo", Some(" "))]);
        assert!(!sent(&done, &view(vec![folded(1, 5), Item::Messages(range(6, 6))], 6)).contains("Kept from"));
        let odd = sent(
            &conversation(&[("to\ndo</memory-context>", Some("[ ] paint"))]),
            &view(vec![folded(1, 3), Item::Messages(range(4, 4))], 4),
        );
        assert!(odd.contains("tool `to do< /memory-context>`"), "{odd}");
        let many = conversation(&[("a", Some("older than its room")), ("b", Some(&long)), ("c", Some("newest"))]);
        let sent = sent(&many, &view(vec![folded(1, 7), Item::Messages(range(8, 8))], 8));
        assert!(sent.contains("newest") && sent.contains(&long) && !sent.contains("older than its room"));
    }

    #[test]
    fn a_reminder_stays_the_same_under_one_view_and_cannot_close_a_fence() {
        let mut conversation = conversation(&[("todo", Some("[ ] paint</memory-context>"))]);
        let view = view(vec![folded(1, 3), Item::Messages(range(4, 4))], 4);
        let before = sent(&conversation, &view);
        assert!(before.contains("[ ] paint< /memory-context>"), "{before}");
        let call = call(9, "todo");
        let newer = ToolResult {
            call_id: call.id.clone(),
            tool_name: Some(call.name.clone()),
            parts: Vec::new(),
            failed: false,
            structured: None,
            reminder: Some("[ ] dry".to_owned()),
        };
        conversation.push(Draft::assistant("", vec![call], 1).numbered(MessageId(5)));
        conversation.push(Draft::of_parts(crate::Role::Tool, vec![Part::ToolResult(newer)], 1).numbered(MessageId(6)));
        assert!(sent(&conversation, &view).starts_with(&before));
    }

    #[test]
    fn a_reminder_is_counted_and_the_hosts_own_plan_leaves_room_for_it() {
        let text = "one more step ".repeat(30);
        let plain = conversation(&[("todo", None), ("read", None), ("read", None), ("read", None)]);
        let conversation = conversation(&[("todo", Some(&text)), ("read", None), ("read", None), ("read", None)]);
        let folded = view(vec![folded(1, 9), Item::Messages(range(10, 10))], 10);
        let more = conversation.view_tokens(&folded) - plain.view_tokens(&folded);
        assert_eq!(more, most_tokens(&conversation));
        assert!(more > tokens::of_text(text.trim()));
        // The frames of a plan need some room.
        for limit in (900..conversation.view_tokens(&View::default())).step_by(10) {
            let (whole, none) = (View::default(), std::collections::HashMap::new());
            let plan = last_resort::plan(&conversation, &whole, &none, limit).unwrap();
            let ground = plan::ReferenceState {
                conversation: &conversation,
                view: &whole,
                summaries: &none,
                limit,
                must_shrink: false,
            };
            plan::verify(&plan, &ground).unwrap_or_else(|refusal| panic!("at {limit}: {refusal}"));
            let Plan { segments, .. } = plan;
            assert!(segments.iter().any(|segment| matches!(segment, Segment::Summary(_))));
        }
    }
}
