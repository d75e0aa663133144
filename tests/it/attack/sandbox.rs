//! Programs that try to leave the sandbox: to write elsewhere, to read keys, to reach other processes and the network, to outlive
//! Hermes, and to leave behind what starts programs later.
//!
//! A machine without user namespaces passes over these tests, unless `.ci/run` runs them.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hermes_tests::{Call, Home, Reply, Server};
use serde_json::{Value, json};

use super::chat::{PROMPT, chat, leave};
use crate::fixtures::outside::outside;

/// Generous: the machine may be busy.
const LONG: Duration = Duration::from_secs(600);
const KEY: &str = "canary-of-the-environment";

/// Whether programs can be confined here.
pub(super) fn is_offered() -> bool {
    let offered = Home::new().hermes(&["probe-sandbox"]).run().success().stdout.contains("confined");
    if !offered {
        hermes_test_data::missing("a sandbox", "this machine offers no sandbox; `hermes doctor` says why");
    }
    offered
}

/// A model that runs these commands one after the other.
pub(super) fn model_that_runs(commands: &[&str]) -> Server {
    let commands: Vec<String> = commands.iter().map(|&command| command.to_owned()).collect();
    Server::answering(move |body, _| {
        let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
        let since = messages.iter().rev().take_while(|message| message["role"] != "user");
        let done = since.filter(|message| message["role"] == "tool").count();
        match commands.get(done) {
            Some(command) => {
                Reply::calls([Call::new(&format!("call_{done}"), "terminal", &json!({ "command": command }))])
            }
            None => Reply::text("Done."),
        }
    })
}

fn home_for(server: &Server) -> Home {
    let home = Home::with(server);
    home.set("approvals.allow", json!(["terminal/process:bash"]));
    home
}

#[track_caller]
pub(super) fn results(server: &Server) -> Vec<String> {
    let request = server.last_turn();
    let messages = request.messages();
    let since = messages.iter().rposition(|message| message["role"] == "user").unwrap_or_default();
    let results = messages[since..].iter().filter(|message| message["role"] == "tool");
    results.map(|message| message["content"].as_str().unwrap_or_default().to_owned()).collect()
}

/// What the model got for these commands.
#[track_caller]
fn run(home: &Home, commands: &[&str]) -> Vec<String> {
    let server = model_that_runs(commands);
    home.use_endpoint(&server.url());
    home.set("approvals.allow", json!(["terminal/process:bash"]));
    home.hermes(&["-z", "Go."]).env("EXAMPLE_API_KEY", KEY).run().success();
    results(&server)
}

#[track_caller]
pub(super) fn git(folder: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]).args(arguments).current_dir(folder);
    let output = command.env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Every command failed, and everything named is as it was.
#[track_caller]
fn all_fail(home: &Home, commands: &[&str]) -> Vec<String> {
    let results = run(home, commands);
    for (command, result) in commands.iter().zip(&results) {
        assert!(!result.contains("[exit code 0]"), "`{command}` succeeded: {result}");
    }
    results
}

#[test]
fn programs_write_in_the_workspace_and_temporary_folders_only() {
    if !is_offered() {
        return;
    }
    let home = Home::with(&model_that_runs(&[]));
    // Not in a temporary folder, which programs have for themselves.
    let Some(outside) = outside() else { return };
    let file = outside.path().join("file");
    fs::write(&file, "untouched").unwrap();
    let workspace = home.workspace();
    symlink(&file, workspace.join("link")).unwrap();
    symlink(outside.path(), workspace.join("folder")).unwrap();
    let file = file.display();
    let results = all_fail(
        &home,
        &[
            &format!("echo evil > {file}"),
            &format!("rm {file}"),
            "echo evil > link",
            "echo evil > folder/new",
            &format!("ln {file} hard && echo evil > hard"),
            &format!("mv {} away", outside.path().display()),
            &format!("echo evil > /proc/1/root{file}"),
            &format!("echo evil > /proc/self/root{file}"),
            &format!("echo evil > /proc/self/cwd/../../../../../../../..{file}"),
            "echo evil > /etc/hermes-was-here",
            "mount -o remount,rw /",
            "mount --bind / /mnt",
            "unshare --user --map-root-user --mount true",
            "nsenter --target 1 --mount true",
            "chroot . true",
            "mknod disk b 8 0",
            "echo evil > /proc/sys/kernel/core_pattern",
        ],
    );
    assert!(results[0].contains("[sandbox: a write was denied (\""), "{}", results[0]);
    assert!(results[0].contains("`sandbox.writable`"), "{}", results[0]);
    assert_eq!(fs::read_to_string(outside.path().join("file")).unwrap(), "untouched");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);

    let results = run(
        &home,
        &["echo made > made; echo temp > /tmp/of-session; echo temp > /var/tmp/of-session", "cat /tmp/of-session"],
    );
    assert_eq!(results, ["(no output)\n[exit code 0]", "temp\n[exit code 0]"]);
    assert_eq!(home.workspace().join("made").metadata().unwrap().len(), 5);
    assert!(!Path::new("/tmp/of-session").exists(), "temporary files are the session's own");
    home.set("sandbox.writable", json!([outside.path()]));
    run(&home, &[&format!("echo allowed > {}/new", outside.path().display())]);
    assert_eq!(fs::read_to_string(outside.path().join("new")).unwrap(), "allowed\n");
}

