//! The checks of plugins: the files on disk, the grants, the selection in the configuration, a trial start of each plugin
//! without permissions, and the failures of recent calls.

use std::collections::{BTreeMap, HashMap};

use hermes_agent::approval::ApprovalRules;
use hermes_agent::{Owners, clash, own_tools, unusable};
use hermes_diagnostic::{Action, Diagnose as _, Diagnostic, Fix};
use hermes_install::State;
use hermes_mcp::KeptListings;
use hermes_plugin_host::record::Record;
use hermes_plugin_host::rehearsal::Shown;
use hermes_plugin_host::{
    Catalog, Declared, Exports, Found, Missing, Selection, SkillReport, Tool, Trial, correct_section, skill_report,
    try_out,
};
use hermes_runtime::{Runtime, Tier};
use hermes_session_store::QueuedTurn;

use super::finding::{Case, ExaminedPlugin, Finding};
use crate::plugins::{Role, mishap, missing_plugins, unset_variables};
use crate::{AppError, MissingPlugin, Setup, Undelivered};

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
    let outbox = match setup.store_to_read() {
        Ok(Some(store)) => store.outbox().await.unwrap_or_default(),
        Ok(None) | Err(_) => Vec::new(),
    };
    let examination = Examination { setup, catalog, selection, rules, outbox };
    let mut blocks = Blocks { catalog, selection, all: Vec::new() };
    if let Some(failure) = odd_rule {
        blocks.add(None, Finding::problem(Case::UselessRule, failure.what, failure.why, failure.fix));
    }
    for problem in catalog.problems() {
        blocks.add(problem.name.as_deref(), Finding::from(&problem.error));
    }
    examination.lock(&mut blocks);
    examination.names(&mut blocks);

    let mut trials: BTreeMap<&str, Trial> = BTreeMap::new();
    for found in examination.in_order() {
        let name = found.manifest.name.as_str();
        blocks.of(Some(name));
        match try_out(runtime, catalog, selection, found).await {
            Err(error) => blocks.add(Some(name), Finding::from(&error)),
            Ok(trial) => {
                examination.trial(found, &trial).into_iter().for_each(|finding| blocks.add(Some(name), finding));
                examination
                    .skills(runtime, found, &trial)
                    .await
                    .into_iter()
                    .for_each(|finding| blocks.add(Some(name), finding));
                trials.insert(name, trial);
            }
        }
        examination.found(found).into_iter().for_each(|finding| blocks.add(Some(name), finding));
    }
    examination.tools(&trials, &mut blocks);
    if let Some(failure) = examination.useless_rule(&trials) {
        blocks.add(None, Finding::problem(Case::UselessRule, failure.what, failure.why, failure.fix));
    }
    for failure in examination.useless_matchers(&trials) {
        blocks.add(None, Finding::problem(Case::UselessMatcher, failure.what, failure.why, failure.fix));
    }
    blocks.done()
}

/// The findings so far, by plugin.
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

    /// Sorts the findings: problems come first.
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

struct Examination<'a> {
    setup: &'a Setup,
    catalog: &'a Catalog,
    selection: &'a Selection,
    rules: ApprovalRules,
    /// The turns that memory providers have not stored. The check of the store reports a store that cannot be read.
    outbox: Vec<QueuedTurn>,
}

impl<'a> Examination<'a> {
    /// Selected plugins first, in the order in which they claim names of tools.
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

    /// Findings of `verify` that neither the catalog nor a trial reports.
    fn lock(&self, blocks: &mut Blocks<'_>) {
        // A lock that cannot be read is among the catalog's problems.
        for found in self.setup.installer().verify(self.catalog).unwrap_or_default() {
            let name = found.name.as_str();
            let runs = self.catalog.get(name).is_some_and(|found| found.code().is_ok());
            let (why, fix) = (&found.detail, found.fix.clone());
            match found.state {
                State::Missing => {
                    let finding =
                        Finding::problem(Case::NotInstalled, "it is in plugins.lock but not installed", why, fix);
                    blocks.add(Some(name), finding);
                }
                State::Altered if runs => {
                    let fix = Action::UpdatePlugin { plugin: name.to_owned() };
                    let finding = Finding::problem(Case::Rollback, "it cannot be rolled back", &found.detail, fix);
                    blocks.add(Some(name), finding);
                }
                State::Unfinished => {
                    let what = "a command on plugins has not finished";
                    blocks.add(None, Finding::problem(Case::Unfinished, what, why, fix));
                }
                // The trial of the plugin reports these.
                State::Altered | State::Foreign | State::Ok | State::Revoked | State::Ungranted => {}
            }
        }
    }

