//! The approvals that the configuration decides.

use std::sync::Arc;

use hermes_capabilities::files::Listed;
use hermes_protocol::Mode;

use super::rules::ApprovalRules;

/// The configured rules, and whether the user can be asked.
#[derive(Debug, Clone, Default)]
pub struct Approvals {
    /// `approvals.allow`, `approvals.ask` and `approvals.deny`.
    pub rules: ApprovalRules,
    /// The files that change only with approval.
    pub listed: Arc<Listed>,
    /// Whether a front end of the session can answer questions.
    pub can_ask: bool,
    /// The mode in which sessions begin.
    pub mode: Mode,
}
