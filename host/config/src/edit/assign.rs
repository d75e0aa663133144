//! `hermes config set` and `unset`: values as they are typed on a command line, checked before anything is written.

use serde_json::{Map, Value};

use super::{Edit, names, text};
use crate::keys::{KEYS, nearest};
use crate::{Config, codes, schema};
use hermes_diagnostic::{Action, Diagnostic, Fix};

/// `model: NAME` is short for a section with this key.
const SHORT: (&str, &str) = ("model", "model.default");

impl Edit {
    /// Sets a key to a typed value: the text itself where the key takes a text, else YAML. The key must be known and the
    /// value must fit; `variable` returns the value of `${NAME}`.
    ///
    /// # Errors
    ///
    /// When the key is unknown or a section, when the value does not fit, or when the file cannot be changed safely.
    pub fn assign(
        &mut self,
        key: &str,
        typed: &str,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(), Diagnostic> {
        let key = if key == SHORT.0 { SHORT.1 } else { key };
        if KEYS.is_section(key) || key.split('.').any(str::is_empty) {
            let why = format!("`{key}` is not one value");
            let fix = format!("name a key of it, such as `{}`", first_key(key));
            return Err(self.unchanged(why, fix));
        }
        self.assign_value(key, &parsed(key, typed), variable)
    }

    /// Sets a key to a value that is used as it is: no text in it is read as YAML. The key must be known and the value must fit.
    ///
    /// # Errors
    ///
    /// Like [`Edit::assign`].
    pub fn assign_value(
        &mut self,
        key: &str,
        value: &Value,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(), Diagnostic> {
        if value.is_null() {
            let fix = format!("to return to the default, run `hermes config unset {key}`");
            return Err(self.unchanged("the value is empty", fix));
        }
        self.check(key, value, variable)?;
        self.lengthen(key)?;
        self.set(key, value)
    }

    /// Removes a key, so that its default holds again. Returns whether it was set.
    ///
    /// # Errors
    ///
    /// When the file cannot be changed safely.
    pub fn unset(&mut self, key: &str) -> Result<bool, Diagnostic> {
        let is_short = text::read(&self.text).is_ok_and(|root| root[SHORT.0].is_string());
        let key = if is_short && key == SHORT.1 { SHORT.0 } else { key };
        self.remove(key)?;
        Ok(self.is_changed())
    }

    /// Reads a file with nothing but the key, as a start would read it.
    fn check(&self, key: &str, value: &Value, variable: &dyn Fn(&str) -> Option<String>) -> Result<(), Diagnostic> {
        let wrapped = |inner, name: &&str| Value::Object(Map::from_iter([((*name).to_owned(), inner)]));
        let alone = names(key).iter().rev().fold(value.clone(), wrapped).to_string();
        let read =
            Config::parse(&alone, &self.file, variable).map_err(|misfit| self.unchanged(misfit.why, misfit.fix))?;
        let Some(warning) = read.warnings().first() else { return Ok(()) };
        let place = format!("{}:1: ", self.file.display());
        let why = warning.strip_prefix(&place).unwrap_or(warning);
        let (why, fix) = match nearest(key) {
            Some(near) if why.contains("key") => {
                let meant = format!("did you mean `{near}`?");
                // The warning of a start has both.
                (why.strip_suffix(&format!("; {meant}")).unwrap_or(why), Fix::words(meant))
            }
            _ => (why, Action::CorrectSetting.into()),
        };
        Err(self.unchanged(why, fix))
    }

    /// Makes room for another key of the model where the file has the short form `model: NAME`.
    ///
    /// # Errors
    ///
    /// When the file cannot be changed safely.
    pub fn lengthen(&mut self, key: &str) -> Result<(), Diagnostic> {
        let name = text::read(&self.text).ok().and_then(|root| root[SHORT.0].as_str().map(str::to_owned));
        let Some(name) = name.filter(|_| key.starts_with("model.")) else { return Ok(()) };
        self.remove(SHORT.0)?;
        self.set(SHORT.1, &name.into())
    }

    fn unchanged(&self, why: impl Into<String>, fix: impl Into<Fix>) -> Diagnostic {
        Diagnostic::new(codes::VALUE, format!("{} was not changed", self.file.display()), why, fix)
    }
}

/// The value that a text means for a key.
fn parsed(key: &str, typed: &str) -> Value {
    let takes_text = schema::is_text(schema_of(key));
    let yaml = || serde_saphyr::from_str(typed).unwrap_or_else(|_| Value::from(typed));
    if takes_text && !typed.is_empty() { Value::from(typed) } else { yaml() }
}

fn schema_of(key: &str) -> &'static Value {
    key.split('.').fold(&*schema::TYPES, |section, name| schema::member(section, name))
}

fn first_key(section: &str) -> String {
    let inside = |path: &&str| section.is_empty() || path.starts_with(&format!("{section}."));
    KEYS.iter().map(|key| key.path.as_str()).find(inside).unwrap_or("model.default").to_owned()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn edit(text: &str) -> Edit {
        Edit { file: PathBuf::from("config.yaml"), before: text.to_owned(), text: text.to_owned() }
    }

    fn assigned(before: &str, key: &str, typed: &str) -> Result<String, Diagnostic> {
        let mut edit = edit(before);
        edit.assign(key, typed, &|name| (name == "SET").then(|| "30".to_owned())).map(|()| edit.text)
    }

    #[test]
    fn a_typed_value_gets_the_type_of_its_key() {
        for (before, key, typed, after) in [
            ("", "model.default", "openai/gpt-4.1", "model:\n  default: openai/gpt-4.1\n"),
            ("", "model.default", "4.1", "model:\n  default: '4.1'\n"),
            ("model: old # mine\n", "model", "new", "model:\n  default: new\n"),
            ("model: old\n", "model.context_length", "64000", "model:\n  default: old\n  context_length: 64000\n"),
            ("# a\nagent:\n  max_turns: 5 # b\n", "agent.max_turns", "7", "# a\nagent:\n  max_turns: 7 # b\n"),
            ("", "plugins.enabled", "[dice, notes]", "plugins:\n  enabled:\n    - dice\n    - notes\n"),
            ("", "plugins.entries.dice.sides", "20", "plugins:\n  entries:\n    dice:\n      sides: 20\n"),
            ("", "plugins.entries.dice.name", "a: b: c", "plugins:\n  entries:\n    dice:\n      name: 'a: b: c'\n"),
            ("", "auxiliary.compression.model", "small", "auxiliary:\n  compression:\n    model: small\n"),
            ("", "agent.max_turns", "${SET}", "agent:\n  max_turns: ${SET}\n"),
        ] {
            let changed = assigned(before, key, typed).unwrap_or_else(|error| panic!("{key}: {error:?}"));
            let value = |text: &str| text::read(text).unwrap();
            assert_eq!(value(&changed), value(after), "{key}: {changed}");
            assert_eq!(changed.matches('#').count(), before.replace("# mine", "").matches('#').count(), "{changed}");
        }
    }

    #[test]
    fn what_does_not_fit_changes_nothing_and_is_explained() {
        for (key, typed, why, fix) in [
            ("agent.max_turns", "many", "whole number", ""),
            ("agent.max_turns", "-1", "whole number", ""),
            ("plugins.enabled", "dice: 3", "list", ""),
            ("model.defualt", "x", "model.defualt", "model.default"),
            ("modle", "x", "modle", "model"),
            ("plugins", "x", "not one value", "plugins.enabled"),
            ("", "x", "not one value", "model."),
            ("model..default", "x", "not one value", ""),
            ("model.default", "", "empty", "unset model.default"),
            ("model.default", "${UNSET_ONE}", "UNSET_ONE is not set", ""),
            ("_config_version", "3", "Hermes Agent", "HERMES_HOME"),
        ] {
            let refused = assigned("model: old\n", key, typed).unwrap_err();
            let fix_text = refused.fix.worded(|_| "correct the setting".to_owned());
            assert!(refused.why.contains(why) && fix_text.contains(fix), "{key}={typed}: {refused:?}");
            assert!(refused.what.contains("was not changed"), "{refused:?}");
        }
    }

    #[test]
    fn a_key_is_unset_also_in_its_short_form() {
        for (before, key, after) in [
            ("model: old\n", "model.default", ""),
            ("agent:\n  max_turns: 5\nmodel: x\n", "agent.max_turns", "model: x\n"),
            ("model: x\n", "agent.max_turns", "model: x\n"),
        ] {
            let mut edit = edit(before);
            assert_eq!(edit.unset(key).unwrap(), before != after, "{key}");
            assert_eq!(text::read(&edit.text).unwrap(), text::read(after).unwrap(), "{key}");
        }
    }
}