    /// Names in the configuration that no plugin has, or that are selected and disabled.
    fn names(&self, blocks: &mut Blocks<'_>) {
        for found in self.selection.contradictions() {
            let what = "it is disabled, and sessions use it";
            blocks
                .add(Some(&found.plugin), Finding::problem(Case::Contradiction, what, found.to_string(), found.fix()));
        }
        for missing in missing_plugins(self.selection, self.catalog) {
            // The problem of an unusable folder is reported already.
            if self.catalog.problem_with(&missing.name).is_none() {
                let MissingPlugin { key, name, .. } = &missing;
                let why = format!("{key} names `{name}`, but no plugin has this name");
                blocks.add(Some(name), Finding::problem(Case::Unknown, "it does not exist", why, missing.fix()));
            }
        }
    }

    /// Findings of the trial start of a plugin.
    fn trial(&self, found: &Found, trial: &Trial) -> Vec<Finding> {
        let name = &found.manifest.name;
        let mut findings = Vec::new();
        let start = |why: &str, fix: Fix| Finding::problem(Case::Start, "it does not start", why, fix);
        match &trial.shown {
            Err(error) => {
                let fix = Fix::words("install another version").or(Action::DisablePlugin { plugin: name.clone() });
                findings.push(start(&error.cause.to_string(), fix));
            }
            // It may have failed for lack of a permission: a trial has none.
            Ok(Shown { has_started: true, .. }) if !found.permissions_in(self.selection).is_empty() => {}
            Ok(Shown { complaint: Some(why), .. }) => {
                let passed_on = self.selection.passed_on.get(name).map_or(&[][..], Vec::as_slice);
                let fix = correct_section(name, passed_on);
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

    /// The skills of a plugin in use that have mistakes or need something. The trial reports a plugin that cannot be used.
    async fn skills(&self, runtime: &Runtime, found: &Found, trial: &Trial) -> Vec<Finding> {
        if !trial.exports.skills || !self.serves(&found.manifest.name, trial.exports) {
            return Vec::new();
        }
        let home = self.setup.home.path();
        let report = skill_report(runtime, self.catalog, self.selection, found, home).await.unwrap_or_default();
        let SkillReport { skills, warnings } = report;
        let finding = |why: String| {
            Finding::problem(Case::Skill, "one of its skills has a mistake", why, "correct the skill's SKILL.md")
        };
        let is_set = |name: &str| self.setup.environment.var(name).is_some();
        let dotenv = self.setup.home.dotenv();
        let needs = skills.iter().filter(|skill| Declared::why_not(skill, None).is_none()).filter_map(|skill| {
            let missing = Declared::of(skill).missing(is_set);
            let why = missing.lines().join("; ");
            let Missing { variables, commands } = missing;
            let fix = match (variables.first(), commands.first()) {
                (Some(variable), _) => format!("add a line `{}=…` to {}", variable.name, dotenv.display()),
                (None, Some(command)) => format!("install `{command}`"),
                (None, None) => return None,
            };
            Some(Finding::note(Case::Skill, format!("its skill `{}` needs setup", skill.name), why, fix))
        });
        warnings.into_iter().map(finding).chain(needs).collect()
    }

    /// A finding if the plugin is selected as another kind, or not in use.
    fn kind(&self, name: &str, trial: &Trial) -> Option<Finding> {
        let (selection, exports) = (self.selection, trial.exports);
        let names = exports.names();
        let role = Role::of(&names);
        let wrong = match () {
            () if selection.engine == name && !exports.context_engine => Some("context.engine"),
            () if selection.memory.as_deref() == Some(name) && !exports.memory_provider => Some("memory.provider"),
            () if selection.embedder.as_deref() == Some(name) && !exports.embedder => {
                Some("auxiliary.embeddings.plugin")
            }
            () => None,
        };
        if let Some(key) = wrong {
            let why = format!("{key} names it, but it exports {}", names.join(", "));
            let fix = Fix::words(format!("set {key} to a plugin of that kind")).or(Action::ListPlugins);
            return Some(Finding::problem(Case::OtherKind, "it is selected as another kind", why, fix));
        }
        if self.serves(name, exports) {
            return None;
        }
        let tools: Vec<String> = tools_of(trial).iter().map(|tool| format!("`{}`", tool.schema.name)).collect();
        let tools = match tools.as_slice() {
            [] => String::new(),
            [tool] => format!(", with its tool {tool}"),
            tools => format!(", with its tools {}", tools.join(", ")),
        };
        let state = if is_on(name, selection) { "it is enabled but not in use" } else { "it is disabled" };
        let what = format!("{state}{tools}");
        let why = match role {
            _ if selection.disabled.iter().any(|disabled| disabled == name) => "plugins.disabled lists it".to_owned(),
            Role::Engine => format!("context.engine is `{}`", selection.engine),
            Role::Memory => match &selection.memory {
                Some(memory) => format!("memory.provider is `{memory}`"),
                None => "memory.provider is not set".to_owned(),
            },
            Role::Other => "plugins.enabled does not list it".to_owned(),
        };
        Some(Finding::note(Case::Off, what, why, Action::EnablePlugin { plugin: name.to_owned() }))
    }

    /// Whether sessions use the plugin. An engine or a memory provider is in use only if it is selected as such.
    fn serves(&self, name: &str, exports: Exports) -> bool {
        let is_selected = self.selection.engine == name
            || self.selection.memory.as_deref() == Some(name)
            || name == Selection::MEMORY
            || self.selection.embedder.as_deref() == Some(name)
            || Role::of(&exports.names()) == Role::Other;
        is_selected && is_on(name, self.selection)
    }

    /// A note about requested permissions and limits that are not granted.
    fn ungranted(&self, found: &Found, tier: Tier) -> Option<Finding> {
        let (manifest, name) = (&found.manifest, &found.manifest.name);
        let requested = manifest.permissions_under(self.selection);
        let permissions = requested.widening(&found.permissions_in(self.selection)).lines();
        let limits = manifest.limits.widening(&found.limits()).lines(tier);
        let lines: Vec<String> = permissions.into_iter().chain(limits).collect();
        (!lines.is_empty()).then(|| {
            let why = format!("it was not granted to {}", lines.join(", to "));
            let fix = Action::GrantPlugin { plugin: name.clone() };
            Finding::note(Case::Permission, "some of its permissions are not granted", why, fix)
        })
    }

    /// Findings that do not depend on a trial.
    fn found(&self, found: &Found) -> Vec<Finding> {
        let (manifest, name) = (&found.manifest, &found.manifest.name);
        let is_off = !is_on(name, self.selection);
        let mut findings = Vec::new();
        let mut reported: Vec<&str> = Vec::new();
        for wanted in unset_variables(manifest, &self.setup.environment) {
            let variable = wanted.name.as_str();
            let place = wanted.url.as_ref().map_or_else(String::new, |url| format!(" (see {url})"));
            let why = format!("it requires {variable}, which is not set");
            let fix = format!("set {variable} in the environment or in {}{place}", self.setup.home.dotenv().display());
            reported.push(variable);
            findings.push(Finding::problem(Case::Variable, "a variable is not set", why, fix).unless(is_off));
        }
        let permissions = found.permissions_in(self.selection);
        for secret in &permissions.secrets {
            let variable = secret.env.as_str();
            let is_set = self.setup.environment.var(variable).is_some_and(|value| !value.is_empty());
            if !is_set && !reported.contains(&variable) {
                let audience = match (secret.audience.site(), secret.audience.template()) {
                    (None, Some(template)) => {
                        let keys: Vec<String> = template.keys().map(|key| format!("`{key}`")).collect();
                        format!("the address in {} of its section", keys.join(" and "))
                    }
                    (Some(site), _) => site.to_string(),
                    (None, None) => secret.audience.to_string(),
                };
                let why = format!("{variable}, the secret for its requests to {audience}, is not set");
                let fix = format!("set {variable} in the environment or in {}", self.setup.home.dotenv().display());
                findings.push(Finding::problem(Case::Secret, "a secret has no value", why, fix).unless(is_off));
            }
        }
        findings.extend(self.failures(name));
        findings.extend(self.undelivered(name));
        for field in &manifest.unknown {
            let why = format!("this version of Hermes ignores {field}");
            let fix = "correct or remove it";
            findings.push(Finding::note(Case::Field, "plugin.yaml has an unknown field", why, fix));
        }
        findings
    }

    /// A finding if the plugin failed when it was last used.
    fn failures(&self, name: &str) -> Option<Finding> {
        let record = match Record::read(self.setup.home.path(), name) {
            Ok(record) => record,
            Err(error) => {
                let fix = "check that the files below `data` in the home folder can be read";
                let what = "its statistics cannot be read";
                return Some(Finding::problem(Case::Unreadable, what, error.to_string(), fix));
            }
        };
        let plugin = || name.to_owned();
        let mut fix = Fix::from(Action::ReadPluginLog { plugin: plugin() });
        // A part of Hermes has no source of its own, and the default engine cannot be disabled.
        if self.catalog.get(name).is_some_and(|found| found.folder().is_some()) {
            fix = fix.or(Action::UpdatePlugin { plugin: plugin() });
        }
        if name != Selection::ENGINE {
            fix = fix.or(Action::DisablePlugin { plugin: plugin() });
        }
        if let Some(suspended) = &record.suspended {
            let failures = suspended.failures;
            let why = format!("it failed {failures} times in a row; last failure: {}", mishap(&suspended.last));
            return Some(Finding::problem(
                Case::Suspended,
                "it was disabled for a session and has not worked since",
                why,
                fix,
            ));
        }
        let failures = record.latest.map_or(0, |latest| latest.failures);
        let last = record.errors.last().filter(|_| failures > 0)?;
        let times = if failures == 1 { "once".to_owned() } else { format!("{failures} times") };
        let why = format!("it failed {times} in the last session that used it; last failure: {}", mishap(last));
        Some(Finding::problem(Case::Failing, "its calls fail", why, fix))
    }

    /// The turns that a memory provider has not stored.
    fn undelivered(&self, name: &str) -> Vec<Finding> {
        let Undelivered { waiting, set_aside } = Undelivered::among(&self.outbox, name);
        let waiting = waiting.map(|turns| {
            let what = "turns wait to be stored by it";
            match turns.error {
                None => Finding::note(Case::Undelivered, what, turns.line(), "start a session, which delivers them"),
                Some(_) => {
                    let fix = "mend what its words name: sessions then deliver them, and `hermes memory retry` tries it at once";
                    Finding::problem(Case::Undelivered, what, turns.line(), fix)
                }
            }
        });
        let set_aside = set_aside.map(|turns| {
            let fix = Fix::from(Action::ReadPluginLog { plugin: name.to_owned() })
                .or(format!("once it is mended, `hermes memory retry {name}` sends them again"));
            Finding::problem(Case::Undelivered, "turns that it rejected were set aside", turns.line(), fix)
        });
        waiting.into_iter().chain(set_aside).collect()
    }

    /// The plugins of a session that offer each tool.
    fn claims(&self, trials: &BTreeMap<&str, Trial>) -> HashMap<String, Vec<&'a str>> {
        let mut claims: HashMap<String, Vec<&str>> = HashMap::new();
        for found in self.in_order() {
            let name = found.manifest.name.as_str();
            let Some(trial) = trials.get(name).filter(|trial| self.serves(name, trial.exports)) else { continue };
            for tool in tools_of(trial).iter().filter(|tool| unusable(tool).is_none()) {
                claims.entry(tool.schema.name.clone()).or_default().push(name);
            }
        }
        claims
    }

    /// Why no session starts: an entry below `approvals` is about nothing.
    fn useless_rule(&self, trials: &BTreeMap<&str, Trial>) -> Option<Diagnostic> {
        // A pattern that cannot be read has no other check here; a session names it.
        let listed = self.setup.listed_files().ok()?;
        if let Err(error) = self.setup.check_rules(&self.rules, &listed) {
            return Some(error.diagnose());
        }
        let in_use = || trials.iter().filter(|(name, trial)| self.serves(name, trial.exports));
        let names = |trial: &Trial| tools_of(trial).iter().map(|tool| tool.schema.name.clone()).collect();
        // Without its permissions, a plugin may list none of its tools, or other ones.
        let listed = in_use().filter(|(_, trial)| trial.shown.as_ref().is_ok_and(|shown| shown.complaint.is_none()));
        let catalogs = listed.map(|(name, trial)| ((*name).to_owned(), names(trial))).collect();
        let hooks = in_use().filter(|(_, trial)| trial.exports.hooks).map(|(name, _)| (*name).to_owned());
        let source = self.rules.unknown_tool(&catalogs, hooks)?;
        Some(AppError::UnknownRule { file: self.setup.config.file().to_owned(), source }.diagnose())
    }

    /// Shell hooks that are about no tool. The tools of plugins that are off count, too. While some tools are unknown, only a name
    /// that is similar to a known one is reported.
    fn useless_matchers(&self, trials: &BTreeMap<&str, Trial>) -> Vec<Diagnostic> {
        let (Ok(hooks), Ok(servers)) = (self.setup.shell_hooks(), self.setup.mcp_servers()) else { return Vec::new() };
        let kept = KeptListings::new(self.setup.home.documents());
        let listings: Vec<_> = servers.iter().filter_map(|server| Some((server, kept.read(server)?))).collect();
        // Without its permissions, a plugin may list none of its tools.
        let lists_all = |trial: &Trial| trial.shown.as_ref().is_ok_and(|shown| shown.complaint.is_none());
        let are_known = listings.len() == servers.len() && trials.values().all(lists_all);
        let of_servers = listings.iter().flat_map(|(server, listing)| {
            listing.tools.iter().map(|tool| hermes_mcp::tool_name(&server.name, &tool.name))
        });
        let tools = trials.values().flat_map(tools_of).map(|tool| tool.schema.name.clone());
        let tools: Vec<String> = tools.chain(of_servers).chain(own_tools()).collect();
        let useless = hooks.iter().filter_map(|hook| hook.useless_matcher(&tools));
        useless.filter(|error| are_known || error.has_nearest()).map(|error| error.diagnose()).collect()
    }

    /// Tools that sessions leave out, or that `approvals.deny` forbids.
    fn tools(&self, trials: &BTreeMap<&str, Trial>, blocks: &mut Blocks<'_>) {
        let claims = self.claims(trials);
        let owners = Owners {
            chosen: self.setup.config.settings().plugins.tools.clone(),
            bundled: self
                .in_order()
                .into_iter()
                .filter(|found| found.origin.folder().is_none())
                .map(|found| found.manifest.name.clone())
                .collect(),
        };
        for found in self.in_order() {
            let name = found.manifest.name.as_str();
            let Some(trial) = trials.get(name).filter(|trial| self.serves(name, trial.exports)) else { continue };
            if let Some(entry) = self.rules.forbids(name, "") {
                let why = format!("approvals.deny lists `{entry}`");
                let fix = "remove the entry to be asked for approval instead";
                blocks.add(Some(name), Finding::note(Case::Denied, "its tools are not allowed to run", why, fix));
            }
            for tool in tools_of(trial) {
                let own = tool.schema.name.as_str();
                let unavailable = |why: String, fix| {
                    Finding::problem(Case::Tool, format!("its tool `{own}` is not available"), why, fix)
                };
                let offered_by = claims.get(own).map(Vec::as_slice).unwrap_or_default();
                let holder = owners.of(own, offered_by.iter().copied());
                let finding = if let Some(why) = unusable(tool) {
                    unavailable(why.to_owned(), Fix::words("ask its author to correct it"))
                } else if holder.is_some_and(|holder| {
                    holder != name && owners.chosen.get(own).is_some_and(|chosen| chosen == holder)
                }) {
                    // The user has chosen.
                    continue;
                } else if holder != Some(name) {
                    let mut fix = Fix::from(Action::DisablePlugin { plugin: name.to_owned() });
                    if let Some(other) = offered_by.iter().find(|other| **other != name) {
                        fix = fix.or(Action::DisablePlugin { plugin: (*other).to_owned() });
                    }
                    unavailable(clash(own, name, holder, offered_by), fix)
                } else {
                    blocks.of(Some(name)).tools.push(own.to_owned());
                    let Some(entry) = self.rules.forbids(name, own).filter(|entry| entry != name) else { continue };
                    let why = format!("approvals.deny lists `{entry}`");
                    let fix = "remove the entry to be asked for approval instead";
                    Finding::note(Case::Denied, format!("its tool `{own}` is not allowed to run"), why, fix)
                };
                blocks.add(Some(name), finding.of_tool(own));
            }
        }
    }
}
