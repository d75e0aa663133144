//! Which characters may be added to a text whose encoding was guessed.
//!
//! The guess can be wrong. Then the letters that a person or a model writes in good faith would become others. So a new character is
//! written only if every encoding that explains the text as well would store it in the same bytes.

use std::collections::BTreeSet;

use encoding_rs::{
    BIG5, EUC_JP, EUC_KR, Encoding, GB18030, GBK, IBM866, ISO_8859_2, ISO_8859_3, ISO_8859_4, ISO_8859_5, ISO_8859_6,
    ISO_8859_7, ISO_8859_8, ISO_8859_10, ISO_8859_13, ISO_8859_14, ISO_8859_15, ISO_8859_16, KOI8_R, KOI8_U, MACINTOSH,
    SHIFT_JIS, WINDOWS_874, WINDOWS_1250, WINDOWS_1251, WINDOWS_1252, WINDOWS_1253, WINDOWS_1254, WINDOWS_1255,
    WINDOWS_1256, WINDOWS_1257, WINDOWS_1258, X_MAC_CYRILLIC,
};

use crate::Charset;

/// All encodings without state that the standard of browsers knows, but for the ones of Unicode.
const ALL: [&Encoding; 33] = [
    BIG5,
    EUC_JP,
    EUC_KR,
    GB18030,
    GBK,
    IBM866,
    ISO_8859_2,
    ISO_8859_3,
    ISO_8859_4,
    ISO_8859_5,
    ISO_8859_6,
    ISO_8859_7,
    ISO_8859_8,
    ISO_8859_10,
    ISO_8859_13,
    ISO_8859_14,
    ISO_8859_15,
    ISO_8859_16,
    KOI8_R,
    KOI8_U,
    MACINTOSH,
    SHIFT_JIS,
    WINDOWS_874,
    WINDOWS_1250,
    WINDOWS_1251,
    WINDOWS_1252,
    WINDOWS_1253,
    WINDOWS_1254,
    WINDOWS_1255,
    WINDOWS_1256,
    WINDOWS_1257,
    WINDOWS_1258,
    X_MAC_CYRILLIC,
];

/// A guess is reliable if the text has this many characters that are not ASCII. Fewer are enough for Latin letters: a wrong guess
/// between Latin encodings differs in characters that one of them does not have.
const ENOUGH: usize = 16;

/// Why a character is not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The encoding does not have it.
    Missing(char),
    /// The encoding is not certain enough.
    Uncertain(char),
}

impl Charset {
    /// Whether `new` may be added to a file with this `text`.
    ///
    /// # Errors
    ///
    /// [`Refused`] names the first character that must not.
    pub fn admits(self, text: &str, new: &str) -> Result<(), Refused> {
        let encoding = match self {
            Self::Utf8 | Self::Mixed | Self::Utf16Le | Self::Utf16Be => return Ok(()),
            Self::Unknown => return first_foreign(new).map_or(Ok(()), |letter| Err(Refused::Uncertain(letter))),
            Self::Legacy(encoding) => encoding,
        };
        let foreign: BTreeSet<char> = new.chars().filter(|letter| !letter.is_ascii()).collect();
        let added: Vec<char> = foreign.into_iter().filter(|letter| !text.contains(*letter)).collect();
        if added.is_empty() {
            return Ok(());
        }
        if let Some(letter) = added.iter().find(|letter| bytes_of(encoding, **letter).is_none()) {
            return Err(Refused::Missing(*letter));
        }
        if self.is_stateful() {
            return Ok(());
        }
        if encoding.is_single_byte()
            && !is_language(text)
            && let Some(letter) = added.first()
        {
            return Err(Refused::Uncertain(*letter));
        }
        // The classic Macintosh ended its lines so. Its encodings are hardly ever recognised.
        let is_mac = text.contains('\r') && !text.contains('\n');
        let count = text.chars().filter(|letter| !letter.is_ascii()).count();
        let is_reliable = |letter: char| {
            !is_mac && (count >= ENOUGH || (encoding.is_single_byte() && letter.is_alphabetic() && letter < '\u{250}'))
        };
        let known: BTreeSet<char> = text.chars().filter(|letter| !letter.is_ascii()).collect();
        let rivals = rivals(encoding, &known);
        let is_same = |letter: char| {
            let own = bytes_of(encoding, letter);
            rivals.iter().all(|rival| bytes_of(rival, letter) == own)
        };
        match added.into_iter().find(|letter| !is_reliable(*letter) || !is_same(*letter)) {
            Some(letter) => Err(Refused::Uncertain(letter)),
            None => Ok(()),
        }
    }
}

