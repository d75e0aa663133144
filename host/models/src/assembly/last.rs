//! What a server says once more when a part of a reply is whole, or said in advance when it began.
//!
//! Every format has events with the whole of what was streamed, and imitators send only those, or both. The rule is one for all: what comes
//! last counts. It goes on with what was gathered, or takes its place.

/// What a whole text adds to what was gathered of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Last<'a> {
    /// Nothing.
    Same,
    /// It goes on with this.
    More(&'a str),
    /// It differs, and takes the place of what was gathered.
    Instead,
}

impl<'a> Last<'a> {
    /// A whole that is empty says nothing: servers leave it out.
    pub(super) fn of(gathered: &str, whole: &'a str) -> Self {
        match whole.strip_prefix(gathered) {
            Some(more) if !more.is_empty() => Self::More(more),
            None if !whole.is_empty() => Self::Instead,
            _ => Self::Same,
        }
    }
}

/// A text that a part began with. Some servers stream it again, others stream what follows it.
#[derive(Debug, Default)]
pub(super) struct Given {
    text: String,
    /// As much of it as came again.
    again: String,
}

impl Given {
    /// Adds to the text that was there from the beginning.
    pub(super) fn add(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Whether nothing was given, or all of it is settled.
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// What a piece of the stream adds to it.
    pub(super) fn fresh(&mut self, more: &str) -> String {
        if self.text.is_empty() {
            return more.to_owned();
        }
        self.again.push_str(more);
        if self.text.starts_with(&self.again) {
            return String::new();
        }
        let (text, again) = (std::mem::take(&mut self.text), std::mem::take(&mut self.again));
        again.strip_prefix(text.as_str()).map(str::to_owned).unwrap_or(again)
    }

    /// What looked like the beginning of the same text again, and was not.
    pub(super) fn rest(&mut self) -> String {
        let (text, again) = (std::mem::take(&mut self.text), std::mem::take(&mut self.again));
        if text == again { String::new() } else { again }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_last_goes_on_or_takes_the_place() {
        for (gathered, whole, last) in [
            ("", "", Last::Same),
            ("Hello", "", Last::Same),
            ("Hello", "Hello", Last::Same),
            ("", "Hello", Last::More("Hello")),
            ("Hel", "Hello", Last::More("lo")),
            ("Hello", "Hel", Last::Instead),
            ("HelloHello", "Hello", Last::Instead),
            ("Bye", "Hello", Last::Instead),
        ] {
            assert_eq!(Last::of(gathered, whole), last, "{gathered} {whole}");
        }
    }

    #[test]
    fn what_was_given_is_said_once() {
        for (given, streamed, said) in [
            ("Hello", &["Hel", "lo"][..], "Hello"),
            ("Hello", &["Hel", "lo, you"], "Hello, you"),
            ("Hel", &["lo"], "Hello"),
            ("Hello", &["Help"], "HelloHelp"),
            ("Hello", &["H"], "HelloH"),
            ("Hello", &[], "Hello"),
            ("", &["Hel", "lo"], "Hello"),
        ] {
            let mut given_text = Given::default();
            given_text.add(given);
            let streamed: String = streamed.iter().map(|more| given_text.fresh(more)).collect();
            assert_eq!(given.to_owned() + &streamed + &given_text.rest(), said, "{given} {streamed}");
        }
    }
}
