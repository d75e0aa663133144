//! How much the model thinks, and which requested efforts it does not support.

use hermes_models::{Effort, Thinking};

use crate::host::Host;

/// A line for the user if the model cannot think as much or as little as requested.
pub(crate) fn shortfall(host: &Host, effort: Effort) -> Option<String> {
    line(&host.model.name, effort, host.chain.now().provider.thinking(&host.model.name, effort))
}

fn line(model: &str, effort: Effort, thinking: Thinking) -> Option<String> {
    match thinking {
        Thinking::Requested => None,
        // A model that does not think does what is wanted.
        Thinking::Unknown if effort == Effort::None => None,
        Thinking::Unknown => Some(format!("{model} is not known to think; the effort `{effort}` is not requested")),
        Thinking::Least => Some(format!("{model} always thinks; as little as possible is requested")),
        Thinking::Fixed => {
            Some(format!("{model} decides itself how much it thinks; the effort `{effort}` is not requested"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_learns_what_is_not_requested_and_nothing_else() {
        let told = |effort, thinking| line("m", effort, thinking);
        assert_eq!(told(Effort::High, Thinking::Requested), None);
        assert_eq!(told(Effort::None, Thinking::Unknown), None);
        let unknown = told(Effort::High, Thinking::Unknown);
        assert_eq!(unknown.as_deref(), Some("m is not known to think; the effort `high` is not requested"));
        let least = told(Effort::None, Thinking::Least);
        assert_eq!(least.as_deref(), Some("m always thinks; as little as possible is requested"));
        let fixed = told(Effort::Low, Thinking::Fixed);
        assert_eq!(fixed.as_deref(), Some("m decides itself how much it thinks; the effort `low` is not requested"));
    }
}
