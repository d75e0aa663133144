//! Outputs are written where they point: only a plain file is replaced, and a link is followed.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::{FileTypeExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use hermes_tests::{Home, KEY, Output, Reply, Server, staged_guest};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// A home with notes, a conversation, a packable plugin, and a recording.
fn home(server: &Server) -> Home {
    let home = Home::with(server);
    home.write("memories/MEMORY.md", "uses Rust\n");
    home.hermes(&["-z", "hello"]).run().success();
    let (manifest, component) = staged_guest("keeper");
    home.write_workspace("keeper/plugin.yaml", manifest);
    home.write_workspace("keeper/keeper.wasm", component);
    home.hermes(&["sessions", "export", "--all", "--output", "recording.jsonl"]).run().success();
    home
}

/// A command with a path for its output, and how the output begins.
struct Writer {
    before: &'static [&'static str],
    after: &'static [&'static str],
    begins: &'static [u8],
    overwrites: bool,
}

const WRITERS: [Writer; 6] = [
    Writer { before: &["memory", "export"], after: &[], begins: b"{", overwrites: true },
    Writer { before: &["plugins", "pack", "keeper", "--out"], after: &[], begins: &[0x1f, 0x8b], overwrites: true },
    Writer { before: &["sessions", "export", "--all", "--output"], after: &[], begins: b"{", overwrites: false },
    Writer {
        before: &["lab", "replay", "recording.jsonl", "--engine", "none", "--plot"],
        after: &[],
        begins: b"<svg",
        overwrites: true,
    },
    Writer {
        before: &["lab", "replay", "recording.jsonl", "--engine", "none", "--trace"],
        after: &[],
        begins: b"{",
        overwrites: true,
    },
    Writer {
        before: &["lab", "verify", "compressor", "--conversations", "1", "--jobs", "1", "--trace"],
        after: &[],
        begins: b"{",
        overwrites: true,
    },
];

impl Writer {
    fn run(&self, home: &Home, path: &str) -> Output {
        home.hermes(&[self.before, &[path], self.after].concat()).run()
    }

    #[track_caller]
    fn wrote(&self, path: &Path) {
        let content = fs::read(path).unwrap();
        assert!(content.starts_with(self.begins), "{:?}: {}", self.before, String::from_utf8_lossy(&content));
    }
}

/// Everything in the workspace, with what a link is.
fn names(home: &Home) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(home.workspace())
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| format!("{} {:?}", entry.path().display(), entry.file_type().unwrap()))
        .collect();
    names.sort();
    names
}

#[test]
fn a_command_follows_links_to_where_its_output_belongs() {
    let server = Server::answering(|_, _| Reply::text("Hello."));
    let home = home(&server);
    let outside = home.path().join("outside");
    for writer in &WRITERS {
        fs::create_dir_all(&outside).unwrap();
        let at = |name: &str| home.workspace().join(name);
        fs::write(outside.join("old"), "old").unwrap();
        symlink(outside.join("old"), at("to-old")).unwrap();
        symlink(outside.join("new"), at("dangling")).unwrap();
        symlink("dangling", at("chain")).unwrap();
        let before = names(&home);

        let output = writer.run(&home, "to-old");
        if writer.overwrites {
            output.success();
            writer.wrote(&outside.join("old"));
        } else {
            output.refused().says(&["exists already, and nothing is overwritten"]);
            assert_eq!(fs::read_to_string(outside.join("old")).unwrap(), "old");
        }
        writer.run(&home, "chain").success();
        writer.wrote(&outside.join("new"));
        assert_eq!(names(&home), before, "{:?}", writer.before);
        for link in ["to-old", "dangling", "chain"] {
            fs::remove_file(at(link)).unwrap();
        }
        fs::remove_dir_all(&outside).unwrap();
    }
}

