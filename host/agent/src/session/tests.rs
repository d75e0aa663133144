//! Tests of the agent loop: turns, commands, events, and many sessions at once.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hermes_conversation::{MessageId, Part, render, validity};
use hermes_plugin_host::Skill;
use hermes_protocol::{CallId, Command, CommandError, Decision, EventKind, Position, QuestionId, TurnEnd};

use super::testing::{DEADLINE, Process, from_here, say, turn_end, until};
use crate::feed::{FeedLimits, Subscription};
use crate::session::{Begin, SessionHandle, SessionRules};
use crate::sessions::Sessions;

const RULES: SessionRules = SessionRules { feed: FeedLimits::SHARED, idle_after: Duration::from_secs(3_600) };

fn command(text: &str) -> Command {
    Command::Say(text.into())
}

fn answered(text: &str) -> TurnEnd {
    TurnEnd::Answered { text: text.to_owned() }
}

async fn asked(events: &mut Subscription) -> QuestionId {
    let event = until(events, |kind| matches!(kind, EventKind::Asked { .. })).await;
    let EventKind::Asked { question, .. } = event.kind else { unreachable!() };
    question
}

#[tokio::test]
async fn the_events_of_a_turn_come_in_order_with_the_ids_of_stored_messages() {
    let process = Process::new();
    let session = process.open(Begin::New, RULES).await;
    assert_eq!(session.session(), None);
    let mut events = session.subscribe(Some(&session.beginning()));
    session.send(command("call note twice")).await.unwrap();
    assert_eq!(turn_end(&mut events).await, answered("done"));
    assert_eq!(
        process.log(&session),
        [
            "user: call note twice",
            "assistant:  [note, note]",
            "tool: note did it",
            "tool: note did it",
            "assistant: done"
        ]
    );
    let mut events = session.subscribe(Some(&session.beginning()));
    let stored = process.store.conversation(&session.session().unwrap()).unwrap();
    let (mut messages, mut calls) = (Vec::new(), Vec::new());
    while let Some(event) = events.try_next() {
        assert_eq!(event.session, session.session());
        assert_eq!(event.turn.is_some(), !matches!(event.kind, EventKind::Opened { .. }), "{event:?}");
        messages.extend(event.message);
        if let EventKind::ToolFinished { .. } = event.kind {
            calls.push(event.call.clone().unwrap());
        }
    }
    assert_eq!(messages, stored.iter().map(|message| message.id).collect::<Vec<_>>());
    assert_eq!(calls, [CallId("call-1".to_owned()), CallId("call-2".to_owned())]);
}

#[tokio::test]
async fn the_events_tell_each_stage_of_a_turn() {
    let process = Process::new();
    let session = process.open(Begin::New, RULES).await;
    let mut events = session.subscribe(Some(&session.beginning()));
    session.send(command("calls: look 1, note 2")).await.unwrap();
    turn_end(&mut events).await;
    let mut events = session.subscribe(Some(&session.beginning()));
    let mut stages = Vec::new();
    while let Some(event) = events.try_next() {
        stages.push(match &event.kind {
            EventKind::StepStarted { step, limit } => format!("step {step} of {limit}"),
            EventKind::CallForming { name } => format!("writes {name}"),
            EventKind::ToolStarted { name, arguments } => format!("begins {name} {arguments}"),
            EventKind::ToolFinished { name, failed: false, .. } => format!("ends {name}"),
            EventKind::Used { model, usage, .. } => format!("{model} used {} and {}", usage.input, usage.output),
            EventKind::StatusChanged { status } => format!("{} messages", status.messages),
            kind => serde_json::to_value(kind).unwrap()["event"].as_str().unwrap().to_owned(),
        });
    }
    assert_eq!(
        stages,
        [
            "opened",
            "turn-started",
            "step 1 of 8",
            "thinking",
            "writes look",
            "writes note",
            "scripted used 100 and 5",
            "reply-done",
            "2 messages",
            "begins look {\"n\":1}",
            "ends look",
            "begins note {\"n\":2}",
            "ends note",
            "step 2 of 8",
            "thinking",
            "text",
            "scripted used 100 and 5",
            "reply-done",
            "turn-ended",
        ]
    );
}

