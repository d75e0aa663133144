//! Divides a text into words: runs of letters and digits, in lower case and without accents of Latin letters. Scripts
//! without blanks between words are divided into pairs of characters, as the store's index does.

/// Calls `word` with each word of a text, in order, until it returns false.
pub(crate) fn each_word(text: &str, mut word: impl FnMut(&str) -> bool) {
    each_word_at(text, |_, found| word(found));
}

/// The same with the byte at which the word begins.
pub(crate) fn each_word_at(text: &str, mut word: impl FnMut(usize, &str) -> bool) {
    let mut current = String::new();
    let mut begin = 0;
    let mut before: Option<(usize, char)> = None;
    for (at, character) in text.char_indices() {
        if character.is_ascii_alphanumeric() {
            before = None;
            if current.is_empty() {
                begin = at;
            }
            current.push(character.to_ascii_lowercase());
            continue;
        }
        if is_unspaced(character) {
            if !current.is_empty() && !word(begin, &current) {
                return;
            }
            current.clear();
            if let Some((begin, first)) = before {
                let pair: String = [first, character].iter().collect();
                if !word(begin, &pair) {
                    return;
                }
            }
            before = Some((at, character));
            continue;
        }
        before = None;
        if character.is_alphanumeric() || is_mark(character) {
            if current.is_empty() {
                begin = at;
            }
            push(&mut current, character);
        } else if !current.is_empty() {
            if !word(begin, &current) {
                return;
            }
            current.clear();
        }
    }
    if !current.is_empty() {
        word(begin, &current);
    }
}

/// A combining accent, which the fold drops.
fn is_mark(character: char) -> bool {
    matches!(character, '\u{300}'..='\u{36f}')
}

fn push(word: &mut String, character: char) {
    if character.is_ascii() {
        word.push(character.to_ascii_lowercase());
    } else if !is_mark(character) {
        word.extend(character.to_lowercase().map(without_accent).filter(|character| !is_mark(*character)));
    }
}

fn without_accent(character: char) -> char {
    match character {
        'à'..='å' | 'ā' | 'ă' | 'ą' => 'a',
        'ç' | 'ć' | 'č' => 'c',
        'ď' => 'd',
        'è'..='ë' | 'ē' | 'ė' | 'ę' | 'ě' => 'e',
        'ğ' => 'g',
        'ì'..='ï' | 'ī' | 'į' => 'i',
        'ñ' | 'ń' | 'ň' => 'n',
        'ò'..='ö' | 'ō' | 'ő' => 'o',
        'ř' => 'r',
        'ś' | 'š' | 'ş' => 's',
        'ť' => 't',
        'ù'..='ü' | 'ū' | 'ů' | 'ű' => 'u',
        'ý' | 'ÿ' => 'y',
        'ź' | 'ż' | 'ž' => 'z',
        other => other,
    }
}

/// Whether a character belongs to a script without blanks between words.
pub(crate) fn is_unspaced(character: char) -> bool {
    matches!(character,
        '\u{3005}'..='\u{3007}' | '\u{3041}'..='\u{3096}' | '\u{309d}'..='\u{309f}' | '\u{30a1}'..='\u{30fa}' | '\u{30fc}'..='\u{30ff}'
        | '\u{3105}'..='\u{312f}' | '\u{31a0}'..='\u{31bf}' | '\u{31f0}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}' | '\u{ff66}'..='\u{ff9f}'
        | '\u{20000}'..='\u{3ffff}')
}

/// Words that carry no meaning alone: they are not looked for if others are there. They are the English stop words of NLTK
/// (`nltk.corpus.stopwords`) in its order, without contractions, `o` and the forms on -self and -selves of `you` and `them`, and
/// behind them what people add when they ask: `would` to `us`.
const COMMON: &str = " a an the and or but if of at by for with about against between into through during before after \
    above below to from up down in out on off over under again further then once here there all any both each few more \
    most other some such no nor not only own same so than too very s t can will just don should now d ll m re ve y i me \
    my myself we our ours ourselves you your yours he him his himself she her hers herself it its itself they them their \
    theirs what which who whom this that these those am is are was were be been being have has had having do does did \
    doing would could might must shall may also ever get got let us as because while until how why when where ";
/// Words that say what the answer is like. They count less.
const ASKING: &str = " many much kind type name list mention tell give thing things kinds types ";

/// How much a word of a question counts: 0 for those without meaning.
pub(crate) fn meaning(word: &str) -> f64 {
    let is_in = |list: &str| list.split(' ').any(|one| one == word);
    if is_in(COMMON) {
        0.0
    } else if is_in(ASKING) {
        0.3
    } else {
        1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        each_word(text, |word| {
            words.push(word.to_owned());
            true
        });
        words
    }

    #[test]
    fn words_are_folded_and_unspaced_scripts_come_in_pairs() {
        assert_eq!(words("Él's Café, v1.2"), ["el", "s", "cafe", "v1", "2"]);
        assert_eq!(words("cafe\u{301}"), ["cafe"]);
        assert_eq!(words("用heaptrack定位内存"), ["heaptrack", "定位", "位内", "内存"]);
        assert_eq!(words(" .,!"), [""; 0]);
    }
}
