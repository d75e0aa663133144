//! `hermes plugins` on a terminal, and `/plugins` in a chat: the plugins to choose from, what each one is, and switching it for new
//! sessions.

use std::process::ExitCode;

use hermes_app::Role;
use hermes_app::plugins::Selection;
use hermes_terminal::{Candidate, Chooser, Picker};

use super::{Inventory, Listed, State, state, switch};
use crate::console::{Console, print};
use crate::failure::Failure;
use crate::launch;
use crate::text;

/// A plugin of the list.
pub(crate) struct Choosable {
    pub(crate) name: String,
    /// Its row: whether it is used, kinds, version and description.
    row: Candidate,
    /// More about it, a line each.
    details: Vec<String>,
    /// What the user can do with it, if anything.
    pub(crate) switch: Option<Switch>,
}

/// A change of the selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Switch {
    /// Enable it, or let it take the place of the present engine or memory provider.
    On(Role),
    /// Disable it.
    Off,
}

impl Switch {
    /// The action as the user chooses it.
    fn action(self) -> Candidate {
        let (text, about) = match self {
            Self::On(Role::Engine) => ("enable", "as the context engine of new sessions, in place of the present one"),
            Self::On(Role::Memory) => ("enable", "as the memory provider of new sessions, in place of the present one"),
            Self::On(Role::Other) => ("enable", "in new sessions"),
            Self::Off => ("disable", "in new sessions"),
        };
        Candidate { text: text.to_owned(), about: about.to_owned() }
    }
}

impl Choosable {
    /// What the plugin is, with what the user can do with it: the first one is its switch, if it has one.
    pub(crate) fn actions(&self) -> Picker {
        let back = Candidate { text: "back".to_owned(), about: "to the list".to_owned() };
        let actions = self.switch.map(Switch::action).into_iter().chain([back]).collect();
        Picker::of_actions(&text::exact(&self.name), self.details.clone(), actions)
    }
}

/// The list, with the plugin of this name selected.
pub(crate) fn list(all: &[Choosable], selected: Option<&str>) -> Picker {
    let at = all.iter().position(|plugin| Some(plugin.name.as_str()) == selected).unwrap_or(0);
    Picker::new("Which plugin?", all.iter().map(|plugin| plugin.row.clone()).collect(), at)
}

/// Lets the user look at plugins and switch them, until the list is left.
pub(super) fn run(console: Console) -> Result<ExitCode, Failure> {
    let mut last: Option<String> = None;
    loop {
        let mut all = all()?;
        let chooser = Chooser::open(console.colours())?;
        let picked = chooser.pick(list(&all, last.as_deref()));
        let Some(at) = picked.filter(|at| *at < all.len()) else { return Ok(ExitCode::SUCCESS) };
        let plugin = all.swap_remove(at);
        let Some(chosen) = chooser.pick(plugin.actions()) else { return Ok(ExitCode::SUCCESS) };
        drop(chooser);
        if let Some(switch) = plugin.switch.filter(|_| chosen == 0) {
            for line in carry_out(&plugin.name, switch, console)? {
                print(&format!("{}\n", text::line(&line)))?;
            }
        }
        last = Some(plugin.name);
    }
}

/// All plugins, those that are used first. It reads the home again: another process may have changed it.
pub(crate) fn all() -> Result<Vec<Choosable>, Failure> {
    let inventory = Inventory::of(launch::read()?)?;
    let mut listed = inventory.list();
    listed.sort_by_key(|plugin| plugin.state == State::Off);
    Ok(listed.iter().map(|plugin| choosable(plugin, &inventory)).collect())
}

/// Switches a plugin, as `hermes plugins enable` and `disable` do. Returns a line about each change.
pub(crate) fn carry_out(name: &str, what: Switch, console: Console) -> Result<Vec<String>, Failure> {
    let inventory = Inventory::of(launch::read()?)?;
    match what {
        Switch::On(_) => {
            let lines = switch::enabling(name, &inventory)?.store()?;
            inventory.warn_of_lacks(name, console);
            Ok(lines)
        }
        Switch::Off => switch::disabling(name, &inventory)?.store(),
    }
}

fn choosable(plugin: &Listed, inventory: &Inventory) -> Choosable {
    let description = text::exact(&plugin.description);
    let kinds = if plugin.kinds.is_empty() { "-".to_owned() } else { plugin.kinds.join(", ") };
    let version = text::exact(&plugin.version);
    let facts = format!("{} · {kinds} · {version}", plugin.state.word());
    let mut details = vec![description.clone(), facts.clone(), format!("from: {}", text::exact(&plugin.source))];
    details.extend(plugin.why.as_ref().map(|why| format!("cannot be used: {}", text::exact(why))));
    if let Some(found) = inventory.catalog.get(&plugin.name) {
        let rights = found.permissions_in(&inventory.selection).lines();
        details.extend(rights.iter().map(|right| format!("permission: {}", text::exact(right))));
        details.extend(inventory.lacks(found).iter().map(|lack| format!("it {}", text::exact(lack))));
    }
    let is_on = state(&plugin.name, &inventory.selection) != State::Off;
    let switch = match (is_on, &plugin.why) {
        // A session needs an engine, and this one is the default.
        (true, _) if plugin.name == Selection::ENGINE => {
            details.push("to use another context engine, enable that one".to_owned());
            None
        }
        (true, _) => Some(Switch::Off),
        (false, None) if plugin.name == Selection::MEMORY => Some(Switch::On(Role::Other)),
        (false, None) => Some(Switch::On(Role::of(&plugin.kinds))),
        (false, Some(_)) => None,
    };
    let is_used = match plugin.state {
        State::Engine | State::Memory | State::Enabled => "on",
        State::Off => "off",
        State::Ungranted | State::Broken => plugin.state.word(),
    };
    let about = format!("{is_used} · {} · {version} · {description}", plugin.main_kinds());
    let row = Candidate { text: text::exact(&plugin.name), about };
    Choosable { name: plugin.name.clone(), row, details, switch }
}
