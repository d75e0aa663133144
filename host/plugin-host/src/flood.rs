//! Limits on the texts that a plugin hands to the host, applied before any other work on them. Everything beyond a limit is cut
//! off or left out, with a notice. `docs/plugins/limits.md` lists these limits and those of other crates.

use hermes_conversation::{Plan, one_line_within};
use hermes_runtime::services::EmbeddingModel;
use hermes_runtime::{CallPreview, Output, Recollection, Skill, TIME_LIMIT, Tool, Verdict};

use crate::declared::KEYS;

/// The most tools of a plugin. Providers accept no more in one request.
const TOOLS: usize = 128;
/// The most bytes of the definitions of all of a plugin's tools.
const TOOLS_BYTES: usize = 256 << 10;
/// The most skills of a plugin in the index.
const SKILLS: usize = 1_000;
/// The most bytes of a skill's description: the index is part of every request.
const DESCRIPTION: usize = 1 << 10;
/// The most further fields of a skill.
const SKILL_EXTRA: usize = 128;
/// The most bytes of the texts of all of a plugin's skills.
const SKILLS_BYTES: usize = 256 << 10;
/// The most recollections of one turn. A few thousand tokens have room for no more.
const RECOLLECTIONS: usize = 256;
/// The most bytes of a recollection. A message has room for 2,000 tokens of recalled text, which are 18 KB at most.
const RECOLLECTION: usize = 32 << 10;
/// The most bytes of a recollection's key.
const RECOLLECTION_KEY: usize = 1 << 10;
/// The most bytes of all recollections of one turn.
const RECOLLECTIONS_BYTES: usize = 1 << 20;
/// The most bytes of a memory provider's text for the system prompt.
const PROMPT: usize = 64 << 10;
/// The most bytes of what a summary should keep. The host uses 6,000 characters of it.
const KEEP: usize = 64 << 10;
/// The most bytes of the reason of a plan: a line for people.
const REASON: usize = 300;
/// The most further fields of a plan, of a result or of a generation, and the most bytes of a name and a value.
const EXTRA: usize = 32;
const EXTRA_NAME: usize = 64;
const EXTRA_VALUE: usize = 1 << 10;
/// The further field of a result with a text that the host keeps as a file.
pub const WHOLE_TEXT: &str = "whole-text";
/// The most bytes of the further fields of a result. They may describe writes of a memory provider.
const OUTPUT_EXTRA: usize = 256 << 10;
/// The most bytes of an engine's status.
const STATUS: usize = 64 << 10;
/// The most bytes of a hook's reason.
const WHY: usize = 4 << 10;
/// The most bytes of the sentence that says what a call would do.
const SENTENCE: usize = 300;
/// The most bytes of the name of an embedder's model.
const MODEL: usize = 200;

/// The tools of a catalog that are offered to the model, and a notice about the others.
pub(crate) fn tools(mut tools: Vec<Tool>) -> (Vec<Tool>, Option<String>) {
    for tool in &mut tools {
        // The host reads no other field.
        tool.extra.retain(|(key, value)| key == TIME_LIMIT && value.len() <= EXTRA_VALUE);
        tool.extra.truncate(1);
        tool.schema.extra.clear();
    }
    let size = |tool: &Tool| {
        let schema = tool.schema.name.len() + tool.schema.description.len() + tool.schema.parameters.len();
        let beside = tool.title.as_ref().map_or(0, String::len) + tool.output_schema.as_ref().map_or(0, String::len);
        schema + beside + tool.toolset.len()
    };
    let all = tools.len();
    tools.truncate(fitting(tools.iter().map(size), TOOLS, TOOLS_BYTES));
    let offered = tools.len();
    let notice = (offered < all).then(|| {
        format!(
            "it offers {all} tools, more than {} or more than {} KiB of definitions: only the first {offered} are used",
            TOOLS,
            TOOLS_BYTES >> 10
        )
    });
    (tools, notice)
}

/// The skills of an index that are shown to the model, and a notice about the others.
pub(crate) fn skills(mut skills: Vec<Skill>) -> (Vec<Skill>, Option<String>) {
    let all = skills.len();
    for skill in &mut skills {
        skill.description.truncate(skill.description.floor_char_boundary(DESCRIPTION));
        skill.extra.retain(|(key, value)| KEYS.contains(&key.as_str()) && value.len() <= EXTRA_VALUE);
        skill.extra.truncate(SKILL_EXTRA);
    }
    let size = |skill: &Skill| {
        let lists = [&skill.tags, &skill.platforms, &skill.requires_toolsets, &skill.fallback_for_toolsets];
        let listed: usize = lists.into_iter().flatten().map(|text| text.len() + 1).sum();
        let extra: usize = skill.extra.iter().map(|(key, value)| key.len() + value.len()).sum();
        skill.name.len() + skill.category.len() + skill.description.len() + listed + extra
    };
    skills.truncate(fitting(skills.iter().map(size), SKILLS, SKILLS_BYTES));
    let shown = skills.len();
    let notice = (shown < all).then(|| {
        let kib = SKILLS_BYTES >> 10;
        format!(
            "it has {all} skills, more than {SKILLS} or more than {kib} KiB: only the first {shown} are in the index"
        )
    });
    (skills, notice)
}

