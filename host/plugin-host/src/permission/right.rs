//! The rights: for each its name, its purpose, its form in a manifest, and its descriptions for people.

use serde_json::{Value, json};

use super::{Access, Address, Http, Llm, Permissions};

/// The folders that a plugin can request.
pub(super) const ROOTS: &[&str] = &["workspace", "skills", "results"];

/// A right that a manifest can request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Right {
    /// Use models.
    Llm,
    /// Ask for vectors of texts.
    Embeddings,
    /// Read the conversation.
    History,
    /// Watch the agent loop.
    Hooks,
    /// Keep a database.
    Sql,
    /// Read and write documents of the user.
    Documents,
    /// Work in folders.
    Files,
    /// Send requests to the web.
    Http,
    /// Run programs.
    Process,
    /// Give variables to programs.
    ProcessEnv,
    /// Read variables.
    Env,
    /// Let the host insert secrets into requests.
    Secrets,
}

/// The definition of a right.
struct Definition {
    name: &'static str,
    /// To follow "the plugin may not".
    deed: &'static str,
    meaning: &'static str,
    form: &'static str,
}

impl Right {
    /// All rights, in the order of listings.
    pub const ALL: &[Self] = &[
        Self::Llm,
        Self::Embeddings,
        Self::History,
        Self::Hooks,
        Self::Sql,
        Self::Documents,
        Self::Files,
        Self::Http,
        Self::Process,
        Self::ProcessEnv,
        Self::Env,
        Self::Secrets,
    ];

    fn definition(self) -> Definition {
        let (name, deed, meaning, form) = match self {
            Self::Llm => (
                "llm",
                "ask your models",
                "use the user's models, for some tasks or all, optionally with a token budget per session; plugins never see a key",
                "llm: true` or `llm: {tasks: [compression], budget: 20000}",
            ),
            Self::Embeddings => (
                "embeddings",
                "ask for vectors of texts",
                "vectors of texts from the model or plugin below `auxiliary.embeddings`; plugins never see a key",
                "embeddings: true",
            ),
            Self::History => {
                ("history", "read your conversations", "read and search the conversation", "history: true")
            }
            Self::Hooks => (
                "hooks",
                "watch the agent",
                "see every tool call with its arguments and result, and the usage of every model reply; block tool calls or \
                 ask the user about them",
                "hooks: true",
            ),
            Self::Sql => ("sql", "keep a database", "a SQLite database of its own", "sql: true"),
            Self::Documents => (
                "documents",
                "keep this document",
                "read and change documents that people edit too; a plugin's own documents need no permission",
                "documents: [NOTES.md]",
            ),
            Self::Files => (
                "files",
                "work in this folder",
                "`read` or `write` in `workspace`, the folder where the session began, or in `skills`; `read` in `results`, the session's results that are too long for the model",
                "files: [{root: workspace, access: read}]",
            ),
            Self::Http => (
                "http",
                "send this request",
                "requests to an address and everything below it, with some methods (default `GET`); `*.` means all \
                 hosts below a domain, `*` alone every public host, and `${config.KEY}` a value of the plugin's configuration",
                "http: [{url: \"https://api.example.org/v1/\", methods: [GET, POST]}]",
            ),
            Self::Process => (
                "process",
                "run this program",
                "run programs by name in `PATH` or by absolute path; each run also needs approval",
                "process: [git]",
            ),
            Self::ProcessEnv => (
                "process_env",
                "give this variable to a program",
                "variables of yours that its programs get; without it, a program gets none of them",
                "process_env: [SSH_AUTH_SOCK]",
            ),
            Self::Env => (
                "env",
                "read this variable",
                "variables that its section in `plugins.entries` may use as `${NAME}`; its programs do not get them",
                "env: [EXAMPLE_REGION]",
            ),
            Self::Secrets => (
                "secrets",
                "use this secret",
                "variables whose value the host inserts into requests to one audience; the plugin never sees them; with \
                 `writable: true` it may replace the value by a new one",
                "secrets: [{name: api_key, env: EXAMPLE_API_KEY, audience: \"https://api.example.org/\"}]",
            ),
        };
        Definition { name, deed, meaning, form }
    }

    /// Whether it reaches beyond the plugin's own data: the user's conversations, files, programs, secrets or the web. A consent
    /// screen shows these last.
    pub fn is_dangerous(self) -> bool {
        !matches!(self, Self::Llm | Self::Embeddings | Self::Sql | Self::Documents)
    }

