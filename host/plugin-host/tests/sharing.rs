//! What sessions of one process share of their plugins, and what they must not share.
//!
//! The plugins are the guests `planner` (a context engine) and `courier` (sends HTTP requests). `cargo xtask plugins` stages
//! them.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hermes_conversation::Model;
use hermes_plugin_host::services::NoSession;
use hermes_plugin_host::{
    Bundled, Entry, Invocation, LimitSet, Lock, Manifest, Permissions, Pin, PluginHost, Plugins, QUIETLY, Selection,
    SessionInfo, SessionPlugins, Start, Storage, Surroundings, Tools, Variables, digest,
};
use hermes_runtime::Runtime;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// A home with plugins that belong to the program.
struct Process {
    home: tempfile::TempDir,
    courier: Vec<u8>,
    host: PluginHost,
}

impl Process {
    /// Couriers by name, each with its permissions. None if no guests are staged.
    fn new(couriers: &[(&str, &Value)]) -> Option<Self> {
        let guests = hermes_test_data::staged("test-guests")?;
        let component = |guest: &str| fs::read(guests.join(guest).join(format!("{guest}.wasm"))).unwrap();
        let courier = component("courier");
        let mut bundled = vec![Bundled::new("name: planner\nversion: 1.0.0\n", component("planner").leak())];
        for (name, permissions) in couriers {
            let manifest = json!({ "name": name, "version": "1.0.0", "permissions": permissions });
            // JSON is YAML.
            bundled.push(Bundled::new(manifest.to_string().leak(), courier.clone().leak()));
        }
        let home = tempfile::tempdir().unwrap();
        let code = Path::new(env!("CARGO_TARGET_TMPDIR")).join("code");
        let host = PluginHost::new(Arc::new(Runtime::new(code)), bundled.leak(), home.path().join("plugins"));
        fs::create_dir(home.path().join("plugins")).unwrap();
        Some(Self { home, courier, host })
    }

    fn select(&self, selection: &Selection) -> Plugins {
        self.host.select(selection, QUIETLY).unwrap()
    }

    fn watched(&self, selection: &Selection) -> Plugins {
        let mut plugins = self.select(selection);
        self.host.watch(&mut plugins).unwrap();
        plugins
    }

    /// Puts the plugin `mine` into the home, with a grant or a revoked one.
    fn install(&self, version: &str, granted: bool) {
        let folder = self.home.path().join("plugins/mine");
        fs::create_dir_all(&folder).unwrap();
        let manifest = json!({ "name": "mine", "version": version, "component": "mine.wasm" }).to_string();
        for (file, content) in [("plugin.yaml", manifest.as_bytes()), ("mine.wasm", &self.courier)] {
            let aside = self.home.path().join("aside");
            fs::write(&aside, content).unwrap();
            fs::rename(aside, folder.join(file)).unwrap();
        }
        let pin = Pin {
            source: "/source".to_owned(),
            resolved: None,
            folder: "mine".to_owned(),
            version: Manifest::parse(&manifest).unwrap().version,
            digest: digest::of_folder(&folder).unwrap(),
            signer: None,
            exports: None,
            drafts: Vec::new(),
            granted: granted.then(Permissions::default),
            limits: LimitSet::default(),
            native: false,
            edited: false,
        };
        let mut lock = Lock::default();
        lock.plugins.insert("mine".to_owned(), Entry::new(pin, None));
        lock.write(&Lock::path(self.home.path())).unwrap();
    }

