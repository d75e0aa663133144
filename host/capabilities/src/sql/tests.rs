#![allow(clippy::unwrap_used)]

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::{env, fs, thread};

use super::*;
use crate::FaultKind;

fn long() -> Budget {
    Budget::of(Duration::from_secs(60))
}

fn query(database: &Database, sql: &str) -> Result<Rows, SqlError> {
    database.query(&Statement::new(sql, []), &long())
}

fn execute(database: &Database, statements: &[&str]) -> Result<Vec<u64>, SqlError> {
    let statements: Vec<Statement> = statements.iter().map(|sql| Statement::new(*sql, [])).collect();
    database.execute(&statements, &long())
}

fn number(database: &Database, sql: &str) -> i64 {
    match query(database, sql).unwrap().rows.as_slice() {
        [row] => match row.as_slice() {
            [Value::Integer(number)] => *number,
            other => panic!("{sql}: {other:?}"),
        },
        other => panic!("{sql}: {other:?}"),
    }
}

/// A database in a temporary file, with a table of one row.
fn with_a_row() -> (tempfile::TempDir, Arc<Database>) {
    let home = tempfile::tempdir().unwrap();
    let database = Database::at(home.path().join("data/mine/plugin.db"));
    execute(
        &database,
        &["CREATE TABLE kept (id INTEGER PRIMARY KEY, text TEXT)", "INSERT INTO kept VALUES (1, 'one')"],
    )
    .unwrap();
    (home, database)
}

#[test]
fn values_of_every_kind_are_returned_unchanged() {
    let database = Database::in_memory();
    execute(&database, &["CREATE TABLE kept (a, b, c, d, e)"]).unwrap();
    let values = [
        Value::Null,
        Value::Integer(i64::MIN),
        Value::Real(-0.5),
        Value::Text("tea\0 \"☕\"".into()),
        Value::Blob(vec![0, 255, 7]),
    ];
    let put = Statement::new("INSERT INTO kept VALUES (?1, ?2, ?3, ?4, ?5)", values.clone());
    assert_eq!(database.execute(&[put.clone(), put], &long()).unwrap(), [1, 1]);
    let found = query(&database, "SELECT * FROM kept LIMIT 1;\n").unwrap();
    assert_eq!(found.columns, ["a", "b", "c", "d", "e"]);
    assert_eq!(found.rows, [values.to_vec()]);
}

#[test]
fn each_statement_reports_how_many_rows_it_changed() {
    let database = Database::in_memory();
    let changed = execute(
        &database,
        &[
            "CREATE TABLE kept (id)",
            "INSERT INTO kept VALUES (1), (2), (3)",
            "SELECT * FROM kept",
            "CREATE INDEX by_id ON kept (id)",
            "UPDATE kept SET id = id + 1 WHERE id > 1 RETURNING id",
            "DELETE FROM kept",
        ],
    );
    assert_eq!(changed.unwrap(), [0, 3, 0, 0, 2, 3]);
    assert_eq!(execute(&database, &[]).unwrap(), [0; 0]);
}

#[test]
fn statements_take_effect_all_or_none() {
    let (_home, database) = with_a_row();
    for bad in ["INSERT INTO kept VALUES (2, 'a'), (2, 'b')", "INSERT INTO missing VALUES (1)", "nonsense", ""] {
        let error = execute(&database, &["CREATE TABLE half (id)", "DELETE FROM kept", bad]).unwrap_err();
        assert_eq!((error.kind(), error.code()), (FaultKind::InvalidInput, "sql"), "{bad}: {error}");
        assert_eq!(number(&database, "SELECT count(*) FROM kept"), 1, "{bad}");
        assert_eq!(number(&database, "SELECT count(*) FROM sqlite_schema WHERE name = 'half'"), 0, "{bad}");
    }
}

