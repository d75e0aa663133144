//! Checks of a home and of its plugins, with causes and remedies. A check changes nothing.

mod finding;
mod hooks;
mod logins;
mod plugins;
mod sandbox;
mod servers;
mod skills;

use std::collections::HashSet;
use std::path::Path;

use hermes_agent::LearnedWindow;
use hermes_config::{Config, Embeddings, Environment, Fallback, redacted_text};
use hermes_diagnostic::{Action, Diagnose as _, Diagnostic, Fix, Notice, counted, grouped};
use hermes_models::{AuxiliaryError, Logins, Route, Source, WindowSource, try_route};
use hermes_plugin_host::{Catalog, Plugins, QUIETLY, Selection};
use hermes_runtime::Compiler;
use hermes_session_store::{Depth, Ledger};
use serde::Serialize;

pub use finding::{Case, ExaminedPlugin, Finding, Severity};
pub use plugins::examine_plugins;

use crate::{CodeStorage, Home, ModelChoice, Setup, learned};

hermes_diagnostic::codes! {
    /// The codes of failed checks.
    pub mod codes {
        HOME_IS_FILE = "doctor.home-is-file", Category::Configuration, "the home folder is a file";
        DAMAGED_STORE = "doctor.damaged-store", Category::Store, "a check found damage in the database";
    }
}

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Nothing is wrong.
    Ok,
    /// Something should be corrected.
    Warn,
    /// Something does not work.
    Fail,
}

/// A check and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// The result.
    pub outcome: Outcome,
    /// The subject in one word.
    pub subject: &'static str,
    /// The finding.
    pub found: String,
    /// What to do; empty if nothing is wrong.
    pub fix: Fix,
}

impl Check {
    fn ok(subject: &'static str, found: impl Into<String>) -> Self {
        Self { outcome: Outcome::Ok, subject, found: found.into(), fix: Fix::none() }
    }

    fn warn(subject: &'static str, found: impl Into<String>, fix: impl Into<Fix>) -> Self {
        Self { outcome: Outcome::Warn, subject, found: found.into(), fix: fix.into() }
    }

    fn fail(subject: &'static str, failure: impl Into<Diagnostic>) -> Self {
        let Diagnostic { what, why, fix, .. } = failure.into();
        let fix = if fix.is_empty() { Action::Diagnose.into() } else { fix };
        Self { outcome: Outcome::Fail, subject, found: format!("{what}: {why}"), fix }
    }
}

/// Checks a home with everything in it. Plugins are compiled if they are not yet, which takes a while. With `asks_model`, one
/// small request is sent to the session's model.
pub async fn examine_home(home: &Home, choice: &ModelChoice, compiler: Compiler, asks_model: bool) -> Vec<Check> {
    let (mut checks, setup) = examine_files(home, choice, compiler).await;
    if let Some(setup) = setup {
        if asks_model {
            checks.extend(answer(&setup, choice).await);
        }
        checks.extend(session_plugins(&setup, choice).await);
        checks.push(code(home));
    }
    checks
}

/// Checks everything but the plugins. Without a usable `config.yaml` there is no setup.
async fn examine_files(home: &Home, choice: &ModelChoice, compiler: Compiler) -> (Vec<Check>, Option<Setup>) {
    let mut checks = vec![folder(home)];
    let environment = Environment::read(&home.dotenv());
    checks.extend(dotenv(home, &environment));
    let config = match crate::setup::config(home, &environment) {
        Ok(config) => config,
        Err(failure) => {
            // The home may belong to another program, so nothing else in it is opened.
            checks.push(Check::fail("config", failure));
            return (checks, None);
        }
    };
    checks.extend(settings(&config));
    let logins = Logins::new(home.auth(), home.shared_documents());
    let setup = Setup { home: home.clone(), environment, config, compiler, logins };
    checks.extend(models(&setup, choice).await);
    checks.extend(logins::examine(&setup));
    checks.extend(prices(&setup));
    checks.push(sandbox::examine(&setup.sandbox()));
    checks.extend(servers::examine(&setup, choice).await);
    checks.extend(hooks::examine(&setup));
    checks.extend(skills::examine(&setup));
    checks.push(store(home).await);
    (checks, Some(setup))
}

