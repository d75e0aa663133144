//! The routes of the `auxiliary` section: which models may serve a task of plugins, in the order of attempts.
//!
//! Nothing is connected here. A model without a key is left out with a notice; a mistake is an error that names its key.

use std::time::Duration;

use hermes_models::{
    Auxiliary as Section, AuxiliaryError, Effort, Route, Wanted, resolve_auxiliary, resolve_embeddings,
};

use crate::settings::{EmbeddingsSection, FallbackSection, TaskSection, Whole};
use crate::{Config, codes};
use hermes_diagnostic::{Diagnose as _, Diagnostic, Notice};

/// The models for the tasks that have a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Auxiliary {
    /// The task that every session has, then the others in the order of the file.
    pub tasks: Vec<Task>,
    /// The model that computes vectors of texts.
    pub embeddings: Embeddings,
    /// How often a request is retried after a connection or server error.
    pub transient_retries: u32,
    /// Notices for the user.
    pub notices: Vec<Notice>,
}

/// The model that computes vectors of texts for plugins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Embeddings {
    /// Provider, address and model, or why there is none. Not used if a plugin computes the vectors.
    pub route: Result<Route, AuxiliaryError>,
    /// The length of the vectors to ask for.
    pub dimensions: Option<u32>,
    /// The time limit of one request.
    pub timeout: Duration,
    /// The plugin that computes the vectors.
    pub plugin: Option<String>,
}

/// The models for a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Its name: the section below `auxiliary`.
    pub name: String,
    /// The time limit of one attempt.
    pub timeout: Duration,
    /// How much they think; none for the provider's default.
    pub effort: Option<Effort>,
    /// The models, in the order of attempts.
    pub candidates: Vec<Candidate>,
    /// Why the model that the section itself names is not among them.
    pub missing: Option<AuxiliaryError>,
}

/// A model that may serve a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Its dotted key.
    pub section: String,
    /// Provider, address and model.
    pub route: Route,
    /// Whether it is the session's own model.
    pub is_session: bool,
}

impl Auxiliary {
    /// Reads every section. `session` is the route of the session, `model` the section `model` of the configuration.
    pub fn read(
        config: &Config,
        session: &Route,
        model: &Wanted,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Diagnostic> {
        let mut notices = Vec::new();
        let mut tasks = Vec::new();
        let sections = &config.settings().auxiliary;
        for (name, section) in &sections.tasks {
            let resolve = |section: &Section| resolve_auxiliary(section, session, variable, model);
            tasks.push(Task::read(name, section, session, &resolve, &mut notices)?);
        }
        let embeddings =
            Embeddings::read(&sections.embeddings, &|section| resolve_embeddings(section, session, variable, model))?;
        Ok(Self { tasks, embeddings, transient_retries: sections.transient_retries.get(), notices })
    }
}

impl Embeddings {
    /// A model behind an OpenAI-compatible API that needs no key, whatever the configuration says.
    pub fn at(base_url: &str, model: &str) -> Self {
        let given = EmbeddingsSection::default();
        let (base_url, model) = (Some(base_url.to_owned()), Some(model.to_owned()));
        let wanted = Wanted { base_url, model, ..Wanted::default() };
        let section = Section { section: "embeddings".to_owned(), wanted, key_env: None };
        Self {
            route: resolve_embeddings(&section, &Route::offline(), &|_| None, &Wanted::default()),
            dimensions: None,
            timeout: Duration::from_secs(given.timeout.get().into()),
            plugin: None,
        }
    }

