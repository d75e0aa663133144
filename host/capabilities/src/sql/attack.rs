//! Statements that try to outlive their deadline, or to take more memory than the plugin has.
#![allow(clippy::unwrap_used)]

use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::{env, fs, io, process, thread};

use super::worker::{Remote, WorkerProgram};
use super::*;
use crate::FaultKind;

const SERVES: &str = "HERMES_TEST_SQL_WORKER";
/// The time of each statement.
const TIME: Duration = Duration::from_secs(1);
/// How long a call with that time may take on a busy machine. What is attacked here would take minutes to hours.
const PATIENCE: Duration = Duration::from_secs(600);
const MEMORY: u64 = 64 << 20;

/// This test program as a worker.
fn program() -> WorkerProgram {
    WorkerProgram {
        program: env::current_exe().unwrap(),
        arguments: ["--exact", "sql::attack::a_worker_serves", "--nocapture"].map(Into::into).to_vec(),
        environment: vec![(SERVES.into(), "1".into())],
    }
}

#[test]
fn a_worker_serves() {
    if env::var_os(SERVES).is_none() {
        return;
    }
    serve(UnixStream::from(io::stdin().as_fd().try_clone_to_owned().unwrap())).unwrap();
    process::exit(0);
}

fn in_worker(path: Option<PathBuf>, quota: Quota) -> Database {
    let place = path.clone().map_or(Place::Memory, Place::File);
    Database { remote: Some(Remote::with(program(), path, quota)), ..Database::here(place, quota) }
}

/// A database in a file, served by a worker, with a full-text index of one long and many short texts.
pub(crate) fn attacked() -> (tempfile::TempDir, Database) {
    let home = tempfile::tempdir().unwrap();
    let database = in_worker(Some(home.path().join("plugin.db")), Quota::standard().with_memory(MEMORY));
    let statements = [
        "CREATE TABLE kept (id INTEGER PRIMARY KEY, text TEXT)",
        "INSERT INTO kept VALUES (1, 'one')",
        "CREATE VIRTUAL TABLE words USING fts5 (text)",
        "INSERT INTO words VALUES (replace(hex(zeroblob(80000)), '00', 'w w '))",
        "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT 2000) \
         INSERT INTO words SELECT 'w x y z' || n FROM n",
    ];
    let statements: Vec<Statement> = statements.map(|sql| Statement::new(sql, [])).to_vec();
    database.execute(&statements, &Budget::of(Duration::from_secs(120))).unwrap();
    (home, database)
}

fn a(times: usize) -> Value {
    Value::Text("a".repeat(times))
}

fn text(text: impl Into<String>) -> Value {
    Value::Text(text.into())
}

