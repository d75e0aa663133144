//! `hermes sessions stats`, `check` and `repair`: commands on the whole store.

use std::process::ExitCode;

use hermes_app::sessions::{Depth, Outcome, Repair, Stats};
use serde_json::json;

use super::{failed, printed, printed_json};
use crate::console::print;
use crate::failure::{Failure, Kind};
use crate::launch::Setup;
use crate::moments::local;
use crate::text;

pub(super) async fn stats(json: bool, setup: &Setup) -> Result<ExitCode, Failure> {
    let stats = match setup.store_to_read()? {
        Some(store) => Some(store.stats().await.map_err(failed)?),
        None => None,
    };
    if json {
        return printed_json(&stats);
    }
    printed(&stats.map_or_else(|| "sessions   0\n".to_owned(), |stats| render(&stats)))
}

fn render(stats: &Stats) -> String {
    let mut out = String::new();
    let mut line = |name: &str, value: String| out.push_str(&format!("{name:<10} {value}\n"));
    let tasks = match stats.delegates {
        0 => String::new(),
        tasks => format!(", {} of them delegated tasks", text::grouped(tasks)),
    };
    line("sessions", format!("{}{tasks}", text::grouped(stats.sessions)));
    let messages = &stats.messages;
    let all = messages.user + messages.assistant + messages.tool;
    let by_role = [("user", messages.user), ("assistant", messages.assistant), ("tool", messages.tool)];
    let by_role: Vec<String> =
        by_role.iter().map(|(role, count)| format!("{role} {}", text::grouped(*count))).collect();
    line("messages", format!("{} ({})", text::grouped(all), by_role.join(", ")));
    if messages.rewound > 0 {
        line("rewound", text::grouped(messages.rewound));
    }
    if let (Some(oldest), Some(newest)) = (stats.oldest, stats.newest) {
        line("time", format!("{} to {}", local(oldest), local(newest)));
    }
    let totals = &stats.totals;
    line("requests", text::grouped(totals.requests));
    line(
        "tokens",
        format!(
            "{} in ({} read from caches), {} out",
            text::grouped(totals.input),
            text::grouped(totals.cache_read),
            text::grouped(totals.output)
        ),
    );
    if totals.cost > 0.0 {
        line("cost", format!("${:.2} for the requests with a known price", totals.cost));
    } else {
        line("cost", "unknown: no request has a known price".to_owned());
    }
    let sizes = &stats.sizes;
    line("file", format!("{}, {} of it free", size(sizes.file), size(sizes.free)));
    line("log", size(sizes.log));
    const MOST: usize = 8;
    for (name, bytes) in sizes.parts.iter().take(MOST) {
        line("", format!("{:>9}  {name}", size(*bytes)));
    }
    out
}

