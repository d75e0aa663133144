#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;
use crate::settings::{HintParts, Share, Whole};

fn parse(text: &str) -> Result<Config, Diagnostic> {
    Config::parse(text, Path::new("/h/config.yaml"), &|name| match name {
        "HERMES_T_KEY" => Some("sk-0123456789abcdefghij".to_owned()),
        "HERMES_T_WINDOW" => Some("12000".to_owned()),
        _ => None,
    })
}

#[test]
fn a_hint_is_a_string_or_a_section() {
    let text = |text: &str| Some(text.to_owned());
    let config = parse("platform_hints:\n  cli: more\n  serve: {replace: other, append: and more}\n  cron:\n").unwrap();
    let hints = &config.settings().platform_hints;
    let parts = |platform: &str| hints[platform].as_ref().map(crate::settings::Hint::parts);
    assert_eq!(parts("cli"), Some(HintParts { replace: None, append: text("more") }));
    assert_eq!(parts("serve"), Some(HintParts { replace: text("other"), append: text("and more") }));
    assert_eq!(parts("cron"), None);
    for wrong in
        ["platform_hints: {cli: 3}", "platform_hints: {cli: {instead: x}}", "platform_hints: {cli: {replace: [x]}}"]
    {
        let failure = parse(wrong).unwrap_err();
        assert!(failure.why.contains("platform_hints.cli"), "{failure}");
    }
}

#[test]
fn the_sandbox_can_be_off_without_quotes() {
    use crate::SandboxChoice::{Auto, Off, Require};
    for (text, mode) in [("off", Off), ("\"off\"", Off), ("require", Require), ("auto", Auto), ("", Auto)] {
        let config = parse(&format!("sandbox:\n  mode: {text}\n  network: true\n  writable: [~/x]\n")).unwrap();
        let sandbox = &config.settings().sandbox;
        assert_eq!((sandbox.mode, sandbox.network, sandbox.writable.as_slice()), (mode, true, &["~/x".to_owned()][..]));
    }
    for wrong in ["on", "maybe", "3"] {
        let failure = parse(&format!("sandbox: {{mode: {wrong}}}")).unwrap_err();
        assert!(failure.why.contains("sandbox.mode"), "{failure}");
        let failure = parse(&format!("mcp_servers: {{files: {{sandbox: {wrong}}}}}")).unwrap_err();
        assert!(failure.why.starts_with("`mcp_servers.files.sandbox` is "), "{failure}");
    }
}

#[test]
fn an_empty_file_leaves_the_defaults_in_force() {
    for text in
        ["", "# only words\n", "model:\n", "context:\n  engine:\n", "context: {engine: ' '}\n", "auxiliary:\n", "{}"]
    {
        let config = parse(text).unwrap();
        assert!(config.warnings().is_empty(), "{text:?}");
        assert_eq!(config.settings(), &Settings::default());
        assert_eq!(config.settings().context.engine, "compressor");
        assert_eq!(config.settings().agent.max_turns.get(), 90);
        assert!(config.settings().compression.enabled);
    }
}

#[test]
fn values_of_the_file_replace_defaults() {
    let text = "model: some-model\ncontext:\n  engine: lossless\nplugins:\n  enabled: [audit]\n  entries:\n    audit: \
         {level: 1}\ncompression: {enabled: false, threshold: 0.4}\n";
    let config = parse(text).unwrap();
    let settings = config.settings();
    assert_eq!(settings.model.default.as_deref(), Some("some-model"));
    assert_eq!(settings.context.engine, "lossless");
    assert_eq!(settings.plugins.enabled, ["audit"]);
    assert_eq!(settings.plugins.entries.0["audit"], json!({"level": 1}));
    assert!(!settings.compression.enabled);
    assert_eq!(settings.compression.threshold.map(Share::get), Some(0.4));
    assert!(config.warnings().is_empty());
}

