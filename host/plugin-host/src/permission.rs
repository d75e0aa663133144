//! Permissions: those that a manifest requests, and those that the user granted, as one type.
//!
//! This module has permissions as data and compares them: which part of a request takes effect under a grant, and which part
//! goes beyond it. `reading` parses and writes them; `right` has their names and their descriptions for people.

mod address;
mod reading;
mod right;

use serde::{Deserialize, Serialize};

pub use address::{Address, Resolved, Template};
pub use reading::{EnvironmentName, Program};
pub use right::Right;

/// The permissions that a plugin has or requests. Everything else is denied.
///
/// ```
/// use hermes_plugin_host::Permissions;
///
/// let yes = |json| serde_json::from_str::<Permissions>(json).expect("it is well formed");
/// let requested = yes(r#"{"sql": true, "http": [{"url": "https://api.example.org/v1/", "methods": ["GET", "POST"]}]}"#);
/// let granted = yes(r#"{"http": [{"url": "https://*.example.org/", "methods": ["GET"]}]}"#);
/// assert_eq!(requested.within(&granted).lines(), ["send GET requests to https://api.example.org/v1/ and below"]);
/// assert_eq!(
///     requested.widening(&granted).lines(),
///     ["keep a database of its own", "send POST requests to https://api.example.org/v1/ and below"]
/// );
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Permissions {
    /// Use the user's models.
    #[serde(with = "reading::llm", skip_serializing_if = "Option::is_none")]
    pub llm: Option<Llm>,
    /// Ask the user's embedding model for vectors.
    #[serde(skip_serializing_if = "is_false")]
    pub embeddings: bool,
    /// Read the conversation.
    #[serde(skip_serializing_if = "is_false")]
    pub history: bool,
    /// Watch the agent loop, and stop tool calls.
    #[serde(skip_serializing_if = "is_false")]
    pub hooks: bool,
    /// Keep a database of its own.
    #[serde(skip_serializing_if = "is_false")]
    pub sql: bool,
    /// The user's documents that it reads and writes, by name.
    #[serde(deserialize_with = "reading::documents", skip_serializing_if = "Vec::is_empty")]
    pub documents: Vec<String>,
    /// The folders that it works in.
    #[serde(deserialize_with = "reading::few", skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<Root>,
    /// The parts of the web that it sends requests to.
    #[serde(deserialize_with = "reading::few", skip_serializing_if = "Vec::is_empty")]
    pub http: Vec<Http>,
    /// The programs that it runs.
    #[serde(deserialize_with = "reading::few", skip_serializing_if = "Vec::is_empty")]
    pub process: Vec<Program>,
    /// The variables of the user that its programs get.
    #[serde(deserialize_with = "reading::few", skip_serializing_if = "Vec::is_empty")]
    pub process_env: Vec<EnvironmentName>,
    /// The variables that its section of the configuration uses.
    #[serde(deserialize_with = "reading::few", skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<EnvironmentName>,
    /// The secrets that the host inserts into its requests.
    #[serde(deserialize_with = "reading::few", skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<Secret>,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// Use of the user's models: `true`, or limited to tasks and a budget.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Llm {
    /// The only tasks, such as `compression`; none for all tasks.
    pub tasks: Option<Vec<String>>,
    /// The most tokens in a session, sent and received; none without a limit.
    pub budget: Option<u64>,
}

/// A folder that a plugin requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Root {
    /// `workspace` or `skills`.
    #[serde(deserialize_with = "reading::root")]
    pub root: String,
    /// The access to it.
    #[serde(default)]
    pub access: Access,
}

/// What a plugin may do in a folder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Read files.
    #[default]
    Read,
    /// Read and change files.
    Write,
}

/// Requests to part of the web.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Http {
    /// The address with everything below it, such as `https://api.example.org/v1/`.
    pub url: Address,
    /// The methods in capitals; `GET` includes `HEAD`.
    #[serde(default = "reading::get", deserialize_with = "reading::methods")]
    pub methods: Vec<String>,
}

/// A value that the host inserts into the plugin's requests, and that the plugin never sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Secret {
    /// The plugin's name for it.
    #[serde(deserialize_with = "reading::secret_name")]
    pub name: String,
    /// The variable with its value, in the environment or in `.env`.
    pub env: EnvironmentName,
    /// The only recipients.
    #[serde(deserialize_with = "reading::audience")]
    pub audience: Address,
    /// Whether the plugin may replace the value, such as a token that a server renews.
    #[serde(default, skip_serializing_if = "is_false")]
    pub writable: bool,
}

