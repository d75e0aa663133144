//! Addresses of repositories that are commands or options, and repositories with content that git or a file system would
//! read as something else.

use super::*;

#[tokio::test]
async fn an_address_that_is_a_command_or_an_option_is_refused_before_git_runs() {
    let home = tempfile::tempdir().unwrap();
    let touched = home.path().join("touched");
    let touch = touched.display();
    for text in [
        format!("git+ext::sh -c touch% {touch}"),
        format!("ext::sh -c touch% {touch}"),
        "git+fd::17".to_owned(),
        "git+transport::https://host.example/x".to_owned(),
        format!("git+--upload-pack=touch {touch}"),
        format!("git+-oProxyCommand=touch {touch}@host.example:x"),
        format!("--upload-pack=touch {touch}"),
        "ssh://-oProxyCommand=touch/x.git".to_owned(),
        "ssh://-l@host.example/x.git".to_owned(),
        "git+ftp://host.example/x.git".to_owned(),
        "git://host.example/x.git".to_owned(),
        "git+https://user:password@host.example/x.git".to_owned(),
        "git+https://host.example/x.git@--upload-pack=touch".to_owned(),
        "git+https://host.example/x.git@+refs/heads/*:refs/heads/*".to_owned(),
        "git+https://host.example/x.git@main..other".to_owned(),
        "git+https://host.example/x.git@HEAD^{tree}".to_owned(),
        "git+https://host.example/x.git@main:plugin.yaml".to_owned(),
        "git+https://host.example/x.git@".to_owned(),
        "git+https://host.example/x.git#../..".to_owned(),
        "git+https://host.example/x.git#/etc".to_owned(),
        "git+https://host.example/x.git#a/../b".to_owned(),
        "git+https://host.example/x.git#:/x".to_owned(),
        "git+https://host.example/x.git#a\\b".to_owned(),
        "git+https://host.example/x.git#".to_owned(),
        "git+https://host.example/x.git\n--upload-pack=touch".to_owned(),
        "git+".to_owned(),
    ] {
        assert!(Source::parse(&text, Path::new("/")).is_err(), "{text}: {:?}", Source::parse(&text, Path::new("/")));
    }
    assert!(!touched.exists());
    // Without `--insecure`, a repository is not fetched in the clear.
    let error = refused("git+http://host.example/x.git", false).await;
    assert!(error.contains("http://host.example/x.git"), "{error}");
}

/// Writes an object that git itself would refuse to make from a working tree, and puts it on the branch.
fn commit_tree(repository: &Path, entries: &str) {
    use std::process::Stdio;
    let mut make = Command::new("git");
    make.args(["mktree", "--missing"]).current_dir(repository).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = make.spawn().unwrap();
    child.stdin.take().unwrap().write_all(entries.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{entries}");
    let tree = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    let commit = git(repository, &["commit-tree", &tree, "-m", "odd"]);
    git(repository, &["update-ref", "refs/heads/main", &commit]);
}

#[tokio::test]
async fn a_tree_that_leads_out_of_its_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let repository = repository(folder.path());
    let blob = git(&repository, &["rev-parse", "main:sub/plugin.yaml"]);
    let code = git(&repository, &["rev-parse", "main:sub/mine.wasm"]);
    let tree = git(&repository, &["rev-parse", "main:sub"]);
    let link = {
        fs::write(folder.path().join("target"), "/etc/passwd").unwrap();
        git(&repository, &["hash-object", "-w", folder.path().join("target").to_str().unwrap()])
    };
    let plugin = format!("100644 blob {blob}\tplugin.yaml\n100644 blob {code}\tmine.wasm\n");
    for (name, entries) in [
        ("git's own folder", format!("040000 tree {tree}\t.git\n{plugin}")),
        ("git's own folder in capitals", format!("040000 tree {tree}\t.GIT\n{plugin}")),
        ("git's own folder with an invisible letter", format!("040000 tree {tree}\t.g\u{200c}it\n{plugin}")),
        ("the short name of git's own folder", format!("040000 tree {tree}\tgit~1\n{plugin}")),
        ("the folder above", format!("040000 tree {tree}\t..\n{plugin}")),
        ("the folder itself", format!("040000 tree {tree}\t.\n{plugin}")),
        ("a link out", format!("120000 blob {link}\tnotes\n{plugin}")),
        (
            "a link in the place of the manifest",
            format!("120000 blob {link}\tplugin.yaml\n100644 blob {code}\tmine.wasm\n"),
        ),
        ("two spellings of the manifest", format!("100644 blob {blob}\tPLUGIN.YAML\n{plugin}")),
        ("a folder in the place of the manifest", format!("040000 tree {tree}\tplugin.yaml\n")),
        ("nothing", String::new()),
        ("an object that is not there", format!("100644 blob {}\tnotes\n{plugin}", "1".repeat(40))),
    ] {
        commit_tree(&repository, &entries);
        let error = refused(&format!("git+file://{}", repository.display()), false).await;
        assert!(!error.is_empty() && error.len() < 1_000, "{name}: {error}");
    }
    // The same repository with an ordinary tree.
    commit_tree(&repository, &plugin);
    comes(&format!("git+file://{}", repository.display()), false).await;
}

