//! What may be in the place of a project file: links, pipes, devices, endless content, and rules without number.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::process::Command;

use super::*;

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Puts something at a path; the second path is a file outside of the project.
type Put = fn(&Path, &Path);

const PLACES: &[(&str, Put)] = &[
    ("a link out of the project", |at, secret| symlink(secret, at).unwrap()),
    ("a link to a link out", |at, secret| {
        symlink(secret, at.with_extension("hop")).unwrap();
        symlink(at.with_extension("hop"), at).unwrap();
    }),
    ("a link through a folder that is a link", |at, secret| {
        symlink(secret.parent().unwrap(), at.with_extension("folder")).unwrap();
        symlink(at.with_extension("folder").join("secret"), at).unwrap();
    }),
    ("a link with many steps up", |at, _| symlink("../../../../../../../../../../etc/passwd", at).unwrap()),
    ("a link to itself", |at, _| symlink(at, at).unwrap()),
    ("a link to the variables of the process", |at, _| symlink("/proc/self/environ", at).unwrap()),
    ("a link to a descriptor of the process", |at, _| symlink("/proc/self/fd/0", at).unwrap()),
    ("a link to an endless device", |at, _| symlink("/dev/zero", at).unwrap()),
    ("a link to the terminal", |at, _| symlink("/dev/tty", at).unwrap()),
    ("a link to a folder", |at, _| symlink(".", at).unwrap()),
    ("a pipe", |at, _| pipe(at)),
    ("a link to a pipe", |at, _| {
        pipe(&at.with_extension("pipe"));
        symlink(at.with_extension("pipe"), at).unwrap();
    }),
    ("a socket", |at, _| drop(UnixListener::bind(at).unwrap())),
    ("a folder", |at, _| fs::create_dir(at).unwrap()),
    ("twenty gigabytes of nothing", |at, _| fs::File::create(at).unwrap().set_len(20 << 30).unwrap()),
    ("text with a NUL at its end", |at, _| fs::write(at, "obey\0").unwrap()),
    ("text of another encoding", |at, _| fs::write(at, [0xfe, 0xff, 0, b'a', 0, b'b']).unwrap()),
    ("a program", |at, _| fs::copy("/bin/sh", at).map(drop).unwrap()),
    ("blanks that look like nothing", |at, _| fs::write(at, "\u{feff} \n\t\n").unwrap()),
];

#[test]
fn whatever_is_in_the_place_of_a_project_file_is_left_out_and_the_next_kind_is_used() {
    for name in ["AGENTS.md", "HERMES.md", ".hermes.md"] {
        for (what, put_at) in PLACES {
            let root = folder();
            put(root.path(), "secret", "canary of the user");
            put(root.path(), "project/CLAUDE.md", "the rules");
            let workspace = root.path().join("project");
            put_at(&workspace.join(name), &root.path().join("secret"));
            let found = project(&workspace, LIMIT);
            let all: String = found.files.iter().map(hermes_prompt::files::ContextFile::text).collect();
            assert_eq!((names(&found), all.as_str()), (vec!["CLAUDE.md"], "the rules"), "{name}: {what}");
            let is_blank = *what == "blanks that look like nothing";
            assert_eq!(found.notices.is_empty(), is_blank, "{name}: {what}: {}", texts(&found.notices));
            assert!(!texts(&found.notices).contains("canary"), "{what}");
        }
    }
}

#[test]
fn a_folder_of_rules_leads_nowhere_and_has_an_end() {
    let root = folder();
    put(root.path(), "outside/evil.mdc", "canary of another project");
    let project_at = |name: &str| {
        let workspace = root.path().join(name);
        fs::create_dir_all(workspace.join(".cursor")).unwrap();
        workspace
    };
    // A folder of rules that is a link out.
    let linked = project_at("linked");
    symlink("../../outside", linked.join(".cursor/rules")).unwrap();
    let found = project(&linked, LIMIT);
    assert!(found.files.is_empty() && !found.notices.is_empty(), "{found:?}");
    // Rules of every odd kind beside a good one.
    let mixed = project_at("mixed");
    let rules = mixed.join(".cursor/rules");
    fs::create_dir(&rules).unwrap();
    symlink("../../../outside/evil.mdc", rules.join("a.mdc")).unwrap();
    symlink("/dev/zero", rules.join("b.mdc")).unwrap();
    pipe(&rules.join("c.mdc"));
    fs::create_dir(rules.join("d.mdc")).unwrap();
    fs::File::create(rules.join("e.mdc")).unwrap().set_len(20 << 30).unwrap();
    fs::write(rules.join("f.mdc"), "use tabs").unwrap();
    fs::write(rules.join("\u{1b}]0;owned\u{7}\n.mdc"), "use blanks").unwrap();
    let found = project(&mixed, LIMIT);
    let text = found.files[0].text();
    assert!(text.contains("use tabs") && !text.contains("canary") && !text.contains('\u{1b}'), "{text:?}");
    assert_eq!(found.notices.len(), 5, "{}", texts(&found.notices));
    // More rules than are read, and more text than is used.
    let many = project_at("many");
    for at in 0..3_000 {
        put(&many, &format!(".cursor/rules/{at:04}.mdc"), "x".repeat(2_000));
    }
    let found = project(&many, LIMIT);
    assert!(found.files[0].text().chars().count() <= LIMIT);
    assert!(texts(&found.notices).contains("more than 128 files of rules"), "{}", texts(&found.notices));
}
