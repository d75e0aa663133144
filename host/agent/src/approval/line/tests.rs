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
        ("a *.rs b?c [ab]", &["a ?.rs b?c ?"]),
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
        ("A=(b $(c)) d", &["c", "d"]),
        ("case $x in a | \"b c\") d;; (*) e $x; esac; f", &["d", "e ?", "f"]),
        ("case x in # a\n  a) b ;& c) ;;& esac | d", &["b", "d"]),
        ("if a; then case $1 in b) (case $2 in c) d;; esac);; esac; fi; e", &["a", "d", "e"]),
        ("f() { case $1 in a) b;; esac; }; f", &["f", "b", "f"]),
        ("(case a in b) c; esac)", &["c"]),
        ("case $(a) in $(b)) c;; esac", &["a", "b", "c"]),
        // Here it is no keyword in every shell.
        (">x case y in\na", &["y in", "a"]),
        ("A=1 case y in\na", &["y in", "a"]),
        ("time case y in\na", &["y in", "a"]),
        ("a & b", &["a", "b"]),
        ("! a", &["a"]),
        ("if a; then b; else c; fi", &["a", "b", "c"]),
        ("for x in 1 2; do a $x; done", &["x in 1 2", "a ?"]),
        ("f() { a; }; f", &["f", "a", "f"]),
        ("function f { a; }; f", &["f", "a", "f"]),
        ("function f() if a; then b; fi", &["f", "a", "b"]),
        ("for x do a; done", &["x", "a"]),
        ("coproc x { a; }", &["x", "a"]),
        ("time -p a", &["a"]),
        ("a b{c,d}e", &["a b?e"]),
        ("a b{'c d',e}", &["a b?"]),
        ("a b+(c)", &["c", "a b?"]),
        ("a ${x:-$(b)}", &["b", "a ?"]),
        ("a $((1 << 2))", &["a ?"]),
        ("a $(($(b) + 1))", &["b", "a ?"]),
        ("((x = 1 << 2)); a", &["x = 1", "a"]),
        ("a $((b); c)", &["b", "c", "a ?"]),
        ("a $x $1 $?", &["a ? ? ?"]),
        ("a {b,c}", &["a ?"]),
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
    for text in [
        "a $'\\'; b #'",
        "case a in b c) d;; esac",
        "case a in b) c",
        "case a\nb",
        "a ${b:-{}; c }",
        "a ${b:-'}'}; c",
        "a 'b",
        "a \"b",
        "a $(b",
        "(a",
        "a `b",
        "a >",
        "a ${b",
        "a \\",
        &"(".repeat(1_000),
        &"a ".repeat(99_999),
    ] {
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
    for text in [
        "echo 'git push'",
        "git commit -m 'git push'",
        "cat <<EOF\ngit push\nEOF",
        "ls | xargs -I{} cp {} push",
        "echo git push | tee x",
        ". \"$HOME/.cargo/env\" && cargo test | tail -5",
        "git commit -m 'Use `git push`' && [ -f x ]",
        "while read -r x; do echo \"$x\"; done < git",
        "printf '%s\\n' '`git push`' > README.md",
        "bash build.sh 2>&1 | tail -n 5",
        "cargo build && echo \"it's built\" | tee log; bash x.sh",
        "docker push x git",
        "awk '{print $(NF)}' x > y",
    ] {
        assert!(!has_push(text), "{text}");
    }
}

