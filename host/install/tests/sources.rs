//! Installs one plugin from every kind of source, with local servers. Also tests hostile servers and repositories.

#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Request, State as Shared};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use hermes_diagnostic::Diagnose as _;
use hermes_install::{InstallError, Installer, Prepared, Silent, Source, Wanted};
use sha2::{Digest as _, Sha256};

const MANIFEST: &str = "name: mine\nversion: 1.0.0\npermissions: {sql: true}\n";
const CODE: &[u8] = b"\0asm code";

type Pages = Arc<Mutex<HashMap<String, (StatusCode, HeaderMap, Vec<u8>)>>>;

/// A server that answers by path and records its requests.
struct Server {
    address: String,
    pages: Pages,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (pages, asked) = (Pages::default(), Arc::default());
        let state = (Arc::clone(&pages), Arc::clone(&asked));
        let router = Router::new().fallback(answer).with_state(state);
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, pages, asked }
    }

    fn page(&self, path: &str, headers: &[(&'static str, &str)], body: &[u8]) {
        self.answer(path, StatusCode::OK, headers, body);
    }

    fn answer(&self, path: &str, status: StatusCode, headers: &[(&'static str, &str)], body: &[u8]) {
        let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        self.pages.lock().unwrap().insert(path.to_owned(), (status, headers, body.to_vec()));
    }
}

type Both = (Pages, Arc<Mutex<Vec<String>>>);

async fn answer(Shared((pages, asked)): Shared<Both>, request: Request) -> Response {
    let path = request.uri().path().replace("%3A", ":");
    asked.lock().unwrap().push(format!("{} {:?}", request.uri(), request.headers().get("authorization")));
    let token = request.headers().get("authorization").is_some_and(|value| value == "Bearer anyone");
    let pages = pages.lock().unwrap();
    match pages.get(&path) {
        Some((status, headers, _)) if headers.contains_key("www-authenticate") && token => {
            let _ = status;
            let (_, _, body) = &pages[&format!("{path}!")];
            (StatusCode::OK, body.clone()).into_response()
        }
        Some((status, headers, body)) => (*status, headers.clone(), body.clone()).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

fn tarball(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default()));
    for (name, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, *content).unwrap();
    }
    builder.into_inner().unwrap().finish().unwrap()
}

fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, content) in files {
        writer.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// Prepares a source in its own home folder and checks the home afterwards.
async fn prepare(text: &str, insecure: bool) -> Result<(Prepared, tempfile::TempDir), InstallError> {
    let home = tempfile::tempdir().unwrap();
    let wanted = Wanted { source: Source::parse(text, Path::new("/"))?, name: None, insecure, key: None };
    let prepared = Installer::new(home.path(), []).prepare(&wanted, &Silent).await;
    if prepared.is_err() {
        let left: Vec<_> = fs::read_dir(home.path().join("plugins")).unwrap().map(|e| e.unwrap().path()).collect();
        assert!(left.is_empty(), "{text} leaves {left:?}");
    }
    Ok((prepared?, home))
}

/// Checks that the plugin is the one of these tests.
async fn comes(text: &str, insecure: bool) -> Prepared {
    let (prepared, _home) = prepare(text, insecure).await.unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(prepared.manifest.name, "mine", "{text}");
    assert_eq!(std::fs::read(prepared.folder().join("mine.wasm")).unwrap(), CODE, "{text}");
    assert_eq!(prepared.pin.source, Source::parse(text, Path::new("/")).unwrap().to_string());
    prepared
}

async fn refused(text: &str, insecure: bool) -> String {
    match prepare(text, insecure).await {
        Ok(_) => panic!("{text} is accepted"),
        Err(error) => error.sentence(),
    }
}

#[path = "sources/attack.rs"]
mod attack;

#[tokio::test]
async fn every_kind_of_local_source_gives_the_same_plugin() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("plain")).unwrap();
    fs::write(at("plain/plugin.yaml"), MANIFEST).unwrap();
    fs::write(at("plain/mine.wasm"), CODE).unwrap();
    let files: [(&str, &[u8]); 2] = [("mine-1.0/plugin.yaml", MANIFEST.as_bytes()), ("mine-1.0/mine.wasm", CODE)];
    fs::write(at("mine.tar.gz"), tarball(&files)).unwrap();
    fs::write(at("mine.zip"), zip(&files)).unwrap();
    let mut digests = Vec::new();
    for name in ["plain", "plain/mine.wasm", "mine.tar.gz", "mine.zip"] {
        digests.push(comes(at(name).to_str().unwrap(), false).await.pin.digest);
    }
    digests.dedup();
    assert_eq!(digests.len(), 1, "what it came in shows in its digest");
}

