//! Parses the output of benchmarks into named figures.

use std::collections::BTreeMap;
use std::fmt;

use super::Measured;

/// A benchmark of both commits: its package, its arguments and the parser of its output.
pub(super) struct Bench {
    pub(super) package: &'static str,
    pub(super) name: &'static str,
    pub(super) arguments: &'static [&'static str],
    read: fn(&str) -> Vec<(String, f64)>,
}

/// Short forms: several rounds of each fit into a coffee break.
pub(super) const BENCHES: &[Bench] = &[
    Bench { package: "hermes-models", name: "assembly", arguments: &[], read: assembly },
    Bench { package: "hermes-runtime", name: "plugins", arguments: &[], read: plugins },
    Bench {
        package: "hermes-store",
        name: "store",
        arguments: &["--sizes", "20000,100000", "--crowd", "2000"],
        read: store,
    },
    Bench { package: "hermes-lab", name: "engines", arguments: &["1000", "10000"], read: engines },
];

impl Bench {
    pub(super) fn read(&self, printed: &str) -> Vec<Measured> {
        let named = |(what, value)| (Figure { group: self.name, what }, value);
        (self.read)(printed).into_iter().map(named).collect()
    }
}

/// The name of a figure.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Figure {
    pub(super) group: &'static str,
    pub(super) what: String,
}

impl Figure {
    /// True if `ratio`, new by old, is on the wrong side by more than `tolerated`. More is better for rates.
    pub(super) fn is_worse(&self, ratio: f64, tolerated: f64) -> bool {
        match self.what.contains("/s") {
            true => ratio * tolerated < 1.0,
            false => ratio > tolerated,
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}: {}", self.group, self.what))
    }
}

/// The values of each figure, one for each round.
#[derive(Debug, Default)]
pub(super) struct Table(BTreeMap<Figure, Vec<f64>>);

impl Table {
    pub(super) fn add(&mut self, measured: Vec<Measured>) {
        for (figure, value) in measured {
            self.0.entry(figure).or_default().push(value);
        }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &Figure> {
        self.0.keys()
    }

    pub(super) fn median(&self, figure: &Figure) -> Option<f64> {
        let mut values = self.0.get(figure)?.clone();
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        match values.len() % 2 {
            1 => values.get(middle).copied(),
            _ => Some(f64::midpoint(*values.get(middle.checked_sub(1)?)?, *values.get(middle)?)),
        }
    }
}

/// Columns are two spaces or more apart: style, messages, bytes, first request, each later one.
fn assembly(printed: &str) -> Vec<(String, f64)> {
    let mut figures = Vec::new();
    for line in printed.lines() {
        let columns: Vec<&str> = line.split("  ").map(str::trim).filter(|column| !column.is_empty()).collect();
        let [style, messages, _bytes, first, later] = columns.as_slice() else { continue };
        for (what, column) in [("first", first), ("later", later)] {
            if let Some(value) = first_number(column) {
                figures.push((format!("{style}, {messages} messages, {what}, ms"), value));
            }
        }
    }
    figures
}

/// Parses a name, then the median or a number of KiB.
fn plugins(printed: &str) -> Vec<(String, f64)> {
    printed.lines().skip(1).filter_map(|line| row(line, 52)).collect()
}

/// Parses a name, then the figure. A line `N messages, …` begins the lines of a size.
fn store(printed: &str) -> Vec<(String, f64)> {
    let (mut figures, mut size) = (Vec::new(), String::new());
    for line in printed.lines() {
        if let Some((messages, _)) = line.split_once(" messages, ") {
            messages.clone_into(&mut size);
        } else if line.starts_with("two processes") {
            "crowd".clone_into(&mut size);
        } else if let Some((rate, _)) = line.trim().split_once(" messages/s;") {
            figures.extend(rate.parse().ok().map(|rate| (format!("{size}, messages/s"), rate)));
        } else if let Some((what, value)) = row(line, if size == "crowd" { 28 } else { 38 })
            && !what.starts_with("fsync")
            && !what.starts_with("slowest")
        {
            figures.push((format!("{size}, {what}"), value));
        }
    }
    figures
}

/// Parses engine, messages, call, number of calls, median, p99 and longest call.
fn engines(printed: &str) -> Vec<(String, f64)> {
    let figure = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [engine, messages, call @ .., _calls, median, _p99, _longest] = words.as_slice() else { return None };
        let median = median.parse().ok()?;
        Some((format!("{engine}, {messages} messages, {}, ms", call.join(" ")), median))
    };
    printed.lines().filter_map(figure).collect()
}

