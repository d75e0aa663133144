//! `hermes cache`: how much of each request the provider read from its prompt cache, why not more, and the cost.

use std::process::ExitCode;

use hermes_app::cache::{CacheUse, EphemeralText, SentRequest, Warmings};
use hermes_app::sessions::Session;
use serde_json::{Value, json};

use crate::bars;
use crate::console::{Console, Tone, print};
use crate::failure::{Failure, Kind};
use crate::launch;
use crate::text::{self, grouped, line};

/// Columns of a bar.
const WIDTH: usize = 16;
/// The columns that a terminal has at least, if the table has a bar.
const COLUMNS: usize = 90;

pub(crate) async fn run(id: Option<&str>, json: bool, console: Console) -> Result<ExitCode, Failure> {
    let setup = launch::read()?;
    let here = std::env::current_dir().ok();
    let (store, session) = setup.session_to_read(id, here.as_deref()).await?.ok_or_else(no_session)?;
    let prices = setup.prices().0;
    let used = CacheUse::read(&*store, &session, &prices).await?;
    if json {
        print(&text::json(&as_json(&session, &used, &prices.as_of())))?;
        return Ok(ExitCode::SUCCESS);
    }
    if used.requests.is_empty() {
        let id = &session.id;
        console.note(&format!("session {id} has sent no requests yet; `hermes cache ID` shows another session"));
        return Ok(ExitCode::SUCCESS);
    }
    print(&table(&session, &used, &prices.as_of(), console))?;
    Ok(ExitCode::SUCCESS)
}

/// The failure if nothing is stored yet.
pub(crate) fn no_session() -> Failure {
    let fix = "start a session with `hermes`";
    Failure::new(Kind::General, "there is no session to show", "no session is stored yet", fix)
}

fn as_json(session: &Session, used: &CacheUse, as_of: &str) -> Value {
    let row = |SentRequest { record, ephemeral }: &SentRequest| {
        json!({
            "number": record.number,
            "at": record.sent_at,
            "provider": record.provider,
            "model": record.model,
            "answered_by": record.answered_by,
            "api_mode": record.api_mode,
            "prompt": record.prompt,
            "view": record.view,
            "bytes": record.bytes,
            "prefix_bytes": record.prefix_bytes,
            "cause": record.cause,
            "culprit": record.culprit,
            "cache_ttl": record.cache_ttl,
            "ephemeral": ephemeral.map(|EphemeralText { tokens, cost }| json!({"tokens": tokens, "cost": cost})),
            "usage": record.usage.map(|usage| json!({
                "input": usage.input,
                "output": usage.output,
                "cache_read": usage.cache_read,
                "cache_write": usage.cache_write,
            })),
            "cost": record.cost,
            "saved": record.saved,
            "lost": record.lost,
        })
    };
    let Warmings { count, cost, saved } = used.warmings;
    json!({
        "session": session.id,
        "requests": used.requests.iter().map(row).collect::<Vec<Value>>(),
        "cost": used.cost(),
        "saved": used.saved(),
        "lost": used.lost(),
        "warming": {"requests": count, "cost": cost, "saved": saved},
        "prices_as_of": as_of,
    })
}

fn table(session: &Session, used: &CacheUse, as_of: &str, console: Console) -> String {
    let mut out = format!("session {}\n\n", session.id);
    let is_narrow = console.columns().is_some_and(|columns| columns < COLUMNS);
    let head = match is_narrow {
        true => format!("{:>4}  {:>9}  {:>15}  {:>8}  reason\n", "#", "unchanged", "cached/input", "cost"),
        false => format!(
            "{:>4}  {:<WIDTH$}  {:>6}  {:>10}  {:>15}  {:>8}  reason for the change\n",
            "#", "unchanged", "share", "bytes", "cached/input", "cost",
        ),
    };
    out.push_str(&console.paint(Tone::Faint, &head));
    for request in &used.requests {
        out.push_str(&row(request, is_narrow, console));
    }
    out.push('\n');
    let mut notes = totals(used, as_of);
    let Warmings { count, cost, saved } = used.warmings;
    if count > 0 {
        notes.push_str(&format!(
            "kept warm during pauses by {}: cost {}, saved {}\n",
            text::counted(count, "request"),
            dollars(cost),
            dollars(saved)
        ));
    }
    notes.push_str("unchanged: the share of a request that equals the beginning of the request before\n");
    let bytes = if is_narrow { "" } else { "bytes: size of tools and messages; " };
    notes.push_str(&format!(
        "{bytes}cached/input: tokens that the provider read from its cache, of all tokens of the request\n"
    ));
    notes.lines().for_each(|note| out.push_str(&console.hanging(note, 2)));
    out
}

