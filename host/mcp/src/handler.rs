//! What a server may ask of its client, and what it may tell.

// The protocol calls roots deprecated since its version 2026-07-28; servers of earlier versions use them.
#![allow(deprecated)]

use std::sync::Arc;

use rmcp::model::{
    ClientCapabilities, ClientConfig, ErrorData, Implementation, ListRootsResult, LoggingLevel,
    LoggingMessageNotificationParam, ProgressNotificationParam, Root, RootsCapabilities,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, RoleClient};
use tokio::sync::Notify;
use url::Url;

use crate::error::line;
use crate::front::Front;
use crate::limits;

/// The client's side of one connection.
pub(crate) struct Handler {
    pub(crate) front: Arc<dyn Front>,
    /// Notified when the server says that its tools have changed.
    pub(crate) changed: Arc<Notify>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.roots = Some(RootsCapabilities::default());
        let name = Implementation::new("hermes", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities, name)
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        let folders = self.front.roots();
        let urls = folders.iter().filter_map(|folder| Url::from_directory_path(folder).ok());
        // Without the slash at the end, as other clients write it.
        let roots = urls.map(|url| Root::new(url.as_str().trim_end_matches('/')));
        Ok(ListRootsResult::new(roots.collect()))
    }

    async fn on_progress(&self, progress: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.front.progress(&progress_line(&progress));
    }

    async fn on_logging_message(&self, message: LoggingMessageNotificationParam, _: NotificationContext<RoleClient>) {
        let text = match &message.data {
            serde_json::Value::String(text) => line(text),
            other => line(&other.to_string()),
        };
        let is_quiet = matches!(message.level, LoggingLevel::Debug | LoggingLevel::Info | LoggingLevel::Notice);
        self.front.log(!is_quiet, &text);
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }
}

fn progress_line(progress: &ProgressNotificationParam) -> String {
    let amount = match progress.total.filter(|total| *total > 0.0) {
        Some(total) => format!("{} of {total}", progress.progress),
        None => progress.progress.to_string(),
    };
    match progress.message.as_deref().map(str::trim).filter(|message| !message.is_empty()) {
        Some(message) => hermes_conversation::one_line_within(&format!("{message} ({amount})"), limits::PROGRESS),
        None => hermes_conversation::one_line_within(&amount, limits::PROGRESS),
    }
}
