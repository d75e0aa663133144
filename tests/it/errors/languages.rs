//! Projects of plugins in other languages than Rust that have no usable build.

use std::fs;
use std::time::{Duration, SystemTime};

use hermes_tests::Home;

use super::Screens;

#[test]
fn a_project_without_a_usable_build_names_the_command_of_its_language() {
    let mut screens = Screens::default();
    for language in ["python", "javascript"] {
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
    insta::assert_snapshot!(screens.text());
}