    fn start(&self, plugins: &Plugins, id: &str) -> SessionPlugins {
        let home: PathBuf = self.home.path().to_owned();
        let surroundings = Surroundings {
            session: SessionInfo {
                id: id.to_owned(),
                parent: None,
                platform: "test".to_owned(),
                purpose: "primary".to_owned(),
                profile: "default".to_owned(),
                workspace: None,
                repository: None,
                model: Model { provider: "test".to_owned(), name: "none".to_owned(), context_length: 64_000 },
            },
            start: Start::Fresh,
            workspace: home.clone(),
            home,
            storage: Storage::Home,
            clock: Arc::new(NoSession),
            random: Arc::new(hermes_runtime::services::SystemRandom),
            limits: LimitSet::default(),
            models: Arc::new(NoSession),
            embeddings: Arc::new(NoSession),
            history: Arc::new(NoSession),
            reporters: Box::new(|_| Arc::new(NoSession)),
            approvals: Box::new(|_| Arc::new(NoSession)),
            files: hermes_runtime::services::FileGuard::default(),
            sandbox: hermes_runtime::services::SandboxRules::default(),
        };
        plugins.start(&surroundings).unwrap()
    }
}

/// The engine `planner` and these plugins beside it.
fn selection(enabled: &[&str]) -> Selection {
    Selection { enabled: enabled.iter().map(|name| (*name).to_owned()).collect(), ..Selection::only("planner") }
}

fn versions(plugins: &Plugins) -> HashMap<String, String> {
    plugins.identities().map(|identity| (identity.name, identity.version)).collect()
}

