//! The misdeeds that need neither arguments nor a conversation.

use std::hint::black_box;
use std::time::Duration;

use hermes_plugin::{Error, clock, log, task};

use crate::mode::Misdeed;

/// The last words of a panic.
pub(crate) const LAST_WORDS: &str = "guest says: out of cheese, hostile by nature";
/// The message of an error.
pub(crate) const ON_PURPOSE: &str = "hostile on purpose";

const FLOOD: u32 = 1_000_000;
const MINUTE: u64 = 60_000;
/// How long it waits before it looks at the clock again: asking all the time would run into another limit first.
const STEP: Duration = Duration::from_millis(5);

/// Does it; what is no deed of this kind is left.
pub(crate) fn commit(misdeed: Misdeed) -> Result<(), Error> {
    match misdeed {
        Misdeed::Loop => spin(),
        Misdeed::Alloc => eat(),
        Misdeed::Panic => panic!("{LAST_WORDS}"),
        Misdeed::Recurse => {
            log::trace(recurse(1));
            Ok(())
        }
        Misdeed::Error => Err(Error::failed(ON_PURPOSE)),
        Misdeed::Slow => {
            let begin = clock::now();
            while clock::now() < begin + MINUTE {
                std::thread::sleep(STEP);
            }
            Ok(())
        }
        Misdeed::LogFlood => {
            (0..FLOOD).for_each(|line| log::info(format!("line {line} of a flood")));
            Ok(())
        }
        Misdeed::StderrFlood => {
            (0..FLOOD).for_each(|line| eprintln!("line {line} of a flood"));
            Ok(())
        }
        Misdeed::Nothing
        | Misdeed::BadPlan
        | Misdeed::BadOrder
        | Misdeed::BadSplit
        | Misdeed::BadKey
        | Misdeed::HugePlan => Ok(()),
    }
}

/// Computes without end.
pub(crate) fn spin() -> ! {
    let mut count = 0u64;
    loop {
        count = black_box(count.wrapping_add(1));
    }
}

/// Takes memory without end.
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

/// Waits until so many milliseconds have passed, the user has gone or hardly any time is left; says how long it was.
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
