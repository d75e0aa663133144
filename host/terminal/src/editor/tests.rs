//! The input as a person edits it.

use super::*;

fn editor() -> Editor {
    let completer = |typed: &str| {
        let names = ["/help", "/new", "/model"];
        let fits = names.iter().filter(|name| typed.starts_with('/') && name.starts_with(typed));
        let list = fits.map(|name| Candidate { text: (*name).to_owned(), about: "about".to_owned() }).collect();
        Candidates { begin: 0, list }
    };
    Editor::new(vec!["first".to_owned(), "second\nlines".to_owned()], Box::new(completer))
}

fn press(editor: &mut Editor, code: KeyCode) -> Outcome {
    editor.key(KeyEvent::new(code, KeyModifiers::NONE))
}

fn hold(editor: &mut Editor, modifier: KeyModifiers, code: KeyCode) -> Outcome {
    editor.key(KeyEvent::new(code, modifier))
}

fn write(editor: &mut Editor, text: &str) {
    text.chars().for_each(|character| {
        press(editor, KeyCode::Char(character));
    });
}

#[test]
fn enter_sends_and_a_backslash_or_alt_continues() {
    let mut editor = editor();
    write(&mut editor, "one\\");
    assert_eq!(press(&mut editor, KeyCode::Enter), Outcome::Edited);
    write(&mut editor, "two");
    hold(&mut editor, KeyModifiers::ALT, KeyCode::Enter);
    write(&mut editor, "three\\\\");
    assert_eq!(press(&mut editor, KeyCode::Enter), Outcome::Submitted("one\ntwo\nthree\\\\".to_owned()));
    assert!(editor.is_empty());
}

#[test]
fn ctrl_c_clears_the_text_and_keeps_it_in_the_history() {
    let mut editor = editor();
    write(&mut editor, "a long text");
    assert_eq!(hold(&mut editor, KeyModifiers::CONTROL, KeyCode::Char('c')), Outcome::Edited);
    assert!(editor.is_empty());
    assert_eq!(hold(&mut editor, KeyModifiers::CONTROL, KeyCode::Char('c')), Outcome::Interrupted);
    press(&mut editor, KeyCode::Up);
    assert_eq!(editor.text(), "a long text");
}

#[test]
fn earlier_inputs_are_recalled_and_the_written_text_comes_back() {
    let mut editor = editor();
    write(&mut editor, "new");
    press(&mut editor, KeyCode::Up);
    assert_eq!(editor.text(), "second\nlines");
    // The cursor moves through the lines first.
    press(&mut editor, KeyCode::Up);
    press(&mut editor, KeyCode::Up);
    assert_eq!(editor.text(), "first");
    press(&mut editor, KeyCode::Up);
    assert_eq!(editor.text(), "first");
    press(&mut editor, KeyCode::Down);
    press(&mut editor, KeyCode::Down);
    assert_eq!(editor.text(), "new");
}

#[test]
fn ctrl_r_searches_earlier_inputs_and_takes_one_or_leaves_the_text_as_it_was() {
    let search = |editor: &mut Editor, typed: &str| {
        hold(editor, KeyModifiers::CONTROL, KeyCode::Char('r'));
        write(editor, typed);
    };
    let mut editor = editor();
    write(&mut editor, "/n");
    editor.paste(&"line\n".repeat(200));
    press(&mut editor, KeyCode::Left);
    let before = (editor.text(), editor.rows(40, 9));
    for leave in [KeyCode::Esc, KeyCode::Char('g')] {
        search(&mut editor, "fir");
        assert!(editor.is_searching() && editor.menu(40).is_empty());
        let rows: Vec<String> = editor.rows(40, 9).0.iter().map(ToString::to_string).collect();
        assert_eq!(rows[..2], ["search: fir", "  first"]);
        editor.look_again();
        assert!(editor.menu(40).is_empty());
        let modifier = if leave == KeyCode::Esc { KeyModifiers::NONE } else { KeyModifiers::CONTROL };
        assert_eq!(hold(&mut editor, modifier, leave), Outcome::Edited);
        assert_eq!((editor.text(), editor.rows(40, 9)), before);
    }
    search(&mut editor, "LINES");
    assert_eq!(press(&mut editor, KeyCode::BackTab), Outcome::NextMode);
    // Enter takes the input, and only the next one sends it.
    assert_eq!(press(&mut editor, KeyCode::Enter), Outcome::Edited);
    assert_eq!(editor.text(), "second\nlines");
    // The text that the search hid comes after the newest input.
    press(&mut editor, KeyCode::Down);
    assert_eq!(editor.text(), before.0);
    search(&mut editor, "first");
    press(&mut editor, KeyCode::Enter);
    assert_eq!(press(&mut editor, KeyCode::Enter), Outcome::Submitted("first".to_owned()));
    // Without earlier inputs there is nothing to search.
    let mut empty = Editor::new(Vec::new(), Box::new(|_| Candidates::default()));
    search(&mut empty, "x");
    assert_eq!((empty.text().as_str(), empty.is_searching()), ("x", false));
}