#[test]
fn a_full_text_index_works_with_its_vocabulary_and_triggers() {
    let (_home, database) = with_a_row();
    execute(
        &database,
        &[
            "CREATE VIRTUAL TABLE words USING fts5 (text, content = 'kept', content_rowid = 'id', tokenize = 'porter unicode61')",
            "CREATE VIRTUAL TABLE terms USING fts5vocab (words, row)",
            "CREATE TRIGGER enters AFTER INSERT ON kept BEGIN INSERT INTO words (rowid, text) VALUES (NEW.id, NEW.text); END",
            "CREATE TRIGGER leaves AFTER DELETE ON kept BEGIN \
             INSERT INTO words (words, rowid, text) VALUES ('delete', OLD.id, OLD.text); END;",
            "INSERT INTO words (words) VALUES ('rebuild')",
            "INSERT INTO kept VALUES (2, 'deploying; a pool of connections'), (3, 'a connection')",
            "INSERT INTO words (words) VALUES ('optimize')",
        ],
    )
    .unwrap();
    let found = query(
        &database,
        "SELECT rowid, snippet(words, 0, '[', ']', '…', 4), bm25(words) < 0 FROM words WHERE words MATCH 'connections' \
         ORDER BY rank",
    );
    let found = found.unwrap().rows;
    assert_eq!(found.len(), 2);
    assert_eq!(found[0], [Value::Integer(3), Value::Text("a [connection]".into()), Value::Integer(1)]);
    assert_eq!(number(&database, "SELECT doc FROM terms WHERE term = 'connect'"), 2);
    execute(&database, &["DELETE FROM kept WHERE id = 3", "ALTER TABLE words RENAME TO terms_of_it"]).unwrap();
    assert_eq!(number(&database, "SELECT count(*) FROM terms_of_it WHERE terms_of_it MATCH 'connection'"), 1);
    execute(&database, &["DROP TABLE terms_of_it"]).unwrap();
}

#[test]
fn schema_changes_work() {
    let database = Database::in_memory();
    let statements = [
        "CREATE TABLE a (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, more TEXT DEFAULT 'x') STRICT",
        "CREATE TABLE b (a INTEGER REFERENCES a (id) ON DELETE CASCADE) ",
        "INSERT INTO a (name) VALUES ('one')",
        "INSERT INTO b VALUES (1)",
        "CREATE VIEW both AS SELECT name FROM a JOIN b ON b.a = a.id",
        "ALTER TABLE a ADD COLUMN extra TEXT",
        "ALTER TABLE a DROP COLUMN more",
        "ALTER TABLE a RENAME COLUMN name TO title",
        "ALTER TABLE a RENAME TO c",
        "CREATE INDEX titles ON c (lower(title)) WHERE extra IS NULL",
        "ANALYZE",
        "REINDEX",
        "PRAGMA user_version = 7",
        "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 10) INSERT INTO c (title) SELECT n FROM n",
        "INSERT INTO c (title) VALUES ('one') ON CONFLICT DO UPDATE SET extra = json_object('seen', 1)",
        "DROP VIEW both",
        "DELETE FROM c WHERE title = 'one'",
        "DROP TABLE c",
    ];
    execute(&database, &statements).unwrap();
    assert_eq!(number(&database, "PRAGMA user_version"), 7);
    assert_eq!(number(&database, "SELECT count(*) FROM b"), 0);
}

