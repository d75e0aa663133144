//! The choice of a model from a provider's list, on a terminal.

use std::io;

use dialoguer::Select;
use hermes_app::models::{ListedModel, Route};
use hermes_app::operations::ChosenModel;
use hermes_app::prices::Prices;

use crate::console::Console;
use crate::failure::Failure;
use crate::model::amount;
use crate::question::typed;
use crate::text;

/// The most models that are shown at once.
const ROWS: usize = 15;

/// Whether a name contains all the words, whatever their case.
pub(crate) fn fits(name: &str, words: &[String]) -> bool {
    let name = name.to_lowercase();
    words.iter().all(|word| name.contains(&word.to_lowercase()))
}

/// Asks for one of the models. A long list is searched first. None if the user cancels.
pub(crate) fn choose(
    listed: &[ListedModel],
    route: &Route,
    prices: &Prices,
    console: Console,
) -> Result<Option<ChosenModel>, Failure> {
    let mut words = Vec::new();
    loop {
        if listed.len() > ROWS {
            let line = typed(&format!("Search {} (Enter shows all):", text::counted(listed.len() as u64, "model")))?;
            words = line.split_whitespace().map(str::to_owned).collect();
        }
        let found: Vec<&ListedModel> = listed.iter().filter(|model| fits(&model.name, &words)).collect();
        if found.is_empty() {
            console.note("no model has all these words");
            continue;
        }
        let present = found.iter().position(|model| model.name == route.model.name).unwrap_or(0);
        let items: Vec<String> =
            found.iter().map(|model| console.item(&row(model, prices, &route.model.provider))).collect();
        let select = Select::new().with_prompt("Model (Esc cancels)").items(&items).default(present).max_length(ROWS);
        let chosen = select.interact_opt().map_err(|error| Failure::from(io::Error::other(error)))?;
        return Ok(chosen.map(|at| chosen_of(found[at])));
    }
}

/// A model of a list, with its window if Hermes does not know it.
pub(crate) fn chosen_of(model: &ListedModel) -> ChosenModel {
    ChosenModel { name: model.name.clone(), window: model.unknown_window() }
}

fn row(model: &ListedModel, prices: &Prices, provider: &str) -> String {
    format!("{:<40} {}", text::line(&model.name), about(model, prices, provider)).trim_end().to_owned()
}

/// The window and the price of a model, as far as they are known.
pub(crate) fn about(model: &ListedModel, prices: &Prices, provider: &str) -> String {
    let window = model.known_window().map(|tokens| format!("{} tokens", text::grouped(tokens.into())));
    let price = model
        .known_price(prices, provider)
        .map(|price| format!("{} in, {} out", amount(price.input), amount(price.output)));
    [window, price].into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_finds_names_with_all_words() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert!(fits("anthropic/Claude-Sonnet-4.5", &words("sonnet claude")));
        assert!(!fits("anthropic/claude-sonnet-4.5", &words("sonnet opus")));
        assert!(fits("anything", &[]));
    }

    #[test]
    fn a_row_shows_what_is_known() {
        let model = |name: &str| ListedModel { name: name.to_owned(), window: None, price: None };
        assert_eq!(row(&model("mine"), &Prices::built_in(), "ollama"), "mine");
        let shown = row(&model("claude-sonnet-4-5"), &Prices::built_in(), "anthropic");
        assert!(shown.ends_with("200,000 tokens · $3.00 in, $15.00 out"), "{shown}");
    }
}
