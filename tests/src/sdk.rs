//! The types of the official Python SDKs as a judge of requests, in a Python process: see `tests/sdk`.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use crate::wire::Wire;

/// The process with the types; it ends when this is dropped.
pub struct SdkTypes {
    process: Child,
    pipes: Mutex<Pipes>,
}

struct Pipes {
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Pipes {
    /// The next answer: a reason, or nothing.
    fn answer(&mut self) -> Option<String> {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("the process with the types can be read");
        serde_json::from_str(&line).expect("the process with the types answers; its error is above")
    }
}

impl SdkTypes {
    /// Starts a Python that has the packages of `tests/sdk/requirements.txt`.
    pub fn start(python: &Path) -> Self {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("sdk/answer.py");
        let mut command = Command::new(python);
        // Without `-B`, Python would leave compiled files beside the program.
        command.arg("-B").arg(program).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap_or_else(|error| panic!("cannot run {}: {error}", python.display()));
        let requests = process.stdin.take().expect("it is piped");
        let answers = BufReader::new(process.stdout.take().expect("it is piped"));
        let mut pipes = Pipes { requests, answers };
        assert_eq!(pipes.answer(), None, "the types are loaded");
        Self { process, pipes: Mutex::new(pipes) }
    }

    /// The reason why the provider would refuse a request, if any.
    pub fn check(&self, wire: Wire, body: &Value) -> Result<(), String> {
        let mut pipes = self.pipes.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(pipes.requests, "{}", json!({"wire": wire.name(), "body": body})).expect("the process takes requests");
        pipes.answer().map_or(Ok(()), Err)
    }
}

impl Drop for SdkTypes {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}
