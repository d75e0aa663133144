//! Expressions of time, in questions and in messages: `yesterday`, `two weeks ago`, `last Friday`, `7 May 2023`, `in June`, 昨天.
//! They count from the day on which they were said.

use jiff::ToSpan as _;
use jiff::civil::{Date, Weekday};

/// Days since 1970, the first and the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Days {
    pub(crate) since: i64,
    pub(crate) until: i64,
}

/// Bytes of a text that are read.
const READ: usize = 8 << 10;
const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
const NUMBERS: [&str; 13] =
    ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
/// Years that a bare number can mean.
const YEARS: std::ops::RangeInclusive<i16> = 1900..=2100;

/// The days that a text names, in order, when it is said on this day.
pub(crate) fn find(text: &str, today: i64) -> Vec<Days> {
    let Some(today) = date(today) else { return Vec::new() };
    let lower = text[..text.floor_char_boundary(READ)].to_lowercase();
    let words: Vec<&str> =
        lower.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let ways = [relative, ago, named, calendar];
        let read = ways.iter().find_map(|way| way(&words[at..], today)).or_else(|| year(&words, at));
        match read {
            Some((since, until, used)) => {
                push(&mut found, since, until);
                at += used;
            }
            None => at += 1,
        }
    }
    for (word, days) in [("前天", -2), ("昨天", -1), ("昨晚", -1), ("今天", 0), ("明天", 1)] {
        if lower.contains(word) {
            found.extend(plus(today, days).map(|day| Days { since: number(day), until: number(day) }));
        }
    }
    found
}

/// The date of a day since 1970.
pub(crate) fn date(day: i64) -> Option<Date> {
    Date::constant(1970, 1, 1).checked_add(day.checked_abs().filter(|days| *days < 3_000_000).map(|_| day)?.days()).ok()
}

fn number(date: Date) -> i64 {
    let since = date.since(Date::constant(1970, 1, 1)).map(|span| i64::from(span.get_days()));
    since.unwrap_or(0)
}

fn plus(date: Date, days: i64) -> Option<Date> {
    date.checked_add(days.days()).ok()
}

fn push(found: &mut Vec<Days>, since: Date, until: Date) {
    let days = Days { since: number(since), until: number(until) };
    if days.since <= days.until && !found.contains(&days) {
        found.push(days);
    }
}

/// The days that words at the beginning name, and how many words they are.
type Read = Option<(Date, Date, usize)>;

fn one_day(day: Option<Date>, used: usize) -> Read {
    day.map(|day| (day, day, used))
}

fn relative(words: &[&str], today: Date) -> Read {
    match words {
        ["day", "before", "yesterday", ..] => one_day(plus(today, -2), 3),
        ["yesterday", ..] => one_day(plus(today, -1), 1),
        ["last", "night", ..] => one_day(plus(today, -1), 2),
        ["today" | "tonight", ..] => one_day(Some(today), 1),
        ["this", "morning" | "afternoon" | "evening", ..] => one_day(Some(today), 2),
        ["tomorrow", ..] => one_day(plus(today, 1), 1),
        _ => None,
    }
}

fn count(word: &str) -> Option<i64> {
    match word {
        "a" | "an" => Some(1),
        "couple" => Some(2),
        "few" => Some(3),
        word => NUMBERS
            .iter()
            .position(|number| *number == word)
            .and_then(|at| i64::try_from(at).ok())
            .or_else(|| word.parse().ok().filter(|count| (0..=1000).contains(count))),
    }
}

/// `two weeks ago`, `a couple of days ago`.
fn ago(words: &[&str], today: Date) -> Read {
    let skipped = usize::from(words.first() == Some(&"a") && matches!(words.get(1), Some(&"couple" | &"few")));
    let many = count(words.get(skipped)?)?;
    let of = usize::from(words.get(skipped + 1) == Some(&"of"));
    let unit = words.get(skipped + of + 1)?;
    let used = skipped + of + 3;
    if words.get(used - 1) != Some(&"ago") {
        return None;
    }
    match unit.trim_end_matches('s') {
        "day" => one_day(plus(today, -many), used),
        // Nobody counts the days of a week that is past.
        "week" => Some((plus(today, -7 * many - 3)?, plus(today, -7 * many + 3)?, used)),
        "month" => {
            let day = today.checked_sub(many.months()).ok()?;
            Some((day.first_of_month(), day.last_of_month(), used))
        }
        "year" => {
            let day = today.checked_sub(many.years()).ok()?;
            Some((day.first_of_year(), day.last_of_year(), used))
        }
        _ => None,
    }
}

