use super::*;

fn keys() -> Keys {
    Keys {
        prompt: "[o]nce  [s]ession  [n]o, but …  [d]eny (enter)? ".to_owned(),
        to_view: "[v]iew all  [d]eny? ".to_owned(),
        view_first: "view first".to_owned(),
        too_small: "too small".to_owned(),
        yes: vec!['o', 's'],
        no: vec!['d'],
        with_line: Some(('n', "instead:".to_owned())),
    }
}

/// A question, with the time that passes.
struct Asked {
    question: Question,
    now: Instant,
    /// What went to the input.
    typed: String,
    columns: usize,
    most: usize,
}

impl Asked {
    fn new(question: Question) -> Self {
        let mut asked = Self { question, now: Instant::now(), typed: String::new(), columns: 40, most: 12 };
        asked.question.begin(asked.now);
        asked.rows();
        asked
    }

    fn with_rows(count: usize) -> Self {
        let text = move |_| (1..=count).map(|row| Line::from(format!("row {row}"))).collect();
        Self::new(Question::with_keys(Box::new(text), keys()))
    }

    fn with_choices(list: &[&str], is_open: bool) -> Self {
        let list = list.iter().map(|&choice| choice.to_owned()).collect();
        let choices = Choices { list, is_open, takes_values: false, hint: "how".to_owned() };
        Self::new(Question::with_choices(Box::new(|_| vec!["Where?".into()]), choices))
    }

    fn rows(&mut self) -> Vec<String> {
        let rows = self.question.picture(self.columns, self.most, self.now).0;
        rows.iter().map(|row| row.to_string().trim_end().to_owned()).collect()
    }

    fn after(&mut self, time: Duration) -> Option<Answer> {
        self.now += time;
        let pressed = self.question.tick(self.now);
        self.rows();
        self.take(pressed)
    }

    fn rest(&mut self) -> Option<Answer> {
        self.after(REST)
    }

    fn take(&mut self, pressed: Pressed) -> Option<Answer> {
        match pressed {
            Pressed::Open => None,
            Pressed::ToInput(keys) => {
                self.typed.extend(keys.iter().map(|key| match key.code {
                    KeyCode::Char(character) => character,
                    KeyCode::Enter => '\n',
                    _ => '?',
                }));
                None
            }
            Pressed::Answered(answer) => Some(answer),
        }
    }

    fn press(&mut self, code: KeyCode) -> Option<Answer> {
        let pressed = self.question.key(KeyEvent::new(code, KeyModifiers::NONE), self.now);
        self.rows();
        self.take(pressed)
    }

    /// A key that no other one follows.
    fn lone(&mut self, code: KeyCode) -> Option<Answer> {
        let answer = self.press(code);
        answer.or_else(|| self.after(BURST))
    }

    fn write(&mut self, text: &str) -> Option<Answer> {
        text.chars().find_map(|character| self.press(KeyCode::Char(character)))
    }
}

#[test]
fn what_was_typed_before_the_question_goes_to_the_input_and_answers_nothing() {
    let mut asked = Asked::with_rows(3);
    for character in "to do so\rons".chars() {
        let code = if character == '\r' { KeyCode::Enter } else { KeyCode::Char(character) };
        assert_eq!(asked.lone(code), None);
        assert_eq!(asked.after(REST - BURST - Duration::from_millis(1)), None);
    }
    assert_eq!(asked.typed, "to do so\nons");
    assert_eq!(asked.rest(), None);
    assert_eq!(asked.press(KeyCode::Char('O')), None);
    assert_eq!(asked.after(BURST), Some(Answer::Key('o')));
}

#[test]
fn a_line_break_that_is_held_is_taken_back_or_goes_before_a_paste() {
    let mut asked = Asked::with_rows(3);
    for code in [KeyCode::Char('a'), KeyCode::Enter, KeyCode::Backspace, KeyCode::Char('b')] {
        asked.lone(code);
    }
    assert_eq!(asked.typed, "ab");
    asked.lone(KeyCode::Enter);
    assert!(!asked.question.paste("pasted", asked.now) && asked.question.take_held());
    asked.lone(KeyCode::Char('c'));
    assert_eq!(asked.typed, "abc");
}

