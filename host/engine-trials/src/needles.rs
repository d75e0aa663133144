//! Needles: lines that occur in only one message, and whether an engine's tools find them again.

use std::collections::{HashMap, HashSet};

use hermes_conversation::{Message, MessageId, Role};
use serde::Serialize;

use crate::passage;

/// The most needles for each field.
const PER_FIELD: usize = 60;
/// The least number of letters of a search word.
const WORD: usize = 3;

/// The part of a message that contains a needle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Field {
    /// The user's text.
    User,
    /// The model's text.
    Assistant,
    /// The arguments of a call.
    Arguments,
    /// The result of a tool.
    Result,
}

/// A line to find again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Needle {
    /// The only message that contains it.
    pub id: MessageId,
    /// The part of the message.
    pub field: Field,
    /// The line.
    pub line: String,
    /// Its three rarest words, the rarest first.
    pub words: Vec<String>,
}

/// Access to an engine's recall tools.
pub trait Recall {
    /// The first page of a search, with the messages that it names.
    ///
    /// # Errors
    ///
    /// Returns the tool's error.
    fn search(&mut self, query: &str, phrase: bool) -> Result<Page, String>;

    /// A part of a message, joined from as many pages as necessary.
    ///
    /// # Errors
    ///
    /// Returns the tool's error.
    fn part(&mut self, id: MessageId, part: Part<'_>) -> Result<String, String>;

    /// What the tool says about a message beside its text: role, time, pictures and files.
    ///
    /// # Errors
    ///
    /// What the tool answered instead.
    fn about(&mut self, id: MessageId) -> Result<String, String>;
}

/// A page of a search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// The messages that it names.
    pub ids: Vec<MessageId>,
    /// Its text.
    pub text: String,
}

/// A part of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'a> {
    /// Its text.
    Text,
    /// The arguments of a call, by its id.
    Arguments(&'a str),
}

/// How much was recovered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Recovered {
    /// Needles that were searched for.
    pub needles: u64,
    /// Needles whose message was on the first page of a search for three words.
    pub by_words: u64,
    /// Needles whose text was on that page.
    pub text_by_words: u64,
    /// Needles whose message was on the first page of a search for the line.
    pub by_phrase: u64,
    /// Messages that were read back.
    pub messages: u64,
    /// Messages that came back unchanged, byte for byte.
    pub whole: u64,
    /// The first message that did not, and why.
    pub first_broken: Option<String>,
}

/// Selects needles from the folded messages, evenly spaced, up to a maximum for each field.
pub fn sample(messages: &[Message], is_folded: &dyn Fn(MessageId) -> bool) -> Vec<Needle> {
    let texts: Vec<Vec<(Field, String)>> = messages.iter().map(fields).collect();
    // How many messages contain a line or a word.
    let mut lines: HashMap<&str, u32> = HashMap::new();
    let mut words: HashMap<&str, u32> = HashMap::new();
    for fields in &texts {
        let of_message: HashSet<&str> = fields.iter().flat_map(|(_, text)| passage::lines(text)).collect();
        of_message.into_iter().for_each(|line| *lines.entry(line).or_default() += 1);
        let of_message: HashSet<&str> = fields.iter().flat_map(|(_, text)| words_of(text)).collect();
        of_message.into_iter().for_each(|word| *words.entry(word).or_default() += 1);
    }
    let mut found: HashMap<Field, Vec<Needle>> = HashMap::new();
    for (message, fields) in messages.iter().zip(&texts).filter(|(message, _)| is_folded(message.id)) {
        for (field, text) in fields {
            for line in passage::distinct(text).into_iter().filter(|line| lines[line] == 1) {
                let mut rarest: Vec<&str> = Vec::new();
                for word in words_of(line) {
                    if !rarest.contains(&word) {
                        rarest.push(word);
                    }
                }
                rarest.sort_by_key(|word| words[word]);
                if rarest.len() >= 3 {
                    let words = rarest[..3].iter().map(|word| (*word).to_owned()).collect();
                    let needle = Needle { id: message.id, field: *field, line: line.to_owned(), words };
                    found.entry(*field).or_default().push(needle);
                }
            }
        }
    }
    let mut sampled = Vec::new();
    for field in [Field::User, Field::Assistant, Field::Arguments, Field::Result] {
        let all = found.remove(&field).unwrap_or_default();
        let wanted = all.len().min(PER_FIELD);
        sampled.extend((0..wanted).map(|pick| all[pick * all.len() / wanted].clone()));
    }
    sampled
}

fn fields(message: &Message) -> Vec<(Field, String)> {
    let field = match message.role {
        Role::User | Role::System => Field::User,
        Role::Assistant => Field::Assistant,
        Role::Tool => Field::Result,
    };
    let mut fields = vec![(field, message.content.clone())];
    for call in &message.tool_calls {
        let mut text = String::new();
        passage::unescape(&call.arguments, &mut text);
        fields.push((Field::Arguments, text));
    }
    fields
}

fn words_of(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    text.split(move |character| !is_part(character)).filter(|word| word.chars().nth(WORD - 1).is_some())
}

