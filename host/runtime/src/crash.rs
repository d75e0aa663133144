//! Why a guest crashed, in words of the language that it was written in.
//!
//! A language's runtime writes a panic or a traceback to standard error, and names its own files as well as those of the plugin's author.
//! [`Crash::read`] finds what happened and where in the author's files. The whole text is in the plugin's log.

use std::fmt;

/// A crash of a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crash {
    /// What happened, in one line.
    pub what: String,
    /// Where, such as `at src/lib.rs:55:84` or ``in `count` ``.
    pub place: Option<String>,
    /// What the language's runtime wrote, or the machine's trap.
    pub raw: String,
}

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        self.place.as_ref().map_or(Ok(()), |place| write!(f, " ({place})"))
    }
}

impl From<&str> for Crash {
    fn from(what: &str) -> Self {
        Self { what: what.to_owned(), place: None, raw: what.to_owned() }
    }
}

impl From<String> for Crash {
    fn from(what: String) -> Self {
        what.as_str().into()
    }
}

/// The beginning of the advice on backtraces, which is useless for a plugin: it cannot have the variable.
const NOTE: &str = "note: run with";
/// Python's SDK writes this character before the sentence that explains a crash. Everything before it is the plugin's own
/// standard error.
const CAUSE: char = '\u{1e}';
/// The sentence for an answer that the language's runtime could not pass on. It names the field if it knows it.
const SHAPE: &str = "an answer or an error does not have the shape that the contract gives it";

/// The sentence for a guest that ended itself.
pub(crate) const EXIT: &str = "it ended itself by calling `exit`";

/// The sentence for a module that lacks an interface or a function of the contract.
const EXPORT: &str = "the module does not export what the contract calls";

impl Crash {
    /// What the author can do about it, if what happened tells.
    pub fn remedy(&self) -> Option<&'static str> {
        let begins = |sentence: &str| self.what.starts_with(sentence);
        match () {
            () if begins(SHAPE) => Some(
                "give each record every field that wit/ lists, an optional one too, and each variant one of its cases; what the SDK makes has \
                 them",
            ),
            () if self.what.contains("utf-8 sequence") => Some(
                "a text that it answers or gives to the host is no UTF-8: its bytes are cut within a character, its memory is freed, or its length \
                 is that of another text; in C, `hermes_string`, `hermes_copy` and `hermes_take` make whole ones",
            ),
            () if begins(EXPORT) => Some("export it from the module that is built, as the template does"),
            () => None,
        }
    }

    /// Reads what a guest wrote to standard error. `None` if it wrote nothing.
    pub(crate) fn read(stderr: &str) -> Option<Self> {
        let cause = stderr.rsplit_once(CAUSE).map_or(stderr, |(_, cause)| cause);
        let lines: Vec<&str> = cause.lines().map(str::trim_end).filter(|line| !line.trim().starts_with(NOTE)).collect();
        if lines.iter().all(|line| line.is_empty()) {
            return None;
        }
        let (what, place) = python(&lines)
            .or_else(|| go(&lines))
            .or_else(|| panic(&lines))
            .or_else(|| assertion(&lines))
            .unwrap_or_else(|| (joined(&lines), None));
        Some(Self { what: shortened(&what), place, raw: stderr.to_owned() })
    }

    /// The crash, if the guest ended by calling `exit`. Go's runtime does so after a panic, and names a place; the author's
    /// `log.Fatal` does not.
    pub(crate) fn by_exit(self) -> Self {
        if self.place.is_some() { self } else { Self { what: format!("{EXIT}: {}", self.what), ..self } }
    }

    /// A trap without a word of the guest. `functions` are the functions that it was in, the innermost first, if the code has names.
    pub(crate) fn of_trap(what: String, functions: &[String]) -> Self {
        /// This many callers are enough to find the place.
        const CALLERS: usize = 4;
        let named: Vec<String> = functions.iter().take(CALLERS).map(|name| format!("`{name}`")).collect();
        let place = (!named.is_empty()).then(|| format!("in {}", named.join(", called by ")));
        let raw = format!("{what}\n{}", functions.iter().map(|name| format!("  in {name}\n")).collect::<String>());
        Self { what, place, raw }
    }
}

/// What happened and where.
type Found = (String, Option<String>);

