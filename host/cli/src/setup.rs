//! `hermes setup`: a provider, its key and a model, tried with one request before anything is stored.

use std::io::{self, BufRead as _, IsTerminal as _};
use std::process::ExitCode;

use clap::Args;
use hermes_app::logins;
use hermes_app::models::{ListedModel, ProviderRow, Route, known_provider, known_providers};
use hermes_app::operations::{ChosenModel, ModelPlace, keep_variables, set_model};
use hermes_app::{ModelChoice, Setup};
use hermes_config::{Edit, most_similar};
use hermes_terminal::Candidate;
use serde_json::json;

use crate::console::Console;
use crate::failure::{Failure, Kind};
use crate::model::{choice, offered, report};
use crate::plugins::variables::read_value;
use crate::{launch, login, question, settings, text};

/// The variable for the key of a server that is no known provider.
const OWN_KEY: &str = "HERMES_CUSTOM_API_KEY";
/// What failed, if nothing was stored.
const FAILED: &str = "the model was not set up";

/// The provider, and how to ask for the rest.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub(crate) struct SetupArguments {
    /// The provider [default: asks]
    provider: Option<String>,
    /// The model [default: asks, else the provider's default]
    #[arg(short, long, value_name = "NAME")]
    model: Option<String>,
    /// Use the OpenAI-compatible API at this base URL instead of a known provider
    #[arg(long, value_name = "URL", conflicts_with = "provider")]
    base_url: Option<String>,
    /// Read the key from the first line of standard input
    #[arg(long)]
    key: bool,
    /// Use a login instead of a key, where the provider has one; log in with a browser if there is none yet
    #[arg(long, conflicts_with_all = ["key", "base_url"])]
    login: bool,
    /// Do not ask for anything
    #[arg(short, long)]
    yes: bool,
    /// Do not send a test request
    #[arg(long)]
    no_test: bool,
}

pub(crate) async fn run(arguments: &SetupArguments, console: Console) -> Result<ExitCode, Failure> {
    let setup = launch::setup(console)?;
    let is_asking = !arguments.yes && !arguments.key && io::stdin().is_terminal();
    let chosen = match (&arguments.provider, &arguments.base_url) {
        (Some(name), _) => Chosen::Known(known(name)?),
        (None, Some(url)) => Chosen::Server(url.trim().to_owned()),
        (None, None) if is_asking => choose(&setup, console)?,
        (None, None) => {
            let why = "cannot ask for the provider: standard input is not a terminal, or you asked not to be asked";
            let fix = format!("name one of {}, or a server with --base-url", names().join(", "));
            return Err(Failure::new(Kind::Usage, FAILED, why, fix));
        }
    };
    let access = access(arguments, &setup, &chosen, is_asking)?;
    if let Access::Login(name) = access {
        make_login(&setup, name, console).await?;
    }
    let (model, listed) = match &arguments.model {
        Some(name) => (ChosenModel { name: name.trim().to_owned(), window: None }, Vec::new()),
        None => model(&setup, &chosen, &access, is_asking, console).await?,
    };

    let Wanted { edit, removed, setup: wanted } = wanted(&setup, &chosen, &access, &model)?;
    let route = wanted.route(&ModelChoice::default())?;
    if !arguments.no_test {
        test(&wanted, &route, is_asking, console).await?;
    }
    setup.own()?;
    setup.keep_windows(&route, &listed).await;
    // The key first: with it, but without the selection, nothing changes.
    keep_variables(&setup.home.dotenv(), access.variables())?;
    edit.save()?;
    report(&route, setup.config.settings().model.default.as_deref(), &removed, console);
    for (name, _) in access.variables() {
        console.note(&format!("{name} stored in {}, which only you can read", setup.home.dotenv().display()));
        settings::warn_of_environment(name, console);
    }
    if setup.config.settings().memory.provider.is_none() {
        console
            .note("`hermes memory setup` chooses a memory for earlier conversations; `hermes` starts a conversation");
    }
    Ok(ExitCode::SUCCESS)
}

/// Where the model is.
enum Chosen {
    Known(&'static ProviderRow),
    /// A server at this base URL.
    Server(String),
}

impl Chosen {
    /// The variable that holds the key, if one may be needed.
    fn variable(&self) -> Option<&'static str> {
        match self {
            Self::Known(row) => row.keys.first().copied(),
            Self::Server(_) => Some(OWN_KEY),
        }
    }

    /// The login that needs no section, if the provider has one.
    fn login(&self) -> Option<&'static str> {
        match self {
            Self::Known(row) => login_of(row),
            Self::Server(_) => None,
        }
    }

    fn place(&self, access: &Access) -> ModelPlace {
        match self {
            Self::Known(row) => ModelPlace::Provider(row.id.to_owned()),
            Self::Server(url) => {
                let key = (!access.variables().is_empty()).then_some(OWN_KEY);
                ModelPlace::Address { base_url: url.clone(), key }
            }
        }
    }
}

fn login_of(row: &ProviderRow) -> Option<&'static str> {
    logins::built_in().find(|name| *name == row.id)
}