#[test]
fn keys_are_out_of_reach() {
    if !is_offered() {
        return;
    }
    let home = Home::with(&model_that_runs(&[]));
    home.write(".env", format!("OTHER_KEY={KEY}\n"));
    fs::create_dir(home.user().join(".ssh")).unwrap();
    fs::write(home.user().join(".ssh/id"), KEY).unwrap();
    fs::write(home.user().join(".netrc"), KEY).unwrap();
    fs::write(home.user().join("other"), KEY).unwrap();
    home.set("sandbox.hidden", json!([home.user().join("other")]));
    let in_home = home.path().display().to_string();
    let results = run(
        &home,
        &[
            &format!("cat {in_home}/.env {in_home}/config.yaml; ls -A {in_home}; touch {in_home}/new"),
            "cat ~/.ssh/id ~/.netrc ~/other",
            "env; cat /proc/self/environ /proc/*/environ /proc/*/task/*/environ | tr '\\0' '\\n'",
            "cat /proc/1/mem /proc/1/maps; ls /proc/1/fd/ /proc/1/root/ /proc/1/cwd/; ls -d /proc/[0-9]* | wc -l",
        ],
    );
    for result in &results {
        assert!(!result.contains(KEY) && !result.contains("approvals:"), "{result}");
    }
    assert!(!home.path().join("new").exists());
    assert!(results[3].matches("Permission denied").count() >= 4, "{}", results[3]);
}

#[test]
fn the_scripts_of_a_skill_run_and_do_not_change() {
    if !is_offered() {
        return;
    }
    let home = Home::with(&model_that_runs(&[]));
    home.write(".env", format!("OTHER_KEY={KEY}\n"));
    home.write("skills/brew/scripts/brew.sh", "echo brewed; cat \"$(dirname \"$0\")\"/../../../.env\n");
    symlink("../../.env", home.path().join("skills/brew/link")).unwrap();
    let skill = home.path().join("skills/brew");
    let skill = skill.display();
    let results = run(
        &home,
        &[
            &format!("sh {skill}/scripts/brew.sh"),
            &format!("cat {skill}/link; echo more >> {skill}/scripts/brew.sh; touch {skill}/new; mv {skill} {skill}s"),
        ],
    );
    assert!(results[0].contains("brewed"), "{}", results[0]);
    assert!(results.iter().all(|result| !result.contains(KEY)), "{results:?}");
    assert!(
        !home.read("skills/brew/scripts/brew.sh").contains("more") && !home.path().join("skills/brew/new").exists()
    );
}

#[test]
fn a_descriptor_that_hermes_inherited_reaches_no_program() {
    if !is_offered() {
        return;
    }
    let server = model_that_runs(&["echo evil >&9", "echo evil > /proc/self/fd/9", "echo evil > /proc/1/fd/9"]);
    let home = home_for(&server);
    let file = home.user().join("inherited");
    let script = format!("exec 9>{}; exec \"$0\" -z Go.", file.display());
    let binary = hermes_tests::binary();
    let status = Command::new("bash")
        .args(["-c", &script])
        .arg(binary)
        .env("HOME", home.user())
        .env("HERMES_HOME", home.path())
        .current_dir(home.workspace())
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    let results = results(&server);
    assert!(results.iter().all(|result| !result.contains("[exit code 0]")), "{results:?}");
    assert_eq!(fs::read_to_string(file).unwrap(), "");
}

#[test]
fn the_network_is_off_unless_the_user_turns_it_on() {
    if !is_offered() {
        return;
    }
    let home = Home::with(&model_that_runs(&[]));
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected");
    let own = "perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(Listen => 1, LocalAddr => \"127.0.0.1\") or die; \
               IO::Socket::INET->new(PeerAddr => \"127.0.0.1\", PeerPort => $s->sockport) or die; print \"own\"'";
    let results = run(&home, &[&connect, "exec 3<>/dev/tcp/192.0.2.1/80", own]);
    assert!(!results[0].contains("connected"), "{}", results[0]);
    assert!(results[1].contains("[sandbox: the network is off (\"") && results[1].contains("`sandbox.network: true`"));
    assert!(results[2].contains("own") || results[2].contains("not found"), "loopback is there: {}", results[2]);
    home.set("sandbox.network", json!(true));
    let results = run(&home, &[&connect]);
    assert!(results[0].contains("connected"), "{}", results[0]);
}