/// The recollections that are used, and a notice about the others. The best come first, so the worst are cut off.
pub(crate) fn recollections(mut recalled: Vec<Recollection>) -> (Vec<Recollection>, Option<String>) {
    let all = recalled.len();
    recalled.truncate(RECOLLECTIONS);
    recalled.retain(|one| one.text.len() <= RECOLLECTION && one.key.len() <= RECOLLECTION_KEY);
    let size = |one: &Recollection| one.key.len() + one.text.len();
    recalled.truncate(fitting(recalled.iter().map(size), RECOLLECTIONS, RECOLLECTIONS_BYTES));
    for one in &mut recalled {
        one.extra = Vec::new();
    }
    let used = recalled.len();
    let notice = (used < all).then(|| {
        format!(
            "it recalled {all} memories, more than {RECOLLECTIONS}, or with texts of more than {} KiB: {used} are used",
            RECOLLECTION >> 10
        )
    });
    (recalled, notice)
}

/// A memory provider's text for the system prompt, and a notice if it is left out. A part of it could say something else.
pub(crate) fn prompt(text: String) -> (String, Option<String>) {
    left_out_beyond(PROMPT, text, "its part of the system prompt")
}

/// An engine's status, and a notice if it is left out.
pub(crate) fn status(text: String) -> (String, Option<String>) {
    let (text, notice) = left_out_beyond(STATUS, text, "its status");
    (if notice.is_some() { "{}".to_owned() } else { text }, notice)
}

fn left_out_beyond(most: usize, text: String, what: &str) -> (String, Option<String>) {
    if text.len() <= most {
        return (text, None);
    }
    let notice = format!("{what} has {} KiB, more than {} KiB: it is left out", text.len() >> 10, most >> 10);
    (String::new(), Some(notice))
}

/// The beginning of what a summary should keep.
pub(crate) fn keep(text: String) -> String {
    beginning(text, KEEP)
}

/// A plan with a reason of one short line. Its segments have limits of their own, by the conversation.
pub(crate) fn plan(mut plan: Plan) -> Plan {
    let first = plan.reason.lines().next().unwrap_or_default();
    plan.reason = one_line_within(&first[..first.floor_char_boundary(4 * REASON)], REASON);
    plan.extra.truncate(EXTRA);
    plan.extra.retain(|(name, value)| name.len() <= EXTRA_NAME && value.len() <= EXTRA_VALUE);
    plan
}

/// A tool's result. Only its further fields have limits here: the host stores the content, and cuts what the model sees.
pub(crate) fn output(mut output: Output) -> Output {
    // The text for a file is not kept in memory, and `output` limits it.
    let kept = |name: &str, value: &str| if name == WHOLE_TEXT { 0 } else { value.len() };
    let size = |(name, value): &(String, String)| name.len() + kept(name, value);
    let fields = fitting(output.extra.iter().map(size), EXTRA, OUTPUT_EXTRA);
    output.extra.truncate(fields);
    output
}

/// A hook's verdict with a short reason.
pub(crate) fn verdict(verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Proceed => Verdict::Proceed,
        Verdict::Block(why) => Verdict::Block(beginning(why, WHY)),
        Verdict::Ask(why) => Verdict::Ask(beginning(why, WHY)),
    }
}

/// What a call would do, in one short line.
pub(crate) fn preview(preview: CallPreview) -> CallPreview {
    let line = |sentence: String| {
        Some(one_line_within(&beginning(sentence, 4 * SENTENCE), SENTENCE)).filter(|line| !line.trim().is_empty())
    };
    CallPreview { sentence: preview.sentence.and_then(line), ..preview }
}

/// An embedder's model with a short name.
pub(crate) fn model(model: EmbeddingModel) -> EmbeddingModel {
    EmbeddingModel { name: beginning(model.name, MODEL), ..model }
}

fn beginning(mut text: String, bytes: usize) -> String {
    if text.len() > bytes {
        text.truncate(text.floor_char_boundary(bytes));
        text.shrink_to_fit();
    }
    text
}

/// How many sizes, from the first on, fit into both `count` and `bytes`.
fn fitting(sizes: impl Iterator<Item = usize>, count: usize, bytes: usize) -> usize {
    let mut left = bytes;
    let fits = |size: &usize| left.checked_sub(*size).inspect(|rest| left = *rest).is_some();
    sizes.take(count).take_while(fits).count()
}

#[cfg(test)]
mod attack;
#[cfg(test)]
mod tests;
