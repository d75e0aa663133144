//! Decides which index answers which part of a query. A plan is a value; `select` executes it.
//!
//! A term of letters is looked up in the words index by its stem; several terms are a phrase there. Words that signs
//! join are such a phrase too, which is then compared with the text. A term with signs at its ends, or with a star, is
//! looked up in the trigram index and then compared, because the words index contains neither signs nor, as stems,
//! beginnings of words. If nothing must be compared, all alternatives are one expression; otherwise each is looked up
//! separately.

use super::query::{Alternative, Query, Term};
use super::text::{Needle, is_unspaced, is_word, phrase};

/// Characters that the trigram index has together.
const GRAM: usize = 3;
/// Of a long text so many trigrams are asked for: it is compared as a whole anyway.
const MOST_GRAMS: usize = 24;

/// How a query is answered: by all of these together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) selections: Vec<Selection>,
    /// Expressions of the words that are looked for, for marking them in what was found.
    pub(crate) phrases: Vec<String>,
}

/// A walk along one index, and what is asked of each message on the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Selection {
    pub(crate) index: Index,
    /// An expression for the words index that must fit too.
    pub(crate) words: Option<String>,
    /// One that must not.
    pub(crate) not_words: Option<String>,
    pub(crate) holds: Vec<Needle>,
    pub(crate) holds_not: Vec<Needle>,
}

/// What is walked along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Index {
    /// Fits an expression.
    Words(String),
    /// Has all of these trigrams: an expression.
    Trigrams(String),
    /// Has a trigram that begins with this.
    Beginning(String),
    /// Every message: no index has what is looked for.
    Messages,
    /// Every message of which the indexes have only the beginning. The whole text is compared.
    LongMessages,
}

/// The parts of an alternative by the rule that serves them.
#[derive(Default)]
struct Sorted {
    words: Vec<String>,
    not_words: Vec<String>,
    holds: Vec<Needle>,
    holds_not: Vec<Needle>,
    /// Of words that are looked for: what the text must hold besides.
    joined: Vec<Needle>,
}

impl Plan {
    /// What was meant, then what may have been meant if that finds nothing.
    pub(crate) fn all(query: &Query) -> Vec<Self> {
        let mut plans = vec![Self::of(query, true), Self::of(query, false), Self::by_parts(query)];
        plans.dedup();
        plans
    }

    /// With signs as they were written, or with any between words.
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

    /// With every required term as a part of a word. What is too short to mean anything then is left out.
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

    /// Words as a person types them, in any number and order: what has most of them and the rarest comes first.
    pub(crate) fn any(terms: &[Term]) -> Vec<Self> {
        let meaning: Vec<&Term> = terms.iter().filter(|term| !is_common(&term.text)).collect();
        let meaning = if meaning.is_empty() { terms.iter().collect() } else { meaning };
        let mut phrases: Vec<String> = Vec::new();
        for phrase in meaning.iter().filter(|term| term.has_words()).flat_map(|term| parts(&term.text)) {
            if phrases.len() < MOST_PARTS && !phrases.contains(&phrase) {
                phrases.push(phrase);
            }
        }
        let index = (!phrases.is_empty()).then(|| Selection::of(Index::Words(any(&phrases))));
        let words = Self { selections: index.into_iter().collect(), phrases };
        let alone = |term: &&Term| Alternative { required: vec![(*term).clone()], excluded: Vec::new() };
        let query = Query { alternatives: meaning.iter().map(alone).collect() };
        // Parts of words, then signs that are no word at all.
        vec![words, Self::by_parts(&query), Self::of(&query, true)]
    }

    /// A text that must stand in a message as it is, but for case; or as it stands in JSON.
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

    /// Whether what is found can be put in order of how well it fits.
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
                    // Found by its words, since the other index has nothing of it.
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

    /// Of an alternative that has words alone.
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
        // Where there are words to look for, the expression leaves these out already.
        let not_words = (self.words.is_empty() && !self.not_words.is_empty()).then(|| any(&self.not_words));
        let holds = self.holds.into_iter().chain(self.joined).collect();
        Selection { index, words, not_words, holds, holds_not: self.holds_not }
    }
}

