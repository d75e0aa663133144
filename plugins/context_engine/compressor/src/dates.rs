//! Dates and times as texts, from Unix milliseconds.

const MINUTE: i64 = 60_000;
const DAY: i64 = 24 * 60;

/// `2026-11-22` at a UTC offset in minutes.
pub(crate) fn day(milliseconds: u64, offset: i32) -> String {
    let days = minutes(milliseconds, offset).div_euclid(DAY);
    // Civil calendar in 400-year eras whose years begin in March, so that leap days come last.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// `14:05`.
pub(crate) fn time(milliseconds: u64, offset: i32) -> String {
    let of_day = minutes(milliseconds, offset).rem_euclid(DAY);
    format!("{:02}:{:02}", of_day / 60, of_day % 60)
}

fn minutes(milliseconds: u64, offset: i32) -> i64 {
    i64::try_from(milliseconds).unwrap_or(i64::MAX) / MINUTE + i64::from(offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_follow_the_civil_calendar() {
        for (milliseconds, offset, date, clock) in [
            (0, 0, "1970-01-01", "00:00"),
            (0, -60, "1969-12-31", "23:00"),
            (951_782_400_000, 0, "2000-02-29", "00:00"),
            (951_868_800_000, 0, "2000-03-01", "00:00"),
            (4_107_542_399_000, 0, "2100-02-28", "23:59"),
            (4_107_542_400_000, 0, "2100-03-01", "00:00"),
            (1_795_215_300_000, 60, "2026-11-20", "23:55"),
            (1_795_215_300_000, 120, "2026-11-21", "00:55"),
        ] {
            assert_eq!((day(milliseconds, offset).as_str(), time(milliseconds, offset).as_str()), (date, clock));
        }
    }
}
