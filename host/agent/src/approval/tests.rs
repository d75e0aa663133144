#![allow(clippy::unwrap_used)]

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hermes_capabilities::changes::Changes;
use hermes_capabilities::files::{Change, Concern, Deed};
use hermes_capabilities::process::{Confinement, Places, Run, SandboxMode};
use hermes_conversation::ToolCall;
use hermes_plugin_host::services::Refusal;
use hermes_plugin_host::{Effect, Identity};
use hermes_private_files::FileDocuments;
use hermes_protocol::{
    CommandError, Decision, EventKind, Mode, Objection, Query, Question, QuestionEnd, SamplingRequest, Subject,
};

use crate::feed::{Feed, FeedLimits, Subscription};
use crate::questions::Questions;
use crate::report::NoticeSender;

use super::gate::{CallEffect, Refused};
use super::mode::SessionMode;
use super::question::program_run;
use super::right::Right;
use super::*;

mod attack;
mod verdicts;

/// A right of version 1.0.0 of a plugin.
pub(super) fn right(plugin: &str, what: &str) -> Right {
    Right { plugin: identity(plugin), what: what.to_owned(), of: String::new() }
}

fn identity(plugin: &str) -> Identity {
    Identity {
        name: plugin.to_owned(),
        version: "1.0.0".to_owned(),
        digest: format!("digest of {plugin}"),
        is_bundled: false,
    }
}

/// A gate, and a front end that answers its questions by a script.
struct Fixture {
    home: tempfile::TempDir,
    gate: Gate,
    questions: Questions,
    events: Subscription,
    answers: VecDeque<Decision>,
    asked: Vec<Question>,
    notes: Vec<String>,
    /// The highest number of questions that were open at once.
    most_open: usize,
    mode: SessionMode,
}

impl Fixture {
    fn new(answers: &[Decision]) -> Self {
        Self::with(answers, &[], &[], tempfile::tempdir().unwrap())
    }

    fn with(answers: &[Decision], allow: &[&str], deny: &[&str], home: tempfile::TempDir) -> Self {
        let list = |entries: &[&str]| entries.iter().map(|&entry| entry.to_owned()).collect::<Vec<_>>();
        Self::ruled(answers, RuleLists { allow: &list(allow), deny: &list(deny), ..RuleLists::default() }, home)
    }

    fn ruled(answers: &[Decision], lists: RuleLists<'_>, home: tempfile::TempDir) -> Self {
        let rules = ApprovalRules::parse(lists).unwrap();
        let approvals = Approvals { rules, can_ask: true, ..Approvals::default() };
        let feed = Feed::new(FeedLimits::SHARED);
        let events = feed.subscribe(None);
        let questions = Questions::new(feed.clone());
        let notices = NoticeSender::new(home.path(), "s", feed);
        let identities = ["runner", "guard"].map(identity);
        let mode = SessionMode::new(&approvals, SandboxMode::Off);
        let answered = (questions.clone(), SessionRights::default(), Arc::default(), Changes::default(), mode.clone());
        let gate = Gate::new(&approvals, FileDocuments::below(home.path()), identities, notices, home.path(), answered);
        let answers = answers.iter().copied().collect();
        let (asked, notes, most_open) = (Vec::new(), Vec::new(), 0);
        Self { home, gate, questions, events, answers, asked, notes, most_open, mode }
    }

    /// Runs work while the front end reads events and answers.
    async fn attend<T>(&mut self, work: impl AsyncFnOnce(&Gate) -> T) -> T {
        let Self { gate, questions, events, answers, asked, notes, most_open, .. } = self;
        let _attending = questions.attend();
        let mut open = 0;
        let mut front = async || {
            while let Some(event) = events.next().await {
                match &event.kind {
                    EventKind::Notice { text, .. } => notes.push(text.clone()),
                    EventKind::Asked { question, query: Query::Approval { question: details, .. } } => {
                        open += 1;
                        *most_open = open.max(*most_open);
                        notes.push("asked".to_owned());
                        asked.push(Question::clone(details));
                        tokio::time::sleep(Duration::from_secs(3)).await;
                        let decision = answers.pop_front().expect("no more questions were expected");
                        questions.decide(*question, decision, None).unwrap();
                    }
                    EventKind::Closed { .. } => open -= 1,
                    other => panic!("{other:?}"),
                }
            }
        };
        tokio::select! {
            biased;
            () = front() => panic!("the feed ended"),
            done = work(gate) => done,
        }
    }

