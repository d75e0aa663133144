//! The keys that `config.yaml` may hold: one table, read by the checks, by `hermes config` and by the test that
//! holds `docs/configuration.md` to it.

/// What a key's value has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wants {
    Text,
    Flag,
    /// A whole number, at least this.
    Count(u64),
    /// A whole number from one to the other.
    Between(u64, u64),
    /// A number above 0 and up to 1.
    Share,
    /// A list of texts.
    Texts,
    /// Sections whose names are free: what is in them is not the host's business.
    Sections,
    /// By a free name, a text or a section of texts.
    Hints,
    /// A list of sections with the keys of [`CHAIN`].
    Chain,
    /// Not looked at, since nothing comes of it.
    Anything,
}

impl Wants {
    /// For messages: `a list of texts`.
    pub(crate) fn describe(self) -> String {
        match self {
            Wants::Text => "a text".to_owned(),
            Wants::Flag => "true or false".to_owned(),
            Wants::Count(least) => format!("a whole number, at least {least}"),
            Wants::Between(least, most) => format!("a whole number from {least} to {most}"),
            Wants::Share => "a number above 0 and up to 1".to_owned(),
            Wants::Texts => "a list of texts".to_owned(),
            Wants::Sections => "a section for each name".to_owned(),
            Wants::Hints => "a text or a section for each name".to_owned(),
            Wants::Chain => "a list of sections".to_owned(),
            Wants::Anything => "anything".to_owned(),
        }
    }
}

/// A key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Key {
    /// Dotted.
    pub(crate) path: &'static str,
    pub(crate) wants: Wants,
    /// As JSON; empty where there is none.
    pub(crate) default: &'static str,
    /// Whether setting it changes anything in this version; if not, that is said.
    pub(crate) works: bool,
    pub(crate) meaning: &'static str,
}

const fn key(path: &'static str, wants: Wants, default: &'static str, meaning: &'static str) -> Key {
    Key { path, wants, default, works: true, meaning }
}

const fn later(path: &'static str, wants: Wants, meaning: &'static str) -> Key {
    Key { path, wants, default: "", works: false, meaning }
}

