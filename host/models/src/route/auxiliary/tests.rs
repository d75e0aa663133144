#![allow(clippy::unwrap_used)]

use hermes_diagnostic::Diagnose as _;

use super::super::resolve;
use super::*;

type Pairs<'a> = &'a [(&'a str, &'a str)];

const NONE: Pairs<'static> = &[];

fn asked(pairs: Pairs<'_>) -> Auxiliary {
    let mut asked = Auxiliary { section: "auxiliary.t".to_owned(), ..Auxiliary::default() };
    for (name, value) in pairs {
        let text = Some((*value).to_owned());
        match *name {
            "provider" => asked.wanted.provider = text,
            "model" => asked.wanted.model = text,
            "base_url" => asked.wanted.base_url = text,
            "api_key" => asked.wanted.api_key = text,
            "api_mode" => asked.wanted.api_mode = text,
            "context_length" => asked.wanted.context_length = Some(value.parse().unwrap()),
            "key_env" => asked.key_env = text,
            other => panic!("no field {other}"),
        }
    }
    asked
}

fn of(
    flags: Pairs<'_>,
    env: Pairs<'_>,
    config: Pairs<'_>,
    section: Pairs<'_>,
) -> (Route, Result<Route, AuxiliaryError>) {
    let lookup = |name: &str| env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
    let config = asked(config).wanted;
    let session = resolve(&asked(flags).wanted, &lookup, &config).unwrap();
    let route = resolve_auxiliary(&asked(section), &session, &lookup, &config);
    (session, route)
}

/// `provider model @ address key from place`.
fn brief(flags: Pairs<'_>, env: Pairs<'_>, config: Pairs<'_>, section: Pairs<'_>) -> String {
    match of(flags, env, config, section).1 {
        Ok(route) => {
            let key = match (route.credential, route.key_source) {
                (Some(Credential::Key(key)), Some(source)) => format!("{} from {source}", key.expose()),
                (Some(Credential::Login(name)), Some(source)) => format!("login {name} from {source}"),
                _ => "no key".to_owned(),
            };
            format!("{} {} @ {} {key}", route.model.provider, route.model.name, route.base_url.unwrap())
        }
        Err(error) => format!("error: {error}"),
    }
}

const GATEWAY: Pairs<'static> =
    &[("base_url", "http://gate/v1"), ("model", "big"), ("api_key", "gate-key"), ("context_length", "50000")];

#[test]
fn what_is_left_open_is_the_sessions() {
    for section in [NONE, &[("provider", "auto"), ("model", "auto")], &[("provider", "main")], &[("base_url", " ")]] {
        let (session, route) = of(NONE, NONE, GATEWAY, section);
        assert!(route.unwrap().is_alike(&session), "{section:?}");
    }
    let small: Pairs<'_> = &[("model", "small")];
    assert_eq!(brief(NONE, NONE, GATEWAY, small), "custom small @ http://gate/v1 gate-key from model.api_key");
    let flags: Pairs<'_> = &[("provider", "groq")];
    let keys: Pairs<'_> = &[("GROQ_API_KEY", "gq"), ("OPENAI_API_KEY", "oa")];
    assert_eq!(
        brief(flags, keys, GATEWAY, small),
        "groq small @ https://api.groq.com/openai/v1 gq from GROQ_API_KEY",
        "the session's provider is the one in use, not the configured one"
    );
}

#[test]
fn an_address_alone_is_a_custom_endpoint_that_gets_no_key_of_another() {
    let env: Pairs<'_> = &[("OPENAI_API_KEY", "oa"), ("HERMES_API_KEY", "hm"), ("NAMED", "nk")];
    let config: Pairs<'_> = &[("provider", "openai"), ("model", "gpt-5.4"), ("api_key", "config-key")];
    let elsewhere = ("base_url", "http://other/v1");
    assert_eq!(brief(NONE, env, config, &[elsewhere]), "custom gpt-5.4 @ http://other/v1 no key");
    assert_eq!(
        brief(NONE, env, config, &[elsewhere, ("model", "m"), ("api_key", "own")]),
        "custom m @ http://other/v1 own from auxiliary.t.api_key"
    );
    assert_eq!(
        brief(NONE, env, config, &[elsewhere, ("model", "m"), ("key_env", "NAMED")]),
        "custom m @ http://other/v1 nk from NAMED"
    );
    assert_eq!(
        brief(NONE, env, config, &[elsewhere, ("provider", "openai"), ("model", "m")]),
        "openai m @ http://other/v1 no key",
        "a name does not make another host the provider's"
    );
    assert_eq!(
        brief(NONE, NONE, GATEWAY, &[("base_url", "http://gate:81/v1")]),
        "custom big @ http://gate:81/v1 no key"
    );
    assert_eq!(
        brief(NONE, NONE, GATEWAY, &[("base_url", "https://gate:80/v1")]),
        "custom big @ https://gate:80/v1 no key"
    );
}

