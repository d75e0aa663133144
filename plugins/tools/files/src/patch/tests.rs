//! Calls of `patch` against files in memory.

#![allow(clippy::unwrap_used)]

mod git;

use hermes_plugin::testing::Host;
use proptest::prelude::*;

use super::*;
use crate::ROOT;

fn call(arguments: Value) -> Result<String, Error> {
    run(&serde_json::from_value(arguments).unwrap())
}

fn patched(patch: &str) -> Result<String, Error> {
    call(json!({ "mode": "patch", "patch": patch }))
}

fn content(host: &Host, path: &str) -> Option<String> {
    host.file_content(ROOT, path).map(|bytes| String::from_utf8(bytes).unwrap())
}

#[test]
fn a_replacement_is_shown_with_line_numbers() {
    let host = Host::new().file(ROOT, "a.rs", "fn a() {\n    one();\n}\n");
    let answer = call(json!({ "path": "a.rs", "old_string": "one()", "new_string": "two()" })).unwrap();
    assert_eq!(answer, "patched a.rs (+1 -1)\n 1|fn a() {\n-2|    one();\n+2|    two();\n 3|}");
    assert_eq!(content(&host, "a.rs").unwrap(), "fn a() {\n    two();\n}\n");
    for (arguments, why) in [
        (json!({}), "path is missing"),
        (json!({ "path": "a.rs", "new_string": "" }), "old_string is missing"),
        (json!({ "path": "a.rs", "old_string": "", "new_string": "x" }), "write_file creates"),
        (json!({ "mode": "patch" }), "patch is missing"),
        (json!({ "path": "b.rs", "old_string": "a", "new_string": "b" }), "b.rs does not exist"),
    ] {
        let error = call(arguments).unwrap_err().message;
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn a_patch_changes_several_files() {
    let host = Host::new()
        .file(ROOT, "a.txt", "one\r\ntwo\r\nthree")
        .file(ROOT, "old/b.txt", "b\n")
        .file(ROOT, "c.txt", "c\nc\n");
    let answer = patched(
        "*** Begin Patch\n*** Update File: a.txt\n@@ one\n-two\n+2\n+2b\n three\n+four\n*** Update File: old/b.txt\n\
         *** Move to: new/b.txt\n-b\n+B\n*** Delete File: c.txt\n*** Add File: d/e.txt\n+d\n+\n*** End Patch",
    )
    .unwrap();
    assert_eq!(
        answer,
        "patched a.txt (+4 -2)\n 1|one\n-2|two\n-3|three\n+2|2\n+3|2b\n+4|three\n+5|four\n\
         moved old/b.txt to new/b.txt (+1 -1)\n-1|b\n+1|B\ncreated d/e.txt (+2)\ndeleted c.txt (-2)"
    );
    assert_eq!(content(&host, "a.txt").unwrap(), "one\r\n2\r\n2b\r\nthree\r\nfour");
    assert_eq!(content(&host, "new/b.txt").unwrap(), "B\n");
    assert_eq!(content(&host, "d/e.txt").unwrap(), "d\n\n");
    assert_eq!((content(&host, "c.txt"), content(&host, "old/b.txt")), (None, None));
}

#[test]
fn later_parts_of_a_patch_see_earlier_ones() {
    let host = Host::new().file(ROOT, "a", "1\n2\n").file(ROOT, "b", "b\n");
    patched("*** Update File: a\n-1\n+x\n*** Update File: a\n-x\n+y\n*** Delete File: b\n*** Add File: b\n+new")
        .unwrap();
    assert_eq!(content(&host, "a").unwrap(), "y\n2\n");
    assert_eq!(content(&host, "b").unwrap(), "new\n");
    assert!(
        patched("*** Delete File: a\n*** Update File: a\n-y\n+z").unwrap_err().message.contains("after it deleted")
    );
    assert!(patched("*** Add File: a\n+z").unwrap_err().message.contains("exists already"));
    assert!(patched("*** Update File: a\n-y\n+y").unwrap_err().message.contains("nothing was changed"));
}

#[test]
fn ambiguous_hunks_are_refused_and_a_scope_or_number_decides() {
    let text = "fn a\n x\nfn b\n x\n";
    let host = Host::new().file(ROOT, "a", text);
    let error = patched("*** Update File: a\n- x\n+ y").unwrap_err().message;
    assert!(error.contains("matches 2 places of a, at lines 2 and 4"), "{error}");
    patched("*** Update File: a\n@@ fn b\n- x\n+ y").unwrap();
    assert_eq!(content(&host, "a").unwrap(), "fn a\n x\nfn b\n y\n");
    let host = host.file(ROOT, "a", text);
    patched("--- a/a\n+++ b/a\n@@ -4 +4 @@\n- x\n+ y\n").unwrap();
    assert_eq!(content(&host, "a").unwrap(), "fn a\n x\nfn b\n y\n");
    let answer = patched("--- a/a\n+++ b/a\n@@ -9 +9 @@\n-fn a\n+fn c\n").unwrap();
    assert!(answer.contains("assumed: the hunk belongs at line 1, not at line 9"), "{answer}");
}

#[test]
fn hunks_without_old_lines_go_to_their_scope_or_the_end() {
    let host = Host::new().file(ROOT, "a", "one\ntwo");
    patched("*** Update File: a\n@@ one\n+1b").unwrap();
    let answer = patched("*** Update File: a\n@@\n+three").unwrap();
    assert!(answer.contains("at the end of the file"), "{answer}");
    assert_eq!(content(&host, "a").unwrap(), "one\n1b\ntwo\nthree");
    patched("--- a\n+++ a\n@@ -0,0 +1 @@\n+zero\n").unwrap();
    assert_eq!(content(&host, "a").unwrap(), "zero\none\n1b\ntwo\nthree");
    let error = patched("--- a\n+++ a\n@@ -9,0 +10 @@\n+x\n").unwrap_err().message;
    assert!(error.contains("after line 9 of a, which has 5 lines"), "{error}");
}

#[test]
fn hunks_out_of_order_are_refused() {
    let _host = Host::new().file(ROOT, "a", "1\n2\n3\n");
    let error = patched("*** Update File: a\n@@\n-3\n+c\n@@\n-1\n+a").unwrap_err().message;
    assert!(error.contains("hunk 2 is found in a only at line 1") && error.contains("order of the file"), "{error}");
}

#[test]
fn the_line_ends_of_the_last_line_follow_a_unified_diff() {
    let bare = "\\ No newline at end of file\n";
    for (before, patch, after) in [
        ("a", format!("@@ -1 +1 @@\n-a\n{bare}+b\n"), "b\n"),
        ("a\n", format!("@@ -1 +1 @@\n-a\n+b\n{bare}"), "b"),
        ("a", format!("@@ -1 +1 @@\n-a\n{bare}+b\n{bare}"), "b"),
        // The patch does not know how the file ends.
        ("a", "@@ -1 +1 @@\n-a\n+b\n".to_owned(), "b"),
        ("a", "@@ -1 +1,2 @@\n a\n+b\n".to_owned(), "a\nb"),
    ] {
        let host = Host::new().file(ROOT, "f", before);
        patched(&format!("--- f\n+++ f\n{patch}")).unwrap();
        assert_eq!(content(&host, "f").unwrap(), after, "{patch}");
    }
}

#[test]
fn if_a_write_fails_the_files_before_are_restored() {
    let host = Host::new().file(ROOT, "a", "1\n").file(ROOT, "b", "b\n");
    let mut plan = Plan::default();
    for change in parse::parse(
        "*** Update File: a\n-1\n+2\n*** Add File: n\n+n\n*** Move File: b -> c\n*** Add File: late\n+x\n*** Update File: z\n-z\n+y",
    )
    .unwrap()
    .into_iter()
    .take(4)
    {
        plan.change(&change).unwrap();
    }
    // Another program changes the file between the check and the write.
    let host = host.file(ROOT, "z", "z\n");
    for change in parse::parse("*** Update File: z\n-z\n+y").unwrap() {
        plan.change(&change).unwrap();
    }
    let host = host.file(ROOT, "z", "changed\n");
    let error = plan.carry_out().unwrap_err().message;
    assert!(error.starts_with("z: z is at another version") && error.contains("were restored"), "{error}");
    let all: Vec<_> = ["a", "b", "c", "n", "late", "z"].map(|path| content(&host, path)).into();
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(all, [text("1\n"), text("b\n"), None, None, None, text("changed\n")]);
}

#[test]
fn a_diff_deletes_a_file_only_if_it_removes_all_its_lines() {
    let host = Host::new().file(ROOT, "exe.sh", "#!/bin/sh\necho 1\n");
    let delete = |rows: &str| patched(&format!("--- exe.sh\n+++ /dev/null\n@@ -1,2 +0,0 @@\n{rows}"));
    let error = delete("-#!/bin/sh\n-echo 99\n").unwrap_err();
    assert_eq!(error.code, "not-found", "{error}");
    let error = delete("-#!/bin/sh\n").unwrap_err().message;
    assert!(error.contains("would leave 1 line of it"), "{error}");
    assert_eq!(content(&host, "exe.sh").unwrap(), "#!/bin/sh\necho 1\n");
    assert_eq!(delete("-#!/bin/sh\n-echo 1\n").unwrap(), "deleted exe.sh (-2)");
    assert_eq!(content(&host, "exe.sh"), None);
}

#[test]
fn a_patch_that_was_cut_off_changes_nothing() {
    let host = Host::new().file(ROOT, "nonl.txt", "x");
    let patch = "*** Begin Patch\n*** Update File: nonl.txt\n@@\n-x\n";
    assert!(patched(patch).unwrap_err().message.contains("no `*** End Patch`"));
    assert_eq!(content(&host, "nonl.txt").unwrap(), "x");
    patched(&format!("{patch}*** End Patch")).unwrap();
    assert_eq!(content(&host, "nonl.txt").unwrap(), "");
}

#[test]
fn the_answer_names_modes_that_are_not_set() {
    let _host = Host::new().file(ROOT, "a.sh", "a\n");
    let new = "diff --git a/n.sh b/n.sh\nnew file mode 100755\n--- /dev/null\n+++ b/n.sh\n@@ -0,0 +1 @@\n+n\n";
    let answer = patched(new).unwrap();
    assert_eq!(
        answer,
        "created n.sh (+1)\n[the mode 100755 of n.sh was not set, because patch changes only text: set it with chmod]"
    );
    let error = patched("diff --git a/a.sh b/a.sh\nold mode 100644\nnew mode 100755\n").unwrap_err().message;
    assert!(error.contains("only the modes of files") && error.contains("chmod"), "{error}");
}

/// Few different lines, so that many places look alike.
fn file() -> impl Strategy<Value = String> {
    (prop::collection::vec("[ab]{0,1}|[ -]{1,2}|fn x|\\}|\\+\\+ b|-- a|@@", 0..12), any::<bool>()).prop_map(
        |(lines, bare)| {
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            if bare { text.trim_end_matches('\n').to_owned() } else { text }
        },
    )
}

proptest! {
    #[test]
    fn a_unified_diff_of_two_texts_gives_the_second(before in file(), after in file(), context in 0_usize..4, crlf: bool) {
        prop_assume!(before != after && !before.is_empty() && !after.is_empty());
        let diff = diffy::DiffOptions::new().set_context_len(context).create_patch(&before, &after).to_string();
        let diff = diff.replacen("--- original", "--- f", 1).replacen("+++ modified", "+++ f", 1);
        let ends = |text: &str| if crlf { text.replace('\n', "\r\n") } else { text.to_owned() };
        let host = Host::new().file(ROOT, "f", ends(&before));
        let answer = patched(&diff);
        prop_assert!(answer.is_ok(), "{diff}\n{answer:?}");
        // A file with CR LF and a single line has no line end to go by.
        let expected = if before.contains('\n') { ends(&after) } else { after };
        prop_assert_eq!(content(&host, "f").unwrap(), expected, "{}", diff);
    }

    #[test]
    fn a_v4a_patch_of_two_texts_gives_the_second_or_is_refused_and_changes_nothing(before in file(), after in file()) {
        prop_assume!(before != after && !before.is_empty() && before.ends_with('\n') == after.ends_with('\n'));
        let diff = diffy::create_patch(&before, &after).to_string();
        let rows: Vec<&str> = diff.lines().skip(2).filter(|line| !line.starts_with('\\')).collect();
        let rows = rows.iter().map(|row| match *row {
            // The library leaves out the space of an empty line.
            "" => " ",
            row if row.starts_with("@@") => "@@",
            row => row,
        });
        let patch = format!("*** Begin Patch\n*** Update File: f\n{}\n*** End Patch", rows.collect::<Vec<_>>().join("\n"));
        let host = Host::new().file(ROOT, "f", before.as_str());
        match patched(&patch) {
            Ok(_) => prop_assert_eq!(content(&host, "f").unwrap(), after),
            Err(error) => {
                prop_assert_eq!(error.code, "ambiguous");
                prop_assert_eq!(content(&host, "f").unwrap(), before);
            }
        }
    }

    #[test]
    fn a_refused_patch_changes_no_byte(before in file(), patch in "(@@|[ +-][ab]{0,1}|\\*\\*\\* Update File: [fg]|\n){0,12}") {
        let host = Host::new().file(ROOT, "f", before.as_str());
        if patched(&format!("*** Update File: f\n{patch}\n*** Update File: missing\n-x\n+y")).is_err() {
            prop_assert_eq!(content(&host, "f").unwrap(), before);
        } else {
            prop_assert!(false, "a missing file was changed");
        }
    }
}
