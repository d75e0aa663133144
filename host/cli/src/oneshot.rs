//! A single turn: `-z TEXT` for scripts, `chat -q TEXT` for people.

use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use hermes_app::files::read_regular;
use hermes_app::{Carried, Desk, Lifetime, Opened, SessionRequest};
use hermes_config::WhileBusy;
use hermes_protocol::media::{MOST_BYTES, MediaError};
use hermes_protocol::{Command, CommandError, EventKind, Media, Part, SessionId, TurnEnd, UserMessage};
use serde_json::json;

use crate::approval::AtTerminal;
use crate::console::{Console, Tone, print};
use crate::editor::{LARGEST_INPUT, TOO_LONG};
use crate::failure::{Failure, Kind};
use crate::front::FrontEnd;
use crate::launch::{self, Setup};
use crate::screen::{Screen, Show};
use crate::session_arguments::SessionArguments;
use crate::signals::CtrlC;
use crate::typed::Typed;
use crate::{approval, imported, status, text};

/// How long to wait for piped input before a note says so.
const PIPE_NOTE_AFTER: Duration = Duration::from_secs(3);

/// The form in which an answer is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Its text.
    Text,
    /// One JSON object, after the turn.
    Json,
    /// The events of the session, a line of JSON each.
    Events,
}

/// Prints the answer to a text on standard output. Piped input is appended to the text, or replaces it if it is `-`.
pub(crate) async fn answer(
    text: &str,
    images: &[PathBuf],
    form: Form,
    session: &SessionArguments,
    verbose: u8,
    console: Console,
) -> Result<ExitCode, Failure> {
    let ctrl_c = CtrlC::listen();
    let setup = launch::read()?;
    let asked = (text != "-").then_some(text);
    let piped = match stdin_is_given() {
        true => Some(read_stdin(console).await?),
        false => None,
    };
    let text = prompt(asked, piped.as_deref(), !images.is_empty())?;
    let images = images.iter().map(|file| image(file)).collect::<Result<Vec<_>, _>>()?;
    let say = UserMessage { attached: images, ..text.into() };
    let show = match form {
        Form::Text => Show::Answer,
        Form::Json => Show::Nothing,
        Form::Events => Show::Events,
    };
    turn(setup, say, show, session, verbose, console, &ctrl_c).await
}

/// Shows one turn as a chat does.
pub(crate) async fn query(
    text: &str,
    session: &SessionArguments,
    verbose: u8,
    console: Console,
) -> Result<ExitCode, Failure> {
    let ctrl_c = CtrlC::listen();
    let setup = launch::read()?;
    let text = prompt(Some(text), None, false)?;
    let show = Show::Turn { reasoning: setup.config.settings().display.show_reasoning };
    turn(setup, text.into(), show, session, verbose, console, &ctrl_c).await
}

