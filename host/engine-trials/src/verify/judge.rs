//! Checks views by what a conversation needs, independently of the host's verifier.

use std::collections::HashMap;

use hermes_conversation::render::Rendering;
use hermes_conversation::{Conversation, Item, Media, Part, Shown, Summary, View, tokens, validity};

/// The state of the checks so far.
#[derive(Debug, Default)]
pub(super) struct Judge {
    /// The messages of the previous request; `None` if the view has changed by other means since.
    before: Option<Vec<Shown>>,
    /// The summaries by key.
    summaries: HashMap<String, Summary>,
    views: usize,
}

impl Judge {
    /// Resets the checks after a rewind or another change from outside.
    pub(super) fn rewound(&mut self) {
        self.before = None;
        // The keys of removed views may be used again.
        self.summaries.clear();
        self.views = 0;
    }

    /// Checks a request, and returns its tokens.
    pub(super) fn request(
        &mut self,
        conversation: &Conversation,
        view: &View,
        views: &[View],
        published: bool,
    ) -> Result<u32, String> {
        let (rendering, shown) = Rendering::of(conversation, view);
        // The conversation itself is complete: a repair means that the view has broken it.
        if rendering.repairs().any() {
            return Err(format!("a provider would refuse the request: {}", rendering.repairs()));
        }
        validity::check(&shown).map_err(|invalid| format!("a provider would refuse the request: {invalid}"))?;
        covered(conversation, view)?;
        if let Some(newest) = conversation.last_user() {
            let is_shown = shown.iter().any(|shown| shown.id == Some(newest.id) && shown.content == newest.text_sent());
            if !is_shown {
                return Err(format!("the newest message of the user, {}, is not shown", newest.id));
            }
        }
        for shown in &shown {
            // Each message is shown as it was said, unless the view has an excerpt of it.
            let excerpt = |id| view.items.iter().any(|item| matches!(item, Item::Excerpt(excerpt) if excerpt.id == id));
            let Some(message) = shown.id.and_then(|id| conversation.get(id)) else { continue };
            if !excerpt(message.id) {
                if shown.content != message.text_sent() || !media(&shown.parts).eq(message.media()) {
                    return Err(format!("message {} is not shown unchanged", message.id));
                }
            } else if let Some(lost) = message.inner_parts().find(|part| is_lost(part, shown)) {
                let name = lost.mention().unwrap_or_default();
                return Err(format!("the excerpt of message {} neither shows nor names {name}", message.id));
            }
        }
        if !published
            && let Some(before) = &self.before
            && !shown.starts_with(before)
        {
            return Err("the request does not begin with the one before, and no view was published".to_owned());
        }
        if views.len() < self.views {
            self.views = 0;
        }
        for summary in views[self.views..].iter().flat_map(View::summaries) {
            match self.summaries.get(&summary.key) {
                Some(known) if known != summary => {
                    return Err(format!("the summary `{}` has another text or other covers than before", summary.key));
                }
                Some(_) => {}
                None => drop(self.summaries.insert(summary.key.clone(), summary.clone())),
            }
        }
        self.views = views.len();
        let text = |shown: &Shown| {
            let calls: u32 = shown.tool_calls.iter().map(|call| tokens::of_text(&call.arguments)).sum();
            let parts = if shown.repeats_pictures { 0 } else { tokens::of_parts(&shown.parts) };
            tokens::of_text(&shown.content) + calls + parts
        };
        let tokens = shown.iter().map(text).sum();
        self.before = Some(shown);
        Ok(tokens)
    }
}

fn media(parts: &[Part]) -> impl Iterator<Item = &Media> {
    let inner = parts.iter().flat_map(|part| match part {
        Part::ToolResult(result) => result.parts.as_slice(),
        other => std::slice::from_ref(other),
    });
    inner.filter_map(Part::media)
}