#[test]
fn keys_that_arrive_together_and_other_letters_are_typed_and_no_answer() {
    for text in ["once", "so it is", "x", "7", "ok"] {
        let mut asked = Asked::with_rows(3);
        asked.rest();
        assert_eq!(asked.write(text), None, "{text}");
        assert_eq!((asked.after(BURST), asked.typed.as_str()), (None, text));
        // A key that follows within a moment is typed text, too.
        assert_eq!(asked.lone(KeyCode::Char('o')), None, "{text}");
        assert_eq!(asked.rest(), None);
        assert_eq!(asked.lone(KeyCode::Char('o')), Some(Answer::Key('o')), "{text}");
    }
    let mut asked = Asked::with_rows(3);
    asked.rest();
    assert!(!asked.question.paste("o", asked.now) && asked.question.is_typing());
}

#[test]
fn every_other_answer_is_a_no() {
    for code in [KeyCode::Enter, KeyCode::Esc] {
        let mut asked = Asked::with_rows(3);
        asked.rest();
        assert_eq!(asked.lone(code), Some(Answer::Left), "{code:?}");
    }
    let mut asked = Asked::with_rows(30);
    asked.rest();
    assert_eq!(asked.lone(KeyCode::Char('D')), Some(Answer::Key('d')));
}

#[test]
fn a_yes_counts_only_after_every_row_was_on_the_screen_and_a_moment_after_the_last_page() {
    let mut asked = Asked::with_rows(25);
    asked.rest();
    assert_eq!(asked.rows()[8..], ["row 9", "rows 1 to 9 of 25 · space for more", "[v]iew all  [d]eny?"]);
    assert_eq!(asked.lone(KeyCode::Char('o')), None);
    assert_eq!(asked.rows().last().unwrap(), "view first");
    // The last rows alone are not all of them.
    asked.press(KeyCode::End);
    asked.rest();
    assert_eq!(asked.rows()[8..], ["row 25", "rows 17 to 25 of 25", "[v]iew all  [d]eny?"]);
    assert_eq!(asked.lone(KeyCode::Char('o')), None);
    asked.press(KeyCode::Home);
    asked.press(KeyCode::Char(' '));
    asked.press(KeyCode::Enter);
    assert_eq!(asked.rows()[8], "row 25");
    assert_eq!(asked.rows()[9], "rows 17 to 25 of 25");
    assert_eq!(asked.lone(KeyCode::Char('o')), None);
    assert_eq!(asked.typed, "");
    asked.rest();
    // The key did nothing, and the question says so until the next one.
    assert_eq!(asked.rows()[9..], [AGAIN, "[o]nce  [s]ession  [n]o, but …", "[d]eny (enter)?"]);
    assert_eq!(asked.lone(KeyCode::Char('o')), Some(Answer::Key('o')));
}

#[test]
fn a_new_width_has_to_be_read_again_and_a_terminal_without_room_allows_nothing() {
    let mut asked = Asked::with_rows(25);
    asked.rest();
    asked.press(KeyCode::Char('v'));
    asked.press(KeyCode::Char('v'));
    asked.rest();
    asked.columns = 30;
    assert!(asked.rows()[0] == "row 1" && !asked.question.is_shown());
    assert_eq!(asked.lone(KeyCode::Char('o')), None);
    for (columns, most) in [(8, 40), (40, 3)] {
        let mut asked = Asked::with_rows(5);
        (asked.columns, asked.most) = (columns, most);
        asked.rest();
        assert!(asked.rows().concat().contains("small"), "{:?}", asked.rows());
        assert_eq!(asked.lone(KeyCode::Char('o')), None);
        assert_eq!(asked.rest(), None);
        assert_eq!(asked.lone(KeyCode::Char('d')), Some(Answer::Key('d')));
    }
}