/// A traceback, or an error of Python's runtime about what a function returned.
fn python(lines: &[&str]) -> Option<Found> {
    let panicked = panicked(lines);
    let end = panicked.as_ref().map_or(lines.len(), |panic| panic.line);
    let frame = |line: &str| {
        let (file, rest) = line.trim_start().strip_prefix("File \"")?.split_once("\", line ")?;
        let number: String = rest.chars().take_while(char::is_ascii_digit).collect();
        Some((python_file(file), number))
    };
    let begin = lines[..end].iter().rposition(|line| line.starts_with("Traceback (most recent")).map_or(0, |at| at + 1);
    let traceback = &lines[begin..end];
    let frames: Vec<(String, String)> = traceback.iter().filter_map(|line| frame(line)).collect();
    if frames.is_empty() {
        let panic = panicked.filter(|panic| panic.message.contains("PyErr {"))?;
        let value = panic.message.split_once(", value: ").map_or("", |(_, rest)| rest);
        let value = value.split(", traceback: ").next().unwrap_or_default();
        // `TypeError("why")` as Python shows it elsewhere: `TypeError: why`. Several arguments stay as they are.
        let error = value.split_once('(').map(|(name, arguments)| {
            let arguments = arguments.strip_suffix(')').unwrap_or(arguments);
            let is_one = !arguments.contains("', ") && !arguments.contains("\", ");
            format!("{name}: {}", if is_one { literal(arguments) } else { arguments.to_owned() })
        });
        return Some((format!("{SHAPE}: {}", error.as_deref().unwrap_or(value)), None));
    }
    // Frames, sources and markers are indented; the exception is not.
    let said = traceback.iter().skip_while(|line| frame(line).is_none()).skip_while(|line| line.starts_with(' '));
    let what = joined(&said.copied().collect::<Vec<_>>());
    let what = if what.is_empty() { "an exception".to_owned() } else { what };
    let place = of_author(frames.iter().rev(), |(file, _)| file).map(|(file, line)| format!("at {file}:{line}"));
    Some((what, place))
}

/// The file of a frame as its author names it. The component has the folders of the template as `/0`, `/1` and so on.
fn python_file(file: &str) -> String {
    for (place, folder) in [("/0/", "src/"), ("/1/", "vendor/"), ("/2/", "build/packages/")] {
        if let Some(rest) = file.strip_prefix(place) {
            return if rest.starts_with("src/") || rest.starts_with("vendor/") {
                rest.to_owned()
            } else {
                format!("{folder}{rest}")
            };
        }
    }
    file.trim_start_matches('/').to_owned()
}

/// A panic of Go with its goroutines.
fn go(lines: &[&str]) -> Option<Found> {
    let begin = lines.iter().position(|line| line.starts_with("panic: ") || line.starts_with("fatal error: "))?;
    let trace = begin + lines[begin..].iter().position(|line| line.starts_with("goroutine "))?;
    let said = joined(&lines[begin..trace]);
    let what = said.strip_prefix("panic: ").or_else(|| said.strip_prefix("fatal error: ")).unwrap_or(&said);
    let frames: Vec<&str> =
        lines[trace..].iter().filter_map(|line| line.strip_prefix('\t')?.split(" +0x").next()).collect();
    let of_project = frames.iter().find_map(|file| go_file(file));
    let place = of_project.map(|file| format!("at {file}")).or_else(|| {
        let file = of_author(frames.iter(), |file| file)?;
        let parts: Vec<&str> = file.rsplitn(3, '/').take(2).collect();
        Some(format!("at {}", parts.into_iter().rev().collect::<Vec<_>>().join("/")))
    });
    Some((what.to_owned(), place))
}

/// A file of the author, if the template built the component: it names files by package, and the module of every project is `hermes`.
fn go_file(file: &str) -> Option<&str> {
    file.strip_prefix("hermes/").filter(|file| !file.starts_with("bindings/") && !file.starts_with("sdk/"))
}

/// A panic of Rust: of the author's code, or of the runtime of JavaScript.
fn panic(lines: &[&str]) -> Option<Found> {
    let panic = panicked(lines)?;
    if panic.location.starts_with("crates/runtime/src/")
        && let Some(found) = javascript(&panic.message)
    {
        return Some(found);
    }
    // A crate of the registry is named by its folder, without the folders above.
    let location = panic.location.split_once("/registry/src/").and_then(|(_, rest)| rest.split_once('/'));
    let location = location.map_or(panic.location, |(_, rest)| rest);
    let message = joined(&panic.message.lines().collect::<Vec<_>>());
    Some((if message.is_empty() { "it panicked".to_owned() } else { message }, Some(format!("at {location}"))))
}