#[test]
fn sockets_of_other_programs_are_out_of_reach() {
    if !is_offered() {
        return;
    }
    let home = Home::with(&model_that_runs(&[]));
    let path = home.user().join("agent.sock");
    let _listener = UnixListener::bind(&path).unwrap();
    let name = format!("hermes-test-{}", std::process::id());
    let address = <std::os::unix::net::SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(&name);
    let _abstract = UnixListener::bind_addr(&address.unwrap()).unwrap();
    let connect = |address: &str| {
        format!(
            "perl -MSocket -e 'socket(my $s, AF_UNIX, SOCK_STREAM, 0) or die; connect($s, pack_sockaddr_un({address})) \
             or die \"denied: $!\"; print \"connected\"'"
        )
    };
    let (of_path, of_name) = (connect(&format!("\"{}\"", path.display())), connect(&format!("\"\\0{name}\"")));
    // A terminal multiplexer of the user, with its socket in the workspace, would run any command that it is sent.
    let within = home.workspace().join("own.sock");
    let _within = UnixListener::bind(&within).unwrap();
    let of_workspace = connect(&format!("\"{}\"", within.display()));
    for network in [false, true] {
        home.set("sandbox.network", json!(network));
        let results = run(&home, &[&of_path, &of_name, &of_workspace]);
        assert!(results[..2].iter().all(|result| !result.contains("connected")), "{results:?}");
        assert!(results[0].contains("denied") || results[0].contains("not found"), "{results:?}");
        assert!(network || !results[2].contains("connected"), "{results:?}");
    }
}

#[test]
fn a_program_cannot_type_on_the_users_terminal() {
    if !is_offered() {
        return;
    }
    let server = model_that_runs(&[
        "echo forged > /dev/tty",
        "ls /dev/pts",
        "perl -e 'open(my $t, \"+<\", \"/dev/tty\") or die; ioctl($t, 0x5412, \"x\") or die'",
    ]);
    let home = home_for(&server);
    let mut terminal = home.hermes(&[]).at_terminal();
    terminal.wait_for(PROMPT, 1);
    terminal.press("Go.\r");
    let shown = leave(terminal);
    let results = results(&server);
    assert!(results[0].contains("/dev/tty") && !results[0].contains("[exit code 0]"), "{results:?}");
    assert_eq!(results[1], "ptmx\n[exit code 0]");
    assert!(!results[2].contains("[exit code 0]"), "{results:?}");
    assert!(!shown.lines().any(|line| line.trim() == "forged"), "{shown}");
}

#[test]
fn what_makes_git_run_programs_does_not_change() {
    if !is_offered() {
        return;
    }
    let home = Home::with(&model_that_runs(&[]));
    let workspace = home.workspace();
    git(&workspace, &["init", "-q", "."]);
    fs::remove_dir_all(workspace.join(".git/hooks")).unwrap();
    let config = fs::read_to_string(workspace.join(".git/config")).unwrap();
    let results = all_fail(
        &home,
        &[
            "echo evil > .git/config",
            "git config core.fsmonitor ./evil",
            "printf evil > .git/hooks/pre-commit",
            "mkdir .git/hooks/x",
            "rm -rf .git/config",
            "mv .git moved",
            "mv .git/hooks moved",
            "mv /etc/hostname .git/config",
            "ln -sf evil .git/config",
            "rm -rf .git && mkdir -p .git/hooks && echo evil > .git/hooks/pre-commit",
        ],
    );
    assert!(results[0].contains("[sandbox: a write was denied"), "{}", results[0]);
    assert_eq!(fs::read_to_string(workspace.join(".git/config")).unwrap(), config);
    assert_eq!(fs::read_dir(workspace.join(".git/hooks")).unwrap().count(), 0);

    // A commit works. Files that would lead git to another configuration are removed.
    git(&workspace, &["init", "-q", "."]);
    let commit = "echo a > a && git add a && git -c user.name=A -c user.email=a@b commit -qm first && git log --oneline && \
                  git switch -qc other && git branch";
    let results = run(&home, &[commit, "echo ../evil > .git/commondir"]);
    assert!(results[0].contains("first") && results[0].contains("* other"), "{}", results[0]);
    assert!(results[1].contains("commondir.denied"), "{}", results[1]);
    assert!(!workspace.join(".git/commondir").exists());
}

