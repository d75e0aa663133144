#![allow(clippy::unwrap_used)]

use std::fs;
use std::time::Instant;

use hermes_plugin_host::ToolDone;

use super::*;
use crate::feed::{Feed, FeedLimits, Subscription};

struct Fixture {
    folder: tempfile::TempDir,
    events: Subscription,
    notices: NoticeSender,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("workspace")).unwrap();
        fs::create_dir(folder.path().join("home")).unwrap();
        let feed = Feed::new(FeedLimits::SHARED);
        let events = feed.subscribe(None);
        let notices = NoticeSender::new(folder.path(), "s1", feed);
        Self { folder, events, notices }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn hook(&self, moment: &str, command: &str, timeout: u64) -> Arc<dyn Hooks> {
        let environment = [("PATH".into(), std::env::var_os("PATH").unwrap())];
        let timeout = Duration::from_secs(timeout);
        let entry = HookEntry {
            moment,
            at: 0,
            matcher: Some("note|other").filter(|_| moment.ends_with("tool")),
            command,
            timeout,
        };
        let hooks = ShellHook::read_all([entry].into_iter(), &environment).unwrap();
        let (workspace, home) = (self.path("workspace"), self.path("home"));
        of_session(&hooks, "s1", &workspace, &home, &self.notices).remove(0)
    }

    async fn before(&self, command: &str, timeout: u64, tool: &str) -> String {
        match self.hook("before-tool", command, timeout).on_event(Event::BeforeTool(event(tool))).await.unwrap() {
            Verdict::Proceed => "proceed".to_owned(),
            Verdict::Block(why) => format!("block: {why}"),
            Verdict::Ask(why) => format!("ask: {why}"),
        }
    }

    fn told(&mut self) -> Vec<String> {
        self.events.notices().iter().map(ToString::to_string).collect()
    }
}

fn event(tool: &str) -> ToolEvent {
    ToolEvent {
        call_id: "c1".to_owned(),
        name: tool.to_owned(),
        arguments: r#"{"path":"a"}"#.to_owned(),
        plugin: "mine".to_owned(),
        extra: Vec::new(),
    }
}

#[tokio::test]
async fn a_hook_reads_the_event_in_the_workspace_without_keys_and_decides_about_the_tools_that_it_matches() {
    let mut fixture = Fixture::new();
    let save = fixture.path("seen").display().to_string();
    let command = format!("sh -c 'cat > {save}; pwd >> {save}; env >> {save}; echo not that one >&2; exit 2'");
    assert_eq!(fixture.before(&command, 60, "unmatched").await, "proceed");
    assert!(!Path::new(&save).exists(), "it ran");
    assert_eq!(fixture.before(&command, 60, "note").await, "block: not that one");
    let seen = fs::read_to_string(&save).unwrap();
    let (json, rest) = seen.split_at(seen.rfind('}').unwrap() + 1);
    let workspace = fixture.path("workspace").canonicalize().unwrap().display().to_string();
    let expected = json!({
        "hook_event_name": "before-tool", "session_id": "s1", "cwd": fixture.path("workspace").display().to_string(),
        "tool_name": "note", "tool_input": { "path": "a" }, "call_id": "c1", "plugin": "mine",
    });
    assert_eq!(serde_json::from_str::<Value>(json).unwrap(), expected);
    assert!(rest.contains(&workspace) && !rest.contains("CARGO"), "{rest}");
    assert_eq!(fixture.told(), Vec::<String>::new());
}

#[tokio::test]
async fn a_hook_that_fails_stops_the_call_and_tells_the_user() {
    let mut fixture = Fixture::new();
    let long = format!("sh -c ': {}; echo boom >&2; exit 7'", "x".repeat(600));
    for (command, why) in [
        ("sh -c 'echo boom >&2; exit 1'", "ended with exit code 1: boom"),
        ("no-such-program-anywhere", "was not found"),
        ("sh -c 'head -c 2000000 /dev/zero'", "wrote more than 1024 KiB"),
        ("sh -c 'echo {broken'", "wrote JSON that cannot be read"),
        ("sh -c 'kill -9 $$'", "was ended by signal 9"),
        (long.as_str(), "ended with exit code 7: boom"),
    ] {
        let verdict = fixture.before(command, 60, "note").await;
        assert!(verdict.starts_with("block: the hook `") && verdict.contains(why), "{verdict}");
        let told = fixture.told();
        assert!(told.len() == 1 && told[0].contains(why) && told[0].contains("the call was not run"), "{told:?}");
        assert!(told[0].contains("correct it, or `hooks.before-tool[0]` in config.yaml"), "{told:?}");
    }
}

