//! `hermes model`: the model of new sessions, the models that its provider offers, and a change of it.

pub(crate) mod choice;

use std::io::{self, IsTerminal as _};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use hermes_app::models::{ListedModel, ModelChange, ModelError, Route, Source, WindowSource};
use hermes_app::operations::{ChosenModel, ModelPlace};
use hermes_app::prices::{Price, Prices};
use hermes_app::{AppError, ModelChoice, Setup};
use hermes_config::most_similar;
use serde_json::json;

use crate::console::{Console, Tone, print};
use crate::failure::{Failure, Kind};
use crate::launch;
use crate::table::{Align, Table};
use crate::text;

/// The commands of `hermes model`.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub(crate) enum ModelCommand {
    /// List the models that a provider offers, with windows and prices
    #[command(visible_alias = "ls")]
    List {
        /// Only models whose names contain all these words
        words: Vec<String>,
        #[command(flatten)]
        place: PlaceArguments,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Use this model for new sessions
    Use {
        /// The model's name, as `list` shows it
        name: String,
        /// Its provider [default: the present one]
        #[arg(long, value_name = "NAME")]
        provider: Option<String>,
    },
}

/// The provider whose models are listed.
#[derive(Debug, Default, Clone, PartialEq, Eq, Args)]
pub(crate) struct PlaceArguments {
    /// The provider [default: the one of new sessions]
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
    /// The address of its API
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
}

impl PlaceArguments {
    fn choice(&self) -> ModelChoice {
        ModelChoice { provider: self.provider.clone(), base_url: self.base_url.clone(), ..ModelChoice::default() }
    }
}

pub(crate) async fn run(command: Option<&ModelCommand>, console: Console) -> Result<ExitCode, Failure> {
    let setup = launch::setup_with_values(console)?;
    match command {
        None if io::stdin().is_terminal() && console.screen => pick(&setup, console).await,
        None => list(&setup, &ModelChoice::default(), &[], false, console).await,
        Some(ModelCommand::List { words, place, json }) => list(&setup, &place.choice(), words, *json, console).await,
        Some(ModelCommand::Use { name, provider }) => {
            let place = provider.as_ref().map(|provider| provider.trim().to_lowercase());
            let at = ModelChoice { provider: place.clone(), ..ModelChoice::default() };
            let (model, listed) = named(&setup, name.trim(), &at, console).await;
            let switched = switch(&setup, &model, place.as_deref(), console)?;
            // The home is there now.
            if let Some((route, listed)) = listed {
                setup.keep_windows(&route, &listed).await;
            }
            Ok(switched)
        }
    }
}

async fn list(
    setup: &Setup,
    choice: &ModelChoice,
    words: &[String],
    json: bool,
    console: Console,
) -> Result<ExitCode, Failure> {
    let route = setup.route_to(choice)?;
    if route.is_offline() {
        let fix = "`hermes setup` chooses a provider; `hermes model list --provider NAME` asks another one";
        let why = "the built-in `offline` model is used, which has no list";
        return Err(Failure::new(Kind::Model, "there are no models to list", why, fix));
    }
    let listed = offered(setup, &route).await?;
    let provider = &route.model.provider;
    let prices = setup.prices().0;
    let found: Vec<&ListedModel> = listed.iter().filter(|model| choice::fits(&model.name, words)).collect();
    if json {
        let rows: Vec<_> = found.iter().map(|model| as_json(model, &prices, provider)).collect();
        print(&text::json(&json!(rows)))?;
        return Ok(ExitCode::SUCCESS);
    }
    if found.is_empty() {
        let count = text::counted(listed.len() as u64, "model");
        console.note(&format!("{provider} offers {count}; none has all the words {}", words.join(", ")));
        return Ok(Kind::General.into());
    }
    print(&table(&found, &route, &prices, console))?;
    for rest in setup.resting_model(&route, choice).into_iter().chain(setup.resting_keys(&route)) {
        console.note(&rest.to_string());
    }
    Ok(ExitCode::SUCCESS)
}

/// What a provider offers. The failure says how to go on without a list.
pub(crate) async fn offered(setup: &Setup, route: &Route) -> Result<Vec<ListedModel>, Failure> {
    let provider = &route.model.provider;
    let what = format!("the models of {provider} cannot be listed");
    match setup.models_of(route).await {
        Ok(listed) if listed.is_empty() => {
            let fix = "name a model: `hermes model use NAME`";
            Err(Failure::new(Kind::Model, what, "its list is empty", fix))
        }
        Ok(listed) => Ok(listed),
        Err(AppError::Model(ModelError::NotFound { url, .. })) => {
            let fix = "name a model: `hermes model use NAME`; or correct model.base_url";
            Err(Failure::new(Kind::Model, what, format!("{url} has no list of models"), fix))
        }
        Err(error) => Err(Failure { what, ..error.into() }),
    }
}

fn as_json(model: &ListedModel, prices: &Prices, provider: &str) -> serde_json::Value {
    let price = model.known_price(prices, provider).map(|price| {
        json!({
            "input": price.input, "output": price.output, "cache_read": price.cache_read,
            "cache_write": price.cache_write, "cache_write_1h": price.cache_write_1h,
        })
    });
    json!({ "model": model.name, "provider": provider, "window": model.known_window(), "price": price })
}