#[test]
fn a_key_serves_wherever_its_own_address_is_asked() {
    assert_eq!(
        brief(NONE, NONE, GATEWAY, &[("base_url", "http://gate/other/v1"), ("model", "m")]),
        "custom m @ http://gate/other/v1 gate-key from model.api_key"
    );
    // The configured place, while the session is elsewhere.
    let flags: Pairs<'_> = &[("provider", "groq")];
    let env: Pairs<'_> = &[("GROQ_API_KEY", "gq")];
    assert_eq!(
        brief(flags, env, &[("provider", "xai"), ("model", "grok-9"), ("api_key", "x")], &[("provider", "xai")]),
        "xai grok-9 @ https://api.x.ai/v1 x from model.api_key"
    );
    assert_eq!(
        brief(flags, env, GATEWAY, &[("base_url", "http://gate/v1"), ("model", "m")]),
        "custom m @ http://gate/v1 gate-key from model.api_key"
    );
    // A key without a place was meant for the session's.
    let env: Pairs<'_> = &[("GROQ_API_KEY", "gq"), ("HERMES_API_KEY", "hm")];
    assert_eq!(
        brief(flags, env, NONE, &[("base_url", "http://gate/v1"), ("model", "m")]),
        "custom m @ http://gate/v1 no key"
    );
}

#[test]
fn a_known_provider_brings_its_address_its_model_and_its_key() {
    let env: Pairs<'_> = &[("ANTHROPIC_API_KEY", "an"), ("OPENAI_API_KEY", "oa"), ("OPENAI_BASE_URL", "http://oa/v1")];
    assert_eq!(
        brief(NONE, env, GATEWAY, &[("provider", "Anthropic")]),
        "anthropic claude-sonnet-4-5 @ https://api.anthropic.com/ an from ANTHROPIC_API_KEY"
    );
    assert_eq!(of(NONE, env, GATEWAY, &[("provider", "anthropic")]).1.unwrap().api_mode, ApiMode::AnthropicMessages);
    assert_eq!(
        brief(&[("provider", "anthropic")], env, NONE, &[("provider", "openai"), ("model", "m")]),
        "openai m @ http://oa/v1 oa from OPENAI_API_KEY"
    );
    let missing = of(NONE, env, GATEWAY, &[("provider", "groq")]).1.unwrap_err();
    assert!(missing.is_lack() && missing.sentence().contains("; set GROQ_API_KEY in"), "{missing}");
}

#[test]
fn a_key_without_a_place_is_sent_nowhere_and_told() {
    let (_, route) = of(NONE, NONE, GATEWAY, &[("model", "small"), ("api_key", "sk-0123456789abcdefghij")]);
    let route = route.unwrap();
    assert_eq!(route.credential, Secret::new("gate-key").map(Credential::Key));
    assert!(route.notes[0].contains("auxiliary.t.provider") && !route.notes[0].contains("0123456789"));
    let (_, route) = of(NONE, NONE, GATEWAY, &[("base_url", "http://x/v1"), ("key_env", "NOT_SET")]);
    assert!(route.unwrap().notes[0].contains("NOT_SET"));
}

#[test]
fn what_cannot_be_used_names_its_key_and_the_way_out() {
    for (section, words) in [
        (&[("provider", "nobody")][..], "`auxiliary.t.provider` is `nobody`"),
        (&[("provider", "nobody")], "or set `auxiliary.t.base_url`"),
        (&[("provider", "offline")], "auxiliary.t.provider"),
        (&[("base_url", "ftp://x")], "`auxiliary.t.base_url` does not begin with http"),
        (&[("base_url", "http://me:pw@x/v1")], "a key belongs in auxiliary.t.api_key"),
        (&[("api_mode", "bedrock_converse")], "not supported yet; choose `chat_completions`"),
        (&[("api_mode", "morse")], "not known"),
        (&[("provider", "ollama")], "set `auxiliary.t.model`"),
        (&[("context_length", "3999")], "at least 4000"),
        (&[("base_url", "http://x/v1"), ("api_key", "a b")], "the key in auxiliary.t.api_key contains a space"),
    ] {
        let error = of(NONE, NONE, GATEWAY, section).1.unwrap_err();
        assert!(error.sentence().contains(words) && !error.is_lack(), "{section:?}: {error}");
    }
    // The gateway is what `custom` means while the session is there, and only then.
    assert!(of(NONE, NONE, GATEWAY, &[("provider", "custom")]).1.is_ok());
    let elsewhere = of(NONE, &[("GROQ_API_KEY", "k")], &[("provider", "groq")], &[("provider", "custom")]).1;
    assert!(elsewhere.unwrap_err().sentence().contains("set `auxiliary.t.base_url`"));
    let offline = of(NONE, NONE, NONE, &[("model", "small")]).1.unwrap_err();
    assert!(offline.is_lack(), "{offline}");
}

#[test]
fn a_window_that_nobody_knows_is_the_sessions() {
    let window = |section: Pairs<'_>| {
        let route = of(NONE, NONE, GATEWAY, section).1.unwrap();
        (route.model.context_length, route.window_source)
    };
    assert_eq!(window(NONE), (50_000, WindowSource::Configured));
    assert_eq!(window(&[("model", "odd")]), (50_000, WindowSource::Session));
    assert_eq!(window(&[("model", "gpt-5.4-mini")]), (400_000, WindowSource::Family));
    assert_eq!(window(&[("model", "odd"), ("context_length", "8000")]), (8_000, WindowSource::Configured));
}
