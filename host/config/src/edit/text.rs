//! Changes in the text of a YAML file: from a text to a text. `yamlpath` finds the positions of keys and values.
//!
//! A change has several candidates. Each candidate is read again; it must differ from the old file by exactly the change,
//! with all comments kept. The first candidate that passes is used.

use std::ops::Range;

use serde_json::{Map, Value, json};
use yamlpath::{Component, Document, Route};

/// Why a text could not be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused(pub(crate) String);

/// The reason that names no part of the file: the change would have another effect than the wanted one.
const OTHER_VALUE: &str = "the change would alter something else";

impl Refused {
    /// In a sentence about the key.
    pub(crate) fn why(&self, key: &str) -> String {
        if self.0 == OTHER_VALUE {
            return format!("changing `{key}` would also change another value, for example through a YAML anchor");
        }
        format!("`{key}` cannot be changed safely: {}", self.0)
    }
}

/// Sets a key to a value.
pub(crate) fn set(text: &str, path: &[&str], value: &Value) -> Result<String, Refused> {
    guarded(text, |text| with_value(text, path, value))
}

/// Removes a key, and the sections that would be empty without it.
pub(crate) fn remove(text: &str, path: &[&str]) -> Result<String, Refused> {
    guarded(text, |text| without_key(text, path))
}

/// Adds a text to a list, unless the list has it.
pub(crate) fn add(text: &str, path: &[&str], item: &str) -> Result<String, Refused> {
    let mut wanted = list(text, path);
    if wanted.iter().any(|known| known == item) {
        return Ok(text.to_owned());
    }
    wanted.push(Value::from(item));
    guarded(text, |text| with_item(text, path, item)).or_else(|_| set(text, path, &wanted.into()))
}

/// Removes a text from a list, and the list if it would be empty.
pub(crate) fn take(text: &str, path: &[&str], item: &str) -> Result<String, Refused> {
    let mut text = text.to_owned();
    loop {
        let mut wanted = list(&text, path);
        let Some(at) = wanted.iter().position(|known| known == item) else { return Ok(text) };
        wanted.remove(at);
        text = match wanted.is_empty() {
            true => remove(&text, path),
            false => guarded(&text, |text| without_item(text, path, at)).or_else(|_| set(&text, path, &wanted.into())),
        }?;
    }
}

/// The value of the whole text. An empty text is an empty section.
pub(crate) fn read(text: &str) -> Result<Value, Refused> {
    let value: Value = serde_saphyr::from_str(text).map_err(|error| Refused(error.to_string()))?;
    Ok(if value.is_null() { Value::Object(Map::new()) } else { value })
}

pub(crate) fn at<'v>(value: &'v Value, path: &[&str]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, name| value.get(name))
}

pub(crate) fn list(text: &str, path: &[&str]) -> Vec<Value> {
    let value = read(text).ok();
    value.as_ref().and_then(|value| at(value, path)).and_then(Value::as_array).cloned().unwrap_or_default()
}

/// Runs a change without the byte order mark, which the parser would take for a part of the first key. The parser panics
/// on some texts; a panic becomes a refusal.
fn guarded(
    text: &str,
    change: impl FnOnce(&str) -> Result<String, Refused> + std::panic::UnwindSafe,
) -> Result<String, Refused> {
    let plain = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mark = &text[..text.len() - plain.len()];
    let changed = std::panic::catch_unwind(|| change(plain));
    let changed = changed.unwrap_or_else(|_| Err(Refused("its form is not understood".to_owned())));
    changed.map(|changed| format!("{mark}{changed}"))
}

fn with_value(text: &str, path: &[&str], value: &Value) -> Result<String, Refused> {
    let said = read(text)?;
    if at(&said, path) == Some(value) {
        return Ok(text.to_owned());
    }
    let mut wanted = said.clone();
    let mut place = &mut wanted;
    for name in path {
        if place.is_null() {
            *place = Value::Object(Map::new());
        }
        let Value::Object(section) = place else {
            return Err(Refused(format!("the value before `{name}` is not a section")));
        };
        place = section.entry(*name).or_insert(Value::Null);
    }
    *place = value.clone();

    // The deepest existing section gets the rest of the path.
    let depth = (0..=path.len()).rev().find(|depth| at(&said, &path[..*depth]).is_some()).unwrap_or(0);
    let nested = |depth: usize| {
        let wrapped = |value, name: &&str| Value::Object(Map::from_iter([((*name).to_owned(), value)]));
        path[depth..].iter().rev().fold(value.clone(), wrapped)
    };
    let draft = Draft::new(text, &wanted)?;
    let nothing = 0..0;
    match at(&said, &path[..depth]) {
        Some(Value::Object(known)) if depth < path.len() && !known.is_empty() => {
            let (added, value) = (&path[..=depth], nested(depth + 1));
            let mut all = known.clone();
            all.insert(path[depth].to_owned(), value.clone());
            let tries = [draft.with_key(added, known, &value), draft.rewritten(&path[..depth], &all.into())];
            draft.first_held(tries, &nothing)
        }
        _ if depth == 0 => draft.held(draft.with_first(&nested(0)).ok_or_else(unsupported_form)?, &nothing),
        _ => {
            let (there, value) = (&path[..depth], nested(depth));
            let gone = draft.lines(there).or_else(|| draft.value(&route(there))).unwrap_or(nothing);
            let tries = [draft.filled(there, &value), draft.replaced(there, &value)];
            draft.first_held(tries, &gone)
        }
    }
}

