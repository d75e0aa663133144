//! The owner of the host's own tools and requests, beside plugins and servers.

/// Its name in rules, questions, lists and the ledger.
pub(crate) const HOST: &str = "hermes";
