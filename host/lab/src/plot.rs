//! A plot of the context size over the requests: one line for each column, with a dot at each new view.

use std::fmt::Write;

use crate::Terms;
use crate::report::Compared;

pub(crate) const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 44.0;
/// Distinguishable for people who are colour-blind.
pub(crate) const COLOURS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];

/// One plot for each recording, one below the other, as SVG.
pub fn svg(recordings: &[Compared], terms: &Terms) -> String {
    stacked(HEIGHT, recordings, |compared, svg| picture(compared, terms, svg))
}

/// Pictures of this height, one below the other, as SVG.
pub(crate) fn stacked<T>(height: f64, of: &[T], mut picture: impl FnMut(&T, &mut String)) -> String {
    let mut svg = String::new();
    let whole = height * of.len().max(1) as f64;
    let _ = writeln!(
        svg,
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{whole}" viewBox="0 0 {WIDTH} {whole}" font-family="sans-serif" font-size="12">"#
    );
    let _ = writeln!(svg, r##"<rect width="100%" height="100%" fill="#ffffff"/>"##);
    for (at, of) in of.iter().enumerate() {
        let _ = writeln!(svg, r#"<g transform="translate(0 {})">"#, at as f64 * height);
        picture(of, &mut svg);
        svg.push_str("</g>\n");
    }
    svg.push_str("</svg>\n");
    svg
}

fn picture(compared: &Compared, terms: &Terms, svg: &mut String) {
    let columns = &compared.columns;
    let requests = columns.iter().map(|column| column.points.len()).max().unwrap_or(0).max(2);
    let most = columns.iter().flat_map(|column| &column.points).map(|point| point.context).fold(1.0, f64::max);
    let step = nice(most / 5.0);
    let top = (most / step).ceil() * step;
    let x = |request: usize| LEFT + (WIDTH - LEFT - RIGHT) * request as f64 / (requests - 1) as f64;
    let y = |tokens: f64| HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * tokens / top;
    let _ = writeln!(svg, r#"<text x="{LEFT}" y="18" font-weight="bold">{}</text>"#, escape(&compared.name));
    let mut line = 0.0;
    while line <= top {
        let at = y(line);
        let _ = writeln!(
            svg,
            r##"<path d="M{LEFT} {at:.1}H{:.1}" stroke="#dddddd"/><text x="{:.1}" y="{:.1}" text-anchor="end">{}k</text>"##,
            WIDTH - RIGHT,
            LEFT - 6.0,
            at + 4.0,
            line / 1_000.0
        );
        line += step;
    }
    let window = f64::from(terms.window);
    if window <= top {
        let at = y(window);
        let _ = writeln!(
            svg,
            r##"<path d="M{LEFT} {at:.1}H{:.1}" stroke="#888888" stroke-dasharray="6 4"/><text x="{:.1}" y="{:.1}" text-anchor="end" fill="#666666">window</text>"##,
            WIDTH - RIGHT,
            WIDTH - RIGHT,
            at - 4.0
        );
    }
    let _ = writeln!(
        svg,
        r#"<text x="{:.1}" y="{:.1}" text-anchor="middle">request (of {requests}); tokens of context</text>"#,
        (LEFT + WIDTH - RIGHT) / 2.0,
        HEIGHT - 10.0
    );
    for (number, column) in columns.iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        let mut path = String::new();
        let mut marks = String::new();
        for (request, point) in column.points.iter().enumerate() {
            let (x, y) = (x(request), y(point.context));
            let _ = write!(path, "{}{x:.1} {y:.1}", if request == 0 { 'M' } else { 'L' });
            if point.published {
                let _ = write!(marks, r#"<circle cx="{x:.1}" cy="{y:.1}" r="3"/>"#);
            }
        }
        let _ = writeln!(svg, r#"<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>"#);
        let _ = writeln!(svg, r#"<g fill="{colour}">{marks}</g>"#);
        let left = LEFT + 160.0 * number as f64;
        let _ = writeln!(
            svg,
            r#"<rect x="{left}" y="26" width="12" height="4" fill="{colour}"/><text x="{}" y="32">{}</text>"#,
            left + 18.0,
            escape(&column.name)
        );
    }
}

/// The smallest round number (1, 2 or 5 times a power of ten) that is not below `least`.
fn nice(least: f64) -> f64 {
    let unit = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|times| times * unit).find(|step| *step >= least).unwrap_or(unit * 10.0)
}

pub(crate) fn escape(text: &str) -> String {
    let allowed = |character: &char| !character.is_control();
    let text: String = text.chars().filter(allowed).collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round_and_names_are_escaped() {
        assert_eq!([nice(1.0), nice(3.0), nice(40_000.0), nice(60_000.0)], [1.0, 5.0, 50_000.0, 100_000.0]);
        assert_eq!(escape("<script>&\u{1b}[2J"), "&lt;script&gt;&amp;[2J");
    }
}