#[test]
fn a_linked_work_tree_can_commit_and_a_forged_one_opens_nothing() {
    if !is_offered() {
        return;
    }
    let home = Home::with(&model_that_runs(&[]));
    let (main, workspace) = (home.user().join("main"), home.workspace());
    fs::create_dir(&main).unwrap();
    git(&main, &["init", "-q", "."]);
    git(&main, &["commit", "-q", "--allow-empty", "-m", "first"]);
    git(&main, &["worktree", "add", "-q", &workspace.join("linked").display().to_string()]);
    let commit = "cd linked && echo a > a && git add a && git -c user.name=A -c user.email=a@b commit -qm second && git log --oneline";
    let denied = "echo evil >> ~/main/.git/config; echo evil > ~/main/.git/hooks/post-commit; echo evil > ~/main/file; \
                  echo evil > linked/.git";
    let results = run(&home, &[commit, denied]);
    assert!(results[0].contains("second"), "{}", results[0]);
    assert!(results[1].contains("[sandbox: a write was denied"), "{}", results[1]);
    let text = |path: std::path::PathBuf| fs::read_to_string(path).unwrap();
    assert!(!text(main.join(".git/config")).contains("evil") && !text(workspace.join("linked/.git")).contains("evil"));
    assert!(!main.join("file").exists() && !main.join(".git/hooks/post-commit").exists());

    let secret = home.user().join("secret");
    fs::create_dir_all(secret.join("objects")).unwrap();
    fs::create_dir_all(secret.join("refs")).unwrap();
    fs::write(secret.join("HEAD"), "").unwrap();
    fs::create_dir(workspace.join("forged")).unwrap();
    fs::write(workspace.join("forged/.git"), format!("gitdir: {}\n", secret.display())).unwrap();
    all_fail(&home, &["echo evil > ~/secret/new"]);
}

#[test]
fn files_that_start_programs_can_neither_change_nor_appear() {
    if !is_offered() {
        return;
    }
    let home = Home::with(&model_that_runs(&[]));
    home.write_workspace(".envrc", "safe");
    home.write_workspace(".github/workflows/ci.yml", "safe");
    home.write_workspace("sub/AGENTS.md", "safe");
    all_fail(
        &home,
        &[
            "echo evil > .envrc",
            "rm .envrc",
            "mv .envrc other",
            "echo evil > .github/workflows/ci.yml",
            "echo evil > .github/workflows/new.yml",
            "echo evil > sub/AGENTS.md",
        ],
    );
    let results = run(
        &home,
        &[
            "mkdir .vscode && echo evil > .vscode/tasks.json",
            "mkdir new && cd new && echo evil > CLAUDE.md",
            "git init -q plain",
            "git init -q armed && git -C armed config core.fsmonitor ./evil",
            "git init -q hooked && echo evil > hooked/.git/hooks/pre-commit",
            "mkdir away && ln -s ../away .husky && echo evil > .husky/pre-commit",
        ],
    );
    for (at, name) in [(0, ".vscode"), (1, "CLAUDE.md"), (3, ".git"), (4, ".git"), (5, ".husky")] {
        assert!(results[at].contains(&format!("{name}.denied")), "{}", results[at]);
        assert!(results[at].contains("[sandbox: "), "{}", results[at]);
    }
    let workspace = home.workspace();
    for gone in [".vscode", "new/CLAUDE.md", "armed/.git", "hooked/.git", ".husky"] {
        assert!(workspace.join(gone).symlink_metadata().is_err(), "{gone} is there");
    }
    assert!(workspace.join("plain/.git/config").exists(), "a new repository without programs stays: {}", results[2]);
    assert_eq!(fs::read_to_string(workspace.join(".vscode.denied/tasks.json")).unwrap(), "evil\n");
}

/// What the model got for these commands, if Hermes runs as an ordinary user. Root could read and rename everything.
#[track_caller]
fn run_as_nobody(home: &Home, commands: &[&str]) -> Vec<String> {
    const NOBODY: &str = "65534";
    let server = model_that_runs(commands);
    home.use_endpoint(&server.url());
    home.set("approvals.allow", json!(["terminal/process:bash"]));
    let mut hermes = Command::new(hermes_tests::binary());
    let is_root = rustix::process::geteuid().is_root();
    let shell = |script: &str| {
        let status = Command::new("sh").args(["-ec", script]).current_dir(home.path().parent().unwrap()).status();
        assert!(status.unwrap().success(), "{script}");
    };
    if is_root {
        // Compiled code has links to that of other homes.
        let code = home.path().join("cache/code").display().to_string();
        shell(&format!("cp -R {code} {code}.own; rm -r {code}; mv {code}.own {code}; chown -R {NOBODY} ."));
        hermes = Command::new("setpriv");
        hermes.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]).arg(hermes_tests::binary());
    }
    hermes.args(["-z", "Go."]).env("HOME", home.user()).env("HERMES_HOME", home.path());
    let output = hermes.current_dir(home.workspace()).stdin(Stdio::null()).output().unwrap();
    if is_root {
        shell("chown -R 0 .");
    }
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    results(&server)
}