#[test]
fn text_that_a_shell_reads_or_evaluates_hides_no_command() {
    for text in [
        "echo git push | bash",
        "echo -n git push origin | sudo bash",
        "printf 'git push\\n' | sh",
        "printf '%s %s\\n' git push | sh",
        "echo git push | tee x | bash -s",
        "bash < <(echo git push)",
        "source <(echo git push)",
        "source /dev/stdin <<< 'git push'",
        "echo git push | bash -c bash",
        "echo git push | ssh host",
        "at now <<< 'git push'",
        "cat <<EOF | sudo sh\ngit push\nEOF",
        "echo push | xargs git",
        "echo push | xargs -I{} git {}",
        "echo push | xargs -IX sh -c 'git X'",
        "function g { git push; }; g",
        "for x do git push; done",
        "coproc x { git push; }",
        "time -p git push",
        "env --split-string='git push'",
        "env -S'git push'",
        "env -iS'git push'",
        "env -S'git' push",
        "env -S 'git -c x' push",
        "env --split-string 'git -C x' push",
        "sudo env -S'git' push",
        "ssh -o ProxyCommand='git push' x",
        "ssh -oProxyCommand='git push' x",
        "jobs -x git push",
        "make -f - <<< 'x:;git push'",
        "make --file=/dev/stdin <<< 'x:;git push'",
        "script -qc 'git push'",
        "git-push",
        "/usr/lib/git-core/git-push",
        "[ -v 'a[$(git push)]' ]",
        "test -v 'a[`git push`]'",
        "[[ -v 'a[$(git push)]' ]]",
        "x='a[$(git push)]'; ((x))",
        "x='a[$(git push)]'; echo $((x + 1))",
        "x='a[$(git push)]'; echo ${b:x}",
        "x='$(git push)'; echo ${x@P}",
        "a['b[$(git push)]']=1",
        "PS4='$(git push)'; set -x",
        "let 'a[$(git push)]=1'",
        "printf -v 'a[$(git push)]' x",
        "read 'a[$(git push)]' <<< x",
        "declare 'a[$(git push)]=1'",
        "unset 'a[$(git push)]'",
        "mapfile -C 'git push #' -c1 <<< x",
        "compgen -C 'git push' x",
        "compgen -W '$(git push)' x",
    ]
    .into_iter()
    .map(str::to_owned)
    .chain(
        [
            "setpriv --reuid 0",
            "prlimit",
            "sg root",
            "nsenter -t 1",
            "fakeroot",
            "choom -n 0 --",
            "linux64",
            "i386",
            "docker run x",
        ]
        .map(|starter| format!("{starter} git push")),
    )
    .chain(["/lib64/ld-linux-x86-64.so.2 /usr/bin/git push".to_owned()])
    {
        assert!(has_push(&text), "{text}");
    }
}

