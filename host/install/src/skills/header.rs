//! The front matter of a `SKILL.md`: the YAML between two lines of `---` at its top.
//!
//! The rule for names and descriptions is the one of the plugin `local`, which shows the skills to the model; it is written
//! down in `docs/skills.md`.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::archive::unfit;

/// Most characters of a name.
const MOST_NAME: usize = 64;
/// Most characters of a description; the rest is cut.
const MOST_DESCRIPTION: usize = 1_024;
/// Most variables, settings or programs that a front matter declares.
const MOST_DECLARED: usize = 64;

/// What a `SKILL.md` says about its skill.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SkillHeader {
    /// The name by which the model and the user know it.
    pub name: String,
    /// When to use it.
    pub description: String,
    /// Its version, if it has one.
    pub version: String,
    /// Its license.
    pub license: String,
    /// What it needs, in the words of its author.
    pub compatibility: String,
    /// The environment variables that it declares.
    pub variables: Vec<Declared>,
    /// The settings that it declares.
    pub settings: Vec<Declared>,
    /// The programs that it needs.
    pub programs: Vec<String>,
    /// The files with credentials that it reads.
    pub credentials: Vec<String>,
    /// Why the YAML could not be parsed, so that name and description were read line by line.
    pub guessed: Option<String>,
}

/// A variable or a setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Declared {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub purpose: String,
    /// Whether the skill works without it.
    pub is_optional: bool,
}

/// Why a skill cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SkillFlaw {
    /// A file that must be text is not.
    #[error("`{0}` is not UTF-8 text")]
    NotText(String),
    /// A file is too large.
    #[error("`{file}` is larger than {} KiB", most >> 10)]
    Large {
        /// The file.
        file: String,
        /// The limit in bytes.
        most: u64,
    },
    /// All files together are too large.
    #[error("its files have more than {} MiB", .0 >> 20)]
    Heavy(u64),
    /// There are too many files.
    #[error("it has more than {0} files")]
    Many(usize),
    /// Folders are nested too deeply.
    #[error("`{0}` is more than {most} folders deep", most = super::MOST_DEPTH)]
    Deep(String),
    /// A file is a link.
    #[error("`{0}` is a link, and a skill may not have links")]
    Link(String),
    /// Something is neither a file nor a folder.
    #[error("`{0}` is neither a file nor a folder")]
    Special(String),
    /// A file's name is not valid on every system.
    #[error("the name `{name}` {why}")]
    FileName {
        /// The name.
        name: String,
        /// Why.
        why: &'static str,
    },
    /// The skill has no name, and no folder to take one from.
    #[error("it has no name: add `name` to the front matter between lines of ---")]
    NoName,
    /// The name is too long.
    #[error("its name has more than {MOST_NAME} characters")]
    LongName,
    /// The name has other characters.
    #[error("its name `{0}` may have only letters, digits, `-`, `_` and `.`")]
    Name(String),
    /// The name cannot be installed as a folder.
    #[error("its name `{0}` cannot be that of a folder on every system")]
    FolderName(String),
    /// Nothing says when to use the skill.
    #[error("it has no description: add `description` to the front matter between lines of ---")]
    NoDescription,
    /// The YAML is broken, and its lines do not say enough.
    #[error("its YAML front matter is broken, and no description was found in it: {0}")]
    Guess(String),
    /// Another skill has the name.
    #[error("the skill in {0} has the same name")]
    Twice(String),
    /// The system refused to read it.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
}

fn has_plain_characters(name: &str) -> bool {
    name.chars().all(|character| character.is_alphanumeric() || "-_.".contains(character))
}

/// Whether this can be the name of an installed skill, and of its folder.
pub fn is_skill_name(name: &str) -> bool {
    let is_short = name.chars().count() <= MOST_NAME;
    is_short && !name.starts_with('.') && has_plain_characters(name) && unfit(name).is_none()
}