fn without_key(text: &str, path: &[&str]) -> Result<String, Refused> {
    let mut wanted = read(text)?;
    if at(&wanted, path).is_none() {
        return Ok(text.to_owned());
    }
    let alone = |depth: usize| at(&wanted, &path[..depth]).and_then(Value::as_object).is_some_and(|all| all.len() == 1);
    let mut depth = path.len();
    while depth > 1 && alone(depth - 1) {
        depth -= 1;
    }
    let path = &path[..depth];
    let (name, section) = path.split_last().ok_or_else(unsupported_form)?;
    let place = section.iter().try_fold(&mut wanted, |value, name| value.get_mut(name));
    let left = place.and_then(Value::as_object_mut).map(|section| {
        section.shift_remove(*name);
        Value::Object(section.clone())
    });

    let draft = Draft::new(text, &wanted)?;
    let gone = draft.lines(path).or_else(|| draft.value(&route(path))).unwrap_or(0..0);
    let own = draft.lines(path).map(|lines| draft.without(lines));
    let in_braces = left.and_then(|left| draft.rewritten(section, &left));
    draft.first_held([own, in_braces], &gone)
}

fn with_item(text: &str, path: &[&str], item: &str) -> Result<String, Refused> {
    let mut wanted = read(text)?;
    let place = path.iter().try_fold(&mut wanted, |value, name| value.get_mut(name));
    let items = place.and_then(Value::as_array_mut).filter(|items| !items.is_empty());
    let items = items.ok_or_else(|| Refused("it is not a list yet".to_owned()))?;
    let last = items.len() - 1;
    items.push(Value::from(item));

    let draft = Draft::new(text, &wanted)?;
    let (_, margin, end) = draft.item(path, last).ok_or_else(unsupported_form)?;
    draft.held(draft.spliced(end..end, &format!("{}{margin}- {}", draft.newline(), flow(&item.into())?)), &(0..0))
}

fn without_item(text: &str, path: &[&str], index: usize) -> Result<String, Refused> {
    let mut wanted = read(text)?;
    let place = path.iter().try_fold(&mut wanted, |value, name| value.get_mut(name));
    if let Some(items) = place.and_then(Value::as_array_mut).filter(|items| index < items.len()) {
        items.remove(index);
    }
    let draft = Draft::new(text, &wanted)?;
    let (start, _, end) = draft.item(path, index).ok_or_else(unsupported_form)?;
    draft.held(draft.without(start..end), &(start..end))
}

/// A part of the text, in bytes.
type Span = Range<usize>;

/// A text, its syntax tree, and the value that it must have after the change.
struct Draft<'a> {
    text: &'a str,
    document: Document,
    wanted: &'a Value,
}

impl<'a> Draft<'a> {
    fn new(text: &'a str, wanted: &'a Value) -> Result<Self, Refused> {
        Ok(Self { text, document: tree(text)?, wanted })
    }

    /// Accepts a text that has the wanted value and all comments outside of the removed part `gone`.
    fn held(&self, after: String, gone: &Span) -> Result<String, Refused> {
        if read(&after)? != *self.wanted {
            return Err(Refused(OTHER_VALUE.to_owned()));
        }
        let kept = comments(&after, &tree(&after)?);
        let mut kept = kept.into_iter();
        for (at, comment) in comments(self.text, &self.document) {
            if !gone.contains(&at) && !kept.any(|(_, known)| known == comment) {
                return Err(Refused("a comment would be lost".to_owned()));
            }
        }
        Ok(after)
    }

