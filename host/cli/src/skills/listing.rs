//! `hermes skills list` and `info`.

use std::process::ExitCode;

use hermes_app::operations::{self, InstallError};
use hermes_app::skills::{Declared, FoundSkill, SkillFile, review};
use hermes_diagnostic::Diagnose as _;
use serde_json::{Value, json};

use super::files::is_program;
use crate::console::{Console, Tone, print};
use crate::failure::Failure;
use crate::launch::Setup;
use crate::text;

/// Columns of the state, with the space behind it.
const STATE: usize = 8;
/// Columns of the labels of `info`, with the space behind them.
const MARGIN: usize = 12;
/// Most characters of a description in a list.
const MOST_DESCRIPTION: usize = 240;

/// The state of a skill, and why.
fn state(found: &FoundSkill) -> (&'static str, Tone, Option<String>) {
    match &found.header {
        _ if found.is_missing => {
            ("missing", Tone::Bad, Some("skills.lock lists it, and its folder is gone".to_owned()))
        }
        Err(flaw) => ("broken", Tone::Bad, Some(flaw.to_string())),
        Ok(_) if !found.edits.is_empty() => ("edited", Tone::Warning, None),
        Ok(_) => ("ok", Tone::Good, None),
    }
}

/// Where a skill comes from, in words.
fn origin(found: &FoundSkill) -> String {
    match &found.entry {
        None => "your own skill".to_owned(),
        Some(entry) => {
            let day = entry.installed.split('T').next().unwrap_or_default();
            let path = if entry.path.is_empty() { String::new() } else { format!(", {}", entry.path) };
            format!("{}{path}, installed {day}", entry.source)
        }
    }
}

pub(super) fn list(setup: &Setup, json: bool, console: Console) -> Result<ExitCode, Failure> {
    let all = operations::skills(setup, true)?;
    if json {
        print(&text::json(&json!(all.iter().map(described).collect::<Vec<_>>())))?;
        return Ok(ExitCode::SUCCESS);
    }
    if all.is_empty() {
        console
            .note("there are no skills in your skills folder; `hermes skills search` lists some that you can install");
    }
    let mut out = String::new();
    for found in &all {
        let (word, tone, why) = state(found);
        let about = why.or_else(|| found.header.as_ref().ok().map(|header| header.description.clone()));
        let about = text::shortened(&text::exact(&about.unwrap_or_default()), MOST_DESCRIPTION);
        let head = format!("{word:<STATE$}{}", text::exact(found.name()));
        let mut lines = text::hanging(&head, STATE, console.columns());
        if let Some(rest) = lines.first().and_then(|first| first.strip_prefix(word)).map(str::to_owned) {
            lines[0] = console.paint(tone, word) + &rest;
        }
        out.push_str(&(lines.join("\n") + "\n"));
        for line in [about, text::exact(&origin(found))] {
            out.push_str(&console.hanging(&format!("{:STATE$}{line}", ""), STATE));
        }
    }
    print(&out)?;
    Ok(ExitCode::SUCCESS)
}

/// A name, and lines about it below.
pub(super) fn block(head: &str, lines: &[&str], console: Console) -> String {
    const INDENT: usize = 2;
    let mut out = console.hanging(head, INDENT);
    for line in lines.iter().filter(|line| !line.is_empty()) {
        let line = text::shortened(&text::exact(line), 2 * MOST_DESCRIPTION);
        out.push_str(&console.hanging(&format!("{:INDENT$}{line}", ""), INDENT));
    }
    out
}

fn described(found: &FoundSkill) -> Value {
    let (word, _, why) = state(found);
    let entry = found.entry.as_ref();
    json!({
        "name": found.name(),
        "folder": found.folder,
        "description": found.header.as_ref().ok().map(|header| &header.description),
        "state": word,
        "why": why,
        "source": entry.map(|entry| &entry.source),
        "path": entry.map(|entry| &entry.path),
        "resolved": entry.and_then(|entry| entry.resolved.as_ref()),
        "digest": entry.map(|entry| entry.digest),
        "installed": entry.map(|entry| &entry.installed),
        "accepted": entry.map(|entry| &entry.accepted),
        "edited": found.edits,
    })
}

