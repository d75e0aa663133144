//! Attacks on a workspace through its file tools: git's own files, files that start programs, contents that nobody has read,
//! interfaces of the kernel.

#![allow(clippy::unwrap_used)]

mod links;
mod moves;
mod names;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;

use super::*;

/// A workspace in which the user agrees to nothing.
struct Workspace {
    base: TempDir,
    roots: Roots,
}

impl Workspace {
    fn new() -> Self {
        let base = tempfile::tempdir().unwrap();
        let roots = Self::roots(base.path());
        let workspace = Self { base, roots };
        workspace.file(".git/config", "[core]\n");
        workspace.file(".git/hooks/pre-commit.sample", "#!/bin/sh\n");
        workspace.file(".git/HEAD", "ref: refs/heads/main\n");
        workspace.file("src/main.rs", "fn main() {}\n");
        workspace.read("src/main.rs").unwrap();
        workspace
    }

    fn roots(path: &Path) -> Roots {
        Roots::new(vec![Root::open("workspace", path, true, []).unwrap()], Guard::default())
    }

    fn at(&self, path: &str) -> PathBuf {
        self.base.path().join(path)
    }

    /// Makes a file, as the user would.
    fn file(&self, path: &str, content: &str) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        fs::write(self.at(path), content).unwrap();
    }

    /// Makes what git takes for one of its folders.
    fn git_folder(&self, path: &str) {
        self.file(&format!("{path}/HEAD"), "ref: refs/heads/main\n");
        self.file(&format!("{path}/config"), "[core]\n");
        for folder in ["objects", "refs", "hooks"] {
            fs::create_dir_all(self.at(path).join(folder)).unwrap();
        }
    }

    fn write(&self, path: &str, content: &str) -> Result<String, FilesError> {
        self.roots.write("workspace", path, content.as_bytes(), None, &Agreed::to_nothing())
    }

    fn rename(&self, path: &str, to: &str) -> Result<(), FilesError> {
        self.roots.rename("workspace", path, to, &Agreed::to_nothing())
    }

    fn remove(&self, path: &str) -> Result<(), FilesError> {
        self.roots.remove("workspace", path, &Agreed::to_nothing())
    }

    fn read(&self, path: &str) -> Result<Slice, FilesError> {
        self.roots.read("workspace", path, 0, MAX_READ)
    }

    /// The error codes of each kind of change at this path.
    fn changes(&self, path: &str) -> [&'static str; 4] {
        [
            code(self.write(path, "pwned")),
            code(self.rename(path, "elsewhere")),
            code(self.rename("src/main.rs", path)),
            code(self.remove(path)),
        ]
    }

    /// All files with their contents.
    fn content(&self) -> Vec<(PathBuf, Vec<u8>)> {
        fn walk(folder: &Path, found: &mut Vec<(PathBuf, Vec<u8>)>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() && !path.is_symlink() {
                    found.push((path.clone(), Vec::new()));
                    walk(&path, found);
                } else {
                    found.push((path.clone(), fs::read(&path).unwrap_or_default()));
                }
            }
        }
        let mut found = Vec::new();
        walk(self.base.path(), &mut found);
        found.sort();
        found
    }
}

fn code<T>(result: Result<T, FilesError>) -> &'static str {
    result.map_or_else(|error| error.code(), |_| "ok")
}

/// The patterns and `unread`: why a change was stopped.
#[track_caller]
fn concerns<T>(result: Result<T, FilesError>) -> Vec<String> {
    match result {
        Err(FilesError::Approval { change, .. }) => {
            change.concerns.iter().map(|concern| concern.pattern().unwrap_or("unread").to_owned()).collect()
        }
        Err(error) => panic!("{error}"),
        Ok(_) => Vec::new(),
    }
}

