//! `hermes cache`: how much of each request the provider read from its prompt cache, why not more, and the cost.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;

use hermes_agent::{Ephemeral, WARMING};
use hermes_app::sessions::{AuxiliaryRecord, RequestRecord, Session, SessionStore, StoreError};
use hermes_conversation::tokens;
use hermes_models::{Prices, Ttl, warming_saved};
use hermes_prompt::ledger::Cause;
use serde_json::{Value, json};

use crate::bars;
use crate::console::{Console, Tone, print};
use crate::failure::{Failure, Kind};
use crate::launch::{self, Setup};
use crate::text::{self, grouped, line};

/// Columns of a bar.
const WIDTH: usize = 16;
/// The columns that a terminal has at least, if the table has a bar.
const COLUMNS: usize = 90;

pub(crate) async fn run(id: Option<&str>, json: bool, console: Console) -> Result<ExitCode, Failure> {
    let setup = launch::read()?;
    let (store, session) = find(&setup, id).await?;
    let requests = store.requests(&session.id).await?;
    let prices = setup.prices().0;
    let warmings = Warmings::of(&*store, &session, &requests, &prices).await?;
    if json {
        print(&text::json(&as_json(&session, &requests, &warmings, &prices)))?;
        return Ok(ExitCode::SUCCESS);
    }
    if requests.is_empty() {
        let id = &session.id;
        console.note(&format!("session {id} has sent no requests yet; `hermes cache ID` shows another session"));
        return Ok(ExitCode::SUCCESS);
    }
    print(&table(&session, &requests, &warmings, &prices, console))?;
    Ok(ExitCode::SUCCESS)
}

/// The requests that only kept a session in the provider's cache.
#[derive(Debug, Default, PartialEq)]
struct Warmings {
    count: u64,
    /// US dollars, of those with a known price.
    cost: f64,
    /// US dollars that the requests after long pauses would have cost more.
    saved: f64,
}

impl Warmings {
    async fn of(
        store: &dyn SessionStore,
        session: &Session,
        requests: &[RequestRecord],
        prices: &Prices,
    ) -> Result<Self, StoreError> {
        let since = requests.first().map_or(0, |first| first.sent_at);
        let all = store.auxiliary_since(WARMING.0, WARMING.1, since).await?;
        let own = all.into_iter().filter(|(of, _)| *of == session.id);
        Ok(Self::between(requests, &own.map(|(_, row)| row).collect::<Vec<_>>(), prices))
    }

    fn between(requests: &[RequestRecord], rows: &[AuxiliaryRecord], prices: &Prices) -> Self {
        let cost = rows.iter().filter_map(|row| row.cost).sum();
        let saved = requests.windows(2).filter_map(|pair| {
            let [before, after] = pair else { return None };
            let is_between = |row: &AuxiliaryRecord| (before.sent_at..after.sent_at).contains(&row.sent_at);
            let ttl: Ttl = before.cache_ttl.as_deref()?.parse().ok()?;
            let outlived = u128::from(after.sent_at.saturating_sub(before.sent_at)) > ttl.duration().as_millis();
            let price = prices.of_reply(&after.provider, &after.model, after.answered_by.as_deref())?;
            let read = after.usage.filter(|_| outlived && rows.iter().any(is_between))?.cache_read;
            Some(warming_saved(read, &price, ttl))
        });
        Self { count: rows.len() as u64, cost, saved: saved.sum() }
    }
}

/// The session of an id or its beginning. Without one, the newest session of this folder, else the newest of all.
pub(crate) async fn find(setup: &Setup, id: Option<&str>) -> Result<(Arc<dyn SessionStore>, Session), Failure> {
    let here = std::env::current_dir().ok();
    setup.session_to_read(id, here.as_deref()).await?.ok_or_else(|| {
        let fix = "start a session with `hermes`";
        Failure::new(Kind::General, "there is no session to show", "no session is stored yet", fix)
    })
}

fn sum(requests: &[RequestRecord], of: impl Fn(&RequestRecord) -> Option<f64>) -> Option<f64> {
    let known: Vec<f64> = requests.iter().filter_map(of).collect();
    (!known.is_empty()).then(|| known.iter().sum())
}