/// The statements of the review and others like them. Every one took minutes or hours before.
fn statements() -> Vec<(&'static str, Statement)> {
    let ab = || text("a".repeat(1_000_000) + "b");
    let ba = |times| text(format!("b{}a", "a".repeat(times)));
    let object = |prefix: &str, count: usize| {
        let members: Vec<String> = (0..count).map(|at| format!("\"{prefix}{at}\":1")).collect();
        text(format!("{{{}}}", members.join(",")))
    };
    let all_of = |word: &str, by: &str, count: usize| text(vec![word; count].join(by));
    let matching = |expression| Statement::new("SELECT count(*) FROM words WHERE words MATCH ?1", [expression]);
    vec![
        // The reproductions.
        ("trim", Statement::new("SELECT length(trim(?1, ?2))", [ab(), text("b".repeat(87_000) + "a")])),
        (
            "replace",
            Statement::new("SELECT length(replace(?1, ?2, 'x'))", [a(1_000_000), text("a".repeat(500_000) + "b")]),
        ),
        ("instr", Statement::new("SELECT instr(?1, ?2)", [a(1_000_000), text("a".repeat(500_000) + "b")])),
        ("json_patch", Statement::new("SELECT length(json_patch(?1, ?2))", [object("a", 90_000), object("b", 90_000)])),
        ("many words", matching(all_of("w", " OR ", 200_000))),
        ("near", matching(text(format!("NEAR({}, 1000000)", vec!["w"; 20_000].join(" "))))),
        (
            "snippet",
            Statement::new(
                "SELECT sum(length(snippet(words, 0, ?1, ?1, '', 64))) FROM words WHERE words MATCH ?2",
                [a(100_000), all_of("w", " OR ", 50_000)],
            ),
        ),
        (
            "highlight by its rank",
            Statement::new(
                "SELECT count(rank) FROM words WHERE words MATCH 'w' AND rank MATCH ?1",
                [text(format!("highlight(0, '{0}', '{0}')", "x".repeat(400_000)))],
            ),
        ),
        // Others.
        ("rtrim", Statement::new("SELECT rtrim(?1, ?2)", [a(1_000_000), text("b".repeat(500_000) + "a")])),
        (
            "ltrim of characters",
            Statement::new("SELECT ltrim(?1, ?2)", [text("é".repeat(500_000)), text("b".repeat(500_000) + "é")]),
        ),
        (
            "unhex",
            Statement::new("SELECT unhex(?1, ?2)", [text("-".repeat(1_000_000)), text("a".repeat(900_000) + "-")]),
        ),
        (
            "replace in rows",
            Statement::new(
                "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT 100000) \
             SELECT sum(length(replace(?1, ?2, 'x'))) FROM n",
                [a(1_000_000), ba(500_000)],
            ),
        ),
        (
            "trim of a value that the statement makes",
            Statement::new("SELECT length(trim(printf('%.*c', 1000000, 'a'), printf('%.*c', 900000, 'b') || 'a'))", []),
        ),
        (
            "jsonb_patch",
            Statement::new("SELECT length(jsonb_patch(?1, ?2))", [object("a", 80_000), object("b", 80_000)]),
        ),
        (
            "json_pretty",
            Statement::new(
                "SELECT length(json_pretty('[' || ?1 || '0]', ?2))",
                [text("1,".repeat(400_000)), text(" ".repeat(1_000_000))],
            ),
        ),
        ("likes", Statement::new("SELECT ?1 LIKE ?2", [a(1_000_000), text("%a".repeat(490) + "b")])),
        ("globs", Statement::new("SELECT ?1 GLOB ?2", [a(1_000_000), text("*a".repeat(490) + "b")])),
        ("many ands", matching(all_of("w", " ", 150_000))),
        ("many nots", matching(all_of("w", " NOT ", 100_000))),
        ("a long phrase", matching(text(format!("\"{}\"", vec!["w"; 200_000].join(" "))))),
        ("prefixes", matching(all_of("w*", " OR ", 100_000))),
        (
            "bm25",
            Statement::new(
                "SELECT bm25(words) FROM words WHERE words MATCH ?1 ORDER BY rank",
                [all_of("w", " OR ", 50_000)],
            ),
        ),
        (
            "an index searched by a value of the statement",
            Statement::new(
                "SELECT count(*) FROM words WHERE words MATCH replace(hex(zeroblob(100000)), '00', 'w OR ') || 'w'",
                [],
            ),
        ),
        (
            "a join without a condition",
            Statement::new("SELECT count(*) FROM words a, words b, words c WHERE a.text < b.text || c.text", []),
        ),
        (
            "a sort of large rows",
            Statement::new(
                "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n) \
             SELECT randomblob(900000) FROM n ORDER BY 1",
                [],
            ),
        ),
        (
            "a growing group",
            Statement::new(
                "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n) \
             SELECT count(DISTINCT randomblob(100000)) FROM n",
                [],
            ),
        ),
        (
            "a window that moves a text",
            Statement::new(
                "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT 1000000) SELECT sum(length(w)) FROM \
             (SELECT group_concat(n) OVER (ORDER BY n ROWS BETWEEN 100000 PRECEDING AND CURRENT ROW) AS w FROM n)",
                [],
            ),
        ),
        (
            "a join of many tables",
            Statement::new(
                format!(
                    "SELECT count(*) FROM {}",
                    (0..60).map(|at| format!("kept k{at}")).collect::<Vec<_>>().join(" NATURAL JOIN ")
                ),
                [],
            ),
        ),
        ("a long expression", Statement::new(format!("SELECT 1{}", ", 1 IN (1,2,3)".repeat(60_000)), [])),
    ]
}

/// The most memory that a process has had, in bytes. `None` if it has ended.
fn peak(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_ascii_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10)
}

