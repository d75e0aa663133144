//! The host's tool `session_search`: what was said in earlier conversations.
//!
//! The arguments decide what a call does: a query finds messages, a session is read, a message in it shows what was said around
//! it, and without arguments the newest conversations are listed. The store finds and ranks; this module decides what an answer
//! shows, within a limit of bytes. Stored text may come from anybody, so an answer quotes it, and leaves out what looks like
//! injected instructions.

mod answer;
mod arguments;
mod assistant;
mod discovery;
mod text;

use std::collections::HashMap;
use std::sync::Arc;

use hermes_conversation::{Message, MessageId, Origin, SessionId, ToolSchema, one_line_within};
use hermes_diagnostic::Notice;
use hermes_session_store::{Session, SessionError, SessionStore, SessionSummary, StoreError};
use serde_json::json;

pub use answer::Answer;
pub use arguments::Discover;
pub use assistant::Assistant;
pub use discovery::{Conversation, Discovery};

use crate::clock::Clock;
use crate::compaction::notify::Notify;
use answer::Writer;
use arguments::Shape;
use discovery::MACHINES;
use text::{Quoter, within};

/// The tool's name.
pub(crate) const NAME: &str = "session_search";
/// A longer conversation is shown without its middle: its first and its last messages.
const FIRST: usize = 20;
const LAST: usize = 10;
/// Conversations that are listed before machines' are left out.
const LISTED: u64 = 200;
/// The most bytes of a conversation's name.
const NAME_BYTES: usize = 100;

/// Searches earlier conversations for a session.
pub struct SessionSearch {
    store: Arc<dyn SessionStore>,
    /// The session that asks. Its own conversation is left out.
    asking: Option<SessionId>,
    clock: Clock,
    notify: Notify,
    /// A model that helps, if the user wants it.
    assistant: Option<Assistant>,
}

impl SessionSearch {
    /// Searches all conversations but the one of `asking`.
    pub fn new(store: Arc<dyn SessionStore>, asking: Option<SessionId>, clock: Clock, notify: Notify) -> Self {
        Self { store, asking, clock, notify, assistant: None }
    }

    /// Lets a model help with the tool's searches.
    #[must_use]
    pub fn with_assistant(mut self, assistant: Assistant) -> Self {
        self.assistant = Some(assistant);
        self
    }

    /// The tool's schema. It never changes while a session runs.
    pub(crate) fn schema() -> ToolSchema {
        let number = |description: &str| json!({"type": "integer", "description": description});
        let text = |description: &str| json!({"type": "string", "description": description});
        let parameters = json!({"type": "object", "properties": {
            "query": text("Words, of which any may match. Also \"a phrase\", a OR b, NOT c, begin*."),
            "session_id": {"type": "string"},
            "around_message_id": number("With session_id: what was said around this message."),
            "window": number("Messages on each side, 0 to 20; default 5. 0 shows more of the one."),
            "limit": number("1 to 40; default 10."),
            "sort": {"type": "string", "enum": ["rank", "newest", "oldest"]},
            "role_filter": text("Of user,assistant,tool; default user,assistant."),
            "source": text("A front end, such as cli."),
            "since": text("A date, time or age: 2026-01-31, 2026-01-31T18:00, 7d."),
            "until": {"type": "string"},
        }});
        ToolSchema {
            name: NAME.to_owned(),
            description:
                "Earlier conversations. With query: the best matching messages and what was said around them. With \
                          session_id: that conversation. With nothing: the newest ones."
                    .to_owned(),
            parameters: parameters.to_string(),
        }
    }

    /// Runs the tool with its arguments, a JSON object.
    ///
    /// # Errors
    ///
    /// The text for the model, when the arguments name nothing that exists or the store cannot be read.
    pub async fn call(&self, arguments: &str) -> Result<Answer, String> {
        let shape = Shape::read(arguments, &self.clock.local())?;
        match shape {
            Shape::Discover(wanted) => match &self.assistant {
                None => Ok(self.answer(&self.discover(&wanted).await.map_err(unread)?, &wanted)),
                Some(assistant) => self.assisted(assistant, &wanted).await.map_err(unread),
            },
            Shape::Read { session } => self.read(&session).await,
            Shape::Scroll { session, message, window } => self.scroll(&session, message, window).await,
            Shape::Browse { limit } => self.browse(0, limit).await.map_err(unread),
        }
    }