/// The row of a request. A narrow one has neither a bar nor bytes.
fn row(request: &SentRequest, is_narrow: bool, console: Console) -> String {
    let (record, share) = (&request.record, request.unchanged());
    let read = record.usage.map_or_else(
        || "-".to_owned(),
        |usage| format!("{}/{}", grouped(u64::from(usage.cache_read)), grouped(u64::from(usage.input))),
    );
    let why = match (&record.cause, &record.culprit) {
        (None, _) => String::new(),
        (Some(cause), None) => cause.clone(),
        (Some(cause), Some(culprit)) => format!("{cause}: {}", text::shortened(&line(culprit), 60)),
    };
    let tone = if request.is_break() { Tone::Warning } else { Tone::Good };
    let ephemeral = request.ephemeral.map_or_else(String::new, |EphemeralText { tokens, cost }| {
        let cost = cost.map(|cost| format!(", {}", dollars(cost))).unwrap_or_default();
        format!("  (ephemeral text: {} tokens{cost})", grouped(u64::from(tokens)))
    });
    let cost = record.cost.map_or_else(|| "-".to_owned(), dollars);
    if is_narrow {
        let (number, share) = (record.number, share * 100.0);
        return console.hanging(&format!("{number:>4}  {share:>8.1}%  {read:>15}  {cost:>8}  {why}{ephemeral}"), 6);
    }
    format!(
        "{:>4}  {}  {:>5.1}%  {:>10}  {:>15}  {:>8}  {}{ephemeral}\n",
        record.number,
        console.paint(tone, &bars::bar(share, WIDTH)),
        share * 100.0,
        grouped(record.bytes),
        read,
        cost,
        console.paint(tone, &why),
    )
}

fn totals(used: &CacheUse, as_of: &str) -> String {
    let mut out = format!(
        "{}, {}; {:.1}% of all bytes unchanged\n",
        text::counted(used.requests.len() as u64, "request"),
        text::counted(used.breaks(), "break"),
        used.unchanged_percent(),
    );
    let answered_by: Vec<String> = used
        .answered_by()
        .into_iter()
        .map(|(name, count)| format!("{} ({})", line(name), text::counted(count, "request")))
        .collect();
    if !answered_by.is_empty() {
        out.push_str(&format!("answered by {}\n", answered_by.join(", ")));
    }
    match used.cost() {
        None => out.push_str("cost unknown: the model has no known price, or the provider reported no tokens\n"),
        Some(cost) => {
            out.push_str(&format!(
                "cost {}; the cache saved {}, breaks cost {} (list prices of {as_of})\n",
                dollars(cost),
                dollars(used.saved().unwrap_or(0.0)),
                dollars(used.lost().unwrap_or(0.0)),
            ));
            let unpriced = used.unpriced();
            if unpriced > 0 {
                let requests = text::counted(unpriced, "request");
                out.push_str(&format!("not included: {requests} without a known price or reported tokens\n"));
            }
        }
    }
    out
}

fn dollars(amount: f64) -> String {
    let sign = if amount < 0.0 { "-" } else { "" };
    format!("{sign}${:.4}", amount.abs())
}

#[cfg(test)]
mod tests {
    use hermes_app::cache::RequestRecord;
    use hermes_protocol::Usage;

    use super::*;

    fn request(number: u64, bytes: u64, prefix_bytes: u64, cause: Option<&str>) -> RequestRecord {
        RequestRecord { number, bytes, prefix_bytes, cause: cause.map(str::to_owned), ..RequestRecord::default() }
    }

    fn used(records: impl IntoIterator<Item = RequestRecord>) -> CacheUse {
        let requests = records.into_iter().map(|record| SentRequest { record, ephemeral: None });
        CacheUse { requests: requests.collect(), warmings: Warmings::default() }
    }

    #[test]
    fn a_row_shows_the_unchanged_share_and_the_reason_of_a_break() {
        let usage = Some(Usage { input: 3_000, cache_read: 1_024, ..Usage::default() });
        let record = RequestRecord {
            culprit: Some("compressor".into()),
            usage,
            cost: Some(0.0123),
            ..request(7, 20_000, 5_000, Some("compaction"))
        };
        let row = row(&SentRequest { record, ephemeral: None }, false, Console::plain(false));
        let words: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(words[0], "7");
        assert_eq!(&words[2..], ["25.0%", "20,000", "1,024/3,000", "$0.0123", "compaction:", "compressor"]);
        assert_eq!(words[1].chars().filter(|block| *block == '█').count(), WIDTH / 4);
    }

    #[test]
    fn totals_count_breaks_and_report_unknown_costs() {
        let used = used([request(1, 100, 0, Some("first-request")), request(2, 100, 100, None)]);
        let totals = totals(&used, "2026-01-31");
        assert!(totals.starts_with("2 requests, 0 breaks; 50.0%"), "{totals}");
        assert!(totals.contains("cost unknown"), "{totals}");
        assert!(!totals.contains("answered by"), "{totals}");
    }

    #[test]
    fn totals_name_the_models_behind_an_alias() {
        let by = |name: &str| RequestRecord { answered_by: Some(name.into()), ..request(1, 100, 0, None) };
        let used = used([by("b/two"), by("a/one\u{1b}[2J"), by("b/two"), request(4, 100, 100, None)]);
        let totals = totals(&used, "2026-01-31");
        assert!(totals.contains("\nanswered by a/one"), "{totals}");
        assert!(totals.contains("b/two (2 requests)\n") && !totals.contains('\u{1b}'), "{totals:?}");
    }
}