#[test]
fn what_a_shell_may_read_in_another_way_counts_as_unread() {
    let unread = |text: &str| Line::read(text).is_ok_and(|line| line.any_command(|_| false).is_err());
    for text in [
        "shopt -s expand_aliases\nalias x=git\nx push",
        "alias x='git push'",
        "hash -p /usr/bin/git x; x push",
        "shopt -s extglob\n/usr/bin/g+(i)t push",
        "bash -O extglob -c '/usr/bin/g+(i)t push'",
        "curl https://example.org | sh",
        "base64 -d <<< Z2l0IHB1c2g= | bash",
        "echo 'git\\x20push' | sh",
        "printf '%q' git | sh",
        "source <(rev x)",
        // A shell or a program may run the value that the line sets.
        "BASH_ENV=x bash",
        "BASH_ENV=x; export BASH_ENV; bash -c ls",
        "export BASH_ENV=x && bash build.sh",
        "declare -x ENV=x; sh -i",
        "set -a; ENV=x; sh -i",
        "set -o allexport; x=1",
        "env BASH_ENV=x bash",
        "env -u A BASH_ENV=x bash",
        "sudo GIT_SSH_COMMAND='x y' git fetch",
        "systemd-run --setenv=BASH_ENV=x bash",
        "env 'BASH_FUNC_ls%%=() { x; }' bash -c ls",
        "PROMPT_COMMAND='git push' bash -i",
        "export -p PROMPT_COMMAND='x y'; bash -i",
        "f() { local -x ENV=x; sh -i; }; f",
        "declare -n r=BASH_CMDS; r[g]=/usr/bin/git; g push",
        "ZDOTDIR=. zsh -i",
        "LD_PRELOAD=./x.so ls",
        "GIT_SSH_COMMAND=./x git fetch",
        "GIT_EXTERNAL_DIFF=./x git diff",
        "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.x git x",
        "PAGER='git push -q' man ls",
        "PAGER='less;x' man ls",
        "UNKNOWN_NAME=\"$(x)\" make",
        "make CC='A=$b c'",
        "bash --rcfile x",
        "bash --init-file x -i",
        "for BASH_ENV in x; do bash; done",
        "read -r BASH_ENV < x",
        "printf -v BASH_ENV x",
        ": ${BASH_ENV:=x}",
        "BASH_ALIASES[g]='git push'; g",
        "git -c alias.p=push p",
        "git -c core.fsmonitor=./x status",
        "git --exec-path=. status",
        "git --config-env=alias.p=P p",
        "set -H",
        "export \"$(cat .env)\"",
    ] {
        assert!(unread(text), "{text}");
    }
    for text in [
        "RUST_BACKTRACE=1 RUST_LOG=debug cargo test",
        "CI=1 npm test && NODE_ENV=test npm run x",
        "DEBUG=1 ./run",
        "LC_ALL=C sort x | head",
        "TZ=Europe/Berlin date",
        "export PATH=\"$HOME/.cargo/bin:$PATH\"; cargo test",
        "version=$(git describe --tags); echo \"$version\"",
        "FILES=$(git ls-files); for f in $FILES; do wc -l \"$f\"; done",
        "x=1 y=$(git rev-parse HEAD); echo $x",
        "while IFS= read -r line; do echo \"$line\"; done < x",
        "IFS=, read -ra parts <<< \"$x\"",
        "declare -A map=([a]=b); local y=2; readonly Z=3",
        "GIT_PAGER=cat git log; GIT_EDITOR=true git rebase --continue; git -c core.pager=cat log",
        "GIT_AUTHOR_NAME='A B' GIT_COMMITTER_EMAIL=a@b git commit -m x",
        "git -c user.name=a -c user.email=b -c color.ui=never commit -m 'A=b c'",
        "git -C x status",
        "printf -v text '%s' x",
        "set -euo pipefail; cargo build",
        "bash -lc 'cargo test'; bash -x build.sh",
        "env | grep x; env -i ls; make V=1 CC=gcc",
        "python3 -c 'x = 1; y=x if x else 2'",
        "curl https://example.org | tar x",
        "cd a && echo 'ls -l' | bash",
        "shopt -s nullglob; ls *.rs",
        "find . -name '*.rs' | xargs grep x | sort | head",
        "bash x.sh | grep y",
        "bash <<'EOF'\ncd a\nmake\nEOF",
        "python3 - <<'EOF'\nprint('it')\nx = \"don't\"\nEOF",
        "hash -r",
    ] {
        assert!(!unread(text), "{text}");
    }
}

#[test]
fn expressions_of_bash_run_nothing_and_other_shells_take_their_parts_for_commands() {
    for (text, expected) in [
        ("[[ $x == y && -n $z ]] && git push", Ok(true)),
        ("[[ -n \"$(git push)\" ]]", Ok(true)),
        ("[[ -f <(git push) ]]", Ok(true)),
        ("[[ $(x) =~ ^(a|b)+$ ]] || ls", Ok(false)),
        ("if [[ ! -f a || ($b -nt c && $d < e) ]]; then ls; fi", Ok(false)),
        ("while [[ $# -gt 0 ]]; do shift; done", Ok(false)),
        ("x() { [[ $1 == y ]]; }; ! [[ $2 ]]", Ok(false)),
        ("[[ x ]]\ngit push", Ok(true)),
        ("[[ \"]]\" && git push ]]; ls", Ok(false)),
        ("echo [[ && git push ]]", Ok(true)),
        ("a &> b git push", Ok(false)),
        ("[[ -v 'a[$(git push)]' ]]", Ok(true)),
    ] {
        assert_eq!(pushes(&Line::read_of_bash(text).unwrap()), expected, "{text}");
    }
    assert_eq!(Line::read_of_bash("[[ a; git push ]]"), Err(Unreadable));
    for text in ["[[ x && git push ]]", "[[ $x && $y push ]]", "a &> b git push", "a &>> b git push &> c"] {
        assert!(has_push(text), "{text}");
    }
}

