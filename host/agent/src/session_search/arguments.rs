//! The arguments of `session_search`. Models write numbers as text and leave out what they do not know, so only what would
//! change the meaning of a search is an error.

use hermes_conversation::{MessageId, Role};
use hermes_session_store::RecallOrder;
use jiff::civil::{Date, DateTime};
use jiff::{SignedDuration, Timestamp, Zoned};
use serde_json::{Map, Value};

/// What a call asks for. The arguments that are present decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Shape {
    /// Messages that match a query.
    Discover(Discover),
    /// A conversation.
    Read { session: String },
    /// The messages around one.
    Scroll { session: String, message: MessageId, window: usize },
    /// The newest conversations.
    Browse { limit: usize },
}

/// A search across conversations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discover {
    /// The text to find.
    pub query: String,
    /// The most messages to find.
    pub limit: usize,
    /// Their order.
    pub order: RecallOrder,
    /// Authors of the messages.
    pub roles: Vec<Role>,
    /// The front end of the conversations, such as `cli`.
    pub source: Option<String>,
    /// Created at this time or later, in Unix milliseconds.
    pub since: Option<u64>,
    /// Created before this time, in Unix milliseconds.
    pub until: Option<u64>,
}

impl Discover {
    /// The most messages that a search finds.
    pub const MOST: usize = 40;

    /// A search for the ten best messages of users and models.
    pub fn new(query: &str) -> Self {
        Self {
            query: query.to_owned(),
            limit: 10,
            order: RecallOrder::Best,
            roles: vec![Role::User, Role::Assistant],
            source: None,
            since: None,
            until: None,
        }
    }
}

impl Shape {
    /// Reads arguments, which must be a JSON object. The text of an error goes to the model.
    pub(super) fn read(arguments: &str, now: &Zoned) -> Result<Self, String> {
        const WINDOW: (usize, usize) = (5, 20);
        const BROWSED: (usize, usize) = (10, 50);
        let members: Map<String, Value> =
            serde_json::from_str(arguments).map_err(|error| format!("the arguments are invalid: {error}"))?;
        let text = |name: &str| text(&members, name);
        let number = |name: &str| {
            let text = text(name)?;
            text.trim_start_matches('#').parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0)
        };
        let within = |name: &str, least: usize, (usual, most): (usize, usize)| {
            number(name).map_or(usual, |number| (number as usize).clamp(least, most))
        };
        if let Some(session) = text("session_id") {
            if text("around_message_id").is_none() {
                return Ok(Self::Read { session });
            }
            let message = number("around_message_id")
                .ok_or("`around_message_id` must be the number of a message, as a result of this tool shows it")?;
            let window = within("window", 0, WINDOW);
            return Ok(Self::Scroll { session, message: MessageId(message as u64), window });
        }
        let Some(query) = text("query") else { return Ok(Self::Browse { limit: within("limit", 1, BROWSED) }) };
        let usual = Discover::new(&query);
        let date = |name: &str, is_end: bool| text(name).map(|text| moment(name, &text, now, is_end)).transpose();
        Ok(Self::Discover(Discover {
            limit: within("limit", 1, (usual.limit, Discover::MOST)),
            order: match text("sort").as_deref() {
                Some("newest") => RecallOrder::Newest,
                Some("oldest") => RecallOrder::Oldest,
                _ => RecallOrder::Best,
            },
            roles: match text("role_filter") {
                Some(names) => roles(&names)?,
                None => usual.roles.clone(),
            },
            source: text("source"),
            since: date("since", false)?,
            until: date("until", true)?,
            ..usual
        }))
    }
}

