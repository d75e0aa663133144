//! The ledger of the prompt cache: compares consecutive requests, and explains a broken prefix.
//!
//! A provider can cache only a prefix of exactly the bytes it was sent. So the first differing byte tells how much of a
//! request can come from the cache, and what changed. The provider's usage report adds the rest: bytes that stayed but were
//! not read from the cache have expired, or the provider lost them.

use std::fmt;
use std::time::Duration;

use hermes_conversation::{Usage, ViewId};

/// Why a request could not reuse the whole previous request from the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// There was no previous request.
    FirstRequest,
    /// The conversation was compacted: the view changed.
    Compaction,
    /// The model or wire format changed; the new one has no cache of the conversation.
    ModelChange,
    /// The tool list changed.
    ToolsChanged,
    /// The system prompt was rebuilt.
    PromptRebuilt,
    /// More time passed than the provider keeps a prefix.
    Expired,
    /// An ephemeral layer was added, removed or changed.
    EphemeralLayer,
    /// No known cause.
    Unknown,
}

impl Cause {
    const ALL: [Self; 8] = [
        Self::FirstRequest,
        Self::Compaction,
        Self::ModelChange,
        Self::ToolsChanged,
        Self::PromptRebuilt,
        Self::Expired,
        Self::EphemeralLayer,
        Self::Unknown,
    ];

    /// The name used in the store and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FirstRequest => "first-request",
            Self::Compaction => "compaction",
            Self::ModelChange => "model-change",
            Self::ToolsChanged => "tools-changed",
            Self::PromptRebuilt => "prompt-rebuilt",
            Self::Expired => "expired",
            Self::EphemeralLayer => "ephemeral-layer",
            Self::Unknown => "unknown",
        }
    }

    /// The reverse of [`Cause::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.as_str() == text)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A request, prepared for comparison.
#[derive(Debug, Clone, Copy)]
pub struct Sent<'a> {
    /// Tools, system prompt and messages in the provider's order, without cache marks.
    pub bytes: &'a [u8],
    /// Length of the tools in `bytes`.
    pub tools: usize,
    /// End of the system prompt in `bytes`, before ephemeral layers.
    pub system: usize,
    /// Provider, model and wire format as one text.
    pub model: &'a str,
    /// The view.
    pub view: ViewId,
    /// The ephemeral layers.
    pub ephemeral: Option<&'a str>,
}

/// Possible culprits for a break.
#[derive(Debug, Clone, Copy, Default)]
pub struct Suspects<'a> {
    /// Who made the view.
    pub view: &'a str,
    /// Why the prompt was rebuilt.
    pub prompt: &'a str,
    /// Name of the ephemeral layer.
    pub ephemeral: &'a str,
}

/// Result of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Length of the common prefix in bytes.
    pub prefix: usize,
    /// `None` if this request begins with the whole previous one.
    pub cause: Option<Cause>,
    /// The culprit, if known.
    pub culprit: Option<String>,
}

/// Compares a request with the previous one.
pub fn compare(before: Option<&Sent<'_>>, now: &Sent<'_>, suspects: &Suspects<'_>) -> Finding {
    let Some(before) = before else {
        return Finding { prefix: 0, cause: Some(Cause::FirstRequest), culprit: None };
    };
    let prefix = common(before.bytes, now.bytes);
    let finding = |cause, culprit: String| Finding {
        prefix,
        cause: Some(cause),
        culprit: Some(culprit).filter(|culprit| !culprit.is_empty()),
    };
    if before.model != now.model {
        return finding(Cause::ModelChange, format!("{} after {}", now.model, before.model));
    }
    if prefix == before.bytes.len() {
        return Finding { prefix, cause: None, culprit: None };
    }
    let tools_differ = before.tools != now.tools || prefix < now.tools;
    let in_the_opening = tools_differ || prefix < before.system.min(now.system);
    if in_the_opening && before.view != now.view {
        // A compaction breaks the prefix anyway, so the prompt is rebuilt with it if inputs changed.
        finding(Cause::Compaction, format!("{}; the prompt was rebuilt with it: {}", suspects.view, suspects.prompt))
    } else if tools_differ {
        finding(Cause::ToolsChanged, suspects.prompt.to_owned())
    } else if in_the_opening {
        finding(Cause::PromptRebuilt, suspects.prompt.to_owned())
    } else if before.ephemeral != now.ephemeral {
        finding(Cause::EphemeralLayer, suspects.ephemeral.to_owned())
    } else if before.view != now.view {
        finding(Cause::Compaction, suspects.view.to_owned())
    } else {
        finding(Cause::Unknown, format!("the bytes part at {prefix}"))
    }
}

