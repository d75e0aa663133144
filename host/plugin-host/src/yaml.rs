//! The limits of YAML from elsewhere: manifests of plugins, and the answers that their authors write for tests. They stop texts
//! that expand through aliases or nesting. The YAML of skills has no aliases at all (`hermes-skill-format`).

/// Limits that a legitimate text does not reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Values, keys included.
    pub nodes: usize,
    /// Levels of lists and maps.
    pub depth: usize,
    /// Places that repeat a value.
    pub aliases: usize,
    /// Bytes of all texts.
    pub bytes: usize,
}

impl Limits {
    /// The limits as the parser takes them.
    pub fn options(self) -> serde_saphyr::Options {
        let Self { nodes, depth, aliases, bytes } = self;
        let mut replays = serde_saphyr::Options::default().alias_limits;
        replays.max_total_replayed_events = aliases * 16;
        replays.max_replay_stack_depth = 8;
        replays.max_alias_expansions_per_anchor = aliases / 4;
        serde_saphyr::options! {
            budget: serde_saphyr::budget! {
                max_events: nodes * 2,
                max_aliases: aliases,
                max_anchors: aliases / 4,
                max_depth: depth,
                max_documents: 1,
                max_nodes: nodes,
                max_total_scalar_bytes: bytes,
                max_merge_keys: aliases / 8,
                flow_nesting_limit: depth,
            },
            alias_limits: replays,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_expands_or_nests_is_refused() {
        let limits = Limits { nodes: 1_000, depth: 24, aliases: 64, bytes: 10_000 };
        let reads =
            |text: &str| serde_saphyr::from_str_with_options::<serde_json::Value>(text, limits.options()).is_ok();
        assert!(reads("a: &a [x, {y: z}]\nb: *a\n"));
        let bomb = "a: &a [x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a]\n\
            c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b]\nd: [*c, *c, *c, *c, *c, *c, *c, *c, *c]\n";
        assert!(!reads(bomb));
        assert!(!reads(&format!("{}x{}", "[".repeat(30), "]".repeat(30))));
        assert!(!reads(&format!("a: {}", "x".repeat(20_000))));
        assert!(!reads(&"- x\n".repeat(2_000)));
        assert!(!reads("a: 1\n---\nb: 2\n"));
    }
}
