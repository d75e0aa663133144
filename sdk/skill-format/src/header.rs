//! What a `SKILL.md` says about its skill.

use crate::flaw::Flaw;
use crate::front_matter::{self, Parts};
use crate::name::{MOST_NAME, is_name};
use crate::yaml::Yaml;

/// Most characters of a description; the rest is cut.
pub const MOST_DESCRIPTION: usize = 1_024;
/// Most variables, programs, files or settings of a skill; the rest is ignored.
pub const MOST_DECLARED: usize = 32;

/// What a `SKILL.md` says about its skill. All texts are on one line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Header {
    /// The name by which the model and the user know it.
    pub name: String,
    /// When to use it.
    pub description: String,
    /// Its version.
    pub version: String,
    /// Its license.
    pub license: String,
    /// What it needs, in the words of its author.
    pub compatibility: String,
    /// Its category, if it names one.
    pub category: Option<String>,
    /// Its tags.
    pub tags: Vec<String>,
    /// The systems on which it works, in lower case; none for all.
    pub platforms: Vec<String>,
    /// The toolsets without which it does not apply.
    pub requires_toolsets: Vec<String>,
    /// The toolsets that it replaces.
    pub fallback_for_toolsets: Vec<String>,
    /// The tools without which it does not apply.
    pub requires_tools: Vec<String>,
    /// The tools that it replaces.
    pub fallback_for_tools: Vec<String>,
    /// Variables that it needs, perhaps with `prompt`, `help`, `required_for`, `description` and `optional`.
    pub variables: Vec<Item>,
    /// Programs that it needs.
    pub programs: Vec<String>,
    /// Settings of the user that it reads, perhaps with `description`, `default` and `prompt`.
    pub settings: Vec<Item>,
    /// Files with credentials that it reads.
    pub credentials: Vec<String>,
    /// Why the YAML could not be parsed, so that fields were guessed line by line.
    pub guessed: Option<String>,
    /// All texts of the front matter, keys included, after the YAML was parsed, so that no escape hides one from the scan.
    pub texts: Vec<String>,
}

/// A variable or a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Its name.
    pub name: String,
    /// What else is known about it, by key.
    pub fields: Vec<(&'static str, String)>,
}

impl Item {
    /// A field that is not empty.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.fields.iter().find(|(name, _)| *name == key).map(|(_, text)| text.as_str())
    }

    /// Whether the skill works without it.
    pub fn is_optional(&self) -> bool {
        self.get("optional").is_some_and(|text| ["true", "yes"].contains(&text.to_lowercase().as_str()))
    }
}

