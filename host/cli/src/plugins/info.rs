//! `hermes plugins info` and `stats`: what a plugin is, what it may do, and how it fared so far.

use std::process::ExitCode;
use std::time::Duration;

use hermes_app::mishap;
use hermes_plugin_host::record::Record;
use hermes_plugin_host::rehearsal::Shown;
use hermes_plugin_host::{Code, Digest, Found, GrantStatus, Limit, PluginsError, Trial, try_out};
use hermes_runtime::Tier;
use serde_json::{Value, json};

use super::{Known, Listed, look_at};
use crate::console::{Console, Tone, print};
use crate::failure::{Failure, Kind};
use crate::table::{Align, Table};
use crate::text;

pub(crate) async fn run(name: &str, json: bool, console: Console) -> Result<ExitCode, Failure> {
    let known = Known::read(console)?;
    let found = known.found(name)?;
    let record = record(&known, name)?;
    // Before anything else loads it, so that the time is that of a session.
    let trial = try_out(&known.runtime, &known.catalog, &known.selection, found).await;
    let listed = look_at(found, &known.runtime, &known.selection);
    let about = About { found, record, trial, listed };
    if json {
        print(&format!("{:#}\n", about.json()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let shown = |(label, line): &(&str, String)| {
        format!("{} {}\n", console.paint(Tone::Faint, &format!("{label:<10}")), text::line(line))
    };
    print(&about.lines().iter().map(shown).collect::<String>())?;
    Ok(ExitCode::SUCCESS)
}

/// All that is known of a plugin.
struct About<'a> {
    found: &'a Found,
    record: Record,
    trial: Result<Trial, PluginsError>,
    listed: Listed,
}

impl About<'_> {
    fn shown(&self) -> Option<&Shown> {
        self.trial.as_ref().ok()?.shown.as_ref().ok()
    }

    fn tools(&self) -> Vec<&str> {
        self.shown().into_iter().flat_map(|shown| &shown.tools).map(|tool| tool.schema.name.as_str()).collect()
    }

    /// Why no session can have it, or why it does not start.
    fn broken(&self) -> Option<String> {
        match &self.trial {
            Err(error) => Some(self.listed.why.clone().unwrap_or_else(|| error.to_string())),
            Ok(Trial { shown: Err(error), .. }) => Some(error.to_string()),
            Ok(Trial { shown: Ok(shown), .. }) => shown.complaint.clone().filter(|_| !shown.has_started),
        }
    }

    /// What of it runs, its size and its digest; none where it may not run.
    fn code(&self) -> Option<(&'static str, u64, String)> {
        let code = self.found.code().ok()?;
        let form = if matches!(code, Code::Native(_)) { "library" } else { "component" };
        Some((form, code.bytes().len() as u64, Digest::of(code.bytes()).to_string()))
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
            "native": code.as_ref().map(|(form, ..)| *form == "library"), "exports": listed.kinds, "tools": self.tools(),
            "skills": self.shown().map(|shown| &shown.skills), "events": self.shown().map(|shown| &shown.events),
            "permissions": { "asked": found.manifest.permissions, "granted": found.permissions() },
            "limits": found.limits(), "standing": standing(found), "broken": self.broken(), "load": load,
            "memory": { "peak": record.figures.memory_peak, "limit": limit }, "errors": record.errors, "record": record,
        })
    }

    fn lines(&self) -> Vec<(&'static str, String)> {
        let Self { found, record, listed, .. } = self;
        let or_none = |names: &[&str]| if names.is_empty() { "-".to_owned() } else { names.join(", ") };
        let mut lines = vec![
            ("name", format!("{} {}", listed.name, listed.version)),
            ("about", listed.description.clone()),
            ("exports", or_none(&listed.kinds)),
            ("state", listed.state.word().to_owned()),
            ("source", listed.source.clone()),
            ("standing", standing(found)),
        ];
        let about = [
            ("author", &found.manifest.author),
            ("licence", &found.manifest.license),
            ("repository", &found.manifest.repository),
        ];
        lines.extend(about.into_iter().filter(|(_, text)| !text.is_empty()).map(|(label, text)| (label, text.clone())));
        if let Some((form, size, digest)) = self.code() {
            lines.push((form, format!("{}, {digest}", text::bytes(size))));
            if form == "library" {
                lines.push(("native", "runs outside of the sandbox: it can do all that you can".to_owned()));
            }
        }
        if listed.kinds.contains(&"tools") {
            lines.push(("tools", or_none(&self.tools())));
        }
        let (skills, events) =
            self.shown().map_or((&[][..], &[][..]), |shown| (shown.skills.as_slice(), shown.events.as_slice()));
        let named = [("skills", skills), ("watches", events)];
        lines.extend(
            named.into_iter().filter(|(_, names)| !names.is_empty()).map(|(label, names)| (label, names.join(", "))),
        );
        lines.extend(self.rights());
        lines.extend(self.broken().map(|why| ("broken", why)));
        if let Ok(trial) = &self.trial {
            let how = if trial.was_compiled { "with compiling it" } else { "compiled before" };
            let (loading, starting) = (took(trial.loading), took(trial.starting));
            lines.push(("load time", format!("{loading}, {how}; from there {starting} to its first answers")));
            let (peak, most) = (record.figures.memory_peak, Limit::Memory.show(trial.limits.get(Limit::Memory)));
            let peak = match peak {
                0 => "not measured yet".to_owned(),
                peak => format!("{} at its peak", text::bytes(peak)),
            };
            lines.push(("memory", format!("{peak}; an instance may have {most}")));
        }
        lines.push(("fared", fared(record)));
        if let Some(suspended) = &record.suspended {
            let why = format!("after {} failures in a row, the last: {}", suspended.failures, mishap(&suspended.last));
            lines.push(("suspended", format!("{why}; it gets another chance in the next session")));
        }
        lines.extend(record.errors.iter().rev().take(5).map(|error| ("failed", mishap(error))));
        lines
    }

    /// What it asks for, and whether it was granted.
    fn rights(&self) -> Vec<(&'static str, String)> {
        let manifest = &self.found.manifest;
        let (granted, limits) = (self.found.permissions(), self.found.limits());
        let missing = manifest.permissions.widening(&granted);
        let tier = self.trial.as_ref().map_or(Tier::Tools, |trial| trial.exports.tier());
        let limit = |line: String| format!("have {line}");
        let not = |line: String| format!("{line} (asked for, not granted)");
        let may = granted.lines().into_iter().chain(limits.lines(tier).into_iter().map(limit));
        let denied = manifest.limits.widening(&limits).lines(tier).into_iter().map(limit);
        let may_not = missing.lines().into_iter().chain(denied).map(not);
        let mut lines: Vec<_> = may.map(|line| ("may", line)).chain(may_not.map(|line| ("may not", line))).collect();
        if lines.is_empty() {
            lines.push(("may", "nothing beyond the conversation's own calls".to_owned()));
        }
        lines
    }
}