#[tokio::test]
async fn a_reference_that_is_no_commit_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let repository = repository(folder.path());
    git(&repository, &["tag", "-a", "-m", "x", "of-a-file", "main:sub/plugin.yaml"]);
    git(&repository, &["tag", "of-a-folder", "main:sub"]);
    git(&repository, &["tag", "-a", "-m", "x", "chain-0", "main"]);
    for at in 0..50 {
        git(&repository, &["tag", "-a", "-m", "x", &format!("chain-{}", at + 1), &format!("chain-{at}")]);
    }
    let url = format!("git+file://{}", repository.display());
    for reference in ["of-a-file", "of-a-folder", "0000000000000000000000000000000000000000", "deadbeef", "FETCH_HEAD"]
    {
        let error = refused(&format!("{url}@{reference}#sub"), false).await;
        assert!(!error.is_empty(), "{reference}");
    }
    comes(&format!("{url}@chain-50#sub"), false).await;
}

#[tokio::test]
async fn the_configuration_of_a_foreign_repository_runs_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let repository = repository(folder.path());
    let touched = folder.path().join("touched");
    let touch = format!("touch {}", touched.display());
    let script = folder.path().join("script");
    fs::write(&script, format!("#!/bin/sh\n{touch}\nexec \"$@\"\n")).unwrap();
    fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for key in [
        "uploadpack.packObjectsHook",
        "core.fsmonitor",
        "core.sshCommand",
        "core.gitProxy",
        "core.alternateRefsCommand",
        "core.askPass",
        "core.pager",
        "core.editor",
        "gpg.program",
        "diff.external",
        "credential.helper",
        "tar.tar.command",
        "receive.procReceiveRefs",
        "alias.upload-pack",
    ] {
        git(&repository, &["config", key, script.to_str().unwrap()]);
    }
    let _ = fs::remove_file(&touched);
    for reference in ["", "@v1", "@main"] {
        comes(&format!("git+file://{}{reference}#sub", repository.display()), false).await;
    }
    assert!(!touched.exists(), "a program that the repository names has run");
}

#[tokio::test]
async fn a_submodule_is_neither_fetched_nor_run() {
    let folder = tempfile::tempdir().unwrap();
    let repository = repository(folder.path());
    let touched = folder.path().join("touched");
    let commit = git(&repository, &["rev-parse", "main"]);
    let modules = format!(
        "[submodule \"x\"]\n\tpath = sub/x\n\turl = ext::sh -c touch% {}\n\tupdate = !touch {0}\n",
        touched.display()
    );
    fs::write(repository.join(".gitmodules"), modules).unwrap();
    git(&repository, &["add", ".gitmodules"]);
    git(&repository, &["update-index", "--add", "--cacheinfo", &format!("160000,{commit},sub/x")]);
    git(&repository, &["commit", "--quiet", "-m", "submodule"]);
    let url = format!("git+file://{}#sub", repository.display());
    // Git's own checks refuse the address in `.gitmodules`, or the folder stays empty.
    if let Ok((prepared, _home)) = prepare(&url, false).await {
        assert!(!prepared.folder().join("x/plugin.yaml").exists());
    }
    assert!(!touched.exists());
}