#[tokio::test]
async fn archives_and_components_are_downloaded() {
    let server = Server::start().await;
    let base = format!("http://{}", server.address);
    let files: [(&str, &[u8]); 2] = [("plugin.yaml", MANIFEST.as_bytes()), ("mine.wasm", CODE)];
    server.page("/mine.tgz", &[], &tarball(&files));
    server.page("/download", &[], &zip(&files));
    server.page("/d/mine.wasm", &[], CODE);
    server.page("/d/plugin.yaml", &[], MANIFEST.as_bytes());
    server.answer("/moved", StatusCode::FOUND, &[("location", "/mine.tgz")], b"");
    for path in ["/mine.tgz", "/download", "/d/mine.wasm", "/moved"] {
        comes(&format!("{base}{path}"), true).await;
    }

    let error = refused(&format!("{base}/mine.tgz"), false).await;
    assert!(error.contains("allow an unencrypted transfer"), "{error}");
    let error = refused(&format!("{base}/nothing.zip"), true).await;
    assert!(error.contains("404"), "{error}");
    server.page("/page.zip", &[], b"<html>It works!</html>");
    let error = refused(&format!("{base}/page.zip"), true).await;
    assert!(error.contains("not a gzip or zip archive"), "{error}");
    server.answer("/loop", StatusCode::FOUND, &[("location", "/loop")], b"");
    let error = refused(&format!("{base}/loop"), true).await;
    assert!(error.contains("redirects"), "{error}");
    server.page("/evil.tgz", &[], &tarball(&[("plugin.yaml", b"name: ../evil\n"), ("x.wasm", b"")]));
    let error = refused(&format!("{base}/evil.tgz"), true).await;
    assert!(error.contains("../evil") && error.contains("line 1"), "{error}");
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]);
    command.args(["-c", "protocol.file.allow=always"]);
    let output = command.args(arguments).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A repository with the plugin in a folder, in two versions; the first one is tagged.
fn repository(folder: &Path) -> PathBuf {
    let repository = folder.join("repo");
    fs::create_dir_all(repository.join("sub")).unwrap();
    git(&repository, &["init", "--quiet", "--initial-branch=main"]);
    for version in ["1.0.0", "2.0.0"] {
        fs::write(repository.join("sub/plugin.yaml"), format!("name: mine\nversion: {version}\n")).unwrap();
        fs::write(repository.join("sub/mine.wasm"), CODE).unwrap();
        git(&repository, &["add", "-A"]);
        git(&repository, &["commit", "--quiet", "-m", version]);
        if version == "1.0.0" {
            git(&repository, &["tag", "v1"]);
        }
    }
    repository
}

#[tokio::test]
async fn repositories_are_fetched_at_a_branch_a_tag_and_a_commit() {
    let folder = tempfile::tempdir().unwrap();
    let repository = repository(folder.path());
    let url = format!("git+file://{}", repository.display());
    let (first, head) = (git(&repository, &["rev-parse", "v1"]), git(&repository, &["rev-parse", "main"]));
    for (reference, version, commit) in [
        ("", "2.0.0", &head),
        ("@main", "2.0.0", &head),
        ("@v1", "1.0.0", &first),
        (&format!("@{first}"), "1.0.0", &first),
    ] {
        let prepared = comes(&format!("{url}{reference}#sub"), false).await;
        assert_eq!(prepared.pin.version.to_string(), version, "{reference}");
        assert_eq!(prepared.pin.resolved.as_ref(), Some(commit), "{reference}");
    }
    for (text, part) in [
        (format!("{url}@nothing#sub"), "`nothing`"),
        (format!("{url}#nothing"), "behind `#`"),
        (format!("{url}-gone"), "check the address"),
        (url, "no plugin.yaml"),
    ] {
        let error = refused(&text, false).await;
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[tokio::test]
async fn a_repository_runs_no_code_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let repository = repository(folder.path());
    let touched = folder.path().join("touched");
    let touch = format!("#!/bin/sh\ntouch {}\n", touched.display());
    for hook in ["post-checkout", "post-merge", "reference-transaction", "post-upload-pack"] {
        let path = repository.join(".git/hooks").join(hook);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &touch).unwrap();
        #[cfg(unix)]
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    // An attribute filter, and a submodule whose address is a command.
    fs::write(repository.join("sub/.gitattributes"), "*.wasm filter=evil diff=evil export-subst\n").unwrap();
    git(&repository, &["config", "filter.evil.smudge", &format!("touch {}", touched.display())]);
    fs::write(repository.join(".gitmodules"), "[submodule \"x\"]\n\tpath = x\n\turl = ext::sh -c touch\n").unwrap();
    git(&repository, &["add", "-A"]);
    git(&repository, &["commit", "--quiet", "-m", "evil"]);
    let _ = fs::remove_file(&touched);
    comes(&format!("git+file://{}#sub", repository.display()), false).await;
    assert!(!touched.exists(), "something of the repository has run");

    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("/etc/passwd", repository.join("sub/README.md")).unwrap();
        git(&repository, &["add", "-A"]);
        git(&repository, &["commit", "--quiet", "-m", "link"]);
        let error = refused(&format!("git+file://{}#sub", repository.display()), false).await;
        assert!(error.contains("link"), "{error}");
    }
}

