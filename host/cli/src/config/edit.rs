//! Changes of `config.yaml` that leave everything else as it is: comments, order, quotes.
//!
//! A change is made in the text and then read back: unless the file then says exactly what it said before and the change,
//! nothing is written, and the user is told what to write by hand.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use yamlpatch::{Op, Patch};
use yamlpath::{Component, Document, Route};

use crate::failure::{Failure, Kind};

/// A file that is being changed. Nothing is written before [`Edit::save`].
#[derive(Debug, Clone)]
pub(crate) struct Edit {
    file: PathBuf,
    before: String,
    text: String,
}

/// Why a text could not be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Refused(String);

impl Edit {
    /// Of this file; one that is not there is empty.
    pub(crate) fn of(file: &Path) -> Result<Self, Failure> {
        // A link stays one: what it leads to is changed.
        let file = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
        let text = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => {
                let what = format!("{} cannot be changed", file.display());
                return Err(Failure::new(
                    Kind::Configuration,
                    what,
                    error.to_string(),
                    "make it a file that you can read",
                ));
            }
        };
        Ok(Self { file, before: text.clone(), text })
    }

    /// Gives a key this value, such as `plugins.entries.mine`.
    pub(crate) fn set(&mut self, key: &str, value: &Value) -> Result<(), Failure> {
        let path = names(key);
        self.text = set(&self.text, &path, value).map_err(|refused| self.refusal(refused, key, Some(value)))?;
        Ok(())
    }

    /// Takes a key away, with the sections that would be empty without it.
    pub(crate) fn remove(&mut self, key: &str) -> Result<(), Failure> {
        let path = names(key);
        self.text = remove(&self.text, &path).map_err(|refused| self.refusal(refused, key, None))?;
        Ok(())
    }

    /// Puts a text into a list, unless it is there.
    pub(crate) fn add(&mut self, key: &str, item: &str) -> Result<(), Failure> {
        let path = names(key);
        let mut wanted = list(&self.text, &path);
        if wanted.iter().any(|known| known == item) {
            return Ok(());
        }
        wanted.push(Value::from(item));
        let changed = append(&self.text, &path, item).or_else(|_| set(&self.text, &path, &wanted.clone().into()));
        self.text = changed.map_err(|refused| self.refusal(refused, key, Some(&wanted.into())))?;
        Ok(())
    }

    /// Takes a text out of a list; a list that would be empty goes with it.
    pub(crate) fn take(&mut self, key: &str, item: &str) -> Result<(), Failure> {
        let path = names(key);
        while let Some(at) = list(&self.text, &path).iter().position(|known| known == item) {
            let mut wanted = list(&self.text, &path);
            wanted.remove(at);
            self.text = match wanted.is_empty() {
                true => remove(&self.text, &path),
                false => take(&self.text, &path, at).or_else(|_| set(&self.text, &path, &wanted.clone().into())),
            }
            .map_err(|refused| self.refusal(refused, key, Some(&wanted.into())))?;
        }
        Ok(())
    }

    /// Whether there is anything to write.
    pub(crate) fn is_changed(&self) -> bool {
        self.text != self.before
    }

    /// The file, and its text before and after: for whoever writes it together with something else.
    pub(crate) fn parts(&self) -> (&Path, &str, &str) {
        (&self.file, &self.before, &self.text)
    }

    /// Writes the file at once, as a whole; readers see the old one or the new one.
    pub(crate) fn save(self) -> Result<(), Failure> {
        if !self.is_changed() {
            return Ok(());
        }
        let write = || -> std::io::Result<()> {
            let folder = self.file.parent().unwrap_or(Path::new("."));
            std::fs::create_dir_all(folder)?;
            // It may hold keys: a new one is for its owner alone.
            let mut written = tempfile::NamedTempFile::new_in(folder)?;
            written.write_all(self.text.as_bytes())?;
            if let Ok(known) = std::fs::metadata(&self.file) {
                written.as_file().set_permissions(known.permissions())?;
            }
            written.as_file().sync_all()?;
            written.persist(&self.file)?;
            Ok(())
        };
        write().map_err(|error| {
            let what = format!("{} cannot be written", self.file.display());
            Failure::new(
                Kind::Configuration,
                what,
                error.to_string(),
                "see that the folder can be written and has room",
            )
        })
    }

    fn refusal(&self, Refused(why): Refused, key: &str, value: Option<&Value>) -> Failure {
        let what = format!("{} was left as it is", self.file.display());
        let by_hand = match value {
            Some(value) => format!("write `{key}: {value}` into it by hand, each name before a dot as a section"),
            None => format!("take `{key}` out of it by hand"),
        };
        Failure::new(Kind::Configuration, what, format!("`{key}` cannot be changed safely: {why}"), by_hand)
    }
}

