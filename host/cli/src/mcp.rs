//! `hermes mcp`: adds, lists, tries and removes servers of the Model Context Protocol, and offers what Hermes knows to other
//! agents.

mod login;
mod serve;

use std::process::ExitCode;
use std::time::Instant;

use clap::{Args, Subcommand};
use hermes_app::servers::{
    self, Cause, Confinement, Endpoint, ListedTool, Listing, McpError, ServerDefinition, ServerInstructions, Tried,
    is_server_name, login_name, tool_name, weight,
};
use hermes_app::{ModelChoice, Setup};
use hermes_config::settings::McpServerSection;
use hermes_config::{Edit, named_folders};
use hermes_diagnostic::Diagnose as _;
use login::{McpLoginArguments, McpLogoutArguments};
use serde_json::{Map, Value, json};

use crate::console::{Console, Tone, print};
use crate::failure::{Failure, Kind};
use crate::launch;
use crate::table::{Align, Table};
use crate::text;

/// What to do with servers.
#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Try a server, and add it to config.yaml if it answers
    Add(AddArguments),
    /// List the servers of config.yaml
    #[command(visible_alias = "ls")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Connect to a server and list its tools
    Test {
        /// The server's name
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove a server from config.yaml
    #[command(visible_alias = "rm")]
    Remove {
        /// The server's name
        name: String,
    },
    /// Log in to a server on the web that asks for a login
    Login(McpLoginArguments),
    /// End the login to a server
    Logout(McpLogoutArguments),
    /// Offer sessions, search, memory and skills to another agent, over standard input and output or HTTP
    Serve(ServeArguments),
}

/// What is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Args)]
pub(crate) struct ServeArguments {
    /// Let the other agent change the notes of the memory too
    #[arg(long)]
    allow_writes: bool,
    /// Answer programs of this machine over HTTP, at this port of 127.0.0.1; 0 takes a free one
    #[arg(long, value_name = "PORT", num_args = 0..=1, default_missing_value = "8931")]
    http: Option<u16>,
    /// Answer requests without a token too: every user and every program of this machine
    #[arg(long, requires = "http")]
    open: bool,
}

/// A server to add.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub(crate) struct AddArguments {
    /// A name of your own: 1 to 32 letters, digits, `_` and `-`
    name: String,
    /// The address of a server that speaks streamable HTTP, in place of a program
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    url: Option<String>,
    /// A header of each request, such as 'Authorization: Bearer ${TOKEN}'; repeat for more
    #[arg(long, value_name = "NAME: VALUE", requires = "url")]
    header: Vec<String>,
    /// A variable for the program, such as 'KEY=${KEY}'; repeat for more
    #[arg(long, value_name = "NAME=VALUE", conflicts_with = "url")]
    env: Vec<String>,
    /// The folder that the program runs in [default: your home folder]
    #[arg(long, value_name = "FOLDER", conflicts_with = "url")]
    cwd: Option<String>,
    /// Whether the program is confined: where the system can (auto), never, or always (workspace)
    #[arg(long, value_name = "WHETHER", value_parser = ["auto", "off", "workspace"], conflicts_with = "url")]
    sandbox: Option<String>,
    /// A further folder that the confined program can write; repeat for more. Folders among its arguments are such folders too
    #[arg(long, value_name = "FOLDER", conflicts_with = "url")]
    write: Vec<String>,
    /// Confine the program without the network
    #[arg(long, conflicts_with = "url")]
    no_network: bool,
    /// Add the server without trying it
    #[arg(long)]
    no_test: bool,
    /// The program and its arguments, after `--`
    #[arg(last = true, value_name = "PROGRAM", required_unless_present = "url")]
    command: Vec<String>,
}

impl McpCommand {
    /// Whether it works on sessions, so that a log is written.
    pub(crate) fn is_serve(&self) -> bool {
        matches!(self, Self::Serve(_))
    }
}

pub(crate) async fn run(command: &McpCommand, verbose: u8, console: Console) -> Result<ExitCode, Failure> {
    let setup = launch::setup_with_values(console)?;
    match command {
        McpCommand::Add(arguments) => add(&setup, arguments, console).await,
        McpCommand::List { json } => list(&setup, *json, console).await,
        McpCommand::Test { name, json } => test(&setup, name, *json, console).await,
        McpCommand::Remove { name } => remove(&setup, name, console),
        McpCommand::Login(arguments) => {
            let definition = definition(&setup, &arguments.name, section(&setup, &arguments.name)?)?;
            login::log_in(&setup, &definition, arguments, console).await
        }
        McpCommand::Logout(arguments) => login::log_out(arguments, console).await,
        McpCommand::Serve(arguments) => serve::run(setup, *arguments, verbose, console).await,
    }
}

