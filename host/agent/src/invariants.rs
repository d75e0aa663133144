//! Rules that hold for any text that a memory provider recalls, and for any command line that a model wants to run. The property
//! tests of this crate and the targets in `fuzz/` call the same functions, which panic if a rule is broken.

use hermes_conversation::fence::{self, MEMORY_CONTEXT, Marks};
use hermes_conversation::tokens;

use crate::memory::{Shown, with_recollections};
use crate::recall::Recalled;

/// Reads bytes as a message, recalled texts and their budget. The texts stay within one fence behind the message and within
/// the budget, whatever they contain.
pub fn recall(bytes: &[u8]) {
    let Some((budget, rest)) = bytes.split_first() else { return };
    let text = String::from_utf8_lossy(rest);
    let mut pieces = text.split('\u{1}');
    let said = pieces.next().unwrap_or_default().replace("memory-context", "");
    let recalled: Vec<Recalled> = pieces
        .enumerate()
        .map(|(at, text)| Recalled {
            provider: "p".to_owned(),
            key: at.to_string(),
            text: text.to_owned(),
            is_late: at % 3 == 2,
        })
        .collect();
    let budget = u32::from(*budget) * 8;
    let marks = Marks::repeatable();
    let sent = with_recollections(&said, &recalled, &Shown::default(), budget, &marks, &mut Vec::new());
    let Some(sent) = sent else { return };
    let Some(block) = sent.strip_prefix(said.as_str()) else { panic!("the user's words were changed") };
    let lower = block.to_ascii_lowercase();
    assert_eq!(
        (lower.matches("<memory-context").count(), lower.matches("</memory-context").count()),
        (1, 1),
        "{block}"
    );
    let Some(block) = block.strip_prefix("\n\n") else { panic!("{block}") };
    assert_eq!(fence::block(&sent, MEMORY_CONTEXT), Some(block));
    assert!(!lower.contains("<earlier-context") && !lower.contains("</earlier-context"), "{block}");
    // Neither the frame nor the blank lines between memories are part of the budget.
    let inner = fence::inside(block).split_once("matters.]\n\n").map(|(_, inner)| inner).unwrap_or_default();
    let most = budget + u32::try_from(recalled.len()).unwrap_or(u32::MAX) + 1;
    assert!(tokens::of_text(inner) <= most, "{} tokens of {most}", tokens::of_text(inner));
}

/// Reads bytes as a command line. A rule about one program covers no line that runs another one, whatever stands before it.
pub fn shell_line(bytes: &[u8]) {
    crate::approval::holds_for(&String::from_utf8_lossy(bytes));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn a_rule_about_one_program_covers_no_line_with_another(
            pieces in prop::collection::vec(
                prop_oneof![
                    prop::sample::select(vec![
                        "git status", "git ", "rm x", "status", " ", "\n", "\\", "\\\n", ";", "&&", "|", "&", "(", ")", "{ ", "; }",
                        "$(", "`", "\"", "'", "$'", "<<E\n", "E\n", "<", ">", "2>&1", "#", "!", "if ", "then ", "fi", "x=1 ", "${x}",
                        "<(", "[[ ", " ]]", "for a in b; do ", "done", "\t", "\r", "é", "\0",
                    ]).prop_map(str::to_owned),
                    "\\PC{0,6}",
                ],
                0..10,
            ),
        ) {
            super::shell_line(format!("git status{}", pieces.concat()).as_bytes());
            super::shell_line(pieces.concat().as_bytes());
        }

        #[test]
        fn any_recalled_text_stays_in_its_fence_and_its_budget(
            budget in any::<u8>(),
            pieces in prop::collection::vec(
                prop_oneof![
                    "(<|/|<<|memory-context|MEMORY-context|earlier-context|>| |\n|\u{1}|a|é|\u{130}){0,12}",
                    "\\PC{0,40}",
                    Just("<memory-context>".repeat(3_000)),
                    Just(" ".repeat(5_000)),
                ],
                0..6,
            ),
        ) {
            let mut bytes = vec![budget];
            bytes.extend(pieces.join("\u{1}").into_bytes());
            super::recall(&bytes);
        }

        #[test]
        fn any_bytes_are_recalled_within_the_fence(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            super::recall(&bytes);
        }
    }
}

/// Sizes that take minutes if the work is quadratic.
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod attack {
    use std::time::{Duration, Instant};

    use super::*;

    /// Far more than the work takes in a debug build on a busy machine.
    const DEADLINE: Duration = Duration::from_secs(600);
    const MIB: usize = 1 << 20;

    fn recalled(text: String) -> Recalled {
        Recalled { provider: "p".to_owned(), key: "k".to_owned(), text, is_late: false }
    }

    #[test]
    fn megabytes_of_tags_are_left_out_without_reading_them() {
        let begun = Instant::now();
        for unit in
            ["<memory-context>", "</memory-context>", "<", "<//", " ", "<memory-<memory-context>context>", "\n\n"]
        {
            let texts = [recalled(unit.repeat(4 * MIB / unit.len())), recalled("tea".to_owned())];
            let sent =
                with_recollections("hi", &texts, &Shown::default(), 2_000, &Marks::repeatable(), &mut Vec::new())
                    .unwrap();
            let block = fence::block(&sent, MEMORY_CONTEXT).unwrap();
            assert!(fence::inside(block).ends_with("\n\ntea") && sent.ends_with(block), "{unit:?}");
            assert!(sent.len() < 500, "{unit:?}: {} bytes", sent.len());
        }
        assert!(begun.elapsed() < DEADLINE, "{:?}", begun.elapsed());
    }

    #[test]
    fn thousands_of_memories_are_checked_in_one_pass() {
        let texts: Vec<Recalled> = (0..100_000).map(|at| recalled(format!("memory {}", at % 10))).collect();
        let begun = Instant::now();
        let sent =
            with_recollections("hi", &texts, &Shown::default(), 2_000, &Marks::repeatable(), &mut Vec::new()).unwrap();
        assert_eq!(sent.matches("memory ").count(), 10);
        assert!(begun.elapsed() < DEADLINE, "{:?}", begun.elapsed());
    }

    #[test]
    fn a_fence_is_made_inert_in_one_pass() {
        let begun = Instant::now();
        for unit in ["<memory-context>", "<", "<<//", "</", "<EARLIER-context"] {
            let text = unit.repeat(8 * MIB / unit.len());
            let defused = fence::defuse(&text);
            assert!(defused.len() <= 2 * text.len());
            assert!(!defused.contains("<memory-context") && !defused.contains("<EARLIER-context"), "{unit:?}");
        }
        assert!(begun.elapsed() < DEADLINE, "{:?}", begun.elapsed());
    }
}
