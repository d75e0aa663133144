//! The policy for cache lifetimes on weeks that it was not made with.
#![allow(clippy::unwrap_used)]

use hermes_lab::week::{Bill, Pattern, Week};
use hermes_lab::{Recording, Terms};
use hermes_models::Price;
use hermes_test_data::recorded;

/// The seeds of weeks for tuning; the test uses others.
const TUNED: std::ops::Range<u64> = 1..101;
/// Chosen before the policy ran on any of them.
const UNSEEN: std::ops::Range<u64> = 50_001..50_021;

/// Prices relative to fresh input: read, write for five minutes, write for an hour. They are those of the built-in rows and
/// two that nobody charges today.
const PRICES: [(f64, f64, f64); 5] =
    [(0.1, 1.25, 2.0), (0.05, 1.25, 2.0), (0.025, 1.25, 2.0), (0.1, 1.25, 1.6), (0.08, 1.25, 2.0)];

fn price(seed: u64) -> Price {
    let (cache_read, cache_write, cache_write_1h) = PRICES[usize::try_from(seed).unwrap() % PRICES.len()];
    Price { input: 1.0, output: 5.0, cache_read, cache_write, cache_write_1h }
}

#[test]
fn on_twenty_unseen_weeks_the_policy_is_never_two_percent_dearer_than_the_better_fixed_lifetime() {
    let Some(path) = recorded("data/coding-session.jsonl") else { return };
    const { assert!(UNSEEN.start >= TUNED.end) };
    let recording = Recording::read(&path).unwrap().remove(0);
    let (mut regrets, mut of_warming) = (Vec::new(), Vec::new());
    for seed in UNSEEN {
        let week = Week::of(&recording, &Terms::STANDARD, &Pattern::drawn(seed));
        assert!(week.requests() > 500, "week {seed} has {} requests", week.requests());
        let bill = week.bill(&price(seed));
        of_warming.push((seed, bill.of_warming()));
        regrets.push((seed, bill.regret(), bill.one_hour.total / bill.five_minutes.total - 1.0));
    }
    let worst = regrets.iter().map(|(_, regret, _)| *regret).fold(f64::MIN, f64::max);
    let mean = regrets.iter().map(|(_, regret, _)| regret).sum::<f64>() / regrets.len() as f64;
    assert!(worst <= 0.02, "mean {mean:+.4}, worst {worst:+.4}: {regrets:?}");
    let dearest = of_warming.iter().map(|(_, more)| *more).fold(f64::MIN, f64::max);
    let gain = of_warming.iter().map(|(_, more)| more).sum::<f64>() / of_warming.len() as f64;
    assert!(dearest <= 0.02 && gain < 0.0, "warming: mean {gain:+.4}, worst {dearest:+.4}: {of_warming:?}");
    // The weeks differ: in some five minutes are better, in others an hour.
    assert!(regrets.iter().any(|(.., hour)| *hour > 0.01) && regrets.iter().any(|(.., hour)| *hour < -0.01));
}

/// Prints the distribution over the weeks for tuning.
#[test]
#[ignore = "prints figures for tuning the policy"]
fn weeks_for_tuning() {
    let Some(path) = recorded("data/coding-session.jsonl") else { return };
    let recording = Recording::read(&path).unwrap().remove(0);
    let bills: Vec<_> =
        TUNED.map(|seed| Week::of(&recording, &Terms::STANDARD, &Pattern::drawn(seed)).bill(&price(seed))).collect();
    for (what, of) in [("regret", Bill::regret as fn(&Bill) -> f64), ("of warming", Bill::of_warming)] {
        let mut all: Vec<f64> = bills.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        println!("{what}: mean {mean:+.4}, median {:+.4}, best {:+.4}, worst {:?}", all[50], all[0], &all[90..]);
    }
}
