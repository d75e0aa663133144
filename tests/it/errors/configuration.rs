use hermes_tests::{Home, Reply, Server};
use serde_json::json;

use super::Screens;

/// Texts of `config.yaml` that no session starts with.
const REFUSED: &[(&str, &str)] = &[
    ("invalid YAML", "model:\n  provider: offline\n\tdefault: x\n"),
    ("a section that is there twice", "model: {}\nmodel: {}\n"),
    ("a list instead of sections", "- model\n"),
    ("a text instead of a number", "model:\n  context_length: plenty\n"),
    ("a number instead of a text", "model:\n  default: 4.1\n"),
    ("a text instead of a list", "plugins:\n  enabled: audit\n"),
    ("a text instead of true or false", "compression:\n  enabled: maybe\n"),
    ("a number out of range", "compression:\n  threshold: 50\n"),
    ("a limit without its unit", "plugins:\n  settings:\n    audit:\n      limits: {cpu: 5}\n"),
    ("the home of another program", "_config_version: 33\n"),
    ("a cache lifetime that no provider offers", "prompt_caching:\n  cache_ttl: 2h\n"),
    ("an entry below `approvals` that is not a rule", "approvals:\n  allow: [a/b/c]\n"),
    ("a missing file of prefilled messages", "prompt:\n  prefill_messages_file: hello.json\n"),
    ("an unknown provider", "model: {provider: grok-cloud, default: m}\n"),
    ("a provider without its key", "model: {provider: openai, default: gpt-5}\n"),
    ("a model without a provider", "model: some-model\n"),
    ("an address without a model", "model: {base_url: 'http://127.0.0.1:8000/v1'}\n"),
    ("an address that is not a URL", "model: {default: m, base_url: localhost}\n"),
    ("an address with a password", "model: {default: m, base_url: 'http://ada:secret@127.0.0.1/v1'}\n"),
    ("a provider's address without encryption", "model: {default: m, base_url: 'http://api.openai.com/v1'}\n"),
    ("a key and a login", "model: {default: m, base_url: 'http://127.0.0.1/v1', api_key: abc, auth: work}\n"),
    ("a key with a blank", "model: {default: m, base_url: 'http://127.0.0.1/v1', api_key: 'a b'}\n"),
    ("the provider `custom` without an address", "model: {provider: custom, default: m}\n"),
    ("an address for the offline partner", "model: {provider: offline, base_url: 'http://127.0.0.1/v1'}\n"),
    ("an unknown wire format", "model: {default: m, base_url: 'http://127.0.0.1/v1', api_mode: soap}\n"),
    (
        "a wire format that is not supported",
        "model: {default: m, base_url: 'http://127.0.0.1/v1', api_mode: bedrock_converse}\n",
    ),
    ("an unknown provider for a task", "model: {provider: offline}\nauxiliary:\n  compression: {provider: nobody}\n"),
    (
        "a provider for a task without its key",
        "model: {provider: offline}\nauxiliary:\n  compression: {provider: groq}\n",
    ),
    ("a task without an address", "model: {provider: offline}\nauxiliary:\n  mine: {provider: custom}\n"),
    ("a bad address for a task", "model: {provider: offline}\nauxiliary:\n  mine: {base_url: 'ftp://x'}\n"),
];

#[test]
fn configuration_that_is_refused() {
    let mut screens = Screens::default();
    for (situation, yaml) in REFUSED {
        let home = Home::new();
        home.config(yaml);
        screens.error(situation, &home, home.hermes(&["-z", "hello"]));
    }
    let home = Home::new();
    home.config("prompt:\n  prefill_messages_file: hello.json\n");
    home.write("hello.json", r#"[{"role": "user", "content": "hello"}]"#);
    screens.error("prefilled messages that end with the user's", &home, home.hermes(&["-z", "hello"]));
    let home = Home::new();
    home.write("config.yaml", b"model:\n  default: \xff\n");
    screens.error("a file that is not UTF-8", &home, home.hermes(&["-z", "hello"]));
    let home = Home::new();
    home.write("config.yaml/notes.txt", "");
    screens.error("a folder in place of the file", &home, home.hermes(&["config", "show"]));
    let home = Home::new();
    home.config("plugins: &mine {disabled: [audit]}\nother: *mine\n");
    screens.error("a file that cannot be edited safely", &home, home.hermes(&["plugins", "disable", "files"]));
    insta::assert_snapshot!(screens.text());
}

#[test]
fn environment_that_is_refused() {
    let mut screens = Screens::default();
    let home = Home::new();
    let hermes = || home.hermes(&["-z", "hello"]);
    let keys = hermes().env("OPENAI_API_KEY", "sk-one").env("GROQ_API_KEY", "gsk-two");
    screens.error("keys of several providers", &home, keys);
    screens.error("a key without a provider", &home, hermes().env("HERMES_API_KEY", "sk-one"));
    let provider = home.hermes(&["--provider", "openai", "-z", "hello"]);
    screens.error("a key of another provider", &home, provider.env("GROQ_API_KEY", "gsk-two"));
    screens.error("neither HERMES_HOME nor HOME", &home, hermes().env("HERMES_HOME", "").env("HOME", ""));
    home.write_workspace("notes.txt", "mine");
    let file = home.workspace().join("notes.txt");
    screens.error("a file as home folder", &home, hermes().env("HERMES_HOME", file.to_str().unwrap()));
    screens.error("a clock that is not a moment", &home, hermes().at("noon"));
    insta::assert_snapshot!(screens.text());
}

#[test]
fn configuration_that_is_warned_of() {
    let mut screens = Screens::default();
    for (situation, yaml) in [
        ("a mistyped key", "model:\n  contxt_length: 5\n"),
        ("an unknown section", "terminal:\n  backend: local\n"),
        ("a key without effect", "auxiliary:\n  compression:\n    extra_body: {a: 1}\n"),
        ("a task with a mistyped name", "auxiliary:\n  compresion: {model: small}\n"),
        ("a variable that is not set", "model:\n  base_url: http://${MODEL_HOST}/v1\n"),
    ] {
        let home = Home::new();
        home.config(yaml);
        screens.notice(situation, &home, home.hermes(&["config", "get", "context.engine"]));
    }
    let show = |home: &Home| home.hermes(&["config", "get", "context.engine"]);
    let home = Home::new();
    home.write(".env", "OPENAI_API_KEY=sk-one\nsk-secret-without-a-name\n");
    screens.notice("a line of .env without a name", &home, show(&home));
    let home = Home::new();
    home.write(".env/notes.txt", "");
    screens.notice("a folder in place of .env", &home, show(&home));

    let server = Server::answering(|_, _| Reply::text("Hello."));
    let home = Home::with(&server);
    home.set("auxiliary.compression.fallback_chain", json!([{"provider": "groq"}]));
    screens.notice("a model of a task without a key", &home, home.hermes(&["-z", "hello"]));
    home.config("");
    screens.notice("no model at all", &home, home.hermes(&["-z", "hello"]));
    insta::assert_snapshot!(screens.text());
}
