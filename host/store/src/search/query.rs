//! The language of searches. Every text is a valid query: what has no meaning is ignored.
//!
//! ```text
//! query       = alternative { "OR" alternative }
//! alternative = { term | ( "NOT" | "-" ) term | "AND" }
//! term        = word [ "*" ] | '"' words '"' [ "*" ]
//! ```

use super::text::is_word;

/// The most characters and terms of a query. The rest of a longer text is ignored.
const MAX_CHARS: usize = 2048;
const MAX_TERMS: usize = 64;

/// A parsed query: one of the alternatives must match.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Query {
    pub(crate) alternatives: Vec<Alternative>,
}

/// All required terms must occur, and no excluded one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Alternative {
    pub(crate) required: Vec<Term>,
    pub(crate) excluded: Vec<Term>,
}

/// A word, or several consecutive words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Term {
    /// As written, without quotes and star.
    pub(crate) text: String,
    /// Words that begin like this match too.
    pub(crate) prefix: bool,
}

impl Term {
    /// Whether it contains a letter or a digit.
    pub(crate) fn has_words(&self) -> bool {
        self.text.chars().any(is_word)
    }

    /// Whether signs join its words, as in `src/main.rs` or `don't`.
    pub(crate) fn is_joined(&self) -> bool {
        self.text.chars().any(|c| !is_word(c) && !c.is_whitespace())
    }

    /// Whether it begins or ends with a sign, such as `C++`, `.env` or `--force`.
    pub(crate) fn is_literal(&self) -> bool {
        !(self.text.chars().next().is_some_and(is_word) && self.text.chars().next_back().is_some_and(is_word))
    }
}

enum Piece {
    Or,
    Not,
    Term { term: Term, excluded: bool },
}

impl Query {
    pub(crate) fn parse(text: &str) -> Self {
        let mut query = Self::default();
        let mut current = Alternative::default();
        let mut negated = false;
        for piece in pieces(text).take(MAX_TERMS * 2) {
            match piece {
                Piece::Or => {
                    query.alternatives.push(std::mem::take(&mut current));
                    negated = false;
                }
                Piece::Not => negated = true,
                Piece::Term { term, excluded } => {
                    let list = if negated || excluded { &mut current.excluded } else { &mut current.required };
                    if list.len() < MAX_TERMS && !list.contains(&term) {
                        list.push(term);
                    }
                    negated = false;
                }
            }
        }
        query.alternatives.push(current);
        // Signs between words join them; standing alone they are search terms.
        let has_words = query.alternatives.iter().flat_map(|one| &one.required).any(Term::has_words);
        for alternative in &mut query.alternatives {
            for list in [&mut alternative.required, &mut alternative.excluded] {
                list.retain(|term| term.has_words() || !(has_words && is_punctuation(&term.text)));
            }
        }
        // Without anything to look for, there is nothing to exclude from.
        query.alternatives.retain(|alternative| !alternative.required.is_empty());
        query
    }
}

/// The distinct words of a text. None of them is treated as an operator.
pub(crate) fn plain_words(text: &str) -> Vec<Term> {
    let end = text.char_indices().nth(MAX_CHARS).map_or(text.len(), |(at, _)| at);
    let mut terms: Vec<Term> = Vec::new();
    for word in text[..end].split(|c| is_blank(c) || c == '"') {
        let inside = word.trim_start_matches(opens).trim_end_matches(closes).trim_matches('*');
        let text = if inside.chars().any(is_word) { inside } else { word };
        let term = Term { text: text.to_owned(), prefix: false };
        if !text.is_empty() && !terms.contains(&term) {
            terms.push(term);
        }
        if terms.len() == MAX_TERMS {
            break;
        }
    }
    // Signs between words join them; standing alone they are search terms.
    if terms.iter().any(Term::has_words) {
        terms.retain(|term| term.has_words() || !is_punctuation(&term.text));
    }
    terms
}

