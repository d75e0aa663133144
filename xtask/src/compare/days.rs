//! What a user of the binary notices: long sessions, many sessions, the size of the program.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::figures::Figure;
use super::{Measured, ms};
use crate::processes::{Run, measure};
use crate::round_trips::{Home, Model, Times};

const ENGINES: [&str; 2] = ["compressor", "lossless"];
/// Messages of the sessions that are resumed.
const SIZES: [usize; 3] = [0, 5_000, 20_000];
/// Sessions in a list.
const SESSIONS: usize = 5_000;
/// Round trips of a turn.
const TRIPS: usize = 20;

/// The homes of one binary, made with it once for all rounds.
pub(super) struct Days {
    long: Vec<(String, Home)>,
    many: Home,
}

impl Days {
    pub(super) fn prepare(binary: &Path) -> Result<Self> {
        let mut long = Vec::new();
        for engine in ENGINES {
            for size in SIZES {
                long.push((format!("{engine}, {size} messages"), Home::with(binary, engine, size)?));
            }
        }
        Ok(Self { long, many: Home::of_sessions(binary, SESSIONS)? })
    }

    pub(super) fn measure(&self, binary: &Path) -> Result<Vec<Measured>> {
        let size = fs::metadata(binary).with_context(|| format!("cannot read {}", binary.display()))?.len();
        let mut measured = vec![figure("binary, MiB".into(), size as f64 / 1024.0 / 1024.0)];
        for (what, home) in &self.long {
            let model = Model::start(TRIPS)?;
            let run = home.turn(binary, &model)?;
            let trips = model.trips();
            for (name, times) in [
                ("first byte", Times::of(trips.iter().map(|trip| trip.to_first_byte))),
                ("last byte", Times::of(trips.iter().map(|trip| trip.to_last_byte))),
            ] {
                measured.push(figure(format!("{what}, round trip to the {name}, ms"), times.median));
            }
            measured.extend(peak(&format!("{what}, turn of {TRIPS} trips"), &run));
            let run = home.turn(binary, &Model::start(0)?)?;
            measured.push(figure(format!("{what}, one-shot turn, ms"), ms(run.wall)));
            measured.extend(peak(&format!("{what}, one-shot turn"), &run));
        }
        let run = measure(self.many.hermes(binary)?.args(["sessions", "list"]))?;
        measured.push(figure(format!("list of {SESSIONS} sessions, ms"), ms(run.wall)));
        measured.extend(peak(&format!("list of {SESSIONS} sessions"), &run));
        Ok(measured)
    }
}

fn figure(what: String, value: f64) -> Measured {
    (Figure { group: "day", what }, value)
}

/// The peak memory and the processor time of a run.
fn peak(what: &str, run: &Run) -> impl Iterator<Item = Measured> {
    let memory = run.peak.map(|peak| figure(format!("{what}, peak MiB"), peak as f64 / 1024.0 / 1024.0));
    let processor = run.processor.map(|time| figure(format!("{what}, processor ms"), ms(time)));
    memory.into_iter().chain(processor)
}