fn names(key: &str) -> Vec<&str> {
    key.split('.').collect()
}

/// What the text says; an empty one says nothing.
fn read(text: &str) -> Result<Value, Refused> {
    let value: Value = serde_saphyr::from_str(text).map_err(|error| Refused(error.to_string()))?;
    Ok(if value.is_null() { Value::Object(Map::new()) } else { value })
}

fn at<'v>(value: &'v Value, path: &[&str]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, name| value.get(name))
}

fn list(text: &str, path: &[&str]) -> Vec<Value> {
    let value = read(text).ok();
    value.as_ref().and_then(|value| at(value, path)).and_then(Value::as_array).cloned().unwrap_or_default()
}

fn route<'a>(path: &[&'a str]) -> Route<'a> {
    Route::from(path.iter().map(|name| Component::from(*name)).collect::<Vec<_>>())
}

/// One operation on the text, if what comes of it says what is wanted.
fn apply(text: &str, route: Route<'_>, operation: Op<'_>, wanted: &Value) -> Result<String, Refused> {
    // It looks for the end of a line.
    let text = if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") };
    // Inside it relies on its parser's tree; a text that it does not foresee is nothing to crash for.
    let patched = std::panic::catch_unwind(|| {
        let document = Document::new(text).map_err(|error| error.to_string())?;
        let patched = yamlpatch::apply_yaml_patches(&document, &[Patch { route, operation }]);
        Ok(patched.map_err(|error| error.to_string())?.source().to_owned())
    });
    let patched = patched.unwrap_or_else(|_| Err("its form is not understood".to_owned())).map_err(Refused)?;
    checked(patched, wanted)
}

fn checked(text: String, wanted: &Value) -> Result<String, Refused> {
    match read(&text)? == *wanted {
        true => Ok(text),
        false => Err(Refused("the change would alter something else".to_owned())),
    }
}

fn yaml(value: &Value) -> Result<yaml_serde::Value, Refused> {
    yaml_serde::to_value(value).map_err(|error| Refused(error.to_string()))
}

fn set(text: &str, path: &[&str], value: &Value) -> Result<String, Refused> {
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
            return Err(Refused(format!("what stands before `{name}` is no section")));
        };
        place = section.entry(*name).or_insert(Value::Null);
    }
    *place = value.clone();

    // The deepest section that is there and holds something takes what is left of the path.
    let is_section = |depth: &usize| {
        at(&said, &path[..*depth]).is_some_and(|value| value.as_object().is_some_and(|section| !section.is_empty()))
    };
    let depth = (0..path.len()).rev().find(is_section);
    let Some(depth) = depth else { return checked(below(text, path, value)?, &wanted) };
    let nested = |rest: &[&str]| {
        rest.iter()
            .rev()
            .fold(value.clone(), |value, name| Value::Object(Map::from_iter([((*name).to_owned(), value)])))
    };
    let (section, rest) = path.split_at(depth);
    let text = match at(&said, &path[..=depth]) {
        // It is there without a value, or with another one: it goes, and comes again.
        Some(known) if !known.is_null() && rest.len() == 1 => {
            let replaced = in_place(text, path, value, &wanted);
            let replaced = replaced.or_else(|_| apply(text, route(path), Op::Replace(yaml(value)?), &wanted));
            if replaced.is_ok() {
                return replaced;
            }
            remove_only(text, path)?
        }
        Some(_) => remove_only(text, &path[..=depth])?,
        None => text.to_owned(),
    };
    if at(&read(&text)?, section).is_none_or(|section| section.as_object().is_none_or(Map::is_empty)) {
        // What was taken away was all there was.
        let cleared = if section.is_empty() { text } else { remove_only(&text, section)? };
        return set(&cleared, path, value).and_then(|text| checked(text, &wanted));
    }
    let add = Op::Add { key: rest[0].to_owned(), value: yaml(&nested(&rest[1..]))? };
    apply(&text, route(section), add, &wanted)
}