fn sha(bytes: &[u8]) -> String {
    let hex: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

/// Puts an image into a registry under a tag. Layers consist of type, title and bytes.
fn image(server: &Server, tag: &str, layers: &[(&str, Option<&str>, &[u8])]) -> String {
    let listed: Vec<_> = layers
        .iter()
        .map(|(kind, title, bytes)| {
            server.page(&format!("/v2/team/mine/blobs/{}", sha(bytes)), &[], bytes);
            let title = title.map(|title| serde_json::json!({"org.opencontainers.image.title": title}));
            serde_json::json!({"mediaType": kind, "digest": sha(bytes), "size": bytes.len(), "annotations": title.unwrap_or_else(|| serde_json::json!({}))})
        })
        .collect();
    let manifest = serde_json::json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "layers": listed,
    });
    let bytes = manifest.to_string().into_bytes();
    for reference in [tag.to_owned(), sha(&bytes)] {
        server.page(&format!("/v2/team/mine/manifests/{reference}"), &[], &bytes);
    }
    sha(&bytes)
}

#[tokio::test]
async fn files_and_archives_are_downloaded_from_registries_by_digest() {
    let server = Server::start().await;
    let base = format!("oci://{}/team/mine", server.address);
    let files = image(
        &server,
        "files",
        &[
            ("application/yaml", Some("plugin.yaml"), MANIFEST.as_bytes()),
            ("application/wasm", Some("mine.wasm"), CODE),
            ("text/plain", Some("../../evil"), b"evil"),
        ],
    );
    let packed = tarball(&[("plugin.yaml", MANIFEST.as_bytes()), ("mine.wasm", CODE)]);
    let archive = image(&server, "packed", &[("application/vnd.oci.image.layer.v1.tar+gzip", None, &packed)]);
    assert_eq!(comes(&format!("{base}:files"), true).await.pin.resolved, Some(files.clone()));
    assert_eq!(comes(&format!("{base}:packed"), true).await.pin.resolved, Some(archive));
    assert_eq!(comes(&format!("{base}@{files}"), true).await.pin.resolved, Some(files.clone()));

    let error = refused(&format!("{base}:none"), true).await;
    assert!(error.contains("no such image"), "{error}");
    // A registry that serves other bytes.
    server.page(&format!("/v2/team/mine/blobs/{}", sha(CODE)), &[], b"\0asm evil");
    let error = refused(&format!("{base}:files"), true).await;
    assert!(error.contains("should be"), "{error}");
    server.page(&format!("/v2/team/mine/manifests/{files}"), &[], b"{}");
    let error = refused(&format!("{base}@{files}"), true).await;
    assert!(error.contains("do not trust"), "{error}");
}

#[tokio::test]
async fn an_anonymous_token_is_used_if_a_registry_requires_one() {
    let server = Server::start().await;
    let layers: [(&str, Option<&str>, &[u8]); 2] =
        [("application/yaml", Some("plugin.yaml"), MANIFEST.as_bytes()), ("application/wasm", Some("mine.wasm"), CODE)];
    image(&server, "v1", &layers);
    let challenge = format!("Bearer realm=\"http://{}/token\",service=\"registry\"", server.address);
    let open: Vec<_> = server.pages.lock().unwrap().drain().collect();
    for (path, (_, headers, body)) in open {
        server.pages.lock().unwrap().insert(format!("{path}!"), (StatusCode::OK, headers, body));
        server.answer(&path, StatusCode::UNAUTHORIZED, &[("www-authenticate", &challenge)], b"");
    }
    server.page("/token", &[], br#"{"token": "anyone"}"#);
    comes(&format!("oci://{}/team/mine:v1", server.address), true).await;
    let asked = server.asked.lock().unwrap().join("\n");
    assert!(asked.contains("/token?service=registry&scope=repository%3Ateam%2Fmine%3Apull"), "{asked}");

    server.answer("/token", StatusCode::FORBIDDEN, &[], b"");
    let error = refused(&format!("oci://{}/team/mine:v1", server.address), true).await;
    assert!(error.contains("token"), "{error}");
}
