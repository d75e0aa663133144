//! The choice of another model in a chat.

use hermes_agent::Command;
use hermes_models::ListedModel;
use hermes_terminal::{Candidate, Picker};

use super::Chat;
use crate::console::Tone;
use crate::launch::Launcher;
use crate::model::{self, choice};
use crate::text;

impl Chat {
    /// Switches to a model that the user chooses from the provider's list.
    pub(super) async fn choose_model(&mut self) {
        let Ok(status) = self.front.session().status().await else { return };
        let Some(live) = self.live.clone() else {
            self.show_status().await;
            self.screen.line(Tone::Faint, "/model NAME switches; `hermes model list` shows the provider's models");
            return;
        };
        self.screen.does("asking the provider for its models");
        let listed = known(&self.launcher).await;
        self.screen.end_turn();
        let rows = match listed {
            Ok(rows) => rows,
            Err(why) => {
                self.show_status().await;
                let why = text::line(&why);
                self.screen.line(Tone::Faint, &format!("the models cannot be listed: {why}; /model NAME switches"));
                return;
            }
        };
        let present = rows.iter().position(|row| row.text == status.model);
        let names: Vec<String> = rows.iter().map(|row| row.text.clone()).collect();
        let title = format!("Which model? Now: {}", text::line(&status.model));
        let picked = live.pick(Picker::new(&title, rows, present.unwrap_or(0))).await;
        if let Some(model) = picked.and_then(|at| names.into_iter().nth(at)).filter(|model| *model != status.model) {
            self.switch(Command::ChooseModel { model }).await;
        }
    }
}

/// The models of the provider with windows and prices, or why they are not known.
async fn known(launcher: &Launcher) -> Result<Vec<Candidate>, String> {
    let setup = launcher.setup();
    let route = model::route_to(setup, launcher.choice()).map_err(|failure| failure.why)?;
    if route.is_offline() {
        return Err("no provider is configured, and `hermes setup` chooses one".to_owned());
    }
    let listed = tokio::time::timeout(model::PATIENCE, model::offered(setup, &route)).await;
    let listed = listed.map_err(|_| format!("{} did not answer in time", route.model.provider))?;
    let listed = listed.map_err(|failure| failure.why)?;
    let prices = setup.prices().0;
    let row = |model: &ListedModel| Candidate {
        text: model.name.clone(),
        about: choice::about(model, &prices, &route.model.provider),
    };
    Ok(listed.iter().map(row).collect())
}
