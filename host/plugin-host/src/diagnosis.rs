//! The code and the remedy of each failure of a plugin.

use hermes_diagnostic::{Action, Diagnose, Fix, Parts};

use crate::chosen::EMBEDDER_KIND;
use crate::lock::LockError;
use crate::manifest::Wrong;
use crate::settings::PreferredSource;
use crate::ungranted::Ungranted;
use crate::{ClosedAddress, IdleHooks, LoadError, PluginsError, Unexpanded, WhyUnexpanded};

hermes_diagnostic::codes! {
    /// The codes of plugins.
    pub mod codes {
        MISSING = "plugin.missing", Category::Plugin, "the selected plugin does not exist";
        OTHER_KIND = "plugin.other-kind", Category::Plugin, "the selected plugin is of another kind";
        NO_LONGER = "plugin.no-longer", Category::Plugin, "a newer version of a plugin is of another kind";
        LOAD = "plugin.load", Category::Plugin, "the plugin does not load";
        NO_MANIFEST = "plugin.no-manifest", Category::Plugin, "a folder has no `plugin.yaml`";
        UNBUILT = "plugin.unbuilt", Category::Plugin, "a plugin's folder has no component";
        COMPONENT = "plugin.component", Category::Plugin, "a plugin's folder has several components";
        OTHER_MACHINE = "plugin.other-machine", Category::Plugin, "the plugin's native libraries are for other machines";
        UNGRANTED = "plugin.ungranted", Category::Plugin, "the plugin was not granted";
        REVOKED = "plugin.revoked", Category::Plugin, "the plugin's grant was revoked";
        NATIVE = "plugin.native", Category::Plugin, "the plugin was not granted as a native library";
        ELSEWHERE = "plugin.elsewhere", Category::Plugin, "`plugins.lock` grants the plugin in another folder";
        FOREIGN = "plugin.foreign", Category::Plugin, "the entry in `plugins.lock` is not from this home, or was changed";
        ALTERED = "plugin.altered", Category::Plugin, "the plugin was changed since it was granted";
        REPLACED = "plugin.replaced", Category::Plugin, "the plugin was replaced by one from another source";
        CLAIMS = "plugin.claims", Category::Plugin, "the manifest lists a kind that the component does not export";
        CONFIGURATION = "plugin.configuration", Category::Plugin, "the plugin's section does not match its schema";
        LOCK = "plugin.lock", Category::Configuration, "`plugins.lock` cannot be used";
        READ = "plugin.read", Category::Plugin, "a file of a plugin cannot be read";
        MANIFEST = "plugin.manifest", Category::Plugin, "a `plugin.yaml` is invalid";
        CONTRACT = "plugin.contract", Category::Plugin, "the plugin is for another version of the contract";
        TWICE = "plugin.twice", Category::Plugin, "two plugins have the same name";
        SOURCE = "plugin.source", Category::Plugin, "no plugin comes from the source that the configuration names";
        ADDRESS = "plugin.address", Category::Plugin, "the configuration has an address that you have not allowed";
        HOOKS = "plugin.hooks", Category::Plugin, "a plugin has hooks, but its manifest does not request them";
        VARIABLE = "plugin.variable", Category::Plugin, "a plugin's section uses a variable that is not available to it";
        WATCH = "plugin.watch", Category::Plugin, "the folder of plugins cannot be watched";
        FOLDER = "plugin.folder", Category::Plugin, "a folder that the plugin asks for cannot be opened";
    }
}