/// Statements that plugins may not run, and what the message must name.
const REFUSED: &[(&str, &str)] = &[
    ("ATTACH '/etc/passwd' AS other", "another database"),
    ("ATTACH ':memory:' AS other", "another database"),
    ("DETACH main", "another database"),
    ("VACUUM", ""),
    ("VACUUM INTO '/tmp/stolen.db'", ""),
    ("BEGIN", "transactions"),
    ("COMMIT", "transactions"),
    ("ROLLBACK", "transactions"),
    ("SAVEPOINT a", "transactions"),
    ("PRAGMA journal_mode = DELETE", "journal_mode"),
    ("PRAGMA journal_mode", "journal_mode"),
    ("PRAGMA writable_schema = ON", "writable_schema"),
    ("PRAGMA main.writable_schema = 1", "writable_schema"),
    ("PRAGMA max_page_count = 1000000", "max_page_count"),
    ("PRAGMA temp_store_directory = '/tmp'", "temp_store_directory"),
    ("PRAGMA hard_heap_limit = 1", "hard_heap_limit"),
    ("PRAGMA trusted_schema = ON", "trusted_schema"),
    ("PRAGMA data_version = 3", "data_version"),
    ("SELECT * FROM pragma_journal_mode", ""),
    ("SELECT load_extension('x.so')", "load_extension"),
    ("SELECT fts3_tokenizer('simple')", ""),
    ("CREATE VIRTUAL TABLE a USING fts4 (x)", "fts4"),
    ("CREATE VIRTUAL TABLE a USING rtree (a, b, c)", "rtree"),
    ("CREATE TEMP TABLE a (x)", "temporary"),
    ("CREATE TEMP TRIGGER a AFTER INSERT ON kept BEGIN SELECT 1; END", "temporary"),
    ("CREATE TABLE temp.a (x)", "temporary"),
    ("CREATE VIEW temp.a AS SELECT 1", "temporary"),
    ("CREATE VIRTUAL TABLE temp.a USING fts5 (x)", "temporary"),
    ("INSERT INTO sqlite_master VALUES ('table', 'x', 'x', 0, 'CREATE TABLE x (y)')", "sqlite_master"),
    ("UPDATE sqlite_schema SET sql = 'x'", "sqlite_master"),
    ("DELETE FROM sqlite_master", "sqlite_master"),
    ("CREATE TABLE sqlite_mine (x)", "sqlite_mine"),
    ("INSERT INTO words_data VALUES (1, x'00')", "words_data"),
    ("DELETE FROM words_idx", "words_idx"),
    ("DROP TABLE words_config", "words_config"),
    ("SELECT readfile('/etc/passwd')", "readfile"),
    ("SELECT writefile('/tmp/x', 'y')", "writefile"),
    ("SELECT edit('x')", "edit"),
    ("SELECT highlight(words, 0, zeroblob(1000000), '') FROM words WHERE words MATCH 'tea'", "highlight"),
    ("INSERT INTO sqlite_dbpage VALUES (1, x'00')", "sqlite_dbpage"),
];

#[test]
fn forbidden_statements_are_refused_and_change_nothing() {
    let (_home, database) = with_a_row();
    execute(&database, &["CREATE VIRTUAL TABLE words USING fts5 (text)", "INSERT INTO words VALUES ('tea')"]).unwrap();
    for (sql, part) in REFUSED {
        let tried = [execute(&database, &[sql]).map(|_| ()), query(&database, sql).map(|_| ())];
        for error in tried.map(|tried| tried.expect_err(sql)) {
            assert_eq!(error.code(), "sql", "{sql}: {error}");
            if !matches!(error, SqlError::Writes) {
                assert!(error.to_string().contains(part), "{sql}: {error}");
            }
        }
        assert_eq!(number(&database, "SELECT count(*) FROM kept"), 1, "{sql}");
        assert_eq!(number(&database, "SELECT count(*) FROM words WHERE words MATCH 'tea'"), 1, "{sql}");
    }
    assert_eq!(
        fs::read_dir(database.path().unwrap().parent().unwrap()).unwrap().count(),
        3,
        "the database, its log and its index"
    );
}

#[test]
fn sqlites_own_tables_cannot_be_falsified() {
    let database = Database::in_memory();
    execute(
        &database,
        &["CREATE TABLE a (id INTEGER PRIMARY KEY AUTOINCREMENT)", "INSERT INTO a VALUES (1)", "ANALYZE"],
    )
    .unwrap();
    for sql in [
        "INSERT INTO sqlite_sequence VALUES ('a', 99)",
        "UPDATE sqlite_sequence SET seq = 99",
        "INSERT INTO sqlite_stat1 VALUES ('a', 'a', '1 1')",
        "UPDATE sqlite_stat1 SET stat = '1'",
    ] {
        let error = execute(&database, &[sql]).unwrap_err();
        assert!(matches!(&error, SqlError::Refused(what) if what.contains("sqlite_s")), "{sql}: {error}");
    }
}

