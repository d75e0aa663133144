//! The servers of the Model Context Protocol: the sections below `mcp_servers`, checked.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hermes_diagnostic::{Diagnostic, Fix};
use hermes_mcp::{
    Confinement, Endpoint, Program, SandboxMode, ServerDefinition, ToolChoice, WebAddress, is_server_name,
    standard_environment,
};

use crate::settings::{McpSandbox, McpServerSection, SandboxChoice};
use crate::{Config, codes};

impl Config {
    /// The servers that are used, sorted by name. `variable` reads the process's environment, for standard variables.
    ///
    /// # Errors
    ///
    /// When a section is no server.
    pub fn mcp_servers(
        &self,
        variable: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<Vec<ServerDefinition>, Diagnostic> {
        let sections = self.settings().mcp_servers.iter();
        let sections = sections.filter_map(|(name, section)| Some((name, section.as_ref()?)));
        let used = sections.filter(|(_, section)| section.enabled);
        used.map(|(name, section)| self.mcp_server(name, section, variable)).collect()
    }

    /// One server, whether it is used or not.
    ///
    /// # Errors
    ///
    /// When the section is no server.
    pub fn mcp_server(
        &self,
        name: &str,
        section: &McpServerSection,
        variable: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<ServerDefinition, Diagnostic> {
        self.definition(name, section, variable).map_err(|(why, fix)| Diagnostic {
            code: codes::MCP_SERVER,
            what: "an MCP server cannot be used".to_owned(),
            why: format!("{}: `mcp_servers.{name}` {why}", self.file().display()),
            fix: Fix::words(fix),
        })
    }
}

/// The folders that a user names to a server among its arguments, as to a server of files. Not those around the user's home.
pub fn named_folders(arguments: &[String]) -> impl Iterator<Item = &str> {
    let home = std::env::home_dir();
    let is_meant = move |argument: &&str| {
        let path = Path::new(argument);
        path.is_absolute()
            && path.is_dir()
            && path
                .canonicalize()
                .is_ok_and(|real| real.parent().is_some() && home.as_ref().is_none_or(|home| !home.starts_with(&real)))
    };
    arguments.iter().map(String::as_str).filter(is_meant)
}

/// A flaw of a section, and what to do about it.
type Flaw = (String, &'static str);

impl Config {
    fn definition(
        &self,
        name: &str,
        section: &McpServerSection,
        variable: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<ServerDefinition, Flaw> {
        if !is_server_name(name) {
            return Err(("has a name that cannot be used".to_owned(), "use 1 to 32 letters, digits, `_` and `-`"));
        }
        let text =
            |text: &Option<String>| text.as_deref().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
        let endpoint = match (text(&section.command), text(&section.url)) {
            (Some(command), None) => self.program(command, section, variable)?,
            (None, Some(url)) => web(&url, section)?,
            (None, None) => return Err(("has neither a program nor an address".to_owned(), "set `command` or `url`")),
            (Some(_), Some(_)) => {
                return Err(("has a program and an address".to_owned(), "remove `command` or `url`"));
            }
        };
        let seconds = |seconds: u32| Duration::from_secs(seconds.into());
        Ok(ServerDefinition {
            name: name.to_owned(),
            endpoint,
            timeout: seconds(section.timeout.get()),
            connect_timeout: seconds(section.connect_timeout.get()),
            tools: ToolChoice {
                include: section.tools.include.clone(),
                exclude: section.tools.exclude.clone(),
                resources: section.tools.resources,
                prompts: section.tools.prompts,
            },
            trusts_hints: section.trust_hints,
            accepts_defaults: section.accept_defaults,
            sampling: section.sampling.get().into(),
            instructions: section.instructions.get(),
            is_shared: section.shared,
        })
    }

    fn program(
        &self,
        command: String,
        section: &McpServerSection,
        variable: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<Endpoint, Flaw> {
        if !section.headers.is_empty() {
            return Err(("has `headers` for a program".to_owned(), "use `env`, or set `url` in place of `command`"));
        }
        let is_variable = |name: &str| !name.is_empty() && !name.contains(['=', '\0']);
        if let Some(name) = section.env.keys().find(|name| !is_variable(name)) {
            return Err((format!("has the variable `{name}`, which is no name"), "correct the name"));
        }
        let texts = std::iter::once(&command).chain(&section.args).chain(section.env.values());
        if texts.into_iter().any(|text| text.contains('\0')) {
            return Err(("has a NUL character".to_owned(), "remove it"));
        }
        let home = variable("HOME").map(PathBuf::from);
        let folder = match &section.cwd {
            Some(folder) => in_home(folder, home.as_deref()),
            // Not the session's folder: some starters of programs run what they find in the current one.
            None => home.clone().unwrap_or_else(|| PathBuf::from("/")),
        };
        let confinement = self.confinement(&command, section, home.as_deref(), variable)?;
        Ok(Endpoint::Program(Program {
            confinement,
            command: in_home(&command, home.as_deref()).to_string_lossy().into_owned(),
            arguments: section.args.clone(),
            variables: section.env.clone(),
            folder,
            environment: standard_environment(variable),
        }))
    }

    fn confinement(
        &self,
        command: &str,
        section: &McpServerSection,
        home: Option<&Path>,
        variable: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<Confinement, Flaw> {
        let writable: Vec<PathBuf> = section.write.iter().map(|folder| in_home(folder, home)).collect();
        if let Some(folder) = writable.iter().find(|folder| !folder.is_absolute() || folder.parent().is_none()) {
            let why = format!("has `{}` in `write`, which is no folder that can be made writable", folder.display());
            return Err((why, "write an absolute path below `/`, or one that begins with `~/`"));
        }
        let settings = self.settings();
        Ok(Confinement {
            mode: match (section.sandbox, settings.sandbox.mode) {
                (McpSandbox::Workspace, _) | (McpSandbox::Auto, SandboxChoice::Require) => SandboxMode::Require,
                (McpSandbox::Off, _) | (McpSandbox::Auto, SandboxChoice::Off) => SandboxMode::Off,
                (McpSandbox::Auto, SandboxChoice::Auto) => SandboxMode::Auto,
            },
            network: section.network,
            writable,
            caches: caches(command, home, variable),
            hidden: settings.sandbox.hidden.iter().map(PathBuf::from).collect(),
            home: self.file().parent().map(Path::to_owned).unwrap_or_default(),
            protect: settings.approvals.protect.clone(),
            // Known once the folder of a session is.
            imported: Vec::new(),
        })
    }
}

/// The folders in which launchers such as `npx` and `uvx` store their downloads.
fn caches(command: &str, home: Option<&Path>, variable: &dyn Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let Some(home) = home else { return Vec::new() };
    let usual =
        variable("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute() && path.parent().is_some());
    let mut caches = vec![usual.unwrap_or_else(|| home.join(".cache"))];
    match Path::new(command).file_name().and_then(|name| name.to_str()) {
        Some("npx" | "npm" | "node") => caches.push(home.join(".npm")),
        Some("uvx" | "uv") => caches.push(home.join(".local/share/uv")),
        _ => {}
    }
    caches
}

/// The path, with the user's home in place of `~/`.
fn in_home(path: &str, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => path.into(),
    }
}

fn web(url: &str, section: &McpServerSection) -> Result<Endpoint, Flaw> {
    if section.sandbox != McpSandbox::Auto || !section.network || !section.write.is_empty() {
        let why = "has `sandbox`, `network` or `write` for an address".to_owned();
        return Err((why, "remove them: they confine programs of this machine"));
    }
    if !section.args.is_empty() || !section.env.is_empty() || section.cwd.is_some() {
        return Err((
            "has `args`, `env` or `cwd` for an address".to_owned(),
            "remove them, or set `command` in place of `url`",
        ));
    }
    let parsed = url.parse().ok().filter(|url: &url::Url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let Some(url) = parsed else {
        return Err(("has a `url` that is no address".to_owned(), "write one that begins with https:// or http://"));
    };
    let headers: BTreeMap<String, String> =
        section.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    Ok(Endpoint::Web(WebAddress { url, headers }))
}

/// Whether every program of a server gets this variable anyway: it holds no key, and tells the program nothing new.
pub fn is_given_to_programs(name: &str) -> bool {
    standard_environment(&|_| Some("x".into())).iter().any(|(given, _)| given == name)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn environment(name: &str) -> Option<OsString> {
        (name == "HOME").then(|| "/home/me".into())
    }

    fn read(yaml: &str) -> Result<Vec<ServerDefinition>, Diagnostic> {
        let variable = |name: &str| (name == "TOKEN").then(|| "secret".to_owned());
        Config::parse(yaml, Path::new("/h/config.yaml"), &variable).unwrap().mcp_servers(&environment)
    }

    #[test]
    fn sections_are_read_with_their_variables() {
        let servers = read(
            "mcp_servers:\n  web: {url: 'https://mcp.test/mcp', headers: {Authorization: 'Bearer ${TOKEN}'}, timeout: 30}\n  \
             fs:\n    command: npx\n    args: [-y, server, '.']\n    env: {KEY: '${TOKEN}'}\n    \
             tools: {include: [read], exclude: [write]}\n  off: {command: x, enabled: false}\n  empty:\n",
        );
        let servers = servers.unwrap();
        assert_eq!(servers.iter().map(|server| server.name.as_str()).collect::<Vec<_>>(), ["fs", "web"]);
        let (Endpoint::Program(program), Endpoint::Web(web)) = (&servers[0].endpoint, &servers[1].endpoint) else {
            panic!("{servers:?}")
        };
        assert_eq!((program.command.as_str(), program.folder.as_path()), ("npx", Path::new("/home/me")));
        assert_eq!(program.variables["KEY"], "secret");
        assert_eq!((servers[0].timeout, servers[0].trusts_hints), (Duration::from_secs(120), false));
        assert!(servers[0].tools.has("read") && !servers[0].tools.has("other"));
        assert_eq!((web.headers["Authorization"].as_str(), servers[1].timeout.as_secs()), ("Bearer secret", 30));
    }

    #[test]
    fn a_folder_is_the_users_home_or_below_the_session() {
        for (cwd, expected) in [("~/x", "/home/me/x"), (".", "."), ("/srv", "/srv")] {
            let servers = read(&format!("mcp_servers: {{a: {{command: ~/bin/s, cwd: {cwd}}}}}\n")).unwrap();
            let Endpoint::Program(program) = &servers[0].endpoint else { panic!("{servers:?}") };
            assert_eq!((program.folder.as_path(), program.command.as_str()), (Path::new(expected), "/home/me/bin/s"));
        }
    }

    #[test]
    fn a_program_is_confined_where_possible_unless_the_user_says_otherwise() {
        for (general, own, expected) in [
            ("auto", "", SandboxMode::Auto),
            ("off", "", SandboxMode::Off),
            ("require", "", SandboxMode::Require),
            ("off", ", sandbox: workspace", SandboxMode::Require),
            ("require", ", sandbox: off", SandboxMode::Off),
        ] {
            let yaml = format!(
                "sandbox: {{mode: {general}, hidden: [~/x]}}\nmcp_servers: {{a: {{command: npx, write: [~/w], network: false{own}}}}}\n"
            );
            let servers = read(&yaml).unwrap();
            let Endpoint::Program(program) = &servers[0].endpoint else { panic!("{servers:?}") };
            let confinement = &program.confinement;
            assert_eq!((confinement.mode, confinement.network), (expected, false), "{yaml}");
            let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
            assert_eq!(confinement.caches, paths(&["/home/me/.cache", "/home/me/.npm"]));
            assert_eq!(
                (confinement.writable.clone(), confinement.home.as_path()),
                (paths(&["/home/me/w"]), Path::new("/h"))
            );
        }
    }

    #[test]
    fn a_section_that_is_no_server_is_named() {
        for (server, words) in [
            ("a: {}", "`mcp_servers.a` has neither a program nor an address"),
            ("a: {command: x, url: 'https://x.test'}", "has a program and an address"),
            ("a: {url: 'ftp://x.test'}", "has a `url` that is no address"),
            ("a: {url: 'https://x.test', env: {A: b}}", "has `args`, `env` or `cwd` for an address"),
            ("a: {command: x, headers: {A: b}}", "has `headers` for a program"),
            ("a: {url: 'https://x.test', write: [/x]}", "has `sandbox`, `network` or `write` for an address"),
            ("a: {command: x, write: [x]}", "has `x` in `write`"),
            ("a: {command: x, write: [/]}", "has `/` in `write`"),
            ("a: {command: x, env: {'A=B': c}}", "has the variable `A=B`"),
            ("'a b': {command: x}", "has a name that cannot be used"),
        ] {
            let failure = read(&format!("mcp_servers: {{{server}}}\n")).unwrap_err();
            assert!(failure.why.contains(words) && !failure.fix.is_empty(), "{failure}");
            assert_eq!(failure.code, codes::MCP_SERVER);
        }
    }
}