fn folder(home: &Home) -> Check {
    let path = home.path();
    if path.is_dir() {
        return match open_to_others(path) {
            Some(mode) => {
                let found = format!("{} can be opened by others (mode {mode:o})", path.display());
                Check::warn("home", found, format!("chmod 700 {}", path.display()))
            }
            None => Check::ok("home", path.display().to_string()),
        };
    }
    if path.exists() {
        let why = format!("{} is not a folder", path.display());
        let fix = "set HERMES_HOME to a folder";
        return Check::fail("home", Diagnostic::new(codes::HOME_IS_FILE, "the home folder cannot be used", why, fix));
    }
    Check::ok("home", format!("{} does not exist yet; the first message creates it", path.display()))
}

fn dotenv(home: &Home, environment: &Environment) -> Vec<Check> {
    let file = home.dotenv();
    let mut checks: Vec<Check> = environment
        .warnings()
        .iter()
        .map(|warning| Check::warn(".env", warning, "write lines as NAME=VALUE"))
        .collect();
    if let Some(mode) = open_to_others(&file) {
        let found = format!("{} holds keys and can be read by others (mode {mode:o})", file.display());
        checks.push(Check::warn(".env", found, format!("chmod 600 {}", file.display())));
    }
    if checks.is_empty() && file.exists() {
        checks.push(Check::ok(".env", file.display().to_string()));
    }
    checks
}

fn settings(config: &Config) -> Vec<Check> {
    let mut checks: Vec<Check> =
        config.warnings().iter().map(|warning| Check::warn("config", warning, Action::CorrectKey)).collect();
    if let Some(mode) = open_to_others(config.file()).filter(|_| config.holds_keys()) {
        let found = format!("{} holds a key and can be read by others (mode {mode:o})", config.file().display());
        checks.push(Check::warn("config", found, format!("chmod 600 {}", config.file().display())));
    }
    if checks.is_empty() {
        let there = if config.exists() { "" } else { " does not exist, so the defaults apply" };
        checks.push(Check::ok("config", format!("{}{there}", config.file().display())));
    }
    checks
}

/// The session's model, and those of other tasks.
async fn models(setup: &Setup, choice: &ModelChoice) -> Vec<Check> {
    match setup.route(choice) {
        Ok(mut session) => {
            // A store that cannot be read has a check of its own.
            let store = setup.store_to_read().ok().flatten();
            let ledger = store.as_deref().map(|store| store as &dyn Ledger);
            let mut others = fallbacks(setup, &session, ledger).await;
            others.extend(auxiliary(setup, &session, ledger).await);
            let window = known_window(ledger, &mut session, "model.context_length").await;
            let rests = rests(setup, &session, choice);
            route(&session).into_iter().chain(window).chain(others).chain(rests).collect()
        }
        Err(failure) => vec![Check::fail("model", failure)],
    }
}

/// The keys and models that are left alone after they failed.
fn rests(setup: &Setup, session: &Route, choice: &ModelChoice) -> Vec<Check> {
    let fallbacks = setup.fallbacks(session).map(|fallbacks| fallbacks.routes).unwrap_or_default();
    let tasks = setup.auxiliary(session).map(|auxiliary| auxiliary.tasks).unwrap_or_default();
    let chain: Vec<&Route> = [session].into_iter().chain(fallbacks.iter().map(|fallback| &fallback.route)).collect();
    let of_tasks = tasks.iter().flat_map(|task| &task.candidates).map(|candidate| &candidate.route);
    let keys = chain.iter().copied().chain(of_tasks).flat_map(|route| setup.resting_keys(route));
    let mut notices: Vec<Notice> =
        chain.iter().filter_map(|route| setup.resting_model(route, choice)).chain(keys).collect();
    // Several tasks can have the same keys.
    let mut told = HashSet::new();
    notices.retain(|notice| told.insert(notice.text.clone()));
    notices.into_iter().map(|Notice { text, fix }| Check::warn("cooldown", text, fix)).collect()
}