    /// The first attempt that [`Draft::held`] accepts.
    fn first_held<const N: usize>(&self, attempts: [Option<String>; N], gone: &Span) -> Result<String, Refused> {
        let mut refused = unsupported_form();
        for after in attempts.into_iter().flatten() {
            match self.held(after, gone) {
                Ok(after) => return Ok(after),
                Err(why) => refused = why,
            }
        }
        Err(refused)
    }

    /// The text with a part replaced.
    fn spliced(&self, span: Span, by: &str) -> String {
        format!("{}{by}{}", &self.text[..span.start], &self.text[span.end..])
    }

    /// The text without these lines.
    fn without(&self, lines: Span) -> String {
        let after = &self.text[lines.end..];
        let end = if after.starts_with("\r\n") { 2 } else { after.len().min(1) };
        self.spliced(lines.start..lines.end + end, "")
    }

    /// A text without a value, with its first key after the comments.
    fn with_first(&self, said: &Value) -> Option<String> {
        let (name, value) = said.as_object()?.iter().next()?;
        let added = self.block("", name, value)?;
        let newline = self.newline();
        let is_line = self.text.is_empty() || self.text.ends_with('\n');
        let added = if is_line { added.strip_prefix(newline)? } else { &added };
        Some(format!("{}{added}{newline}", self.text))
    }

    /// A section with one more key, on lines of its own below the others.
    fn with_key(&self, path: &[&str], known: &Map<String, Value>, value: &Value) -> Option<String> {
        let (name, section) = path.split_last()?;
        let mut place = None;
        for key in known.keys() {
            // Keys merged from another section have no lines here.
            let path: Vec<&str> = section.iter().copied().chain([key.as_str()]).collect();
            if let (Some((_, margin)), Some(lines)) = (self.key(&path), self.lines(&path)) {
                place = place.max(Some((lines.end, margin)));
            }
        }
        let (end, margin) = place?;
        Some(self.spliced(end..end, &self.block(margin, name, value)?))
    }

    /// A key with another section below it. A comment on the key's line stays.
    fn filled(&self, path: &[&str], value: &Value) -> Option<String> {
        let (colon, margin, known) = self.entry(path)?;
        let members = value.as_object().filter(|members| !members.is_empty())?;
        let margin = format!("{margin}  ");
        let below: Option<String> = members.iter().map(|(name, value)| self.block(&margin, name, value)).collect();
        let line = self.end_of_line(colon);
        let (rest, end) = match known {
            Some(known) if known.start >= line => (&self.text[colon..line], self.end_of_line(known.end)),
            Some(known) if known.end <= line => (&self.text[known.end..line], line),
            Some(_) => return None,
            None => (&self.text[colon..line], line),
        };
        Some(self.spliced(colon..end, &format!("{}{}", rest.trim_end(), below?)))
    }

    /// A key with another value on its line. Everything around the value stays.
    fn replaced(&self, path: &[&str], value: &Value) -> Option<String> {
        let value_on_line = flow(value).ok()?;
        let Some((colon, _, known)) = self.entry(path) else { return self.rewritten(path, value) };
        let line = self.end_of_line(colon);
        match known {
            None => Some(self.spliced(colon..colon, &format!(" {value_on_line}"))),
            Some(known) if known.end <= line => Some(self.spliced(known, &value_on_line)),
            Some(known) if known.start >= line => {
                let rest = &self.text[colon..line];
                Some(self.spliced(colon..self.end_of_line(known.end), &format!(" {value_on_line}{rest}")))
            }
            Some(_) => None,
        }
    }

    /// Replaces a value that is on one line or in braces.
    fn rewritten(&self, path: &[&str], value: &Value) -> Option<String> {
        let known = self.value(&route(path))?;
        let is_short = !self.text[known.clone()].contains('\n') || self.text[known.clone()].starts_with('{');
        is_short.then(|| Some(self.spliced(known, &flow(value).ok()?)))?
    }

    /// A key on a line of its own: where its colon ends, the margin before it, and its value.
    fn entry(&self, path: &[&str]) -> Option<(usize, &'a str, Option<Span>)> {
        let (key, margin) = self.key(path)?;
        let colon = key.end + self.text[key.end..].find(':')? + 1;
        Some((colon, margin, self.value(&route(path)).filter(|known| known.start >= colon)))
    }

