//! Decides which index answers which part of a query. A plan is a value; `select` executes it.
//!
//! - A term of letters is looked up in the words index by its stem. A quoted text is a phrase there.
//! - Words joined by signs, such as `src/main.rs`, are a phrase too. The candidates are then compared with the text.
//! - A term with signs at its ends, or with a star, is looked up in the trigram index and compared with the text: the
//!   words index contains neither signs nor beginnings of words.
//!
//! If no text must be compared, all alternatives form one expression. Otherwise each alternative is looked up separately.

use super::query::{Alternative, Query, Term};
use super::text::{Needle, is_unspaced, is_word, phrase};

/// The characters of a trigram.
const GRAM: usize = 3;
/// The most trigrams of one query. The text is compared as a whole in any case.
const MAX_GRAMS: usize = 24;

/// How a query is answered: the union of its selections.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) selections: Vec<Selection>,
    /// Expressions for marking the matches in snippets.
    pub(crate) phrases: Vec<String>,
}

/// A scan of one index, with conditions for each message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Selection {
    pub(crate) index: Index,
    /// An expression that must match the words index too.
    pub(crate) words: Option<String>,
    /// An expression that must not match it.
    pub(crate) not_words: Option<String>,
    pub(crate) holds: Vec<Needle>,
    pub(crate) holds_not: Vec<Needle>,
}

/// The index that is scanned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Index {
    /// Messages that match an expression of the words index.
    Words(String),
    /// Messages that match an expression of the trigram index.
    Trigrams(String),
    /// Messages with a trigram that begins with this text.
    Beginning(String),
    /// Every message: no index contains the search text.
    Messages,
    /// Every message that is indexed only in part. The whole text is compared.
    LongMessages,
}

/// The terms of an alternative, grouped by the way they are searched.
#[derive(Default)]
struct Sorted {
    words: Vec<String>,
    not_words: Vec<String>,
    holds: Vec<Needle>,
    holds_not: Vec<Needle>,
    /// Texts that must occur in addition to their words.
    joined: Vec<Needle>,
}

impl Plan {
    /// The plans of a query: each further plan is tried if the previous ones find nothing.
    pub(crate) fn all(query: &Query) -> Vec<Self> {
        let mut plans = vec![Self::of(query, true), Self::of(query, false), Self::by_parts(query)];
        plans.dedup();
        plans
    }

    /// Searches words. `signs` tells whether the signs between them must match too.
    fn of(query: &Query, signs: bool) -> Self {
        let sorted: Vec<Sorted> = query.alternatives.iter().map(|alternative| Sorted::of(alternative, signs)).collect();
        let phrases = sorted.iter().flat_map(|one| one.words.iter().cloned()).collect();
        if sorted.iter().all(|one| one.holds.is_empty() && one.holds_not.is_empty() && one.joined.is_empty()) {
            let expressions: Vec<String> = sorted.iter().map(Sorted::expression).collect();
            let index = (!expressions.is_empty()).then(|| Index::Words(any(&expressions)));
            return Self { selections: index.into_iter().map(Selection::of).collect(), phrases };
        }
        Self { selections: sorted.into_iter().map(Sorted::selection).collect(), phrases }
    }

    /// Searches every required term as a part of a word. Terms that are too short for the trigram index are left out.
    fn by_parts(query: &Query) -> Self {
        let part = |term: &Term| Needle::new(&term.text, false);
        let selections = query.alternatives.iter().filter_map(|alternative| {
            let Sorted { not_words, holds_not, .. } = Sorted::of(alternative, true);
            let holds = alternative.required.iter().map(part).collect();
            let sorted = Sorted { holds, not_words, holds_not, ..Sorted::default() };
            (!grams(&sorted.holds).is_empty()).then(|| sorted.selection())
        });
        Self { selections: selections.collect(), phrases: Vec::new() }
    }