/// A member as text; `None` if it is blank or of another type.
fn text(members: &Map<String, Value>, name: &str) -> Option<String> {
    let text = match members.get(name)? {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    (!text.is_empty()).then_some(text)
}

fn roles(names: &str) -> Result<Vec<Role>, String> {
    let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
    let role = |name: &str| Role::parse(name).filter(|role| *role != Role::System);
    names
        .map(|name| role(name).ok_or("`role_filter` must list some of `user`, `assistant` and `tool`".to_owned()))
        .collect()
}

/// A date, a time or an age, in Unix milliseconds. An end that is a date includes the day.
fn moment(name: &str, text: &str, now: &Zoned, is_end: bool) -> Result<u64, String> {
    let zone = now.time_zone();
    let at = |time: DateTime| time.to_zoned(zone.clone()).ok().map(|zoned| zoned.timestamp());
    let day = |date: Date| {
        let date = if is_end { date.tomorrow().ok()? } else { date };
        at(date.at(0, 0, 0, 0))
    };
    let found = age(text)
        .and_then(|age| now.timestamp().checked_sub(age).ok())
        .or_else(|| text.parse::<Timestamp>().ok())
        .or_else(|| if text.len() <= "2026-01-31".len() { day(text.parse().ok()?) } else { at(text.parse().ok()?) });
    let found = found.and_then(|found| u64::try_from(found.as_millisecond()).ok());
    found.ok_or_else(|| {
        format!(
            "`{name}` must be a date such as 2026-01-31, a time such as 2026-01-31T18:00, or an age such as 7d or 12h"
        )
    })
}

fn age(text: &str) -> Option<SignedDuration> {
    let number = |unit: char| text.strip_suffix(unit)?.trim().parse::<i64>().ok().filter(|number| *number >= 0);
    let hours = |number: Option<i64>, each: i64| number?.checked_mul(each);
    let hours = hours(number('h'), 1).or_else(|| hours(number('d'), 24)).or_else(|| hours(number('w'), 168))?;
    (hours < 1 << 24).then(|| SignedDuration::from_hours(hours))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(arguments: &Value) -> Result<Shape, String> {
        Shape::read(&arguments.to_string(), &"2026-03-10T12:00[UTC]".parse().unwrap())
    }

    fn discover(arguments: Value) -> Discover {
        match read(&arguments).unwrap() {
            Shape::Discover(discover) => discover,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_arguments_decide_what_a_call_does() {
        let scroll = |message, window| Shape::Scroll { session: "a".into(), message: MessageId(message), window };
        for (arguments, shape) in [
            (json!({}), Shape::Browse { limit: 10 }),
            (json!({"query": " \n", "limit": "3"}), Shape::Browse { limit: 3 }),
            (json!({"session_id": "a", "query": "x"}), Shape::Read { session: "a".into() }),
            (json!({"session_id": "a", "around_message_id": 7, "query": "x"}), scroll(7, 5)),
            (json!({"session_id": "a", "around_message_id": "#7", "window": "99"}), scroll(7, 20)),
            (json!({"session_id": "a", "around_message_id": 7.0, "window": 0}), scroll(7, 0)),
            (json!({"query": "x"}), Shape::Discover(Discover::new("x"))),
            (json!({"query": "x", "limit": "many", "sort": "best", "window": [], "unknown": 1}), {
                Shape::Discover(Discover::new("x"))
            }),
        ] {
            assert_eq!(read(&arguments).unwrap(), shape, "{arguments}");
        }
        let most = discover(json!({"query": "x", "limit": 1e9, "sort": "oldest", "role_filter": "tool, user"}));
        assert_eq!((most.limit, most.order), (Discover::MOST, RecallOrder::Oldest));
        assert_eq!(most.roles, [Role::Tool, Role::User]);
    }

    #[test]
    fn a_filter_that_cannot_be_read_is_an_error() {
        for (arguments, part) in [
            (json!({"query": "x", "role_filter": "user,system"}), "`role_filter` must list"),
            (json!({"query": "x", "since": "yesterday"}), "`since` must be a date"),
            (json!({"query": "x", "until": "2026-13-01"}), "`until` must be a date"),
            (json!({"session_id": "a", "around_message_id": "last"}), "`around_message_id` must be"),
        ] {
            assert!(read(&arguments).unwrap_err().starts_with(part), "{arguments}");
        }
    }

    #[test]
    fn times_are_dates_times_or_ages() {
        let time = |text: &str| text.parse::<Timestamp>().unwrap().as_millisecond().unsigned_abs();
        for (since, expected) in [
            ("2026-03-01", "2026-03-01T00:00:00Z"),
            ("2026-03-01T18:30", "2026-03-01T18:30:00Z"),
            ("2026-03-01T18:30:00+02:00", "2026-03-01T16:30:00Z"),
            ("7d", "2026-03-03T12:00:00Z"),
            ("12h", "2026-03-10T00:00:00Z"),
        ] {
            assert_eq!(discover(json!({"query": "x", "since": since})).since, Some(time(expected)), "{since}");
        }
        let until = discover(json!({"query": "x", "until": "2026-03-01"})).until;
        assert_eq!(until, Some(time("2026-03-02T00:00:00Z")));
    }
}
