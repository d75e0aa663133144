#![allow(clippy::unwrap_used)]

use hermes_diagnostic::Diagnose as _;

use super::*;
use crate::Marks;

mod providers;

const CLEAR: &[(&str, &str)] = &[];

/// A layer from pairs.
fn wanted(pairs: &[(&str, &str)]) -> Wanted {
    let mut wanted = Wanted::default();
    for (name, value) in pairs {
        let value = Some((*value).to_owned());
        match *name {
            "provider" => wanted.provider = value,
            "model" => wanted.model = value,
            "base_url" => wanted.base_url = value,
            "api_key" => wanted.api_key = value,
            "auth" => wanted.auth = value,
            "api_mode" => wanted.api_mode = value,
            "context_length" => wanted.context_length = value.map(|value| value.parse().unwrap()),
            other => panic!("no field {other}"),
        }
    }
    wanted
}

type Pairs = &'static [(&'static str, &'static str)];

fn of(flags: Pairs, env: Pairs, config: Pairs) -> Result<Route, ResolveError> {
    let lookup = |name: &str| env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
    resolve(&wanted(flags), &lookup, &wanted(config))
}

/// `provider model @ address key-source`.
fn brief(flags: Pairs, env: Pairs, config: Pairs) -> String {
    match of(flags, env, config) {
        Ok(route) => {
            let url = route.base_url.map_or("nowhere".to_owned(), |url| url.to_string());
            let key = match (route.credential, route.key_source) {
                (Some(Credential::Key(key)), Some(source)) => format!("{} from {source}", key.expose()),
                (Some(Credential::Login(name)), Some(source)) => format!("login {name} from {source}"),
                (None, None) => "no key".to_owned(),
                other => panic!("{other:?}"),
            };
            format!("{} {} @ {url} {key}", route.model.provider, route.model.name)
        }
        Err(error) => format!("error: {}", error.sentence()),
    }
}

#[test]
fn layers_decide_in_their_order() {
    let env: Pairs =
        &[("HERMES_BASE_URL", "http://env/v1"), ("HERMES_MODEL", "env-model"), ("HERMES_API_KEY", "env-key")];
    let config: Pairs = &[("base_url", "http://config/v1"), ("model", "config-model"), ("api_key", "config-key")];
    let flags: Pairs = &[("base_url", "http://flags/v1/"), ("model", "flags-model")];
    assert_eq!(brief(CLEAR, CLEAR, config), "custom config-model @ http://config/v1 config-key from model.api_key");
    assert_eq!(brief(CLEAR, env, config), "custom env-model @ http://env/v1 env-key from HERMES_API_KEY");
    assert_eq!(brief(flags, CLEAR, CLEAR), "custom flags-model @ http://flags/v1 no key");
    assert_eq!(
        brief(&[("model", "flags-model")], env, config),
        "custom flags-model @ http://env/v1 env-key from HERMES_API_KEY"
    );
    assert_eq!(
        brief(&[("base_url", "http://flags/v1")], CLEAR, &[("model", "config-model")]),
        "custom config-model @ http://flags/v1 no key"
    );
    assert_eq!(of(flags, env, config).unwrap().source, Source::Flags);
    assert_eq!(of(CLEAR, env, config).unwrap().source, Source::Environment);
    assert_eq!(of(CLEAR, CLEAR, config).unwrap().source, Source::Config);
}

#[test]
fn a_provider_brings_its_address_its_model_and_its_key() {
    let keys: Pairs = &[("OPENROUTER_API_KEY", "or-key"), ("OPENAI_API_KEY", "oa-key"), ("GOOGLE_API_KEY", " g-key ")];
    assert_eq!(
        brief(&[("provider", "OpenRouter")], keys, CLEAR),
        "openrouter openrouter/auto @ https://openrouter.ai/api/v1 or-key from OPENROUTER_API_KEY"
    );
    assert_eq!(
        brief(CLEAR, keys, &[("provider", "gemini"), ("model", "gemini-x")]),
        "gemini gemini-x @ https://generativelanguage.googleapis.com/v1beta/openai g-key from GOOGLE_API_KEY"
    );
    assert_eq!(
        brief(CLEAR, keys, &[("provider", "openai"), ("api_key", "own")]),
        "openai gpt-4.1 @ https://api.openai.com/v1 own from model.api_key"
    );
    assert_eq!(
        brief(CLEAR, keys, &[("provider", "ollama"), ("model", "qwen3")]),
        "ollama qwen3 @ http://127.0.0.1:11434/v1 no key"
    );
    // An address says as much as the name.
    assert_eq!(
        brief(CLEAR, keys, &[("base_url", "https://api.openai.com/v1/chat/completions")]),
        "openai gpt-4.1 @ https://api.openai.com/v1 oa-key from OPENAI_API_KEY"
    );
}