/// Whether the session's model answers. Nothing is checked for a model that cannot be asked.
async fn answer(setup: &Setup, choice: &ModelChoice) -> Option<Check> {
    const SUBJECT: &str = "answer";
    /// Columns of the text that is shown.
    const SHOWN: usize = 40;
    let route = setup.route(choice).ok().filter(|route| !route.is_offline())?;
    let trial = match try_route(&route, &setup.logins).await {
        Ok(trial) => trial,
        Err(error) => return Some(Check::fail(SUBJECT, error)),
    };
    let words: String = trial.text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(SHOWN).collect();
    let said = match (words.is_empty(), trial.is_cut) {
        (true, true) => "only with reasoning, up to the limit of this test,".to_owned(),
        (true, false) => "without a text".to_owned(),
        (false, true) => format!("\"{words}\", cut at the limit of this test,"),
        (false, false) => format!("\"{words}\""),
    };
    let model = &trial.model;
    Some(Check::ok(SUBJECT, format!("{model} answered {said} after {} ms", trial.took.as_millis())))
}

/// Gives a route the window that its provider named earlier, and checks a configured one against it.
async fn known_window(store: Option<&dyn Ledger>, route: &mut Route, key: &str) -> Option<Check> {
    let named = learned::apply(store?, route).await?;
    Some(over_named("model", route, named, key))
}

/// A window that is configured larger than the provider said.
fn over_named(subject: &'static str, route: &Route, named: LearnedWindow, key: &str) -> Check {
    Check::warn(subject, learned::overridden(route, named, key), learned::remedy(named, key))
}

/// The models that answer while the session's model fails.
async fn fallbacks(setup: &Setup, session: &Route, store: Option<&dyn Ledger>) -> Vec<Check> {
    const SUBJECT: &str = "fallback";
    let mut fallbacks = match setup.fallbacks(session) {
        Ok(fallbacks) => fallbacks,
        Err(failure) => return vec![Check::fail(SUBJECT, failure)],
    };
    let mut usable = Vec::new();
    for Fallback { section, route } in &mut fallbacks.routes {
        let window = known_window(store, route, &format!("{section}.context_length")).await;
        usable.push(Check::ok(SUBJECT, described(route)));
        usable.extend(window);
    }
    let missing = fallbacks
        .missing
        .iter()
        .map(|lack| Check::warn(SUBJECT, format!("{lack}, so it is left out"), lack.diagnose().fix));
    let noted = fallbacks.routes.iter().flat_map(|one| &one.route.notes);
    let noted = noted.map(|note| Check::warn(SUBJECT, note, "correct its entry in fallback_providers"));
    usable.into_iter().chain(missing).chain(noted).collect()
}

async fn auxiliary(setup: &Setup, session: &Route, store: Option<&dyn Ledger>) -> Vec<Check> {
    const SUBJECT: &str = "auxiliary";
    let mut auxiliary = match setup.auxiliary(session) {
        Ok(auxiliary) => auxiliary,
        Err(failure) => return vec![Check::fail(SUBJECT, failure)],
    };
    let mut checks = Vec::new();
    if let Some(store) = store {
        let named = learned::apply_to_tasks(store, &mut auxiliary).await;
        checks.extend(named.into_iter().map(|(named, key, route)| over_named(SUBJECT, route, named, &key)));
    }
    for task in &auxiliary.tasks {
        let served = task.candidates.iter().map(|candidate| match candidate.is_session {
            true => "the session's model".to_owned(),
            false => described(&candidate.route),
        });
        let served: Vec<String> = served.collect();
        let served = if served.is_empty() { "no model".to_owned() } else { served.join("; then ") };
        let found = format!("{}: {served}", task.name);
        checks.push(match &task.missing {
            None => Check::ok(SUBJECT, found),
            Some(missing) => Check::warn(SUBJECT, format!("{found}; {missing}"), missing.diagnose().fix),
        });
    }
    if let Some(check) = embeddings(&auxiliary.embeddings) {
        checks.push(check);
    }
    checks.extend(auxiliary.notices.into_iter().map(|Notice { text, fix }| {
        let fix = if fix.is_empty() { Fix::words("correct its section") } else { fix };
        Check::warn(SUBJECT, text, fix)
    }));
    checks
}

