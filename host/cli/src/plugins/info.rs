//! `hermes plugins info` and `stats`: what a plugin is, what it may do, and how it fared so far.

use std::process::ExitCode;

use hermes_plugins::record::{Mishap, Record};
use hermes_plugins::{Code, Digest, Found, Standing};
use serde_json::{Value, json};

use super::{Known, look_at};
use crate::console::{Console, Tone, print};
use crate::failure::{Failure, Kind};
use crate::text;

pub(crate) fn run(name: &str, json: bool, console: Console) -> Result<ExitCode, Failure> {
    let known = Known::read(console)?;
    let found = known.found(name)?;
    let record = record(&known, name)?;
    let listed = look_at(found, &known.runtime, &known.selection);
    let code = found.code().ok();
    let is_native = matches!(code, Some(Code::Native(_)));
    let digest = code.as_ref().map(|code| Digest::of(code.bytes()).to_string());
    let size = code.as_ref().map(|code| code.bytes().len() as u64);
    let (asked, granted) = (&found.manifest.permissions, found.permissions());
    let missing = asked.widening(&granted);
    if json {
        let value = json!({
            "plugin": listed, "author": found.manifest.author, "license": found.manifest.license,
            "repository": found.manifest.repository, "bytes": size, "digest": digest, "native": is_native,
            "permissions": { "asked": asked, "granted": granted }, "limits": found.limits(),
            "standing": standing(found), "record": record,
        });
        print(&format!("{value:#}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut lines: Vec<(&str, String)> = vec![
        ("name", format!("{} {}", listed.name, listed.version)),
        ("about", listed.description.clone()),
        ("kinds", if listed.kinds.is_empty() { "-".to_owned() } else { listed.kinds.join(", ") }),
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
    if let (Some(size), Some(digest)) = (size, digest) {
        lines.push((if is_native { "library" } else { "component" }, format!("{}, {digest}", text::bytes(size))));
    }
    if is_native {
        lines.push(("native", "runs outside of the sandbox: it can do all that you can".to_owned()));
    }
    lines.extend(granted.lines().into_iter().map(|line| ("may", line)));
    lines.extend(missing.lines().into_iter().map(|line| ("may not", format!("{line} (asked for, not granted)"))));
    if granted.is_empty() && missing.is_empty() {
        lines.push(("may", "nothing beyond the conversation's own calls".to_owned()));
    }
    lines.extend(listed.why.iter().map(|why| ("broken", why.clone())));
    lines.push(("fared", fared(&record)));
    if let Some(suspended) = &record.suspended {
        let why = format!("after {} failures in a row, the last: {}", suspended.failures, mishap(&suspended.last));
        lines.push(("suspended", format!("{why}; it gets another chance in the next session")));
    }
    lines.extend(record.errors.iter().rev().take(5).map(|error| ("failed", mishap(error))));
    let shown = |(label, line): &(&str, String)| {
        format!("{} {}\n", console.paint(Tone::Faint, &format!("{label:<10}")), text::line(line))
    };
    print(&lines.iter().map(shown).collect::<String>())?;
    Ok(ExitCode::SUCCESS)
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
    let head = format!(
        "{:<14} {:>9} {:>10} {:>9} {:>11} {:>15} {:>9} {:>8}\n",
        "plugin", "calls", "time", "peak", "host calls", "tokens in/out", "sent", "failures"
    );
    let line = |(name, record): &(String, Record)| {
        let used = &record.figures;
        format!(
            "{name:<14} {:>9} {:>9.1}s {:>9} {:>11} {:>15} {:>9} {:>8}\n",
            text::grouped(used.calls),
            used.micros as f64 / 1e6,
            text::bytes(used.memory_peak),
            text::grouped(used.host_calls),
            format!("{}/{}", text::grouped(used.tokens_in), text::grouped(used.tokens_out)),
            text::bytes(used.bytes_out),
            text::grouped(record.failures),
        )
    };
    let lines: String = records.iter().map(line).collect();
    print(&format!("{}{lines}", console.paint(Tone::Faint, &head)))?;
    Ok(ExitCode::SUCCESS)
}

fn record(known: &Known, name: &str) -> Result<Record, Failure> {
    Record::read(known.setup.home.path(), name).map_err(|error| {
        let fix = "see that the files below `data` in the home can be read";
        Failure::new(Kind::General, format!("how `{name}` fared cannot be told"), error.to_string(), fix)
    })
}

fn standing(found: &Found) -> String {
    match &found.standing {
        Standing::Trusted => "part of Hermes".to_owned(),
        Standing::Granted(entry) => {
            let signed = if entry.pin.signer.is_some() { "signed" } else { "not signed" };
            format!("installed from {}, {signed}", entry.pin.source)
        }
        Standing::Ungranted(why) => format!("does not run: {why}"),
    }
}

fn fared(record: &Record) -> String {
    let used = &record.figures;
    if used.calls == 0 && record.failures == 0 {
        return "not used yet".to_owned();
    }
    format!(
        "{} in {:.1} s, {} to the host, at most {} of memory, {}",
        text::counted(used.calls, "call"),
        used.micros as f64 / 1e6,
        text::counted(used.host_calls, "call"),
        text::bytes(used.memory_peak),
        text::counted(record.failures, "failure"),
    )
}

fn mishap(error: &Mishap) -> String {
    let at = i64::try_from(error.at).ok().and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
    let at = at.map_or_else(String::new, |at| format!("{} UTC: ", at.strftime("%Y-%m-%d %H:%M")));
    format!("{at}`{}` of version {}: {}", error.call, error.version, error.cause)
}
