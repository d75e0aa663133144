//! Replaces `${NAME}` in texts of the configuration. No other code does.

/// Replaces each `${NAME}` in `text` by what `variable` returns. A name without a value stays unchanged, and so does
/// everything that is not the name of a variable. Values are not expanded again.
pub fn expand(text: &str, mut variable: impl FnMut(&str) -> Option<String>) -> String {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, opened)) = rest.split_once("${") {
        expanded.push_str(before);
        let Some((name, after)) = opened.split_once('}').filter(|(name, _)| is_name(name)) else {
            expanded.push_str("${");
            rest = opened;
            continue;
        };
        match variable(name) {
            Some(value) => expanded.push_str(&value),
            None => expanded.extend(["${", name, "}"]),
        }
        rest = after;
    }
    expanded.push_str(rest);
    expanded
}

fn is_name(name: &str) -> bool {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || character == '_';
    name.chars().all(is_plain) && name.starts_with(|first: char| !first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_replaced_once_and_everything_else_stays() {
        for (text, expected, missing) in [
            ("${KEY}", "value", &[][..]),
            ("a ${KEY} b ${KEY}", "a value b value", &[]),
            ("${NONE}/${KEY}", "${NONE}/value", &["NONE"]),
            ("$KEY ${not a name} ${} ${1} ${", "$KEY ${not a name} ${} ${1} ${", &[]),
            ("${ ${KEY}", "${ value", &[]),
            ("${LOOP}", "${KEY}", &[]),
        ] {
            let mut unresolved = Vec::new();
            let expanded = expand(text, |name| match name {
                "KEY" => Some("value".to_owned()),
                "LOOP" => Some("${KEY}".to_owned()),
                _ => {
                    unresolved.push(name.to_owned());
                    None
                }
            });
            assert_eq!((expanded.as_str(), unresolved), (expected, missing.iter().map(|n| (*n).to_owned()).collect()));
        }
    }
}
