//! Every pair of forms of rules, in every mode and sandbox, with lines that can be read and lines that cannot, compared with a small
//! model of `docs/use/approvals.md`.

use hermes_capabilities::process::{Confined, Sandbox, SandboxRules};
use hermes_private_files::TemporaryFolder;
use hermes_protocol::{Decision, Mode, Subject};

use super::*;

/// A line of the shell, and what a person says about it.
#[derive(Clone, Copy)]
struct Seen {
    line: &'static str,
    pushes: bool,
    is_readable: bool,
    is_plain: bool,
}

const LINES: [Seen; 5] = [
    Seen { line: "git push", pushes: true, is_readable: true, is_plain: true },
    Seen { line: "git status", pushes: false, is_readable: true, is_plain: true },
    Seen { line: "echo $(git push)", pushes: true, is_readable: true, is_plain: false },
    Seen { line: "git status 'x", pushes: false, is_readable: false, is_plain: false },
    Seen { line: "BASH_ENV=x bash", pushes: false, is_readable: false, is_plain: false },
];

const ALLOW: [&[&str]; 8] = [
    &[],
    &["runner"],
    &["runner/process:bash"],
    &["runner(git push*)"],
    &["runner(git *)"],
    &["runner/unconfined:bash"],
    &["runner", "runner/unconfined:bash"],
    &["runner(git status)", "runner/unconfined:bash"],
];
const LIMITS: [&[&str]; 5] = [&[], &["runner"], &["runner/process:bash"], &["runner(git push*)"], &["runner(rm*)"]];
/// Modes, with and without a user.
const MODES: [(Mode, bool); 6] = [
    (Mode::Ask, true),
    (Mode::Ask, false),
    (Mode::AcceptEdits, true),
    (Mode::Plan, false),
    (Mode::Auto, true),
    (Mode::Auto, false),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Runs,
    Asks,
    Refused(Refusal),
}

/// The rules of a case.
#[derive(Debug, Clone, Copy)]
struct Case {
    allow: &'static [&'static str],
    reads: bool,
    ask: &'static [&'static str],
    deny: &'static [&'static str],
}

/// What `docs/use/approvals.md` says, in its order: `deny` over everything, then `ask`, then the mode, then `allow`.
fn expected(case: Case, mode: Mode, can_ask: bool, sandbox: &Confinement, seen: Seen) -> Outcome {
    let names = |list: &[&str]| list.contains(&"runner") || list.contains(&"runner/process:bash");
    let means_push = |list: &[&str]| seen.is_readable && seen.pushes && list.contains(&"runner(git push*)");
    let has_pattern = |list: &[&str]| list.iter().any(|entry| entry.contains('('));
    if names(case.deny) || means_push(case.deny) {
        return Outcome::Refused(Refusal::Configuration);
    }
    let is_unread = !seen.is_readable && (has_pattern(case.ask) || has_pattern(case.deny));
    let must_ask = names(case.ask) || means_push(case.ask) || is_unread;
    let only_reads = case.reads && seen.line == "git status";
    if mode == Mode::Plan && !only_reads {
        return Outcome::Refused(Refusal::Plan);
    }
    if mode == Mode::Auto && matches!(sandbox, Confinement::Confined(_)) && !must_ask {
        return Outcome::Runs;
    }
    let by_pattern = seen.is_plain
        && (case.allow.contains(&"runner(git *)")
            || (seen.pushes && case.allow.contains(&"runner(git push*)"))
            || (!seen.pushes && case.allow.contains(&"runner(git status)")));
    let is_allowed = names(case.allow) || by_pattern || only_reads;
    let is_confined = !matches!(sandbox, Confinement::Unavailable(_)) || case.allow.contains(&"runner/unconfined:bash");
    match (must_ask || !is_allowed || !is_confined, can_ask) {
        (false, _) => Outcome::Runs,
        (true, true) => Outcome::Asks,
        (true, false) => Outcome::Refused(Refusal::Unattended),
    }
}

fn confined() -> Confinement {
    let sandbox = Sandbox {
        rules: SandboxRules::default(),
        home: PathBuf::from("/home"),
        writable: Vec::new(),
        readable: Vec::new(),
        guarded: Vec::new(),
        listed: Arc::default(),
    };
    Confinement::Confined(Arc::new(Confined::new(sandbox, TemporaryFolder::new("hermes-test-").unwrap())))
}

fn bash(line: &str, confinement: &Confinement) -> Run {
    let arguments = vec!["-c".to_owned(), line.to_owned()];
    Run { arguments, confinement: confinement.clone(), ..run("bash") }
}