/// Tries a server. If it fails, the user sees the last lines that its program wrote, and where all of them are.
async fn tried(setup: &Setup, definition: ServerDefinition, console: Console) -> Result<Listing, McpError> {
    let name = definition.name.clone();
    let Tried { listing, last_lines, written } =
        servers::try_server(setup, definition, std::env::current_dir().unwrap_or_default()).await;
    // A single line is already shown as the reason of the failure.
    if last_lines.len() > 1 {
        console.note(&format!("the last lines of `{name}`:"));
        last_lines.iter().for_each(|line| console.note(&format!("  {}", text::line(line))));
    }
    if let Some(file) = written {
        console.note(&format!("all that it wrote: {}", file.display()));
    }
    listing
}

/// The failure of a test, without the advice to test it.
fn not_usable(name: &str, error: &McpError) -> Failure {
    let failure = Failure::from(error.diagnose());
    let test = format!("try `hermes mcp test {name}`");
    if failure.fix != test && !failure.fix.starts_with(&format!("{test}, or ")) {
        return failure;
    }
    let other =
        failure.fix.strip_prefix(&format!("{test}, or ")).map(|other| format!(", or {other}")).unwrap_or_default();
    let fix = format!("correct what its words name, or `mcp_servers.{name}` in config.yaml, and test it again{other}");
    Failure { fix, ..failure }
}

fn definition(setup: &Setup, name: &str, section: &McpServerSection) -> Result<ServerDefinition, Failure> {
    Ok(setup.config.mcp_server(name, section, &|name| std::env::var_os(name))?)
}

fn section<'a>(setup: &'a Setup, name: &str) -> Result<&'a McpServerSection, Failure> {
    let servers = &setup.config.settings().mcp_servers;
    servers.get(name).and_then(Option::as_ref).ok_or_else(|| {
        let why = format!("config.yaml has no server `{}` below `mcp_servers`", text::line(name));
        Failure::new(Kind::General, "there is no such MCP server", why, "`hermes mcp list` lists all of them")
    })
}

/// The failure of a server that was not added. Remedies for a configured server, such as `hermes mcp test`, do not apply to it.
fn not_added(name: &str, error: &McpError) -> Failure {
    let failure = Failure::from(error.diagnose());
    let again =
        "correct the command, the address or the headers, and add it again; with --no-test it is added as it is";
    let needs_server = failure.fix.contains(&format!("hermes mcp test {name}"))
        || failure.fix.contains(&format!("mcp_servers.{name}"));
    let fix = if needs_server { again.to_owned() } else { failure.fix };
    Failure { what: format!("`{name}` was not added"), fix, ..failure }
}

async fn add(setup: &Setup, arguments: &AddArguments, console: Console) -> Result<ExitCode, Failure> {
    let name = &arguments.name;
    let refused = |why: String, fix: &str| Failure::new(Kind::Usage, "nothing was added", why, fix);
    if !is_server_name(name) {
        let why = format!("`{}` cannot be the name of a server", text::line(name));
        return Err(refused(why, "use 1 to 32 letters, digits, `_` and `-`"));
    }
    if setup.config.settings().mcp_servers.contains_key(name) {
        let fix = "choose another name, or remove it first with `hermes mcp remove`";
        return Err(refused(format!("config.yaml has a server `{name}` already"), fix));
    }
    if setup.catalog().get(name).is_some() || name == "hermes" {
        let why = format!("a plugin is called `{name}`, and an approval must name one of them");
        return Err(refused(why, "choose another name"));
    }
    let mut edit = Edit::of(setup.config.file())?;
    edit.set(&format!("mcp_servers.{name}"), &written(arguments)?)?;
    let changed = setup.with_changes(&edit, &[])?;
    let definition = definition(&changed, name, section(&changed, name)?)?;
    let mut wants_login = false;
    let listing = match arguments.no_test {
        true => None,
        false => match tried(setup, definition.clone(), console).await {
            // A login needs the section.
            Err(error) if matches!(error.cause, Cause::NotAuthorized { .. }) && arguments.header.is_empty() => {
                wants_login = true;
                None
            }
            tried => Some(tried.map_err(|error| not_added(name, &error))?),
        },
    };
    setup.own()?;
    edit.save()?;
    if let Some(listing) = &listing {
        servers::keep_listing(setup, &definition, listing);
    }
    if wants_login {
        console.note(&format!("added `{name}`; it wants a login: run `hermes mcp login {name}`"));
        return Ok(ExitCode::SUCCESS);
    }
    for line in listing.iter().flat_map(|listing| &listing.left_out) {
        console.warning(line);
    }
    let found = listing.map(|listing| format!(" with {}", text::counted(listing.tools.len() as u64, "tool")));
    if let Endpoint::Program(program) = &definition.endpoint {
        console.note(&format!("`{name}` {}", program.confinement.words()));
    }
    console.note(&format!(
        "added `{name}`{}; new sessions use it, and each call of its tools asks you unless `approvals.allow` has `{name}`",
        found.unwrap_or_default()
    ));
    Ok(ExitCode::SUCCESS)
}