    /// Searches any of the words. Messages with more and with rarer words come first; `ranked` does this better where the words
    /// index knows them.
    pub(crate) fn any(terms: &[Term]) -> Vec<Self> {
        let meaning: Vec<&Term> = terms.iter().filter(|term| !is_common(&term.text)).collect();
        let meaning = if meaning.is_empty() { terms.iter().collect() } else { meaning };
        let mut phrases: Vec<String> = Vec::new();
        for phrase in meaning.iter().filter(|term| term.has_words()).flat_map(|term| parts(&term.text)) {
            if phrases.len() < MAX_PARTS && !phrases.contains(&phrase) {
                phrases.push(phrase);
            }
        }
        let index = (!phrases.is_empty()).then(|| Selection::of(Index::Words(any(&phrases))));
        let words = Self { selections: index.into_iter().collect(), phrases };
        let alone = |term: &&Term| Alternative { required: vec![(*term).clone()], excluded: Vec::new() };
        let query = Query { alternatives: meaning.iter().map(alone).collect() };
        // Then parts of words, then terms that consist of signs.
        vec![words, Self::by_parts(&query), Self::of(&query, true)]
    }

    /// Searches an exact text, ignoring case, as it is or as it is escaped in JSON.
    pub(crate) fn exact(text: &str) -> Self {
        let mut selections = Vec::new();
        for text in written(text) {
            let needle = Needle::new(&text, false);
            let (grams, words) = (grams(std::slice::from_ref(&needle)), unspaced_words(&text));
            let words = (!words.is_empty()).then(|| all(&words));
            let (index, words) = match words {
                words if !grams.is_empty() => (Index::Trigrams(all(&grams)), words),
                Some(words) => (Index::Words(words), None),
                None if text.chars().count() < GRAM && !text.contains(|c| is_unspaced(c) || c == '\0') => {
                    (Index::Beginning(needle.folded.clone()), None)
                }
                None => (Index::Messages, None),
            };
            let holds = vec![needle];
            selections.push(Selection { words, holds: holds.clone(), ..Selection::of(index) });
            selections.push(Selection { holds, ..Selection::of(Index::LongMessages) });
        }
        Self { selections, phrases: Vec::new() }
    }

    /// Whether the hits can be ranked.
    pub(crate) fn is_ranked(&self) -> bool {
        matches!(self.selections.as_slice(), [Selection { index: Index::Words(_), .. }])
    }
}

impl Selection {
    fn of(index: Index) -> Self {
        Self { index, words: None, not_words: None, holds: Vec::new(), holds_not: Vec::new() }
    }
}

impl Sorted {
    fn of(alternative: &Alternative, signs: bool) -> Self {
        let mut sorted = Self::default();
        let is_joined = |term: &Term| signs && term.is_joined();
        for term in &alternative.required {
            match needle(term) {
                None => {
                    sorted.words.push(expression(term));
                    if is_joined(term) {
                        sorted.joined.push(Needle::new(&term.text, false));
                    }
                }
                Some(needle) => {
                    // The trigram index does not contain it, so the words index is used.
                    if term.has_words() && grams(std::slice::from_ref(&needle)).is_empty() {
                        sorted.words.push(expression(term));
                    }
                    sorted.holds.push(needle);
                }
            }
        }
        for term in &alternative.excluded {
            match needle(term) {
                None if is_joined(term) => sorted.holds_not.push(Needle::new(&term.text, false)),
                None => sorted.not_words.push(expression(term)),
                Some(needle) => sorted.holds_not.push(needle),
            }
        }
        sorted
    }

    /// The expression of an alternative that has only words.
    fn expression(&self) -> String {
        let words = all(&self.words);
        if self.not_words.is_empty() { words } else { format!("({words} NOT {})", any(&self.not_words)) }
    }

    fn selection(self) -> Selection {
        let words = (!self.words.is_empty()).then(|| self.expression());
        let grams = grams(&self.holds);
        let (index, words) = match words {
            words if !grams.is_empty() => (Index::Trigrams(all(&grams)), words),
            Some(words) => (Index::Words(words), None),
            None => {
                let longest = self.holds.iter().map(|needle| needle.folded.as_str()).max_by_key(|text| text.len());
                (Index::Beginning(longest.unwrap_or_default().to_owned()), None)
            }
        };
        // An expression of words already excludes these.
        let not_words = (self.words.is_empty() && !self.not_words.is_empty()).then(|| any(&self.not_words));
        let holds = self.holds.into_iter().chain(self.joined).collect();
        Selection { index, words, not_words, holds, holds_not: self.holds_not }
    }
}