#[tokio::test]
async fn a_hook_ends_at_its_time_limit_with_everything_that_it_started() {
    let fixture = Fixture::new();
    let pid = fixture.path("pid").display().to_string();
    let begun = Instant::now();
    let verdict = fixture.before(&format!("sh -c 'sleep 600 & echo $! > {pid}; wait'"), 1, "note").await;
    assert!(verdict.contains("did not end within 1 s"), "{verdict}");
    assert!(begun.elapsed() < Duration::from_secs(600));
    let pid = fs::read_to_string(pid).unwrap();
    let state = || fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    while state().rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z')) {
        assert!(begun.elapsed() < Duration::from_secs(600), "the child lives");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn no_file_of_the_workspace_is_a_hook_unless_it_is_in_the_home() {
    use std::os::unix::fs::PermissionsExt as _;
    let fixture = Fixture::new();
    let script = |path: &str| {
        let path = fixture.path(path);
        fs::write(&path, "#!/bin/sh\necho ran >&2\nexit 2\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.display().to_string()
    };
    let (inside, outside) = (script("workspace/check.sh"), script("check.sh"));
    std::os::unix::fs::symlink(fixture.path("workspace/check.sh"), fixture.path("link.sh")).unwrap();
    let link = fixture.path("link.sh").display().to_string();
    for command in [inside.clone(), link, format!("sh {inside}"), "sh check.sh".to_owned()] {
        let verdict = fixture.before(&command, 60, "note").await;
        assert!(verdict.contains("is in the workspace, where the model may change it"), "{command}: {verdict}");
    }
    for command in [outside.clone(), format!("sh {outside}")] {
        assert_eq!(fixture.before(&command, 60, "note").await, "block: ran", "{command}");
    }
    // A home below the workspace.
    let (notices, workspace) = (fixture.notices.clone(), fixture.folder.path());
    let hooks = ShellHook::read_all(
        [HookEntry {
            moment: "before-tool",
            at: 0,
            matcher: None,
            command: &script("home/check.sh"),
            timeout: Duration::from_secs(60),
        }]
        .into_iter(),
        &[],
    );
    let hook = of_session(&hooks.unwrap(), "s1", workspace, &fixture.path("home"), &notices).remove(0);
    let verdict = hook.on_event(Event::BeforeTool(event("note"))).await.unwrap();
    assert!(matches!(&verdict, Verdict::Block(why) if why == "ran"), "{verdict:?}");
}

/// An activated virtual environment is in `PATH`, and programs in the sandbox can write there.
#[tokio::test]
async fn nothing_that_a_hook_starts_by_its_name_comes_from_the_workspace() {
    use std::os::unix::fs::PermissionsExt as _;
    let fixture = Fixture::new();
    let script = |path: &str, text: &str| {
        let path = fixture.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.display().to_string()
    };
    let evil = script("workspace/.venv/bin/guard", &format!("#!/bin/sh\ntouch {}\n", fixture.path("ran").display()));
    script("bin/guard", "#!/bin/sh\nexit 0\n");
    std::os::unix::fs::symlink(fixture.path("workspace/.venv/bin"), fixture.path("link")).unwrap();
    script("workspace/json.py", &format!("open({:?}, 'w')\n", fixture.path("ran")));
    let by_env = script("by-env", "#!/usr/bin/env guard\n");
    let by_name = script("by-name", "#!/bin/sh\nguard\n");
    let by_python = script("by-python", "#!/bin/sh\npython3 -c 'import json'\n");
    let by_shell = format!("sh {by_python}");
    let path = format!(
        "{}:{}::.:{}:/usr/bin:/bin",
        fixture.path("workspace/.venv/bin").display(),
        fixture.path("link").display(),
        fixture.path("bin").display()
    );
    let run = async |command: &str| {
        let environment = [("PATH".into(), path.clone().into())];
        let entry =
            HookEntry { moment: "before-tool", at: 0, matcher: None, command, timeout: Duration::from_secs(60) };
        let hooks = ShellHook::read_all([entry].into_iter(), &environment).unwrap();
        let (workspace, home) = (fixture.path("workspace"), fixture.path("home"));
        let hook = of_session(&hooks, "s1", &workspace, &home, &fixture.notices).remove(0);
        hook.on_event(Event::BeforeTool(event("note"))).await.unwrap()
    };
    for command in [
        "guard",
        "env guard",
        "sh -c guard",
        &by_env,
        &by_name,
        &by_python,
        &by_shell,
        "python3 -c 'import json'",
        "python3 '-Bcimport json'",
        "sh -c 'python3 -m json'",
        "sh -c 'python3 -mjson'",
    ] {
        let _ = run(command).await;
        assert!(!fixture.path("ran").exists(), "{command} ran a file of the workspace");
    }
    let interpreted = script("interpreted", &format!("#!{evil}\n"));
    let twice = script("twice", &format!("#!{interpreted}\n"));
    for command in [interpreted, twice, script("argument", &format!("#!/bin/sh {evil}\n"))] {
        let verdict = run(&command).await;
        assert!(
            matches!(&verdict, Verdict::Block(why) if why.contains("is in the workspace")),
            "{command}: {verdict:?}"
        );
    }
    assert!(!fixture.path("ran").exists());
}

#[tokio::test]
async fn hooks_after_the_fact_only_tell_that_they_failed() {
    let mut fixture = Fixture::new();
    let hook = fixture.hook("after-tool", "sh -c 'grep -o content...text >&2; exit 1'", 60);
    let done =
        ToolDone { event: event("note"), content: "text".to_owned(), failed: true, elapsed_ms: 7, extra: Vec::new() };
    assert!(matches!(hook.on_event(Event::AfterTool(done)).await.unwrap(), Verdict::Proceed));
    let told = fixture.told();
    assert!(
        told.len() == 1 && told[0].contains(r#"exit code 1: content":"text"#) && !told[0].contains("was not run"),
        "{told:?}"
    );
    assert_eq!(fixture.hook("before-model", "true", 60).interests().await.unwrap(), ["before-model"]);
}
