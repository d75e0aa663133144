//! Makes a skill of each checklist in the configuration. A skill whose text is fixed needs no code: a folder is enough.

use std::collections::BTreeMap;

use hermes_plugin::skills::{Document, Skill};
use hermes_plugin::{Error, Plugin, Skills};
use serde::Deserialize;

/// Keys and defaults must match plugin.yaml.
#[derive(Deserialize)]
#[serde(default)]
struct Checklists {
    lists: BTreeMap<String, Vec<String>>,
}

impl Default for Checklists {
    fn default() -> Self {
        let steps = ["Run the tests.", "Update the changelog.", "Tag the commit."].map(str::to_owned);
        Self { lists: BTreeMap::from([("release".to_owned(), steps.to_vec())]) }
    }
}

impl Plugin for Checklists {
    fn configure(config: &str) -> Result<Self, Error> {
        Ok(serde_json::from_str(config)?)
    }
}

impl Skills for Checklists {
    fn index(&mut self) -> Result<Vec<Skill>, Error> {
        // The index is part of the prompt. A map with an order gives the same list each time.
        let skill = |(name, steps): (&String, &Vec<String>)| Skill {
            name: name.clone(),
            description: format!("The checklist `{name}`, with {} steps.", steps.len()),
            category: "checklists".to_owned(),
            tags: Vec::new(),
            platforms: Vec::new(),
            requires_toolsets: Vec::new(),
            fallback_for_toolsets: Vec::new(),
            extra: Vec::new(),
        };
        Ok(self.lists.iter().map(skill).collect())
    }

    fn view(&mut self, name: &str, path: Option<&str>) -> Result<Document, Error> {
        let (Some(steps), None) = (self.lists.get(name), path) else {
            let names: Vec<&str> = self.lists.keys().map(String::as_str).collect();
            return Err(Error::invalid(format!("the skills are {}; they have no further files", names.join(", "))));
        };
        let steps = steps.iter().zip(1..).map(|(step, number)| format!("{number}. {step}\n"));
        Ok(Document { content: format!("# {name}\n\n{}", steps.collect::<String>()), files: Vec::new() })
    }
}

hermes_plugin::export!(Checklists: Skills);