/// `512 B`, `4.0 kB`, `1.2 GB`.
#[allow(clippy::cast_precision_loss, reason = "shown with one digit")]
fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 1_000 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1_000.0;
    let mut unit = 0;
    while value >= 999.95 && unit + 1 < UNITS.len() {
        value /= 1_000.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

pub(super) async fn check(quick: bool, json: bool, setup: &Setup) -> Result<ExitCode, Failure> {
    let Some(store) = setup.store_to_check().map_err(failed)? else {
        return if json { printed_json(&json!(null)) } else { printed("no session is stored yet\n") };
    };
    let health = store.check(if quick { Depth::Quick } else { Depth::Full }).await.map_err(failed)?;
    if json {
        print(&text::json(&json!(health)))?;
    }
    if health.problems.is_empty() {
        if !json {
            let (sessions, messages) =
                (text::counted(health.sessions, "session"), text::counted(health.messages, "message"));
            print(&format!("no damage found: {sessions}, {messages}, schema {}\n", health.schema))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if !json {
        print(&health.problems.iter().map(|problem| format!("{}\n", text::line(problem))).collect::<String>())?;
    }
    let why = format!("{} in {}", text::counted(health.problems.len() as u64, "problem"), store.place());
    let fix = "run `hermes sessions repair`, which makes a backup first";
    Err(Failure::new(Kind::Store, "the store is damaged", why, fix))
}

pub(super) fn repair(json: bool, setup: &Setup) -> Result<ExitCode, Failure> {
    let done = setup.repair_store().map_err(failed)?;
    if json { printed_json(&done) } else { printed(&repaired(&done)) }
}

fn repaired(done: &Repair) -> String {
    let mut out = String::new();
    for problem in &done.problems {
        out.push_str(&format!("problem    {}\n", text::line(problem)));
    }
    out.push_str(match done.outcome {
        Outcome::Sound => "result     no damage found; nothing was changed\n",
        Outcome::Rebuilt if done.lost.is_empty() => "result     indexes and counts were rebuilt; nothing was lost\n",
        Outcome::Rebuilt => "result     indexes and counts were rebuilt; all messages were kept\n",
        Outcome::Salvaged => "result     all readable data was copied to a new database\n",
    });
    for (table, rows) in &done.saved {
        if let Some(noun) = noun(table).filter(|_| *rows > 0) {
            out.push_str(&format!("saved      {}\n", text::counted(*rows, noun)));
        }
    }
    for lost in &done.lost {
        out.push_str(&format!("lost       {lost}\n"));
    }
    if let Some(backup) = &done.backup {
        out.push_str(&format!("backup     {}\n", backup.display()));
    }
    for older in &done.older_backups {
        out.push_str(&format!("old backup {}\n", older.display()));
    }
    out
}

/// The rows of a table in the user's words. The other tables hold what belongs to these.
fn noun(table: &str) -> Option<&'static str> {
    match table {
        "sessions" => Some("session"),
        "messages" => Some("message"),
        "blobs" => Some("attachment"),
        "views" => Some("compaction"),
        "requests" => Some("request record"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use hermes_app::sessions::{Messages, Sizes, Totals};

    use super::*;

    #[test]
    fn sizes_have_one_digit() {
        let shown = [0, 999, 1_000, 4_096, 999_949, 999_950, 1_234_567_890].map(size);
        assert_eq!(shown, ["0 B", "999 B", "1.0 kB", "4.1 kB", "999.9 kB", "1.0 MB", "1.2 GB"]);
    }

    #[test]
    fn the_statistics_are_aligned() {
        let stats = Stats {
            sessions: 12,
            delegates: 2,
            messages: Messages { user: 1_000, assistant: 900, tool: 50, rewound: 3 },
            totals: Totals { input: 5_000, cache_read: 4_000, output: 70, requests: 9, cost: 1.5, ..Totals::default() },
            oldest: None,
            newest: None,
            sizes: Sizes { file: 40_960, log: 0, free: 4_096, parts: vec![("messages".into(), 20_480)] },
        };
        assert_eq!(
            render(&stats),
            "sessions   12, 2 of them delegated tasks\n\
             messages   1,950 (user 1,000, assistant 900, tool 50)\n\
             rewound    3\n\
             requests   9\n\
             tokens     5,000 in (4,000 read from caches), 70 out\n\
             cost       $1.50 for the requests with a known price\n\
             file       41.0 kB, 4.1 kB of it free\n\
             log        0 B\n\
             \x20            20.5 kB  messages\n"
        );
    }

    #[test]
    fn a_repair_reports_losses_and_backups() {
        let done = Repair {
            outcome: Outcome::Salvaged,
            problems: vec!["damaged".into()],
            backup: Some("/h/state.db.backup-1".into()),
            older_backups: vec!["/h/state.db.backup-0".into()],
            saved: vec![
                ("sessions".into(), 1),
                ("messages".into(), 1_000),
                ("blobs".into(), 0),
                ("view_items".into(), 9),
            ],
            lost: vec!["rows of `messages`".into()],
        };
        assert_eq!(
            repaired(&done),
            "problem    damaged\nresult     all readable data was copied to a new database\nsaved      1 session\n\
             saved      1,000 messages\n\
             lost       rows of `messages`\nbackup     /h/state.db.backup-1\nold backup /h/state.db.backup-0\n"
        );
    }
}
