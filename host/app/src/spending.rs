//! What requests used and cost, summed up by day, session, model and plugin.

use std::collections::{BTreeMap, HashMap};

use hermes_conversation::SessionId;
use hermes_session_store::SessionStore;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, Zoned};

use crate::AppError;

pub use hermes_session_store::UsageRow;

/// What requests are summed up by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The day on which they were sent, in the user's time zone.
    Day,
    /// The session; of a delegated task, the session that delegated it.
    Session,
    /// The model that answered.
    Model,
    /// Who asked.
    Asker,
}

/// Who asked a model.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Asker {
    /// The conversation itself.
    Conversation,
    /// The conversations of subagents.
    Subagents,
    /// A plugin, for a task.
    Plugin(String),
}

impl Asker {
    /// Who made a request.
    pub fn of(row: &UsageRow) -> Self {
        match (&row.plugin, &row.delegated_by) {
            (Some(plugin), _) => Self::Plugin(plugin.clone()),
            (None, Some(_)) => Self::Subagents,
            (None, None) => Self::Conversation,
        }
    }
}

/// What the requests of a group have in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// A day, as in `2026-01-31`.
    Day(String),
    /// A session.
    Session(SessionId),
    /// A provider and its model, with a slash between them.
    Model(String),
    /// Who asked.
    Asker(Asker),
}

/// Some requests.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// What they have in common.
    pub key: Key,
    /// The title of the session, if that is the key and it has one.
    pub title: Option<String>,
    /// What they used.
    pub sum: Sum,
}

/// What some requests used.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sum {
    /// How many.
    pub requests: u64,
    /// Requests without a report of the provider.
    pub unreported: u64,
    /// Requests with a report and without a price.
    pub unpriced: u64,
    /// Tokens of the prompts.
    pub input: u64,
    /// Tokens of the input that came from a cache.
    pub cached: u64,
    /// Tokens of the input that were written to a cache.
    pub written: u64,
    /// Tokens of the replies.
    pub output: u64,
    /// US dollars, of the requests with a price.
    pub cost: f64,
    priced: u64,
}

impl Sum {
    fn add(&mut self, row: &UsageRow) {
        self.requests += 1;
        let Some(usage) = row.usage else {
            self.unreported += 1;
            return;
        };
        self.input += u64::from(usage.input);
        self.cached += u64::from(usage.cache_read);
        self.written += u64::from(usage.cache_write);
        self.output += u64::from(usage.output);
        match row.cost {
            Some(cost) => {
                self.cost += cost;
                self.priced += 1;
            }
            None => self.unpriced += 1,
        }
    }

    /// Tokens of prompts and replies.
    pub fn tokens(&self) -> u64 {
        self.input + self.output
    }

    /// US dollars, if any request has a price.
    pub fn known_cost(&self) -> Option<f64> {
        (self.priced > 0).then_some(self.cost)
    }

    /// US dollars, if every request has a price that is known.
    pub fn whole_cost(&self) -> Option<f64> {
        (self.unpriced == 0).then_some(self.cost)
    }

    /// For sorting: by cost, then by tokens. The tokens are scaled down so far that they only decide between equal costs.
    fn weight(&self) -> f64 {
        self.cost + self.tokens() as f64 / 1e15
    }
}

impl<'a> FromIterator<&'a UsageRow> for Sum {
    fn from_iter<T: IntoIterator<Item = &'a UsageRow>>(rows: T) -> Self {
        let mut sum = Self::default();
        rows.into_iter().for_each(|row| sum.add(row));
        sum
    }
}

/// The sums of groups, in the order of their keys.
pub fn sums<K: Ord>(rows: &[UsageRow], key: impl Fn(&UsageRow) -> K) -> BTreeMap<K, Sum> {
    let mut sums: BTreeMap<K, Sum> = BTreeMap::new();
    for row in rows {
        sums.entry(key(row)).or_default().add(row);
    }
    sums
}

/// The model that answered a request, with its provider.
pub fn model(row: &UsageRow) -> String {
    format!("{}/{}", row.provider, row.model)
}

/// The groups of requests: days in their order, anything else by its cost. `titles` are those of sessions.
pub fn groups(rows: &[UsageRow], by: By, titles: &HashMap<SessionId, String>) -> Vec<Group> {
    let sums = sums(rows, |row| match by {
        By::Day => Key::Day(day(row.sent_at)),
        By::Session => Key::Session(row.delegated_by.as_ref().unwrap_or(&row.session).clone()),
        By::Model => Key::Model(model(row)),
        By::Asker => Key::Asker(Asker::of(row)),
    });
    let title = |key: &Key| match key {
        Key::Session(session) => titles.get(session).cloned(),
        Key::Day(_) | Key::Model(_) | Key::Asker(_) => None,
    };
    let mut groups: Vec<Group> = sums.into_iter().map(|(key, sum)| Group { title: title(&key), key, sum }).collect();
    if by != By::Day {
        groups.sort_by(|left, right| right.sum.weight().total_cmp(&left.sum.weight()));
    }
    groups
}

