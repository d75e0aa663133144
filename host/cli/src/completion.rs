//! What can be completed in the input of a chat: its commands, skills, and the files behind `@`.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hermes_terminal::{Candidate, Candidates};

use crate::file_names::FileNames;
use crate::slash;

/// Commands with their descriptions.
pub(crate) type Commands = Vec<(String, String)>;

/// The completions of a chat. All clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Completion {
    skills: Arc<Mutex<Commands>>,
    files: FileNames,
}

impl Completion {
    /// Offers the commands of skills, too.
    pub(crate) fn offer_skills(&self, commands: Commands) {
        *self.skills.lock().unwrap_or_else(PoisonError::into_inner) = commands;
    }

    /// The names of files.
    pub(crate) fn files(&self) -> &FileNames {
        &self.files
    }

    /// The completions that are known now.
    pub(crate) fn complete(&self, typed: &str) -> Candidates {
        let skills = || self.skills.lock().unwrap_or_else(PoisonError::into_inner);
        self.files.complete(typed).unwrap_or_else(|| commands(typed, &skills()))
    }

    /// The same, after waiting for the names of files if they were never collected. It blocks for so long at most.
    pub(crate) fn complete_within(&self, typed: &str, patience: Duration) -> Candidates {
        self.files.collect_within(typed, patience);
        self.complete(typed)
    }
}

/// The commands that begin like the typed text.
fn commands(typed: &str, skills: &[(String, String)]) -> Candidates {
    if !typed.starts_with('/') {
        return Candidates::default();
    }
    let list = slash::named().filter_map(|(usage, about)| {
        let name = slash::word(usage);
        let text = if usage.len() > name.len() { format!("{name} ") } else { name.to_owned() };
        name.starts_with(typed).then(|| Candidate { text, about: about.to_owned() })
    });
    let fitting = skills.iter().filter(|(name, _)| name.starts_with(typed));
    let skills = fitting.map(|(name, about)| Candidate { text: format!("{name} "), about: about.clone() });
    Candidates { begin: 0, list: list.chain(skills).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_skills_are_completed_at_the_begin_of_a_text() {
        let completion = Completion::default();
        completion.offer_skills(vec![("/model-tea".to_owned(), "Makes tea.".to_owned())]);
        let texts = |typed: &str| -> Vec<String> {
            completion.complete(typed).list.into_iter().map(|candidate| candidate.text).collect()
        };
        assert_eq!(texts("/mod"), ["/model ", "/mode ", "/model-tea "]);
        assert_eq!(texts("/copy"), ["/copy"]);
        assert!(texts("see /mod").is_empty() && texts("").is_empty());
    }
}