/// Length of the common prefix of two byte strings.
pub fn common(a: &[u8], b: &[u8]) -> usize {
    /// Compare blocks of this size first, which is much faster than single bytes.
    const STRIDE: usize = 4096;
    let most = a.len().min(b.len());
    if std::ptr::eq(a.as_ptr(), b.as_ptr()) {
        return most;
    }
    let whole = a.chunks_exact(STRIDE).zip(b.chunks_exact(STRIDE)).take_while(|(a, b)| a == b).count() * STRIDE;
    whole + a[whole..].iter().zip(&b[whole..]).take_while(|(a, b)| a == b).count()
}

/// An incremental hash over bytes that only grow at the end.
#[derive(Debug, Clone, Default)]
pub struct Fingerprint {
    hasher: blake3::Hasher,
    taken: usize,
}

impl Fingerprint {
    /// The hash of all bytes. They must begin with the bytes of the previous call.
    pub fn of(&mut self, bytes: &[u8]) -> String {
        self.hasher.update(bytes.get(self.taken..).unwrap_or_default());
        self.taken = bytes.len();
        self.hasher.finalize().to_hex().to_string()
    }
}

/// What is known about a provider's cache.
#[derive(Debug, Clone, Copy)]
pub struct Keeping {
    /// How long it keeps an unused prefix.
    pub ttl: Duration,
    /// Whether it reported any cache read or write in this session.
    pub reports: bool,
}

/// Judges a request whose bytes are an extension of the previous one by the provider's report. `None` if the prefix was read
/// from the cache, or if the report does not show it.
pub fn missed(before: &Usage, now: &Usage, elapsed: Duration, keeping: Keeping) -> Option<(Cause, Option<String>)> {
    /// Providers do not cache shorter prefixes, and cache longer ones in steps.
    const LEAST: u32 = 2_048;
    let expected = held(before).min(now.input);
    let is_known_to_be_held = before.cache_read > 0 || before.cache_write > 0;
    let too_small = expected < LEAST && !is_known_to_be_held;
    if !keeping.reports || too_small || now.cache_read >= expected / 2 {
        return None;
    }
    if elapsed > keeping.ttl {
        return Some((Cause::Expired, Some(format!("{} minutes since the request before", elapsed.as_secs() / 60))));
    }
    Some((Cause::Unknown, Some("the provider read less than it was sent before".to_owned())))
}

/// Tokens of a request that the provider can have cached: all, or the number it reports where caching is explicit.
fn held(usage: &Usage) -> u32 {
    if usage.cache_write > 0 { usage.cache_read.saturating_add(usage.cache_write) } else { usage.input }
}