/// All of them, in the order in which they are shown.
pub(crate) const KEYS: &[Key] = &[
    key("model.provider", Wants::Text, "", "a known provider, `custom` with a `base_url`, or `offline`"),
    key("model.default", Wants::Text, "", "the model's name as the provider knows it; `model: NAME` is short for it"),
    key("model.base_url", Wants::Text, "", "base URL of an OpenAI-compatible API, often ending in /v1"),
    key("model.api_key", Wants::Text, "", "the key for that address; preferably a variable such as `${NAME}`"),
    key(
        "model.auth",
        Wants::Text,
        "",
        "in place of a key: the name of a login in `auth.json`; its token is refreshed when it expires",
    ),
    key("model.context_length", Wants::Count(2000), "", "the model's window in tokens, if the built-in table is wrong"),
    key(
        "model.api_mode",
        Wants::Text,
        "",
        "the wire format: `chat_completions` or `anthropic_messages`; by default the provider's",
    ),
    key("context.engine", Wants::Text, "\"compressor\"", "the plugin that compacts conversations"),
    key(
        "compression.enabled",
        Wants::Flag,
        "true",
        "whether the engine is used at all, also by `/compress`; a full window is always folded by rule",
    ),
    key(
        "compression.threshold",
        Wants::Share,
        "",
        "share of the window, minus the reserve for the reply, at which the engine compacts; passed to the engine like the next three, which has its own defaults",
    ),
    key(
        "compression.target_ratio",
        Wants::Share,
        "",
        "share of the threshold's tokens for the newest messages, which stay in full",
    ),
    key(
        "compression.protect_first_n",
        Wants::Count(0),
        "",
        "number of first messages that the first compaction keeps in full",
    ),
    key(
        "compression.protect_last_n",
        Wants::Count(0),
        "",
        "number of newest messages that stay in full, as far as room allows",
    ),
    key("memory.provider", Wants::Text, "", "a memory provider in addition to the built-in memory"),
    key("memory.memory_char_limit", Wants::Count(1), "2200", "most characters in MEMORY.md"),
    key("memory.user_char_limit", Wants::Count(1), "1375", "most characters in USER.md"),
    key("plugins.enabled", Wants::Texts, "[]", "plugins to enable in addition to the default ones"),
    key("plugins.disabled", Wants::Texts, "[]", "plugins to disable, including default ones"),
    key("plugins.entries", Wants::Sections, "{}", "a section for each plugin, passed to it unchanged"),
    key(
        "plugins.settings",
        Wants::Sections,
        "{}",
        "the host's settings for each plugin: `limits`, `on_failure`, `source`; see plugins-limits.md, and plugins.md for `source`",
    ),
    key(
        "approvals.allow",
        Wants::Texts,
        "[]",
        "what plugins may do without asking: `PLUGIN`, `PLUGIN/TOOL` or `PLUGIN/process:PROGRAM`",
    ),
    key("approvals.deny", Wants::Texts, "[]", "what plugins may never do, in the same form; overrides everything else"),
    key(
        "auxiliary.<task>.provider",
        Wants::Text,
        "\"auto\"",
        "the provider for a plugin task such as `compression`: `auto` or `main` for the session's, a known provider, or `custom`",
    ),
    key(
        "auxiliary.<task>.model",
        Wants::Text,
        "",
        "the model for the task; by default the session's if the provider is the same",
    ),
    key(
        "auxiliary.<task>.base_url",
        Wants::Text,
        "",
        "another address for the task; without a provider it is called `custom`",
    ),
    key("auxiliary.<task>.api_key", Wants::Text, "", "the key for the provider or address in this section"),
    key("auxiliary.<task>.auth", Wants::Text, "", "in place of a key: the name of a login, like `model.auth`"),
    key("auxiliary.<task>.key_env", Wants::Text, "", "the variable that contains that key, if `api_key` is not set"),
    key("auxiliary.<task>.api_mode", Wants::Text, "", "the wire format, like `model.api_mode`"),
    key(
        "auxiliary.<task>.context_length",
        Wants::Count(4000),
        "",
        "the window of that model, like `model.context_length`",
    ),
    key("auxiliary.<task>.timeout", Wants::Count(1), "120", "most seconds per attempt"),
    key("auxiliary.<task>.fallback_chain", Wants::Chain, "[]", "fallbacks, in order; see below"),
    later("auxiliary.<task>.extra_body", Wants::Anything, "additional members of the request body"),
    later("auxiliary.<task>.reasoning_effort", Wants::Anything, "the model's reasoning effort"),
    key(
        "auxiliary.transient_retries",
        Wants::Between(0, 6),
        "2",
        "number of retries with the same model after a connection or server error",
    ),
    key("prompt.system_message", Wants::Text, "", "your own text for the system prompt of new sessions"),
    key(
        "prompt.context_files",
        Wants::Flag,
        "true",
        "whether the system prompt includes project files such as AGENTS.md",
    ),
    key(
        "prompt.ephemeral_system_prompt",
        Wants::Text,
        "",
        "text appended to the system prompt of each request, but never stored",
    ),
    key(
        "prompt.prefill_messages_file",
        Wants::Text,
        "",
        "a JSON file of messages (`role`, `content`) sent before every conversation, but never stored; relative to this file",
    ),
    key("prompt_caching.cache_ttl", Wants::Text, "\"5m\"", "how long providers should cache a prefix: `5m` or `1h`"),
    key(
        "context_file_max_chars",
        Wants::Count(1000),
        "",
        "most characters of a project file in the system prompt; by default 6 % of the window, from 20,000 to 500,000",
    ),
    key(
        "platform_hints",
        Wants::Hints,
        "{}",
        "by platform (`cli`, `serve`, `cron`): text appended to the built-in hint, or `replace:` and `append:`",
    ),
    key("agent.environment_hint", Wants::Text, "", "your description of the machine, for the system prompt"),
    key("agent.max_turns", Wants::Count(1), "90", "most requests to the model per message of yours"),
    key("display.show_reasoning", Wants::Flag, "false", "whether the chat shows the model's reasoning"),
];

/// The keys of an entry of a `fallback_chain`, with what each has to be.
pub(crate) const CHAIN: &[(&str, Wants)] = &[
    ("provider", Wants::Text),
    ("model", Wants::Text),
    ("base_url", Wants::Text),
    ("api_key", Wants::Text),
    ("auth", Wants::Text),
    ("key_env", Wants::Text),
    ("api_mode", Wants::Text),
    ("context_length", Wants::Count(4000)),
];

/// Tasks that are known to ask a model. Others may: a plugin names its tasks as it likes.
pub(crate) const TASKS: &[&str] = &["compression", "memory"];

impl Key {
    /// A key by its dotted path.
    pub(crate) fn at(path: &str) -> Option<&'static Self> {
        // What is written out goes before what stands for any name.
        KEYS.iter().find(|key| key.path == path).or_else(|| KEYS.iter().find(|key| below(key.path, path) == Some(None)))
    }
}