#[test]
fn the_only_key_in_the_environment_chooses_its_provider() {
    assert_eq!(
        brief(CLEAR, &[("DEEPSEEK_API_KEY", "ds"), ("OPENAI_API_KEY", " ")], CLEAR),
        "deepseek deepseek-chat @ https://api.deepseek.com/v1 ds from DEEPSEEK_API_KEY"
    );
    assert_eq!(
        brief(&[("model", "m")], &[("GEMINI_API_KEY", "a"), ("GOOGLE_API_KEY", "b")], CLEAR),
        "gemini m @ https://generativelanguage.googleapis.com/v1beta/openai a from GEMINI_API_KEY"
    );
    let several = of(CLEAR, &[("OPENAI_API_KEY", "a"), ("GROQ_API_KEY", "b")], CLEAR).unwrap_err();
    assert_eq!(several, ResolveError::SeveralKeys { variables: vec!["OPENAI_API_KEY", "GROQ_API_KEY"] });
    assert!(several.to_string().contains("OPENAI_API_KEY, GROQ_API_KEY"));
}

#[test]
fn the_offline_partner_serves_only_where_nothing_is_configured() {
    let route = of(CLEAR, CLEAR, CLEAR).unwrap();
    assert!(route.is_offline());
    assert_eq!((route.model.context_length, &route.source), (OFFLINE_WINDOW, &Source::Nothing));
    let small = of(CLEAR, CLEAR, &[("context_length", "12000")]).unwrap();
    assert_eq!((small.model.context_length, small.window_source), (12_000, WindowSource::Configured));
    let chosen =
        of(&[("provider", "offline")], &[("OPENAI_API_KEY", "a")], &[("base_url", "http://x/v1"), ("model", "m")]);
    let chosen = chosen.unwrap();
    assert!(chosen.is_offline() && chosen.credential.is_none());
    assert_eq!(chosen.notes.len(), 2, "{:?}", chosen.notes);

    for configured in [
        &[("provider", "openai")][..],
        &[("base_url", "https://openrouter.ai/api/v1"), ("model", "m")],
        &[("base_url", "http://127.0.0.1:8000/v1")],
        &[("model", "gpt-4.1")],
        &[("api_key", "k")],
        &[("provider", "nope")],
        &[("provider", "custom"), ("model", "m")],
        &[("provider", "offline"), ("base_url", "http://x/v1")],
    ] {
        let error = resolve(&Wanted::default(), &|_| None, &wanted(configured));
        assert!(error.is_err(), "{configured:?}");
    }
}

