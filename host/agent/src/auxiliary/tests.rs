#![allow(clippy::unwrap_used)]

use std::collections::VecDeque;
use std::path::Path;

use hermes_conversation::{Role, SessionId, Usage};
use hermes_models::{CooldownId, Delta, Persistence, Provider, Request, Style, WindowSource};
use hermes_plugin_host::services::PromptMessage;
use hermes_session_store::SessionStore;

use super::*;
use crate::clock::Clock;
use crate::cooldowns::ModelCooldowns;
use crate::feed::{Feed, FeedLimits, Subscription};
use crate::report::NoticeSender;

/// What a scripted model does in one attempt.
#[derive(Clone)]
enum Act {
    Say(&'static str),
    Fail(ModelError),
    Hang,
}

use Act::{Fail, Hang, Say};

/// A model that follows a script and repeats its last act.
struct Scripted {
    acts: Mutex<VecDeque<Act>>,
    /// The time of each attempt in seconds since the start; negative if the provider was to make its own retries.
    attempts: Arc<Mutex<Vec<i64>>>,
    begun: Instant,
}

impl Scripted {
    async fn act(&self, patient: bool) -> Result<Reply, ModelError> {
        let seconds = i64::try_from(self.begun.elapsed().as_secs()).unwrap();
        self.attempts.lock().unwrap().push(if patient { -seconds } else { seconds });
        let act = {
            let mut acts = self.acts.lock().unwrap();
            if acts.len() > 1 { acts.pop_front().unwrap() } else { acts[0].clone() }
        };
        match act {
            Hang => std::future::pending().await,
            Fail(error) => Err(error),
            Say(text) => Ok(Reply {
                text: text.to_owned(),
                reasoning: None,
                tool_calls: Vec::new(),
                finish: Finish::Stop,
                usage: None,
                model: "answered".to_owned(),
                parts: Vec::new(),
            }),
        }
    }
}

#[async_trait]
impl Provider for Scripted {
    fn style(&self) -> Style {
        Style::PLAIN
    }

    async fn complete(
        &self,
        _: &Request<'_>,
        _: &mut (dyn for<'d> FnMut(Delta<'d>) + Send),
    ) -> Result<Reply, ModelError> {
        self.act(true).await
    }

    async fn complete_with(
        &self,
        persistence: Persistence,
        _: &Request<'_>,
        _: &mut (dyn for<'d> FnMut(Delta<'d>) + Send),
    ) -> Result<Reply, ModelError> {
        self.act(persistence == Persistence::Full).await
    }

    fn is_offline(&self) -> bool {
        false
    }
}

/// The session's model is the last one.
struct Fixture {
    auxiliary: Auxiliary,
    front: Subscription,
    attempts: Vec<Arc<Mutex<Vec<i64>>>>,
}

/// A task with other models, followed by the session's model.
fn fixture(task: &str, others: Vec<Vec<Act>>, session: Vec<Act>) -> Fixture {
    fixture_with(task, others, session, None)
}

fn fixture_with(task: &str, others: Vec<Vec<Act>>, session: Vec<Act>, missing: Option<&str>) -> Fixture {
    let begun = Instant::now();
    let mut attempts = Vec::new();
    let mut provider = |acts: Vec<Act>| -> Arc<dyn Provider> {
        let log = Arc::default();
        attempts.push(Arc::clone(&log));
        Arc::new(Scripted { acts: Mutex::new(acts.into()), attempts: log, begun })
    };
    let mut candidates: Vec<Candidate> = Vec::new();
    for (at, acts) in others.into_iter().enumerate() {
        candidates.push(Candidate::Other {
            served: served(provider(acts), model(&format!("other-{at}"), 50_000 + u32::try_from(at).unwrap())),
            section: format!("auxiliary.{task}[{at}]"),
        });
    }
    candidates.push(Candidate::Session { context_length: 90_000 });
    let mut models = AuxiliaryModels::new(2);
    let missing = missing.map(str::to_owned);
    models.set(task, TaskModels { candidates, timeout: Duration::from_secs(100), effort: None, missing });
    let feed = Feed::new(FeedLimits::SHARED);
    let front = feed.subscribe(None);
    let notices = NoticeSender::new(Path::new("."), "s", feed);
    let chosen = served(provider(session), model("big", 100_000));
    let cooldowns = ModelCooldowns::new(
        Duration::ZERO,
        hermes_models::Cooldowns::new(hermes_private_files::FileDocuments::below("/nonexistent".as_ref())),
    );
    let chain = Arc::new(ModelChain::new(chosen, Vec::new(), Arc::new(cooldowns)));
    let auxiliary = Auxiliary::new(chain, models, notices);
    Fixture { auxiliary, front, attempts }
}

