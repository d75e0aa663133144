//! Parses the front matter of a `SKILL.md`: the YAML between two lines of `---` at its top.

use serde_json::{Value, json};

use crate::yaml::{self, Yaml};

/// The most variables, programs or settings of a skill.
const DECLARED: usize = 32;

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct FrontMatter {
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) category: Option<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) platforms: Vec<String>,
    pub(crate) requires_toolsets: Vec<String>,
    pub(crate) fallback_for_toolsets: Vec<String>,
    pub(crate) requires_tools: Vec<String>,
    pub(crate) fallback_for_tools: Vec<String>,
    /// Variables that it needs, with `name` and perhaps `prompt`, `help`, `required_for` and `optional`.
    pub(crate) variables: Vec<Value>,
    /// Programs that it needs.
    pub(crate) commands: Vec<String>,
    /// Settings of the user that it reads, with `key` and perhaps `description`, `default` and `prompt`.
    pub(crate) settings: Vec<Value>,
}

impl FrontMatter {
    /// What the contract's record of a skill has no fields for, as the host reads it.
    pub(crate) fn extra(&self) -> Vec<(String, String)> {
        let texts =
            |key: &str, texts: &[String]| texts.iter().map(|text| (key.to_owned(), text.clone())).collect::<Vec<_>>();
        let values = |key: &str, values: &[Value]| {
            values.iter().map(|value| (key.to_owned(), value.to_string())).collect::<Vec<_>>()
        };
        [
            texts("requires-tool", &self.requires_tools),
            texts("fallback-for-tool", &self.fallback_for_tools),
            texts("command", &self.commands),
            values("variable", &self.variables),
            values("setting", &self.settings),
        ]
        .concat()
    }
}

/// The two parts of a `SKILL.md`.
pub(crate) struct Parts<'t> {
    pub(crate) front: FrontMatter,
    pub(crate) body: &'t str,
    /// Why the YAML could not be parsed, so that fields were guessed line by line.
    pub(crate) warning: Option<String>,
}

pub(crate) fn split(text: &str) -> Parts<'_> {
    let Some((yaml, body)) = fenced(text) else {
        return Parts { front: FrontMatter::default(), body: text, warning: None };
    };
    if yaml.trim().is_empty() {
        return Parts { front: FrontMatter::default(), body, warning: None };
    }
    match yaml::parse(yaml) {
        Ok(yaml) => Parts { front: understand(&yaml), body, warning: None },
        Err(warning) => Parts { front: line_by_line(yaml), body, warning: Some(warning) },
    }
}

/// Extracts the fields. A key under `metadata.hermes` overrides the same key at the top level.
fn understand(yaml: &Yaml) -> FrontMatter {
    let hermes = yaml.get("metadata").and_then(|metadata| metadata.get("hermes"));
    let either = |key: &str| hermes.and_then(|hermes| hermes.get(key)).or_else(|| yaml.get(key));
    let text = |value: Option<&Yaml>| value.and_then(Yaml::text).map(str::to_owned);
    let prerequisites = |key: &str| yaml.get("prerequisites").and_then(|prerequisites| prerequisites.get(key));
    let variables =
        named(either("required_environment_variables"), "name", &["prompt", "help", "required_for", "optional"])
            .chain(named(prerequisites("env_vars"), "name", &[]))
            .chain(named(yaml.get("setup").and_then(|setup| setup.get("collect_secrets")), "env_var", &["prompt"]));
    FrontMatter {
        name: text(yaml.get("name")),
        description: text(yaml.get("description")),
        category: text(either("category")),
        tags: list(either("tags")),
        platforms: list(yaml.get("platforms")),
        requires_toolsets: list(hermes.and_then(|hermes| hermes.get("requires_toolsets"))),
        fallback_for_toolsets: list(hermes.and_then(|hermes| hermes.get("fallback_for_toolsets"))),
        requires_tools: list(hermes.and_then(|hermes| hermes.get("requires_tools"))),
        fallback_for_tools: list(hermes.and_then(|hermes| hermes.get("fallback_for_tools"))),
        variables: distinct(variables, "name"),
        commands: list(prerequisites("commands")).into_iter().take(DECLARED).collect(),
        settings: distinct(
            named(hermes.and_then(|hermes| hermes.get("config")), "key", &["description", "default", "prompt"]),
            "key",
        ),
    }
}