/// Searches for the needles, and reads every message back.
pub fn recover(messages: &[Message], needles: &[Needle], recall: &mut dyn Recall) -> Recovered {
    let mut recovered = Recovered { needles: needles.len() as u64, ..Recovered::default() };
    for needle in needles {
        let page = recall.search(&needle.words.join(" "), false).unwrap_or_default();
        recovered.by_words += u64::from(page.ids.contains(&needle.id));
        recovered.text_by_words += u64::from(page.text.contains(&needle.line));
        let page = recall.search(&needle.line, true).unwrap_or_default();
        recovered.by_phrase += u64::from(page.ids.contains(&needle.id));
    }
    for message in messages {
        recovered.messages += 1;
        match is_whole(message, recall) {
            Ok(()) => recovered.whole += 1,
            Err(why) => drop(recovered.first_broken.get_or_insert_with(|| format!("message {}: {why}", message.id))),
        }
    }
    recovered
}

/// Checks that a message comes back unchanged.
///
/// # Errors
///
/// Returns a description of the difference.
pub fn is_whole(message: &Message, recall: &mut dyn Recall) -> Result<(), String> {
    let text = recall.part(message.id, Part::Text)?;
    same(&text, &message.content, "its text")?;
    for call in &message.tool_calls {
        let arguments = recall.part(message.id, Part::Arguments(&call.id))?;
        same(&arguments, &call.arguments, "the arguments of a call")?;
    }
    for media in message.media() {
        if let Some(name) = &media.name
            && !recall.about(message.id)?.contains(name.as_str())
        {
            return Err(format!("`{name}` is not named"));
        }
    }
    Ok(())
}

fn same(found: &str, original: &str, what: &str) -> Result<(), String> {
    if found == original {
        return Ok(());
    }
    let at = found.bytes().zip(original.bytes()).take_while(|(found, original)| found == original).count();
    Err(format!(
        "{what} comes back with {} bytes instead of {}, different from byte {at} on",
        found.len(),
        original.len()
    ))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_conversation::{Draft, ToolCall};

    use super::*;

    fn messages() -> Vec<Message> {
        let call = ToolCall {
            id: "a".into(),
            name: "write".into(),
            arguments: r#"{"text":"fn zeppelin_anchor() -> Harbour { moored() }\n"}"#.into(),
        };
        let shared = "this line occurs in two of the messages";
        let drafts = [
            Draft::user(format!("please moor the zeppelin at pier seven\n{shared}"), 1),
            Draft::assistant("", vec![call.clone()], 2),
            Draft::result(&call, format!("{shared}\nwritten: 35 bytes to harbour.rs today"), 3),
        ];
        drafts.into_iter().zip(1..).map(|(draft, id)| draft.numbered(MessageId(id))).collect()
    }

    /// Recall tools over a list of messages.
    struct FakeTools(Vec<Message>);

    impl Recall for FakeTools {
        fn search(&mut self, query: &str, phrase: bool) -> Result<Page, String> {
            let text = |message: &Message| fields(message).into_iter().map(|(_, text)| text).collect::<String>();
            let fits = |message: &&Message| {
                let text = text(message);
                if phrase { text.contains(query) } else { query.split(' ').all(|word| text.contains(word)) }
            };
            let hits: Vec<&Message> = self.0.iter().filter(fits).collect();
            if hits.is_empty() {
                return Err("nothing found".to_owned());
            }
            Ok(Page { ids: hits.iter().map(|hit| hit.id).collect(), text: hits.iter().map(|hit| text(hit)).collect() })
        }

        fn part(&mut self, id: MessageId, part: Part<'_>) -> Result<String, String> {
            let message = self.0.iter().find(|message| message.id == id).ok_or("no such message")?;
            Ok(match part {
                Part::Text => message.content.clone(),
                Part::Arguments(_) => message.tool_calls[0].arguments.clone(),
            })
        }

        fn about(&mut self, id: MessageId) -> Result<String, String> {
            Ok(self.part(id, Part::Text)?.lines().next().unwrap_or_default().to_owned())
        }
    }

    #[test]
    fn needles_occur_in_one_message_and_carry_their_rarest_words() {
        let needles = sample(&messages(), &|_| true);
        let found: Vec<(Field, u64, &str)> =
            needles.iter().map(|needle| (needle.field, needle.id.0, needle.words[0].as_str())).collect();
        assert_eq!(
            found,
            [(Field::User, 1, "please"), (Field::Arguments, 2, "zeppelin_anchor"), (Field::Result, 3, "written")]
        );
        assert!(sample(&messages(), &|id| id.0 == 3).iter().all(|needle| needle.id.0 == 3));
    }

    #[test]
    fn a_changed_message_is_reported() {
        let messages = messages();
        let needles = sample(&messages, &|_| true);
        let whole = recover(&messages, &needles, &mut FakeTools(messages.clone()));
        assert_eq!((whole.needles, whole.by_words, whole.text_by_words, whole.by_phrase), (3, 3, 3, 3));
        assert_eq!((whole.messages, whole.whole, whole.first_broken), (3, 3, None));
        let mut damaged = messages.clone();
        damaged[1].draft.tool_calls[0].arguments.pop();
        damaged[2].draft.content = "…".into();
        let broken = recover(&messages, &needles, &mut FakeTools(damaged));
        assert_eq!((broken.by_words, broken.by_phrase, broken.whole), (2, 2, 1));
        assert!(broken.first_broken.unwrap().starts_with("message 2: the arguments of a call comes back with"));
    }
}
