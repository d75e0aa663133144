//! Measures the searches that answer questions, in a small and a large store: as the tool `session_search` asks all
//! conversations, and as the tool `recall` asks its own. The processor time is measured too: others of a busy machine do not
//! change it.
#![allow(clippy::unwrap_used, missing_docs)]

#[path = "store/corpus.rs"]
#[allow(dead_code)]
mod corpus;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use corpus::Corpus;
use hermes_conversation::{Draft, Role, SessionId};
use hermes_session_store::{Reading, RecallOrder, RecallQuery};
use hermes_store::{Matching, SearchQuery, Store};
use rustix::time::{ClockId, clock_gettime};

const HELP: &str = "usage: [--sizes N,N,…] [--questions N] [--folder PATH]
  --sizes      messages in the stores: 6000,1000000
  --questions  questions of each kind: 300
  --folder     where the stores are made and kept for the next run: a temporary folder, which is removed";

/// Messages of the conversation that `recall` asks, if the store has so many, and of every other one.
const LONG: u64 = 100_000;
const SESSION: u64 = 100;
/// Messages that are stored at once.
const BATCH: u64 = 2_000;
/// Questions before the measured ones, so that the system has the store in memory.
const WARM_UP: usize = 50;

struct Options {
    sizes: Vec<u64>,
    questions: usize,
    folder: Option<PathBuf>,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Option<Self> {
        let mut options = Self { sizes: vec![6_000, 1_000_000], questions: 300, folder: None };
        while let Some(option) = arguments.next() {
            match option.as_str() {
                "--sizes" => {
                    let sizes: Result<_, _> = arguments.next()?.split(',').map(str::parse).collect();
                    options.sizes = sizes.ok()?;
                }
                "--questions" => options.questions = arguments.next()?.parse().ok().filter(|count| *count > 0)?,
                "--folder" => options.folder = Some(arguments.next()?.into()),
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
    let temporary = tempfile::tempdir().unwrap();
    let folder = options.folder.as_deref().unwrap_or(temporary.path());
    for &size in &options.sizes {
        let store = Store::open(&folder.join(size.to_string())).unwrap();
        let long = fill(&store, size);
        println!("\n{size} messages, {} questions of each kind; ms: median / p99 / max", options.questions);
        println!(
            "{:<34} {:>24} {:>24} {:>24} {:>24}",
            "", "session_search", "its processor", "recall", "its processor"
        );
        let (mut all_searched, mut all_recalled) = (Vec::new(), Vec::new());
        for kind in &KINDS {
            // The words of the store.
            let mut corpus = Corpus::new(1).reordered(2);
            let questions: Vec<String> =
                (0..WARM_UP + options.questions).map(|_| (kind.question)(&mut corpus)).collect();
            let searched = questions.iter().map(|question| search(&store, size, kind.among, question));
            let searched = searched.collect::<Vec<_>>().split_off(WARM_UP);
            print!("{:<34} {}", kind.name, Took::spreads(&searched));
            if let Among::All = kind.among {
                let recalled = questions.iter().map(|question| recall(&store, &long, question));
                let recalled = recalled.collect::<Vec<_>>().split_off(WARM_UP);
                print!(" {}", Took::spreads(&recalled));
                all_recalled.extend(recalled);
            }
            let slowest = searched.iter().zip(&questions[WARM_UP..]).max_by_key(|(took, _)| took.processor);
            println!("\n  slowest: {}", slowest.map_or("", |(_, question)| question));
            all_searched.extend(searched);
        }
        println!("{:<34} {} {}", "all", Took::spreads(&all_searched), Took::spreads(&all_recalled));
    }
}

/// Fills an empty store. Returns the longest conversation.
fn fill(store: &Store, size: u64) -> SessionId {
    let sessions = store.sessions().unwrap();
    if let Some(long) = sessions.iter().max_by_key(|session| session.message_count) {
        let stored: u64 = sessions.iter().map(|session| session.message_count).sum();
        assert_eq!(stored, size, "{} was left half full: remove it", store.path().display());
        return long.id.clone();
    }
    let mut corpus = Corpus::new(1);
    let (mut first, mut left) = (None, size);
    while left > 0 {
        let session = store.create_session(corpus::session()).unwrap().id;
        let messages = left.min(if first.is_none() { LONG } else { SESSION });
        for part in 0..messages.div_ceil(BATCH) {
            let drafts = (part * BATCH..messages.min((part + 1) * BATCH)).map(|_| corpus.draft());
            store.append(&session, &drafts.collect::<Vec<Draft>>()).unwrap();
        }
        left -= messages;
        first.get_or_insert(session);
    }
    first.unwrap()
}

/// What is asked, and where.
struct Kind {
    name: &'static str,
    question: fn(&mut Corpus) -> String,
    among: Among,
}

/// The messages that may be found.
#[derive(Clone, Copy)]
enum Among {
    All,
    /// The newest hundredth of them, by time.
    Newest,
    /// Those of a front end that has none.
    Nobody,
}

const fn kind(name: &'static str, question: fn(&mut Corpus) -> String, among: Among) -> Kind {
    Kind { name, question, among }
}

const KINDS: [Kind; 6] = [
    kind("nine words, rare and common", Corpus::question, Among::All),
    kind("three words", Corpus::short_question, Among::All),
    kind("three of the most common words", Corpus::common_question, Among::All),
    kind("Chinese", Corpus::chinese_question, Among::All),
    kind("nine words, the newest hundredth", Corpus::question, Among::Newest),
    kind("nine words, a source without any", Corpus::question, Among::Nobody),
];

/// Asks all conversations, as `session_search` does.
fn search(store: &Store, size: u64, among: Among, question: &str) -> Took {
    let query = RecallQuery {
        text: question.to_owned(),
        reading: Reading::Words,
        roles: vec![Role::User, Role::Assistant],
        sources: if let Among::Nobody = among { vec!["cron".to_owned()] } else { Vec::new() },
        without_sources: ["subagent", "tool"].map(str::to_owned).to_vec(),
        asking: None,
        since: if let Among::Newest = among { Some(corpus::time_of(size - size / 100)) } else { None },
        until: None,
        order: RecallOrder::Best,
        limit: 30,
        neighbours: 2,
    };
    Took::of(|| drop(store.recall(&query).unwrap()))
}

/// Asks one conversation, as `recall` does.
fn recall(store: &Store, conversation: &SessionId, question: &str) -> Took {
    let query = SearchQuery { matching: Matching::Any, limit: 100, ..SearchQuery::new(question) };
    Took::of(|| drop(store.search_conversation(conversation, &query).unwrap()))
}

/// How long something took, and how much of it was computing.
#[derive(Clone, Copy)]
struct Took {
    time: Duration,
    processor: Duration,
}

impl Took {
    fn of(work: impl FnOnce()) -> Self {
        let (begun, computed) = (Instant::now(), processor_time());
        work();
        Self { time: begun.elapsed(), processor: processor_time().saturating_sub(computed) }
    }

    fn spreads(all: &[Self]) -> String {
        let spread = |of: fn(&Self) -> Duration| {
            let mut sorted: Vec<Duration> = all.iter().map(of).collect();
            sorted.sort_unstable();
            let ms = |share: f64| sorted[((sorted.len() - 1) as f64 * share).round() as usize].as_secs_f64() * 1e3;
            format!("{:.1} / {:.1} / {:.1}", ms(0.5), ms(0.99), ms(1.0))
        };
        format!("{:>24} {:>24}", spread(|took| took.time), spread(|took| took.processor))
    }
}

/// What this thread has computed.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
}
