//! A plugin that turns an approved program into another one by variables.

use super::*;
use hermes_protocol::Decision;

fn with(variables: &[(&str, &str)]) -> Run {
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Run { variables, ..run("git") }
}

async fn runs(fixture: &mut Fixture, runs: &[Run]) -> Vec<Option<Refusal>> {
    fixture
        .attend(async |gate| {
            let mut outcomes = Vec::new();
            for run in runs {
                outcomes.push(gate.program(&identity("runner"), run, true).await.err().map(|no| no.by));
            }
            outcomes
        })
        .await
}

#[tokio::test(start_paused = true)]
async fn an_approval_without_variables_covers_no_run_with_variables() {
    for decision in [Decision::Session, Decision::Always] {
        let mut fixture = Fixture::new(&[decision, Decision::Deny, Decision::Deny]);
        let asked = [
            with(&[]),
            with(&[("GIT_EXTERNAL_DIFF", "./evil")]),
            with(&[("LC_ALL", "../../evil")]),
            with(&[("LC_ALL", "C.UTF-8"), ("NO_COLOR", "1")]),
            with(&[]),
        ];
        assert_eq!(runs(&mut fixture, &asked).await, [YES, NO, NO, YES, YES], "{decision:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_approval_covers_exactly_the_variables_that_were_shown() {
    let mut fixture = Fixture::new(&[Decision::Session, Decision::Deny, Decision::Deny, Decision::Deny]);
    let shown = [("GIT_PAGER", "cat"), ("GIT_PAGER", "less"), ("A", "1")];
    let asked = [
        with(&shown),
        with(&[("A", "1"), ("GIT_PAGER", "less")]),
        // The last value of a name counts.
        with(&[("GIT_PAGER", "less"), ("GIT_PAGER", "cat"), ("A", "1")]),
        with(&[("GIT_PAGER", "less")]),
        with(&[("A", "1"), ("GIT_PAGER", "less"), ("GIT_SSH_COMMAND", "./evil")]),
        with(&[]),
    ];
    assert_eq!(runs(&mut fixture, &asked).await, [YES, YES, NO, NO, NO, YES]);
    assert_eq!(fixture.asked(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_rule_for_a_program_covers_variables_only_if_it_says_so() {
    let evil = [("GIT_EXTERNAL_DIFF", "./evil")];
    for (allow, outcome) in [
        (&["runner/process:git"][..], Some(Refusal::Unattended)),
        (&["runner/process:git", "runner/variables:git"], YES),
        (&["runner"], YES),
    ] {
        let mut fixture = Fixture::with(&[], allow, &[], tempfile::tempdir().unwrap());
        fixture.gate.can_ask = false;
        assert_eq!(runs(&mut fixture, &[with(&[]), with(&evil)]).await, [YES, outcome], "{allow:?}");
        let named = fixture.notices().iter().any(|notice| notice.contains("runner/variables:git"));
        assert_eq!(named, outcome.is_some());
    }
    let mut fixture = Fixture::with(&[], &["runner"], &["runner/variables:git"], tempfile::tempdir().unwrap());
    assert_eq!(runs(&mut fixture, &[with(&[]), with(&evil)]).await, [YES, Some(Refusal::Configuration)]);
}
