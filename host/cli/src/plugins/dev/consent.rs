//! What the developer agreed that the project may do in sessions.

use hermes_app::ModelChoice;
use hermes_app::operations::{self, Consent as _, Offer, OfferedTools, Purpose};
use hermes_app::plugins::{LimitSet, Manifest, Permissions};

use super::super::consent::screen::ConsentScreen;
use super::super::consent::{Consent, Terminal};
use crate::console::Console;
use crate::failure::{Failure, Kind};
use crate::launch;

/// The permissions and limits that need no further question.
#[derive(Debug, Clone, Default)]
pub(super) struct Agreed {
    permissions: Permissions,
    limits: LimitSet,
}

impl Agreed {
    /// What the user granted the installed plugin of this name; none if there is no such plugin, or no grant.
    pub(super) fn installed(name: &str) -> Result<Option<Self>, Failure> {
        let granted = operations::granted(name, &launch::read()?)?;
        Ok(granted.map(|(permissions, limits)| Self { permissions, limits }))
    }

    /// Asks about what a manifest requests beyond the agreement; without an earlier agreement, about the plugin as a whole.
    pub(super) fn widened(
        before: Option<Self>,
        manifest: &Manifest,
        exports: &[&str],
        folder: &str,
        yes: bool,
        console: Console,
    ) -> Result<Self, Failure> {
        // The question shows the addresses that the configuration has now.
        let requested = manifest.permissions_under(&launch::read()?.selection(&ModelChoice::default()));
        let known = before.clone().unwrap_or_default();
        let (permissions, limits) = (requested.widening(&known.permissions), manifest.limits.widening(&known.limits));
        if before.is_some() && permissions.is_empty() && limits.is_empty() {
            return Ok(known);
        }
        let is_first = before.is_none();
        if is_first {
            let mut sheet = ConsentScreen::on_stderr(console);
            sheet.row("plugin", &format!("{} {}", manifest.name, manifest.version));
            sheet.row("description", &manifest.description);
            sheet.whole("project", folder);
            sheet.print();
        }
        let exports: Vec<String> =
            if is_first { exports.iter().map(ToString::to_string).collect() } else { Vec::new() };
        let offer = Offer {
            purpose: Purpose::Develop,
            permissions: &permissions,
            limits: &limits,
            exports: &exports,
            // The author wrote them.
            tools: OfferedTools::Named(&[]),
            manifest,
            on_yes: (permissions.clone(), limits.clone()),
            is_covered: false,
            replaces: None,
        };
        let agreed = Terminal::new(console, Consent { yes, grant: None }).permissions(&offer)?;
        if agreed.is_none() {
            let fix = "run the command again, or request less in plugin.yaml";
            return Err(Failure::new(Kind::General, "no session uses the project", "you declined", fix));
        }
        Ok(Self { permissions: requested, limits: manifest.limits.clone() })
    }
}