/// What authenticates requests.
enum Access {
    /// The present key, or none.
    Unchanged,
    /// A new key: its variable and its value.
    Key([(String, String); 1]),
    /// A login.
    Login(&'static str),
}

impl Access {
    fn variables(&self) -> &[(String, String)] {
        match self {
            Self::Key(key) => key,
            Self::Unchanged | Self::Login(_) => &[],
        }
    }
}

fn names() -> Vec<&'static str> {
    known_providers().map(|row| row.id).collect()
}

fn known(name: &str) -> Result<&'static ProviderRow, Failure> {
    let name = name.trim().to_lowercase();
    let unusable = |why: String, fix: String| Failure::new(Kind::Usage, FAILED, why, fix);
    match known_provider(&name) {
        Some(row) if row.base_url.is_some() => Ok(row),
        Some(row) => {
            let fix = "give the address of your own API with --base-url URL, and its key with --key";
            Err(unusable(format!("{} has another address for each customer", row.id), fix.to_owned()))
        }
        None => {
            let near = most_similar(&name, names().into_iter().map(str::to_owned));
            let near = near.map_or_else(String::new, |near| format!("did you mean `{near}`? "));
            let fix = format!("{near}The providers are {}; --base-url takes any other server", names().join(", "));
            Err(unusable(format!("there is no provider `{name}`"), fix))
        }
    }
}

/// Lets the user choose a provider. The first one whose key is set is suggested.
fn choose(setup: &Setup, console: Console) -> Result<Chosen, Failure> {
    let rows: Vec<&ProviderRow> = known_providers().collect();
    let has_key = |row: &ProviderRow| row.keys.iter().any(|name| setup.environment.var(name).is_some());
    let present = setup.config.settings().model.provider.as_deref();
    let suggested = rows.iter().position(|row| Some(row.id) == present);
    let suggested = suggested.or_else(|| rows.iter().position(|row| has_key(row))).unwrap_or(0);
    let about = |row: &ProviderRow| match row.keys.first() {
        None => "on this machine, needs no key".to_owned(),
        Some(_) if has_key(row) => "its key is set".to_owned(),
        Some(_) if login_of(row).is_some_and(|login| setup.has_login(login)) => "logged in".to_owned(),
        Some(variable) if login_of(row).is_some() => format!("needs a login, or {variable}"),
        Some(variable) => format!("needs {variable}"),
    };
    let custom = ("custom".to_owned(), "any other server with an OpenAI-compatible API".to_owned());
    let listed = rows.iter().map(|row| (row.id.to_owned(), about(row))).chain([custom]);
    let listed = listed.map(|(text, about)| Candidate { text, about }).collect();
    let at = question::chosen("Which provider?", listed, suggested, console)?.ok_or_else(cancelled)?;
    match rows.get(at) {
        Some(row) => Ok(Chosen::Known(row)),
        None => {
            let url = question::typed("Base URL of the API, often ending in /v1:")?;
            if url.is_empty() { Err(cancelled()) } else { Ok(Chosen::Server(url)) }
        }
    }
}

fn cancelled() -> Failure {
    Failure::new(Kind::Interrupted, FAILED, "you cancelled", "run `hermes setup` again")
}

/// Logs in, unless the login exists.
async fn make_login(setup: &Setup, name: &str, console: Console) -> Result<(), Failure> {
    if setup.has_login(name) {
        console.note(&format!("using the login `{name}`; `hermes login {name}` logs in again"));
        return Ok(());
    }
    let client = setup.login_client(name)?;
    setup.own()?;
    login::log_in(setup, &client, false, console).await
}

/// What the user wants to authenticate with.
fn access(arguments: &SetupArguments, setup: &Setup, chosen: &Chosen, is_asking: bool) -> Result<Access, Failure> {
    if arguments.login {
        return chosen.login().map(Access::Login).ok_or_else(|| {
            let with: Vec<&str> = logins::built_in().collect();
            let why = format!("--login works with {}; the other providers need a key", with.join(", "));
            Failure::new(Kind::Usage, FAILED, why, "give the key with --key")
        });
    }
    let Some(variable) = chosen.variable() else { return Ok(Access::Unchanged) };
    let mut if_empty = Access::Unchanged;
    let value = if arguments.key {
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line)?;
        let value = line.trim().to_owned();
        if value.is_empty() || value.chars().any(|each| each.is_control() || each.is_whitespace()) {
            let fix = "write the key as the first line of standard input";
            return Err(Failure::new(Kind::Usage, FAILED, "standard input has no usable key", fix));
        }
        value
    } else if is_asking {
        let of_row = |row: &ProviderRow| row.keys.iter().any(|name| setup.environment.var(name).is_some());
        let question = match chosen {
            Chosen::Known(row) if of_row(row) => format!("Key for {} [hidden; Enter keeps the present one]:", row.id),
            Chosen::Known(row) if let Some(login) = login_of(row) => {
                if_empty = Access::Login(login);
                let enter = if setup.has_login(login) { "uses the login" } else { "logs in with a browser instead" };
                format!("Key for {} [hidden; stored as {variable}; Enter {enter}]:", row.id)
            }
            Chosen::Known(row) => format!("Key for {} [hidden; stored as {variable}]:", row.id),
            Chosen::Server(_) => "Key of the server [hidden; Enter if it needs none]:".to_owned(),
        };
        read_value(&question, variable, true)?
    } else {
        String::new()
    };
    Ok(if value.is_empty() { if_empty } else { Access::Key([(variable.to_owned(), value)]) })
}

