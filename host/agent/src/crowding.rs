//! Which plugins leave a conversation no room: those whose tools, skills or prompt would fill the model's window.
//!
//! The decision is made when the prompt of a session is built, from the texts alone. The same texts and window always give
//! the same decision, so a stored prompt stays as it is, and so does the provider's cache.

use std::collections::{BTreeMap, BTreeSet};

use hermes_conversation::tokens;

use crate::compaction::reserve;

/// The most tokens of system prompt and tools together for which plugins from outside of Hermes are used: a quarter of the
/// window is left for messages, and the reserve for the reply.
pub(crate) fn most(window: u32) -> u32 {
    window.saturating_sub(reserve(window)).saturating_sub(window / 4)
}

/// What each plugin adds to the opening, in estimated tokens.
#[derive(Debug, Default)]
pub(crate) struct Shares(BTreeMap<String, u32>);

impl Shares {
    /// Counts a text of a plugin.
    pub(crate) fn add(&mut self, plugin: &str, text: &str) {
        let share = self.0.entry(plugin.to_owned()).or_default();
        *share = share.saturating_add(tokens::of_text(text));
    }

    /// The plugins to leave out of an opening of so many tokens: the largest first, and never a bundled one.
    pub(crate) fn crowding(&self, total: u32, window: u32, bundled: &BTreeSet<String>) -> Vec<Crowding> {
        let mut shares: Vec<(&String, u32)> = self
            .0
            .iter()
            .filter(|(plugin, _)| !bundled.contains(*plugin))
            .map(|(plugin, share)| (plugin, *share))
            .collect();
        shares.sort_by(|(a, share_a), (b, share_b)| share_b.cmp(share_a).then(a.cmp(b)));
        let (most, mut left) = (most(window), total);
        let mut crowding = Vec::new();
        for (plugin, share) in shares {
            if left <= most {
                break;
            }
            left = left.saturating_sub(share);
            crowding.push(Crowding { plugin: plugin.clone(), share, total, most, window });
        }
        crowding
    }
}

/// A plugin that is left out of a session's prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Crowding {
    pub(crate) plugin: String,
    share: u32,
    total: u32,
    most: u32,
    window: u32,
}

impl Crowding {
    /// What the user reads: which plugin, why, and what to do.
    pub(crate) fn notice(&self, is_server: bool) -> String {
        let Self { plugin, share, total, most, window } = self;
        let (what, otherwise) = match is_server {
            true => ("tools of the MCP server", "exclude some of its tools"),
            false => ("tools, skills and prompt of the plugin", "turn the plugin off"),
        };
        format!(
            "the {what} `{plugin}` are left out of this session: they have about {share} tokens, and the whole prompt would have \
             {total}; a window of {window} leaves room for a conversation if the prompt has at most {most}; choose a model with \
             a larger window, or {otherwise}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(texts: &[(&str, usize)]) -> Shares {
        let mut shares = Shares::default();
        // A letter and a blank are a token.
        texts.iter().for_each(|(plugin, tokens)| shares.add(plugin, &"a ".repeat(*tokens)));
        shares
    }

    fn left_out(shares: &Shares, total: u32, window: u32) -> Vec<String> {
        let bundled = BTreeSet::from(["files".to_owned()]);
        shares.crowding(total, window, &bundled).into_iter().map(|crowding| crowding.plugin).collect()
    }

    #[test]
    fn no_plugin_is_left_out_while_there_is_room() {
        let shares = shares(&[("files", 1_000), ("large", 14_000)]);
        assert_eq!(most(32_768), 18_023);
        assert_eq!(left_out(&shares, 18_023, 32_768), [""; 0]);
        assert_eq!(left_out(&shares, 18_024, 32_768), ["large"]);
    }

    #[test]
    fn the_largest_plugins_go_first_until_the_rest_fits() {
        let shares = shares(&[("b", 9_000), ("small", 100), ("a", 9_000), ("files", 30_000)]);
        assert_eq!(left_out(&shares, 20_000, 32_768), ["a"]);
        assert_eq!(left_out(&shares, 30_000, 32_768), ["a", "b"]);
        // Bundled plugins stay, even if they fill the window.
        assert_eq!(left_out(&shares, 49_000, 32_768), ["a", "b", "small"]);
    }

    #[test]
    fn all_texts_of_a_plugin_count_and_the_notice_says_what_to_do() {
        let mut shares = shares(&[("large", 20_000)]);
        shares.add("large", &"b ".repeat(30_000));
        let crowding = shares.crowding(51_000, 32_768, &BTreeSet::new());
        let notice = crowding[0].notice(false);
        for words in ["`large`", "about 50000 tokens", "would have 51000", "at most 18023", "turn the plugin off"] {
            assert!(notice.contains(words), "{notice}");
        }
    }
}
