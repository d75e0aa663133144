//! Times as servers write them.

use hermes_plugin::Timestamp;

const DAY: u64 = 86_400_000;
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// A time as `2026-01-01T00:00:00.000Z`.
pub fn to_rfc3339(time: Timestamp) -> String {
    let (year, month, day) = date(time / DAY);
    let (seconds, milliseconds) = (time % DAY / 1_000, time % 1_000);
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{:02}.{milliseconds:03}Z", seconds % 60)
}

/// The time of `Thu, 01 Jan 2026 00:00:00 GMT`, the form that servers must use (RFC 9110).
pub fn from_http_date(text: &str) -> Option<Timestamp> {
    let mut words = text.split_once(", ")?.1.split(' ');
    let day: u64 = words.next()?.parse().ok()?;
    let month = words.next()?;
    let month = MONTHS.iter().position(|name| *name == month)? as u64 + 1;
    let year: u64 = words.next()?.parse().ok()?;
    let mut clock = words.next()?.split(':').map(|part| part.parse::<u64>().ok());
    let (hours, minutes, seconds) = (clock.next()??, clock.next()??, clock.next()??);
    if !(1970..=9999).contains(&year) || !(1..=31).contains(&day) || hours > 23 || minutes > 59 || seconds > 60 {
        return None;
    }
    Some(days(year, month, day) * DAY + (hours * 3_600 + minutes * 60 + seconds) * 1_000)
}

/// Days since 1970. Years begin in March here, so that the leap day is the last day of a year.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let year = if month > 2 { year } else { year - 1 };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year * 365 + year / 4 - year / 100 + year / 400 + of_year - 719_468
}

fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let of_era = days % 146_097;
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_and_read_by_the_calendar() {
        assert_eq!(to_rfc3339(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(to_rfc3339(1_767_225_600_000), "2026-01-01T00:00:00.000Z");
        assert_eq!(to_rfc3339(1_709_210_096_789), "2024-02-29T12:34:56.789Z");
        assert_eq!(from_http_date("Thu, 29 Feb 2024 12:34:56 GMT"), Some(1_709_210_096_000));
        for wrong in
            ["", "Thu, 29 Foo 2024 12:34:56 GMT", "Thu, 29 Feb 2024 99:34:56 GMT", "Thu, 29 Feb 1066 12:34:56 GMT"]
        {
            assert_eq!(from_http_date(wrong), None, "{wrong}");
        }
        // Every month's first day, over several centuries.
        for month in 0..12 * 700 {
            let (year, month) = (1970 + month / 12, month % 12 + 1);
            let written = to_rfc3339(days(year, month, 1) * DAY);
            assert_eq!(written, format!("{year:04}-{month:02}-01T00:00:00.000Z"));
        }
    }
}