#[test]
fn a_long_paste_is_one_word_and_is_sent_whole() {
    let mut editor = editor();
    let pasted = "line\r\n".repeat(200);
    write(&mut editor, "see ");
    editor.paste(&pasted);
    assert_eq!(editor.rows(80, 9).0, [Line::from("> see [paste 1: 201 lines]")]);
    assert_eq!(editor.text(), format!("see {}", "line\n".repeat(200)));
    press(&mut editor, KeyCode::Backspace);
    assert_eq!(editor.text(), "see ");
    editor.paste("a\nb");
    assert_eq!(editor.text(), "see a\nb");
}

#[test]
fn no_key_changes_a_part_of_a_paste() {
    let pasted = "line\n".repeat(200);
    for keys in [
        vec![(KeyModifiers::CONTROL, KeyCode::Char('w'))],
        vec![(KeyModifiers::ALT, KeyCode::Backspace)],
        vec![(KeyModifiers::NONE, KeyCode::Left), (KeyModifiers::NONE, KeyCode::Delete)],
        vec![(KeyModifiers::NONE, KeyCode::Left), (KeyModifiers::ALT, KeyCode::Char('d'))],
    ] {
        let mut editor = editor();
        write(&mut editor, "see ");
        editor.paste(&pasted);
        assert_eq!(editor.rows(80, 9).1, Place { row: 0, column: 26 });
        for (modifier, key) in keys.clone() {
            hold(&mut editor, modifier, key);
        }
        assert_eq!(editor.text().trim_end(), "see", "{keys:?}");
        hold(&mut editor, KeyModifiers::CONTROL, KeyCode::Char('7'));
        assert_eq!(editor.text(), format!("see {pasted}"), "{keys:?}");
    }
    let mut editor = editor();
    editor.paste(&pasted);
    press(&mut editor, KeyCode::Left);
    write(&mut editor, "before ");
    assert_eq!(editor.text(), format!("before {pasted}"));
    // A character of the user never stands for a paste.
    editor.paste("\u{100000}");
    assert_eq!(editor.text(), format!("before \u{fffd}{pasted}"));
}

#[test]
fn keys_move_over_and_remove_what_people_see_as_one_character() {
    let mut editor = editor();
    write(&mut editor, "a👨\u{200d}👩\u{200d}👧e\u{301}z");
    press(&mut editor, KeyCode::Left);
    press(&mut editor, KeyCode::Backspace);
    assert_eq!(editor.text(), "a👨\u{200d}👩\u{200d}👧z");
    press(&mut editor, KeyCode::Backspace);
    assert_eq!(editor.text(), "az");
    write(&mut editor, "🇩🇪");
    press(&mut editor, KeyCode::Left);
    press(&mut editor, KeyCode::Left);
    press(&mut editor, KeyCode::Right);
    press(&mut editor, KeyCode::Delete);
    assert_eq!(editor.text(), "az");
}

#[test]
fn words_are_passed_and_removed_as_in_a_shell_and_a_change_is_undone() {
    let mut editor = editor();
    write(&mut editor, "one two three");
    hold(&mut editor, KeyModifiers::ALT, KeyCode::Left);
    hold(&mut editor, KeyModifiers::CONTROL, KeyCode::Left);
    hold(&mut editor, KeyModifiers::ALT, KeyCode::Right);
    write(&mut editor, "X");
    assert_eq!(editor.text(), "one two Xthree");
    hold(&mut editor, KeyModifiers::ALT, KeyCode::Backspace);
    assert_eq!(editor.text(), "one two three");
    // Shift selects nothing, because a selection is not shown.
    hold(&mut editor, KeyModifiers::SHIFT, KeyCode::Left);
    write(&mut editor, "Y");
    assert_eq!(editor.text(), "one twoY three");
    hold(&mut editor, KeyModifiers::CONTROL, KeyCode::Char('7'));
    assert_eq!(editor.text(), "one two three");
}

