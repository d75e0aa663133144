//! Open questions of a session: an event asks each, one command answers it, and it is withdrawn when its caller ends.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermes_protocol::{CommandError, Decision, EventKind, Query, Question, QuestionEnd, QuestionId};
use tokio::sync::{oneshot, watch};

use crate::feed::Feed;

/// How long a question waits for a front end that can answer. Between two turns there may be none for a moment.
const ATTENDANCE_TIMEOUT: Duration = Duration::from_secs(1);
/// The most closed questions that are remembered with their reason.
const MAX_CLOSED: usize = 64;

/// The questions of a session. Clones share them.
#[derive(Clone)]
pub(crate) struct Questions {
    state: Arc<Mutex<State>>,
    /// The number of front ends that can answer.
    attending: Arc<watch::Sender<usize>>,
    feed: Feed,
    /// The agent of another session that asks.
    agent: Option<Arc<str>>,
    /// Held while the user is asked.
    turns: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
struct State {
    newest: u64,
    open: BTreeMap<QuestionId, Open>,
    closed: VecDeque<(QuestionId, QuestionEnd)>,
    ended: bool,
}

/// An open question with the channel for its answer.
enum Open {
    Approval(oneshot::Sender<(Decision, Option<String>)>),
    Text {
        /// The only valid answers; if empty, any text is valid.
        valid: Vec<String>,
        answer: oneshot::Sender<String>,
    },
}

/// Marks a front end as able to answer questions until it is dropped.
pub struct Attendance(Arc<watch::Sender<usize>>);

impl Drop for Attendance {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

impl Questions {
    pub(crate) fn new(feed: Feed) -> Self {
        let (state, turns) = (Arc::default(), Arc::default());
        Self { state, attending: Arc::new(watch::Sender::new(0)), feed, agent: None, turns }
    }

    /// The same questions for the agent of another session, which is named in each.
    pub(crate) fn on_behalf_of(&self, agent: &str) -> Self {
        Self { agent: Some(agent.into()), ..self.clone() }
    }

    /// Waits until no other question is asked. The user gets one at a time.
    pub(crate) async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.turns.lock().await
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn attend(&self) -> Attendance {
        self.attending.send_modify(|count| *count += 1);
        Attendance(Arc::clone(&self.attending))
    }

    /// Refuses all further questions, if they are those of the session itself.
    pub(crate) fn end(&self) {
        if self.agent.is_none() {
            self.state().ended = true;
        }
    }

    /// Whether a front end can answer now or connects soon.
    async fn is_attended(&self) -> bool {
        if self.state().ended {
            return false;
        }
        let mut attending = self.attending.subscribe();
        let attended = attending.wait_for(|count| *count > 0);
        matches!(tokio::time::timeout(ATTENDANCE_TIMEOUT, attended).await, Ok(Ok(_)))
    }

    /// Asks for an approval; `None` if no front end can answer. A refusal may say what to do instead. Dropping the future withdraws the question.
    pub(crate) async fn approval(&self, question: Question) -> Option<(Decision, Option<String>)> {
        if !self.is_attended().await {
            return None;
        }
        let (answer, answered) = oneshot::channel();
        let query = Query::Approval { question: Box::new(question), agent: self.agent.as_deref().map(str::to_owned) };
        let _asked = self.ask(query, Open::Approval(answer));
        // A question that is dropped without an answer counts as a refusal.
        Some(answered.await.unwrap_or((Decision::Deny, None)))
    }

    /// Asks a text question; `None` if no front end can answer. If it is open, any text is an answer beside the choices.
    pub(crate) async fn text(&self, text: String, choices: Vec<String>, open: bool) -> Option<String> {
        self.text_of(None, text, choices, open, false).await
    }

    /// The same, of an MCP server.
    pub(crate) async fn text_of(
        &self,
        server: Option<&str>,
        text: String,
        choices: Vec<String>,
        open: bool,
        takes_values: bool,
    ) -> Option<String> {
        let (server, agent) = (server.map(str::to_owned), self.agent.as_deref().map(str::to_owned));
        let valid = if open { Vec::new() } else { choices.clone() };
        self.answered(Query::Text { text, choices, open, by_host: false, server, agent, takes_values }, valid).await
    }

    /// Asks a question of Hermes itself, with a choice as the answer; `None` if no front end can answer.
    pub(crate) async fn choice(&self, text: String, choices: Vec<String>) -> Option<String> {
        let (valid, agent) = (choices.clone(), self.agent.as_deref().map(str::to_owned));
        let (open, by_host, server, takes_values) = (false, true, None, false);
        self.answered(Query::Text { text, choices, open, by_host, server, agent, takes_values }, valid).await
    }

    async fn answered(&self, query: Query, valid: Vec<String>) -> Option<String> {
        if !self.is_attended().await {
            return None;
        }
        let (answer, answered) = oneshot::channel();
        let _asked = self.ask(query, Open::Text { valid, answer });
        answered.await.ok()
    }

    fn ask(&self, query: Query, open: Open) -> AskedQuestion<'_> {
        let question = {
            let mut state = self.state();
            state.newest += 1;
            let question = QuestionId(state.newest);
            state.open.insert(question, open);
            question
        };
        self.feed.publish(EventKind::Asked { question, query });
        AskedQuestion { questions: self, question }
    }

    pub(crate) fn decide(
        &self,
        question: QuestionId,
        decision: Decision,
        instead: Option<String>,
    ) -> Result<(), CommandError> {
        let open = self.take(question, |open| matches!(open, Open::Approval(_)))?;
        if let Open::Approval(answer) = open {
            // The caller may have ended at this moment; the command still succeeds.
            let _ = answer.send((decision, instead));
        }
        Ok(())
    }

