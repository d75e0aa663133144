#![allow(clippy::unwrap_used)]

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use hermes_capabilities::process::Run;
use hermes_conversation::ToolCall;
use hermes_plugin_host::Identity;
use hermes_plugin_host::services::Refusal;

use crate::event::{Event, Observer};
use crate::report::{self, Ear};

use super::gate::Refused;
use super::right::Right;
use super::*;

/// A right of version 1 of a plugin.
pub(super) fn right(plugin: &str, what: &str) -> Right {
    Right { plugin: identity(plugin), what: what.to_owned(), of: String::new() }
}

fn identity(plugin: &str) -> Identity {
    Identity { name: plugin.to_owned(), version: "1.0.0".to_owned(), digest: format!("digest of {plugin}") }
}

/// Answers by a script and notes what it was asked; how many questions stood at once.
#[derive(Default)]
struct Person {
    answers: Mutex<VecDeque<Decision>>,
    asked: Mutex<Vec<Question>>,
    open: Mutex<(u32, u32)>,
}

#[async_trait]
impl Approver for Person {
    async fn ask(&self, question: &Question) -> Decision {
        {
            let mut open = self.open.lock().unwrap();
            open.0 += 1;
            open.1 = open.1.max(open.0);
        }
        tokio::time::sleep(std::time::Duration::from_secs(3)).await;
        self.open.lock().unwrap().0 -= 1;
        self.asked.lock().unwrap().push(question.clone());
        self.answers.lock().unwrap().pop_front().expect("no more questions were expected")
    }
}

/// Never answers.
struct Silent;

#[async_trait]
impl Approver for Silent {
    async fn ask(&self, _: &Question) -> Decision {
        std::future::pending().await
    }
}

#[derive(Default)]
struct Notes(Vec<String>);

impl Observer for Notes {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Notice(text) => self.0.push(text.to_owned()),
            Event::Asking => self.0.push("asking".to_owned()),
            _ => {}
        }
    }
}

struct Ground {
    home: tempfile::TempDir,
    person: Arc<Person>,
    gate: Gate,
    ear: Ear,
    notes: Notes,
}

impl Ground {
    fn new(answers: &[Decision]) -> Self {
        Self::with(answers, &[], &[], tempfile::tempdir().unwrap())
    }

    fn with(answers: &[Decision], allow: &[&str], deny: &[&str], home: tempfile::TempDir) -> Self {
        let person = Arc::new(Person { answers: Mutex::new(answers.iter().copied().collect()), ..Person::default() });
        let list = |entries: &[&str]| entries.iter().map(|&entry| entry.to_owned()).collect::<Vec<_>>();
        let rules = ApprovalRules::parse(&list(allow), &list(deny)).unwrap();
        let approvals = Approvals { rules, approver: Some(person.clone()) };
        let (voice, ear) = report::channel(home.path(), "s", approvals.approver.clone());
        let identities = ["runner", "guard"].map(identity);
        let gate = Gate::new(&approvals, home.path(), identities, voice);
        Self { home, person, gate, ear, notes: Notes::default() }
    }

    /// Programs, one after the other, while somebody attends.
    async fn programs(&mut self, programs: &[&str]) -> Vec<Option<Refusal>> {
        let (gate, mut outcomes) = (&self.gate, Vec::new());
        let work = async {
            for program in programs {
                outcomes.push(gate.program(&identity("runner"), &run(program), true).await.err().map(|no| no.by));
            }
        };
        self.ear.attend(&mut self.notes, work).await;
        outcomes
    }

    async fn tool(&mut self, dangerous: bool, objections: &[&str]) -> Result<(), Refused> {
        let objection = |why: &&str| Objection { plugin: "guard".to_owned(), why: (*why).to_owned() };
        let call = ToolCall { id: "c".to_owned(), name: "wipe".to_owned(), arguments: "{\"all\":1}".to_owned() };
        let work = self.gate.tool(Some("runner"), &call, dangerous, objections.iter().map(objection).collect());
        self.ear.attend(&mut self.notes, work).await
    }

    fn asked(&self) -> usize {
        self.person.asked.lock().unwrap().len()
    }
}

