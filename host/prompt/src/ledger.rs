//! The ledger of the prompt cache: what two requests in a row have in common, and why it is not more.
//!
//! A provider can only have kept what it was sent, byte for byte from the beginning. So the bytes tell how much of a
//! request it can hold, and the place where they part tells what moved. What the provider reports tells the rest: bytes
//! that stayed and were not read again have expired, or the provider lost them.

use std::fmt;
use std::time::Duration;

use hermes_conversation::Usage;

/// Why less than the whole request before could be read from the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// There was none before.
    FirstRequest,
    /// The conversation was compacted: another view is shown.
    Compaction,
    /// Another model or wire format, whose cache knows nothing of it.
    ModelChange,
    /// The list of tools is another one.
    ToolsChanged,
    /// The system prompt was built anew.
    PromptRebuilt,
    /// More time went by than the provider keeps a prefix.
    Expired,
    /// A layer of a single call came, went or changed.
    EphemeralLayer,
    /// None of these.
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

    /// Its name in the store and in JSON.
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

/// A request as it is compared with its neighbour.
#[derive(Debug, Clone, Copy)]
pub struct Sent<'a> {
    /// Tools, system prompt and messages in the order in which the provider reads them, without cache marks.
    pub bytes: &'a [u8],
    /// Where the tools end in them.
    pub tools: usize,
    /// Where the system prompt ends, before any layer of the call alone.
    pub system: usize,
    /// Provider, model and wire format in one text.
    pub model: &'a str,
    /// The number of its view.
    pub view: u64,
    /// The layers of the call alone.
    pub ephemeral: Option<&'a str>,
}

/// Whom a break can be blamed on.
#[derive(Debug, Clone, Copy, Default)]
pub struct Suspects<'a> {
    /// Who made the view.
    pub view: &'a str,
    /// Why the prompt was built anew.
    pub prompt: &'a str,
    /// Which layer belongs to the call alone.
    pub ephemeral: &'a str,
}

/// What the bytes say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Bytes that the two requests have in common from the beginning.
    pub prefix: usize,
    /// None where the whole request before is the beginning of this one.
    pub cause: Option<Cause>,
    /// Who is to blame, where that can be told.
    pub culprit: Option<String>,
}

/// Compares a request with the one before it.
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
        // A compaction takes up what has changed, since it breaks the prefix in any case.
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

/// How many bytes two texts have in common from the beginning.
pub fn common(a: &[u8], b: &[u8]) -> usize {
    /// Compared at once, which is much faster than byte by byte.
    const STRIDE: usize = 4096;
    let most = a.len().min(b.len());
    if std::ptr::eq(a.as_ptr(), b.as_ptr()) {
        return most;
    }
    let whole = a.chunks_exact(STRIDE).zip(b.chunks_exact(STRIDE)).take_while(|(a, b)| a == b).count() * STRIDE;
    whole + a[whole..].iter().zip(&b[whole..]).take_while(|(a, b)| a == b).count()
}

/// A hash over bytes that only grow: what was hashed before is not hashed again.
#[derive(Debug, Clone, Default)]
pub struct Fingerprint {
    hasher: blake3::Hasher,
    taken: usize,
}

impl Fingerprint {
    /// The hash of all bytes; they must begin with those of the call before.
    pub fn of(&mut self, bytes: &[u8]) -> String {
        self.hasher.update(bytes.get(self.taken..).unwrap_or_default());
        self.taken = bytes.len();
        self.hasher.finalize().to_hex().to_string()
    }
}

/// What a provider is known to do with prefixes.
#[derive(Debug, Clone, Copy)]
pub struct Keeping {
    /// How long it keeps one that is not used.
    pub ttl: Duration,
    /// Whether it ever reported a read or a write of its cache in this session.
    pub reports: bool,
}

