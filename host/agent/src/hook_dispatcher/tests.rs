#![allow(clippy::unwrap_used)]

use std::sync::Mutex;

use async_trait::async_trait;
use hermes_plugin_host::{CallError, Cause};

use super::*;

type Answers = fn() -> Result<Verdict, ()>;

/// The calls of all hooks, in order.
type Calls = Arc<Mutex<Vec<String>>>;

/// A hook that answers `before-tool` with this verdict, or crashes.
struct Scripted {
    name: &'static str,
    interests: &'static [&'static str],
    verdict: Answers,
    calls: Calls,
}

#[async_trait]
impl Hooks for Scripted {
    fn name(&self) -> &str {
        self.name
    }

    async fn interests(&self) -> Result<Vec<String>, CallError> {
        Ok(self.interests.iter().map(|name| (*name).to_owned()).collect())
    }

    async fn on_event(&self, event: Event) -> Result<Verdict, CallError> {
        let seen = match &event {
            Event::BeforeTool(event) => format!("before {} of {}", event.name, event.plugin),
            Event::AfterTool(done) => format!("after {}: {}", done.event.name, done.content),
            Event::BeforeModel(model) => format!("before {model}"),
            Event::AfterModel(reply) => format!("after {}", reply.model),
            Event::Other(notice) => notice.name.clone(),
        };
        self.calls.lock().unwrap().push(format!("{}: {seen}", self.name));
        (self.verdict)().map_err(|()| {
            let (plugin, version) = (self.name.to_owned(), "1.0.0".to_owned());
            CallError { plugin, version, call: "on-event", cause: Cause::Trap(Box::new("unreachable".into())) }
        })
    }
}

const ALL: &[&str] = &["before-tool", "after-tool", "before-model", "after-model", "unknown"];

async fn dispatcher(hooks: Vec<(&'static str, &'static [&'static str], Answers)>) -> (HookDispatcher, Calls) {
    let calls = Calls::default();
    let hook = |(name, interests, verdict)| {
        Arc::new(Scripted { name, interests, verdict, calls: Arc::clone(&calls) }) as Arc<dyn Hooks>
    };
    let hooks: Vec<Arc<dyn Hooks>> = hooks.into_iter().map(hook).collect();
    let (dispatcher, notices) = HookDispatcher::subscribe(&hooks).await;
    assert_eq!(notices, Vec::<String>::new());
    (dispatcher, calls)
}

fn call() -> ToolCall {
    ToolCall { id: "c".to_owned(), name: "note".to_owned(), arguments: "{}".to_owned() }
}

#[tokio::test]
async fn every_hook_is_asked_until_one_blocks_and_the_others_watch_in_order() {
    let ask: Answers = || Ok(Verdict::Ask("really?".to_owned()));
    let block: Answers = || Ok(Verdict::Block("not today".to_owned()));
    let proceed: Answers = || Ok(Verdict::Proceed);
    let crash: Answers = || Err(());
    for (last, expected) in [(proceed, Ok(1)), (block, Err("not today")), (crash, Err("unreachable"))] {
        let hooks = vec![("one", ALL, ask), ("deaf", &["after-tool"][..], block), ("two", ALL, last)];
        let (dispatcher, calls) = dispatcher(hooks).await;
        let asked = dispatcher.before_tool(&call(), "mine").await;
        assert_eq!(calls.lock().unwrap().join(", "), "one: before note of mine, two: before note of mine");
        match (asked, expected) {
            (Ok(objections), Ok(count)) => {
                assert_eq!(objections.len(), count);
                assert_eq!((objections[0].plugin.as_str(), objections[0].why.as_str()), ("one", "really?"));
            }
            (Err(why), Err(part)) => assert!(why.text.contains(part), "{why:?}"),
            (asked, expected) => panic!("{:?} instead of {expected:?}", asked.map(|objections| objections.len())),
        }
    }

    let (dispatcher, calls) = dispatcher(vec![("one", ALL, block), ("two", ALL, block)]).await;
    dispatcher.before_tool(&call(), "hermes").await.unwrap_err();
    assert_eq!(*calls.lock().unwrap(), ["one: before note of hermes"], "a blocked call is not offered to others");
    calls.lock().unwrap().clear();
    // The verdicts on other events are ignored.
    let answer = Answer {
        content: "done".to_owned(),
        images: Vec::new(),
        structured: None,
        reminder: None,
        whole: None,
        is_untrusted: false,
        failed: false,
        refused: None,
        changes: Vec::new(),
        elapsed_ms: 1,
    };
    dispatcher.before_model("m");
    dispatcher.after_model("m", Usage::default(), 1);
    dispatcher.after_tool(&call(), "mine", &answer);
    dispatcher.settle().await;
    let expected = [
        "one: before m",
        "two: before m",
        "one: after m",
        "two: after m",
        "one: after note: done",
        "two: after note: done",
    ];
    assert_eq!(*calls.lock().unwrap(), expected);
}

/// A hook that answers when it is allowed to.
struct Slow(tokio::sync::Semaphore);

#[async_trait]
impl Hooks for Slow {
    fn name(&self) -> &str {
        "slow"
    }

    async fn interests(&self) -> Result<Vec<String>, CallError> {
        Ok(vec!["after-tool".to_owned()])
    }

    async fn on_event(&self, _event: Event) -> Result<Verdict, CallError> {
        self.0.acquire().await.unwrap().forget();
        Ok(Verdict::Proceed)
    }
}

#[tokio::test]
async fn a_slow_hook_is_waited_for_once_megabytes_wait_for_it() {
    let hook = Arc::new(Slow(tokio::sync::Semaphore::new(0)));
    let (dispatcher, _) = HookDispatcher::subscribe(&[Arc::clone(&hook) as Arc<dyn Hooks>]).await;
    let content = "a".repeat(1 << 20);
    let answer = Answer {
        content,
        images: Vec::new(),
        structured: None,
        reminder: None,
        whole: None,
        is_untrusted: false,
        failed: false,
        refused: None,
        changes: Vec::new(),
        elapsed_ms: 1,
    };
    for count in 1..=5 {
        dispatcher.after_tool(&call(), "mine", &answer);
        let moment = std::time::Duration::from_millis(50);
        let caught_up = tokio::time::timeout(moment, dispatcher.catch_up()).await.is_ok();
        assert_eq!(caught_up, count < 4, "{count} MiB");
    }
    hook.0.add_permits(5);
    dispatcher.catch_up().await;
    dispatcher.settle().await;
    assert_eq!(dispatcher.waiting.load(Ordering::Relaxed), 0);
}