impl Header {
    /// Reads the text of a `SKILL.md`. Without a name in it, the skill has that of its folder; without a description, the first
    /// line below the front matter that is not a heading takes its place.
    ///
    /// # Errors
    ///
    /// When the skill has no front matter, no valid name, or no description.
    ///
    /// ```
    /// use hermes_skill_format::Header;
    ///
    /// let tea = Header::parse("---\ndescription: Brews tea.\n---\nUse water.\n", Some("tea"))?;
    /// assert_eq!((tea.name.as_str(), tea.description.as_str()), ("tea", "Brews tea."));
    /// # Ok::<(), hermes_skill_format::Flaw>(())
    /// ```
    pub fn parse(text: &str, folder: Option<&str>) -> Result<Self, Flaw> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let Parts { is_there, yaml, body, broken } = front_matter::split(text);
        if !is_there {
            return Err(Flaw::NoFrontMatter);
        }
        let name = given(yaml.get("name")).or_else(|| folder.map(str::to_owned)).ok_or(Flaw::NoName)?;
        if name.chars().count() > MOST_NAME {
            return Err(Flaw::LongName);
        }
        if !is_name(&name) {
            return Err(Flaw::Name(name));
        }
        // What a broken front matter should have said may stand anywhere else.
        let described = match (given(yaml.get("description")), &broken) {
            (Some(described), _) => described,
            (None, None) => first_sentence(body).ok_or(Flaw::NoDescription)?,
            (None, Some(why)) => return Err(Flaw::Guess(why.clone())),
        };
        let mut texts = Vec::new();
        yaml.collect(&mut texts);
        let fields = Self { name, guessed: broken, texts, ..Self::of(&yaml) };
        Ok(Self { description: described.chars().take(MOST_DESCRIPTION).collect(), ..fields })
    }

    /// The fields without a rule. A key under `metadata.hermes` comes before the same key at the top level.
    fn of(yaml: &Yaml) -> Self {
        let hermes = yaml.get("metadata").and_then(|metadata| metadata.get("hermes"));
        let own = |key: &str| hermes.and_then(|hermes| hermes.get(key));
        let either = |key: &str| own(key).or_else(|| yaml.get(key));
        let needs = |key: &str| yaml.get("prerequisites").and_then(|needs| needs.get(key));
        let text = |key: &str| given(yaml.get(key)).unwrap_or_default();
        const ABOUT_VARIABLE: [&str; 5] = ["prompt", "help", "required_for", "description", "optional"];
        let variables = items(either("required_environment_variables"), "name", &ABOUT_VARIABLE)
            .chain(items(needs("env_vars"), "name", &[]))
            .chain(items(yaml.get("setup").and_then(|setup| setup.get("collect_secrets")), "env_var", &["prompt"]));
        let names = |value| distinct(items(value, "path", &[])).into_iter().map(|item| item.name).collect();
        Self {
            version: text("version"),
            license: text("license"),
            compatibility: text("compatibility"),
            category: given(either("category")),
            tags: list(either("tags")),
            platforms: list(yaml.get("platforms")).iter().map(|platform| platform.to_lowercase()).collect(),
            requires_toolsets: list(own("requires_toolsets")),
            fallback_for_toolsets: list(own("fallback_for_toolsets")),
            requires_tools: list(own("requires_tools")),
            fallback_for_tools: list(own("fallback_for_tools")),
            variables: distinct(variables),
            programs: list(needs("commands")).into_iter().take(MOST_DECLARED).collect(),
            settings: distinct(items(own("config"), "key", &["description", "default", "prompt"])),
            credentials: names(yaml.get("required_credential_files")),
            ..Self::default()
        }
    }
}