#[test]
fn a_query_reads_and_is_one_statement() {
    let (_home, database) = with_a_row();
    for (sql, error) in [
        ("DELETE FROM kept", SqlError::Writes),
        ("INSERT INTO kept VALUES (2, 'two') RETURNING id", SqlError::Writes),
        ("PRAGMA user_version = 2", SqlError::Writes),
        ("CREATE TABLE a (b)", SqlError::Writes),
        ("SELECT 1; DELETE FROM kept", SqlError::Several),
        ("SELECT 1; nonsense", SqlError::Several),
        ("SELECT 1; SELECT 2;", SqlError::Several),
        ("", SqlError::Empty),
        (" ; ;; ", SqlError::Empty),
        ("-- nothing", SqlError::Empty),
        ("/* ; */", SqlError::Empty),
    ] {
        assert_eq!(query(&database, sql).unwrap_err(), error, "{sql}");
    }
    for sql in ["SELECT ';'", "SELECT 1; -- done", "EXPLAIN QUERY PLAN SELECT * FROM kept", "VALUES (1)"] {
        assert_eq!(query(&database, sql).unwrap().rows.len(), 1, "{sql}");
    }
    assert_eq!(number(&database, "SELECT count(*) FROM kept"), 1);
    assert!(query(&database, "SELECT 1\0; DELETE FROM kept").unwrap_err().to_string().contains("NUL"));
}

#[test]
fn an_invalid_statement_gives_the_reason() {
    let (_home, database) = with_a_row();
    for (sql, part) in [
        ("SELEC 1", "near \"SELEC\""),
        ("SELECT missing FROM kept", "no such column: missing"),
        ("SELECT \"text like this\" FROM kept", "no such column"),
        ("SELECT ?1", "1 parameters, but 0 values"),
        ("SELECT raise(1)", ""),
    ] {
        let error = query(&database, sql).unwrap_err();
        assert!(error.code() == "sql" && error.to_string().contains(part), "{sql}: {error}");
    }
    // The message stays short, however long the wrong name is.
    let error = query(&database, &format!("SELECT {} FROM kept", "é".repeat(100_000))).unwrap_err().to_string();
    assert!(error.starts_with("no such column: éé") && error.len() < 3_000, "{}", error.len());
    let one_too_many = Statement::new("SELECT 1", [Value::Null]);
    assert_eq!(database.query(&one_too_many, &long()).unwrap_err().code(), "sql");
}

#[test]
fn a_text_with_very_many_statements_is_one_error() {
    let database = Database::in_memory();
    for sql in ["SELECT 1;".repeat(100_000), ";".repeat(1_000_000), "SELECT 1;;".repeat(90_000), "(".repeat(1_000_000)]
    {
        assert_eq!(query(&database, &sql).unwrap_err().code(), "sql", "{}", &sql[..9]);
        assert_eq!(execute(&database, &[&sql]).unwrap_err().code(), "sql", "{}", &sql[..9]);
    }
    assert_eq!(number(&database, "SELECT 1"), 1);
}

type IsExpected = fn(&SqlError) -> bool;

