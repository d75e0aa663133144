//! Counts the days between two dates, which models often get wrong.

use hermes_plugin::tools::{Effect, Invocation, Output, Tool};
use hermes_plugin::{Error, Instance, NoConfig, Setup, Toolbox, Tools, arguments};

/// Day 0 of `day` is a Tuesday.
const WEEKDAYS: [&str; 7] = ["Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday", "Monday"];

struct Calendar;

impl Instance for Calendar {
    type Config = NoConfig;

    fn new(_: Setup<NoConfig>) -> Result<Self, Error> {
        Ok(Self)
    }
}

/// Counts the days from one date to another, and names both weekdays. Use it instead of counting yourself.
#[arguments]
struct Between {
    /// The first date, as YYYY-MM-DD.
    from: String,
    /// The second date, as YYYY-MM-DD.
    to: String,
}

impl Calendar {
    fn tools() -> Toolbox<Self> {
        Toolbox::new("calendar").tool("days_between", Self::days_between).effect(Effect::Reads).parallel(true)
    }

    fn days_between(&mut self, Between { from, to }: Between) -> Result<String, Error> {
        let (first, second) = (day(&from)?, day(&to)?);
        let weekday = |day: i64| WEEKDAYS[day.rem_euclid(7) as usize];
        Ok(format!("{} days from {}, {from} to {}, {to}", second - first, weekday(first), weekday(second)))
    }
}

/// The number of a day. The model reads the error, so it says what to write.
fn day(date: &str) -> Result<i64, Error> {
    let invalid = || Error::invalid(format!("`{date}` is not a date such as 2026-02-28"));
    let parts: Vec<i64> = date.split('-').map_while(|part| part.parse().ok()).collect();
    let [year @ 1..=9999, month @ 1..=12, day] = parts[..] else { return Err(invalid()) };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = [31, if is_leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    if !(1..=days[month as usize - 1]).contains(&day) {
        return Err(invalid());
    }
    // Counted in years that begin in March, so that a leap day comes last.
    let (years, months) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    Ok(365 * years + years / 4 - years / 100 + years / 400 + (153 * months + 2) / 5 + day)
}

impl Tools for Calendar {
    fn catalog(&self) -> Result<Vec<Tool>, Error> {
        Ok(Self::tools().catalog())
    }

    fn call(&mut self, invocation: &Invocation) -> Result<Output, Error> {
        Self::tools().call(self, invocation)
    }
}

hermes_plugin::export!(Calendar: Tools);
