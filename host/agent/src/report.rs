//! What plugins say about themselves: to a log file each, and to the user where it matters.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use hermes_plugins::services::{Level, Reporter};
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use crate::event::{Event, Observer};

/// Something for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    Notice(String),
    Progress(String),
}

/// The receiving end, and what was said already.
pub(crate) struct Ear {
    receiver: mpsc::UnboundedReceiver<Said>,
    told: HashSet<String>,
}

/// Makes reporters for plugins.
#[derive(Clone)]
pub(crate) struct Voice {
    folder: PathBuf,
    session: String,
    sender: mpsc::UnboundedSender<Said>,
}

/// A pair: what plugins speak into, and what the loop hears.
pub(crate) fn channel(home: &Path, session: &str) -> (Voice, Ear) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let voice = Voice { folder: home.join("logs"), session: session.to_owned(), sender };
    (voice, Ear { receiver, told: HashSet::new() })
}

impl Voice {
    pub(crate) fn for_plugin(&self, plugin: &str) -> Arc<dyn Reporter> {
        Arc::new(PluginLog {
            plugin: plugin.to_owned(),
            path: self.folder.join(format!("{plugin}.jsonl")),
            session: self.session.clone(),
            file: Mutex::new(None),
            sender: self.sender.clone(),
        })
    }

    pub(crate) fn notice(&self, text: String) {
        // Nobody listens any more once the session is closed.
        let _ = self.sender.send(Said::Notice(text));
    }
}

impl Ear {
    /// Passes on what was said so far.
    pub(crate) fn drain(&mut self, observer: &mut dyn Observer) {
        while let Ok(said) = self.receiver.try_recv() {
            self.pass_on(&said, observer);
        }
    }

    /// The notices so far, where nobody observes.
    pub(crate) fn notices(&mut self) -> Vec<String> {
        let said = std::iter::from_fn(|| self.receiver.try_recv().ok());
        said.filter_map(|said| if let Said::Notice(text) = said { Some(text) } else { None }).collect()
    }

    /// Waits for work and passes on what is said meanwhile.
    pub(crate) async fn attend<T>(&mut self, observer: &mut dyn Observer, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                Some(said) = self.receiver.recv() => self.pass_on(&said, observer),
            }
        }
    }

    fn pass_on(&mut self, said: &Said, observer: &mut dyn Observer) {
        match said {
            // Once is enough, or a plugin in a loop would drown the conversation.
            Said::Notice(text) if self.told.insert(text.clone()) => observer.event(Event::Notice(text)),
            Said::Notice(_) => {}
            Said::Progress(text) => observer.event(Event::Progress(text)),
        }
    }
}

struct PluginLog {
    plugin: String,
    path: PathBuf,
    session: String,
    file: Mutex<Option<File>>,
    sender: mpsc::UnboundedSender<Said>,
}

impl Reporter for PluginLog {
    fn log(&self, level: Level, text: &str) {
        if level >= Level::Warn {
            let _ = self.sender.send(Said::Notice(format!("plugin `{}`: {text}", self.plugin)));
        }
        if level >= Level::Info
            && let Err(error) = self.write(level, text)
        {
            tracing::warn!(path = %self.path.display(), %error, "a plugin's log cannot be written");
        }
    }

    fn progress(&self, text: &str) {
        let _ = self.sender.send(Said::Progress(format!("{}: {text}", self.plugin)));
    }
}

impl PluginLog {
    fn write(&self, level: Level, text: &str) -> io::Result<()> {
        let mut line = line(level, text, &self.session, &jiff::Timestamp::now().to_string());
        line.push('\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match &mut *file {
            Some(file) => file,
            none => none.insert(open(&self.path)?),
        };
        // One write a line: several processes append to one file.
        file.write_all(line.as_bytes())
    }
}

/// A line of JSON; a text that is a JSON object gives its fields.
fn line(level: Level, text: &str, session: &str, time: &str) -> String {
    let mut fields = Map::new();
    fields.insert("time".to_owned(), time.into());
    fields.insert("level".to_owned(), level.as_str().into());
    fields.insert("session".to_owned(), session.into());
    match serde_json::from_str(text) {
        Ok(Value::Object(own)) => {
            for (key, value) in own {
                // What the host says of the line is not the plugin's to change.
                fields.entry(key).or_insert(value);
            }
        }
        _ => drop(fields.insert("text".to_owned(), text.into())),
    }
    Value::Object(fields).to_string()
}

fn open(path: &Path) -> io::Result<File> {
    let mut folder = fs::DirBuilder::new();
    folder.recursive(true);
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
        folder.mode(0o700);
        options.mode(0o600);
    }
    if let Some(parent) = path.parent() {
        folder.create(parent)?;
    }
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_gives_its_fields_and_cannot_forge_the_hosts() {
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