#[test]
fn errors_name_what_to_set() {
    for (config, words) in [
        (&[("provider", "openai")][..], "set OPENAI_API_KEY"),
        (&[("provider", "gemini")], "set GEMINI_API_KEY or GOOGLE_API_KEY"),
        (&[("base_url", "https://openrouter.ai/api/v1"), ("model", "m")], "set OPENROUTER_API_KEY"),
        (&[("base_url", "http://127.0.0.1:8000/v1?key=s")], "no model is set for http://127.0.0.1:8000/v1;"),
        (&[("provider", "ollama")], "no model is set for ollama"),
        (&[("model", "gpt-4.1")], "no provider is set for the model `gpt-4.1` (from config.yaml)"),
        (&[("api_key", "k")], "model.api_key holds a key"),
        (&[("provider", "nope")], "no provider `nope` (config.yaml); choose one of openai, openrouter"),
        (&[("provider", "custom")], "set the address of the API"),
        (&[("base_url", "127.0.0.1:8000"), ("model", "m")], "http://"),
        (&[("base_url", "ftp://x/"), ("model", "m")], "does not begin with http"),
        (&[("base_url", "http://me:pw@x/v1"), ("model", "m")], "user name or password"),
        (&[("base_url", "http://api.openai.com/v1"), ("model", "m")], "https://"),
        (&[("base_url", "http://x/v1"), ("model", "m"), ("api_key", "a b")], "model.api_key contains a space"),
        (
            &[("api_mode", "bedrock_converse")],
            "not supported yet; choose `chat_completions`, `codex_responses` or `anthropic_messages`",
        ),
        (&[("api_mode", "smoke_signals")], "not known"),
        (&[("context_length", "1999")], "at least 2000"),
    ] {
        let error = resolve(&Wanted::default(), &|_| None, &wanted(config)).unwrap_err().sentence();
        assert!(error.contains(words), "{config:?}: {error}");
        assert!(!error.contains("pw") && !error.contains("key=s"), "{error}");
    }
}

#[test]
fn a_key_reaches_no_host_that_it_was_not_meant_for() {
    // A provider's own key stays with the provider's host.
    assert_eq!(
        brief(
            &[("base_url", "http://127.0.0.1:8000/v1"), ("model", "m")],
            &[("OPENROUTER_API_KEY", "or"), ("OPENAI_API_KEY", "oa")],
            CLEAR
        ),
        "custom m @ http://127.0.0.1:8000/v1 no key"
    );
    assert_eq!(
        brief(
            CLEAR,
            &[("OPENROUTER_API_KEY", "or")],
            &[("provider", "openrouter"), ("base_url", "https://proxy.test/v1"), ("model", "m")]
        ),
        "openrouter m @ https://proxy.test/v1 no key"
    );
    assert_eq!(
        brief(
            CLEAR,
            &[("OPENAI_API_KEY", "oa")],
            &[("base_url", "https://api.openai.com.evil.test/v1"), ("model", "m")]
        ),
        "custom m @ https://api.openai.com.evil.test/v1 no key"
    );
    // A key of a layer stays with the place that the layer names.
    let config: Pairs = &[("provider", "openai"), ("api_key", "config-key"), ("model", "m")];
    assert_eq!(brief(&[("base_url", "http://other/v1")], CLEAR, config), "custom m @ http://other/v1 no key");
    let error = brief(&[("provider", "groq")], CLEAR, config);
    assert!(
        error.contains("the key in model.api_key is for another host and is not sent; set GROQ_API_KEY"),
        "{error}"
    );
    let ports: Pairs = &[("base_url", "http://127.0.0.1:1/v1"), ("api_key", "k"), ("model", "m")];
    assert_eq!(
        brief(&[("base_url", "http://127.0.0.1:2/v1")], CLEAR, ports),
        "custom m @ http://127.0.0.1:2/v1 no key"
    );
    // A key without a place goes with the place that is configured.
    assert_eq!(
        brief(&[("base_url", "http://other/v1")], &[("HERMES_API_KEY", "k")], &[("model", "m")]),
        "custom m @ http://other/v1 k from HERMES_API_KEY"
    );
    let noted = of(&[("base_url", "http://other/v1")], CLEAR, config).unwrap();
    assert_eq!(noted.notes, ["the key in model.api_key is for another host and is not sent"]);
}

