//! The status line: model, engine, and how full the context window is.

use hermes_agent::Status;
use hermes_agent::approval::Mode;

use crate::text::{self, grouped};

/// `— gpt-4.1 · compressor · 12,345 of 128,000 tokens (10 %)`.
pub(crate) fn line(status: &Status) -> String {
    let (used, window) = (u64::from(status.prompt_tokens), u64::from(status.context_length));
    let percent = (used * 100).checked_div(window).unwrap_or(0);
    let (model, engine) = (text::line(&status.model), text::line(&status.engine));
    let mode = mode(status.mode).map(|mode| format!(" · {mode}")).unwrap_or_default();
    format!("— {model} · {engine} · {} of {} tokens ({percent} %){mode}", grouped(used), grouped(window))
}

/// The mode, if it is not the usual one.
pub(crate) fn mode(mode: Mode) -> Option<&'static str> {
    (mode != Mode::default()).then(|| mode.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_shows_the_share_of_the_window() {
        let status = Status {
            model: "gpt-4.1".to_owned(),
            engine: "compressor".to_owned(),
            prompt_tokens: 12_345,
            context_length: 128_000,
            effort: None,
            mode: Mode::Ask,
            messages: 3,
        };
        assert_eq!(line(&status), "— gpt-4.1 · compressor · 12,345 of 128,000 tokens (9 %)");
        let planning = Status { mode: Mode::Plan, ..status.clone() };
        assert!(line(&planning).ends_with("tokens (9 %) · plan"));
        assert!(line(&Status { context_length: 0, ..status }).ends_with("of 0 tokens (0 %)"));
    }
}
