//! Attacks on signed plugins: changes after the signature, missing, old and foreign signatures, and older versions.

use std::fs;
use std::path::Path;

use hermes_tests::{Home, staged_guest};
use serde_json::Value;

use crate::errors::Screens;

/// Secret keys without a password, made for these tests.
const PUBLISHER: &str = "untrusted comment: key of a test\n\
    RWQAAEIyAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAyeYUZXVysppPA6Bgt+sDKXLcsyfyyYmxTV5zw1s9\
    WSim+HXKOcFZuoevjRbtJkM6te4wcl5PDRkoThnLaoi+nBh2bJ5maWzZcGmb7xsDBGZcBdDcvyh/9K1cPKvJVwE6D8+cvgqBx6E=\n";
const STRANGER: &str = "untrusted comment: key of a test\n\
    RWQAAEIyAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAngvjxrSm3+BtBywgGD8WTJdMrk0HosNTj99CDGPh\
    EvKX9LlccpJBmrfHS9+2stgHNIuZDRgI4P+WWa3BRVNTofUf5gFC3g0jdv/hfA+ZFopC0AQzT3uUvL5AQlrH1DAfPjlDERw5gPw=\n";
const PUBLIC: &str = "RWTJ5hRldXKymoevjRbtJkM6te4wcl5PDRkoThnLaoi+nBh2bJ5maWzZ";

/// A home with both keys in its workspace.
fn home() -> Home {
    let home = Home::new();
    home.config("{}\n");
    home.write_workspace("publisher.key", PUBLISHER);
    home.write_workspace("stranger.key", STRANGER);
    home
}

/// Writes the plugin `keeper` into the workspace, without a signature.
fn write(home: &Home, version: &str, more: &str) {
    let (manifest, component) = staged_guest("keeper");
    let lines: Vec<String> = manifest
        .lines()
        .map(|line| if line.starts_with("version:") { format!("version: {version}") } else { line.to_owned() })
        .collect();
    let _ = fs::remove_dir_all(home.workspace().join("keeper"));
    home.write_workspace("keeper/plugin.yaml", format!("{}\n{more}", lines.join("\n")));
    home.write_workspace("keeper/keeper.wasm", component);
    home.write_workspace("keeper/README.md", "# Keeper\n");
}

fn sign(home: &Home, key: &str) {
    home.hermes(&["plugins", "sign", "keeper", "--key", key]).run().success();
}

/// The version and the signer of the installed plugin, whose files are as installed.
fn installed(home: &Home) -> (String, Value) {
    let lock: Value = serde_json::from_str(&home.read("plugins.lock")).unwrap();
    home.hermes(&["plugins", "verify"]).run().success();
    let entry = &lock["plugins"]["keeper"];
    (entry["version"].as_str().unwrap().to_owned(), entry["signer"].clone())
}

fn signature(content: &[u8], key: &str) -> String {
    let key = minisign::SecretKeyBox::from_string(key).unwrap().into_unencrypted_secret_key().unwrap();
    minisign::sign(None, &key, content, None, None).unwrap().into_string()
}

#[test]
fn updates_of_a_signed_plugin() {
    let mut screens = Screens::default();
    let home = home();
    write(&home, "1.0.0", "");
    let signing = ["plugins", "sign", "keeper", "--key", "publisher.key"];
    screens.success("a plugin is signed", &home, home.hermes(&signing));
    screens.success("and installed", &home, home.hermes(&["plugins", "install", "./keeper", "--yes"]));
    let update = ["plugins", "update", "keeper", "--yes"];
    let unchanged = ("1.0.0".to_owned(), Value::from(PUBLIC));
    assert_eq!(installed(&home), unchanged);

    let manifest = home.workspace().join("keeper/plugin.yaml");
    let signed = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, format!("{signed}\nlimits: {{memory: 512MiB}}\n")).unwrap();
    screens.error("a manifest that was changed afterwards", &home, home.hermes(&update));
    assert_eq!(installed(&home), unchanged);

    fs::write(&manifest, signed.replace("version: 1.0.0", "version: 1.0.1")).unwrap();
    home.write_workspace("keeper/README.md", "# Another keeper\n");
    screens.error("another version and another file", &home, home.hermes(&update));

    write(&home, "1.1.0", "");
    screens.error("a version without a signature", &home, home.hermes(&update));
    let accepted = [&update[..], &["--accept-key"]].concat();
    screens.error("the same with --accept-key", &home, home.hermes(&accepted));

    sign(&home, "stranger.key");
    screens.error("a version by another key", &home, home.hermes(&["plugins", "update", "keeper"]));
    assert_eq!(installed(&home), unchanged);

    write(&home, "1.1.0", "");
    let code = staged_guest("keeper").1;
    home.write_workspace("keeper/keeper.wasm.minisig", signature(&code, PUBLISHER));
    home.write_workspace("keeper/minisign.pub", format!("untrusted comment: x\n{PUBLIC}\n"));
    screens.error("a signature of the component alone", &home, home.hermes(&update));

    write(&home, "0.9.0", "");
    sign(&home, "publisher.key");
    screens.error("an older version by the same key", &home, home.hermes(&update));
    assert_eq!(installed(&home), unchanged);

    write(&home, "1.1.0", "");
    sign(&home, "publisher.key");
    screens.success("a newer version by the same key", &home, home.hermes(&update));
    screens.success("a return to the version before", &home, home.hermes(&["plugins", "rollback", "keeper"]));
    assert_eq!(installed(&home), unchanged);
    screens.success("and the update again", &home, home.hermes(&update));
    insta::assert_snapshot!(screens.text());
}

