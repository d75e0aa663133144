//! Faults that need neither arguments nor a conversation.

use std::hint::black_box;
use std::time::Duration;

use hermes_plugin::{Error, clock, log, task};

use crate::mode::Fault;

/// The message of a panic.
pub(crate) const LAST_WORDS: &str = "out of cheese, hostile by nature";
/// The message of an error.
pub(crate) const ON_PURPOSE: &str = "hostile on purpose";

const FLOOD: u32 = 1_000_000;
const MINUTE: u64 = 60_000;
/// Pause between looks at the clock: calling it all the time would exceed another limit first.
const STEP: Duration = Duration::from_millis(5);

/// Commits the fault. Does nothing for faults of other kinds.
pub(crate) fn commit(fault: Fault) -> Result<(), Error> {
    match fault {
        Fault::Loop => spin(),
        Fault::Alloc => eat(),
        Fault::Panic => panic!("{LAST_WORDS}"),
        Fault::Recurse => {
            log::trace(recurse(1));
            Ok(())
        }
        Fault::Error => Err(Error::failed(ON_PURPOSE)),
        Fault::Slow => {
            let begin = clock::now();
            while clock::now() < begin + MINUTE {
                std::thread::sleep(STEP);
            }
            Ok(())
        }
        Fault::LogFlood => {
            (0..FLOOD).for_each(|line| log::info(format!("line {line} of a flood")));
            Ok(())
        }
        Fault::StderrFlood => {
            (0..FLOOD).for_each(|line| eprintln!("line {line} of a flood"));
            Ok(())
        }
        Fault::Nothing | Fault::BadPlan | Fault::BadOrder | Fault::BadSplit | Fault::BadKey | Fault::HugePlan => Ok(()),
    }
}

/// Computes for ever.
pub(crate) fn spin() -> ! {
    let mut count = 0u64;
    loop {
        count = black_box(count.wrapping_add(1));
    }
}

/// Allocates memory for ever.
pub(crate) fn eat() -> ! {
    let mut eaten = Vec::new();
    loop {
        eaten.push(black_box(vec![1u8; 1 << 20]));
    }
}

#[allow(unconditional_recursion)]
fn recurse(depth: u64) -> u64 {
    let frame = black_box([depth; 32]);
    black_box(recurse(depth + 1)).wrapping_add(frame[7])
}

/// Waits for so many milliseconds, or until the call is cancelled or nearly out of time. Returns how long it waited.
pub(crate) fn sleep(milliseconds: u64) -> u64 {
    const WINDING_UP: u32 = 300;
    let begin = clock::now();
    loop {
        let passed = clock::now().saturating_sub(begin);
        if passed >= milliseconds || task::cancelled() || task::time_left() < WINDING_UP {
            return passed;
        }
        std::thread::sleep(STEP);
    }
}
