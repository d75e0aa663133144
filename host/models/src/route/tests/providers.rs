//! Providers by name: aliases, plans with one key, addresses of one's own, and rows of the user.

use std::collections::BTreeMap;

use super::*;
use crate::CustomFlaw;

#[test]
fn an_alias_is_the_provider_itself() {
    let keys: Pairs = &[("ANTHROPIC_API_KEY", "a"), ("KIMI_API_KEY", "k"), ("XAI_API_KEY", "x")];
    let aliases: [(Pairs, &str); 3] = [
        (
            &[("provider", "Claude")],
            "anthropic claude-sonnet-4-5 @ https://api.anthropic.com/ a from ANTHROPIC_API_KEY",
        ),
        (&[("provider", "moonshot")], "kimi-coding kimi-k2.5 @ https://api.moonshot.ai/v1 k from KIMI_API_KEY"),
        (&[("provider", "x.ai")], "xai grok-4 @ https://api.x.ai/v1 x from XAI_API_KEY"),
    ];
    for (flags, expected) in aliases {
        assert_eq!(brief(flags, keys, CLEAR), expected);
    }
    // The section of a provider also applies to its aliases.
    let config: Pairs = &[("provider", "grok"), ("model", "grok-4-fast"), ("api_key", "own")];
    assert_eq!(
        brief(&[("provider", "xai")], keys, config),
        "xai grok-4-fast @ https://api.x.ai/v1 own from model.api_key"
    );
}

#[test]
fn one_key_of_several_plans_chooses_the_first_and_names_the_others() {
    let route = of(CLEAR, &[("KIMI_API_KEY", "k")], CLEAR).unwrap();
    assert_eq!(route.model.provider, "kimi-coding");
    assert_eq!(route.source, Source::LoneKey { variable: "KIMI_API_KEY", also: vec!["kimi-code"] });
    let two: Pairs = &[("KIMI_API_KEY", "k"), ("KIMI_CODING_API_KEY", "c")];
    assert_eq!(of(CLEAR, two, CLEAR).unwrap().model.provider, "kimi-coding");
    let glm = of(CLEAR, &[("GLM_API_KEY", "g")], CLEAR).unwrap();
    assert_eq!(glm.source, Source::LoneKey { variable: "GLM_API_KEY", also: vec!["zai-coding", "zai-cn"] });
    // A name chooses the plan, and with it the address.
    assert_eq!(
        brief(&[("provider", "kimi-code")], &[("KIMI_API_KEY", "k")], CLEAR),
        "kimi-code kimi-for-coding @ https://api.kimi.com/coding k from KIMI_API_KEY"
    );
    // Keys of different providers are still for the user to decide.
    let several = of(CLEAR, &[("GLM_API_KEY", "g"), ("KIMI_API_KEY", "k")], CLEAR).unwrap_err();
    assert_eq!(several, ResolveError::SeveralKeys { variables: vec!["KIMI_API_KEY", "GLM_API_KEY"] });
}

#[test]
fn a_variable_with_another_purpose_chooses_no_provider() {
    let keys: Pairs =
        &[("HF_TOKEN", "hf"), ("OPENAI_API_KEY", "oa"), ("AZURE_OPENAI_API_KEY", "az"), ("LM_API_KEY", "lm")];
    assert_eq!(of(CLEAR, keys, CLEAR).unwrap().model.provider, "openai");
    assert!(of(CLEAR, &[("HF_TOKEN", "hf")], CLEAR).unwrap().is_offline());
    let named = of(&[("provider", "hf")], keys, CLEAR).unwrap();
    assert_eq!((&*named.model.provider, named.key_source.as_deref()), ("huggingface", Some("HF_TOKEN")));
}

#[test]
fn a_server_on_this_machine_gets_its_key_at_its_usual_address_only() {
    let keys: Pairs = &[("LM_API_KEY", "lm")];
    let config: Pairs = &[("provider", "lm-studio"), ("model", "m")];
    assert_eq!(brief(CLEAR, keys, config), "lmstudio m @ http://127.0.0.1:1234/v1 lm from LM_API_KEY");
    assert_eq!(brief(CLEAR, CLEAR, config), "lmstudio m @ http://127.0.0.1:1234/v1 no key");
    let moved: Pairs = &[("provider", "lmstudio"), ("model", "m"), ("base_url", "http://gpu.test:1234/v1")];
    assert_eq!(brief(CLEAR, keys, moved), "lmstudio m @ http://gpu.test:1234/v1 no key");
}

#[test]
fn some_providers_need_an_address_of_ones_own() {
    let error = of(CLEAR, &[("AZURE_OPENAI_API_KEY", "k")], &[("provider", "azure"), ("model", "m")]).unwrap_err();
    assert!(error.sentence().contains("set model.base_url, such as https://RESOURCE.openai.azure.com"), "{error}");
    let mine: Pairs = &[("provider", "azure"), ("model", "m"), ("base_url", "https://mine.openai.azure.com/openai/v1")];
    assert_eq!(
        brief(CLEAR, &[("AZURE_FOUNDRY_API_KEY", "k")], mine),
        "azure m @ https://mine.openai.azure.com/openai/v1 k from AZURE_FOUNDRY_API_KEY"
    );
}