#[test]
fn no_permission_and_no_move_keeps_what_starts_programs_in_its_place() {
    if !is_offered() {
        return;
    }
    let home = Home::with(&model_that_runs(&[]));
    let workspace = home.workspace();
    git(&workspace, &["init", "-q", "."]);
    home.write_workspace("moved/.envrc", "safe");
    home.write_workspace(".github/workflows/ci.yml", "safe");
    let results = run_as_nobody(
        &home,
        &[
            "mv moved old; mkdir moved; echo evil > moved/.envrc",
            "mv .github gh; mkdir -p .github/workflows; echo evil > .github/workflows/ci.yml",
            "mkdir closed; echo evil > closed/.envrc; chmod 555 closed",
            "mkdir unlisted; echo evil > unlisted/.envrc; chmod 311 unlisted",
            "git init -q n; rm -rf n/.git/hooks; mkdir n/.git/hooks; echo evil > n/.git/hooks/pre-commit; chmod 311 n/.git/hooks",
            "echo evil > .envrc; for n in $(seq 0 999); do : > .envrc.denied-$n; : > denied-$n; done; : > .envrc.denied; : > denied",
            "echo evil > AGENTS.md; chmod 111 .",
        ],
    );
    for (result, what) in
        results.iter().zip(["moved/.envrc", ".github", "closed", "unlisted", "n/.git", ".envrc", "AGENTS.md"])
    {
        assert!(result.contains("[sandbox: ") && result.contains(what), "{what}: {result}");
    }
    for gone in [
        "moved/.envrc",
        ".github/workflows",
        "closed/.envrc",
        "unlisted/.envrc",
        "n/.git/hooks/pre-commit",
        ".envrc",
        "AGENTS.md",
    ] {
        assert!(workspace.join(gone).symlink_metadata().is_err(), "{gone} is there");
    }
    assert_eq!(fs::read_to_string(workspace.join("old/.envrc")).unwrap(), "safe");
}

#[test]
fn a_repository_is_protected_also_without_its_head_and_none_appears_in_two_commands() {
    if !is_offered() {
        return;
    }
    let home = Home::with(&model_that_runs(&[]));
    let workspace = home.workspace();
    git(&workspace, &["init", "-q", "."]);
    let config = fs::read_to_string(workspace.join(".git/config")).unwrap();
    let results = run_as_nobody(
        &home,
        &[
            "mv .git/HEAD .git/H",
            "echo '[core] fsmonitor = evil' > .git/config",
            "echo evil > .git/hooks/pre-commit",
            "mv .git/H .git/HEAD; git status -s",
            "mkdir -p sub/.git",
            "mkdir sub/.git/hooks; echo evil > sub/.git/hooks/pre-commit",
        ],
    );
    assert!(
        results[1].contains("Read-only file system") && results[2].contains("Read-only file system"),
        "{results:?}"
    );
    assert_eq!(results[3], "(no output)\n[exit code 0]");
    assert_eq!(fs::read_to_string(workspace.join(".git/config")).unwrap(), config);
    assert!(!workspace.join(".git/hooks/pre-commit").exists() && !workspace.join("sub/.git").exists(), "{results:?}");
}

/// A submodule and a work tree that git makes stay; a submodule whose work tree lies elsewhere would make git write there.
#[test]
fn a_submodule_writes_into_no_other_folder() {
    if !is_offered() {
        return;
    }
    let home = Home::with(&model_that_runs(&[]));
    let workspace = home.workspace();
    git(&workspace, &["init", "-q", "source"]);
    git(&workspace.join("source"), &["commit", "-q", "--allow-empty", "-m", "first"]);
    git(&workspace, &["init", "-q", "."]);
    git(&workspace, &["commit", "-q", "--allow-empty", "-m", "first"]);
    let results = run_as_nobody(
        &home,
        &[
            "git -c protocol.file.allow=always submodule add -q \"$PWD/source\" lib && git worktree add -q tree && git -C lib log --oneline",
            "git init -q evil && mv evil/.git .git/modules/evil && echo 'gitdir: ../.git/modules/evil' > evil/.git && \
             git config -f .git/modules/evil/config core.worktree ~",
        ],
    );
    assert!(results[0].contains("first") && !results[0].contains("is now called"), "{results:?}");
    assert!(workspace.join("lib/.git").exists() && workspace.join("tree/.git").exists());
    assert!(results[1].contains("[sandbox: "), "{results:?}");
    assert!(!workspace.join("evil/.git").exists() && !workspace.join(".git/modules/evil").exists(), "{results:?}");
}

