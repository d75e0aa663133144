//! Compound commands whose words are data: `case`, `[[` and arrays. Any other form makes the line unreadable: a shell that reads
//! it differently could run one of the words.

use super::{End, Reader, Unreadable};

impl Reader<'_> {
    /// `case WORD in (PATTERN | PATTERN) COMMANDS ;; … esac`, behind its first word. Any other form makes the line unreadable.
    pub(super) fn case(&mut self) -> Result<(), Unreadable> {
        self.odd();
        self.blanks();
        self.word()?;
        self.lines()?;
        if self.word()?.0.exact().as_deref() != Some("in") {
            return Err(Unreadable);
        }
        self.depth += 1;
        loop {
            self.lines()?;
            let is_open = self.takes('(');
            self.blanks();
            loop {
                let (pattern, is_quoted) = self.word()?;
                if !is_open && !is_quoted && pattern.exact().as_deref() == Some("esac") {
                    self.depth -= 1;
                    return Ok(());
                }
                self.blanks();
                match self.peek() {
                    Some('|') => self.at += 1,
                    Some(')') => break,
                    _ => return Err(Unreadable),
                }
                self.blanks();
            }
            self.at += 1;
            if self.list(End::Clause)? {
                self.depth -= 1;
                return Ok(());
            }
        }
    }

    /// `[[ … ]]` of bash, behind its first word: words and operators, which run nothing.
    pub(super) fn expression(&mut self) -> Result<(), Unreadable> {
        self.odd();
        self.found.evaluates = true;
        loop {
            match self.peek().ok_or(Unreadable)? {
                '<' | '>' if self.after(1) == Some('(') => {
                    self.at += 2;
                    self.nested()?;
                }
                ' ' | '\t' | '(' | ')' | '<' | '>' | '|' | '&' => self.at += 1,
                '\n' if self.awaited.is_empty() => self.at += 1,
                '\n' | ';' | '#' => return Err(Unreadable),
                _ => {
                    let (word, is_quoted) = self.word()?;
                    if !is_quoted && word.exact().as_deref() == Some("]]") {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Blanks, line breaks and comments.
    fn lines(&mut self) -> Result<(), Unreadable> {
        loop {
            match self.peek() {
                Some(' ' | '\t') => self.at += 1,
                Some('\n') if self.awaited.is_empty() => self.at += 1,
                Some('\n') => return Err(Unreadable),
                Some('\\') if self.after(1) == Some('\n') => self.at += 2,
                Some('#') => {
                    while self.peek().is_some_and(|c| c != '\n') {
                        self.at += 1;
                    }
                }
                _ => return Ok(()),
            }
        }
    }

    /// The words of an array, after its parenthesis.
    pub(super) fn array(&mut self) -> Result<(), Unreadable> {
        loop {
            self.lines()?;
            if self.takes(')') {
                return Ok(());
            }
            // An index is evaluated.
            self.found.evaluates |= self.peek() == Some('[');
            self.word()?;
        }
    }
}