#[tokio::test]
async fn each_request_extends_the_previous_one_even_after_idling_and_a_restart() {
    let process = Process::new();
    let rules = SessionRules { idle_after: Duration::from_millis(30), ..RULES };
    let session = process.open(Begin::New, rules).await;
    say(&session, "one").await;
    say(&session, "two").await;
    // The session becomes idle and wakes again.
    let starts = process.started.load(Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(200)).await;
    say(&session, "three").await;
    assert_eq!(process.started.load(Ordering::SeqCst), starts + 1, "the plugins were started again");
    let id = session.session().unwrap();
    session.send(Command::Close).await.unwrap();
    let again = process.open(Begin::Resume(id), RULES).await;
    say(&again, "four").await;
    let requests = process.model.requests.lock().unwrap().clone();
    assert_eq!(requests.len(), 4);
    for pair in requests.windows(2) {
        assert!(pair[1].starts_with(&pair[0]), "{}\n{}", pair[0], pair[1]);
    }
}

#[tokio::test]
async fn a_session_is_kept_as_soon_as_a_message_of_it_is_stored() {
    let process = Process::new();
    let too_long = "word ".repeat(200_000);
    let session = process.open(Begin::New, RULES).await;
    for _ in 0..2 {
        assert!(matches!(say(&session, &too_long).await, TurnEnd::Failed { .. }));
    }
    session.send(Command::Close).await.unwrap();
    assert_eq!(session.session(), None);
    assert_eq!(process.store.sessions().unwrap(), [], "nothing of it was stored");

    let session = process.open(Begin::New, RULES).await;
    say(&session, &too_long).await;
    assert!(matches!(say(&session, "fail").await, TurnEnd::Failed { .. }), "the server is not reachable");
    session.send(Command::Close).await.unwrap();
    assert_eq!(process.log(&session)[0], "user: fail");

    let id = session.session().unwrap();
    let again = process.open(Begin::Resume(id.clone()), RULES).await;
    let to = process.store.conversation(&id).unwrap()[0].id;
    again.send(Command::Rewind { to }).await.unwrap();
    again.send(Command::Close).await.unwrap();
    assert_eq!(process.store.restore(&id).unwrap()[0].content, "fail", "the user can take back the rewind");
}

#[tokio::test]
async fn a_stop_during_a_reply_keeps_the_received_text() {
    let process = Process::new();
    let session = process.open(Begin::New, RULES).await;
    assert_eq!(session.send(Command::Stop).await, Err(CommandError::NothingRuns));
    let mut events = from_here(&session);
    session.send(command("hang")).await.unwrap();
    until(&mut events, |kind| matches!(kind, EventKind::Text { .. })).await;
    session.send(Command::Stop).await.unwrap();
    assert_eq!(turn_end(&mut events).await, TurnEnd::Interrupted);
    let log = process.log(&session);
    assert!(log[1].starts_with("assistant: begun\n\n[the user stopped"), "{log:?}");
    assert_eq!(say(&session, "go on").await, answered("done"));
}

#[tokio::test]
async fn a_stop_during_a_call_closes_the_call() {
    let process = Process::new();
    let session = process.open(Begin::New, RULES).await;
    let mut events = from_here(&session);
    session.send(command("call stuck")).await.unwrap();
    until(&mut events, |kind| matches!(kind, EventKind::ToolStarted { .. })).await;
    session.send(Command::Stop).await.unwrap();
    assert_eq!(turn_end(&mut events).await, TurnEnd::Interrupted);
    assert_eq!(say(&session, "go on").await, answered("done"));
    assert_valid(&process, &session);
}