/// Whether a picture or file is neither shown nor named.
fn is_lost(part: &Part, shown: &Shown) -> bool {
    let Some(whole) = part.media() else { return false };
    let is_named = part.mention().is_some_and(|name| shown.content.contains(&name));
    !is_named && !media(&shown.parts).any(|shown| shown == whole)
}

/// Every message is shown, or a summary that is shown says that it stands for it.
fn covered(conversation: &Conversation, view: &View) -> Result<(), String> {
    let items = conversation.items(view);
    let lost = conversation.messages().iter().find(|message| {
        !items.iter().any(|item| match item {
            Item::Messages(range) => range.contains(message.id),
            Item::Excerpt(excerpt) => excerpt.id == message.id,
            Item::Summary(summary) => summary.covers.iter().any(|range| range.contains(message.id)),
        })
    });
    lost.map_or(Ok(()), |message| Err(format!("message {} is neither shown nor covered", message.id)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_conversation::{Draft, Excerpt, MessageId, MessageRange, ToolCall};

    use super::*;

    fn conversation() -> Conversation {
        let call = ToolCall { id: "a".into(), name: "read".into(), arguments: "{}".into() };
        let drafts = [
            Draft::user("one", 1),
            Draft::assistant("", vec![call.clone()], 2),
            Draft::result(&call, "two", 3),
            Draft::assistant("three", Vec::new(), 4),
            Draft::user("four", 5),
        ];
        Conversation::new(drafts.into_iter().zip(1..).map(|(draft, id)| draft.numbered(MessageId(id))))
    }

    fn range(first: u64, last: u64) -> MessageRange {
        MessageRange::new(MessageId(first), MessageId(last))
    }

    fn summary(key: &str, content: &str, first: u64, last: u64) -> Item {
        Item::Summary(Summary { key: key.into(), content: content.into(), covers: vec![range(first, last)] })
    }

    fn judged(judge: &mut Judge, items: Vec<Item>, published: bool) -> Result<u32, String> {
        let view = View { items, through: Some(MessageId(5)) };
        judge.request(&conversation(), &view, std::slice::from_ref(&view), published)
    }

    #[test]
    fn every_kind_of_loss_is_detected() {
        for (items, why) in [
            (vec![summary("k", "s", 1, 2), Item::Messages(range(4, 5))], "3 is neither shown nor covered"),
            (vec![Item::Messages(range(1, 2)), summary("k", "s", 3, 4), Item::Messages(range(5, 5))], "refuse"),
            (vec![Item::Messages(range(1, 4)), summary("k", "s", 5, 5)], "newest message of the user, 5"),
            (
                vec![
                    Item::Messages(range(1, 4)),
                    Item::Excerpt(Excerpt {
                        id: MessageId(5),
                        content: Some("f".into()),
                        arguments: Vec::new(),
                        keep_images: false,
                    }),
                ],
                "newest message of the user, 5",
            ),
        ] {
            let error = judged(&mut Judge::default(), items, true).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        assert!(
            judged(&mut Judge::default(), vec![summary("k", "s", 1, 4), Item::Messages(range(5, 5))], true).is_ok()
        );
    }

    #[test]
    fn a_changed_beginning_and_a_changed_summary_are_detected() {
        let mut judge = Judge::default();
        let folded = |text: &str| vec![summary("k", text, 1, 4), Item::Messages(range(5, 5))];
        assert!(judged(&mut judge, folded("s"), true).is_ok());
        let error = judged(&mut judge, vec![Item::Messages(range(1, 5))], false).unwrap_err();
        assert!(error.contains("does not begin with the one before"), "{error}");
        let mut judge = Judge::default();
        assert!(judged(&mut judge, folded("s"), true).is_ok());
        judge.views = 0;
        let error = judged(&mut judge, folded("another"), true).unwrap_err();
        assert!(error.contains("`k` has another text"), "{error}");
        judge.rewound();
        assert!(judged(&mut judge, folded("another"), true).is_ok());
    }
}