/// The embedding model, if the configuration names one or a plugin.
fn embeddings(embeddings: &Embeddings) -> Option<Check> {
    const SUBJECT: &str = "auxiliary";
    match (&embeddings.plugin, &embeddings.route) {
        (Some(plugin), _) => Some(Check::ok(SUBJECT, format!("embeddings: the plugin `{plugin}`"))),
        (None, Ok(route)) => Some(Check::ok(SUBJECT, format!("embeddings: {}", described(route)))),
        (None, Err(AuxiliaryError::NoEmbeddingModel { .. })) => None,
        (None, Err(missing)) => {
            Some(Check::warn(SUBJECT, format!("embeddings: no model; {missing}"), missing.diagnose().fix))
        }
    }
}

fn route(route: &Route) -> Vec<Check> {
    let found = described(route);
    let mut checks = vec![match route.source {
        Source::Nothing => Check::warn(
            "model",
            found,
            Fix::from(Action::SetUpModel).or("set the key of a provider, such as OPENROUTER_API_KEY"),
        ),
        _ if route.window_source == WindowSource::Assumed => {
            Check::warn("model", found, "set model.context_length: the model is in no table")
        }
        _ => Check::ok("model", found),
    }];
    if let Source::LoneKey { variable, also } = &route.source
        && !also.is_empty()
    {
        let found = format!("{variable} is also the key of {}; {} is used", also.join(", "), route.model.provider);
        checks.push(Check::warn("model", found, "set model.provider to the one that you mean"));
    }
    checks.extend(route.notes.iter().map(|note| Check::warn("model", note, "remove what is not meant for this model")));
    checks
}

fn described(route: &Route) -> String {
    let window = grouped(route.model.context_length.into());
    if route.is_offline() {
        return format!("the built-in `offline` model is used ({}), with a window of {window} tokens", route.source);
    }
    let url = route.base_url.as_ref().map(|url| redacted_text(url.as_str())).unwrap_or_default();
    let key = match (&route.credential, &route.key_source) {
        (Some(credential), Some(source)) => format!("{credential} from {source}"),
        (Some(credential), None) => credential.to_string(),
        (None, _) => "no key".to_owned(),
    };
    let (provider, name) = (&route.model.provider, &route.model.name);
    format!(
        "{name} of {provider} at {url} (from {}), {key}, window of {window} tokens, {}",
        route.source, route.window_source
    )
}

/// The user's own prices, if there are any.
fn prices(setup: &Setup) -> Option<Check> {
    const SUBJECT: &str = "prices";
    match setup.prices() {
        (_, Some(Notice { text, fix })) => Some(Check::warn(SUBJECT, text, fix)),
        (prices, None) => prices.own_as_of().map(|day| Check::ok(SUBJECT, format!("prices.json of {day}"))),
    }
}

async fn store(home: &Home) -> Check {
    let store = match crate::store::open_to_read(home.path()) {
        Ok(Some(store)) => store,
        Ok(None) => return Check::ok("store", "no conversations yet"),
        Err(error) => return Check::fail("store", error),
    };
    let place = store.place();
    match store.check(Depth::Quick).await {
        Ok(health) if !health.problems.is_empty() => {
            let why = format!("{place}: {}", health.problems.join("; "));
            let what = "the store is damaged";
            Check::fail("store", Diagnostic::new(codes::DAMAGED_STORE, what, why, Action::RepairStore))
        }
        Ok(health) => {
            let count = counted(health.sessions, "session");
            match open_to_others(Path::new(&place)) {
                Some(mode) => Check::warn(
                    "store",
                    format!("{place} can be read by others (mode {mode:o})"),
                    format!("chmod 600 {place}"),
                ),
                None => Check::ok("store", format!("{place} with {count}")),
            }
        }
        Err(error) => Check::fail("store", error),
    }
}

