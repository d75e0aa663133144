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
        let is_open = text.trim_start().lines().next().is_some_and(|line| line.trim_end() == "---");
        let broken = is_open.then(|| "the line of --- that ends it is missing".to_owned());
        return Parts { is_there: is_open, yaml: Yaml::Nothing, body: text, broken };
    };
    let (yaml, broken) = match yaml::parse(yaml) {
        // Programs disagree about which of them counts.
        Ok(Yaml::Map(map)) if repeated(&map).is_some() => {
            let key = repeated(&map).unwrap_or_default();
            (Yaml::Nothing, Some(format!("`{key}` is there twice")))
        }
        Ok(Yaml::Map(map)) if map.iter().any(|(key, _)| key.text().is_some_and(has_blank)) => {
            let guessed = line_by_line(yaml).get("description").and_then(Yaml::text).map(str::to_owned);
            let mut map = map;
            if let Some(guessed) = guessed {
                map.insert(0, (Yaml::Text("description".to_owned()), Yaml::Text(guessed)));
            }
            (Yaml::Map(map), Some("a line of a text has a colon".to_owned()))
        }
        Ok(yaml @ (Yaml::Map(_) | Yaml::Nothing)) => (yaml, None),
        Ok(_) => (line_by_line(yaml), Some("it is not a list of keys and values".to_owned())),
        Err(why) => (line_by_line(yaml), Some(why)),
    };
    Parts { is_there: true, yaml, body, broken }
}

/// The lines between the first two `---`, and the rest of the text.
fn fenced(text: &str) -> Option<(&str, &str)> {
    // Editors and templates leave blank lines in front.
    let text = text.trim_start();
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

/// A fallback for broken YAML, for example an unquoted description that contains a colon, or one that goes on in lines without
/// an indentation.
///
/// Nothing is guessed where a quotation mark or a bracket is missing: no line after it says what it seems to say.
fn line_by_line(yaml: &str) -> Yaml {
    let text = |text: &str| Yaml::Text(text.to_owned());
    let (mut top, mut hermes) = (Vec::new(), Vec::new());
    let mut rest = yaml;
    while let Some(line) = rest.lines().next() {
        rest = behind(rest, line);
        let Some((key, value)) = line.split_once(':') else { continue };
        let is_indented = key.starts_with(char::is_whitespace);
        let key = unquoted(key.trim()).to_ascii_lowercase();
        let mut value = value.trim().to_owned();
        // Indented names and descriptions are skipped: below `metadata:` they mean something else.
        let is_own = !is_indented && matches!(key.as_str(), "name" | "description");
        if is_own && key == "description" {
            // A literal or folded text: the lines below it are the text.
            if value.starts_with(['|', '>']) && value[1..].chars().all(|mark| "+-0123456789".contains(mark)) {
                value.clear();
            }
            while let Some(line) = rest.lines().next().filter(|line| goes_on(line)) {
                rest = behind(rest, line);
                value = format!("{value} {}", line.trim());
            }
        }
        // Only a list of several lines can be closed below.
        let below = if is_own { "" } else { rest };
        let value = value.trim();
        if is_open(value, below) {
            return Yaml::Nothing;
        }
        let value = unquoted(value);
        if value.is_empty() {
            continue;
        }
        let list = || Yaml::List(items(value).map(text).collect());
        match key.as_str() {
            "name" | "description" if is_own => {
                top.push((text(&key), text(value)));
                if repeated(&top).is_some() {
                    return Yaml::Nothing;
                }
            }
            "platforms" => top.push((text("platforms"), list())),
            "category" => hermes.push((text("category"), text(value))),
            key
            @ ("tags" | "requires_toolsets" | "fallback_for_toolsets" | "requires_tools" | "fallback_for_tools") => {
                hermes.push((text(key), list()))
            }
            _ => {}
        }
    }
    let hermes = Yaml::Map(vec![(text("hermes"), Yaml::Map(hermes))]);
    top.push((text("metadata"), hermes));
    Yaml::Map(top)
}

/// A name or description that is there twice, with other words.
fn repeated(map: &[(Yaml, Yaml)]) -> Option<&'static str> {
    ["name", "description"].into_iter().find(|key| {
        let mut values = map.iter().filter(|(known, _)| known.text() == Some(*key)).map(|(_, value)| value);
        let first = values.next();
        values.any(|value| Some(value) != first)
    })
}

/// Keys have no blanks. A line of prose may have some before a colon.
fn has_blank(key: &str) -> bool {
    key.trim().contains(char::is_whitespace)
}

/// The text behind its first line.
fn behind<'t>(text: &'t str, line: &str) -> &'t str {
    let rest = text.get(line.len()..).unwrap_or_default();
    rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n')).unwrap_or(rest)
}

/// Whether a description goes on in this line: it is indented, or it has no key.
fn goes_on(line: &str) -> bool {
    /// Keys that authors write with a capital letter. Other words before a colon are prose, such as `Note:`.
    const CAPITAL: [&str; 10] = [
        "name",
        "description",
        "version",
        "license",
        "compatibility",
        "category",
        "tags",
        "platforms",
        "metadata",
        "author",
    ];
    if line.trim().is_empty() || line.starts_with('#') {
        return false;
    }
    let Some((key, value)) = line.split_once(':').filter(|_| !line.starts_with([' ', '\t'])) else { return true };
    let key = unquoted(key.trim_end());
    let is_word =
        !key.is_empty() && key.chars().all(|character| character.is_alphanumeric() || "-_.".contains(character));
    let is_capital = key.starts_with(char::is_uppercase) && !CAPITAL.contains(&key.to_lowercase().as_str());
    !is_word || is_capital || !(value.is_empty() || value.starts_with(char::is_whitespace))
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
