//! Reads a line of the shell, character by character.

use super::super::variable;
use super::{Atom, Line, Unreadable, Word, builtin};

/// A longer line is not read.
const LONGEST: usize = 64 << 10;
/// The deepest nesting of substitutions and subshells that is read.
const DEEPEST: usize = 24;

/// Words that begin or continue a compound command. The command after them is read as any other.
const KEYWORDS: &[&str] = &[
    "!", "[[", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in", "select",
    "then", "time", "until", "while", "{", "}",
];

/// The number of processors, as it is written in lines that build.
const PROCESSORS: [char; 8] = ['$', '(', 'n', 'p', 'r', 'o', 'c', ')'];

pub(super) fn read(text: &str) -> Result<Line, Unreadable> {
    if text.len() > LONGEST {
        return Err(Unreadable);
    }
    let mut found = Line { commands: Vec::new(), is_plain: true, ..Line::default() };
    Reader { text: text.chars().collect(), at: 0, depth: 0, found: &mut found, awaited: Vec::new(), set: Vec::new() }
        .list(false)?;
    Ok(found)
}

/// The commands in the substitutions of a text.
pub(super) fn read_expansions(text: &str) -> Result<Line, Unreadable> {
    let mut found = Line::default();
    Reader { text: Vec::new(), at: 0, depth: 0, found: &mut found, awaited: Vec::new(), set: Vec::new() }
        .expansions(text)?;
    Ok(found)
}

/// A here-document whose text follows the line.
struct Awaited {
    end: String,
    is_quoted: bool,
    strips_tabs: bool,
}