/// Estimated tokens of the layers that are sent but not stored in the conversation.
fn ephemeral_tokens(layers: &str) -> u32 {
    let layers: Ephemeral = serde_json::from_str(layers).unwrap_or_default();
    let prefill = layers.prefill.iter().map(|(_, text)| tokens::of_text(text)).sum::<u32>();
    tokens::of_text(&layers.system) + prefill
}

/// The cost of these layers: the price of cached input if the cache was read and nothing before them changed, else the
/// full price.
fn ephemeral_cost(request: &RequestRecord, prices: &Prices) -> Option<f64> {
    let tokens = ephemeral_tokens(request.ephemeral.as_ref()?);
    let answered_by = request.answered_by.as_deref();
    let price = prices.of_reply(&request.provider, &request.model, answered_by)?;
    let read = request.usage.is_some_and(|usage| usage.cache_read > 0);
    let stayed = matches!(request.cause.as_deref().map(Cause::parse), None | Some(Some(Cause::Compaction)));
    let each = if read && stayed { price.cache_read } else { price.input };
    Some(f64::from(tokens) * each / 1e6)
}

/// Whether the request did not extend the one before it. The first request cannot.
fn is_break(request: &RequestRecord) -> bool {
    request.cause.as_deref().is_some_and(|cause| cause != Cause::FirstRequest.as_str())
}

fn as_json(session: &Session, requests: &[RequestRecord], warmings: &Warmings, prices: &Prices) -> Value {
    let rows: Vec<Value> = requests
        .iter()
        .map(|request| {
            json!({
                "number": request.number,
                "at": request.sent_at,
                "provider": request.provider,
                "model": request.model,
                "answered_by": request.answered_by,
                "api_mode": request.api_mode,
                "prompt": request.prompt,
                "view": request.view,
                "bytes": request.bytes,
                "prefix_bytes": request.prefix_bytes,
                "cause": request.cause,
                "culprit": request.culprit,
                "cache_ttl": request.cache_ttl,
                "ephemeral": request.ephemeral.as_ref().map(|layers| {
                    json!({"tokens": ephemeral_tokens(layers), "cost": ephemeral_cost(request, prices)})
                }),
                "usage": request.usage.map(|usage| json!({
                    "input": usage.input,
                    "output": usage.output,
                    "cache_read": usage.cache_read,
                    "cache_write": usage.cache_write,
                })),
                "cost": request.cost,
                "saved": request.saved,
                "lost": request.lost,
            })
        })
        .collect();
    json!({
        "session": session.id,
        "requests": rows,
        "cost": sum(requests, |request| request.cost),
        "saved": sum(requests, |request| request.saved),
        "lost": sum(requests, |request| request.lost),
        "warming": {"requests": warmings.count, "cost": warmings.cost, "saved": warmings.saved},
        "prices_as_of": prices.as_of(),
    })
}