fn run(program: &str) -> Run {
    Run {
        program: program.to_owned(),
        path: PathBuf::from("/bin").join(program),
        real: PathBuf::from("/bin").join(program),
        arguments: vec!["--all".to_owned()],
        folder: PathBuf::from("/w"),
        input: Vec::new(),
        environment: Vec::new(),
    }
}

const YES: Option<Refusal> = None;
const NO: Option<Refusal> = Some(Refusal::User);

#[tokio::test(start_paused = true)]
async fn once_is_once_and_session_is_for_the_same_program_of_the_same_plugin() {
    let mut ground = Ground::new(&[Decision::Once, Decision::Session, Decision::Deny, Decision::Deny]);
    let outcomes = ground.programs(&["git", "git", "git", "ls", "ls"]).await;
    assert_eq!(outcomes, [YES, YES, YES, NO, NO]);
    assert_eq!(ground.asked(), 4);
    assert_eq!(ground.notes.0, ["asking"; 4]);
    // Nothing of this lasts.
    assert!(!ground.home.path().join("approvals.json").exists());
}

#[tokio::test(start_paused = true)]
async fn always_holds_in_the_next_session_until_the_plugin_changes() {
    let mut first = Ground::new(&[Decision::Always]);
    assert_eq!(first.programs(&["git"]).await, [YES]);
    let mut second = Ground::with(&[Decision::Deny], &[], &[], first.home);
    assert_eq!(second.programs(&["git"]).await, [YES]);
    let updated = Identity { digest: "another".to_owned(), ..identity("runner") };
    let git = run("git");
    let work = second.gate.program(&updated, &git, true);
    let refused = second.ear.attend(&mut second.notes, work).await.unwrap_err();
    assert_eq!((refused.by, second.asked()), (Refusal::User, 1));
}

#[tokio::test(start_paused = true)]
async fn the_configuration_answers_before_the_user_and_deny_wins() {
    let mut ground =
        Ground::with(&[], &["runner"], &["runner/process:rm", "runner/wipe"], tempfile::tempdir().unwrap());
    assert_eq!(ground.programs(&["git", "rm"]).await, [YES, Some(Refusal::Configuration)]);
    // Even what would not have to be approved.
    let refused = ground.tool(false, &[]).await.unwrap_err();
    assert_eq!(refused.by, Refusal::Configuration);
    assert!(refused.text.contains("`approvals.deny` has `runner/wipe`"), "{}", refused.text);
}

#[tokio::test(start_paused = true)]
async fn a_denied_always_is_still_denied() {
    let mut first = Ground::new(&[Decision::Always]);
    assert_eq!(first.programs(&["git"]).await, [YES]);
    let mut second = Ground::with(&[], &[], &["runner"], first.home);
    assert_eq!(second.programs(&["git"]).await, [Some(Refusal::Configuration)]);
}