fn weekday(word: &str) -> Option<Weekday> {
    let at = WEEKDAYS.iter().position(|name| *name == word)?;
    Weekday::from_monday_zero_offset(i8::try_from(at).ok()?).ok()
}

/// `last Friday`, `next month`, `this weekend`.
fn named(words: &[&str], today: Date) -> Read {
    let step = match *words.first()? {
        "last" | "past" | "previous" => -1,
        "this" => 0,
        "next" => 1,
        "on" => return weekday(words.get(1)?).and_then(|day| one_day(before(today, day), 2)),
        _ => return None,
    };
    let unit = *words.get(1)?;
    let monday = plus(today, -i64::from(today.weekday().to_monday_zero_offset()))?;
    match unit {
        "week" => Some((plus(monday, 7 * step)?, plus(monday, 7 * step + 6)?, 2)),
        "weekend" => Some((plus(monday, 7 * step + 5)?, plus(monday, 7 * step + 6)?, 2)),
        "month" => {
            let day = today.checked_add(step.months()).ok()?;
            Some((day.first_of_month(), day.last_of_month(), 2))
        }
        "year" => {
            let day = today.checked_add(step.years()).ok()?;
            Some((day.first_of_year(), day.last_of_year(), 2))
        }
        unit => {
            if let Some(day) = weekday(unit) {
                let day = if step < 0 {
                    before(today, day)
                } else {
                    plus(monday, 7 * step + i64::from(day.to_monday_zero_offset()))
                };
                return one_day(day, 2);
            }
            let month = month(unit)?;
            let year = today.year() + i16::from(step > 0 && month <= today.month())
                - i16::from(step < 0 && month >= today.month());
            let day = Date::new(year, month, 1).ok()?;
            Some((day, day.last_of_month(), 2))
        }
    }
}

/// The last such day before this one.
fn before(today: Date, day: Weekday) -> Option<Date> {
    today.nth_weekday(-1, day).ok()
}

fn month(word: &str) -> Option<i8> {
    let at = MONTHS.iter().position(|name| *name == word || (word.len() == 3 && name.starts_with(word)))?;
    i8::try_from(at + 1).ok()
}

fn day_of_month(word: &str) -> Option<i8> {
    let digits = ["st", "nd", "rd", "th"].iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word);
    digits.parse().ok().filter(|day| (1..=31).contains(day))
}

fn year_of(word: Option<&&str>) -> Option<i16> {
    word.filter(|word| word.len() == 4)?.parse().ok().filter(|year| YEARS.contains(year))
}

