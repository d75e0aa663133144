//! Measures appends and searches in small and large stores, next to the figures of a peer.
//!
//! The peer was measured earlier on a similar machine, so only the order of magnitude can be compared. The disk's
//! `fsync` is measured in the same run, because it takes most of the time of an append.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, missing_docs)]

#[path = "store/corpus.rs"]
#[allow(dead_code)]
mod corpus;
#[path = "store/crowd.rs"]
mod crowd;

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use corpus::Corpus;
use hermes_conversation::{Draft, SessionId};
use hermes_store::{Matching, SearchQuery, Sort, Store};

const HELP: &str = "usage: [--sizes N,N,…] [--crowd N] [--folder PATH]
  --sizes    messages in the store when it is measured: 10000,100000,500000
  --crowd    messages that each of two processes appends while a third one searches: 10000; 0 for none
  --folder   where the stores are made: the system's temporary folder";

/// Messages per session: more than usual, as in the peer's measurement.
const SESSION: u64 = 2_000;
const BATCH: u64 = 5_000;
const APPENDS: usize = 1_000;
const SEARCHES: usize = 7;
const QUESTIONS: usize = 200;

struct Options {
    sizes: Vec<u64>,
    crowd: u64,
    folder: PathBuf,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Option<Self> {
        let mut options = Self { sizes: vec![10_000, 100_000, 500_000], crowd: 10_000, folder: std::env::temp_dir() };
        while let Some(option) = arguments.next() {
            match option.as_str() {
                "--sizes" => {
                    let sizes: Result<_, _> = arguments.next()?.split(',').map(str::parse).collect();
                    options.sizes = sizes.ok()?;
                }
                "--crowd" => options.crowd = arguments.next()?.parse().ok()?,
                "--folder" => options.folder = arguments.next()?.into(),
                // Cargo passes this argument to every benchmark.
                "--bench" => {}
                _ => return None,
            }
        }
        options.sizes.sort_unstable();
        Some(options)
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if crowd::is_part(&arguments) {
        return;
    }
    let Some(options) = Options::parse(arguments.into_iter()) else {
        eprintln!("{HELP}");
        std::process::exit(2);
    };
    let home = tempfile::tempdir_in(&options.folder).unwrap();
    let store = Store::open(home.path()).unwrap();
    let mut corpus = Corpus::new(1);
    let mut filled = Filled { messages: 0, session: new_session(&store) };
    for &size in &options.sizes {
        let rows = filled.up_to(&store, &mut corpus, size);
        measure(&store, &mut corpus, &filled.session, size, rows);
        filled.messages += APPENDS as u64 + 1;
    }
    drop(store);
    if options.crowd > 0 {
        let home = tempfile::tempdir_in(&options.folder).unwrap();
        crowd::measure(home.path(), options.crowd);
    }
}

fn new_session(store: &Store) -> SessionId {
    store.create_session(corpus::session()).unwrap().id
}

struct Filled {
    messages: u64,
    session: SessionId,
}

impl Filled {
    /// Fills the store, and returns the rows per second.
    fn up_to(&mut self, store: &Store, corpus: &mut Corpus, size: u64) -> f64 {
        let (mut spent, before) = (Duration::ZERO, self.messages);
        while self.messages < size {
            let count = BATCH.min(size - self.messages);
            let drafts: Vec<Draft> = (0..count).map(|_| corpus.draft()).collect();
            let begun = Instant::now();
            for drafts in drafts.chunks(usize::try_from(SESSION).unwrap()) {
                self.session = new_session(store);
                store.append(&self.session, drafts).unwrap();
            }
            spent += begun.elapsed();
            self.messages += count;
        }
        (self.messages - before) as f64 / spent.as_secs_f64()
    }
}

fn measure(store: &Store, corpus: &mut Corpus, session: &SessionId, size: u64, rows: f64) {
    let bytes = size_of(store.path());
    println!("\n{size} messages, {} MB, {:.2} KB each (peer 3.4)", bytes / 1_000_000, bytes as f64 / size as f64 / 1e3);
    let column = match size {
        ..50_000 => 0,
        50_000..250_000 => 1,
        _ => 2,
    };
    println!("{:<38} {:>26} {:>10} {:>8}", "", "hermes", "peer", "ratio");
    let peer = [4_077.0, 3_270.0, 2_883.0][column];
    println!("{:<38} {rows:>26.0} {peer:>10} {:>7.1}x", "bulk, rows/s", rows / peer);

    let disk = Spread::of((0..200).map(|_| fsync(store.path())).collect());
    let begun = Instant::now();
    let appends = (0..APPENDS).map(|_| {
        let draft = corpus.draft();
        let begun = Instant::now();
        store.append(session, &[draft]).unwrap();
        begun.elapsed()
    });
    let appends = Spread::of(appends.collect());
    let rate = APPENDS as f64 / begun.elapsed().as_secs_f64();
    let peer = [228.0, 176.0, 80.0][column];
    println!("{:<38} {:>26} ", "fsync of the disk, ms", disk.tail());
    println!("{:<38} {rate:>26.0} {peer:>10} {:>7.1}x", "append, messages/s", rate / peer);
    let peer = [(3.9, 12.0, 212.0), (3.9, 12.0, 1_731.0), (3.9, 15.0, 8_264.0)][column];
    println!(
        "{:<38} {:>26} {:>10}",
        "append, ms: median / p99 / max",
        appends.tail(),
        format!("{:.1}/{:.0}/{:.0}", peer.0, peer.1, peer.2)
    );

    let long: String = (0..2_600).map(|_| corpus.draft().content).collect();
    let begun = Instant::now();
    store.append(session, &[Draft::user(long, 1)]).unwrap();
    println!("{:<38} {:>26.0}", "append of a mebibyte, ms", begun.elapsed().as_secs_f64() * 1e3);

    println!("search, 20 hits, ms: median [min-max]");
    for search in &corpus::SEARCHES {
        let query = SearchQuery { sort: search.sort, ..SearchQuery::new(search.text) };
        let mut hits = 0;
        let spread = Spread::of(
            (0..SEARCHES)
                .map(|_| {
                    let begun = Instant::now();
                    hits = store.search(&query).unwrap().len();
                    begun.elapsed()
                })
                .collect(),
        );
        let sort = if search.sort == Sort::Newest { ", newest" } else { "" };
        let name = format!("  {}: {}{sort} ({hits})", search.name, search.text);
        let compared = match search.peer[column] {
            Some(peer) => format!("{peer:>10} {:>7.1}x", peer / spread.median()),
            None => String::new(),
        };
        println!("{name:<38} {:>26} {compared}", spread.short());
    }
    ask(store, corpus);
}

/// Measures questions, each of other words: any of them may occur, in the order of the ranking.
fn ask(store: &Store, corpus: &mut Corpus) {
    let mut spent = Vec::new();
    for _ in 0..QUESTIONS {
        let query = SearchQuery { matching: Matching::Any, limit: 10, ..SearchQuery::new(corpus.question()) };
        let begun = Instant::now();
        store.search(&query).unwrap();
        spent.push(begun.elapsed());
    }
    println!("{:<38} {:>26}", "question, 10 hits, ms: median/p99/max", Spread::of(spent).tail());
}

/// The bytes of a store, including its write-ahead log.
fn size_of(path: &Path) -> u64 {
    let connection = rusqlite::Connection::open(path).unwrap();
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, u32>(0)).unwrap();
    u64::from(number("page_count")) * u64::from(number("page_size"))
}

/// Measures an append of 4 KiB to a file next to the store.
fn fsync(beside: &Path) -> Duration {
    let path = beside.with_file_name("fsync.probe");
    let mut file = File::options().create(true).append(true).open(path).unwrap();
    let begun = Instant::now();
    file.write_all(&[7; 4096]).unwrap();
    file.sync_data().unwrap();
    begun.elapsed()
}

/// Sorted durations.
struct Spread(Vec<Duration>);

impl Spread {
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self(times)
    }

    fn ms(&self, share: f64) -> f64 {
        let at = ((self.0.len() - 1) as f64 * share).round() as usize;
        self.0[at].as_secs_f64() * 1e3
    }

    fn median(&self) -> f64 {
        self.ms(0.5)
    }

    fn max(&self) -> f64 {
        self.ms(1.0)
    }

    fn short(&self) -> String {
        format!("{:.1} [{:.1}-{:.1}]", self.median(), self.ms(0.0), self.max())
    }

    fn tail(&self) -> String {
        format!("{:.1} / {:.1} / {:.1}", self.median(), self.ms(0.99), self.max())
    }
}