#[test]
fn a_command_writes_into_pipes_and_devices_and_leaves_them_there() {
    let server = Server::answering(|_, _| Reply::text("Hello."));
    let home = home(&server);
    let pipe = home.workspace().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    symlink("pipe", home.workspace().join("to-pipe")).unwrap();
    // A terminal of its own, a device that no other program uses.
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let device = PathBuf::from(ptsname(&controller, Vec::new()).unwrap().into_string().unwrap());
    let terminal = File::from(controller);
    symlink(&device, home.workspace().join("to-device")).unwrap();
    // A terminal that no process has open hangs up.
    let _open = File::options().read(true).write(true).open(&device).unwrap();
    let before = names(&home);
    for writer in &WRITERS {
        for path in ["pipe", "to-pipe"] {
            let (output, read) = std::thread::scope(|scope| {
                let reader = scope.spawn(|| fs::read(&pipe).unwrap());
                (writer.run(&home, path), reader.join().unwrap())
            });
            output.success();
            assert!(read.starts_with(writer.begins), "{:?}: {}", writer.before, String::from_utf8_lossy(&read));
        }
        for path in [device.to_str().unwrap(), "to-device"] {
            let (output, read) = std::thread::scope(|scope| {
                let reader = scope.spawn(|| until_end(&terminal));
                let output = writer.run(&home, path);
                fs::write(&device, END).unwrap();
                (output, reader.join().unwrap())
            });
            output.success();
            assert!(read.starts_with(writer.begins), "{:?}: {}", writer.before, String::from_utf8_lossy(&read));
            assert!(fs::metadata(&device).unwrap().file_type().is_char_device());
        }
        assert_eq!(names(&home), before, "{:?}", writer.before);
    }
}

/// What the test writes after a command.
const END: &[u8] = b"<the command has ended>";

/// What was written on a terminal.
fn until_end(mut terminal: &File) -> Vec<u8> {
    let mut read = Vec::new();
    while !read.ends_with(END) {
        let mut some = [0; 4096];
        let count = terminal.read(&mut some).unwrap();
        read.extend_from_slice(&some[..count]);
    }
    read
}

