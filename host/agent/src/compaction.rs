//! Making room in the window: the engine proposes a plan, the host verifies it, and folds by rule if there is none.
//!
//! [`Compactor`] works on any conversation that can be read and whose view can be replaced, a [`CompactionTarget`].

mod compactor;
mod memory;
pub(crate) mod notify;
pub(crate) mod outcome;
mod ruler;
mod target;
#[cfg(test)]
mod tests;

pub use self::compactor::{Compacted, Compactor, LEAST_MESSAGES, Preview, Rules, STRIKES, heavy, reserve};
pub use self::notify::Notify;
pub use self::outcome::{Compression, Outlook};
pub use self::ruler::Ruler;
pub(crate) use self::ruler::note as note_ruler;
pub(crate) use self::ruler::noted as noted_ruler;
pub use self::target::CompactionTarget;