/// Statements that take too much, in a database of 4 MiB, with the expected error.
const GREEDY: &[(&str, IsExpected)] = &[
    ("SELECT zeroblob(2147483648)", |error| *error == SqlError::TooLong),
    ("SELECT zeroblob(1 << 40)", |error| *error == SqlError::TooLong),
    ("SELECT randomblob(100000000)", |error| *error == SqlError::TooLong),
    ("SELECT hex(zeroblob(1000000))", |error| *error == SqlError::TooLong),
    ("SELECT printf('%.*c', 100000000, 'x')", |error| *error == SqlError::TooLong),
    ("SELECT replace(hex(zeroblob(500000)), '0', 'xxxxxxxxxxxxxxxx')", |error| *error == SqlError::TooLong),
    ("WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT 1000000) SELECT n FROM n", |error| {
        *error == SqlError::Rows { most: 100_000 }
    }),
    (
        "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT 100) SELECT randomblob(900000) FROM n",
        |error| *error == SqlError::Answer { most: 16 << 20 },
    ),
    (
        "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n) SELECT zeroblob(1000000) FROM n ORDER BY 1",
        |error| *error == SqlError::Memory,
    ),
    ("SELECT 'x' LIKE printf('%.*c', 5000, '%')", |error| error.code() == "sql" || error.code() == "quota"),
];

#[test]
fn a_database_has_the_size_of_the_contract() {
    assert_eq!(Quota::standard().bytes, 1 << 30);
    let database = Database::in_memory_with(Quota::standard());
    execute(&database, &["CREATE TABLE kept (x)"]).unwrap();
    let insert = |bytes: usize| execute(&database, &[&format!("INSERT INTO kept VALUES (zeroblob({bytes}))")]);
    insert((1 << 20) - 100).unwrap();
    insert((1 << 20) + 1).unwrap_err();
    let long = |bytes: usize| format!("SELECT '{}'", "x".repeat(bytes));
    query(&database, &long((1 << 20) - 100)).unwrap();
    query(&database, &long(1 << 20)).unwrap_err();
}

#[test]
fn an_excessive_statement_is_stopped_and_the_next_call_works() {
    let database = Database::in_memory_with(Quota { bytes: 4 << 20, ..Quota::standard() });
    execute(&database, &["CREATE TABLE kept (x)"]).unwrap();
    for (sql, expected) in GREEDY {
        let error = query(&database, sql).unwrap_err();
        assert!(expected(&error), "{sql}: {error:?}");
        assert_eq!(number(&database, "SELECT 1"), 1, "{sql}");
    }
    let grown = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n) INSERT INTO kept SELECT randomblob(10000) FROM n";
    let error = execute(&database, &["INSERT INTO kept VALUES (1)", grown]).unwrap_err();
    assert_eq!((error.kind(), error.code()), (FaultKind::Exhausted, "quota"), "{error}");
    assert!(error.to_string().contains("4 MiB"), "{error}");
    assert_eq!(number(&database, "SELECT count(*) FROM kept"), 0);
    execute(&database, &["INSERT INTO kept VALUES (randomblob(1000000))"]).unwrap();
}

#[test]
fn a_file_grows_to_its_quota_and_can_then_be_emptied() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("plugin.db");
    let database = Database::new(Place::File(path.clone()), Quota { bytes: 2 << 20, ..Quota::standard() });
    execute(&database, &["CREATE TABLE kept (x)"]).unwrap();
    let mut stored = 0;
    let error = loop {
        match execute(&database, &["INSERT INTO kept VALUES (randomblob(100000))"]) {
            Ok(_) => stored += 1,
            Err(error) => break error,
        }
        assert!(stored < 30, "the quota has no effect");
    };
    assert!(matches!(error, SqlError::Full { .. }) && stored > 10, "{stored}: {error}");
    assert!(path.metadata().unwrap().len() <= 2 << 20);
    assert_eq!(number(&database, "SELECT count(*) FROM kept"), stored);
    execute(&database, &["DELETE FROM kept", "INSERT INTO kept VALUES (randomblob(100000))"]).unwrap();
}

