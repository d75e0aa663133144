//! The built-in rows. Names and aliases are those that users of other programs know; addresses and variables are those of the
//! providers' own documentation.
//!
//! Of two rows with one key, the first is chosen by the key alone.

use super::{KeyHeader, ProviderRow, ROW};
use crate::{ApiMode, CallIds, SchemaDialect};

/// Gateways to Anthropic's messages that read only a bearer token.
const BEARER: &[(ApiMode, KeyHeader)] = &[(ApiMode::AnthropicMessages, KeyHeader::Bearer)];

/// The models that take `tool_reference` blocks, as Anthropic's page about tool search lists them (June 2026): Sonnet 4, Opus 4 and Haiku 4.5
/// and what came after them.
const CLAUDE_WITH_DEFERRED_TOOLS: &[&str] = &[
    "claude-opus-4",
    "claude-opus-5",
    "claude-sonnet-4",
    "claude-sonnet-5",
    "claude-haiku-4-5",
    "claude-haiku-5",
    "claude-fable",
    "claude-mythos",
];

/// The models that take `tool_search`, as OpenAI's guide says: GPT-5.4 and later ones.
const GPT_WITH_DEFERRED_TOOLS: &[&str] = &["gpt-5-4", "gpt-5-5", "gpt-5-6", "gpt-6"];