fn pieces(text: &str) -> impl Iterator<Item = Piece> + '_ {
    let end = text.char_indices().nth(MAX_CHARS).map_or(text.len(), |(at, _)| at);
    let mut rest = &text[..end];
    std::iter::from_fn(move || {
        loop {
            rest = rest.trim_start_matches(is_blank);
            if rest.is_empty() {
                return None;
            }
            let minus = minus(rest);
            let body = &rest[usize::from(minus)..];
            let (term, behind) = match quoted(body) {
                Some((inside, behind)) => {
                    let (prefix, behind) = stars(behind);
                    (Some(Term { text: joined(inside), prefix }).filter(|term| !term.text.is_empty()), behind)
                }
                None => {
                    // An unclosed quote counts as a blank.
                    let body = body.trim_start_matches('"');
                    let end = body.find(|c| is_blank(c) || c == '"').unwrap_or(body.len());
                    let (word, behind) = body.split_at(end);
                    match word {
                        "OR" if !minus => {
                            rest = behind;
                            return Some(Piece::Or);
                        }
                        "NOT" if !minus => {
                            rest = behind;
                            return Some(Piece::Not);
                        }
                        "AND" if !minus => (None, behind),
                        _ => (bare(word), behind),
                    }
                }
            };
            rest = behind;
            if let Some(term) = term {
                return Some(Piece::Term { term, excluded: minus });
            }
        }
    })
}

/// Whether a text begins with an excluding minus, unlike an option such as `--force` or an arrow.
fn minus(text: &str) -> bool {
    text.strip_prefix('-').and_then(|rest| rest.chars().next()).is_some_and(|next| is_word(next) || next == '"')
}

/// The content of a quoted text, and the text after it.
fn quoted(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix('"')?.split_once('"')
}

fn stars(text: &str) -> (bool, &str) {
    let behind = text.trim_start_matches('*');
    (behind.len() < text.len(), behind)
}

/// A word of a sentence, without the punctuation around it.
fn bare(word: &str) -> Option<Term> {
    let word: String = word.chars().filter(|c| !c.is_control()).collect();
    let word = word.trim_start_matches('*');
    let (word, prefix) = match word.trim_end_matches('*') {
        "" => return None,
        stem => (stem, stem.len() < word.len()),
    };
    let inside = word.trim_start_matches(opens).trim_end_matches(closes);
    let text = if inside.chars().any(is_word) { inside } else { word };
    // `(deploy*)`
    let (text, starred) = match text.trim_end_matches('*') {
        "" => return None,
        stem => (stem, stem.len() < text.len()),
    };
    let prefix = (prefix || starred) && text.chars().next_back().is_some_and(is_word);
    Some(Term { text: text.to_owned(), prefix })
}

fn opens(character: char) -> bool {
    "([{<'`“‘«„¿¡（【「『《".contains(character)
}

fn closes(character: char) -> bool {
    ".,;:!?)]}>'`…”’»。，；：！？、）】」』》".contains(character)
}

