//! How a server is reached, and what is used of it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::confinement::Confinement;

/// A server, as the user configured it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerDefinition {
    /// Its name: [`is_server_name`](crate::is_server_name).
    pub name: String,
    /// How it is reached.
    pub endpoint: Endpoint,
    /// How long a call may take.
    pub timeout: Duration,
    /// How long it may take to connect and to list its tools.
    pub connect_timeout: Duration,
    /// Which of its tools are used.
    pub tools: ToolChoice,
    /// Whether the user believes the server when it says that a tool only reads.
    pub trusts_hints: bool,
    /// Whether its forms are accepted with the values that it proposes where nobody can answer.
    pub accepts_defaults: bool,
    /// The most tokens of the user's models that it may use in a session; 0 for none.
    pub sampling: u64,
    /// The most tokens of its instructions that the model gets; 0 for none.
    pub instructions: u32,
    /// Whether sessions of a process share it: the user says that it keeps nothing between calls.
    pub is_shared: bool,
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// A program that is started and spoken to over its standard streams.
    Program(Program),
    /// An address on the web, or on this machine.
    Web(WebAddress),
}

/// A program that is a server.
#[derive(Clone, PartialEq, Eq)]
pub struct Program {
    /// Its name, which is looked up in `PATH`, or its path.
    pub command: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// The variables that it gets beside the standard ones.
    pub variables: BTreeMap<String, String>,
    /// The folder that it runs in. A relative one is below the session's folder.
    pub folder: PathBuf,
    /// The standard variables.
    pub environment: Vec<(OsString, OsString)>,
    /// What it may do on this machine.
    pub confinement: Confinement,
}

/// The address of a server that speaks streamable HTTP.
#[derive(Clone, PartialEq, Eq)]
pub struct WebAddress {
    /// The address.
    pub url: url::Url,
    /// Headers of each request.
    pub headers: BTreeMap<String, String>,
}

// Values of variables and headers may be keys, and so may parts of an address.

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.variables.keys().collect();
        let mut shown = f.debug_struct("Program");
        shown.field("command", &self.command).field("arguments", &self.arguments).field("variables", &names);
        shown.field("folder", &self.folder).field("confinement", &self.confinement).finish_non_exhaustive()
    }
}

impl fmt::Debug for WebAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.headers.keys().collect();
        f.debug_struct("WebAddress")
            .field("host", &self.url.host_str())
            .field("headers", &names)
            .finish_non_exhaustive()
    }
}

/// The host's variables that every server's program gets: those with which programs find themselves and the user's files, and no
/// keys.
pub fn standard_environment(variable: &dyn Fn(&str) -> Option<OsString>) -> Vec<(OsString, OsString)> {
    const NAMES: &[&str] = &[
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "LC_ALL",
        "LC_CTYPE",
        "TMPDIR",
        // Where a company or a test has certificates of its own.
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "NODE_EXTRA_CA_CERTS",
        "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "XDG_RUNTIME_DIR",
        "XDG_STATE_HOME",
    ];
    let path = variable("PATH").unwrap_or_default();
    // Relative folders would depend on the program's folder.
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    let path = std::env::join_paths(folders).unwrap_or_default();
    // There is no terminal, so programs should not expect one.
    let fixed = [("PATH".into(), path), ("TERM".into(), "dumb".into())];
    fixed.into_iter().chain(NAMES.iter().filter_map(|name| Some((name.into(), variable(name)?)))).collect()
}

/// Which tools of a server are used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolChoice {
    /// Only these, by the server's names; all if the list is missing.
    pub include: Option<Vec<String>>,
    /// Not these.
    pub exclude: Vec<String>,
    /// Whether tools read its resources.
    pub resources: bool,
    /// Whether tools read its prompts.
    pub prompts: bool,
}

impl Default for ToolChoice {
    fn default() -> Self {
        Self { include: None, exclude: Vec::new(), resources: true, prompts: true }
    }
}

impl ToolChoice {
    /// Whether a tool is used.
    pub fn has(&self, tool: &str) -> bool {
        let named = |names: &[String]| names.iter().any(|name| name == tool);
        self.include.as_deref().is_none_or(named) && !named(&self.exclude)
    }
}

impl ServerDefinition {
    /// A hash of what the server is. Values of variables and headers do not count: a new key makes no other server.
    pub fn identity(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        let mut add = |text: &str| {
            // With its length, so that two texts are never taken for others.
            hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        };
        match &self.endpoint {
            Endpoint::Program(program) => {
                add("program");
                add(&program.command);
                program.arguments.iter().for_each(|argument| add(argument));
                add("variables");
                program.variables.keys().for_each(|name| add(name));
                add(&program.folder.display().to_string());
            }
            Endpoint::Web(address) => {
                add("web");
                add(address.url.as_str());
                address.headers.keys().for_each(|name| add(name));
            }
        }
        hasher.finalize().to_hex().to_string()
    }

