//! Tells a line that came at once from one that was typed. A terminal that does not mark pastes sends them as keys, and the line
//! break at their end as Enter.

use std::time::{Duration, Instant};

/// Nobody types two keys within this time, again and again.
const AT_ONCE: Duration = Duration::from_millis(20);

/// The keys of the input so far.
#[derive(Debug, Default)]
pub(crate) struct Burst {
    last: Option<Instant>,
    is_whole: bool,
}

impl Burst {
    /// Whether this key and all of the input before it came at once. `is_first` says that nothing is before it.
    pub(crate) fn key(&mut self, is_first: bool, now: Instant) -> bool {
        let follows = self.last.replace(now).is_some_and(|last| now.duration_since(last) < AT_ONCE);
        self.is_whole = is_first || (self.is_whole && follows);
        self.is_whole && !is_first
    }

    /// The user saw the line.
    pub(crate) fn is_seen(&mut self) {
        self.is_whole = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_came_at_once_if_no_key_of_it_was_typed() {
        let begun = Instant::now();
        for (times, is_at_once) in [
            (&[0, 0, 0, 0][..], true),
            (&[0, 10, 20, 39], true),
            (&[0, 90, 180, 270], false),
            (&[0, 90, 90, 90], false),
            (&[0, 0, 0, 60], false),
            (&[0], false),
        ] {
            let mut burst = Burst::default();
            let key = |(at, time): (usize, &u64)| burst.key(at == 0, begun + Duration::from_millis(*time));
            assert_eq!(times.iter().enumerate().map(key).last(), Some(is_at_once), "{times:?}");
        }
        let mut burst = Burst::default();
        assert!(!burst.key(true, begun) && burst.key(false, begun));
        burst.is_seen();
        assert!(!burst.key(false, begun), "it is held once");
        assert!(!burst.key(true, begun) && burst.key(false, begun), "the next line");
    }
}
