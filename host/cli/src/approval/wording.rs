//! What a question says, and the words of its answers.

use hermes_protocol::{Decision, FileChange, FileDeed, ProgramRun, Question, SERVER_VERSION, SamplingRequest, Subject};

use super::foreign::{Extent, bounded, line_of_file, text_or_binary, visible, word};
use crate::text::{counted, grouped, shortened};

/// The possible answers, shown when a key counts.
pub(super) const KEYS: &str = "[o]nce  [s]ession  [a]lways  [n]o, but …  [d]eny (enter)? ";
/// The same, if a pattern of commands can be allowed.
pub(super) const KEYS_WITH_PATTERN: &str = "[o]nce  [s]ession  [a]lways  [p]attern  [n]o, but …  [d]eny (enter)? ";
/// Asks what the model should do instead.
pub(super) const INSTEAD: &str = "no, do this instead: ";
/// The answer after that.
pub(super) const INSTEAD_SENT: &str = "denied, and the model reads your answer";
/// The possible answers while a part is hidden.
pub(super) const KEYS_TO_VIEW: &str = "[v]iew all of it to allow it  [d]eny (enter)? ";
/// The answer to a yes that came too early.
pub(super) const VIEW_FIRST: &str = "view all of it first, with the key v";

/// The possible answers while the terminal is too small to show the text page by page.
pub(super) const KEYS_TOO_SMALL: &str = "the terminal is too small to show all of it: enlarge it, or [d]eny (enter)? ";
/// Why a question is shown a second time.
pub(super) const RESIZED: &str = "the size of the terminal changed, so the question is shown again";

/// The prompt below a page that others follow.
pub(super) fn page(number: usize, count: usize) -> String {
    format!("page {number} of {count}: [space] next page  [d]eny? ")
}

/// The answer to a yes that came too early, with the keys, on a terminal that is drawn.
pub(super) const KEYS_VIEW_FIRST: &str = "first view all of it: [v] next page  [d]eny (enter)? ";

/// The lines of the question, without control characters.
pub(super) fn lines(question: &Question, extent: Extent) -> Vec<String> {
    let bounded = |text: &str, show: fn(&str) -> String| bounded(text, show, extent);
    let plugin = match question.version.as_str() {
        "" => format!("`{}`", visible(&question.plugin)),
        SERVER_VERSION => format!("the MCP server `{}`", visible(&question.plugin)),
        version => format!("plugin `{}` {}", visible(&question.plugin), visible(version)),
    };
    let (title, fields, scope) = match &question.subject {
        Subject::Program(run) => (
            match run.background {
                false => format!("approval: {plugin} wants to run a program"),
                true => {
                    format!("approval: {plugin} wants to start a program in the background, until the session ends")
                }
            },
            program(run, extent),
            {
                let program = bounded(&run.program, word);
                let variables = if run.variables.is_empty() { "without variables" } else { "with these variables" };
                let until = if run.pinned { ", until the file changes" } else { "" };
                match run.exact {
                    true => {
                        format!("exactly this command of {program} in this folder, by this plugin, {variables}{until}")
                    }
                    false => {
                        format!(
                            "every run of {program} by this plugin, with any arguments and input, {variables}{until}"
                        )
                    }
                }
            },
        ),
        Subject::File(change) => (
            format!("approval: {plugin} wants to {} a file", deed(&change.deed)),
            file(change, extent),
            match change.is_ordinary {
                true => "every ordinary change of a file in the workspace by this plugin".to_owned(),
                false => "every change of this file by this plugin".to_owned(),
            },
        ),
        Subject::Sampling(request) => {
            let SamplingRequest { text, max_tokens, budget, used, rule } = request.as_ref();
            let [reply, budget, used] = [u64::from(*max_tokens), *budget, *used].map(grouped);
            let mut fields = vec![
                ("asks", bounded(text, visible)),
                ("tokens", format!("at most {reply} for the reply; {used} of {budget} for this session are used")),
            ];
            fields.extend(rule.iter().map(|rule| ("because", visible(rule))));
            (
                format!("approval: {plugin} wants to ask a model of yours"),
                fields,
                "every further request of this server, within its tokens".to_owned(),
            )
        }
        Subject::Tool { name, arguments, sentence, dangerous, objections, rule } => {
            let mut fields = vec![("tool", visible(name))];
            // The arguments stay: a sentence of the plugin can say anything.
            fields.extend(sentence.iter().map(|sentence| ("it says", visible(sentence))));
            fields.push(("arguments", bounded(arguments, visible)));
            if *dangerous {
                let why = match question.version.as_str() {
                    SERVER_VERSION => "Hermes cannot know what a tool of a server does",
                    _ => "the plugin marks it as dangerous: it cannot be undone",
                };
                fields.push(("because", why.to_owned()));
            }
            fields.extend(rule.iter().map(|rule| ("because", visible(rule))));
            for objection in objections {
                let why = bounded(&objection.why, visible);
                fields.push(("because", format!("the hook `{}` asks: {why}", visible(&objection.plugin))));
            }
            let reason = if objections.is_empty() { "" } else { ", for the same reason" };
            let scope = format!("every call of this tool, with any arguments{reason}");
            (format!("approval: the model wants to call a tool of {plugin}"), fields, scope)
        }
    };
    let width = fields.iter().map(|(label, _)| label.len()).max().unwrap_or_default();
    let fields = fields.into_iter().map(|(label, text)| format!("  {label:width$}  {text}"));
    // Two of the answers allow more than the action that is shown.
    let mut lines: Vec<String> = std::iter::once(title).chain(fields).collect();
    lines.extend(changed(question, extent));
    lines.push(format!("  session and always allow {scope}"));
    let pattern = pattern(question).map(visible);
    lines.extend(pattern.map(|pattern| {
        format!("  pattern always allows {pattern}, with any further arguments in place of the last *")
    }));
    lines
}

