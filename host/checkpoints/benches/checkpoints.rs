//! Measures what a checkpoint adds to a command, next to `git status` on the same files in the same run.
#![allow(clippy::unwrap_used, missing_docs)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hermes_checkpoints::{Limits, Places, Recorder, Store};

const HELP: &str = "usage: [--sizes N,N,…] [--rounds N] [--folder PATH]
  --sizes    files of the workspace: 1000,10000,40000
  --rounds   commands of each kind: 15
  --folder   where the workspaces are made: the system's temporary folder";

/// Files that a command changes in the second measurement.
const CHANGED: usize = 10;
/// Bytes of a file.
const CONTENT: usize = 4_000;

struct Options {
    sizes: Vec<usize>,
    rounds: usize,
    folder: PathBuf,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Option<Self> {
        let mut options = Self { sizes: vec![1_000, 10_000, 40_000], rounds: 15, folder: std::env::temp_dir() };
        while let Some(option) = arguments.next() {
            match option.as_str() {
                "--sizes" => {
                    let sizes: Result<_, _> = arguments.next()?.split(',').map(str::parse).collect();
                    options.sizes = sizes.ok()?;
                }
                "--rounds" => options.rounds = arguments.next()?.parse().ok().filter(|rounds| *rounds > 0)?,
                "--folder" => options.folder = arguments.next()?.into(),
                // Cargo passes this argument to every benchmark.
                "--bench" => {}
                _ => return None,
            }
        }
        Some(options)
    }
}

fn main() {
    let Some(options) = Options::parse(std::env::args().skip(1)) else {
        eprintln!("{HELP}");
        std::process::exit(2);
    };
    println!(
        "Times of looks are medians of {} commands; `first` is the first command in the workspace.",
        options.rounds
    );
    println!("{:>7}  {:>32}  {:>10}  {:>9}  {:>9}  {:>8}", "files", "", "first", "before", "after", "both");
    for &size in &options.sizes {
        measure(&options, size);
    }
}

fn measure(options: &Options, size: usize) {
    let root = tempfile::tempdir_in(&options.folder).unwrap();
    let root = root.path().canonicalize().unwrap();
    let (home, workspace) = (root.join("home"), root.join("work"));
    fs::create_dir(&home).unwrap();
    fill(&workspace, size);
    git(&workspace, &["init", "-q"]);
    let adding = timed(|| git(&workspace, &["add", "-A"]));
    // The first one refreshes the index of git.
    git(&workspace, &["status", "--porcelain"]);
    let (reference, _) =
        medians(options.rounds, || (timed(|| git(&workspace, &["status", "--porcelain"])), Duration::ZERO));
    let show = |name: &str, first: Option<Duration>, before: Duration, after: Option<Duration>| {
        let ratio = (before + after.unwrap_or_default()).as_secs_f64() / reference.as_secs_f64();
        let (first, after) = (first.map(shown).unwrap_or_default(), after.map(shown).unwrap_or_default());
        println!("{size:>7}  {name:>32}  {first:>10}  {:>9}  {after:>9}  {ratio:>7.2}x", shown(before));
    };
    show("git status", Some(adding), reference, None);
    let recorder = recorder(&home, &workspace);
    let (first, _) = command(&recorder, || {});
    // What was just written is read a second time.
    command(&recorder, || {});
    let (before, after) = medians(options.rounds, || command(&recorder, || {}));
    show("a command without changes", Some(first), before, Some(after));
    let mut round = 0;
    let (before, after) = medians(options.rounds, || {
        round += 1;
        command(&recorder, || {
            for number in 0..CHANGED {
                fs::write(file(&workspace, number * size / CHANGED), format!("{round}\n").repeat(CONTENT / 3)).unwrap();
            }
        })
    });
    show("a command that changes 10 files", None, before, Some(after));
    drop(recorder);
    let (before, after) = medians(options.rounds, || command(&self::recorder(&home, &workspace), || {}));
    show("the first command of a process", None, before, Some(after));
}

/// The times that the looks before and after a command take.
fn command(recorder: &Arc<Recorder>, work: impl FnOnce()) -> (Duration, Duration) {
    let begun = Instant::now();
    let window = recorder.program_begins("true", false);
    let before = begun.elapsed();
    work();
    (before, timed(|| window.end()))
}

fn recorder(home: &Path, workspace: &Path) -> Arc<Recorder> {
    let places = Places { workspace: workspace.to_owned(), hermes: home.to_owned(), user: None };
    let notify = Box::new(|line: String| panic!("{line}"));
    let recorder = Recorder::new(Store::in_home(home), "20260101_000000_abcdef", places, Limits::STANDARD, notify);
    let recorder = Arc::new(recorder.unwrap());
    recorder.turn_begins(1, "words");
    recorder
}

fn file(workspace: &Path, number: usize) -> PathBuf {
    workspace.join(format!("src/part{}/module{}/file{number}.rs", number % 40, number % 7))
}

fn fill(workspace: &Path, size: usize) {
    for number in 0..size {
        let path = file(workspace, number);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{number}\n").repeat(CONTENT / 5)).unwrap();
    }
    // Build products, which git ignores.
    fs::write(workspace.join(".gitignore"), "/target\n*.o\n").unwrap();
    fs::create_dir(workspace.join("target")).unwrap();
    (0..size / 10).for_each(|number| fs::write(workspace.join(format!("target/{number}")), "x").unwrap());
}

fn git(workspace: &Path, arguments: &[&str]) {
    let status = Command::new("git").current_dir(workspace).args(arguments).stdout(Stdio::null()).status();
    assert!(status.unwrap().success(), "git {arguments:?}");
}

fn timed(work: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    work();
    begun.elapsed()
}

fn medians(rounds: usize, measure: impl FnMut() -> (Duration, Duration)) -> (Duration, Duration) {
    let (mut some, mut others): (Vec<_>, Vec<_>) = std::iter::repeat_with(measure).take(rounds).unzip();
    some.sort_unstable();
    others.sort_unstable();
    (some[rounds / 2], others[rounds / 2])
}

fn shown(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1_000.0)
}
