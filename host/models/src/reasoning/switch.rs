//! How thinking is requested in chat completions, as data by provider and model.
//!
//! Chat completions define no common member for it. A row says which members of the body switch thinking on and off, at which
//! providers and for which models. A model without a row gets none: a server may refuse members that it does not know.

use url::Url;

use super::dial::{Dial, Ladder, Member};
use crate::providers;

/// Where a row applies.
#[derive(Debug, Clone, Copy)]
struct At {
    providers: &'static [&'static str],
    hosts: &'static [&'static str],
}

/// How thinking is switched for some models of some providers.
#[derive(Debug, Clone, Copy)]
struct Switch {
    /// None for any provider without rows of its own that fit.
    at: Option<At>,
    /// The beginnings of the models' names, without a vendor; an empty one fits every model.
    models: &'static [&'static str],
    dial: Dial,
}

const GATEWAYS: At =
    At { providers: &["openrouter", "nous"], hosts: &["openrouter.ai", "inference-api.nousresearch.com"] };
const DEEPSEEK: At = At { providers: &["deepseek"], hosts: &["api.deepseek.com"] };
const KIMI: At = At {
    providers: &["kimi", "kimi-coding", "moonshot"],
    hosts: &["api.moonshot.ai", "api.moonshot.cn", "api.kimi.com"],
};
const ZAI: At = At { providers: &["zai"], hosts: &["api.z.ai", "open.bigmodel.cn"] };
const QWEN: At = At {
    providers: &["alibaba"],
    hosts: &["dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com", "dashscope-us.aliyuncs.com"],
};
const GEMINI: At = At { providers: &["gemini"], hosts: &["generativelanguage.googleapis.com"] };
const GROQ: At = At { providers: &["groq"], hosts: &["api.groq.com"] };
const XAI: At = At { providers: &["xai"], hosts: &["api.x.ai"] };
const MIMO: At = At { providers: &["xiaomi"], hosts: &["api.xiaomimimo.com"] };
const OLLAMA: At = At { providers: &["ollama"], hosts: &[] };

