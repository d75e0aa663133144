//! `hermes plugins doctor`: every plugin and every tool that is not there or would not run, why, and what to do.

mod examination;
mod finding;

use std::process::ExitCode;

pub(crate) use examination::examine;
pub(crate) use finding::{Examined, Severity};
use serde_json::json;

use super::Known;
use crate::console::{Console, Tone, print};
use crate::failure::{Failure, Kind};
use crate::text;

/// Prints what was found; a problem is the exit code's business.
pub(super) async fn run(json: bool, console: Console) -> Result<ExitCode, Failure> {
    let known = Known::read(console)?;
    let examined = examine(&known.setup, &known.catalog, &known.selection, &known.runtime).await;
    let count = |severity: Severity| {
        let findings = examined.iter().flat_map(|examined| &examined.findings);
        findings.filter(|finding| finding.severity == severity).count()
    };
    let (problems, notes) = (count(Severity::Problem), count(Severity::Note));
    if json {
        let value = json!({ "problems": problems, "notes": notes, "plugins": examined });
        print(&format!("{value:#}\n"))?;
    } else {
        let blocks: String = examined.iter().map(|examined| block(examined, console)).collect();
        let counted = |number: usize, thing: &str| text::counted(number as u64, thing);
        print(&format!("{blocks}{}, {}\n", counted(problems, "problem"), counted(notes, "note")))?;
    }
    Ok(if problems > 0 { Kind::General.into() } else { ExitCode::SUCCESS })
}

/// A line for the plugin, and three for each finding.
fn block(examined: &Examined, console: Console) -> String {
    let name = examined.name.as_deref().unwrap_or("all plugins");
    let state = examined.name.as_ref().map(|_| if examined.is_on { "on" } else { "off" });
    let about: Vec<&str> = state.into_iter().chain(examined.source.as_deref()).collect();
    let about = if about.is_empty() { String::new() } else { format!(" ({})", text::line(&about.join(", "))) };
    let well = if examined.findings.is_empty() { ": nothing wrong" } else { "" };
    let mut block = format!("{}{}{well}\n", text::line(name), console.paint(Tone::Faint, &about));
    for finding in &examined.findings {
        let (label, tone) = match finding.severity {
            Severity::Problem => ("problem", Tone::Bad),
            Severity::Note => ("note", Tone::Warning),
        };
        let lines =
            [(label, tone, &finding.what), ("why", Tone::Faint, &finding.why), ("fix", Tone::Faint, &finding.fix)];
        for (label, tone, said) in lines {
            block.push_str(&format!("  {} {}\n", console.paint(tone, &format!("{label:>8}:")), text::line(said)));
        }
    }
    block
}
