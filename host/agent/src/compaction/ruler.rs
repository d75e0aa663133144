//! From the host's estimate of tokens to what a model's provider counts.

use hermes_conversation::{Model, Usage};
use hermes_session_store::{SessionStore, StoreError};

/// How much of a new reading is taken in.
const WEIGHT: f64 = 0.5;
/// A count that is further off says more about the provider than about the text. Below, it is passed over: some report only
/// what their cache did not hold, and whoever believed them would fill the window until it bursts. Above, it is taken for so
/// much, since too much room left does no harm.
const LEAST: f64 = 0.6;
const MOST: f64 = 2.5;

/// How many tokens a model's provider counts for one that the host estimates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ruler {
    scale: f64,
    readings: u32,
}

impl Default for Ruler {
    fn default() -> Self {
        Self { scale: 1.0, readings: 0 }
    }
}

impl Ruler {
    /// As it was noted by [`Ruler::note`]; a new one where that makes no sense.
    pub fn from_note(note: &str) -> Self {
        match note.parse::<f64>() {
            Ok(scale) if (LEAST..=MOST).contains(&scale) => Self { scale, readings: 1 },
            _ => Self::default(),
        }
    }

    /// For the next process.
    pub fn note(&self) -> String {
        format!("{:.3}", self.scale)
    }

    /// Takes what a provider counted for a request whose estimate is known. True when the scale is another one now, by
    /// more than a hundredth.
    pub fn read(&mut self, estimate: u32, usage: &Usage) -> bool {
        if usage.input == 0 || estimate == 0 {
            return false;
        }
        // What was read from a cache or written to it is part of a prompt that is counted whole.
        let of_cache = usage.cache_read.saturating_add(usage.cache_write);
        let reading = (f64::from(usage.input) / f64::from(estimate)).min(MOST);
        if reading < LEAST || usage.input < of_cache {
            return false;
        }
        let before = self.scale;
        self.scale = if self.readings == 0 { reading } else { before + WEIGHT * (reading - before) };
        self.readings = self.readings.saturating_add(1);
        (self.scale - before).abs() > 0.01
    }

    /// Whether a provider was ever heard.
    pub fn is_calibrated(&self) -> bool {
        self.readings > 0
    }

    /// What the provider would count.
    pub fn counted(&self, estimate: u32) -> u32 {
        // Casts from floats saturate.
        (f64::from(estimate) * self.scale) as u32
    }

    /// The estimate that the provider would count as so many.
    pub fn estimated(&self, counted: u32) -> u32 {
        (f64::from(counted) / self.scale) as u32
    }
}

fn ruler_name(model: &Model) -> String {
    format!("ruler:{}/{}", model.provider, model.name)
}

/// How a model's provider counts, as far as any process has learnt.
pub(crate) async fn noted(store: &dyn SessionStore, model: &Model) -> Ruler {
    let note = store.note(&ruler_name(model)).await.unwrap_or_default();
    note.map_or_else(Ruler::default, |note| Ruler::from_note(&note))
}

/// Keeps it for the next process.
pub(crate) async fn note(store: &dyn SessionStore, model: &Model, ruler: &Ruler) -> Result<(), StoreError> {
    store.set_note(&ruler_name(model), Some(&ruler.note())).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input: u32) -> Usage {
        Usage { input, ..Usage::default() }
    }

    #[test]
    fn readings_move_the_scale_and_survive_a_note() {
        let mut ruler = Ruler::default();
        assert!(!ruler.is_calibrated() && ruler.counted(100) == 100);
        assert!(ruler.read(100, &usage(150)));
        assert_eq!((ruler.counted(1_000), ruler.estimated(1_500)), (1_500, 1_000));
        ruler.read(100, &usage(110));
        assert_eq!(ruler.counted(1_000), 1_300);
        assert_eq!(Ruler::from_note(&ruler.note()).counted(1_000), 1_300);
    }

    #[test]
    fn what_makes_no_sense_is_bounded_or_passed_over() {
        let mut ruler = Ruler::default();
        assert!(!ruler.read(100, &usage(0)) && !ruler.read(0, &usage(5)));
        ruler.read(10, &usage(1_000_000));
        assert_eq!(ruler.counted(100), 250);
        // Only what the cache did not hold, with and without a word on what it did.
        let mut ruler = Ruler::from_note("1.200");
        assert!(!ruler.read(10_000, &usage(300)));
        assert!(!ruler.read(10_000, &Usage { input: 7_000, cache_read: 9_000, ..Usage::default() }));
        assert_eq!(ruler.counted(100), 120);
        assert_eq!(Ruler::from_note("1e9"), Ruler::default());
        assert_eq!(Ruler::from_note("NaN"), Ruler::default());
    }
}
