//! `hermes doctor`: what is wrong, each with the way out. It looks and changes nothing.

use std::path::Path;
use std::process::ExitCode;

use hermes_diagnostic::Diagnose as _;
use hermes_models::{Logins, Route, Source, WindowSource};
use hermes_plugin_host::{Plugins, QUIETLY};
use hermes_store::{Depth, Store};
use serde::Serialize;

use crate::arguments::ModelArguments;
use crate::console::{Console, Tone, print};
use crate::failure::{Failure, Kind};
use crate::launch::Setup;
use crate::plugins::Code;
use crate::plugins::doctor::{Examined, examine};
use crate::text;
use crate::wording;
use hermes_app::Home;
use hermes_config::Config;
use hermes_config::Environment;
use hermes_config::redacted_text;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Finding {
    Ok,
    Warn,
    Fail,
}

/// A line of the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Check {
    finding: Finding,
    /// What was looked at.
    of: &'static str,
    /// What was found.
    found: String,
    /// What to do; empty where there is nothing to do.
    fix: String,
}

impl Check {
    fn ok(of: &'static str, found: impl Into<String>) -> Self {
        Self { finding: Finding::Ok, of, found: found.into(), fix: String::new() }
    }

    fn warn(of: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { finding: Finding::Warn, of, found: found.into(), fix: fix.into() }
    }

    fn fail(of: &'static str, failure: &Failure) -> Self {
        let found = format!("{}: {}", failure.what, failure.why);
        Self { finding: Finding::Fail, of, found, fix: failure.fix.clone() }
    }
}

/// Prints the report; a failed check is the exit code's business.
pub(crate) fn run(model: &ModelArguments, json: bool, console: Console) -> Result<ExitCode, Failure> {
    let checks = look(&Home::locate()?, model, plugins);
    if json {
        print(&format!("{:#}\n", serde_json::json!(checks)))?;
    } else {
        print(&checks.iter().map(|check| line(check, console)).collect::<String>())?;
    }
    let failed = checks.iter().any(|check| check.finding == Finding::Fail);
    Ok(if failed { Kind::General.into() } else { ExitCode::SUCCESS })
}

fn line(check: &Check, console: Console) -> String {
    let (word, tone) = match check.finding {
        Finding::Ok => ("ok", Tone::Good),
        Finding::Warn => ("warn", Tone::Warning),
        Finding::Fail => ("fail", Tone::Bad),
    };
    let word = console.paint(tone, &format!("{word:<4}"));
    let fix =
        if check.fix.is_empty() { String::new() } else { format!("               fix: {}\n", text::line(&check.fix)) };
    format!("{word} {:<9} {}\n{fix}", check.of, text::line(&check.found))
}

/// `plugins` looks at the plugins, which takes a while where they have to be compiled first.
fn look(home: &Home, model: &ModelArguments, plugins: fn(&Setup, &ModelArguments) -> Vec<Check>) -> Vec<Check> {
    let mut checks = vec![folder(home)];
    let environment = Environment::read(&home.dotenv());
    checks.extend(dotenv(home, &environment));
    let config = match Config::read(&home.config(), &environment) {
        Ok(config) => config,
        Err(failure) => {
            // Whose home it is has to be settled before anything else in it is opened.
            checks.push(Check::fail("config", &failure.into()));
            return checks;
        }
    };
    checks.extend(settings(&config));
    let logins = Logins::new(home.auth());
    let setup = Setup { home: home.clone(), environment, config, compiler: crate::compile::compiler(), logins };
    checks.extend(models(&setup, model));
    checks.push(store(home));
    checks.extend(plugins(&setup, model));
    checks.push(code(home));
    checks
}

fn folder(home: &Home) -> Check {
    let path = home.path();
    if path.is_dir() {
        return match open_to_others(path) {
            Some(mode) => Check::warn(
                "home",
                format!("{} can be opened by others (mode {mode:o})", path.display()),
                format!("chmod 700 {}", path.display()),
            ),
            None => Check::ok("home", path.display().to_string()),
        };
    }
    if path.exists() {
        let why = format!("{} is no folder", path.display());
        let fix = "set HERMES_HOME to a folder";
        return Check::fail("home", &Failure::new(Kind::Configuration, "the home folder cannot be used", why, fix));
    }
    Check::ok("home", format!("{} is not there yet; the first message makes it", path.display()))
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
    let mut checks: Vec<Check> = config
        .warnings()
        .iter()
        .map(|warning| Check::warn("config", warning, "correct or remove it; docs/configuration.md lists all keys"))
        .collect();
    if let Some(mode) = open_to_others(config.file()).filter(|_| config.holds_keys()) {
        let found = format!("{} holds a key and can be read by others (mode {mode:o})", config.file().display());
        checks.push(Check::warn("config", found, format!("chmod 600 {}", config.file().display())));
    }
    if checks.is_empty() {
        let there = if config.exists() { "" } else { " is not there, so the defaults are in force" };
        checks.push(Check::ok("config", format!("{}{there}", config.file().display())));
    }
    checks
}