#[test]
fn a_question_that_did_not_reach_the_screen_allows_nothing() {
    let text = || Box::new(|_: usize| vec![Line::from("row")]);
    // The terminal takes nothing, so the question is not on the screen.
    let mut never = Question::with_keys(text(), keys());
    let mut failed = Question::with_keys(text(), keys());
    let mut now = Instant::now();
    failed.picture(40, 12, now);
    failed.was_not_drawn();
    for question in [&mut never, &mut failed] {
        question.begin(now);
        now += REST;
        assert_eq!(question.tick(now), Pressed::Open);
        for (letter, answer) in [('o', Pressed::Open), ('d', Pressed::Answered(Answer::Key('d')))] {
            assert_eq!(question.key(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::NONE), now), Pressed::Open);
            now += BURST;
            assert_eq!(question.tick(now), answer);
        }
    }
}

#[test]
fn a_text_behind_the_question_is_shown_on_demand_and_need_not_be_read() {
    let rows = |name: &'static str, count: usize| -> Rows {
        Box::new(move |_| (1..=count).map(|row| Line::from(format!("{name} {row}"))).collect())
    };
    let question = || Asked::new(Question::with_keys(rows("row", 3), keys()).with_more(rows("more", 30)));
    let mut asked = question();
    asked.rest();
    assert_eq!(asked.rows()[..3], ["row 1", "row 2", "row 3"]);
    assert_eq!(asked.lone(KeyCode::Char('o')), Some(Answer::Key('o')));

    let mut asked = question();
    asked.rest();
    asked.press(KeyCode::Char('v'));
    assert_eq!(asked.rows()[0], "more 1");
    assert!(asked.rows()[9].starts_with("rows 4 to 12 of 33"), "{:?}", asked.rows());
    // Enter turns pages here, and answers only at the end.
    asked.rest();
    asked.press(KeyCode::Enter);
    assert_eq!(asked.rows()[0], "more 10");
    asked.rest();
    assert_eq!(asked.press(KeyCode::Char('q')), None);
    assert_eq!(asked.rows()[..4], ["row 1", "row 2", "row 3", "more 1"]);
    asked.rest();
    assert_eq!(asked.lone(KeyCode::Char('s')), Some(Answer::Key('s')));

    // On a low terminal the question comes first, and all of it must be read.
    let mut asked = question();
    (asked.columns, asked.most) = (39, 4);
    assert_eq!((asked.rest(), asked.rest()), (None, None));
    assert_eq!(asked.rows()[..2], ["row 1", "rows 1 to 1 of 3 · space for more"]);
    assert_eq!(asked.lone(KeyCode::Char('o')), None);
    asked.press(KeyCode::Char('v'));
    assert_eq!(asked.rows()[0], "row 2");
    asked.press(KeyCode::Char('v'));
    asked.press(KeyCode::Char('v'));
    assert_eq!(asked.rows()[0], "more 1");
    // Another width shows the question again.
    asked.columns = 30;
    assert!(asked.rows()[0] == "row 1" && !asked.question.is_shown());
}

#[test]
fn a_letter_is_answered_with_a_line_and_escape_leads_back() {
    let mut asked = Asked::with_rows(30);
    asked.rest();
    assert_eq!(asked.lone(KeyCode::Char('n')), None);
    assert_eq!(asked.write("do"), None);
    asked.press(KeyCode::Esc);
    asked.rest();
    assert_eq!(asked.lone(KeyCode::Char('n')), None);
    assert!(asked.question.paste(" not", asked.now));
    assert_eq!(asked.rows().last().unwrap(), "> do not");
    assert_eq!(asked.press(KeyCode::Enter), Some(Answer::Line("do not".to_owned())));
}

