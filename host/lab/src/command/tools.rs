//! `hermes lab tools`: counts how often the search on the shelf finds the right tool.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use hermes_console::console::{Console, print};
use hermes_console::failure::{Failure, Kind};
use hermes_console::text;
use hermes_conversation::ToolSchema;
use hermes_mcp::{KeptListings, Listing, tool_name};

use crate::tools::{ServedTool, ToolQuestion, ToolReport};

/// Questions, and the lists of servers.
#[derive(Debug, Clone, Args)]
pub(crate) struct ToolsArguments {
    /// A YAML file: a list of `query`, `tool` with the names of the right ones as SERVER/TOOL, and optionally `task`, what the user wants
    #[arg(value_name = "QUESTIONS")]
    questions: PathBuf,
    /// Use the lists in this folder, one file NAME.json for each server with the tools as it sent them, in place of those of the
    /// configured servers
    #[arg(long, value_name = "FOLDER")]
    lists: Option<PathBuf>,
    /// Also show each question whose tool is not among the first five, with those that are
    #[arg(long)]
    misses: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &ToolsArguments, console: Console) -> Result<ExitCode, Failure> {
    let questions: Vec<ToolQuestion> = serde_saphyr::from_str(&read(&arguments.questions)?)
        .map_err(|error| unreadable(&arguments.questions, error.to_string()))?;
    let tools = match &arguments.lists {
        Some(folder) => in_folder(folder)?,
        None => configured()?,
    };
    if tools.is_empty() {
        let why = match &arguments.lists {
            Some(folder) => format!("{} has no lists", folder.display()),
            None => "no list of a configured MCP server is kept".to_owned(),
        };
        let fix = "run `hermes mcp test NAME` once for each server, or name a folder with --lists";
        return Err(Failure::new(Kind::Usage, "there are no tools to search", why, fix));
    }
    let report = ToolReport::new(&tools, &questions);
    if arguments.json {
        print(&text::json(&serde_json::json!(report)))?;
        return Ok(ExitCode::SUCCESS);
    }
    print(&report.to_string())?;
    for (query, first) in report.columns.iter().take(1).flat_map(|column| &column.missed).filter(|_| arguments.misses) {
        console.note(&format!("not among five: `{}`: {}", text::line(query), text::line(&first.join(", "))));
    }
    Ok(ExitCode::SUCCESS)
}

fn unreadable(path: &Path, why: String) -> Failure {
    let fix = "see `hermes lab tools --help` for its form";
    Failure::new(Kind::Usage, format!("{} cannot be read", path.display()), why, fix)
}

fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| unreadable(path, error.to_string()))
}

fn in_folder(folder: &Path) -> Result<Vec<ServedTool>, Failure> {
    let entries = fs::read_dir(folder).map_err(|error| unreadable(folder, error.to_string()))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "json"));
    files.sort();
    let mut tools = Vec::new();
    for file in files {
        let offered = serde_json::from_str(&read(&file)?).map_err(|error| unreadable(&file, error.to_string()))?;
        let server = file.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        tools.extend(served(&server, Listing::of_tools(offered)));
    }
    Ok(tools)
}

fn configured() -> Result<Vec<ServedTool>, Failure> {
    let setup = super::setup()?;
    let kept = KeptListings::new(setup.home.documents());
    let mut tools = Vec::new();
    for server in setup.mcp_servers()? {
        if let Some(mut listing) = kept.read(&server) {
            listing.tools.retain(|tool| server.tools.has(&tool.name));
            tools.extend(served(&server.name, listing));
        }
    }
    Ok(tools)
}

fn served(server: &str, listing: Listing) -> impl Iterator<Item = ServedTool> {
    listing.tools.into_iter().map(move |tool| ServedTool {
        server: server.to_owned(),
        schema: ToolSchema {
            name: tool_name(server, &tool.name),
            description: tool.description,
            parameters: tool.parameters,
        },
        own_name: tool.name,
    })
}