/// The text to compare; `None` if the words index can answer the term.
fn needle(term: &Term) -> Option<Needle> {
    let long = term.text.chars().count() >= GRAM;
    // A run of an unspaced script is found at any position, so a star adds nothing.
    let prefix = term.prefix && long && !term.text.chars().next_back().is_some_and(is_unspaced);
    (prefix || term.is_literal()).then(|| Needle::new(&term.text, prefix && term.text.starts_with(is_word)))
}

/// The expression of a term for the words index. Short prefixes are safe there: words of two letters equal their stem.
fn expression(term: &Term) -> String {
    let (words, mut beginning) = phrase(&term.text);
    beginning |= term.prefix && !term.is_literal() && !term.text.chars().next_back().is_some_and(is_unspaced);
    format!("{}{}", quoted(&words), if beginning { " *" } else { "" })
}

/// Common words, which occur in nearly all messages.
const COMMON: &[&str] = &[
    "a", "about", "an", "and", "are", "as", "at", "be", "been", "but", "by", "can", "could", "did", "do", "does",
    "for", "from", "had", "has", "have", "he", "her", "his", "how", "i", "if", "in", "is", "it", "its", "me", "my",
    "of", "on", "or", "our", "she", "so", "that", "the", "their", "them", "then", "there", "these", "they", "this",
    "to", "us", "was", "we", "were", "what", "when", "where", "which", "who", "why", "will", "with", "would", "you",
    "your",
];
/// The most expressions of one query. Each costs about as much as one word.
const MAX_PARTS: usize = 96;

fn is_common(word: &str) -> bool {
    COMMON.contains(&word.to_lowercase().as_str())
}

/// The expressions of a term for the words index: one for each of its words.
fn parts(text: &str) -> Vec<String> {
    let mut parts = vec![expression(&Term { text: text.to_owned(), prefix: false })];
    for word in text.split(|character| !is_word(character)) {
        for run in runs(word) {
            let characters: Vec<char> = run.chars().collect();
            if !characters.first().copied().is_some_and(is_unspaced) {
                parts.extend((characters.len() > 1 && !is_common(run)).then(|| quoted(run)));
            } else {
                // A question in an unspaced script is one long run, so every pair of characters is a word.
                parts.extend(characters.windows(2).map(|pair| quoted(&pair.iter().collect::<String>())));
            }
        }
    }
    parts
}

/// Splits a text into runs of spaced and unspaced scripts.
fn runs(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let end = rest.find(|character| is_unspaced(character) != is_unspaced(first)).unwrap_or(rest.len());
        let (run, behind) = rest.split_at(end);
        rest = behind;
        Some(run)
    })
}

/// Expressions for the parts of a text that the trigram index leaves out. In a message the runs may be longer.
fn unspaced_words(text: &str) -> Vec<String> {
    let runs = runs(text).filter(|run| run.chars().all(is_known_to_the_words_index));
    runs.map(|run| expression(&Term { text: run.to_owned(), prefix: false })).collect()
}

/// Whether SQLite's older Unicode tables treat a character as part of a word too.
fn is_known_to_the_words_index(character: char) -> bool {
    matches!(character,
        '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fa}' | '\u{3400}'..='\u{4db5}' | '\u{4e00}'..='\u{9fcb}'
        | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{fa2d}' | '\u{20000}'..='\u{2a6d6}')
}

/// A text as it is, and as it is escaped in JSON if that differs: tool results are often JSON.
fn written(text: &str) -> Vec<String> {
    let quoted = serde_json::Value::from(text).to_string();
    let mut escaped = String::with_capacity(quoted.len());
    for character in quoted.chars() {
        let mut units = [0; 2];
        match character.is_ascii() {
            true => escaped.push(character),
            false => {
                character.encode_utf16(&mut units).iter().for_each(|unit| escaped.push_str(&format!("\\u{unit:04x}")))
            }
        }
    }
    let mut written = vec![text.to_owned()];
    for text in [quoted, escaped] {
        let inside = text[1..text.len() - 1].to_owned();
        if !written.contains(&inside) {
            written.push(inside);
        }
    }
    written
}

/// Quotes a text for FTS5.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.trim().replace('"', "\"\""))
}