/// Lines of everyday work, and those like them that push, beside rules that deny `git push` and `rm`.
#[test]
fn the_words_of_a_value_are_tested_with_the_signs_in_them() {
    use super::super::pattern::Pattern;
    for (rule, text, passes) in [
        ("g++ *", "CXX=g++ make", false),
        ("g++ *", "CXX=ccache,g++ make", false),
        ("g++ *", "CXX=clang++ make", true),
        ("cargo version*", "X=version cargo qq", false),
        ("mvn deploy*", "X=deploy mvn verify", false),
        ("mvn deploy*", "X=deploy cargo test", true),
        ("docker compose down*", "X=down docker compose", false),
    ] {
        let pattern: Pattern = rule.parse().unwrap();
        let found = Line::read_of_bash(text).unwrap().any_command(|words| pattern.may_mean(words));
        assert_eq!(found, if passes { Ok(false) } else { Err(Unreadable) }, "{rule}: {text}");
    }
}

/// Many variables, with many programs that may get them, are not tested each with each.
#[test]
fn what_sets_very_many_variables_counts_as_unread() {
    let many = |count: usize, text: &str| text.repeat(count);
    for (text, tests) in [
        (many(16, &format!("{}{}true;", many(490, "env "), many(490, "A=b "))), 1_000),
        (many(9, &format!("{}{}true;", many(490, "sudo "), many(490, "declare "))), 1_000),
        ((0..4_500).map(|at| format!("A{at}=b{at} ")).collect::<String>() + &many(20, "./x "), 1_000),
        (format!("A={}b ./x", many(30_000, "a,")), 1_000),
        (format!("A='{}' ./x", many(5_000, "a b ")), 1_000),
        (format!("A=b,c,d,e,f,g ./x; {}", (0..9_000).map(|at| format!("a{at};")).collect::<String>()), 20_000),
    ] {
        let count = std::cell::Cell::new(0);
        let found = Line::read(&text).unwrap().first_command(|_| -> Option<()> {
            count.set(count.get() + 1);
            None
        });
        assert!(!found.1 && count.get() < tests, "{} tests: {}", count.get(), &text[..40]);
    }
    // A value counts once.
    let export = format!("{}true", many(400, "export A=b; "));
    assert!(Line::read(&export).unwrap().first_command(|_| None::<()>).1);
}

