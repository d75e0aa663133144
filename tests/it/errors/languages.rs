//! Projects of plugins in other languages than Rust that have no usable build.

use std::fs;
use std::time::{Duration, SystemTime};

use hermes_tests::Home;

use super::Screens;

#[test]
fn mistakes_in_projects_of_other_languages() {
    let mut screens = Screens::default();
    for language in ["python", "javascript", "c", "go"] {
        let home = Home::new();
        home.hermes(&["plugins", "new", "mine", "--kind", "tools", "--lang", language]).run().success();
        for command in ["test", "install", "pack"] {
            let situation = format!("{command} of a new project in {language}");
            screens.error(&situation, &home, home.hermes(&["plugins", command, "./mine"]));
        }
        let built = home.workspace().join("mine/build/mine.wasm");
        fs::create_dir(built.parent().unwrap()).unwrap();
        fs::write(&built, "old").unwrap();
        let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 30);
        fs::File::options().write(true).open(&built).unwrap().set_modified(old).unwrap();
        for command in ["test", "install", "pack"] {
            let situation = format!("{command} of an outdated build in {language}");
            screens.error(&situation, &home, home.hermes(&["plugins", command, "./mine"]));
        }
    }
    let home = Home::new();
    fs::write(home.workspace().join("empty.wasm"), b"\0asm\x01\0\0\0").unwrap();
    for (situation, arguments) in [
        ("bindings without a contract", &["bindings", "c", "there", "--world", "tools-plugin"][..]),
        (
            "a component of a module that is not there",
            &["component", "no.wasm", "-o", "a.wasm", "--world", "tools-plugin"],
        ),
    ] {
        screens.error(situation, &home, home.hermes(&[&["plugins"], arguments].concat()));
    }
    home.hermes(&["plugins", "wit", "wit"]).run().success();
    for (situation, arguments) in [
        ("bindings of an unknown world", &["bindings", "c", "there", "--world", "kitchen-plugin"][..]),
        (
            "a component of a module without exports",
            &["component", "empty.wasm", "-o", "a.wasm", "--world", "tools-plugin"],
        ),
    ] {
        screens.error(situation, &home, home.hermes(&[&["plugins"], arguments].concat()));
    }
    insta::assert_snapshot!(screens.text());
}