#[test]
fn an_endless_statement_stops_at_its_deadline_or_when_it_is_cancelled() {
    let (_home, database) = with_a_row();
    let endless = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n) SELECT count(*) FROM n";
    let short = Budget::of(Duration::from_millis(100));
    let error = database.query(&Statement::new(endless, []), &short).unwrap_err();
    assert_eq!((error.kind(), error.code()), (FaultKind::Timeout, "quota"));

    let gone = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&gone);
    let budget = Budget { cancelled: Arc::new(move || seen.load(Ordering::Relaxed)), ..long() };
    thread::scope(|scope| {
        let write = format!("INSERT INTO kept (text) SELECT * FROM ({endless})");
        let running = scope.spawn(|| database.execute(&[Statement::new(write, [])], &budget));
        thread::sleep(Duration::from_millis(50));
        gone.store(true, Ordering::Relaxed);
        assert_eq!(running.join().unwrap().unwrap_err(), SqlError::Cancelled);
    });
    assert_eq!(number(&database, "SELECT count(*) FROM kept"), 1);
}

#[test]
fn readers_continue_during_a_write_and_writers_wait_for_their_turn() {
    let (_home, database) = with_a_row();
    let other = rusqlite::Connection::open(database.path().unwrap()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE; DELETE FROM kept").unwrap();
    assert_eq!(number(&database, "SELECT count(*) FROM kept"), 1);
    let put = [Statement::new("INSERT INTO kept (text) VALUES ('two')", [])];
    let error = database.execute(&put, &Budget::of(Duration::from_millis(120))).unwrap_err();
    assert_eq!((error.kind(), error.code()), (FaultKind::Unavailable, "busy"));
    thread::scope(|scope| {
        let writer = scope.spawn(|| database.execute(&put, &long()));
        thread::sleep(Duration::from_millis(50));
        other.execute_batch("COMMIT").unwrap();
        assert_eq!(writer.join().unwrap().unwrap(), [1]);
    });
}

#[test]
fn many_threads_share_one_database_and_lose_nothing() {
    for database in [with_a_row(), (tempfile::tempdir().unwrap(), Arc::new(Database::in_memory()))] {
        let (_home, database) = database;
        execute(&database, &["CREATE TABLE count (n)", "INSERT INTO count VALUES (0)"]).unwrap();
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..25 {
                        execute(&database, &["UPDATE count SET n = n + 1"]).unwrap();
                        query(&database, "SELECT n FROM count").unwrap();
                    }
                });
            }
        });
        assert_eq!(number(&database, "SELECT n FROM count"), 200);
        assert!(lock(&database.pool).open <= CONNECTIONS);
    }
}

#[test]
fn databases_with_the_same_path_share_their_connections() {
    let (home, database) = with_a_row();
    let path = database.path().unwrap().to_owned();
    assert!(Arc::ptr_eq(&database, &Database::at(&path)));
    drop(database);
    assert_eq!(number(&Database::at(&path), "SELECT count(*) FROM kept"), 1);
    assert!(!home.path().join("data/mine/plugin.db-wal").exists(), "the last connection was closed");
}

#[test]
fn nothing_is_created_before_use_and_then_it_is_private() {
    let home = tempfile::tempdir().unwrap();
    let database = Database::at(home.path().join("data/mine/plugin.db"));
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
    execute(&database, &["CREATE TABLE kept (x)"]).unwrap();
    let folder = home.path().join("data/mine");
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    for file in fs::read_dir(&folder).unwrap() {
        let path = file.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

#[test]
fn a_damaged_file_is_reported_and_works_again_once_it_is_moved_away() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("plugin.db");
    fs::write(&path, "this is not a database. ".repeat(1000)).unwrap();
    let database = Database::at(&path);
    for error in [query(&database, "SELECT 1").unwrap_err(), execute(&database, &["CREATE TABLE a (b)"]).unwrap_err()] {
        assert_eq!((error.kind(), error.code()), (FaultKind::Failed, "damaged"));
        assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    }
    fs::remove_file(&path).unwrap();
    execute(&database, &["CREATE TABLE a (b)", "INSERT INTO a VALUES (zeroblob(500000))"]).unwrap();
    drop(database);

    // The first page stays intact, so that the file can be opened.
    let mut bytes = fs::read(&path).unwrap();
    bytes[4096..].fill(0x5a);
    fs::write(&path, bytes).unwrap();
    let database = Database::at(&path);
    let error = query(&database, "SELECT sum(length(b)) FROM a").unwrap_err();
    assert_eq!(error.code(), "damaged", "{error}");
    fs::remove_file(&path).unwrap();
    execute(&database, &["CREATE TABLE a (b)"]).unwrap();
}

#[test]
fn an_unusable_path_is_reported() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("file"), "").unwrap();
    fs::create_dir(home.path().join("folder")).unwrap();
    for place in ["file/plugin.db", "folder"] {
        let error = query(&Database::at(home.path().join(place)), "SELECT 1").unwrap_err();
        assert_eq!((error.kind(), error.code()), (FaultKind::Failed, "io"), "{place}: {error}");
        assert!(error.to_string().contains(place), "{error}");
    }
}