/// git writes each entry of its index at a checkout, without a look at its path.
#[test]
fn a_forged_index_writes_no_hook_and_no_file_elsewhere() {
    if !is_offered() {
        return;
    }
    let home = Home::with(&model_that_runs(&[]));
    let workspace = home.workspace();
    git(&workspace, &["init", "-q", "."]);
    home.write_workspace("a", "safe");
    git(&workspace, &["add", "a"]);
    git(&workspace, &["commit", "-q", "-m", "first"]);
    let forge = r#"B=$(echo evil | git hash-object -w --stdin) perl -e '
        for (".envrc", @ARGV) {
            my $e = pack("N10", 0, 0, 0, 0, 0, 0, 0100755, 0, 0, 0) . pack("H40", $ENV{B}) . pack("n", length) . $_;
            $all .= $e . "\0" x (8 - length($e) % 8);
        }
        open(I, ">", ".git/index");
        print I "DIRC", pack("NN", 2, 1 + @ARGV), $all, "\0" x 20;
        close I;
    ' "#;
    let hook = format!("{forge} .git/hooks/post-checkout; git ls-files");
    let escape = format!("{forge} ../escape; git ls-files");
    let results = run(&home, &[hook.as_str(), escape.as_str(), forge]);
    for (at, entry) in [(0, ".git/hooks/post-checkout"), (1, "../escape")] {
        assert!(results[at].contains("index.denied") && results[at].contains(entry), "{}", results[at]);
    }
    assert!(results[2].contains("has \".envrc\" since this command"), "{}", results[2]);
    git(&workspace, &["reset", "-q"]);
    git(&workspace, &["checkout", "-f", "-q", "."]);
    git(&workspace, &["checkout-index", "-a", "-f"]);
    let written = [".git/hooks/post-checkout", "../escape", ".envrc"].map(|name| workspace.join(name).exists());
    assert_eq!(written, [false; 3], "{results:?}");

    // An index that git itself writes stays, in all its versions.
    let usual = [
        "echo b > b && git add b && git update-index --index-version 4 && git status --short",
        "git update-index --split-index && git update-index --chmod=+x b && ls .git",
        "git -c user.name=A -c user.email=a@b commit -qm second && git switch -qc other && git log --oneline",
        "git init -q --object-format=sha256 new && echo c > new/c && git -C new add c && git -C new ls-files",
    ];
    let results = run(&home, &usual);
    assert!(
        results.iter().all(|result| result.contains("[exit code 0]") && !result.contains("[sandbox")),
        "{results:?}"
    );
    assert!(results[1].contains("sharedindex."), "{}", results[1]);
}

/// git writes through links in the place of its logs and messages.
#[test]
fn a_link_among_the_files_of_git_leads_git_nowhere() {
    if !is_offered() {
        return;
    }
    let home = Home::with(&model_that_runs(&[]));
    let workspace = home.workspace();
    git(&workspace, &["init", "-q", "."]);
    git(&workspace, &["commit", "-q", "--allow-empty", "-m", "first"]);
    fs::write(home.user().join(".bashrc"), "safe").unwrap();
    let results = run(
        &home,
        &[
            "rm .git/logs/HEAD; ln -s ~/.bashrc .git/logs/HEAD; git branch 'x$(evil)'",
            "rm .git/COMMIT_EDITMSG; ln -s ~/.bashrc .git/COMMIT_EDITMSG; echo evil > .git/MERGE_MSG",
        ],
    );
    assert!(results.iter().all(|result| result.contains("[sandbox: ") && result.contains(".denied")), "{results:?}");
    git(&workspace, &["checkout", "-q", "x$(evil)"]);
    git(&workspace, &["commit", "-q", "--allow-empty", "-m", "second"]);
    assert_eq!(fs::read_to_string(home.user().join(".bashrc")).unwrap(), "safe");
}

