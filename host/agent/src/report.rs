//! The logs of plugins: one file for each plugin, and notices for warnings and errors.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hermes_diagnostic::{Action, Notice};
use hermes_plugin_host::services::{Level, Reporter};
use hermes_protocol::EventKind;
use serde_json::{Map, Value};

use crate::feed::Feed;
use crate::log_file::{LogFile, MAX_SIZE};

/// Sends notices to the front ends of a session, and creates the reporters of its plugins.
#[derive(Clone)]
pub(crate) struct NoticeSender {
    folder: PathBuf,
    session: String,
    feed: Feed,
    collected: Collected,
}

impl NoticeSender {
    pub(crate) fn new(home: &Path, session: &str, feed: Feed) -> Self {
        Self { folder: home.join("logs"), session: session.to_owned(), feed, collected: Collected::default() }
    }

    /// Collects the warnings of these plugins, which the user does not see meanwhile.
    pub(crate) fn collect(&self, plugins: Vec<String>) -> Collecting {
        let mut collected = self.collected.lock();
        plugins.iter().for_each(|plugin| collected.entry(plugin.clone()).or_default().is_open = true);
        drop(collected);
        Collecting { plugins, collected: self.collected.clone() }
    }

    pub(crate) fn for_plugin(&self, plugin: &str) -> Arc<dyn Reporter> {
        Arc::new(PluginLog {
            plugin: plugin.to_owned(),
            session: self.session.clone(),
            file: Mutex::new(LogFile::new(self.folder.join(format!("{plugin}.jsonl")), MAX_SIZE)),
            feed: self.feed.clone(),
            collected: self.collected.clone(),
        })
    }

    pub(crate) fn notice(&self, notice: impl Into<Notice>) {
        self.feed.notice(notice);
    }
}

/// Warnings of plugins that are not shown one by one.
#[derive(Clone, Default)]
struct Collected(Arc<Mutex<BTreeMap<String, Collection>>>);

/// The warnings of one plugin.
#[derive(Default)]
struct Collection {
    is_open: bool,
    texts: BTreeSet<String>,
}

impl Collected {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Collection>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a warning if it is to be collected. Returns whether it is among the collected ones.
    fn takes(&self, plugin: &str, text: &str) -> bool {
        let mut collected = self.lock();
        let Some(collection) = collected.get_mut(plugin) else { return false };
        if collection.is_open {
            collection.texts.insert(text.to_owned());
        }
        collection.texts.contains(text)
    }
}

/// Collects warnings until it is dropped.
pub(crate) struct Collecting {
    plugins: Vec<String>,
    collected: Collected,
}

impl Collecting {
    /// The warnings of each plugin, also those that were collected before: a plugin may say each only once.
    pub(crate) fn end(self) -> BTreeMap<String, BTreeSet<String>> {
        let collected = self.collected.lock();
        let texts = |plugin: &String| collected.get(plugin).map(|found| found.texts.clone()).unwrap_or_default();
        self.plugins.iter().map(|plugin| (plugin.clone(), texts(plugin))).collect()
    }
}

impl Drop for Collecting {
    fn drop(&mut self) {
        let mut collected = self.collected.lock();
        for plugin in &self.plugins {
            if let Some(collection) = collected.get_mut(plugin) {
                collection.is_open = false;
            }
        }
    }
}

struct PluginLog {
    plugin: String,
    session: String,
    file: Mutex<LogFile>,
    feed: Feed,
    collected: Collected,
}

impl Reporter for PluginLog {
    fn log(&self, level: Level, text: &str) {
        let is_collected = level == Level::Warn && self.collected.takes(&self.plugin, text);
        if level >= Level::Warn && !is_collected {
            let text = format!("plugin `{}`: {text}", self.plugin);
            self.feed.notice(match level {
                Level::Error => Notice::new(text, Action::ShowPlugin { plugin: self.plugin.clone() }),
                _ => Notice::from(text),
            });
        }
        if let Err(error) = self.write(level, text) {
            let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
            tracing::warn!(path = %file.path().display(), %error, "a plugin's log cannot be written");
        }
    }

    fn progress(&self, text: &str) {
        self.feed.publish(EventKind::Progress { text: format!("{}: {text}", self.plugin) });
    }

    fn notice(&self, text: &str) {
        // The user also reads what a second command was denied.
        self.feed.notice_again(text.to_owned());
    }
}

impl PluginLog {
    fn write(&self, level: Level, text: &str) -> io::Result<()> {
        let mut line = line(level, text, &self.session, &jiff::Timestamp::now().to_string());
        line.push('\n');
        self.file.lock().unwrap_or_else(PoisonError::into_inner).append(&line)
    }
}

