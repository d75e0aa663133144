//! Shares of token budgets.

use hermes_plugin::context_engine::Pressure;

/// A fraction of a number of tokens.
pub fn share(tokens: u32, of: f64) -> u32 {
    // A cast from a float saturates.
    (f64::from(tokens) * of) as u32
}

/// The usable window, and its room for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The window minus the reserve for the reply.
    pub usable: u32,
    /// `usable` minus system prompt and tools.
    pub room: u32,
}

impl Window {
    /// The window at this pressure.
    pub fn of(pressure: &Pressure) -> Self {
        let usable = pressure.context_length.saturating_sub(pressure.reserve);
        Self { usable, room: usable.saturating_sub(pressure.fixed_tokens) }
    }

    /// The tokens at a share of the window. With a large system prompt, a plain share would be reached by the first
    /// messages: at least a part of `room` must be used.
    pub fn threshold(&self, of: f64) -> u32 {
        share(self.usable, of).max((self.usable - self.room).saturating_add(share(self.room, of * 0.8)))
    }
}

/// The largest cap such that the sizes, each limited to it, sum to at most `budget`. `None` if all of them fit.
pub fn cap(sizes: impl IntoIterator<Item = u64>, budget: u64) -> Option<u64> {
    let mut sorted: Vec<u64> = sizes.into_iter().collect();
    sorted.sort_unstable();
    let mut left = budget;
    let mut others = sorted.len() as u64;
    for size in sorted {
        let share = left / others;
        if size > share {
            return Some(share);
        }
        left -= size;
        others -= 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cap_leaves_small_sizes_whole() {
        assert_eq!(cap([10, 500, 600], 310), Some(150));
        assert_eq!((cap([10, 20], 100), cap([], 9), cap([7, 7], 0)), (None, None, Some(0)));
    }

    #[test]
    fn a_threshold_leaves_room_after_a_large_system_prompt() {
        assert_eq!(Window { usable: 100, room: 90 }.threshold(0.5), 50);
        assert_eq!(Window { usable: 100, room: 20 }.threshold(0.5), 88);
    }
}
