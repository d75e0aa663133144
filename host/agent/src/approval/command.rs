//! The command that a run of a program stands for.

use std::path::Path;

use hermes_capabilities::process::Run;

use super::line::{Line, Unreadable};

/// Shells whose language the reader of lines knows.
const SHELLS: &[&str] = &["sh", "bash", "dash"];

/// The commands of a run: those in the line of a shell, or the program with its arguments; with its input, and the variables that
/// the plugin sets.
pub(super) fn of(run: &Run) -> Result<Line, Unreadable> {
    let variables = run.variables.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let line = written(run)?.with_input(&run.input).with_variables(variables);
    // A plugin writes to a program in the background as long as it runs.
    Ok(if run.background { line.with_open_input() } else { line })
}

fn written(run: &Run) -> Result<Line, Unreadable> {
    let name = Path::new(&run.program).file_name().unwrap_or_default().to_string_lossy();
    match run.arguments.as_slice() {
        [option, line] if option == "-c" && name == "bash" => Line::read_of_bash(line),
        [option, line] if option == "-c" && SHELLS.contains(&&*name) => Line::read(line),
        arguments => Ok(Line::of_program(std::iter::once(&run.program).chain(arguments).map(String::as_str))),
    }
}

/// Whether a rule about the commands can hold for the run: nothing else decides what they do. An input may be a script, and a plugin
/// may have put another program of the same name into a folder of `PATH`.
pub(super) fn is_all_of_it(line: &Line, run: &Run) -> bool {
    let names = line.commands.iter().filter_map(|words| words.first()?.exact());
    run.input.is_empty() && names.into_iter().all(|name| !is_changeable(&name, run))
}

/// Whether the shell finds a name in a folder that plugins may change.
fn is_changeable(name: &str, run: &Run) -> bool {
    if name.contains('/') {
        // The rule names this path.
        return false;
    }
    let path = run.environment.iter().find(|(variable, _)| variable == "PATH").map(|(_, value)| value.clone());
    let found =
        std::env::split_paths(&path.unwrap_or_default()).map(|folder| folder.join(name)).find(|file| file.is_file());
    found.is_some_and(|file| {
        let real = file.canonicalize().unwrap_or_else(|_| file.clone());
        run.places.changeable.iter().any(|place| real.starts_with(place) || file.starts_with(place))
    })
}
