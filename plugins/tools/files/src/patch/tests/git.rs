//! Diffs that git writes with its various settings, applied: the files get exactly the bytes that git compared.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::*;

type Tree = BTreeMap<String, Vec<u8>>;
/// The content of a file, if there is one, before and after.
type Change = (Option<Vec<u8>>, Option<Vec<u8>>);

/// Names that git quotes, or that look like other parts of a diff.
const NAMES: [&str; 14] = [
    "plain.txt",
    "naïve.txt",
    "日本/語.md",
    "we\"ird",
    "a\\b",
    "tab\there",
    "line\nend",
    "my notes b.txt",
    "x b/y b/z",
    "a/b/a b/c",
    "w/i",
    "ends in a blank ",
    "-- ",
    "emoji 🦀 \u{7f}",
];

/// Contents of a file before and after: changes, and files that appear and vanish. The contents for one name differ from all
/// others, so that git sees only the intended renames.
fn contents(name: &str) -> Vec<Change> {
    let text = |text: &str| Some(text.replace('N', &name.replace(['\n', '\t'], "-")).into_bytes());
    vec![
        (text("N 1\nN 2\nN 3\nN 4\nN 5\n"), text("N 1\nN 2\nN changed\nN 4\nN 5\nN 6\n")),
        (text("N 1\r\nN 2\r\n"), text("N 1\r\nN changed\r\n")),
        (text("N 1\r\nN 2\nN 3\n"), text("N 1\nN 2\r\nN 3\n")),
        (text("N 1\nN 2"), text("N 1\nN changed")),
        (text("N 1\nN 2"), text("N 1\nN 2\n")),
        (text("N 1\nN 2\n"), text("N 1\nN 2")),
        (text("\u{feff}N 1\nN 2\n"), text("\u{feff}N 1\nN changed\n")),
        (
            text("N 1\n\u{c}\nN \u{2028} 2 \u{85}\n\n\nx\u{b}\n"),
            text("N 1\n\u{c}\n\u{c}N \u{2028} changed \u{85}\n\n\n\nx\u{b}\n"),
        ),
        (text("N 1\rN 2\rN 3\r"), text("N 1\rN changed\rN 3\r")),
        (text("N 1\rN 2\rN 3"), text("N 1\rN 2\rN changed")),
        (text("-- N\n++ N\n@@ N\n"), text("-- N\n++ changed\n@@ N\n")),
        (text("N 1\n\n \n\t\nN 2\n"), text("N 1\n\n\n \n\t\nN changed\n\n")),
        (None, text("N 1\n\n\nN 2\n   \n\nN 3\n")),
        (None, text("N 1\r\n\r\nN 2\r\n")),
        (None, text("\u{feff}N 1\n\nN 2")),
        (None, text("\n\nN\n\n\n")),
        (None, text("N 1\rN 2\r")),
        (None, text("")),
        (text("N 1\n\nN 2"), None),
        (text("N 1\r\n\r\n"), None),
        (text(""), None),
        (text("N 1\n"), text("")),
        (text(""), text("N 1\n\nN 2\n")),
    ]
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(folder)
        .args(["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "core.autocrlf=false"])
        .args(arguments)
        .envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")])
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A repository whose commit is one tree, and whose index and files are another.
struct Repository(tempfile::TempDir);

impl Repository {
    fn new(before: &Tree, after: &Tree) -> Self {
        let repository = Self(tempfile::tempdir().unwrap());
        let folder = repository.0.path();
        git(folder, &["init", "-q"]);
        let write = |tree: &Tree| {
            for (name, content) in tree {
                let path = folder.join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, content).unwrap();
            }
        };
        write(before);
        git(folder, &["add", "-A"]);
        git(folder, &["commit", "-q", "--allow-empty", "-m", "before"]);
        before.keys().for_each(|name| fs::remove_file(folder.join(name)).unwrap());
        write(after);
        git(folder, &["add", "-A"]);
        repository
    }

    fn diff(&self, settings: &[&str], arguments: &[&str]) -> String {
        git(self.0.path(), &[settings, &["diff", "--cached", "-M"], arguments].concat())
    }
}

/// The files after the patch.
fn applied(before: &Tree, after: &Tree, diff: &str) -> Result<Tree, Error> {
    let mut host = Host::new().root(ROOT, true);
    for (name, content) in before {
        host = host.file(ROOT, name, content.clone());
    }
    patched(diff)?;
    let names = before.keys().chain(after.keys());
    Ok(names.filter_map(|name| Some((name.clone(), host.file_content(ROOT, name)?))).collect())
}

const SETTINGS: [&[&str]; 5] = [
    &[],
    &["-c", "core.quotePath=false"],
    &["-c", "diff.mnemonicPrefix=true"],
    &["-c", "diff.noprefix=true"],
    &["-c", "diff.srcPrefix=before/", "-c", "diff.dstPrefix=after the change/"],
];

#[test]
fn every_diff_of_git_gives_the_bytes_that_git_compared() {
    for (number, settings) in SETTINGS.into_iter().enumerate() {
        // With each setting, each name has other contents.
        let (mut before, mut after) = (Tree::new(), Tree::new());
        for (at, name) in NAMES.into_iter().enumerate() {
            let contents = contents(name);
            let of = |folder: &str, at: usize| (format!("{folder}{name}"), contents[at % contents.len()].clone());
            for (name, (old, new)) in [of("", 5 * at + number), of("one/", 7 * at + 3 * number + 1)] {
                before.extend(old.map(|old| (name.clone(), old)));
                after.extend(new.map(|new| (name, new)));
            }
        }
        let repository = Repository::new(&before, &after);
        for (arguments, before, after) in
            [(&[][..], &before, &after), (&["-U0"], &before, &after), (&["-R"], &after, &before)]
        {
            let diff = repository.diff(settings, arguments);
            let tree = applied(before, after, &diff).unwrap_or_else(|error| panic!("{error}\n{diff}"));
            for (name, content) in after {
                let found = tree.get(name).map(|content| String::from_utf8_lossy(content));
                assert_eq!(
                    found,
                    Some(String::from_utf8_lossy(content)),
                    "{name:?} {settings:?} {arguments:?}\n{diff}"
                );
            }
            assert_eq!(tree.len(), after.len(), "{settings:?} {arguments:?}\n{diff}");
        }
    }
}

#[test]
fn every_content_survives_a_diff_of_git() {
    let tree = |old: bool| -> Tree {
        let content =
            |(at, (before, after)): (usize, Change)| Some((format!("f{at}"), if old { before } else { after }?));
        contents("f").into_iter().enumerate().filter_map(content).collect()
    };
    let (before, after) = (tree(true), tree(false));
    let repository = Repository::new(&before, &after);
    for (arguments, before, after) in
        [(&[][..], &before, &after), (&["-U0"], &before, &after), (&["-R"], &after, &before)]
    {
        let diff = repository.diff(&[], &[arguments, &["--no-renames"]].concat());
        assert_eq!(applied(before, after, &diff).unwrap(), *after, "{diff}");
    }
}

#[test]
fn renames_follow_the_names_of_git() {
    let long =
        |name: &str| (1..20).map(|line| format!("{} {line}\n", name.replace(['\n', '\t'], "-"))).collect::<String>();
    for settings in SETTINGS {
        let (mut before, mut after) = (Tree::new(), Tree::new());
        // Each name goes to the next; every other one also changes.
        for (at, name) in NAMES.into_iter().enumerate() {
            let to = format!("to/{}", NAMES[(at + 1) % NAMES.len()]);
            let changed = if at % 2 == 0 { long(name) } else { long(name).replacen(" 7\n", " seven\n\n", 1) };
            before.insert(name.to_owned(), long(name).into_bytes());
            after.insert(to, changed.into_bytes());
        }
        let repository = Repository::new(&before, &after);
        let diff = repository.diff(settings, &[]);
        assert_eq!(diff.matches("rename from ").count(), NAMES.len(), "{diff}");
        assert_eq!(applied(&before, &after, &diff).unwrap(), after, "{settings:?}\n{diff}");
    }
}

#[test]
fn a_copy_of_git_is_refused() {
    let text = (1..20).map(|line| format!("{line}\n")).collect::<String>();
    let before = Tree::from([("a".to_owned(), text.clone().into_bytes())]);
    let after = Tree::from([("a".to_owned(), format!("{text}x\n").into_bytes()), ("b".to_owned(), text.into_bytes())]);
    let diff = Repository::new(&before, &after).diff(&[], &["-C"]);
    let error = applied(&before, &after, &diff).unwrap_err().message;
    assert!(error.contains("copies a file"), "{error}\n{diff}");
}