/// The items of a list, each a name or a map that has it under `key`, as JSON with the other known keys. The name of a variable
/// stands under `name` in any case.
fn named<'y>(list: Option<&'y Yaml>, key: &'y str, others: &'y [&str]) -> impl Iterator<Item = Value> + use<'y> {
    let items = match list {
        Some(Yaml::List(items)) => items.as_slice(),
        Some(item) => std::slice::from_ref(item),
        None => &[],
    };
    let under = if key == "env_var" { "name" } else { key };
    items.iter().filter_map(move |item| {
        let name = item.text().or_else(|| item.get(key).and_then(Yaml::text))?.trim();
        let mut value = json!({ under: name });
        for other in others {
            if let Some(text) = item.get(other).and_then(Yaml::text) {
                value[*other] = json!(text.split_whitespace().collect::<Vec<_>>().join(" "));
            }
        }
        (!name.is_empty()).then_some(value)
    })
}

/// The first of those with the same name.
fn distinct(values: impl Iterator<Item = Value>, key: &str) -> Vec<Value> {
    let mut kept: Vec<Value> = Vec::new();
    for value in values {
        if kept.len() < DECLARED && !kept.iter().any(|earlier| earlier[key] == value[key]) {
            kept.push(value);
        }
    }
    kept
}

/// Accepts a list, a single item, or several items in one text.
fn list(value: Option<&Yaml>) -> Vec<String> {
    match value {
        Some(Yaml::List(list)) => list.iter().filter_map(Yaml::text).map(str::to_owned).collect(),
        Some(Yaml::Text(text)) => items(text),
        _ => Vec::new(),
    }
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
fn line_by_line(yaml: &str) -> FrontMatter {
    let mut front = FrontMatter::default();
    for line in yaml.lines() {
        let Some((key, value)) = line.split_once(':') else {
            continue;
        };
        let value = unquoted(value.trim());
        if value.is_empty() {
            continue;
        }
        let (text, several) = (Some(value.to_owned()), || items(value));
        // Ignore indented keys: below `metadata:` a `name` means something else.
        let indented = key.starts_with([' ', '\t']);
        match key.trim() {
            "name" if !indented => front.name = text,
            "description" if !indented => front.description = text,
            "category" => front.category = text,
            "tags" => front.tags = several(),
            "platforms" => front.platforms = several(),
            "requires_toolsets" => front.requires_toolsets = several(),
            "fallback_for_toolsets" => front.fallback_for_toolsets = several(),
            "requires_tools" => front.requires_tools = several(),
            "fallback_for_tools" => front.fallback_for_tools = several(),
            _ => {}
        }
    }
    front
}

fn unquoted(value: &str) -> &str {
    let inner = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    inner('"').or_else(|| inner('\'')).unwrap_or(value)
}

fn items(value: &str) -> Vec<String> {
    let value = value.strip_prefix('[').and_then(|value| value.strip_suffix(']')).unwrap_or(value);
    value.split(',').map(|item| unquoted(item.trim()).to_owned()).filter(|item| !item.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_fields_are_parsed() {
        let text = "---\nname: deploy\ndescription: >\n  Ships it,\n  safely.\nversion: 1.2\nplatforms: [linux, macos]\n\
            metadata:\n  other: {a: 1}\n  hermes:\n    tags: [ops, ci]\n    category: work\n    requires_toolsets: terminal\n    \
            fallback_for_toolsets:\n      - web\n---\n# Deploy\n";
        let Parts { front, body, warning } = split(text);
        assert_eq!(warning, None);
        assert_eq!(body, "# Deploy\n");
        assert_eq!(front.name.as_deref(), Some("deploy"));
        assert_eq!(front.description.as_deref().map(str::trim), Some("Ships it, safely."));
        assert_eq!(front.platforms, ["linux", "macos"]);
        assert_eq!(
            (front.category.as_deref(), front.tags.as_slice()),
            (Some("work"), ["ops".to_owned(), "ci".to_owned()].as_slice())
        );
        assert_eq!(
            (front.requires_toolsets.as_slice(), front.fallback_for_toolsets.as_slice()),
            (["terminal".to_owned()].as_slice(), ["web".to_owned()].as_slice())
        );
    }

    #[test]
    fn declared_variables_programs_settings_and_tools_are_named_for_the_host() {
        let text = "---\nname: wiki\ndescription: x\nprerequisites:\n  env_vars: [WIKI_KEY, OTHER]\n  commands: [pandoc]\n\
            required_environment_variables:\n  - name: WIKI_KEY\n    prompt: Your key\n    help: |\n      See\n      the site.\n    \
            optional: true\n  - PLAIN\n  - {help: nameless}\nsetup:\n  collect_secrets:\n    - {env_var: TOKEN, prompt: A token}\n\
            metadata:\n  hermes:\n    requires_tools: [web_search]\n    fallback_for_tools: browse\n    config:\n      \
            - {key: wiki.path, description: Where it lies, default: ~/wiki, prompt: Path}\n      - {description: keyless}\n---\n";
        let extra = split(text).front.extra();
        let seen: Vec<String> = extra.iter().map(|(key, value)| format!("{key} {value}")).collect();
        assert_eq!(
            seen,
            [
                "requires-tool web_search",
                "fallback-for-tool browse",
                "command pandoc",
                r#"variable {"name":"WIKI_KEY","prompt":"Your key","help":"See the site.","optional":"true"}"#,
                r#"variable {"name":"PLAIN"}"#,
                r#"variable {"name":"OTHER"}"#,
                r#"variable {"name":"TOKEN","prompt":"A token"}"#,
                r#"setting {"key":"wiki.path","description":"Where it lies","default":"~/wiki","prompt":"Path"}"#,
            ]
        );
    }

    #[test]
    fn broken_yaml_is_guessed_line_by_line() {
        let text = "---\r\nname: 'pdf'\r\ndescription: Use when: a PDF is given\r\nplatforms: [linux]\r\nmetadata:\r\n  hermes:\r\n    tags: [a, \"b\"]\r\n---\r\nBody";
        let Parts { front, body, warning } = split(text);
        assert!(warning.is_some());
        assert_eq!(
            (front.name.as_deref(), front.description.as_deref()),
            (Some("pdf"), Some("Use when: a PDF is given"))
        );
        assert_eq!(
            (front.platforms.as_slice(), front.tags.as_slice()),
            (["linux".to_owned()].as_slice(), ["a".to_owned(), "b".to_owned()].as_slice())
        );
        assert_eq!(body, "Body");
    }

    #[test]
    fn texts_without_front_matter_are_recognised() {
        for text in ["# Title\nText", "", "---\nname: x\nno end", "text\n---\nname: x\n---\n"] {
            let parts = split(text);
            assert_eq!((parts.front, parts.body), (FrontMatter::default(), text));
        }
        assert_eq!(split("---\n---\nBody").body, "Body");
    }

    #[test]
    fn keys_without_a_value_count_as_absent() {
        let Parts { front, warning, .. } = split("---\nname: a\ndescription:\nplatforms:\nmetadata:\n---\n");
        assert_eq!(warning, None);
        assert_eq!(front, FrontMatter { name: Some("a".into()), ..FrontMatter::default() });
    }
}