impl Diagnose for PluginsError {
    #[allow(clippy::too_many_lines)]
    fn parts(&self) -> Parts {
        let (code, fix) = match self {
            Self::Missing { kind, name, found } => (codes::MISSING, choose(kind, name, found)),
            Self::OtherKind { kind, name, found, .. } => (codes::OTHER_KIND, choose(kind, name, found)),
            Self::NoLonger { .. } => {
                (codes::NO_LONGER, Fix::words("correct or remove the plugin").or(Action::ListPlugins))
            }
            Self::Load { name, source: LoadError::Version { .. }, .. } => (
                codes::CONTRACT,
                Fix::words("install a version that works here").or(Action::DisablePlugin { plugin: name.clone() }),
            ),
            Self::Load { name, .. } => (
                codes::LOAD,
                Fix::words("install a version that works here").or(Action::DisablePlugin { plugin: name.clone() }),
            ),
            Self::NoManifest { .. } => (codes::NO_MANIFEST, Fix::words("add a plugin.yaml").or("move the folder away")),
            Self::Unbuilt { .. } => {
                let build = "build it and put the .wasm file beside its plugin.yaml";
                (
                    codes::UNBUILT,
                    Fix::words(build).or("if it was installed, `hermes plugins update NAME` brings it back"),
                )
            }
            Self::Component { .. } => {
                (codes::COMPONENT, Fix::words("name one in its plugin.yaml, as `component: FILE.wasm`"))
            }
            Self::OtherMachine { .. } => (codes::OTHER_MACHINE, Fix::words("ask its author for a component")),
            Self::Ungranted { why, .. } => {
                let (code, _, fix) = why.parts();
                (code, fix)
            }
            Self::Claims { .. } => (codes::CLAIMS, Fix::words("correct `provides` in its plugin.yaml")),
            Self::Configuration { name, passed_on, unset, .. } => {
                let correct = correct_section(name, passed_on);
                let fix = match unset.first() {
                    // It may refuse to start for this.
                    Some(variable) => Fix::words(format!("set {variable} with `hermes config set {variable} -`"))
                        .or(correct.to_string()),
                    None => correct,
                };
                (codes::CONFIGURATION, fix)
            }
            Self::Lock(error) => return error.parts(),
            Self::Read { path, .. } => (codes::READ, Fix::words(format!("check that {} can be read", path.display()))),
            Self::Manifest { path, source } => {
                let code = if matches!(source.why, Wrong::Contract { .. } | Wrong::Candidate { .. }) {
                    codes::CONTRACT
                } else {
                    codes::MANIFEST
                };
                let correct = || format!("correct {}, or ask the plugin's author", path.display());
                (code, Fix::words(source.why.fix().map_or_else(correct, str::to_owned)))
            }
            Self::Twice { name, is_bundled, .. } => {
                let fix = Fix::words("rename or remove the unused plugin");
                let installed = format!("set `plugins.settings.{name}.source: installed` to use the installed plugin");
                (codes::TWICE, if *is_bundled { fix.or(installed) } else { fix })
            }
            Self::Source { wanted: PreferredSource::Installed, .. } => {
                (codes::SOURCE, Fix::words("install one").or("remove the key"))
            }
            Self::Source { .. } => (codes::SOURCE, Fix::words("remove the key")),
            Self::Unusable { problem, .. } => (problem.code, problem.fix.clone()),
            Self::Watch { .. } => (codes::WATCH, Fix::words("raise the system's limit of file watches")),
            Self::Folder { .. } => (codes::FOLDER, Fix::words("create the folder and check its permissions")),
        };
        (code, "the plugin cannot be used".into(), fix)
    }
}

/// Names the section of a plugin, and the keys of other sections whose values the plugin gets too.
pub fn correct_section(name: &str, passed_on: &[String]) -> Fix {
    let also = match passed_on {
        [] => String::new(),
        keys => format!(" or {}, which the plugin gets too,", keys.join(", ")),
    };
    Fix::words(format!("correct plugins.entries.{name}{also} in config.yaml"))
}

/// Below this, a suggestion would confuse more than it helps.
const LEAST_ALIKE: f64 = 0.6;

