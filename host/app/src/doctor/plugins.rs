//! The rules that examine plugins: what is on disk, what was granted, what the configuration selects, what each plugin
//! answers when it is started once without any right, and how its last calls ended.

use std::collections::{BTreeMap, HashMap};

use hermes_agent::approval::ApprovalRules;
use hermes_agent::left_out;
use hermes_diagnostic::{Action, Diagnose as _, Diagnostic, Fix};
use hermes_install::State;
use hermes_plugin_host::record::Record;
use hermes_plugin_host::rehearsal::Shown;
use hermes_plugin_host::{Catalog, Exports, Found, Selection, Tool, Trial, try_out};
use hermes_runtime::{Runtime, Tier};

use super::finding::{Case, ExaminedPlugin, Finding};
use crate::plugins::{Role, mishap, missing_plugins, unset_variables};
use crate::{MissingPlugin, Setup};

/// Examines all plugins, first those of sessions in their order, then the others. Nothing is changed.
pub async fn examine_plugins(
    setup: &Setup,
    catalog: &Catalog,
    selection: &Selection,
    runtime: &Runtime,
) -> Vec<ExaminedPlugin> {
    let (rules, odd_rule) = match setup.approval_rules() {
        Ok(rules) => (rules, None),
        Err(error) => (ApprovalRules::default(), Some(error.diagnose())),
    };
    let look = Look { setup, catalog, selection, rules };
    let mut blocks = Blocks { catalog, selection, all: Vec::new() };
    if let Some(failure) = odd_rule {
        blocks.add(None, Finding::problem(Case::Denied, failure.what, failure.why, failure.fix));
    }
    for problem in catalog.problems() {
        blocks.add(problem.name.as_deref(), Finding::from(&problem.error));
    }
    look.lock(&mut blocks);
    look.names(&mut blocks);

    let mut trials: BTreeMap<&str, Trial> = BTreeMap::new();
    for found in look.in_order() {
        let name = found.manifest.name.as_str();
        blocks.of(Some(name));
        match try_out(runtime, catalog, selection, found).await {
            Err(error) => blocks.add(Some(name), Finding::from(&error)),
            Ok(trial) => {
                look.trial(found, &trial).into_iter().for_each(|finding| blocks.add(Some(name), finding));
                trials.insert(name, trial);
            }
        }
        look.found(found).into_iter().for_each(|finding| blocks.add(Some(name), finding));
    }
    look.tools(&trials, &mut blocks);
    blocks.done()
}

/// What was looked at so far.
struct Blocks<'a> {
    catalog: &'a Catalog,
    selection: &'a Selection,
    all: Vec<ExaminedPlugin>,
}

impl Blocks<'_> {
    fn of(&mut self, name: Option<&str>) -> &mut ExaminedPlugin {
        let at = self.all.iter().position(|examined| examined.name.as_deref() == name).unwrap_or_else(|| {
            let found = name.and_then(|name| self.catalog.get(name));
            let problem = name.and_then(|name| self.catalog.problem_with(name));
            let folder = problem.and_then(|problem| problem.folder.as_ref()).map(|folder| folder.display().to_string());
            self.all.push(ExaminedPlugin {
                name: name.map(str::to_owned),
                source: found.map(|found| found.origin.to_string()).or(folder),
                is_on: name.is_some_and(|name| is_on(name, self.selection)),
                tools: Vec::new(),
                findings: Vec::new(),
            });
            self.all.len() - 1
        });
        &mut self.all[at]
    }

    fn add(&mut self, name: Option<&str>, finding: Finding) {
        self.of(name).findings.push(finding);
    }

    /// What is wrong goes before what is well.
    fn done(mut self) -> Vec<ExaminedPlugin> {
        for examined in &mut self.all {
            examined.findings.sort_by_key(|finding| finding.severity);
        }
        self.all.sort_by_key(|examined| examined.findings.first().is_none_or(|first| !first.is_problem()));
        self.all
    }
}

