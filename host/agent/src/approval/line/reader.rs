//! Reads a line of the shell, character by character.

mod compound;

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

pub(super) fn read(text: &str, is_bash: bool) -> Result<Line, Unreadable> {
    if text.len() > LONGEST {
        return Err(Unreadable);
    }
    let mut found = Line { commands: Vec::new(), is_plain: true, ..Line::default() };
    Reader::new(text, 0, is_bash, &mut found).list(End::Text)?;
    Ok(found)
}

/// The commands in the substitutions of a text.
pub(super) fn read_expansions(text: &str) -> Result<Line, Unreadable> {
    let mut found = Line::default();
    Reader::new("", 0, false, &mut found).expansions(text)?;
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
    /// Whether every shell takes a keyword here for a keyword: a command begins, and nothing of it is read.
    begins: bool,
    /// Where other shells than bash split the command that is read.
    splits: Vec<usize>,
    /// Whether bash reads the line, which knows `[[`.
    is_bash: bool,
}

/// What ends a list of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Text,
    Parenthesis,
    /// `;;` or `esac`.
    Clause,
}

impl<'f> Reader<'f> {
    fn new(text: &str, depth: usize, is_bash: bool, found: &'f mut Line) -> Self {
        let text = text.chars().collect();
        Self {
            text,
            at: 0,
            depth,
            found,
            awaited: Vec::new(),
            set: Vec::new(),
            begins: true,
            splits: Vec::new(),
            is_bash,
        }
    }

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
                variable::given(&name, value.as_deref()).known_up_to(&mut self.found.values)
            } else {
                variable::stays_in_the_shell(&name)
            };
            self.found.sets_unknown |= !is_known;
        }
        let splits = std::mem::take(&mut self.splits);
        let behind = splits.iter().filter_map(|at| words.get(*at..).filter(|rest| !rest.is_empty()));
        self.found.commands.extend(behind.map(<[Word]>::to_vec));
        // Without words behind the last split, the command is there already.
        if !words.is_empty() && splits.last() != Some(&words.len()) {
            self.found.commands.push(std::mem::take(words));
        }
        words.clear();
        self.begins = true;
    }

    /// Reads commands up to their end. Says whether `esac` ended them.
    fn list(&mut self, end: End) -> Result<bool, Unreadable> {
        if self.depth > DEEPEST {
            return Err(Unreadable);
        }
        self.begins = true;
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
                    if end == End::Clause && matches!(self.peek(), Some(';' | '&')) {
                        self.at += 1;
                        let _ = self.takes('&');
                        return Ok(false);
                    }
                }
                '&' if self.after(1) == Some('>') => {
                    self.at += 1;
                    if !self.is_bash {
                        // To other shells it is `&` and a redirection of the next command.
                        self.odd();
                        self.found.commands.extend((!words.is_empty()).then(|| words.clone()));
                        self.splits.push(words.len());
                    }
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
                    let words_before = words.len();
                    let is_odd = !words.is_empty() || self.peek() == Some('(');
                    self.found.evaluates |= self.peek() == Some('(');
                    self.end(&mut words);
                    if is_odd {
                        self.odd();
                    }
                    let is_function = words_before == 1 && self.peek() == Some(')');
                    self.nested()?;
                    self.begins = is_function;
                }
                ')' => {
                    self.at += 1;
                    self.end(&mut words);
                    match end {
                        End::Parenthesis => return Ok(false),
                        End::Clause => return Err(Unreadable),
                        End::Text => self.odd(),
                    }
                    self.begins = false;
                }
                '<' | '>' => self.redirection(&mut words)?,
                _ => {
                    let begins = self.begins && words.is_empty();
                    let (word, is_quoted) = self.word()?;
                    self.begins = false;
                    let text = word.exact().filter(|_| begins && !is_quoted).unwrap_or_default();
                    match text.as_str() {
                        "case" => {
                            self.case()?;
                            self.begins = false;
                        }
                        "[[" if self.is_bash => self.expression()?,
                        "esac" if end == End::Clause => return Ok(true),
                        "!" | "{" | "do" | "then" | "else" | "elif" | "if" | "while" | "until" => {
                            self.take_word(word, is_quoted, &mut lead, &mut words)?;
                            self.begins = true;
                        }
                        _ => self.take_word(word, is_quoted, &mut lead, &mut words)?,
                    }
                }
            }
        }
        self.end(&mut words);
        if end == End::Text { Ok(false) } else { Err(Unreadable) }
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
            self.begins = false;
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
            return self.array();
        }
        if !is_keyword && !is_assignment {
            words.push(word);
        }
        Ok(())
    }

    /// Commands in parentheses, after the first one.
    fn nested(&mut self) -> Result<(), Unreadable> {
        self.depth += 1;
        let outer = (std::mem::take(&mut self.set), std::mem::take(&mut self.splits), self.begins);
        let read = self.list(End::Parenthesis);
        (self.set, self.splits, self.begins) = outer;
        self.depth -= 1;
        read.map(drop)
    }

    /// Reads what begins with `$((`, from the second parenthesis on: arithmetic if two parentheses close it, else commands.
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
        self.begins = false;
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
        let mut inner = Reader::new(text, self.depth + 1, self.is_bash, &mut *self.found);
        if inner.depth > DEEPEST {
            return Err(Unreadable);
        }
        while let Some(c) = inner.peek() {
            match c {
                '\\' => inner.at += 2,
                '$' | '`' => drop(inner.expansion(true)?),
                _ => inner.at += 1,
            }
        }
        Ok(())
    }

    /// A word, and whether a part of it is quoted.
    fn word(&mut self) -> Result<(Word, bool), Unreadable> {
        let (begin, mut atoms, mut is_quoted) = (self.at, Vec::new(), false);
        // The atom at which `[…]` or `{…}` begins. The atoms inside are alternatives, so their places say nothing.
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
                '$' | '`' => atoms.push(self.expansion(false)?),
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
            let unknown = [Atom::Any, Atom::Text].into_iter().find(|atom| atoms[from..].contains(atom));
            let kind = unknown.unwrap_or(Atom::Many);
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
                '$' | '`' => atoms.push(self.expansion(true)?),
                other => {
                    atoms.push(Atom::Char(other));
                    self.at += 1;
                }
            }
        }
    }

    /// Reads an expansion, which begins with `$` or a backquote. In quotes it gives one word, unless it names all arguments or a
    /// whole array.
    fn expansion(&mut self, is_quoted: bool) -> Result<Atom, Unreadable> {
        let mut atom = if is_quoted { Atom::Text } else { Atom::Any };
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
            return Ok(atom);
        }
        self.at += 1;
        match self.peek() {
            // In quotes, a quote behind `$` begins nothing.
            Some('\'' | '"') if is_quoted => return Ok(Atom::Char('$')),
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
                if inner.contains(['@', '!', '[', '"', '\'', '`']) {
                    atom = Atom::Any;
                }
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
                    // To other shells than bash, the quote ends the text.
                    if !self.is_bash && c == '\\' && self.after(1) == Some('\'') {
                        return Err(Unreadable);
                    }
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
                if c == '@' {
                    atom = Atom::Any;
                }
                while self.peek().is_some_and(|c| c.is_alphanumeric() || c == '_') {
                    self.at += 1;
                }
            }
            _ => return Ok(Atom::Char('$')),
        }
        Ok(atom)
    }

    /// The text of `${…}`, from its brace on. Shells disagree about braces that do not match inside of quotes, and about those
    /// without `$`, so that such a text is not read.
    fn braces(&mut self) -> Result<String, Unreadable> {
        self.at += 1;
        let (mut open, mut inner) = (1, String::new());
        // The quote that is open, and how many braces were open before it.
        let mut quote: Option<(char, usize)> = None;
        loop {
            let c = self.peek().ok_or(Unreadable)?;
            self.at += 1;
            match c {
                '\\' => {
                    inner.push(c);
                    inner.extend(self.peek());
                    self.at += 1;
                    continue;
                }
                '{' if inner.ends_with('$') && !inner.ends_with("$$") && !inner.ends_with("\\$") => open += 1,
                '{' => return Err(Unreadable),
                '}' => open -= 1,
                '\'' | '"' => match quote {
                    None => quote = Some((c, open)),
                    Some((begin, before)) if begin == c => {
                        if before != open {
                            return Err(Unreadable);
                        }
                        quote = None;
                    }
                    Some(_) => {}
                },
                _ => {}
            }
            if quote.is_some_and(|(_, before)| open < before) {
                return Err(Unreadable);
            }
            if open == 0 {
                return Ok(inner);
            }
            inner.push(c);
        }
    }

    /// Commands in a text of their own.
    fn script(&mut self, text: &str) -> Result<(), Unreadable> {
        Reader::new(text, self.depth + 1, self.is_bash, &mut *self.found).list(End::Text).map(drop)
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
            Atom::One | Atom::Many | Atom::Any | Atom::Text => Some('['),
        })
        .collect();
    let plain = name.split(['[', '+']).next().unwrap_or_default();
    let has_sign = word.0.len() > name.chars().count();
    has_sign
        && plain.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && plain.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
