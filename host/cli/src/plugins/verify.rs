//! `hermes plugins verify`: the disk against `plugins.lock`.

use std::process::ExitCode;

use hermes_install::State;
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
    let findings = setup.installer().verify(&catalog)?;
    for problem in catalog.problems() {
        console.warning(&super::told(&problem.error));
    }
    if json {
        print(&format!("{:#}\n", json!(findings)))?;
    } else if findings.is_empty() {
        console.note("no plugin is installed");
    } else {
        let mut table = Table::new(&[Align::Left; 4]);
        for found in &findings {
            let (word, tone) = word(found.state);
            let plain = |text: &dyn std::fmt::Display| (Tone::Plain, text::line(&text.to_string()));
            table.row([(tone, word.to_owned()), plain(&found.name), plain(&found.version), plain(&told(found))]);
        }
        print(&table.text(console))?;
    }
    let well =
        findings.iter().all(|found| matches!(found.state, State::Ok | State::Revoked)) && catalog.problems().is_empty();
    Ok(if well { ExitCode::SUCCESS } else { Kind::General.into() })
}

/// What was found and what to do.
fn told(found: &hermes_install::Finding) -> String {
    if found.fix.is_empty() { found.detail.clone() } else { format!("{}; {}", found.detail, wording::fix(&found.fix)) }
}

fn word(state: State) -> (&'static str, Tone) {
    match state {
        State::Ok => ("ok", Tone::Good),
        State::Revoked => ("revoked", Tone::Warning),
        State::Ungranted => ("ungranted", Tone::Bad),
        State::Altered => ("altered", Tone::Bad),
        State::Missing => ("missing", Tone::Bad),
        State::Unfinished => ("unfinished", Tone::Warning),
    }
}
