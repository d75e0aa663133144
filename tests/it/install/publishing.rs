//! A project is packed, published and installed: as a file, as an asset of a release, and in a repository.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::Command;
use std::time::{Duration, SystemTime};

use hermes_tests::{Home, staged_guest};
use serde_json::Value;

/// A home with the project `keeper`, as its author has built it.
fn project() -> Home {
    let home = Home::new();
    let (manifest, component) = staged_guest("keeper");
    home.write_workspace("keeper/plugin.yaml", manifest);
    home.write_workspace("keeper/keeper.wasm", component);
    home.write_workspace("keeper/README.md", "# Keeper\n");
    home.write_workspace("keeper/LICENSE", "free\n");
    home.write_workspace("keeper/.env", "KEY=secret\n");
    home.write_workspace("keeper/notes/plan.txt", "not for others\n");
    home
}

/// The state and the version of the installed plugin.
fn installed(home: &Home) -> (String, String) {
    let output = home.hermes(&["plugins", "verify", "--json"]).run();
    let found: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}\n{output}"));
    let text = |key: &str| found[0][key].as_str().unwrap_or_default().to_owned();
    (text("state"), text("version"))
}

/// A server with one file at every address, and without signatures. Returns its address.
fn server(bytes: Vec<u8>) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
                head.extend_from_slice(&byte);
            }
            let is_signature =
                String::from_utf8_lossy(&head).lines().next().is_some_and(|line| line.contains(".minisig"));
            let (status, body) = if is_signature { ("404 Not Found", &[][..]) } else { ("200 OK", bytes.as_slice()) };
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            let _ = stream.write_all(answer.as_bytes()).and_then(|()| stream.write_all(body));
        }
    });
    format!("http://127.0.0.1:{port}")
}

#[test]
fn a_packed_plugin_is_installed_as_a_file_and_as_an_asset_of_a_release() {
    let home = project();
    let packed = home.hermes(&["plugins", "pack", "keeper"]).run().success();
    let file = home.workspace().join("keeper-0.1.0.tar.gz");
    let bytes = fs::read(&file).unwrap();
    for part in ["packed keeper-0.1.0.tar.gz", "sha256", "LICENSE (5 bytes)", "README.md", "keeper.wasm", "plugin.yaml"]
    {
        assert!(packed.stdout.contains(part), "{part}\n{packed}");
    }
    for left_out in [".env", "plan.txt"] {
        assert!(!packed.stdout.contains(left_out), "{packed}");
    }
    home.hermes(&["plugins", "install", "./keeper-0.1.0.tar.gz", "--yes"]).run().success();
    assert_eq!(installed(&home), ("ok".to_owned(), "0.1.0".to_owned()));
    let folder = home.path().join("plugins/keeper");
    let mut names: Vec<String> =
        fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["LICENSE", "README.md", "keeper.wasm", "plugin.yaml"]);
    assert_eq!(fs::read(folder.join("keeper.wasm")).unwrap(), staged_guest("keeper").1);

    let other = Home::new();
    let asset = format!("{}/you/keeper/releases/download/v0.1.0/keeper-0.1.0.tar.gz", server(bytes));
    other.hermes(&["plugins", "install", &asset, "--yes", "--insecure"]).run().success();
    assert_eq!(installed(&other), ("ok".to_owned(), "0.1.0".to_owned()));
}

#[test]
fn packing_again_gives_the_same_bytes_and_an_outdated_build_is_refused() {
    let home = project();
    let report = |out: &str| -> Value {
        let output = home.hermes(&["plugins", "pack", "keeper", "--out", out, "--json"]).run().success();
        serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}\n{output}"))
    };
    let first = report("first.tar.gz");
    let old = SystemTime::now() - Duration::from_secs(1_000_000);
    for name in ["plugin.yaml", "keeper.wasm", "LICENSE"] {
        let file = fs::File::options().append(true).open(home.workspace().join("keeper").join(name)).unwrap();
        file.set_modified(old).unwrap();
    }
    let second = report("second.tar.gz");
    assert_eq!(first["sha256"], second["sha256"]);
    let read = |name: &str| fs::read(home.workspace().join(name)).unwrap();
    assert_eq!(read("first.tar.gz"), read("second.tar.gz"));
    assert_eq!(first["bytes"].as_u64(), Some(read("first.tar.gz").len() as u64));

    home.write_workspace("keeper/keeper.py", "# newer than the component\n");
    let refused = home.hermes(&["plugins", "pack", "keeper"]).run().refused();
    refused.says(&["is older than", "keeper.py", "build.py"]);
    home.hermes(&["plugins", "pack", "."]).run().refused().says(&["plugin.yaml"]);
    home.hermes(&["plugins", "pack", "keeper", "--out", "no/such/folder.tar.gz"]).run().refused();
}