impl SkillHeader {
    /// Reads the text of a `SKILL.md`. Without a name in it, the skill has that of its folder.
    ///
    /// # Errors
    ///
    /// When the skill has no valid name, or no description.
    pub fn parse(text: &str, folder: Option<&str>) -> Result<Self, SkillFlaw> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let (yaml, body) = fenced(text).unwrap_or(("", text));
        let (fields, guessed) = match parsed(yaml) {
            Ok(fields) => (fields, None),
            Err(why) => (line_by_line(yaml), Some(why)),
        };
        let name = one_line(fields.get("name"));
        let name = if name.is_empty() { folder.ok_or(SkillFlaw::NoName)?.to_owned() } else { name };
        if name.chars().count() > MOST_NAME {
            return Err(SkillFlaw::LongName);
        }
        if !has_plain_characters(&name) {
            return Err(SkillFlaw::Name(name));
        }
        let described = one_line(fields.get("description"));
        // What a broken front matter should have said may stand anywhere else.
        let described = match (&guessed, described.is_empty()) {
            (_, false) => described,
            (None, true) => first_sentence(body).ok_or(SkillFlaw::NoDescription)?,
            (Some(why), true) => return Err(SkillFlaw::Guess(why.clone())),
        };
        let hermes = fields.get("metadata").and_then(|metadata| metadata.get("hermes"));
        let needs = fields.get("prerequisites");
        let mut variables = declared(fields.get("required_environment_variables"), "name");
        variables.extend(declared(needs.and_then(|needs| needs.get("env_vars")), "name"));
        let names = |value: Option<&Value>| declared(value, "path").into_iter().map(|one| one.name).collect();
        Ok(Self {
            name,
            description: described.chars().take(MOST_DESCRIPTION).collect(),
            version: one_line(fields.get("version")),
            license: one_line(fields.get("license")),
            compatibility: one_line(fields.get("compatibility")),
            variables,
            settings: declared(hermes.and_then(|hermes| hermes.get("config")), "key"),
            programs: names(needs.and_then(|needs| needs.get("commands"))),
            credentials: names(fields.get("required_credential_files")),
            guessed,
        })
    }

    /// All texts of the header, as they are after the YAML was parsed: an escape in it hides nothing from who reads these.
    pub fn texts(&self) -> Vec<&str> {
        let declared = self.variables.iter().chain(&self.settings).flat_map(|one| [&one.name, &one.purpose]);
        let plain = [&self.description, &self.version, &self.license, &self.compatibility];
        plain.into_iter().chain(declared).chain(&self.programs).chain(&self.credentials).map(String::as_str).collect()
    }
}

/// Entries that are names, or maps with a name.
fn declared(value: Option<&Value>, key: &str) -> Vec<Declared> {
    let entries: Vec<&Value> = match value {
        Some(Value::Array(entries)) => entries.iter().collect(),
        Some(Value::Null) | None => Vec::new(),
        Some(one) => vec![one],
    };
    let entry = |value: &Value| match value {
        Value::Object(map) => {
            let text = |key: &str| one_line(map.get(key));
            let purposes = ["description", "prompt", "required_for", "help"].map(text);
            Declared {
                name: text(key),
                purpose: purposes.into_iter().find(|text| !text.is_empty()).unwrap_or_default(),
                is_optional: map.get("optional") == Some(&Value::Bool(true)),
            }
        }
        other => Declared { name: one_line(Some(other)), purpose: String::new(), is_optional: false },
    };
    entries.into_iter().map(entry).filter(|one| !one.name.is_empty()).take(MOST_DECLARED).collect()
}

/// A text or a number on one line. Empty for anything else.
fn one_line(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.split_whitespace().collect::<Vec<_>>().join(" "),
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::Bool(flag)) => flag.to_string(),
        _ => String::new(),
    }
}

/// The description of a skill without one: its first line that is not a heading.
fn first_sentence(body: &str) -> Option<String> {
    let line = body.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'))?;
    Some(line.split_whitespace().collect::<Vec<_>>().join(" "))
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

fn parsed(yaml: &str) -> Result<Map<String, Value>, String> {
    if yaml.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_saphyr::from_str_with_options::<Value>(yaml, options()) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(_) => Err("it is not a list of keys and values".to_owned()),
        Err(error) => {
            let text = error.without_snippet().render_with_formatter(&serde_saphyr::UserMessageFormatter);
            Err(text.split_whitespace().collect::<Vec<_>>().join(" "))
        }
    }
}

/// Limits that no front matter needs to exceed. They stop texts that expand through aliases or nesting.
fn options() -> serde_saphyr::Options {
    let mut aliases = serde_saphyr::Options::default().alias_limits;
    aliases.max_total_replayed_events = 1_024;
    aliases.max_replay_stack_depth = 4;
    aliases.max_alias_expansions_per_anchor = 16;
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: 20_000,
            max_aliases: 64,
            max_anchors: 64,
            max_depth: 24,
            max_documents: 1,
            max_nodes: 10_000,
            max_merge_keys: 8,
            flow_nesting_limit: 24,
        },
        alias_limits: aliases,
    }
}