    fn notices(&mut self) -> Vec<String> {
        self.notes.extend(self.events.notices().iter().map(ToString::to_string));
        std::mem::take(&mut self.notes)
    }

    /// Runs programs one after the other.
    async fn programs(&mut self, programs: &[&str]) -> Vec<Option<Refusal>> {
        self.attend(async |gate| {
            let mut outcomes = Vec::new();
            for program in programs {
                outcomes.push(gate.program(&identity("runner"), &run(program), true).await.err().map(|no| no.by));
            }
            outcomes
        })
        .await
    }

    async fn tool(&mut self, dangerous: bool, objections: &[&str]) -> Result<(), Refused> {
        let objection = |why: &&str| Objection { plugin: "guard".to_owned(), why: (*why).to_owned() };
        let objections = objections.iter().map(objection).collect();
        let call = ToolCall { id: "c".to_owned(), name: "wipe".to_owned(), arguments: "{\"all\":1}".to_owned() };
        let effect = if dangerous { Effect::Dangerous } else { Effect::Writes };
        self.attend(async |gate| gate.tool(Some("runner"), &call, CallEffect::of(effect), objections).await).await
    }

    fn asked(&self) -> usize {
        self.asked.len()
    }
}

fn run(program: &str) -> Run {
    Run {
        program: program.to_owned(),
        path: PathBuf::from("/bin").join(program),
        real: PathBuf::from("/bin").join(program),
        pin: None,
        places: Places { changeable: Vec::new(), private: PathBuf::from("/private") },
        arguments: vec!["--all".to_owned()],
        folder: PathBuf::from("/w"),
        input: Vec::new(),
        environment: Vec::new(),
        variables: Vec::new(),
        inherited: Vec::new(),
        background: false,
        merged: false,
        confinement: Confinement::Off,
    }
}

const YES: Option<Refusal> = None;
const NO: Option<Refusal> = Some(Refusal::User);

#[tokio::test(start_paused = true)]
async fn once_allows_one_run_and_session_allows_all_runs_of_the_same_program() {
    let mut fixture = Fixture::new(&[Decision::Once, Decision::Session, Decision::Deny, Decision::Deny]);
    let outcomes = fixture.programs(&["git", "git", "git", "ls", "ls"]).await;
    assert_eq!(outcomes, [YES, YES, YES, NO, NO]);
    assert_eq!(fixture.asked(), 4);
    assert_eq!(fixture.notices(), ["asked"; 4]);
    // Neither answer is stored.
    assert!(!fixture.home.path().join("approvals.json").exists());
}

#[tokio::test(start_paused = true)]
async fn an_approval_of_a_shell_holds_for_exactly_the_command_that_was_shown() {
    let ls = |change: &dyn Fn(&mut Run)| {
        let mut run = Run { arguments: vec!["-c".to_owned(), "ls".to_owned()], ..run("bash") };
        change(&mut run);
        run
    };
    let other_commands: [Run; 6] = [
        ls(&|run| run.arguments[1] = "ls; id".to_owned()),
        ls(&|run| run.arguments.push("x".to_owned())),
        ls(&|run| run.folder = PathBuf::from("/other")),
        ls(&|run| run.input = b"id".to_vec()),
        ls(&|run| run.background = true),
        ls(&|run| run.real = PathBuf::from("/usr/bin/zsh")),
    ];
    let decisions = [Decision::Session, Decision::Always];
    for decision in decisions {
        let mut fixture = Fixture::new(&[&[decision], [Decision::Deny; 6].as_slice()].concat());
        let commands: Vec<Run> = [ls(&|_| ()), ls(&|_| ())].into_iter().chain(other_commands.clone()).collect();
        let outcomes = fixture
            .attend(async |gate| {
                let mut outcomes = Vec::new();
                for command in &commands {
                    outcomes.push(gate.program(&identity("runner"), command, true).await.is_ok());
                }
                outcomes
            })
            .await;
        assert_eq!(outcomes, [true, true, false, false, false, false, false, false], "{decision:?}");
        assert_eq!(fixture.asked(), 7);
        assert!(fixture.asked.iter().all(|question| matches!(&question.subject, Subject::Program(run) if run.exact)));
    }
    // A link does not hide a shell.
    let hidden = Run { real: PathBuf::from("/bin/dash"), ..run("tool") };
    assert!(program_run(&hidden).exact && !program_run(&run("git")).exact);
}

