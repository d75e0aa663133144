//! The reasons to end of all wire formats, and of the servers that imitate them.
//!
//! Servers spell one reason in many ways: `max_tokens`, `MAX_TOKENS`, `length`, `model_length`. So only letters count, and
//! reasons that cut or declined a reply are found by their stems. The caller of [`Ending::of`] does not treat an unknown reason
//! as a good end.

use hermes_conversation::one_line_within;

use crate::failure::Stated;

/// Most bytes of a reason in a message.
const LONGEST: usize = 60;

/// Why a server says that a reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Ending {
    /// The model finished, or waits for the results of its calls.
    Stop,
    /// A limit on output, or the window, cut the reply.
    Length,
    /// The model or a filter declined.
    Refused,
    /// A word that no rule knows.
    Unknown,
    /// The server gave up.
    Failed,
}

/// Ends that are good, in letters alone.
const GOOD: &[&str] = &[
    "stop",
    "endturn",
    "endofturn",
    "endofsequence",
    "endoftext",
    "end",
    "done",
    "complete",
    "completed",
    "finish",
    "finished",
    "success",
    "succeeded",
    "toolcall",
    "toolcalls",
    "tooluse",
    "functioncall",
    "functioncalls",
    "pauseturn",
];
/// Words that say nothing, in letters alone.
const EMPTY: &[&str] = &["", "null", "none", "undefined"];
/// Parts of words for a failure.
const FAILED: &[&str] =
    &["error", "fail", "abort", "cancel", "timeout", "timedout", "overload", "interrupt", "exception"];
/// Parts of words for a reply that was declined.
const REFUSED: &[&str] = &[
    "filter",
    "safety",
    "refus",
    "policy",
    "moderat",
    "blocklist",
    "prohibit",
    "sensitive",
    "guardrail",
    "spii",
    "recitation",
];

impl Ending {
    /// The meaning of a reason; none for a word that says nothing, as some servers send with every event.
    pub(super) fn of(reason: &str) -> Option<Self> {
        let letters: String =
            reason.chars().filter(|each| each.is_alphanumeric()).flat_map(char::to_lowercase).collect();
        let has = |parts: &[&str]| parts.iter().any(|part| letters.contains(part));
        let limited = has(&["length", "truncat", "contextwindow", "outputlimit", "tokenlimit", "limitoftoken"])
            || has(&["max"]) && has(&["token", "output"]);
        Some(match letters.as_str() {
            letters if EMPTY.contains(&letters) || letters.contains("unspecified") => return None,
            letters if GOOD.contains(&letters) => Self::Stop,
            // A number is from a server's own enumeration. It counts as a good end, because servers report failures in words.
            letters if letters.bytes().all(|byte| byte.is_ascii_digit()) => Self::Stop,
            _ if has(REFUSED) => Self::Refused,
            _ if limited => Self::Length,
            _ if has(FAILED) => Self::Failed,
            letters if letters.starts_with("stop") || letters.starts_with("eos") => Self::Stop,
            _ => Self::Unknown,
        })
    }

    /// The ending of a reply for which a server gave two reasons, with nothing between them: a plain stop does not undo what cut it.
    pub(super) fn with(self, former: Option<Self>) -> Self {
        former.map_or(self, |former| former.max(self))
    }
}

/// The error for a reply that ended with a bad reason.
pub(super) fn ended_badly(reason: &str) -> Stated {
    let reason = one_line_within(reason, LONGEST);
    let message = format!("the reply ended with the reason `{reason}`");
    Stated { status: 500, code: String::new(), message, window: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_understood_in_every_spelling() {
        for (reasons, meaning) in [
            (
                &[
                    "stop",
                    "STOP",
                    "tool_calls",
                    "tool_use",
                    "toolUse",
                    "end_turn",
                    "<|eos|>",
                    "eos_token",
                    "COMPLETE",
                    "stop_sequence",
                    "stopStringFound",
                    "stop_sequence",
                    "stopStringFound",
                    "24",
                ][..],
                Some(Ending::Stop),
            ),
            (
                &[
                    "length",
                    "max_tokens",
                    "MAX_TOKENS",
                    "maxOutputTokens",
                    "model_length",
                    "max_completion_tokens",
                    "model_context_window_exceeded",
                    "truncated",
                    "token_limit_reached",
                    "repetition_truncation",
                ],
                Some(Ending::Length),
            ),
            (
                &[
                    "content_filter",
                    "content_filtered",
                    "SAFETY",
                    "refusal",
                    "PROHIBITED_CONTENT",
                    "guardrail_intervened",
                    "sensitive",
                ],
                Some(Ending::Refused),
            ),
            (
                &[
                    "abort",
                    "aborted",
                    "error",
                    "ERROR",
                    "network_error",
                    "cancelled",
                    "stopped_by_error",
                    "timeout",
                    "engine_overloaded",
                ],
                Some(Ending::Failed),
            ),
            (
                &["insufficient_system_resource", "MALFORMED_FUNCTION_CALL", "OTHER", "load", "later"],
                Some(Ending::Unknown),
            ),
            (&["", "null", "None", "FINISH_REASON_UNSPECIFIED"], None),
        ] {
            for reason in reasons {
                assert_eq!(Ending::of(reason), meaning, "{reason}");
            }
        }
    }

    #[test]
    fn a_plain_stop_does_not_undo_a_cut() {
        assert_eq!(Ending::Stop.with(Some(Ending::Length)), Ending::Length);
        assert_eq!(Ending::Length.with(Some(Ending::Stop)), Ending::Length);
        assert_eq!(Ending::Stop.with(None), Ending::Stop);
    }
}