/// A fallback for broken YAML, for example an unquoted description that contains a colon.
fn line_by_line(yaml: &str) -> Map<String, Value> {
    let mut fields = Map::new();
    for line in yaml.lines() {
        let Some((key, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        let quoted = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
        let value = quoted('"').or_else(|| quoted('\'')).unwrap_or(value);
        // Indented keys are skipped: below `metadata:` a `name` means something else.
        if matches!(key, "name" | "description") && !value.is_empty() {
            fields.insert(key.to_owned(), value.into());
        }
    }
    fields
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn all_fields_are_read() {
        let text = "\u{feff}---\nname: deploy\ndescription: >\n  Ships it,\n  safely.\nversion: 1.2\nlicense: MIT\n\
            required_environment_variables:\n  - {name: TOKEN, prompt: Your token, optional: true}\n\
            prerequisites: {env_vars: [KEY], commands: [git, gh]}\nrequired_credential_files: [~/.netrc]\n\
            metadata:\n  hermes:\n    config: [{key: deploy.branch, description: The branch}]\n---\n# Deploy\n";
        let header = SkillHeader::parse(text, None).unwrap();
        let one = |name: &str, purpose: &str, is_optional| Declared {
            name: name.to_owned(),
            purpose: purpose.to_owned(),
            is_optional,
        };
        let expected = SkillHeader {
            name: "deploy".to_owned(),
            description: "Ships it, safely.".to_owned(),
            version: "1.2".to_owned(),
            license: "MIT".to_owned(),
            compatibility: String::new(),
            variables: vec![one("TOKEN", "Your token", true), one("KEY", "", false)],
            settings: vec![one("deploy.branch", "The branch", false)],
            programs: vec!["git".to_owned(), "gh".to_owned()],
            credentials: vec!["~/.netrc".to_owned()],
            guessed: None,
        };
        assert_eq!(header, expected);
    }

    #[test]
    fn the_rule_for_names_and_descriptions_is_that_of_the_plugin() {
        let named = |text: &str| SkillHeader::parse(text, Some("pdf")).map(|header| (header.name, header.description));
        let ok = |name: &str, description: &str| Ok((name.to_owned(), description.to_owned()));
        assert_eq!(named("# PDF\n\nReads   PDF files.\n"), ok("pdf", "Reads PDF files."));
        assert_eq!(named("---\nname: a.b-c_d\ndescription: x\n---\n"), ok("a.b-c_d", "x"));
        // An unquoted colon is the most common mistake.
        assert_eq!(named("---\nname: 'x'\ndescription: Use when: asked\n---\n"), ok("x", "Use when: asked"));
        assert_eq!(named("---\nname: x\n---\n# X\n"), Err(SkillFlaw::NoDescription));
        assert_eq!(named(""), Err(SkillFlaw::NoDescription));
        assert!(matches!(named("---\nname: x\nno value: [\n---\ntext"), Err(SkillFlaw::Guess(_))));
        assert_eq!(SkillHeader::parse("text", None), Err(SkillFlaw::NoName));
        let long = SkillHeader::parse(&format!("---\ndescription: {}\n---\n", "x".repeat(2_000)), Some("x")).unwrap();
        assert_eq!(long.description.len(), MOST_DESCRIPTION);
    }

    #[test]
    fn a_name_is_a_folder_name_on_every_system() {
        for name in ["", ".", "..", ".hidden", "a/b", "a\\b", "nul", "com1", "a.", "a b", "a\nb", &"x".repeat(65)] {
            assert!(!is_skill_name(name), "{name:?}");
        }
        for name in ["pdf", "a.b", "x-1_2", "日本"] {
            assert!(is_skill_name(name), "{name:?}");
        }
    }

    #[test]
    fn a_text_that_expands_or_nests_is_read_line_by_line() {
        let bomb = "name: x\ndescription: y\na: &a [x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a]\n\
            c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b]\nd: [*c, *c, *c, *c, *c, *c, *c, *c, *c]\n";
        for yaml in [bomb.to_owned(), format!("name: x\ndescription: y\na: {}\n", "[".repeat(5_000))] {
            let header = SkillHeader::parse(&format!("---\n{yaml}---\n"), None).unwrap();
            assert!(header.guessed.is_some() && header.description == "y", "{header:?}");
        }
    }
}
