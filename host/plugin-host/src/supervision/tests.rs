#![allow(clippy::unwrap_used)]

use std::cell::Cell;

use hermes_runtime::services::Clock;
use hermes_runtime::{Fault, FaultKind, Limit};

use super::*;
use crate::record::Record;

#[derive(Default)]
struct Heard(Mutex<Vec<(Level, String)>>);

impl Reporter for Heard {
    fn log(&self, level: Level, text: &str) {
        self.0.lock().unwrap().push((level, text.to_owned()));
    }

    fn progress(&self, _: &str) {}
}

impl Heard {
    /// The lines that the user sees.
    fn shown(&self) -> Vec<String> {
        let heard = self.0.lock().unwrap();
        heard.iter().filter(|(level, _)| *level >= Level::Warn).map(|(_, text)| text.clone()).collect()
    }
}

impl Clock for Heard {
    fn now(&self) -> u64 {
        1
    }

    fn utc_offset(&self) -> i32 {
        0
    }
}

struct Scene {
    home: tempfile::TempDir,
    heard: Arc<Heard>,
    halt: Halt,
    supervisor: Supervisor,
    asked: Cell<u32>,
}

impl Scene {
    fn new(policy: OnFailure) -> Self {
        let home = tempfile::tempdir().unwrap();
        let (heard, halt) = (Arc::new(Heard::default()), Halt::default());
        let recorder = Recorder::new(Some(home.path()), "mine", "s", Arc::default(), heard.clone());
        let supervisor = Supervisor::new(("mine", "1.0.0"), policy, heard.clone(), recorder, halt.clone());
        Self { home, heard, halt, supervisor, asked: Cell::new(0) }
    }

    /// A call that fails with the next of these causes, and then succeeds.
    async fn call(&self, policy: RetryPolicy, causes: &[Cause]) -> Result<u32, CallError> {
        let mut left = causes.iter();
        let next = Cell::new(0);
        let outcomes: Vec<Option<Cause>> = left.by_ref().cloned().map(Some).chain([None, None]).collect();
        let ask = || {
            self.asked.set(self.asked.get() + 1);
            let outcome = outcomes[next.get()].clone();
            next.set(next.get() + 1);
            async move {
                match outcome {
                    Some(cause) => {
                        Err(CallError { plugin: "mine".into(), version: "1.0.0".into(), call: "view", cause })
                    }
                    None => Ok(7),
                }
            }
        };
        self.supervisor.watch("view", policy, ask).await
    }
}

fn trap() -> Cause {
    Cause::Trap(Box::new("unreachable".into()))
}

fn deadline() -> Cause {
    Cause::Deadline { limit: Limit::TurnTime, after: Duration::from_secs(2) }
}

fn fault() -> Cause {
    Cause::Fault(Box::new(Fault::new(FaultKind::Unavailable, "", "the service is away")))
}

fn of(limit: Limit) -> Cause {
    Cause::Limit { limit, value: 1 }
}