/// `7 May 2023`, `May 7th`, `in June`, `2023-05-07`.
fn calendar(words: &[&str], today: Date) -> Read {
    // Most recent where the year is missing: what is remembered is past.
    let recent = |month: i8, day: i8| {
        let this_year = Date::new(today.year(), month, day).ok();
        this_year.filter(|date| *date <= today).or_else(|| Date::new(today.year() - 1, month, day).ok())
    };
    let dated = |month: i8, day: i8, year: Option<i16>, used: usize| match year {
        Some(year) => one_day(Date::new(year, month, day).ok(), used + 1),
        None => one_day(recent(month, day), used),
    };
    let whole = |month: i8, year: Option<i16>, used: usize| {
        let first = match year {
            Some(year) => Date::new(year, month, 1).ok(),
            None => recent(month, 1),
        }?;
        Some((first, first.last_of_month(), used + usize::from(year.is_some())))
    };
    let first = *words.first()?;
    if let Some(year) = year_of(words.first()) {
        // A time may follow: `2023-05-07T12:00`.
        let two = |at: usize| words.get(at)?.split('t').next().filter(|word| word.len() <= 2)?.parse::<i8>().ok();
        return one_day(Date::new(year, two(1)?, two(2)?).ok(), 3);
    }
    if let Some(day) = day_of_month(first) {
        let of = usize::from(words.get(1) == Some(&"of"));
        return dated(month(words.get(1 + of)?)?, day, year_of(words.get(2 + of)), 2 + of);
    }
    if matches!(first, "in" | "during" | "since" | "of" | "by" | "until") {
        // `may` and `march` are verbs elsewhere.
        let month = month(words.get(1)?)?;
        return match words.get(2).and_then(|word| day_of_month(word)) {
            Some(day) => dated(month, day, year_of(words.get(3)), 3),
            None => whole(month, year_of(words.get(2)), 2),
        };
    }
    let month = month(first)?;
    if let Some(day) = words.get(1).and_then(|word| day_of_month(word)) {
        return dated(month, day, year_of(words.get(2)), 2);
    }
    let year = year_of(words.get(1));
    let is_certain = year.is_some() || (first.len() > 3 && !matches!(first, "may" | "march"));
    if is_certain { whole(month, year, 1) } else { None }
}

/// `in 2023`.
fn year(words: &[&str], at: usize) -> Read {
    let follows = at > 0 && matches!(words[at - 1], "in" | "during" | "since" | "of" | "year");
    let year = year_of(words.get(at)).filter(|_| follows)?;
    Some((Date::new(year, 1, 1).ok()?, Date::new(year, 12, 31).ok()?, 1))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// The days of a text that is said on Wednesday, 12 June 2024, as `first..last`.
    fn days(text: &str) -> Vec<String> {
        let shown = |day| date(day).unwrap().to_string();
        let today = number(Date::constant(2024, 6, 12));
        find(text, today)
            .into_iter()
            .map(
                |Days { since, until }| {
                    if since == until { shown(since) } else { format!("{}..{}", shown(since), shown(until)) }
                },
            )
            .collect()
    }

    #[test]
    fn expressions_count_from_the_day_on_which_they_are_said() {
        for (text, expected) in [
            ("What did I eat yesterday?", "2024-06-11"),
            ("the day before yesterday", "2024-06-10"),
            ("this morning", "2024-06-12"),
            ("three days ago", "2024-06-09"),
            ("a couple of days ago", "2024-06-10"),
            ("2 weeks ago", "2024-05-26..2024-06-01"),
            ("a month ago", "2024-05-01..2024-05-31"),
            ("last week", "2024-06-03..2024-06-09"),
            ("this weekend", "2024-06-15..2024-06-16"),
            ("Last Friday", "2024-06-07"),
            ("last Wednesday", "2024-06-05"),
            ("next monday", "2024-06-17"),
            ("last year", "2023-01-01..2023-12-31"),
            ("last August", "2023-08-01..2023-08-31"),
            ("on 7 May 2023", "2023-05-07"),
            ("May 7th, 2023", "2023-05-07"),
            ("the 3rd of July", "2023-07-03"),
            ("2023-05-07T12:00", "2023-05-07"),
            ("in May", "2024-05-01..2024-05-31"),
            ("in December", "2023-12-01..2023-12-31"),
            ("November 2022", "2022-11-01..2022-11-30"),
            ("in 2022", "2022-01-01..2022-12-31"),
            ("昨天吃了什么", "2024-06-11"),
        ] {
            assert_eq!(days(text), [expected], "{text}");
        }
        assert_eq!(days("yesterday or on 1 June"), ["2024-06-11", "2024-06-01"]);
    }

    #[test]
    fn other_words_are_no_times() {
        for text in [
            "",
            "it may work",
            "march on",
            "the second one",
            "sat down",
            "2048 tokens",
            "room 12 of 30",
            "0 0 0",
            "last",
            "9999999999 days ago",
            "a few",
            "port 1999",
            "mar",
        ] {
            assert_eq!(days(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn no_day_is_too_far() {
        for today in [i64::MIN, -5_000_000, 0, 5_000_000, i64::MAX] {
            find("yesterday, next year, 1000 years ago, in December 2100", today);
        }
    }
}
