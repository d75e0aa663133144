//! `config.yaml`: read, checked against the table of keys, and handed out by key.
//!
//! What is broken or of a wrong type is refused with its line, and nothing is ever written back. A key that nobody
//! knows is a warning, since a later version or another program may know it.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use hermes_plugin_host::PluginSettings;
use serde_json::{Map, Value};

use crate::codes;
use crate::environment::Environment;
use crate::keys::{CHAIN, KEYS, Key, TASKS, Wants, is_section, names_in, nearest, similarity};
use crate::tree::{Content, Node, Place};
use hermes_diagnostic::Diagnostic;

/// The key by which another program, whose home looks much like ours, numbers its configurations.
const FOREIGN_MARK: &str = "_config_version";

/// What stands for the name of a task in the table of keys.
const TASK: &str = "<task>";

/// A configuration that was read and checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    file: PathBuf,
    exists: bool,
    /// What the file sets, by dotted key.
    set: Vec<(String, Value)>,
    warnings: Vec<String>,
}

impl Config {
    /// Reads the file; one that is not there sets nothing.
    pub fn read(file: &Path, environment: &Environment) -> Result<Self, Diagnostic> {
        let text = match std::fs::read(file) {
            Ok(bytes) => String::from_utf8(bytes)
                .map_err(|error| refusal(file, None, not_text(&error), "save the file as UTF-8"))?,
            // Where even the home is none, the store says so.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(Self { file: file.to_owned(), exists: false, set: Vec::new(), warnings: Vec::new() });
            }
            Err(error) => return Err(refusal(file, None, error.to_string(), "make it a file that you can read")),
        };
        Self::parse(&text, file, &|name| environment.var(name))
    }

    /// Checks a text; `variable` answers `${NAME}`.
    pub fn parse(text: &str, file: &Path, variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, Diagnostic> {
        let mut root = Node::parse(text).map_err(|broken| {
            refusal(file, broken.place, broken.why, "correct the line; the file was left as it is")
        })?;
        if let Content::Section(entries) = &root.content
            && entries.iter().any(|(name, _, _)| name == FOREIGN_MARK)
        {
            return Err(foreign(file));
        }
        let mut unresolved = Vec::new();
        // What a plugin may know of the environment depends on what it was granted.
        root.expand_outside(&["plugins", "entries"], variable, &mut unresolved);
        let mut check = Check { file, set: Vec::new(), warnings: Vec::new() };
        for (place, name) in unresolved {
            check.warn(place, &format!("the variable {name} is not set, so `${{{name}}}` stays as it is"));
        }
        check.top(&root)?;
        Ok(Self { file: file.to_owned(), exists: true, set: check.set, warnings: check.warnings })
    }

    /// The file, whether it is there or not.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Whether there is a file.
    pub fn exists(&self) -> bool {
        self.exists
    }

    /// What the user should know.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// What the file sets.
    pub fn given(&self, path: &str) -> Option<&Value> {
        debug_assert!(Key::at(path).is_some(), "{path} is in the table");
        self.set.iter().find(|(key, _)| key == path).map(|(_, value)| value)
    }

    /// What is in force: what the file sets, else the default.
    pub fn value(&self, path: &str) -> Option<Value> {
        let default = || Key::at(path).and_then(|key| serde_json::from_str(key.default).ok());
        self.given(path).cloned().or_else(default)
    }

    /// A text that is not blank.
    pub fn text(&self, path: &str) -> Option<String> {
        let value = self.value(path)?;
        value.as_str().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
    }

    /// A whole number; what is larger than fits is as large as fits.
    pub fn count(&self, path: &str) -> Option<u32> {
        self.value(path)?.as_u64().map(|count| u32::try_from(count).unwrap_or(u32::MAX))
    }

    /// True or false.
    pub fn flag(&self, path: &str) -> bool {
        self.value(path).and_then(|value| value.as_bool()).unwrap_or_default()
    }

    /// A list of texts.
    pub fn texts(&self, path: &str) -> Vec<String> {
        let value = self.value(path).unwrap_or_default();
        value.as_array().into_iter().flatten().filter_map(|item| item.as_str().map(str::to_owned)).collect()
    }

    /// `plugins.entries`.
    pub fn entries(&self) -> Map<String, Value> {
        match self.value("plugins.entries") {
            Some(Value::Object(entries)) => entries,
            _ => Map::new(),
        }
    }

    /// `plugins.settings`: checked when the file was read.
    pub fn plugin_settings(&self) -> HashMap<String, PluginSettings> {
        let Some(Value::Object(sections)) = self.value("plugins.settings") else { return HashMap::new() };
        let settings = |(name, section): (String, Value)| {
            let settings = PluginSettings::read(&name, &section).ok()?;
            Some((name, settings))
        };
        sections.into_iter().filter_map(settings).collect()
    }

    /// Whether the file may hold keys of models.
    pub fn holds_keys(&self) -> bool {
        let holds = |(path, _): &(String, Value)| path.ends_with(".api_key") || path.ends_with(".fallback_chain");
        self.set.iter().any(holds)
    }

    /// The tasks that have a section of their own, and the one that every session has.
    pub fn tasks(&self) -> Vec<String> {
        let mut tasks = vec![TASKS[0].to_owned()];
        for (path, _) in &self.set {
            let below = path.strip_prefix("auxiliary.").and_then(|rest| rest.split_once('.'));
            if let Some((task, _)) = below.filter(|(task, _)| !tasks.iter().any(|known| known == task)) {
                tasks.push(task.to_owned());
            }
        }
        tasks
    }

    /// What `platform_hints` says of a platform: words instead of the built-in ones, and words behind them.
    pub fn platform_hint(&self, platform: &str) -> Option<(Option<String>, Option<String>)> {
        let hints = self.value("platform_hints")?;
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        match hints.get(platform)? {
            Value::Object(hint) => Some((text(hint.get("replace")), text(hint.get("append")))),
            hint => Some((None, text(Some(hint)))),
        }
    }

    /// All that is in force, nested as in the file; keys that nothing sets are null. Keys and tokens are redacted.
    pub fn shown(&self) -> Value {
        let mut root = Map::new();
        let tasks = self.tasks();
        let paths = KEYS.iter().flat_map(|key| match key.path.split_once(TASK) {
            Some((before, after)) => tasks.iter().map(|task| format!("{before}{task}{after}")).collect(),
            None => vec![key.path.to_owned()],
        });
        for path in paths {
            let mut section = &mut root;
            let mut names = path.split('.').peekable();
            while let Some(name) = names.next() {
                if names.peek().is_none() {
                    section.insert(name.to_owned(), self.value(&path).unwrap_or(Value::Null));
                    break;
                }
                let entry = section.entry(name).or_insert_with(|| Value::Object(Map::new()));
                let Value::Object(inner) = entry else { break };
                section = inner;
            }
        }
        crate::redaction::redacted(Value::Object(root))
    }

    /// One value or section of what is in force, by its dotted key; none for a key that there is not.
    pub fn shown_at(&self, path: &str) -> Option<Value> {
        let root = self.shown();
        path.split('.').try_fold(root, |value, name| match value {
            Value::Object(mut section) => section.remove(name),
            _ => None,
        })
    }
}

