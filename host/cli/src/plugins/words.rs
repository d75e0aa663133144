//! Words of a command line that name values of a fixed set.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// Takes the name of one of these values.
pub(super) fn named<T: Copy + Send + Sync + 'static>(
    all: &'static [T],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    aliased(all, name, |_| None)
}

/// The same, with a second name that no list shows.
pub(super) fn aliased<T: Copy + Send + Sync + 'static>(
    all: &'static [T],
    name: fn(T) -> &'static str,
    alias: fn(T) -> Option<&'static str>,
) -> impl TypedValueParser<Value = T> {
    let values = all.iter().map(|value| PossibleValue::new(name(*value)).aliases(alias(*value)));
    PossibleValuesParser::new(values).try_map(move |word| {
        let found = all.iter().copied().find(|value| name(*value) == word || alias(*value) == Some(word.as_str()));
        found.ok_or("the parser takes only names of the list")
    })
}
