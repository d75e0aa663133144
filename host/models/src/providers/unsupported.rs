//! Providers that users of other programs may name and that cannot be used here, each with its reason.

/// A provider that cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unsupported {
    /// The names under which it is known.
    pub(crate) names: &'static [&'static str],
    /// Why it cannot be used.
    pub(crate) reason: &'static str,
    /// What to do instead.
    pub(crate) instead: &'static str,
}

/// Every provider that cannot be used.
pub(crate) const UNSUPPORTED: &[Unsupported] = &[
    Unsupported {
        names: &["openai-codex", "codex"],
        reason: "it needs a login with ChatGPT, and Hermes has no `client_id` there",
        instead: "use `openai` with a key",
    },
    Unsupported {
        names: &["copilot", "github-copilot", "copilot-acp"],
        reason: "it needs a login with GitHub, or another program that runs the agent",
        instead: "use the vendor of the model with a key",
    },
    Unsupported {
        names: &["minimax-oauth"],
        reason: "it needs a login with MiniMax, and Hermes has no `client_id` there",
        instead: "use `minimax` or `minimax-cn` with a key",
    },
    Unsupported {
        names: &["kimi-oauth"],
        reason: "it needs a login with Kimi, and Hermes has no `client_id` there",
        instead: "use `kimi-coding` or `kimi-code` with a key",
    },
    Unsupported {
        names: &["qwen-oauth"],
        reason: "it needs a login with Qwen, and Hermes has no `client_id` there",
        instead: "use `alibaba` with a key",
    },
    Unsupported {
        names: &["google-gemini-cli", "gemini-oauth"],
        reason: "Google reserves this login for its own program",
        instead: "use `gemini` with a key",
    },
    Unsupported {
        names: &["vertex", "google-vertex"],
        reason: "it takes tokens of a Google Cloud account, not keys",
        instead: "use `gemini` with a key",
    },
    Unsupported {
        names: &["xai-oauth"],
        reason: "it needs a login with xAI, and Hermes has no `client_id` there",
        instead: "use `xai` with a key",
    },
];

/// A provider that cannot be used, by its name in any case.
pub(crate) fn unsupported(name: &str) -> Option<&'static Unsupported> {
    UNSUPPORTED.iter().find(|row| row.names.iter().any(|known| known.eq_ignore_ascii_case(name)))
}
