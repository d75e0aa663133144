//! `hermes skills search`.

use std::process::ExitCode;

use hermes_app::skills::{Hit, search};
use serde_json::json;

use super::{listing, quoted};
use crate::console::{Console, print};
use crate::failure::Failure;
use crate::launch::Setup;
use crate::progress::Terminal;
use crate::text;

/// Most matches that are shown.
const MOST_SHOWN: usize = 40;

pub(super) async fn run(
    setup: &Setup,
    query: &str,
    refresh: bool,
    json: bool,
    console: Console,
) -> Result<ExitCode, Failure> {
    if !setup.config.settings().skills.sources.is_empty() {
        setup.own()?;
    }
    let reporter = Terminal::new(console);
    let report = search(query, refresh, setup, &reporter).await?;
    drop(reporter);
    for notice in &report.notices {
        console.note(&text::exact_within(notice, 1_000));
    }
    if json {
        print(&text::json(&json!(report.hits)))?;
        return Ok(ExitCode::SUCCESS);
    }
    print(&report.hits.iter().take(MOST_SHOWN).map(|hit| shown(hit, console)).collect::<String>())?;
    let searched = text::counted(report.searched as u64, "skill");
    match report.hits.len() {
        0 => console.note(&format!("none of {searched} has these words in its name or description")),
        count if count > MOST_SHOWN => {
            console.note(&format!("{} more of {searched} match; add a word", count - MOST_SHOWN));
        }
        _ => {}
    }
    Ok(ExitCode::SUCCESS)
}

fn shown(hit: &Hit, console: Console) -> String {
    let state = match (hit.is_installed, hit.source.is_empty()) {
        (true, true) => "your own skill".to_owned(),
        (true, false) => format!("installed from {}", hit.source),
        (false, _) => format!("hermes skills install {} {}", quoted(&hit.source), quoted(&hit.argument)),
    };
    listing::block(&text::exact(&hit.name), &[&hit.description, &state], console)
}