    /// Its name in a manifest.
    pub fn name(self) -> &'static str {
        self.definition().name
    }

    /// What it allows.
    pub fn meaning(self) -> &'static str {
        self.definition().meaning
    }

    /// An example of its form in a manifest, in YAML.
    pub fn form(self) -> &'static str {
        self.definition().form
    }

    /// The right of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|right| right.name() == name)
    }

    /// The error message for a plugin without it.
    pub fn denial(self, plugin: &str) -> String {
        let Definition { name, deed, .. } = self.definition();
        format!(
            "denied: the plugin has no permission to {deed} (`{name}`); grant the plugin `{plugin}` its permissions"
        )
    }

    /// Its lines in [`Permissions::lines`].
    pub fn lines(self, of: &Permissions) -> Vec<String> {
        match self {
            Self::Llm => of.llm.iter().map(llm).collect(),
            Self::Embeddings => said(of.embeddings, "send texts to your embedding model"),
            Self::History => said(of.history, "read and search your conversations"),
            Self::Hooks => said(
                of.hooks,
                "see every tool call with its arguments and result, see the usage of every model reply, and stop tool calls",
            ),
            Self::Sql => said(of.sql, "keep a database of its own"),
            Self::Documents => {
                of.documents.iter().map(|name| format!("read and change your document {name}")).collect()
            }
            Self::Files => {
                let line = |root: &super::Root| {
                    let deed = if root.access == Access::Write { "read and change" } else { "read" };
                    match root.root.as_str() {
                        "workspace" => format!("{deed} files in the folder where a session is started"),
                        "results" => "read the long results of tools in its session".to_owned(),
                        other => format!("{deed} files in your folder {other}"),
                    }
                };
                of.files.iter().map(line).collect()
            }
            Self::Http => of.http.iter().map(http).collect(),
            Self::Process => {
                of.process.iter().map(|program| format!("run the program {program}, after asking you")).collect()
            }
            Self::ProcessEnv => of
                .process_env
                .iter()
                .map(|name| format!("give the value of {name} to the programs that it runs"))
                .collect(),
            Self::Env => {
                of.env.iter().map(|name| format!("read the variable {name} if your configuration uses it")).collect()
            }
            Self::Secrets => {
                let line = |secret: &super::Secret| {
                    let super::Secret { env, audience, writable, .. } = secret;
                    let replaces = if *writable { ", and replace the value by a new one" } else { "" };
                    let to = match audience.is_protected() || audience.site().is_none() {
                        true => shown(audience),
                        false => format!("{}, which stays closed because it is not encrypted", shown(audience)),
                    };
                    format!("send the value of {env} in its requests to {to}, without seeing it{replaces}")
                };
                of.secrets.iter().map(line).collect()
            }
        }
    }

    fn schema(self) -> Value {
        let list = |items: Value| json!({ "type": "array", "maxItems": 64, "uniqueItems": true, "items": items });
        let section = |required: &[&str], properties: Value| json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false });
        let variable = json!({ "type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]{0,63}$" });
        let plain = json!({ "type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$" });
        let site = json!({ "type": "string", "pattern": "^(https?://|\\$\\{config\\.)[^\\s?#@]+$" });
        match self {
            Self::Llm => {
                let mut tasks = list(plain);
                tasks["minItems"] = json!(1);
                let budget = json!({ "type": "integer", "minimum": 0 });
                json!({ "oneOf": [{ "type": "boolean" }, section(&[], json!({ "tasks": tasks, "budget": budget }))] })
            }
            Self::Embeddings | Self::History | Self::Hooks | Self::Sql => json!({ "type": "boolean" }),
            Self::Documents => list(json!({ "type": "string", "pattern": "^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$" })),
            Self::Files => list(section(
                &["root"],
                json!({ "root": { "enum": ROOTS }, "access": { "enum": ["read", "write"], "default": "read" } }),
            )),
            Self::Http => {
                let mut methods = list(json!({ "type": "string", "pattern": "^[A-Z]{1,32}$" }));
                methods["minItems"] = json!(1);
                methods["default"] = json!(["GET"]);
                list(section(&["url"], json!({ "url": site, "methods": methods })))
            }
            Self::Process => list(json!({ "type": "string", "minLength": 1, "maxLength": 256 })),
            Self::ProcessEnv | Self::Env => list(variable),
            Self::Secrets => {
                let writable = json!({ "type": "boolean", "default": false });
                list(section(
                    &["name", "env", "audience"],
                    json!({ "name": plain, "env": variable, "audience": site, "writable": writable }),
                ))
            }
        }
    }
}

pub(super) fn schema() -> Value {
    let described = |right: &Right| {
        let mut schema = right.schema();
        schema["description"] = json!(right.meaning());
        (right.name().to_owned(), schema)
    };
    let properties: serde_json::Map<String, Value> = Right::ALL.iter().map(described).collect();
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

/// The table of `docs/plugins/permissions.md`.
#[cfg(test)]
pub(super) fn table() -> String {
    let row = |right: &Right| {
        let (name, meaning, form) = (right.name(), right.meaning(), right.form());
        format!("| `{name}` | {meaning} | `{form}` |\n")
    };
    let rows: String = Right::ALL.iter().map(row).collect();
    format!("| permission | what it allows | in a manifest |\n|---|---|---|\n{rows}")
}

fn said(there: bool, line: &str) -> Vec<String> {
    if there { vec![line.to_owned()] } else { Vec::new() }
}

fn llm(llm: &Llm) -> String {
    let mut line = "ask your models".to_owned();
    if let Some(tasks) = &llm.tasks {
        line.push_str(&format!(" for {}", tasks.join(", ")));
    }
    if let Some(budget) = llm.budget {
        line.push_str(&format!(", up to {budget} tokens in a session"));
    }
    line
}

fn http(http: &Http) -> String {
    let methods = match http.methods.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [front @ .., last] => format!("{} and {last}", front.join(", ")),
    };
    format!("send {methods} requests to {}", shown(&http.url))
}

/// An address for people, with the place that it leads to.
fn shown(address: &Address) -> String {
    let Some(site) = address.site() else {
        return format!("the address {address}, once your configuration has one and you allow it");
    };
    if site.is_every_host() {
        return format!("any public host, over {}", if site.is_encrypted() { "https" } else { "http, unencrypted" });
    }
    let place = match site.host().map(|host| (host, host.parse())) {
        Some(("localhost", _)) => ", on this machine",
        Some((_, Ok(address))) if hermes_capabilities::http::is_loopback(address) => ", on this machine",
        Some((_, Ok(address))) if !hermes_capabilities::http::is_public(address) => ", in your own network",
        _ if address.is_local() => ", in your own network",
        _ => "",
    };
    let origin = match address.template() {
        Some(template) => {
            let keys: Vec<String> = template.keys().map(|key| format!("`{key}`")).collect();
            format!(" (from {} in your configuration)", keys.join(" and "))
        }
        None => String::new(),
    };
    format!("{site} and below{place}{origin}")
}