#[test]
fn no_path_into_git_can_be_changed() {
    let workspace = Workspace::new();
    symlink(".git", workspace.at("link")).unwrap();
    symlink("../.git/hooks", workspace.at("src/hooks")).unwrap();
    symlink(".git/config", workspace.at("settings")).unwrap();
    symlink(".git/hooks/post-checkout", workspace.at("dangling")).unwrap();
    let before = workspace.content();
    for path in [
        ".git",
        ".git/config",
        ".git/hooks/pre-commit",
        ".git/hooks/pre-commit.sample",
        ".git/new/deep/file",
        "./.git//config",
        ".GIT/config",
        ".Git/hooks/pre-commit",
        ".git./config",
        ".g\u{200c}it/config",
        "git~1/config",
        "src/.git",
        "src/.git/config",
        "new/folder/.git/config",
        "link/config",
        "src/hooks/pre-commit",
    ] {
        let codes = workspace.changes(path);
        assert!(codes.iter().all(|code| ["git", "not-found"].contains(code)), "{path}: {codes:?}");
        assert_eq!(codes[0], "git", "{path}");
        assert_eq!(codes[2], "git", "{path}");
    }
    for link in ["settings", "dangling"] {
        assert_eq!(code(workspace.write(link, "pwned")), "git", "{link}");
    }
    assert_eq!(workspace.content(), before);
    assert_eq!(workspace.read(".git/config").unwrap().content, b"[core]\n", "reading stays possible");
}

#[test]
fn a_folder_with_a_repository_inside_is_not_moved() {
    let workspace = Workspace::new();
    workspace.file("vendor/lib/.git/config", "[core]\n");
    workspace.file("vendor/work/.GIT", "gitdir: /elsewhere\n");
    workspace.git_folder("store/of/git");
    for (path, to) in [
        ("vendor", "third-party"),
        ("vendor/lib", "lib"),
        ("vendor/work", "w"),
        ("store", "s"),
        ("store/of", "s"),
        ("store/of/git", "s"),
        ("src", "vendor/lib/.git/hooks"),
    ] {
        assert_eq!(code(workspace.rename(path, to)), "git", "{path}");
    }
    assert_eq!(code(workspace.rename("src", "source")), "ok");
}

#[test]
fn a_git_folder_with_another_name_stays_closed() {
    let workspace = Workspace::new();
    // `git init --separate-git-dir=store`, a bare repository, and the folder of a work tree.
    workspace.file("project/.git", "gitdir: ../store\n");
    workspace.git_folder("store");
    workspace.git_folder("mirror.git");
    workspace.file("trees/one/HEAD", "ref: refs/heads/one\n");
    workspace.file("trees/one/commondir", "../..\n");
    symlink("store/hooks", workspace.at("hooks")).unwrap();
    let before = workspace.content();
    for path in [
        "store/config",
        "store/hooks/pre-commit",
        "store/new/file",
        "mirror.git/config",
        "mirror.git/hooks/post-update",
        "trees/one/config.worktree",
        "hooks/pre-commit",
        "project/.git",
    ] {
        assert_eq!(code(workspace.write(path, "pwned")), "git", "{path}");
    }
    for path in ["store/config", "store/HEAD", "mirror.git/config", "trees/one/commondir", "project/.git"] {
        assert_eq!(code(workspace.remove(path)), "git", "{path}");
        assert_eq!(code(workspace.rename(path, "gone")), "git", "{path}");
    }
    assert_eq!(workspace.content(), before);
}

#[test]
fn a_session_inside_a_git_folder_changes_nothing() {
    let workspace = Workspace::new();
    workspace.git_folder("store");
    for path in [".git", ".git/hooks", "store", "store/hooks"] {
        let roots = Workspace::roots(&workspace.at(path));
        let written = roots.write("workspace", "pre-commit", b"pwned", None, &Agreed::to_all());
        assert_eq!(code(written), "git", "{path}");
    }
    // The work tree of a bare repository often lies inside it.
    workspace.file("store/main/.git", "gitdir: ../worktrees/main\n");
    assert_eq!(code(workspace.write("store/main/notes", "fine")), "ok");
    let roots = Workspace::roots(&workspace.at("store/main"));
    assert_eq!(code(roots.write("workspace", "more", b"fine", None, &Agreed::to_nothing())), "ok");
    assert_eq!(code(roots.write("workspace", ".git", b"gitdir: x", None, &Agreed::to_all())), "git");
}