    /// Whether its tools can do no more than a confined program without keys of the user, so that the mode `auto` covers them: a
    /// program in a sandbox, without the network and without variables of its own.
    pub fn is_covered(&self) -> bool {
        match &self.endpoint {
            Endpoint::Program(program) => program.variables.is_empty() && program.confinement.is_complete(),
            Endpoint::Web(_) => false,
        }
    }

    /// The program or the address, for people. Values of variables and headers are not in it, and neither is the query of an
    /// address, which may contain a key.
    pub fn place(&self) -> String {
        match &self.endpoint {
            Endpoint::Program(program) => {
                std::iter::once(&program.command).chain(&program.arguments).cloned().collect::<Vec<_>>().join(" ")
            }
            Endpoint::Web(address) => {
                let mut url = address.url.clone();
                url.set_query(None);
                // An address that cannot have them has none.
                let _ = url.set_password(None);
                let _ = url.set_username("");
                url.to_string()
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn program(command: &str, arguments: &[&str]) -> ServerDefinition {
        ServerDefinition {
            name: "fixture".to_owned(),
            endpoint: Endpoint::Program(Program {
                command: command.to_owned(),
                arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
                variables: BTreeMap::new(),
                folder: std::env::temp_dir(),
                environment: std::env::var_os("PATH").map(|path| ("PATH".into(), path)).into_iter().collect(),
                confinement: Confinement::off(),
            }),
            timeout: Duration::from_secs(20),
            connect_timeout: Duration::from_secs(20),
            tools: ToolChoice::default(),
            trusts_hints: false,
            accepts_defaults: false,
            sampling: 0,
            instructions: 0,
            is_shared: false,
        }
    }

    fn with(change: impl FnOnce(&mut Program)) -> String {
        let mut definition = program("server", &["a", "b"]);
        if let Endpoint::Program(program) = &mut definition.endpoint {
            program.variables.insert("KEY".to_owned(), "1".to_owned());
            change(program);
        }
        definition.identity()
    }

    #[test]
    fn another_program_is_another_server_and_another_key_is_not() {
        let same = with(|_| ());
        assert_eq!(with(|program| drop(program.variables.insert("KEY".to_owned(), "2".to_owned()))), same);
        let others = [
            with(|program| program.command = "other".to_owned()),
            with(|program| program.arguments = vec!["ab".to_owned()]),
            with(|program| program.arguments.push("c".to_owned())),
            with(|program| drop(program.variables.insert("PATH".to_owned(), "/x".to_owned()))),
            with(|program| program.folder = "/elsewhere".into()),
        ];
        assert!(others.iter().all(|other| *other != same));
    }

    #[test]
    fn a_program_gets_the_standard_variables_and_no_keys() {
        let variable = |name: &str| match name {
            "PATH" => Some("/bin:relative:/usr/bin".into()),
            "HOME" => Some("/home/me".into()),
            "OPENAI_API_KEY" | "HERMES_HOME" | "LD_PRELOAD" => Some("secret".into()),
            _ => None,
        };
        let environment = standard_environment(&variable);
        let expected = [("PATH", "/bin:/usr/bin"), ("TERM", "dumb"), ("HOME", "/home/me")];
        assert_eq!(environment, expected.map(|(name, value)| (name.into(), value.into())));
    }

    #[test]
    fn no_key_is_printed() {
        let mut definition = program("server", &[]);
        if let Endpoint::Program(program) = &mut definition.endpoint {
            program.variables.insert("KEY".to_owned(), "secret".to_owned());
        }
        let url = url::Url::parse("https://example.com/mcp?key=secret").expect("it is an address");
        let web = Endpoint::Web(WebAddress { url, headers: [("X-Key".to_owned(), "secret".to_owned())].into() });
        let printed = format!("{definition:?} {web:?}");
        assert!(!printed.contains("secret") && printed.contains("KEY") && printed.contains("X-Key"), "{printed}");
    }

    #[test]
    fn a_place_shows_no_key() {
        let mut definition = program("server", &["--all"]);
        assert_eq!(definition.place(), "server --all");
        let url = url::Url::parse("https://me:secret@mcp.example.com/mcp?key=secret").expect("it is an address");
        definition.endpoint = Endpoint::Web(WebAddress { url, headers: BTreeMap::new() });
        assert_eq!(definition.place(), "https://mcp.example.com/mcp");
    }

    #[test]
    fn a_choice_includes_and_excludes_by_the_servers_names() {
        let choice = |include: Option<&[&str]>, exclude: &[&str]| ToolChoice {
            include: include.map(|names| names.iter().map(|&name| name.to_owned()).collect()),
            exclude: exclude.iter().map(|&name| name.to_owned()).collect(),
            ..ToolChoice::default()
        };
        assert!(choice(None, &[]).has("a"));
        assert!(!choice(None, &["a"]).has("a") && choice(None, &["a"]).has("b"));
        assert!(choice(Some(&["a"]), &[]).has("a") && !choice(Some(&["a"]), &[]).has("b"));
        assert!(!choice(Some(&["a"]), &["a"]).has("a") && !choice(Some(&[]), &[]).has("a"));
    }
}
