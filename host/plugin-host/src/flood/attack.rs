//! Plugins that flood the host with texts of many megabytes.
#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use hermes_conversation::{MessageId, MessageRange, Segment};
use hermes_runtime::{Effect, OfferedSchema};

use super::*;

const MIB: usize = 1 << 20;
/// Far more than the work takes in a debug build on a busy machine.
const DEADLINE: Duration = Duration::from_secs(600);

fn recollection(key: &str, text: String) -> Recollection {
    Recollection { key: key.to_owned(), text, extra: vec![("x".to_owned(), "y".repeat(100))] }
}

#[test]
fn recalled_text_that_no_message_has_room_for_is_left_out_before_any_work() {
    let begun = Instant::now();
    let hostile = "<memory-context>".repeat(4 * MIB);
    let (used, notice) = recollections(vec![recollection("big", hostile), recollection("small", "tea".to_owned())]);
    assert_eq!(used, [Recollection { key: "small".to_owned(), text: "tea".to_owned(), extra: Vec::new() }]);
    assert!(notice.unwrap().contains("it recalled 2 memories"));
    assert!(begun.elapsed() < DEADLINE, "{:?}", begun.elapsed());
}

#[test]
fn all_recollections_together_have_a_limit() {
    let (used, _) = recollections((0..256).map(|_| recollection("k", "x".repeat(RECOLLECTION))).collect());
    assert_eq!(used.len(), 31, "31 texts of 32 KiB with their keys fit into 1 MiB");
    let (used, _) = recollections(vec![recollection(&"k".repeat(2 * MIB), "tea".to_owned())]);
    assert!(used.is_empty(), "a key is no place for a text");
}

#[test]
fn a_provider_prompt_is_used_whole_or_not_at_all() {
    assert_eq!(prompt("p".repeat(PROMPT)), ("p".repeat(PROMPT), None));
    let (text, notice) = prompt("p".repeat(300_000));
    assert_eq!(text, "");
    assert_eq!(notice.unwrap(), "its part of the system prompt has 292 KiB, more than 64 KiB: it is left out");
}

#[test]
fn a_reason_is_one_short_line_and_further_fields_are_few_and_short() {
    let extra = |count: usize, value: usize| (0..count).map(move |at| (format!("k{at}"), "v".repeat(value)));
    let segments = vec![Segment::Keep(MessageRange::one(MessageId(1)))];
    let hostile = Plan {
        segments: segments.clone(),
        reason: format!("folded\u{1b}[2J {}", "r".repeat(3 * MIB)),
        extra: extra(1_000, 10).chain(extra(1, 2 * MIB)).collect(),
    };
    let plan = plan(hostile);
    assert!(plan.reason.starts_with("folded [2J rrr") && plan.reason.len() <= REASON + "…".len(), "{}", plan.reason);
    assert_eq!((plan.extra.len(), plan.segments), (EXTRA, segments));
    let long =
        super::plan(Plan { segments: Vec::new(), reason: "\nfolded".to_owned(), extra: extra(3, 2 * MIB).collect() });
    assert_eq!((long.reason.as_str(), long.extra.len()), ("", 0), "only the first line counts");
}

#[test]
fn a_status_a_reason_of_a_hook_and_the_name_of_a_model_are_cut() {
    assert_eq!(status("{\"a\":1}".to_owned()), ("{\"a\":1}".to_owned(), None));
    let (text, notice) = status("x".repeat(8 * MIB));
    assert!(text == "{}" && notice.is_some());
    for hostile in [Verdict::Block("é".repeat(MIB)), Verdict::Ask("é".repeat(MIB))] {
        let (Verdict::Block(why) | Verdict::Ask(why)) = verdict(hostile) else { panic!("it proceeds") };
        assert_eq!(why, "é".repeat(WHY / 2));
    }
    let named = EmbeddingModel { provider: "p".to_owned(), name: "é".repeat(MIB), dimensions: Some(3) };
    assert_eq!(model(named).name.len(), MODEL);
    assert_eq!(keep("é".repeat(MIB)).len(), KEEP);
}

#[test]
fn every_text_of_a_tool_and_a_skill_counts() {
    let tool = |beside: usize| Tool {
        schema: OfferedSchema {
            name: "t".to_owned(),
            description: String::new(),
            parameters: "{}".to_owned(),
            extra: vec![("x".to_owned(), "y".repeat(MIB))],
        },
        title: Some("t".repeat(beside)),
        output_schema: Some("o".repeat(beside)),
        toolset: "s".repeat(beside),
        parallel: true,
        effect: Effect::Reads,
        idempotent: true,
        open_world: false,
        extra: vec![("x".to_owned(), "y".repeat(MIB))],
    };
    let (used, notice) = tools(vec![tool(10), tool(100 << 10)]);
    assert_eq!((used.len(), used[0].extra.len(), used[0].schema.extra.len()), (1, 0, 0));
    let limit = |value: String| (TIME_LIMIT.to_owned(), value);
    let asking = |extra: &[(String, String)]| tools(vec![Tool { extra: extra.to_vec(), ..tool(0) }]).0.remove(0).extra;
    let once = limit("600000".to_owned());
    assert_eq!(asking(&[("x".to_owned(), String::new()), once.clone(), once.clone()]), [once]);
    assert_eq!(asking(&[limit("9".repeat(MIB))]), []);
    assert!(notice.unwrap().contains("only the first 1 are used"));
    let skill = |tags: usize| Skill {
        name: "s".to_owned(),
        description: String::new(),
        category: String::new(),
        tags: vec![String::new(); tags],
        platforms: Vec::new(),
        requires_toolsets: Vec::new(),
        fallback_for_toolsets: Vec::new(),
        extra: Vec::new(),
    };
    let (used, _) = skills(vec![skill(3), skill(MIB)]);
    assert_eq!(used.len(), 1, "empty tags take memory, too");
    let further = |key: &str, value: usize| (key.to_owned(), "v".repeat(value));
    let with = |extra| skills(vec![Skill { extra, ..skill(0) }]).0.remove(0).extra;
    assert_eq!(with(vec![further("x", 1), further("folder", MIB), further("command", 1)]), [further("command", 1)]);
    assert_eq!(with(vec![further("command", 1); MIB]).len(), SKILL_EXTRA);
}

#[test]
fn further_fields_of_a_result_are_bounded_and_its_content_is_not() {
    let hostile = Output {
        content: "c".repeat(2 * MIB),
        images: Vec::new(),
        structured: None,
        extra: (0..100_000).map(|at| (format!("k{at}"), "v".to_owned())).collect(),
    };
    let output = super::output(hostile);
    assert_eq!((output.extra.len(), output.content.len()), (EXTRA, 2 * MIB));
    let field = |name: &str| (name.to_owned(), "v".repeat(2 * MIB));
    let fields = |extra| super::output(Output { content: String::new(), images: Vec::new(), structured: None, extra });
    assert_eq!(fields(vec![field("k")]).extra.len(), 0);
    assert_eq!(fields(vec![field(WHOLE_TEXT), field("k")]).extra, [field(WHOLE_TEXT)]);
}