/// The section of a new server.
fn written(arguments: &AddArguments) -> Result<Value, Failure> {
    let pairs = |texts: &[String], sign: char, what: &str| -> Result<Map<String, Value>, Failure> {
        let pair = |text: &String| {
            let pair = text.split_once(sign).map(|(name, value)| (name.trim().to_owned(), value.trim().into()));
            pair.filter(|(name, _)| !name.is_empty()).ok_or_else(|| {
                let why = format!("`{}` is no {what}", text::line(text));
                Failure::new(Kind::Usage, "nothing was added", why, format!("write NAME{sign}VALUE"))
            })
        };
        texts.iter().map(pair).collect()
    };
    let mut section = Map::new();
    if let Some(url) = &arguments.url {
        section.insert("url".to_owned(), url.as_str().into());
    }
    if let [command, rest @ ..] = &arguments.command[..] {
        section.insert("command".to_owned(), command.as_str().into());
        if !rest.is_empty() {
            section.insert("args".to_owned(), rest.into());
        }
    }
    if let Some(folder) = &arguments.cwd {
        section.insert("cwd".to_owned(), folder.as_str().into());
    }
    if let Some(sandbox) = &arguments.sandbox {
        section.insert("sandbox".to_owned(), sandbox.as_str().into());
    }
    if arguments.no_network {
        section.insert("network".to_owned(), false.into());
    }
    let mut writable = arguments.write.clone();
    writable.extend(named_folders(arguments.command.get(1..).unwrap_or_default()).map(str::to_owned));
    writable.dedup();
    if !writable.is_empty() {
        section.insert("write".to_owned(), writable.into());
    }
    let others =
        [("env", pairs(&arguments.env, '=', "variable")?), ("headers", pairs(&arguments.header, ':', "header")?)];
    section.extend(
        others.into_iter().filter(|(_, pairs)| !pairs.is_empty()).map(|(name, pairs)| (name.to_owned(), pairs.into())),
    );
    Ok(section.into())
}

/// What a server may do on this machine.
fn confined(definition: &ServerDefinition) -> Option<&Confinement> {
    match &definition.endpoint {
        Endpoint::Program(program) => Some(&program.confinement),
        Endpoint::Web(_) => None,
    }
}

