//! Programs that change between the approval and their start, or behind their interpreters.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::time::{Duration, Instant};

use super::child;
use super::running::prepare;
use super::tests::{Fixture, LONG, order};
use super::*;

/// A fixture whose PATH begins with `work/bin`, a folder that plugins may change.
fn fixture() -> Fixture {
    let mut fixture = Fixture::new();
    fs::create_dir_all(fixture.at("work/bin")).unwrap();
    let path = [fixture.at("work/bin"), fixture.at("bin"), "/usr/bin".into(), "/bin".into()];
    fixture.variables.insert("PATH", std::env::join_paths(path).unwrap());
    fixture
}

fn write(fixture: &Fixture, path: &str, text: &str) {
    fs::write(fixture.at(path), text).unwrap();
    fs::set_permissions(fixture.at(path), fs::Permissions::from_mode(0o755)).unwrap();
}

fn find(fixture: &Fixture, program: &str) -> Result<Run, Fault> {
    fixture.find(fixture.grant(&[program]), order(program, &["1", "2"]))
}

fn found(fixture: &Fixture, program: &str) -> Run {
    find(fixture, program).unwrap()
}

async fn output(run: Run) -> String {
    let exit = child::run(run, LONG, None).await.unwrap();
    format!("{}{}", String::from_utf8(exit.output).unwrap(), String::from_utf8(exit.errors).unwrap())
}

/// The output of a program whose files are changed at the last moment before its start.
async fn output_after(fixture: &Fixture, program: &str, change: impl FnOnce()) -> String {
    let run = found(fixture, program);
    let prepared = prepare(&run).unwrap();
    change();
    let mut running = prepared.start().unwrap();
    let mut text = String::new();
    let mut pipe = running.output.take().unwrap();
    tokio::io::AsyncReadExt::read_to_string(&mut pipe, &mut text).await.unwrap();
    running.ended().await.unwrap();
    text
}

const ECHO: &str = "#!/bin/sh\necho honest $1 $2\n";
const EVIL: &str = "#!/bin/sh\necho evil\n";

#[tokio::test]
async fn a_script_that_is_replaced_right_before_its_start_runs_as_approved() {
    let fixture = fixture();
    write(&fixture, "work/bin/tool", ECHO);
    let shown = output_after(&fixture, "tool", || write(&fixture, "work/bin/tool", EVIL)).await;
    assert_eq!(shown, "honest 1 2\n");
}

#[tokio::test]
async fn a_binary_that_is_replaced_right_before_its_start_runs_as_approved() {
    let fixture = fixture();
    fs::copy("/bin/echo", fixture.at("work/bin/tool")).unwrap();
    let change = || {
        fs::remove_file(fixture.at("work/bin/tool")).unwrap();
        write(&fixture, "work/bin/tool", EVIL);
    };
    assert_eq!(output_after(&fixture, "tool", change).await, "1 2\n");
}