#[test]
fn a_misfit_is_refused_with_its_position_what_was_found_and_what_it_must_be() {
    for (text, place, found, wanted) in [
        ("context:\n  engine: [a]\n", "2:11", "`context.engine` is a list", "a string"),
        ("context: compressor\n", "1:10", "`context` is a string", "a section with engine"),
        ("model:\n  context_length: \"12000\"\n", "2:19", "is `12000`", "a whole number, at least 2000"),
        ("model:\n  context_length: 12k\n", "2:19", "is `12k`", "a whole number"),
        ("model:\n  context_length: 12.5\n", "2:19", "is 12.5", "a whole number"),
        ("model:\n  context_length: 10\n", "2:19", "is 10", "at least 2000"),
        ("model:\n  default: 4.1\n", "2:12", "is a number", "a string"),
        ("model: 5\n", "1:8", "`model` is a number", "a string"),
        ("model: [a]\n", "1:8", "`model` is a list", "a section with provider"),
        ("compression:\n  enabled: maybe\n", "2:12", "is `maybe`", "true or false"),
        ("compression:\n  threshold: 50\n", "2:14", "is 50", "above 0 and up to 1"),
        ("plugins:\n  enabled: audit\n", "2:12", "is a string", "a list of strings"),
        ("plugins:\n  enabled: [audit, 3]\n", "2:20", "`plugins.enabled[1]` is a number", "a string"),
        ("plugins:\n  entries:\n    audit: 3\n", "3:12", "`plugins.entries.audit` is a number", "a section"),
        (
            "plugins:\n  settings:\n    audit:\n      limits: {cpu: 5}\n",
            "4:7",
            "`plugins.settings.audit`",
            "with its unit",
        ),
        ("- a\n", "1:1", "the file is a list", "sections"),
    ] {
        let failure = parse(text).unwrap_err();
        assert_eq!(failure.code, codes::VALUE);
        assert_eq!(failure.what, format!("/h/config.yaml:{place} cannot be used"), "{text}");
        assert!(failure.why.contains(found) && failure.why.contains(wanted), "{text}: {failure}");
    }
}

#[test]
fn invalid_yaml_is_refused_with_line_and_reason() {
    for text in ["model:\n  default: a\n bad: b\n", "model: [a\n", "a: 1\na: 2\n", "model: {default: \"x}\n"] {
        let failure = parse(text).unwrap_err();
        assert_eq!(failure.code, codes::SYNTAX);
        let place = failure.what.strip_prefix("/h/config.yaml:").unwrap().split(' ').next().unwrap();
        assert!(place.split(':').all(|number| number.parse::<u32>().unwrap() > 0), "{failure}");
        assert!(!failure.why.is_empty());
    }
}

#[test]
fn a_key_is_never_quoted_in_a_refusal() {
    let failure = parse("model:\n  api_key: [sk-0123456789abcdefghij]\n").unwrap_err();
    assert!(!failure.to_string().contains("sk-"), "{failure}");
}

#[test]
fn an_unknown_key_is_a_warning_with_its_line_and_the_nearest_known_one() {
    let text = "modle: x\nmodel:\n  contxt_length: 5\nterminal:\n  backend: local\ncontext: {engines: a}\n";
    let config = parse(text).unwrap();
    let expected = [
        ("/h/config.yaml:1: ", "`modle`", "did you mean `model`?"),
        ("/h/config.yaml:3: ", "`model.contxt_length`", "did you mean `model.context_length`?"),
        ("/h/config.yaml:4: ", "`terminal`", "the keys here are model, fallback_providers, logins"),
        ("/h/config.yaml:6: ", "`context.engines`", "did you mean `context.engine`?"),
    ];
    assert_eq!(config.warnings().len(), expected.len(), "{:?}", config.warnings());
    for (warning, (place, key, near)) in config.warnings().iter().zip(expected) {
        assert!(warning.starts_with(place) && warning.contains(key) && warning.contains(near), "{warning}");
    }
}

#[test]
fn a_key_without_effect_gives_a_warning() {
    let config = parse("auxiliary:\n  compression:\n    extra_body: {a: 1}\n    model: small\n").unwrap();
    assert_eq!(config.warnings().len(), 1, "{:?}", config.warnings());
    assert!(config.warnings()[0].contains("`auxiliary.compression.extra_body` has no effect"));
}

#[test]
fn any_task_has_a_section_with_the_same_keys() {
    let text = "auxiliary:\n  transient_retries: 0\n  my_task: {model: small, timeout: 9, modle: x}\n  compresion:\n    \
         fallback_chain: [{provider: groq, api_key: sk-0123456789abcdefghij, extra: 1}]\n";
    let config = parse(text).unwrap();
    let tasks: Vec<_> =
        config.settings().auxiliary.tasks.iter().map(|(name, task)| (name.as_str(), task.timeout.get())).collect();
    assert_eq!(tasks, [("compression", 120), ("my_task", 9), ("compresion", 120)]);
    assert_eq!(config.shown_at("auxiliary.my_task.model"), Some(json!("small")));
    assert_eq!(config.shown_at("auxiliary.transient_retries"), Some(json!(0)));
    assert!(!config.shown().to_string().contains("0123456789"));
    let expected =
        ["`auxiliary.my_task.model`?", "mean `auxiliary.compression`?", "fallback_chain[0].extra` is not known"];
    assert_eq!(config.warnings().len(), expected.len(), "{:?}", config.warnings());
    for (warning, words) in config.warnings().iter().zip(expected) {
        assert!(warning.contains(words), "{warning}");
    }
    for (text, found, wanted) in [
        ("auxiliary: {transient_retries: 7}", "is 7", "from 0 to 6"),
        ("auxiliary: {t: {fallback_chain: groq}}", "is a string", "a list of sections"),
        (
            "auxiliary: {t: {fallback_chain: [groq]}}",
            "`auxiliary.t.fallback_chain[0]` is a string",
            "a section with provider",
        ),
        (
            "auxiliary: {t: {fallback_chain: [{model: 4}]}}",
            "`auxiliary.t.fallback_chain[0].model` is a number",
            "a string",
        ),
        ("auxiliary: {t: {context_length: 3999}}", "is 3999", "at least 4000"),
        ("auxiliary: {t: small}", "`auxiliary.t` is a string", "a section with provider, model"),
    ] {
        let failure = parse(text).unwrap_err();
        assert!(failure.why.contains(found) && failure.why.contains(wanted), "{text}: {failure}");
    }
}

