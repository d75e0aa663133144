//! The MCP servers, as far as they can be checked without starting one.

use std::path::Path;

use hermes_agent::own_tools;
use hermes_diagnostic::{Diagnose as _, counted};
use hermes_mcp::{Confined, Endpoint, KeptListings, Program, ServerDefinition, tool_name};

use super::Check;
use crate::{ModelChoice, Setup};

const SUBJECT: &str = "mcp";

pub(super) async fn examine(setup: &Setup, choice: &ModelChoice) -> Vec<Check> {
    let servers = match setup.mcp_servers() {
        Ok(servers) => servers,
        Err(error) => return vec![Check::fail(SUBJECT, error.diagnose())],
    };
    let kept = KeptListings::new(setup.home.documents());
    let catalog = (!servers.is_empty()).then(|| setup.catalog());
    let plugin = |name: &str| catalog.as_ref().is_some_and(|catalog| catalog.get(name).is_some());
    let each = servers.iter().map(|server| of_server(server, &kept, plugin(&server.name)));
    let refused = refused(setup, choice, &servers, &kept).await;
    each.chain(refused).collect()
}

/// A warning when the tools that are always in a request are more than its provider takes.
async fn refused(
    setup: &Setup,
    choice: &ModelChoice,
    servers: &[ServerDefinition],
    kept: &KeptListings,
) -> Option<Check> {
    let (room, route) = setup.tool_room(choice).await.ok()?;
    let shelf = setup.shelf();
    let always = servers.iter().filter_map(|server| {
        let is_whole = !shelf.enabled || shelf.pinned.contains(&server.name);
        let pinned = |tool: &String| shelf.pinned.contains(&tool_name(&server.name, tool));
        let tools = kept.read(server)?.tools.into_iter().map(|tool| tool.name).filter(|tool| server.tools.has(tool));
        Some(tools.filter(|tool| is_whole || pinned(tool)).count())
    });
    let why = room.refuses(always.sum::<usize>() + own_tools().count())?;
    let fix = match shelf.enabled {
        true => "take names out of `tool_search.pinned`: the model finds the others with `tool_search`",
        false => "set `tool_search.enabled: true`, or exclude tools with `mcp_servers.NAME.tools`",
    };
    let found =
        format!("{why} (`{}`), so each message would fail; tools of plugins are not counted", route.model.provider);
    Some(Check::warn(SUBJECT, found, fix))
}

fn of_server(server: &ServerDefinition, kept: &KeptListings, is_plugin: bool) -> Check {
    let name = &server.name;
    if is_plugin {
        let found =
            format!("a plugin is called `{name}`, so the server of this name is left out while the plugin is used");
        return Check::warn(SUBJECT, found, format!("rename `mcp_servers.{name}` in config.yaml"));
    }
    if let Endpoint::Program(program) = &server.endpoint
        && !is_found(program)
    {
        let found = format!("`{name}`: there is no program `{}`", program.command);
        return Check::warn(SUBJECT, found, format!("install it, or correct `mcp_servers.{name}.command`"));
    }
    let found = match kept.read(server) {
        Some(listing) => format!("`{name}` offers {}", counted(listing.tools.len() as u64, "tool")),
        None => format!("`{name}` has not been connected yet; `hermes mcp test {name}` tries it"),
    };
    let Endpoint::Program(program) = &server.endpoint else { return Check::ok(SUBJECT, found) };
    let found = format!("{found}; it {}", program.confinement.words());
    match program.confinement.here() {
        Confined::Off | Confined::Yes => Check::ok(SUBJECT, found),
        Confined::Unavailable(_) | Confined::Refused(_) => Check::warn(SUBJECT, found, {
            let remedy =
                hermes_capabilities::process::offer().map_or("try again", hermes_capabilities::process::Offer::remedy);
            format!("{remedy}, or set `mcp_servers.{name}.sandbox: off`")
        }),
    }
}

fn is_found(program: &Program) -> bool {
    if program.command.contains('/') {
        return program.folder.join(&program.command).exists();
    }
    let own = program.variables.get("PATH").map(Into::into);
    let standard = || program.environment.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.clone());
    let path = own.or_else(standard).unwrap_or_default();
    std::env::split_paths(&path).any(|folder| Path::new(&folder).join(&program.command).is_file())
}
