//! The commands of a chat about conversations as a whole: title, copy, export, and another conversation.

use std::io;
use std::path::{Path, PathBuf};

use hermes_app::sessions::{SessionError, SessionSummary, StoreError};
use hermes_app::{AppError, Beginning, Desk, Opened, SessionRequest};
use hermes_config::most_similar;
use hermes_protocol::{Command, Part, Role, SessionId};
use hermes_terminal::{Candidate, NotCopied, Picker};

use super::Chat;
use crate::console::{Console, Tone};
use crate::failure::Failure;
use crate::live::Live;
use crate::moments;
use crate::sessions::{failed, transfer};
use crate::table::{Align, Table};
use crate::{imported, text};

/// The most conversations to choose from.
const MOST_LISTED: u64 = 500;
/// The most that are printed where none can be chosen.
const MOST_PRINTED: usize = 20;

impl Chat {
    /// Removes the last turn and sends its message again. A message that was never stored is only sent again.
    pub(super) async fn retry(&mut self) {
        if let Some(text) = self.unsent.clone() {
            self.screen.said(&text);
            return self.turn(&text).await;
        }
        let Some(last) = self.message_of_user(1, "send again").await else { return };
        if let Err(error) = self.front.send(Command::Rewind { to: last.id }, &mut self.screen).await {
            return self.fail(&error.into());
        }
        self.screen.said(&last.told());
        let attached = last.parts.iter().filter(|part| !matches!(part, Part::Text { .. })).cloned().collect();
        self.turn_with(&last.content, attached).await;
    }

    /// Hands the last reply to the clipboard of the terminal.
    pub(super) async fn copy(&mut self) {
        if !self.at_terminal || !self.console.screen || self.console.is_dumb() {
            self.console
                .warning("nothing was copied: only a terminal that is not dumb has a clipboard; /export writes a file");
            return;
        }
        let Some(messages) = self.messages("copy").await else { return };
        let replies = messages.iter().filter(|message| message.role == Role::Assistant);
        let Some(reply) = replies.rev().find(|message| !message.content.trim().is_empty()) else {
            self.console.warning("the model has not replied yet, so there is nothing to copy");
            return;
        };
        let reply = reply.content.trim();
        let copied = match &self.live {
            Some(live) => live.copy(reply),
            None => hermes_terminal::copy(reply, &mut io::stdout()),
        };
        match copied {
            Ok(()) => {
                let characters = text::counted(reply.chars().count() as u64, "character");
                let tmux = match std::env::var_os("TMUX") {
                    Some(_) => "; tmux passes it on with `set -g set-clipboard on`",
                    None => ", if your terminal takes it (OSC 52)",
                };
                self.screen.line(Tone::Faint, &format!("copied the last reply, {characters}{tmux}"));
            }
            Err(NotCopied::TooLong { bytes, most }) => {
                let (bytes, most) = (text::bytes(bytes as u64), text::bytes(most as u64));
                self.console.warning(&format!(
                    "nothing was copied: the reply has {bytes}, and terminals take at most {most}; /export writes a file"
                ));
            }
            Err(NotCopied::Unwritable(error)) => self.console.warning(&format!("nothing was copied: {error}")),
        }
    }

    /// Shows the title, or sets another one.
    pub(super) async fn title(&mut self, title: Option<String>) {
        let Some(session) = self.front.session().session() else {
            self.console.warning("the conversation is empty; it can have a title after its first message");
            return;
        };
        let is_new = title.is_some();
        let found = async {
            let store = self.desk.store(None)?;
            match title {
                Some(title) => store.set_title(&session, &title).await.map_err(failed),
                None => Ok(store.session(&session).await?.title),
            }
        };
        let found = found.await;
        let Some(title) = self.done(found) else { return };
        let line = match (title, is_new) {
            (Some(title), true) => format!("this conversation has the title `{}` now", text::title(&title)),
            (Some(title), false) => format!("title: {}", text::title(&title)),
            (None, _) => "this conversation has no title; /title TEXT gives it one".to_owned(),
        };
        self.screen.line(Tone::Faint, &line);
    }