    pub(crate) fn answer(&self, question: QuestionId, text: String) -> Result<(), CommandError> {
        let fits = |open: &Open| match open {
            Open::Approval(_) => false,
            Open::Text { valid, .. } => valid.is_empty() || valid.contains(&text),
        };
        if let Open::Text { answer, .. } = self.take(question, fits)? {
            let _ = answer.send(text.clone());
        }
        Ok(())
    }

    fn take(&self, question: QuestionId, fits: impl FnOnce(&Open) -> bool) -> Result<Open, CommandError> {
        let open = {
            let mut state = self.state();
            match state.open.get(&question) {
                Some(open) if !fits(open) => return Err(CommandError::WrongAnswer { question }),
                Some(_) => {}
                None => return Err(state.why_closed(question)),
            }
            state.close(question, QuestionEnd::Answered)
        };
        self.feed.publish(EventKind::Closed { question, how: QuestionEnd::Answered });
        open.ok_or(CommandError::UnknownQuestion { question })
    }
}

impl State {
    fn close(&mut self, question: QuestionId, how: QuestionEnd) -> Option<Open> {
        let open = self.open.remove(&question)?;
        self.closed.push_back((question, how));
        if self.closed.len() > MAX_CLOSED {
            self.closed.pop_front();
        }
        Some(open)
    }

    fn why_closed(&self, question: QuestionId) -> CommandError {
        if question.0 == 0 || question.0 > self.newest {
            return CommandError::UnknownQuestion { question };
        }
        match self.closed.iter().find(|(closed, _)| *closed == question) {
            Some((_, QuestionEnd::Withdrawn)) => CommandError::QuestionWithdrawn { question },
            _ => CommandError::AlreadyAnswered { question },
        }
    }
}

/// Withdraws its question when dropped without an answer.
struct AskedQuestion<'a> {
    questions: &'a Questions,
    question: QuestionId,
}

impl Drop for AskedQuestion<'_> {
    fn drop(&mut self) {
        let (question, how) = (self.question, QuestionEnd::Withdrawn);
        let withdrawn = self.questions.state().close(question, how).is_some();
        if withdrawn {
            self.questions.feed.publish(EventKind::Closed { question, how });
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::feed::FeedLimits;

    fn questions() -> (Feed, Questions) {
        let feed = Feed::new(FeedLimits::SHARED);
        (feed.clone(), Questions::new(feed))
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_front_end_a_question_is_not_asked() {
        let (feed, questions) = questions();
        assert_eq!(questions.text("which?".into(), Vec::new(), false).await, None);
        assert_eq!(feed.snapshot().questions, []);
        let _attending = questions.attend();
        questions.end();
        assert_eq!(questions.text("which?".into(), Vec::new(), false).await, None);
    }

    #[tokio::test]
    async fn a_question_is_answered_once_and_with_an_offered_choice() {
        let (feed, questions) = questions();
        let _attending = questions.attend();
        let asker = questions.clone();
        let asked =
            tokio::spawn(async move { asker.text("which?".into(), vec!["this".into(), "that".into()], false).await });
        let mut front = feed.subscribe(None);
        while feed.snapshot().questions.is_empty() {
            front.next().await;
        }
        let question = feed.snapshot().questions[0].question;
        let wrong = Err(CommandError::WrongAnswer { question });
        assert_eq!(questions.answer(question, "other".into()), wrong);
        assert_eq!(questions.decide(question, Decision::Once, None), wrong);
        assert_eq!(questions.answer(question, "that".into()), Ok(()));
        assert_eq!(asked.await.unwrap().as_deref(), Some("that"));
        assert_eq!(questions.answer(question, "this".into()), Err(CommandError::AlreadyAnswered { question }));
        let unknown = QuestionId(question.0 + 1);
        assert_eq!(questions.answer(unknown, String::new()), Err(CommandError::UnknownQuestion { question: unknown }));
        assert_eq!(feed.snapshot().questions, []);
    }

    #[tokio::test]
    async fn an_open_question_takes_any_text_beside_its_choices() {
        let (feed, questions) = questions();
        let _attending = questions.attend();
        let mut asking = Box::pin(questions.text("which?".into(), vec!["this".into()], true));
        assert!(futures_util::poll!(&mut asking).is_pending());
        let question = feed.snapshot().questions[0].question;
        assert_eq!(questions.answer(question, "another".into()), Ok(()));
        assert_eq!(asking.await.as_deref(), Some("another"));
    }

    #[tokio::test]
    async fn a_question_of_a_subagent_names_it() {
        let (feed, questions) = questions();
        let _attending = questions.attend();
        let of_subagent = questions.on_behalf_of("subagent 2");
        let mut asking = Box::pin(of_subagent.text_of(Some("notes"), "which?".into(), Vec::new(), true, false));
        assert!(futures_util::poll!(&mut asking).is_pending());
        let Query::Text { server, agent, .. } = feed.snapshot().questions[0].query.clone() else { panic!("a text") };
        assert_eq!((server.as_deref(), agent.as_deref()), (Some("notes"), Some("subagent 2")));
    }

    #[tokio::test]
    async fn a_question_is_withdrawn_when_its_caller_ends() {
        let (feed, questions) = questions();
        let _attending = questions.attend();
        let mut asking = Box::pin(questions.text("which?".into(), Vec::new(), false));
        assert!(futures_util::poll!(&mut asking).is_pending());
        let question = feed.snapshot().questions[0].question;
        drop(asking);
        assert_eq!(feed.snapshot().questions, []);
        assert_eq!(questions.answer(question, "late".into()), Err(CommandError::QuestionWithdrawn { question }));
    }
}
