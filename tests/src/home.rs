//! A home and a workspace for a single test.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::process::Hermes;
use crate::server::Server;
use crate::warmth;

/// The key of the scripted provider. No output may ever contain it.
pub const KEY: &str = "sk-scripted-0123456789abcdef0123456789";

/// All files of a home with their contents.
pub type Snapshot = BTreeMap<PathBuf, Vec<u8>>;

/// `$HERMES_HOME`, a workspace and an otherwise empty `$HOME`; removed when dropped.
pub struct Home {
    root: tempfile::TempDir,
    /// Whether compiled code is shared with other homes.
    warm: bool,
}

impl Drop for Home {
    fn drop(&mut self) {
        if self.warm {
            warmth::keep(&self.path());
        }
    }
}

impl Default for Home {
    fn default() -> Self {
        Self::new()
    }
}

impl Home {
    /// Without a configuration, the binary creates `$HERMES_HOME` itself.
    pub fn new() -> Self {
        let root = tempfile::Builder::new().prefix("hermes-test-").tempdir().expect("a temporary folder can be made");
        for folder in ["user", "workspace"] {
            fs::create_dir(root.path().join(folder)).expect("a folder can be made in it");
        }
        Self { root, warm: false }
    }

    /// A home whose model is the scripted server.
    pub fn with(server: &Server) -> Self {
        let mut home = Self::new();
        home.use_endpoint(&server.url());
        warmth::bring(&home.path());
        home.warm = true;
        home
    }

    /// A home whose model is the scripted server, through Anthropic's messages.
    pub fn with_anthropic(server: &Server) -> Self {
        let home = Self::with(server);
        home.set("model.api_mode", json!("anthropic_messages"));
        home.set("model.base_url", json!(server.anthropic_url()));
        home
    }

    /// A home whose model is the scripted server, through the Responses API.
    pub fn with_responses(server: &Server) -> Self {
        let home = Self::with(server);
        home.set("model.api_mode", json!("codex_responses"));
        home
    }

    /// `$HERMES_HOME`.
    pub fn path(&self) -> PathBuf {
        self.root.path().join("home")
    }

    /// The working directory of commands.
    pub fn workspace(&self) -> PathBuf {
        self.root.path().join("workspace")
    }

    /// The store.
    pub fn state_db(&self) -> PathBuf {
        self.path().join("state.db")
    }