const EFFORT: &[Member] = &[("reasoning_effort", r#""$""#)];
const NO_EFFORT: Option<&[Member]> = Some(&[("reasoning_effort", r#""none""#)]);
const GATEWAY_EFFORT: &[Member] = &[("reasoning", r#"{"effort":"$"}"#)];
const GATEWAY_OFF: Option<&[Member]> = Some(&[("reasoning", r#"{"effort":"none"}"#)]);
const ENABLED: &[Member] = &[("thinking", r#"{"type":"enabled"}"#)];
const DISABLED: Option<&[Member]> = Some(&[("thinking", r#"{"type":"disabled"}"#)]);
const ENABLED_WITH_EFFORT: &[Member] = &[("thinking", r#"{"type":"enabled"}"#), ("reasoning_effort", r#""$""#)];
/// Without `clear_thinking`, the provider drops the reasoning of earlier turns, which it gets back.
const PRESERVED: &[Member] = &[("thinking", r#"{"type":"enabled","clear_thinking":false}"#)];
const PRESERVED_WITH_EFFORT: &[Member] =
    &[("thinking", r#"{"type":"enabled","clear_thinking":false}"#), ("reasoning_effort", r#""$""#)];
const TEMPLATE_ON: &[Member] = &[("chat_template_kwargs", r#"{"enable_thinking":true}"#)];
const TEMPLATE_OFF: Option<&[Member]> = Some(&[("chat_template_kwargs", r#"{"enable_thinking":false}"#)]);
const DEEPSEEK_TEMPLATE_ON: &[Member] = &[("chat_template_kwargs", r#"{"thinking":true}"#)];
const DEEPSEEK_TEMPLATE_OFF: Option<&[Member]> = Some(&[("chat_template_kwargs", r#"{"thinking":false}"#)]);
/// The model thinks, and no member changes how much.
const FIXED: &[Member] = &[];
/// The model always thinks.
const NEVER_OFF: Option<&[Member]> = None;

const WORDS: Ladder = Ladder(["minimal", "low", "medium", "high", "xhigh", "max"]);
const TO_XHIGH: Ladder = Ladder(["low", "low", "medium", "high", "xhigh", "xhigh"]);
const LOW_TO_HIGH: Ladder = Ladder(["low", "low", "medium", "high", "high", "high"]);
const MINIMAL_TO_HIGH: Ladder = Ladder(["minimal", "low", "medium", "high", "high", "high"]);
const LOW_HIGH: Ladder = Ladder(["low", "low", "low", "high", "high", "high"]);
const LOW_HIGH_MAX: Ladder = Ladder(["low", "low", "high", "high", "max", "max"]);
const HIGH_MAX: Ladder = Ladder(["high", "high", "high", "high", "max", "max"]);
const DEFAULT_ONLY: Ladder = Ladder(["default"; 6]);
const BUDGETS: Ladder = Ladder(["1024", "4000", "8000", "16000", "32000", "32000"]);

const fn row(
    at: Option<At>,
    models: &'static [&'static str],
    on: &'static [Member],
    off: Option<&'static [Member]>,
) -> Switch {
    Switch { at, models, dial: Dial { on, off, ladder: WORDS } }
}

impl Switch {
    const fn by(self, ladder: Ladder) -> Self {
        Self { dial: Dial { ladder, ..self.dial }, ..self }
    }
}

/// Of several rows, one of the provider comes before one of any provider, and then the longest beginning of a name counts.
const SWITCHES: &[Switch] = &[
    // Gateways translate one member for every model, and ignore it for those that do not think.
    row(Some(GATEWAYS), &[""], GATEWAY_EFFORT, GATEWAY_OFF),
    row(Some(DEEPSEEK), &["deepseek-v4", "deepseek-flash", "deepseek-reasoner"], ENABLED_WITH_EFFORT, DISABLED)
        .by(LOW_HIGH_MAX),
    // Never both members: the provider refuses that.
    row(Some(KIMI), &["kimi-k2.5", "kimi-k2.6", "kimi-k3", "kimi-for-coding"], EFFORT, DISABLED).by(LOW_TO_HIGH),
    row(Some(ZAI), &["glm-4.5", "glm-4.6"], ENABLED, DISABLED),
    row(Some(ZAI), &["glm-4.7"], PRESERVED, NEVER_OFF),
    row(Some(ZAI), &["glm-5"], PRESERVED, DISABLED),
    row(Some(ZAI), &["glm-5.2"], PRESERVED_WITH_EFFORT, DISABLED).by(HIGH_MAX),
    row(Some(ZAI), &["glm-5.3"], PRESERVED_WITH_EFFORT, NEVER_OFF).by(LOW_HIGH_MAX),
    row(
        Some(QWEN),
        &["qwen3", "qwen-plus", "qwen-flash", "qwen-turbo", "qwen-max"],
        &[("enable_thinking", "true"), ("thinking_budget", "$")],
        Some(&[("enable_thinking", "false")]),
    )
    .by(BUDGETS),
    row(Some(GEMINI), &["gemini-2.5"], EFFORT, NO_EFFORT).by(LOW_TO_HIGH),
    row(Some(GEMINI), &["gemini-2.5-pro"], EFFORT, NEVER_OFF).by(LOW_TO_HIGH),
    row(Some(GEMINI), &["gemini-3"], EFFORT, NEVER_OFF).by(LOW_TO_HIGH),
    row(Some(GROQ), &["qwen3", "qwen-3"], EFFORT, NO_EFFORT).by(DEFAULT_ONLY),
    row(Some(XAI), &["grok-3-mini"], EFFORT, NEVER_OFF).by(LOW_HIGH),
    row(Some(XAI), &["grok-4.3", "grok-4.5"], EFFORT, NEVER_OFF).by(LOW_TO_HIGH),
    row(Some(XAI), &["grok-4"], FIXED, NEVER_OFF),
    row(Some(MIMO), &["mimo-v2"], ENABLED, DISABLED),
    row(Some(OLLAMA), &["qwen3", "deepseek-r1", "deepseek-v3.1", "glm-4", "glm-5"], EFFORT, NO_EFFORT).by(LOW_TO_HIGH),
    // Wherever they run.
    row(None, &["gpt-5"], EFFORT, NEVER_OFF).by(MINIMAL_TO_HIGH),
    row(None, &["gpt-5.", "gpt-6"], EFFORT, NO_EFFORT).by(TO_XHIGH),
    row(None, &["gpt-5.1"], EFFORT, NO_EFFORT).by(LOW_TO_HIGH),
    row(None, &["gpt-oss", "o1", "o3", "o4"], EFFORT, NEVER_OFF).by(LOW_TO_HIGH),
    row(None, &["qwen3", "glm-4.5", "glm-4.6", "glm-5"], TEMPLATE_ON, TEMPLATE_OFF),
    row(None, &["deepseek-v3.1", "deepseek-v3.2", "deepseek-v4"], DEEPSEEK_TEMPLATE_ON, DEEPSEEK_TEMPLATE_OFF),
    row(
        None,
        &["deepseek-r1", "deepseek-reasoner", "qwq", "kimi-k2-thinking", "minimax-m", "magistral", "glm-4.7"],
        FIXED,
        NEVER_OFF,
    ),
];

/// Models without thinking whose names begin like those of models that think: the beginning and another part of the name.
const OTHERS: &[(&str, &str)] =
    &[("gpt-5", "-chat"), ("qwen3", "coder"), ("qwen3", "instruct"), ("qwen3", "embedding"), ("qwen3", "rerank")];

impl At {
    fn fits(&self, provider: &str, host: &str) -> bool {
        self.hosts.contains(&host) || self.providers.contains(&provider)
    }
}

/// How thinking is switched for a model of a route; none for a model that is not known to think.
pub(crate) fn of(provider: &str, url: &Url, model: &str) -> Option<Dial> {
    let host = providers::host(url).unwrap_or_default();
    let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
    let fit = |row: &Switch| {
        let length = row.models.iter().filter(|begin| name.starts_with(**begin)).map(|begin| begin.len()).max()?;
        match row.at {
            Some(at) if at.fits(provider, &host) => Some((true, length)),
            Some(_) => None,
            None => Some((false, length)),
        }
    };
    let best = SWITCHES.iter().filter(|row| fit(row).is_some()).max_by_key(|row| fit(row))?;
    // A gateway ignores the wish for a model that cannot fulfil it.
    let plain = OTHERS.iter().any(|(begin, part)| name.starts_with(begin) && name.contains(part));
    (!plain || best.models == [""]).then_some(best.dial)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::reasoning::{Effort, Thinking};

    /// The members for an effort, as they are in a body.
    fn sent(provider: &str, url: &str, model: &str, effort: Effort) -> Option<String> {
        let dial = of(provider, &Url::parse(url).unwrap(), model)?;
        let members = dial.members(effort).into_iter().map(|(name, value)| format!("{name}={value}"));
        Some(members.collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn each_provider_gets_the_members_that_its_models_take() {
        use Effort::{High, Low, Max, Medium, Minimal, None as Off, XHigh};
        let thinking = |kind: &str| format!(r#"thinking={{"type":"{kind}"}}"#);
        let effort = |word: &str| format!(r#"reasoning_effort="{word}""#);
        let both = |word: &str| format!("{} {}", thinking("enabled"), effort(word));
        let gateway = |word: &str| format!(r#"reasoning={{"effort":"{word}"}}"#);
        let preserved = r#"thinking={"type":"enabled","clear_thinking":false}"#.to_owned();
        let template = |on: bool| format!(r#"chat_template_kwargs={{"enable_thinking":{on}}}"#);
        let local = "http://127.0.0.1:8000/v1";
        for (provider, url, model, wanted, members) in [
            ("openrouter", "https://openrouter.ai/api/v1", "anthropic/claude-sonnet-4.6", High, gateway("high")),
            ("custom", "https://openrouter.ai/api/v1", "qwen/qwen3-coder", Off, gateway("none")),
            ("nous", "https://inference-api.nousresearch.com/v1", "Hermes-4-405B", Max, gateway("max")),
            ("deepseek", "https://api.deepseek.com/v1", "deepseek-v4-pro", Minimal, both("low")),
            ("deepseek", "https://api.deepseek.com/v1", "deepseek-v4-pro", Medium, both("high")),
            ("deepseek", local, "deepseek-reasoner", XHigh, both("max")),
            ("custom", "https://api.deepseek.com/v1", "deepseek-v4-flash", Off, thinking("disabled")),
            ("kimi", "https://api.moonshot.ai/v1", "kimi-k2.6", Max, effort("high")),
            ("kimi", "https://api.moonshot.ai/v1", "kimi-k2.6", Off, thinking("disabled")),
            ("zai", "https://api.z.ai/api/paas/v4", "glm-4.6", High, thinking("enabled")),
            ("zai", "https://api.z.ai/api/paas/v4", "glm-5.1", High, preserved.clone()),
            ("zai", "https://api.z.ai/api/paas/v4", "glm-5.2", Low, format!("{preserved} {}", effort("high"))),
            ("zai", "https://api.z.ai/api/paas/v4", "glm-5.3", Low, format!("{preserved} {}", effort("low"))),
            (
                "alibaba",
                "https://dashscope.aliyuncs.com/compatible-mode/v1",
                "qwen3-max",
                High,
                "enable_thinking=true thinking_budget=16000".to_owned(),
            ),
            (
                "gemini",
                "https://generativelanguage.googleapis.com/v1beta/openai",
                "gemini-2.5-flash",
                Off,
                effort("none"),
            ),
            ("gemini", "https://generativelanguage.googleapis.com/v1beta/openai", "gemini-3-pro", Max, effort("high")),
            ("gemini", "https://generativelanguage.googleapis.com/v1beta/openai", "gemini-3-pro", Off, effort("low")),
            ("groq", "https://api.groq.com/openai/v1", "qwen/qwen3-32b", High, effort("default")),
            ("groq", "https://api.groq.com/openai/v1", "openai/gpt-oss-120b", XHigh, effort("high")),
            ("xai", "https://api.x.ai/v1", "grok-3-mini", Medium, effort("low")),
            ("ollama", "http://127.0.0.1:11434/v1", "qwen3:8b", Off, effort("none")),
            ("openai", "https://api.openai.com/v1", "gpt-5.4", Max, effort("xhigh")),
            ("openai", "https://api.openai.com/v1", "gpt-5.1", XHigh, effort("high")),
            ("custom", local, "gpt-5-mini", Minimal, effort("minimal")),
            ("custom", local, "Qwen/Qwen3-32B", High, template(true)),
            ("custom", local, "Qwen/Qwen3-32B", Off, template(false)),
            ("custom", local, "deepseek-ai/DeepSeek-V3.2", Low, r#"chat_template_kwargs={"thinking":true}"#.to_owned()),
        ] {
            assert_eq!(sent(provider, url, model, wanted), Some(members), "{provider} {model} {wanted}");
        }
    }

    #[test]
    fn a_model_that_does_not_think_gets_nothing() {
        for (provider, url, model) in [
            ("deepseek", "https://api.deepseek.com/v1", "deepseek-chat"),
            ("kimi", "https://api.moonshot.ai/v1", "moonshot-v1-32k"),
            ("openai", "https://api.openai.com/v1", "gpt-4.1"),
            ("openai", "https://api.openai.com/v1", "gpt-5-chat-latest"),
            ("custom", "http://127.0.0.1:8000/v1", "qwen3-coder"),
            ("custom", "http://127.0.0.1:8000/v1", "Qwen/Qwen3-235B-A22B-Instruct-2507"),
            ("custom", "https://openrouter.ai.evil.test/v1", "m"),
        ] {
            assert_eq!(sent(provider, url, model, Effort::High), None, "{model}");
        }
    }

    #[test]
    fn what_cannot_be_switched_is_known_to_be_fixed() {
        let url = Url::parse("http://127.0.0.1:8000/v1").unwrap();
        let fixed = of("custom", &url, "moonshotai/Kimi-K2-Thinking").unwrap();
        assert_eq!((fixed.thinking(Effort::High), fixed.thinking(Effort::None)), (Thinking::Fixed, Thinking::Fixed));
        let oss = of("custom", &url, "gpt-oss-20b").unwrap();
        assert_eq!((oss.thinking(Effort::High), oss.thinking(Effort::None)), (Thinking::Requested, Thinking::Least));
    }

    #[test]
    fn every_member_of_every_row_is_json() {
        for row in SWITCHES {
            for (name, value) in Effort::ALL.into_iter().flat_map(|effort| row.dial.members(effort)) {
                assert!(serde_json::from_str::<serde_json::Value>(&value).is_ok(), "{name}: {value}");
            }
        }
    }
}
