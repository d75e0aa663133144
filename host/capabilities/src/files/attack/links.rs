//! Links at the places of files that start programs or instruct agents.

use super::*;

/// A usual layout: listed files and folders are links to others.
fn linked() -> Workspace {
    let workspace = Workspace::new();
    workspace.file("docs/guide.md", "Use tabs.");
    workspace.file("env/dev", "x=1");
    workspace.file("tools/vscode/tasks.json", "{}");
    workspace.file("tools/flows/ci.yml", "on: push");
    for (target, link) in [
        ("docs/guide.md", "AGENTS.md"),
        ("AGENTS.md", "CLAUDE.md"),
        ("env/dev", ".envrc"),
        ("tools/vscode", ".vscode"),
        ("env/later", ".exrc"),
        (".vscode", "editor"),
    ] {
        symlink(target, workspace.at(link)).unwrap();
    }
    fs::create_dir(workspace.at(".github")).unwrap();
    symlink("../tools/flows", workspace.at(".github/workflows")).unwrap();
    for path in ["docs/guide.md", "env/dev", "tools/vscode/tasks.json", "tools/flows/ci.yml"] {
        workspace.read(path).unwrap();
    }
    workspace
}

#[test]
fn a_listed_name_that_is_a_link_is_judged_as_it_was_written() {
    let workspace = linked();
    let before = workspace.content();
    for (path, pattern) in [
        (".envrc", ".envrc"),
        (".vscode/tasks.json", ".vscode/**"),
        (".vscode/new/launch.json", ".vscode/**"),
        ("editor/tasks.json", ".vscode/**"),
        (".github/workflows/new.yml", ".github/workflows/**"),
        (".exrc", ".exrc"),
    ] {
        assert_eq!(concerns(workspace.write(path, "pwned")), [pattern], "{path}");
    }
    assert_eq!(concerns(workspace.write("CLAUDE.md", "pwned")), ["CLAUDE.md", "AGENTS.md"], "two links in a row");
    for path in [".vscode/tasks.json", "editor/tasks.json"] {
        assert_eq!(concerns(workspace.remove(path)), [".vscode/**"], "{path}");
        assert_eq!(concerns(workspace.rename(path, "away")), [".vscode/**"], "{path}");
    }
    assert_eq!(concerns(workspace.rename("src/main.rs", ".vscode/new.json")), [".vscode/**"]);
    assert_eq!(code(workspace.rename("src", "editor/new")), "listed");
    assert_eq!(workspace.content(), before);
}

#[test]
fn a_file_to_which_a_listed_link_leads_is_judged_as_listed() {
    let workspace = linked();
    workspace.write("later/dev", "x").unwrap();
    let before = workspace.content();
    for (path, patterns) in [
        ("docs/guide.md", &["AGENTS.md", "CLAUDE.md"][..]),
        ("env/dev", &[".envrc"]),
        ("env/later", &[".exrc"]),
        ("tools/vscode/tasks.json", &[".vscode/**"]),
        ("tools/flows/ci.yml", &[".github/workflows/**"]),
        // A folder on the way to it.
        ("docs", &["AGENTS.md", "CLAUDE.md"]),
    ] {
        let sorted = |mut found: Vec<String>| {
            found.sort();
            found
        };
        if path != "docs" {
            assert_eq!(sorted(concerns(workspace.write(path, "pwned"))), patterns, "{path}");
        }
        if workspace.at(path).exists() {
            assert_eq!(sorted(concerns(workspace.rename(path, "away"))), patterns, "{path}");
        }
    }
    assert_eq!(concerns(workspace.rename("later/dev", "env/later")), [".exrc"], "it gives the link a target");
    assert_eq!(code(workspace.rename("later", "tools/vscode/later")), "listed");
    assert_eq!(workspace.content(), before);
    for path in ["docs/other.md", "env/other", "tools/x.json"] {
        assert_eq!(concerns(workspace.write(path, "fine")), [""; 0], "{path}");
    }
}

#[test]
fn a_link_from_above_the_workspace_counts() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().canonicalize().unwrap().join("dotfiles");
    fs::create_dir(&folder).unwrap();
    symlink("dotfiles/bashrc", home.path().join(".bashrc")).unwrap();
    symlink("dotfiles/programs", home.path().join("bin")).unwrap();
    let listed = Listed::new(&[], Some(&home.path().canonicalize().unwrap())).unwrap();
    let roots = Roots::new(
        vec![Root::open("dotfiles", &folder, true, []).unwrap()],
        Guard::new(Arc::new(listed), Arc::default()),
    );
    let write = |path: &str| roots.write("dotfiles", path, b"x", None, &Agreed::to_nothing());
    assert_eq!(concerns(write("bashrc")), [".bashrc"]);
    assert_eq!(concerns(write("programs/ls")), ["~/bin/**"]);
    assert_eq!(concerns(write("notes")), [""; 0]);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
}

#[test]
fn a_workspace_that_is_reached_through_a_listed_name_is_judged_by_both() {
    let base = tempfile::tempdir().unwrap();
    fs::create_dir(base.path().join("flows")).unwrap();
    symlink("flows", base.path().join(".husky")).unwrap();
    let roots = Workspace::roots(&base.path().join(".husky"));
    assert_eq!(concerns(roots.write("workspace", "pre-commit", b"x", None, &Agreed::to_nothing())), [".husky/**"]);
}