    /// The living processes that plugins of this home started, with those that supervise them. A sandbox numbers processes anew, so
    /// what a program says about its own number does not help.
    #[cfg(target_os = "linux")]
    pub fn programs(&self) -> Vec<String> {
        let own = format!("HOME={}", self.root.path().join("user").display());
        let read = |pid: &str, file: &str| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let is_alive = |pid: &str| {
            // A zombie process is dead.
            let stat = String::from_utf8_lossy(&read(pid, "stat")).into_owned();
            stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
        };
        let is_of_host = |pid: &str| {
            read(pid, "comm") == b"hermes\n"
                || read(pid, "cmdline").split(|byte| *byte == 0).any(|word| word == b"serve-sql")
        };
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().into_string().ok());
        pids.filter(|pid| pid.bytes().all(|byte| byte.is_ascii_digit()))
            .filter(|pid| read(pid, "environ").split(|byte| *byte == 0).any(|variable| variable == own.as_bytes()))
            .filter(|pid| is_alive(pid) && !is_of_host(pid))
            .collect()
    }

    /// The home folder of the user, with `~` as its short name.
    pub fn user(&self) -> PathBuf {
        self.root.path().join("user")
    }

    /// Writes a file below `$HERMES_HOME`, and missing folders.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        write(&self.path().join(path), content.as_ref());
    }

    /// Reads a file below `$HERMES_HOME`.
    #[track_caller]
    pub fn read(&self, path: &str) -> String {
        let path = self.path().join(path);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
    }

    /// Writes a file in the workspace.
    pub fn write_workspace(&self, path: &str, content: impl AsRef<[u8]>) {
        write(&self.workspace().join(path), content.as_ref());
    }

    /// Writes `config.yaml`.
    pub fn config(&self, yaml: &str) {
        self.write("config.yaml", yaml);
    }

    /// Sets a configuration value by its path, such as `model.context_length`.
    #[track_caller]
    pub fn set(&self, path: &str, value: Value) {
        let mut config = match fs::read_to_string(self.path().join("config.yaml")) {
            // This function writes JSON, which is valid YAML.
            Ok(text) => serde_json::from_str(&text).expect("a configuration that was not written by hand"),
            Err(_) => json!({}),
        };
        let mut place = &mut config;
        for key in path.split('.') {
            if !place.is_object() {
                *place = Value::Object(Map::new());
            }
            place = place.as_object_mut().expect("made one above").entry(key).or_insert(Value::Null);
        }
        *place = value;
        self.config(&format!("{config:#}\n"));
    }

    /// Selects an endpoint as the model.
    pub fn use_endpoint(&self, url: &str) {
        let model = json!({
            "provider": "custom", "default": "scripted-model", "base_url": url, "api_key": KEY, "context_length": 128_000,
            // A test does not wait for minutes until a scripted failure counts.
            "retry_for": 0,
        });
        self.set("model", model);
    }

    /// A command of the binary, run in the workspace.
    pub fn hermes(&self, arguments: &[&str]) -> Hermes {
        Hermes::new(&self.path(), &self.root.path().join("user"), &self.workspace(), arguments)
    }

    /// `hermes sessions list --json`.
    #[track_caller]
    pub fn sessions_json(&self) -> Vec<Value> {
        let listed = self.hermes(&["sessions", "list", "--json"]).run().success();
        match serde_json::from_str(&listed.stdout) {
            Ok(Value::Array(sessions)) => sessions,
            _ => panic!("no JSON array\n{listed}"),
        }
    }

    /// The id of the newest session.
    #[track_caller]
    pub fn newest_session(&self) -> String {
        let sessions = self.sessions_json();
        let id = sessions.first().and_then(|session| session["id"].as_str());
        id.unwrap_or_else(|| panic!("there is no session with an id: {sessions:?}")).to_owned()
    }

    /// `hermes cache ID --json`.
    #[track_caller]
    pub fn cache_json(&self, id: &str) -> Value {
        let shown = self.hermes(&["cache", id, "--json"]).run().success();
        serde_json::from_str(&shown.stdout).unwrap_or_else(|error| panic!("no JSON: {error}\n{shown}"))
    }

    /// `hermes sessions show ID --json`.
    #[track_caller]
    pub fn session_json(&self, id: &str) -> Value {
        let shown = self.hermes(&["sessions", "show", id, "--json"]).run().success();
        serde_json::from_str(&shown.stdout).unwrap_or_else(|error| panic!("no JSON: {error}\n{shown}"))
    }

    /// The messages of the newest session in the log.
    #[track_caller]
    pub fn messages(&self) -> Vec<Value> {
        let shown = self.session_json(&self.newest_session());
        shown["messages"].as_array().unwrap_or_else(|| panic!("no messages in {shown}")).clone()
    }

    /// Installs a staged test guest under a name, with all permissions it requests and a configuration section.
    #[track_caller]
    pub fn install_guest(&self, guest: &str, name: &str, config: Value) {
        self.put_guest(guest, &format!("plugins/{name}"), name);
        self.grant(name);
        self.set(&format!("plugins.entries.{name}"), config);
    }

    /// Copies a staged test guest into the home by hand, without a grant.
    #[track_caller]
    pub fn put_guest(&self, guest: &str, folder: &str, name: &str) {
        let (manifest, component) = staged_guest(guest);
        self.write(&format!("{folder}/plugin.yaml"), renamed(&manifest, name));
        self.write(&format!("{folder}/{name}.wasm"), component);
    }

    /// `hermes plugins grant NAME --yes`.
    #[track_caller]
    pub fn grant(&self, name: &str) {
        self.hermes(&["plugins", "grant", name, "--yes"]).run().success();
    }

    /// The files of `$HERMES_HOME` that hold a text.
    pub fn files_with(&self, text: &str) -> Vec<PathBuf> {
        // The standard library searches bytes slowly without optimisation.
        let finder = memchr::memmem::Finder::new(text);
        let files = self.snapshot().into_iter();
        files.filter(|(_, content)| finder.find(content).is_some()).map(|(path, _)| path).collect()
    }

    /// Panics if a file of `$HERMES_HOME` holds a text, such as a secret.
    #[track_caller]
    pub fn lacks(&self, text: &str) {
        let files = self.files_with(text);
        assert!(files.is_empty(), "{files:?} hold a text that belongs in no file");
    }

    /// All files of `$HERMES_HOME`, but the compiled code that it shares with other homes.
    pub fn snapshot(&self) -> Snapshot {
        let root = self.path();
        let mut files = Snapshot::new();
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else if !warmth::is_shared(&path) {
                    let content = fs::read(&path).expect("a file of the home can be read");
                    files.insert(path.strip_prefix(&root).expect("it lies below").to_owned(), content);
                }
            }
        }
        files
    }
}