/// Whether a text reads like one of a language. In a wrong encoding, letters are next to letters of another alphabet, signs or
/// capitals, or one letter fills a line. Umlauts and frames of MS-DOS look like this, because its encodings are not known here.
fn is_language(text: &str) -> bool {
    let is_ascii_or = |letter: &char| letter.is_ascii_alphabetic() || !letter.is_ascii();
    let words = text.split(|letter| !is_ascii_or(&letter)).filter(|word| !word.is_ascii());
    let (mut all, mut odd) = (0_usize, 0_usize);
    for word in words {
        all += 1;
        odd += usize::from(is_odd(&word.chars().collect::<Vec<char>>()));
    }
    // Names of brands and mistakes of typing are odd, too.
    4 * odd <= all
}

/// Whether a word has letters that no language has side by side.
fn is_odd(word: &[char]) -> bool {
    let is_letter = |letter: char| letter.is_alphabetic() && !('\u{2b0}'..'\u{370}').contains(&letter);
    let is_cased = |letter: char| ('\u{370}'..'\u{530}').contains(&letter) && is_letter(letter);
    // What stands between letters in every language.
    let is_joint = |sign: char| {
        matches!(sign, '\u{2018}' | '\u{2019}' | '\u{2010}'..='\u{2015}' | '\u{b7}' | '\u{ad}' | '\u{a0}' | '\u{2026}')
    };
    let is_odd_pair = |pair: &[char]| {
        let mixes = |one: char, other: char| one.is_ascii() && is_cased(other);
        let rises = pair[0].is_ascii_lowercase() && ('\u{c0}'..'\u{250}').contains(&pair[1]) && pair[1].is_uppercase();
        rises || mixes(pair[0], pair[1]) || mixes(pair[1], pair[0])
    };
    let holds_sign = |part: &[char]| {
        let sign = part[1];
        is_letter(part[0]) && is_letter(part[2]) && !is_letter(sign) && !sign.is_numeric() && !is_joint(sign)
    };
    word.windows(2).any(is_odd_pair)
        || word.windows(3).any(holds_sign)
        || word.windows(4).any(|part| !part[0].is_ascii() && part.iter().all(|letter| *letter == part[0]))
        || word.iter().any(|letter| letter.is_control())
}

fn first_foreign(text: &str) -> Option<char> {
    text.chars().find(|letter| !letter.is_ascii())
}

/// The bytes of a character. Japanese encodings have some that mean another one when they are read, which does not count.
pub(crate) fn bytes_of(encoding: &'static Encoding, letter: char) -> Option<Vec<u8>> {
    let mut buffer = [0; 4];
    let (bytes, _, failed) = encoding.encode(letter.encode_utf8(&mut buffer));
    let is_same = !failed && encoding.decode_without_bom_handling(&bytes).0.chars().eq([letter]);
    is_same.then(|| bytes.into_owned())
}

/// The other encodings that explain the characters of a text as well: at least half of them are the same, and no fewer are letters.
fn rivals(encoding: &'static Encoding, known: &BTreeSet<char>) -> Vec<&'static Encoding> {
    let stored: Vec<(char, Vec<u8>)> =
        known.iter().filter_map(|letter| Some((*letter, bytes_of(encoding, *letter)?))).collect();
    let explains = |rival: &&&'static Encoding| {
        let (mut same, mut letters, mut own_letters) = (0, 0, 0);
        for (letter, bytes) in &stored {
            let Some(other) = rival.decode_without_bom_handling_and_without_replacement(bytes) else { return false };
            if other.chars().any(char::is_control) {
                return false;
            }
            same += usize::from(other.chars().eq([*letter]));
            letters += usize::from(other.chars().all(char::is_alphabetic));
            own_letters += usize::from(letter.is_alphabetic());
        }
        2 * same >= stored.len() && letters >= own_letters
    };
    ALL.iter().filter(|rival| **rival != encoding).filter(explains).copied().collect()
}