#[tokio::test(start_paused = true)]
async fn one_verdict_decides_as_the_documentation_says() {
    let sandboxes = [Confinement::Off, Confinement::Unavailable("no namespaces".to_owned()), confined()];
    let mut decided = 0;
    let none: &[&str] = &[];
    // Every pair of two lists, and `reads` beside every third one.
    let mut pairs: Vec<(&[&str], &[&str], &[&str])> = Vec::new();
    pairs.extend(ALLOW.into_iter().flat_map(|allow| LIMITS.map(|ask| (allow, ask, none))));
    pairs.extend(ALLOW.into_iter().flat_map(|allow| LIMITS.map(|deny| (allow, none, deny))));
    pairs.extend(LIMITS.into_iter().flat_map(|ask| LIMITS.map(|deny| (ALLOW[1], ask, deny))));
    for (at, (allow, ask, deny)) in pairs.into_iter().enumerate() {
        // `reads` beside every third one.
        let reads = at % 3 == 0;
        let case = Case { allow, reads, ask, deny };
        let lists: [Vec<String>; 4] = [allow, if reads { &["runner(git status)"] } else { &[] }, ask, deny]
            .map(|list: &[&str]| list.iter().map(|&entry| entry.to_owned()).collect());
        let [allow, reads, ask, deny] = &lists;
        let rules = RuleLists { allow, reads, ask, deny };
        let mut fixture = Fixture::ruled(&[], rules, tempfile::tempdir().unwrap());
        for (mode, can_ask) in MODES {
            fixture.mode.set(mode);
            fixture.gate.can_ask = can_ask;
            for (sandbox, seen) in sandboxes.iter().flat_map(|sandbox| LINES.map(|seen| (sandbox, seen))) {
                fixture.answers = [Decision::Deny].into();
                let run = bash(seen.line, sandbox);
                let plugin = identity("runner");
                let passed = fixture.attend(async |gate| gate.program(&plugin, &run, true).await).await;
                let outcome = match passed {
                    Ok(()) => Outcome::Runs,
                    Err(refused) if refused.by == Refusal::User => Outcome::Asks,
                    Err(refused) => Outcome::Refused(refused.by),
                };
                let wanted = expected(case, mode, can_ask, sandbox, seen);
                assert_eq!(outcome, wanted, "{case:?} {mode} {can_ask} {sandbox:?}: {:?}", seen.line);
                decided += 1;
            }
        }
    }
    assert!(decided > 9_000, "{decided}");
}

/// Runs these programs one after the other, with an answer for each question.
async fn outcomes(fixture: &mut Fixture, runs: &[Run]) -> Vec<bool> {
    let plugin = identity("runner");
    fixture
        .attend(async |gate| {
            let mut outcomes = Vec::new();
            for run in runs {
                outcomes.push(gate.program(&plugin, run, true).await.is_ok());
            }
            outcomes
        })
        .await
}

fn asking(entry: &str, answers: &[Decision]) -> Fixture {
    let (allow, ask) = (["runner".to_owned()], [entry.to_owned()]);
    let rules = RuleLists { allow: &allow, ask: &ask, ..RuleLists::default() };
    Fixture::ruled(answers, rules, tempfile::tempdir().unwrap())
}

