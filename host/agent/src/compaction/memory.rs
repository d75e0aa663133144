//! Collects what memory providers want a summary to keep.

use std::sync::Arc;
use std::time::Duration;

use hermes_conversation::MessageRange;
use hermes_plugin_host::MemoryEvents;

use super::notify::Notify;

/// How long preparation waits for the providers.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The most characters of all texts together. From a longer text only the head and the tail are kept.
const MAX_CHARS: usize = 6_000;
const HEAD: usize = 4_000;
const TAIL: usize = 1_500;

/// Queries all providers at once. A provider that fails or is late is reported and left out.
pub(super) async fn texts_to_keep(
    memories: &[Arc<dyn MemoryEvents>],
    messages: Option<MessageRange>,
    notify: &Notify,
) -> String {
    let Some(messages) = messages.filter(|_| !memories.is_empty()) else { return String::new() };
    let queries = memories.iter().map(|memory| async {
        match tokio::time::timeout(TIMEOUT, memory.before_compact(messages)).await {
            Ok(Ok(text)) => Some(text),
            Ok(Err(error)) => {
                notify(format!("{error}; the summary is written without this memory").into());
                None
            }
            Err(_) => {
                let text = format!(
                    "the memory `{}` did not answer within {} s what the summary should keep; the summary is written without it",
                    memory.name(),
                    TIMEOUT.as_secs()
                );
                notify(text.into());
                None
            }
        }
    });
    let texts = futures_util::future::join_all(queries).await;
    let texts: Vec<String> =
        texts.into_iter().flatten().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()).collect();
    bounded(&texts.join("\n\n"))
}

fn bounded(text: &str) -> String {
    let count = text.chars().count();
    if count <= MAX_CHARS {
        return text.to_owned();
    }
    let head: String = text.chars().take(HEAD).collect();
    let tail: String = text.chars().skip(count - TAIL).collect();
    format!("{head}\n[{} characters left out]\n{tail}", count - HEAD - TAIL)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;
    use hermes_conversation::MessageId;
    use hermes_plugin_host::{CallError, Cause};

    use super::*;

    struct Scripted(Result<&'static str, Cause>);

    #[async_trait]
    impl MemoryEvents for Scripted {
        fn name(&self) -> &str {
            "scripted"
        }

        async fn before_compact(&self, _: MessageRange) -> Result<String, CallError> {
            let (plugin, version) = ("scripted".to_owned(), "1.0.0".to_owned());
            let failed = |cause| CallError { plugin, version, call: "before-compact", cause };
            self.0.clone().map(str::to_owned).map_err(failed)
        }
    }

    #[tokio::test]
    async fn a_memory_that_fails_is_left_out_of_the_summary_with_a_notice() {
        let answers = [Ok("tea"), Err(Cause::Trap(Box::new("unreachable".into()))), Ok(""), Ok("milk")];
        let memories = answers.map(|answer| Arc::new(Scripted(answer)) as Arc<dyn MemoryEvents>);
        let notices = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&notices);
        let notify: Notify = Arc::new(move |notice| {
            if let Ok(mut notices) = sink.lock() {
                notices.push(notice.to_string());
            }
        });
        let range = MessageRange::new(MessageId(1), MessageId(2));
        assert_eq!(texts_to_keep(&memories, Some(range), &notify).await, "tea\n\nmilk");
        let notices = notices.lock().map(|notices| notices.clone()).unwrap_or_default();
        assert!(notices.len() == 1 && notices[0].contains("unreachable"), "{notices:?}");
    }

    #[test]
    fn a_long_text_keeps_its_head_and_tail() {
        let text: String = (0..7_000).map(|n| if n % 2 == 0 { 'ä' } else { 'b' }).collect();
        let bounded = bounded(&text);
        assert!(bounded.chars().count() < MAX_CHARS && bounded.contains("[1500 characters left out]"));
        assert!(text.starts_with(bounded.lines().next().unwrap_or_default()));
    }
}