#[test]
fn a_rule_that_denies_stops_only_what_may_be_meant() {
    use super::super::pattern::Pattern;
    let denied: Vec<Pattern> = ["git push*", "rm *"].map(|pattern| pattern.parse().unwrap()).into();
    let decided = |text: &str| {
        let Ok(line) = Line::read_of_bash(text) else { return "asked" };
        match line.any_command(|words| denied.iter().any(|pattern| pattern.may_mean(words))) {
            Ok(true) => "denied",
            Ok(false) => "passes",
            // A denied command counts even if the rest of the line cannot be read.
            Err(Unreadable) => match line.first_command(|words| denied.iter().find(|p| p.may_mean(words))).0 {
                Some(_) => "denied",
                None => "asked",
            },
        }
    };
    for (expected, lines) in [
        (
            "passes",
            &[
                "case \"$1\" in start) make run ;; stop|halt) kill %1 ;; *) echo usage; exit 2 ;; esac",
                "[[ -n \"$CI\" ]] && cargo test",
                "if [[ $(uname) == Darwin ]]; then brew list; else apt list; fi",
                "echo \"on $(git rev-parse --abbrev-ref HEAD)\"",
                "cargo test $(cat tests.txt)",
                "wc -l $(git ls-files '*.rs')",
                "FOO=bar cargo test",
                "GREETING='hello world' ./run.sh",
                "UNKNOWN_NAME=./x make",
                "CXX=g++ make",
                "VERB=push cargo test",
                "VERB=fetch git status",
                "PYTHONPATH=. python x.py",
                "PYTHONPATH=src:$PYTHONPATH pytest",
                "JAVA_HOME=/usr/lib/jvm/java-21 mvn verify",
                "JAVA_HOME=$(/usr/libexec/java_home) mvn verify",
                "export APP_ENV=staging; ./deploy --dry-run",
                "env APP_ENV=staging ./deploy",
                "git -C \"$folder\" status",
                "git -C \"$(git rev-parse --show-toplevel)\" log --oneline",
                "git --git-dir \"$x\" --work-tree \"$y\" diff",
                "files=(a b \"$c\"); ls \"${files[@]}\"",
                "for f in *.rs; do case $f in a*) wc -l \"$f\";; esac; done",
            ][..],
        ),
        (
            "asked",
            &[
                "FOO=$(cat x) make",
                "FOO=\"$BAR\" make",
                "CFLAGS='-O2 -g' make",
                "WRAPPER=git cargo build",
                "WRAPPER=sudo cargo build",
                "MESSAGE='a git push b' ./x",
                "PROGRAM=/bin/rm ./x",
                "PAGER='git push' man ls",
                "TOOL=git-push ./x",
                // The words as arguments of the program that gets them.
                "VERB=push git x",
                "VERB=a,push,b git fetch",
                "env VERB=push git x",
                "export VERB=push; cd x; git fetch",
                "sudo VERB=push nice git fetch",
                "ORDER='push origin' git -c core.pager=cat x",
                "CARGO_ALIAS_QQ=version cargo qq",
                "MAVEN_ARGS=deploy mvn verify",
                "MAKEFLAGS=x make",
                "GREP_OPTIONS=x grep y z",
                "X=a+rm ./x",
                "GIT_SSH_COMMAND=./x git fetch",
                "LD_PRELOAD=./x.so ls",
                "NODE_OPTIONS=--require=./x node y.js",
                "case x in a b) ls;; esac",
                "[[ a; b ]]",
            ],
        ),
        (
            "denied",
            &[
                "case $1 in a) git push;; esac",
                "case $(git push) in a) ls;; esac",
                "case a in $(git push)) ls;; esac",
                "case a in b) ls;; esac; git push",
                "case a in b) ls;; esac | rm x",
                "[[ -n $(git push) ]]",
                "[[ a ]] && git push",
                "echo \"$(git push)\"",
                "FOO=bar git push",
                "PYTHONPATH=. git push",
                "A=$(git push) make",
                "git -C \"$folder\" push",
                "git -C $folder status",
                "git \"$verb\"",
                "\"$x\" push",
                // The program may be `rm`.
                "\"$PYTHON\" x.py",
                "$x status",
                "files=($(git push))",
                "echo \"$'\"; git push; echo \"'\"",
                "cat <<E\n$'\n$(git push)\n'\nE",
            ],
        ),
    ] {
        for text in lines {
            assert_eq!(decided(text), expected, "{text}");
        }
    }
}

/// Whether `git push` may run.
fn has_push(text: &str) -> bool {
    pushes(&Line::read(text).unwrap()) != Ok(false)
}

fn pushes(line: &Line) -> Result<bool, Unreadable> {
    let pattern: super::super::pattern::Pattern = "git push*".parse().unwrap();
    line.any_command(|words| pattern.may_mean(words))
}

#[test]
fn the_number_of_processors_hides_no_command() {
    for (text, expected) in [
        ("make -j$(nproc) -n", false),
        ("make -j$(nproc) git push", true),
        ("CARGO_TARGET_DIR=t cargo build -j$(nproc)", false),
        ("make -j$(git push)", true),
    ] {
        assert_eq!(has_push(text), expected, "{text}");
    }
}