#[test]
fn no_statement_outlives_its_deadline_and_the_next_one_works_at_once() {
    let (_home, database) = attacked();
    let one = Statement::new("SELECT text FROM kept", []);
    let mut highest = 0;
    for (name, statement) in statements() {
        let begun = Instant::now();
        let done = database.query(&statement, &Budget::of(TIME));
        let taken = begun.elapsed();
        println!("{name}: {taken:?}, {:?}", done.as_ref().err().map(ToString::to_string));
        assert!(taken < PATIENCE, "{name}: {taken:?}");
        if let Err(error) = done {
            // `busy`: the worker ended of the statement.
            assert!(matches!(error.code(), "quota" | "sql" | "busy"), "{name}: {error:?}");
        }
        if let Some(peak) = database.remote.as_ref().unwrap().process().and_then(peak) {
            highest = highest.max(peak);
        }
        let begun = Instant::now();
        let next = database.query(&one, &Budget::of(PATIENCE));
        assert_eq!(next.unwrap_or_else(|error| panic!("{name}: {error}")).rows, [[text("one")]], "{name}");
        assert!(begun.elapsed() < PATIENCE / 2, "{name}: the next call waited for {:?}", begun.elapsed());
    }
    assert!(highest > 0, "no worker was measured");
    // The statements themselves, their results and the program come on top.
    assert!(highest < MEMORY + (96 << 20), "{} MiB", highest >> 20);
}

#[test]
fn calls_beside_one_another_are_stopped_and_none_is_left() {
    let (_home, database) = attacked();
    let stuck =
        Statement::new("SELECT count(*) FROM words WHERE words MATCH ?1", [text("w OR ".repeat(200_000) + "w")]);
    thread::scope(|scope| {
        for _ in 0..12 {
            scope.spawn(|| {
                let begun = Instant::now();
                let error = database.query(&stuck, &Budget::of(TIME)).unwrap_err();
                assert!(matches!(error.code(), "quota" | "busy"), "{error:?}");
                assert!(begun.elapsed() < PATIENCE);
            });
        }
    });
    let put = Statement::new("INSERT INTO kept (text) VALUES ('two')", []);
    assert_eq!(database.execute(&[put], &Budget::of(PATIENCE)).unwrap(), [1]);
}

#[test]
fn a_stopped_batch_changes_nothing() {
    let (_home, database) = attacked();
    let batch = [
        Statement::new("DELETE FROM kept", []),
        Statement::new(
            "INSERT INTO kept (text) SELECT count(*) FROM words WHERE words MATCH ?1",
            [text("w OR ".repeat(200_000) + "w")],
        ),
    ];
    let begun = Instant::now();
    let error = database.execute(&batch, &Budget::of(TIME)).unwrap_err();
    assert_eq!((error.kind(), error.code()), (FaultKind::Timeout, "quota"), "{error}");
    assert!(begun.elapsed() < PATIENCE);
    let found = database.query(&Statement::new("SELECT text FROM kept", []), &Budget::of(PATIENCE)).unwrap();
    assert_eq!(found.rows, [[text("one")]]);
}

#[test]
fn a_caller_that_goes_away_ends_a_statement_that_does_not_stop() {
    let (_home, database) = attacked();
    let begun = Instant::now();
    let budget = Budget {
        cancelled: Arc::new(move || begun.elapsed() > Duration::from_millis(200)),
        ..Budget::of(Duration::from_secs(3600))
    };
    let stuck =
        Statement::new("SELECT count(*) FROM words WHERE words MATCH ?1", [text("w OR ".repeat(200_000) + "w")]);
    assert_eq!(database.query(&stuck, &budget).unwrap_err(), SqlError::Cancelled);
    assert!(begun.elapsed() < PATIENCE);
    let endless = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n) SELECT count(*) FROM n";
    let process = || database.remote.as_ref().unwrap().process();
    database.query(&Statement::new("SELECT 1", []), &Budget::of(PATIENCE)).unwrap();
    let before = process();
    assert_eq!(database.query(&Statement::new(endless, []), &budget).unwrap_err(), SqlError::Cancelled);
    assert!(before.is_some());
}