#[tokio::test(start_paused = true)]
async fn always_is_valid_in_the_next_session_until_the_plugin_changes() {
    let mut first = Fixture::new(&[Decision::Always]);
    assert_eq!(first.programs(&["git"]).await, [YES]);
    let mut second = Fixture::with(&[Decision::Deny], &[], &[], first.home);
    assert_eq!(second.programs(&["git"]).await, [YES]);
    let updated = Identity { digest: "another".to_owned(), ..identity("runner") };
    let git = run("git");
    let refused = second.attend(async |gate| gate.program(&updated, &git, true).await).await.unwrap_err();
    assert_eq!((refused.by, second.asked()), (Refusal::User, 1));
}

#[tokio::test(start_paused = true)]
async fn the_configuration_decides_before_the_user_and_deny_wins() {
    let mut fixture =
        Fixture::with(&[], &["runner"], &["runner/process:rm", "runner/wipe"], tempfile::tempdir().unwrap());
    assert_eq!(fixture.programs(&["git", "rm"]).await, [YES, Some(Refusal::Configuration)]);
    // A deny rule also covers tools that need no approval.
    let refused = fixture.tool(false, &[]).await.unwrap_err();
    assert_eq!(refused.by, Refusal::Configuration);
    assert!(refused.text.contains("`approvals.deny` has `runner/wipe`"), "{}", refused.text);
}

#[tokio::test(start_paused = true)]
async fn a_deny_rule_wins_over_a_permanent_approval() {
    let mut first = Fixture::new(&[Decision::Always]);
    assert_eq!(first.programs(&["git"]).await, [YES]);
    let mut second = Fixture::with(&[], &[], &["runner"], first.home);
    assert_eq!(second.programs(&["git"]).await, [Some(Refusal::Configuration)]);
}

