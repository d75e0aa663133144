#![allow(clippy::unwrap_used)]

use super::*;

/// The commands of a line; an unknown part of a word is `?`.
fn commands(text: &str) -> Vec<String> {
    let shown =
        |word: &Word| word.0.iter().map(|atom| if let Atom::Char(c) = atom { *c } else { '?' }).collect::<String>();
    let line = Line::read(text).unwrap();
    line.commands.iter().map(|words| words.iter().map(shown).collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn plain_lines_are_split_into_commands_of_words() {
    for (text, expected) in [
        ("git status", &["git status"][..]),
        ("a && b||c;d|e\nf", &["a", "b", "c", "d", "e", "f"]),
        ("(a; (b c)) | d", &["a", "b c", "d"]),
        ("a 'b c'\"d e\"\\ f", &["a b cd e f"]),
        ("a \"\\$x \\\"y\\\" \\n\"", &["a $x \"y\" \\n"]),
        ("a b\\\nc \\\n d", &["a bc d"]),
        ("a 2>&1 >/dev/null 2> /dev/null </dev/null b", &["a b"]),
        ("a # b; c\nd", &["a", "d"]),
        ("a#b", &["a#b"]),
        ("a *.rs b?c [ab]", &["a ?.rs b?c ?ab]"]),
        ("[ -f x ]", &["[ -f x ]"]),
        ("find . -exec wc {} \\;", &["find . -exec wc {} ;"]),
        ("a $ 'b'", &["a $ b"]),
        ("a HEAD@{1}", &["a HEAD@{1}"]),
    ] {
        assert_eq!(commands(text), expected, "{text}");
        assert!(Line::read(text).unwrap().is_plain, "{text}");
    }
}

#[test]
fn every_other_construct_is_not_plain_and_its_commands_are_found() {
    for (text, expected) in [
        ("a $(b c) d", &["b c", "a ? d"][..]),
        ("a \"x `b` y\"", &["b", "a x ? y"]),
        ("a \"$(b \"$(c)\")\"", &["c", "b ?", "a ?"]),
        ("a <(b) > >(c)", &["b", "c", "a ?"]),
        ("a > file", &["a"]),
        ("a >| file", &["a"]),
        ("a < file", &["a"]),
        ("a &> file", &["a"]),
        ("a >& file", &["a"]),
        ("A=1 b", &["b"]),
        ("A+=1 B[0]=2 c", &["c"]),
        ("A=(b c) d", &["b c", "d"]),
        ("a & b", &["a", "b"]),
        ("! a", &["a"]),
        ("if a; then b; else c; fi", &["a", "b", "c"]),
        ("for x in 1 2; do a $x; done", &["x in 1 2", "a ?"]),
        ("f() { a; }; f", &["f", "a", "f"]),
        ("a ${x:-$(b)}", &["b", "a ?"]),
        ("a $((1 << 2))", &["a ?"]),
        ("a $(($(b) + 1))", &["b", "a ?"]),
        ("((x = 1 << 2)); a", &["x = 1", "a"]),
        ("a $((b); c)", &["b", "c", "a ?"]),
        ("a $x $1 $?", &["a ? ? ?"]),
        ("a {b,c}", &["a ?b,c}"]),
        ("a $'b'", &["a ?"]),
        ("a\r", &["a\r"]),
    ] {
        assert_eq!(commands(text), expected, "{text}");
        assert!(!Line::read(text).unwrap().is_plain, "{text}");
    }
    assert!(!Line::read("# nothing").unwrap().is_plain);
}

#[test]
fn what_cannot_be_read_is_an_error() {
    for text in
        ["a 'b", "a \"b", "a $(b", "(a", "a `b", "a >", "a ${b", "a \\", &"(".repeat(1_000), &"a ".repeat(99_999)]
    {
        assert_eq!(Line::read(text), Err(Unreadable), "{}", text.chars().take(40).collect::<String>());
    }
}

#[test]
fn commands_that_others_start_are_found() {
    for text in [
        "sudo -u x git push",
        "env A=1 git push",
        "sh -c 'git push'",
        "bash -lc \"cd x && git push\"",
        "xargs git push < x",
        "find . -exec git push {} +",
        "timeout 5 nice -n 3 git push",
        "eval git push",
        "eval 'git push'",
        "sh -c 'sh -c \"git push\"'",
        "echo 'git push' | sh",
        "bash <<< 'git push'",
        "bash <<EOF\ngit push\nEOF",
        "cat <<'EOF' | bash -s\ngit push\nEOF",
        "git submodule foreach 'git push'",
        "git rebase -x 'git push' main",
        "command git push",
        "time git push",
        "/usr/bin/env git push",
    ] {
        assert!(has_push(text), "{text}");
    }
    for text in ["echo 'git push'", "git commit -m 'git push'", "cat <<EOF\ngit push\nEOF"] {
        assert!(!has_push(text), "{text}");
    }
}

/// Whether `git push` may run.
fn has_push(text: &str) -> bool {
    let is = |words: &[Word], at: usize, name: &str| words.get(at).and_then(Word::exact).as_deref() == Some(name);
    Line::read(text).unwrap().any_command(|words| is(words, 0, "git") && is(words, 1, "push")).unwrap()
}