#[tokio::test]
async fn a_message_during_a_turn_goes_into_the_next_result_or_comes_back() {
    let process = Process::new();
    let session = process.open(Begin::New, RULES).await;
    let steer = |text: &str| Command::Steer { text: text.to_owned() };
    assert_eq!(session.send(steer("too early")).await, Err(CommandError::NothingRuns));
    let mut events = from_here(&session);
    session.send(command("call stuck")).await.unwrap();
    until(&mut events, |kind| matches!(kind, EventKind::ToolStarted { .. })).await;
    assert_eq!(session.send(steer(" ")).await, Err(CommandError::EmptyMessage));
    session.send(steer("rather tomorrow")).await.unwrap();
    let steered = until(&mut events, |kind| matches!(kind, EventKind::Steered { .. })).await;
    assert_eq!(steered.kind, EventKind::Steered { texts: vec!["rather tomorrow".to_owned()] });
    assert_eq!(turn_end(&mut events).await, answered("done"));
    let stored = process.store.conversation(&session.session().unwrap()).unwrap();
    assert_eq!(stored.iter().filter(|message| message.content.contains("rather tomorrow")).count(), 1);
    assert_eq!(steered.message, Some(stored[2].id));
    assert!(stored[2].content.contains("\n\nrather tomorrow\n</said-meanwhile mark="), "{}", stored[2].content);
    let requests = process.model.requests.lock().unwrap().clone();
    assert!(requests[1].starts_with(&requests[0]) && requests[1].contains("rather tomorrow"), "{requests:?}");
    assert_valid(&process, &session);

    session.send(command("hang")).await.unwrap();
    until(&mut events, |kind| matches!(kind, EventKind::Text { .. })).await;
    session.send(steer("one")).await.unwrap();
    session.send(steer("two")).await.unwrap();
    session.send(Command::Stop).await.unwrap();
    let ended = until(&mut events, |kind| matches!(kind, EventKind::TurnEnded { .. })).await;
    let EventKind::TurnEnded { unsent, .. } = &ended.kind else { unreachable!() };
    assert_eq!(*unsent, ["one", "two"]);
    assert_eq!(session.send(steer("too late")).await, Err(CommandError::NothingRuns));
}

#[tokio::test]
async fn an_error_of_the_provider_ends_the_turn_with_a_coded_problem() {
    let process = Process::new();
    let session = process.open(Begin::New, RULES).await;
    let TurnEnd::Failed { problem } = say(&session, "fail").await else { panic!("it failed") };
    assert!(problem.code.starts_with("model."), "{problem:?}");
    assert_eq!(say(&session, "again").await, answered("done"));
    assert_valid(&process, &session);
}

#[tokio::test]
async fn a_refusal_is_stored_and_shown_even_without_text() {
    let process = Process::new();
    let session = process.open(Begin::New, RULES).await;
    let mut events = session.subscribe(Some(&session.beginning()));
    session.send(command("decline")).await.unwrap();
    assert_eq!(turn_end(&mut events).await, answered("I cannot."));
    session.send(command("decline silently")).await.unwrap();
    let shown = until(&mut events, |kind| matches!(kind, EventKind::Text { .. })).await;
    let silent = "[The model declined to answer.]";
    assert_eq!(shown.kind, EventKind::Text { text: silent.to_owned() });
    assert_eq!(turn_end(&mut events).await, answered(silent));
    let stored = process.store.conversation(&session.session().unwrap()).unwrap();
    for (at, text) in [(1, "I cannot."), (3, silent)] {
        let thought = Part::Reasoning { text: "Hm.".to_owned(), payload: None };
        assert_eq!(stored[at].parts, [thought, Part::Refusal { text: text.to_owned() }]);
        assert_eq!((stored[at].content.as_str(), stored[at].reasoning.as_deref()), (text, Some("Hm.")));
    }
    assert_eq!(process.model.requests.lock().unwrap().len(), 2, "a refused request is not repeated");
}

