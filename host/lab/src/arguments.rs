//! The program: reads its arguments, runs a command, and reports a failure.

use std::process::ExitCode;

use clap::{ArgAction, CommandFactory as _, Parser, Subcommand};
use hermes_app::process;
use hermes_console::children::ChildCommand;
use hermes_console::console::Console;
use hermes_console::failure::Failure;
use hermes_console::{logging, usage};

use crate::LabError;
use crate::command::{self, LabCommand};

/// Compare context engines on recorded conversations, without a model
// People know the program as a command of `hermes`, which starts it.
#[derive(Debug, Parser)]
#[command(name = "hermes lab", bin_name = "hermes lab", disable_help_subcommand = true)]
struct Arguments {
    // The last option of every command.
    /// Log more on standard error; repeat for more detail
    #[arg(short, long, action = ArgAction::Count, global = true, display_order = 100)]
    verbose: u8,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(flatten)]
    Lab(LabCommand),
    #[command(flatten)]
    Child(ChildCommand),
}

/// Runs the command of this process, and reports its failure.
pub fn start() -> ExitCode {
    let console = Console::of_process();
    let arguments = Arguments::try_parse();
    let arguments = arguments.map_err(|error| usage::failure(&error, Arguments::command(), &|_, _| None));
    arguments.and_then(|arguments| run(arguments, console)).unwrap_or_else(|failure| {
        console.report(&failure);
        failure.kind.into()
    })
}

fn run(arguments: Arguments, console: Console) -> Result<ExitCode, Failure> {
    // Without a file to write, this cannot fail.
    let _ = logging::start(arguments.verbose, None);
    process::use_sql_workers();
    match arguments.command {
        Command::Lab(command) => command::run(&command, console),
        Command::Child(child) => child.serve(),
    }
}

impl From<LabError> for Failure {
    fn from(error: LabError) -> Self {
        hermes_diagnostic::Diagnostic::from(error).into()
    }
}

#[cfg(test)]
mod tests {
    use hermes_console::failure::Kind;
    use hermes_diagnostic::Code;

    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
    }

    /// Every page of `--help`, also those of commands that are not listed.
    fn pages(command: &mut clap::Command, name: &str, pages: &mut String) {
        let help = command.clone().bin_name(name).term_width(120).render_long_help();
        pages.push_str(&format!("$ {name} --help\n{help}\n"));
        for subcommand in command.get_subcommands_mut().filter(|subcommand| !subcommand.is_hide_set()) {
            let name = format!("{name} {}", subcommand.get_name());
            self::pages(subcommand, &name, pages);
        }
    }

    #[test]
    fn help_pages() {
        let mut command = Arguments::command();
        command.build();
        let mut text = String::new();
        pages(&mut command, "hermes lab", &mut text);
        insta::assert_snapshot!(text);
    }

    #[test]
    fn the_page_on_errors_has_one_row_for_each_code() {
        let page = include_str!("../../../docs/use/errors.md");
        let all: [&[Code]; 2] = [crate::codes::ALL, hermes_recordings::codes::ALL];
        let row = |code: &Code| {
            let exit = Kind::from(code.category()) as u8;
            format!("| `{}` | {exit} | {} |", code.name(), code.meaning())
        };
        let mut rows: Vec<String> = all.into_iter().flatten().map(row).collect();
        rows.sort();
        let known: Vec<&str> = page.lines().filter(|line| line.starts_with("| `lab.")).collect();
        assert_eq!(known, rows, "docs/use/errors.md needs these rows:\n{}", rows.join("\n"));
    }
}