/// Applies changes until the condition holds. Returns the notices.
async fn renew_until(plugins: &mut Plugins, is_done: impl Fn(&Plugins, &[String]) -> bool) -> Vec<String> {
    let mut notices = Vec::new();
    for _ in 0..600 {
        notices.extend(plugins.renew(Duration::from_secs(1)).await.into_iter().map(|notice| notice.text));
        if is_done(plugins, &notices) {
            return notices;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the change did not come: {notices:?}, {:?}", versions(plugins));
}

#[tokio::test]
async fn sessions_with_equal_selections_share_one_until_a_file_changes() {
    let permissions = json!({ "env": ["REGION"] });
    let Some(process) = Process::new(&[("courier", &permissions)]) else { return };
    let read = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&read);
    let variables = Variables::new(move |_| {
        counter.fetch_add(1, Ordering::SeqCst);
        Some("eu-1".to_owned())
    });
    // Every selection replaces the variable once.
    let entries = HashMap::from([("courier".to_owned(), json!({ "region": "${REGION}" }))]);
    let own = Selection { entries, variables, ..selection(&["courier", "mine"]) };
    for _ in 0..3 {
        assert!(process.select(&own).notices()[0].text.contains("`mine`, which does not exist"));
    }
    assert_eq!(read.load(Ordering::SeqCst), 1);
    // Another selection does not get the plugins of this one.
    assert!(!versions(&process.select(&selection(&[]))).contains_key("courier"));
    process.select(&own);
    assert_eq!(read.load(Ordering::SeqCst), 1, "both are kept");
    // A new file is seen at once, and so is a revoked grant.
    process.install("1.0.0", true);
    assert_eq!(versions(&process.select(&own))["mine"], "1.0.0");
    process.install("1.0.0", false);
    let revoked = process.select(&own);
    assert!(!versions(&revoked).contains_key("mine"));
    assert!(revoked.notices()[0].text.contains("revoked"), "{:?}", revoked.notices());
    assert_eq!(read.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_revoked_grant_ends_a_kept_selection() {
    let Some(process) = Process::new(&[]) else { return };
    let own = selection(&["mine"]);
    process.install("1.0.0", true);
    // Longer than the time in which a file counts as just changed, so that the selection is kept.
    tokio::time::sleep(Duration::from_millis(2_200)).await;
    assert!(versions(&process.select(&own)).contains_key("mine"));
    let lock = Lock::path(process.home.path());
    let mut revoked = Lock::read(&lock).unwrap();
    revoked.plugins.get_mut("mine").unwrap().pin.granted = None;
    revoked.write(&lock).unwrap();
    assert!(!versions(&process.select(&own)).contains_key("mine"));
}

/// The descriptors through which this process watches files.
#[cfg(target_os = "linux")]
fn watchers() -> usize {
    let descriptors = fs::read_dir("/proc/self/fd").unwrap().flatten();
    let targets = descriptors.filter_map(|descriptor| fs::read_link(descriptor.path()).ok());
    targets.filter(|target| target.to_string_lossy().contains("inotify")).count()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn twenty_sessions_have_one_file_watcher_and_all_learn_of_a_change() {
    let Some(process) = Process::new(&[]) else { return };
    process.install("1.0.0", true);
    let own = selection(&["mine"]);
    let mut sessions: Vec<Plugins> = (0..20).map(|_| process.watched(&own)).collect();
    // A session with another selection uses the same watcher.
    sessions.push(process.watched(&selection(&["mine", "missing"])));
    assert_eq!(watchers(), 1);

    process.install("2.0.0", true);
    for session in &mut sessions {
        renew_until(session, |plugins, _| versions(plugins)["mine"] == "2.0.0").await;
    }
    // A session that begins now starts with the new version, so it gets no notice.
    let mut late = process.watched(&own);
    assert_eq!(versions(&late)["mine"], "2.0.0");
    assert!(late.renew(Duration::from_millis(500)).await.is_empty());

    process.install("2.0.0", false);
    sessions.push(late);
    for session in &mut sessions {
        let notices = renew_until(session, |_, notices| !notices.is_empty()).await;
        assert!(notices[0].contains("`mine` was revoked"), "{notices:?}");
    }

    // The last session takes the watcher with it.
    let last = sessions.pop().unwrap();
    drop(sessions);
    assert_eq!(watchers(), 1);
    drop(last);
    for _ in 0..12_000 {
        if watchers() == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the watcher outlived its sessions");
}

/// A server that keeps connections open and counts them.
struct Server {
    port: u16,
    connections: Arc<AtomicUsize>,
}

impl Server {
    async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        let accepted = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                accepted.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(async move {
                    let mut request = Vec::new();
                    while stream.read_buf(&mut request).await.is_ok_and(|read| read > 0) {
                        if request.ends_with(b"\r\n\r\n") {
                            request.clear();
                            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
                        }
                    }
                });
            }
        });
        Self { port, connections }
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

fn courier(session: &SessionPlugins, name: &str) -> Arc<dyn Tools> {
    session.tools.iter().find(|tools| tools.name() == name).cloned().unwrap()
}

async fn send(courier: &Arc<dyn Tools>, url: &str) -> Value {
    let arguments = json!({ "url": url }).to_string();
    let invocation = Invocation { id: "call".to_owned(), name: "send".to_owned(), arguments, extra: Vec::new() };
    let answer = courier.call(invocation).await.unwrap().content;
    // The client returns the connection to its pool in the background.
    tokio::time::sleep(Duration::from_millis(50)).await;
    serde_json::from_str(&answer).unwrap()
}

#[tokio::test]
async fn a_plugins_sessions_share_a_kept_connection_and_other_plugins_have_their_own() {
    let server = Server::start().await;
    let site = |path: &str| json!({ "http": [{ "url": server.url(path) }] });
    let (whole, part) = (site("/"), site("/part/"));
    let Some(process) = Process::new(&[("courier", &whole), ("twin", &whole), ("narrow", &part)]) else { return };
    let own = selection(&["courier", "twin", "narrow"]);
    let (first, second) = (process.select(&own), process.select(&own));
    let (first, second) = (process.start(&first, "one"), process.start(&second, "two"));

    for session in [&first, &second, &first] {
        assert_eq!(send(&courier(session, "courier"), &server.url("/part/a")).await["status"], json!(200));
    }
    assert_eq!(server.connections(), 1, "two sessions of one plugin use one connection");

    // The same code under another name is another plugin, even with the same grant.
    assert_eq!(send(&courier(&first, "twin"), &server.url("/part/a")).await["status"], json!(200));
    assert_eq!(server.connections(), 2);

    // An open connection gives no right: every request is checked.
    let narrow = courier(&second, "narrow");
    assert_eq!(send(&narrow, &server.url("/part/a")).await["status"], json!(200));
    assert_eq!(send(&narrow, &server.url("/secret")).await["code"], json!("grant"));
    assert_eq!(server.connections(), 3);
}