#[test]
fn a_database_in_memory_is_limited_as_a_whole() {
    let database = in_worker(None, Quota::temporary(MEMORY));
    let run = |sql: &str| database.execute(&[Statement::new(sql, [])], &Budget::of(PATIENCE));
    run("CREATE TABLE kept (x)").unwrap();
    let grow = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT 1200) \
                INSERT INTO kept SELECT randomblob(1000000) FROM n";
    for _ in 0..3 {
        let error = run(grow).unwrap_err();
        assert_eq!((error.kind(), error.code()), (FaultKind::Exhausted, "quota"), "{error}");
    }
    let process = database.remote.as_ref().unwrap().process().expect("a limit does not end the worker");
    let peak = peak(process).unwrap();
    assert!(peak < MEMORY + (96 << 20), "{} MiB", peak >> 20);
    run("INSERT INTO kept VALUES (1)").unwrap();
}

#[test]
fn the_log_has_a_limit_while_a_statement_reads() {
    let home = tempfile::tempdir().unwrap();
    let quota = Quota { bytes: 8 << 20, ..Quota::standard() };
    let database = Database::new(Place::File(home.path().join("plugin.db")), quota);
    let write = |sql: &str, budget: &Budget| database.execute(&[Statement::new(sql, [])], budget);
    write("CREATE TABLE kept (x)", &Budget::of(PATIENCE)).unwrap();
    let fill = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT 5) \
                INSERT INTO kept SELECT randomblob(900000) FROM n";
    write(fill, &Budget::of(PATIENCE)).unwrap();
    let log = || home.path().join("plugin.db-wal").metadata().map_or(0, |log| log.len());

    let done = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let flag = Arc::clone(&done);
    let reading = Budget {
        cancelled: Arc::new(move || flag.load(std::sync::atomic::Ordering::Relaxed)),
        ..Budget::of(Duration::from_secs(3600))
    };
    let change = "UPDATE kept SET x = randomblob(900000)";
    let endless = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n) SELECT count(*) FROM kept, n";
    let endless = Statement::new(endless, []);
    thread::scope(|scope| {
        let reader = scope.spawn(|| database.query(&endless, &reading));
        // The reader begins at some time; from then on the log is not merged.
        let refused = (0..100).find_map(|_| write(change, &Budget::of(TIME)).err());
        let largest = log();
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(largest < 48 << 20, "{} MiB", largest >> 20);
        assert_eq!(refused, Some(SqlError::Busy));
        assert_eq!(reader.join().unwrap(), Err(SqlError::Cancelled));
    });
    write(change, &Budget::of(PATIENCE)).unwrap();
    assert!(log() < 24 << 20, "the log was merged: {} MiB", log() >> 20);
}

#[test]
fn a_worker_ends_with_its_database_and_a_dead_one_is_replaced() {
    let (home, database) = attacked();
    let process = || database.remote.as_ref().unwrap().process().unwrap();
    let first = process();
    let pid = rustix::process::Pid::from_raw(i32::try_from(first).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let one = Statement::new("SELECT text FROM kept", []);
    assert_eq!(database.query(&one, &Budget::of(PATIENCE)).unwrap().rows, [[text("one")]]);
    let second = process();
    assert_ne!(first, second);
    drop(database);
    let files: Vec<_> = home.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(files, ["plugin.db"], "the log is merged into the file");
    assert!(!Path::new(&format!("/proc/{second}")).exists(), "the worker outlives its database");
}

#[test]
fn a_program_that_is_no_worker_is_an_error_in_time() {
    let home = tempfile::tempdir().unwrap();
    for (program, arguments) in [("/nowhere/hermes", vec![]), ("/bin/false", vec![]), ("/bin/sleep", vec!["60".into()])]
    {
        let program = WorkerProgram { program: program.into(), arguments, environment: Vec::new() };
        let path = home.path().join("plugin.db");
        let remote = Remote::with(program, Some(path.clone()), Quota::standard());
        let database = Database { remote: Some(remote), ..Database::here(Place::File(path), Quota::standard()) };
        let begun = Instant::now();
        database.query(&Statement::new("SELECT 1", []), &Budget::of(TIME)).unwrap_err();
        assert!(begun.elapsed() < PATIENCE);
    }
}