/// A text on one line, unless it is blank.
fn given(value: Option<&Yaml>) -> Option<String> {
    value.and_then(Yaml::text).map(one_line).filter(|text| !text.is_empty())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The description of a skill without one: its first line that is not a heading.
fn first_sentence(body: &str) -> Option<String> {
    body.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#')).map(one_line)
}

/// Accepts a list, a single item, or several items in one text.
fn list(value: Option<&Yaml>) -> Vec<String> {
    match value {
        Some(Yaml::List(list)) => list.iter().filter_map(|item| given(Some(item))).collect(),
        Some(Yaml::Text(text)) => front_matter::items(text).map(one_line).collect(),
        _ => Vec::new(),
    }
}

/// The items of a list, each a name or a map that has the name under `key`.
fn items<'y>(value: Option<&'y Yaml>, key: &'y str, about: &'y [&'static str]) -> impl Iterator<Item = Item> + use<'y> {
    let items = match value {
        Some(Yaml::List(items)) => items.as_slice(),
        Some(item) => std::slice::from_ref(item),
        None => &[],
    };
    items.iter().filter_map(move |item| {
        let name = given(Some(item)).or_else(|| given(item.get(key)))?;
        let fields = about.iter().filter_map(|about| Some((*about, given(item.get(about))?))).collect();
        Some(Item { name, fields })
    })
}

/// The first of those with the same name.
fn distinct(items: impl Iterator<Item = Item>) -> Vec<Item> {
    let mut kept: Vec<Item> = Vec::new();
    for item in items {
        if kept.len() < MOST_DECLARED && !kept.iter().any(|earlier| earlier.name == item.name) {
            kept.push(item);
        }
    }
    kept
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Header {
        Header::parse(text, None).unwrap()
    }

    #[test]
    fn all_fields_are_read() {
        let text = "\u{feff}---\nname: deploy\ndescription: >\n  Ships it,\n  safely.\nversion: 1.2\nlicense: MIT\n\
            platforms: [Linux, macos]\nrequired_credential_files: [~/.netrc]\nmetadata:\n  other: {a: 1}\n  hermes:\n    \
            tags: [ops, ci]\n    category: work\n    requires_toolsets: terminal\n    requires_tools: [web_search]\n    \
            fallback_for_tools: browse\n    fallback_for_toolsets:\n      - web\n---\n# Deploy\n";
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let header = parse(text);
        assert!(
            ["other", "1", "Ships it,  safely.\n"]
                .iter()
                .all(|text| { header.texts.iter().any(|known| known.split_whitespace().eq(text.split_whitespace())) })
        );
        let expected = Header {
            name: "deploy".to_owned(),
            description: "Ships it, safely.".to_owned(),
            version: "1.2".to_owned(),
            license: "MIT".to_owned(),
            category: Some("work".to_owned()),
            tags: owned(&["ops", "ci"]),
            platforms: owned(&["linux", "macos"]),
            requires_toolsets: owned(&["terminal"]),
            fallback_for_toolsets: owned(&["web"]),
            requires_tools: owned(&["web_search"]),
            fallback_for_tools: owned(&["browse"]),
            credentials: owned(&["~/.netrc"]),
            texts: header.texts.clone(),
            ..Header::default()
        };
        assert_eq!(header, expected);
    }

    #[test]
    fn variables_programs_and_settings_are_names_or_maps() {
        let text = "---\nname: wiki\ndescription: x\nprerequisites:\n  env_vars: [WIKI_KEY, OTHER]\n  commands: [pandoc]\n\
            required_environment_variables:\n  - name: WIKI_KEY\n    prompt: Your key\n    help: |\n      See\n      the site.\n    \
            optional: true\n  - PLAIN\n  - {help: nameless}\nsetup:\n  collect_secrets:\n    - {env_var: TOKEN, prompt: A token}\n\
            metadata:\n  hermes:\n    config:\n      - {key: wiki.path, description: Where it lies, default: ~/wiki, prompt: Path}\n      \
            - {description: keyless}\n---\n";
        let header = parse(text);
        let item = |name: &str, fields: &[(&'static str, &str)]| Item {
            name: name.to_owned(),
            fields: fields.iter().map(|(key, text)| (*key, (*text).to_owned())).collect(),
        };
        let key = item("WIKI_KEY", &[("prompt", "Your key"), ("help", "See the site."), ("optional", "true")]);
        assert!(key.is_optional());
        assert_eq!(
            header.variables,
            [key, item("PLAIN", &[]), item("OTHER", &[]), item("TOKEN", &[("prompt", "A token")])]
        );
        let about = [("description", "Where it lies"), ("default", "~/wiki"), ("prompt", "Path")];
        assert_eq!(header.settings, [item("wiki.path", &about)]);
        assert_eq!(header.programs, ["pandoc"]);
    }

    #[test]
    fn broken_yaml_is_guessed_line_by_line() {
        let text = "---\r\nname: 'pdf'\r\ndescription: Use when: a PDF is given\r\nplatforms: [linux]\r\nmetadata:\r\n  hermes:\r\n    tags: [a, \"b\"]\r\n    name: other\r\n---\r\nBody";
        let header = parse(text);
        assert!(header.guessed.is_some());
        assert_eq!((header.name.as_str(), header.description.as_str()), ("pdf", "Use when: a PDF is given"));
        assert_eq!((header.platforms, header.tags), (vec!["linux".to_owned()], vec!["a".to_owned(), "b".to_owned()]));
    }

    /// As people write it, and as templates and editors on Windows leave it.
    #[test]
    fn a_description_is_read_to_its_end() {
        for (lines, expected) in [
            (
                "description: Use for remote work over\nssh and tunnels, when asked",
                "Use for remote work over ssh and tunnels, when asked",
            ),
            ("description: Use for remote work over\nssh: and tunnels\nversion: 1", "Use for remote work over"),
            (
                "description: Use for\ndesign work: plan first\nNote: not for tea\nversion: 1",
                "Use for design work: plan first Note: not for tea",
            ),
            (
                "description:\n  Pairs well with a\n  design skill: plan first\nversion: 1",
                "Pairs well with a design skill: plan first",
            ),
            ("description:\n\tPairs: well\n\twith tabs\nmetadata:\n\tversion: 1", "Pairs: well with tabs"),
            ("description: >-\n  Folded: text\n  of two lines\nother: a: b", "Folded: text of two lines"),
            ("description: |\n  Literal text\n  of two lines\nother: a: b\n  c", "Literal text of two lines"),
            ("Description: Brews tea\nVERSION: 1", "Brews tea"),
            ("DESCRIPTION: Brews: tea\nand more", "Brews: tea and more"),
            ("\"description\": Brews: tea", "Brews: tea"),
            ("description : Brews: tea", "Brews: tea"),
            ("description: Brews tea\n# a comment\nother: a: b", "Brews tea"),
        ] {
            for lines in [lines.to_owned(), lines.replace('\n', "\r\n")] {
                let header = parse(&format!("\u{feff}\r\n\n---\nName: tea\n{lines}\n---\nBody.\n"));
                assert_eq!((header.name.as_str(), header.description.as_str()), ("tea", expected), "{lines}");
            }
        }
        let exact = parse("---\nname: tea\nDescription: other\ndescription: this\n---\n");
        assert_eq!(exact.description, "this");
    }

    #[test]
    fn a_text_without_front_matter_is_no_skill() {
        for text in
            ["", "Use water.\n", "# Tea\n\nname: tea\ndescription: Brews tea.\n", "x\n---\ndescription: x\n---\n"]
        {
            assert_eq!(Header::parse(text, Some("tea")), Err(Flaw::NoFrontMatter), "{text:?}");
        }
    }

    #[test]
    fn nothing_is_guessed_where_a_quotation_mark_or_a_bracket_is_missing() {
        for line in [
            "description: \"x",
            "description: 'x",
            "description: x\nfoo: [",
            "description: x\nfoo: {a: 1",
            "description: x\nfoo: \"a",
        ] {
            let found = Header::parse(&format!("---\nname: tea\n{line}\n---\nUse water.\n"), Some("tea"));
            assert!(matches!(found, Err(Flaw::Guess(_))), "{line}: {found:?}");
        }
        // Real skills have these.
        for described in
            ["Use when: a PDF is given", "\"Reads\" a PDF: all of it", "It's for: x", "[beta] Use: x", "'It's for: x'"]
        {
            let header = parse(&format!("---\nname: tea\ndescription: {described}\ntags: [a,\n  b: c: d]\n---\n"));
            assert!(header.guessed.is_some() && described.contains(&header.description), "{header:?}");
        }
    }

    #[test]
    fn two_descriptions_make_a_skill_broken() {
        for lines in ["description: x\ndescription: y", "description: a: b\ndescription: y", "name: a\nname: b"] {
            let found = Header::parse(&format!("---\n{lines}\n---\nUse water.\n"), Some("tea"));
            assert!(matches!(found, Err(Flaw::Guess(_))), "{lines}: {found:?}");
        }
        assert_eq!(parse("---\nname: tea\ndescription: x\ndescription: x\n---\n").description, "x");
    }

    #[test]
    fn keys_without_a_value_and_values_of_another_kind_count_as_absent() {
        let header = parse("---\nname: a\ndescription:\nplatforms:\nlicense: [x]\nmetadata:\n---\nText.\n");
        assert_eq!((header.guessed, header.license.as_str(), header.description.as_str()), (None, "", "Text."));
    }

    #[test]
    fn a_text_that_expands_or_nests_is_harmless() {
        let bomb = "name: x\ndescription: y\na: &a [x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a]\n\
            c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b]\nd: [*c, *c, *c, *c, *c, *c, *c, *c, *c]\n";
        let header = parse(&format!("---\n{bomb}---\n"));
        assert!(header.texts.len() < 20 && header.description == "y", "{header:?}");
        let nested = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
        let header = parse(&format!("---\nname: x\ndescription: y\na: {nested}\n---\n"));
        assert!(header.guessed.is_some() && header.description == "y", "{header:?}");
    }
}
