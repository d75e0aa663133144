//! What memory providers want kept of messages that are about to be folded.

use std::sync::Arc;
use std::time::Duration;

use hermes_conversation::MessageRange;
use hermes_plugin_host::MemoryEvents;

use super::notify::Notify;

/// How long slow work waits for all of them.
const PATIENCE: Duration = Duration::from_secs(10);
/// Characters that they may say together: so many of the beginning and of the end where it is more.
const MOST: usize = 6_000;
const HEAD: usize = 4_000;
const TAIL: usize = 1_500;

/// Asks every provider at once; what fails or is late is told and left out.
pub(super) async fn keepsakes(
    memories: &[Arc<dyn MemoryEvents>],
    messages: Option<MessageRange>,
    notify: &Notify,
) -> String {
    let Some(messages) = messages.filter(|_| !memories.is_empty()) else { return String::new() };
    let asked = memories.iter().map(|memory| async {
        match tokio::time::timeout(PATIENCE, memory.before_compact(messages)).await {
            Ok(Ok(text)) => Some(text),
            Ok(Err(error)) => {
                notify(format!("{error}; the summary is written without it").into());
                None
            }
            Err(_) => {
                let text = format!(
                    "the memory `{}` did not say within {} s what a summary should keep; it is written without it",
                    memory.name(),
                    PATIENCE.as_secs()
                );
                notify(text.into());
                None
            }
        }
    });
    let said = futures_util::future::join_all(asked).await;
    let said: Vec<String> =
        said.into_iter().flatten().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()).collect();
    bounded(&said.join("\n\n"))
}

fn bounded(text: &str) -> String {
    let count = text.chars().count();
    if count <= MOST {
        return text.to_owned();
    }
    let head: String = text.chars().take(HEAD).collect();
    let tail: String = text.chars().skip(count - TAIL).collect();
    format!("{head}\n[{} characters left out]\n{tail}", count - HEAD - TAIL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_keeps_its_beginning_and_its_end() {
        let text: String = (0..7_000).map(|n| if n % 2 == 0 { 'ä' } else { 'b' }).collect();
        let bounded = bounded(&text);
        assert!(bounded.chars().count() < MOST && bounded.contains("[1500 characters left out]"));
        assert!(text.starts_with(bounded.lines().next().unwrap_or_default()));
    }
}