/// The home as it would be with the changes, which are not stored.
struct Wanted {
    edit: Edit,
    removed: Vec<&'static str>,
    setup: Setup,
}

fn wanted(setup: &Setup, chosen: &Chosen, access: &Access, model: &ChosenModel) -> Result<Wanted, Failure> {
    let mut edit = Edit::of(&setup.home.config())?;
    let before = &setup.config.settings().model;
    let mut removed = set_model(&mut edit, before, &chosen.place(access), model)?;
    // One of the two authenticates: what the user just chose.
    let former = match access {
        Access::Unchanged => Vec::new(),
        Access::Key(_) => vec![("model.auth", before.auth.is_some())],
        Access::Login(_) => {
            vec![("model.api_key", before.api_key.is_some()), ("model.api_keys", !before.api_keys.is_empty())]
        }
    };
    for (key, _) in former.into_iter().filter(|(_, is_set)| *is_set) {
        if !removed.contains(&key) {
            edit.remove(key)?;
            removed.push(key);
        }
    }
    if let Access::Login(name) = access {
        edit.set("model.auth", &json!(name))?;
        removed.retain(|key| *key != "model.auth");
    }
    let setup = setup.with_changes(&edit, access.variables())?;
    Ok(Wanted { edit, removed, setup })
}

/// A model of the provider's list: the one that the user chooses, else the provider's default, else the only one. Also the list, if
/// it was asked for.
async fn model(
    setup: &Setup,
    chosen: &Chosen,
    access: &Access,
    is_asking: bool,
    console: Console,
) -> Result<(ChosenModel, Vec<ListedModel>), Failure> {
    let unlisted = |name: &str| ChosenModel { name: name.to_owned(), window: None };
    let default = match chosen {
        Chosen::Known(row) => row.model,
        Chosen::Server(_) => None,
    };
    if let Some(default) = default.filter(|_| !is_asking) {
        return Ok((unlisted(default), Vec::new()));
    }
    let wanted = wanted(setup, chosen, access, &unlisted(default.unwrap_or_default()))?.setup;
    let route = wanted.route_to(&ModelChoice::default())?;
    match offered(&wanted, &route).await {
        Ok(listed) if is_asking => {
            let chosen = choice::choose(&listed, &route, &wanted.prices().0, console)?.ok_or_else(cancelled)?;
            Ok((chosen, listed))
        }
        Ok(listed) => match &listed[..] {
            [only] => Ok((choice::chosen_of(only), listed)),
            several => {
                let some: Vec<&str> = several.iter().take(10).map(|model| model.name.as_str()).collect();
                let why = format!("the server offers {}", text::counted(several.len() as u64, "model"));
                let fix = format!("name one with --model, such as {}", some.join(", "));
                Err(Failure::new(Kind::Usage, FAILED, why, fix))
            }
        },
        Err(failure) if is_asking => {
            console.warning(&format!("{}: {}", failure.what, failure.why));
            let shown = default.map_or_else(String::new, |name| format!(" [Enter takes {name}]"));
            let name = question::typed(&format!("Name of the model{shown}:"))?;
            match (name.is_empty(), default) {
                (false, _) => Ok((unlisted(&name), Vec::new())),
                (true, Some(default)) => Ok((unlisted(default), Vec::new())),
                (true, None) => Err(cancelled()),
            }
        }
        Err(failure) => Err(Failure { fix: format!("{}; or name a model with --model", failure.fix), ..failure }),
    }
}

/// Sends one request. After a failure the user may store the model all the same.
async fn test(wanted: &Setup, route: &Route, is_asking: bool, console: Console) -> Result<(), Failure> {
    if route.is_offline() {
        return Ok(());
    }
    console.note(&format!("asking {} of {} for one word", route.model.name, route.model.provider));
    match wanted.try_model(route).await {
        Ok(trial) => {
            let said = text::shortened(&text::line(&trial.text), 40);
            let cut = if trial.is_cut { ", cut at the limit of this test," } else { "" };
            console.note(&format!("{} answered \"{said}\"{cut} after {} ms", trial.model, trial.took.as_millis()));
            Ok(())
        }
        Err(error) => {
            let failure = Failure::from(error);
            let what = format!("{FAILED}, because its test request failed; nothing was changed");
            let fix = format!("{}; or store it untested with --no-test", failure.fix);
            let failure = Failure { what, fix, ..failure };
            if !is_asking {
                return Err(failure);
            }
            console.warning(&format!("the test request failed: {}", failure.why));
            if question::agreed("Store the choice all the same?")? { Ok(()) } else { Err(failure) }
        }
    }
}
