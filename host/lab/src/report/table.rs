//! The report as a table.

use std::fmt::Write;

use hermes_testkit::{FaultMode, LATENCY_MS};

use super::layout::{align, whole, wrap};
use super::{ColumnReport, Compared, Report};
use crate::figures::Figures;

/// A row of the table: its name, and its value for a column.
type Row = (&'static str, fn(&Figures) -> String);

const ROWS: &[Row] = &[
    ("requests", |f| whole(f.requests as f64)),
    ("mean context, tokens", |f| whole(f.mean_context)),
    ("maximum context, tokens", |f| whole(f.max_context)),
    ("requests above the window", |f| whole(f.over_window as f64)),
    ("read from the cache, tokens", |f| whole(f.read)),
    ("written to the cache, tokens", |f| whole(f.written)),
    ("fresh, tokens", |f| whole(f.fresh)),
    ("hit rate", |f| percent(f.hit_rate())),
    ("write amplification", |f| format!("{:.2}", f.write_amplification())),
    ("summaries (tokens in / out)", |f| {
        format!("{} ({} / {})", f.summaries, whole(f.summary_input), whole(f.summary_output))
    }),
    ("cost", |f| millions(f.cost())),
    ("fault tax", |f| millions(f.fault_tax)),
    ("cost with tax", |f| millions(f.cost_with_tax())),
];

const MORE: &[Row] = &[
    ("requests that lack text", |f| format!("{} ({})", f.faulting_requests, percent(f.fault_rate()))),
    ("lines that replies repeat / lacked", |f| format!("{} / {}", f.references, f.faults)),
    ("prefix breaks, avoidable", |f| format!("{}, {}", f.breaks, f.avoidable_breaks)),
    ("invalid requests", |f| whole(f.invalid_requests as f64)),
    ("publications", |f| whole(f.publications as f64)),
    ("  from prepared work", |f| share(f.prepared, f.publications)),
    ("  at a cold cache", |f| share(f.free, f.publications)),
    ("  by the host's last resort", |f| share(f.by_rule, f.publications)),
    ("plans asked for", |f| f.effort.plans_asked.map_or_else(dash, |count| whole(count as f64))),
    ("  refused, deferred", |f| match (f.effort.plans_refused, f.effort.plans_deferred) {
        (Some(refused), Some(deferred)) => format!("{refused}, {deferred}"),
        _ => dash(),
    }),
    ("failed calls of the engine", |f| f.effort.failures.map_or_else(dash, |count| whole(count as f64))),
    ("messages with passages brought back", |f| f.effort.assisted.map_or_else(dash, |count| whole(count as f64))),
    ("needles found by three words", |f| recovered(f, |r| share(r.by_words, r.needles))),
    ("  with their text in the page", |f| recovered(f, |r| share(r.text_by_words, r.needles))),
    ("needles found by their line", |f| recovered(f, |r| share(r.by_phrase, r.needles))),
    ("messages read back whole", |f| recovered(f, |r| share(r.whole, r.messages))),
];

pub(super) fn text(report: &Report) -> String {
    let mut text = terms(report);
    for compared in &report.recordings {
        text.push('\n');
        recording(compared, &mut text);
    }
    if report.recordings.len() > 1 {
        text.push('\n');
        sums(report, &mut text);
    }
    text.push_str("\nWhat this can and cannot tell\n");
    for limit in report.limits {
        wrap(limit, "- ", &mut text);
    }
    text
}

fn terms(report: &Report) -> String {
    let terms = &report.terms;
    let prices = &terms.prices;
    let summariser = match report.summariser {
        FaultMode::None => "there is no summariser".to_owned(),
        FaultMode::Sound => format!(
            "the summariser is a stand-in: a fifth of its source, 2,000 to 10,000 tokens, {} s",
            LATENCY_MS / 1_000
        ),
        FaultMode::Down => "the summariser is a stand-in whose calls all fail".to_owned(),
        FaultMode::Slow => format!("the summariser is a stand-in that takes {} s", 3 * LATENCY_MS / 1_000),
        FaultMode::Empty => "the summariser is a stand-in that answers nothing".to_owned(),
        FaultMode::Oversized => "the summariser is a stand-in that answers more than it was given".to_owned(),
        FaultMode::Hostile => "the summariser is a stand-in that answers what is meant to do harm".to_owned(),
    };
    format!(
        "hermes lab {}: window {}, {} tokens of system prompt and tools, {} bytes a token;\n{summariser};\nprices {} fresh, \
         {} cache write, {} cache read, {} output, summariser at {} of them;\ncache kept {} s from its last use, marks behind \
         system prompt and the last 3 messages, look-back {};\na request that lacks text costs another one and {} written \
         tokens. Costs in tokens at the fresh price.\n",
        report.version,
        whole(f64::from(terms.window)),
        whole(f64::from(terms.fixed_tokens)),
        terms.bytes_per_token,
        price(prices.input),
        price(prices.cache_write),
        price(prices.cache_read),
        price(prices.output),
        price(prices.summariser),
        prices.ttl_seconds,
        terms.look_back,
        whole(f64::from(terms.fault_tokens)),
    )
}

fn recording(compared: &Compared, text: &mut String) {
    let (messages, requests) = (whole(compared.messages as f64), whole(compared.requests as f64));
    let _ = writeln!(
        text,
        "{} ({}, {}): {messages} messages, {requests} requests",
        compared.name,
        compared.format.described(),
        compared.fingerprint
    );
    for note in &compared.notes {
        let _ = writeln!(text, "  {}: {}", note.what, note.count);
    }
    if compared.images > 0 {
        let _ = writeln!(text, "  images, of which a mark is left: {}", compared.images);
    }
    text.push('\n');
    let mut cells = vec![header(&compared.columns)];
    let row = |name: &str, cell: &dyn Fn(&ColumnReport) -> String| {
        let mut line = vec![name.to_owned()];
        line.extend(compared.columns.iter().map(cell));
        line
    };
    let of =
        |show: fn(&Figures) -> String| move |column: &ColumnReport| column.figures.as_ref().map_or_else(dash, show);
    cells.extend(ROWS.iter().map(|(name, show)| row(name, &of(*show))));
    let first = compared.columns.first().map_or("", |column| column.name.as_str());
    cells.push(row(&format!("ratio to {first}"), &|column| {
        column.derived.and_then(|derived| derived.ratio).map_or_else(dash, |ratio| format!("{ratio:.2}"))
    }));
    cells.extend(MORE.iter().map(|(name, show)| row(name, &of(*show))));
    if compared.columns.iter().any(|column| column.timing.is_some()) {
        cells.push(row("measured: time per plan, median / p99 / max", &|column| {
            column.timing.map_or_else(dash, |timing| {
                let ms = |us: u64| format!("{:.2}", us as f64 / 1_000.0);
                format!("{} / {} / {} ms", ms(timing.median_us), ms(timing.p99_us), ms(timing.max_us))
            })
        }));
    }
    let all = cells.len();
    cells.retain(|line| says_something(line));
    align(&cells, text);
    if cells.len() < all {
        let _ = writeln!(text, "({} rows that are zero or empty in each column are left out)", all - cells.len());
    }
    for column in &compared.columns {
        for notice in &column.notices {
            let _ = writeln!(text, "{}: the user is told: {notice}", column.name);
        }
        if let Some(error) = &column.error {
            let _ = writeln!(text, "{}: ended {error}", column.name);
        }
        let figures = column.figures.as_ref();
        if let Some(invalid) = figures.and_then(|figures| figures.first_invalid.as_ref()) {
            let _ = writeln!(text, "{}: first invalid {invalid}", column.name);
        }
        let recovered = figures.and_then(|figures| figures.recovered.as_ref());
        if let Some(broken) = recovered.and_then(|recovered| recovered.first_broken.as_ref()) {
            let _ = writeln!(text, "{}: first not read back: {broken}", column.name);
        }
    }
}

/// Rows that are shown although all their figures are zero: that they are is the result.
const ALWAYS: [&str; 2] = ["requests that lack text", "invalid requests"];

/// Whether a line has a figure other than zero, or is the header.
fn says_something(line: &[String]) -> bool {
    let Some((name, figures)) = line.split_first() else { return false };
    let is_figure = |digit: char| digit.is_ascii_digit() && digit != '0';
    name.is_empty() || ALWAYS.contains(&name.as_str()) || figures.iter().any(|cell| cell.contains(is_figure))
}

/// Totals over all recordings, for the columns that completed all of them.
fn sums(report: &Report, text: &mut String) {
    let Some(columns) = report.recordings.first().map(|compared| &compared.columns) else { return };
    let all = |at: usize| -> Option<Vec<&Figures>> {
        report.recordings.iter().map(|compared| compared.columns.get(at)?.figures.as_ref()).collect()
    };
    let each: Vec<Option<Vec<&Figures>>> = (0..columns.len()).map(all).collect();
    let sum = |figures: &[&Figures], of: fn(&Figures) -> f64| figures.iter().map(|figures| of(figures)).sum::<f64>();
    let row = |name: &str, cell: &dyn Fn(&[&Figures]) -> String| {
        let mut line = vec![name.to_owned()];
        line.extend(each.iter().map(|figures| figures.as_deref().map_or_else(dash, cell)));
        line
    };
    let taxed = |figures: &[&Figures]| sum(figures, Figures::cost_with_tax);
    let first = each.first().and_then(|figures| figures.as_deref()).map(taxed).filter(|first| *first > 0.0);
    let cells = [
        header(columns),
        row("requests", &|figures| whole(sum(figures, |f| f.requests as f64))),
        row("cost", &|figures| millions(sum(figures, Figures::cost))),
        row("cost with tax", &|figures| millions(taxed(figures))),
        row("ratio to the first", &|figures| first.map_or_else(dash, |first| format!("{:.2}", taxed(figures) / first))),
        row("requests that lack text", &|figures| {
            let lack = sum(figures, |f| f.faulting_requests as f64);
            format!("{} ({})", whole(lack), percent(lack / sum(figures, |f| f.requests as f64).max(1.0)))
        }),
        row("avoidable prefix breaks", &|figures| whole(sum(figures, |f| f.avoidable_breaks as f64))),
        row("invalid requests", &|figures| whole(sum(figures, |f| f.invalid_requests as f64))),
    ];
    let _ = writeln!(text, "All {} recordings\n", report.recordings.len());
    align(&cells, text);
}

fn header(columns: &[ColumnReport]) -> Vec<String> {
    std::iter::once(String::new()).chain(columns.iter().map(|column| column.name.clone())).collect()
}

/// Formats a price without rounding errors: 0.3 divided by 3 is shown as 0.1.
fn price(price: f64) -> String {
    let digits = format!("{price:.6}");
    match digits.trim_end_matches('0').trim_end_matches('.') {
        // A price below the sixth decimal place is still shown.
        "0" if price > 0.0 => price.to_string(),
        digits => digits.to_owned(),
    }
}

fn millions(tokens: f64) -> String {
    format!("{:.3} M", tokens / 1e6)
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn share(part: u64, whole: u64) -> String {
    if whole == 0 { dash() } else { format!("{part} of {whole}") }
}

fn recovered(figures: &Figures, show: fn(&hermes_engine_trials::needles::Recovered) -> String) -> String {
    figures.recovered.as_ref().map_or_else(dash, show)
}

fn dash() -> String {
    "-".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_zeros_is_left_out_unless_zero_is_the_result() {
        let line = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>();
        for nothing in
            [["summaries", "0 (0 / 0)", "-"], ["fault tax", "0.000 M", "0.000 M"], ["hit rate", "0.0 %", "-"]]
        {
            assert!(!says_something(&line(&nothing)), "{nothing:?}");
        }
        let somethings =
            [["cost", "0.019 M", "-"], ["", "none", "lossless"], ["invalid requests", "0", "0"], ["x", "0", "10"]];
        assert!(somethings.iter().all(|something| says_something(&line(something))));
    }

    #[test]
    fn prices_and_formats_are_shown_as_people_write_them() {
        for (given, shown) in
            [(0.3 / 3.0, "0.1"), (1.0, "1"), (3.75 / 3.0, "1.25"), (0.0, "0"), (10.0, "10"), (1e-8, "0.00000001")]
        {
            assert_eq!(price(given), shown);
        }
        assert_eq!(price(0.09999999999999999), "0.1");
        assert_eq!(hermes_recordings::Format::OpenAi.described(), "OpenAI-style JSON lines");
    }
}
