//! Measures the calls of the bundled engines by the length of the session. Run it with `cargo xtask bench engines`.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use hermes_lab::pace;
use hermes_lab::report::Timing;
use hermes_plugin_host::{Catalog, Plugins, QUIETLY, Selection};
use hermes_runtime::Runtime;

const ENGINES: [&str; 2] = ["lossless", "compressor"];
const LENGTHS: [u64; 3] = [1_000, 10_000, 100_000];

fn main() -> Result<()> {
    let (engines, lengths) = asked()?;
    let staged = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/bundled");
    let scratch = tempfile::tempdir()?;
    let runtime = Runtime::new(scratch.path().join("code"));
    let (catalog, natives) =
        (Catalog::vouched(&[], &staged), Catalog::vouched(&[], &staged.with_file_name("test-natives")));
    println!("milliseconds: median, 99th percentile and longest call");
    println!(
        "{:<11} {:>8} {:<22} {:>6} {:>9} {:>9} {:>9}",
        "engine", "messages", "call", "calls", "median", "p99", "longest"
    );
    for engine in &engines {
        let catalog = if engine.ends_with("-native") { &natives } else { &catalog };
        let plugins = select(&runtime, catalog, engine)?;
        let row = |messages: u64, call: &str, timing: Timing| {
            let ms = |micros: u64| format!("{:.3}", micros as f64 / 1e3);
            let (median, p99, longest) = (ms(timing.median_us), ms(timing.p99_us), ms(timing.max_us));
            let calls = timing.plans;
            println!("{engine:<11} {messages:>8} {call:<22} {calls:>6} {median:>9} {p99:>9} {longest:>9}");
        };
        row(0, "first of an instance", pace::creation(&plugins, scratch.path()).map_err(anyhow::Error::msg)?);
        for pace in pace::paces(&plugins, scratch.path(), &lengths).map_err(anyhow::Error::msg)? {
            for (call, timing) in &pace.calls {
                row(pace.messages, call, *timing);
            }
            row(pace.messages, "first when resumed", pace.resumed);
            println!("{engine:<11} {:>8} after {} publications", pace.messages, pace.publications);
        }
    }
    Ok(())
}

/// The engines and lengths of the command line, or all of them.
fn asked() -> Result<(Vec<String>, Vec<u64>)> {
    let (mut engines, mut lengths) = (Vec::new(), Vec::new());
    // Cargo passes `--bench` to every benchmark.
    for argument in std::env::args().skip(1).filter(|argument| argument != "--bench") {
        match argument.parse() {
            Ok(length) => lengths.push(length),
            Err(_) if argument.starts_with('-') => bail!("usage: bench engines [ENGINE…] [MESSAGES…]"),
            Err(_) => engines.push(argument),
        }
    }
    if engines.is_empty() {
        engines = ENGINES.map(str::to_owned).to_vec();
    }
    if lengths.is_empty() {
        lengths = LENGTHS.to_vec();
    }
    lengths.sort_unstable();
    Ok((engines, lengths))
}

/// Selects this engine and no other plugin.
fn select(runtime: &Runtime, catalog: &Catalog, engine: &str) -> Result<Plugins> {
    Plugins::select(runtime, catalog, &Selection::only(engine), QUIETLY)
        .context("`cargo xtask plugins` stages the engines")
}
