//! What an effort becomes in the body of a request.

use super::{Effort, Thinking};

/// A member of the body: its name, and its value as JSON. `$` stands for the rung of the ladder.
pub(crate) type Member = (&'static str, &'static str);

/// The word, or the number of tokens, that each effort above none becomes, ascending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ladder(pub(crate) [&'static str; 6]);

impl Ladder {
    /// The rung of an effort; nothing for none.
    pub(crate) fn rung(&self, effort: Effort) -> Option<&'static str> {
        (effort as usize).checked_sub(1).map(|above_none| self.0[above_none])
    }
}

/// The members that switch thinking on and off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dial {
    /// None if the model thinks as it likes.
    pub(crate) on: &'static [Member],
    /// `None` for a model that always thinks.
    pub(crate) off: Option<&'static [Member]>,
    pub(crate) ladder: Ladder,
}

impl Dial {
    /// What the model can do with an effort.
    pub(crate) fn thinking(&self, effort: Effort) -> Thinking {
        match (self.on, self.off) {
            ([], _) => Thinking::Fixed,
            (_, None) if effort == Effort::None => Thinking::Least,
            _ => Thinking::Requested,
        }
    }

    /// The members of the body for an effort, each with its value as JSON.
    pub(crate) fn members(&self, effort: Effort) -> Vec<(&'static str, String)> {
        match (self.ladder.rung(effort), self.off) {
            (Some(rung), _) => self.on_at(rung),
            (None, Some(off)) => with(off, ""),
            (None, None) => self.on_at(self.ladder.0[0]),
        }
    }

    /// The members that switch thinking on, at a rung of the caller's choice.
    pub(crate) fn on_at(&self, rung: &str) -> Vec<(&'static str, String)> {
        with(self.on, rung)
    }
}

fn with(members: &[Member], rung: &str) -> Vec<(&'static str, String)> {
    members.iter().map(|(name, value)| (*name, value.replace('$', rung))).collect()
}

/// Adds members to a body that is a JSON object with at least one member.
pub(crate) fn append(head: &mut Vec<u8>, members: &[(&'static str, String)]) {
    head.pop();
    for (name, value) in members {
        head.extend_from_slice(format!(",\"{name}\":{value}").as_bytes());
    }
    head.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_effort_has_its_rung_and_none_has_members_of_its_own() {
        let ladder = Ladder(["1", "2", "3", "4", "5", "6"]);
        let rungs = Effort::ALL.map(|effort| ladder.rung(effort));
        assert_eq!(rungs, [None, Some("1"), Some("2"), Some("3"), Some("4"), Some("5"), Some("6")]);
        let dial = Dial { on: &[("a", r#"{"b":"$"}"#), ("c", "true")], off: Some(&[]), ladder };
        let mut head = br#"{"model":"m"}"#.to_vec();
        append(&mut head, &dial.members(Effort::Medium));
        assert_eq!(head, br#"{"model":"m","a":{"b":"3"},"c":true}"#);
        append(&mut head, &dial.members(Effort::None));
        assert_eq!(head, br#"{"model":"m","a":{"b":"3"},"c":true}"#);
        let ends = |dial: Dial| (dial.thinking(Effort::Low), dial.thinking(Effort::None));
        assert_eq!(ends(dial), (Thinking::Requested, Thinking::Requested));
        let always = Dial { off: None, ..dial };
        assert_eq!(ends(always), (Thinking::Requested, Thinking::Least));
        assert_eq!(always.members(Effort::None), dial.members(Effort::Minimal));
        assert_eq!(ends(Dial { on: &[], ..always }), (Thinking::Fixed, Thinking::Fixed));
    }
}