#[tokio::test]
async fn a_command_approves_a_dangerous_call_and_a_second_answer_is_refused() {
    let process = Process::new();
    let session = process.open(Begin::New, RULES).await;
    let _attending = session.attend();
    for (decision, result) in [(Decision::Once, "wipe did it"), (Decision::Deny, "error: `wipe` was not run")] {
        let mut events = from_here(&session);
        session.send(command("call wipe")).await.unwrap();
        let question = asked(&mut events).await;
        assert_eq!(session.snapshot().questions.len(), 1);
        let text = Command::Answer { question, text: "yes".to_owned() };
        assert_eq!(session.send(text).await, Err(CommandError::WrongAnswer { question }));
        session.send(Command::Decide { question, decision, instead: None }).await.unwrap();
        let again = Command::Decide { question, decision: Decision::Always, instead: None };
        assert_eq!(session.send(again).await, Err(CommandError::AlreadyAnswered { question }));
        let finished = until(&mut events, |kind| matches!(kind, EventKind::ToolFinished { .. })).await;
        let EventKind::ToolFinished { content, .. } = &finished.kind else { unreachable!() };
        assert!(content.starts_with(result), "{content}");
        turn_end(&mut events).await;
    }
    let unknown = Command::Decide { question: QuestionId(99), decision: Decision::Once, instead: None };
    assert_eq!(session.send(unknown).await, Err(CommandError::UnknownQuestion { question: QuestionId(99) }));
}

#[tokio::test]
async fn an_approval_for_the_session_survives_idling() {
    let process = Process::new();
    let rules = SessionRules { idle_after: Duration::from_millis(30), ..RULES };
    let session = process.open(Begin::New, rules).await;
    let attending = session.attend();
    let mut events = from_here(&session);
    session.send(command("call wipe")).await.unwrap();
    let question = asked(&mut events).await;
    session.send(Command::Decide { question, decision: Decision::Session, instead: None }).await.unwrap();
    turn_end(&mut events).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    drop(attending);
    say(&session, "call wipe").await;
    let log = process.log(&session);
    assert_eq!(log.iter().filter(|line| *line == "tool: wipe did it").count(), 2, "{log:?}");
}

#[tokio::test]
async fn a_question_of_the_application_is_answered_by_a_command() {
    let process = Process::new();
    let session = process.open(Begin::New, RULES).await;
    let _attending = session.attend();
    let mut events = session.subscribe(Some(&session.beginning()));
    let asker = session.clone();
    let answer = tokio::spawn(async move { asker.ask("which branch?", vec!["main".to_owned()]).await });
    let question = asked(&mut events).await;
    session.send(Command::Answer { question, text: "main".to_owned() }).await.unwrap();
    assert_eq!(answer.await.unwrap().as_deref(), Some("main"));
}

#[tokio::test]
async fn invalid_commands_are_refused_with_a_code_and_change_nothing() {
    let process = Process::new();
    let session = process.open(Begin::New, RULES).await;
    let code = async |command: Command| session.send(command).await.unwrap_err().code();
    assert_eq!(code(command("  \n")).await, "empty-message");
    assert_eq!(code(Command::Rewind { to: MessageId(1) }).await, "nothing-said");
    assert_eq!(code(Command::Branch { through: None }).await, "nothing-said");
    assert_eq!(code(Command::RebuildPrompt).await, "nothing-said");
    assert_eq!(session.session(), None);
    let mut events = from_here(&session);
    session.send(command("hang")).await.unwrap();
    until(&mut events, |kind| matches!(kind, EventKind::Text { .. })).await;
    for command in [
        command("another"),
        Command::Compress { focus: None, preview: false },
        Command::ChooseEngine { engine: "other".to_owned() },
        Command::ChooseModel { model: "other".to_owned(), provider: None },
        Command::Rewind { to: MessageId(1) },
        Command::Branch { through: None },
        Command::RebuildPrompt,
    ] {
        assert_eq!(code(command).await, "busy");
    }
    session.send(Command::Stop).await.unwrap();
    turn_end(&mut events).await;
    assert_eq!(code(Command::Rewind { to: MessageId(9_999) }).await, "unknown-message");
    let reply = process.store.conversation(&session.session().unwrap()).unwrap()[1].id;
    assert_eq!(code(Command::Rewind { to: reply }).await, "not-the-users");
    assert_eq!(code(Command::ChooseEngine { engine: "missing".to_owned() }).await, "failed");
    assert_eq!(say(&session, "still there").await, answered("done"));
    session.send(Command::Close).await.unwrap();
    assert_eq!(code(command("too late")).await, "closed");
}

