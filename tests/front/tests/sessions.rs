//! The desk without a terminal: one process serves ten sessions that differ in everything, through a front end of 220 lines.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use hermes_tests::Home;
use serde_json::{Value, json};

/// Generous: reaching it is a failure.
const PATIENCE: Duration = Duration::from_secs(300);

/// The second front end, at work in a home.
struct Front {
    child: Child,
    orders: Option<ChildStdin>,
    lines: Receiver<Value>,
    /// Lines that were read while another one was waited for.
    passed: Vec<Value>,
    newest: u64,
}

impl Front {
    fn start(home: &Home) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hermes-json-front"));
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", home.user()).env("HERMES_HOME", home.path()).current_dir(home.workspace());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = sender.send(serde_json::from_str(&line).unwrap_or_else(|_| json!({ "no JSON": line })));
            }
        });
        Self { orders: child.stdin.take(), child, lines, passed: Vec::new(), newest: 0 }
    }

    /// The first line that fits, read now or earlier.
    #[track_caller]
    fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.passed.iter().position(&fits) {
            return self.passed.remove(at);
        }
        loop {
            let line =
                self.lines.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("it never came: {:#?}", self.passed));
            if fits(&line) {
                return line;
            }
            self.passed.push(line);
        }
    }

    /// Gives an order without waiting for the answer.
    fn give(&mut self, mut order: Value) -> u64 {
        self.newest += 1;
        order["id"] = json!(self.newest);
        writeln!(self.orders.as_mut().unwrap(), "{order}").unwrap();
        self.newest
    }

    #[track_caller]
    fn order(&mut self, order: Value) -> Value {
        let id = self.give(order);
        self.until(|line| line["id"] == id)
    }

    #[track_caller]
    fn open(&mut self, wanted: Value) -> Value {
        let mut order = wanted;
        order["do"] = json!("open");
        let opened = self.order(order);
        assert!(opened["open"].is_u64(), "{opened}");
        opened
    }

    #[track_caller]
    fn send(&mut self, to: &Value, command: Value) -> Value {
        let answer = self.order(json!({ "do": "send", "to": to, "command": command }));
        assert!(answer.get("accepted").is_some(), "{command}: {answer}");
        answer
    }

    /// The next event of an open session of this kind.
    #[track_caller]
    fn event(&mut self, open: &Value, kind: &str) -> Value {
        self.until(|line| line["open"] == *open && line["event"]["kind"]["event"] == kind)["event"].clone()
    }

    /// Says a text, and returns the end of the turn.
    #[track_caller]
    fn say(&mut self, open: &Value, text: &str) -> Value {
        self.send(open, json!({ "command": "say", "text": text }));
        self.event(open, "turn-ended")["kind"].clone()
    }

    #[track_caller]
    fn leave(mut self) {
        drop(self.orders.take());
        assert!(self.child.wait().unwrap().success());
    }
}