#[test]
fn a_pipe_without_a_reader_is_waited_for_with_a_line() {
    let server = Server::answering(|_, _| Reply::text("Hello."));
    let home = home(&server);
    let pipe = home.workspace().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for writer in &WRITERS {
        let arguments = [writer.before, &["pipe"], writer.after].concat();
        let start = || {
            let mut command = Command::new(hermes_tests::binary());
            command
                .args(&arguments)
                .current_dir(home.workspace())
                .env("HERMES_HOME", home.path())
                .env("HOME", home.user());
            command.stdout(Stdio::null()).stderr(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap()
        };
        let until_it_waits = |process: &mut Child| {
            let mut said = BufReader::new(process.stderr.take().unwrap());
            let mut line = String::new();
            while !line.contains("pipe is a pipe: waiting for a program that reads from it") {
                line.clear();
                assert!(said.read_line(&mut line).unwrap() > 0, "{arguments:?} does not wait");
            }
            said
        };
        let mut process = start();
        let mut said = until_it_waits(&mut process);
        assert!(fs::read(&pipe).unwrap().starts_with(writer.begins));
        assert!(process.wait().unwrap().success());
        let mut rest = String::new();
        said.read_to_string(&mut rest).unwrap();
        assert!(!rest.contains("waiting"), "{rest}");

        let mut process = start();
        let _said = until_it_waits(&mut process);
        let id = rustix::process::Pid::from_child(&process);
        rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
        assert!(!process.wait().unwrap().success());
        assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
    }
}

#[test]
fn a_socket_and_a_disk_are_refused_and_a_replaced_file_is_named() {
    let server = Server::answering(|_, _| Reply::text("Hello."));
    let home = home(&server);
    let at = |name: &str| home.workspace().join(name);
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    // Only root makes a node of a disk. No driver has this number.
    let made = Command::new("mknod").arg(at("disk")).args(["b", "250", "250"]).output().unwrap().status.success();
    for writer in &WRITERS {
        writer.run(&home, "socket").refused().says(&["it is a socket"]);
        if made {
            writer.run(&home, "disk").refused().says(&["it is a disk (a block device)"]);
            assert!(fs::metadata(at("disk")).unwrap().file_type().is_block_device());
        }
        if writer.overwrites {
            fs::write(at("old"), "old").unwrap();
            writer.run(&home, "old").success().says(&["old existed, and was replaced"]);
        }
    }
    // The notes are not replaced by their export, and `-` is standard output.
    let notes = home.path().join("memories/MEMORY.md");
    home.hermes(&["memory", "export", notes.to_str().unwrap()])
        .run()
        .refused()
        .says(&["holds notes, and an export would replace them"]);
    assert_eq!(fs::read_to_string(notes).unwrap(), "uses Rust\n");
    for export in [&["memory", "export", "-"][..], &["sessions", "export", "--all", "--output", "-"]] {
        assert!(home.hermes(export).run().success().stdout.starts_with('{'), "{export:?}");
        assert!(!at("-").exists());
    }
}

#[test]
fn an_output_to_an_open_file_continues_it() {
    let server = Server::answering(|_, _| Reply::text("Hello."));
    let home = home(&server);
    for writer in &WRITERS {
        let file = home.workspace().join("open");
        let mut command = Command::new("sh");
        let arguments = [writer.before, &["/dev/stdout"], writer.after].concat();
        command.args(["-c", "echo first; \"$@\"", "sh"]).arg(hermes_tests::binary()).args(arguments);
        command.current_dir(home.workspace()).env("HERMES_HOME", home.path()).env("HOME", home.user());
        let status = command.stdout(File::options().append(true).create(true).open(&file).unwrap()).status().unwrap();
        assert!(status.success(), "{:?}", writer.before);
        let content = fs::read(&file).unwrap();
        let found = memchr::memmem::find(&content, writer.begins);
        assert!(content.starts_with(b"first\n") && found.is_some(), "{}", String::from_utf8_lossy(&content));
        fs::remove_file(&file).unwrap();
    }
}

#[test]
fn the_files_of_a_home_that_are_links_stay_links() {
    let server = Server::answering(|_, _| Reply::text("Hello."));
    let home = Home::with(&server);
    home.config(&format!(
        "model:\n  provider: custom\n  default: scripted-model\n  base_url: {}\n  api_key: {KEY}\n  context_length: 128000\n",
        server.url()
    ));
    let kept = home.user().join("dotfiles");
    fs::create_dir_all(&kept).unwrap();
    fs::create_dir_all(home.path().join("memories")).unwrap();
    fs::rename(home.path().join("config.yaml"), kept.join("config.yaml")).unwrap();
    // All but the first lead to what does not exist yet.
    let linked = ["config.yaml", ".env", "state.db", "plugins.lock", "memories/MEMORY.md"];
    let target = |name: &str| kept.join(Path::new(name).file_name().unwrap());
    for name in linked {
        symlink(target(name), home.path().join(name)).unwrap();
    }
    home.write_workspace("notes.md", "uses Rust\n");
    home.put_guest("keeper", "plugins/keeper", "keeper");
    for (round, window) in [("one", "90000"), ("two", "80000")] {
        home.hermes(&["config", "set", "model.context_length", window]).run().success();
        home.hermes(&["config", "set", "OPENROUTER_API_KEY", round]).run().success();
        home.hermes(&["plugins", "grant", "keeper", "--yes"]).run().success();
        home.hermes(&["-z", "hello"]).run().success();
        home.write_workspace("notes.md", format!("uses Rust, part {round}\n"));
        home.hermes(&["memory", "import", "notes.md", "--target", "memory"]).run().success();
        for name in linked {
            assert!(home.path().join(name).is_symlink(), "{name}");
            assert!(fs::symlink_metadata(target(name)).is_ok_and(|found| found.is_file()), "{name}");
        }
    }
    assert_eq!(home.sessions_json().len(), 2);
    assert!(fs::read_to_string(target("config.yaml")).unwrap().contains("80000"));
    assert!(fs::read_to_string(target("MEMORY.md")).unwrap().contains("part two"));
}