/// Tokens that would have come from the cache without the break; their price is the cost of the break.
pub fn lost_tokens(before: &Usage, now: &Usage) -> u32 {
    held(before).min(now.input).saturating_sub(now.cache_read)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SUSPECTS: Suspects<'_> = Suspects { view: "compressor", prompt: "memory: builtin", ephemeral: "prefill" };

    fn sent(bytes: &[u8]) -> Sent<'_> {
        Sent { bytes, tools: 2, system: 4, model: "p/m", view: ViewId::WHOLE, ephemeral: None }
    }

    fn cause(before: &Sent<'_>, now: &Sent<'_>) -> (usize, Option<Cause>, Option<String>) {
        let finding = compare(Some(before), now, &SUSPECTS);
        (finding.prefix, finding.cause, finding.culprit)
    }

    #[test]
    fn the_position_of_the_first_difference_tells_the_cause() {
        let before = sent(b"ttssmmm");
        let culprit = |text: &str| Some(text.to_owned());
        assert_eq!(cause(&before, &sent(b"ttssmmmmm")), (7, None, None));
        assert_eq!(cause(&before, &sent(b"tTssmmm")), (1, Some(Cause::ToolsChanged), culprit("memory: builtin")));
        assert_eq!(cause(&before, &sent(b"ttsSmmm")), (3, Some(Cause::PromptRebuilt), culprit("memory: builtin")));
        let both = Sent { view: ViewId(1), ..sent(b"ttsSm") };
        assert_eq!(
            cause(&before, &both),
            (3, Some(Cause::Compaction), culprit("compressor; the prompt was rebuilt with it: memory: builtin"))
        );
        let folded = Sent { view: ViewId(1), ..sent(b"ttssmS") };
        assert_eq!(cause(&before, &folded), (5, Some(Cause::Compaction), culprit("compressor")));
        let prefilled = Sent { ephemeral: Some("[]"), ..sent(b"ttssPmmm") };
        assert_eq!(cause(&before, &prefilled), (4, Some(Cause::EphemeralLayer), culprit("prefill")));
        assert_eq!(cause(&prefilled, &before), (4, Some(Cause::EphemeralLayer), culprit("prefill")));
        assert_eq!(cause(&before, &sent(b"ttssmmX")).1, Some(Cause::Unknown));
        // Shorter than before, as after a compaction that kept the beginning.
        assert_eq!(cause(&before, &Sent { view: ViewId(1), ..sent(b"ttssm") }).1, Some(Cause::Compaction));
        let other = Sent { model: "p/n", ..sent(b"ttssmmmm") };
        assert_eq!(cause(&before, &other), (7, Some(Cause::ModelChange), culprit("p/n after p/m")));
        assert_eq!(compare(None, &before, &SUSPECTS).cause, Some(Cause::FirstRequest));
    }

    #[test]
    fn a_usage_report_tells_whether_the_prefix_was_cached() {
        let keeping = Keeping { ttl: Duration::from_secs(300), reports: true };
        let silent = Keeping { reports: false, ..keeping };
        let usage = |input, cache_read| Usage { input, cache_read, ..Usage::default() };
        let before = usage(10_000, 9_000);
        let judged = |now, seconds, keeping| {
            missed(&before, &now, Duration::from_secs(seconds), keeping).map(|(cause, _)| cause)
        };
        assert_eq!(judged(usage(10_500, 9_984), 10, keeping), None);
        assert_eq!(judged(usage(10_500, 0), 10, keeping), Some(Cause::Unknown));
        assert_eq!(judged(usage(10_500, 0), 10, silent), None);
        assert_eq!(judged(usage(10_500, 0), 301, silent), None);
        // The provider keeps it to the end of its lifetime.
        assert_eq!(judged(usage(10_500, 0), 300, keeping), Some(Cause::Unknown));
        assert_eq!(judged(usage(10_500, 0), 301, keeping), Some(Cause::Expired));
        assert_eq!(judged(usage(10_500, 2_000), 301, keeping), Some(Cause::Expired));
        assert_eq!(judged(usage(10_500, 10_000), 3_000, keeping), None);
        let small = |before: Usage| missed(&before, &usage(1_500, 0), Duration::from_secs(301), keeping);
        assert_eq!(small(usage(1_400, 0)), None);
        assert_eq!(small(usage(1_400, 1_024)).map(|(cause, _)| cause), Some(Cause::Expired));
        let written = Usage { cache_write: 500, ..usage(10_000, 0) };
        assert_eq!(missed(&written, &usage(10_500, 500), Duration::from_secs(10), keeping), None);
        assert_eq!(lost_tokens(&before, &usage(10_500, 2_000)), 8_000);
    }

    #[test]
    fn causes_parse_back_from_their_names() {
        for cause in Cause::ALL {
            assert_eq!(Cause::parse(cause.as_str()), Some(cause));
        }
        assert_eq!(Cause::parse("weather"), None);
    }

    #[test]
    fn a_fingerprint_does_not_depend_on_the_steps() {
        let mut steps = Fingerprint::default();
        let first = steps.of(b"tools");
        assert_eq!(steps.of(b"tools"), first);
        assert_eq!(steps.of(b"tools and more"), Fingerprint::default().of(b"tools and more"));
        assert_ne!(steps.of(b"tools and more"), first);
    }

    proptest! {
        #[test]
        fn the_common_prefix_ends_at_the_first_difference(
            head in prop::collection::vec(any::<u8>(), 0..20_000),
            a in prop::collection::vec(any::<u8>(), 0..5),
            b in prop::collection::vec(any::<u8>(), 0..5),
        ) {
            let (one, other) = ([head.clone(), a].concat(), [head, b].concat());
            let common = common(&one, &other);
            prop_assert_eq!(&one[..common], &other[..common]);
            prop_assert!(common == one.len() || common == other.len() || one[common] != other[common]);
        }
    }
}