/// The session's model, and those of other tasks.
fn models(setup: &Setup, flags: &ModelArguments) -> Vec<Check> {
    match setup.route(&flags.choice()) {
        Ok(session) => route(&session).into_iter().chain(auxiliary(setup, &session)).collect(),
        Err(failure) => vec![Check::fail("model", &failure.into())],
    }
}

fn auxiliary(setup: &Setup, session: &Route) -> Vec<Check> {
    const OF: &str = "auxiliary";
    let auxiliary = match setup.auxiliary(session) {
        Ok(auxiliary) => auxiliary,
        Err(failure) => return vec![Check::fail(OF, &failure.into())],
    };
    let mut checks = Vec::new();
    for task in &auxiliary.tasks {
        let served = task.candidates.iter().map(|candidate| match candidate.is_session {
            true => "the session's model".to_owned(),
            false => told(&candidate.route),
        });
        let served: Vec<String> = served.collect();
        let served = if served.is_empty() { "no model".to_owned() } else { served.join("; then ") };
        let found = format!("{}: {served}", task.name);
        checks.push(match &task.missing {
            None => Check::ok(OF, found),
            Some(missing) => Check::warn(OF, format!("{found}; {missing}"), wording::fix(&missing.diagnose().fix)),
        });
    }
    let notices = auxiliary.notices.iter().map(|notice| {
        let fix = if notice.fix.is_empty() { "correct its section".to_owned() } else { wording::fix(&notice.fix) };
        Check::warn(OF, &notice.text, fix)
    });
    checks.extend(notices);
    checks
}

fn route(route: &Route) -> Vec<Check> {
    let told = told(route);
    let mut checks = vec![match route.source {
        Source::Nothing => Check::warn(
            "model",
            told,
            "set model.provider and model.default, or the key of a provider, to talk to a model",
        ),
        _ if route.window_source == WindowSource::Assumed => {
            Check::warn("model", told, "set model.context_length: the model is in no table")
        }
        _ => Check::ok("model", told),
    }];
    checks.extend(route.notes.iter().map(|note| Check::warn("model", note, "remove what is not meant for this model")));
    checks
}

fn told(route: &Route) -> String {
    let window = text::grouped(route.model.context_length.into());
    if route.is_offline() {
        return format!("the built-in `offline` partner answers ({}), with a window of {window} tokens", route.source);
    }
    let url = route.base_url.as_ref().map(|url| redacted_text(url.as_str())).unwrap_or_default();
    let key = match (&route.credential, &route.key_source) {
        (Some(credential), Some(source)) => format!("{credential} from {source}"),
        (Some(credential), None) => credential.to_string(),
        (None, _) => "no key".to_owned(),
    };
    let assumed = match route.window_source {
        WindowSource::Assumed => ", assumed",
        WindowSource::Session => ", as the session's",
        _ => "",
    };
    let (provider, name) = (&route.model.provider, &route.model.name);
    format!("{name} of {provider} at {url} (from {}), {key}, window of {window} tokens{assumed}", route.source)
}

fn store(home: &Home) -> Check {
    let looked = Store::open_read_only(home.path()).and_then(|store| match store {
        None => Ok(None),
        Some(store) => store.check(Depth::Quick).map(|health| Some((store.path().to_owned(), health))),
    });
    match looked {
        Ok(None) => Check::ok("store", "no conversations yet"),
        Ok(Some((path, health))) if !health.problems.is_empty() => {
            let why = format!("{}: {}", path.display(), health.problems.join("; "));
            let fix = "run `hermes sessions repair`, which first makes a copy of it";
            Check::fail("store", &Failure::new(Kind::Store, "the store is damaged", why, fix))
        }
        Ok(Some((path, health))) => {
            let count = text::counted(health.sessions, "session");
            match open_to_others(&path) {
                Some(mode) => Check::warn(
                    "store",
                    format!("{} can be read by others (mode {mode:o})", path.display()),
                    format!("chmod 600 {}", path.display()),
                ),
                None => Check::ok("store", format!("{} with {count}", path.display())),
            }
        }
        Err(error) => Check::fail("store", &error.into()),
    }
}