/// What must be compared with the text; none for what the words index can answer.
fn needle(term: &Term) -> Option<Needle> {
    let long = term.text.chars().count() >= GRAM;
    // A run of an unspaced script is found wherever it stands: a star adds nothing.
    let prefix = term.prefix && long && !term.text.chars().next_back().is_some_and(is_unspaced);
    (prefix || term.is_literal()).then(|| Needle::new(&term.text, prefix && term.text.starts_with(is_word)))
}

/// A term for the words index. Short beginnings are safe there: words of two letters have no other stem.
fn expression(term: &Term) -> String {
    let (words, mut beginning) = phrase(&term.text);
    beginning |= term.prefix && !term.is_literal() && !term.text.chars().next_back().is_some_and(is_unspaced);
    format!("{}{}", quoted(&words), if beginning { " *" } else { "" })
}

/// Words that say nothing of what somebody asks about. They would be looked up in nearly all messages.
const COMMON: &[&str] = &[
    "a", "about", "an", "and", "are", "as", "at", "be", "been", "but", "by", "can", "could", "did", "do", "does",
    "for", "from", "had", "has", "have", "he", "her", "his", "how", "i", "if", "in", "is", "it", "its", "me", "my",
    "of", "on", "or", "our", "she", "so", "that", "the", "their", "them", "then", "there", "these", "they", "this",
    "to", "us", "was", "we", "were", "what", "when", "where", "which", "who", "why", "will", "with", "would", "you",
    "your",
];
/// Expressions that one query asks for: each costs about as much as one word.
const MOST_PARTS: usize = 96;

fn is_common(word: &str) -> bool {
    COMMON.contains(&word.to_lowercase().as_str())
}

/// A term for the words index, and where there are several words in it, each by itself.
fn parts(text: &str) -> Vec<String> {
    let mut parts = vec![expression(&Term { text: text.to_owned(), prefix: false })];
    for word in text.split(|character| !is_word(character)) {
        for run in runs(word) {
            let characters: Vec<char> = run.chars().collect();
            if !characters.first().copied().is_some_and(is_unspaced) {
                parts.extend((characters.len() > 1 && !is_common(run)).then(|| quoted(run)));
            } else {
                // A question in such a script is one long run: every pair of it is a word.
                parts.extend(characters.windows(2).map(|pair| quoted(&pair.iter().collect::<String>())));
            }
        }
    }
    parts
}

/// A text in pieces that either have blanks between words or not.
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

/// Expressions for what the trigram index leaves out of a text. A run may go on before it and behind it.
fn unspaced_words(text: &str) -> Vec<String> {
    let runs = runs(text).filter(|run| run.chars().all(is_known_to_the_words_index));
    runs.map(|run| expression(&Term { text: run.to_owned(), prefix: false })).collect()
}

