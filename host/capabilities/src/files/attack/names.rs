//! Names that some file system takes for a listed one, or for `.git`: by case, composition, ligatures and characters that are not
//! displayed.

use super::*;

#[test]
fn other_spellings_of_a_name_are_recognised() {
    let workspace = Workspace::new();
    let before = workspace.content();
    for (path, pattern) in [
        (".v\u{17f}code/tasks.json", ".vscode/**"),
        (".\u{17f}sh/authorized_keys", ".ssh/**"),
        (".\u{df}h/authorized_keys", ".ssh/**"),
        (".\u{1e9e}H/authorized_keys", ".ssh/**"),
        (".ba\u{17f}hrc", ".bashrc"),
        ("AGENT\u{17f}.md", "AGENTS.md"),
        (".con\u{fb01}g/autostart/x.desktop", ".config/autostart/**"),
        ("\u{ff21}\u{ff27}\u{ff25}\u{ff2e}\u{ff34}\u{ff33}.md", "AGENTS.md"),
        (".env\u{ad}rc", ".envrc"),
        (".env\u{e0101}rc", ".envrc"),
        (".envrc\u{fe0f}", ".envrc"),
        (".pro\u{fb01}le", ".profile"),
    ] {
        assert_eq!(concerns(workspace.write(path, "pwned")), [pattern], "{path}");
    }
    for name in [
        ".gi\u{ad}t",
        ".git\u{200b}",
        ".g\u{2060}it",
        ".git\u{fe0f}",
        ".g\u{34f}it",
        ".git\u{180b}",
        "\u{ff0e}g\u{e0100}it",
    ] {
        assert_eq!(code(workspace.write(&format!("{name}/config"), "pwned")), "git", "{name:?}");
        assert_eq!(code(workspace.rename("src", name)), "git", "{name:?}");
    }
    assert_eq!(code(workspace.write("a/HEAD", "x")), "ok");
    assert_eq!(code(workspace.write("a/ob\u{200b}jects/x", "x")), "ok");
    assert_eq!(code(workspace.write("a/refs/x", "x")), "ok", "this file system has no `objects` here");
    assert_eq!(code(workspace.write("a/objects/x", "x")), "git");
    assert_eq!(before.len() + 6, workspace.content().len());
}

#[test]
fn a_pattern_of_the_configuration_is_recognised_in_other_spellings() {
    let workspace = Workspace::new();
    let listed =
        Listed::new(&["\u{dc}bung/".to_owned(), "stra\u{df}e.?".to_owned(), "caf\u{e9}*".to_owned()], None).unwrap();
    let root = Root::open("workspace", workspace.base.path(), true, []).unwrap();
    let roots = Roots::new(vec![root], Guard::new(Arc::new(listed), Arc::default()));
    let write = |path: &str| roots.write("workspace", path, b"x", None, &Agreed::to_nothing());
    assert_eq!(concerns(write("u\u{308}BUNG/a")), ["\u{dc}bung/"]);
    assert_eq!(concerns(write("STRASSE.A")), ["stra\u{df}e.?"]);
    assert_eq!(concerns(write("cafe\u{301}\u{e9}")), ["caf\u{e9}*"]);
    assert_eq!(concerns(write("ubung/a")), [""; 0]);
}

#[test]
fn a_closed_place_that_does_not_exist_is_recognised_in_other_spellings() {
    let base = tempfile::tempdir().unwrap();
    let root = Root::open("workspace", base.path(), true, [base.path().join("Secrets")]).unwrap();
    let roots = Roots::new(vec![root], Guard::default());
    for path in ["secrets", "\u{17f}ecret\u{17f}/key", "Se\u{ad}crets/key", "SECRETS."] {
        let written = roots.write("workspace", path, b"x", None, &Agreed::to_all());
        assert_eq!(code(written), "closed", "{path}");
    }
    assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
}