fn write(path: &Path, content: &[u8]) {
    let folder = path.parent().expect("a file lies in a folder");
    fs::create_dir_all(folder).and_then(|()| fs::write(path, content)).expect("a temporary file can be written");
}

/// Manifest and component of a test guest.
#[track_caller]
pub fn staged_guest(guest: &str) -> (String, Vec<u8>) {
    let staged = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/test-guests").join(guest);
    let (manifest, component) = (staged.join("plugin.yaml"), staged.join(format!("{guest}.wasm")));
    let manifest = fs::read_to_string(&manifest)
        .unwrap_or_else(|error| panic!("{}: {error}; run `cargo xtask test`", manifest.display()));
    let component =
        fs::read(&component).unwrap_or_else(|error| panic!("{}: {error}; run `cargo xtask test`", component.display()));
    (manifest, component)
}

/// The manifest with another name, and the component named after it.
pub fn renamed(manifest: &str, name: &str) -> String {
    let lines = manifest.lines().map(|line| match line.split_once(':') {
        Some(("name", _)) => format!("name: {name}\n"),
        Some(("component", _)) => format!("component: {name}.wasm\n"),
        _ => format!("{line}\n"),
    });
    lines.collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn single_settings_are_kept() {
        let home = Home::new();
        assert!(!home.path().exists());
        home.use_endpoint("http://127.0.0.1:1/v1");
        home.set("model.context_length", json!(12_000));
        home.set("plugins.entries.hostile.mode", json!("loop"));
        let config: Value = serde_json::from_str(&home.read("config.yaml")).unwrap();
        assert_eq!(config["model"]["context_length"], 12_000);
        assert_eq!(config["model"]["default"], "scripted-model");
        assert_eq!(config["plugins"]["entries"]["hostile"]["mode"], "loop");
    }

    #[test]
    fn a_snapshot_contains_every_file() {
        let home = Home::new();
        assert!(home.snapshot().is_empty());
        home.write("a/b/c", "x");
        let before = home.snapshot();
        assert_eq!(before[Path::new("a/b/c")], b"x");
        home.write("a/b/c", "y");
        assert_ne!(before, home.snapshot());
    }

    #[test]
    fn a_guest_gets_the_name_it_is_installed_under() {
        let manifest = "name: hostile\nversion: 0.1.0\nimports:\n  - name: not this\n";
        assert_eq!(renamed(manifest, "other"), "name: other\nversion: 0.1.0\nimports:\n  - name: not this\n");
    }
}
