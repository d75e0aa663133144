//! The bundled plugins keep the contract, and defects that were planted are found.
//!
//! `cargo xtask plugins` stages what is examined here; where it is not staged, these tests are skipped.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use hermes_conformance::{Report, Settings, Subject, examine};

/// A staged plugin, or none where nothing is staged.
fn staged(place: &str) -> Option<Subject> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target").join(place);
    if !folder.is_dir() {
        eprintln!("skipped: {place} is not staged, run `cargo xtask plugins`");
        return None;
    }
    Some(Subject::find(&folder).unwrap())
}

fn settings(config: Option<String>) -> Settings {
    Settings {
        conversations: 40,
        seed: 1,
        turns: None,
        config,
        code: PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("code"),
        jobs: 2,
    }
}

fn told(report: &Report) -> String {
    let line = |check: &hermes_conformance::Check| {
        format!("{} {}: {} — {}\n", if check.passed { "✓" } else { "✗" }, check.group, check.what, check.seen)
    };
    report.checks.iter().map(line).collect()
}

fn passes(place: &str) {
    let Some(subject) = staged(place) else { return };
    let report = examine(&subject, &settings(None), &|_| ()).unwrap();
    assert!(report.passed(), "{place}\n{}", told(&report));
    let memory = report.memory.unwrap();
    assert!(memory.enough_mib <= memory.limit_mib && !report.calls.is_empty());
}

#[test]
fn the_compressor_keeps_the_contract() {
    passes("bundled/context_engine/compressor");
}

#[test]
fn the_lossless_engine_keeps_the_contract() {
    passes("bundled/context_engine/lossless");
}

#[test]
fn the_builtin_memory_keeps_the_contract() {
    passes("bundled/memory/builtin");
}

#[test]
fn the_file_tools_keep_the_contract() {
    passes("bundled/tools/files");
}

#[test]
fn the_local_skills_keep_the_contract() {
    passes("bundled/skills/local");
}

#[test]
fn the_audit_hooks_keep_the_contract() {
    passes("bundled/hooks/audit");
}