pub(super) fn info(setup: &Setup, name: &str, json: bool, console: Console) -> Result<ExitCode, Failure> {
    let all = operations::skills(setup, false)?;
    let found = all.iter().find(|found| found.name() == name).or_else(|| all.iter().find(|found| found.folder == name));
    let Some(found) = found else {
        let there = all.iter().map(|found| found.name().to_owned()).collect();
        return Err(InstallError::UnknownSkill { name: name.to_owned(), there }.diagnose().into());
    };
    let files = if found.is_missing { Ok(Vec::new()) } else { setup.skill_installer().files(found) };
    let scan = match (&found.header, &files) {
        (Ok(header), Ok(files)) => {
            let review = review(header, files);
            review.blocked.iter().chain(&review.asked).chain(&review.noted).map(ToString::to_string).collect()
        }
        _ => Vec::new(),
    };
    if json {
        let mut value = described(found);
        value["declares"] = json!(found.header.as_ref().ok());
        value["files"] = match &files {
            Ok(files) => files.iter().map(|file| json!({"name": file.name, "bytes": file.bytes.len()})).collect(),
            Err(_) => Value::Null,
        };
        value["scan"] = json!(scan);
        print(&text::json(&value))?;
        return Ok(ExitCode::SUCCESS);
    }
    let rows = rows(setup, found, files.as_deref().unwrap_or_default(), &scan);
    let shown = |(label, line): &(&str, String)| {
        text::labelled(label, &text::exact(line), MARGIN, console.columns(), |label| console.paint(Tone::Faint, label))
    };
    print(&rows.iter().filter(|(_, line)| !line.is_empty()).map(shown).collect::<String>())?;
    Ok(ExitCode::SUCCESS)
}

fn rows(setup: &Setup, found: &FoundSkill, files: &[SkillFile], scan: &[String]) -> Vec<(&'static str, String)> {
    let (word, _, why) = state(found);
    let state = why.map_or_else(|| word.to_owned(), |why| format!("{word}: {why}"));
    let mut rows = vec![("skill", found.name().to_owned()), ("state", state)];
    if let Ok(header) = &found.header {
        rows.push(("description", header.description.clone()));
        rows.push(("version", header.version.clone()));
        rows.push(("license", header.license.clone()));
        rows.push(("needs", header.compatibility.clone()));
        rows.push(("programs", header.programs.join(", ")));
        rows.extend(header.variables.iter().map(|one| ("variable", declared(one))));
        rows.extend(header.settings.iter().map(|one| ("setting", declared(one))));
        rows.push(("credentials", header.credentials.join(", ")));
        rows.push(("front matter", header.guessed.as_ref().map_or_else(String::new, |why| guessed(why))));
    }
    rows.push(("folder", setup.home.skills().join(&found.folder).display().to_string()));
    rows.push((
        "source",
        found.entry.as_ref().map_or_else(|| "your own skill".to_owned(), |entry| entry.source.clone()),
    ));
    if let Some(entry) = &found.entry {
        rows.push(("in source", entry.path.clone()));
        rows.push(("revision", entry.resolved.clone().unwrap_or_default()));
        rows.push(("digest", entry.digest.to_string()));
        rows.push(("installed", entry.installed.clone()));
        rows.push(("accepted", entry.accepted.join("; ")));
    }
    rows.extend(found.edits.iter().map(|edit| ("edited", super::files::changed(edit))));
    rows.extend(files.iter().map(|file| ("file", described_file(file))));
    rows.extend(scan.iter().map(|found| ("scan", format!("{found} looks like injected instructions"))));
    rows
}

/// A file with its size.
fn described_file(file: &SkillFile) -> String {
    let program = if is_program(file) { ", a program" } else { "" };
    format!("{} ({}{program})", file.name, text::bytes(file.bytes.len() as u64))
}

/// A variable or a setting in words.
pub(super) fn declared(one: &Declared) -> String {
    let optional = if one.is_optional { " (optional)" } else { "" };
    let purpose = if one.purpose.is_empty() { String::new() } else { format!(": {}", one.purpose) };
    format!("{}{optional}{purpose}", one.name)
}

/// What a broken front matter means.
pub(super) fn guessed(why: &str) -> String {
    format!("broken YAML, so name and description were read line by line: {why}")
}