/// Suggests the most similar name and the plugins that could be selected instead.
fn choose(kind: &str, name: &str, found: &[String]) -> Fix {
    if found.is_empty() {
        return Action::InstallPlugin.into();
    }
    let setting = match kind {
        "context engine" => "context.engine",
        EMBEDDER_KIND => "auxiliary.embeddings.plugin",
        _ => "memory.provider",
    };
    let alike = found.iter().map(|known| (strsim::normalized_damerau_levenshtein(name, known), known));
    let nearest = alike.filter(|(alike, _)| *alike >= LEAST_ALIKE).max_by(|left, right| left.0.total_cmp(&right.0));
    let suggestion = nearest.map_or_else(String::new, |(_, known)| format!("did you mean `{known}`? "));
    Fix::words(format!("{suggestion}choose {} ({setting})", found.join(" or "))).or(Action::InstallPlugin)
}

impl Diagnose for Ungranted {
    fn parts(&self) -> Parts {
        let grant = |plugin: &String| Action::GrantPlugin { plugin: plugin.clone() };
        let (code, fix) = match self {
            Self::Unknown(name) => (codes::UNGRANTED, Fix::from(grant(name))),
            Self::Revoked(name) => (codes::REVOKED, grant(name).into()),
            Self::Native(name) => (codes::NATIVE, Action::GrantNative { plugin: name.clone() }.into()),
            Self::Elsewhere { granted, .. } => {
                let rename = format!("rename the folder back to `{granted}`; if both folders exist, remove one");
                (codes::ELSEWHERE, Fix::words(rename))
            }
            Self::Foreign(name) => (codes::FOREIGN, Fix::from(Action::RestorePinned).or(grant(name))),
            Self::Altered { name, has_source: true } => {
                (codes::ALTERED, Fix::from(Action::UpdatePlugin { plugin: name.clone() }).or(grant(name)))
            }
            Self::Altered { name, has_source: false } => (codes::ALTERED, grant(name).into()),
            Self::Replaced { .. } => (codes::REPLACED, Fix::words("start Hermes again to use the new plugin")),
        };
        (code, "the plugin cannot run".into(), fix)
    }
}

impl Diagnose for LockError {
    fn parts(&self) -> Parts {
        let fix = match self {
            Self::File { .. } => Fix::words("check the permissions of the file and its folder"),
            Self::Damaged { .. } => Fix::words("restore it from a copy").or("move it away and grant the plugins again"),
            Self::Newer { .. } => Fix::words("update Hermes"),
        };
        (codes::LOCK, "no installed plugin can run".into(), fix)
    }
}

impl Diagnose for ClosedAddress {
    fn parts(&self) -> Parts {
        match self.now {
            Some(_) => {
                let fix = Action::GrantPlugin { plugin: self.plugin.clone() };
                (codes::ADDRESS, "its configuration has an address that you have not allowed".into(), fix.into())
            }
            None => {
                let keys = self.template.keys().map(|key| format!("`plugins.entries.{}.{key}`", self.plugin));
                let fix = Fix::words(format!("correct {} in config.yaml", keys.collect::<Vec<_>>().join(" or ")));
                (codes::ADDRESS, "its configuration has no address where it needs one".into(), fix)
            }
        }
    }
}

impl Diagnose for IdleHooks {
    fn parts(&self) -> Parts {
        let fix = Fix::words("ask its author to add `hooks: true` to `permissions` in plugin.yaml");
        (codes::HOOKS, "its hooks do not run".into(), fix)
    }
}

impl Diagnose for Unexpanded {
    fn parts(&self) -> Parts {
        let fix = match self.why {
            WhyUnexpanded::Unset => Fix::words("set it in the environment or in .env beside config.yaml"),
            WhyUnexpanded::Secret => Fix::words("remove it from the section"),
            WhyUnexpanded::Denied => Action::GrantPlugin { plugin: self.plugin.clone() }.into(),
        };
        (codes::VARIABLE, "its section uses a variable that is not available to it".into(), fix)
    }
}

#[cfg(test)]
mod tests {
    use hermes_diagnostic::Diagnostic;

