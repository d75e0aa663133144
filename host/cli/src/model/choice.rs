//! The choice of a model from a provider's list, on a terminal.

use hermes_app::models::{ListedModel, Route};
use hermes_app::operations::ChosenModel;
use hermes_app::prices::Prices;
use hermes_terminal::Candidate;

use crate::console::Console;
use crate::failure::Failure;
use crate::model::amount;
use crate::{question, text};

/// Whether a name contains all the words, whatever their case.
pub(crate) fn fits(name: &str, words: &[String]) -> bool {
    let name = name.to_lowercase();
    words.iter().all(|word| name.contains(&word.to_lowercase()))
}

/// Asks for one of the models. None if the user wants none.
pub(crate) fn choose(
    listed: &[ListedModel],
    route: &Route,
    prices: &Prices,
    console: Console,
) -> Result<Option<ChosenModel>, Failure> {
    let present = listed.iter().position(|model| model.name == route.model.name).unwrap_or(0);
    let rows = listed.iter().map(|model| row(model, prices, &route.model.provider)).collect();
    let chosen = question::chosen("Which model?", rows, present, console)?;
    Ok(chosen.and_then(|at| listed.get(at)).map(chosen_of))
}

/// A model of a list, with its window if Hermes does not know it.
pub(crate) fn chosen_of(model: &ListedModel) -> ChosenModel {
    ChosenModel { name: model.name.clone(), window: model.unknown_window() }
}

/// A row of a list: the name of a model, and what is known about it.
pub(crate) fn row(model: &ListedModel, prices: &Prices, provider: &str) -> Candidate {
    Candidate { text: model.name.clone(), about: about(model, prices, provider) }
}

/// The window and the price of a model, as far as they are known.
fn about(model: &ListedModel, prices: &Prices, provider: &str) -> String {
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
        assert_eq!(row(&model("mine"), &Prices::built_in(), "ollama").about, "");
        let shown = row(&model("claude-sonnet-4-5"), &Prices::built_in(), "anthropic");
        assert_eq!(shown.about, "200,000 tokens · $3.00 in, $15.00 out");
    }
}