/// Parses a line whose name fills the first `width` characters, or more if it is longer.
fn row(line: &str, width: usize) -> Option<(String, f64)> {
    let (at, _) = line.char_indices().nth(width)?;
    // A name that is longer than its column moves the figure to the right.
    let at = at.saturating_add(line.get(at..)?.find(' ')?);
    let (name, rest) = line.split_at(at);
    Some((name.trim().to_owned(), first_number(rest)?)).filter(|(name, _)| !name.is_empty())
}

fn first_number(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_every_benchmark_become_figures_and_headings_are_skipped() {
        let assembly = "milliseconds: median [least-most] of 31 runs\n\
            style                    messages   body bytes  first of a process         each later one            \n\
            chat, marked                 1000       612345  1.250 [1.1-1.9]            0.075 [0.07-0.10]         \n";
        assert_eq!(
            super::assembly(assembly),
            [
                ("chat, marked, 1000 messages, first, ms".to_owned(), 1.25),
                ("chat, marked, 1000 messages, later, ms".to_owned(), 0.075)
            ]
        );
        let plugins = format!(
            "microseconds{:<40} {:>10} {:>10}   aim\n{:<52} {:>10.1} {:>10.1}   60\n",
            "", "median", "p99", "a tool's call", 41.5, 80.0
        );
        assert_eq!(super::plugins(&plugins), [("a tool's call".to_owned(), 41.5)]);
        let store = format!(
            "\n100000 messages, 12 MB, 0.12 KB each (peer 3.4)\n{:<38} {:>26} {:>10} {:>8}\n{:<38} {:>26} {:>10} 9x\n\
             {:<38} {:>26} \nsearch, 20 hits, ms: median [min-max]\n{:<38} {:>26} \n",
            "",
            "hermes",
            "peer",
            "ratio",
            "bulk, rows/s",
            40_000,
            4_000,
            "fsync of the disk, ms",
            "0.5 / 0.9 / 1.0",
            "  a rare word: zebra (3)",
            "0.4 [0.3-0.9]"
        );
        assert_eq!(
            super::store(&store),
            [("100000, bulk, rows/s".to_owned(), 40_000.0), ("100000, a rare word: zebra (3)".to_owned(), 0.4)]
        );
        let engines = "engine      messages call                    calls    median       p99   longest\n\
            lossless        1000 propose                   100     0.500     0.900     1.100\n\
            lossless        1000 after 12 publications\n";
        assert_eq!(super::engines(engines), [("lossless, 1000 messages, propose, ms".to_owned(), 0.5)]);
    }

    #[test]
    fn a_rate_is_worse_when_it_falls_and_a_time_when_it_grows() {
        let figure = |what: &str| Figure { group: "store", what: what.to_owned() };
        assert!(figure("append, ms").is_worse(1.2, 1.1) && !figure("append, ms").is_worse(0.5, 1.1));
        assert!(figure("append, messages/s").is_worse(0.8, 1.1) && !figure("append, messages/s").is_worse(2.0, 1.1));
    }

    #[test]
    fn the_median_is_taken_over_the_rounds() {
        let figure = Figure { group: "start", what: "x".into() };
        let mut table = Table::default();
        for value in [9.0, 1.0, 3.0] {
            table.add(vec![(figure.clone(), value)]);
        }
        assert_eq!(table.median(&figure), Some(3.0));
        table.add(vec![(figure.clone(), 5.0)]);
        assert_eq!(table.median(&figure), Some(4.0));
    }
}