#[tokio::test]
async fn a_script_that_is_rewritten_while_it_runs_goes_on_as_approved() {
    let fixture = fixture();
    // Longer than what a shell reads at once.
    let script = |end: &str| {
        let filler = "# filler\n".repeat(100_000);
        format!("#!/bin/sh\n: > started\nwhile [ ! -e go ]; do sleep 0.02; done\n{filler}echo {end}\n")
    };
    write(&fixture, "work/bin/tool", &script("honest"));
    let running = tokio::spawn(output(found(&fixture, "tool")));
    let until = Instant::now() + LONG;
    while !fixture.at("work/started").exists() {
        assert!(Instant::now() < until, "it did not start");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // The same file, in place.
    fs::write(fixture.at("work/bin/tool"), script("planted")).unwrap();
    fs::write(fixture.at("work/go"), "").unwrap();
    assert_eq!(running.await.unwrap(), "honest\n");
}

#[tokio::test]
async fn a_link_that_is_turned_right_before_its_start_leads_to_the_approved_program() {
    let fixture = fixture();
    symlink("/bin/echo", fixture.at("work/bin/tool")).unwrap();
    let run = found(&fixture, "tool");
    assert_eq!(run.pin, None, "plugins cannot change this program");
    let change = || {
        fs::remove_file(fixture.at("work/bin/tool")).unwrap();
        write(&fixture, "work/bin/tool", EVIL);
    };
    assert_eq!(output_after(&fixture, "tool", change).await, "1 2\n");
    // Turned before the start, after the approval.
    assert!(prepare(&run).err().unwrap().to_string().contains("changed after it was approved"));
}

#[tokio::test]
async fn a_program_that_changed_after_its_approval_does_not_start() {
    let fixture = fixture();
    write(&fixture, "work/bin/tool", ECHO);
    let run = found(&fixture, "tool");
    write(&fixture, "work/bin/tool", EVIL);
    let error = child::run(run, LONG, None).await.unwrap_err();
    assert!(error.message.contains("changed after it was approved"), "{error:?}");
}

#[test]
fn the_pin_holds_every_interpreter_that_plugins_may_change() {
    // The script, its place, and where the interpreter is planted.
    for (place, line) in [
        ("work/bin/tool", "#!/usr/bin/env planted"),
        ("bin/tool", "#!/usr/bin/env planted"),
        ("work/bin/tool", "#!/usr/bin/env -S A=1 planted -x"),
        ("bin/tool", "#!/usr/bin/env -SA=1 planted -x"),
        ("bin/tool", "#!/usr/bin/env -S -u LANG --unset=A planted -x"),
        ("bin/tool", "#!DIR/bin/linked"),
        ("bin/tool", "#!/usr/bin/env --split-string=planted -x"),
        ("bin/tool", "#! DIR/work/bin/planted -x"),
        ("work/bin/tool", "#!DIR/work/bin/planted"),
        ("bin/tool", "#!/usr/bin/env bin/planted"),
        ("bin/tool", "#!bin/planted"),
        ("bin/tool", "#!DIR/bin/second"),
        ("bin/tool", "#!/usr/bin/env second"),
    ] {
        let fixture = fixture();
        write(&fixture, place, &format!("{}\n", line.replace("DIR", &fixture.at("").display().to_string())));
        write(&fixture, "bin/second", "#!/usr/bin/env planted\n");
        symlink(fixture.at("work/bin/planted"), fixture.at("bin/linked")).unwrap();
        write(&fixture, "work/bin/planted", ECHO);
        let before = found(&fixture, "tool").pin;
        assert!(before.is_some(), "{line}");
        assert_eq!(found(&fixture, "tool").pin, before, "{line}");
        write(&fixture, "work/bin/planted", EVIL);
        assert_ne!(found(&fixture, "tool").pin, before, "{line}");
        // Another interpreter with the approved content is another place.
        write(&fixture, "work/bin/planted", "#!/bin/cat\n");
        assert_ne!(found(&fixture, "tool").pin, before, "{line}");
    }
}

#[tokio::test]
async fn an_interpreter_that_is_replaced_right_before_its_start_runs_as_approved() {
    let mut fixture = fixture();
    fixture.variables.insert("LANG", "C".into());
    write(&fixture, "bin/tool", "#!/usr/bin/env -S -u LANG WORD=set planted -x\n");
    write(&fixture, "work/bin/planted", "#!/bin/sh\necho honest $LANG$WORD $1 ${2##*/} $3 $4\n");
    let shown = output_after(&fixture, "tool", || write(&fixture, "work/bin/planted", EVIL)).await;
    assert_eq!(shown, "honest set -x tool 1 2\n");
}

#[tokio::test]
async fn an_interpreter_that_is_planted_right_before_its_start_does_not_run() {
    let fixture = fixture();
    write(&fixture, "bin/tool", "#!/usr/bin/env cat\nhonest\n");
    let run = found(&fixture, "tool");
    assert_eq!(run.pin, None);
    let shown = output_after(&fixture, "tool", || write(&fixture, "work/bin/cat", EVIL)).await;
    assert!(shown.contains("honest") && !shown.contains("evil"), "{shown}");
    assert_ne!(found(&fixture, "tool").pin, None, "from now on, another program is asked about");
}

#[test]
fn a_chain_that_cannot_be_followed_is_refused_where_plugins_may_change_it() {
    let fixture = fixture();
    let long = format!("#!/bin/sh {}\n", "x".repeat(300));
    for text in [
        "#!/usr/bin/env\n",
        "#!/usr/bin/env -i sh\n",
        "#!/usr/bin/env -S -i sh\n",
        "#!/usr/bin/env -S -u PATH sh\n",
        "#!/usr/bin/env -S -u\n",
        "#!/usr/bin/env -S PATH=. planted\n",
        "#!/usr/bin/env -S 'sh' $HOME\n",
        "#!/usr/bin/env A=1\n",
        "#!/usr/bin/env nowhere\n",
        "#!/nowhere/at/all\n",
        "#!\n",
        &long,
    ] {
        write(&fixture, "work/bin/tool", text);
        assert_eq!(find(&fixture, "tool").unwrap_err().code, "not-started", "{text:?}");
    }
    write(&fixture, "work/bin/circle", &format!("#!{}\n", fixture.at("work/bin/circle").display()));
    assert_eq!(find(&fixture, "circle").unwrap_err().code, "not-started");
    // An interpreter that a plugin could create.
    write(&fixture, "bin/outside", "#!bin/missing\n");
    assert_eq!(find(&fixture, "outside").unwrap_err().code, "not-started");
    for at in 0..6 {
        let next = fixture.at(&format!("work/bin/i{}", at + 1));
        write(&fixture, &format!("work/bin/i{at}"), &format!("#!{}\n", next.display()));
    }
    write(&fixture, "work/bin/i4", ECHO);
    assert!(find(&fixture, "i1").is_ok(), "four interpreters");
    let error = find(&fixture, "i0").unwrap_err();
    assert!(error.message.contains("more than 4 interpreters"), "{error:?}");
}

#[tokio::test]
async fn a_copy_finds_its_neighbours_and_its_name_and_is_removed() {
    let fixture = fixture();
    fs::create_dir_all(fixture.at("work/lib")).unwrap();
    fs::write(fixture.at("work/lib/part"), "part\n").unwrap();
    fs::write(fixture.at("work/bin/near"), "near\n").unwrap();
    let script =
        "#!/bin/sh\ncd \"$(dirname \"$0\")\"; cat near ../lib/part; basename \"$0\"; echo \"$HERMES_PROGRAM\"\n";
    write(&fixture, "work/bin/tool", script);
    let real = fixture.at("work/bin/tool").canonicalize().unwrap();
    assert_eq!(output(found(&fixture, "tool")).await, format!("near\npart\ntool\n{}\n", real.display()));
    let left = || fs::read_dir(fixture.at("work/home/private")).map_or(0, Iterator::count);
    let until = Instant::now() + LONG;
    while left() > 0 {
        assert!(Instant::now() < until, "the copy remains");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(fs::read_to_string(fixture.at("work/lib/part")).unwrap(), "part\n", "only links were removed");
}

#[tokio::test]
async fn copies_of_a_process_that_was_killed_are_swept() {
    let fixture = fixture();
    let private = fixture.at("work/home/private");
    fs::create_dir_all(private.join("0-0/0/bin")).unwrap();
    fs::write(private.join("0-0/0/bin/tool"), "x").unwrap();
    fs::set_permissions(private.join("0-0/0/bin"), fs::Permissions::from_mode(0o500)).unwrap();
    fs::write(private.join("0-0.lock"), "").unwrap();
    write(&fixture, "work/bin/tool", ECHO);
    assert_eq!(output(found(&fixture, "tool")).await, "honest 1 2\n");
    assert!(!private.join("0-0").exists() && !private.join("0-0.lock").exists());
}