#[tokio::test(start_paused = true)]
async fn one_question_is_open_at_a_time_and_its_answer_serves_waiting_calls() {
    let mut fixture = Fixture::new(&[Decision::Session, Decision::Deny]);
    let plugin = identity("runner");
    let runs = ["git", "git", "git", "ls"].map(run);
    let outcomes = fixture
        .attend(async |gate| {
            futures_util::future::join_all(runs.iter().map(|run| gate.program(&plugin, run, true))).await
        })
        .await;
    assert_eq!(outcomes.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, true, true, false]);
    assert_eq!((fixture.asked(), fixture.most_open), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn without_a_user_the_refusal_names_the_rule_that_would_allow_it() {
    let mut fixture = Fixture::new(&[]);
    fixture.gate.can_ask = false;
    assert_eq!(fixture.programs(&["git"]).await, [Some(Refusal::Unattended)]);
    let notices = fixture.notices();
    assert!(notices[0].contains("approvals.allow: [runner/process:git]"), "{notices:?}");
    let refused = fixture.tool(true, &["it is Friday"]).await.unwrap_err();
    assert_eq!(refused.by, Refusal::Unattended);
    assert!(refused.text.contains("approvals.allow: [guard/wipe, runner/wipe]"), "{}", refused.text);
    assert!(refused.text.contains("another way"), "{}", refused.text);
}

#[tokio::test(start_paused = true)]
async fn background_work_never_asks_the_user() {
    let mut fixture = Fixture::with(&[], &["runner/process:ls"], &[], tempfile::tempdir().unwrap());
    let plugin = identity("runner");
    let (git, ls) = (run("git"), run("ls"));
    let (git, ls) = fixture
        .attend(async |gate| (gate.program(&plugin, &git, false).await, gate.program(&plugin, &ls, false).await))
        .await;
    assert_eq!((git.unwrap_err().by, ls.is_ok(), fixture.asked()), (Refusal::Unattended, true, 0));
}

#[tokio::test(start_paused = true)]
async fn a_question_without_a_front_end_is_refused_and_not_shown_later() {
    let mut fixture = Fixture::new(&[]);
    // No front end attends.
    let refused = fixture.gate.program(&identity("runner"), &run("git"), true).await.unwrap_err();
    assert_eq!(refused.by, Refusal::Unattended);
    fixture.attend(async |_| tokio::time::sleep(Duration::from_secs(9)).await).await;
    assert_eq!(fixture.asked(), 0);
    fixture.questions.end();
    assert_eq!(fixture.programs(&["git"]).await, [Some(Refusal::Unattended)]);
}

#[tokio::test(start_paused = true)]
async fn a_stopped_call_withdraws_its_question() {
    let mut fixture = Fixture::new(&[]);
    let _attending = fixture.questions.attend();
    let (runner, git) = (identity("runner"), run("git"));
    let asking = fixture.gate.program(&runner, &git, true);
    assert!(tokio::time::timeout(Duration::from_secs(9), asking).await.is_err());
    let kinds: Vec<EventKind> =
        std::iter::from_fn(|| fixture.events.try_next()).map(|event| event.kind.clone()).collect();
    let [EventKind::Asked { question, .. }, EventKind::Closed { question: closed, how }] = &kinds[..] else {
        panic!("{kinds:?}")
    };
    assert_eq!((question, *how), (closed, QuestionEnd::Withdrawn));
    let late = fixture.questions.decide(*question, Decision::Always, None);
    assert_eq!(late, Err(CommandError::QuestionWithdrawn { question: *question }));
}

#[tokio::test(start_paused = true)]
async fn a_hook_and_a_dangerous_tool_share_one_question_and_a_new_reason_asks_again() {
    let mut fixture = Fixture::new(&[Decision::Session, Decision::Deny]);
    assert_eq!(fixture.tool(false, &[]).await, Ok(()));
    assert_eq!(fixture.asked(), 0);
    assert_eq!(fixture.tool(true, &["it is Friday"]).await, Ok(()));
    assert_eq!(fixture.tool(true, &["it is Friday"]).await, Ok(()));
    assert_eq!(fixture.tool(true, &[]).await, Ok(()));
    assert_eq!(fixture.asked(), 1);
    assert!(fixture.tool(true, &["it is Monday"]).await.is_err());
    let asked = &fixture.asked;
    let Subject::Tool { name, arguments, dangerous, objections, .. } = &asked[0].subject else { panic!("{asked:?}") };
    assert_eq!((name.as_str(), arguments.as_str(), *dangerous), ("wipe", "{\"all\":1}", true));
    assert_eq!(objections, &[Objection { plugin: "guard".to_owned(), why: "it is Friday".to_owned() }]);
}

#[tokio::test(start_paused = true)]
async fn an_always_that_cannot_be_stored_is_valid_for_the_session_with_a_notice() {
    let mut fixture = Fixture::new(&[Decision::Always]);
    std::fs::write(fixture.home.path().join("approvals.json"), "damaged").unwrap();
    assert_eq!(fixture.programs(&["git", "git"]).await, [YES, YES]);
    assert_eq!(fixture.asked(), 1);
    let notices = fixture.notices().join("\n");
    assert!(notices.contains("for this session only") && notices.contains("damaged"), "{notices}");
}

fn change(path: &str, concerns: &[Option<&str>]) -> Change {
    let path = PathBuf::from(path);
    let concern = |pattern: &Option<&str>| match pattern {
        Some(pattern) => {
            let (pattern, reason) = ((*pattern).to_owned(), "it runs".to_owned());
            Concern::Listed { path: path.clone(), pattern, reason, version: String::new() }
        }
        None => Concern::Unread { path: path.clone(), version: "v".to_owned() },
    };
    Change { concerns: concerns.iter().map(concern).collect(), deed: Deed::Create(b"x".to_vec()), path }
}

async fn changes(fixture: &mut Fixture, changes: &[Change]) -> Vec<Option<Refusal>> {
    fixture
        .attend(async |gate| {
            let mut outcomes = Vec::new();
            for change in changes {
                outcomes.push(gate.file(&identity("runner"), change, true).await.err().map(|no| no.by));
            }
            outcomes
        })
        .await
}

#[tokio::test(start_paused = true)]
async fn an_approved_change_covers_one_file_and_every_concern_needs_a_yes() {
    let mut fixture = Fixture::new(&[Decision::Session, Decision::Once, Decision::Deny]);
    let envrc = Some(".envrc");
    let asked = [
        change("/w/.envrc", &[envrc]),
        change("/w/.envrc", &[envrc]),
        change("/w/.envrc", &[envrc, None]),
        change("/w/sub/.envrc", &[envrc]),
    ];
    assert_eq!(changes(&mut fixture, &asked).await, [YES, YES, YES, NO]);
    assert_eq!(fixture.asked(), 3);
}

#[tokio::test(start_paused = true)]
async fn rules_name_a_pattern_or_unread_content() {
    let rules = (&["runner/files:.envrc", "runner/files:unread"][..], &["runner/files:AGENTS.md"][..]);
    let mut fixture = Fixture::with(&[], rules.0, rules.1, tempfile::tempdir().unwrap());
    fixture.gate.can_ask = false;
    let asked = [
        change("/w/.envrc", &[Some(".envrc"), None]),
        change("/w/notes", &[None]),
        change("/w/AGENTS.md", &[Some("AGENTS.md")]),
        change("/w/.bashrc", &[Some(".bashrc")]),
    ];
    let outcomes = changes(&mut fixture, &asked).await;
    assert_eq!(outcomes, [YES, YES, Some(Refusal::Configuration), Some(Refusal::Unattended)]);
    let notices = fixture.notices();
    assert!(notices[0].contains("approvals.allow: [runner/files:.bashrc]"), "{notices:?}");
}

fn edit(path: &str) -> Change {
    let concern = Concern::Edit { path: PathBuf::from(path), before: None };
    Change { concerns: vec![concern], ..change(path, &[]) }
}

#[tokio::test(start_paused = true)]
async fn each_mode_decides_about_ordinary_changes_and_special_files_ask_in_all_but_plan() {
    let asked = || [edit("/w/a"), edit("/w/b"), change("/w/.envrc", &[Some(".envrc")])];
    for (mode, answers, outcomes) in [
        (Mode::Ask, &[Decision::Session, Decision::Deny][..], [YES, YES, NO]),
        (Mode::AcceptEdits, &[Decision::Deny], [YES, YES, NO]),
        (Mode::Auto, &[Decision::Deny], [YES, YES, NO]),
        (Mode::Plan, &[], [Some(Refusal::Plan); 3]),
    ] {
        let mut fixture = Fixture::new(answers);
        fixture.mode.set(mode);
        assert_eq!(changes(&mut fixture, &asked()).await, outcomes, "{mode}");
        assert_eq!(fixture.asked(), answers.len(), "{mode}");
    }
    // A rule holds in every mode.
    for mode in Mode::ALL {
        let mut fixture = Fixture::with(&[], &[], &["runner/files:edit"], tempfile::tempdir().unwrap());
        fixture.mode.set(mode);
        assert_eq!(changes(&mut fixture, &[edit("/w/a")]).await, [Some(Refusal::Configuration)], "{mode}");
    }
}

#[tokio::test(start_paused = true)]
async fn plan_refuses_tools_and_programs_without_a_question_and_with_words_for_the_model() {
    let mut fixture = Fixture::with(&[], &["runner"], &[], tempfile::tempdir().unwrap());
    fixture.mode.set(Mode::Plan);
    for dangerous in [false, true] {
        let refused = fixture.tool(dangerous, &[]).await.unwrap_err();
        assert!(refused.by == Refusal::Plan && refused.text.contains("plan mode"), "{refused:?}");
    }
    assert_eq!(fixture.programs(&["git"]).await, [Some(Refusal::Plan)]);
    let look = ToolCall { id: "c".to_owned(), name: "look".to_owned(), arguments: "{}".to_owned() };
    let looked = fixture
        .attend(async |gate| gate.tool(Some("runner"), &look, CallEffect::of(Effect::Reads), Vec::new()).await)
        .await;
    assert_eq!((looked, fixture.asked()), (Ok(()), 0));
    // From the next call on.
    fixture.mode.set(Mode::Ask);
    assert_eq!(fixture.programs(&["git"]).await, [YES]);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_hands_over_what_to_do_instead() {
    let fixture = Fixture::new(&[]);
    let _attending = fixture.questions.attend();
    let (runner, git) = (identity("runner"), run("git"));
    let mut asking = Box::pin(fixture.gate.program(&runner, &git, true));
    assert!(tokio::time::timeout(Duration::from_secs(1), asking.as_mut()).await.is_err());
    let question = hermes_protocol::QuestionId(1);
    fixture.questions.decide(question, Decision::Deny, Some("use `ls`".to_owned())).unwrap();
    let refused = asking.await.unwrap_err();
    assert!(refused.text.ends_with("answers:\nuse `ls`") && refused.by == Refusal::User, "{}", refused.text);
}

#[tokio::test(start_paused = true)]
async fn a_pattern_covers_every_line_of_such_commands_and_nothing_else() {
    let line = |text: &str| Run { arguments: vec!["-c".to_owned(), text.to_owned()], ..run("bash") };
    let decisions = [Decision::Pattern, Decision::Deny, Decision::Deny, Decision::Deny];
    let mut fixture = Fixture::new(&decisions);
    let with_input = Run { input: b"x".to_vec(), ..line("git status") };
    let runs =
        [line("git status -s"), line("git status; git status"), line("git status; rm x"), with_input, line("git log")];
    let outcomes = fixture
        .attend(async |gate| {
            let mut outcomes = Vec::new();
            for run in &runs {
                outcomes.push(gate.program(&identity("runner"), run, true).await.is_ok());
            }
            outcomes
        })
        .await;
    assert_eq!(outcomes, [true, true, false, false, false]);
    let patterns: Vec<Option<String>> = fixture
        .asked
        .iter()
        .map(|question| match &question.subject {
            Subject::Program(run) => run.pattern.clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(patterns, [Some("git status*".to_owned()), None, None, None]);
    // It holds for this version of the plugin.
    let updated = Identity { digest: "another".to_owned(), ..identity("runner") };
    let mut later = Fixture::with(&[Decision::Deny], &[], &[], fixture.home);
    let first = later.attend(async |gate| gate.program(&identity("runner"), &runs[0], true).await).await;
    let second = later.attend(async |gate| gate.program(&updated, &runs[0], true).await).await;
    assert!(first.is_ok() && second.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_program_in_a_folder_that_plugins_may_change_is_not_what_a_rule_names() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("git"), "").unwrap();
    let mut line = Run { arguments: vec!["-c".to_owned(), "git status".to_owned()], ..run("bash") };
    line.environment = vec![("PATH".into(), folder.path().into())];
    let mut fixture = Fixture::with(&[Decision::Deny], &["runner(git status*)"], &[], tempfile::tempdir().unwrap());
    assert!(fixture.attend(async |gate| gate.program(&identity("runner"), &line, true).await).await.is_ok());
    line.places.changeable = vec![folder.path().to_owned()];
    assert!(fixture.attend(async |gate| gate.program(&identity("runner"), &line, true).await).await.is_err());
    assert_eq!(fixture.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_asks_a_model_after_a_question_in_the_mode_ask_and_by_its_budget_otherwise() {
    let request =
        || SamplingRequest { text: "Name a bird.".to_owned(), max_tokens: 9, budget: 100, used: 0, rule: None };
    let mut fixture = Fixture::new(&[Decision::Once, Decision::Session]);
    let mode = fixture.mode.clone();
    let outcomes = fixture
        .attend(async |gate| {
            let mut outcomes = Vec::new();
            for _ in 0..4 {
                outcomes.push(gate.sampling("runner", request()).await.is_ok());
            }
            mode.set(Mode::Plan);
            outcomes.push(gate.sampling("guard", request()).await.is_ok());
            outcomes
        })
        .await;
    assert_eq!((outcomes, fixture.asked()), (vec![true; 5], 2));
    assert!(matches!(&fixture.asked[0].subject, Subject::Sampling(request) if request.budget == 100));
    // A refusal, and a rule that forbids.
    let mut fixture = Fixture::with(&[Decision::Deny], &[], &["guard/sampling"], tempfile::tempdir().unwrap());
    let refused = fixture
        .attend(async |gate| {
            let [one, other] = ["runner", "guard"].map(|server| gate.sampling(server, request()));
            [one.await.unwrap_err().by, other.await.unwrap_err().by]
        })
        .await;
    assert_eq!(refused, [Refusal::User, Refusal::Configuration]);
    // Without a user, the budget decides.
    let mut fixture = Fixture::new(&[]);
    fixture.gate.can_ask = false;
    assert_eq!(fixture.gate.sampling("runner", request()).await, Ok(()));
}