#[test]
fn up_and_down_move_through_the_rows_of_a_long_line_before_earlier_inputs_come() {
    let mut editor = editor();
    write(&mut editor, "abcdefghijkl");
    // Six columns for text: two rows, and one for the cursor.
    assert_eq!(editor.rows(8, 9).1, Place { row: 2, column: 2 });
    press(&mut editor, KeyCode::Up);
    assert_eq!(editor.rows(8, 9).1, Place { row: 1, column: 2 });
    press(&mut editor, KeyCode::Right);
    press(&mut editor, KeyCode::Up);
    assert_eq!(editor.rows(8, 9).1, Place { row: 0, column: 3 });
    press(&mut editor, KeyCode::Down);
    assert_eq!(editor.rows(8, 9).1, Place { row: 1, column: 3 });
    assert_eq!(editor.text(), "abcdefghijkl");
    press(&mut editor, KeyCode::Up);
    press(&mut editor, KeyCode::Up);
    assert_eq!(editor.text(), "second\nlines");
    press(&mut editor, KeyCode::Down);
    assert_eq!(editor.text(), "abcdefghijkl");
}

#[test]
fn the_menu_follows_what_is_typed() {
    let mut editor = editor();
    write(&mut editor, "/");
    assert_eq!(editor.menu(40).len(), 3);
    write(&mut editor, "m");
    assert_eq!(editor.menu(40).len(), 1);
    press(&mut editor, KeyCode::Tab);
    assert_eq!(editor.text(), "/model");
    assert!(editor.menu(40).is_empty());
    assert_eq!(press(&mut editor, KeyCode::Enter), Outcome::Submitted("/model".to_owned()));
    write(&mut editor, "/");
    press(&mut editor, KeyCode::Down);
    assert_eq!(press(&mut editor, KeyCode::Enter), Outcome::Edited);
    assert_eq!(editor.text(), "/new");
    editor.set("");
    write(&mut editor, "/n");
    press(&mut editor, KeyCode::Esc);
    assert!(editor.menu(40).is_empty());
    assert_eq!(press(&mut editor, KeyCode::Enter), Outcome::Submitted("/n".to_owned()));
}

/// `/mode` and Enter became `/model`, and the next line chose a model.
#[test]
fn enter_sends_a_command_that_is_typed_in_full_also_if_a_longer_one_is_listed_first() {
    let completer = |typed: &str| {
        let fits = ["/model ", "/mode "].into_iter().filter(|name| name.starts_with(typed));
        let list = fits.map(|name| Candidate { text: name.to_owned(), about: String::new() }).collect();
        Candidates { begin: 0, list }
    };
    let mut editor = Editor::new(Vec::new(), Box::new(completer));
    write(&mut editor, "/mode");
    assert_eq!(editor.menu(40).len(), 2);
    assert_eq!(press(&mut editor, KeyCode::Enter), Outcome::Submitted("/mode".to_owned()));
    write(&mut editor, "/mod");
    press(&mut editor, KeyCode::Enter);
    assert_eq!(editor.text(), "/model ");
    editor.set("");
    write(&mut editor, "/mode");
    press(&mut editor, KeyCode::Tab);
    assert_eq!(editor.text(), "/mode ");
}

#[test]
fn rows_are_broken_by_columns_and_the_cursor_is_where_the_next_character_will_be() {
    let mut editor = editor();
    write(&mut editor, "abcd漢字");
    let (rows, place) = editor.rows(8, 9);
    assert_eq!(rows, [Line::from("> abcd漢"), Line::from("  字")]);
    assert_eq!(place, Place { row: 1, column: 4 });
    press(&mut editor, KeyCode::Home);
    assert_eq!(editor.rows(8, 9).1, Place { row: 0, column: 2 });
    press(&mut editor, KeyCode::End);
    write(&mut editor, "ef");
    assert_eq!(editor.rows(8, 9).1, Place { row: 1, column: 6 });
    write(&mut editor, "gh");
    assert_eq!(editor.rows(8, 9).1, Place { row: 2, column: 2 });
    // Only so many rows are shown, with the cursor among them.
    let (rows, place) = editor.rows(8, 2);
    assert_eq!((rows.len(), place.row), (2, 1));
}

fn type_in(editor: &mut Editor, text: &str) {
    text.chars().for_each(|character| drop(press(editor, KeyCode::Char(character))));
}

