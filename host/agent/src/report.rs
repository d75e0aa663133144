//! The logs of plugins: one file for each plugin, and notices for warnings and errors.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use hermes_diagnostic::{Action, Notice};
use hermes_plugin_host::services::{Level, Reporter};
use serde_json::{Map, Value};

use crate::event::EventKind;
use crate::feed::Feed;
use crate::log_file::{LogFile, MAX_SIZE};

/// Sends notices to the front ends of a session, and creates the reporters of its plugins.
#[derive(Clone)]
pub(crate) struct NoticeSender {
    folder: PathBuf,
    session: String,
    feed: Feed,
}

impl NoticeSender {
    pub(crate) fn new(home: &Path, session: &str, feed: Feed) -> Self {
        Self { folder: home.join("logs"), session: session.to_owned(), feed }
    }

    pub(crate) fn for_plugin(&self, plugin: &str) -> Arc<dyn Reporter> {
        Arc::new(PluginLog {
            plugin: plugin.to_owned(),
            session: self.session.clone(),
            file: Mutex::new(LogFile::new(self.folder.join(format!("{plugin}.jsonl")), MAX_SIZE)),
            feed: self.feed.clone(),
        })
    }

    pub(crate) fn notice(&self, notice: impl Into<Notice>) {
        self.feed.notice(notice);
    }
}

struct PluginLog {
    plugin: String,
    session: String,
    file: Mutex<LogFile>,
    feed: Feed,
}

impl Reporter for PluginLog {
    fn log(&self, level: Level, text: &str) {
        if level >= Level::Warn {
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