struct Reader<'f> {
    text: Vec<char>,
    at: usize,
    depth: usize,
    found: &'f mut Line,
    awaited: Vec<Awaited>,
    /// The assignments so far of the command that is read.
    set: Vec<Word>,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    fn after(&self, distance: usize) -> Option<char> {
        self.text.get(self.at + distance).copied()
    }

    /// Takes the next character if it is this one.
    fn takes(&mut self, c: char) -> bool {
        let is = self.peek() == Some(c);
        self.at += usize::from(is);
        is
    }

    fn odd(&mut self) {
        self.found.is_plain = false;
    }

    fn end(&mut self, words: &mut Vec<Word>) {
        // Without a program behind them, and before most builtins, assignments stay in the shell.
        let is_given = !words.is_empty() && !builtin::keeps_variables(words);
        for word in std::mem::take(&mut self.set) {
            let (name, value) = word.assignment().unwrap_or_default();
            let is_known = if is_given {
                variable::starts_nothing(&name, value.as_deref())
            } else {
                variable::stays_in_the_shell(&name)
            };
            self.found.sets_unknown |= !is_known;
        }
        if !words.is_empty() {
            self.found.commands.push(std::mem::take(words));
        }
    }

    /// Reads commands up to the end, or up to the parenthesis that closes them.
    fn list(&mut self, is_nested: bool) -> Result<(), Unreadable> {
        if self.depth > DEEPEST {
            return Err(Unreadable);
        }
        let mut words = Vec::new();
        // The last keyword.
        let mut lead = String::new();
        while let Some(c) = self.peek() {
            match c {
                ' ' | '\t' => self.at += 1,
                '\\' if self.after(1) == Some('\n') => self.at += 2,
                '\n' => {
                    self.at += 1;
                    self.end(&mut words);
                    self.documents()?;
                }
                '#' => {
                    while self.peek().is_some_and(|c| c != '\n') {
                        self.at += 1;
                    }
                }
                ';' => {
                    self.at += 1;
                    self.end(&mut words);
                }
                '&' if self.after(1) == Some('>') => {
                    self.at += 1;
                    self.redirection(&mut words)?;
                }
                '&' => {
                    self.at += 1;
                    if !self.takes('&') {
                        self.odd();
                    }
                    self.end(&mut words);
                }
                '|' => {
                    self.at += 1;
                    if !self.takes('|') {
                        self.found.is_fed = true;
                        if self.takes('&') {
                            self.odd();
                        }
                    }
                    self.end(&mut words);
                }
                '(' => {
                    self.at += 1;
                    // A function, or arithmetic, which some shells take for two subshells.
                    let is_odd = !words.is_empty() || self.peek() == Some('(');
                    self.found.evaluates |= self.peek() == Some('(');
                    self.end(&mut words);
                    if is_odd {
                        self.odd();
                    }
                    self.nested()?;
                }
                ')' => {
                    self.at += 1;
                    self.end(&mut words);
                    if is_nested {
                        return Ok(());
                    }
                    self.odd();
                }
                '<' | '>' => self.redirection(&mut words)?,
                _ => {
                    let (word, is_quoted) = self.word()?;
                    self.take_word(word, is_quoted, &mut lead, &mut words)?;
                }
            }
        }
        self.end(&mut words);
        if is_nested { Err(Unreadable) } else { Ok(()) }
    }

    fn take_word(
        &mut self,
        word: Word,
        is_quoted: bool,
        lead: &mut String,
        words: &mut Vec<Word>,
    ) -> Result<(), Unreadable> {
        let text = word.exact().filter(|_| !is_quoted).unwrap_or_default();
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if is_number && matches!(self.peek(), Some('<' | '>')) {
            return self.redirection(words);
        }
        // `time -p`, and the names in `function f { … }`, `for x do …` and `coproc x { … }`.
        if lead == "time" && words.is_empty() && text.starts_with('-') {
            return Ok(());
        }
        if lead == "function" && words.is_empty() {
            lead.clear();
            words.push(word);
            self.end(words);
            return Ok(());
        }
        if words.len() == 1
            && ["for", "select", "coproc"].contains(&lead.as_str())
            && KEYWORDS.contains(&text.as_str())
            && text != "in"
        {
            self.end(words);
        }
        let is_keyword = words.is_empty() && KEYWORDS.contains(&text.as_str());
        let is_assignment = words.is_empty() && !is_keyword && begins_with_assignment(&word);
        if words.is_empty() && !is_keyword && ["for", "select"].contains(&lead.as_str()) {
            self.found.sets_unknown |= !variable::stays_in_the_shell(&text);
        }
        if is_keyword {
            self.found.evaluates |= text == "[[";
            self.found.is_fed |= text == "coproc";
            *lead = text;
        }
        if is_assignment {
            self.found.evaluates |= word.is_evaluated_later();
            self.set.push(word.clone());
        }
        if is_keyword || is_assignment {
            self.odd();
        }
        if is_assignment && matches!(self.peek(), Some('(')) {
            self.at += 1;
            return self.nested();
        }
        if !is_keyword && !is_assignment {
            words.push(word);
        }
        Ok(())
    }

    /// Commands in parentheses, after the first one.
    fn nested(&mut self) -> Result<(), Unreadable> {
        self.depth += 1;
        let set = std::mem::take(&mut self.set);
        let read = self.list(true);
        self.set = set;
        self.depth -= 1;
        read
    }

    /// What begins with `$((`, from the second parenthesis on: arithmetic if two parentheses close it, else commands.
    fn arithmetic(&mut self) -> Result<(), Unreadable> {
        let (mut open, mut length) = (0, 0);
        for c in &self.text[self.at..] {
            open += i32::from(*c == '(') - i32::from(*c == ')');
            if open == 0 {
                break;
            }
            length += 1;
        }
        if open != 0 || self.after(length + 1) != Some(')') {
            return self.nested();
        }
        let inner: String = self.text[self.at + 1..self.at + length].iter().collect();
        self.found.evaluates = true;
        self.at += length + 2;
        self.expansions(&inner)
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t')) {
            self.at += 1;
        }
    }

    /// A redirection, from its operator on.
    fn redirection(&mut self, words: &mut Vec<Word>) -> Result<(), Unreadable> {
        let reads = self.takes('<');
        if !reads && !self.takes('>') {
            return Err(Unreadable);
        }
        if self.peek() == Some('(') {
            self.odd();
            self.found.is_fed = true;
            self.at += 1;
            self.nested()?;
            words.push(Word(vec![Atom::Any]));
            return Ok(());
        }
        let mut copies = false;
        if reads && self.takes('<') {
            self.odd();
            let is_string = self.takes('<');
            let strips_tabs = !is_string && self.takes('-');
            self.blanks();
            let (word, is_quoted) = self.word()?;
            self.found.is_fed = true;
            match is_string {
                true => self.found.texts.push(word),
                false => self.awaited.push(Awaited { end: word.exact().ok_or(Unreadable)?, is_quoted, strips_tabs }),
            }
            return Ok(());
        } else if self.takes('&') {
            copies = true;
        } else if reads {
            if self.takes('>') {
                self.odd();
            }
        } else if !self.takes('>') {
            let _ = self.takes('|');
        }
        self.blanks();
        if matches!(self.peek(), Some('<' | '>')) && self.after(1) == Some('(') {
            self.odd();
            self.found.is_fed = true;
            self.at += 2;
            return self.nested();
        }
        let (target, _) = self.word()?;
        let is_number =
            |text: &str| text == "-" || (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()));
        let is_harmless = target.exact().is_some_and(|text| text == "/dev/null" || (copies && is_number(&text)));
        if !is_harmless {
            self.odd();
        }
        Ok(())
    }

    /// Reads the texts of here-documents after the end of their line.
    fn documents(&mut self) -> Result<(), Unreadable> {
        for Awaited { end, is_quoted, strips_tabs } in std::mem::take(&mut self.awaited) {
            let mut document = String::new();
            while self.at < self.text.len() {
                let rest = &self.text[self.at..];
                let length = rest.iter().position(|c| *c == '\n').unwrap_or(rest.len());
                let line: String = rest[..length].iter().collect();
                self.at = (self.at + length + 1).min(self.text.len());
                if line == end || (strips_tabs && line.trim_start_matches('\t') == end) {
                    break;
                }
                document.push_str(&line);
                document.push('\n');
            }
            if !is_quoted {
                self.expansions(&document)?;
            }
            self.found.texts.push(Word::literal(&document));
        }
        Ok(())
    }

    /// The commands that a text runs when it is expanded.
    fn expansions(&mut self, text: &str) -> Result<(), Unreadable> {
        let mut inner = Reader {
            text: text.chars().collect(),
            at: 0,
            depth: self.depth + 1,
            found: &mut *self.found,
            awaited: Vec::new(),
            set: Vec::new(),
        };
        if inner.depth > DEEPEST {
            return Err(Unreadable);
        }
        while let Some(c) = inner.peek() {
            match c {
                '\\' => inner.at += 2,
                '$' | '`' => drop(inner.expansion()?),
                _ => inner.at += 1,
            }
        }
        Ok(())
    }

    /// A word, and whether a part of it is quoted.
    fn word(&mut self) -> Result<(Word, bool), Unreadable> {
        let (begin, mut atoms, mut is_quoted) = (self.at, Vec::new(), false);
        // Where `[…]` or `{…}` begins: what is in it is not known by its place.
        let mut open = None;
        while let Some(c) = self.peek() {
            match c {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>' => break,
                '\\' => {
                    self.at += 1;
                    match self.peek() {
                        None => return Err(Unreadable),
                        Some('\n') => {}
                        Some(escaped) => {
                            is_quoted = true;
                            atoms.push(Atom::Char(escaped));
                        }
                    }
                    self.at += 1;
                }
                '\'' => {
                    is_quoted = true;
                    self.at += 1;
                    loop {
                        let c = self.peek().ok_or(Unreadable)?;
                        self.at += 1;
                        if c == '\'' {
                            break;
                        }
                        atoms.push(Atom::Char(c));
                    }
                }
                '"' => {
                    is_quoted = true;
                    self.at += 1;
                    self.quoted(&mut atoms)?;
                }
                // `make -j$(nproc)`: a number, and no word of its own.
                '$' if atoms == [Atom::Char('-'), Atom::Char('j')] && self.text[self.at..].starts_with(&PROCESSORS) => {
                    self.odd();
                    self.found.commands.push(vec![Word::literal("nproc")]);
                    atoms.push(Atom::Char('1'));
                    self.at += PROCESSORS.len();
                }
                '$' | '`' => atoms.push(self.expansion()?),
                // A file pattern of bash with its option `extglob`.
                '?' | '*' | '+' | '@' | '!' if self.after(1) == Some('(') && (c != '!' || !atoms.is_empty()) => {
                    self.odd();
                    self.at += 2;
                    self.nested()?;
                    atoms.push(Atom::Any);
                }
                '*' | '?' | '[' | '{' => {
                    let atom = self.pattern(c);
                    if "[{".contains(c) && atom != Atom::Char(c) && open.is_none() {
                        open = Some(atoms.len());
                    }
                    atoms.push(atom);
                    self.at += 1;
                }
                other => {
                    atoms.push(Atom::Char(other));
                    self.at += 1;
                }
            }
        }
        if self.at == begin {
            return Err(Unreadable);
        }
        let literal: String = atoms.iter().map(|atom| if let Atom::Char(c) = atom { *c } else { '_' }).collect();
        if literal.contains(['$', '`']) {
            self.found.literals.push(literal);
        }
        if let Some(from) = open {
            let kind = if atoms[from..].contains(&Atom::Any) { Atom::Any } else { Atom::Many };
            let last = atoms.iter().rposition(|atom| matches!(atom, Atom::Char(']' | '}'))).unwrap_or(atoms.len() - 1);
            atoms.splice(from..=last.max(from), [kind]);
        }
        Ok((Word(atoms), is_quoted))
    }

    /// What a character means that can begin a file pattern or an expansion of braces.
    fn pattern(&mut self, c: char) -> Atom {
        let rest = self.rest_of_word();
        match c {
            '*' => Atom::Many,
            '?' => Atom::One,
            '[' if rest.as_ref().is_none_or(|rest| rest.contains(']')) => Atom::Many,
            '{' if rest.as_ref().is_none_or(|rest| rest.contains(',') || rest.contains("..")) => {
                self.odd();
                Atom::Any
            }
            other => Atom::Char(other),
        }
    }

    /// The word behind the next character, as it is written, unless it is very long.
    fn rest_of_word(&self) -> Option<String> {
        const LONGEST: usize = 2_000;
        let (mut rest, mut quote, mut is_escaped) = (String::new(), None, false);
        for c in self.text[self.at + 1..].iter().copied() {
            if rest.len() > LONGEST {
                return None;
            }
            match quote {
                _ if is_escaped => is_escaped = false,
                Some('\'') | None if c == '\'' && quote != Some('"') => {
                    quote = if quote.is_some() { None } else { Some(c) }
                }
                Some('\'') => {}
                _ if c == '\\' => is_escaped = true,
                _ if c == '"' => quote = if quote.is_some() { None } else { Some(c) },
                None if " \t\n;&|()<>".contains(c) => break,
                _ => {}
            }
            rest.push(c);
        }
        Some(rest)
    }

    /// The rest of a text in double quotes.
    fn quoted(&mut self, atoms: &mut Vec<Atom>) -> Result<(), Unreadable> {
        loop {
            let c = self.peek().ok_or(Unreadable)?;
            match c {
                '"' => {
                    self.at += 1;
                    return Ok(());
                }
                '\\' => {
                    let escaped = self.after(1).ok_or(Unreadable)?;
                    match escaped {
                        '\n' => {}
                        '$' | '`' | '"' | '\\' => atoms.push(Atom::Char(escaped)),
                        other => atoms.extend([Atom::Char('\\'), Atom::Char(other)]),
                    }
                    self.at += 2;
                }
                '$' if self.after(1) == Some('"') => {
                    atoms.push(Atom::Char('$'));
                    self.at += 1;
                }
                '$' | '`' => atoms.push(self.expansion()?),
                other => {
                    atoms.push(Atom::Char(other));
                    self.at += 1;
                }
            }
        }
    }

    /// What begins with `$` or a backquote.
    fn expansion(&mut self) -> Result<Atom, Unreadable> {
        if self.takes('`') {
            self.odd();
            let mut inner = String::new();
            loop {
                let c = self.peek().ok_or(Unreadable)?;
                self.at += 1;
                match c {
                    '`' => break,
                    '\\' if matches!(self.peek(), Some('`' | '\\' | '$')) => {
                        inner.extend(self.peek());
                        self.at += 1;
                    }
                    other => inner.push(other),
                }
            }
            self.script(&inner)?;
            return Ok(Atom::Any);
        }
        self.at += 1;
        match self.peek() {
            Some('(') => {
                self.odd();
                self.at += 1;
                match self.peek() == Some('(') {
                    true => self.arithmetic()?,
                    false => self.nested()?,
                }
            }
            Some('{') => {
                self.odd();
                let inner = self.braces()?;
                let is_substring =
                    inner.split_once(':').is_some_and(|(_, rest)| !rest.starts_with(['-', '=', '+', '?']));
                self.found.evaluates |= inner.contains(['[', '@']) || inner.starts_with('!') || is_substring;
                // `${NAME=VALUE}` and `${NAME:=VALUE}`.
                let (name, rest) =
                    inner.split_at(inner.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(inner.len()));
                if rest.trim_start_matches(':').starts_with('=') {
                    self.found.sets_unknown |= !variable::stays_in_the_shell(name);
                }
                self.expansions(&inner)?;
            }
            Some('\'') => {
                self.odd();
                self.at += 1;
                loop {
                    let c = self.peek().ok_or(Unreadable)?;
                    self.at += 1 + usize::from(c == '\\');
                    if c == '\'' {
                        break;
                    }
                }
            }
            Some('"') => {
                self.odd();
                self.at += 1;
                self.quoted(&mut Vec::new())?;
            }
            Some('[') => {
                // An old form of arithmetic.
                self.odd();
                self.found.evaluates = true;
            }
            Some(c) if c.is_alphanumeric() || "_@*#?-$!".contains(c) => {
                self.odd();
                self.at += 1;
                while self.peek().is_some_and(|c| c.is_alphanumeric() || c == '_') {
                    self.at += 1;
                }
            }
            _ => return Ok(Atom::Char('$')),
        }
        Ok(Atom::Any)
    }

    /// The text of `${…}`, from its brace on.
    fn braces(&mut self) -> Result<String, Unreadable> {
        let (mut open, mut inner) = (0, String::new());
        loop {
            let c = self.peek().ok_or(Unreadable)?;
            self.at += 1;
            match c {
                '{' => open += 1,
                '}' => open -= 1,
                '\\' => {
                    inner.push(c);
                    inner.extend(self.peek());
                    self.at += 1;
                    continue;
                }
                _ => {}
            }
            if open == 0 {
                return Ok(inner.split_off(1));
            }
            inner.push(c);
        }
    }

    /// Commands in a text of their own.
    fn script(&mut self, text: &str) -> Result<(), Unreadable> {
        let depth = self.depth + 1;
        Reader {
            text: text.chars().collect(),
            at: 0,
            depth,
            found: &mut *self.found,
            awaited: Vec::new(),
            set: Vec::new(),
        }
        .list(false)
    }
}

/// Whether a word before the command sets a variable: `A=1`, `A+=1`, `A[0]=1`.
fn begins_with_assignment(word: &Word) -> bool {
    let name: String = word
        .0
        .iter()
        .map_while(|atom| match atom {
            Atom::Char('=') => None,
            Atom::Char(c) => Some(*c),
            // An index.
            Atom::One | Atom::Many | Atom::Any => Some('['),
        })
        .collect();
    let plain = name.split(['[', '+']).next().unwrap_or_default();
    let has_sign = word.0.len() > name.chars().count();
    has_sign
        && plain.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && plain.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
