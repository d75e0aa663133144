//! `hermes plugins info` and `stats`: the details, permissions and usage of plugins.

use std::process::ExitCode;
use std::time::Duration;

use hermes_app::plugins::{
    Code, Digest, Found, GrantStatus, Limit, Permissions, PluginsError, Record, Returned, Shown, Tier, Trial,
    drafts_of, try_out,
};
use hermes_app::{Undelivered, mishap};
use serde_json::{Value, json};

use super::{Inventory, Listed, NATIVE, consent, inspect};
use crate::console::{Console, Tone, print};
use crate::failure::{Failure, Kind};
use crate::table::{Align, Table};
use crate::text;

/// Columns of the labels, with the space behind them.
const MARGIN: usize = 12;

pub(crate) async fn run(name: &str, json: bool, console: Console) -> Result<ExitCode, Failure> {
    let inventory = Inventory::read(console)?;
    let found = inventory.found(name)?;
    let record = record(&inventory, name)?;
    let undelivered = Undelivered::read(&inventory.setup.home, name).await?;
    // The trial comes first: it measures the load time that a session would see.
    let trial = try_out(&inventory.runtime, &inventory.catalog, &inventory.selection, found).await;
    let listed = inspect(found, &inventory.runtime, &inventory.selection);
    let requested = found.manifest.permissions_under(&inventory.selection);
    let granted = found.permissions_in(&inventory.selection);
    let details = Details { found, requested, granted, record, undelivered, trial, listed };
    if json {
        print(&text::json(&details.json()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let shown = |(label, line): &(&str, String)| {
        text::labelled(label, &text::exact(line), MARGIN, console.columns(), |label| console.paint(Tone::Faint, label))
    };
    print(&details.lines().iter().map(shown).collect::<String>())?;
    Ok(ExitCode::SUCCESS)
}

/// Everything that `info` shows about a plugin.
struct Details<'a> {
    found: &'a Found,
    /// The permissions with the addresses of the configuration.
    requested: Permissions,
    granted: Permissions,
    record: Record,
    undelivered: Undelivered,
    trial: Result<Trial, PluginsError>,
    listed: Listed,
}

impl Details<'_> {
    fn shown(&self) -> Option<&Shown> {
        self.trial.as_ref().ok()?.shown.as_ref().ok()
    }

    fn tools(&self) -> Vec<&str> {
        self.shown().into_iter().flat_map(|shown| &shown.tools).map(|tool| tool.schema.name.as_str()).collect()
    }

    /// Why the plugin does not load or start.
    fn broken(&self) -> Option<String> {
        match &self.trial {
            Err(error) => Some(self.listed.why.clone().unwrap_or_else(|| error.to_string())),
            Ok(Trial { shown: Err(error), .. }) => Some(error.to_string()),
            Ok(Trial { shown: Ok(shown), .. }) => shown.complaint.clone().filter(|_| !shown.has_started),
        }
    }

    /// The form, size and digest of the code that runs; none if the plugin cannot run.
    fn code(&self) -> Option<(&'static str, u64, String)> {
        let code = self.found.code().ok().filter(|_| !self.found.is_only_skills())?;
        let form = if matches!(code, Code::Native(_)) { "library" } else { "component" };
        Some((form, code.bytes().len() as u64, Digest::of(code.bytes()).to_string()))
    }

    fn is_native(&self) -> bool {
        matches!(self.found.code(), Ok(Code::Native(_)))
    }

    fn json(&self) -> Value {
        let Self { found, record, listed, .. } = self;
        let code = self.code();
        let load = self.trial.as_ref().ok().map(|trial| {
            let ms = |time: Duration| (time.as_secs_f64() * 1e4).round() / 10.0;
            json!({"ms": ms(trial.loading), "compiled": trial.was_compiled, "first_answer_ms": ms(trial.starting)})
        });
        let limit = self.trial.as_ref().ok().map(|trial| trial.limits.get(Limit::Memory));
        json!({
            "plugin": listed, "author": found.manifest.author, "license": found.manifest.license,
            "repository": found.manifest.repository, "bytes": code.as_ref().map(|(_, bytes, _)| bytes),
            "digest": code.as_ref().map(|(_, _, digest)| digest),
            "native": code.as_ref().map(|(form, ..)| *form == "library"), "exports": listed.kinds,
            "drafts": drafts_of(self.found), "tools": self.tools(),
            "skills": self.shown().map(|shown| &shown.skills), "events": self.shown().map(|shown| &shown.events),
            "permissions": { "asked": found.manifest.permissions, "granted": self.granted },
            "limits": found.limits(), "standing": grant_state(found), "broken": self.broken(), "load": load,
            "memory": { "peak": record.figures.memory_peak, "limit": limit }, "errors": record.errors, "record": record,
            "undelivered": self.undelivered, "config": found.manifest.config,
        })
    }

    fn lines(&self) -> Vec<(&'static str, String)> {
        let Self { found, record, listed, .. } = self;
        let or_none = |names: &[&str]| if names.is_empty() { "-".to_owned() } else { names.join(", ") };
        let mut lines = vec![
            ("name", listed.name.clone()),
            ("version", listed.version.clone()),
            ("description", listed.description.clone()),
            ("exports", or_none(&listed.kinds)),
            ("state", listed.state.word().to_owned()),
            ("location", listed.source.clone()),
        ];
        if let GrantStatus::Granted(entry) = &found.status {
            let edited = if entry.pin.edited { " (changed by hand since)" } else { "" };
            lines.push(("source", format!("{}{edited}", entry.pin.source)));
            lines.push(("signed by", consent::signer(&entry.pin)));
        }
        let credits = [
            ("author", &found.manifest.author),
            ("license", &found.manifest.license),
            ("repository", &found.manifest.repository),
        ];
        let named = credits.into_iter().filter(|(_, text)| !text.is_empty());
        lines.extend(named.map(|(label, text)| (label, text.clone())));
        if let Some((form, size, digest)) = self.code() {
            lines.push((form, format!("{}, {digest}", text::bytes(size))));
            if form == "library" {
                lines.push(("native", NATIVE.to_owned()));
            }
        }
        let drafts = drafts_of(found);
        if !drafts.is_empty() {
            lines.push(("drafts", drafts.join(", ")));
        }
        if listed.kinds.contains(&"tools") {
            lines.push(("tools", or_none(&self.tools())));
        }
        let (skills, events) =
            self.shown().map_or((&[][..], &[][..]), |shown| (shown.skills.as_slice(), shown.events.as_slice()));
        let named = [("skills", skills), ("events", events)];
        lines.extend(
            named.into_iter().filter(|(_, names)| !names.is_empty()).map(|(label, names)| (label, names.join(", "))),
        );
        let properties = found.manifest.config.as_ref().and_then(|schema| schema["properties"].as_object());
        if let Some(keys) = properties.filter(|keys| !keys.is_empty()) {
            let keys: Vec<&str> = keys.keys().map(String::as_str).collect();
            lines.push(("settings", format!("{}; --json has their schema", keys.join(", "))));
        }
        lines.extend(self.permissions());
        lines.extend(self.broken().map(|why| ("error", why)));
        if let Ok(trial) = &self.trial {
            let is_native = self.is_native();
            let how = match (is_native, trial.was_compiled) {
                (true, _) => "to open the library",
                (false, true) => "including compilation",
                (false, false) => "from compiled code",
            };
            let (loading, starting) = (took(trial.loading), took(trial.starting));
            lines.push(("load time", format!("{loading} {how}, then {starting} to the first response")));
            let peak = record.figures.memory_peak;
            let most = Limit::Memory.show(trial.limits.get(Limit::Memory));
            let peak = match peak {
                0 => "not measured yet".to_owned(),
                peak => format!("peak {}", text::bytes(peak)),
            };
            lines.push((
                "memory",
                match is_native {
                    true => "neither measured nor limited: it is that of Hermes".to_owned(),
                    false => format!("{peak}; limit {most} per instance"),
                },
            ));
        }
        lines.push(("usage", usage(record)));
        lines.extend(errors(&record.returned, record.figures.calls).into_iter().map(|line| ("errors", line)));
        lines.extend(record.returned.last.iter().map(|last| ("last error", mishap(last))));
        let Undelivered { waiting, set_aside } = &self.undelivered;
        lines.extend(waiting.iter().map(|turns| ("to store", format!("{}; a session delivers them", turns.line()))));
        lines.extend(set_aside.iter().map(|turns| ("set aside", turns.line())));
        if let Some(suspended) = &record.suspended {
            let (failures, last) = (suspended.failures, mishap(&suspended.last));
            let why = format!("disabled for a session, because it failed {failures} times in a row");
            lines.push(("last state", format!("{why}; last failure: {last}; the next session tries it again")));
        }
        lines.extend(record.errors.iter().rev().take(5).map(|error| ("failure", mishap(error))));
        lines
    }

    /// The requested permissions and limits, granted ones first.
    fn permissions(&self) -> Vec<(&'static str, String)> {
        let manifest = &self.found.manifest;
        let (granted, limits) = (&self.granted, self.found.limits());
        let missing = self.requested.widening(granted);
        let tier = self.trial.as_ref().map_or(Tier::Tools, |trial| trial.exports.tier());
        let granted = granted.lines().into_iter().chain(limits.lines(tier));
        let missing = missing.lines().into_iter().chain(manifest.limits.widening(&limits).lines(tier));
        let native = self.is_native().then(|| format!("run as a native library: {NATIVE}"));
        let granted = native.into_iter().chain(granted).map(|line| ("permission", line));
        let mut lines: Vec<_> = granted.chain(missing.map(|line| ("not granted", line))).collect();
        if lines.is_empty() {
            lines.push(("permissions", "none requested".to_owned()));
        }
        lines
    }
}

/// A duration for people.
fn took(time: Duration) -> String {
    match time.as_secs_f64() {
        seconds if seconds < 1.0 => format!("{:.1} ms", seconds * 1e3),
        seconds => format!("{seconds:.1} s"),
    }
}

pub(crate) fn stats(json: bool, console: Console) -> Result<ExitCode, Failure> {
    let inventory = Inventory::read(console)?;
    let names = inventory.catalog.all().iter().map(|found| found.manifest.name.clone());
    let records: Vec<(String, Record)> =
        names.map(|name| record(&inventory, &name).map(|record| (name, record))).collect::<Result<_, _>>()?;
    if json {
        let all = records.iter().map(|(name, record)| (name.clone(), json!(record)));
        print(&text::json(&Value::Object(all.collect())))?;
        return Ok(ExitCode::SUCCESS);
    }
    use Align::{Left, Right};
    let mut table = Table::new(&[Left, Right, Right, Right, Right, Right, Right, Right, Right]);
    table.head(["plugin", "calls", "time", "peak memory", "host calls", "tokens in/out", "sent", "errors", "failures"]);
    for (name, record) in &records {
        let used = &record.figures;
        let cells = [
            name.clone(),
            text::grouped(used.calls),
            format!("{:.1}s", used.micros as f64 / 1e6),
            text::bytes(used.memory_peak),
            text::grouped(used.host_calls),
            format!("{}/{}", text::grouped(used.tokens_in), text::grouped(used.tokens_out)),
            text::bytes(used.bytes_out),
            text::grouped(record.returned.calls),
            text::grouped(record.failures),
        ];
        table.row(cells.map(|cell| (Tone::Plain, cell)));
    }
    print(&table.text(console))?;
    Ok(ExitCode::SUCCESS)
}

fn record(inventory: &Inventory, name: &str) -> Result<Record, Failure> {
    Record::read(inventory.setup.home.path(), name).map_err(|error| {
        let fix = "check that the files below `data` in the home folder can be read";
        Failure::new(Kind::General, format!("the statistics of `{name}` cannot be read"), error.to_string(), fix)
    })
}

/// Whether the plugin can run, for `--json`.
fn grant_state(found: &Found) -> String {
    match &found.status {
        GrantStatus::Trusted => "part of Hermes".to_owned(),
        GrantStatus::Granted(entry) => {
            let signed = if entry.pin.signed_by().is_some() { "signed" } else { "not signed" };
            let edited = if entry.pin.edited { ", changed by hand since" } else { "" };
            format!("installed from {}, {signed}{edited}", entry.pin.source)
        }
        GrantStatus::Ungranted(why) => format!("does not run: {why}"),
    }
}

/// The errors that a plugin returned, by kind, the most frequent first; none if there are none.
fn errors(returned: &Returned, calls: u64) -> Option<String> {
    if returned.calls == 0 {
        return None;
    }
    let mut kinds: Vec<(&String, &u64)> = returned.kinds.iter().collect();
    kinds.sort_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.cmp(b.0)));
    let kinds: Vec<String> = kinds.iter().map(|(kind, calls)| format!("{} {kind}", text::grouped(**calls))).collect();
    let (errors, calls) = (text::grouped(returned.calls), text::counted(calls, "call"));
    Some(format!("{errors} of {calls} ended with an error: {}", kinds.join(", ")))
}

fn usage(record: &Record) -> String {
    let used = &record.figures;
    if used.calls == 0 && record.failures == 0 {
        return "not used yet".to_owned();
    }
    format!(
        "{} in {:.1} s, {}, {}, {}",
        text::counted(used.calls, "call"),
        used.micros as f64 / 1e6,
        text::counted(used.host_calls, "host call"),
        text::counted(record.returned.calls, "error"),
        text::counted(record.failures, "failure"),
    )
}
