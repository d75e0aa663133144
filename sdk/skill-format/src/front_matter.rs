//! Divides a `SKILL.md` into its front matter and the text below it.

use crate::yaml::{self, Yaml};

/// The two parts of a `SKILL.md`.
pub(crate) struct Parts<'t> {
    /// Whether the text has a front matter, at least its first line.
    pub(crate) is_there: bool,
    /// The fields. For broken YAML, those that its lines seem to have.
    pub(crate) yaml: Yaml,
    pub(crate) body: &'t str,
    /// Why the YAML could not be parsed.
    pub(crate) broken: Option<String>,
}

pub(crate) fn split(text: &str) -> Parts<'_> {
    let Some((yaml, body)) = fenced(text) else {
        let is_open = text.lines().next().is_some_and(|line| line.trim_end() == "---");
        let broken = is_open.then(|| "the line of --- that ends it is missing".to_owned());
        return Parts { is_there: is_open, yaml: Yaml::Nothing, body: text, broken };
    };
    let (yaml, broken) = match yaml::parse(yaml) {
        Ok(yaml @ (Yaml::Map(_) | Yaml::Nothing)) => (yaml, None),
        Ok(_) => (line_by_line(yaml), Some("it is not a list of keys and values".to_owned())),
        Err(why) => (line_by_line(yaml), Some(why)),
    };
    Parts { is_there: true, yaml, body, broken }
}

/// The lines between the first two `---`, and the rest of the text.
fn fenced(text: &str) -> Option<(&str, &str)> {
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().filter(|line| line.trim_end() == "---")?;
    let mut end = first.len();
    for line in lines {
        if matches!(line.trim_end(), "---" | "...") {
            return Some((&text[first.len()..end], &text[end + line.len()..]));
        }
        end += line.len();
    }
    None
}

/// A fallback for broken YAML, for example an unquoted description that contains a colon.
///
/// Nothing is guessed where a quotation mark or a bracket is missing: no line after it says what it seems to say.
fn line_by_line(yaml: &str) -> Yaml {
    let text = |text: &str| Yaml::Text(text.to_owned());
    let (mut top, mut hermes) = (Vec::new(), Vec::new());
    let mut rest = yaml;
    for line in yaml.lines() {
        rest = rest.get(line.len()..).unwrap_or_default().trim_start_matches(['\r', '\n']);
        let Some((key, value)) = line.split_once(':') else { continue };
        // Only a list of several lines can be closed below.
        let below = if matches!(key, "name" | "description") { "" } else { rest };
        if is_open(value.trim(), below) {
            return Yaml::Nothing;
        }
        let value = unquoted(value.trim());
        if value.is_empty() {
            continue;
        }
        let list = || Yaml::List(items(value).map(text).collect());
        // Indented names and descriptions are skipped: below `metadata:` they mean something else.
        match key {
            "name" | "description" => top.push((text(key), text(value))),
            _ => match key.trim() {
                "platforms" => top.push((text("platforms"), list())),
                "category" => hermes.push((text("category"), text(value))),
                key @ ("tags"
                | "requires_toolsets"
                | "fallback_for_toolsets"
                | "requires_tools"
                | "fallback_for_tools") => hermes.push((text(key), list())),
                _ => {}
            },
        }
    }
    let hermes = Yaml::Map(vec![(text("hermes"), Yaml::Map(hermes))]);
    top.push((text("metadata"), hermes));
    Yaml::Map(top)
}

/// Whether a value begins with a quotation mark or a bracket that nothing closes.
fn is_open(value: &str, below: &str) -> bool {
    let mut characters = value.chars();
    let close = match characters.next() {
        Some(quote @ ('"' | '\'')) => quote,
        Some('[') => ']',
        Some('{') => '}',
        _ => return false,
    };
    !characters.as_str().contains(close) && !below.contains(close)
}

pub(crate) fn unquoted(value: &str) -> &str {
    let inner = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    inner('"').or_else(|| inner('\'')).unwrap_or(value)
}

/// Several items in one text.
pub(crate) fn items(value: &str) -> impl Iterator<Item = &str> {
    let value = value.strip_prefix('[').and_then(|value| value.strip_suffix(']')).unwrap_or(value);
    value.split(',').map(|item| unquoted(item.trim())).filter(|item| !item.is_empty())
}
