//! What plugins say about themselves: to a log file each, and to the user where it matters; and what the user is asked.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hermes_plugin_host::services::{Level, Reporter};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};

use crate::approval::question::{Approver, Decision, Question};
use crate::event::{Event, Observer};
use crate::log_file::{LARGEST, LogFile};

/// Something for the user.
enum Said {
    Notice(String),
    Progress(String),
    Asked(Box<Asked>),
}

/// A question on its way.
struct Asked {
    question: Question,
    /// That it is being asked.
    taken: oneshot::Sender<()>,
    answer: oneshot::Sender<Decision>,
}

/// How long a question may lie before somebody takes it: between two steps of a turn nobody does for a moment, and at
/// the prompt nobody ever does.
const UNHEARD: Duration = Duration::from_secs(1);

/// The receiving end, and what was said already.
pub(crate) struct Ear {
    receiver: mpsc::UnboundedReceiver<Said>,
    told: HashSet<String>,
    /// Who asks the user; none where nobody can be asked.
    approver: Option<Arc<dyn Approver>>,
}

/// Makes reporters for plugins.
#[derive(Clone)]
pub(crate) struct Voice {
    folder: PathBuf,
    session: String,
    sender: mpsc::UnboundedSender<Said>,
}

/// A pair: what plugins speak into, and what the loop hears.
pub(crate) fn channel(home: &Path, session: &str, approver: Option<Arc<dyn Approver>>) -> (Voice, Ear) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let voice = Voice { folder: home.join("logs"), session: session.to_owned(), sender };
    (voice, Ear { receiver, told: HashSet::new(), approver })
}

impl Voice {
    pub(crate) fn for_plugin(&self, plugin: &str) -> Arc<dyn Reporter> {
        Arc::new(PluginLog {
            plugin: plugin.to_owned(),
            session: self.session.clone(),
            file: Mutex::new(LogFile::new(self.folder.join(format!("{plugin}.jsonl")), LARGEST)),
            sender: self.sender.clone(),
        })
    }

    pub(crate) fn notice(&self, text: String) {
        // Nobody listens any more once the session is closed.
        let _ = self.sender.send(Said::Notice(text));
    }

    /// Puts a question to the user and waits for the answer; none where nobody takes it up.
    pub(crate) async fn ask(&self, question: Question) -> Option<Decision> {
        let ((taken, is_taken), (answer, answered)) = (oneshot::channel(), oneshot::channel());
        self.sender.send(Said::Asked(Box::new(Asked { question, taken, answer }))).ok()?;
        tokio::time::timeout(UNHEARD, is_taken).await.ok()?.ok()?;
        // A question that was taken and not answered was broken off.
        Some(answered.await.unwrap_or(Decision::Deny))
    }
}

impl Ear {
    /// Passes on what was said so far.
    pub(crate) fn drain(&mut self, observer: &mut dyn Observer) {
        while let Ok(said) = self.receiver.try_recv() {
            self.pass_on(said, observer);
        }
    }

    /// From now on nobody is asked anything.
    pub(crate) fn ask_no_more(&mut self) {
        self.approver = None;
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
                Some(said) = self.receiver.recv() => match said {
                    // Meanwhile nothing else is shown, and questions behind it wait.
                    Said::Asked(asked) => self.put(*asked, observer).await,
                    said => self.pass_on(said, observer),
                },
            }
        }
    }

    async fn put(&self, asked: Asked, observer: &mut dyn Observer) {
        let Asked { question, taken, mut answer } = asked;
        let Some(approver) = &self.approver else { return };
        if taken.send(()).is_err() {
            return;
        }
        observer.event(Event::Asking);
        tokio::select! {
            biased;
            () = answer.closed() => {}
            decision = approver.ask(&question) => drop(answer.send(decision)),
        }
    }

    fn pass_on(&mut self, said: Said, observer: &mut dyn Observer) {
        match said {
            // Once is enough, or a plugin in a loop would drown the conversation.
            Said::Notice(text) => {
                if self.told.insert(text.clone()) {
                    observer.event(Event::Notice(&text));
                }
            }
            Said::Progress(text) => observer.event(Event::Progress(&text)),
            // Whoever asked hears that nobody took it up.
            Said::Asked(asked) => drop(asked),
        }
    }
}

struct PluginLog {
    plugin: String,
    session: String,
    file: Mutex<LogFile>,
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
            let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
            tracing::warn!(path = %file.path().display(), %error, "a plugin's log cannot be written");
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
        self.file.lock().unwrap_or_else(PoisonError::into_inner).append(&line)
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