impl Permissions {
    /// Whether these are no permissions.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The part of this request that takes effect under a grant: never more than either of them.
    #[must_use]
    pub fn within(&self, granted: &Self) -> Self {
        let folder = |requested: &Root| {
            let access = granted.access_to(&requested.root)?.min(requested.access);
            Some(Root { root: requested.root.clone(), access })
        };
        let mut http: Vec<Http> = Vec::new();
        for part in self.http.iter().flat_map(|requested| granted.http.iter().filter_map(|given| requested.meet(given)))
        {
            if !http.contains(&part) {
                http.push(part);
            }
        }
        Self {
            llm: self.llm.as_ref().zip(granted.llm.as_ref()).and_then(|(requested, given)| requested.within(given)),
            embeddings: self.embeddings && granted.embeddings,
            history: self.history && granted.history,
            hooks: self.hooks && granted.hooks,
            sql: self.sql && granted.sql,
            documents: both(&self.documents, &granted.documents),
            files: self.files.iter().filter_map(folder).collect(),
            http,
            process: both(&self.process, &granted.process),
            process_env: both(&self.process_env, &granted.process_env),
            env: both(&self.env, &granted.env),
            secrets: self.secrets.iter().flat_map(|requested| requested.within(&granted.secrets)).collect(),
        }
    }

    /// The part of this request that goes beyond a grant, and needs the user's consent.
    #[must_use]
    pub fn widening(&self, granted: &Self) -> Self {
        let folder =
            |requested: &&Root| granted.access_to(&requested.root).is_none_or(|given| given < requested.access);
        Self {
            llm: self.llm.as_ref().and_then(|requested| requested.beyond(granted.llm.as_ref())),
            embeddings: self.embeddings && !granted.embeddings,
            history: self.history && !granted.history,
            hooks: self.hooks && !granted.hooks,
            sql: self.sql && !granted.sql,
            documents: beyond(&self.documents, &granted.documents),
            files: self.files.iter().filter(folder).cloned().collect(),
            http: self.http.iter().filter_map(|requested| requested.beyond(&granted.http)).collect(),
            process: beyond(&self.process, &granted.process),
            process_env: beyond(&self.process_env, &granted.process_env),
            env: beyond(&self.env, &granted.env),
            secrets: self.secrets.iter().filter(|requested| !requested.is_within(&granted.secrets)).cloned().collect(),
        }
    }

    /// Both together: a new grant on top of an earlier one. A limit of `llm` is replaced.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        let more = other.widening(&self);
        if more.llm.is_some() {
            self.llm.clone_from(&other.llm);
        }
        self.embeddings |= more.embeddings;
        self.history |= more.history;
        self.hooks |= more.hooks;
        self.sql |= more.sql;
        self.documents.extend(more.documents);
        self.files.retain(|root| !more.files.iter().any(|other| other.root == root.root));
        self.files.extend(more.files);
        // A template has one address at a time.
        self.http.retain(|http| !more.http.iter().any(|other| other.replaces(http)));
        self.http.extend(more.http);
        self.process.extend(more.process);
        self.process_env.extend(more.process_env);
        self.env.extend(more.env);
        self.secrets.retain(|secret| !more.secrets.iter().any(|other| other.replaces(secret)));
        self.secrets.extend(more.secrets);
        self
    }

    /// The same permissions with the addresses that a configuration has. `is_local` tells whether a host is in the user's
    /// own network.
    #[must_use]
    pub fn resolve(mut self, value: &dyn Fn(&str) -> Option<String>, is_local: &dyn Fn(&str) -> bool) -> Self {
        for http in &mut self.http {
            http.url = http.url.resolve(value, is_local);
        }
        for secret in &mut self.secrets {
            secret.audience = secret.audience.resolve(value, is_local);
        }
        self
    }

    /// The templates of this request that a grant has under no address: the user declined them.
    #[must_use]
    pub fn declined_templates(&self, granted: &Self) -> Vec<Template> {
        let templates = |permissions: &Self| -> Vec<Template> {
            permissions.addresses().filter_map(|address| address.template().cloned()).collect()
        };
        beyond(&templates(self), &templates(granted))
    }

    /// The same permissions without these templates.
    #[must_use]
    pub fn without_templates(mut self, templates: &[Template]) -> Self {
        let stays = |address: &Address| address.template().is_none_or(|template| !templates.contains(template));
        self.http.retain(|http| stays(&http.url));
        self.secrets.retain(|secret| stays(&secret.audience));
        self
    }

    /// Whether an address is taken from the configuration.
    pub fn has_templates(&self) -> bool {
        self.addresses().any(|address| address.template().is_some())
    }

    /// All addresses.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.http.iter().map(|http| &http.url).chain(self.secrets.iter().map(|secret| &secret.audience))
    }

    /// A line for each right, to follow "it wants to".
    pub fn lines(&self) -> Vec<String> {
        Right::ALL.iter().flat_map(|right| right.lines(self)).collect()
    }

    /// The JSON Schema of the section `permissions` of a manifest.
    pub fn schema() -> serde_json::Value {
        right::schema()
    }

    /// The access to a folder; none if the folder is not listed.
    fn access_to(&self, root: &str) -> Option<Access> {
        self.files.iter().filter(|given| given.root == root).map(|given| given.access).max()
    }
}

