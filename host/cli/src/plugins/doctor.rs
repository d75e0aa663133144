//! `hermes plugins doctor`: explains missing or failing plugins and tools, and suggests fixes.

use std::process::ExitCode;

use hermes_app::doctor::{ExaminedPlugin, Finding, Severity, examine_plugins};
use serde_json::{Value, json};

use super::Inventory;
use crate::console::{Console, Tone, print};
use crate::failure::{Failure, Kind};
use crate::{text, wording};

/// Prints the findings. With a problem, the exit code is 1.
pub(super) async fn run(json: bool, console: Console) -> Result<ExitCode, Failure> {
    let Inventory { setup, catalog, selection, runtime, .. } = &Inventory::read(console)?;
    let examined = examine_plugins(setup, catalog, selection, runtime).await;
    let count = |severity: Severity| {
        let findings = examined.iter().flat_map(|examined| &examined.findings);
        findings.filter(|finding| finding.severity == severity).count()
    };
    let (problems, notes) = (count(Severity::Problem), count(Severity::Note));
    if json {
        let value =
            json!({ "problems": problems, "notes": notes, "plugins": examined.iter().map(plugin).collect::<Vec<_>>() });
        print(&text::json(&value))?;
    } else {
        let blocks: String = examined.iter().map(|examined| block(examined, console)).collect();
        let counted = |number: usize, thing: &str| text::counted(number as u64, thing);
        print(&format!("{blocks}{}, {}\n", counted(problems, "problem"), counted(notes, "note")))?;
    }
    Ok(if problems > 0 { Kind::General.into() } else { ExitCode::SUCCESS })
}

/// A plugin for `--json`.
fn plugin(examined: &ExaminedPlugin) -> Value {
    let ExaminedPlugin { name, source, is_on, tools, findings } = examined;
    let findings: Vec<Value> = findings.iter().map(finding).collect();
    json!({ "name": name, "source": source, "on": is_on, "tools": tools, "findings": findings })
}

fn finding(finding: &Finding) -> Value {
    let Finding { severity, case, tool, what, why, fix } = finding;
    let mut value = json!({ "severity": severity, "case": case });
    if let Some(tool) = tool {
        value["tool"] = json!(tool);
    }
    value["what"] = json!(what);
    value["why"] = json!(why);
    value["fix"] = json!(wording::fix(fix));
    value
}

/// One line for the plugin, and three for each finding.
fn block(examined: &ExaminedPlugin, console: Console) -> String {
    let name = examined.name.as_deref().unwrap_or("all plugins");
    let state = examined.name.as_ref().map(|_| if examined.is_on { "enabled" } else { "disabled" });
    let about: Vec<&str> = state.into_iter().chain(examined.source.as_deref()).collect();
    let about = if about.is_empty() { String::new() } else { format!(" ({})", text::exact(&about.join(", "))) };
    let verdict = if examined.findings.is_empty() { ": ok" } else { "" };
    let mut block = format!("{}{}{verdict}\n", text::exact(name), console.paint(Tone::Faint, &about));
    for finding in &examined.findings {
        let (label, tone) = match finding.severity {
            Severity::Problem => ("problem", Tone::Bad),
            Severity::Note => ("note", Tone::Warning),
        };
        let fix = wording::fix(&finding.fix);
        let lines = [(label, tone, &finding.what), ("why", Tone::Faint, &finding.why), ("fix", Tone::Faint, &fix)];
        for (label, tone, line) in lines {
            let label = format!("  {:>8}:", label);
            block.push_str(&text::labelled(&label, &text::exact(line), 12, console.columns(), |label| {
                console.paint(tone, label)
            }));
        }
    }
    block
}
