//! The system prompt: built once per session, stored with it, and sent byte for byte from then on.
//!
//! [`build`] is a pure function of [`Inputs`]: equal inputs give equal bytes. Only [`files`] and [`hints`] read the disk, and
//! everything they return has passed the [`scan`].
//!
//! ```
//! use hermes_conversation::Model;
//! use hermes_prompt::{Inputs, PlatformHint, SystemPrompt, build};
//!
//! let prompt = build(&Inputs {
//!     identity: None,
//!     tools: vec!["memory".into()],
//!     skills: Vec::new(),
//!     platform: "cli".into(),
//!     platform_hint: PlatformHint::default(),
//!     environment_hint: None,
//!     os: "linux".into(),
//!     home: None,
//!     workspace: "/home/ada/engine".into(),
//!     context_files: Vec::new(),
//!     system_message: None,
//!     provider_blocks: Vec::new(),
//!     date: jiff::civil::date(2026, 11, 21),
//!     model: Model { provider: "offline".into(), name: "offline".into(), context_length: 32_000 },
//! });
//! assert!(prompt.text().ends_with("\n\nModel: offline (provider: offline)"));
//!
//! // The stored text and outline restore the layers.
//! assert_eq!(SystemPrompt::restore(&prompt.text(), &prompt.outline())?, prompt);
//! # Ok::<(), hermes_prompt::PromptError>(())
//! ```

#![forbid(unsafe_code)]

mod assembly;
mod drift;
mod error;
pub mod files;
pub mod hints;
pub mod ledger;
mod notice;
pub mod scan;
pub mod shape;
mod skills;
mod system_prompt;
mod wording;

pub use assembly::{Inputs, PlatformHint, ProviderBlock, build};
pub use drift::{Change, ChangeKind, DiffLine, LayerDiff, changes, described, diff, drift};
pub use error::PromptError;
pub use notice::{Notice, Passage};
pub use skills::SkillEntry;
pub use system_prompt::{Layer, Outline, OutlineEntry, SystemPrompt, Tier};
pub use wording::IDENTITY;
