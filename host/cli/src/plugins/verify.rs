//! `hermes plugins verify`: the disk against `plugins.lock`.

use std::process::ExitCode;

use hermes_install::State;
use serde_json::json;

use crate::console::{Console, Tone, print};
use crate::failure::{Failure, Kind};
use crate::launch;
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
        let line = |found: &hermes_install::Finding| {
            let (word, tone) = word(found.state);
            let word = console.paint(tone, &format!("{word:<10}"));
            let line = format!("{word} {:<14} {:<8} {}", found.name, found.version, text::line(&told(found)));
            format!("{}\n", line.trim_end())
        };
        print(&findings.iter().map(line).collect::<String>())?;
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