    /// The lines of a key and its value. Each begins with the line end of the line before.
    fn block(&self, margin: &str, name: &str, value: &Value) -> Option<String> {
        let key = format!("{}{margin}{}:", self.newline(), flow(&name.into()).ok()?);
        let Some(members) = value.as_object().filter(|members| !members.is_empty()) else {
            return Some(format!("{key} {}", flow(value).ok()?));
        };
        let margin = format!("{margin}  ");
        let below: Option<String> = members.iter().map(|(name, value)| self.block(&margin, name, value)).collect();
        Some(key + &below?)
    }

    /// The span of the value of a key, or of an item of a list.
    fn value(&self, route: &Route<'_>) -> Option<Span> {
        let (start, end) = self.document.query_exact(route).ok().flatten()?.location.byte_span;
        let mut end = start + self.text.get(start..end)?.trim_end().len();
        // The tree includes following comments in the value.
        loop {
            let line = self.line(end);
            let last = self.text[line..end].trim_start();
            let is_comment = last.starts_with('#') && self.document.offset_inside_comment(end - last.len());
            if !is_comment || line <= start {
                return Some(start..end);
            }
            end = start + self.text[start..line].trim_end().len();
        }
    }

    /// The span of a key, and the margin before it if the margin is only spaces.
    fn key(&self, path: &[&str]) -> Option<(Span, &'a str)> {
        let (start, end) = self.document.query_key_only(&route(path)).ok()?.location.byte_span;
        let margin = self.text.get(self.line(start)..start)?;
        margin.bytes().all(|byte| byte == b' ').then_some((start..end, margin))
    }

    /// A key with its value, in whole lines.
    fn lines(&self, path: &[&str]) -> Option<Span> {
        let (key, _) = self.key(path)?;
        let end = self.value(&route(path)).map_or(key.end, |value| value.end.max(key.end));
        Some(self.line(key.start)..self.end_of_line(end))
    }

    /// An item of a list of lines: where they begin, the margin before its hyphen, and where they end.
    fn item(&self, path: &[&str], index: usize) -> Option<(usize, &'a str, usize)> {
        let value = self.value(&route(path).with_key(index))?;
        let line = self.line(value.start);
        let margin = self.text[line..value.start].trim_end().strip_suffix('-')?;
        margin.bytes().all(|byte| byte == b' ').then_some((line, margin, self.end_of_line(value.end)))
    }

    /// The start of the line.
    fn line(&self, at: usize) -> usize {
        self.text[..at].rfind('\n').map_or(0, |end| end + 1)
    }

    /// The end of the line, before its line end.
    fn end_of_line(&self, at: usize) -> usize {
        let line = self.text[at..].split('\n').next().unwrap_or_default();
        at + line.strip_suffix('\r').unwrap_or(line).len()
    }

    /// The line end of this file.
    fn newline(&self) -> &'static str {
        if self.text.contains("\r\n") { "\r\n" } else { "\n" }
    }
}

fn unsupported_form() -> Refused {
    Refused("its form cannot be edited".to_owned())
}

fn tree(text: &str) -> Result<Document, Refused> {
    Document::new(text).map_err(|error| Refused(error.to_string()))
}

fn route<'a>(path: &[&'a str]) -> Route<'a> {
    Route::from(path.iter().map(|name| Component::from(*name)).collect::<Vec<_>>())
}

/// All comments with their positions.
fn comments<'a>(text: &'a str, document: &Document) -> Vec<(usize, &'a str)> {
    let mut comments = Vec::new();
    let mut end = 0;
    for (at, _) in text.match_indices('#') {
        if at >= end && document.offset_inside_comment(at) {
            let comment = text[at..].lines().next().unwrap_or_default();
            end = at + comment.len();
            comments.push((at, comment.trim_end()));
        }
    }
    comments
}

/// A value on one line.
fn flow(value: &Value) -> Result<String, Refused> {
    Ok(match value {
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Result<Vec<_>, _>>()?.join(", ")),
        Value::Object(all) => {
            let entries =
                all.iter().map(|(name, value)| Ok(format!("{}: {}", flow(&name.as_str().into())?, flow(value)?)));
            format!("{{{}}}", entries.collect::<Result<Vec<_>, _>>()?.join(", "))
        }
        Value::String(text) if is_plain(text) => text.clone(),
        // In quotes, as JSON writes it, any text is one line.
        word => word.to_string(),
    })
}

/// Whether a text keeps its meaning without quotes, also between braces. `y`, for example, would become true.
fn is_plain(text: &str) -> bool {
    let is_usual = |character: char| character.is_alphanumeric() || "_-./+@ ".contains(character);
    let is_read = || serde_saphyr::from_str::<Value>(&format!("[{text}]")).is_ok_and(|read| read == json!([text]));
    text.chars().all(is_usual) && is_read()
}