#[test]
fn a_rollback_to_an_unsigned_version_does_not_unpin_the_key() {
    let home = home();
    write(&home, "1.0.0", "");
    home.hermes(&["plugins", "install", "./keeper", "--yes"]).run().success();
    write(&home, "1.1.0", "");
    sign(&home, "publisher.key");
    home.hermes(&["plugins", "update", "keeper", "--yes"]).run().success();
    home.hermes(&["plugins", "rollback", "keeper"]).run().success();
    assert_eq!(installed(&home), ("1.0.0".to_owned(), Value::Null));
    write(&home, "1.2.0", "");
    home.hermes(&["plugins", "update", "keeper", "--yes"]).run().refused().says(&["install.key", "not signed"]);
    sign(&home, "stranger.key");
    home.hermes(&["plugins", "update", "keeper", "--yes"]).run().refused().says(&["--accept-key"]);
    let _ = fs::remove_file(home.workspace().join("keeper/minisign.pub"));
    sign(&home, "publisher.key");
    home.hermes(&["plugins", "update", "keeper", "--yes"]).run().success();
    assert_eq!(installed(&home), ("1.2.0".to_owned(), PUBLIC.into()));
}

#[test]
fn every_signature_beside_an_archive_must_be_valid() {
    let home = home();
    write(&home, "1.0.0", "");
    sign(&home, "publisher.key");
    let packed = home.hermes(&["plugins", "pack", "keeper", "--out", "keeper.tar.gz"]).run().success();
    assert!(packed.stdout.contains(&format!("signed with key {PUBLIC}")), "{packed}");
    let archive = fs::read(home.workspace().join("keeper.tar.gz")).unwrap();
    let install = || home.hermes(&["plugins", "install", "./keeper.tar.gz", "--yes"]);
    for bad in ["garbage".to_owned(), signature(b"other", PUBLISHER), signature(&archive, STRANGER)] {
        home.write_workspace("keeper.tar.gz.minisig", bad);
        install().run().refused().says(&["install.signature", "that of the archive"]);
    }
    home.write_workspace("keeper.tar.gz.minisig", signature(&archive, PUBLISHER));
    install().run().success().says(&["signed by key", PUBLIC]);
    assert_eq!(installed(&home), ("1.0.0".to_owned(), PUBLIC.into()));
}

#[test]
fn a_good_signature_of_the_archive_does_not_sign_a_manifest() {
    let home = home();
    write(&home, "1.0.0", &format!("publisher_key: {PUBLIC}\n"));
    // `pack` refuses a plugin that names a key and is not signed, so the archive is made by hand.
    let made = std::process::Command::new("tar")
        .args(["-czf", "keeper.tar.gz", "keeper"])
        .current_dir(home.workspace())
        .status();
    assert!(made.is_ok_and(|status| status.success()));
    let archive = fs::read(home.workspace().join("keeper.tar.gz")).unwrap();
    home.write_workspace("keeper.tar.gz.minisig", signature(&archive, PUBLISHER));
    let refused = home.hermes(&["plugins", "install", "./keeper.tar.gz", "--yes"]).run().refused();
    refused.says(&["install.signature", "hermes plugins sign"]);
    home.hermes(&["plugins", "pack", "keeper"]).run().refused().says(&["is missing"]);
}