/// The problems of plugins, and whether a session has the plugins that it needs.
async fn session_plugins(setup: &Setup, choice: &ModelChoice) -> Vec<Check> {
    const SUBJECT: &str = "plugins";
    let code = match CodeStorage::of(&setup.home) {
        Ok(code) => code,
        Err(failure) => return vec![Check::fail(SUBJECT, failure)],
    };
    let runtime = code.runtime(&setup.home, setup.compiler.clone());
    let (catalog, selection) = (setup.catalog(), setup.selection(choice));
    let selected = Plugins::select(&runtime, &catalog, &selection, QUIETLY);
    let stops = selected.is_err();
    let mut checks = vec![match selected {
        Ok(plugins) => Check::ok(SUBJECT, format!("enabled: {}", plugins.names().join(", "))),
        Err(error) => Check::fail(SUBJECT, error),
    }];
    for ExaminedPlugin { name, findings, .. } in examine_plugins(setup, &catalog, &selection, &runtime).await {
        let needed =
            name.as_ref().is_some_and(|name| *name == selection.engine || selection.memory.as_ref() == Some(name));
        if stops && needed {
            // The failed check above reports it.
            continue;
        }
        let about = name.map_or_else(String::new, |name| format!("`{name}`: "));
        let problems = findings.into_iter().filter(Finding::is_problem);
        let check = |found: Finding| {
            let Finding { case, what, why, fix, .. } = found;
            match case {
                Case::UselessRule => {
                    Check { outcome: Outcome::Fail, subject: "approvals", found: format!("{what}: {why}"), fix }
                }
                Case::UselessMatcher => {
                    Check { outcome: Outcome::Fail, subject: "hooks", found: format!("{what}: {why}"), fix }
                }
                // A session does not go on without it.
                Case::Start if needed => {
                    Check { outcome: Outcome::Fail, subject: SUBJECT, found: format!("{about}{what}: {why}"), fix }
                }
                _ => Check::warn(SUBJECT, format!("{about}{what}: {why}"), fix),
            }
        };
        checks.extend(problems.map(check));
    }
    checks.extend(idle_rules(setup, &catalog, &selection));
    checks
}

/// The entries below `approvals` about plugins that are off. They count when the plugin is on, which their author may not expect.
fn idle_rules(setup: &Setup, catalog: &Catalog, selection: &Selection) -> Vec<Check> {
    // Another check says why the rules cannot be read.
    let Ok(rules) = setup.approval_rules() else { return Vec::new() };
    let on: Vec<&str> = selection.names().collect();
    let is_off = |plugin: &str| catalog.get(plugin).is_some() && !on.contains(&plugin);
    let idle = rules.all().filter(|rule| is_off(rule.plugin())).map(|rule| {
        let plugin = rule.plugin();
        let fix = Fix::from(Action::EnablePlugin { plugin: plugin.to_owned() }).or("remove the entry");
        Check::warn("approvals", format!("{rule}, and the plugin `{plugin}` is off: the entry does nothing now"), fix)
    });
    idle.collect()
}

fn code(home: &Home) -> Check {
    let folder = home.code();
    let Ok(entries) = std::fs::read_dir(&folder) else {
        return Check::ok("cache", "no compiled plugins yet; the first session compiles them");
    };
    if let Some(mode) = open_to_others(&folder) {
        let found = format!("{} can be opened by others (mode {mode:o}), so it is not used", folder.display());
        return Check::warn("cache", found, format!("chmod 700 {}", folder.display()));
    }
    let bytes: u64 = entries.flatten().filter_map(|entry| entry.metadata().ok()).map(|found| found.len()).sum();
    Check::ok("cache", format!("{} with {} KiB of compiled plugins", folder.display(), grouped(bytes >> 10)))
}

/// The mode of a file that others than its owner may use.
#[cfg(unix)]
fn open_to_others(path: &Path) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::metadata(path).ok()?.permissions().mode() & 0o777;
    (mode & 0o077 != 0).then_some(mode)
}

#[cfg(not(unix))]
fn open_to_others(_: &Path) -> Option<u32> {
    None
}

#[cfg(test)]
mod tests;