#[tokio::test]
async fn a_compaction_begins_only_if_there_is_something_to_compact() {
    let process = Process::new();
    let session = process.open(Begin::New, RULES).await;
    let begins = async || {
        let mut events = from_here(&session);
        session.send(Command::Compress { focus: None, preview: false }).await.unwrap();
        let edge =
            |kind: &EventKind| matches!(kind, EventKind::CompressionStarted | EventKind::CompressionEnded { .. });
        let first = until(&mut events, edge).await.kind == EventKind::CompressionStarted;
        if first {
            until(&mut events, edge).await;
        }
        first
    };
    assert!(!begins().await, "of an empty conversation");
    say(&session, "first").await;
    assert!(!begins().await, "of two messages");
    say(&session, "second").await;
    assert!(begins().await, "of four messages");
}

#[tokio::test]
async fn a_branch_continues_from_the_session_without_changing_it() {
    let process = Process::new();
    let session = process.open(Begin::New, RULES).await;
    say(&session, "first").await;
    let child = session.send(Command::Branch { through: None }).await.unwrap().child.unwrap();
    let branch = process.open(Begin::Resume(child), RULES).await;
    say(&branch, "second").await;
    assert_eq!(process.log(&branch).len(), 4);
    assert_eq!(process.log(&session).len(), 2);
}

#[tokio::test]
async fn model_and_engine_change_within_a_session() {
    let process = Process::new();
    let session = process.open(Begin::New, RULES).await;
    say(&session, "first").await;
    let mut events = from_here(&session);
    session.send(Command::ChooseModel { model: "large".to_owned(), provider: None }).await.unwrap();
    session.send(Command::ChooseEngine { engine: "other".to_owned() }).await.unwrap();
    let switched = |kind: &EventKind| matches!(kind, EventKind::Switched { .. });
    until(&mut events, switched).await;
    let priced = |kind: &EventKind| matches!(kind, EventKind::Notice { text, .. } if text.contains("tokens to the cache of large"));
    until(&mut events, priced).await;
    let second = until(&mut events, switched).await;
    let EventKind::Switched { model, engine } = &second.kind else { unreachable!() };
    assert_eq!((model.name.as_str(), engine.as_str()), ("large", "other"));
    assert_eq!(*process.models.lock().unwrap(), ["large"]);
    assert_eq!(say(&session, "second").await, answered("done"));
    let stored = process.store.session(&session.session().unwrap()).unwrap();
    assert_eq!((stored.model.name.as_str(), stored.engine.as_str()), ("large", "other"));
    let status = session.status().await.unwrap();
    assert_eq!((status.model.as_str(), status.messages), ("large", 4));
}

