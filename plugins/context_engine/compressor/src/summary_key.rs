//! The keys of summaries: who wrote one.

/// Key prefixes of rule-based digests and of summaries by a model.
pub(crate) const BY_RULE: &str = "compressor:digest:";
pub(crate) const BY_MODEL: &str = "compressor:summary:";
/// Key prefix of the host's own digests.
const BY_HOST: &str = "host:";

/// Whether this engine or the host wrote the summary.
pub(crate) fn is_own(key: &str) -> bool {
    key.starts_with(BY_MODEL) || is_by_rule(key)
}

/// Whether the summary is rule-based.
pub(crate) fn is_by_rule(key: &str) -> bool {
    key.starts_with(BY_RULE) || key.starts_with(BY_HOST)
}