    fn read(
        given: &EmbeddingsSection,
        resolve: &dyn Fn(&Section) -> Result<Route, AuxiliaryError>,
    ) -> Result<Self, Diagnostic> {
        let EmbeddingsSection { plugin, provider, model, base_url, api_key, auth, key_env, dimensions, timeout } =
            given.clone();
        let provider = provider.filter(|provider| !provider.eq_ignore_ascii_case("auto"));
        let wanted = Wanted { provider, model, base_url, api_key, auth, ..Wanted::default() };
        let is_set = wanted != Wanted::default() || key_env.is_some();
        let section = Section { section: "auxiliary.embeddings".to_owned(), wanted, key_env };
        let route = resolve(&section);
        if let Err(mistake) = &route
            && is_set
            && plugin.is_none()
            && !mistake.is_lack()
        {
            let what = "the embedding model cannot be used".to_owned();
            return Err(Diagnostic { code: codes::AUXILIARY, what, ..mistake.diagnose() });
        }
        Ok(Self {
            route,
            dimensions: dimensions.map(Whole::get),
            timeout: Duration::from_secs(timeout.get().into()),
            plugin,
        })
    }
}

impl Task {
    fn read(
        name: &str,
        given: &TaskSection,
        session: &Route,
        resolve: &dyn Fn(&Section) -> Result<Route, AuxiliaryError>,
        notices: &mut Vec<Notice>,
    ) -> Result<Self, Diagnostic> {
        let section = format!("auxiliary.{name}");
        let mut task = Self {
            timeout: Duration::from_secs(given.timeout.get().into()),
            effort: given.reasoning_effort.map(|effort| effort.0),
            candidates: Vec::new(),
            missing: None,
            name: name.to_owned(),
        };
        let own = own_section(given, &section);
        let says_nothing = own.wanted == Wanted::default() && own.key_env.is_none();
        let mut first_lack = None;
        if says_nothing {
            task.add(session.clone(), session, &section);
        } else {
            match resolve(&own) {
                Ok(route) => {
                    notices.extend(route.notes.iter().cloned().map(Notice::from));
                    task.add(route, session, &section);
                }
                Err(lack) if lack.is_lack() => first_lack = Some(lack),
                Err(mistake) => return Err(refusal(name, &mistake)),
            }
        }
        for entry in chain(given, &section) {
            match resolve(&entry) {
                Ok(route) => {
                    notices.extend(route.notes.iter().cloned().map(Notice::from));
                    task.add(route, session, &entry.section);
                }
                Err(lack) if lack.is_lack() => notices.push(left_out(&lack)),
                Err(mistake) => return Err(refusal(name, &mistake)),
            }
        }
        // A section that names no other model has the session's model already.
        task.add(session.clone(), session, "model");
        if let Some(lack) = first_lack {
            task.missing = Some(lack.clone());
            match lack {
                AuxiliaryError::MissingKey { .. } if task.candidates.is_empty() => return Err(refusal(name, &lack)),
                _ if task.candidates.is_empty() => notices.push(left_out(&lack)),
                _ => {}
            }
        }
        Ok(task)
    }

