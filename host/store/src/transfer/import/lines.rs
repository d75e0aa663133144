//! The lines of a file with their positions, so that a session can be read again.

use std::io::{BufRead, Read as _, Seek, SeekFrom};

use hermes_conversation::characters::{escape, looks_blank};
use serde_json::error::Category;

use crate::transfer::record::Record;
use crate::{ImportProblem, StoreError, TransferError};

/// Fits a message with 10 MB of control characters.
const MAX_MESSAGE_LINE: u64 = 64 << 20;
/// The limit of all other lines: a short line can take many times its length in memory.
const MAX_LINE: u64 = 4 << 20;

/// Where a line begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    offset: u64,
    /// Counts from 1.
    line: u64,
}

pub(super) struct Lines<'a, R> {
    file: &'a mut R,
    next: Place,
}

/// A line that is not empty.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) place: Place,
    text: Vec<u8>,
}

impl<'a, R: BufRead + Seek> Lines<'a, R> {
    pub(super) fn from_start(file: &'a mut R) -> Result<Self, StoreError> {
        Self::from(file, Place { offset: 0, line: 1 })
    }

    pub(super) fn from(file: &'a mut R, place: Place) -> Result<Self, StoreError> {
        file.seek(SeekFrom::Start(place.offset)).map_err(TransferError::Input)?;
        Ok(Self { file, next: place })
    }

    /// The next line, without the syntax of a JSON array around it.
    pub(super) fn next(&mut self) -> Result<Option<Line>, StoreError> {
        loop {
            let place = self.next;
            let mut text = Vec::new();
            let length =
                self.file.take(MAX_MESSAGE_LINE + 1).read_until(b'\n', &mut text).map_err(TransferError::Input)?;
            if length == 0 {
                return Ok(None);
            }
            if length as u64 > MAX_MESSAGE_LINE {
                return Err(too_long(place, MAX_MESSAGE_LINE));
            }
            self.next = Place { offset: place.offset + length as u64, line: place.line + 1 };
            let line = text.trim_ascii();
            let line = line.strip_suffix(b",").unwrap_or(line);
            if !matches!(line, b"" | b"[" | b"]") {
                return Ok(Some(Line { place, text: line.to_vec() }));
            }
        }
    }

    pub(super) fn place(&self) -> Place {
        self.next
    }

    pub(super) fn back_to(&mut self, place: Place) -> Result<(), StoreError> {
        self.file.seek(SeekFrom::Start(place.offset)).map_err(TransferError::Input)?;
        self.next = place;
        Ok(())
    }

    /// An error at the position of the next line.
    pub(super) fn refused(&self, problem: impl Into<ImportProblem>) -> StoreError {
        refused(self.next, problem.into())
    }
}

impl Line {
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    /// The line as it is in the file, without the syntax of an array around it.
    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    pub(super) fn record(&self) -> Result<Record, StoreError> {
        if self.text.len() as u64 > MAX_LINE && !self.is_message() {
            return Err(too_long(self.place, MAX_LINE));
        }
        serde_json::from_slice(&self.text).map_err(|error| {
            let message = error.to_string();
            // The error names the line in the file, so the parser's line is left out.
            let what = message.rsplit_once(" at line ").map_or(message.as_str(), |(what, _)| what);
            let what = shown(&what.replace("unknown variant", "unknown value"));
            let what = match error.classify() {
                Category::Eof => "the JSON is incomplete".to_owned(),
                Category::Syntax => format!("it is not valid JSON: {what}"),
                Category::Data | Category::Io => format!("it is not a record of an export: {what}"),
            };
            // An error of a whole record has no column.
            let column = Some(error.column()).filter(|column| *column > 0);
            self.refused(column.map_or(what.clone(), |column| format!("{what} (column {column})")))
        })
    }

    /// Whether the record is a message. Reads only the type; a record with two types is refused later.
    fn is_message(&self) -> bool {
        #[derive(serde::Deserialize)]
        struct Kind<'a> {
            #[serde(rename = "type", borrow)]
            kind: std::borrow::Cow<'a, str>,
        }
        serde_json::from_slice::<Kind<'_>>(&self.text).is_ok_and(|kind| kind.kind == "message")
    }

    pub(super) fn refused(&self, problem: impl Into<ImportProblem>) -> StoreError {
        refused(self.place, problem.into())
    }
}

/// The beginning of a message that quotes the file, as a terminal can show it.
fn shown(message: &str) -> String {
    let mut text = String::new();
    for character in message.chars().take(200) {
        match character.is_control() || looks_blank(character) {
            true => escape(character, &mut text),
            false => text.push(character),
        }
    }
    text
}

fn too_long(place: Place, most: u64) -> StoreError {
    refused(place, format!("the line is longer than {} megabytes", most >> 20).into())
}

fn refused(place: Place, problem: ImportProblem) -> StoreError {
    TransferError::Import { line: place.line, problem }.into()
}