/// Every known provider, in the order in which it is shown.
pub const PROVIDERS: &[ProviderRow] = &[
    ProviderRow {
        id: "openai",
        hosts: &["api.openai.com"],
        base_url: Some("https://api.openai.com/v1"),
        api_mode: ApiMode::Responses,
        keys: &["OPENAI_API_KEY"],
        model: Some("gpt-4.1"),
        newer_cap: true,
        call_ids: CallIds::Short,
        most_tools: Some(128),
        deferred_tools: GPT_WITH_DEFERRED_TOOLS,
        ..ROW
    },
    ProviderRow {
        id: "openrouter",
        hosts: &["openrouter.ai"],
        base_url: Some("https://openrouter.ai/api/v1"),
        keys: &["OPENROUTER_API_KEY"],
        model: Some("openrouter/auto"),
        chat_marks: true,
        most_tools: Some(128),
        ..ROW
    },
    ProviderRow {
        id: "anthropic",
        aliases: &["claude", "claude-code"],
        hosts: &["api.anthropic.com"],
        base_url: Some("https://api.anthropic.com"),
        api_mode: ApiMode::AnthropicMessages,
        keys: &["ANTHROPIC_API_KEY"],
        model: Some("claude-sonnet-4-5"),
        // A bearer token is another kind of credential here.
        key_headers: &[(ApiMode::AnthropicMessages, KeyHeader::ApiKey)],
        // The base is that of the vendor's own format, which lacks the version.
        chat_version: Some("/v1"),
        vendor_names: true,
        deferred_tools: CLAUDE_WITH_DEFERRED_TOOLS,
        ..ROW
    },
    ProviderRow {
        id: "nous",
        aliases: &["nous-portal"],
        hosts: &["inference-api.nousresearch.com"],
        base_url: Some("https://inference-api.nousresearch.com/v1"),
        keys: &["NOUS_API_KEY"],
        chat_marks: true,
        ..ROW
    },
    ProviderRow {
        id: "gemini",
        aliases: &["google", "google-gemini", "google-ai-studio"],
        hosts: &["generativelanguage.googleapis.com"],
        base_url: Some("https://generativelanguage.googleapis.com/v1beta/openai"),
        keys: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        model: Some("gemini-2.5-flash"),
        schemas: SchemaDialect::Gemini,
        ..ROW
    },
    ProviderRow {
        id: "deepseek",
        aliases: &["deep-seek"],
        hosts: &["api.deepseek.com"],
        base_url: Some("https://api.deepseek.com/v1"),
        keys: &["DEEPSEEK_API_KEY"],
        model: Some("deepseek-chat"),
        ..ROW
    },
    ProviderRow {
        id: "minimax",
        hosts: &["api.minimax.io"],
        base_url: Some("https://api.minimax.io/anthropic"),
        api_mode: ApiMode::AnthropicMessages,
        keys: &["MINIMAX_API_KEY"],
        model: Some("MiniMax-M2.7"),
        key_headers: BEARER,
        ..ROW
    },
    ProviderRow {
        id: "minimax-cn",
        aliases: &["minimax-china"],
        hosts: &["api.minimaxi.com"],
        base_url: Some("https://api.minimaxi.com/anthropic"),
        api_mode: ApiMode::AnthropicMessages,
        keys: &["MINIMAX_CN_API_KEY"],
        model: Some("MiniMax-M2.7"),
        key_headers: BEARER,
        ..ROW
    },
    ProviderRow {
        id: "kimi-coding",
        aliases: &["kimi", "moonshot", "moonshotai"],
        hosts: &["api.moonshot.ai"],
        base_url: Some("https://api.moonshot.ai/v1"),
        keys: &["KIMI_API_KEY", "MOONSHOT_API_KEY", "KIMI_CODING_API_KEY"],
        model: Some("kimi-k2.5"),
        ..ROW
    },
    ProviderRow {
        id: "kimi-coding-cn",
        aliases: &["kimi-cn", "moonshot-cn"],
        hosts: &["api.moonshot.cn"],
        base_url: Some("https://api.moonshot.cn/v1"),
        keys: &["KIMI_CN_API_KEY"],
        model: Some("kimi-k2.5"),
        ..ROW
    },
    ProviderRow {
        // The subscription for programming, with an API of its own.
        id: "kimi-code",
        aliases: &["kimi-for-coding"],
        hosts: &["api.kimi.com"],
        base_url: Some("https://api.kimi.com/coding"),
        api_mode: ApiMode::AnthropicMessages,
        keys: &["KIMI_CODING_API_KEY", "KIMI_API_KEY"],
        model: Some("kimi-for-coding"),
        ..ROW
    },
    ProviderRow {
        id: "zai",
        aliases: &["z.ai", "z-ai", "glm", "zhipu"],
        hosts: &["api.z.ai"],
        base_url: Some("https://api.z.ai/api/paas/v4"),
        keys: &["GLM_API_KEY", "ZAI_API_KEY", "Z_AI_API_KEY"],
        model: Some("glm-5"),
        ..ROW
    },
    ProviderRow {
        id: "zai-coding",
        aliases: &["glm-coding"],
        hosts: &["api.z.ai"],
        base_url: Some("https://api.z.ai/api/coding/paas/v4"),
        keys: &["GLM_API_KEY", "ZAI_API_KEY", "Z_AI_API_KEY"],
        model: Some("glm-5"),
        ..ROW
    },
    ProviderRow {
        id: "zai-cn",
        aliases: &["bigmodel", "zhipu-cn"],
        hosts: &["open.bigmodel.cn"],
        base_url: Some("https://open.bigmodel.cn/api/paas/v4"),
        keys: &["GLM_API_KEY", "ZAI_API_KEY", "Z_AI_API_KEY"],
        model: Some("glm-5"),
        ..ROW
    },
    ProviderRow {
        id: "huggingface",
        aliases: &["hf", "hugging-face", "huggingface-hub"],
        hosts: &["router.huggingface.co"],
        base_url: Some("https://router.huggingface.co/v1"),
        keys: &["HF_TOKEN"],
        // Most people have it for downloads.
        chosen_by_key: false,
        model: Some("Qwen/Qwen3-235B-A22B-Thinking-2507"),
        ..ROW
    },
    ProviderRow {
        id: "azure",
        aliases: &["azure-openai"],
        hosts: &["*.openai.azure.com", "*.cognitiveservices.azure.com"],
        own_address: Some("https://RESOURCE.openai.azure.com/openai/v1"),
        keys: &["AZURE_OPENAI_API_KEY", "AZURE_FOUNDRY_API_KEY"],
        // Models have names that the user gave them, which tell nothing.
        newer_cap: true,
        call_ids: CallIds::Short,
        most_tools: Some(128),
        ..ROW
    },
    ProviderRow {
        id: "azure-foundry",
        aliases: &["microsoft-foundry", "azure-ai-foundry"],
        hosts: &["*.services.ai.azure.com"],
        own_address: Some("https://RESOURCE.services.ai.azure.com/openai/v1 or …/anthropic"),
        keys: &["AZURE_FOUNDRY_API_KEY", "AZURE_OPENAI_API_KEY"],
        key_headers: BEARER,
        query: &[(ApiMode::AnthropicMessages, "api-version", "2025-04-15")],
        call_ids: CallIds::Short,
        most_tools: Some(128),
        ..ROW
    },
    ProviderRow {
        id: "bedrock",
        aliases: &["aws", "aws-bedrock", "amazon", "amazon-bedrock"],
        hosts: &["bedrock-runtime.*.amazonaws.com"],
        base_url: Some("https://bedrock-runtime.us-east-1.amazonaws.com/openai/v1"),
        keys: &["AWS_BEARER_TOKEN_BEDROCK"],
        model: Some("openai.gpt-oss-120b-1:0"),
        ..ROW
    },
    ProviderRow {
        id: "nvidia",
        aliases: &["nim", "nvidia-nim"],
        hosts: &["integrate.api.nvidia.com"],
        base_url: Some("https://integrate.api.nvidia.com/v1"),
        keys: &["NVIDIA_API_KEY"],
        model: Some("nvidia/nemotron-3-super-120b-a12b"),
        ..ROW
    },
    ProviderRow {
        id: "xai",
        aliases: &["grok", "x-ai", "x.ai"],
        hosts: &["api.x.ai"],
        base_url: Some("https://api.x.ai/v1"),
        api_mode: ApiMode::Responses,
        keys: &["XAI_API_KEY"],
        model: Some("grok-4"),
        ..ROW
    },
    ProviderRow {
        id: "groq",
        hosts: &["api.groq.com"],
        base_url: Some("https://api.groq.com/openai/v1"),
        keys: &["GROQ_API_KEY"],
        model: Some("llama-3.3-70b-versatile"),
        most_tools: Some(128),
        ..ROW
    },
    ProviderRow {
        id: "mistral",
        hosts: &["api.mistral.ai"],
        base_url: Some("https://api.mistral.ai/v1"),
        keys: &["MISTRAL_API_KEY"],
        model: Some("mistral-large-latest"),
        stream_options: false,
        call_ids: CallIds::Nine,
        ..ROW
    },
    ProviderRow {
        id: "together",
        aliases: &["together-ai", "togetherai"],
        hosts: &["api.together.xyz", "api.together.ai"],
        base_url: Some("https://api.together.xyz/v1"),
        keys: &["TOGETHER_API_KEY"],
        model: Some("meta-llama/Llama-3.3-70B-Instruct-Turbo"),
        ..ROW
    },
    ProviderRow {
        id: "alibaba",
        aliases: &["dashscope", "qwen", "alibaba-cloud"],
        hosts: &["dashscope-intl.aliyuncs.com", "dashscope.aliyuncs.com"],
        base_url: Some("https://dashscope-intl.aliyuncs.com/compatible-mode/v1"),
        keys: &["DASHSCOPE_API_KEY"],
        model: Some("qwen3.5-plus"),
        chat_marks: true,
        ..ROW
    },
    ProviderRow {
        id: "opencode-zen",
        aliases: &["opencode", "zen"],
        hosts: &["opencode.ai"],
        base_url: Some("https://opencode.ai/zen/v1"),
        keys: &["OPENCODE_ZEN_API_KEY"],
        chat_marks: true,
        ..ROW
    },
    ProviderRow {
        id: "opencode-go",
        hosts: &["opencode.ai"],
        base_url: Some("https://opencode.ai/zen/go/v1"),
        keys: &["OPENCODE_GO_API_KEY"],
        chat_marks: true,
        ..ROW
    },
    ProviderRow {
        id: "ollama-cloud",
        aliases: &["ollama_cloud"],
        hosts: &["ollama.com"],
        base_url: Some("https://ollama.com/v1"),
        keys: &["OLLAMA_API_KEY"],
        model: Some("gpt-oss:120b"),
        ..ROW
    },
    ProviderRow { id: "ollama", base_url: Some("http://127.0.0.1:11434/v1"), ..ROW },
    ProviderRow {
        id: "lmstudio",
        aliases: &["lm-studio", "lm_studio"],
        base_url: Some("http://127.0.0.1:1234/v1"),
        keys: &["LM_API_KEY"],
        schemas: SchemaDialect::LlamaCpp,
        ..ROW
    },
    ProviderRow {
        id: "llamacpp",
        aliases: &["llama.cpp", "llama-cpp", "llama-server"],
        base_url: Some("http://127.0.0.1:8080/v1"),
        keys: &["LLAMA_API_KEY"],
        schemas: SchemaDialect::LlamaCpp,
        ..ROW
    },
    ProviderRow { id: "vllm", base_url: Some("http://127.0.0.1:8000/v1"), keys: &["VLLM_API_KEY"], ..ROW },
];