/// One value on a line instead of another, with all that stands around it.
fn in_place(text: &str, path: &[&str], value: &Value, wanted: &Value) -> Result<String, Refused> {
    let refused = || Refused("there is no single value".to_owned());
    let document = Document::new(text).map_err(|error| Refused(error.to_string()))?;
    let feature = document.query_exact(&route(path)).ok().flatten().ok_or_else(refused)?;
    let (start, end) = feature.location.byte_span;
    let known = text.get(start..end).ok_or_else(refused)?;
    let is_block = (value.is_object() || value.is_array()) && !known.starts_with(['[', '{']);
    if is_block || known.contains('\n') {
        return Err(refused());
    }
    checked(format!("{}{}{}", &text[..start], flow(value)?, &text[end..]), wanted)
}

fn flow(value: &Value) -> Result<String, Refused> {
    Ok(match value {
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Result<Vec<_>, _>>()?.join(", ")),
        Value::Object(all) => {
            let entries =
                all.iter().map(|(name, value)| Ok(format!("{}: {}", flow(&name.as_str().into())?, flow(value)?)));
            format!("{{{}}}", entries.collect::<Result<Vec<_>, _>>()?.join(", "))
        }
        word => yaml_serde::to_string(word).map_err(|error| Refused(error.to_string()))?.trim_end().to_owned(),
    })
}

/// A text that says nothing yet gets the first key behind its comments.
fn below(text: &str, path: &[&str], value: &Value) -> Result<String, Refused> {
    let nested = path
        .iter()
        .rev()
        .fold(value.clone(), |value, name| Value::Object(Map::from_iter([((*name).to_owned(), value)])));
    let added = yaml_serde::to_string(&nested).map_err(|error| Refused(error.to_string()))?;
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    Ok(format!("{text}{end}{added}"))
}

fn append(text: &str, path: &[&str], item: &str) -> Result<String, Refused> {
    let mut wanted = read(text)?;
    let place = path.iter().try_fold(&mut wanted, |value, name| value.get_mut(name));
    let items = place.and_then(Value::as_array_mut).filter(|items| !items.is_empty());
    items.ok_or_else(|| Refused("it is no list yet".to_owned()))?.push(Value::from(item));
    apply(text, route(path), Op::Append { value: item.into() }, &wanted)
}

fn take(text: &str, path: &[&str], index: usize) -> Result<String, Refused> {
    let mut wanted = read(text)?;
    let place = path.iter().try_fold(&mut wanted, |value, name| value.get_mut(name));
    if let Some(items) = place.and_then(Value::as_array_mut).filter(|items| index < items.len()) {
        items.remove(index);
    }
    apply(text, route(path).with_key(index), Op::Remove, &wanted)
}

fn remove(text: &str, path: &[&str]) -> Result<String, Refused> {
    let said = read(text)?;
    if at(&said, path).is_none() {
        return Ok(text.to_owned());
    }
    let alone = |depth: usize| at(&said, &path[..depth]).and_then(Value::as_object).is_some_and(|all| all.len() == 1);
    let mut depth = path.len();
    while depth > 1 && alone(depth - 1) {
        depth -= 1;
    }
    remove_only(text, &path[..depth])
}

