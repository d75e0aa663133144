//! Moments and ages for the user, in the local time zone.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::text;

/// Unix time in milliseconds.
pub(crate) fn now() -> u64 {
    u64::try_from(Timestamp::now().as_millisecond()).unwrap_or(0)
}

/// A time in the local time zone.
pub(crate) fn local(unix_ms: u64) -> String {
    let time = i64::try_from(unix_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    time.unwrap_or(Timestamp::UNIX_EPOCH).to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string()
}

/// How long ago something was.
pub(crate) fn age(then: u64, now: u64) -> String {
    let minutes = now.saturating_sub(then) / 60_000;
    match (minutes, minutes / 60, minutes / (24 * 60)) {
        (0, ..) => "just now".to_owned(),
        (minutes, 0, _) => format!("{minutes} min ago"),
        (_, hours, 0) => format!("{hours} h ago"),
        (_, _, days @ 1..30) => format!("{} ago", text::counted(days, "day")),
        _ => local(then),
    }
}

/// The age in fewer words: without `ago`, and only the day of an old time.
pub(crate) fn brief_age(then: u64, now: u64) -> String {
    let age = age(then, now);
    match age.strip_suffix(" ago") {
        Some(ago) => ago.to_owned(),
        None if age.starts_with(|first: char| first.is_ascii_digit()) => age.chars().take(10).collect(),
        None => age,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_told_in_the_largest_unit() {
        const MINUTE: u64 = 60_000;
        let now = 1_000 * 24 * 60 * MINUTE;
        for (ago, expected) in [
            (0, "just now"),
            (59, "59 min ago"),
            (60, "1 h ago"),
            (24 * 60, "1 day ago"),
            (29 * 24 * 60, "29 days ago"),
        ] {
            assert_eq!(age(now - ago * MINUTE, now), expected);
        }
        assert!(age(now - 30 * 24 * 60 * MINUTE, now).starts_with("19"));
        assert_eq!(age(now + MINUTE, now), "just now");
        let brief = [0, 59, 24 * 60, 40 * 24 * 60].map(|ago| brief_age(now - ago * MINUTE, now));
        assert_eq!(brief[..3], ["just now", "59 min", "1 day"]);
        assert!(brief[3].len() == 10 && brief[3].starts_with("1972"), "{}", brief[3]);
    }
}