const CHILD: &str = "HERMES_TEST_DATABASE";
const ROWS: i64 = 3_000;

/// Runs this test program again, with only this test.
fn child(name: &str, path: &Path) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", &format!("sql::tests::{name}"), "--nocapture"]).env(CHILD, path);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Fills the table endlessly; each call inserts all rows of one round.
fn fill(database: &Database) -> ! {
    for round in 0_i64.. {
        let put = |row| {
            Statement::new("INSERT INTO kept VALUES (?1, ?2, randomblob(200))", [round.into(), Value::Integer(row)])
        };
        let statements: Vec<Statement> = (0..ROWS).map(put).collect();
        database.execute(&statements, &long()).unwrap();
    }
    unreachable!()
}

#[test]
fn a_killed_process_leaves_only_whole_calls() {
    if let Ok(path) = env::var(CHILD) {
        fill(&Database::at(path));
    }
    for delay in [20_u64, 45, 70, 95, 120] {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("plugin.db");
        let database = Database::at(&path);
        execute(&database, &["CREATE TABLE kept (round, row, filler)"]).unwrap();
        let mut child = child("a_killed_process_leaves_only_whole_calls", &path).spawn().unwrap();
        while number(&database, "SELECT count(*) FROM kept") == 0 {
            thread::sleep(Duration::from_millis(2));
        }
        thread::sleep(Duration::from_millis(delay));
        child.kill().unwrap();
        child.wait().unwrap();
        let found = query(&database, "SELECT count(*) FROM kept GROUP BY round").unwrap();
        assert!(found.rows.iter().all(|row| *row == [Value::Integer(ROWS)]), "{found:?}");
        execute(&database, &["INSERT INTO kept VALUES (0, 0, 0)"]).unwrap();
    }
}

#[test]
fn processes_share_one_database_and_lose_nothing() {
    const STEPS: i64 = 50;
    let count = |path: &Path| {
        let database = Database::at(path);
        execute(&database, &["CREATE TABLE IF NOT EXISTS count (n)"]).unwrap();
        for _ in 0..STEPS {
            execute(&database, &["INSERT INTO count SELECT coalesce(max(n), 0) + 1 FROM count"]).unwrap();
        }
    };
    if let Ok(path) = env::var(CHILD) {
        return count(Path::new(&path));
    }
    let home = tempfile::tempdir().unwrap();
    // The file does not exist yet.
    let path = home.path().join("data/plugin.db");
    let mut children: Vec<_> =
        (0..4).map(|_| child("processes_share_one_database_and_lose_nothing", &path).spawn().unwrap()).collect();
    count(&path);
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(number(&Database::at(&path), "SELECT max(n) FROM count"), 5 * STEPS);
}