#[test]
fn no_folder_becomes_one_of_git_piece_by_piece() {
    let workspace = Workspace::new();
    assert_eq!(code(workspace.write("a/config", "[core]\nfsmonitor = x\n")), "ok");
    assert_eq!(code(workspace.write("a/objects/x", "")), "ok");
    assert_eq!(code(workspace.write("a/refs/x", "")), "ok");
    for name in ["HEAD", "head", "Head"] {
        assert_eq!(code(workspace.write(&format!("a/{name}"), "ref: refs/heads/x\n")), "git", "{name}");
    }
    assert_eq!(code(workspace.rename("src/main.rs", "a/HEAD")), "git");
    assert_eq!(code(workspace.write("b/HEAD", "x")), "ok");
    assert_eq!(code(workspace.write("b/refs/x", "x")), "ok");
    assert_eq!(code(workspace.write("b/objects/x", "x")), "git");
    assert_eq!(code(workspace.rename("src", "b/objects")), "git");
    assert_eq!(code(workspace.write("c/HEAD", "x")), "ok");
    assert_eq!(code(workspace.write("c/commondir", "../.git")), "git");
}

#[test]
fn files_that_start_programs_or_instruct_agents_need_approval() {
    let workspace = Workspace::new();
    symlink("later.json", workspace.at("plain")).unwrap();
    symlink(".vscode", workspace.at("editor")).unwrap();
    fs::create_dir(workspace.at(".vscode")).unwrap();
    let before = workspace.content();
    for (path, pattern) in [
        (".envrc", ".envrc"),
        (".ENVRC", ".envrc"),
        ("deep/down/.envrc", ".envrc"),
        ("AGENTS.md", "AGENTS.md"),
        ("docs/agents.md", "AGENTS.md"),
        ("CLAUDE.md", "CLAUDE.md"),
        (".cursor/rules/all.mdc", ".cursor/**"),
        (".vscode/tasks.json", ".vscode/**"),
        ("editor/tasks.json", ".vscode/**"),
        (".idea/workspace.xml", ".idea/**"),
        (".cargo/config.toml", ".cargo/config.toml"),
        ("crates/x/rust-toolchain.toml", "rust-toolchain.toml"),
        (".github/workflows/ci.yml", ".github/workflows/**"),
        (".GitHub/Workflows/ci.yml", ".github/workflows/**"),
        (".gitlab-ci.yml", ".gitlab-ci.yml"),
        (".husky/pre-commit", ".husky/**"),
        (".pre-commit-config.yaml", ".pre-commit-config.yaml"),
        (".bashrc", ".bashrc"),
        (".ssh/authorized_keys", ".ssh/**"),
        (".config/autostart/x.desktop", ".config/autostart/**"),
        (".config/systemd/user/x.service", ".config/systemd/**"),
        (".gitconfig", ".gitconfig"),
        (".mcp.json", ".mcp.json"),
        (".qwen/settings.json", ".qwen/**"),
        (".claude-plugin/plugin.json", ".claude-plugin/**"),
        (".config/Code/User/tasks.json", ".config/Code/User/**"),
        (".config/containers/systemd/x.container", ".config/containers/systemd/**"),
        (".ipython/profile_default/startup/x.py", ".ipython/**/startup/**"),
        ("flake.nix", "flake.nix"),
        (".forward", ".forward"),
    ] {
        assert_eq!(concerns(workspace.write(path, "pwned")), [pattern], "{path}");
        assert_eq!(concerns(workspace.rename("src/main.rs", path)), [pattern], "{path}");
    }
    // A refused change leaves nothing behind, no empty folder either.
    assert_eq!(workspace.content(), before);
    for path in ["build.rs", "Makefile", "package.json", ".github/CODEOWNERS", "plain", ".gitignore"] {
        assert_eq!(concerns(workspace.write(path, "fine")), [""; 0], "{path}");
    }
}

