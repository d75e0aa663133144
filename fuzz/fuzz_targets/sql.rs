//! A statement of a plugin. As in Hermes, it runs in a worker: this program again, with a variable set.
#![no_main]

use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::sync::LazyLock;

use hermes_capabilities::invariants::statement_ends;
use hermes_capabilities::sql::{self, Database, Quota, WorkerProgram};

const SERVES: &str = "HERMES_FUZZ_SQL_WORKER";

static DATABASE: LazyLock<Database> = LazyLock::new(|| {
    sql::run_in_workers(WorkerProgram {
        program: std::env::current_exe().expect("the program has a path"),
        arguments: Vec::new(),
        environment: vec![(SERVES.into(), "1".into())],
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
