//! Converts between the host's token estimates and the counts of a model's provider.

use hermes_conversation::{Model, Usage};
use hermes_session_store::{SessionStore, StoreError};

/// The weight of a new reading in the moving average.
const WEIGHT: f64 = 0.5;
/// Readings below this ratio are ignored: some providers report only the tokens that their cache did not hold, and a
/// scale from such counts would overfill the window.
const MIN_RATIO: f64 = 0.6;
/// Readings above this ratio are capped. A scale that is too large only leaves some of the window unused.
const MAX_RATIO: f64 = 2.5;

/// The ratio between a provider's token counts and the host's estimates.
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
    /// Parses the text of [`Ruler::note`]; an invalid text gives an uncalibrated ruler.
    pub fn from_note(note: &str) -> Self {
        match note.parse::<f64>() {
            Ok(scale) if (MIN_RATIO..=MAX_RATIO).contains(&scale) => Self { scale, readings: 1 },
            _ => Self::default(),
        }
    }

    /// The text that stores the ratio for the next process.
    pub fn note(&self) -> String {
        format!("{:.3}", self.scale)
    }

    /// Updates the ratio with the provider's count for a request. Returns whether the ratio changed by more than 0.01.
    pub fn read(&mut self, estimate: u32, usage: &Usage) -> bool {
        if usage.input == 0 || estimate == 0 {
            return false;
        }
        // A full count includes the tokens that were read from and written to the cache.
        let of_cache = usage.cache_read.saturating_add(usage.cache_write);
        let reading = (f64::from(usage.input) / f64::from(estimate)).min(MAX_RATIO);
        if reading < MIN_RATIO || usage.input < of_cache {
            return false;
        }
        let before = self.scale;
        self.scale = if self.readings == 0 { reading } else { before + WEIGHT * (reading - before) };
        self.readings = self.readings.saturating_add(1);
        (self.scale - before).abs() > 0.01
    }

    /// Whether the ratio comes from a provider's counts.
    pub fn is_calibrated(&self) -> bool {
        self.readings > 0
    }

    /// Converts an estimate into the provider's count.
    pub fn counted(&self, estimate: u32) -> u32 {
        // Casts from floats saturate.
        (f64::from(estimate) * self.scale) as u32
    }

    /// Converts a provider's count into the host's estimate.
    pub fn estimated(&self, counted: u32) -> u32 {
        (f64::from(counted) / self.scale) as u32
    }
}

fn ruler_name(model: &Model) -> String {
    format!("ruler:{}/{}", model.provider, model.name)
}

/// Loads the ruler that an earlier process stored for a model.
pub(crate) async fn load_ruler(store: &dyn SessionStore, model: &Model) -> Ruler {
    let note = store.note(&ruler_name(model)).await.unwrap_or_default();
    note.map_or_else(Ruler::default, |note| Ruler::from_note(&note))
}

/// Stores a ruler for the next process.
pub(crate) async fn store_ruler(store: &dyn SessionStore, model: &Model, ruler: &Ruler) -> Result<(), StoreError> {
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
    fn implausible_readings_are_capped_or_ignored() {
        let mut ruler = Ruler::default();
        assert!(!ruler.read(100, &usage(0)) && !ruler.read(0, &usage(5)));
        ruler.read(10, &usage(1_000_000));
        assert_eq!(ruler.counted(100), 250);
        // A count without the cached tokens, with and without figures of the cache.
        let mut ruler = Ruler::from_note("1.200");
        assert!(!ruler.read(10_000, &usage(300)));
        assert!(!ruler.read(10_000, &Usage { input: 7_000, cache_read: 9_000, ..Usage::default() }));
        assert_eq!(ruler.counted(100), 120);
        assert_eq!(Ruler::from_note("1e9"), Ruler::default());
        assert_eq!(Ruler::from_note("NaN"), Ruler::default());
    }
}
