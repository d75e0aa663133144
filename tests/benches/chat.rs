//! How long a chat takes from its start to the prompt, and from a key to the screen while a reply streams. `cargo xtask bench chat`
//! builds the release binary and runs it.

#[cfg(unix)]
fn main() {
    unix::main();
}

#[cfg(not(unix))]
fn main() {
    println!("not measured: it needs a pseudo-terminal");
}

#[cfg(unix)]
mod unix {
    use std::time::{Duration, Instant};

    use hermes_tests::{Home, Reply, Server, Terminal};

    /// In the line below the input.
    const READY: &str = "— scripted-model";
    const STARTS: usize = 10;
    const KEYS: &str = "abcdefghijklmnopqrstuvwxyz0123456789";
    const AIM_START: Duration = Duration::from_millis(60);
    const AIM_KEY: Duration = Duration::from_millis(16);

    pub(crate) fn main() {
        let server = Server::answering(|_, _| {
            let words = "Some **bold** words with `code`.\n\n".repeat(5_000);
            Reply::text(words).in_steps_of(7).every(Duration::from_millis(5))
        });
        let home = Home::with(&server);
        // The first start fills the caches of compiled code.
        drop(started(&home));
        let mut starts: Vec<Duration> = (0..STARTS)
            .map(|_| {
                let begun = Instant::now();
                let terminal = started(&home);
                let time = begun.elapsed();
                drop(terminal);
                time
            })
            .collect();
        print("from start to the prompt", &mut starts, AIM_START);

        let mut terminal = started(&home);
        terminal.press("Begin.\r");
        seen(&terminal, 0, "bold");
        let mut keys: Vec<Duration> = (1..=KEYS.len())
            .map(|length| {
                std::thread::sleep(Duration::from_millis(50));
                let before = terminal.shown().len();
                let begun = Instant::now();
                terminal.press(&KEYS[length - 1..length]);
                seen(&terminal, before, &KEYS[..length]);
                begun.elapsed()
            })
            .collect();
        print("from a key to the screen while a reply streams", &mut keys, AIM_KEY);
    }

    /// A chat at its prompt.
    fn started(home: &Home) -> Terminal {
        let terminal = home.hermes(&[]).at_drawn_terminal(80, 30);
        seen(&terminal, 0, READY);
        terminal
    }

    /// Waits until the terminal got this text behind these bytes. It does not sleep: that would be measured too.
    fn seen(terminal: &Terminal, behind: usize, text: &str) {
        let begun = Instant::now();
        while !terminal.shown().get(behind..).is_some_and(|shown| shown.contains(text)) {
            assert!(begun.elapsed() < Duration::from_secs(30), "`{text}` was not shown:\n{}", terminal.shown());
            std::thread::yield_now();
        }
    }

    fn print(what: &str, times: &mut [Duration], aim: Duration) {
        times.sort();
        let ms = |time: Duration| time.as_secs_f64() * 1_000.0;
        let (median, longest) = (times[times.len() / 2], times[times.len() - 1]);
        println!(
            "{what}: {:.1} ms, {:.1} at most, of {}; the aim of {} ms is {}",
            ms(median),
            ms(longest),
            times.len(),
            aim.as_millis(),
            if median <= aim { "met" } else { "missed" }
        );
    }
}
