//! Compares the section `config` of a manifest with the type of the configuration.

use std::fs;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde_json::{Map, Value};

use crate::Instance;
use crate::toolbox::described;

const MANIFEST: &str = "plugin.yaml";
const SECTION: &str = "config:";
/// If set, the section is written instead of compared.
const WRITE: &str = "HERMES_WRITE_CONFIG";

/// Fails unless the section `config` in `plugin.yaml` is the schema of the plugin's configuration. The message contains the right
/// section; `HERMES_WRITE_CONFIG=1 cargo test` writes it.
///
/// ```no_run
/// # use hermes_plugin::{Error, Instance, Setup, config};
/// # #[config] struct Config {}
/// # struct Memory;
/// # impl Instance for Memory { type Config = Config; fn new(_: Setup<Config>) -> Result<Self, Error> { Ok(Self) } }
/// #[test]
/// fn the_manifest_describes_the_configuration() {
///     hermes_plugin::testing::check_manifest::<Memory>();
/// }
/// ```
///
/// A section that says more than a type can, for example with `if` and `then`, is better written by hand, without this test.
///
/// # Panics
///
/// If the section differs, or the manifest cannot be read.
pub fn check_manifest<P: Instance<Config: JsonSchema>>() {
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from("."), PathBuf::from);
    let path = folder.join(MANIFEST);
    if let Err(why) = check(&path, &section::<P::Config>(), std::env::var_os(WRITE).is_some()) {
        panic!("{why}");
    }
}

fn check(path: &Path, section: &str, write: bool) -> Result<(), String> {
    let manifest = fs::read_to_string(path).map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    let (before, own, after) = parts(&manifest);
    if plain(&own) == plain(section) {
        return Ok(());
    }
    if write {
        let gap = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
        let written = fs::write(path, format!("{before}{gap}{section}{after}"));
        return written.map_err(|error| format!("{} cannot be written: {error}", path.display()));
    }
    Err(format!(
        "the section `config` in {} does not describe the plugin's configuration. Put this in its place, or run \
         `{WRITE}=1 cargo test`:\n\n{section}",
        path.display()
    ))
}

/// What comes before the section, the section, and what comes after it.
fn parts(manifest: &str) -> (String, String, String) {
    let (mut before, mut own, mut after) = (String::new(), String::new(), String::new());
    for line in manifest.split_inclusive('\n') {
        let belongs = line.starts_with([' ', '\t', '#', '\n', '\r']);
        if !after.is_empty() || !own.is_empty() && !belongs {
            after.push_str(line);
        } else if !own.is_empty() || line.trim_end() == SECTION || line.starts_with("config: ") {
            own.push_str(line);
        } else {
            before.push_str(line);
        }
    }
    (before, own, after)
}

/// The lines without comments and empty ones.
fn plain(section: &str) -> Vec<&str> {
    let lines = section.lines().map(str::trim_end);
    lines.filter(|line| !line.is_empty() && !line.trim_start().starts_with('#')).collect()
}

/// The section for a type; empty if it has no settings.
fn section<C: JsonSchema>() -> String {
    let (_, schema) = described::<C>();
    if schema["properties"].as_object().is_none_or(Map::is_empty) {
        return String::new();
    }
    let mut out = format!("{SECTION}\n");
    write(&schema, 1, &mut out);
    out
}

/// Writes the entries of a mapping: `type` first, and the description last.
fn write(schema: &Value, level: usize, out: &mut String) {
    let Some(entries) = schema.as_object() else { return };
    let rank = |key: &str| match key {
        "type" => 0,
        "default" => 2,
        "properties" | "items" => 3,
        "required" => 4,
        "description" => 5,
        _ => 1,
    };
    let mut entries: Vec<(&String, &Value)> = entries.iter().collect();
    entries.sort_by_key(|(key, _)| rank(key));
    for (key, value) in entries {
        out.push_str(&"  ".repeat(level));
        out.push_str(&scalar(key));
        match value {
            Value::Object(inner) if !inner.is_empty() => {
                out.push_str(":\n");
                write(value, level + 1, out);
            }
            Value::String(text) if key == "description" => {
                out.push_str(&format!(": {}\n", scalar(&text.replace('\n', " "))));
            }
            _ => out.push_str(&format!(": {}\n", flow(value))),
        }
    }
}

