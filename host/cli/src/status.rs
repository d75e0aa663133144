//! The status line: model, engine, and how full the context window is.

use hermes_protocol::{Mode, Status};
use hermes_terminal::{Part, joined};

use crate::text::{self, grouped};

/// The parts of the status line. A narrow terminal drops the least important ones, first the engine.
pub(crate) fn parts(status: &Status) -> Vec<Part> {
    let (used, window) = (u64::from(status.prompt_tokens), u64::from(status.context_length));
    // Before the first message, the size of the prompt and the tools is unknown.
    let fill = match used {
        0 => format!("window of {} tokens", grouped(window)),
        used => format!("{} of {} tokens ({} %)", grouped(used), grouped(window), percent(status)),
    };
    vec![
        Part::new(format!("— {}", text::line(&status.model)), 3),
        Part::new(text::line(&status.engine), 1),
        Part::new(fill, 2),
        Part::new(mode(status.mode).unwrap_or_default(), 4),
    ]
}

/// How full the window is.
pub(crate) fn percent(status: &Status) -> u64 {
    let (used, window) = (u64::from(status.prompt_tokens), u64::from(status.context_length));
    (used * 100).checked_div(window).unwrap_or(0)
}

/// `— gpt-4.1 · compressor · 12,345 of 128,000 tokens (10 %)`.
pub(crate) fn line(status: &Status) -> String {
    joined(&parts(status), usize::MAX)
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
        // On a narrow terminal the mode stays longest: it says what happens without a question.
        assert_eq!(joined(&parts(&planning), 50), "— gpt-4.1 · 12,345 of 128,000 tokens (9 %) · plan");
        assert_eq!(joined(&parts(&planning), 20), "— gpt-4.1 · plan");
        assert!(line(&Status { context_length: 0, ..status.clone() }).ends_with("of 0 tokens (0 %)"));
        let new = Status { prompt_tokens: 0, ..status };
        assert_eq!(line(&new), "— gpt-4.1 · compressor · window of 128,000 tokens");
    }
}
