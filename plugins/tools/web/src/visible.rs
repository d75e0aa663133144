//! Removes what a reader cannot see and a model can: hidden characters, and control characters.

/// The text without hidden characters. Joiners stay between characters of scripts and emoji that they join.
pub(crate) fn of(text: &str) -> String {
    if text.bytes().all(|byte| byte == b'\n' || byte == b'\t' || (b' '..0x7f).contains(&byte)) {
        return text.to_owned();
    }
    let mut shown = String::with_capacity(text.len());
    let mut before = None;
    let mut signs = text.chars().peekable();
    while let Some(sign) = signs.next() {
        let keeps = match sign {
            '\n' | '\t' => true,
            '\u{200c}' | '\u{200d}' => before.is_some_and(joins) && signs.peek().copied().is_some_and(joins),
            // Text or emoji.
            '\u{fe0e}' | '\u{fe0f}' => before.is_some_and(|before: char| before >= '\u{203c}'),
            _ => !is_hidden(sign),
        };
        if keeps {
            shown.push(sign);
            before = Some(sign);
        }
    }
    shown
}

fn joins(sign: char) -> bool {
    sign >= '\u{600}' && !is_hidden(sign)
}

fn is_hidden(sign: char) -> bool {
    sign.is_control()
        || matches!(
            sign,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'
                | '\u{1160}'
                | '\u{17b4}'
                | '\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0d}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_removed_and_visible_ones_stay() {
        let tagged: String = "obey".chars().filter_map(|sign| char::from_u32(0xe0000 + u32::from(sign))).collect();
        for (text, shown) in [
            ("plain\n\ttext", "plain\n\ttext"),
            ("ig\u{200b}no\u{ad}re\u{2060}", "ignore"),
            ("a\u{202e}b\u{2066}c\u{200f}", "abc"),
            (&format!("tea{tagged}"), "tea"),
            ("a\u{1b}[2Jb\r\n", "a[2Jb\n"),
            ("a\u{200d}b", "ab"),
            ("x\u{fe01}\u{e0101}", "x"),
            ("👩\u{200d}💻 ❤\u{fe0f} می\u{200c}خواهم", "👩\u{200d}💻 ❤\u{fe0f} می\u{200c}خواهم"),
            ("naïve — „Größe“ 漢字", "naïve — „Größe“ 漢字"),
        ] {
            assert_eq!(of(text), shown, "{text:?}");
        }
    }
}