fn served(provider: Arc<dyn Provider>, model: Model) -> ServedModel {
    let window_source = WindowSource::Family;
    let rest = CooldownId::model(&hermes_models::Route::offline());
    ServedModel { provider, model, address: "http://h/v1".to_owned(), window_source, overridden: None, cooldown: rest }
}

fn model(name: &str, context_length: u32) -> Model {
    Model { provider: "p".to_owned(), name: name.to_owned(), context_length }
}

impl Fixture {
    async fn ask(&self, task: &str) -> Result<String, Fault> {
        let request = ModelRequest {
            task: task.to_owned(),
            messages: vec![PromptMessage::text(Role::System, "be brief"), PromptMessage::text(Role::User, "sum up")],
            max_tokens: None,
            temperature: None,
            schema: None,
        };
        self.auxiliary.complete(request).await.map(|reply| reply.text)
    }

    fn attempts(&self) -> Vec<Vec<i64>> {
        self.attempts.iter().map(|log| log.lock().unwrap().clone()).collect()
    }
}

fn host() -> String {
    "h".to_owned()
}

fn down() -> Act {
    Fail(ModelError::Unreachable { url: "http://h/".to_owned(), why: "refused".to_owned() })
}

fn limited() -> Act {
    Fail(ModelError::RateLimited { host: host(), message: "slow".to_owned(), wait: None })
}

fn unpaid() -> Act {
    Fail(ModelError::Billing { host: host(), status: 402, message: "pay".to_owned() })
}

fn refused(status: u16) -> Act {
    Fail(ModelError::BadRequest { host: host(), status, message: "odd".to_owned() })
}

fn no_key() -> Act {
    Fail(ModelError::Auth { host: host(), status: 401, message: "who".to_owned(), remedy: "set one".to_owned() })
}

