//! The change of `config.yaml` that makes new sessions use another model.

use hermes_config::Edit;
use hermes_config::settings::ModelSection;
use serde_json::json;

use crate::AppError;

/// Where the chosen model is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelPlace {
    /// Where requests go already.
    Same,
    /// A known provider, at its usual address.
    Provider(String),
    /// Another server.
    Address {
        /// Where its API begins.
        base_url: String,
        /// The variable that holds its key, if it needs one.
        key: Option<&'static str>,
    },
}

/// A model, and its window in tokens if it has to be configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChosenModel {
    /// Its name in requests.
    pub name: String,
    /// None if Hermes knows the window by itself.
    pub window: Option<u32>,
}

/// Sets the model of new sessions. Settings that were made for the former model or place are removed; their names are returned.
///
/// # Errors
///
/// When the file is written in a way that cannot be changed.
pub fn set_model(
    edit: &mut Edit,
    before: &ModelSection,
    place: &ModelPlace,
    model: &ChosenModel,
) -> Result<Vec<&'static str>, AppError> {
    let moves = match place {
        ModelPlace::Same => false,
        ModelPlace::Provider(name) => before.provider.as_ref() != Some(name),
        ModelPlace::Address { base_url, .. } => before.base_url.as_ref() != Some(base_url),
    };
    let of_place = [
        ("model.base_url", before.base_url.is_some()),
        ("model.api_key", before.api_key.is_some()),
        ("model.api_keys", !before.api_keys.is_empty()),
        ("model.auth", before.auth.is_some()),
        ("model.api_mode", before.api_mode.is_some()),
    ];
    let window = ("model.context_length", before.context_length.is_some());
    let mut removed = Vec::new();
    if moves {
        removed.extend(of_place.iter().filter(|(_, is_set)| *is_set).map(|(key, _)| *key));
    }
    if window.1 && (moves || before.default.as_ref() != Some(&model.name)) {
        removed.push(window.0);
    }
    edit.lengthen("model.provider")?;
    for key in &removed {
        edit.remove(key)?;
    }
    match place {
        ModelPlace::Same => {}
        ModelPlace::Provider(name) => edit.set("model.provider", &json!(name))?,
        ModelPlace::Address { base_url, key } => {
            if before.provider.is_some() {
                edit.remove("model.provider")?;
            }
            edit.set("model.base_url", &json!(base_url))?;
            if let Some(variable) = key {
                edit.set("model.api_key", &json!(format!("${{{variable}}}")))?;
            }
        }
    }
    edit.set("model.default", &json!(model.name))?;
    if let Some(window) = model.window {
        edit.set("model.context_length", &json!(window))?;
    }
    let is_set_again = |key: &str| match key {
        "model.base_url" => matches!(place, ModelPlace::Address { .. }),
        key => key == window.0 && model.window.is_some(),
    };
    removed.retain(|key| !is_set_again(key));
    Ok(removed)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_config::Config;

    use super::*;

    fn changed(before: &str, place: &ModelPlace, model: &str) -> (String, Vec<&'static str>) {
        with_window(before, place, ChosenModel { name: model.to_owned(), window: None })
    }

    fn with_window(before: &str, place: &ModelPlace, model: ChosenModel) -> (String, Vec<&'static str>) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.yaml");
        std::fs::write(&file, before).unwrap();
        let config = Config::parse(before, &file, &|_| None).unwrap();
        let mut edit = Edit::of(&file).unwrap();
        let removed = set_model(&mut edit, &config.settings().model, place, &model).unwrap();
        (edit.parts().2.to_owned(), removed)
    }

    #[test]
    fn a_model_of_the_same_place_keeps_the_place() {
        let before = "model:\n  provider: openai # mine\n  default: gpt-4.1\n  context_length: 9000\n  retry_for: 5\n";
        let (text, removed) = changed(before, &ModelPlace::Same, "gpt-5");
        assert_eq!(text, "model:\n  provider: openai # mine\n  default: gpt-5\n  retry_for: 5\n");
        assert_eq!(removed, ["model.context_length"]);
        let (text, removed) = changed(before, &ModelPlace::Provider("openai".to_owned()), "gpt-4.1");
        assert_eq!((text.as_str(), removed.len()), (before, 0));
    }

    #[test]
    fn a_window_that_no_table_has_is_configured() {
        let before = "model:\n  provider: groq\n  default: a\n  context_length: 9000\n";
        let model = ChosenModel { name: "b".to_owned(), window: Some(64_000) };
        let (text, removed) = with_window(before, &ModelPlace::Same, model);
        assert!(removed.is_empty() && text.contains("context_length: 64000") && !text.contains("9000"), "{text}");
    }

    #[test]
    fn what_belongs_to_a_former_place_goes() {
        let before = "model:\n  base_url: http://127.0.0.1:8000/v1\n  api_key: ${MINE}\n  default: m\n";
        let (text, removed) = changed(before, &ModelPlace::Provider("groq".to_owned()), "llama");
        assert_eq!(removed, ["model.base_url", "model.api_key"]);
        assert_eq!(text, "model:\n  default: llama\n  provider: groq\n");
        let place = ModelPlace::Address { base_url: "https://own.test/v1".to_owned(), key: Some("OWN_KEY") };
        let (text, removed) = changed("model:\n  provider: groq\n  auth: a\n  default: m\n", &place, "n");
        assert_eq!(removed, ["model.auth"]);
        assert!(
            !text.contains("groq") && text.contains("${OWN_KEY}") && text.contains("https://own.test/v1"),
            "{text}"
        );
    }

    #[test]
    fn a_short_form_and_a_missing_file_become_a_section() {
        let (text, _) = changed("model: gpt-4.1\n", &ModelPlace::Provider("openai".to_owned()), "gpt-5");
        let config = Config::parse(&text, "config.yaml".as_ref(), &|_| None).unwrap();
        let model = &config.settings().model;
        assert_eq!((model.provider.as_deref(), model.default.as_deref()), (Some("openai"), Some("gpt-5")));
        let (text, _) = changed("", &ModelPlace::Provider("ollama".to_owned()), "qwen3");
        assert!(text.contains("ollama") && text.contains("qwen3"));
    }
}
