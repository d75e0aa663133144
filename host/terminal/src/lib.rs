//! The terminal of a chat.
//!
//! Text that is complete is printed once and belongs to the terminal's scrollback. Below it is a region that is drawn again and
//! again: the unfinished end of a reply, what runs, the input, and a status line.
//!
//! This crate knows nothing of sessions and models. Text that it gets may contain anything: what a terminal would obey, or what
//! hides text, is shown in its escaped form.

mod ansi;
mod answer;
mod clipboard;
mod editor;
mod highlight;
mod layout;
mod markdown;
mod menu;
mod parts;
mod picker;
mod question;
mod region;
mod search;
mod ui;

pub use ansi::{Colours, painted, sequence};
pub use answer::Answer;
pub use clipboard::{NotCopied, copy};
pub use editor::{Candidates, Completer, Editor, Outcome, Written};
pub use layout::{broken, cut, printable, width, wrapped};
pub use markdown::{Stream, rendered};
pub use menu::Candidate;
pub use parts::{Part, joined};
pub use picker::Picker;
pub use question::{Choices, Keys, Question, Rows, are_lettered, choice_mark, named_choice};
pub use ratatui_core::style::{Color, Modifier, Style};
pub use ratatui_core::text::{Line, Span};
pub use region::{Picture, Place, Region};
pub use ui::{Activity, Chooser, Paused, Ui, give_back};
