//! `hermes plugins approvals`: lists and forgets the actions that the user approved with `always`.

use std::process::ExitCode;

use hermes_app::Home;
use hermes_app::approvals::KeptApproval;
use serde_json::json;

use crate::console::{Console, print};
use crate::failure::Failure;
use crate::text;

pub(crate) fn run(home: &Home, forget: Option<&str>, as_json: bool, console: Console) -> Result<ExitCode, Failure> {
    if let Some(plugin) = forget {
        let count = home.forget_approvals(plugin)?;
        if as_json {
            print(&text::json(&json!({ "forgotten": count })))?;
        } else {
            print(&format!("{} of `{plugin}` forgotten\n", text::counted(count as u64, "approval")))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let approvals = home.approvals()?;
    if as_json {
        print(&text::json(&json!(approvals)))?;
    } else if approvals.is_empty() {
        console.note("no action is approved permanently");
    } else {
        print(&approvals.iter().map(|approval| console.hanging(&line(approval), 2)).collect::<String>())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn line(approval: &KeptApproval) -> String {
    let KeptApproval { plugin, version, what, of, at, .. } = approval;
    let of = if of.is_empty() { String::new() } else { format!(" ({of})") };
    let day = at.split('T').next().unwrap_or(at);
    text::exact(&format!("{plugin} {version} {what}{of} since {day}"))
}
