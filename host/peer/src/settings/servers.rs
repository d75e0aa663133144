//! MCP servers. Each is taken as a whole or not at all.

use hermes_config::{named_folders, redacted, redacted_text};
use serde_json::{Map, Value};

use super::exact::word;
use super::{Translator, at, same};

/// What a section of a server may have here.
const OF_SERVER: [&str; 9] =
    ["enabled", "command", "args", "env", "cwd", "url", "headers", "timeout", "connect_timeout"];
const OF_SERVER_TOOLS: [&str; 4] = ["include", "exclude", "resources", "prompts"];

impl Translator<'_> {
    pub(super) fn servers(&mut self, root: &Value) {
        self.used.insert("mcp_servers".to_owned());
        for (name, section) in root["mcp_servers"].as_object().into_iter().flatten() {
            let of = format!("mcp_servers.{name}");
            let Some(server) = section.as_object() else {
                self.report.left(format!("{of}: it is not a section"));
                continue;
            };
            let before = (self.edit.clone(), self.report.clone());
            match self.server(name, server) {
                Ok(Some(())) => self.report.taken(of),
                Ok(None) => self.known += 1,
                Err(why) => {
                    (self.edit, self.report) = before;
                    self.report.left(format!("{of}: {why}"));
                }
            }
        }
    }

    /// Nothing if the server is here.
    fn server(&mut self, name: &str, server: &Map<String, Value>) -> Result<Option<()>, String> {
        let plain = |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_');
        if name.is_empty() || !name.chars().all(plain) {
            return Err("its name has other characters than letters, digits, `-` and `_`".to_owned());
        }
        // Its name becomes part of the names of its tools, which the model reads.
        let spoken = name.replace(['-', '_'], " ");
        for text in [name, &spoken] {
            super::admitted("name", &text.into(), super::Forms::Braces, self.with_keys)
                .map_err(|refusal| format!("its name: {refusal}"))?;
        }
        if server.get("transport").is_some_and(|transport| transport == "sse") {
            return Err("it speaks SSE, which is not spoken here".to_owned());
        }
        let mut wanted: Map<String, Value> = Map::new();
        let mut unknown = Vec::new();
        for (key, value) in server {
            match key.as_str() {
                "tools" => {
                    for (inner, value) in value.as_object().into_iter().flatten() {
                        match OF_SERVER_TOOLS.contains(&inner.as_str()) {
                            true => drop(wanted.insert(format!("tools.{inner}"), value.clone())),
                            false => unknown.push(format!("tools.{inner}")),
                        }
                    }
                }
                "transport" => {}
                known if OF_SERVER.contains(&known) => drop(wanted.insert(key.clone(), value.clone())),
                _ => unknown.push(key.clone()),
            }
        }
        wanted.retain(|_, value| !super::is_empty(value));
        for (_, value) in wanted.iter_mut().filter(|(key, _)| ["env", "headers"].contains(&key.as_str())) {
            // The peer converts other values to text.
            let Value::Object(values) = value else { continue };
            for value in values.values_mut().filter(|value| !value.is_string()) {
                *value = value.to_string().into();
            }
        }
        if let Some(here) = at(&self.own, &format!("mcp_servers.{name}")) {
            let is_same = wanted.iter().all(|(key, value)| at(here, key).is_some_and(|here| same(here, value)));
            return if is_same { Ok(None) } else { Err("another server of this name is here".to_owned()) };
        }
        if self.plugins.get(name).is_some() || name == "hermes" {
            return Err(format!("a plugin here is called {name}; `hermes mcp add` adds the server under another name"));
        }
        // A server of files works in the roots only, whatever its arguments say.
        let arguments = texts(server.get("args"));
        let folders: Vec<&str> = match wanted.contains_key("command") {
            true => named_folders(&arguments).collect(),
            false => Vec::new(),
        };
        if !folders.is_empty() {
            wanted.insert("write".to_owned(), folders.clone().into());
        }
        let runs = place(server);
        const NAMED: [&str; 5] = ["command", "args", "url", "enabled", "write"];
        let shown = wanted.iter().filter(|(key, _)| !NAMED.contains(&key.as_str()));
        let shown: String = shown.map(|(key, value)| besides(key, value)).collect();
        self.report.right(match server.get("enabled") == Some(&false.into()) {
            true => format!("the server {name} stays off, as it is there: {runs}{shown}"),
            false => format!("each session now starts or asks the server {name}: {runs}{shown}"),
        });
        for (key, value) in &wanted {
            self.set(&format!("mcp_servers.{name}.{key}"), value, &runs)?;
        }
        super::sound(self.setup, &self.edit)?;
        if !unknown.is_empty() {
            self.report.left(format!("mcp_servers.{name}: {}", unknown.join(", ")));
        }
        if !folders.is_empty() {
            self.report.right(format!(
                "mcp_servers.{name}.write: {}; the arguments name it, and the server may write there",
                folders.iter().map(|folder| word(folder)).collect::<Vec<_>>().join(", ")
            ));
        }
        Ok(Some(()))
    }
}

/// The program of a server with its arguments, or its address, without keys.
fn place(server: &Map<String, Value>) -> String {
    let arguments = server.get("args").filter(|_| server.contains_key("command")).cloned().map(redacted);
    let first = server.get("command").or_else(|| server.get("url")).and_then(Value::as_str).unwrap_or_default();
    let words = std::iter::once(redacted_text(first)).chain(texts(arguments.as_ref()));
    words.map(|text| word(&text)).collect::<Vec<_>>().join(" ")
}

/// What goes along with a program or a request: variables, headers, the folder.
fn besides(key: &str, value: &Value) -> String {
    let what = match key {
        "env" => "the variables",
        "headers" => "the headers",
        "cwd" => "the folder",
        other => other,
    };
    // As the user wrote them, but for what looks like a key: the headings of `env` and `headers` would hide everything.
    let shown = match value {
        Value::Object(values) => {
            let each =
                values.iter().map(|(name, value)| format!("{}={}", word(name), word(&super::shown(name, value))));
            each.collect::<Vec<_>>().join(" ")
        }
        Value::String(_) => word(&super::shown(key, value)),
        other => super::shown(key, other),
    };
    format!("; with {what} {shown}")
}

/// The texts of a list.
fn texts(list: Option<&Value>) -> Vec<String> {
    let items = list.and_then(Value::as_array).into_iter().flatten();
    items.map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned)).collect()
}
