//! What the diagnoses of a crate lack, for the test of that crate.

use crate::{Code, Diagnostic};

/// Compares the codes of a crate with one example of each error. Returns a sentence for each code without an example, and
/// for each example without a cause or a remedy.
pub fn gaps(codes: &[Code], examples: &[Diagnostic]) -> Vec<String> {
    let unused = codes.iter().filter(|code| examples.iter().all(|example| example.code != **code));
    let unused = unused.map(|code| format!("no example has the code `{code}`"));
    let empty = examples.iter().flat_map(|example| {
        let Diagnostic { code, what, why, fix } = example;
        [("what", what.clone()), ("why", why.clone()), ("fix", fix.to_string())]
            .into_iter()
            .filter(|(_, text)| text.trim().is_empty())
            .map(move |(name, _)| format!("`{code}` has an empty {name}: {example:?}"))
    });
    unused.chain(empty).collect()
}