#[test]
fn openais_own_variables_go_together() {
    let env: Pairs = &[("OPENAI_BASE_URL", "http://127.0.0.1:8000/v1"), ("OPENAI_API_KEY", "oa")];
    let moved = "m @ http://127.0.0.1:8000/v1 oa from OPENAI_API_KEY";
    assert_eq!(brief(&[("model", "m")], env, CLEAR), format!("custom {moved}"));
    assert_eq!(brief(&[("provider", "openai"), ("model", "m")], env, CLEAR), format!("openai {moved}"));
    assert_eq!(brief(CLEAR, env, &[("base_url", "http://config/v1"), ("model", "m")]), format!("custom {moved}"));
    assert_eq!(
        brief(&[("provider", "openai")], &[("OPENAI_BASE_URL", "http://x/v1"), ("HERMES_MODEL", "m")], CLEAR),
        "openai m @ http://x/v1 no key"
    );
    // Another provider that is chosen by name stays where it is, and so does another address.
    let elsewhere: Pairs =
        &[("OPENAI_BASE_URL", "http://127.0.0.1:8000/v1"), ("OPENAI_API_KEY", "oa"), ("XAI_API_KEY", "x")];
    assert_eq!(brief(CLEAR, elsewhere, &[("provider", "xai")]), "xai grok-4 @ https://api.x.ai/v1 x from XAI_API_KEY");
    assert_eq!(
        brief(&[("base_url", "http://flags/v1"), ("model", "m")], env, CLEAR),
        "custom m @ http://flags/v1 no key"
    );
}

#[test]
fn what_is_meant_for_another_provider_is_passed_over() {
    let config: Pairs = &[("base_url", "http://config/v1"), ("model", "local-model"), ("context_length", "9000")];
    let route = of(&[("provider", "groq")], &[("GROQ_API_KEY", "k")], config).unwrap();
    assert_eq!((&*route.model.name, &route.model_source), ("llama-3.3-70b-versatile", &Source::Provider));
    assert_eq!(route.window_source, WindowSource::Family);
    assert_eq!(route.notes.len(), 2, "{:?}", route.notes);
    // With `custom`, the address below is the one that is meant.
    assert_eq!(brief(&[("provider", "custom")], CLEAR, config), "custom local-model @ http://config/v1 no key");
}

#[test]
fn the_window_is_configured_or_known_or_assumed() {
    let window = |model: &'static str, length: Option<u32>| {
        let wanted = Wanted { context_length: length, ..wanted(&[("base_url", "http://x/v1"), ("model", model)]) };
        let route = resolve(&Wanted::default(), &|_| None, &wanted).unwrap();
        (route.model.context_length, route.window_source)
    };
    assert_eq!(window("qwen3-coder", Some(12_000)), (12_000, WindowSource::Configured));
    assert_eq!(window("qwen3-coder", None), (262_144, WindowSource::Family));
    assert_eq!(window("hm", None), (ASSUMED_WINDOW, WindowSource::Assumed));
}

#[test]
fn a_login_goes_where_a_key_would_go() {
    let gateway: Pairs = &[("base_url", "http://gate/v1"), ("model", "m"), ("auth", "work")];
    assert_eq!(brief(CLEAR, CLEAR, gateway), "custom m @ http://gate/v1 login work from model.auth");
    // A key of a higher layer takes precedence; another address gets neither.
    assert_eq!(brief(&[("api_key", "k")], CLEAR, gateway), "custom m @ http://gate/v1 k from the command line");
    assert_eq!(brief(&[("base_url", "http://other/v1")], CLEAR, gateway), "custom m @ http://other/v1 no key");
    let openai: Pairs = &[("provider", "openai"), ("auth", "work")];
    assert_eq!(
        brief(CLEAR, &[("OPENAI_API_KEY", "k")], openai),
        "openai gpt-4.1 @ https://api.openai.com/v1 login work from model.auth"
    );
    let both: Pairs = &[("base_url", "http://gate/v1"), ("model", "m"), ("auth", "work"), ("api_key", "k")];
    assert!(brief(CLEAR, CLEAR, both).contains("sets both model.api_key and model.auth"));
}

#[test]
fn no_key_is_printed_with_a_route() {
    let config = wanted(&[("base_url", "http://x/v1"), ("model", "m"), ("api_key", "sk-0123456789abcdefgh")]);
    let route = resolve(&Wanted::default(), &|_| None, &config).unwrap();
    assert!(!format!("{route:?} {config:?}").contains("0123456789"));
}