#[test]
fn a_signature_works_in_a_folder_an_archive_and_a_repository() {
    let home = home();
    write(&home, "1.0.0", "");
    sign(&home, "publisher.key");
    home.hermes(&["plugins", "pack", "keeper", "--out", "keeper.tar.gz"]).run().success();
    let git = |arguments: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]);
        let output = command.args(arguments).current_dir(home.workspace().join("keeper")).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    git(&["init", "--quiet", "--initial-branch=main"]);
    git(&["add", "-A"]);
    git(&["commit", "--quiet", "-m", "1.0.0"]);
    let repository = format!("git+file://{}", home.workspace().join("keeper").display());
    let mut digests = Vec::new();
    for source in ["./keeper", "./keeper.tar.gz", &repository] {
        let other = Home::new();
        let install = ["plugins", "install", source, "--yes", "--key", PUBLIC];
        other.hermes(&install).current_dir(&home.workspace()).run().success().says(&["signed by key"]);
        assert_eq!(installed(&other), ("1.0.0".to_owned(), PUBLIC.into()), "{source}");
        let lock: Value = serde_json::from_str(&other.read("plugins.lock")).unwrap();
        digests.push(lock["plugins"]["keeper"]["digest"].clone());
    }
    digests.dedup();
    assert_eq!(digests.len(), 1, "{digests:?}");
}

#[test]
fn a_lock_of_a_stranger_does_not_vouch_for_a_signature() {
    let home = home();
    write(&home, "1.0.0", "");
    home.hermes(&["plugins", "install", "./keeper", "--yes"]).run().success();
    let mut lock: Value = serde_json::from_str(&home.read("plugins.lock")).unwrap();
    lock["plugins"]["keeper"]["signer"] = PUBLIC.into();
    for with_old_signature in [false, true] {
        let other = Home::new();
        other.config("{}\n");
        if with_old_signature {
            // A genuine signature of the component, beside a manifest that nobody signed.
            let code = staged_guest("keeper").1;
            home.write_workspace("keeper/keeper.wasm.minisig", signature(&code, PUBLISHER));
            home.hermes(&["plugins", "remove", "keeper", "--yes"]).run().success();
        }
        other.write("plugins.lock", lock.to_string());
        let refused = other.hermes(&["plugins", "install", "--locked", "--yes"]).run().refused();
        assert!(refused.stderr.contains("not signed") || refused.stderr.contains("plugins sign"), "{refused}");
        assert!(!other.path().join("plugins/keeper").exists());
    }
}

#[test]
fn a_key_with_a_password_signs_and_a_wrong_one_changes_nothing() {
    let home = home();
    write(&home, "1.0.0", "");
    let pair = minisign::KeyPair::generate_encrypted_keypair(Some("tea time".to_owned())).unwrap();
    home.write_workspace("own.key", pair.sk.to_box(None).unwrap().into_string());
    let sign = |password: &str| home.hermes(&["plugins", "sign", "keeper", "--key", "own.key"]).stdin(password);
    let statement = home.workspace().join("keeper/plugin.statement");
    for (password, why) in [("coffee\n", "the password is wrong"), ("", "standard input is empty")] {
        sign(password).run().refused().says(&[why]);
        assert!(!statement.exists());
    }
    sign("tea time\n").run().success();
    let verified = home.hermes(&["plugins", "install", "./keeper", "--yes"]).run().success();
    assert!(verified.stderr.contains(&pair.pk.to_base64()), "{verified}");
    let missing = home.hermes(&["plugins", "sign", "keeper", "--key", "nothing.key"]).run();
    missing.refused().says(&["nothing.key cannot be read"]);
}

#[test]
fn a_statement_can_be_signed_elsewhere() {
    let home = home();
    write(&home, "1.0.0", &format!("publisher_key: {PUBLIC}\n"));
    let stated = home.hermes(&["plugins", "sign", "keeper", "--statement-only", "--json"]).run().success();
    let stated: Value = serde_json::from_str(&stated.stdout).unwrap();
    assert_eq!(stated["covers"], serde_json::json!(["README.md", "keeper.wasm", "plugin.yaml"]));
    let statement = Path::new("keeper/plugin.statement");
    let text = fs::read(home.workspace().join(statement)).unwrap();
    let install = || home.hermes(&["plugins", "install", "./keeper", "--yes"]).run();
    install().refused().says(&["plugin.statement.minisig is missing"]);
    home.write_workspace("keeper/plugin.statement.minisig", signature(&text, PUBLISHER));
    install().success().says(&[PUBLIC]);
}
