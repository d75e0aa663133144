//! `hermes mcp serve`: answers another agent over standard input and output until it closes the input.
//!
//! Standard output carries the protocol only. What the user should read goes to standard error, and the log to its file.

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::sync::Arc;

use hermes_mcp::ServeError;

use super::ServeArguments;
use super::offer::HermesOffer;
use crate::console::Console;
use crate::failure::{Failure, Kind};
use crate::launch::Setup;
use crate::logging;

pub(super) async fn run(
    setup: Setup,
    arguments: ServeArguments,
    verbose: u8,
    console: Console,
) -> Result<ExitCode, Failure> {
    if let Err(error) = logging::start(verbose, Some(&setup.home)) {
        console.warning(&format!("{} cannot be written: {error}", setup.home.logs().display()));
    }
    if std::io::stdin().is_terminal() {
        console.note(
            "this speaks the Model Context Protocol with another agent: put `hermes mcp serve` into its configuration as the \
             program of a server; Ctrl-D ends it",
        );
    }
    let offer = HermesOffer::new(&setup, arguments.allow_writes, console);
    let served = hermes_mcp::serve(Arc::new(offer), tokio::io::stdin(), tokio::io::stdout()).await;
    served.map(|()| ExitCode::SUCCESS).map_err(|error| {
        let fix = match error {
            ServeError::Protocol(_) => "start it as a server of a client of the Model Context Protocol, over stdio",
            ServeError::Broken(_) => "start the client again",
        };
        Failure::new(Kind::General, "the server ended", error.to_string(), fix)
    })
}