/// A time as people read it.
fn took(time: Duration) -> String {
    match time.as_secs_f64() {
        seconds if seconds < 1.0 => format!("{:.1} ms", seconds * 1e3),
        seconds => format!("{seconds:.1} s"),
    }
}

pub(crate) fn stats(json: bool, console: Console) -> Result<ExitCode, Failure> {
    let known = Known::read(console)?;
    let names = known.catalog.all().iter().map(|found| found.manifest.name.clone());
    let records: Vec<(String, Record)> =
        names.map(|name| record(&known, &name).map(|record| (name, record))).collect::<Result<_, _>>()?;
    if json {
        let all = records.iter().map(|(name, record)| (name.clone(), json!(record)));
        print(&format!("{:#}\n", Value::Object(all.collect())))?;
        return Ok(ExitCode::SUCCESS);
    }
    use Align::{Left, Right};
    let mut table = Table::new(&[Left, Right, Right, Right, Right, Right, Right, Right]);
    table.head(["plugin", "calls", "time", "peak", "host calls", "tokens in/out", "sent", "failures"]);
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
            text::grouped(record.failures),
        ];
        table.row(cells.map(|cell| (Tone::Plain, cell)));
    }
    print(&table.text(console))?;
    Ok(ExitCode::SUCCESS)
}

fn record(known: &Known, name: &str) -> Result<Record, Failure> {
    Record::read(known.setup.home.path(), name).map_err(|error| {
        let fix = "see that the files below `data` in the home can be read";
        Failure::new(Kind::General, format!("how `{name}` fared cannot be told"), error.to_string(), fix)
    })
}

fn standing(found: &Found) -> String {
    match &found.status {
        GrantStatus::Trusted => "part of Hermes".to_owned(),
        GrantStatus::Granted(entry) => {
            let signed = if entry.pin.signer.is_some() { "signed" } else { "not signed" };
            format!("installed from {}, {signed}", entry.pin.source)
        }
        GrantStatus::Ungranted(why) => format!("does not run: {why}"),
    }
}

fn fared(record: &Record) -> String {
    let used = &record.figures;
    if used.calls == 0 && record.failures == 0 {
        return "not used yet".to_owned();
    }
    format!(
        "{} in {:.1} s, {} to the host, {}",
        text::counted(used.calls, "call"),
        used.micros as f64 / 1e6,
        text::counted(used.host_calls, "call"),
        text::counted(record.failures, "failure"),
    )
}