async fn list(setup: &Setup, json: bool, console: Console) -> Result<ExitCode, Failure> {
    let mut rows = Vec::new();
    for (name, section) in &setup.config.settings().mcp_servers {
        let Some(section) = section else { continue };
        let definition = definition(setup, name, section)?;
        let tools = servers::kept_listing(setup, &definition).map(|listing| {
            let names = listing.tools.iter().map(|tool| tool.name.clone()).filter(|tool| definition.tools.has(tool));
            (weight(&definition, &listing), names.collect::<Vec<_>>(), listing.instructions)
        });
        let confinement = confined(&definition).map_or("elsewhere", Confinement::label);
        rows.push((name, section.enabled, definition.place(), tools, confinement));
    }
    if json {
        let rows = rows.iter().map(|(name, enabled, place, tools, runs)| {
            let place = hermes_config::redacted_text(place);
            let known = tools.as_ref();
            json!({
                "name": name, "enabled": enabled, "place": place, "runs": runs,
                "tools": known.map(|(_, names, _)| names),
                "tokens": known.map(|(weight, ..)| weight.tokens),
                "instructions": known.map(|(.., instructions)| instructions),
            })
        });
        print(&text::json(&rows.collect::<Value>()))?;
        return Ok(ExitCode::SUCCESS);
    }
    if rows.is_empty() {
        console.note("there is no MCP server; `hermes mcp add NAME -- PROGRAM ARGUMENTS` adds one");
        return Ok(ExitCode::SUCCESS);
    }
    let of_all = rows.iter().filter(|(_, enabled, ..)| *enabled).filter_map(|(.., tools, _)| Some(tools.as_ref()?.0));
    let (tools, tokens) =
        of_all.fold((0, 0), |(tools, tokens), one| (tools + one.tools, tokens + u64::from(one.tokens)));
    let mut table = Table::new(&[Align::Left, Align::Left, Align::Left, Align::Right, Align::Left, Align::Left]);
    table.head(["server", "state", "tools", "tokens", "runs with", "program or address"]);
    let mut said = Vec::new();
    for (name, enabled, place, tools, runs) in rows {
        if let Some((.., instructions)) = tools.as_ref().filter(|(.., instructions)| !instructions.is_empty()) {
            said.push((name.clone(), instructions.clone()));
        }
        let state = if enabled { (Tone::Good, "on".to_owned()) } else { (Tone::Faint, "off".to_owned()) };
        let tokens = tools.as_ref().map(|(weight, ..)| text::grouped(weight.tokens.into())).unwrap_or_default();
        let tools = tools.map_or_else(|| "not listed yet".to_owned(), |(_, names, _)| names.len().to_string());
        let place = text::line(&hermes_config::redacted_text(&place));
        let cells = [text::line(name), tools, tokens, runs.to_owned(), place].map(|cell| (Tone::Plain, cell));
        let [name, tools, tokens, runs, place] = cells;
        table.row([name, state, tools, tokens, runs, place]);
    }
    print(&table.text(console))?;
    for (name, instructions) in said {
        print(&instructions_of(setup, &name, &instructions, console))?;
    }
    if tools > 0 {
        console.note(&shelved(setup, tools, tokens).await);
    }
    Ok(ExitCode::SUCCESS)
}

/// What a server says about its use, as the model would read it, and whether the model does.
fn instructions_of(setup: &Setup, name: &str, instructions: &str, console: Console) -> String {
    const MOST: usize = 400;
    const INDENT: usize = 2;
    let section = setup.config.settings().mcp_servers.get(name).and_then(Option::as_ref);
    let most = section.map_or(0, |section| section.instructions.get());
    let ServerInstructions { tokens: needed, shown, suspicious } = ServerInstructions::of(name, instructions);
    let state = match most {
        0 => format!("not part of the prompt; `mcp_servers.{name}.instructions: {needed}` puts them there"),
        most if most < needed => format!("the first {most} tokens are part of the prompt"),
        _ => "part of the prompt of new sessions".to_owned(),
    };
    let shown = text::shortened(&text::line(&shown), MOST);
    let mut out = console.hanging(&format!("{name}: instructions of {needed} tokens, {state}"), INDENT);
    out.push_str(&console.hanging(&format!("{:INDENT$}{shown}", ""), INDENT));
    if let Some(notice) = suspicious {
        console.warning(&notice);
    }
    out
}

/// Whether the tools of all servers are in each request of new sessions.
async fn shelved(setup: &Setup, tools: usize, tokens: u64) -> String {
    let all = format!("together {} of about {} tokens", text::counted(tools as u64, "tool"), text::grouped(tokens));
    let Ok((room, route)) = setup.tool_room(&ModelChoice::default()).await else { return all };
    if !setup.shelf().enabled {
        return format!("{all} in each request (`tool_search.enabled` is false)");
    }
    let has_room = tokens <= room.tokens.into() && room.tools.is_none_or(|most| tools <= most);
    let model = text::line(&route.model.name);
    let least = text::grouped(room.tokens.into());
    match has_room {
        true => format!(
            "{all} in each request; up to {least} stay in the prompt with `{model}`, tools of installed plugins included"
        ),
        false => format!(
            "{all}; the prompt has room for {least} with `{model}`, so new sessions find them with `tool_search`, except those \
             that are pinned or used most here"
        ),
    }
}