async fn turn(
    setup: Setup,
    say: UserMessage,
    show: Show,
    session: &SessionArguments,
    verbose: u8,
    console: Console,
    ctrl_c: &CtrlC,
) -> Result<ExitCode, Failure> {
    // A script reads the output, so Hermes asks no questions even on a terminal.
    let is_for_person = matches!(show, Show::Turn { .. });
    let person = if is_for_person { approval::at_terminal(console, ctrl_c.switch()) } else { None };
    let request = launch::request(&session.model, Lifetime::OneTurn)?;
    let request = SessionRequest { begin: session.choice(), mode: session.mode, can_ask: person.is_some(), ..request };
    let desk = launch::desk(setup, &request, verbose, console).await?;
    if session.chooses() {
        return Err(launch::no_session_named());
    }
    let request = imported::consent(&desk, request, session.imported, person.as_ref(), None).await?;
    let mut screen = Screen::new(console, show, ctrl_c.switch());
    let begun = Instant::now();
    let (id, ended) = match &person {
        None => unattended(&desk, &request, say, &mut screen, ctrl_c).await?,
        Some(person) => attended(&desk, &request, say, &mut screen, person, ctrl_c).await?,
    };
    let took = begun.elapsed();
    if is_for_person && let Ok(EventKind::TurnEnded { end: TurnEnd::Answered { .. }, status, .. }) = &ended {
        screen.line(Tone::Faint, &status::line(status));
    }
    if screen.reader_gone() {
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(error) = screen.take_unwritable() {
        return Err(error.into());
    }
    let EventKind::TurnEnded { end, status, .. } = ended? else { return Err(CommandError::Closed.into()) };
    let (word, answer, result) = outcome(end);
    if show == Show::Nothing {
        let used = screen.used();
        let report = json!({
            "answer": answer,
            "end": word,
            "session": id.map(|id| id.to_string()),
            "model": status.model,
            "usage": {
                "requests": used.requests, "input": used.input, "output": used.output,
                "cache_read": used.cache_read, "cache_write": used.cache_write, "reasoning": used.reasoning,
            },
            "elapsed_ms": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            "error": result.as_ref().err().map(|failure| {
                json!({"code": failure.code, "what": failure.what, "why": failure.why, "fix": failure.fix})
            }),
        });
        print(&text::json(&report))?;
    }
    result
}

/// Carries the message out, and shows its events.
async fn unattended(
    desk: &Desk,
    request: &SessionRequest,
    say: UserMessage,
    screen: &mut Screen,
    ctrl_c: &CtrlC,
) -> Result<(Option<SessionId>, Result<EventKind, CommandError>), Failure> {
    let opened = desk.session(request).await?;
    let _during = ctrl_c.stops_the_turn();
    let stop = ctrl_c.switch().token();
    let Carried { session, end } = opened.run(say, &stop, None, |event| screen.event(event)).await;
    let ended = end.and_then(|end| end.event.ok_or(CommandError::Closed));
    if ended.is_err() {
        screen.end_turn();
    }
    Ok((session, ended))
}

/// Carries the message out before a person, who answers questions.
async fn attended(
    desk: &Desk,
    request: &SessionRequest,
    say: UserMessage,
    screen: &mut Screen,
    person: &AtTerminal,
    ctrl_c: &CtrlC,
) -> Result<(Option<SessionId>, Result<EventKind, CommandError>), Failure> {
    let Opened { session, .. } = desk.session(request).await?;
    let mut front = FrontEnd::new(session, WhileBusy::Queue);
    let ended = {
        let _during = ctrl_c.stops_the_turn();
        front.run(Command::Say(say), screen, Some(person), ctrl_c.switch(), Typed::none()).await
    };
    // An error only says that the session has already ended.
    let _ = front.run(Command::Close, screen, None, ctrl_c.switch(), Typed::none()).await;
    // A session without a message is gone once it is closed.
    Ok((front.session().session(), ended))
}

/// The end of a turn: a word for programs, the answer or the summary, and the result of the command.
fn outcome(end: TurnEnd) -> (&'static str, Option<String>, Result<ExitCode, Failure>) {
    match end {
        TurnEnd::Answered { text } => ("answered", Some(text), Ok(ExitCode::SUCCESS)),
        TurnEnd::Cut { text, calls } => ("cut", Some(text), Err(cut(calls))),
        TurnEnd::Interrupted => ("interrupted", None, Ok(Kind::Interrupted.into())),
        TurnEnd::OutOfBudget { steps, setting, summary } => {
            let failure = out_of_budget(steps, &setting, summary.is_some());
            ("out-of-budget", summary, Err(failure))
        }
        TurnEnd::Failed { problem } => ("failed", None, Err(problem.into())),
    }
}

/// Reads an image from a file.
fn image(file: &Path) -> Result<Part, Failure> {
    let name = file.to_string_lossy();
    let failed =
        |why: String, fix: &str| Failure::new(Kind::Usage, format!("the image {name} cannot be sent"), why, fix);
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => failed("it does not exist".to_owned(), "check the path"),
        _ => failed(error.to_string(), "check that the file can be read"),
    };
    let unfit = |error: MediaError| {
        let fix = match error {
            MediaError::TooLarge { .. } => "make it smaller",
            MediaError::NotAnImage => "convert it, or give another file",
            MediaError::Empty | MediaError::Address(_) => "give another file",
        };
        failed(error.to_string(), fix)
    };
    let found = std::fs::metadata(file).map_err(unreadable)?;
    if found.is_dir() {
        return Err(failed("it is a folder".to_owned(), "give an image file"));
    }
    // Check the size first, so that no huge file is read.
    if found.len() > MOST_BYTES as u64 {
        return Err(unfit(MediaError::TooLarge { size: usize::try_from(found.len()).unwrap_or(usize::MAX) }));
    }
    let bytes = read_regular(file, MOST_BYTES as u64).map_err(unreadable)?;
    let picture = Media::image(bytes, Some(&name)).map_err(unfit)?;
    // The first bytes of these kinds have the size. Without it there is a name and no picture.
    if picture.width.is_none() && ["image/png", "image/gif"].contains(&picture.media_type.as_str()) {
        return Err(failed("it is cut short: its size is missing".to_owned(), "copy it again, or give another file"));
    }
    Ok(Part::Image(picture))
}