#[test]
fn a_choice_is_named_by_arrows_its_number_or_its_words_and_anything_else_is_a_line() {
    let places = ["staging", "Production"];
    for (text, answer) in [
        ("2", Answer::Choice(1)),
        ("1)", Answer::Choice(0)),
        ("production", Answer::Choice(1)),
        ("3", Answer::Line("3".to_owned())),
        (" neither, wait ", Answer::Line("neither, wait".to_owned())),
    ] {
        let mut asked = Asked::with_choices(&places, true);
        assert_eq!(asked.press(KeyCode::Char('1')), None);
        asked.rest();
        assert_eq!(asked.press(KeyCode::Enter), None);
        assert_eq!(asked.typed, "1");
        assert_eq!(asked.write(text), None);
        assert_eq!(asked.press(KeyCode::Enter), Some(answer), "{text}");
    }
    let mut asked = Asked::with_choices(&places, true);
    asked.rest();
    assert_eq!(asked.rows(), ["Where?", "  1) staging", "  2) Production", ">", "how"]);
    for (code, answer) in [(KeyCode::Down, 0), (KeyCode::Down, 1), (KeyCode::Down, 0), (KeyCode::Up, 1)] {
        asked.press(code);
        assert_eq!(asked.question.meant(), Some(answer));
    }
    assert_eq!(asked.press(KeyCode::Enter), Some(Answer::Choice(1)));
}

#[test]
fn a_number_is_never_a_place_in_the_list_where_numbers_are_answers() {
    // The first choice of a form that takes a number is what the server proposes.
    let form = ["5", "leave it out", "decline"].map(str::to_owned);
    let named = |line: &str, choices: &[String], takes_values| named_choice(line, choices, takes_values);
    for (line, choice) in [
        ("1", None),
        ("2", None),
        ("5", Some(0)),
        ("a)", Some(0)),
        ("C)", Some(2)),
        ("decline", Some(2)),
        ("Decline", None),
        ("c", None),
    ] {
        assert_eq!(named(line, &form, true), choice, "{line}");
    }
    let numbers = ["3", "1", "2"].map(str::to_owned);
    for (line, choice) in [("1", Some(1)), ("3", Some(0)), ("4", None), ("b", Some(1)), ("c)", Some(2))] {
        assert_eq!(named(line, &numbers, false), choice, "{line}");
    }
    assert_eq!((choice_mark(25, &form, true), choice_mark(26, &form, true)), ("z)".to_owned(), "aa)".to_owned()));
    let mut asked = Asked::with_choices(&["5", "decline"], true);
    asked.rest();
    assert_eq!(asked.rows(), ["Where?", "  a) 5", "  b) decline", ">", "how"]);
}

#[test]
fn only_an_open_question_takes_other_words() {
    let mut asked = Asked::with_choices(&["yes", "no"], false);
    asked.rest();
    asked.write("perhaps");
    assert_eq!(asked.press(KeyCode::Enter), None);
    asked.press(KeyCode::Esc);
    asked.write("no");
    assert_eq!(asked.press(KeyCode::Enter), Some(Answer::Choice(1)));
    let mut asked = Asked::with_choices(&[], false);
    asked.rest();
    asked.write("1");
    assert_eq!(asked.press(KeyCode::Enter), Some(Answer::Line("1".to_owned())));
}

#[test]
fn no_row_is_wider_than_the_terminal_and_a_long_list_scrolls() {
    let list: Vec<String> = (1..=40).map(|at| format!("choice {at} {}", "word ".repeat(12))).collect();
    let list: Vec<&str> = list.iter().map(String::as_str).collect();
    let mut asked = Asked::with_choices(&list, true);
    asked.rest();
    for columns in [12, 20, 39, 200] {
        asked.columns = columns;
        for at in [1, 40] {
            asked.write(&at.to_string());
            let rows = asked.rows();
            assert!(rows.len() <= 12 && rows.iter().all(|row| width(row) <= columns), "{rows:#?}");
            assert!(rows.iter().any(|row| row.contains(&format!("{at}) "))), "{at} at {columns}: {rows:#?}");
            assert!(rows.iter().any(|row| row.starts_with("  rows ")), "{at} at {columns}: {rows:#?}");
            asked.press(KeyCode::Esc);
        }
    }
}