fn refusal(file: &Path, place: Option<Place>, why: impl Into<String>, fix: &str) -> Diagnostic {
    let place = place.filter(|place| place.line > 0);
    let at = place.map_or_else(String::new, |place| format!(":{}:{}", place.line, place.column));
    Diagnostic::new(codes::VALUE, format!("{}{at} cannot be used", file.display()), why, fix)
}

fn not_text(error: &std::string::FromUtf8Error) -> String {
    let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    format!("line {line} holds bytes that are no UTF-8 text")
}

fn foreign(file: &Path) -> Diagnostic {
    let home = file.parent().unwrap_or(file).display().to_string();
    Diagnostic::new(
        codes::FOREIGN_HOME,
        format!("{home} cannot be used as home"),
        format!("it is the home of another program: its config.yaml has `{FOREIGN_MARK}`; it was left as it is"),
        "set HERMES_HOME to another folder, such as ~/.hermes-rs",
    )
}

/// A walk over the file with the table of keys in hand.
struct Check<'a> {
    file: &'a Path,
    set: Vec<(String, Value)>,
    warnings: Vec<String>,
}

impl Check<'_> {
    fn warn(&mut self, place: Place, what: &str) {
        self.warnings.push(format!("{}:{}: {what}", self.file.display(), place.line));
    }

    fn top(&mut self, root: &Node) -> Result<(), Diagnostic> {
        match &root.content {
            Content::Nothing => Ok(()),
            Content::Section(entries) => self.section("", entries),
            other => {
                let why = format!("the file is {}, and has to be sections such as `model:`", other.describe());
                Err(refusal(
                    self.file,
                    Some(root.place),
                    why,
                    "write keys and values; docs/configuration.md lists them",
                ))
            }
        }
    }

    fn section(&mut self, section: &str, entries: &[(String, Place, Node)]) -> Result<(), Diagnostic> {
        for (name, place, node) in entries {
            let path = if section.is_empty() { name.clone() } else { format!("{section}.{name}") };
            // `model: NAME` says no more than the name.
            let short =
                path == "model" && matches!(node.content, Content::Text(_) | Content::Number(_) | Content::Flag(_));
            let key = if short { Key::at("model.default") } else { Key::at(&path) };
            match (key, &node.content) {
                // An empty value leaves the default in force.
                (Some(_), Content::Nothing) => {}
                (Some(key), _) => {
                    let value = self.fitting(key.wants, &path, node)?;
                    if !key.works {
                        self.warn(*place, &format!("`{path}` has no effect in this version"));
                    }
                    self.set.push((if short { key.path.to_owned() } else { path }, value));
                }
                (None, content) if is_section(&path) => match content {
                    Content::Nothing => {}
                    Content::Section(entries) => {
                        self.doubt_task(&path, *place);
                        self.section(&path, entries)?;
                    }
                    other => {
                        let wanted = format!("a section with {}", names_in(&path).join(", "));
                        return Err(self.wrong(&path, node.place, other, &wanted));
                    }
                },
                (None, _) => {
                    let near = nearest(&path).map_or_else(
                        || format!("there are here: {}", names_in(section).join(", ")),
                        |near| format!("did you mean `{near}`?"),
                    );
                    self.warn(*place, &format!("the key `{path}` is not known and has no effect; {near}"));
                }
            }
        }
        Ok(())
    }

    /// A plugin names its tasks as it likes, so an odd name is no mistake; one letter beside a known one may be.
    fn doubt_task(&mut self, path: &str, place: Place) {
        const ALIKE: f64 = 0.75;
        let Some(task) = path.strip_prefix("auxiliary.").filter(|task| !TASKS.contains(task)) else { return };
        if let Some(known) = TASKS.iter().find(|known| similarity(task, known) >= ALIKE) {
            self.warn(place, &format!("`{path}` is for a task `{task}`; did you mean `auxiliary.{known}`?"));
        }
    }

    fn wrong(&self, path: &str, place: Place, found: &Content, wanted: &str) -> Diagnostic {
        // The value itself is not quoted: it may be a key.
        let why = format!("`{path}` is {}, and has to be {wanted}", found.describe());
        let fix = match found {
            Content::Number(_) | Content::Flag(_) if wanted.contains("text") => "put the value into quotes",
            Content::Text(_) if wanted.contains("list") => "write it as a list, such as [one, two]",
            Content::Text(_) if wanted.contains("number") || wanted.contains("true") => {
                "write it without quotes and units"
            }
            _ => "correct the value; docs/configuration.md lists all keys",
        };
        refusal(self.file, Some(place), why, fix)
    }

    /// The value of a node, where it is what is wanted.
    fn fitting(&mut self, wants: Wants, path: &str, node: &Node) -> Result<Value, Diagnostic> {
        let value = match &node.content {
            // What a variable holds is always a text, whatever it says.
            Content::Text(text)
                if node.expanded
                    && matches!(wants, Wants::Flag | Wants::Count(_) | Wants::Between(..) | Wants::Share) =>
            {
                serde_json::from_str(text.trim()).unwrap_or_else(|_| node.value())
            }
            _ => node.value(),
        };
        let fits = match (wants, &value) {
            (Wants::Text, Value::String(_)) | (Wants::Flag, Value::Bool(_)) => true,
            (Wants::Count(least), Value::Number(number)) => number.as_u64().is_some_and(|count| count >= least),
            (Wants::Between(least, most), Value::Number(number)) => {
                number.as_u64().is_some_and(|count| (least..=most).contains(&count))
            }
            (Wants::Share, Value::Number(number)) => number.as_f64().is_some_and(|share| share > 0.0 && share <= 1.0),
            (Wants::Texts, Value::Array(items)) => items.iter().all(Value::is_string),
            (Wants::Sections | Wants::Hints, Value::Object(_)) | (Wants::Chain, Value::Array(_)) => true,
            (Wants::Anything, _) => true,
            _ => false,
        };
        if !fits {
            let found = match (&value, &node.content) {
                (Value::Number(number), _) if matches!(wants, Wants::Count(_) | Wants::Between(..) | Wants::Share) => {
                    let why = format!("`{path}` is {number}, and has to be {}", wants.describe());
                    return Err(refusal(self.file, Some(node.place), why, "correct the number"));
                }
                (Value::Array(_), Content::List(items)) if wants == Wants::Texts => {
                    let odd = items.iter().find(|item| !matches!(item.content, Content::Text(_))).unwrap_or(node);
                    return Err(self.wrong(path, odd.place, &odd.content, "a list of nothing but texts"));
                }
                (_, content) => content,
            };
            return Err(self.wrong(path, node.place, found, &wants.describe()));
        }
        if let (Wants::Sections, Content::Section(entries)) = (wants, &node.content) {
            for (name, _, entry) in entries {
                if !matches!(entry.content, Content::Section(_) | Content::Nothing) {
                    return Err(self.wrong(
                        &format!("{path}.{name}"),
                        entry.place,
                        &entry.content,
                        "a section of its own",
                    ));
                }
            }
        }
        if let ("plugins.settings", Content::Section(entries)) = (path, &node.content) {
            for (name, _, entry) in entries.iter().filter(|(_, _, entry)| entry.content != Content::Nothing) {
                PluginSettings::read(name, &entry.value()).map_err(|why| {
                    refusal(
                        self.file,
                        Some(entry.place),
                        why,
                        "correct it; docs/plugins-limits.md lists what can be set",
                    )
                })?;
            }
        }
        if let (Wants::Hints, Content::Section(entries)) = (wants, &node.content) {
            for (name, _, entry) in entries {
                self.check_hint(&format!("{path}.{name}"), entry)?;
            }
        }
        if let (Wants::Chain, Content::List(items)) = (wants, &node.content) {
            for (number, item) in items.iter().enumerate() {
                self.check_link(&format!("{path}[{number}]"), item)?;
            }
        }
        Ok(value)
    }

    /// An entry of a chain.
    fn check_link(&mut self, path: &str, node: &Node) -> Result<(), Diagnostic> {
        let names = || CHAIN.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        let Content::Section(entries) = &node.content else {
            return Err(self.wrong(path, node.place, &node.content, &format!("a section with {}", names())));
        };
        for (name, place, entry) in entries {
            match CHAIN.iter().find(|(known, _)| known == name) {
                Some(_) if entry.content == Content::Nothing => {}
                Some((_, wants)) => drop(self.fitting(*wants, &format!("{path}.{name}"), entry)?),
                None => self.warn(
                    *place,
                    &format!("the key `{path}.{name}` is not known and has no effect; there are here: {}", names()),
                ),
            }
        }
        Ok(())
    }

    /// A text, or a section of `replace` and `append`.
    fn check_hint(&self, path: &str, node: &Node) -> Result<(), Diagnostic> {
        match &node.content {
            Content::Text(_) | Content::Nothing => Ok(()),
            Content::Section(entries) => entries.iter().try_for_each(|(name, place, entry)| {
                let known = name == "replace" || name == "append";
                if !known {
                    let why = format!("`{path}.{name}` is no part of a hint");
                    return Err(refusal(self.file, Some(*place), why, "a hint has `replace`, `append` or both"));
                }
                match &entry.content {
                    Content::Text(_) | Content::Nothing => Ok(()),
                    other => Err(self.wrong(&format!("{path}.{name}"), entry.place, other, "a text")),
                }
            }),
            other => Err(self.wrong(path, node.place, other, "a text or a section")),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(text: &str) -> Result<Config, Diagnostic> {
        Config::parse(text, Path::new("/h/config.yaml"), &|name| match name {
            "HERMES_T_KEY" => Some("sk-0123456789abcdefghij".to_owned()),
            "HERMES_T_WINDOW" => Some("12000".to_owned()),
            _ => None,
        })
    }

    #[test]
    fn a_hint_is_a_text_or_says_whether_it_replaces() {
        let text = |text: &str| Some(text.to_owned());
        let config = parse("platform_hints:\n  cli: more\n  serve: {replace: other, append: and more}\n").unwrap();
        assert_eq!(config.platform_hint("cli"), Some((None, text("more"))));
        assert_eq!(config.platform_hint("serve"), Some((text("other"), text("and more"))));
        assert_eq!(config.platform_hint("cron"), None);
        for wrong in
            ["platform_hints: {cli: 3}", "platform_hints: {cli: {instead: x}}", "platform_hints: {cli: {replace: [x]}}"]
        {
            let failure = parse(wrong).unwrap_err();
            assert!(failure.why.contains("platform_hints.cli"), "{failure}");
        }
    }

    #[test]
    fn an_empty_file_leaves_the_defaults_in_force() {
        for text in ["", "# only words\n", "model:\n", "context:\n  engine:\n", "{}"] {
            let config = parse(text).unwrap();
            assert!(config.warnings().is_empty(), "{text:?}");
            assert_eq!(config.text("context.engine").as_deref(), Some("compressor"));
            assert_eq!(config.count("agent.max_turns"), Some(90));
            assert_eq!((config.flag("compression.enabled"), config.text("model.default")), (true, None));
        }
    }

    #[test]
    fn what_is_set_wins() {
        let text = "model: some-model\ncontext:\n  engine: lossless\nplugins:\n  enabled: [audit]\n  entries:\n    audit: \
             {level: 1}\ncompression: {enabled: false, threshold: 0.4}\n";
        let config = parse(text).unwrap();
        assert_eq!(config.text("model.default").as_deref(), Some("some-model"));
        assert_eq!(config.text("context.engine").as_deref(), Some("lossless"));
        assert_eq!(config.texts("plugins.enabled"), ["audit"]);
        assert_eq!(config.entries()["audit"], json!({"level": 1}));
        assert!(!config.flag("compression.enabled"));
        assert_eq!(config.given("compression.threshold"), Some(&json!(0.4)));
        assert!(config.warnings().is_empty());
    }

    #[test]
    fn a_wrong_type_is_refused_with_its_place_what_was_found_and_what_is_wanted() {
        for (text, place, found, wanted) in [
            ("context:\n  engine: [a]\n", "2:11", "`context.engine` is a list", "a text"),
            ("context: compressor\n", "1:10", "`context` is a text", "a section with engine"),
            ("model:\n  context_length: \"12000\"\n", "2:19", "is a text", "a whole number, at least 2000"),
            ("model:\n  context_length: 12k\n", "2:19", "is a text", "a whole number"),
            ("model:\n  context_length: 12.5\n", "2:19", "is 12.5", "a whole number"),
            ("model:\n  context_length: 10\n", "2:19", "is 10", "at least 2000"),
            ("model:\n  default: 4.1\n", "2:12", "is a number", "a text"),
            ("model: 5\n", "1:8", "`model` is a number", "a text"),
            ("model: [a]\n", "1:8", "`model` is a list", "a section with provider"),
            ("compression:\n  enabled: maybe\n", "2:12", "is a text", "true or false"),
            ("compression:\n  threshold: 50\n", "2:14", "is 50", "above 0 and up to 1"),
            ("plugins:\n  enabled: audit\n", "2:12", "is a text", "a list of texts"),
            ("plugins:\n  enabled: [audit, 3]\n", "2:20", "is a number", "texts"),
            ("plugins:\n  entries:\n    audit: 3\n", "3:12", "`plugins.entries.audit` is a number", "a section"),
            (
                "plugins:\n  settings:\n    audit:\n      limits: {cpu: 5}\n",
                "4:7",
                "`plugins.settings.audit`",
                "with its unit",
            ),
            ("- a\n", "1:1", "the file is a list", "sections"),
        ] {
            let failure = parse(text).unwrap_err();
            assert_eq!(failure.code, codes::VALUE);
            assert_eq!(failure.what, format!("/h/config.yaml:{place} cannot be used"), "{text}");
            assert!(failure.why.contains(found) && failure.why.contains(wanted), "{text}: {failure}");
        }
    }

    #[test]
    fn what_is_no_yaml_is_refused_with_line_and_reason() {
        for text in ["model:\n  default: a\n bad: b\n", "model: [a\n", "a: 1\na: 2\n", "model: {default: \"x}\n"] {
            let failure = parse(text).unwrap_err();
            let place = failure.what.strip_prefix("/h/config.yaml:").unwrap().split(' ').next().unwrap();
            assert!(place.split(':').all(|number| number.parse::<u32>().unwrap() > 0), "{failure}");
            assert!(!failure.why.is_empty());
        }
    }

    #[test]
    fn a_key_is_never_quoted_in_a_refusal() {
        let failure = parse("model:\n  api_key: [sk-0123456789abcdefghij]\n").unwrap_err();
        assert!(!failure.to_string().contains("sk-"), "{failure}");
    }

    #[test]
    fn an_unknown_key_is_a_warning_with_its_line_and_the_nearest_known_one() {
        let text = "modle: x\nmodel:\n  contxt_length: 5\nterminal:\n  backend: local\ncontext: {engines: a}\n";
        let config = parse(text).unwrap();
        let expected = [
            ("/h/config.yaml:1: ", "`modle`", "did you mean `model`?"),
            ("/h/config.yaml:3: ", "`model.contxt_length`", "did you mean `model.context_length`?"),
            ("/h/config.yaml:4: ", "`terminal`", "there are here: model, context"),
            ("/h/config.yaml:6: ", "`context.engines`", "did you mean `context.engine`?"),
        ];
        assert_eq!(config.warnings().len(), expected.len(), "{:?}", config.warnings());
        for (warning, (place, key, near)) in config.warnings().iter().zip(expected) {
            assert!(warning.starts_with(place) && warning.contains(key) && warning.contains(near), "{warning}");
        }
    }

    #[test]
    fn a_key_without_effect_is_told() {
        let config = parse("auxiliary:\n  compression:\n    extra_body: {a: 1}\n    model: small\n").unwrap();
        assert_eq!(config.warnings().len(), 1, "{:?}", config.warnings());
        assert!(config.warnings()[0].contains("`auxiliary.compression.extra_body` has no effect"));
    }

    #[test]
    fn any_task_has_a_section_with_the_same_keys() {
        let text = "auxiliary:\n  transient_retries: 0\n  my_task: {model: small, timeout: 9, modle: x}\n  compresion:\n    \
             fallback_chain: [{provider: groq, api_key: sk-0123456789abcdefghij, extra: 1}]\n";
        let config = parse(text).unwrap();
        assert_eq!(config.tasks(), ["compression", "my_task", "compresion"]);
        assert_eq!(config.count("auxiliary.my_task.timeout"), Some(9));
        assert_eq!(config.count("auxiliary.compression.timeout"), Some(120));
        assert_eq!(config.shown_at("auxiliary.my_task.model"), Some(json!("small")));
        assert_eq!(config.shown_at("auxiliary.transient_retries"), Some(json!(0)));
        assert!(!config.shown().to_string().contains("0123456789"));
        let expected =
            ["`auxiliary.my_task.model`?", "mean `auxiliary.compression`?", "fallback_chain[0].extra` is not known"];
        assert_eq!(config.warnings().len(), expected.len(), "{:?}", config.warnings());
        for (warning, words) in config.warnings().iter().zip(expected) {
            assert!(warning.contains(words), "{warning}");
        }
        for (text, found, wanted) in [
            ("auxiliary: {transient_retries: 7}", "is 7", "from 0 to 6"),
            ("auxiliary: {t: {fallback_chain: groq}}", "is a text", "a list of sections"),
            (
                "auxiliary: {t: {fallback_chain: [groq]}}",
                "`auxiliary.t.fallback_chain[0]` is a text",
                "a section with provider",
            ),
            (
                "auxiliary: {t: {fallback_chain: [{model: 4}]}}",
                "`auxiliary.t.fallback_chain[0].model` is a number",
                "a text",
            ),
            ("auxiliary: {t: {context_length: 3999}}", "is 3999", "at least 4000"),
            ("auxiliary: {t: small}", "`auxiliary.t` is a text", "a section with provider, model"),
        ] {
            let failure = parse(text).unwrap_err();
            assert!(failure.why.contains(found) && failure.why.contains(wanted), "{text}: {failure}");
        }
    }

    #[test]
    fn variables_stand_for_texts_and_numbers() {
        let config = parse(
            "model:\n  api_key: ${HERMES_T_KEY}\n  context_length: ${HERMES_T_WINDOW}\n  base_url: http://${HERMES_T_NONE}/v1\n",
        )
        .unwrap();
        assert_eq!(config.text("model.api_key").as_deref(), Some("sk-0123456789abcdefghij"));
        assert_eq!(config.count("model.context_length"), Some(12_000));
        assert_eq!(config.text("model.base_url").as_deref(), Some("http://${HERMES_T_NONE}/v1"));
        assert_eq!(config.warnings().len(), 1);
        assert!(config.warnings()[0].contains("config.yaml:4") && config.warnings()[0].contains("HERMES_T_NONE"));
        assert!(parse("model:\n  context_length: ${HERMES_T_KEY}\n").is_err());
    }

    #[test]
    fn the_home_of_another_program_is_refused() {
        let failure = parse("model: x\n_config_version: 33\n").unwrap_err();
        assert!(
            failure.why.contains("another program") && failure.fix.to_string().contains("HERMES_HOME"),
            "{failure}"
        );
    }

    #[test]
    fn what_is_shown_is_in_force_and_has_no_keys_in_it() {
        let text = "model:\n  api_key: ${HERMES_T_KEY}\n  default: m\nplugins:\n  entries:\n    mine: {token: abc, deep: {x: 1}}\n";
        let config = parse(text).unwrap();
        assert_eq!(config.shown_at("model.default"), Some(json!("m")));
        assert_eq!(config.shown_at("model.api_key"), Some(json!("sk-012...ghij")));
        assert_eq!(config.shown_at("context"), Some(json!({"engine": "compressor"})));
        assert_eq!(config.shown_at("plugins.entries.mine"), Some(json!({"token": "***", "deep": {"x": 1}})));
        assert_eq!(config.shown_at("model.nope"), None);
        assert!(!config.shown().to_string().contains("0123456789"));
    }
}