/// What QuickJS threw, or an answer that its runtime could not pass on.
fn javascript(message: &str) -> Option<Found> {
    let between = |name: &str| message.split_once(&format!("{name}: Some(")).map(|(_, rest)| literal(rest));
    if message.contains("Exception {") {
        let said = between("message").filter(|said| !said.trim().is_empty());
        let said = said.unwrap_or_else(|| "an exception without a message".to_owned());
        let stack = between("stack").unwrap_or_default();
        let frames: Vec<&str> = stack
            .lines()
            .filter_map(|line| {
                let frame = line.trim().strip_prefix("at ")?;
                // `at f (/src/plugin.js:20:36)`, and without a function's name `at /src/plugin.js:20:36`.
                let file = frame.rsplit_once('(').map_or(frame, |(_, file)| file.trim_end_matches(')'));
                file.contains(':').then(|| file.trim_start_matches('/'))
            })
            .collect();
        // The SDK's sentence has no frames and names the place itself. Without a call, the runtime could not pass on the answer.
        if frames.is_empty() {
            let is_thrown = message.starts_with("Failed to call");
            return Some((if is_thrown { said } else { format!("{SHAPE}: {said}") }, None));
        }
        return Some((said, of_author(frames.iter(), |file| file).map(|file| format!("at {file}"))));
    }
    let (said, from) = message.split_once("FromJs {").map_or((message, None), |(said, from)| (said, Some(from)));
    // What is between the quotes after a name.
    let named = |name: &str| Some(from?.split_once(&format!("{name}: \""))?.1.split('"').next().unwrap_or_default());
    let said = joined(&said.lines().collect::<Vec<_>>());
    let said = said.trim_end_matches("Error(").trim_end_matches([':', ' ']);
    Some(match (said, named("from"), named("to")) {
        (said, ..) if said.ends_with("not found") => (format!("{EXPORT}: {said}"), None),
        (said, ..) if said.starts_with("Failed to call") => {
            ("it threw something that is not an `Error`".to_owned(), None)
        }
        (said, Some(from), Some(to)) => (format!("{SHAPE}: {said}, {from} instead of {to}"), None),
        (said, ..) if said.starts_with("expected ") || said.starts_with("invalid ") => {
            (format!("{SHAPE}: {said}"), None)
        }
        // A crate of the author with the same path.
        _ => return None,
    })
}

/// A failed `assert` of C: `Assertion failed: x > 0 (src/plugin.c: count: 12)`.
fn assertion(lines: &[&str]) -> Option<Found> {
    let failed = lines.iter().rev().find(|line| line.starts_with("Assertion failed: "))?;
    let (what, place) = failed.strip_suffix(')')?.rsplit_once(" (")?;
    let parts: Vec<&str> = place.split(": ").collect();
    let (file, line) = (parts.first()?, parts.last()?);
    Some(((*what).to_owned(), Some(format!("at {file}:{line}"))))
}

/// A message of Rust's panic handler.
struct Panic<'a> {
    /// The line in which it begins.
    line: usize,
    location: &'a str,
    message: String,
}

fn panicked<'a>(lines: &[&'a str]) -> Option<Panic<'a>> {
    const BEGIN: &str = "panicked at ";
    let line = lines
        .iter()
        .position(|line| line.starts_with(BEGIN) || line.starts_with("thread '") && line.contains(BEGIN))?;
    let (_, rest) = lines[line].split_once(BEGIN)?;
    let (location, first) = match rest.strip_suffix(':') {
        Some(location) => (location, ""),
        None => rest.split_once(": ")?,
    };
    let rest = lines[line + 1..].iter().take_while(|line| !line.starts_with("stack backtrace:"));
    let message = std::iter::once(first).chain(rest.copied()).collect::<Vec<_>>().join("\n");
    Some(Panic { line, location, message: message.trim().to_owned() })
}

/// The innermost frame in a file of the author, else the innermost of all. Other files belong to the SDK, to packages or to the language.
fn of_author<'a, T: 'a>(frames: impl Iterator<Item = &'a T> + Clone, file: impl Fn(&T) -> &str) -> Option<&'a T> {
    let is_foreign = |frame: &&T| {
        let path = file(frame);
        let mut folders = path.split('/').peekable();
        let mut is_foreign = path.starts_with('<');
        while let Some(folder) = folders.next() {
            // Go's own sources are below `go/src` or `go-1.24/src`.
            let of_go = folder.starts_with("go") && folders.peek() == Some(&"src");
            let of_python = folder.starts_with("python") || folder == "site-packages";
            is_foreign |=
                of_go || of_python || matches!(folder, "vendor" | "node_modules" | "packages" | "bindings" | "mod");
        }
        is_foreign
    };
    frames.clone().find(|frame| !is_foreign(frame)).or_else(|| frames.into_iter().next())
}

/// The text of a literal as Rust's `Debug` writes it. Begins at its quote, or at a quote of Python, and ends before the next one that
/// is not escaped.
fn literal(text: &str) -> String {
    let Some(quote) = text.chars().next().filter(|quote| matches!(quote, '"' | '\'')) else {
        return text.trim_end_matches(')').to_owned();
    };
    let mut out = String::new();
    let mut signs = text[1..].chars();
    while let Some(sign) = signs.next().filter(|sign| *sign != quote) {
        if sign != '\\' {
            out.push(sign);
            continue;
        }
        match signs.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('u') => {
                let code: String = signs.by_ref().skip(1).take_while(|sign| *sign != '}').collect();
                out.extend(u32::from_str_radix(&code, 16).ok().and_then(char::from_u32));
            }
            Some(other) => out.push(other),
            None => {}
        }
    }
    out
}

fn joined(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The beginning of a message and its end say the most, so a long text loses its middle.
fn shortened(text: &str) -> String {
    const BEGINNING: usize = 512;
    const END: usize = 512;
    if text.len() <= BEGINNING + END {
        return text.to_owned();
    }
    let (beginning, end) = (text.floor_char_boundary(BEGINNING), text.ceil_char_boundary(text.len() - END));
    format!("{} … {}", &text[..beginning], &text[end..])
}

#[cfg(test)]
mod tests;
