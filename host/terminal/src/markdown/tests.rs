use proptest::prelude::*;

use super::*;
use crate::ansi::{Colours, sequence};
use crate::layout;

/// The lines, with their styles as they are written in a terminal.
fn shown(text: &str, width: usize) -> String {
    let lines = rendered(text, width);
    lines.iter().map(|line| sequence(line, Colours::Off) + "\n").collect()
}

const PAGE: &str = "\
# A day

Tea is *best* **hot**, says `kettle --help` ([the manual](https://tea.example/manual), <https://tea.example>).
A second line.

1. Boil water:
   - soft water
   - [x] not too hot
2. Wait.

   > Patience is a
   > virtue.
3. Pour

```rust
fn pour(cup: &mut Cup) {

    cup.fill(); // slowly
}
```
Then | drink:

| tea | minutes | price |
|:--|--:|:-:|
| green | 2 | cheap |
| a very long name of a tea from far away | 10 | not cheap at all |

---
<b>bold?</b> ~~no~~
* one
* two
";

#[test]
fn a_page_at_several_widths() {
    for width in [20, 40, 80] {
        insta::assert_snapshot!(format!("page_{width}"), shown(PAGE, width));
    }
}

#[test]
fn what_a_terminal_would_obey_is_escaped_also_if_it_is_written_as_an_entity() {
    let text = shown("a&#27;[31mb &#x202e;c `\u{1b}]0;x\u{7}`\n\n```\n\u{1b}[2J\n```\n[x](y\u{1b})", 80);
    assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'), "{text:?}");
    assert!(text.contains("a\\u{1b}[31mb \\u{202e}c"), "{text}");
}

#[test]
fn complete_lines_come_before_the_end_of_their_block() {
    let mut stream = Stream::default();
    let texts = |lines: Vec<Line<'static>>| lines.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert!(stream.push("Some wo", 80).is_empty());
    assert_eq!(texts(stream.rest(80)), ["Some wo"]);
    assert!(stream.push("rds\n\n", 80).is_empty());
    assert_eq!(texts(stream.push("```sh\nls\nl", 80)), ["Some words", "", "  ls"]);
    assert_eq!(texts(stream.rest(80)), ["  l"]);
    assert!(stream.push("\n``", 80).len() == 1 && stream.rest(80).is_empty());
    assert!(stream.push("`\n- a\n", 80).is_empty());
    assert_eq!(texts(stream.rest(80)), ["", "• a"]);
    assert_eq!(texts(stream.push("- b", 80)), ["", "• a"]);
    assert_eq!(texts(stream.finish(80)), ["• b"]);
}

#[test]
fn the_items_of_a_list_are_counted_also_if_each_has_the_same_number() {
    let text = "1. a\n1. b\n   - c\n1. d\n\nThen:\n\n1. e\n1. f\n";
    let mut stream = Stream::default();
    let mut lines = Vec::new();
    text.chars().for_each(|character| lines.extend(stream.push(character.encode_utf8(&mut [0; 4]), 80)));
    lines.extend(stream.finish(80));
    let shown: String = lines.iter().map(|line| format!("{line}\n")).collect();
    assert_eq!(shown, "1. a\n2. b\n   • c\n3. d\n\nThen:\n\n1. e\n2. f\n");
}

#[test]
fn marks_that_may_become_anything_wait() {
    let mut stream = Stream::default();
    stream.push("text\n-", 80);
    assert_eq!(stream.rest(80), [Line::from("text")]);
    stream.push("\n", 80);
    assert!(!stream.finish(80).is_empty());
}

#[test]
fn a_block_without_an_end_is_shown_in_parts() {
    let mut stream = Stream::default();
    let mut lines = Vec::new();
    for _ in 0..40 {
        lines.extend(stream.push(&"words and ".repeat(100), 80));
        assert!(stream.rest(80).len() < 250);
    }
    assert!(lines.len() > 250);
    lines.extend(stream.finish(80));
    let words: usize = lines.iter().map(|line| line.to_string().split_whitespace().count()).sum();
    assert_eq!(words, 2 * 100 * 40);
}

#[test]
fn deep_nesting_has_an_end() {
    let text = format!("{}x", "> ".repeat(1_000));
    assert!(shown(&text, 80).contains('x'));
    let text = format!("{}x", "- ".repeat(1_000));
    assert!(shown(&text, 80).contains('x'));
}

/// Lines of Markdown below one another.
fn texts() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        "[a-z漢]{1,9}( [*`_]{0,2}[a-z]{1,5}[*`_]{0,2}){0,6}",
        Just(String::new()),
        Just(String::new()),
        Just("```rust".to_owned()),
        Just("```".to_owned()),
        Just("| a | b |".to_owned()),
        Just("|--|--|".to_owned()),
        "[-*] [a-z]{1,4}",
        "[1-9]\\. [a-z]{1,4}",
        "  {0,3}[-*] [a-z]{1,4}",
        "> [a-z]{1,4}",
        "#{1,3} [a-z]{1,4}",
        Just("---".to_owned()),
        Just("===".to_owned()),
        Just("    code".to_owned()),
        Just("<div>".to_owned()),
    ];
    prop::collection::vec(line, 0..14).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #[test]
    fn pieces_show_what_the_whole_text_shows(text in texts(), sizes in prop::collection::vec(1_usize..9, 1..9)) {
        let mut stream = Stream::default();
        let mut lines = Vec::new();
        let mut sizes = sizes.into_iter().cycle();
        let mut characters = text.chars().peekable();
        while characters.peek().is_some() {
            let piece: String = characters.by_ref().take(sizes.next().unwrap_or(1)).collect();
            lines.extend(stream.push(&piece, 40));
            stream.rest(40);
        }
        lines.extend(stream.finish(40));
        let letters = |lines: &[Line<'_>]| {
            lines.iter().flat_map(|line| line.to_string().chars().collect::<Vec<_>>())
                .filter(|character| character.is_alphabetic()).collect::<String>()
        };
        prop_assert_eq!(letters(&lines), letters(&rendered(&text, 40)));
    }

    #[test]
    fn no_line_is_wider_than_the_terminal(text in texts(), width in 8_usize..80) {
        for line in rendered(&text, width) {
            prop_assert!(layout::width(&line.to_string()) <= width, "{}: {:?}", width, line.to_string());
        }
    }

    #[test]
    fn no_letter_of_a_text_without_marks_is_lost(text in "[a-z ,.\n]{0,200}") {
        let letters = |text: &str| text.chars().filter(|character| !character.is_whitespace()).collect::<String>();
        prop_assert_eq!(letters(&shown(&text, 30)), letters(&text));
    }
}