/// The pattern of commands that an answer allows.
pub(super) fn pattern(question: &Question) -> Option<&str> {
    if let Subject::Program(run) = &question.subject { run.pattern.as_deref() } else { None }
}

/// The changed lines of a file.
fn changed(question: &Question, extent: Extent) -> Vec<String> {
    /// Most lines of the brief form.
    const MOST: usize = 40;
    let Subject::File(change) = &question.subject else { return Vec::new() };
    let Some(lines) = &change.lines else { return Vec::new() };
    let most = if extent == Extent::Brief { MOST } else { usize::MAX };
    let shown = lines.iter().take(most).map(|line| {
        let (sign, text) = line.split_at_checked(1).unwrap_or_default();
        format!("    {sign} {}", bounded(text, line_of_file, extent))
    });
    let left_out = lines.len().saturating_sub(most);
    let rest = (left_out > 0).then(|| format!("    [{} not shown]", counted(left_out as u64, "more line")));
    shown.chain(rest).collect()
}

/// What the question is about, on one line.
pub(super) fn subject(question: &Question) -> String {
    /// Most characters of a command or a path.
    const MOST: usize = 100;
    let plugin = visible(&question.plugin);
    let subject = match &question.subject {
        Subject::Program(run) if run.background => format!("start {}", command(run, Extent::Brief)),
        Subject::Program(run) => format!("run {}", command(run, Extent::Brief)),
        Subject::File(change) => format!("{} {}", deed(&change.deed), word(&change.path)),
        Subject::Tool { name, .. } => format!("call {} of {plugin}", visible(name)),
        Subject::Sampling(request) => format!("ask a model for {plugin}: {}", visible(&request.text)),
    };
    shortened(&subject, MOST)
}

fn deed(deed: &FileDeed) -> &'static str {
    match deed {
        FileDeed::Create { .. } => "create",
        FileDeed::Replace { .. } => "replace",
        FileDeed::Rename { .. } => "move",
        FileDeed::Remove => "remove",
    }
}

fn file(change: &FileChange, extent: Extent) -> Vec<(&'static str, String)> {
    let mut fields = vec![("file", word(&change.path))];
    let content = |bytes: u64, content: &Option<String>, binary: &Option<String>| {
        format!("{}: {}", counted(bytes, "byte"), text_or_binary(content.as_deref(), binary.as_deref(), extent))
    };
    match &change.deed {
        FileDeed::Create { .. } | FileDeed::Replace { .. } if change.lines.is_some() => {}
        FileDeed::Create { bytes, content: text, binary } => fields.push(("content", content(*bytes, text, binary))),
        FileDeed::Replace { before, bytes, content: text, binary } => {
            fields.push(("before", counted(*before, "byte")));
            fields.push(("content", content(*bytes, text, binary)));
        }
        FileDeed::Rename { to, bytes, content: text, binary } => {
            fields.push(("to", word(to)));
            fields.extend(bytes.map(|bytes| ("content", content(bytes, text, binary))));
        }
        FileDeed::Remove => {}
    }
    fields.extend(change.because.iter().map(|why| ("because", visible(why))));
    fields
}

