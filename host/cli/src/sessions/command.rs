//! The commands below `hermes sessions`.

use std::path::PathBuf;

use clap::Subcommand;

use super::changes::{Consent, PruneArguments};
use super::listing::ListArguments;
use super::search::SearchArguments;
use super::transfer::ExportArguments;
use super::undo::UndoArguments;
/// What to do with stored sessions.
#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List sessions, the latest first
    #[command(visible_alias = "ls")]
    List(ListArguments),
    /// Show a session with all its messages
    Show {
        /// The session's id, the beginning of its id, or its title
        id: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Search messages
    Search(SearchArguments),
    /// Rename a session
    Rename {
        /// The session's id, the beginning of its id, or its title
        id: String,
        /// The new title; an empty title removes the old one
        #[arg(required = true)]
        title: Vec<String>,
    },
    /// Branch a session into an independent copy, and print the copy's id
    Branch {
        /// The session's id, the beginning of its id, or its title
        id: String,
        /// End the copy with this message, by its number in `show`
        #[arg(long, value_name = "MESSAGE")]
        at: Option<u64>,
        /// The copy's title [default: the original's title with the next number]
        #[arg(long, value_name = "TITLE")]
        title: Option<String>,
    },
    /// Export sessions to a file that `import` reads
    Export(ExportArguments),
    /// Import sessions from a file that `export` wrote
    Import {
        /// The file to import; `-` reads standard input
        file: PathBuf,
        /// Only report what would be imported
        #[arg(long)]
        dry_run: bool,
        /// Trust the file: use the folders and the system prompts that it names without asking
        #[arg(long)]
        trust: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Restore the files that a session changed
    Undo(UndoArguments),
    /// Delete sessions and their delegated tasks for good
    Delete {
        /// The sessions' ids, the beginnings of their ids, or their titles
        #[arg(value_name = "ID", required = true)]
        ids: Vec<String>,
        /// Also delete sessions that continue the given ones
        #[arg(long)]
        with_children: bool,
        #[command(flatten)]
        consent: Consent,
    },
    /// Delete old sessions; a session must match all given options
    Prune(PruneArguments),
    /// Show the size of the store and what it contains
    Stats {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Check the store for damage
    Check {
        /// Skip the slow checks
        #[arg(long)]
        quick: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Back up the store, then repair the damage that `check` finds
    Repair {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}
