//! Sums over requests.

use std::collections::BTreeMap;

use hermes_app::sessions::UsageRow;
use serde_json::{Value, json};

use crate::text::{dollars, grouped};

/// What some requests used.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Sum {
    pub(super) requests: u64,
    /// Requests without a report of the provider.
    pub(super) unreported: u64,
    /// Requests with a report and without a price.
    pub(super) unpriced: u64,
    pub(super) input: u64,
    /// Of the input, what came from a cache, and what was written to one.
    pub(super) cached: u64,
    pub(super) written: u64,
    pub(super) output: u64,
    /// US dollars, of the requests with a price.
    pub(super) cost: f64,
    priced: u64,
}

impl Sum {
    fn add(&mut self, row: &UsageRow) {
        self.requests += 1;
        let Some(usage) = row.usage else {
            self.unreported += 1;
            return;
        };
        self.input += u64::from(usage.input);
        self.cached += u64::from(usage.cache_read);
        self.written += u64::from(usage.cache_write);
        self.output += u64::from(usage.output);
        match row.cost {
            Some(cost) => {
                self.cost += cost;
                self.priced += 1;
            }
            None => self.unpriced += 1,
        }
    }

    pub(super) fn tokens(&self) -> u64 {
        self.input + self.output
    }

    /// The cost, if any request has a price.
    pub(super) fn known_cost(&self) -> Option<f64> {
        (self.priced > 0).then_some(self.cost)
    }

    /// For sorting: by cost, then by tokens. The tokens are scaled down so far that they only decide between equal costs.
    pub(super) fn weight(&self) -> f64 {
        self.cost + self.tokens() as f64 / 1e15
    }

    /// Requests, input, what came from a cache, output, cost.
    pub(super) fn cells(&self) -> [String; 5] {
        [
            grouped(self.requests),
            grouped(self.input),
            grouped(self.cached),
            grouped(self.output),
            self.known_cost().map_or_else(|| "-".to_owned(), dollars),
        ]
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "requests": self.requests,
            "unreported": self.unreported,
            "unpriced": self.unpriced,
            "input": self.input,
            "cache_read": self.cached,
            "cache_write": self.written,
            "output": self.output,
            "cost": self.known_cost(),
        })
    }
}

impl<'a> FromIterator<&'a UsageRow> for Sum {
    fn from_iter<T: IntoIterator<Item = &'a UsageRow>>(rows: T) -> Self {
        let mut sum = Self::default();
        rows.into_iter().for_each(|row| sum.add(row));
        sum
    }
}

/// The sums of groups, in the order of their keys.
pub(super) fn by<K: Ord>(rows: &[UsageRow], key: impl Fn(&UsageRow) -> K) -> BTreeMap<K, Sum> {
    let mut sums: BTreeMap<K, Sum> = BTreeMap::new();
    for row in rows {
        sums.entry(key(row)).or_default().add(row);
    }
    sums
}