fn remove_only(text: &str, path: &[&str]) -> Result<String, Refused> {
    let mut wanted = read(text)?;
    if let Some((name, section)) = path.split_last() {
        let place = section.iter().try_fold(&mut wanted, |value, name| value.get_mut(name));
        place.and_then(Value::as_object_mut).map(|section| section.shift_remove(*name));
    }
    // A section is left without keys, which says the same as an empty one.
    let (parent, emptied) = (&path[..path.len() - 1], at(&wanted, &path[..path.len() - 1]));
    if !parent.is_empty() && emptied.and_then(Value::as_object).is_some_and(Map::is_empty) {
        let mut null = wanted.clone();
        if let Some(place) = parent.iter().try_fold(&mut null, |value, name| value.get_mut(name)) {
            *place = Value::Null;
        }
        return apply(text, route(path), Op::Remove, &null).or_else(|_| apply(text, route(path), Op::Remove, &wanted));
    }
    apply(text, route(path), Op::Remove, &wanted)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn edit(text: &str) -> Edit {
        Edit { file: PathBuf::from("config.yaml"), before: text.to_owned(), text: text.to_owned() }
    }

    const FILE: &str = "\
# My own.
model:
  default: big   # the one I like
plugins:
  # Those that I use.
  enabled:
    - audit  # for work
    - notes
  entries:
    audit:
      level: 3

context: {engine: lossless} # for now
";

    #[test]
    fn lists_change_and_comments_stay() {
        let mut file = edit(FILE);
        file.add("plugins.enabled", "dice").unwrap();
        file.add("plugins.enabled", "notes").unwrap();
        file.add("plugins.disabled", "files").unwrap();
        assert_eq!(
            file.text,
            FILE.replace("    - notes\n", "    - notes\n    - dice\n")
                .replace("      level: 3\n", "      level: 3\n  disabled: [files]\n")
        );
        file.take("plugins.enabled", "dice").unwrap();
        file.take("plugins.disabled", "files").unwrap();
        assert_eq!(file.text, FILE);
        assert!(!file.is_changed());
    }

    #[test]
    fn values_are_set_and_taken_away() {
        let mut file = edit(FILE);
        file.set("context.engine", &json!("compressor")).unwrap();
        file.set("memory.provider", &json!("mem0")).unwrap();
        file.set("plugins.entries.dice", &json!({"sides": 20})).unwrap();
        assert!(file.text.contains("engine: compressor} # for now"), "{}", file.text);
        assert!(file.text.contains("# the one I like") && file.text.contains("# Those that I use."), "{}", file.text);
        for (key, value) in [
            ("memory.provider", json!("mem0")),
            ("plugins.entries.dice.sides", json!(20)),
            ("plugins.entries.audit.level", json!(3)),
        ] {
            assert_eq!(at(&read(&file.text).unwrap(), &names(key)), Some(&value), "{key}");
        }
        file.set("context.engine", &json!("lossless")).unwrap();
        file.remove("memory.provider").unwrap();
        file.remove("plugins.entries.dice").unwrap();
        assert_eq!(file.text, FILE);
    }

    #[test]
    fn files_of_odd_forms_are_changed_or_left() {
        for text in [
            "",
            "# nothing yet\n",
            "plugins:\n",
            "plugins: {}\n",
            "plugins:\n  enabled:\n",
            "plugins: {enabled: []}",
            "model: x",
            "---\nmodel: x\n",
            "plugins:\n  enabled: [a, b] # c\n",
            "plugins:\n- 1\n",
            "plugins:\n  enabled: |\n    a\n",
        ] {
            let mut file = edit(text);
            let known = list(text, &["plugins", "enabled"]);
            match file.add("plugins.enabled", "dice") {
                Ok(()) => {
                    let mut wanted = known.clone();
                    wanted.push(json!("dice"));
                    assert_eq!(list(&file.text, &["plugins", "enabled"]), wanted, "{text:?} {:?}", file.text);
                    for line in text.lines().filter(|line| line.starts_with('#')) {
                        assert!(file.text.contains(line), "{:?}", file.text);
                    }
                }
                Err(_) => {
                    assert_eq!(file.text, text);
                    assert!(text.contains("- 1") || text.contains('|'), "{text:?}");
                }
            }
        }
    }

    #[test]
    fn what_a_change_cannot_reach_is_told_with_what_to_write() {
        let failure = edit("plugins: [a]\n").set("plugins.entries.dice", &json!({"sides": 6})).unwrap_err();
        let told = format!("{failure:?}");
        assert!(told.contains("plugins.entries.dice") && told.contains("sides"), "{told}");
        assert!(edit("a: [\n").remove("a").is_err());
    }

    proptest! {
        #[test]
        fn no_text_is_damaged(text in "[a-c:#\\-\\[\\]{},\n '\"|&*>!]{0,60}", item in "[a-z]{1,5}") {
            let mut file = edit(&text);
            let before = read(&text);
            if file.add("plugins.enabled", &item).is_ok() {
                let mut wanted = before.unwrap();
                let after = read(&file.text).unwrap();
                prop_assert!(list(&file.text, &["plugins", "enabled"]).contains(&json!(item)));
                // All but the plugins says what it said.
                let others = |value: &mut Value| value.as_object_mut().map(|all| all.shift_remove("plugins"));
                let mut after = after;
                others(&mut wanted);
                others(&mut after);
                prop_assert_eq!(wanted, after);
            } else {
                prop_assert_eq!(&file.text, &text);
            }
        }
    }
}