    use super::*;
    use crate::Manifest;

    fn plugins_errors() -> Vec<PluginsError> {
        let name = || "mine".to_owned();
        let cause = || std::io::Error::other("refused");
        let manifest = |text: &str| Manifest::parse(text).expect_err("a wrong manifest");
        vec![
            PluginsError::Missing { kind: "context engine", name: name(), found: Vec::new() },
            PluginsError::OtherKind {
                kind: "memory provider",
                name: name(),
                exports: vec!["tools"],
                found: vec![name()],
            },
            PluginsError::NoLonger { kind: "context engine", name: name(), exports: vec!["tools"] },
            PluginsError::Load { name: name(), place: "/p".into(), source: LoadError::NoKind },
            PluginsError::NoManifest { folder: "/p".into() },
            PluginsError::Unbuilt { folder: "/p".into(), file: None },
            PluginsError::Component { folder: "/p".into(), found: 2 },
            PluginsError::OtherMachine { name: name(), targets: vec!["other".into()] },
            PluginsError::Claims { name: name(), claims: vec!["hooks".into()] },
            PluginsError::Configuration {
                name: name(),
                misfits: vec!["`a` is not a number".into()],
                passed_on: Vec::new(),
                unset: vec!["KEY".into()],
            },
            PluginsError::Read { path: "/p".into(), source: cause() },
            PluginsError::Manifest { path: "/p".into(), source: manifest("name: [") },
            PluginsError::Manifest { path: "/p".into(), source: manifest("name: mine\nversion: 1.0.0\napi: ^9\n") },
            PluginsError::Twice { path: "/p".into(), name: name(), other: "/q".into(), is_bundled: true },
            PluginsError::Source { name: name(), wanted: PreferredSource::Installed },
            PluginsError::Watch { folder: "/p".into(), why: "no watches are left".into() },
            PluginsError::Folder { name: name(), root: "notes".into(), why: "it does not exist".into() },
        ]
    }

    #[test]
    fn every_code_has_an_error_with_cause_and_remedy() {
        let name = || "mine".to_owned();
        let ungranted = [
            Ungranted::Unknown(name()),
            Ungranted::Revoked(name()),
            Ungranted::Native(name()),
            Ungranted::Elsewhere { found: "mine".into(), granted: "tools/mine".into() },
            Ungranted::Foreign(name()),
            Ungranted::Altered { name: name(), has_source: true },
            Ungranted::Altered { name: name(), has_source: false },
            Ungranted::Replaced { now: "/elsewhere".into() },
        ];
        let lock = [
            LockError::File { path: "/l".into(), source: std::io::Error::other("refused") },
            LockError::Damaged { path: "/l".into(), why: "it is empty".into() },
            LockError::Newer { path: "/l".into(), form: 2 },
        ];
        let unexpanded = [WhyUnexpanded::Unset, WhyUnexpanded::Secret, WhyUnexpanded::Denied].map(|why| Unexpanded {
            plugin: name(),
            variable: "KEY".into(),
            why,
        });
        let mut diagnostics: Vec<Diagnostic> = plugins_errors().iter().map(Diagnose::diagnose).collect();
        diagnostics.extend(ungranted.iter().map(Diagnose::diagnose));
        diagnostics.extend(lock.iter().map(Diagnose::diagnose));
        diagnostics.extend(unexpanded.iter().map(Diagnose::diagnose));
        let template: crate::Address = serde_json::from_value("${config.url}".into()).expect("a template");
        diagnostics.push(
            ClosedAddress {
                plugin: name(),
                template: template.template().expect("a template").clone(),
                now: Some("https://api.example.org/".parse().expect("an address")),
                allowed: None,
            }
            .diagnose(),
        );
        diagnostics.push(IdleHooks { plugin: name() }.diagnose());
        assert_eq!(hermes_diagnostic::gaps(codes::ALL, &diagnostics), Vec::<String>::new());
    }
}
