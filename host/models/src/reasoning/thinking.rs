//! What models can do with a reasoning effort.

/// What a model can do with an effort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thinking {
    /// The effort is requested.
    Requested,
    /// The model always thinks: the least effort is requested in place of none.
    Least,
    /// The model thinks, and its provider takes no such wish.
    Fixed,
    /// The model is not known to think.
    Unknown,
}
