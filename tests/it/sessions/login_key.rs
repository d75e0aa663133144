//! `hermes login openrouter`: a browser on this machine, an API key in place of tokens, and no section below `logins`.

use hermes_tests::{Home, Output, Reply, Running, Server, dead_endpoint};
use serde_json::{Value, json};
use url::Url;

use crate::fixtures::identity::{Identity, ask, fields, open};
use crate::fixtures::service::Answer;

const KEY: &str = "sk-or-key-secret";

/// A home whose login `openrouter` leads to a server of this machine.
fn home(identity: &Identity) -> Home {
    let home = Home::new();
    home.set("logins.openrouter", identity.openrouter());
    home
}

/// The address that a login asks the user to open.
fn address(login: &Running) -> String {
    login.wait_for_stdout("waiting for you");
    let shown = login.stdout();
    shown.lines().find(|line| line.trim_start().starts_with("http://")).unwrap().trim().to_owned()
}

fn field(address: &str, name: &str) -> String {
    fields(Url::parse(address).unwrap().query().unwrap())[name].clone()
}

/// Logs in to the end.
fn log_in(home: &Home) -> Output {
    let login = home.hermes(&["login", "openrouter"]).spawn();
    open(&open(&address(&login)).location.unwrap());
    login.wait()
}

#[track_caller]
fn assert_nothing_stored(home: &Home, output: &Output) {
    assert!(!home.path().join("auth.json").exists(), "{}", home.read("auth.json"));
    assert!(!format!("{output}").contains("-secret"), "{output}");
}

/// All text files of a home but the one for secrets.
fn texts(home: &Home) -> String {
    let mut folders = vec![home.path().to_owned()];
    let mut all = String::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            match entry.file_type().unwrap() {
                kind if kind.is_dir() => folders.push(entry.path()),
                kind if kind.is_file() && entry.file_name() != "auth.json" => {
                    all.push_str(&String::from_utf8_lossy(&std::fs::read(entry.path()).unwrap()));
                }
                _ => {}
            }
        }
    }
    all
}

