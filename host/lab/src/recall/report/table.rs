//! The report as tables.

use std::time::Duration;

use hermes_recordings::Note;

use super::{Column, Figures, RecallReport, Set, Shares, Within};
use crate::recall::{Collection, Measured};
use crate::report::layout::{align, whole, wrap};

/// The names of both definitions of recall, which [`super::METHOD`] explains.
const SHARE: &str = "share of all evidence";
const MEAN: &str = "mean of questions";

pub(super) fn text(report: &RecallReport) -> String {
    let mut text = format!("hermes lab {}: evidence recall, alone / with neighbours\n", report.version);
    notes(&report.notes, &mut text);
    if let Some(name) = &report.embeddings {
        text.push_str(&format!("  vectors of texts for memory providers: {name}\n"));
    }
    for set in &report.sets {
        text.push('\n');
        head(set, &mut text);
        table(set.collection, report, &mut text);
    }
    for column in &report.columns {
        failures(column, &mut text);
    }
    if report.columns.iter().any(|column| column.measured.is_some()) {
        text.push_str("\nMeasured, which differs between runs\n\n");
        measured(report, &mut text);
    }
    text.push_str("\nWhat this can and cannot tell\n");
    for line in report.method {
        wrap(line, "- ", &mut text);
    }
    text
}

fn number(count: usize) -> String {
    whole(count as f64)
}

fn head(set: &Set, text: &mut String) {
    let line = format!(
        "{}: {} dialogues with {} sessions, {} messages, {} bytes (fingerprint {}); {} questions, {} messages of evidence",
        set.collection,
        number(set.dialogues),
        number(set.sessions),
        number(set.messages),
        number(set.bytes),
        set.fingerprint,
        number(set.questions),
        number(set.evidence),
    );
    wrap(&line, "", text);
    notes(&set.notes, text);
    text.push('\n');
}

fn notes(notes: &[Note], text: &mut String) {
    for note in notes {
        text.push_str(&format!("  {}: {}\n", note.what, whole(note.count as f64)));
    }
}

fn table(collection: Collection, report: &RecallReport, text: &mut String) {
    let each: Vec<Vec<&Figures>> = report
        .columns
        .iter()
        .map(|column| column.figures.iter().filter(|figures| figures.collection == collection).collect())
        .collect();
    let mut cells = vec![header(report)];
    // Every column has the same kinds of questions.
    let kinds = each.first().map_or(0, Vec::len);
    for kind in 0..kinds {
        let Some(first) = each.first().and_then(|figures| figures.get(kind)) else { continue };
        cells.push(vec![format!("{} ({})", first.kind, whole(first.questions as f64))]);
        let row = |name: String, cell: &dyn Fn(&Figures) -> String| {
            let mut line = vec![format!("  {name}")];
            line.extend(each.iter().map(|figures| figures.get(kind).map_or_else(String::new, |one| cell(one))));
            line
        };
        for (at, within) in first.found.iter().enumerate() {
            let name = format!("{SHARE} within {}", hits(within.hits));
            cells.push(row(name, &|figures| both(&figures.found[at], |shares| shares.share_of_all_evidence)));
        }
        let k = first.found.iter().position(|within| within.hits == report.k).unwrap_or_default();
        for (at, within) in first.found.iter().enumerate().filter(|(at, _)| kind == 0 || *at == k) {
            let name = format!("{MEAN} within {}", hits(within.hits));
            cells.push(row(name, &|figures| both(&figures.found[at], |shares| shares.mean_of_questions)));
        }
        let name = format!("all evidence found within {}", hits(report.k));
        cells.push(row(name, &|figures| both(&figures.found[k], |shares| shares.all_found)));
        cells.push(row("bytes, tokens of an answer".to_owned(), &|figures| {
            format!("{}, {}", whole(figures.mean_bytes as f64), whole(figures.mean_tokens as f64))
        }));
        if kind == 0 {
            cells.push(row("bytes of the largest answer".to_owned(), &|figures| whole(figures.most_bytes as f64)));
            cells.push(row("questions without a hit".to_owned(), &|figures| whole(figures.without_hits as f64)));
        }
    }
    align(&cells, text);
}

fn header(report: &RecallReport) -> Vec<String> {
    std::iter::once(String::new()).chain(report.columns.iter().map(|column| column.name.clone())).collect()
}

fn hits(hits: usize) -> String {
    if hits == 1 { "1 hit".to_owned() } else { format!("{hits} hits") }
}

/// A share alone and with neighbours.
fn both(within: &Within, share: fn(&Shares) -> f64) -> String {
    format!("{:.3} / {:.3}", share(&within.alone), share(&within.with_neighbours))
}

fn failures(column: &Column, text: &mut String) {
    let failures = &column.failures;
    if failures.is_empty() {
        return;
    }
    text.push_str(&format!(
        "\n{}: it did not start for {} dialogues, did not store {} turns and did not answer {} questions\n",
        column.name,
        whole(failures.starts as f64),
        whole(failures.writes as f64),
        whole(failures.questions as f64),
    ));
    if let Some(first) = &failures.first {
        wrap(&format!("the first failure: {first}"), "  ", text);
    }
}

fn measured(report: &RecallReport, text: &mut String) {
    let row = |name: &str, cell: &dyn Fn(&Measured) -> String| {
        let mut line = vec![name.to_owned()];
        line.extend(report.columns.iter().map(|column| column.measured.as_ref().map_or_else(String::new, cell)));
        line
    };
    let times = |times: &[Duration]| {
        let ms = |share| Measured::within(times, share).map(|time| format!("{:.2}", time.as_secs_f64() * 1e3));
        ms(50).zip(ms(99)).map_or_else(|| "-".to_owned(), |(median, p99)| format!("{median} / {p99}"))
    };
    let cells = [
        header(report),
        row("ms for a question, median / p99", &|measured| times(&measured.questions)),
        row("ms to write a turn, median / p99", &|measured| times(&measured.writes)),
        row("bytes on the disk", &|measured| whole(measured.bytes_on_disk as f64)),
    ];
    align(&cells, text);
}