/// The failure of a turn that has used up its requests.
pub(crate) fn out_of_budget(steps: u32, setting: &str, has_summary: bool) -> Failure {
    let what = match has_summary {
        true => "the turn ended with a summary in place of an answer",
        false => "the turn ended without an answer",
    };
    Failure::new(
        Kind::Budget,
        what,
        format!("it made {steps} requests to the model, the limit of {setting}"),
        format!("continue with `hermes --continue`, or raise {setting}"),
    )
}

/// The failure of a turn whose last reply reached the model's output limit.
fn cut(calls: usize) -> Failure {
    let why = match calls {
        0 => "the reply reached the model's output limit".to_owned(),
        calls => format!(
            "the reply reached the model's output limit before its {} complete; {} run",
            if calls == 1 { "tool call was" } else { "tool calls were" },
            if calls == 1 { "it was not" } else { "none of them was" },
        ),
    };
    let fix = "ask for the rest with `hermes --continue -z \"go on\"`, ask for less at once, or choose a model that may write more";
    Failure::new(Kind::Cut, "the answer is not complete", why, fix)
}

/// The message: the text, then a blank line and the piped input. Only a message with images may be empty.
fn prompt(asked: Option<&str>, piped: Option<&str>, has_images: bool) -> Result<String, Failure> {
    let said = |text: Option<&str>| text.filter(|text| !text.trim().is_empty()).map(str::to_owned);
    let piped = said(piped.map(|text| text.trim_end_matches(['\n', '\r'])));
    match (said(asked), piped) {
        (Some(asked), Some(piped)) => Ok(format!("{asked}\n\n{piped}")),
        (Some(text), None) | (None, Some(text)) => Ok(text),
        (None, None) if has_images => Ok(String::new()),
        (None, None) => Err(Failure::new(
            Kind::Usage,
            "there is no message to send",
            "the message is empty",
            "give it after the option, or pipe it in, as in `echo hello | hermes -z`",
        )),
    }
}

/// Whether standard input is a pipe, file or socket: not a terminal, and not a device such as `/dev/null`.
fn stdin_is_given() -> bool {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        return false;
    }
    #[cfg(unix)]
    {
        use std::os::fd::AsFd;
        use std::os::unix::fs::FileTypeExt;
        let Ok(descriptor) = stdin.as_fd().try_clone_to_owned() else { return false };
        let kind = std::fs::File::from(descriptor).metadata().map(|found| found.file_type());
        kind.is_ok_and(|kind| kind.is_fifo() || kind.is_file() || kind.is_socket())
    }
    #[cfg(not(unix))]
    true
}

async fn read_stdin(console: Console) -> Result<String, Failure> {
    let mut reading = tokio::task::spawn_blocking(|| {
        let mut bytes = Vec::new();
        io::stdin().lock().take(LARGEST_INPUT as u64 + 1).read_to_end(&mut bytes).map(|_| bytes)
    });
    let read = match tokio::time::timeout(PIPE_NOTE_AFTER, &mut reading).await {
        Ok(read) => read,
        Err(_) => {
            console.note("waiting for the end of standard input; if there is no input, add `< /dev/null`");
            reading.await
        }
    };
    let failed = |why: String| {
        Failure::new(Kind::Usage, "standard input cannot be read", why, "pipe in UTF-8 text, or add `< /dev/null`")
    };
    let bytes = read.map_err(|error| failed(error.to_string()))?.map_err(|error| failed(error.to_string()))?;
    if bytes.len() > LARGEST_INPUT {
        let fix = "save it as a file and ask the model to read that file";
        return Err(Failure::new(Kind::Usage, "standard input is too long for a message", TOO_LONG, fix));
    }
    String::from_utf8(bytes).map_err(|_| failed("it is not UTF-8 text".to_owned()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn piped_input_is_appended_to_the_text() {
        for (asked, piped, text) in [
            (Some("Sum up:"), Some("one\ntwo\n"), "Sum up:\n\none\ntwo"),
            (Some("hi"), None, "hi"),
            (Some("hi"), Some(" \n"), "hi"),
            (None, Some("only this\n"), "only this"),
            (Some(""), Some("only this"), "only this"),
        ] {
            assert_eq!(prompt(asked, piped, false).unwrap(), text);
        }
        for (asked, piped) in [(None, None), (Some(" "), None), (None, Some("\n"))] {
            assert_eq!(prompt(asked, piped, false).unwrap_err().kind, Kind::Usage);
            assert_eq!(prompt(asked, piped, true).unwrap(), "");
        }
    }
}