#[test]
fn a_repository_with_the_component_is_installed() {
    let home = project();
    let folder = home.workspace().join("keeper");
    let git = |arguments: &[&str]| {
        let done = Command::new("git").args(arguments).current_dir(&folder).output().expect("git is installed");
        assert!(done.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    };
    git(&["init", "--quiet"]);
    git(&["add", "plugin.yaml", "keeper.wasm", "LICENSE"]);
    let author = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false"];
    git(&[&author[..], &["commit", "--quiet", "-m", "Release 0.1.0"]].concat());
    let source = format!("git+file://{}", folder.display());
    home.hermes(&["plugins", "install", &source, "--yes"]).run().success();
    assert_eq!(installed(&home), ("ok".to_owned(), "0.1.0".to_owned()));
    assert!(!home.path().join("plugins/keeper/notes").exists());
}

#[test]
fn the_contract_is_written_and_changed_files_are_not_overwritten() {
    let home = Home::new();
    let wit = |arguments: &[&str]| home.hermes(&[&["plugins", "wit"], arguments].concat()).run();
    let written = wit(&["contract"]).success();
    assert!(written.stdout.contains("of the contract to contract"), "{written}");
    let repository = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit");
    let mut folders = vec![repository.clone()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    let here = |path: &std::path::Path| home.workspace().join("contract").join(path.strip_prefix(&repository).unwrap());
    for path in &files {
        assert_eq!(fs::read(here(path)).ok(), fs::read(path).ok(), "{}", path.display());
    }
    assert!(wit(&["contract"]).success().stdout.contains("up to date"));
    let changed = here(&files[0]);
    fs::write(&changed, "mine").unwrap();
    let name = changed.file_name().unwrap().to_string_lossy().into_owned();
    wit(&["contract"]).refused().says(&["differ", &name, "--force"]);
    assert_eq!(fs::read_to_string(&changed).unwrap(), "mine");
    wit(&["contract", "--force"]).success();
    assert_eq!(fs::read(&changed).unwrap(), fs::read(&files[0]).unwrap());
}

/// A registry in memory that keeps what is pushed. Returns its host and port.
fn registry() -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let mut stored: std::collections::BTreeMap<String, Vec<u8>> = std::collections::BTreeMap::new();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let (mut head, mut byte) = (Vec::new(), [0]);
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
                head.extend_from_slice(&byte);
            }
            let head = String::from_utf8_lossy(&head).replace("%3A", ":").replace("%2F", "/");
            let length =
                head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ").map(str::to_owned));
            let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
            if stream.read_exact(&mut body).is_err() {
                continue;
            }
            let mut words = head.split(' ');
            let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default().to_owned());
            let (status, more, answer) = match method {
                "POST" => ("202 Accepted", format!("location: {path}1\r\n"), Vec::new()),
                "PUT" => {
                    let key = path
                        .split_once("uploads/1?digest=")
                        .map_or(path.clone(), |(start, name)| format!("{start}{name}"));
                    stored.insert(key, body);
                    ("201 Created", String::new(), Vec::new())
                }
                _ => match stored.get(&path) {
                    Some(bytes) => ("200 OK", String::new(), bytes.clone()),
                    None => ("404 Not Found", String::new(), Vec::new()),
                },
            };
            let answer = if method == "HEAD" { Vec::new() } else { answer };
            let lines =
                format!("HTTP/1.1 {status}\r\n{more}content-length: {}\r\nconnection: close\r\n\r\n", answer.len());
            let _ = stream.write_all(lines.as_bytes()).and_then(|()| stream.write_all(&answer));
        }
    });
    host
}

#[test]
fn a_plugin_is_pushed_to_a_registry_and_installed_from_it() {
    let home = project();
    let name = format!("oci://{}/you/keeper", registry());
    let pushed = home.hermes(&["plugins", "push", &name, "keeper", "--insecure"]).run().success();
    let image = format!("{name}:0.1.0");
    for part in
        [&format!("pushed {image}"), "not signed", "sha256:", &format!("hermes plugins install {image} --insecure")]
    {
        assert!(pushed.stdout.contains(part), "{part}\n{pushed}");
    }
    let other = Home::new();
    other.hermes(&["plugins", "install", &image, "--yes", "--insecure"]).run().success();
    assert_eq!(installed(&other), ("ok".to_owned(), "0.1.0".to_owned()));

    let again = home.hermes(&["plugins", "push", &image, "keeper", "--insecure"]).run().success();
    assert!(again.stderr.contains("exactly this content already"), "{again}");

    // Another content under the same tag needs a word.
    home.write_workspace("keeper/README.md", "# Keeper, again\n");
    let refused = home.hermes(&["plugins", "push", &image, "keeper", "--insecure"]).run().refused();
    assert!(refused.stderr.contains("names another image") && refused.stderr.contains("--yes"), "{refused}");
    let replaced = home.hermes(&["plugins", "push", &image, "keeper", "--insecure", "--yes", "--json"]).run().success();
    let replaced: Value = serde_json::from_str(&replaced.stdout).unwrap();
    assert_eq!(replaced["pushed"], true);
    assert!(replaced["replaced"].as_str().unwrap().starts_with("sha256:"), "{replaced:#}");
    other.hermes(&["plugins", "update", "keeper", "--yes", "--insecure"]).run().success();
    assert_eq!(other.read("plugins/keeper/README.md"), "# Keeper, again\n");

    let elsewhere = home.hermes(&["plugins", "push", "./keeper", "keeper"]).run().refused();
    assert!(elsewhere.stderr.contains("oci://"), "{elsewhere}");
}