/// Measures the cost of a call. Run it with `--ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn measured() {
    const TIMES: u32 = 20_000;
    let (_home, database) = with_a_row();
    let mean = |what: &str, times: u32, work: &mut dyn FnMut()| {
        let begin = Instant::now();
        (0..times).for_each(|_| work());
        println!("{what}: {:.1} µs", begin.elapsed().as_secs_f64() * 1e6 / f64::from(times));
    };
    let get = Statement::new("SELECT text FROM kept WHERE id = ?1", [Value::Integer(1)]);
    mean("a row by its key", TIMES, &mut || drop(database.query(&get, &long()).unwrap()));
    let put = [Statement::new("UPDATE kept SET text = ?1 WHERE id = 1", [Value::Text("two".into())])];
    mean("a row changed in a file", TIMES / 10, &mut || drop(database.execute(&put, &long()).unwrap()));
    mean("a database in memory, made and dropped", TIMES, &mut || {
        Database::in_memory();
    });
    mean("a database in memory, used once", TIMES / 10, &mut || {
        number(&Database::in_memory(), "SELECT 1");
    });
}

#[test]
fn many_small_statements_stop_at_their_deadline_and_change_nothing() {
    let (_home, database) = with_a_row();
    // Every text is different, and done before SQLite would call the progress handler.
    let statements: Vec<Statement> =
        (0..100_000).map(|at| Statement::new(format!("UPDATE kept SET text = '{at}'"), [])).collect();
    let calls = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let counter = Arc::clone(&calls);
    let budget = Budget { cancelled: Arc::new(move || counter.fetch_add(1, Ordering::Relaxed) > 50), ..long() };
    assert_eq!(database.execute(&statements, &budget).unwrap_err(), SqlError::Cancelled);
    assert!(calls.load(Ordering::Relaxed) < 200);
    assert_eq!(query(&database, "SELECT text FROM kept").unwrap().rows, [[Value::Text("one".into())]]);
}

#[test]
fn column_names_count_towards_the_result_size() {
    let database = Database::in_memory();
    let view = format!("CREATE VIEW named AS SELECT 1 AS \"{}\"", "x".repeat(900_000));
    execute(&database, &[&view]).unwrap();
    let from: Vec<String> = (0..30).map(|at| format!("named AS n{at}")).collect();
    let all = format!("SELECT * FROM {} WHERE 0", from.join(", "));
    assert_eq!(query(&database, &all).unwrap_err(), SqlError::Answer { most: 16 << 20 });
}

#[test]
fn nested_views_do_not_grow_without_limit() {
    let database = Database::in_memory();
    let views = (1..=60).map(|at| {
        let of = at - 1;
        format!("CREATE VIEW v{at} AS SELECT x FROM v{of} UNION ALL SELECT x FROM v{of}")
    });
    let views: Vec<String> = std::iter::once("CREATE VIEW v0 AS SELECT 1 AS x".to_owned()).chain(views).collect();
    execute(&database, &views.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
    let error = query(&database, "SELECT count(*) FROM v60").unwrap_err();
    assert!(matches!(error.code(), "sql" | "quota"), "{error:?}");
    assert_eq!(number(&database, "SELECT count(*) FROM v3"), 8);
}

#[test]
fn a_link_instead_of_the_file_is_not_followed() {
    let home = tempfile::tempdir().unwrap();
    let (_other, others) = with_a_row();
    let path = home.path().join("plugin.db");
    for target in [others.path().unwrap().to_owned(), home.path().join("nowhere")] {
        std::os::unix::fs::symlink(&target, &path).unwrap();
        let error = query(&Database::at(&path), "SELECT count(*) FROM kept").unwrap_err();
        assert_eq!((error.kind(), error.code()), (FaultKind::Failed, "io"));
        assert!(error.to_string().contains("it is a link"), "{error}");
        assert!(!home.path().join("nowhere").exists());
        fs::remove_file(&path).unwrap();
    }
    // The folder may be a link.
    std::os::unix::fs::symlink(others.path().unwrap().parent().unwrap(), home.path().join("mine")).unwrap();
    assert_eq!(number(&Database::at(home.path().join("mine/plugin.db")), "SELECT count(*) FROM kept"), 1);
}
