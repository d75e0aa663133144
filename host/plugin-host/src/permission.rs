//! What a plugin asks for in its manifest, and what the user granted: one type for both.
//!
//! Here are the rights as data and their order: what of an ask takes effect under a grant, and what goes beyond it.
//! How they are read and written is in `reading`; what each is called and how it is told to people in `right`.

mod reading;
mod right;

use hermes_capabilities::http::Site;
use serde::{Deserialize, Serialize};

pub use reading::{EnvironmentName, Program};
pub use right::Right;

/// What a plugin may do, or asks to be allowed. Nothing is allowed that does not stand here.
///
/// ```
/// use hermes_plugin_host::Permissions;
///
/// let yes = |json| serde_json::from_str::<Permissions>(json).expect("it is well formed");
/// let asked = yes(r#"{"sql": true, "http": [{"url": "https://api.example.org/v1/", "methods": ["GET", "POST"]}]}"#);
/// let granted = yes(r#"{"http": [{"url": "https://*.example.org/", "methods": ["GET"]}]}"#);
/// assert_eq!(asked.within(&granted).lines(), ["send GET requests to https://api.example.org/v1/ and below"]);
/// assert_eq!(
///     asked.widening(&granted).lines(),
///     ["keep a database of its own", "send POST requests to https://api.example.org/v1/ and below"]
/// );
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Permissions {
    /// To ask the user's models.
    #[serde(with = "reading::llm", skip_serializing_if = "Option::is_none")]
    pub llm: Option<Llm>,
    /// To read the conversation.
    #[serde(skip_serializing_if = "is_false")]
    pub history: bool,
    /// To have a database of its own.
    #[serde(skip_serializing_if = "is_false")]
    pub sql: bool,
    /// Names of the user's documents that it keeps.
    #[serde(deserialize_with = "reading::documents", skip_serializing_if = "Vec::is_empty")]
    pub documents: Vec<String>,
    /// Folders that it works in.
    #[serde(deserialize_with = "reading::few", skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<Root>,
    /// Where on the web it may go.
    #[serde(deserialize_with = "reading::few", skip_serializing_if = "Vec::is_empty")]
    pub http: Vec<Http>,
    /// Programs that it may run.
    #[serde(deserialize_with = "reading::few", skip_serializing_if = "Vec::is_empty")]
    pub process: Vec<Program>,
    /// Variables that its section of the configuration may name.
    #[serde(deserialize_with = "reading::few", skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<EnvironmentName>,
    /// Secrets that the host puts into its requests.
    #[serde(deserialize_with = "reading::few", skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<Secret>,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// To ask the user's models: `true`, or for what and how much.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Llm {
    /// For these tasks only, such as `compression`; none for all.
    pub tasks: Option<Vec<String>>,
    /// Tokens in a session, those sent and those received; none without a limit.
    pub budget: Option<u64>,
}

/// A folder that a plugin asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Root {
    /// `workspace` or `skills`.
    #[serde(deserialize_with = "reading::root")]
    pub root: String,
    /// What it wants to do there.
    #[serde(default)]
    pub access: Access,
}

/// What a plugin may do in a folder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Look.
    #[default]
    Read,
    /// Look and change.
    Write,
}

/// Requests to part of the web.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Http {
    /// Where to: `https://api.example.org/v1/` and all below it.
    #[serde(with = "reading::text")]
    pub url: Site,
    /// By which methods, in capitals; `GET` includes `HEAD`.
    #[serde(default = "reading::get", deserialize_with = "reading::methods")]
    pub methods: Vec<String>,
}

/// A value that the host keeps from the plugin and puts into its requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Secret {
    /// What the plugin calls it.
    #[serde(deserialize_with = "reading::secret_name")]
    pub name: String,
    /// The variable that holds it, in the environment or in `.env`.
    pub env: EnvironmentName,
    /// Who gets to see it.
    #[serde(with = "reading::audience")]
    pub audience: Site,
}

impl Permissions {
    /// Whether nothing is asked for, or nothing allowed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What of this takes effect under a grant: never more than either.
    #[must_use]
    pub fn within(&self, granted: &Self) -> Self {
        let folder = |asked: &Root| {
            let access = granted.access_to(&asked.root)?.min(asked.access);
            Some(Root { root: asked.root.clone(), access })
        };
        let mut http: Vec<Http> = Vec::new();
        for part in self.http.iter().flat_map(|asked| granted.http.iter().filter_map(|given| asked.meet(given))) {
            if !http.contains(&part) {
                http.push(part);
            }
        }
        Self {
            llm: self.llm.as_ref().zip(granted.llm.as_ref()).and_then(|(asked, given)| asked.within(given)),
            history: self.history && granted.history,
            sql: self.sql && granted.sql,
            documents: both(&self.documents, &granted.documents),
            files: self.files.iter().filter_map(folder).collect(),
            http,
            process: both(&self.process, &granted.process),
            env: both(&self.env, &granted.env),
            secrets: self.secrets.iter().flat_map(|asked| asked.within(&granted.secrets)).collect(),
        }
    }

