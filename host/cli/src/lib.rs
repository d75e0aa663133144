//! The command line and the terminal of `hermes`, as a library so that `fuzz/` can reach what it shows.
//!
//! This crate parses arguments, calls the application, and renders the results. It starts only what a command needs:
//! `--version` reads no file and starts no thread.

#![forbid(unsafe_code)]

mod approval;
mod arguments;
mod attached;
mod bars;
mod cache;
mod chat;
mod completion;
mod context;
mod doctor;
mod editor;
mod file_names;
mod front;
mod import;
mod imported;
mod input;
pub mod invariants;
mod lab;
mod launch;
mod live;
mod login;
mod mcp;
mod memory;
mod model;
mod moments;
mod oneshot;
mod plugins;
mod prompt;
mod question;
mod screen;
mod session_arguments;
mod sessions;
mod settings;
mod setup;
mod shell;
mod signals;
mod silence;
mod skill_commands;
mod skills;
mod slash;
mod spending;
mod status;
mod typed;
mod undo;

use std::future::Future;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};
use hermes_app::process;
// The modules of this crate name them as their own.
use hermes_console::{console, failure, logging, output, progress, table, text, usage, wording};

use arguments::{Arguments, Command};
use console::Console;
use failure::{Failure, Kind};
use oneshot::Form;

/// Runs the command of this process, and reports its failure.
pub fn start() -> ExitCode {
    let console = Console::of_process();
    let arguments = Arguments::try_parse();
    let arguments = arguments.map_err(|error| usage::failure(&error, Arguments::command(), &import::unknown));
    arguments.and_then(|arguments| run(arguments, console)).unwrap_or_else(|failure| {
        console.report(&failure);
        failure.kind.into()
    })
}

fn run(arguments: Arguments, console: Console) -> Result<ExitCode, Failure> {
    arguments.check()?;
    let Arguments { session, oneshot, image, json, stream_json, verbose, command } = arguments;
    let has_log = match &command {
        None | Some(Command::Chat { .. } | Command::Message(_)) => true,
        Some(Command::Mcp { command }) => command.is_serve(),
        Some(_) => false,
    };
    if !has_log {
        // Without a file to write, this cannot fail.
        let _ = logging::start(verbose, None);
    }
    process::use_sql_workers();
    match command {
        None => match oneshot {
            Some(text) => {
                let form = match (json, stream_json) {
                    (true, _) => Form::Json,
                    (false, true) => Form::Events,
                    (false, false) => Form::Text,
                };
                wait(oneshot::answer(&text, &image, form, &session, verbose, console))
            }
            None => wait(chat::run(None, &session, verbose, console)),
        },
        Some(Command::Message(words)) => wait(chat::run(words.into_iter().next(), &session, verbose, console)),
        Some(Command::Chat { message, query, session: own }) => {
            let session = own.or(session);
            match query {
                Some(text) => wait(oneshot::query(&text, &session, verbose, console)),
                None => {
                    let message = (!message.is_empty()).then(|| message.join(" "));
                    wait(chat::run(message, &session, verbose, console))
                }
            }
        }
        Some(Command::Sessions { command }) => wait_for_store(sessions::run(&command, console)),
        Some(Command::Prompt(prompt)) => wait(prompt::run(&prompt, &session.model, verbose, console)),
        Some(Command::Cache { id, json }) => wait_for_store(cache::run(id.as_deref(), json, console)),
        Some(Command::Usage(arguments)) => wait_for_store(spending::run(&arguments, console)),
        Some(Command::Lab { arguments }) => Err(lab::run(verbose, &arguments)),
        Some(Command::Context { id, summary, json }) => {
            wait_for_store(context::run(id.as_deref(), summary, json, console))
        }
        Some(Command::Plugins { command }) => plugins::run(command.as_ref(), console),
        Some(Command::Child(child)) => child.serve(),
        Some(Command::Mcp { command }) => wait(mcp::run(&command, verbose, console)),
        Some(Command::Skills { command }) => wait(skills::run(&command, console)),
        Some(Command::Memory { command }) => memory::run(&command, console),
        Some(Command::Import { command }) => wait_for_store(import::run(&command, console)),
        Some(Command::Login(arguments)) => wait(login::run(&arguments, console)),
        Some(Command::Logout(arguments)) => wait(login::log_out(&arguments, console)),
        Some(Command::Config { command }) => settings::run(&command, console),
        Some(Command::Setup(arguments)) => wait(setup::run(&arguments, console)),
        Some(Command::Model { command }) => wait(model::run(command.as_ref(), console)),
        Some(Command::Doctor { model, no_request, json }) => {
            wait(doctor::run(&model.or(session.model), !no_request, json, console))
        }
    }
}

/// Runs an async command.
fn wait(work: impl Future<Output = Result<ExitCode, Failure>>) -> Result<ExitCode, Failure> {
    let threads = process::threads().map_err(|error| no_thread(&error))?;
    let ended = threads.block_on(work);
    // A thread that still waits for input must not keep the process alive.
    threads.shutdown_background();
    // Programs that plugins started must not outlive the process.
    process::end_programs();
    ended
}

/// Runs a command on stored sessions. It needs no plugins, so a single thread beside this one is enough: it waits for the disk.
fn wait_for_store(work: impl Future<Output = Result<ExitCode, Failure>>) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).build();
    runtime.map_err(|error| no_thread(&error))?.block_on(work)
}

fn no_thread(error: &std::io::Error) -> Failure {
    let fix = "end other programs, or raise the limits of threads and memory";
    Failure::new(Kind::General, "no thread can be started", error.to_string(), fix)
}

#[cfg(test)]
mod codes;