#[test]
fn a_provider_that_is_not_supported_is_refused_with_the_reason() {
    let error = of(CLEAR, CLEAR, &[("provider", "OpenAI-Codex")]).unwrap_err().sentence();
    assert!(error.contains("is not supported: it needs a login with ChatGPT"), "{error}");
    assert!(error.ends_with("use `openai` with a key"), "{error}");
    // With an address of its own, the name is only a name.
    assert_eq!(
        brief(CLEAR, CLEAR, &[("provider", "copilot"), ("base_url", "http://x/v1"), ("model", "m")]),
        "copilot m @ http://x/v1 no key"
    );
}

/// A configuration with the rows `work` and `Home Server`.
fn with_rows(config: Pairs) -> Wanted {
    let work = CustomProvider::new("Work", "https://llm.work.test/v1/").unwrap();
    let windows = BTreeMap::from([("big".to_owned(), Some(200_000)), ("small".to_owned(), None)]);
    let work = work.with_key(None, Some("WORK_KEY")).with_models(Some("big"), windows);
    let home = CustomProvider::new("Home Server", "http://192.168.0.9:8000/x").unwrap();
    let home = home.with_key(Some("own-key"), None).with_api_mode(Some("anthropic_messages")).unwrap();
    let home = home.with_models(None, BTreeMap::from([("only".to_owned(), Some(9_000))]));
    Wanted { providers: vec![work, home], ..wanted(config) }
}

fn in_brief(flags: Pairs, env: Pairs, config: Pairs) -> String {
    let variable = |name: &str| env.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    match resolve(&wanted(flags), &variable, &with_rows(config)) {
        Ok(route) => format!(
            "{} {} @ {} {} from {} {} {}",
            route.model.provider,
            route.model.name,
            route.base_url.as_ref().unwrap(),
            route.api_mode.as_str(),
            route.key_source.as_deref().unwrap_or("nowhere"),
            route.model.context_length,
            route.notes.join("; "),
        ),
        Err(error) => error.sentence(),
    }
}

#[test]
fn a_row_of_the_user_brings_address_key_format_model_and_window() {
    let env: Pairs = &[("WORK_KEY", "w"), ("OPENAI_API_KEY", "oa")];
    let names: [Pairs; 3] = [&[("provider", "work")], &[("provider", "WORK")], &[("provider", "custom:work")]];
    for config in names {
        assert_eq!(
            in_brief(CLEAR, env, config),
            "work big @ https://llm.work.test/v1 chat_completions from WORK_KEY 200000 "
        );
    }
    assert_eq!(
        in_brief(&[("provider", "home server")], env, CLEAR),
        "home-server only @ http://192.168.0.9:8000/x anthropic_messages from custom_providers (home-server) 9000 "
    );
    assert_eq!(
        in_brief(&[("provider", "work"), ("model", "small")], CLEAR, CLEAR),
        "work small @ https://llm.work.test/v1 chat_completions from nowhere 128000 \
         `custom_providers` (work) names the variable WORK_KEY, which is not set"
    );
    let error = in_brief(&[("provider", "custom:other")], env, CLEAR);
    assert!(error.contains("there is no provider `custom:other`"), "{error}");
}

#[test]
fn the_key_of_a_row_reaches_no_other_host() {
    let env: Pairs = &[("WORK_KEY", "w")];
    let elsewhere = in_brief(
        &[("provider", "work"), ("base_url", "https://llm.work.test.evil.test/v1"), ("model", "m")],
        env,
        CLEAR,
    );
    assert!(elsewhere.contains("from nowhere"), "{elsewhere}");
    let in_clear =
        in_brief(&[("provider", "work"), ("base_url", "http://llm.work.test/v1"), ("model", "m")], env, CLEAR);
    assert!(in_clear.contains("from nowhere"), "{in_clear}");
    // The same place under another name.
    let here = in_brief(&[("base_url", "https://llm.work.test/v1"), ("model", "m")], env, CLEAR);
    assert!(here.starts_with("work m @ https://llm.work.test/v1 chat_completions from WORK_KEY"), "{here}");
}

#[test]
fn a_task_can_use_a_row() {
    let env = |name: &str| (name == "WORK_KEY").then(|| "w".to_owned());
    let asked = Auxiliary {
        section: "auxiliary.compression".to_owned(),
        wanted: wanted(&[("provider", "Work"), ("model", "small")]),
        key_env: None,
    };
    let route = resolve_auxiliary(&asked, &Route::offline(), &env, &with_rows(CLEAR)).unwrap();
    assert_eq!((&*route.model.provider, &*route.model.name), ("work", "small"));
    assert_eq!(route.key_source.as_deref(), Some("WORK_KEY"));
}

#[test]
fn a_row_that_cannot_be_used_is_refused() {
    let flaw = |name, url| CustomProvider::new(name, url).unwrap_err();
    assert_eq!(flaw(" ", "http://x/v1"), CustomFlaw::Name);
    assert_eq!(flaw("Custom", "http://x/v1"), CustomFlaw::Name);
    assert_eq!(flaw("x", "x/v1"), CustomFlaw::Address(AddressFlaw::NotAUrl));
    assert_eq!(flaw("x", "http://api.openai.com/v1"), CustomFlaw::Address(AddressFlaw::Unencrypted));
    let row = CustomProvider::new("x", "http://x/v1").unwrap();
    assert_eq!(row.clone().with_api_mode(Some("smoke")).unwrap_err(), CustomFlaw::ApiMode("smoke".to_owned()));
    assert!(!format!("{:?}", row.with_key(Some("sk-0123456789abcdefgh"), None)).contains("0123456789"));
}