    /// Writes the conversation to a new file.
    pub(super) async fn export(&mut self, file: Option<String>) {
        let Some(session) = self.front.session().session() else {
            self.console.warning("the conversation is empty, so there is nothing to export");
            return;
        };
        let path = match &file {
            Some(file) => in_home(file),
            None => PathBuf::from(format!("hermes-{session}.jsonl")),
        };
        let exported = async { transfer::export_one(&*self.desk.store(None)?, &session, &path).await };
        let exported = exported.await;
        if let Some(exported) = self.done(exported) {
            let path = text::exact(&path.display().to_string());
            self.screen.line(Tone::Faint, &format!("{exported} to {path}"));
        }
    }

    /// Continues another conversation.
    pub(super) async fn resume(&mut self, name: String) {
        let request = self.request.beginning(Beginning::Resume { id: name, branch: false });
        let found = found(&self.desk, &request).await;
        let Some(id) = self.done(found) else { return };
        if self.front.session().session() == id {
            self.screen.line(Tone::Faint, "this is the conversation that you are in");
            return;
        }
        let (person, live) = (self.person.as_ref(), self.live.as_ref());
        let request = match imported::consent(&self.desk, request, None, person, live).await {
            Ok(request) => request,
            Err(failure) => return self.fail(&failure),
        };
        // The present conversation goes on if the other one cannot be opened.
        match self.desk.session(&request).await {
            Ok(Opened { session, .. }) => {
                let before = self.session_with_messages().await;
                self.follow(session).await;
                self.unsent = None;
                let back = before.map(|before| format!("; `/resume {before}` leads back")).unwrap_or_default();
                self.show_session(&back).await;
            }
            Err(error) => self.fail(&error.into()),
        }
    }

    /// Continues a conversation that the user chooses.
    pub(super) async fn choose_session(&mut self) {
        let present = self.front.session().session();
        let listed = resumable(&self.desk, present.as_ref()).await;
        let Some(listed) = self.done(listed) else { return };
        if listed.is_empty() {
            self.screen.line(Tone::Faint, "there is no other conversation yet");
            return;
        }
        let Some(live) = self.live.clone() else {
            let shown = table(&listed, self.console);
            self.screen.line(Tone::Plain, shown.trim_end());
            self.screen.line(Tone::Faint, "/resume ID continues one of them");
            return;
        };
        if let Some(id) = pick(&live, listed, &self.request.workspace).await {
            self.resume(id.to_string()).await;
        }
    }

    /// Says which conversation this is, and shows its end.
    pub(super) async fn show_session(&mut self, back: &str) {
        let Some(session) = self.front.session().session() else { return };
        let messages = self.front.session().status().await.map_or(0, |status| status.messages);
        let messages = text::counted(u64::try_from(messages).unwrap_or(u64::MAX), "message");
        let about = async { Ok(self.desk.store(None)?.session(&session).await?) };
        let about = about.await;
        let about = self.done(about);
        let title = about.as_ref().and_then(|about| about.title.as_deref());
        let title = title.map(|title| format!(" · {}", text::title(title))).unwrap_or_default();
        self.screen.line(Tone::Faint, &format!("session {session}{title} · {messages}{back}"));
        if let Some(about) = about
            && about.workspace != self.request.workspace
        {
            let folder = text::exact(&about.workspace.display().to_string());
            self.screen.line(Tone::Faint, &format!("it works in {folder}"));
        }
        self.show_recent(session).await;
    }
}

/// The conversations that can be continued, newest first, apart from the present one.
pub(super) async fn resumable(desk: &Desk, present: Option<&SessionId>) -> Result<Vec<SessionSummary>, Failure> {
    let mut listed = desk.store(None)?.conversations(Some(MOST_LISTED)).await?;
    listed.retain(|session| Some(&session.id) != present && session.conversation_messages > 0);
    Ok(listed)
}

