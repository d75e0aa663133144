//! Patterns that llama.cpp can turn into a grammar. A pattern does not count if its grammar would mean something else, or would
//! be unreadable.

/// The largest count of a repetition. llama.cpp multiplies it with the size of what is repeated.
const MOST_REPEATS: u64 = 256;

/// Characters that may be escaped.
const ESCAPED: &str = "^$.[]()|{}*+?";

/// A pattern in a form that llama.cpp reads with the same meaning; none if there is no such form. The pattern has to be a regular
/// expression.
pub(super) fn pattern(written: &str) -> Option<String> {
    let inner = written.strip_prefix('^')?.strip_suffix('$')?;
    let mut out = String::from("^");
    let mut depth = 0_usize;
    // Whether something can be repeated here.
    let mut is_repeatable = false;
    let mut rest = inner;
    while let Some(character) = rest.chars().next() {
        rest = &rest[character.len_utf8()..];
        let repeats = matches!(character, '*' | '+' | '?' | '{');
        if repeats && !is_repeatable {
            return None;
        }
        match character {
            '*' | '+' | '?' => out.push(character),
            '{' => {
                let (counts, after) = rest.split_once('}')?;
                let mut numbers = counts.split(',').filter(|number| !number.is_empty());
                let is_small = numbers.all(|number| number.parse::<u64>().is_ok_and(|number| number <= MOST_REPEATS));
                if !is_small || counts.starts_with(',') {
                    return None;
                }
                out.push_str(&format!("{{{counts}}}"));
                rest = after;
            }
            '(' => {
                rest = rest.strip_prefix("?:").unwrap_or(rest);
                if rest.starts_with(['?', '|', ')']) {
                    return None;
                }
                depth += 1;
                out.push('(');
            }
            ')' => {
                depth = depth.checked_sub(1)?;
                out.push(')');
            }
            // Without brackets, the anchors belong to one side of it each.
            '|' if depth > 0 && !rest.starts_with(['|', ')']) => out.push('|'),
            '[' => {
                let (class, after) = rest.split_once(']')?;
                out.push_str(&format!("[{}]", class_of(class)?));
                rest = after;
            }
            '\\' => {
                let escaped = rest.chars().next()?;
                rest = &rest[escaped.len_utf8()..];
                match escaped {
                    'd' => out.push_str("[0-9]"),
                    'w' => out.push_str("[A-Za-z0-9_]"),
                    // A server reads an escaped character as itself, where it has no other meaning.
                    '-' | '/' | '@' | ':' | '_' => out.push(escaped),
                    _ if ESCAPED.contains(escaped) => out.extend(['\\', escaped]),
                    _ => return None,
                }
            }
            '.' => out.push('.'),
            '^' | '$' | ']' | '}' | '|' | '"' => return None,
            _ if character.is_ascii_graphic() || character == ' ' => out.push(character),
            _ => return None,
        }
        is_repeatable = !repeats && !matches!(character, '(' | '|');
    }
    (depth == 0).then(|| out + "$")
}

/// What stands between the brackets of a class.
fn class_of(written: &str) -> Option<String> {
    let (negation, members) = written.strip_prefix('^').map_or(("", written), |members| ("^", members));
    let is_plain =
        |character: char| (character.is_ascii_graphic() && !matches!(character, '[' | '"')) || character == ' ';
    // Some engines know operations on classes.
    let has_operation = ["&&", "--", "~~"].iter().any(|operation| members.contains(operation));
    let members = members.replace("\\d", "0-9").replace("\\w", "A-Za-z0-9_");
    let is_read = !members.is_empty() && !members.contains('\\') && members.chars().all(is_plain) && !has_operation;
    is_read.then(|| format!("{negation}{members}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_read_with_their_meaning_or_not_at_all() {
        for (written, read) in [
            ("^[a-z0-9-]+$", Some("^[a-z0-9-]+$")),
            (r"^\d{4}-\d{2}-\d{2}$", Some("^[0-9]{4}-[0-9]{2}-[0-9]{2}$")),
            (r"^[\w.]+@(?:a|b)\.org$", Some(r"^[A-Za-z0-9_.]+@(a|b)\.org$")),
            (r"^[^/]*$", Some("^[^/]*$")),
            (r"^\/x\-y$", Some("^/x-y$")),
            ("^$", Some("^$")),
            ("^a b$", Some("^a b$")),
            ("a", None),
            ("^a", None),
            ("^a|b$", None),
            (r"^\s+$", None),
            (r"^[\s]$", None),
            ("^a+?$", None),
            ("^a{2000}$", None),
            ("^a{,3}$", None),
            ("^(?i)a$", None),
            ("^()$", None),
            ("^(a|)$", None),
            ("^(a$", None),
            ("^a)$", None),
            ("^[a&&b]$", None),
            ("^[[:alpha:]]$", None),
            ("^\"$", None),
            ("^ä$", None),
            (r"^a\$", None),
            ("^", None),
            ("$", None),
            ("", None),
        ] {
            assert_eq!(pattern(written).as_deref(), read, "{written}");
        }
    }
}
