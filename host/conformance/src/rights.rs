//! What a plugin is given in a scene.

/// From everything that its manifest asks for to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rights {
    /// As asked.
    Granted,
    /// As asked, and no model answers.
    ModelAway,
    /// Every import that can be denied is.
    Denied,
}