/// What `hermes plugins doctor` finds wrong, and whether a session has what it cannot do without.
fn plugins(setup: &Setup, flags: &ModelArguments) -> Vec<Check> {
    const OF: &str = "plugins";
    let code = match Code::of(&setup.home) {
        Ok(code) => code,
        Err(failure) => return vec![Check::fail(OF, &failure)],
    };
    let (runtime, catalog, selection) = (code.runtime(&setup.home), setup.catalog(), setup.selection(&flags.choice()));
    let selected = Plugins::select(&runtime, &catalog, &selection, QUIETLY);
    let stops = selected.is_err();
    let mut checks = vec![match selected {
        Ok(plugins) => Check::ok(OF, format!("on: {}", plugins.names().join(", "))),
        Err(error) => Check::fail(OF, &error.into()),
    }];
    let mut examined = Vec::new();
    let looked = crate::wait(async {
        examined = examine(setup, &catalog, &selection, &runtime).await;
        Ok(ExitCode::SUCCESS)
    });
    if let Err(failure) = looked {
        checks.push(Check::fail(OF, &failure));
    }
    for Examined { name, findings, .. } in examined {
        let needed =
            name.as_ref().is_some_and(|name| *name == selection.engine || selection.memory.as_ref() == Some(name));
        if stops && needed {
            // That is what was told above.
            continue;
        }
        let about = name.map_or_else(String::new, |name| format!("`{name}`: "));
        let problems = findings.into_iter().filter(|finding| finding.is_problem());
        checks
            .extend(problems.map(|found| Check::warn(OF, format!("{about}{}: {}", found.what, found.why), found.fix)));
    }
    checks
}

fn code(home: &Home) -> Check {
    let folder = home.code();
    let Ok(entries) = std::fs::read_dir(&folder) else {
        return Check::ok("cache", "no compiled plugins yet; the first session makes them");
    };
    if let Some(mode) = open_to_others(&folder) {
        let found = format!("{} can be opened by others (mode {mode:o}), so it is not used", folder.display());
        return Check::warn("cache", found, format!("chmod 700 {}", folder.display()));
    }
    let bytes: u64 = entries.flatten().filter_map(|entry| entry.metadata().ok()).map(|found| found.len()).sum();
    Check::ok("cache", format!("{} with {} KiB of compiled plugins", folder.display(), text::grouped(bytes >> 10)))
}

/// The mode of what others than its owner may use.
#[cfg(unix)]
fn open_to_others(path: &Path) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(path).ok()?.permissions().mode() & 0o777;
    (mode & 0o077 != 0).then_some(mode)
}

#[cfg(not(unix))]
fn open_to_others(_: &Path) -> Option<u32> {
    None
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn found(checks: &[Check], of: &str) -> Vec<Finding> {
        checks.iter().filter(|check| check.of == of).map(|check| check.finding).collect()
    }

    #[test]
    fn a_home_that_is_not_there_is_nothing_wrong_and_is_not_made() {
        let root = tempfile::tempdir().unwrap();
        let home = Home::at(&root.path().join("home"));
        let checks = look(&home, &ModelArguments::default(), |_, _| Vec::new());
        for of in ["home", "config", "store", "cache"] {
            assert_eq!(found(&checks, of), [Finding::Ok], "{of}: {checks:?}");
        }
        assert!(!home.path().exists());
    }

    #[test]
    fn nothing_of_another_programs_home_is_opened() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("config.yaml"), "_config_version: 33\n").unwrap();
        let checks = look(&Home::at(root.path()), &ModelArguments::default(), |_, _| Vec::new());
        assert_eq!(found(&checks, "config"), [Finding::Fail]);
        assert!(found(&checks, "store").is_empty() && found(&checks, "model").is_empty());
        assert!(checks.last().unwrap().fix.contains("HERMES_HOME"));
    }

    #[cfg(unix)]
    #[test]
    fn keys_that_others_can_read_are_told() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join(".env");
        std::fs::write(&file, "OPENAI_API_KEY=sk-0123456789abcdefghij\n").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        let checks = look(&Home::at(root.path()), &ModelArguments::default(), |_, _| Vec::new());
        assert_eq!(found(&checks, ".env"), [Finding::Warn]);
        assert!(!format!("{checks:?}").contains("0123456789"));
    }
}