#[test]
fn the_wire_format_is_configured_or_given_away_by_the_address() {
    use ApiMode::{AnthropicMessages as Messages, ChatCompletions as Chat, Responses};
    let anthropic: Pairs = &[("ANTHROPIC_API_KEY", "a"), ("OPENAI_API_KEY", "o")];
    let mode = |flags, config| of(flags, anthropic, config).unwrap().api_mode;
    assert_eq!(mode(CLEAR, &[("provider", "anthropic")]), Messages);
    assert_eq!(mode(CLEAR, &[("provider", "anthropic"), ("api_mode", "chat_completions")]), Chat);
    assert_eq!(mode(CLEAR, &[("base_url", "https://api.anthropic.com/v1")]), Messages);
    assert_eq!(mode(CLEAR, &[("provider", "openai")]), Responses);
    assert_eq!(mode(CLEAR, &[("provider", "openai"), ("api_mode", "chat_completions")]), Chat);
    let proxy: Pairs = &[("base_url", "http://127.0.0.1:1/v1"), ("model", "m"), ("api_mode", "codex_responses")];
    assert_eq!(mode(CLEAR, proxy), Responses);
    let local: Pairs = &[("base_url", "http://127.0.0.1:1"), ("model", "m"), ("api_mode", "Anthropic_Messages")];
    assert_eq!(mode(CLEAR, local), Messages);
    // It goes with the place that the layer names.
    assert_eq!(
        mode(&[("provider", "openai")], &[("provider", "anthropic"), ("api_mode", "anthropic_messages")]),
        Responses
    );
    assert_eq!(
        brief(CLEAR, &[("ANTHROPIC_API_KEY", "a")], CLEAR),
        "anthropic claude-sonnet-4-5 @ https://api.anthropic.com/ a from ANTHROPIC_API_KEY"
    );
}

#[test]
fn marks_are_taken_by_the_route_whatever_the_model() {
    let style = |config: &[(&str, &str)]| {
        let lookup = |name: &str| name.ends_with("_API_KEY").then(|| "k".to_owned());
        let style = resolve(&Wanted::default(), &lookup, &wanted(config)).unwrap().style();
        (style.mode, style.marks)
    };
    let chat = |marks| (ApiMode::ChatCompletions, marks);
    let native = (ApiMode::AnthropicMessages, Marks::Native);
    assert_eq!(style(&[("provider", "groq")]), chat(Marks::None));
    assert_eq!(style(&[("provider", "openai")]), (ApiMode::Responses, Marks::None));
    assert_eq!(style(&[("provider", "openrouter"), ("model", "qwen/qwen3-coder")]), chat(Marks::Envelope));
    assert_eq!(style(&[("base_url", "https://openrouter.ai/api/v1"), ("model", "m")]), chat(Marks::Envelope));
    assert_eq!(style(&[("base_url", "https://openrouter.ai.evil.test/v1"), ("model", "m")]), chat(Marks::None));
    assert_eq!(style(&[("provider", "anthropic")]), native);
    assert_eq!(style(&[("provider", "anthropic"), ("api_mode", "chat_completions")]), chat(Marks::None));
    assert_eq!(style(&[("base_url", "https://proxy.test/anthropic"), ("model", "m")]), native);
    assert_eq!(Route::offline().style(), Style::PLAIN);
}

#[test]
fn a_proxy_before_a_known_provider_speaks_as_that_does() {
    let mode = |config: Pairs| of(CLEAR, CLEAR, config).unwrap().api_mode;
    let proxy: Pairs =
        &[("provider", "anthropic"), ("base_url", "http://127.0.0.1:1/x"), ("model", "m"), ("api_key", "k")];
    assert_eq!(mode(proxy), ApiMode::AnthropicMessages);
    let told: Pairs = &[
        ("provider", "anthropic"),
        ("base_url", "http://127.0.0.1:1/x"),
        ("model", "m"),
        ("api_key", "k"),
        ("api_mode", "chat_completions"),
    ];
    assert_eq!(mode(told), ApiMode::ChatCompletions);
    let other: Pairs =
        &[("provider", "openai"), ("base_url", "http://127.0.0.1:1/x"), ("model", "m"), ("api_key", "k")];
    assert_eq!(mode(other), ApiMode::ChatCompletions);
}