fn folder(home: &Home, name: &str) -> PathBuf {
    let folder = home.workspace().join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn sessions(listed: &Value) -> Vec<&Value> {
    listed["sessions"].as_array().unwrap_or_else(|| panic!("{listed}")).iter().collect()
}

#[test]
fn ten_sessions_of_one_process_differ_in_folder_mode_platform_and_author() {
    const MODES: [&str; 3] = ["accept-edits", "plan", "ask"];
    let home = Home::new();
    let mut front = Front::start(&home);
    let mut open = Vec::new();
    for at in 0..10 {
        let wanted = json!({
            "folder": folder(&home, &format!("w{at}")), "mode": MODES[at % 3], "can_ask": true,
            "platform": if at % 2 == 0 { "json" } else { "serve" }, "author": { "id": format!("u{at}") },
        });
        open.push(front.open(wanted)["open"].clone());
    }
    // All work at the same time. In the mode `ask`, the session asks before it writes.
    for (at, open) in open.iter().enumerate() {
        front.send(open, json!({ "command": "say", "text": format!("write note.txt: the harbour of number{at}") }));
    }
    for (at, open) in open.iter().enumerate() {
        if MODES[at % 3] == "ask" {
            let asked = front.event(open, "asked");
            assert_eq!(asked["kind"]["query"]["query"], "approval", "{asked}");
            front.send(open, json!({ "command": "steer", "text": format!("remember buoy{at}") }));
            let question = &asked["kind"]["question"];
            front.send(open, json!({ "command": "decide", "question": question, "decision": "once" }));
            assert_eq!(front.event(open, "steered")["kind"]["texts"], json!([format!("remember buoy{at}")]));
        }
        let end = front.event(open, "turn-ended")["kind"].clone();
        assert_eq!(end["status"]["mode"].as_str().unwrap_or("ask"), MODES[at % 3], "{end}");
        let note = home.workspace().join(format!("w{at}/note.txt"));
        assert_eq!(note.exists(), MODES[at % 3] != "plan", "session {at}: {end}");
        assert_eq!(note.parent().unwrap().read_dir().unwrap().count(), usize::from(note.exists()));
    }

    let listed = front.order(json!({ "do": "list" }));
    let listed = sessions(&listed);
    assert_eq!(listed.len(), 10);
    for at in 0..10 {
        let ends = format!("/w{at}");
        let found = listed.iter().find(|session| session["workspace"].as_str().unwrap().ends_with(&ends)).unwrap();
        assert_eq!(found["source"], if at % 2 == 0 { "json" } else { "serve" });
    }
    let found = front.order(json!({ "do": "search", "text": "number7" }));
    let ids: Vec<_> = found["hits"].as_array().unwrap().iter().map(|hit| hit["session"].as_str().unwrap()).collect();
    let seventh = listed.iter().find(|session| session["workspace"].as_str().unwrap().ends_with("/w7")).unwrap();
    assert!(!ids.is_empty() && ids.iter().all(|id| *id == seventh["id"]), "{ids:?}");

    // The same session again: this front end joins it, and sees what the other one says.
    let other = folder(&home, "elsewhere");
    let joined = front.open(json!({ "folder": other, "resume": seventh["id"] }));
    assert_eq!((joined["joined"].as_bool(), joined["session"].clone()), (Some(true), seventh["id"].clone()));
    front.send(&joined["open"], json!({ "command": "say", "text": "say ahoy" }));
    for open in [&joined["open"], &open[7]] {
        front.until(|line| line["open"] == *open && line["event"]["kind"]["end"]["text"] == "ahoy");
    }
    front.leave();
}

#[test]
fn sessions_are_exported_imported_and_opened_with_what_the_user_accepts() {
    let (writer, reader) = (Home::new(), Home::new());
    let mut front = Front::start(&writer);
    let own = folder(&writer, "project");
    let ran = front.order(json!({ "do": "run", "folder": own, "text": "say the tide is high" }));
    assert_eq!(ran["end"]["end"]["text"], "the tide is high", "{ran}");
    let file = writer.workspace().join("exported.jsonl");
    front.order(json!({ "do": "export", "session": ran["session"], "file": file }));
    front.leave();

    let mut front = Front::start(&reader);
    let imported = front.order(json!({ "do": "import", "file": file }));
    assert_eq!(imported["imported"], json!([ran["session"]]));
    let texts = front.order(json!({ "do": "read", "session": ran["session"] }));
    assert_eq!(texts["texts"], json!(["say the tide is high", "the tide is high"]));
    // The folder of the file is not used unless the user accepts it.
    let here = folder(&reader, "here");
    let opened = front.open(json!({ "folder": here, "resume": ran["session"], "mode": "accept-edits" }));
    front.say(&opened["open"], "write mark.txt: x");
    assert!(here.join("mark.txt").exists() && !own.join("mark.txt").exists());
    front.leave();
}

#[test]
fn a_tenant_has_sessions_and_memories_of_its_own() {
    let home = Home::new();
    let mut front = Front::start(&home);
    let place = folder(&home, "shared");
    let of_owner = front.open(json!({ "folder": place }));
    let of_guest = front.open(json!({ "folder": place, "tenant": "guest" }));
    front.say(&of_owner["open"], "remember the owner likes tea");
    front.say(&of_guest["open"], "remember the guest likes coffee");
    let of = |front: &mut Front, tenant: Option<&str>, text: &str| {
        let found = front.order(json!({ "do": "search", "text": text, "tenant": tenant }));
        found["hits"].as_array().unwrap_or_else(|| panic!("{found}")).len()
    };
    assert!(of(&mut front, None, "tea") > 0 && of(&mut front, Some("guest"), "coffee") > 0);
    assert_eq!((of(&mut front, None, "coffee"), of(&mut front, Some("guest"), "tea")), (0, 0));
    let listed = |front: &mut Front, tenant: Option<&str>| {
        sessions(&front.order(json!({ "do": "list", "tenant": tenant }))).len()
    };
    assert_eq!((listed(&mut front, None), listed(&mut front, Some("guest"))), (1, 1));
    let notes = |home: &Path| std::fs::read_to_string(home.join("memories/MEMORY.md")).unwrap_or_default();
    let guest = home.path().join("tenants/guest");
    assert!(notes(&home.path()).contains("tea") && !notes(&home.path()).contains("coffee"));
    assert!(notes(&guest).contains("coffee") && !notes(&guest).contains("tea"));
    // A name that is a path is none.
    let refused = front.order(json!({ "do": "list", "tenant": "../.." }));
    assert!(refused["problem"]["why"].as_str().unwrap().contains("cannot name a tenant"), "{refused}");
    front.leave();
}

#[test]
fn an_order_that_cannot_be_carried_out_says_why_and_the_others_go_on() {
    let home = Home::new();
    let mut front = Front::start(&home);
    let nowhere = front.order(json!({ "do": "open", "folder": home.workspace(), "resume": "20990101_000000_000000" }));
    assert_eq!(nowhere["problem"]["code"], "store.unknown-session", "{nowhere}");
    let relative = front.order(json!({ "do": "open", "folder": "here" }));
    assert_eq!(relative["problem"]["code"], "app.relative-workspace", "{relative}");
    let answer = front.order(json!({ "do": "send", "to": 9, "command": { "command": "stop" } }));
    assert!(answer["problem"]["why"].as_str().unwrap().contains("no open session 9"), "{answer}");
    let open = front.open(json!({ "folder": home.workspace() }));
    let answer = front.order(json!({ "do": "send", "to": open["open"], "command": { "command": "stop" } }));
    assert_eq!(answer["refused"]["code"], "nothing-runs", "{answer}");
    assert_eq!(front.say(&open["open"], "say still here")["end"]["text"], "still here");
    front.leave();
}