#[tokio::test]
async fn a_front_end_that_reconnects_in_the_middle_of_a_reply_sees_each_event_once() {
    let process = Process::new();
    let session = process.open(Begin::New, RULES).await;
    let mut whole = session.subscribe(Some(&session.beginning()));
    session.send(command("slow")).await.unwrap();
    let mut seen: Vec<u64> = Vec::new();
    let mut position: Option<Position> = Some(session.beginning());
    'connections: loop {
        let mut events = session.subscribe(position.as_ref());
        for _ in 0..3 {
            let event = events.next().await.unwrap();
            seen.push(event.position.sequence);
            position = Some(event.position.clone());
            if matches!(event.kind, EventKind::TurnEnded { .. }) {
                break 'connections;
            }
        }
    }
    assert!(seen.len() > 12, "{seen:?}");
    assert_eq!(seen, (1..=seen.len() as u64).collect::<Vec<_>>());
    // After a restart the old position belongs to another epoch, so a snapshot comes first.
    turn_end(&mut whole).await;
    let id = session.session().unwrap();
    session.send(Command::Close).await.unwrap();
    let again = process.open(Begin::Resume(id), RULES).await;
    let first = again.subscribe(position.as_ref()).next().await.unwrap();
    assert!(matches!(first.kind, EventKind::Snapshot(_)), "{first:?}");
}

#[tokio::test]
async fn a_slow_front_end_delays_no_turn_and_gets_a_snapshot() {
    let process = Process::new();
    let rules = SessionRules { feed: FeedLimits { events: 4, bytes: 1 << 20 }, ..RULES };
    let session = process.open(Begin::New, rules).await;
    let mut slow = session.subscribe(Some(&session.beginning()));
    let mut quick = session.subscribe(Some(&session.beginning()));
    session.send(command("slow")).await.unwrap();
    assert_eq!(turn_end(&mut quick).await, answered("begun more"));
    let first = slow.next().await.unwrap();
    assert!(matches!(&first.kind, EventKind::Snapshot(snapshot) if snapshot.turn.is_none()), "{first:?}");
    assert_eq!(slow.try_next(), None);
}

#[tokio::test]
async fn a_session_ends_with_its_last_handle() {
    let process = Process::new();
    let session = process.open(Begin::New, RULES).await;
    let mut events = session.subscribe(Some(&session.beginning()));
    session.send(command("hang")).await.unwrap();
    until(&mut events, |kind| matches!(kind, EventKind::Text { .. })).await;
    let id = session.session().unwrap();
    drop(session);
    until(&mut events, |kind| matches!(kind, EventKind::Ended)).await;
    // The lease was released, and the log is valid.
    let again = process.open(Begin::Resume(id), RULES).await;
    assert_valid(&process, &again);
}

pub(super) fn assert_valid(process: &Process, session: &SessionHandle) {
    let id = session.session().unwrap();
    let conversation = hermes_conversation::Conversation::new(process.store.conversation(&id).unwrap());
    let shown = render::render(&conversation, &process.store.view(&id).unwrap());
    validity::check(&shown).unwrap();
}

#[tokio::test]
async fn before_the_first_message_skills_are_listed_without_the_tools_unless_one_depends_on_them() {
    let process = Process::new();
    let skill = |name: &str, toolsets: &[&str]| Skill {
        name: name.to_owned(),
        description: format!("About {name}."),
        category: String::new(),
        tags: Vec::new(),
        platforms: Vec::new(),
        requires_toolsets: toolsets.iter().map(|toolset| (*toolset).to_owned()).collect(),
        fallback_for_toolsets: Vec::new(),
        extra: Vec::new(),
    };
    let session = process.open(Begin::New, RULES).await;
    let listed = async || -> Vec<String> {
        session.skills().await.unwrap().offered.into_iter().map(|skill| skill.name).collect()
    };
    let catalogs = || process.seen.catalogs.load(Ordering::SeqCst);
    *process.seen.skills.lock().unwrap() = vec![skill("brew", &[])];
    assert_eq!((listed().await, catalogs()), (vec!["brew".to_owned()], 0));
    let depending = vec![skill("brew", &[]), skill("pour", &["scripted"]), skill("paint", &["brushes"])];
    *process.seen.skills.lock().unwrap() = depending;
    assert_eq!((listed().await, catalogs()), (vec!["brew".to_owned(), "pour".to_owned()], 1));
}