/// The table of models. The present one is marked.
fn table(models: &[&ListedModel], route: &Route, prices: &Prices, console: Console) -> String {
    let mut table = Table::new(&[Align::Left, Align::Left, Align::Right, Align::Right, Align::Right, Align::Right]);
    table.head(["", "MODEL", "WINDOW", "INPUT", "OUTPUT", "CACHED"]);
    for model in models {
        let is_present = model.name == route.model.name;
        let price = model.known_price(prices, &route.model.provider);
        let dollars = |of: fn(&Price) -> f64| price.as_ref().map_or_else(String::new, |price| amount(of(price)));
        let tone = if is_present { Tone::Good } else { Tone::Plain };
        table.row([
            (tone, if is_present { "*" } else { "" }.to_owned()),
            (tone, text::line(&model.name)),
            (Tone::Plain, model.known_window().map_or_else(String::new, |window| text::grouped(window.into()))),
            (Tone::Plain, dollars(|price| price.input)),
            (Tone::Plain, dollars(|price| price.output)),
            (Tone::Plain, dollars(|price| price.cache_read)),
        ]);
    }
    let (provider, date) = (&route.model.provider, prices.as_of());
    let legend = format!(
        "Windows in tokens; US dollars per million tokens. What {provider} does not say comes from the tables of Hermes (prices of {date})."
    );
    table.lines(console).concat() + "\n" + &console.hanging(&console.paint(Tone::Faint, &legend), 0)
}

/// Dollars, without digits that say nothing.
pub(crate) fn amount(dollars: f64) -> String {
    if dollars == 0.0 || dollars >= 0.1 { format!("${dollars:.2}") } else { format!("${dollars:.4}") }
}

/// Lets the user choose one of the provider's models.
async fn pick(setup: &Setup, console: Console) -> Result<ExitCode, Failure> {
    let route = setup.route_to(&ModelChoice::default())?;
    if route.is_offline() {
        console.note("no provider is configured yet; `hermes setup` chooses one");
        return Ok(Kind::General.into());
    }
    let listed = offered(setup, &route).await?;
    match choice::choose(&listed, &route, &setup.prices().0, console)? {
        Some(model) => switch(setup, &model, None, console),
        None => {
            console.note("nothing was changed");
            Ok(Kind::General.into())
        }
    }
}

/// How long a list may take that only adds what it knows of a model.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// The list of models at a place.
type ListedAt = (Route, Vec<ListedModel>);

/// A model that the user names, with what the provider's list says of it, and the list. A name that is not in the list may be right
/// all the same.
pub(crate) async fn named(
    setup: &Setup,
    name: &str,
    place: &ModelChoice,
    console: Console,
) -> (ChosenModel, Option<ListedAt>) {
    let unlisted = ChosenModel { name: name.to_owned(), window: None };
    let Some(route) = setup.route_to(place).ok().filter(|route| !route.is_offline()) else { return (unlisted, None) };
    let Ok(Ok(listed)) = tokio::time::timeout(PATIENCE, setup.models_of(&route)).await else {
        return (unlisted, None);
    };
    if let Some(found) = listed.iter().find(|model| model.name == name) {
        return (choice::chosen_of(found), Some((route, listed)));
    }
    if !listed.is_empty() {
        let near = most_similar(name, listed.iter().map(|model| model.name.clone()));
        let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        console.warning(&format!("{} does not list a model `{}`{near}", route.model.provider, text::line(name)));
    }
    (unlisted, Some((route, listed)))
}

/// Sets the model of new sessions.
fn switch(setup: &Setup, model: &ChosenModel, provider: Option<&str>, console: Console) -> Result<ExitCode, Failure> {
    let before = setup.config.settings().model.default.as_deref();
    let place = provider.map_or(ModelPlace::Same, |provider| ModelPlace::Provider(provider.to_owned()));
    let ModelChange { route, removed } = setup.switch_model(model, &place)?;
    report(&route, before, &removed, console);
    Ok(ExitCode::SUCCESS)
}

/// Says what holds after a change.
pub(crate) fn report(route: &Route, before: Option<&str>, removed: &[&str], console: Console) {
    let was =
        before.filter(|before| *before != route.model.name).map_or_else(String::new, |name| format!(" (was {name})"));
    let window = text::grouped(route.model.context_length.into());
    let (name, provider) = (&route.model.name, &route.model.provider);
    // Nothing names the window: a larger request may be refused, or cut without a word.
    let guess = match route.window_source {
        WindowSource::Assumed => " (a guess; `hermes config set model.context_length TOKENS` sets it)",
        _ => "",
    };
    console.note(&format!(
        "model: {name} of {provider}{was}, window of {window} tokens{guess}; the change applies to new sessions"
    ));
    if route.model_source == Source::Environment || route.source == Source::Environment {
        console.warning(
            "HERMES_PROVIDER, HERMES_MODEL or HERMES_BASE_URL is set, which takes precedence over config.yaml",
        );
    }
    if !removed.is_empty() {
        console.note(&format!("removed from config.yaml, because it was for the former model: {}", removed.join(", ")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_prices_keep_their_digits() {
        assert_eq!([0.0, 0.025, 0.1, 3.0, 12.5].map(amount), ["$0.00", "$0.0250", "$0.10", "$3.00", "$12.50"]);
    }
}