fn all(expressions: &[String]) -> String {
    joined(expressions, " AND ")
}

fn any(expressions: &[String]) -> String {
    joined(expressions, " OR ")
}

fn joined(expressions: &[String], with: &str) -> String {
    match expressions {
        [one] => one.clone(),
        many => format!("({})", many.join(with)),
    }
}

/// The distinct trigrams of all texts, without those that the index leaves out.
fn grams(needles: &[Needle]) -> Vec<String> {
    let mut grams: Vec<String> = Vec::new();
    for needle in needles {
        let characters: Vec<char> = needle.folded.chars().collect();
        for gram in characters.windows(GRAM).filter(|gram| !gram.iter().any(|&c| is_unspaced(c) || c == '\0')) {
            let gram = quoted_gram(gram);
            if grams.len() < MAX_GRAMS && !grams.contains(&gram) {
                grams.push(gram);
            }
        }
    }
    grams
}

/// Quotes a trigram. Blanks are significant in it.
fn quoted_gram(gram: &[char]) -> String {
    format!("\"{}\"", gram.iter().collect::<String>().replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(plan: &Plan) -> String {
        let described = |selection: &Selection| {
            let mut described = match &selection.index {
                Index::Words(expression) => format!("words {expression}"),
                Index::Trigrams(expression) => format!("trigrams {expression}"),
                Index::Beginning(text) => format!("beginning {text}"),
                Index::Messages => "messages".to_owned(),
                Index::LongMessages => "long messages".to_owned(),
            };
            let needle = |needle: &Needle| format!("{}{}", needle.folded, if needle.at_word { "*" } else { "" });
            for (name, text) in [
                ("and words", selection.words.clone()),
                ("not words", selection.not_words.clone()),
                (
                    "holds",
                    Some(selection.holds.iter().map(needle).collect::<Vec<_>>().join(" ")).filter(|t| !t.is_empty()),
                ),
                (
                    "holds not",
                    Some(selection.holds_not.iter().map(needle).collect::<Vec<_>>().join(" "))
                        .filter(|t| !t.is_empty()),
                ),
            ] {
                if let Some(text) = text {
                    described.push_str(&format!("; {name} {text}"));
                }
            }
            described
        };
        plan.selections.iter().map(described).collect::<Vec<_>>().join(" | ")
    }

    #[test]
    fn each_term_uses_the_index_that_can_find_it() {
        for (text, plan) in [
            ("", ""),
            ("docker", r#"words "docker""#),
            ("docker deployment", r#"words ("docker" AND "deployment")"#),
            (r#""exact phrase""#, r#"words "exact phrase""#),
            ("don't src/main.rs", r#"words ("don't" AND "src/main.rs"); holds don't src/main.rs"#),
            ("foo -a@b.c", r#"words "foo"; holds not a@b.c"#),
            (
                "a@b.c --force",
                r#"trigrams ("--f" AND "-fo" AND "for" AND "orc" AND "rce"); and words "a@b.c"; holds --force a@b.c"#,
            ),
            ("a OR b c", r#"words ("a" OR ("b" AND "c"))"#),
            ("a -b OR c", r#"words (("a" NOT "b") OR "c")"#),
            ("错误", r#"words "错误""#),
            ("错", r#"words "错" *"#),
            ("错误*", r#"words "错误""#),
            ("错误处理", r#"words "错误 误处 处理""#),
            ("heaptrack 内存", r#"words ("heaptrack" AND "内存")"#),
            ("用heaptrack定位", r#"words "用 heaptrack 定位""#),
            ("de*", r#"words "de" *"#),
            ("deploy*", r#"trigrams ("dep" AND "epl" AND "plo" AND "loy"); holds deploy*"#),
            ("C++", r#"trigrams "c++"; holds c++"#),
            ("C#", r#"words "C"; holds c#"#),
            ("#错误", r##"words "# 错误"; holds #错误"##),
            (
                "#错误 --force",
                r##"trigrams ("--f" AND "-fo" AND "for" AND "orc" AND "rce"); and words "# 错误"; holds #错误 --force"##,
            ),
            ("->", "beginning ->; holds ->"),
            ("🙂", "beginning 🙂; holds 🙂"),
            ("crash C++", r#"trigrams "c++"; and words "crash"; holds c++"#),
            ("crash -C++", r#"words "crash"; holds not c++"#),
            ("C++ -crash", r#"trigrams "c++"; not words "crash"; holds c++"#),
            ("C++ crash -boom", r#"trigrams "c++"; and words ("crash" NOT "boom"); holds c++"#),
            ("a OR .env", r#"words "a" | trigrams (".en" AND "env"); holds .env"#),
        ] {
            assert_eq!(described(&Plan::of(&Query::parse(text), true)), plan, "{text}");
        }
    }

    #[test]
    fn signs_between_words_are_ignored_in_the_second_plan() {
        let plans = Plan::all(&Query::parse("my-app -a.b"));
        assert_eq!(
            plans.iter().map(described).collect::<Vec<_>>(),
            [
                r#"words "my-app"; holds my-app; holds not a.b"#,
                r#"words ("my-app" NOT "a.b")"#,
                r#"trigrams ("my-" AND "y-a" AND "-ap" AND "app"); holds my-app; holds not a.b"#,
            ]
        );
        assert_eq!(Plan::all(&Query::parse("错误")).len(), 2);
    }

    #[test]
    fn a_question_becomes_one_expression_of_its_uncommon_words() {
        for (text, plan) in [
            ("Where did we deploy it?", r#"words "deploy""#),
            ("Where is it?", r#"words ("Where" OR "is" OR "it")"#),
            ("fix C++ in src/main.rs", r#"words ("fix" OR "C" OR "src/main.rs" OR "src" OR "main" OR "rs")"#),
            ("错误处理 OR x", r#"words ("错误 误处 处理" OR "错误" OR "误处" OR "处理" OR "x")"#),
            ("->", ""),
        ] {
            let plans = Plan::any(&super::super::query::plain_words(text));
            assert_eq!(described(&plans[0]), plan, "{text}");
            assert!(plans[0].is_ranked() || plan.is_empty());
        }
        assert_eq!(
            described(&Plan::any(&super::super::query::plain_words("zz StreamB"))[1]).matches("holds").count(),
            1
        );
    }

    #[test]
    fn an_exact_text_is_searched_as_it_is_and_as_escaped_in_json() {
        for (text, plan) in [
            ("a b", r#"trigrams "a b"; holds a b"#),
            ("say \"x", r#"trigrams ("say" AND "ay " AND "y ""#),
            ("错误", r#"words "错误"; holds 错误"#),
            ("if 错 {", r#"trigrams "if "; and words "错" *; holds if 错 {"#),
            ("ab", "beginning ab; holds ab"),
            ("\u{30000}\u{30001}", "messages; holds"),
        ] {
            assert!(described(&Plan::exact(text)).starts_with(plan), "{text}: {}", described(&Plan::exact(text)));
        }
        assert_eq!(written("a\n\"é\""), ["a\n\"é\"", "a\\n\\\"é\\\"", "a\\n\\\"\\u00e9\\\""]);
        assert_eq!(written("plain"), ["plain"]);
        assert_eq!(Plan::exact("plain").selections.len(), 2);
    }

    #[test]
    fn terms_can_be_searched_as_parts_of_words() {
        for (text, plan) in [
            ("ighlight", r#"trigrams ("igh" AND "ghl" AND "hli" AND "lig" AND "igh" AND "ght"); holds ighlight"#),
            ("zz", ""),
            ("zzz yy -x", r#"trigrams "zzz"; not words "x"; holds zzz yy"#),
            ("错误处理", ""),
            ("zz OR yyy", r#"trigrams "yyy"; holds yyy"#),
        ] {
            let plan = plan.replacen(r#" AND "igh""#, "", 1);
            assert_eq!(described(&Plan::by_parts(&Query::parse(text))), plan, "{text}");
        }
    }

    #[test]
    fn hits_of_a_single_expression_of_words_are_ranked() {
        for (text, ranked) in
            [("a b OR c", true), ("错误", true), ("C#", true), ("C++", false), ("a OR .env", false), ("", false)]
        {
            assert_eq!(Plan::of(&Query::parse(text), true).is_ranked(), ranked, "{text}");
        }
    }
}
