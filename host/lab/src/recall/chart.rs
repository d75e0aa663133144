//! A plot of evidence recall over the number of hits: one picture for each collection, one line for each memory.

use std::fmt::Write as _;

use super::Collection;
use super::report::{Figures, RecallReport};
use crate::plot::{COLOURS, WIDTH, escape, stacked};

const HEIGHT: f64 = 380.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 56.0;
const BOTTOM: f64 = 44.0;

/// The plot as SVG. A full line is recall with neighbours, a dashed one that of the hits alone.
pub fn svg(report: &RecallReport) -> String {
    stacked(HEIGHT, &report.sets, |set, svg| picture(set.collection, report, svg))
}

fn picture(collection: Collection, report: &RecallReport, svg: &mut String) {
    let y = |share: f64| HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share;
    let _ = writeln!(svg, r#"<text x="{LEFT}" y="18" font-weight="bold">{collection}: evidence recall</text>"#);
    for tenth in (0..=10).step_by(2) {
        let share = f64::from(tenth) / 10.0;
        let at = y(share);
        let _ = writeln!(
            svg,
            r##"<path d="M{LEFT} {at:.1}H{:.1}" stroke="#dddddd"/><text x="{:.1}" y="{:.1}" text-anchor="end">{share:.1}</text>"##,
            WIDTH - RIGHT,
            LEFT - 6.0,
            at + 4.0
        );
    }
    let mut marked = false;
    for (number, column) in report.columns.iter().enumerate() {
        // The first figures of a collection cover all its questions.
        let Some(figures) = column.figures.iter().find(|figures| figures.collection == collection) else { continue };
        let colour = COLOURS[number % COLOURS.len()];
        if !marked {
            axis(figures, svg);
            marked = true;
        }
        for (near, dashes) in [(true, ""), (false, r#" stroke-dasharray="5 4""#)] {
            let mut path = String::new();
            for (at, within) in figures.found.iter().enumerate() {
                let shares = if near { within.with_neighbours } else { within.alone };
                let step = if at == 0 { 'M' } else { 'L' };
                let _ = write!(path, "{step}{:.1} {:.1}", x(within.hits, figures), y(shares.share_of_all_evidence));
            }
            let _ = writeln!(svg, r#"<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.5"{dashes}/>"#);
        }
        let left = LEFT + 160.0 * number as f64;
        let _ = writeln!(
            svg,
            r#"<rect x="{left}" y="32" width="12" height="4" fill="{colour}"/><text x="{}" y="38">{}</text>"#,
            left + 18.0,
            escape(&column.name)
        );
    }
}

/// The place of a number of hits, on a logarithmic axis.
fn x(hits: usize, figures: &Figures) -> f64 {
    let most = figures.found.last().map_or(1, |within| within.hits).max(2);
    LEFT + (WIDTH - LEFT - RIGHT) * (hits.max(1) as f64).ln() / (most as f64).ln()
}

fn axis(figures: &Figures, svg: &mut String) {
    for within in &figures.found {
        let _ = writeln!(
            svg,
            r#"<text x="{:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
            x(within.hits, figures),
            HEIGHT - BOTTOM + 16.0,
            within.hits
        );
    }
    let _ = writeln!(
        svg,
        r#"<text x="{:.1}" y="{:.1}" text-anchor="middle">hits; full line: with neighbours, dashed: alone</text>"#,
        (LEFT + WIDTH - RIGHT) / 2.0,
        HEIGHT - 8.0
    );
}