/// The titles of all sessions that have one.
///
/// # Errors
///
/// When the store cannot be read.
pub async fn titles(store: &dyn SessionStore) -> Result<HashMap<SessionId, String>, AppError> {
    let sessions = store.sessions().await?;
    Ok(sessions.into_iter().filter_map(|session| Some((session.id, session.title?))).collect())
}

/// When the last `days` days began, today included, in Unix milliseconds; 0 for all days.
pub fn first_moment(days: u32, now: &Zoned) -> u64 {
    let Some(back) = days.checked_sub(1) else { return 0 };
    let day = now.date().checked_sub(Span::new().days(i64::from(back.min(36_500)))).unwrap_or(jiff::civil::Date::MIN);
    let begun = day.to_zoned(now.time_zone().clone()).map(|begun| begun.timestamp().as_millisecond());
    begun.ok().and_then(|moment| u64::try_from(moment).ok()).unwrap_or(0)
}

/// The day of a moment in the user's time zone.
fn day(sent_at: u64) -> String {
    let time = i64::try_from(sent_at).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok()).unwrap_or_default();
    time.to_zoned(TimeZone::system()).strftime("%Y-%m-%d").to_string()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_conversation::Usage;

    use super::*;

    fn row(session: &str, plugin: Option<&str>, model: &str, input: u32, cost: Option<f64>) -> UsageRow {
        UsageRow {
            session: SessionId(session.into()),
            delegated_by: None,
            plugin: plugin.map(str::to_owned),
            task: plugin.map(|_| "compression".to_owned()),
            sent_at: 0,
            provider: "p".into(),
            model: model.into(),
            usage: (input > 0).then(|| Usage { input, output: 10, cache_read: input / 2, ..Usage::default() }),
            cost,
        }
    }

    fn rows() -> Vec<UsageRow> {
        vec![
            row("a", None, "large", 1_000, Some(0.5)),
            row("a", Some("compressor"), "small", 2_000, Some(0.1)),
            row("b", None, "large", 3_000, Some(1.5)),
            row("b", None, "free", 4_000, None),
            row("b", None, "large", 0, None),
        ]
    }

    fn session(id: &str) -> Key {
        Key::Session(SessionId(id.into()))
    }

    #[test]
    fn requests_are_summed_up_by_session_model_and_asker() {
        let keys = |by| groups(&rows(), by, &HashMap::new()).into_iter().map(|group| group.key).collect::<Vec<_>>();
        assert_eq!(keys(By::Session), [session("b"), session("a")]);
        assert_eq!(keys(By::Model), ["p/large", "p/small", "p/free"].map(|model| Key::Model(model.to_owned())));
        let plugin = Asker::Plugin("compressor".to_owned());
        assert_eq!(keys(By::Asker), [Key::Asker(Asker::Conversation), Key::Asker(plugin)]);
        let by_model = groups(&rows(), By::Model, &HashMap::new());
        let large = &by_model[0].sum;
        assert_eq!(
            (large.requests, large.input, large.cached, large.unreported, large.unpriced),
            (3, 4_000, 2_000, 1, 0)
        );
        assert_eq!((large.known_cost(), by_model[2].sum.known_cost()), (Some(2.0), None));
    }

    #[test]
    fn requests_of_subagents_count_for_the_session_that_delegated() {
        let by = Some(SessionId("a".into()));
        let mut rows = rows();
        rows.extend([None, Some("compressor")].map(|plugin| {
            let row = row("child", plugin, "large", 100, Some(5.0));
            UsageRow { delegated_by: by.clone(), ..row }
        }));
        let of = |by: By| {
            let groups = groups(&rows, by, &HashMap::new()).into_iter();
            groups.map(|group| (group.key, group.sum.cost)).collect::<Vec<_>>()
        };
        assert_eq!(of(By::Session), [(session("a"), 10.6), (session("b"), 1.5)]);
        let plugin = Asker::Plugin("compressor".to_owned());
        let askers = [(plugin, 5.1), (Asker::Subagents, 5.0), (Asker::Conversation, 2.0)];
        assert_eq!(of(By::Asker), askers.map(|(asker, cost)| (Key::Asker(asker), cost)));
    }

    #[test]
    fn the_first_day_begins_at_midnight() {
        let now: Zoned = "2026-03-02T13:00:00+01:00[Europe/Berlin]".parse().unwrap();
        let begun = |days| first_moment(days, &now);
        let at = |text: &str| u64::try_from(text.parse::<Timestamp>().unwrap().as_millisecond()).unwrap();
        assert_eq!(begun(0), 0);
        assert_eq!(begun(1), at("2026-03-01T23:00:00Z"));
        assert_eq!(begun(3), at("2026-02-27T23:00:00Z"));
        assert_eq!(begun(u32::MAX), 0);
    }
}
