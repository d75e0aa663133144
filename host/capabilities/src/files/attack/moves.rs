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