fn table(
    session: &Session,
    requests: &[RequestRecord],
    warmings: &Warmings,
    prices: &Prices,
    console: Console,
) -> String {
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
    for request in requests {
        out.push_str(&row(request, prices, is_narrow, console));
    }
    out.push('\n');
    let mut notes = totals(requests, &prices.as_of());
    if warmings.count > 0 {
        let (requests, cost) = (text::counted(warmings.count, "request"), dollars(warmings.cost));
        notes.push_str(&format!(
            "kept warm during pauses by {requests}: cost {cost}, saved {}\n",
            dollars(warmings.saved)
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
fn row(request: &RequestRecord, prices: &Prices, is_narrow: bool, console: Console) -> String {
    let share = if request.bytes == 0 { 0.0 } else { request.prefix_bytes as f64 / request.bytes as f64 };
    let read = request.usage.map_or_else(
        || "-".to_owned(),
        |usage| format!("{}/{}", grouped(u64::from(usage.cache_read)), grouped(u64::from(usage.input))),
    );
    let why = match (&request.cause, &request.culprit) {
        (None, _) => String::new(),
        (Some(cause), None) => cause.clone(),
        (Some(cause), Some(culprit)) => format!("{cause}: {}", text::shortened(&line(culprit), 60)),
    };
    let tone = if is_break(request) { Tone::Warning } else { Tone::Good };
    let ephemeral = request.ephemeral.as_ref().map_or_else(String::new, |layers| {
        let cost = ephemeral_cost(request, prices).map(|cost| format!(", {}", dollars(cost))).unwrap_or_default();
        format!("  (ephemeral text: {} tokens{cost})", grouped(u64::from(ephemeral_tokens(layers))))
    });
    let cost = request.cost.map_or_else(|| "-".to_owned(), dollars);
    if is_narrow {
        let (number, share) = (request.number, share * 100.0);
        return console.hanging(&format!("{number:>4}  {share:>8.1}%  {read:>15}  {cost:>8}  {why}{ephemeral}"), 6);
    }
    format!(
        "{:>4}  {}  {:>5.1}%  {:>10}  {:>15}  {:>8}  {}{ephemeral}\n",
        request.number,
        console.paint(tone, &bars::bar(share, WIDTH)),
        share * 100.0,
        grouped(request.bytes),
        read,
        cost,
        console.paint(tone, &why),
    )
}

fn totals(requests: &[RequestRecord], as_of: &str) -> String {
    let sum_of = |of: fn(&RequestRecord) -> u64| requests.iter().map(of).fold(0, u64::saturating_add);
    let (sent, kept) = (sum_of(|request| request.bytes), sum_of(|request| request.prefix_bytes));
    let breaks = requests.iter().filter(|request| is_break(request)).count();
    let share = if sent == 0 { 0.0 } else { kept as f64 * 100.0 / sent as f64 };
    let mut out = format!(
        "{}, {}; {share:.1}% of all bytes unchanged\n",
        text::counted(requests.len() as u64, "request"),
        text::counted(breaks as u64, "break"),
    );
    let answered_by: Vec<String> = answers(requests)
        .into_iter()
        .map(|(name, count)| format!("{} ({})", line(name), text::counted(count, "request")))
        .collect();
    if !answered_by.is_empty() {
        out.push_str(&format!("answered by {}\n", answered_by.join(", ")));
    }
    match sum(requests, |request| request.cost) {
        None => out.push_str("cost unknown: the model has no known price, or the provider reported no tokens\n"),
        Some(cost) => {
            let saved = sum(requests, |request| request.saved).unwrap_or(0.0);
            let lost = sum(requests, |request| request.lost).unwrap_or(0.0);
            out.push_str(&format!(
                "cost {}; the cache saved {}, breaks cost {} (list prices of {})\n",
                dollars(cost),
                dollars(saved),
                dollars(lost),
                as_of
            ));
            let unpriced = requests.iter().filter(|request| request.cost.is_none()).count() as u64;
            if unpriced > 0 {
                let requests = text::counted(unpriced, "request");
                out.push_str(&format!("not included: {requests} without a known price or reported tokens\n"));
            }
        }
    }
    out
}

/// The models that answered in place of the ones that were asked, each with its number of requests.
fn answers(requests: &[RequestRecord]) -> BTreeMap<&str, u64> {
    let mut answers = BTreeMap::new();
    for name in requests.iter().filter_map(|request| request.answered_by.as_deref()) {
        *answers.entry(name).or_insert(0) += 1;
    }
    answers
}

fn dollars(amount: f64) -> String {
    let sign = if amount < 0.0 { "-" } else { "" };
    format!("{sign}${:.4}", amount.abs())
}

#[cfg(test)]
mod tests {
    use hermes_protocol::Usage;

    use super::*;

    fn request(number: u64, bytes: u64, prefix_bytes: u64, cause: Option<&str>) -> RequestRecord {
        RequestRecord { number, bytes, prefix_bytes, cause: cause.map(str::to_owned), ..RequestRecord::default() }
    }

    #[test]
    fn a_row_shows_the_unchanged_share_and_the_reason_of_a_break() {
        let usage = Some(Usage { input: 3_000, cache_read: 1_024, ..Usage::default() });
        let broken = RequestRecord {
            culprit: Some("compressor".into()),
            usage,
            cost: Some(0.0123),
            ..request(7, 20_000, 5_000, Some("compaction"))
        };
        let row = row(&broken, &Prices::built_in(), false, Console::plain(false));
        let words: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(words[0], "7");
        assert_eq!(&words[2..], ["25.0%", "20,000", "1,024/3,000", "$0.0123", "compaction:", "compressor"]);
        assert_eq!(words[1].chars().filter(|block| *block == '█').count(), WIDTH / 4);
    }

    #[test]
    fn ephemeral_text_has_the_cached_price_only_if_nothing_before_it_changed() {
        let sent = |cause| RequestRecord {
            provider: "anthropic".into(),
            model: "claude-sonnet-4-5".into(),
            ephemeral: Some(
                json!({"system": "be brief and answer in rhymes, whatever happens", "prefill": []}).to_string(),
            ),
            usage: Some(Usage { input: 3_000, cache_read: 1_024, ..Usage::default() }),
            ..request(2, 100, 50, cause)
        };
        let cost = |request: &RequestRecord| ephemeral_cost(request, &Prices::built_in());
        let (moved, kept) = (cost(&sent(Some("ephemeral-layer"))), cost(&sent(None)));
        let (Some(moved), Some(kept)) = (moved, kept) else { panic!("the price is known") };
        assert!(moved > 5.0 * kept && kept > 0.0, "{moved} {kept}");
        assert_eq!(cost(&request(2, 100, 50, None)), None);
    }

    #[test]
    fn totals_count_breaks_and_report_unknown_costs() {
        let requests = [request(1, 100, 0, Some("first-request")), request(2, 100, 100, None)];
        let totals = totals(&requests, "2026-01-31");
        assert!(totals.starts_with("2 requests, 0 breaks; 50.0%"), "{totals}");
        assert!(totals.contains("cost unknown"), "{totals}");
        assert!(!totals.contains("answered by"), "{totals}");
    }

    #[test]
    fn warmings_save_what_a_request_after_a_long_pause_reads() {
        let minute = |minute: u64| minute * 60_000;
        let sent = |at, ttl: &str, cache_read| RequestRecord {
            sent_at: minute(at),
            provider: "anthropic".into(),
            model: "claude-sonnet-4-5".into(),
            cache_ttl: Some(ttl.into()),
            usage: Some(Usage { input: 100_000, cache_read, ..Usage::default() }),
            ..RequestRecord::default()
        };
        let warming = |at| AuxiliaryRecord { sent_at: minute(at), cost: Some(0.03), ..AuxiliaryRecord::default() };
        let saved = |requests: &[RequestRecord], rows: &[AuxiliaryRecord]| {
            Warmings::between(requests, rows, &Prices::built_in()).saved
        };
        let pause = |to| [sent(0, "5m", 0), sent(to, "5m", 100_000)];
        let rows = [warming(4)];
        // $3.75 for writing a million tokens, $0.30 for reading them.
        assert!((saved(&pause(8), &rows) - 0.345).abs() < 1e-9);
        assert_eq!(saved(&pause(5), &rows), 0.0, "nothing had expired");
        assert_eq!(saved(&pause(8), &[]), 0.0, "something else kept it");
        assert_eq!(saved(&[sent(0, "5m", 0), sent(20, "5m", 0)], &rows), 0.0, "it was lost nevertheless");
        assert_eq!(saved(&[sent(0, "1h", 0), sent(20, "5m", 100_000)], &rows), 0.0, "an hour had not passed");
        let all = Warmings::between(&pause(20), &[warming(4), warming(8)], &Prices::built_in());
        assert_eq!((all.count, all.cost), (2, 0.06));
    }

    #[test]
    fn totals_name_the_models_behind_an_alias() {
        let by = |name: &str| RequestRecord { answered_by: Some(name.into()), ..request(1, 100, 0, None) };
        let totals =
            totals(&[by("b/two"), by("a/one\u{1b}[2J"), by("b/two"), request(4, 100, 100, None)], "2026-01-31");
        assert!(totals.contains("\nanswered by a/one"), "{totals}");
        assert!(totals.contains("b/two (2 requests)\n") && !totals.contains('\u{1b}'), "{totals:?}");
    }
}