/// Lets the user choose one of them. Those of this folder come first; the others say their folder.
pub(super) async fn pick(live: &Live, listed: Vec<SessionSummary>, here: &Path) -> Option<SessionId> {
    let now = moments::now();
    let (own, others): (Vec<_>, Vec<_>) = listed.into_iter().partition(|session| session.workspace == here);
    let row = |session: &SessionSummary| {
        let (name, about) = described(session, now);
        match session.workspace == here {
            true => ("this folder".to_owned(), Candidate { text: text::shortened(&name, 40), about }),
            false => {
                let about = format!("{} · {about}", folder(&session.workspace));
                ("other folders".to_owned(), Candidate { text: text::shortened(&name, 40), about })
            }
        }
    };
    let rows: Vec<(String, Candidate)> = own.iter().chain(&others).map(row).collect();
    let picker = match others.is_empty() {
        true => Picker::new("Which conversation?", rows.into_iter().map(|(_, row)| row).collect(), 0),
        false => Picker::grouped("Which conversation?", rows, 0),
    };
    let at = live.pick(picker).await?;
    own.into_iter().chain(others).nth(at).map(|session| session.id)
}

/// A folder as a list shows it: below `~` where it can be, and without the beginning of a long path.
fn folder(path: &Path) -> String {
    const MOST: usize = 32;
    let below =
        std::env::home_dir().and_then(|home| path.strip_prefix(home).ok().map(|rest| Path::new("~").join(rest)));
    let shown = text::exact(&below.as_deref().unwrap_or(path).display().to_string());
    match shown.chars().count().checked_sub(MOST) {
        Some(left @ 1..) => format!("…{}", shown.chars().skip(left + 1).collect::<String>()),
        _ => shown,
    }
}

/// A conversation's title or first words, and its age.
fn described(session: &SessionSummary, now: u64) -> (String, String) {
    let imported = if session.imported { " · imported" } else { "" };
    let about = format!(
        "{} · {}{imported}",
        moments::age(session.updated_at, now),
        text::counted(session.conversation_messages, "message")
    );
    let first = text::title(&session.preview);
    match &session.title {
        Some(title) if first.is_empty() => (text::title(title), about),
        Some(title) => (text::title(title), format!("{about} · {first}")),
        None if first.is_empty() => ("(empty)".to_owned(), about),
        None => (first, about),
    }
}

fn table(listed: &[SessionSummary], console: Console) -> String {
    let now = moments::now();
    let mut table = Table::new(&[Align::Left, Align::Left]);
    for session in listed.iter().take(MOST_PRINTED) {
        let (name, about) = described(session, now);
        table.row([(Tone::Good, session.id.to_string()), (Tone::Plain, format!("{name} · {about}"))]);
    }
    let mut shown = table.text(console);
    if let Some(more) = listed.len().checked_sub(MOST_PRINTED).filter(|more| *more > 0) {
        shown.push_str(&format!("and {more} more; `hermes sessions list` shows all\n"));
    }
    shown
}

/// The session that is meant. The failure names the title that is most similar.
async fn found(desk: &Desk, request: &SessionRequest) -> Result<Option<SessionId>, Failure> {
    let error = match desk.find(request).await {
        Ok(found) => return Ok(found),
        Err(error) => error,
    };
    let is_unknown = matches!(&error, AppError::Store(StoreError::Session(SessionError::UnknownSession(_))));
    let failure = Failure::from(error);
    let Beginning::Resume { id: name, .. } = &request.begin else { return Err(failure) };
    let titles = match desk.store(None) {
        Ok(store) if is_unknown => store.conversations(None).await.unwrap_or_default(),
        _ => Vec::new(),
    };
    let near = most_similar(name, titles.into_iter().filter_map(|session| session.title));
    let fix = near.map(|near| format!("did you mean `{}`? {}", text::title(&near), failure.fix));
    Err(Failure { fix: fix.unwrap_or_else(|| failure.fix.clone()), ..failure })
}

/// A path that may begin with `~/`, which no shell has replaced.
fn in_home(file: &str) -> PathBuf {
    match (file.strip_prefix("~/"), std::env::home_dir()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => Path::new(file).to_owned(),
    }
}
