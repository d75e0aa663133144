//! Changes of plugins on disk, and the lines for the user about them.

use std::sync::Arc;

use hermes_diagnostic::Notice;

use crate::selected::Selected;

/// A change of a plugin on disk.
pub struct Change {
    pub(crate) name: String,
    pub(crate) kind: ChangeKind,
}

#[derive(Clone)]
pub(crate) enum ChangeKind {
    /// A newer generation was built and checked, and can take over.
    Ready(Arc<Selected>),
    /// The newer plugin cannot be used.
    Broken(Notice),
    /// The plugin must not run any more.
    Revoked(Notice),
    /// The plugin was removed.
    Removed,
}

impl ChangeKind {
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Ready(_) => "ready",
            Self::Broken(_) => "broken",
            Self::Revoked(_) => "revoked",
            Self::Removed => "removed",
        }
    }
}

impl Change {
    /// The line for the user if no session has begun yet.
    pub(crate) fn line(&self) -> Option<Notice> {
        match &self.kind {
            ChangeKind::Ready(_) => None,
            ChangeKind::Broken(why) => Some(broken(&self.name, why)),
            ChangeKind::Revoked(why) => Some(revoked(&self.name, why)),
            ChangeKind::Removed => Some(removed(&self.name).into()),
        }
    }
}

/// The line for the user about a change that cannot be used.
pub(crate) fn broken(name: &str, why: &Notice) -> Notice {
    let text = format!(
        "the plugin `{name}` was changed and cannot be used: {}; this session keeps the running version",
        why.text
    );
    Notice { text, fix: why.fix.clone() }
}

/// The line for the user about a plugin that was revoked.
pub(crate) fn revoked(name: &str, why: &Notice) -> Notice {
    let text = format!("the plugin `{name}` was revoked, for this session and later ones: {}", why.text);
    Notice { text, fix: why.fix.clone() }
}

/// The line for the user about a plugin that was removed.
pub(crate) fn removed(name: &str) -> String {
    format!("the plugin `{name}` was removed; this session keeps it until it ends")
}