async fn test(setup: &Setup, name: &str, json: bool, console: Console) -> Result<ExitCode, Failure> {
    let definition = definition(setup, name, section(setup, name)?)?;
    let choice = definition.tools.clone();
    let begun = Instant::now();
    let listing = tried(setup, definition.clone(), console).await.map_err(|error| not_usable(name, &error))?;
    let elapsed = begun.elapsed();
    servers::keep_listing(setup, &definition, &listing);
    if json {
        let tool = |tool: &ListedTool| {
            json!({
                "name": tool.name,
                "tool": tool_name(name, &tool.name),
                "used": choice.has(&tool.name),
                "claims_to_read": tool.claims_to_read,
                "description": tool.description,
            })
        };
        let tools: Vec<Value> = listing.tools.iter().map(tool).collect();
        let elapsed = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        let shown = json!({
            "server": name, "software": listing.software, "elapsed_ms": elapsed, "tools": tools, "left_out": listing.left_out,
            "runs": confined(&definition).map_or("elsewhere", Confinement::label),
        });
        print(&text::json(&shown))?;
        return Ok(ExitCode::SUCCESS);
    }
    let software = if listing.software.is_empty() { "a server" } else { &listing.software };
    let count = text::counted(listing.tools.len() as u64, "tool");
    print(&format!("{} answered in {:.1} s with {count}\n", text::line(software), elapsed.as_secs_f64()))?;
    if let Some(confinement) = confined(&definition) {
        console.note(&format!("`{name}` {}", confinement.words()));
    }
    for line in &listing.left_out {
        console.warning(line);
    }
    let mut table = Table::new(&[Align::Left, Align::Left, Align::Left]);
    for tool in &listing.tools {
        let mark = if tool.claims_to_read { "read-only, it says" } else { "" };
        let tone = if choice.has(&tool.name) { Tone::Plain } else { Tone::Faint };
        let said = text::shortened(&text::line(&tool.description), 160);
        let said = if choice.has(&tool.name) { said } else { "not used: see `tools` in config.yaml".to_owned() };
        table.row([(tone, tool_name(name, &tool.name)), (Tone::Faint, mark.to_owned()), (Tone::Faint, said)]);
    }
    print(&table.text(console))?;
    Ok(ExitCode::SUCCESS)
}

fn remove(setup: &Setup, name: &str, console: Console) -> Result<ExitCode, Failure> {
    if !setup.config.settings().mcp_servers.contains_key(name) {
        section(setup, name)?;
    }
    let mut edit = Edit::of(setup.config.file())?;
    edit.remove(&format!("mcp_servers.{name}"))?;
    let rules = match setup.catalog().get(name) {
        None => take_rules(setup, &mut edit, name)?,
        // They are about the plugin.
        Some(_) => Vec::new(),
    };
    edit.save()?;
    if is_server_name(name)
        && let Err(error) = servers::forget_listing(setup, name)
    {
        console.warning(&format!("its list of tools cannot be removed: {error}"));
    }
    console.note(&format!("removed `{}`; sessions that run keep it until they end", text::line(name)));
    if !rules.is_empty() {
        console
            .note(&format!("removed its rules too, which named nothing any more: {}", text::line(&rules.join(", "))));
    }
    let login = login_name(name);
    if setup.logins.examine().is_ok_and(|logins| logins.iter().any(|(other, _)| *other == login)) {
        console.note(&format!("its login stays: `hermes mcp logout {}` ends it", text::line(name)));
    }
    Ok(ExitCode::SUCCESS)
}

/// Removes the rules about a server, in words. Hermes does not start with a rule that names no plugin and no server.
fn take_rules(setup: &Setup, edit: &mut Edit, name: &str) -> Result<Vec<String>, Failure> {
    let approvals = &setup.config.settings().approvals;
    let lists =
        [("allow", &approvals.allow), ("ask", &approvals.ask), ("deny", &approvals.deny), ("reads", &approvals.reads)];
    let mut taken = Vec::new();
    for (list, rules) in lists {
        let is_about = |rule: &&String| rule.split_once('/').map_or(rule.as_str(), |(owner, _)| owner).trim() == name;
        for rule in rules.iter().filter(is_about) {
            edit.take(&format!("approvals.{list}"), rule)?;
            taken.push(format!("`{rule}` in `approvals.{list}`"));
        }
    }
    Ok(taken)
}
