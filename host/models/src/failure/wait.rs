//! How long to wait before a request is sent again.

use std::time::Duration;

use jiff::Timestamp;

/// Longest delay of our own, before its random part.
const LONGEST_DELAY: Duration = Duration::from_secs(60);
/// Longest wait that a server may ask for. Who asks for more is not waited for.
pub(crate) const LONGEST_ASKED: Duration = Duration::from_secs(600);

/// The delay before another try: `base` after the first failure, twice as much after each further one, at most `longest`;
/// then up to half of that on top, by `chance` from 0 to 1, so that many clients do not return at once.
pub(crate) fn backoff(failures: u32, base: Duration, longest: Duration, chance: f64) -> Duration {
    let doubled = base.as_secs_f64() * 2f64.powi(i32::try_from(failures.saturating_sub(1)).unwrap_or(i32::MAX));
    let delay = doubled.min(longest.as_secs_f64());
    Duration::from_secs_f64(delay * (1.0 + chance.clamp(0.0, 1.0) / 2.0))
}

/// [`backoff`] with chance, up to a minute.
pub(crate) fn delay(failures: u32, base: Duration) -> Duration {
    let random = getrandom::u32().unwrap_or(u32::MAX / 2);
    backoff(failures, base, LONGEST_DELAY, f64::from(random) / f64::from(u32::MAX))
}

/// What a server asks for: `retry-after-ms`, or `Retry-After` in seconds or as a date. A date counts from the server's own
/// `Date`, since a clock may be wrong, else from `now`.
pub(crate) fn retry_after(header: impl Fn(&str) -> Option<String>, now: Timestamp) -> Option<Duration> {
    let number = |name: &str| {
        let number = header(name)?.trim().parse::<f64>().ok()?;
        (number.is_finite() && number >= 0.0).then_some(number)
    };
    if let Some(milliseconds) = number("retry-after-ms") {
        return Duration::try_from_secs_f64(milliseconds / 1000.0).ok();
    }
    if let Some(seconds) = number("retry-after") {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = |name: &str| {
        let parsed = jiff::fmt::rfc2822::parse(header(name)?.trim()).ok()?;
        Some(parsed.timestamp())
    };
    let until = date("retry-after")?;
    let from = date("date").unwrap_or(now);
    Some(until.duration_since(from).try_into().unwrap_or(Duration::ZERO))
}

/// Words before a wait in a message.
const BEFORE_A_WAIT: &[&str] =
    &["quotaresetdelay", "try again in", "try again after", "retry after", "retry in", "resets in"];

/// The wait that a message names, such as `try again in 2m30s`, `try again in 5 minutes` or `30秒后重试`.
pub(crate) fn named(message: &str) -> Option<Duration> {
    let text = message.to_lowercase();
    let western = BEFORE_A_WAIT.iter().find_map(|words| {
        let (_, rest) = text.split_once(words)?;
        length(rest.trim_start_matches([':', '"', '\'', ' ']))
    });
    western.or_else(|| {
        let (before, _) = ["后重试", "後重試"].iter().find_map(|words| text.split_once(words))?;
        let digits = before.trim_end_matches(|character: char| !character.is_ascii_digit());
        let start = digits
            .rfind(|character: char| !character.is_ascii_digit())
            .map_or(0, |at| at + digits[at..].chars().next().map_or(1, char::len_utf8));
        let number: f64 = digits[start..].parse().ok()?;
        let unit = before[digits.len()..].trim();
        let seconds = match unit {
            "秒" | "秒钟" => 1.0,
            "分" | "分钟" | "分鐘" => 60.0,
            "小时" | "小時" => 3600.0,
            _ => return None,
        };
        Duration::try_from_secs_f64(number * seconds).ok()
    })
}

/// A length of time at the start of a text: numbers with units, such as `2m30.5s` or `5 minutes`.
fn length(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total: Option<f64> = None;
    loop {
        let digits = rest.find(|character: char| !character.is_ascii_digit() && character != '.').unwrap_or(rest.len());
        let Ok(number) = rest[..digits].trim_end_matches('.').parse::<f64>() else { break };
        let after = rest[digits..].trim_start();
        let letters = after.find(|character: char| !character.is_ascii_alphabetic()).unwrap_or(after.len());
        let scale = match &after[..letters] {
            "ms" | "millisecond" | "milliseconds" => 0.001,
            "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3600.0,
            "d" | "day" | "days" => 86400.0,
            _ => break,
        };
        total = Some(total.unwrap_or(0.0) + number * scale);
        rest = after[letters..].trim_start();
    }
    Duration::try_from_secs_f64(total?).ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_limit_and_get_a_random_part() {
        let wait =
            |failures, chance| backoff(failures, Duration::from_secs(2), Duration::from_secs(60), chance).as_secs_f64();
        let waits: Vec<f64> = (0..8).map(|failures| wait(failures, 0.0)).collect();
        assert_eq!(waits, [2.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]);
        assert!((wait(3, 1.0) - 12.0).abs() < 1e-9);
        assert!((wait(u32::MAX, 1.0) - 90.0).abs() < 1e-9);
        for failures in 1..10 {
            let least = wait(failures, 0.0);
            let drawn = delay(failures, Duration::from_secs(2)).as_secs_f64();
            assert!((least..=1.5 * least).contains(&drawn), "{failures}: {drawn}");
        }
    }

    #[test]
    fn a_server_may_say_when_to_come_back() {
        let now: Timestamp = "2026-10-21T07:27:00Z".parse().unwrap();
        let asked = |headers: &'static [(&'static str, &'static str)]| {
            let find =
                move |name: &str| headers.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
            retry_after(find, now)
        };
        assert_eq!(asked(&[("retry-after", "3")]), Some(Duration::from_secs(3)));
        assert_eq!(asked(&[("retry-after", "86400")]), Some(Duration::from_secs(86400)));
        assert_eq!(asked(&[("retry-after-ms", "250"), ("retry-after", "1")]), Some(Duration::from_millis(250)));
        assert_eq!(asked(&[("retry-after", "-1")]), None);
        assert_eq!(asked(&[("retry-after", "soon")]), None);
        assert_eq!(asked(&[("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT")]), Some(Duration::from_secs(60)));
        assert_eq!(
            asked(&[("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT"), ("date", "Wed, 21 Oct 2026 07:27:50 GMT")]),
            Some(Duration::from_secs(10))
        );
        assert_eq!(asked(&[("retry-after", "Wed, 21 Oct 2020 07:28:00 GMT")]), Some(Duration::ZERO));
    }

    #[test]
    fn a_message_may_name_the_wait() {
        for (message, seconds) in [
            ("Usage limit reached, try again in 5 minutes", Some(300.0)),
            ("Please try again in 2m30.5s. Visit", Some(150.5)),
            ("Please try again in 20ms.", Some(0.02)),
            ("Try again in 1 hour 5 minutes.", Some(3900.0)),
            ("{\"quotaResetDelay\": \"12.5s\"}", Some(12.5)),
            ("请30秒后重试", Some(30.0)),
            ("请在 5 分钟后重试", Some(300.0)),
            ("try again in a while", None),
            ("try again in 5 apples", None),
            ("try again in 9999999999999999999999999999 days", None),
            ("后重试", None),
            ("", None),
        ] {
            assert_eq!(named(message), seconds.map(Duration::from_secs_f64), "{message}");
        }
    }
}
