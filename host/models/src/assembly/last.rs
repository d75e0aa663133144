//! Texts that a server sends twice: in pieces, and as a whole before or after the pieces.
//!
//! Every format has events with the whole text of a part. Some servers send only these events, others also the pieces. One rule
//! serves all: the last text counts. It continues the gathered text or replaces it.

/// The relation of a whole text to the gathered pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Last<'a> {
    /// Nothing.
    Same,
    /// It goes on with this.
    More(&'a str),
    /// It differs, and replaces the gathered text.
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

    /// The new part of a piece from the stream, without a repetition of the text that came in advance.
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

    /// Text that was held back as a possible repetition, but is not one.
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