#[tokio::test(start_paused = true)]
async fn where_a_rule_asks_about_commands_only_an_answer_about_the_same_command_counts() {
    let git = |arguments: &[&str]| Run {
        arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
        ..run("git")
    };
    for lasting in [Decision::Session, Decision::Always] {
        let mut fixture = asking("runner(git push*)", &[lasting, Decision::Deny, Decision::Deny]);
        let runs = [git(&["status"]), git(&["push"]), git(&["push"]), git(&["push", "-f"]), git(&["-C", "x", "push"])];
        // The first one is allowed by the rule, and the third by the answer to the second.
        assert_eq!(outcomes(&mut fixture, &runs).await, [true, true, true, false, false], "{lasting:?}");
        assert_eq!(fixture.asked(), 3);
        assert!(fixture.asked.iter().all(|question| matches!(&question.subject, Subject::Program(run) if run.exact)));
    }
    // An answer for every run of the program, given before there was such a rule.
    let mut before = Fixture::new(&[Decision::Always]);
    assert_eq!(outcomes(&mut before, &[git(&["status"])]).await, [true]);
    let ask = ["runner(git push*)".to_owned()];
    let rules = RuleLists { ask: &ask, ..RuleLists::default() };
    let mut after = Fixture::ruled(&[Decision::Deny], rules, before.home);
    assert_eq!(outcomes(&mut after, &[git(&["status"]), git(&["push"])]).await, [true, false]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_counts_for_runs_without_a_sandbox_only_if_it_was_about_one() {
    let without = Confinement::Unavailable("no namespaces".to_owned());
    let mut fixture = Fixture::new(&[Decision::Session, Decision::Session, Decision::Deny]);
    let runs = [
        bash("ls", &confined()),
        bash("ls", &confined()),
        bash("ls", &without),
        bash("ls", &without),
        bash("ls", &confined()),
        bash("id", &without),
    ];
    assert_eq!(outcomes(&mut fixture, &runs).await, [true, true, true, true, true, false]);
    assert_eq!(fixture.asked(), 3);
    let shown: Vec<bool> = fixture
        .asked
        .iter()
        .map(|question| matches!(&question.subject, Subject::Program(run) if run.unconfined.is_some()))
        .collect();
    assert_eq!(shown, [false, true, true]);
}

#[tokio::test(start_paused = true)]
async fn without_a_user_a_run_without_a_sandbox_names_the_word_that_allows_it() {
    let mut fixture = Fixture::with(&[], &["runner"], &[], tempfile::tempdir().unwrap());
    fixture.gate.can_ask = false;
    let without = Confinement::Unavailable("no namespaces".to_owned());
    assert_eq!(outcomes(&mut fixture, &[bash("ls", &without), bash("ls", &Confinement::Off)]).await, [false, true]);
    let notices = fixture.notices().join("\n");
    assert!(notices.contains("approvals.allow: [runner/unconfined:bash]"), "{notices}");
    assert!(notices.contains("no namespaces") && notices.contains("`sandbox.mode: off`"), "{notices}");
}

#[tokio::test(start_paused = true)]
async fn without_a_user_what_a_rule_asks_about_is_refused_with_the_rule() {
    let mut fixture = asking("runner(git push*)", &[]);
    fixture.gate.can_ask = false;
    let runs = ["git push", "curl x | sh", "git status"].map(|line| bash(line, &Confinement::Off));
    assert_eq!(outcomes(&mut fixture, &runs).await, [false, false, true]);
    let notices = fixture.notices().join("\n");
    assert!(notices.contains("`approvals.ask` has `runner(git push*)`"), "{notices}");
    assert!(notices.contains("cannot be read") && !notices.contains("approvals.allow: ["), "{notices}");
}

#[tokio::test(start_paused = true)]
async fn a_rule_about_variables_holds_in_every_mode() {
    let with =
        Run { variables: vec![("GIT_EXTERNAL_DIFF".to_owned(), "./evil".to_owned())], ..bash("ls", &confined()) };
    let entry = ["runner/variables:bash".to_owned()];
    for (rules, expected) in [
        (RuleLists { deny: &entry, ..RuleLists::default() }, Refusal::Configuration),
        (RuleLists { ask: &entry, ..RuleLists::default() }, Refusal::User),
    ] {
        let mut fixture = Fixture::ruled(&[Decision::Deny], rules, tempfile::tempdir().unwrap());
        fixture.mode.set(Mode::Auto);
        let refused = fixture.attend(async |gate| gate.program(&identity("runner"), &with, true).await).await;
        assert_eq!(refused.unwrap_err().by, expected);
    }
}

/// A key of the user could leave the sandbox over the network.
#[tokio::test(start_paused = true)]
async fn auto_asks_about_a_confined_program_that_gets_a_variable_of_the_user() {
    let plain = bash("ls", &confined());
    let with_key = Run { inherited: vec!["API_KEY".to_owned()], ..plain.clone() };
    let mut fixture = Fixture::new(&[Decision::Deny]);
    fixture.mode.set(Mode::Auto);
    assert_eq!(outcomes(&mut fixture, &[plain, with_key]).await, [true, false]);
    assert_eq!(fixture.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_input_of_a_shell_is_read_as_its_commands() {
    let fed = |input: &[u8], arguments: &[&str]| Run {
        input: input.to_vec(),
        arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
        ..run("bash")
    };
    let mut fixture = Fixture::with(&[], &["runner"], &["runner(git push*)"], tempfile::tempdir().unwrap());
    fixture.gate.can_ask = false;
    let runs = [
        fed(b"ls", &["-s"]),
        fed(b"git push", &["-s"]),
        fed(b"x; git push\n", &[]),
        fed(b"git 'pu", &[]),
        fed(b"git push", &["-c", "sh"]),
        fed(b"git push", &["-c", "cat"]),
    ];
    assert_eq!(outcomes(&mut fixture, &runs).await, [true, false, false, false, false, true]);
    // What is written to a program in the background comes after the approval.
    let later = |line: &str| Run { background: true, ..bash(line, &Confinement::Off) };
    let runs =
        ["bash", "cat | sh", "sleep 1; exec sh -s", "./server --port 1", "cargo test 2>&1 | tee log", "bash build.sh"]
            .map(later);
    assert_eq!(outcomes(&mut fixture, &runs).await, [false, false, false, true, true, true]);
}
