//! What another plugin of the same name left: the questions about it, and the lines after a command.

use std::io::{self, IsTerminal as _};

use hermes_app::operations::{Adoption, ConfigLine, Handover, Leftovers};
use hermes_app::plugins::PluginOrigin;

use super::consent::screen::ConsentScreen;
use crate::console::Console;
use crate::failure::{Failure, Kind};
use crate::question::consented as question;
use crate::text;

const UNKNOWN: &str = "a source that is not known";

fn origin(origin: Option<&PluginOrigin>) -> String {
    origin.map_or_else(|| UNKNOWN.to_owned(), |origin| text::exact(&origin.to_string()))
}

fn listed(lines: &[ConfigLine]) -> String {
    lines.iter().map(|line| text::exact(&format!("`{line}`"))).collect::<Vec<_>>().join(", ")
}

/// Asks whether lines of config.yaml apply. Without a terminal they do not.
pub(super) fn ask(left: &Leftovers<'_>, keep: bool, console: Console) -> Result<bool, Failure> {
    let show = |lines: &[ConfigLine], title: &str| {
        let rows: Vec<String> = lines.iter().map(ToString::to_string).collect();
        if !rows.is_empty() {
            let mut sheet = ConsentScreen::on_stderr(console);
            sheet.numbered("config.yaml", title, &rows, 1);
            sheet.print();
        }
    };
    show(left.applied, "lines that apply to this plugin:");
    if left.asked.is_empty() {
        return Ok(true);
    }
    let count = left.asked.len();
    let written = match left.owner {
        Some(owner) => {
            let mut sheet = ConsentScreen::on_stderr(console);
            sheet.whole("left by", &owner.to_string());
            sheet.print();
            format!("lines that were written for that plugin of this name: {count}")
        }
        None => format!("lines that give this name rights, perhaps written for another plugin: {count}"),
    };
    show(left.asked, &written);
    if keep || !io::stdin().is_terminal() {
        return Ok(keep);
    }
    question(
        "apply these lines to the new plugin? (otherwise an installation takes them out of config.yaml)",
        "nothing was changed",
        "",
    )
}

/// Asks whether a plugin continues another origin.
pub(super) fn ask_to_adopt(adoption: &Adoption, yes: bool, console: Console) -> Result<bool, Failure> {
    let text = |of: Option<&PluginOrigin>| of.map_or_else(|| UNKNOWN.to_owned(), ToString::to_string);
    let mut sheet = ConsentScreen::on_stderr(console);
    sheet.whole("plugin", &adoption.name);
    sheet.whole("until now", &text(adoption.before.as_ref()));
    sheet.whole("from now on", &text(Some(&adoption.now)));
    let what = match (&adoption.data, adoption.is_installed) {
        (Some(data), _) => {
            sheet.whole("data", &data.folder.display().to_string());
            "give this data to the installed plugin?"
        }
        (None, true) => "let the new source have the plugin's permissions, configuration and data?",
        (None, false) => "let the new source have the plugin's data?",
    };
    sheet.print();
    if yes && !adoption.has_others {
        return Ok(true);
    }
    let fix = if adoption.has_others { "run it at a terminal, to choose among several folders" } else { "add --yes" };
    if yes && !io::stdin().is_terminal() {
        let why = "there is data of several plugins of this name";
        return Err(Failure::new(Kind::Usage, "nothing was changed", why, fix));
    }
    question(what, "nothing was changed", fix)
}

/// Shows what became of the things that another plugin of this name left.
pub(super) fn show(name: &str, handover: &Handover, console: Console) {
    let Handover { taken_out, forgotten, undelivered, data } = handover;
    if !taken_out.is_empty() {
        let lines = listed(taken_out);
        console.note(&format!("taken out of config.yaml, because it was not written for this plugin: {lines}"));
    }
    if *forgotten > 0 {
        let count = text::counted(*forgotten as u64, "permanent approval");
        console.note(&format!("forgot {count} of another plugin named `{name}`"));
    }
    if *undelivered > 0 {
        let count = text::counted(*undelivered as u64, "turn");
        console.note(&format!("{count} for another memory provider named `{name}` will not be sent to this one"));
    }
    if let Some(aside) = &data.set_aside {
        console.note(&format!(
            "the data of {} is kept in {}; `hermes plugins adopt {name}` gives it to this plugin",
            origin(aside.origin.as_ref()),
            text::exact(&aside.folder.display().to_string()),
        ));
    }
    if data.returned.is_some() {
        console.note(&format!("`{name}` has its earlier data again"));
    }
}

/// Shows what a removal took out, and what remains.
pub(super) fn show_rest(name: &str, report: &hermes_app::operations::RemovalReport, console: Console) {
    if !report.taken_out.is_empty() {
        console.note(&format!("taken out of config.yaml: {}", listed(&report.taken_out)));
    }
    if report.forgotten > 0 {
        console.note(&format!("forgot {}", text::counted(report.forgotten as u64, "permanent approval")));
    }
    if let Some(data) = &report.data {
        let data = text::exact(&data.display().to_string());
        console.note(&match report.was_installed {
            true => format!("kept its data in {data}, for a plugin from the same source only"),
            false => format!("kept its data in {data}"),
        });
    }
    for aside in &report.aside {
        let (from, folder) = (origin(aside.origin.as_ref()), text::exact(&aside.folder.display().to_string()));
        console.note(&format!("the data of another plugin named `{name}`, from {from}, is kept in {folder}"));
    }
    if !report.denials.is_empty() {
        console.note(&format!("config.yaml still has: {}", listed(&report.denials)));
    }
}