#[test]
fn moving_a_folder_is_judged_by_what_its_files_become() {
    let workspace = Workspace::new();
    workspace.write("x/tasks.json", "{}").unwrap();
    workspace.write("y/workflows/ci.yml", "on: push").unwrap();
    workspace.file("team/AGENTS.md", "Be kind.");
    for (path, to) in [("x", ".vscode"), ("y", ".github"), ("y", ".vscode/y")] {
        assert_eq!(code(workspace.rename(path, to)), "listed", "{path}: the user could not see every file");
    }
    workspace.read("team/AGENTS.md").unwrap();
    assert_eq!(concerns(workspace.rename("team", "people")), ["AGENTS.md"], "it leaves its place");
    assert_eq!(concerns(workspace.rename("team/AGENTS.md", "team/notes.md")), ["AGENTS.md"]);
    symlink("x", workspace.at("to-x")).unwrap();
    assert_eq!(concerns(workspace.rename("to-x", ".vscode")), [".vscode/**"], "a link to a folder");
    let linked = concerns(workspace.rename("to-x", ".github"));
    assert!(linked.iter().all(|pattern| pattern.starts_with(".github/")) && linked.len() == 1, "{linked:?}");
    assert_eq!(concerns(workspace.rename("x", "z")), [""; 0]);
}

#[test]
fn removing_a_listed_file_needs_approval_even_if_it_was_read() {
    let workspace = Workspace::new();
    workspace.file(".pre-commit-config.yaml", "repos: []\n");
    workspace.read(".pre-commit-config.yaml").unwrap();
    assert_eq!(concerns(workspace.remove(".pre-commit-config.yaml")), [".pre-commit-config.yaml"]);
    symlink("src", workspace.at(".husky")).unwrap();
    assert_eq!(concerns(workspace.remove(".husky")), [".husky/**"]);
}

#[test]
fn the_configuration_protects_further_files() {
    let workspace = Workspace::new();
    let listed = Listed::new(&["deploy/".to_owned(), "*.tf".to_owned()], None).unwrap();
    let root = Root::open("workspace", workspace.base.path(), true, []).unwrap();
    let roots = Roots::new(vec![root], Guard::new(Arc::new(listed), Arc::default()));
    let write = |path: &str| roots.write("workspace", path, b"x", None, &Agreed::to_nothing());
    assert_eq!(concerns(write("infra/main.tf")), ["*.tf"]);
    assert_eq!(concerns(write("deploy/run.sh")), ["deploy/"]);
    assert_eq!(concerns(write(".envrc")), [".envrc"]);
    assert_eq!(concerns(write("main.rs")), [""; 0]);
}

#[test]
fn content_that_nobody_has_read_is_not_replaced() {
    let workspace = Workspace::new();
    workspace.file("notes", "months of work");
    assert_eq!(concerns(workspace.write("notes", "gone")), ["unread"]);
    assert_eq!(concerns(workspace.remove("notes")), ["unread"]);
    // Knowing the version is not knowing the content.
    let version = workspace.roots.stat("workspace", "notes").unwrap().version;
    let guessed = workspace.roots.write("workspace", "notes", b"gone", Some(&version), &Agreed::to_nothing());
    assert_eq!(concerns(guessed), ["unread"]);
    // A search, a listing, and a read without a byte show nothing of it.
    workspace.roots.entries("workspace", "").unwrap();
    workspace.roots.search("workspace", "notes", None, 0, 10, &|| false).unwrap();
    workspace.roots.read("workspace", "notes", 0, 0).unwrap();
    workspace.roots.read("workspace", "notes", 7, MAX_READ).unwrap();
    workspace.roots.read("workspace", "notes", 0, 3).unwrap();
    assert_eq!(concerns(workspace.write("notes", "gone")), ["unread"]);

    workspace.read("notes").unwrap();
    workspace.file("notes", "months of work, and a day");
    assert_eq!(concerns(workspace.write("notes", "gone")), ["unread"], "it has changed since");
    workspace.read("notes").unwrap();
    assert_eq!(code(workspace.write("notes", "short")), "ok");
    assert_eq!(code(workspace.write("notes", "shorter")), "ok", "its own write is known");
    assert_eq!(fs::read_to_string(workspace.at("notes")).unwrap(), "shorter");
}