async fn opened(process: &Arc<Process>, sessions: &Sessions, rules: SessionRules) -> SessionHandle {
    let open = async { Ok::<_, CommandError>(process.open(Begin::New, rules).await) };
    sessions.open(None, open).await.unwrap().0
}

#[tokio::test]
async fn openings_of_one_stored_session_get_the_same_session() {
    let process = Process::new();
    let first = process.open(Begin::New, RULES).await;
    assert_eq!(say(&first, "hello").await, answered("done"));
    let id = first.session().unwrap();
    first.send(Command::Close).await.unwrap();
    let sessions = Sessions::default();
    let openings = std::sync::atomic::AtomicUsize::new(0);
    let open = || async {
        openings.fetch_add(1, Ordering::SeqCst);
        Ok::<_, CommandError>(process.open(Begin::Resume(id.clone()), RULES).await)
    };
    let both = tokio::join!(sessions.open(Some(&id), open()), sessions.open(Some(&id), open()));
    let ((one, one_joined), (other, other_joined)) = (both.0.unwrap(), both.1.unwrap());
    assert_eq!((one_joined, other_joined, openings.load(Ordering::SeqCst)), (false, true, 1));
    assert_eq!(one.beginning(), other.beginning());
    // A closed session is opened again.
    one.send(Command::Close).await.unwrap();
    let (again, joined) = sessions.open(Some(&id), open()).await.unwrap();
    assert!(!joined && again.beginning() != one.beginning());
    sessions.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_sessions_run_beside_streams_hanging_plugins_and_open_questions() {
    let process = Process::new();
    let (sessions, rules) = (Sessions::default(), SessionRules { idle_after: Duration::from_millis(200), ..RULES });
    let mut handles = Vec::new();
    for _ in 0..200 {
        handles.push(opened(&process, &sessions, rules).await);
    }
    assert_eq!(sessions.list().len(), 200);
    let attending: Vec<_> = handles.iter().map(SessionHandle::attend).collect();
    // 8 sessions stream, 16 wait for an approval, 16 are stopped, 16 have a hanging plugin, and the others have answered.
    let words = |at: usize| match at {
        0..8 => "slow",
        8..24 => "call wipe",
        24..40 => "hang",
        40..56 => "call stuck",
        _ => "hello",
    };
    let mut fronts: Vec<Subscription> =
        handles.iter().map(|session| session.subscribe(Some(&session.beginning()))).collect();
    for (at, session) in handles.iter().enumerate().skip(56) {
        session.send(command(words(at))).await.unwrap();
    }
    for front in &mut fronts[56..] {
        assert_eq!(turn_end(front).await, answered("done"));
    }
    for (at, session) in handles.iter().enumerate().take(40).skip(8) {
        session.send(command(words(at))).await.unwrap();
    }
    for front in &mut fronts[24..40] {
        until(front, |kind| matches!(kind, EventKind::Text { .. })).await;
    }
    for at in (40..56).chain(0..8) {
        handles[at].send(command(words(at))).await.unwrap();
    }
    for front in &mut fronts[0..8] {
        assert_eq!(turn_end(front).await, answered("begun more"));
    }
    for front in &mut fronts[40..56] {
        let hung = until(front, |kind| matches!(kind, EventKind::ToolFinished { .. })).await;
        let EventKind::ToolFinished { failed, elapsed_ms, .. } = hung.kind else { unreachable!() };
        assert!(failed && Duration::from_millis(elapsed_ms) >= DEADLINE);
        assert_eq!(turn_end(front).await, answered("done"));
    }
    for (session, front) in handles[24..40].iter().zip(&mut fronts[24..40]) {
        session.send(Command::Stop).await.unwrap();
        assert_eq!(turn_end(front).await, TurnEnd::Interrupted);
    }
    // No approval is answered yet: half of them are allowed, half denied.
    for (at, (session, front)) in handles[8..24].iter().zip(&mut fronts[8..24]).enumerate() {
        let question = asked(front).await;
        assert_eq!(session.snapshot().questions.len(), 1);
        let decision = if at % 2 == 0 { Decision::Once } else { Decision::Deny };
        session.send(Command::Decide { question, decision, instead: None }).await.unwrap();
        let finished = until(front, |kind| matches!(kind, EventKind::ToolFinished { .. })).await;
        let EventKind::ToolFinished { failed, .. } = finished.kind else { unreachable!() };
        assert_eq!(failed, at % 2 == 1);
        assert_eq!(turn_end(front).await, answered("done"));
    }
    assert!(process.model.most_streaming() >= 8);
    handles.iter().for_each(|session| assert_valid(&process, session));
    // A new reader from the beginning gets the same events.
    for (session, front) in handles.iter().zip(&mut fronts) {
        assert_eq!(front.try_next(), None);
        let mut again = session.subscribe(Some(&session.beginning()));
        let mut next = 1;
        while let Some(event) = again.try_next() {
            assert_eq!(event.position.sequence, next);
            next += 1;
        }
    }
    drop(attending);
    // All sessions become idle; some wake for another turn.
    tokio::time::sleep(Duration::from_millis(600)).await;
    let starts = process.started.load(Ordering::SeqCst);
    for session in handles.iter().step_by(20) {
        assert_eq!(say(session, "hello again").await, answered("done"));
    }
    assert_eq!(process.started.load(Ordering::SeqCst), starts + 10, "idle sessions had dropped their plugins");
    sessions.close().await;
    assert_eq!(sessions.list().len(), 0);
}

/// The resident memory of this process in bytes.
fn resident() -> u64 {
    const PAGE: u64 = 4_096;
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap() * PAGE
}

/// Prints the figures for `cargo xtask bench sessions`. The targets are 256 KiB beyond the log and 100 ms. The limits here
/// allow for a busy machine and a debug build.
#[tokio::test]
async fn an_idle_session_takes_little_memory_and_wakes_quickly() {
    const SESSIONS: u64 = 200;
    let process = Process::new();
    let rules = SessionRules { feed: FeedLimits::SHARED, idle_after: Duration::from_millis(50) };
    let sessions = Sessions::default();
    // The first sessions fill the shared pools and caches.
    let mut handles = Vec::new();
    for _ in 0..20 {
        let session = opened(&process, &sessions, rules).await;
        assert_eq!(say(&session, "hello").await, answered("done"));
        handles.push(session);
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let before = resident();
    for _ in 0..SESSIONS {
        let session = opened(&process, &sessions, rules).await;
        assert_eq!(say(&session, "hello").await, answered("done"));
        handles.push(session);
    }
    tokio::time::sleep(Duration::from_millis(600)).await;
    let log: usize =
        handles[20..].iter().map(|session| process.log(session).iter().map(String::len).sum::<usize>()).sum();
    let each = resident().saturating_sub(before).saturating_sub(log as u64) / SESSIONS;

    let starts = process.started.load(Ordering::SeqCst);
    let mut wakes = Vec::new();
    for session in handles[20..].iter().step_by(10) {
        let mut events = from_here(session);
        let begun = Instant::now();
        session.send(command("again")).await.unwrap();
        assert_eq!(turn_end(&mut events).await, answered("done"));
        wakes.push(begun.elapsed());
    }
    assert_eq!(process.started.load(Ordering::SeqCst), starts + wakes.len(), "each session woke");
    wakes.sort();
    let (middle, longest) = (wakes[wakes.len() / 2], wakes[wakes.len() - 1]);
    println!("{SESSIONS} idle sessions: {} KiB each beyond the log", each / 1_024);
    println!("waking with a turn: {} ms in the middle, {} ms at most", middle.as_millis(), longest.as_millis());
    assert!(each < 2 << 20, "{each} bytes per idle session");
    assert!(longest < Duration::from_secs(10), "{longest:?}");
    sessions.close().await;
}
