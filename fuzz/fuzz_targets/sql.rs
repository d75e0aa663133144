//! A statement of a plugin. As in Hermes, it runs in a worker: this program again, with a variable set.
#![no_main]

use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::sync::LazyLock;

use hermes_capabilities::invariants::statement_ends;
use hermes_capabilities::sql::{self, Database, Quota, WorkerProgram};

const SERVES: &str = "HERMES_FUZZ_SQL_WORKER";

/// How the sanitizer is configured. A worker has only the environment that it is given, and SQLite's own globals would end it.
const SANITIZER: &str = "ASAN_OPTIONS";

static DATABASE: LazyLock<Database> = LazyLock::new(|| {
    let sanitizer = std::env::var_os(SANITIZER).map(|options| (SANITIZER.into(), options));
    sql::run_in_workers(WorkerProgram {
        program: std::env::current_exe().expect("the program has a path"),
        arguments: Vec::new(),
        environment: std::iter::once((SERVES.into(), "1".into())).chain(sanitizer).collect(),
    });
    Database::in_memory_with(Quota::temporary(64 << 20))
});

libfuzzer_sys::fuzz_target!(
    init: {
        if std::env::var_os(SERVES).is_some() {
            let stream = io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from);
            let served = stream.and_then(sql::serve);
            std::process::exit(i32::from(served.is_err()));
        }
    },
    |input: &str| statement_ends(&DATABASE, input)
);
