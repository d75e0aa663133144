//! The choice of another model in a chat.

use std::sync::Arc;
use std::time::Duration;

use hermes_app::models::Route;
use hermes_app::{Desk, Listing, ModelChoice};
use hermes_protocol::Command;
use hermes_terminal::{Candidate, Picker};

use super::Chat;
use crate::console::Tone;
use crate::model::{self, choice};
use crate::text;

/// How long the chat waits for the lists of services on the network.
const PATIENCE: Duration = Duration::from_secs(4);
/// How long it waits for servers of the user, which are near. One that is switched off may not even refuse.
const NEAR: Duration = Duration::from_secs(2);

/// A provider with its models, or why they are not known.
struct Offered {
    provider: String,
    is_configured: bool,
    models: Result<Vec<Candidate>, String>,
}

impl Chat {
    /// Switches to a model of the provider that this conversation uses.
    pub(super) async fn switch_model(&mut self, model: String) {
        let provider = self.provider.clone();
        let place = match &provider {
            Some(provider) => ModelChoice { provider: Some(provider.clone()), ..ModelChoice::default() },
            None => self.request.model.clone(),
        };
        // A name that is in no list may be right all the same. The list also tells the window.
        self.screen.does("looking for the model in the provider's list");
        model::named(self.desk.setup(), &model, &place, self.console).await;
        self.screen.end_turn();
        if self.switch(Command::ChooseModel { model: model.clone(), provider: provider.clone() }).await {
            self.keep_model(model, provider);
        }
    }

    /// Remembers a chosen model for the next new conversation.
    fn keep_model(&mut self, model: String, provider: Option<String>) {
        self.chosen.model = Some(model);
        if provider.is_some() {
            (self.chosen.provider, self.chosen.base_url) = (provider, None);
        }
    }

    /// Switches to a model that the user chooses from the lists of all providers that are configured or run on this machine.
    pub(super) async fn choose_model(&mut self) {
        let Ok(status) = self.front.session().status().await else { return };
        let Some(live) = self.live.clone() else {
            self.show_status().await;
            self.screen.line(Tone::Faint, "/model NAME switches; `hermes model list` shows the provider's models");
            return;
        };
        let listings = match self.desk.setup().listings(&self.request.model) {
            Ok(listings) => listings,
            Err(error) => return self.fail(&error.into()),
        };
        let without_list = match listings.iter().any(|known| known.is_configured) {
            true => "/model NAME switches to a model that is in no list",
            false => "no provider is configured, so there is no list; `hermes setup` chooses one",
        };
        // The session's own place has an address and a key that its name alone may not lead to.
        let own = self.desk.setup().route_to(&self.request.model).ok().map(|route| route.model.provider);
        let present = self.provider.clone().or_else(|| own.clone());
        self.screen.does("asking your providers for their models");
        let offered = {
            let _during = self.ctrl_c.stops_the_turn();
            live.ui().set_busy(true);
            let stop = self.ctrl_c.switch().token();
            let offered = tokio::select! {
                offered = ask(&self.desk, listings) => Some(offered),
                () = stop.cancelled() => None,
            };
            live.ui().set_busy(false);
            offered
        };
        self.screen.end_turn();
        let Some(offered) = offered else { return };
        let mut rows = Vec::new();
        for Offered { provider, is_configured, models } in offered {
            match models {
                Ok(models) => rows.extend(models.into_iter().map(|model| (provider.clone(), model))),
                Err(_) if !is_configured => {}
                Err(why) => self.screen.line(Tone::Faint, &text::line(&format!("no models of {provider}: {why}"))),
            }
        }
        if rows.is_empty() {
            self.show_status().await;
            self.screen.line(Tone::Faint, without_list);
            return;
        }
        let is_present =
            |(provider, model): &(String, Candidate)| model.text == status.model && Some(provider) == present.as_ref();
        let at = rows.iter().position(is_present);
        let names: Vec<(String, String)> =
            rows.iter().map(|(provider, model)| (provider.clone(), model.text.clone())).collect();
        let title = format!("Which model? Now: {}", text::line(&status.model));
        let picked = live.pick(Picker::grouped(&title, rows, at.unwrap_or(0))).await;
        let Some((provider, model)) =
            picked.filter(|picked| Some(*picked) != at).and_then(|at| names.into_iter().nth(at))
        else {
            return;
        };
        let provider = (Some(&provider) != own.as_ref()).then_some(provider);
        if self.switch(Command::ChooseModel { model: model.clone(), provider: provider.clone() }).await {
            self.keep_model(model, provider.clone());
            self.provider = provider;
        }
    }
}

/// Asks all providers at once. One that does not answer in time is left out.
async fn ask(desk: &Arc<Desk>, listings: Vec<Listing>) -> Vec<Offered> {
    let asked: Vec<_> = listings
        .into_iter()
        .map(|Listing { route, is_configured }| {
            let (provider, desk) = (route.model.provider.clone(), Arc::clone(desk));
            let patience = if route.is_hosted() { PATIENCE } else { NEAR };
            let listed = tokio::spawn(async move { tokio::time::timeout(patience, known(&desk, &route)).await });
            (provider, is_configured, patience, listed)
        })
        .collect();
    let mut offered = Vec::new();
    for (provider, is_configured, patience, listed) in asked {
        let models = match listed.await {
            Ok(Ok(models)) => models,
            Ok(Err(_)) => Err(format!("no answer within {} s", patience.as_secs())),
            Err(error) => Err(error.to_string()),
        };
        offered.push(Offered { provider, is_configured, models });
    }
    offered
}

/// The models of a provider with windows and prices, or why they are not known.
async fn known(desk: &Desk, route: &Route) -> Result<Vec<Candidate>, String> {
    let setup = desk.setup();
    let listed = model::offered(setup, route).await.map_err(|failure| failure.why)?;
    let prices = setup.prices().0;
    Ok(listed.iter().map(|model| choice::row(model, &prices, &route.model.provider)).collect())
}
