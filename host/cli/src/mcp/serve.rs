//! `hermes mcp serve`: answers another agent over standard input and output until it closes the input, or many over HTTP on loopback.
//!
//! Standard output carries the protocol only. What the user should read goes to standard error, and the log to its file.

use std::io::{self, IsTerminal as _};
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use hermes_app::HermesOffer;
use hermes_app::servers::{self, Offer, PATH, ServeError};
use tokio::net::TcpListener;
use tokio::runtime::Handle;

use super::ServeArguments;
use crate::console::Console;
use crate::failure::{Failure, Kind};
use crate::launch::Setup;
use crate::logging;
use crate::sessions::search::opened;

pub(super) async fn run(
    setup: Setup,
    arguments: ServeArguments,
    verbose: u8,
    console: Console,
) -> Result<ExitCode, Failure> {
    if let Err(error) = logging::start(verbose, Some(&setup.home)) {
        console.warning(&format!("{} cannot be written: {error}", setup.home.logs().display()));
    }
    let of = setup.clone();
    let open = move || Handle::current().block_on(opened(&of, console)).map_err(|error| error.to_string());
    let offer = Arc::new(HermesOffer::new(&setup, arguments.allow_writes, open));
    if let Some(port) = arguments.http {
        return over_http(&setup, offer, port, arguments.open, console).await;
    }
    if io::stdin().is_terminal() {
        console.note(
            "this speaks the Model Context Protocol with another agent: put `hermes mcp serve` into its configuration as the \
             program of a server; Ctrl-D ends it",
        );
    }
    let served = servers::serve(offer).await;
    served.map(|()| ExitCode::SUCCESS).map_err(|error| {
        let fix = match error {
            ServeError::Protocol(_) => "start it as a server of a client of the Model Context Protocol, over stdio",
            ServeError::Broken(_) => "start the client again",
        };
        Failure::new(Kind::General, "the server ended", error.to_string(), fix)
    })
}

async fn over_http(
    setup: &Setup,
    offer: Arc<dyn Offer>,
    port: u16,
    is_open: bool,
    console: Console,
) -> Result<ExitCode, Failure> {
    setup.own()?;
    let file = servers::serve_token_file(&setup.home);
    let token = match is_open {
        true => None,
        false => Some(servers::serve_token(&file).map_err(|error| unusable(&file, &error))?),
    };
    if !is_open {
        warn_of_readers(&file, console);
    }
    let listened = async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        Ok((listener.local_addr()?, listener))
    };
    let (address, listener) = listened.await.map_err(|error: io::Error| {
        let fix = "end the program that uses the port, or choose another one with `--http PORT`";
        Failure::new(Kind::General, format!("the port {port} cannot be used"), error.to_string(), fix)
    })?;
    console.note(&format!("serving on http://{address}{PATH} for programs of this machine; Ctrl-C ends it"));
    console.note(&match is_open {
        true => "without a token, every user and every program of this machine can read your conversations".to_owned(),
        false => {
            format!("requests need the header `Authorization: Bearer TOKEN`, with the token in {}", file.display())
        }
    });
    match servers::serve_web(offer, listener, token).await {}
}

/// Tells the user if others can read the token.
fn warn_of_readers(file: &Path, console: Console) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(file).map_or(0, |found| found.permissions().mode());
        if mode & 0o077 != 0 {
            let file = file.display();
            let fix = format!("run `chmod 600 {file}`, or remove the file and start again");
            console.warning(&format!("other users of this machine can use the token in {file}: {fix}"));
        }
    }
    #[cfg(not(unix))]
    let _ = (file, console);
}

fn unusable(file: &Path, error: &io::Error) -> Failure {
    let fix = "remove the file, and the next start makes a new token";
    Failure::new(Kind::General, format!("{} cannot be used", file.display()), error.to_string(), fix)
}