/// What is left of a key's path below another path, in which any name may stand for one in angle brackets: nothing where
/// they are the same.
fn below(key: &'static str, path: &str) -> Option<Option<&'static str>> {
    let mut rest = Some(key);
    for name in path.split('.').filter(|_| !path.is_empty()) {
        let (own, after) = match rest?.split_once('.') {
            Some((own, after)) => (own, Some(after)),
            None => (rest?, None),
        };
        let stands_for_any = own.starts_with('<') && !name.is_empty();
        if own != name && !stands_for_any {
            return None;
        }
        rest = after;
    }
    Some(rest)
}

/// Whether keys lie below a path.
pub(crate) fn is_section(path: &str) -> bool {
    Key::at(path).is_none() && KEYS.iter().any(|key| matches!(below(key.path, path), Some(Some(_))))
}

/// The names that may stand in a section; at the top for an empty path.
pub(crate) fn names_in(section: &str) -> Vec<&'static str> {
    let mut names: Vec<&str> = Vec::new();
    for key in KEYS {
        let rest = below(key.path, section).flatten();
        let Some(name) = rest.and_then(|rest| rest.split('.').next()) else { continue };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The known path that somebody who wrote this one may have meant.
pub fn nearest(path: &str) -> Option<String> {
    let (section, name) = path.rsplit_once('.').unwrap_or(("", path));
    let here = |known: &str| if section.is_empty() { known.to_owned() } else { format!("{section}.{known}") };
    let siblings = names_in(section).into_iter().map(|known| (similarity(name, known), here(known)));
    // The right name in the wrong place: `engine`, or `context_engine` for `context.engine`.
    let elsewhere = KEYS.iter().map(|key| {
        let leaf = key.path.rsplit('.').next().unwrap_or(key.path);
        let alike = similarity(name, leaf).max(similarity(&path.replace(['_', '-'], "."), &key.path.replace('_', ".")));
        (alike - 0.02, key.path.to_owned())
    });
    let best = siblings.chain(elsewhere).max_by(|(left, _), (right, _)| left.total_cmp(right))?;
    (best.0 >= LEAST_ALIKE).then_some(best.1)
}

/// The name that somebody who wrote this one may have meant.
pub fn most_similar(name: &str, known: impl Iterator<Item = String>) -> Option<String> {
    let alike = known.map(|known| (similarity(name, &known), known));
    let best = alike.max_by(|(left, _), (right, _)| left.total_cmp(right))?;
    (best.0 >= LEAST_ALIKE).then_some(best.1)
}

/// Below this a suggestion confuses more than it helps.
const LEAST_ALIKE: f64 = 0.6;

/// From 0 to 1; swapped letters count as one mistake.
pub fn similarity(left: &str, right: &str) -> f64 {
    strsim::normalized_damerau_levenshtein(&left.to_lowercase(), &right.to_lowercase())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_page_on_configuration_has_a_row_for_each_key() {
        let page = include_str!("../../../docs/configuration.md");
        for key in KEYS {
            let default = if key.default.is_empty() { "none" } else { key.default };
            let works = if key.works { "" } else { "; has no effect yet" };
            let row = format!("| `{}` | {} | `{}` | {}{works} |", key.path, key.wants.describe(), default, key.meaning);
            assert!(page.contains(&row), "docs/configuration.md lacks the row\n{row}");
        }
    }

    #[test]
    fn a_name_in_angle_brackets_stands_for_any() {
        let at = |path: &str| Key::at(path).map(|key| key.path);
        assert_eq!(at("auxiliary.compression.timeout"), Some("auxiliary.<task>.timeout"));
        assert_eq!(at("auxiliary.some-task.model"), Some("auxiliary.<task>.model"));
        assert_eq!(at("auxiliary.transient_retries"), Some("auxiliary.transient_retries"));
        for path in ["auxiliary.compression", "auxiliary.compression.timeout.x", "auxiliary..model", "", "auxiliary"] {
            assert_eq!(at(path), None, "{path}");
        }
        assert!(is_section("auxiliary.any") && is_section("auxiliary") && is_section("model"));
        assert!(!is_section("auxiliary.transient_retries") && !is_section("auxiliary.any.model") && !is_section("x"));
        assert_eq!(names_in("auxiliary"), ["<task>", "transient_retries"]);
    }

    #[test]
    fn defaults_are_json() {
        for key in KEYS.iter().filter(|key| !key.default.is_empty()) {
            assert!(serde_json::from_str::<serde_json::Value>(key.default).is_ok(), "{}", key.path);
        }
    }

    #[test]
    fn a_slip_of_the_pen_finds_what_was_meant() {
        for (written, meant) in [
            ("modle", Some("model")),
            ("model.contxt_length", Some("model.context_length")),
            ("model.apikey", Some("model.api_key")),
            ("context.engin", Some("context.engine")),
            ("context_engine", Some("context.engine")),
            ("engine", Some("context.engine")),
            ("max_turns", Some("agent.max_turns")),
            ("plugins.enable", Some("plugins.enabled")),
            ("compresion", Some("compression")),
            ("auxiliary.compression.modle", Some("auxiliary.compression.model")),
            ("terminal", None),
            ("zzz", None),
        ] {
            assert_eq!(nearest(written).as_deref(), meant, "{written}");
        }
    }
}