#[test]
fn a_browser_gives_a_key_that_the_session_the_doctor_and_the_list_of_models_use() {
    let models = json!({"object": "list", "data": [{"id": "vendor/small"}]});
    let (identity, server) = (Identity::start(), Server::answering(|_, _| Reply::text("OK")).with_models(models));
    let home = Home::with(&server);
    home.set("logins.openrouter", identity.openrouter());
    home.set("model.api_key", Value::Null);
    let login = home.hermes(&["login", "openrouter"]).spawn();
    let page = address(&login);
    let back = Url::parse(&field(&page, "callback_url")).unwrap();
    assert_eq!((back.scheme(), back.host_str()), ("http", Some("localhost")));
    let path: Vec<&str> = back.path_segments().unwrap().collect();
    assert!(path[0] == "callback" && path[1].len() == 43, "a path that nobody can guess: {back}");
    let answer = open(&open(&page).location.unwrap());
    assert!(answer.status == 200 && answer.text.contains("return to the terminal"), "{}", answer.text);
    let output = login.wait().success();
    let output = output.says(&["hermes setup openrouter --login"]);
    assert!(output.stdout.contains("logged in to `openrouter`; its key does not expire"), "{output}");
    let sent = identity.service().asked().into_iter().find(|asked| asked.path == "/auth/keys").unwrap();
    assert_eq!(sent.header("content-type"), Some("application/json"));
    let names: Vec<&String> = sent.body.as_object().unwrap().keys().collect();
    assert_eq!(names, ["code", "code_verifier", "code_challenge_method"]);
    for hidden in ["-secret", sent.body["code_verifier"].as_str().unwrap()] {
        assert!(!format!("{output}").contains(hidden), "{hidden} in {output}");
    }
    let stored: Value = serde_json::from_str(&home.read("auth.json")).unwrap();
    assert_eq!(stored["logins"]["openrouter"]["access_token"], KEY);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(home.path().join("auth.json")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    home.set("model.auth", json!("openrouter"));
    assert_eq!(home.hermes(&["-z", "hello"]).run().success().stdout, "OK\n");
    assert_eq!(server.last_turn().header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    let doctor = home.hermes(&["doctor"]).run().success();
    for found in ["login `openrouter`", "the login `openrouter`: it does not expire by itself", "answered \"OK\""] {
        assert!(doctor.stdout.contains(found), "{found} in {doctor}");
    }
    let models = home.hermes(&["model", "list"]).run().success();
    let listed = home.hermes(&["login", "--list"]).run().success();
    assert!(models.stdout.contains("vendor/small"), "{models}");
    assert!(listed.stdout.contains("openrouter") && listed.stdout.contains("does not expire"), "{listed}");
    let said = format!("{doctor}{models}{listed}{}", texts(&home));
    for secret in [KEY, "code-secret"] {
        assert!(!said.contains(secret), "{secret} is printed or logged");
    }
}

#[test]
fn the_login_is_built_in() {
    let home = Home::new();
    let listed = home.hermes(&["login", "--list"]).run().success();
    assert!(listed.stdout.contains("openrouter  key   not logged in"), "{listed}");
    let login = home.hermes(&["login", "openrouter"]).spawn();
    login.wait_for_stdout("waiting for you");
    let shown = login.stdout();
    let page = shown.lines().find(|line| line.trim_start().starts_with("https://")).unwrap().trim();
    let page = Url::parse(page).unwrap();
    assert_eq!((page.host_str(), page.path()), (Some("openrouter.ai"), "/auth"));
    let fields = fields(page.query().unwrap());
    let names: Vec<&String> = fields.keys().collect();
    assert_eq!(names, ["callback_url", "code_challenge", "code_challenge_method"]);
    login.interrupt();
    login.wait().exits(130);
    home.hermes(&["login", "openruter"]).run().exits(3).says(&["openrouter"]);
}

#[test]
fn requests_of_strangers_neither_end_nor_disturb_a_login() {
    let identity = Identity::start();
    let home = home(&identity);
    let login = home.hermes(&["login", "openrouter"]).spawn();
    let back = open(&address(&login)).location.unwrap();
    let url = Url::parse(&back).unwrap();
    let (host, path) = (format!("localhost:{}", url.port().unwrap()), url.path());
    let statuses: Vec<u16> = [
        // No path of the login, a part of it, and another one.
        format!("GET /callback?code=evil HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        format!("GET {}?code=evil HTTP/1.1\r\nHost: {host}\r\n\r\n", &path[..path.len() - 1]),
        format!("GET /callback/{}?code=evil HTTP/1.1\r\nHost: {host}\r\n\r\n", "x".repeat(43)),
        format!("POST {path}?code=evil HTTP/1.1\r\nHost: {host}\r\ncontent-length: 0\r\n\r\n"),
        format!("GET {path}?code=evil HTTP/1.1\r\nHost: evil.test\r\n\r\n"),
        format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"),
    ]
    .iter()
    .map(|request| ask(&host, request).status)
    .collect();
    assert_eq!(statuses, [404, 404, 404, 405, 421, 400]);
    let redeemed = || identity.service().asked().iter().filter(|asked| asked.path == "/auth/keys").count();
    assert_eq!(redeemed(), 0, "no code of a stranger is redeemed");
    assert_eq!(open(&back).status, 200);
    login.wait().success();
    assert_eq!(redeemed(), 1);
}

#[test]
fn a_code_that_was_used_or_belongs_to_another_login_gives_no_key() {
    let identity = Identity::start();
    let home = home(&identity);
    // Somebody else's login, begun at the same provider, ends in this terminal.
    let login = home.hermes(&["login", "openrouter"]).spawn();
    let other = open(&address(&login).replace("code_challenge=", "code_challenge=x")).location.unwrap();
    assert_eq!(open(&other).status, 200);
    let output = login.wait().exits(4);
    let output =
        output.says(&["[login.refused]", "Invalid code or code_verifier (status 403)", "hermes login openrouter"]);
    assert_nothing_stored(&home, &output);

    // A code that this server has already taken.
    let login = home.hermes(&["login", "openrouter"]).spawn();
    let back = address(&login);
    let back = open(&back).location.unwrap();
    identity.answer_token_with(Answer::Json(403, json!({"error": {"message": "code-secret was used already"}})));
    open(&back);
    let output = login.wait().exits(4);
    let output = output.says(&["[login.refused]", "was used already"]);
    assert_nothing_stored(&home, &output);
}

#[test]
fn a_login_that_is_denied_in_the_browser_says_so() {
    let identity = Identity::start();
    let home = home(&identity);
    identity.refuse_with("access_denied");
    let login = home.hermes(&["login", "openrouter"]).spawn();
    assert!(open(&open(&address(&login)).location.unwrap()).text.contains("was not granted"));
    let output = login.wait().exits(4);
    let output = output.says(&["[login.denied]", "was denied at 127.0.0.1", "hermes login openrouter"]);
    assert_nothing_stored(&home, &output);
}

#[test]
fn a_server_that_gives_no_key_is_named() {
    let cases = [
        (Answer::Json(200, json!({"user_id": "user_1"})), "has no key"),
        (Answer::Raw(200, b"<html>hello</html>".to_vec()), "has no key"),
        (Answer::Json(200, json!({"key": "sk\r\nx-secret: 1"})), "no header can carry"),
        (Answer::Raw(502, b"<html>bad gateway</html>".to_vec()), "status 502"),
        (Answer::Moved("http://127.0.0.1:1/auth/keys".to_owned()), "does not follow"),
        (Answer::Raw(200, vec![b' '; 10 << 20]), "has more than 64 KiB"),
        (Answer::Broken, "did not answer"),
    ];
    for (answer, why) in cases {
        let identity = Identity::start();
        let home = home(&identity);
        identity.answer_token_with(answer);
        let output = log_in(&home).exits(4);
        let output = output.says(&["[login.server]", why, "try again later"]);
        assert_nothing_stored(&home, &output);
    }
    let identity = Identity::start();
    let home = home(&identity);
    home.set("logins.openrouter.token_url", json!(dead_endpoint()));
    let output = log_in(&home).exits(4);
    let output = output.says(&["[login.server]", "did not answer"]);
    assert_nothing_stored(&home, &output);
}

#[test]
fn a_logout_says_that_the_key_stays_valid_and_where_to_delete_it() {
    let identity = Identity::start();
    let home = home(&identity);
    log_in(&home).success();
    let output = home.hermes(&["logout", "openrouter"]).run().success();
    assert!(output.stdout.contains("stays valid at 127.0.0.1") && !output.stdout.contains("https://"), "{output}");
    assert!(!home.read("auth.json").contains(KEY), "{}", home.read("auth.json"));
    let login =
        json!({"token_url": "https://openrouter.ai/api/v1/auth/keys", "client_id": "hermes", "access_token": KEY});
    home.write("auth.json", json!({"logins": {"openrouter": login}}).to_string());
    let output = home.hermes(&["logout", "openrouter"]).run().success();
    let page = "stays valid at openrouter.ai until you delete it there: https://openrouter.ai/settings/keys";
    assert!(output.stdout.contains(page) && !format!("{output}").contains(KEY), "{output}");
    home.hermes(&["logout", "openrouter"]).run().exits(1).says(&["no login `openrouter`"]);
}

#[test]
fn a_setup_with_a_login_needs_no_key() {
    let identity = Identity::start();
    let home = home(&identity);
    let setup = home.hermes(&["setup", "openrouter", "--login", "--no-test"]).spawn();
    open(&open(&address(&setup)).location.unwrap());
    let output = setup.wait().success();
    assert!(!format!("{output}").contains(KEY), "{output}");
    let config = home.read("config.yaml");
    assert!(config.contains("auth: openrouter") && config.contains("provider: openrouter"), "{config}");
    let doctor = home.hermes(&["doctor", "--no-request"]).run();
    assert!(doctor.stdout.contains("openrouter/auto of openrouter"), "{doctor}");
    assert!(doctor.stdout.contains("login `openrouter`"), "{doctor}");
    // The login exists: nothing is asked again. A key replaces it.
    home.hermes(&["setup", "openrouter", "--login", "--no-test"]).run().success().says(&["using the login"]);
    let keyed = home.hermes(&["setup", "openrouter", "--key", "--no-test"]).stdin("sk-or-typed\n").run().success();
    keyed.says(&["model.auth"]);
    assert!(!home.read("config.yaml").contains("auth:"), "{}", home.read("config.yaml"));
    home.hermes(&["setup", "openai", "--login"]).run().refused().exits(2).says(&["openrouter", "--key"]);
}

#[test]
fn a_setup_on_a_terminal_offers_the_login() {
    let identity = Identity::start();
    let home = home(&identity);
    let arguments = ["setup", "openrouter", "--model", "vendor/small", "--no-test"];
    let mut terminal = home.hermes(&arguments).at_terminal();
    terminal.wait_for("Enter logs in with a browser instead]:", 1);
    terminal.press("\r");
    terminal.wait_for("waiting for you", 1);
    let shown = terminal.shown();
    let page = shown.split("http://").nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap();
    open(&open(&format!("http://{page}")).location.unwrap());
    terminal.wait();
    assert!(home.read("config.yaml").contains("auth: openrouter"), "{}", home.read("config.yaml"));
    assert!(!terminal.shown().contains(KEY));
}
