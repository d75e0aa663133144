//! `hermes plugins verify`: compares the installed plugins with `plugins.lock`.

use std::process::ExitCode;

use hermes_app::operations::{self, InstalledState};
use serde_json::json;

use crate::console::{Console, Tone, print};
use crate::failure::{Failure, Kind};
use crate::launch;
use crate::table::{Align, Table};
use crate::text;
use crate::wording;

pub(super) fn run(json: bool, console: Console) -> Result<ExitCode, Failure> {
    let setup = launch::setup(console)?;
    let catalog = setup.catalog();
    let findings = operations::compare_installed(&setup, &catalog)?;
    for problem in catalog.problems() {
        console.warning(&super::problem_line(&problem.error));
    }
    if json {
        print(&text::json(&json!(findings)))?;
    } else if findings.is_empty() {
        console.note("no plugins are installed");
    } else {
        let mut table = Table::new(&[Align::Left; 4]);
        for found in &findings {
            let (word, tone) = word(found.state);
            let plain = |text: &dyn std::fmt::Display| (Tone::Plain, text::exact(&text.to_string()));
            let about = wording::with_fix(&found.detail, &found.fix);
            table.row([(tone, word.to_owned()), plain(&found.name), plain(&found.version), plain(&about)]);
        }
        print(&table.text(console))?;
    }
    let is_intact = findings.iter().all(|found| matches!(found.state, InstalledState::Ok | InstalledState::Revoked))
        && catalog.problems().is_empty();
    Ok(if is_intact { ExitCode::SUCCESS } else { Kind::General.into() })
}

fn word(state: InstalledState) -> (&'static str, Tone) {
    match state {
        InstalledState::Ok => ("ok", Tone::Good),
        InstalledState::Revoked => ("revoked", Tone::Warning),
        InstalledState::Ungranted | InstalledState::Foreign => ("not granted", Tone::Bad),
        InstalledState::Altered => ("changed", Tone::Bad),
        InstalledState::Missing => ("missing", Tone::Bad),
        InstalledState::Unfinished => ("unfinished", Tone::Warning),
    }
}