#[test]
fn variables_stand_for_texts_and_numbers() {
    let config = parse(
        "model:\n  api_key: ${HERMES_T_KEY}\n  context_length: ${HERMES_T_WINDOW}\n  base_url: http://${HERMES_T_NONE}/v1\n",
    )
    .unwrap();
    let model = &config.settings().model;
    assert_eq!(model.api_key.as_deref(), Some("sk-0123456789abcdefghij"));
    assert_eq!(model.context_length.map(Whole::get), Some(12_000));
    assert_eq!(model.base_url.as_deref(), Some("http://${HERMES_T_NONE}/v1"));
    assert_eq!(config.warnings().len(), 1);
    assert!(config.warnings()[0].contains("config.yaml:4") && config.warnings()[0].contains("HERMES_T_NONE"));
    assert!(parse("model:\n  context_length: ${HERMES_T_KEY}\n").is_err());
}

#[test]
fn one_line_names_all_variables_that_are_not_set() {
    let text = "mcp_servers:\n  a: {url: 'http://a/${HERMES_T_ONE}', headers: {A: '${HERMES_T_TWO}', B: '${HERMES_T_ONE}'}}\n\
                model: {base_url: '${HERMES_T_THREE}'}\nmodle: 1\n";
    let config = parse(text).unwrap();
    let [unset, key] = config.warnings() else { panic!("{:?}", config.warnings()) };
    assert!(
        unset.contains("config.yaml:2: the variables HERMES_T_ONE, HERMES_T_TWO and HERMES_T_THREE are not"),
        "{unset}"
    );
    assert_eq!(config.warnings_about_keys(), std::slice::from_ref(key));
}

#[test]
fn the_home_of_another_program_is_refused() {
    let failure = parse("model: x\n_config_version: 33\n").unwrap_err();
    assert!(failure.why.contains("Hermes Agent") && failure.fix.to_string().contains("HERMES_HOME"), "{failure}");
}

#[test]
fn shown_values_are_in_force_and_redacted() {
    let text = "model:\n  api_key: ${HERMES_T_KEY}\n  default: m\nplugins:\n  entries:\n    mine: {token: abc, deep: {x: 1}}\n";
    let config = parse(text).unwrap();
    assert_eq!(config.shown_at("model.default"), Some(json!("m")));
    assert_eq!(config.shown_at("model.api_key"), Some(json!("sk-012...ghij")));
    assert_eq!(config.shown_at("context"), Some(json!({"engine": "compressor"})));
    assert_eq!(config.shown_at("plugins.entries.mine"), Some(json!({"token": "***", "deep": {"x": 1}})));
    assert_eq!(config.shown_at("model.nope"), None);
    assert!(!config.shown().to_string().contains("0123456789"));
}

#[test]
fn numbers_and_flags_are_texts_among_arguments_variables_and_headers_of_servers() {
    let config = parse(
        "mcp_servers:\n  a: {command: x, args: [--port, 8080, true], env: {PORT: 8080, DEBUG: false}}\n  \
         b: {url: 'https://x.test', headers: {X-Version: 3}}\n",
    )
    .unwrap();
    let servers = &config.settings().mcp_servers;
    let (a, b) = (servers["a"].as_ref().unwrap(), servers["b"].as_ref().unwrap());
    assert_eq!(a.args, ["--port", "8080", "true"]);
    assert_eq!(
        (a.env["PORT"].as_str(), a.env["DEBUG"].as_str(), b.headers["X-Version"].as_str()),
        ("8080", "false", "3")
    );
    let refused = parse("mcp_servers: {a: {command: x, env: {VERSION: 1.10}}}\n").unwrap_err();
    assert!(refused.fix.to_string().contains("quotes"), "{refused}");
    assert!(parse("mcp_servers: {a: {command: 7}}\n").is_err());
}

#[test]
fn a_server_that_another_agent_calls_disabled_is_told_how_it_is_switched_off() {
    let config = parse("mcp_servers: {a: {command: x, disabled: true}}\n").unwrap();
    let warning = &config.warnings()[0];
    assert!(warning.contains("did you mean `mcp_servers.a.enabled: false`?"), "{warning}");
}