/// Judges bytes that stayed by what the provider reported: none where it read them, or where nobody can tell.
pub fn missed(before: &Usage, now: &Usage, elapsed: Duration, keeping: Keeping) -> Option<(Cause, Option<String>)> {
    /// Providers cache nothing below about this many tokens, and in steps above it.
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

/// Tokens that a provider can have kept of a request: all of it, or what it says where it is asked to keep.
fn held(usage: &Usage) -> u32 {
    if usage.cache_write > 0 { usage.cache_read.saturating_add(usage.cache_write) } else { usage.input }
}

/// Tokens that would have been read from the cache, had nothing moved: what a break costs is their price.
pub fn lost_tokens(before: &Usage, now: &Usage) -> u32 {
    held(before).min(now.input).saturating_sub(now.cache_read)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SUSPECTS: Suspects<'_> = Suspects { view: "compressor", prompt: "memory: builtin", ephemeral: "prefill" };

    fn sent(bytes: &[u8]) -> Sent<'_> {
        Sent { bytes, tools: 2, system: 4, model: "p/m", view: 0, ephemeral: None }
    }

    fn cause(before: &Sent<'_>, now: &Sent<'_>) -> (usize, Option<Cause>, Option<String>) {
        let finding = compare(Some(before), now, &SUSPECTS);
        (finding.prefix, finding.cause, finding.culprit)
    }

    #[test]
    fn the_place_where_bytes_part_tells_the_cause() {
        let before = sent(b"ttssmmm");
        let culprit = |text: &str| Some(text.to_owned());
        assert_eq!(cause(&before, &sent(b"ttssmmmmm")), (7, None, None));
        assert_eq!(cause(&before, &sent(b"tTssmmm")), (1, Some(Cause::ToolsChanged), culprit("memory: builtin")));
        assert_eq!(cause(&before, &sent(b"ttsSmmm")), (3, Some(Cause::PromptRebuilt), culprit("memory: builtin")));
        let both = Sent { view: 1, ..sent(b"ttsSm") };
        assert_eq!(
            cause(&before, &both),
            (3, Some(Cause::Compaction), culprit("compressor; the prompt was rebuilt with it: memory: builtin"))
        );
        let folded = Sent { view: 1, ..sent(b"ttssmS") };
        assert_eq!(cause(&before, &folded), (5, Some(Cause::Compaction), culprit("compressor")));
        let prefilled = Sent { ephemeral: Some("[]"), ..sent(b"ttssPmmm") };
        assert_eq!(cause(&before, &prefilled), (4, Some(Cause::EphemeralLayer), culprit("prefill")));
        assert_eq!(cause(&prefilled, &before), (4, Some(Cause::EphemeralLayer), culprit("prefill")));
        assert_eq!(cause(&before, &sent(b"ttssmmX")).1, Some(Cause::Unknown));
        // Shorter than before, as after a compaction that kept the beginning.
        assert_eq!(cause(&before, &Sent { view: 1, ..sent(b"ttssm") }).1, Some(Cause::Compaction));
        let other = Sent { model: "p/n", ..sent(b"ttssmmmm") };
        assert_eq!(cause(&before, &other), (7, Some(Cause::ModelChange), culprit("p/n after p/m")));
        assert_eq!(compare(None, &before, &SUSPECTS).cause, Some(Cause::FirstRequest));
    }

    #[test]
    fn what_a_provider_reports_tells_whether_it_kept_the_prefix() {
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
    fn causes_are_found_by_their_names() {
        for cause in Cause::ALL {
            assert_eq!(Cause::parse(cause.as_str()), Some(cause));
        }
        assert_eq!(Cause::parse("weather"), None);
    }

    #[test]
    fn a_fingerprint_does_not_depend_on_the_steps_it_was_taken_in() {
        let mut steps = Fingerprint::default();
        let first = steps.of(b"tools");
        assert_eq!(steps.of(b"tools"), first);
        assert_eq!(steps.of(b"tools and more"), Fingerprint::default().of(b"tools and more"));
        assert_ne!(steps.of(b"tools and more"), first);
    }

    proptest! {
        #[test]
        fn what_is_common_is_all_up_to_the_first_difference(
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
