//! Bounds on what a plugin may put before a model: what would flood a prompt is cut here, and that is told.

use hermes_runtime::{Recollection, Skill, Tool};

/// As many tools as providers take in one request.
const TOOLS: usize = 128;
/// Bytes of the definitions of all of a plugin's tools.
const TOOLS_BYTES: usize = 256 << 10;
/// Skills in the index, each with a name and a description.
const SKILLS: usize = 1_000;
/// Bytes of a skill's description: the index is part of every request.
const DESCRIPTION: usize = 1 << 10;
/// Bytes of the names and descriptions of all of a plugin's skills.
const SKILLS_BYTES: usize = 256 << 10;
/// Recollections of one turn, which a few thousand tokens have room for.
const RECOLLECTIONS: usize = 256;

/// The tools that are offered of those in a catalog, and what is to be said of the others.
pub(crate) fn tools(mut tools: Vec<Tool>) -> (Vec<Tool>, Option<String>) {
    let size = |tool: &Tool| tool.schema.name.len() + tool.schema.description.len() + tool.schema.parameters.len();
    let all = tools.len();
    tools.truncate(fitting(tools.iter().map(size), TOOLS, TOOLS_BYTES));
    let offered = tools.len();
    let told = (offered < all).then(|| {
        format!(
            "it offers {all} tools, and {} of all its tools and {} KiB of definitions are taken: the first {offered} are offered",
            TOOLS,
            TOOLS_BYTES >> 10
        )
    });
    (tools, told)
}

/// The skills that are shown of those in an index, and what is to be said of the others.
pub(crate) fn skills(mut skills: Vec<Skill>) -> (Vec<Skill>, Option<String>) {
    let all = skills.len();
    for skill in &mut skills {
        skill.description.truncate(skill.description.floor_char_boundary(DESCRIPTION));
    }
    let size = |skill: &Skill| skill.name.len() + skill.category.len() + skill.description.len();
    skills.truncate(fitting(skills.iter().map(size), SKILLS, SKILLS_BYTES));
    let shown = skills.len();
    let told = (shown < all).then(|| {
        let kib = SKILLS_BYTES >> 10;
        format!(
            "it has {all} skills, and {SKILLS} of them with {kib} KiB are shown: the first {shown} are in the index"
        )
    });
    (skills, told)
}

/// The recollections that are looked at: best first, so the rest is the worst.
pub(crate) fn recollections(mut recalled: Vec<Recollection>) -> Vec<Recollection> {
    recalled.truncate(RECOLLECTIONS);
    recalled
}

/// How many of these from the first on are no more than `count` and have no more than `bytes`.
fn fitting(sizes: impl Iterator<Item = usize>, count: usize, bytes: usize) -> usize {
    let mut left = bytes;
    let fits = |size: &usize| left.checked_sub(*size).inspect(|rest| left = *rest).is_some();
    sizes.take(count).take_while(fits).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_fit_are_taken() {
        assert_eq!(fitting([1, 2, 3].into_iter(), 9, 9), 3);
        assert_eq!(fitting([1, 2, 3].into_iter(), 2, 9), 2);
        assert_eq!(fitting([1, 2, 3].into_iter(), 9, 5), 2);
        assert_eq!(fitting([6, 1].into_iter(), 9, 5), 0);
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
        let (skills, told) = skills(vec![skill("one"), skill("two")]);
        assert!(skills.iter().all(|skill| skill.description.len() == DESCRIPTION), "{skills:?}");
        assert_eq!(told, None);
    }
}
