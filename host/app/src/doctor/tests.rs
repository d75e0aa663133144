#![allow(clippy::unwrap_used)]

use super::*;

async fn checks(home: &Path) -> Vec<Check> {
    examine_files(&Home::at(home), &ModelChoice::default(), Compiler::InProcess).await.0
}

fn outcomes(checks: &[Check], subject: &str) -> Vec<Outcome> {
    checks.iter().filter(|check| check.subject == subject).map(|check| check.outcome).collect()
}

#[tokio::test]
async fn a_new_home_has_nothing_wrong_and_is_not_created() {
    let root = tempfile::tempdir().unwrap();
    let home = root.path().join("home");
    let checks = checks(&home).await;
    for subject in ["home", "config", "store"] {
        assert_eq!(outcomes(&checks, subject), [Outcome::Ok], "{subject}: {checks:?}");
    }
    assert_eq!(code(&Home::at(&home)).outcome, Outcome::Ok);
    assert!(!home.exists());
}

#[tokio::test]
async fn nothing_in_the_home_of_another_program_is_opened() {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("config.yaml"), "_config_version: 33\n").unwrap();
    let checks = checks(root.path()).await;
    assert_eq!(outcomes(&checks, "config"), [Outcome::Fail]);
    assert!(outcomes(&checks, "store").is_empty() && outcomes(&checks, "model").is_empty());
    assert!(checks.last().unwrap().fix.to_string().contains("HERMES_HOME"));
}

#[tokio::test]
async fn a_value_in_the_home_of_hermes_agent_is_not_called_wrong() {
    let root = tempfile::tempdir().unwrap();
    // It means something there. Hermes Agent writes no application id into its database.
    std::fs::write(root.path().join("config.yaml"), "approvals: {mode: manual}\n").unwrap();
    let mut database = b"SQLite format 3\0".to_vec();
    database.resize(4_096, 0);
    // The page size, the versions of the format, the payload fractions, the number of pages, the schema format, UTF-8; then an
    // empty table of the schema.
    database[16..24].copy_from_slice(&[16, 0, 1, 1, 0, 64, 32, 32]);
    database[31] = 1;
    (database[47], database[59], database[100]) = (4, 1, 13);
    database[105..107].copy_from_slice(&[16, 0]);
    std::fs::write(root.path().join("state.db"), database).unwrap();
    let checks = checks(root.path()).await;
    let last = checks.last().unwrap();
    assert!(last.found.contains("was not created by Hermes"), "{last:?}");
    for words in ["HERMES_HOME", "Hermes Agent", "hermes import peer"] {
        assert!(last.fix.to_string().contains(words), "{last:?}");
    }
    let error = Setup::read(Home::at(root.path()), Compiler::InProcess).unwrap_err();
    assert!(matches!(error, crate::AppError::Store(_)), "{error}");
    std::fs::remove_file(root.path().join("state.db")).unwrap();
    let error = Setup::read(Home::at(root.path()), Compiler::InProcess).unwrap_err();
    assert!(error.to_string().contains("`approvals.mode`"), "{error}");
}

#[test]
fn every_failed_check_has_a_cause_and_a_remedy() {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("home"), "a file").unwrap();
    let check = folder(&Home::at(&root.path().join("home")));
    assert_eq!(check.outcome, Outcome::Fail);
    assert!(check.found.contains("is not a folder") && !check.fix.is_empty(), "{check:?}");
}

#[cfg(unix)]
#[tokio::test]
async fn keys_and_tokens_that_others_can_read_are_reported() {
    use std::os::unix::fs::PermissionsExt as _;
    let root = tempfile::tempdir().unwrap();
    for (name, text) in [(".env", "OPENAI_API_KEY=sk-0123456789abcdefghij\n"), ("auth.json", "{\"logins\": {}}")] {
        let file = root.path().join(name);
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    }
    let checks = checks(root.path()).await;
    assert_eq!(outcomes(&checks, ".env"), [Outcome::Warn]);
    assert_eq!(outcomes(&checks, "auth.json"), [Outcome::Warn]);
    assert!(!format!("{checks:?}").contains("0123456789"));
    let mode = std::fs::metadata(root.path().join("auth.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o644, "a check changes nothing");
}

#[tokio::test]
async fn sections_that_nobody_can_log_in_with_are_reported() {
    let root = tempfile::tempdir().unwrap();
    let good = "flow: device, client_id: a, token_url: 'https://id.test/token'";
    let text = format!(
        "logins:\n  good: {{{good}, device_url: 'https://id.test/device'}}\n  plain: {{{good}, device_url: \
         'http://id.test/device'}}\n  empty:\n"
    );
    std::fs::write(root.path().join("config.yaml"), text).unwrap();
    let found: Vec<String> = checks(root.path())
        .await
        .iter()
        .filter(|check| check.found.contains("logins."))
        .map(|check| check.found.clone())
        .collect();
    assert_eq!(found, ["`logins.empty.flow` is not set", "`logins.plain.device_url` does not begin with https://"]);
}

#[tokio::test]
async fn logins_that_give_no_token_are_reported_without_their_tokens() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("auth.json");
    let login = |refresh: &str, expires: u64| {
        serde_json::json!({
            "token_url": "https://login.example.com/token", "client_id": "hermes", "refresh_token": refresh,
            "access_token": "secret-access", "expires_at": expires,
        })
    };
    let logins = serde_json::json!({"logins": {
        "expired": login("", 1), "good": login("secret-refresh", u64::MAX), "incomplete": {"client_id": "hermes"},
        "renewed": login("secret-refresh", 1),
    }});
    hermes_private_files::write_atomically(&file, logins.to_string().as_bytes()).unwrap();
    std::fs::write(root.path().join("config.yaml"), "model: {auth: absent, base_url: 'http://gate/v1', default: m}\n")
        .unwrap();
    let found = checks(root.path()).await;
    let expected = [Outcome::Warn, Outcome::Warn, Outcome::Ok, Outcome::Warn, Outcome::Ok];
    assert_eq!(outcomes(&found, "auth.json"), expected, "{found:?}");
    assert!(!format!("{found:?}").contains("secret-"), "{found:?}");
    let fixes: Vec<String> =
        found.iter().filter(|check| check.subject == "auth.json").map(|check| check.fix.to_string()).collect();
    assert!(fixes[0].starts_with("log in to `absent`") && fixes[1] == "log in to `expired`", "{fixes:?}");
    hermes_private_files::write_atomically(&file, b"{\"logins\": {\"a\": secret-x}}").unwrap();
    let found = checks(root.path()).await;
    assert_eq!(outcomes(&found, "auth.json"), [Outcome::Warn]);
    let shown = format!("{found:?}");
    assert!(shown.contains("not valid JSON") && !shown.contains("secret-"), "{shown}");
}
