#![allow(clippy::unwrap_used)]

use super::*;

#[test]
fn the_first_items_that_fit_are_used() {
    assert_eq!(fitting([1, 2, 3].into_iter(), 9, 9), 3);
    assert_eq!(fitting([1, 2, 3].into_iter(), 2, 9), 2);
    assert_eq!(fitting([1, 2, 3].into_iter(), 9, 5), 2);
    assert_eq!(fitting([6, 1].into_iter(), 9, 5), 0);
}

#[test]
fn the_first_256_recollections_are_used() {
    let recollection = |at: usize| Recollection { key: at.to_string(), text: String::new(), extra: Vec::new() };
    let (used, notice) = recollections((0..300).map(recollection).collect());
    assert!(notice.unwrap().contains("it recalled 300 memories"));
    assert_eq!((used.len(), used[0].key.as_str(), used[255].key.as_str()), (256, "0", "255"));
}

#[test]
fn a_description_that_is_too_long_is_cut_between_characters() {
    let skill = |name: &str| Skill {
        name: name.to_owned(),
        description: "é".repeat(DESCRIPTION),
        category: String::new(),
        tags: Vec::new(),
        platforms: Vec::new(),
        requires_toolsets: Vec::new(),
        fallback_for_toolsets: Vec::new(),
        extra: Vec::new(),
    };
    let (skills, notice) = skills(vec![skill("one"), skill("two")]);
    assert!(skills.iter().all(|skill| skill.description.len() == DESCRIPTION), "{skills:?}");
    assert_eq!(notice, None);
}
