//! Names of skills.

/// Most characters of a name.
pub const MOST_NAME: usize = 64;

/// Whether a skill can have this name. Names of installed skills must also be valid names of folders.
pub fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().count() <= MOST_NAME && has_plain_characters(name)
}

fn has_plain_characters(name: &str) -> bool {
    name.chars().all(|character| character.is_alphanumeric() || "-_.".contains(character))
}