/// The words of a phrase, separated by single blanks.
fn joined(text: &str) -> String {
    text.split(is_blank).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

fn is_blank(character: char) -> bool {
    character.is_whitespace() || character.is_control()
}

/// Whether a text consists only of punctuation. An emoji is not punctuation.
fn is_punctuation(text: &str) -> bool {
    text.chars().all(|c| {
        c.is_ascii()
            || c.is_whitespace()
            || opens(c)
            || closes(c)
            || matches!(c, '\u{a1}'..='\u{bf}' | '\u{2010}'..='\u{205e}' | '\u{3001}'..='\u{303f}' | '\u{ff01}'..='\u{ff0f}')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Formats a query: alternatives separated by `|`, exclusions with `-`, prefixes with `*`.
    fn described(text: &str) -> String {
        let term = |term: &Term| format!("[{}]{}", term.text, if term.prefix { "*" } else { "" });
        let described = |one: &Alternative| {
            let excluded = one.excluded.iter().map(|one| format!("-{}", term(one)));
            one.required.iter().map(term).chain(excluded).collect::<Vec<_>>().join(" ")
        };
        Query::parse(text).alternatives.iter().map(described).collect::<Vec<_>>().join(" | ")
    }

    #[test]
    fn every_text_is_a_query() {
        for (text, query) in [
            ("", ""),
            ("docker deployment", "[docker] [deployment]"),
            ("docker docker", "[docker]"),
            ("\"exact  phrase\"", "[exact phrase]"),
            ("\"\"", ""),
            ("hello \"world", "[hello] [world]"),
            ("a\"b c\"d", "[a] [b c] [d]"),
            ("deploy*", "[deploy]*"),
            ("deploy***", "[deploy]*"),
            ("(deploy*)", "[deploy]*"),
            ("\"exact phr\"*", "[exact phr]*"),
            ("**bold**", "[bold]*"),
            ("*", ""),
            ("* * \"*\"", "[*]"),
            ("foo or bar", "[foo] [or] [bar]"),
            ("foo OR bar baz", "[foo] | [bar] [baz]"),
            ("OR world", "[world]"),
            ("AND OR hello", "[hello]"),
            ("hello OR", "[hello]"),
            ("OR AND NOT", ""),
            ("ORacle NOTE", "[ORacle] [NOTE]"),
            ("foo NOT bar", "[foo] -[bar]"),
            ("foo AND NOT bar", "[foo] -[bar]"),
            ("foo -bar -\"a b\"", "[foo] -[bar] -[a b]"),
            ("foo NOT -bar", "[foo] -[bar]"),
            ("foo NOT OR bar", "[foo] | [bar]"),
            ("-foo", ""),
            ("NOT foo", ""),
            ("foo -v OR -bar", "[foo] -[v]"),
            ("--force -> x", "[--force] [x]"),
            ("->", "[->]"),
            ("foo NEAR(bar, 3)", "[foo] [NEAR(bar] [3]"),
            ("content:foo ^bar", "[content:foo] [^bar]"),
            ("what is C++?", "[what] [is] [C++]"),
            ("(see src/main.rs, don't).", "[see] [src/main.rs] [don't]"),
            ("<ada@b.c> `.env` 'x'", "[ada@b.c] [.env] [x]"),
            ("foo - bar && baz", "[foo] [bar] [baz]"),
            ("party 🙂 — now", "[party] [🙂] [now]"),
            ("??? !", "[???] [!]"),
            ("错误处理。", "[错误处理]"),
            ("foo\nbar\0baz\tqux", "[foo] [bar] [baz] [qux]"),
        ] {
            assert_eq!(described(text), query, "{text:?}");
        }
    }

    #[test]
    fn plain_words_are_never_operators() {
        for (text, words) in [
            ("", ""),
            ("foo OR bar NOT -baz", "foo OR bar NOT -baz"),
            ("what is \"C++\"?", "what is C++"),
            ("deploy* (see src/main.rs, don't).", "deploy see src/main.rs don't"),
            ("foo && foo - bar", "foo bar"),
            ("-> ->", "->"),
            ("a\"b", "a b"),
            ("错误处理。", "错误处理"),
        ] {
            let described: Vec<String> = plain_words(text).into_iter().map(|term| term.text).collect();
            assert_eq!(described.join(" "), words, "{text:?}");
        }
        assert_eq!(plain_words(&(0..500).map(|number| format!("{number} ")).collect::<String>()).len(), MAX_TERMS);
    }

    #[test]
    fn a_long_query_is_limited() {
        assert_eq!(Query::parse(&"x".repeat(1_000_000)).alternatives[0].required[0].text.len(), MAX_CHARS);
        let many: String = (0..500).map(|number| format!("{number} ")).collect();
        assert_eq!(Query::parse(&many).alternatives[0].required.len(), MAX_TERMS);
    }

    #[test]
    fn signs_are_at_an_end_or_join_words() {
        let term = |text: &str| Term { text: text.into(), prefix: false };
        for text in ["C++", "C#", ".env", "--force", "/etc/hosts", "@ada", "100%", "🙂", "->"] {
            assert!(term(text).is_literal(), "{text}");
        }
        for text in ["don't", "src/main.rs", "a@b.c", "v1.2.3-rc.1", "let x = y"] {
            assert!(term(text).is_joined() && !term(text).is_literal(), "{text}");
        }
        for text in ["C", "错误", "café", "cafe\u{301}", "हिन्दी", "exact phrase"] {
            assert!(!term(text).is_joined() && !term(text).is_literal(), "{text}");
        }
    }
}
