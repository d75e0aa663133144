//! Makes a skill of each checklist in the configuration. A skill whose text is fixed needs no code: a folder is enough.

use std::collections::BTreeMap;

use hermes_plugin::skills::{Document, Skill};
use hermes_plugin::{Error, Instance, Setup, Skills, config};

/// The section `config` in plugin.yaml describes the same keys and defaults.
#[config]
struct Config {
    /// The steps of each checklist, by its name.
    #[serde(default = "lists")]
    lists: BTreeMap<String, Vec<String>>,
}

fn lists() -> BTreeMap<String, Vec<String>> {
    let steps = ["Run the tests.", "Update the changelog.", "Tag the commit."].map(str::to_owned);
    BTreeMap::from([("release".to_owned(), steps.to_vec())])
}

struct Checklists {
    lists: BTreeMap<String, Vec<String>>,
}

impl Instance for Checklists {
    type Config = Config;

    fn new(setup: Setup<Config>) -> Result<Self, Error> {
        Ok(Self { lists: setup.config.lists })
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