    /// No model is added twice, and the offline partner never.
    fn add(&mut self, route: Route, session: &Route, section: &str) {
        if route.is_offline() || self.candidates.iter().any(|earlier| earlier.route.is_alike(&route)) {
            return;
        }
        let is_session = route.is_alike(session);
        self.candidates.push(Candidate { section: section.to_owned(), route, is_session });
    }
}

fn own_section(given: &TaskSection, section: &str) -> Section {
    let given = given.clone();
    Section {
        section: section.to_owned(),
        wanted: Wanted {
            provider: given.provider.filter(|provider| !provider.eq_ignore_ascii_case("auto")),
            model: given.model,
            base_url: given.base_url,
            api_key: given.api_key,
            auth: given.auth,
            context_length: given.context_length.map(Whole::get),
            api_mode: given.api_mode,
            ..Wanted::default()
        },
        key_env: given.key_env,
    }
}

/// The entries of the fallback chain.
fn chain(given: &TaskSection, section: &str) -> Vec<Section> {
    let entry = |(number, entry): (usize, &FallbackSection)| {
        fallback_section(entry.clone(), format!("{section}.fallback_chain[{number}]"))
    };
    given.fallback_chain.iter().enumerate().map(entry).collect()
}

/// An entry of a list of fallbacks.
pub(crate) fn fallback_section(entry: FallbackSection, section: String) -> Section {
    Section {
        section,
        wanted: Wanted {
            provider: entry.provider,
            model: entry.model,
            base_url: entry.base_url,
            api_key: entry.api_key,
            auth: entry.auth,
            context_length: entry.context_length.map(Whole::get),
            api_mode: entry.api_mode,
            ..Wanted::default()
        },
        key_env: entry.key_env,
    }
}

/// Says that a candidate is left out.
fn left_out(lack: &AuxiliaryError) -> Notice {
    Notice::new(format!("{lack}, so it is left out"), lack.parts().2)
}

fn refusal(task: &str, error: &AuxiliaryError) -> Diagnostic {
    let what = format!("the model for the task `{task}` cannot be used");
    Diagnostic { code: codes::AUXILIARY, what, ..error.diagnose() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::path::Path;

    use super::*;

    const ENVIRONMENT: &[(&str, &str)] = &[("OPENAI_API_KEY", "sk-openai-0123456789abcdef")];

    fn read(yaml: &str) -> Result<Auxiliary, Diagnostic> {
        let variable = |name: &str| {
            let found = ENVIRONMENT.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let config = Config::parse(yaml, Path::new("/h/config.yaml"), &variable).unwrap();
        let section = config.settings().model.clone();
        let model = Wanted {
            provider: section.provider,
            model: section.default,
            base_url: section.base_url,
            ..Wanted::default()
        };
        let session = hermes_models::resolve(&Wanted::default(), &variable, &model).unwrap();
        Auxiliary::read(&config, &session, &model, &variable)
    }

    fn names(yaml: &str) -> Vec<String> {
        let task = read(yaml).unwrap().tasks.remove(0);
        task.candidates.iter().map(|one| format!("{} {}", one.route.model.name, one.is_session)).collect()
    }

    const GATE: &str = "model: {base_url: 'http://gate/v1', default: big}\n";

    #[test]
    fn the_sessions_model_is_the_last_candidate() {
        for (section, expected) in [
            ("", &["big true"][..]),
            ("{provider: auto}", &["big true"]),
            ("{provider: main, model: big}", &["big true"]),
            ("{model: small}", &["small false", "big true"]),
            ("{fallback_chain: [{model: small}]}", &["big true", "small false"]),
            ("{model: small, fallback_chain: [{model: small}, {model: big}]}", &["small false", "big true"]),
            ("{model: small, fallback_chain: [{model: other}]}", &["small false", "other false", "big true"]),
        ] {
            assert_eq!(names(&format!("{GATE}auxiliary: {{compression: {section}}}\n")), expected, "{section}");
        }
    }

    #[test]
    fn a_section_may_say_how_much_its_models_think() {
        let effort = |section: &str| {
            read(&format!("{GATE}auxiliary: {{compression: {section}}}\n")).unwrap().tasks.remove(0).effort
        };
        assert_eq!(effort("{model: small, reasoning_effort: low}"), Some(Effort::Low));
        assert_eq!(effort("{model: small}"), None);
    }

    #[test]
    fn a_model_without_a_key_is_left_out_with_a_notice() {
        let read_all = |section: &str| read(&format!("{GATE}auxiliary: {{compression: {section}}}\n")).unwrap();
        let own = read_all("{provider: groq}");
        assert!(own.notices.is_empty());
        assert!(own.tasks[0].missing.as_ref().unwrap().sentence().contains("; set GROQ_API_KEY in"), "{own:?}");
        assert_eq!(own.tasks[0].candidates.len(), 1);
        let link = read_all("{fallback_chain: [{provider: groq}, {provider: openai}]}");
        assert_eq!((link.notices.len(), link.tasks[0].candidates.len()), (1, 2));
        assert!(link.notices[0].text.contains("`auxiliary.compression.fallback_chain[0]`"), "{link:?}");
    }

    #[test]
    fn a_section_that_no_model_can_serve_is_refused() {
        let offline = "model: {provider: offline}\nauxiliary: {compression: {provider: groq}}\n";
        let failure = read(offline).unwrap_err();
        assert_eq!(
            (failure.code, failure.what.as_str()),
            (codes::AUXILIARY, "the model for the task `compression` cannot be used")
        );
        assert!(
            failure.why.contains("auxiliary.compression") && failure.fix.to_string().starts_with("set GROQ_API_KEY in"),
            "{failure}"
        );
        // A section for another model does not keep the offline partner from answering.
        let shared = read("model: {provider: offline}\nauxiliary: {compression: {model: small}}\n").unwrap();
        assert!(shared.tasks[0].candidates.is_empty() && shared.tasks[0].missing.is_some());
        assert!(shared.notices[0].to_string().contains("set `auxiliary.compression.provider`"), "{shared:?}");
        let served = read("model: {provider: offline}\nauxiliary: {compression: {provider: openai}}\n").unwrap();
        assert_eq!(served.tasks[0].candidates.len(), 1);
    }

    #[test]
    fn an_embedding_model_must_be_named() {
        let read_all = |section: &str| read(&format!("{GATE}auxiliary: {{embeddings: {section}}}\n"));
        let unset = read_all("").unwrap().embeddings;
        assert!(unset.route.unwrap_err().sentence().contains("set `auxiliary.embeddings.model`"));
        let own = read_all("{model: small, dimensions: 256, timeout: 5}").unwrap().embeddings;
        assert_eq!((own.dimensions, own.timeout), (Some(256), Duration::from_secs(5)));
        let route = own.route.unwrap();
        assert_eq!((route.model.name.as_str(), route.base_url.unwrap().as_str()), ("small", "http://gate/v1"));
        let without_key = read_all("{provider: groq, model: small}").unwrap().embeddings;
        assert!(without_key.route.unwrap_err().sentence().contains("set GROQ_API_KEY in"));
        for (section, part) in
            [("{provider: openai}", "set `auxiliary.embeddings.model`"), ("{provider: nobody, model: small}", "nobody")]
        {
            let failure = read_all(section).unwrap_err();
            assert!(failure.to_string().contains(part), "{section}: {failure}");
        }
        assert_eq!(read_all("{plugin: mine}").unwrap().embeddings.plugin.as_deref(), Some("mine"));
    }

    #[test]
    fn a_mistake_anywhere_is_refused_with_its_key() {
        for (section, key) in [
            ("{compression: {provider: nobody}}", "auxiliary.compression.provider"),
            ("{mine: {base_url: 'ftp://x'}}", "auxiliary.mine.base_url"),
            ("{mine: {fallback_chain: [{provider: custom}]}}", "auxiliary.mine.fallback_chain[0]"),
        ] {
            let failure = read(&format!("model: {{provider: openai}}\nauxiliary: {section}\n")).unwrap_err();
            assert!(failure.why.contains(key) && !failure.fix.is_empty(), "{failure}");
        }
    }
}
