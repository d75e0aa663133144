//! Figures that decide what stays visible. `budgets` scales them with the window.
//!
//! A request costs in proportion to its context, so a small context saves money. On the other hand, text that is needed
//! again must be fetched. The figures come from replays of recorded sessions. They favour a short tail, short segments, and
//! verbatim text that later edits continue from.

/// A window is never filled beyond this share.
pub(crate) const HIGHEST: f64 = 0.85;
/// Tokens of the tail (the newest messages), and the number of groups it always keeps.
pub(crate) const TAIL: u32 = 6_000;
pub(crate) const GROUPS: usize = 2;
/// Folding starts when this many tokens have left the tail.
pub(crate) const FOLD: u32 = 16_000;
/// A result larger than `LARGE` tokens counts towards `FOLD` only after `YOUNG` further replies: the assistant is about
/// to work with a result it just read.
pub(crate) const LARGE: u32 = 4_000;
pub(crate) const YOUNG: u32 = 8;
/// Beyond this many tokens of messages, large results count at once.
pub(crate) const PATIENCE: u32 = 45_000;
/// Most tokens of segments and working set together, whatever the configuration says.
pub(crate) const PREFIX: u32 = 12_000;
/// When segments exceed this many tokens (not counting the user's words), the oldest are merged.
pub(crate) const SEGMENTS: u32 = 3_000;
/// A segment gets this share of the tokens it covers, plus room for the user's words.
pub(crate) const DIGEST: f64 = 0.05;
/// Tokens of the working set.
pub(crate) const WORKING: u32 = 10_000;
/// Parts of the working set: calls verbatim, files, open items, and the assistant's latest texts.
pub(crate) const CALLS: u32 = 2_000;
pub(crate) const FILES: u32 = 5_500;
pub(crate) const ITEMS: u32 = 500;
pub(crate) const TEXTS: u32 = 3_000;
/// Each repetition of a call ranks it this many replies newer, up to three times.
pub(crate) const AGAIN: u32 = 40;
/// The credit a file needs to be shown, the tokens it gets per credit, how far before the last position the excerpt
/// starts, and the tokens of conversation after which credit halves.
pub(crate) const LEAST_CREDIT: f64 = 1.9;
pub(crate) const PER_CREDIT: f64 = 1_000.0;
pub(crate) const BEFORE: usize = 15;
pub(crate) const HALF_LIFE: f64 = 20_000.0;
/// Tokens of what memory providers want kept.
pub(crate) const MEMORY: u32 = 800;
/// Bytes per token, as a first guess; the host's token count decides.
pub(crate) const BYTES: f64 = 2.9;
/// Tokens of messages that a new instance reads.
pub(crate) const LOOK_BACK: u32 = 200_000;