fn program(run: &ProgramRun, extent: Extent) -> Vec<(&'static str, String)> {
    let bounded = |text: &str, show: fn(&str) -> String| bounded(text, show, extent);
    let path = |path: &str| word(path);
    let mut program = path(&run.path);
    if run.real != run.path {
        program.push_str(&format!(", a link to {}", path(&run.real)));
    }
    let mut fields = vec![("command", command(run, extent)), ("program", program), ("folder", path(&run.folder))];
    if !run.variables.is_empty() {
        let set = |(name, value): &(String, String)| format!("{}={}", word(name), bounded(value, word));
        fields.push(("sets", run.variables.iter().map(set).collect::<Vec<_>>().join(" ")));
    }
    if !run.inherited.is_empty() {
        let names = run.inherited.iter().map(|name| word(name)).collect::<Vec<_>>().join(", ");
        fields.push(("gets", format!("your variables {names}")));
    }
    fields.extend(run.unconfined.iter().map(|why| ("sandbox", format!("none: {}", visible(why)))));
    fields.extend(run.rule.iter().map(|rule| ("because", visible(rule))));
    if run.network {
        fields.push(("network", "on".to_owned()));
    }
    if run.input_bytes > 0 {
        let size = counted(run.input_bytes as u64, "byte");
        let text = text_or_binary(run.input.as_deref(), run.binary_input.as_deref(), extent);
        fields.push(("input", format!("{size}: {text}")));
    }
    fields
}

/// The program and its arguments, each clearly separated from the others.
fn command(run: &ProgramRun, extent: Extent) -> String {
    let mut line = bounded(&run.program, word, extent);
    for (at, argument) in run.arguments.iter().enumerate() {
        if line.chars().count() > extent.most_of_a_line() {
            let rest = &run.arguments[at..];
            let characters: usize = rest.iter().map(|argument| argument.chars().count()).sum();
            let (arguments, characters) =
                (counted(rest.len() as u64, "more argument"), counted(characters as u64, "character"));
            line.push_str(&format!(" [and {arguments} with {characters}]"));
            break;
        }
        line.push(' ');
        line.push_str(&bounded(argument, word, extent));
    }
    line
}

