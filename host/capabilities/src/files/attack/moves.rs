//! Moves and parallel calls: content that nobody has read leaves its place, parts of a folder of git appear at the same time, and
//! a folder moves while a file is written to it.

use std::sync::Barrier;
use std::thread;

use super::*;

#[test]
fn a_file_that_nobody_has_read_does_not_leave_its_place() {
    let workspace = Workspace::new();
    workspace.file("notes", "months of work");
    workspace.file("box/deep/one", "precious");
    workspace.file("box/deep/two", "precious");
    workspace.file("void/empty", "");
    let before = workspace.content();
    for (path, to) in [("notes", "aside"), ("box", "aside"), ("box/deep", "aside"), ("box/deep/one", "new/folder/one")]
    {
        assert_eq!(concerns(workspace.rename(path, to)), ["unread"], "{path}");
    }
    assert_eq!(workspace.content(), before);
    // The question names the file, not only the folder.
    let Err(FilesError::Approval { change, .. }) = workspace.rename("box", "aside") else { panic!("it asks") };
    let [Concern::Unread { path, .. }] = &change.concerns[..] else { panic!("{change:?}") };
    assert!(path.ends_with("box/deep/one") || path.ends_with("box/deep/two"), "{path:?}");

    for path in ["notes", "box/deep/one", "box/deep/two"] {
        workspace.read(path).unwrap();
    }
    for (path, to) in [("notes", "aside"), ("box", "crate"), ("void", "nothing")] {
        assert_eq!(code(workspace.rename(path, to)), "ok", "{path}");
    }
    assert_eq!(code(workspace.write("notes", "new")), "ok");
    assert_eq!(code(workspace.rename("notes", "own")), "ok", "what the session wrote is known");
}

#[test]
fn one_approval_moves_a_folder_of_unread_files() {
    let workspace = Workspace::new();
    for name in ["a", "b", "c", "d"] {
        workspace.file(&format!("box/{name}"), "precious");
    }
    let Err(FilesError::Approval { change, .. }) = workspace.rename("box", "crate") else { panic!("it asks") };
    let mut agreed = Agreed::to_nothing();
    agreed.add(&change);
    workspace.roots.rename("workspace", "box", "crate", &agreed).unwrap();
    assert!(workspace.at("crate/d").exists() && !workspace.at("box").exists());
}

#[test]
fn parallel_calls_make_no_folder_of_git() {
    let workspace = Workspace::new();
    for round in 0..200 {
        let parts = ["HEAD", "objects/x", "refs/x", "objects/y", "refs/y"];
        let start = Barrier::new(parts.len());
        let (workspace, start) = (&workspace, &start);
        thread::scope(|scope| {
            for part in parts {
                scope.spawn(move || {
                    start.wait();
                    let _ = workspace.write(&format!("d{round}/{part}"), "");
                });
            }
        });
        let there = ["HEAD", "objects", "refs"].map(|part| workspace.at(&format!("d{round}/{part}")).exists());
        assert_ne!(there, [true; 3], "d{round} is a folder of git");
        assert_eq!(there.iter().filter(|there| **there).count(), 2, "the first two parts are allowed");
    }
}

#[test]
fn a_file_is_not_carried_to_a_listed_place_while_it_is_written() {
    let workspace = Workspace::new();
    for round in 0..100 {
        let (folder, listed) = (format!("x{round}"), format!("p{round}/.vscode"));
        fs::create_dir(workspace.at(&folder)).unwrap();
        fs::create_dir(workspace.at(&format!("p{round}"))).unwrap();
        let start = Barrier::new(2);
        thread::scope(|scope| {
            scope.spawn(|| {
                start.wait();
                let _ = workspace.write(&format!("{folder}/tasks.json"), "pwned");
            });
            start.wait();
            let _ = workspace.rename(&folder, &listed);
        });
        assert!(!workspace.at(&listed).join("tasks.json").exists(), "round {round}");
    }
}