#[test]
fn what_a_protected_link_leads_to_stays_in_its_place() {
    if !is_offered() {
        return;
    }
    let home = Home::with(&model_that_runs(&[]));
    let workspace = home.workspace();
    git(&workspace, &["init", "-q", "."]);
    fs::remove_dir_all(workspace.join(".git/hooks")).unwrap();
    let safe = ["env/main", "cfg/vs/tasks.json", "scripts/pre-commit.sh", "tools/hooks/post-merge"];
    safe.iter().for_each(|name| home.write_workspace(name, "safe"));
    let links =
        [("env/main", ".envrc"), ("cfg/vs", ".vscode"), ("../tools/hooks", ".git/hooks"), ("a/real.md", "AGENTS.md")];
    links.iter().for_each(|(target, name)| symlink(target, workspace.join(name)).unwrap());
    symlink("../../scripts/pre-commit.sh", workspace.join("tools/hooks/pre-commit")).unwrap();
    all_fail(
        &home,
        &[
            "echo evil > env/main",
            "mv env env2 && mkdir env && echo evil > env/main",
            "mv cfg cfg2 && mkdir -p cfg/vs && echo evil > cfg/vs/tasks.json",
            "mv tools t2 && mkdir -p tools/hooks && echo evil > tools/hooks/pre-commit",
            "echo evil > tools/hooks/pre-push",
            "echo evil > scripts/pre-commit.sh",
            "rm scripts/pre-commit.sh",
            "mv scripts s2 && mkdir scripts && echo evil > scripts/pre-commit.sh",
        ],
    );
    for name in safe {
        assert_eq!(fs::read_to_string(workspace.join(name)).unwrap(), "safe", "{name}");
    }
    let results =
        run(&home, &["mkdir a && echo evil > a/real.md", "echo other > scripts/other.sh && mv scripts/other.sh ."]);
    assert!(results[0].contains("real.md.denied") && !workspace.join("a/real.md").exists(), "{results:?}");
    assert_eq!(results[1], "(no output)\n[exit code 0]", "other files beside a target can change and move");
}

#[test]
fn temporary_files_go_with_the_session_whatever_their_permissions_and_depth() {
    if !is_offered() {
        return;
    }
    let home = Home::with(&model_that_runs(&[]));
    let mark = format!("mark-{}", std::process::id());
    let deep = "perl -e 'chdir \"/tmp\"; for (1..3000) { mkdir \"d\"; chdir \"d\" }'";
    let closed = format!("mkdir -p /tmp/{mark}/no/x; chmod 0 /tmp/{mark}/no; chmod 555 /tmp/{mark}; ls -d /tmp/d");
    let results = run_as_nobody(&home, &[deep, &closed]);
    assert!(results[1].contains("/tmp/d"), "{results:?}");
    // The end of a session does not wait for much to remove. Then the next one does it.
    run_as_nobody(&home, &["true"]);
    let left = fs::read_dir("/tmp").unwrap().flatten().map(|entry| entry.path().join("files").join(&mark));
    assert_eq!(left.filter(|path| path.exists()).collect::<Vec<_>>(), Vec::<std::path::PathBuf>::new());
}

/// Hermes reads what git ignores, to know which files a command changed.
#[test]
fn a_pipe_or_a_device_in_the_place_of_rules_for_git_stops_nothing() {
    if !is_offered() {
        return;
    }
    let home = Home::with(&model_that_runs(&[]));
    git(&home.workspace(), &["init", "-q", "."]);
    let results = run(
        &home,
        &[
            "rm -rf .git/info; mkdir .git/info sub; mkfifo .gitignore .ignore sub/.gitignore .git/info/exclude",
            "echo a > a; rm .gitignore sub/.gitignore .git/info/exclude; ln -s /dev/zero .gitignore; ln -s /dev/zero .git/info/exclude",
            "echo b > b",
        ],
    );
    assert!(results.iter().all(|result| result.ends_with("[exit code 0]")), "{results:?}");
    assert!(results[1].contains(".exclude.denied"), "a link among git's own files is renamed: {results:?}");
    home.hermes(&["sessions", "undo"]).run().success();
    assert!(!home.workspace().join("b").exists());
}