#[test]
fn only_a_typed_sign_makes_a_command() {
    type Act = fn(&mut Editor);
    let command = |text: &str| Outcome::Command(text.to_owned());
    let message = |text: &str| Outcome::Submitted(text.to_owned());
    let cases: [(Act, Outcome); 16] = [
        (|editor| type_in(editor, "!ls"), command("!ls")),
        (|editor| type_in(editor, "wow!"), message("wow!")),
        (|editor| editor.paste("!ls"), message("!ls")),
        (|editor| editor.paste("!important\r\nnote"), message("!important\nnote")),
        (|editor| editor.paste(&format!("!{}", "x\n".repeat(20))), message(&format!("!{}", "x\n".repeat(20)))),
        // A sign in front of a paste, and a paste in front of a sign.
        (
            |editor| {
                editor.paste("ls");
                press(editor, KeyCode::Home);
                type_in(editor, "!");
            },
            command("!ls"),
        ),
        (
            |editor| {
                type_in(editor, "!ls");
                press(editor, KeyCode::Home);
                editor.paste("!x ");
            },
            message("!x !ls"),
        ),
        (
            |editor| {
                type_in(editor, "!");
                editor.paste("ls -l");
            },
            command("!ls -l"),
        ),
        // The text before the paste was deleted.
        (
            |editor| {
                type_in(editor, "a");
                editor.paste("!ls");
                press(editor, KeyCode::Home);
                press(editor, KeyCode::Delete);
            },
            message("!ls"),
        ),
        (
            |editor| {
                type_in(editor, "!");
                press(editor, KeyCode::Backspace);
                editor.paste("!ls");
            },
            message("!ls"),
        ),
        // Earlier inputs, and back to what was written.
        (|editor| drop(press(editor, KeyCode::Up)), message(" !pasted")),
        (
            |editor| {
                press(editor, KeyCode::Up);
                press(editor, KeyCode::Up);
            },
            command("!typed"),
        ),
        (
            |editor| {
                type_in(editor, "!ls");
                press(editor, KeyCode::Up);
                press(editor, KeyCode::Down);
            },
            command("!ls"),
        ),
        (
            |editor| {
                editor.paste("!ls");
                press(editor, KeyCode::Up);
                press(editor, KeyCode::Down);
            },
            message("!ls"),
        ),
        (|editor| editor.set("!ls"), message("!ls")),
        (|editor| editor.set_written(&Written { text: "!ls".to_owned(), is_command: true }), command("!ls")),
    ];
    for (at, (act, expected)) in cases.into_iter().enumerate() {
        let mut editor = Editor::new(Vec::new(), Box::new(|_| Candidates::default()));
        editor.remember("!typed");
        editor.remember(&Written { text: "!pasted".to_owned(), is_command: false }.as_line());
        act(&mut editor);
        assert_eq!(press(&mut editor, KeyCode::Enter), expected, "{at}");
        assert!(editor.is_empty(), "{at}");
    }
}

#[test]
fn a_cleared_paste_is_no_command_when_it_is_recalled() {
    let mut editor = Editor::new(Vec::new(), Box::new(|_| Candidates::default()));
    editor.paste("!ls");
    hold(&mut editor, KeyModifiers::CONTROL, KeyCode::Char('c'));
    press(&mut editor, KeyCode::Up);
    assert_eq!(press(&mut editor, KeyCode::Enter), Outcome::Submitted(" !ls".to_owned()));
}

#[test]
fn a_command_with_a_hidden_paste_is_shown_before_it_runs() {
    let long = format!("echo a\n{}", "echo b\n".repeat(20));
    for paste in [long.as_str(), "echo a\necho b", &"x".repeat(500)] {
        let mut editor = Editor::new(Vec::new(), Box::new(|_| Candidates::default()));
        editor.rows(40, 5);
        type_in(&mut editor, "!");
        editor.paste(paste);
        let whole = format!("!{paste}");
        assert_eq!(press(&mut editor, KeyCode::Enter), Outcome::Unseen(whole.clone()));
        assert!(!editor.rows(40, 99).0.iter().any(|row| row.to_string().contains("[paste")), "it is written out");
        editor.rows(40, 5);
        // The shown text is not the text that would be sent.
        type_in(&mut editor, "y");
        assert_eq!(press(&mut editor, KeyCode::Enter), Outcome::Unseen(format!("{whole}y")));
        assert_eq!(press(&mut editor, KeyCode::Enter), Outcome::Command(format!("{whole}y")));
    }
    let mut editor = Editor::new(Vec::new(), Box::new(|_| Candidates::default()));
    type_in(&mut editor, "!");
    editor.paste(&"echo a\n".repeat(20));
    assert_eq!(editor.rows(80, 9).0, [Line::from("> ![paste 1: 21 lines]")]);
}