#[test]
fn a_file_swapped_under_another_name_is_still_unread() {
    let workspace = Workspace::new();
    workspace.file("known", "small");
    workspace.file("treasure", "months of work");
    workspace.read("known").unwrap();
    fs::rename(workspace.at("known"), workspace.at("aside")).unwrap();
    fs::rename(workspace.at("treasure"), workspace.at("known")).unwrap();
    assert_eq!(concerns(workspace.write("known", "gone")), ["unread"]);
    // A rename by the plugin takes the knowledge along, and gives none away.
    fs::rename(workspace.at("known"), workspace.at("treasure")).unwrap();
    fs::rename(workspace.at("aside"), workspace.at("known")).unwrap();
    workspace.rename("known", "moved").unwrap();
    assert_eq!(code(workspace.write("moved", "mine")), "ok");
    fs::rename(workspace.at("treasure"), workspace.at("known")).unwrap();
    assert_eq!(concerns(workspace.write("known", "gone")), ["unread"]);
}

#[test]
fn an_approval_holds_for_the_content_that_the_user_saw() {
    let workspace = Workspace::new();
    workspace.file("notes", "one");
    let Err(FilesError::Approval { change, .. }) = workspace.write("notes", "gone") else { panic!("it asks") };
    let mut agreed = Agreed::to_nothing();
    agreed.add(&change);
    workspace.file("notes", "two");
    let write = || workspace.roots.write("workspace", "notes", b"gone", None, &agreed);
    assert_eq!(concerns(write()), ["unread"]);
    workspace.file("notes", "one");
    assert_eq!(code(write()), "ok");
    workspace.file("other", "one");
    let other = workspace.roots.write("workspace", "other", b"gone", None, &agreed);
    assert_eq!(concerns(other), ["unread"], "it holds for one file");
}

#[test]
#[cfg(target_os = "linux")]
fn interfaces_of_the_kernel_are_not_files() {
    let roots = Workspace::roots(Path::new("/"));
    for path in ["proc/self/environ", "proc/self/status", "proc/version", "sys/kernel/uevent_seqnum", "sys/power/state"]
    {
        assert_eq!(code(roots.read("workspace", path, 0, 100)), "kernel", "{path}");
        assert_eq!(code(roots.write("workspace", path, b"x", None, &Agreed::to_all())), "kernel", "{path}");
        assert_eq!(code(roots.stat("workspace", path)), "kernel", "{path}");
    }
    assert_eq!(code(roots.entries("workspace", "proc/self")), "kernel");
    let found = roots.search("workspace", "proc/self/environ", None, 0, 10, &|| false).unwrap();
    assert_eq!(found.found, []);
    // A workspace or a mount inside of them does not open them either.
    for path in ["/proc/self", "/sys/kernel"] {
        let roots = Workspace::roots(Path::new(path));
        assert_eq!(code(roots.read("workspace", "environ", 0, 100)), "kernel", "{path}");
        assert_eq!(code(roots.entries("workspace", "")), "kernel", "{path}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn the_systems_own_files_need_approval_in_a_workspace_that_is_everything() {
    let base = tempfile::tempdir().unwrap();
    let roots = Workspace::roots(Path::new("/"));
    let write = |path: &str| roots.write("workspace", path, b"x", None, &Agreed::to_nothing());
    for (path, pattern) in [
        ("etc/cron.d/hermes-attack", "/etc/**"),
        ("etc/profile.d/hermes-attack.sh", "/etc/**"),
        ("usr/local/bin/hermes-attack", "/usr/local/bin/**"),
        ("var/spool/cron/crontabs/hermes-attack", "/var/spool/cron/**"),
    ] {
        assert_eq!(concerns(write(path)), [pattern], "{path}");
    }
    let plain = base.path().canonicalize().unwrap().join("notes");
    assert_eq!(code(write(plain.strip_prefix("/").unwrap().to_str().unwrap())), "ok");
}
