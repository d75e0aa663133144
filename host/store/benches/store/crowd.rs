//! Two processes append to one store while a third one searches it.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hermes_store::{SearchQuery, Store};

use crate::corpus::{self, Corpus};
use crate::{Spread, fsync};

const WRITER: &str = "--crowd-writer";
const SEARCHER: &str = "--crowd-searcher";

/// Runs the part of a child process, if this process is one.
pub(crate) fn is_part(arguments: &[String]) -> bool {
    match arguments {
        [part, home, number, messages] if part == WRITER => {
            let store = Store::open(Path::new(home)).unwrap();
            let session = store.create_session(corpus::session()).unwrap().id;
            let mut corpus = Corpus::new(number.parse().unwrap());
            for _ in 0..messages.parse::<u64>().unwrap() {
                let draft = corpus.draft();
                let begun = Instant::now();
                store.append(&session, &[draft]).unwrap();
                println!("{}", begun.elapsed().as_micros());
            }
        }
        // Runs until it is killed.
        [part, home] if part == SEARCHER => {
            let store = Store::open(Path::new(home)).unwrap();
            for search in corpus::SEARCHES.iter().cycle() {
                let begun = Instant::now();
                store.search(&SearchQuery { sort: search.sort, ..SearchQuery::new(search.text) }).unwrap();
                println!("{}", begun.elapsed().as_micros());
            }
        }
        _ => return false,
    }
    true
}

/// Prints the durations of appends.
pub(crate) fn measure(home: &Path, messages: u64) {
    let store = Store::open(home).unwrap();
    let start = |arguments: &[&str]| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(arguments).stdout(Stdio::piped()).spawn().unwrap()
    };
    let place = home.to_str().unwrap();
    let done = AtomicBool::new(false);
    let begun = Instant::now();
    let (writes, disk, searches) = std::thread::scope(|scope| {
        let disk = scope.spawn(|| {
            let mut times = Vec::new();
            while !done.load(Ordering::Relaxed) {
                times.push(fsync(store.path()));
                std::thread::sleep(Duration::from_millis(50));
            }
            times
        });
        let mut searcher = start(&[SEARCHER, place]);
        let mut output = searcher.stdout.take().unwrap();
        let searches = scope.spawn(move || std::io::read_to_string(&mut output).unwrap());
        let writers: Vec<Child> =
            (1..=2_u64).map(|number| start(&[WRITER, place, &number.to_string(), &messages.to_string()])).collect();
        let readers: Vec<_> =
            writers.into_iter().map(|writer| scope.spawn(|| writer.wait_with_output().unwrap())).collect();
        let mut writes = Vec::new();
        for reader in readers {
            let output = reader.join().unwrap();
            assert!(output.status.success(), "a writer failed");
            writes.extend(micros(&String::from_utf8(output.stdout).unwrap()));
        }
        assert!(searcher.try_wait().unwrap().is_none(), "the searcher failed");
        searcher.kill().unwrap();
        searcher.wait().unwrap();
        done.store(true, Ordering::Relaxed);
        (writes, disk.join().unwrap(), micros(&searches.join().unwrap()))
    });
    let elapsed = begun.elapsed().as_secs_f64();
    let stored: u64 = store.sessions().unwrap().iter().map(|session| session.message_count).sum();
    assert_eq!(stored, 2 * messages);
    let (writes, disk) = (Spread::of(writes), Spread::of(disk));
    println!("\ntwo processes append {messages} messages each, a third one searches ({} times)", searches.len());
    println!("  {:.0} messages/s; ms: median / p99 / max", stored as f64 / elapsed);
    println!("  append                     {}", writes.tail());
    println!("  fsync of the disk          {}", disk.tail());
    println!("  slowest append less fsync  {:.1} (aim: under 100)", writes.max() - disk.max());
    if !searches.is_empty() {
        println!("  search                     {}", Spread::of(searches).tail());
    }
}

/// Parses complete lines; the last line may be incomplete.
fn micros(text: &str) -> Vec<Duration> {
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().map(|line| Duration::from_micros(line.parse().unwrap())).collect()
}
