use hermes_tests::Home;

use super::Screens;

#[test]
fn command_line() {
    let home = Home::new();
    let mut screens = Screens::default();
    for (situation, arguments) in [
        ("an unknown option", &["--no-such-option"][..]),
        ("a mistyped option", &["--contine"]),
        ("a mistyped command", &["sesions", "list"]),
        ("an unknown command", &["dance"]),
        ("a missing argument", &["sessions", "show"]),
        ("neither sessions nor --all", &["sessions", "export"]),
        ("an option without its value", &["--model"]),
        ("a value that is not a number", &["plugins", "logs", "files", "--lines", "many"]),
        ("a value that is not one of the choices", &["sessions", "export", "--all", "--format", "xml"]),
        ("a day that does not exist", &["sessions", "prune", "--older-than", "1", "--started-after", "2026-02-31"]),
        ("two options that exclude each other", &["--resume", "a", "--continue"]),
        ("an option without the option that it needs", &["--branch"]),
        ("an image without a message", &["--image", "chart.png"]),
        ("an option that the command does not use", &["--model", "other", "plugins", "list"]),
        ("a message before a command", &["-z", "hello", "chat"]),
        ("an empty message", &["-z", ""]),
        ("a key that does not exist", &["config", "get", "modle.default"]),
    ] {
        screens.error(situation, &home, home.hermes(arguments));
    }
    assert!(!home.path().exists(), "a command that was refused made a home");
    insta::assert_snapshot!(screens.text());
}