/// The items of both lists, each once.
fn both<T: PartialEq + Clone>(requested: &[T], granted: &[T]) -> Vec<T> {
    once(requested.iter().filter(|item| granted.contains(item)))
}

/// The items that only the first list has, each once.
fn beyond<T: PartialEq + Clone>(requested: &[T], granted: &[T]) -> Vec<T> {
    once(requested.iter().filter(|item| !granted.contains(item)))
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
    /// Whether the models may be used for a task.
    pub fn admits(&self, task: &str) -> bool {
        self.tasks.as_ref().is_none_or(|tasks| tasks.iter().any(|own| own == task))
    }

    fn within(&self, granted: &Self) -> Option<Self> {
        let tasks = match (&self.tasks, &granted.tasks) {
            (Some(requested), Some(given)) => Some(both(requested, given)),
            (one, other) => one.as_ref().or(other.as_ref()).cloned(),
        };
        let budget = self.budget.into_iter().chain(granted.budget).min();
        // Without any task, the models may not be used at all.
        tasks.as_ref().is_none_or(|tasks| !tasks.is_empty()).then_some(Self { tasks, budget })
    }

    fn beyond(&self, granted: Option<&Self>) -> Option<Self> {
        let Some(granted) = granted else { return Some(self.clone()) };
        let more = match (self.budget, granted.budget) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(requested), Some(given)) => requested > given,
        };
        if more {
            return Some(self.clone());
        }
        let tasks = match (&self.tasks, &granted.tasks) {
            (_, None) => return None,
            (None, Some(_)) => None,
            (Some(requested), Some(given)) => Some(beyond(requested, given)),
        };
        tasks.as_ref().is_none_or(|tasks| !tasks.is_empty()).then_some(Self { tasks, budget: self.budget })
    }
}

impl Http {
    /// Whether this permission includes a method. `GET` includes `HEAD`.
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

impl Http {
    /// Whether this takes the place of a grant for another address of the same template.
    fn replaces(&self, other: &Self) -> bool {
        self.url.replaces(&other.url)
    }
}

impl Secret {
    /// Whether this takes the place of a grant for another address of the same template.
    fn replaces(&self, other: &Self) -> bool {
        self.is_same(other) && self.audience.replaces(&other.audience)
    }

    fn is_within(&self, granted: &[Self]) -> bool {
        let covers = |given: &Self| given.audience.covers(&self.audience) && (given.writable || !self.writable);
        granted.iter().any(|given| self.is_same(given) && covers(given))
    }

    fn within<'a>(&'a self, granted: &'a [Self]) -> impl Iterator<Item = Self> + 'a {
        let given = granted.iter().filter(|given| self.is_same(given));
        given.filter_map(|given| {
            let writable = self.writable && given.writable;
            Some(Self { audience: self.audience.meet(&given.audience)?, writable, ..self.clone() })
        })
    }

    fn is_same(&self, other: &Self) -> bool {
        self.name == other.name && self.env == other.env
    }
}

#[cfg(test)]
mod tests;