fn tools_of(trial: &Trial) -> &[Tool] {
    trial.shown.as_ref().map_or(&[], |shown| &shown.tools)
}

fn is_on(name: &str, selection: &Selection) -> bool {
    selection.names().any(|on| on == name)
}

struct Look<'a> {
    setup: &'a Setup,
    catalog: &'a Catalog,
    selection: &'a Selection,
    rules: ApprovalRules,
}

impl<'a> Look<'a> {
    /// Those that sessions have first, in the order in which the name of a tool is taken.
    fn in_order(&self) -> Vec<&'a Found> {
        let mut ordered: Vec<&Found> = Vec::new();
        let selected = self.selection.names().filter_map(|name| self.catalog.get(name));
        for found in selected.chain(self.catalog.all()) {
            if !ordered.iter().any(|other| other.manifest.name == found.manifest.name) {
                ordered.push(found);
            }
        }
        ordered
    }

    /// What `verify` finds beyond what the catalog and a trial tell.
    fn lock(&self, blocks: &mut Blocks<'_>) {
        // A lock that cannot be read is among the catalog's problems.
        for found in self.setup.installer().verify(self.catalog).unwrap_or_default() {
            let name = found.name.as_str();
            let runs = self.catalog.get(name).is_some_and(|found| found.code().is_ok());
            let (why, fix) = (&found.detail, found.fix.clone());
            match found.state {
                State::Missing => {
                    let finding =
                        Finding::problem(Case::NotInstalled, "plugins.lock has it, and its folder is gone", why, fix);
                    blocks.add(Some(name), finding);
                }
                State::Altered if runs => {
                    let fix = Action::UpdatePlugin { plugin: name.to_owned() };
                    let finding = Finding::problem(Case::Rollback, "it cannot be rolled back", &found.detail, fix);
                    blocks.add(Some(name), finding);
                }
                State::Unfinished => {
                    blocks
                        .add(None, Finding::problem(Case::Unfinished, "a change of plugins is not finished", why, fix));
                }
                // Told by the trial of the plugin itself.
                State::Altered | State::Ok | State::Revoked | State::Ungranted => {}
            }
        }
    }

    /// Names that the configuration selects and nobody bears.
    fn names(&self, blocks: &mut Blocks<'_>) {
        for missing in missing_plugins(self.selection, self.catalog) {
            // A folder that cannot be used is told as such.
            if self.catalog.problem_with(&missing.name).is_none() {
                let MissingPlugin { key, name, .. } = &missing;
                let why = format!("{key} names `{name}`, and there is no such plugin");
                blocks.add(Some(name), Finding::problem(Case::Unknown, "it does not exist", why, missing.fix()));
            }
        }
    }

    /// What a plugin answered, held against what it is wanted for.
    fn trial(&self, found: &Found, trial: &Trial) -> Vec<Finding> {
        let name = &found.manifest.name;
        let mut findings = Vec::new();
        let start = |why: &str, fix: Fix| Finding::problem(Case::Start, "it does not start", why, fix);
        match &trial.shown {
            Err(error) => {
                let fix = Fix::words("update it").or(Action::DisablePlugin { plugin: name.clone() });
                findings.push(start(&error.cause.to_string(), fix));
            }
            // What it lacks for an answer may be a right, of which it has none here.
            Ok(Shown { has_started: true, .. }) if !found.permissions().is_empty() => {}
            Ok(Shown { complaint: Some(why), .. }) => {
                let fix = Fix::words(format!("set what it needs in `plugins.entries.{name}` of config.yaml"));
                findings.push(start(why, fix));
            }
            Ok(_) => {}
        }
        findings.extend(trial.unexpanded.iter().map(|unexpanded| {
            let Diagnostic { what, why, fix, .. } = unexpanded.diagnose();
            Finding::problem(Case::Variable, what, why, fix)
        }));
        findings.extend(self.kind(name, trial));
        findings.extend(self.ungranted(found, trial.exports.tier()));
        findings
    }

    /// Whether it serves as what it is selected for, or why it does not serve.
    fn kind(&self, name: &str, trial: &Trial) -> Option<Finding> {
        let (selection, exports) = (self.selection, trial.exports);
        let names = exports.names();
        let role = Role::of(&names);
        let wrong = match () {
            () if selection.engine == name && !exports.context_engine => Some("context.engine"),
            () if selection.memory.as_deref() == Some(name) && !exports.memory_provider => Some("memory.provider"),
            () => None,
        };
        if let Some(key) = wrong {
            let why = format!("{key} names it, and it exports {}", names.join(", "));
            let fix = Fix::words(format!("set {key} to a plugin of that kind")).or(Action::ListPlugins);
            return Some(Finding::problem(Case::OtherKind, "it is not what it is selected for", why, fix));
        }
        if self.serves(name, exports) {
            return None;
        }
        let tools: Vec<String> = tools_of(trial).iter().map(|tool| format!("`{}`", tool.schema.name)).collect();
        let tools = match tools.as_slice() {
            [] => String::new(),
            [tool] => format!(", and its tool {tool} with it"),
            tools => format!(", and its tools {} with it", tools.join(", ")),
        };
        let state = if is_on(name, selection) { "it is on, and does not serve as what it is" } else { "it is off" };
        let what = format!("{state}{tools}");
        let why = match role {
            _ if selection.disabled.iter().any(|disabled| disabled == name) => "plugins.disabled names it".to_owned(),
            Role::Engine => format!("context.engine is `{}`", selection.engine),
            Role::Memory => match &selection.memory {
                Some(memory) => format!("memory.provider is `{memory}`"),
                None => "memory.provider names none".to_owned(),
            },
            Role::Other => "plugins.enabled does not name it".to_owned(),
        };
        Some(Finding::note(Case::Off, what, why, Action::EnablePlugin { plugin: name.to_owned() }))
    }

    /// Whether sessions have its tools: an engine or a provider that is not selected as such does not offer them.
    fn serves(&self, name: &str, exports: Exports) -> bool {
        let is_selected = self.selection.engine == name
            || self.selection.memory.as_deref() == Some(name)
            || name == Selection::MEMORY
            || Role::of(&exports.names()) == Role::Other;
        is_selected && is_on(name, self.selection)
    }

    /// What it asks for and was not granted.
    fn ungranted(&self, found: &Found, tier: Tier) -> Option<Finding> {
        let (manifest, name) = (&found.manifest, &found.manifest.name);
        let rights = manifest.permissions.widening(&found.permissions()).lines();
        let limits = manifest.limits.widening(&found.limits()).lines(tier);
        let lines: Vec<String> = rights.into_iter().chain(limits).collect();
        (!lines.is_empty()).then(|| {
            let why = format!("it asks for more than it was granted; denied is to {}", lines.join(", to "));
            let fix = Action::GrantPlugin { plugin: name.clone() };
            Finding::note(Case::Permission, "it may not do all that it asks for", why, fix)
        })
    }

    /// What is to be said of it whether it runs or not.
    fn found(&self, found: &Found) -> Vec<Finding> {
        let (manifest, name) = (&found.manifest, &found.manifest.name);
        let is_off = !is_on(name, self.selection);
        let mut findings = Vec::new();
        let mut told: Vec<&str> = Vec::new();
        for wanted in unset_variables(manifest, &self.setup.environment) {
            let variable = wanted.name.as_str();
            let place = wanted.url.as_ref().map_or_else(String::new, |url| format!("; {url} tells where to get it"));
            let why = format!("it needs {variable}, which is not set");
            let fix = format!("set {variable} in the environment or in {}{place}", self.setup.home.dotenv().display());
            told.push(variable);
            findings.push(Finding::problem(Case::Variable, "a variable is missing", why, fix).unless(is_off));
        }
        let permissions = found.permissions();
        for secret in &permissions.secrets {
            let variable = secret.env.as_str();
            let is_set = self.setup.environment.var(variable).is_some_and(|value| !value.is_empty());
            if !is_set && !told.contains(&variable) {
                let why = format!("{variable}, which goes into its requests to {}, is not set", secret.audience);
                let fix = format!("set {variable} in the environment or in {}", self.setup.home.dotenv().display());
                findings.push(Finding::problem(Case::Secret, "a secret has no value", why, fix).unless(is_off));
            }
        }
        findings.extend(self.fared(name));
        for field in &manifest.unknown {
            let why = format!("no version up to this one knows {field}");
            let fix = "correct or remove it; docs/plugins.md has all fields";
            findings.push(Finding::note(Case::Field, "plugin.yaml has a field that nobody knows", why, fix));
        }
        findings
    }

    /// How it fared, by its record.
    fn fared(&self, name: &str) -> Option<Finding> {
        let record = match Record::read(self.setup.home.path(), name) {
            Ok(record) => record,
            Err(error) => {
                let fix = "check that the files below `data` in the home can be read";
                return Some(Finding::problem(Case::Unreadable, "its record cannot be read", error.to_string(), fix));
            }
        };
        let plugin = || name.to_owned();
        let fix = Fix::from(Action::ReadPluginLog { plugin: plugin() })
            .or(Action::UpdatePlugin { plugin: plugin() })
            .or(Action::DisablePlugin { plugin: plugin() });
        if let Some(suspended) = &record.suspended {
            let failures = suspended.failures;
            let why = format!("it failed {failures} times in a row, the last: {}", mishap(&suspended.last));
            return Some(Finding::problem(Case::Suspended, "it was suspended, and has not worked since", why, fix));
        }
        let failures = record.latest.map_or(0, |latest| latest.failures);
        let last = record.errors.last().filter(|_| failures > 0)?;
        let times = if failures == 1 { "once".to_owned() } else { format!("{failures} times") };
        let why = format!("it failed {times} in the last session that used it, the last: {}", mishap(last));
        Some(Finding::problem(Case::Failing, "it fails", why, fix))
    }

    /// Tools that no session has, or that none may run.
    fn tools(&self, trials: &BTreeMap<&str, Trial>, blocks: &mut Blocks<'_>) {
        let mut holders: HashMap<String, &str> = HashMap::new();
        for found in self.in_order() {
            let name = found.manifest.name.as_str();
            let Some(trial) = trials.get(name).filter(|trial| self.serves(name, trial.exports)) else { continue };
            if let Some(entry) = self.rules.forbids(name, "") {
                let why = format!("approvals.deny has `{entry}`");
                let finding =
                    Finding::note(Case::Denied, "none of its tools may run", why, "take the entry out to be asked");
                blocks.add(Some(name), finding);
            }
            for tool in tools_of(trial) {
                let own = tool.schema.name.as_str();
                let finding = if let Some(why) = left_out(tool, holders.get(own).copied()) {
                    let fix = match holders.get(own) {
                        Some(holder) => Fix::from(Action::DisablePlugin { plugin: name.to_owned() })
                            .or(Action::DisablePlugin { plugin: (*holder).to_owned() }),
                        None => Fix::words("ask its author for a name that a model can call"),
                    };
                    Finding::problem(Case::Tool, format!("its tool `{own}` is not offered"), why, fix)
                } else {
                    holders.insert(own.to_owned(), name);
                    blocks.of(Some(name)).tools.push(own.to_owned());
                    let Some(entry) = self.rules.forbids(name, own).filter(|entry| entry != name) else { continue };
                    let why = format!("approvals.deny has `{entry}`");
                    let fix = "take the entry out to be asked, or to let it run";
                    Finding::note(Case::Denied, format!("its tool `{own}` may not run"), why, fix)
                };
                blocks.add(Some(name), finding.of_tool(own));
            }
        }
    }
}