/// Characters that are words to SQLite's tables too, which are older than ours.
fn is_known_to_the_words_index(character: char) -> bool {
    matches!(character,
        '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fa}' | '\u{3400}'..='\u{4db5}' | '\u{4e00}'..='\u{9fcb}'
        | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{fa2d}' | '\u{20000}'..='\u{2a6d6}')
}

/// A text as it is, and as it is written in JSON where that differs: results of tools are often JSON.
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

/// Text that FTS5 takes for nothing but text.
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

/// The trigrams of all texts, each once, but for those that the index leaves out.
fn grams(needles: &[Needle]) -> Vec<String> {
    let mut grams: Vec<String> = Vec::new();
    for needle in needles {
        let characters: Vec<char> = needle.folded.chars().collect();
        for gram in characters.windows(GRAM).filter(|gram| !gram.iter().any(|&c| is_unspaced(c) || c == '\0')) {
            let gram = quoted_gram(gram);
            if grams.len() < MOST_GRAMS && !grams.contains(&gram) {
                grams.push(gram);
            }
        }
    }
    grams
}

/// Blanks count here.
fn quoted_gram(gram: &[char]) -> String {
    format!("\"{}\"", gram.iter().collect::<String>().replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(plan: &Plan) -> String {
        let told = |selection: &Selection| {
            let mut told = match &selection.index {
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
                    told.push_str(&format!("; {name} {text}"));
                }
            }
            told
        };
        plan.selections.iter().map(told).collect::<Vec<_>>().join(" | ")
    }

    #[test]
    fn each_term_goes_where_it_can_be_found() {
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
            assert_eq!(told(&Plan::of(&Query::parse(text), true)), plan, "{text}");
        }
    }

    #[test]
    fn signs_between_words_matter_less_than_finding_something() {
        let plans = Plan::all(&Query::parse("my-app -a.b"));
        assert_eq!(
            plans.iter().map(told).collect::<Vec<_>>(),
            [
                r#"words "my-app"; holds my-app; holds not a.b"#,
                r#"words ("my-app" NOT "a.b")"#,
                r#"trigrams ("my-" AND "y-a" AND "-ap" AND "app"); holds my-app; holds not a.b"#,
            ]
        );
        assert_eq!(Plan::all(&Query::parse("错误")).len(), 2);
    }

    #[test]
    fn some_of_many_words_are_one_expression() {
        for (text, plan) in [
            ("Where did we deploy it?", r#"words "deploy""#),
            ("Where is it?", r#"words ("Where" OR "is" OR "it")"#),
            ("fix C++ in src/main.rs", r#"words ("fix" OR "C" OR "src/main.rs" OR "src" OR "main" OR "rs")"#),
            ("错误处理 OR x", r#"words ("错误 误处 处理" OR "错误" OR "误处" OR "处理" OR "x")"#),
            ("->", ""),
        ] {
            let plans = Plan::any(&super::super::query::plain_words(text));
            assert_eq!(told(&plans[0]), plan, "{text}");
            assert!(plans[0].is_ranked() || plan.is_empty());
        }
        assert_eq!(told(&Plan::any(&super::super::query::plain_words("zz StreamB"))[1]).matches("holds").count(), 1);
    }

    #[test]
    fn an_exact_text_is_looked_for_as_it_is_and_as_it_stands_in_json() {
        for (text, plan) in [
            ("a b", r#"trigrams "a b"; holds a b"#),
            ("say \"x", r#"trigrams ("say" AND "ay " AND "y ""#),
            ("错误", r#"words "错误"; holds 错误"#),
            ("if 错 {", r#"trigrams "if "; and words "错" *; holds if 错 {"#),
            ("ab", "beginning ab; holds ab"),
            ("\u{30000}\u{30001}", "messages; holds"),
        ] {
            assert!(told(&Plan::exact(text)).starts_with(plan), "{text}: {}", told(&Plan::exact(text)));
        }
        assert_eq!(written("a\n\"é\""), ["a\n\"é\"", "a\\n\\\"é\\\"", "a\\n\\\"\\u00e9\\\""]);
        assert_eq!(written("plain"), ["plain"]);
        assert_eq!(Plan::exact("plain").selections.len(), 2);
    }

    #[test]
    fn words_can_be_looked_for_as_parts_of_words() {
        for (text, plan) in [
            ("ighlight", r#"trigrams ("igh" AND "ghl" AND "hli" AND "lig" AND "igh" AND "ght"); holds ighlight"#),
            ("zz", ""),
            ("zzz yy -x", r#"trigrams "zzz"; not words "x"; holds zzz yy"#),
            ("错误处理", ""),
            ("zz OR yyy", r#"trigrams "yyy"; holds yyy"#),
        ] {
            let plan = plan.replacen(r#" AND "igh""#, "", 1);
            assert_eq!(told(&Plan::by_parts(&Query::parse(text))), plan, "{text}");
        }
    }

    #[test]
    fn what_is_found_by_one_expression_of_words_is_ranked() {
        for (text, ranked) in
            [("a b OR c", true), ("错误", true), ("C#", true), ("C++", false), ("a OR .env", false), ("", false)]
        {
            assert_eq!(Plan::of(&Query::parse(text), true).is_ranked(), ranked, "{text}");
        }
    }
}