/// Formats a log line as JSON. The fields of a text that is a JSON object are added to the line.
fn line(level: Level, text: &str, session: &str, time: &str) -> String {
    let mut fields = Map::new();
    fields.insert("time".to_owned(), time.into());
    fields.insert("level".to_owned(), level.as_str().into());
    fields.insert("session".to_owned(), session.into());
    match serde_json::from_str(text) {
        Ok(Value::Object(own)) => {
            for (key, value) in own {
                // A plugin cannot overwrite the host's fields.
                fields.entry(key).or_insert(value);
            }
        }
        _ => drop(fields.insert("text".to_owned(), text.into())),
    }
    Value::Object(fields).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feed::FeedLimits;

    #[test]
    fn every_line_is_logged_and_warnings_are_notices_with_the_plugins_name() {
        let home = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
        let feed = Feed::new(FeedLimits::SHARED);
        let mut events = feed.subscribe(None);
        let log = NoticeSender::new(home.path(), "s", feed.clone()).for_plugin("mine");
        for level in [Level::Trace, Level::Debug, Level::Info, Level::Warn, Level::Error, Level::Warn] {
            log.log(level, level.as_str());
        }
        let file = std::fs::read_to_string(home.path().join("logs/mine.jsonl")).unwrap_or_default();
        let levels: Vec<Value> = file.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let levels: Vec<&str> = levels.iter().filter_map(|line| line["level"].as_str()).collect();
        assert_eq!(levels, ["trace", "debug", "info", "warn", "error", "warn"]);
        // The user sees the same warning once.
        let notices: Vec<String> = events.notices().iter().map(ToString::to_string).collect();
        assert_eq!(notices.len(), 2, "{notices:?}");
        assert!(
            notices[0].contains("plugin `mine`: warn") && notices[1].contains("plugin `mine`: error"),
            "{notices:?}"
        );
    }

    #[test]
    fn collected_warnings_are_logged_and_not_shown() {
        let home = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
        let feed = Feed::new(FeedLimits::SHARED);
        let mut events = feed.subscribe(None);
        let sender = NoticeSender::new(home.path(), "s", feed.clone());
        let (mine, other) = (sender.for_plugin("mine"), sender.for_plugin("other"));
        let texts = |collecting: Collecting| collecting.end().remove("mine").unwrap_or_default();
        let collecting = sender.collect(vec!["mine".to_owned()]);
        mine.log(Level::Warn, "collected");
        mine.log(Level::Error, "an error");
        other.log(Level::Warn, "of another");
        assert_eq!(texts(collecting), BTreeSet::from(["collected".to_owned()]));
        mine.log(Level::Warn, "collected");
        mine.log(Level::Warn, "later");
        assert_eq!(texts(sender.collect(vec!["mine".to_owned()])), BTreeSet::from(["collected".to_owned()]));
        let notices: Vec<String> = events.notices().into_iter().map(|notice| notice.text).collect();
        assert_eq!(notices, ["plugin `mine`: an error", "plugin `other`: of another", "plugin `mine`: later"]);
        let file = std::fs::read_to_string(home.path().join("logs/mine.jsonl")).unwrap_or_default();
        assert_eq!(file.matches("collected").count(), 2, "{file}");
    }

    #[tokio::test]
    async fn progress_is_shown_with_the_plugins_name() {
        let feed = Feed::new(FeedLimits::SHARED);
        let mut events = feed.subscribe(None);
        NoticeSender::new(Path::new("/nowhere"), "s", feed.clone()).for_plugin("mine").progress("halfway");
        while let Some(event) = events.try_next() {
            if let EventKind::Progress { text } = &event.kind {
                assert_eq!(text, "mine: halfway");
                return;
            }
        }
        panic!("no progress");
    }

    #[test]
    fn what_the_host_says_about_a_program_is_a_notice_each_time() {
        let feed = Feed::new(FeedLimits::SHARED);
        let mut events = feed.subscribe(None);
        let log = NoticeSender::new(Path::new("/nowhere"), "s", feed.clone()).for_plugin("mine");
        let mut seen = 0;
        for _ in 0..2 {
            log.notice("sandbox: a write was denied");
        }
        while let Some(event) = events.try_next() {
            seen += usize::from(
                matches!(&event.kind, EventKind::Notice { text, .. } if text == "sandbox: a write was denied"),
            );
        }
        assert_eq!(seen, 2);
    }

    #[test]
    fn an_object_adds_its_fields_and_cannot_overwrite_the_hosts_fields() {
        let text = r#"{"event":"tool","session":"forged"}"#;
        assert_eq!(
            line(Level::Info, text, "s1", "now"),
            r#"{"time":"now","level":"info","session":"s1","event":"tool"}"#
        );
        assert_eq!(
            line(Level::Warn, "a\nb", "s1", "now"),
            r#"{"time":"now","level":"warn","session":"s1","text":"a\nb"}"#
        );
    }
}
