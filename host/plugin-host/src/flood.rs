//! Limits on what a plugin may add to a prompt. The rest is cut off, with a notice.

use hermes_runtime::{Recollection, Skill, Tool};

/// The most tools of a plugin. Providers accept no more in one request.
const TOOLS: usize = 128;
/// The most bytes of the definitions of all of a plugin's tools.
const TOOLS_BYTES: usize = 256 << 10;
/// The most skills of a plugin in the index.
const SKILLS: usize = 1_000;
/// The most bytes of a skill's description: the index is part of every request.
const DESCRIPTION: usize = 1 << 10;
/// The most bytes of the names and descriptions of all of a plugin's skills.
const SKILLS_BYTES: usize = 256 << 10;
/// The most recollections of one turn. A few thousand tokens have room for no more.
const RECOLLECTIONS: usize = 256;

/// The tools of a catalog that are offered to the model, and a notice about the others.
pub(crate) fn tools(mut tools: Vec<Tool>) -> (Vec<Tool>, Option<String>) {
    let size = |tool: &Tool| tool.schema.name.len() + tool.schema.description.len() + tool.schema.parameters.len();
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
    }
    let size = |skill: &Skill| skill.name.len() + skill.category.len() + skill.description.len();
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

/// The recollections that are used. The best come first, so the worst are cut off.
pub(crate) fn recollections(mut recalled: Vec<Recollection>) -> Vec<Recollection> {
    recalled.truncate(RECOLLECTIONS);
    recalled
}

/// How many sizes, from the first on, fit into both `count` and `bytes`.
fn fitting(sizes: impl Iterator<Item = usize>, count: usize, bytes: usize) -> usize {
    let mut left = bytes;
    let fits = |size: &usize| left.checked_sub(*size).inspect(|rest| left = *rest).is_some();
    sizes.take(count).take_while(fits).count()
}

#[cfg(test)]
mod tests {
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
        let used = recollections((0..300).map(recollection).collect());
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
}