    /// What of this goes beyond a grant, and is to be asked about.
    #[must_use]
    pub fn widening(&self, granted: &Self) -> Self {
        let folder = |asked: &&Root| granted.access_to(&asked.root).is_none_or(|given| given < asked.access);
        Self {
            llm: self.llm.as_ref().and_then(|asked| asked.beyond(granted.llm.as_ref())),
            history: self.history && !granted.history,
            sql: self.sql && !granted.sql,
            documents: beyond(&self.documents, &granted.documents),
            files: self.files.iter().filter(folder).cloned().collect(),
            http: self.http.iter().filter_map(|asked| asked.beyond(&granted.http)).collect(),
            process: beyond(&self.process, &granted.process),
            env: beyond(&self.env, &granted.env),
            secrets: self.secrets.iter().filter(|asked| !asked.is_within(&granted.secrets)).cloned().collect(),
        }
    }

    /// This and the other: what a user grants beside what was granted before. A limit of `llm` is replaced.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        let more = other.widening(&self);
        if more.llm.is_some() {
            self.llm.clone_from(&other.llm);
        }
        self.history |= more.history;
        self.sql |= more.sql;
        self.documents.extend(more.documents);
        self.files.retain(|root| !more.files.iter().any(|other| other.root == root.root));
        self.files.extend(more.files);
        self.http.extend(more.http);
        self.process.extend(more.process);
        self.env.extend(more.env);
        self.secrets.extend(more.secrets);
        self
    }

    /// A sentence for each right, as it stands behind "it wants to".
    pub fn lines(&self) -> Vec<String> {
        Right::ALL.iter().flat_map(|right| right.lines(self)).collect()
    }

    /// The JSON Schema of the section `permissions` of a manifest.
    pub fn schema() -> serde_json::Value {
        right::schema()
    }

    /// What may be done in a folder; none where nothing is said of it.
    fn access_to(&self, root: &str) -> Option<Access> {
        self.files.iter().filter(|given| given.root == root).map(|given| given.access).max()
    }
}

/// What stands in both lists, once.
fn both<T: PartialEq + Clone>(asked: &[T], granted: &[T]) -> Vec<T> {
    once(asked.iter().filter(|item| granted.contains(item)))
}

/// What stands only in the first list, once.
fn beyond<T: PartialEq + Clone>(asked: &[T], granted: &[T]) -> Vec<T> {
    once(asked.iter().filter(|item| !granted.contains(item)))
}

fn once<'a, T: PartialEq + Clone + 'a>(items: impl Iterator<Item = &'a T>) -> Vec<T> {
    let mut list = Vec::new();
    for item in items {
        if !list.contains(item) {
            list.push(item.clone());
        }
    }
    list
}

impl Llm {
    /// Whether a task may be asked about.
    pub fn admits(&self, task: &str) -> bool {
        self.tasks.as_ref().is_none_or(|tasks| tasks.iter().any(|own| own == task))
    }

    fn within(&self, granted: &Self) -> Option<Self> {
        let tasks = match (&self.tasks, &granted.tasks) {
            (Some(asked), Some(given)) => Some(both(asked, given)),
            (one, other) => one.as_ref().or(other.as_ref()).cloned(),
        };
        let budget = self.budget.into_iter().chain(granted.budget).min();
        // No task left: nothing may be asked.
        tasks.as_ref().is_none_or(|tasks| !tasks.is_empty()).then_some(Self { tasks, budget })
    }

    fn beyond(&self, granted: Option<&Self>) -> Option<Self> {
        let Some(granted) = granted else { return Some(self.clone()) };
        let more = match (self.budget, granted.budget) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(asked), Some(given)) => asked > given,
        };
        if more {
            return Some(self.clone());
        }
        let tasks = match (&self.tasks, &granted.tasks) {
            (_, None) => return None,
            (None, Some(_)) => None,
            (Some(asked), Some(given)) => Some(beyond(asked, given)),
        };
        tasks.as_ref().is_none_or(|tasks| !tasks.is_empty()).then_some(Self { tasks, budget: self.budget })
    }
}

impl Http {
    /// Whether a method is among those of this.
    fn has(&self, method: &str) -> bool {
        self.methods.iter().any(|own| own == method) || (method == "HEAD" && self.has("GET"))
    }

    fn meet(&self, granted: &Self) -> Option<Self> {
        let url = self.url.meet(&granted.url)?;
        let methods = self.methods.iter().chain(&granted.methods);
        let methods = once(methods.filter(|method| self.has(method) && granted.has(method)));
        (!methods.is_empty()).then_some(Self { url, methods })
    }

    fn beyond(&self, granted: &[Self]) -> Option<Self> {
        let covered = |method: &str| granted.iter().any(|given| given.url.covers(&self.url) && given.has(method));
        let methods = once(self.methods.iter().filter(|method| !covered(method)));
        (!methods.is_empty()).then(|| Self { url: self.url.clone(), methods })
    }
}

impl Secret {
    fn is_within(&self, granted: &[Self]) -> bool {
        granted.iter().any(|given| self.is_same(given) && given.audience.covers(&self.audience))
    }

    fn within<'a>(&'a self, granted: &'a [Self]) -> impl Iterator<Item = Self> + 'a {
        let given = granted.iter().filter(|given| self.is_same(given));
        given.filter_map(|given| Some(Self { audience: self.audience.meet(&given.audience)?, ..self.clone() }))
    }

    fn is_same(&self, other: &Self) -> bool {
        self.name == other.name && self.env == other.env
    }
}

#[cfg(test)]
mod tests;
