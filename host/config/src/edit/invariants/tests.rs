use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;

use super::*;

/// The value of a key, in the forms in which people write it.
#[derive(Debug, Clone)]
enum Node {
    /// On the line of the key.
    Inline(&'static str),
    /// Lines of text behind `|` or `>`.
    Block(&'static str),
    /// Items, below the key or a step to the right of it.
    List(Vec<&'static str>, bool),
    Section(Vec<Line>),
}

/// A key with its value, and the comments and blank lines around it.
#[derive(Debug, Clone)]
struct Line {
    key: &'static str,
    node: Node,
    /// The indentation of the inner lines, in blanks.
    step: usize,
    /// A comment above the key, with its indentation in blanks. `behind` says whether a comment follows the value.
    above: Option<usize>,
    behind: bool,
    blank: bool,
}

fn node() -> impl Strategy<Value = Node> {
    let inline = select(vec![
        "",
        "1",
        "text",
        "'it''s'",
        "\"a # b\"",
        "a#b",
        "[]",
        "{}",
        "[x, 'y']",
        "{x: 1}",
        "[x]",
        "~",
        "http://h:1/#x",
        "- 1",
    ]);
    let item = select(vec!["x", "y", "\"z\"", "dice", "{k: v}", "k: v", "[1]", "'#'"]);
    let leaf = prop_oneof![
        4 => inline.prop_map(Node::Inline),
        1 => select(vec!["|", ">", "|-", "|+"]).prop_map(Node::Block),
        3 => (vec(item, 1..4), any::<bool>()).prop_map(|(items, indented)| Node::List(items, indented)),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| lines(inner).prop_map(Node::Section))
}

fn lines(node: impl Strategy<Value = Node>) -> impl Strategy<Value = Vec<Line>> {
    let key =
        select(vec!["plugins", "enabled", "disabled", "entries", "mine", "memory", "provider", "'a b'", "x-y", "0"]);
    let line = (key, node, 1..5usize, prop::option::weighted(0.3, 0..6usize), any::<bool>(), prop::bool::weighted(0.2));
    let line = line.prop_map(|(key, node, step, above, behind, blank)| Line { key, node, step, above, behind, blank });
    vec(line, 1..5).prop_map(|mut lines| {
        let mut known = Vec::new();
        lines.retain(|line| {
            !known.contains(&line.key) && {
                known.push(line.key);
                true
            }
        });
        lines
    })
}

fn comment(known: &mut usize) -> String {
    *known += 1;
    format!("# comment {known}")
}

/// The text of it, and how many comments are in it.
fn write(lines: &[Line], indent: usize, comments: &mut usize, text: &mut String) {
    let margin = " ".repeat(indent);
    // All lines of a section have the indentation of the first one.
    for Line { key, node, step, above, behind, blank } in lines {
        if *blank {
            text.push('\n');
        }
        if let Some(at) = above {
            text.push_str(&format!("{}{}\n", " ".repeat(*at), comment(comments)));
        }
        let behind = if *behind { format!("  {}", comment(comments)) } else { String::new() };
        match node {
            Node::Inline(value) => {
                let line = format!("{margin}{key}: {value}");
                text.push_str(&format!("{}{behind}\n", line.trim_end()));
            }
            Node::Block(mark) => {
                let inner = " ".repeat(indent + step);
                text.push_str(&format!("{margin}{key}: {mark}{behind}\n{inner}some text\n{inner}# and more\n"));
            }
            Node::List(items, indented) => {
                text.push_str(&format!("{margin}{key}:{behind}\n"));
                let inner = " ".repeat(indent + if *indented { *step } else { 0 });
                for item in items {
                    text.push_str(&format!("{inner}- {item}\n"));
                }
            }
            Node::Section(lines) => {
                text.push_str(&format!("{margin}{key}:{behind}\n"));
                write(lines, indent + step, comments, text);
            }
        }
    }
}

#[derive(Debug, Clone)]
struct File {
    text: String,
}

fn file() -> impl Strategy<Value = File> {
    let head = select(vec!["", "", "# My own.\n", "---\n", "\n\n", "\u{feff}"]);
    let end = select(vec!["", "", "\n", "# the end\n", "  # the end\n", "..."]);
    (head, prop::option::weighted(0.9, lines(node())), end, any::<bool>(), prop::bool::weighted(0.1)).prop_map(
        |(head, lines, end, cut, returns)| {
            let mut text = head.to_owned();
            write(&lines.unwrap_or_default(), 0, &mut 0, &mut text);
            text.push_str(end);
            if cut {
                text.truncate(text.trim_end_matches('\n').len());
            }
            if returns {
                text = text.replace('\n', "\r\n");
            }
            File { text }
        },
    )
}

const PATHS: &[&[&str]] = &[
    &["plugins", "enabled"],
    &["plugins", "disabled"],
    &["plugins", "entries", "mine"],
    &["plugins", "entries", "mine", "level"],
    &["memory", "provider"],
    &["context", "engine"],
    &["enabled"],
    &["x-y", "a.b"],
];

fn change() -> impl Strategy<Value = Change> {
    let value = select(vec![
        json!("lossless"),
        json!({"sides": 20, "names": ["a", {"b": null}]}),
        json!(true),
        json!([]),
        json!({}),
        json!("a: b # c"),
        json!("line\nline\n"),
        json!(""),
        json!("~"),
        json!(["x"]),
        json!(1.5),
    ]);
    let item = || {
        select(vec!["dice", "x", "z", "mine-2", "true", "a b", "y", "no", "1e3", "0x1F", "# x"]).prop_map(str::to_owned)
    };
    prop_oneof![
        value.prop_map(Change::Set),
        Just(Change::Remove),
        item().prop_map(Change::Add),
        item().prop_map(Change::Take),
    ]
}

/// Whether the file parses, and its present content allows the change.
fn is_possible(text: &str, path: &[&str], change: &Change) -> bool {
    let Ok(said) = read(text) else { return false };
    // YAML ignores everything behind the end of a document (`...`), and a block scalar with `|+` takes in the blank lines below
    // it.
    if text.contains("...") || text.contains("|+") {
        return false;
    }
    let is_section = |value: &Value| value.is_object() || value.is_null();
    let is_list = |value: &Value| value.is_array() || value.is_null();
    match change {
        // The syntax tree takes a line of a block scalar that begins with `#` for a comment. The editor refuses changes that
        // would drop a comment.
        Change::Set(_) if at(&said, path).and_then(Value::as_str).is_some_and(|text| text.contains('#')) => false,
        Change::Set(_) => (0..path.len()).all(|depth| at(&said, &path[..depth]).is_none_or(is_section)),
        Change::Add(_) => {
            (0..path.len()).all(|depth| at(&said, &path[..depth]).is_none_or(is_section))
                && at(&said, path).is_none_or(is_list)
        }
        Change::Remove | Change::Take(_) => true,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_file_as_people_write_it_says_what_it_said_and_the_change(
        file in file(),
        path in select(PATHS),
        change in change(),
    ) {
        let done = changed(&file.text, path, &change);
        if is_possible(&file.text, path, &change) {
            prop_assert!(done.is_ok(), "{done:?}");
        }
    }

    #[test]
    fn any_text_is_changed_right_or_left(
        text in "[a-c:#\\-\\[\\]{},\n '\"|&*>!]{0,60}|(plugins: ?\n?)?[ -~\n]{0,60}|\\PC{0,30}",
        path in select(PATHS),
        change in change(),
    ) {
        let _ = changed(&text, path, &change);
    }
}
