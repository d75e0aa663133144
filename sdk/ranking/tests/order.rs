//! What callers rely on: every text is a question, and the rules of the order.
#![allow(clippy::unwrap_used)]

use hermes_ranking::{CANDIDATES, Candidate, Near, Question, READ};
use proptest::prelude::*;

/// The order of the messages of a conversation for a question: those with a word of it are the candidates.
fn order(question: &str, messages: &[(bool, &str)]) -> Vec<u64> {
    let near: Vec<Near<'_>> =
        (0..).zip(messages).map(|(id, (reply, text))| Near { id, reply: *reply, length: text.len(), text }).collect();
    let mut question = Question::parse(question);
    let rare = vec![3; question.terms().len()];
    question.weigh(&rare, 1_000);
    let candidates: Vec<Candidate<'_>> = (0..near.len())
        .filter(|at| !hermes_ranking::matches(&question, near[*at].text).is_empty())
        .map(|at| Candidate {
            message: near[at],
            before: near[..at].iter().rev().take(2).copied().collect(),
            after: near[at + 1..].iter().take(2).copied().collect(),
        })
        .collect();
    question.rank(&candidates).into_iter().map(|ranked| ranked.id).collect()
}

#[test]
fn words_count_by_their_stems() {
    assert_eq!(
        order("Which ferries left?", &[(false, "Nothing here."), (false, "A ferry leaves."), (true, "No.")])[0],
        1
    );
}

#[test]
fn a_message_gets_a_share_of_what_its_neighbours_say() {
    let messages = [
        (false, "Unrelated."),
        (false, "Still nothing."),
        (false, "Where is the ferry?"),
        (true, "At pier four."),
        (false, "Fine."),
        (false, "Something else."),
    ];
    let order = order("ferry", &messages);
    assert_eq!(order[0], 2);
    let mut others = order[1..].to_vec();
    others.sort_unstable();
    assert_eq!(others, [0, 1, 3, 4], "those that are further away are not found");
}

#[test]
fn the_person_whom_the_question_names_is_preferred_as_the_speaker() {
    let messages = [
        (false, "Ada: I like the harbour."),
        (false, "x"),
        (false, "x"),
        (false, "x"),
        (false, "x"),
        (false, "Bob: I like the harbour."),
    ];
    assert_eq!(order("What does Bob like about the harbour?", &messages)[0], 5);
    assert_eq!(order("What does Ada like about the harbour?", &messages)[0], 0);
}

#[test]
fn long_replies_count_less_than_what_a_person_said() {
    let reply = format!("The harbour opens at nine. {}", "More about harbours and ferries. ".repeat(40));
    let messages =
        [(true, reply.as_str()), (false, "x"), (false, "x"), (false, "x"), (false, "I go to the harbour at nine.")];
    assert_eq!(order("When do I go to the harbour?", &messages)[0], 4);
}

#[test]
fn the_first_hits_show_different_places() {
    // One place with three near copies, and another.
    let messages = [
        (false, "ferry ferry pier"),
        (false, "ferry ferry pier"),
        (false, "ferry ferry pier"),
        (false, "x"),
        (false, "x"),
        (false, "x"),
        (false, "the ferry"),
    ];
    let order = order("ferry pier", &messages);
    assert!(order[..2].contains(&6), "{order:?}");
}

#[test]
fn messages_with_more_and_rarer_words_are_chosen_first() {
    let mut question = Question::parse("harbour ferry timetable");
    question.weigh(&[400, 2, 1], 1_000);
    let chosen = question.choose(&[vec![1, 2, 3, 4], vec![4, 5], vec![6]]);
    let order: Vec<u64> = chosen.iter().map(|(message, _)| *message).collect();
    assert_eq!(order, [4, 6, 5, 3, 2, 1]);
    assert!(chosen.is_sorted_by(|a, b| a.1 >= b.1));
}

#[test]
fn words_behind_what_is_read_count_if_the_index_found_them() {
    let deep = format!("{} timetable", "words ".repeat(READ));
    let message = |id, text| Near { id, reply: false, length: str::len(text), text };
    let mut question = Question::parse("the late timetable");
    question.weigh(&[60, 2], 100);
    let candidates = [(1, "late"), (2, deep.as_str())]
        .map(|(id, text)| Candidate { message: message(id, text), ..Candidate::default() });
    let weights: Vec<f64> = question.choose(&[vec![1], vec![2]]).iter().rev().map(|(_, weight)| *weight).collect();
    assert_eq!(question.rank(&candidates)[0].id, 1);
    assert_eq!(question.rank_weighed(&candidates, &weights)[0].id, 2);
}

#[test]
fn common_words_alone_are_a_question_too() {
    assert_eq!(Question::parse("who are you").terms().len(), 3);
    assert_eq!(Question::parse("who are the ferries").terms().len(), 1);
    assert!(Question::parse(" .,!").is_empty());
}

proptest! {
    #[test]
    fn every_text_is_a_safe_expression(text in ".{0,400}", count in 0_u64..9_000) {
        let mut question = Question::parse(&text);
        let counts = vec![count; question.terms().len()];
        question.weigh(&counts, 10_000);
        let expression = question.expression();
        prop_assert_eq!(expression.is_empty(), question.is_empty() || count == 0);
        for word in expression.split(" OR ").filter(|word| !word.is_empty()) {
            let inner = word.strip_prefix('"').and_then(|word| word.strip_suffix('"')).unwrap();
            let safe = !inner.is_empty() && !inner.contains(|letter: char| letter.is_ascii() && !letter.is_alphanumeric());
            prop_assert!(safe, "{}", expression);
        }
    }

    #[test]
    fn each_message_stands_once_and_scores_fall(texts in proptest::collection::vec("(ferry|pier|x| |Ada: ){0,8}", 0..40)) {
        let near: Vec<Near<'_>> =
            (0..).zip(&texts).map(|(id, text)| Near { id, reply: id % 2 == 1, length: text.len(), text }).collect();
        // Every candidate twice.
        let candidates: Vec<Candidate<'_>> =
            near.iter().chain(&near).map(|message| Candidate { message: *message, ..Candidate::default() }).collect();
        let mut question = Question::parse("Is the ferry at Ada's pier?");
        let counts = vec![2; question.terms().len()];
        question.weigh(&counts, 100);
        let ranked = question.rank(&candidates);
        let mut ids: Vec<u64> = ranked.iter().map(|one| one.id).collect();
        ids.sort_unstable();
        prop_assert_eq!(ids, (0..texts.len().min(CANDIDATES) as u64).collect::<Vec<_>>());
        prop_assert!(ranked.windows(2).all(|two| two[0].score >= two[1].score));
        prop_assert_eq!(question.rank(&candidates), ranked);
    }
}