/// A value in one line.
fn flow(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        Value::Array(values) => format!("[{}]", values.iter().map(flow_inner).collect::<Vec<_>>().join(", ")),
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 1e15 => format!("{float:.0}"),
            _ => number.to_string(),
        },
        _ => value.to_string(),
    }
}

/// Texts in a list are always quoted: a comma or a bracket would end them.
fn flow_inner(value: &Value) -> String {
    if value.is_string() { value.to_string() } else { flow(value) }
}

/// A text, quoted unless YAML reads it as this text anyway.
fn scalar(text: &str) -> String {
    let begins = text.chars().next().is_some_and(char::is_alphabetic);
    let clear = !text.contains(": ") && !text.contains(" #") && !text.contains(['\n', '\t']);
    let reserved = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let word = reserved.iter().any(|word| text.eq_ignore_ascii_case(word));
    let ends = text.ends_with([':', ' ']);
    if begins && clear && !word && !ends { text.to_owned() } else { Value::from(text).to_string() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, dead_code)]
mod tests {
    use super::*;
    use crate::config;

    #[config]
    struct Config {
        /// A line that begins with
        /// this word: it is remembered.
        #[schemars(length(min = 1))]
        #[serde(default = "remember")]
        keyword: String,
        #[schemars(range(min = 1, max = 20))]
        turns: u32,
        #[schemars(extend("exclusiveMinimum" = 0), range(max = 1.0))]
        #[serde(default)]
        share: f64,
        /// Texts.
        #[serde(default)]
        ask_for: Vec<String>,
        mode: Option<Mode>,
    }

    #[config]
    #[serde(rename_all = "lowercase")]
    enum Mode {
        On,
        Off,
    }

    fn remember() -> String {
        "remember".to_owned()
    }

    const YAML: &str = r#"config:
  type: object
  properties:
    keyword:
      type: string
      minLength: 1
      default: remember
      description: "A line that begins with this word: it is remembered."
    turns:
      type: integer
      maximum: 20
      minimum: 1
    share:
      type: number
      exclusiveMinimum: 0
      maximum: 1
      default: 0
    ask_for:
      type: array
      default: []
      items:
        type: string
      description: Texts.
    mode:
      type: string
      enum: ["on", "off"]
  required: ["turns"]
"#;

    #[test]
    fn a_type_becomes_a_section_of_the_manifest() {
        assert_eq!(section::<Config>(), YAML);
        assert_eq!(section::<()>(), "");
    }

    #[test]
    fn a_section_that_differs_is_reported_or_written() {
        let folder = std::env::temp_dir().join(format!("hermes-plugin-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join(MANIFEST);
        let old = "name: a\nconfig:\n  # old\n  type: object\napi: \"1\"\n";
        fs::write(&path, old).unwrap();
        let why = check(&path, YAML, false).unwrap_err();
        assert!(why.contains(YAML) && why.contains("HERMES_WRITE_CONFIG=1 cargo test"), "{why}");
        assert_eq!(fs::read_to_string(&path).unwrap(), old);
        check(&path, YAML, true).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("name: a\n{YAML}api: \"1\"\n"));
        fs::write(&path, format!("name: a\n{}", YAML.replace("    turns:", "\n    # how many\n    turns:"))).unwrap();
        assert_eq!(check(&path, YAML, false), Ok(()), "comments may differ");
        fs::write(&path, "name: a").unwrap();
        check(&path, YAML, true).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("name: a\n{YAML}"));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn texts_that_yaml_reads_otherwise_are_quoted() {
        for text in ["no", "1", "a: b", "a #b", "- a", "", "a:", "~", "[a"] {
            assert_eq!(scalar(text), format!("\"{text}\""));
        }
        for text in ["remember", "A line of the user's message, with a comma."] {
            assert_eq!(scalar(text), text);
        }
    }
}