#[tokio::test(start_paused = true)]
async fn questions_come_one_after_the_other_and_an_answer_serves_those_that_wait() {
    let mut ground = Ground::new(&[Decision::Session, Decision::Deny]);
    let gate = &ground.gate;
    let plugin = identity("runner");
    let runs = ["git", "git", "git", "ls"].map(run);
    let work = futures_util::future::join_all(runs.iter().map(|run| gate.program(&plugin, run, true)));
    let outcomes = ground.ear.attend(&mut ground.notes, work).await;
    assert_eq!(outcomes.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, true, true, false]);
    assert_eq!((ground.asked(), ground.person.open.lock().unwrap().1), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn where_nobody_can_be_asked_it_is_refused_with_the_way_to_allow_it() {
    let mut ground = Ground::new(&[]);
    ground.gate.can_ask = false;
    assert_eq!(ground.programs(&["git"]).await, [Some(Refusal::Unattended)]);
    ground.ear.drain(&mut ground.notes);
    assert!(ground.notes.0[0].contains("approvals.allow: [runner/process:git]"), "{:?}", ground.notes.0);
    let refused = ground.tool(true, &["it is Friday"]).await.unwrap_err();
    assert_eq!(refused.by, Refusal::Unattended);
    assert!(refused.text.contains("approvals.allow: [guard/wipe, runner/wipe]"), "{}", refused.text);
    assert!(refused.text.contains("another way"), "{}", refused.text);
}

#[tokio::test(start_paused = true)]
async fn work_in_the_background_asks_nobody() {
    let mut ground = Ground::with(&[], &["runner/process:ls"], &[], tempfile::tempdir().unwrap());
    let plugin = identity("runner");
    let (git, ls) = (run("git"), run("ls"));
    let work =
        async { (ground.gate.program(&plugin, &git, false).await, ground.gate.program(&plugin, &ls, false).await) };
    let (git, ls) = ground.ear.attend(&mut ground.notes, work).await;
    assert_eq!((git.unwrap_err().by, ls.is_ok(), ground.asked()), (Refusal::Unattended, true, 0));
}

#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_takes_up_is_refused_and_never_shown_later() {
    let mut ground = Ground::new(&[]);
    // No turn runs.
    let refused = ground.gate.program(&identity("runner"), &run("git"), true).await.unwrap_err();
    assert_eq!(refused.by, Refusal::Unattended);
    ground.ear.attend(&mut ground.notes, tokio::time::sleep(std::time::Duration::from_secs(9))).await;
    assert_eq!(ground.asked(), 0);
    ground.ear.ask_no_more();
    assert_eq!(ground.programs(&["git"]).await, [Some(Refusal::Unattended)]);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_is_stopped_while_it_asks_leaves_a_no() {
    let home = tempfile::tempdir().unwrap();
    let approvals = Approvals { rules: ApprovalRules::default(), approver: Some(Arc::new(Silent)) };
    let (voice, mut ear) = report::channel(home.path(), "s", approvals.approver.clone());
    let gate = Arc::new(Gate::new(&approvals, home.path(), [identity("runner")], voice));
    let asking = Arc::clone(&gate);
    let asker = tokio::spawn(async move { asking.program(&identity("runner"), &run("git"), true).await });
    let mut notes = Notes::default();
    let turn = ear.attend(&mut notes, std::future::pending::<()>());
    assert!(tokio::time::timeout(std::time::Duration::from_secs(9), turn).await.is_err());
    assert_eq!(asker.await.unwrap().unwrap_err().by, Refusal::User);
    assert_eq!(notes.0, ["asking"]);
}

#[tokio::test(start_paused = true)]
async fn a_hook_and_a_dangerous_tool_are_one_question_and_another_reason_is_another() {
    let mut ground = Ground::new(&[Decision::Session, Decision::Deny]);
    assert_eq!(ground.tool(false, &[]).await, Ok(()));
    assert_eq!(ground.asked(), 0);
    assert_eq!(ground.tool(true, &["it is Friday"]).await, Ok(()));
    assert_eq!(ground.tool(true, &["it is Friday"]).await, Ok(()));
    assert_eq!(ground.tool(true, &[]).await, Ok(()));
    assert_eq!(ground.asked(), 1);
    assert!(ground.tool(true, &["it is Monday"]).await.is_err());
    let asked = ground.person.asked.lock().unwrap();
    let Subject::Tool { name, arguments, dangerous, objections } = &asked[0].subject else { panic!("{asked:?}") };
    assert_eq!((name.as_str(), arguments.as_str(), *dangerous), ("wipe", "{\"all\":1}", true));
    assert_eq!(objections, &[Objection { plugin: "guard".to_owned(), why: "it is Friday".to_owned() }]);
}

#[tokio::test(start_paused = true)]
async fn an_always_that_cannot_be_kept_counts_for_the_session_and_says_so() {
    let mut ground = Ground::new(&[Decision::Always]);
    std::fs::write(ground.home.path().join("approvals.json"), "damaged").unwrap();
    assert_eq!(ground.programs(&["git", "git"]).await, [YES, YES]);
    assert_eq!(ground.asked(), 1);
    ground.ear.drain(&mut ground.notes);
    let told = ground.notes.0.join("\n");
    assert!(told.contains("for this session only") && told.contains("damaged"), "{told}");
}