#[tokio::test(start_paused = true)]
async fn each_failure_is_retried_passed_on_or_final() {
    let not_found =
        Fail(ModelError::NotFound { url: "u".to_owned(), model: "m".to_owned(), message: "none".to_owned() });
    let malformed = Fail(ModelError::Malformed { host: host(), why: "a page".to_owned() });
    let broken = Fail(ModelError::Server { host: host(), status: 503, message: "busy".to_owned() });
    let unable = Fail(ModelError::Server { host: host(), status: 501, message: "no".to_owned() });
    // The first model's acts, and the times of the attempts of the first, the second and the session's model.
    for (acts, first, next, sessions) in [
        (vec![Say("fine")], &[0][..], &[][..], &[][..]),
        (vec![down()], &[0, 1, 3], &[3], &[]),
        (vec![broken.clone(), Say("fine")], &[0, 1], &[], &[]),
        (vec![broken], &[0, 1, 3], &[3], &[]),
        (vec![unable], &[0, 1, 3], &[3], &[]),
        (vec![no_key()], &[0], &[0], &[]),
        (vec![unpaid()], &[0], &[0], &[]),
        (vec![not_found], &[0], &[0], &[]),
        (vec![malformed], &[0], &[0], &[]),
        (vec![limited()], &[0], &[0], &[]),
        (vec![Say(" \n")], &[0], &[0], &[]),
        (vec![Hang], &[0], &[100], &[]),
        (vec![refused(400)], &[0], &[], &[]),
        (vec![Fail(ModelError::TooLong { message: "long".to_owned(), limit: None })], &[0], &[], &[]),
    ] {
        let is_final = next.is_empty() && !matches!(acts.last(), Some(Say(_)));
        let fixture = fixture(COMPRESSION, vec![acts, vec![Say("next")]], vec![Say("session")]);
        let reply = fixture.ask(COMPRESSION).await;
        assert_eq!(fixture.attempts(), [first, next, sessions]);
        assert_eq!(reply.is_err(), is_final, "{reply:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_timeout_is_retried_except_for_compression() {
    let fixture = fixture("memory", vec![vec![Hang, Hang, Say("late")]], vec![Say("session")]);
    assert_eq!(fixture.ask("memory").await.unwrap(), "late");
    assert_eq!(fixture.attempts(), [&[0, 101, 203][..], &[]]);
}

#[tokio::test(start_paused = true)]
async fn the_sessions_model_gets_one_attempt_at_the_end_and_the_first_failure_is_reported() {
    let fixture = fixture(COMPRESSION, vec![vec![no_key()], vec![limited()]], vec![down()]);
    let fault = fixture.ask(COMPRESSION).await.unwrap_err();
    assert_eq!(fixture.attempts(), [[0], [0], [0]]);
    assert_eq!((fault.kind, fault.code.as_str()), (FaultKind::Unavailable, "auth"));
    assert_eq!(
        fault.message,
        "h refused the key (status 401): who; check `auxiliary.compression[0]` in config.yaml, or check the installation"
    );
}

#[tokio::test(start_paused = true)]
async fn the_sessions_model_gets_retries_when_it_is_the_only_one() {
    let alone = fixture(COMPRESSION, Vec::new(), vec![down(), Say("fine")]);
    assert_eq!(alone.ask(COMPRESSION).await.unwrap(), "fine");
    assert_eq!(alone.attempts(), [[0, 1]]);
    // The provider waits as long as the rate limit lasts.
    let limited = fixture(COMPRESSION, Vec::new(), vec![limited(), Say("fine")]);
    assert_eq!(limited.ask(COMPRESSION).await.unwrap(), "fine");
    assert_eq!(limited.attempts(), [[0, -1]]);
    // The same applies to a task without a section.
    assert_eq!(alone.ask("unknown").await.unwrap(), "fine");
}

#[tokio::test(start_paused = true)]
async fn a_model_that_needs_payment_is_skipped_for_ten_minutes() {
    let fixture = fixture(COMPRESSION, vec![vec![unpaid(), Say("paid")]], vec![Say("session")]);
    assert_eq!(fixture.ask(COMPRESSION).await.unwrap(), "session");
    assert_eq!(fixture.auxiliary.resolve(COMPRESSION).unwrap().name, "big");
    tokio::time::advance(Duration::from_secs(599)).await;
    assert_eq!(fixture.ask(COMPRESSION).await.unwrap(), "session");
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(fixture.ask(COMPRESSION).await.unwrap(), "paid");
    assert_eq!(fixture.attempts(), [&[0, 601][..], &[0, 599]]);

    let alone = self::fixture(COMPRESSION, Vec::new(), vec![unpaid()]);
    alone.ask(COMPRESSION).await.unwrap_err();
    let fault = alone.auxiliary.resolve(COMPRESSION).unwrap_err();
    assert_eq!((fault.code.as_str(), fault.retry_after_ms), ("no-model", Some(600_000)));
    assert_eq!(alone.ask(COMPRESSION).await.unwrap_err().code, "no-model");
    assert_eq!(alone.attempts(), [[0]], "an empty account is attempts again");
}

fn notices(fixture: &mut Fixture) -> Vec<String> {
    fixture.front.notices().iter().map(ToString::to_string).collect()
}

#[tokio::test(start_paused = true)]
async fn a_substitute_model_is_reported_once_with_cause_and_remedy() {
    let mut fixture = fixture(COMPRESSION, vec![vec![down()], vec![Say("next")]], vec![Say("session")]);
    for _ in 0..3 {
        fixture.ask(COMPRESSION).await.unwrap();
    }
    assert_eq!(
        notices(&mut fixture),
        [
            "other-1 of p served the task `compression` in place of the configured model: no connection to http://h/: refused; \
          check `auxiliary.compression[0]` in config.yaml, or check the installation"
        ]
    );
    let lacking = "`auxiliary.compression` is to be served by groq, and there is no key for it; set GROQ_API_KEY";
    let mut fixture = fixture_with(COMPRESSION, Vec::new(), vec![Say("session")], Some(lacking));
    fixture.ask(COMPRESSION).await.unwrap();
    fixture.ask(COMPRESSION).await.unwrap();
    assert_eq!(
        notices(&mut fixture),
        [format!("big of p served the task `compression` in place of the configured model: {lacking}")]
    );
    let mut quiet = self::fixture(COMPRESSION, vec![vec![down(), Say("again")]], vec![Say("session")]);
    assert_eq!(quiet.ask(COMPRESSION).await.unwrap(), "again");
    assert!(quiet.front.notices().is_empty());
}

#[tokio::test]
async fn a_task_resolves_to_its_first_model_with_the_smallest_window() {
    let fixture = fixture("memory", vec![vec![Say("a")], vec![Say("b")]], vec![Say("c")]);
    assert_eq!(fixture.auxiliary.resolve("memory").unwrap(), model("other-0", 50_000));
    assert_eq!(fixture.auxiliary.resolve("unknown").unwrap(), model("big", 100_000));
    let alone = self::fixture("memory", Vec::new(), vec![Say("c")]);
    assert_eq!(alone.auxiliary.resolve("memory").unwrap(), model("big", 90_000));
}

fn too_long(limit: u32) -> Act {
    Fail(ModelError::TooLong { message: "long".to_owned(), limit: Some(limit) })
}

/// A fixture whose auxiliary models keep what they learn in a store.
fn stored(others: Vec<Vec<Act>>, session: Vec<Act>) -> (Fixture, Arc<dyn SessionStore>, tempfile::TempDir) {
    let home = tempfile::tempdir().unwrap();
    let store = Arc::new(hermes_store::Store::open(home.path()).unwrap());
    let store: Arc<dyn SessionStore> = Arc::new(hermes_store::SqliteSessions::new(store));
    let fixture = fixture("memory", others, session);
    let auxiliary = fixture.auxiliary.clone().recorded_in(AuxiliaryLedger {
        store: Arc::clone(&store),
        session: SessionId("s".to_owned()),
        clock: Clock::default(),
        prices: hermes_models::Prices::built_in(),
    });
    (Fixture { auxiliary, ..fixture }, store, home)
}

async fn learned(store: &dyn SessionStore, model: &str) -> Option<u32> {
    let note = store.note(&LearnedWindow::note("http://h/v1", model)).await.unwrap()?;
    Some(LearnedWindow::parse(&note).unwrap().tokens)
}

#[tokio::test(start_paused = true)]
async fn a_window_that_a_provider_names_is_kept_and_stored_and_a_larger_model_serves() {
    let others = vec![vec![too_long(8_000)], vec![Say("next")]];
    let (mut fixture, store, _home) = stored(others, vec![Say("session")]);
    assert_eq!(fixture.ask("memory").await.unwrap(), "next");
    assert_eq!(fixture.auxiliary.resolve("memory").unwrap(), model("other-0", 8_000));
    assert_eq!(learned(store.as_ref(), "other-0").await, Some(8_000));
    let told = "the request is longer than the model's window: long; for the task `memory`, Hermes keeps to 8000 tokens for \
                other-0 of p";
    assert_eq!(notices(&mut fixture)[0], told);
    // The user reads about a learned window once.
    fixture.ask("memory").await.unwrap();
    assert_eq!(notices(&mut fixture), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_too_long_for_every_model_is_refused() {
    let others = vec![vec![too_long(40_000)], vec![too_long(60_000)]];
    let (fixture, store, _home) = stored(others, vec![too_long(30_000)]);
    let fault = fixture.ask("memory").await.unwrap_err();
    assert_eq!((fault.kind, fault.code.as_str()), (FaultKind::InvalidInput, "too-long"));
    assert_eq!(fixture.attempts(), [[0], [0], [0]]);
    assert_eq!(fixture.auxiliary.resolve("memory").unwrap().context_length, 30_000);
    // 60,000 is more than is known of the second model.
    assert_eq!(learned(store.as_ref(), "other-1").await, None);
    assert_eq!(learned(store.as_ref(), "big").await, Some(30_000));
    // The only model has named a window of 95,000, and the request is longer.
    let alone = vec![vec![too_long(95_000)], vec![Say("next")]];
    let (fixture, ..) = stored(alone, vec![Say("session")]);
    assert_eq!(fixture.ask("memory").await.unwrap_err().code, "too-long");
    assert_eq!(fixture.attempts(), [&[0][..], &[], &[]]);
}

#[tokio::test(start_paused = true)]
async fn a_stored_window_that_the_configuration_overrides_is_forgotten_after_a_longer_request() {
    let (fixture, store, _home) = stored(vec![vec![Say("a")]], vec![Say("session")]);
    let mut served = fixture.auxiliary.routes("memory").remove(0).served;
    let name = LearnedWindow::note(&served.address, &served.model.name);
    (served.window_source, served.overridden) = (WindowSource::Configured, Some(8_000));
    for (input, left) in [(8_000, Some(8_000)), (8_001, None)] {
        store.set_note(&name, Some(r#"{"tokens":8000,"at":7}"#)).await.unwrap();
        let usage = Some(Usage { input, ..Usage::default() });
        learned::accepted(store.as_ref(), &served, served.window_source, usage).await;
        assert_eq!(learned(store.as_ref(), "other-0").await, left);
    }
}
