//! Compaction: the engine proposes a plan, and the host verifies it. Without a plan the host folds messages by its own
//! rules.
//!
//! [`Compactor`] works on any [`CompactionTarget`]: a conversation whose view can be replaced.

mod compactor;
mod memory;
pub(crate) mod notify;
mod ruler;
mod target;
#[cfg(test)]
mod tests;

pub use self::compactor::{
    Compacted, Compactor, Deferral, LEAST_MESSAGES, OnDeferral, Preview, Rules, STRIKES, heavy, reserve,
};
pub use self::notify::Notify;
pub use self::ruler::Ruler;
pub(crate) use self::ruler::load_ruler;
pub(crate) use self::ruler::store_ruler;
pub use self::target::CompactionTarget;