    /// Finds messages in other conversations.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub async fn discover(&self, wanted: &Discover) -> Result<Discovery, StoreError> {
        discovery::discover(self.store.as_ref(), self.asking.as_ref(), wanted, "").await
    }

    /// Finds messages with the help of a model, and shows its summaries in the place of what was said around them.
    async fn assisted(&self, assistant: &Assistant, wanted: &Discover) -> Result<Answer, StoreError> {
        let store = self.store.as_ref();
        let words = assistant.other_words(&wanted.query).await.unwrap_or_else(|why| {
            (self.notify)(Notice::from(format!("`{NAME}` searched the words of the query only: {why}")));
            String::new()
        });
        let found = discovery::discover(store, self.asking.as_ref(), wanted, &words).await?;
        let (summaries, missing) = assistant.summaries(store, &wanted.query, &found).await;
        if let Some(why) = missing {
            let what =
                if summaries.is_empty() { "shows excerpts only" } else { "shows some excerpts without a summary" };
            (self.notify)(Notice::from(format!("`{NAME}` {what}: {why}")));
        }
        Ok(self.summarised(&found, wanted, &summaries))
    }

    /// The text that a model gets for what was found.
    pub fn answer(&self, found: &Discovery, wanted: &Discover) -> Answer {
        self.summarised(found, wanted, &HashMap::new())
    }

    fn summarised(&self, found: &Discovery, wanted: &Discover, summaries: &HashMap<SessionId, String>) -> Answer {
        if found.conversations.is_empty() {
            return answer::nothing(&wanted.query, self.asking.as_ref());
        }
        self.write(|writer| writer.discovery(found, wanted.limit, summaries))
    }

    async fn read(&self, named: &str) -> Result<Answer, String> {
        let (session, messages) = self.opened(named).await?;
        let count = messages.len();
        if count <= FIRST + LAST {
            return Ok(self.write(|writer| writer.messages(&session, &messages, None, None, (0, 0))));
        }
        let ends = [&messages[..FIRST], &messages[count - LAST..]].concat();
        let gap = Some((FIRST, count - FIRST - LAST));
        Ok(self.write(|writer| writer.messages(&session, &ends, None, gap, (0, 0))))
    }

    async fn scroll(&self, named: &str, around: MessageId, window: usize) -> Result<Answer, String> {
        let (session, messages) = self.opened(named).await?;
        let Some(at) = messages.iter().position(|message| message.id == around) else {
            return Err(format!(
                "message {around} is not in session {}; take both numbers from the same place of a result",
                session.id
            ));
        };
        let (first, last) = (at.saturating_sub(window), (at + window + 1).min(messages.len()));
        let outside = (first, messages.len() - last);
        Ok(self.write(|writer| writer.messages(&session, &messages[first..last], Some(around), None, outside)))
    }

    /// The messages of a conversation behind this one, or from its beginning, and how many follow them.
    ///
    /// # Errors
    ///
    /// The text for the model, when there is no such conversation or the store cannot be read.
    pub async fn page(&self, named: &str, behind: Option<MessageId>, most: usize) -> Result<(Answer, usize), String> {
        let (session, messages) = self.opened(named).await?;
        let first = messages.partition_point(|message| behind.is_some_and(|behind| message.id <= behind));
        let last = (first + most).min(messages.len());
        let outside = (first, messages.len() - last);
        let answer = self.write(|writer| writer.messages(&session, &messages[first..last], None, None, outside));
        Ok((answer, messages.len() - last))
    }

    /// The newest conversations behind the first `skip`.
    ///
    /// # Errors
    ///
    /// The text for the model, when the store cannot be read.
    pub async fn newest(&self, skip: usize, most: usize) -> Result<Answer, String> {
        self.browse(skip, most).await.map_err(unread)
    }

    /// The ids of the newest conversations, with a title or the beginning of their first message.
    ///
    /// # Errors
    ///
    /// The text for the model, when the store cannot be read.
    pub async fn names(&self, most: usize) -> Result<Vec<(SessionId, String)>, String> {
        let listed = self.listed(0, most).await.map_err(unread)?;
        let mut quoter = Quoter::default();
        let name = |session: SessionSummary| {
            let words = session.title.as_deref().unwrap_or(&session.preview);
            let words = within(&quoter.line(words), 0, NAME_BYTES);
            (session.id, words)
        };
        Ok(listed.into_iter().map(name).collect())
    }

    /// A session of another conversation with its messages, by its id or title.
    async fn opened(&self, named: &str) -> Result<(Session, Vec<Message>), String> {
        let id = SessionId(named.to_owned());
        let session = match self.store.session(&id).await {
            Err(StoreError::Session(SessionError::UnknownSession(_))) => {
                let unknown = || {
                    format!(
                        "there is no session {:?}; a search with `query`, or a call without arguments, shows the ids",
                        one_line_within(named, 60)
                    )
                };
                let id = self.store.titled(named).await.map_err(unread)?.ok_or_else(unknown)?;
                self.store.session(&id).await.map_err(unread)?
            }
            found => found.map_err(unread)?,
        };
        if let Some(asking) = &self.asking {
            let origin = self.store.origin(asking).await.map_err(unread)?;
            if self.store.origin(&session.id).await.map_err(unread)? == origin {
                return Err(format!("session {} belongs to this conversation, which you are in", session.id));
            }
        }
        let mut messages = self.store.conversation(&session.id).await.map_err(unread)?;
        messages.retain(|message| message.origin == Origin::Said);
        Ok((session, messages))
    }

    async fn browse(&self, skip: usize, limit: usize) -> Result<Answer, StoreError> {
        let listed = self.listed(skip, limit).await?;
        if listed.is_empty() {
            let others = if skip > 0 {
                "There are no further earlier conversations."
            } else {
                "There are no earlier conversations."
            };
            return Ok(Answer { text: others.to_owned(), shown: Vec::new() });
        }
        Ok(self.write(|writer| writer.conversations(&listed)))
    }

    /// The newest conversations of people, without the one that asks.
    async fn listed(&self, skip: usize, limit: usize) -> Result<Vec<SessionSummary>, StoreError> {
        let own = match &self.asking {
            Some(asking) => Some(self.store.origin(asking).await?),
            None => None,
        };
        let mut listed = Vec::new();
        for session in self.store.conversations(Some(LISTED)).await? {
            if session.message_count == 0 || MACHINES.contains(&session.source.as_str()) {
                continue;
            }
            if own.is_some() && own == Some(self.store.origin(&session.id).await?) {
                continue;
            }
            listed.push(session);
            if listed.len() == skip + limit {
                break;
            }
        }
        Ok(listed.into_iter().skip(skip).collect())
    }

    /// Writes an answer, and tells the user if suspicious text was left out of it.
    fn write(&self, write: impl FnOnce(&mut Writer<'_>) -> Answer) -> Answer {
        let mut quoter = Quoter::default();
        let zone = self.clock.local().time_zone().clone();
        let answer = write(&mut Writer { quoter: &mut quoter, zone });
        if quoter.suspicious > 0 {
            let rules: Vec<String> = quoter.rules.into_iter().collect();
            let count = quoter.suspicious;
            let passages = if count == 1 { "1 passage".to_owned() } else { format!("{count} passages") };
            (self.notify)(Notice::from(format!(
                "`{NAME}`: {passages} of earlier conversations look like injected instructions ({}) and were left out",
                rules.join(", ")
            )));
        }
        answer
    }
}

/// At most this many bytes of a text that may come from anybody, indented, without suspicious passages.
pub fn quoted(text: &str, most: usize) -> String {
    Quoter::default().block(text, most)
}

fn unread(error: StoreError) -> String {
    format!("the earlier conversations cannot be read: {error}")
}