#[test]
fn a_move_to_a_listed_place_is_approved_with_its_content() {
    let workspace = Workspace::new();
    workspace.write("x.yml", "harmless: true").unwrap();
    let question = || match workspace.rename("x.yml", ".envrc") {
        Err(FilesError::Approval { change, .. }) => change,
        other => panic!("{other:?}"),
    };
    let change = question();
    let Deed::Rename { to, content } = &change.deed else { panic!("{change:?}") };
    assert!(to.ends_with(".envrc") && content.as_deref() == Some(b"harmless: true"), "{change:?}");
    let mut agreed = Agreed::to_nothing();
    agreed.add(&change);
    // The file changes while the question waits.
    workspace.write("x.yml", "touch PWNED").unwrap();
    let rename = || workspace.roots.rename("workspace", "x.yml", ".envrc", &agreed);
    assert_eq!(concerns(rename()), [".envrc"]);
    workspace.write("x.yml", "harmless: true").unwrap();
    assert_eq!(code(rename()), "ok");

    // From one listed place to another of the same pattern nothing new appears.
    workspace.file("one/AGENTS.md", "Be kind.");
    workspace.read("one/AGENTS.md").unwrap();
    let Err(FilesError::Approval { change, .. }) = workspace.rename("one", "two") else { panic!("it asks") };
    assert!(matches!(change.deed, Deed::Rename { content: None, .. }), "{change:?}");
}

#[test]
fn a_folder_brings_no_file_to_a_listed_place() {
    let workspace = Workspace::new();
    for name in ["a.yml", "b.yml"] {
        workspace.write(&format!("d/{name}"), "on: push").unwrap();
    }
    symlink("d", workspace.at("to-d")).unwrap();
    let moved = |path: &str, to: &str| workspace.roots.rename("workspace", path, to, &Agreed::to_all());
    for (path, to) in [("d", ".github/workflows"), ("d", ".vscode"), ("d", "x/.husky/deep")] {
        assert_eq!(code(moved(path, to)), "listed", "{to}");
    }
    let Err(FilesError::Approval { change, .. }) = workspace.rename("to-d", ".vscode") else { panic!("it asks") };
    assert!(matches!(&change.deed, Deed::Rename { content: Some(text), .. } if text == b"a link to d"), "{change:?}");
    assert!(!workspace.at("x").exists() && !workspace.at(".github").exists(), "a refused move leaves no folder");
    assert_eq!(code(workspace.rename("d", "e")), "ok");
}

#[test]
fn a_folder_that_is_nested_too_deep_is_refused_with_its_cause() {
    let workspace = Workspace::new();
    let deep = format!("deep/{}", vec!["d"; 140].join("/"));
    fs::create_dir_all(workspace.at(&deep)).unwrap();
    let error = workspace.rename("deep", "moved").unwrap_err();
    assert!(error.to_string().contains("nested too deep"), "{error}");
}

#[test]
fn a_hard_link_does_not_show_a_file_of_a_closed_folder() {
    let base = tempfile::tempdir().unwrap();
    let at = |path: &str| base.path().join(path);
    fs::create_dir_all(at("home")).unwrap();
    fs::create_dir_all(at("work")).unwrap();
    fs::write(at("home/.env"), "canary").unwrap();
    fs::write(at("home/other"), "fine").unwrap();
    fs::hard_link(at("home/.env"), at("work/inside")).unwrap();
    fs::write(at("work/one"), "fine").unwrap();
    fs::hard_link(at("work/one"), at("work/two")).unwrap();
    let root = Root::open("workspace", at("work"), true, [at("home")]).unwrap();
    let roots = Roots::new(vec![root], Guard::default());
    assert_eq!(code(roots.read("workspace", "inside", 0, 100)), "closed");
    assert_eq!(code(roots.read("workspace", "two", 0, 100)), "ok");
    let found = roots.search(
        "workspace",
        "**",
        Some(&Pattern { regex: "canary".to_owned(), ignore_case: false }),
        0,
        10,
        &|| false,
    );
    assert_eq!(found.unwrap().found, []);
}