#[test]
fn a_killed_hermes_leaves_nothing_behind_whatever_a_program_does() {
    if !is_offered() {
        return;
    }
    let deaf = "trap \"\" TERM HUP INT QUIT; touch $0; while :; do sleep 600; done";
    let command = format!(
        "D='{deaf}'; setsid bash -c \"$D\" session & (setsid bash -c 'setsid bash -c \"$0\" daemon & ' \"$D\" &); \
         nohup bash -c \"$D\" nohup >/dev/null 2>&1 & kill -9 1; kill -9 -1; bash -c \"$D\" main"
    );
    for signal in ["KILL", "TERM", "ABRT"] {
        let server = model_that_runs(&[&command.replace("kill -9 -1; ", "")]);
        let home = home_for(&server);
        let running = home.hermes(&["-z", "Go."]).spawn();
        let until = Instant::now() + LONG;
        while !["session", "daemon", "nohup", "main"].iter().all(|name| home.workspace().join(name).exists()) {
            assert!(Instant::now() < until, "the programs did not start");
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(home.programs().len() >= 8, "{:?}", home.programs());
        let sent = Command::new("kill").args(["-s", signal, &running.id().to_string()]).status().unwrap();
        assert!(sent.success());
        while !home.programs().is_empty() {
            assert!(Instant::now() < until + LONG, "{:?} are alive after {signal}", home.programs());
            std::thread::sleep(Duration::from_millis(10));
        }
        running.wait();
    }
}

#[test]
fn a_lingering_child_ends_with_its_command() {
    if !is_offered() {
        return;
    }
    let home = Home::with(&model_that_runs(&[]));
    let results = run(
        &home,
        &["setsid sh -c 'trap \"\" TERM; sleep 2; echo evil > late' >/dev/null 2>&1 & echo begun", "sleep 4"],
    );
    assert_eq!(results[0], "begun\n[exit code 0]");
    assert!(!home.workspace().join("late").exists());
    assert_eq!(home.programs(), Vec::<String>::new());
}

/// In a script, in a chat without a terminal, and in a drawn chat.
#[test]
fn the_user_reads_what_was_denied_and_renamed_and_how_a_command_ended() {
    if !is_offered() {
        return;
    }
    let commands = ["echo x > /etc/hermes-was-here", "rm -rf .vscode.denied; mkdir .vscode; exit 3"];
    let server = model_that_runs(&commands);
    let home = home_for(&server);
    let lines = ["sandbox: a write was denied (", "Read-only file system", ".vscode\" was created and is now called"];
    let script = home.hermes(&["-z", "Go."]).run().success();
    let plain = home.hermes(&[]).stdin("Go.\n/exit\n").run().success();
    for line in lines {
        for shown in [&script.stderr, &plain.stderr] {
            assert!(shown.contains(line), "{line}: {shown}");
        }
    }
    assert!(plain.stdout.contains(" · exit code 3\n"), "{plain}");
    assert!(!plain.stdout.contains('×'), "{plain}");
    let drawn = leave(chat(&home));
    for part in ["a write was denied", ".vscode.denied", " · exit code 3"] {
        assert!(drawn.contains(part), "{part}: {drawn}");
    }
}

/// A kernel that offers less, as in many containers.
#[test]
fn without_namespaces_a_program_runs_with_approval_and_the_user_learns_why() {
    if !is_offered() {
        return;
    }
    let server = model_that_runs(&["echo ran > ran"]);
    let home = home_for(&server);
    let script = "echo 0 > /proc/sys/user/max_user_namespaces; exec \"$0\" \"$@\"";
    let without = |arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "sh", "-c", script]).arg(hermes_tests::binary()).args(arguments);
        command.env("HOME", home.user()).env("HERMES_HOME", home.path()).current_dir(home.workspace());
        let output = command.stdin(Stdio::null()).output().unwrap();
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    };
    let shown = without(&["doctor", "--no-request"]);
    assert!(shown.contains("`user.max_user_namespaces` is 0"), "{shown}");
    // A rule about confined runs does not allow unconfined ones.
    without(&["-z", "Go."]);
    assert!(!home.workspace().join("ran").exists(), "{:?}", results(&server));
    home.set("approvals.allow", json!(["terminal/process:bash", "terminal/unconfined:bash"]));
    without(&["-z", "Go."]);
    assert!(home.workspace().join("ran").exists(), "{:?}", results(&server));
    home.set("sandbox.mode", json!("require"));
    fs::remove_file(home.workspace().join("ran")).unwrap();
    without(&["-z", "Go."]);
    assert!(results(&server)[0].contains("`sandbox.mode: require`"), "{:?}", results(&server));
    assert!(!home.workspace().join("ran").exists());
}

#[test]
fn doctor_says_what_holds() {
    if !is_offered() {
        return;
    }
    let home = Home::with(&model_that_runs(&[]));
    let shown = home.hermes(&["doctor", "--no-request", "--json"]).run().stdout;
    let checks: Value = serde_json::from_str(&shown).unwrap();
    let found = checks.as_array().unwrap().iter().find(|check| check["of"] == "sandbox").cloned().unwrap_or_default();
    assert_eq!(found["finding"], "ok", "{found}");
    for part in ["namespaces", "Landlock", "seccomp", "no network"] {
        assert!(found["found"].as_str().unwrap().contains(part), "{found}");
    }
}