/// The answer in words.
pub(super) fn decided(decision: Decision) -> &'static str {
    match decision {
        Decision::Once => "allowed once",
        Decision::Session => "allowed for this session",
        Decision::Always => {
            "always allowed until the plugin changes; `hermes plugins approvals` lists and forgets approvals"
        }
        Decision::Pattern => {
            "always allowed for commands of this pattern; `hermes plugins approvals` lists and forgets approvals"
        }
        Decision::Deny => "denied",
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {

    use hermes_protocol::Objection;

    use super::*;
    use crate::approval::rows::wrapped;

    fn run(program: &str, arguments: &[&str], input: &[u8]) -> Question {
        let run = ProgramRun {
            program: program.to_owned(),
            path: format!("/usr/bin/{program}"),
            real: format!("/usr/bin/{program}"),
            arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
            folder: "/w".to_owned(),
            input_bytes: input.len(),
            input: String::from_utf8(input.to_vec()).ok(),
            binary_input: std::str::from_utf8(input).is_err().then(|| input.escape_ascii().to_string()),
            variables: Vec::new(),
            inherited: Vec::new(),
            pinned: false,
            background: false,
            exact: false,
            unconfined: None,
            network: false,
            pattern: None,
            rule: None,
        };
        let subject = Subject::Program(Box::new(run));
        Question { plugin: "runner".to_owned(), version: "0.1.0".to_owned(), subject }
    }

    fn lines(question: &Question) -> Vec<String> {
        super::lines(question, Extent::Brief)
    }

    #[test]
    fn a_command_is_shown_word_by_word() {
        let arguments = ["push", "--force", "a b", "", "x\ny", "$(rm)", "say \"hi\\\"", "it's", "ünï"];
        assert_eq!(
            lines(&run("git", &arguments, b"")),
            [
                "approval: plugin `runner` 0.1.0 wants to run a program",
                r#"  command  git push --force "a b" "" "x\ny" "$(rm)" "say \"hi\\\"" "it's" "ünï""#,
                "  program  /usr/bin/git",
                "  folder   /w",
                "  session and always allow every run of git by this plugin, with any arguments and input, without variables",
            ]
        );
    }

    #[test]
    fn the_answers_of_a_shell_are_for_the_command_that_is_shown() {
        let mut question = run("bash", &["-c", "cargo test"], b"");
        let Subject::Program(run) = &mut question.subject else { panic!("a program") };
        run.exact = true;
        let shown = lines(&question);
        assert_eq!(shown[1], r#"  command  bash -c "cargo test""#);
        let scope = "exactly this command of bash in this folder, by this plugin, without variables";
        assert_eq!(shown.last().map(String::as_str), Some(format!("  session and always allow {scope}").as_str()));
    }

    #[test]
    fn the_target_of_a_link_and_piped_input_are_shown() {
        let mut question = run("ls", &[], b"rm -rf ~\n");
        let Subject::Program(run) = &mut question.subject else { panic!("a program") };
        run.real = "/bin/sh with blanks".into();
        let shown = lines(&question);
        assert_eq!(shown[2], "  program  /usr/bin/ls, a link to \"/bin/sh with blanks\"");
        assert_eq!(shown[4], "  input    9 bytes: \"rm -rf ~\\n\"");
    }

    #[test]
    fn variables_and_the_background_are_shown() {
        let mut question = run("npm", &["start"], b"");
        let Subject::Program(run) = &mut question.subject else { panic!("a program") };
        run.variables = vec![("PORT".into(), "80".into()), ("MODE".into(), "a b\n".into())];
        run.background = true;
        let shown = lines(&question);
        assert!(shown[0].ends_with("wants to start a program in the background, until the session ends"), "{shown:?}");
        assert_eq!(shown[4], r#"  sets     PORT=80 MODE="a b\n""#);
        assert!(shown[5].ends_with("with any arguments and input, with these variables"), "{shown:?}");
    }

    #[test]
    fn the_subject_of_a_question_is_one_short_line() {
        let run = subject(&run("bash", &["-c", &format!("rm\n{}", "x".repeat(200))], b""));
        assert!(
            run.starts_with(r#"run bash -c "rm\nxxx"#) && run.ends_with('…') && run.chars().count() == 100,
            "{run}"
        );
    }

    #[test]
    fn what_hermes_says_is_broken_between_words_and_a_command_is_not() {
        let shown = lines(&run("git", &["commit", "-m", &"word ".repeat(20)], b""));
        let narrow = wrapped(&shown, 40);
        assert_eq!(narrow[0], "approval: plugin `runner` 0.1.0 wants");
        assert_eq!(narrow[1], "  to run a program");
        assert_eq!(narrow[2], shown[1]);
        let joined = narrow[5..].iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
        assert_eq!(joined, shown[4].trim());
        assert!(narrow[5..].iter().all(|line| line.chars().count() < 40), "{narrow:?}");
        assert_eq!(wrapped(&shown, 400), shown);
    }

    #[test]
    fn an_ordinary_change_shows_its_lines_and_counts_what_it_leaves_out() {
        let deed = FileDeed::Create { bytes: 9, content: Some("x".to_owned()), binary: None };
        let lines_of = |count: usize| (0..count).map(|at| format!("+\tline {at}\r")).collect();
        let mut change = FileChange {
            path: "/w/x".to_owned(),
            deed,
            because: vec!["the mode asks".to_owned()],
            lines: Some(lines_of(2)),
            is_ordinary: true,
        };
        let question = |change: &FileChange| {
            let subject = Subject::File(Box::new(change.clone()));
            Question { plugin: "p".to_owned(), version: "1".to_owned(), subject }
        };
        let shown = lines(&question(&change));
        assert_eq!(shown[3..5], [r"    +     line 0\r", r"    +     line 1\r"], "{shown:?}");
        assert!(shown[5].contains("every ordinary change of a file in the workspace"), "{shown:?}");
        change.lines = Some(lines_of(45));
        assert!(lines(&question(&change)).contains(&"    [5 more lines not shown]".to_owned()));
        let whole = super::lines(&question(&change), Extent::Whole);
        assert!(whole.iter().any(|line| line.contains("line 44")) && !whole.concat().contains("not shown"));
    }

    #[test]
    fn a_missing_sandbox_and_the_network_are_shown() {
        let mut question = run("make", &[], b"");
        let Subject::Program(run) = &mut question.subject else { panic!("a program") };
        run.unconfined = Some("user namespace: denied".into());
        assert_eq!(lines(&question)[4], "  sandbox  none: user namespace: denied");
        let Subject::Program(run) = &mut question.subject else { panic!("a program") };
        (run.unconfined, run.network) = (None, true);
        assert_eq!(lines(&question)[4], "  network  on");
    }

    #[test]
    fn a_move_to_a_listed_place_shows_the_content() {
        let deed = FileDeed::Rename {
            to: "/w/.envrc".to_owned(),
            bytes: Some(6),
            content: Some("curl |\n".to_owned()),
            binary: None,
        };
        let because = vec!["a shell runs it".to_owned()];
        let change = FileChange { path: "/w/x".to_owned(), deed, because, lines: None, is_ordinary: false };
        let subject = Subject::File(Box::new(change));
        let shown = lines(&Question { plugin: "p".to_owned(), version: "1".to_owned(), subject });
        assert_eq!(shown[2..4], ["  to       /w/.envrc", r#"  content  6 bytes: "curl |\n""#], "{shown:?}");
    }

    #[test]
    fn control_invisible_and_direction_characters_are_escaped() {
        let evil = "\u{2800}\u{3164}a\u{1b}[2Jb\rc\u{8}d\u{202e}e\u{200b}f\u{e0041}g\u{7f}h\u{9b}i\u{2028}j\n[o]nce";
        let tool = Question {
            plugin: "p".to_owned(),
            version: "1".to_owned(),
            subject: Subject::Tool {
                name: evil.to_owned(),
                arguments: evil.to_owned(),
                sentence: Some(evil.to_owned()),
                dangerous: true,
                objections: vec![Objection { plugin: evil.to_owned(), why: evil.to_owned() }],
                rule: Some(evil.to_owned()),
            },
        };
        for line in [lines(&tool), lines(&run(evil, &[evil], evil.as_bytes()))].concat() {
            let odd: Vec<char> = line.chars().filter(|c| !c.is_ascii_graphic() && *c != ' ').collect();
            assert!(odd.is_empty(), "{odd:?} in {line}");
            assert!(!line.contains("a\u{1b}") && !line.starts_with("[o]nce"));
        }
        assert!(
            lines(&tool)[2].contains(r"\u{2800}\u{3164}a\u{1b}[2Jb\rc\u{8}d\u{202e}e\u{200b}f"),
            "{}",
            lines(&tool)[2]
        );
    }

    #[test]
    fn a_request_of_a_server_to_a_model_is_shown_with_its_tokens() {
        let request = SamplingRequest {
            text: "Name a bird.\nQuickly.".to_owned(),
            max_tokens: 4_096,
            budget: 20_000,
            used: 1_200,
            rule: None,
        };
        let subject = Subject::Sampling(Box::new(request));
        let question = Question { plugin: "every".to_owned(), version: SERVER_VERSION.to_owned(), subject };
        let expected = [
            "approval: the MCP server `every` wants to ask a model of yours",
            r"  asks    Name a bird.\nQuickly.",
            "  tokens  at most 4,096 for the reply; 1,200 of 20,000 for this session are used",
            "  session and always allow every further request of this server, within its tokens",
        ];
        assert_eq!(lines(&question), expected);
    }

    #[test]
    fn omitted_text_is_counted() {
        let long = "x".repeat(50_000);
        let shown = &lines(&run("git", &[&long], b""))[1];
        assert!(shown.contains("[48,000 of 50,000 characters are not shown]") && shown.len() < 3_000, "{shown}");
        let many: Vec<&str> = vec!["argument"; 1_000];
        let shown = &lines(&run("git", &many, b""))[1];
        let arguments = shown.matches("argument").count() - 1;
        assert!(shown.len() < 7_000, "{}", shown.len());
        let missing = 1_000 - arguments;
        assert!(
            shown.ends_with(&format!("[and {missing} more arguments with {} characters]", grouped(missing as u64 * 8))),
            "{shown}"
        );
    }

    mod attack {
        use super::*;

        fn whole(question: &Question) -> String {
            super::super::lines(question, Extent::Whole).join("\n")
        }

        fn tool(arguments: &str) -> Question {
            let subject = Subject::Tool {
                name: "write".to_owned(),
                arguments: arguments.to_owned(),
                sentence: None,
                dangerous: true,
                objections: Vec::new(),
                rule: None,
            };
            Question { plugin: "p".to_owned(), version: "1".to_owned(), subject }
        }

        fn filler(count: usize) -> String {
            "true; ".repeat(count)
        }

        /// Questions that hide `touch X` from a user who sees only the brief form.
        fn hiding() -> Vec<(&'static str, Question)> {
            let script = format!("{}touch X; {}", filler(400), filler(400));
            let many: Vec<String> =
                (0..2_000).map(|at| if at == 1_500 { "touch X".into() } else { format!("argument{at}") }).collect();
            let many: Vec<&str> = many.iter().map(String::as_str).collect();
            let with = |change: fn(&mut ProgramRun, String)| {
                let mut question = run("sh", &[], b"");
                if let Subject::Program(run) = &mut question.subject {
                    change(run, format!("{}touch X; {}", filler(400), filler(400)));
                }
                question
            };
            let binary = [script.as_bytes(), b"\xff"].concat();
            vec![
                ("the middle of an argument", run("sh", &["-c", &script], b"")),
                ("a late argument", run("sh", &many, b"")),
                ("the middle of the input", run("sh", &[], script.as_bytes())),
                ("the middle of a binary input", run("sh", &[], &binary)),
                ("the middle of a variable", with(|run, text| run.variables = vec![("PS4".into(), text)])),
                ("the middle of the program's name", with(|run, text| run.program = text)),
                ("the middle of a tool's arguments", tool(&script)),
                ("the middle of a reason", {
                    let mut question = tool("{}");
                    if let Subject::Tool { objections, .. } = &mut question.subject {
                        objections.push(Objection { plugin: "h".into(), why: script.clone() });
                    }
                    question
                }),
            ]
        }

        #[test]
        fn the_whole_question_contains_what_the_brief_one_hides() {
            for (place, question) in hiding() {
                assert!(!lines(&question).join("\n").contains("touch X"), "{place}");
                assert!(whole(&question).contains("touch X"), "{place}");
                assert!(
                    !whole(&question).contains("not shown") && !whole(&question).contains("more argument"),
                    "{place}"
                );
            }
        }

        #[test]
        fn a_short_question_is_the_same_in_both_forms() {
            let question = run("git", &["status"], b"in");
            assert_eq!(lines(&question).join("\n"), whole(&question));
        }

        #[test]
        fn blank_looking_characters_are_escaped_in_commands() {
            for blank in ['\u{2800}', '\u{3164}', '\u{115f}', '\u{ffa0}', '\u{a0}', '\u{2003}', '\u{e0061}', '\u{ad}'] {
                let text = format!("a{blank}b");
                let shown = format!("a{}b", blank.escape_unicode());
                for question in [run("sh", &[&text], text.as_bytes()), tool(&text)] {
                    let lines = lines(&question).join("\n");
                    assert!(!lines.contains(blank) && lines.contains(&shown), "{lines:?}");
                }
            }
        }

        #[test]
        fn a_line_feed_in_a_text_begins_no_line_of_the_question() {
            let forged = "x\n  session and always allow nothing at all";
            for question in [run(forged, &[forged], forged.as_bytes()), tool(forged)] {
                let ends = |line: &&String| line.starts_with("  session and always allow nothing");
                assert_eq!(lines(&question).iter().filter(ends).count(), 0);
                assert_eq!(whole(&question).lines().count(), lines(&question).len());
            }
        }
    }
}