#[tokio::test(start_paused = true)]
async fn a_read_is_retried_unless_it_met_a_limit() {
    for (policy, cause, asked, well) in [
        (RetryPolicy::READ, trap(), 2, true),
        (RetryPolicy::ENGINE_READ, trap(), 2, true),
        (RetryPolicy::READ, of(Limit::Memory), 1, false),
        (RetryPolicy::READ, of(Limit::Output), 1, false),
        (RetryPolicy::READ, of(Limit::Cpu), 1, false),
        (RetryPolicy::READ, of(Limit::HostCalls), 1, false),
        (RetryPolicy::READ, deadline(), 1, false),
        (RetryPolicy::READ, fault(), 1, false),
        (RetryPolicy::READ, Cause::Cancelled, 1, false),
        (RetryPolicy::WRITE, trap(), 1, false),
        (RetryPolicy::ENGINE_WRITE, trap(), 1, false),
    ] {
        let scene = Scene::new(OnFailure::Fallback);
        let result = scene.call(policy, std::slice::from_ref(&cause)).await;
        assert_eq!((scene.asked.get(), result.is_ok()), (asked, well), "{policy:?} {cause}");
        assert_eq!(scene.heard.shown(), [""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_failed_is_logged_once_and_a_cancelled_one_is_not() {
    for (cause, logged) in [(fault(), 1), (trap(), 1), (Cause::Cancelled, 0)] {
        let scene = Scene::new(OnFailure::Fallback);
        scene.call(RetryPolicy::WRITE, std::slice::from_ref(&cause)).await.unwrap_err();
        let heard = scene.heard.0.lock().unwrap().clone();
        assert_eq!(heard.len(), logged, "{heard:?}");
        assert!(
            heard.iter().all(|(level, text)| *level == Level::Info && text.contains(&cause.to_string())),
            "{heard:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn three_failures_in_a_row_suspend_a_plugin_with_one_line_and_a_record() {
    let scene = Scene::new(OnFailure::Fallback);
    for _ in 0..3 {
        assert_eq!(scene.heard.shown().len(), 0);
        scene.call(RetryPolicy::WRITE, &[trap()]).await.unwrap_err();
    }
    let shown = scene.heard.shown();
    assert_eq!(shown.len(), 1, "{shown:?}");
    for part in ["failed 3 times in a row", "unreachable", "`view`", "disabled for this session"] {
        assert!(shown[0].contains(part), "{shown:?}");
    }
    for _ in 0..3 {
        let refused = scene.call(RetryPolicy::WRITE, &[]).await.unwrap_err().to_string();
        assert!(
            refused.contains("is disabled for this session") && refused.contains("record of the plugin `mine`"),
            "{refused}"
        );
    }
    assert_eq!((scene.asked.get(), scene.heard.shown().len(), scene.halt.why()), (3, 1, None));
    let Scene { home, supervisor, .. } = scene;
    drop(supervisor);
    let suspended = Record::read(home.path(), "mine").unwrap().suspended.unwrap();
    assert_eq!((suspended.failures, suspended.last.call.as_str()), (3, "view"));
    assert!(suspended.last.cause.contains("unreachable"));
}

#[tokio::test(start_paused = true)]
async fn a_result_or_a_mistake_of_the_caller_ends_the_streak_and_other_errors_do_not() {
    let fault = |kind| vec![Cause::Fault(Box::new(Fault::new(kind, "", "no")))];
    for (between, suspends) in [
        (Vec::new(), false),
        (fault(FaultKind::InvalidInput), false),
        (fault(FaultKind::Unavailable), true),
        (fault(FaultKind::Denied), true),
        (fault(FaultKind::Timeout), true),
        (fault(FaultKind::Cancelled), true),
        (fault(FaultKind::Conflict), true),
        (fault(FaultKind::Exhausted), true),
        (fault(FaultKind::Failed), true),
    ] {
        let scene = Scene::new(OnFailure::Fallback);
        for _ in 0..4 {
            let _ = scene.call(RetryPolicy::WRITE, &[trap()]).await;
            let _ = scene.call(RetryPolicy::WRITE, &[deadline()]).await;
            let _ = scene.call(RetryPolicy::WRITE, &between).await;
        }
        assert_eq!(!scene.heard.shown().is_empty(), suspends, "{between:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn errors_that_a_plugin_answers_never_suspend_it() {
    let scene = Scene::new(OnFailure::Fallback);
    for _ in 0..5 {
        scene.call(RetryPolicy::WRITE, &[fault()]).await.unwrap_err();
    }
    assert_eq!((scene.asked.get(), scene.heard.shown().len()), (5, 0));
}

#[tokio::test(start_paused = true)]
async fn a_stopped_call_neither_counts_nor_ends_the_streak() {
    let scene = Scene::new(OnFailure::Fallback);
    for _ in 0..3 {
        for cause in [trap(), Cause::Cancelled, Cause::Cancelled] {
            scene.call(RetryPolicy::WRITE, &[cause]).await.unwrap_err();
        }
    }
    assert_eq!(scene.heard.shown().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_engine_is_never_suspended_here_and_has_its_own_counter() {
    let scene = Scene::new(OnFailure::Stop);
    for _ in 0..5 {
        scene.call(RetryPolicy::ENGINE_WRITE, &[trap()]).await.unwrap_err();
    }
    assert_eq!(scene.call(RetryPolicy::WRITE, &[]).await.unwrap(), 7);
    assert_eq!((scene.heard.shown().len(), scene.halt.why()), (0, None));
}

#[tokio::test(start_paused = true)]
async fn the_reaction_to_a_suspension_follows_the_users_setting() {
    for (policy, off, halts) in
        [(OnFailure::Fallback, false, false), (OnFailure::Disable, true, false), (OnFailure::Stop, false, true)]
    {
        let scene = Scene::new(policy);
        assert!(!scene.supervisor.is_off());
        for _ in 0..3 {
            scene.call(RetryPolicy::WRITE, &[trap()]).await.unwrap_err();
        }
        assert_eq!((scene.supervisor.is_off(), scene.halt.why().is_some()), (off, halts), "{policy:?}");
        assert!(
            scene
                .halt
                .why()
                .is_none_or(|(plugin, why)| plugin == "mine" && why.contains("`mine`") && why.contains("unreachable"))
        );
    }
}

#[test]
fn the_rest_doubles_up_to_half_a_minute() {
    let rests: Vec<Option<u128>> = (0..5).map(|failures| rest(failures).map(|rest| rest.as_millis())).collect();
    assert_eq!(rests, [None, None, Some(100), Some(200), Some(400)]);
    assert_eq!(rest(40), Some(LONGEST_REST));
    assert_eq!(rest(u32::MAX), Some(LONGEST_REST));
}
