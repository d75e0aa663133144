//! What host and worker send each other: a first frame with the database, then requests and replies in any order, each with
//! the number of its call.
//!
//! Both sides read with a limit of bytes per frame, so that neither can take the other's memory.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::super::{Quota, Rows, SqlError, Statement, Value};

/// Most bytes of a request: the highest limit on what a plugin passes to an import, and room for lengths.
const REQUEST: u64 = 1 << 30;
/// Most bytes of a reply above those that the quota allows: lengths, and an error.
const REPLY: u64 = 8 << 20;
/// Most bytes of the first frame.
const FIRST: u64 = 64 << 10;

/// The first frame: which database the worker serves, within which limits.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Assignment {
    /// The file; `None` for a database in memory.
    pub(super) path: Option<PathBuf>,
    pub(super) quota: Quota,
}

/// The number of a call.
pub(super) type CallId = u64;

/// What the host asks.
#[derive(Debug)]
pub(super) enum Request {
    Query {
        statement: Statement,
        left: Duration,
    },
    Execute {
        statements: Vec<Statement>,
        left: Duration,
    },
    /// The caller of this call no longer waits.
    Cancel,
}

/// The same without owning the statements.
#[derive(Debug, Clone, Copy)]
pub(super) enum Work<'a> {
    Query(&'a Statement),
    Execute(&'a [Statement]),
}

/// What the worker answers.
#[derive(Debug)]
pub(super) enum Reply {
    Rows(Rows),
    Changes(Vec<u64>),
    Failed(SqlError),
}

pub(super) fn write_assignment(output: &mut impl Write, assignment: &Assignment) -> io::Result<()> {
    bytes(output, &serde_json::to_vec(assignment)?)?;
    output.flush()
}

pub(super) fn read_assignment(input: impl Read) -> io::Result<Assignment> {
    Ok(serde_json::from_slice(&Decoder { input, left: FIRST }.bytes()?)?)
}

pub(super) fn write_cancel(output: &mut impl Write, call: CallId) -> io::Result<()> {
    number(output, call)?;
    output.write_all(&[0])?;
    output.flush()
}

pub(super) fn write_work(output: &mut impl Write, call: CallId, left: Duration, work: Work<'_>) -> io::Result<()> {
    number(output, call)?;
    let (kind, statements) = match work {
        Work::Query(one) => (1, std::slice::from_ref(one)),
        Work::Execute(all) => (2, all),
    };
    output.write_all(&[kind])?;
    number(output, u64::try_from(left.as_micros()).unwrap_or(u64::MAX))?;
    number(output, statements.len() as u64)?;
    for statement in statements {
        bytes(output, statement.sql.as_bytes())?;
        values(output, &statement.params)?;
    }
    output.flush()
}

/// `None` at the end of the input.
pub(super) fn read_request(mut input: impl Read) -> io::Result<Option<(CallId, Request)>> {
    let Some(call) = first_number(&mut input)? else { return Ok(None) };
    let mut decoder = Decoder { input, left: REQUEST };
    let kind = decoder.byte()?;
    if kind == 0 {
        return Ok(Some((call, Request::Cancel)));
    }
    let left = Duration::from_micros(decoder.number()?);
    let count = decoder.number()?;
    let mut statements = Vec::new();
    for _ in 0..count {
        statements.push(Statement { sql: decoder.text()?, params: decoder.values()? });
    }
    let request = match (kind, statements.pop()) {
        (1, Some(statement)) if statements.is_empty() => Request::Query { statement, left },
        (2, last) => {
            statements.extend(last);
            Request::Execute { statements, left }
        }
        _ => return Err(invalid("an unknown request")),
    };
    Ok(Some((call, request)))
}

pub(super) fn write_reply(output: &mut impl Write, call: CallId, reply: &Reply) -> io::Result<()> {
    number(output, call)?;
    match reply {
        Reply::Rows(found) => {
            output.write_all(&[0])?;
            number(output, found.columns.len() as u64)?;
            for column in &found.columns {
                bytes(output, column.as_bytes())?;
            }
            number(output, found.rows.len() as u64)?;
            for row in &found.rows {
                values(output, row)?;
            }
        }
        Reply::Changes(changes) => {
            output.write_all(&[1])?;
            number(output, changes.len() as u64)?;
            for change in changes {
                number(output, *change)?;
            }
        }
        Reply::Failed(error) => {
            output.write_all(&[2])?;
            bytes(output, &serde_json::to_vec(error)?)?;
        }
    }
    output.flush()
}

/// `None` at the end of the input.
pub(super) fn read_reply(mut input: impl Read, quota: &Quota) -> io::Result<Option<(CallId, Reply)>> {
    let Some(call) = first_number(&mut input)? else { return Ok(None) };
    // A value takes 16 bytes of the quota, and at most 9 more than its text here.
    let mut decoder = Decoder { input, left: quota.answer as u64 + 8 * quota.rows as u64 + REPLY };
    let reply = match decoder.byte()? {
        0 => {
            let columns = (0..decoder.number()?).map(|_| decoder.text()).collect::<io::Result<_>>()?;
            let rows = (0..decoder.number()?).map(|_| decoder.values()).collect::<io::Result<_>>()?;
            Reply::Rows(Rows { columns, rows })
        }
        1 => Reply::Changes((0..decoder.number()?).map(|_| decoder.number()).collect::<io::Result<_>>()?),
        2 => Reply::Failed(serde_json::from_slice(&decoder.bytes()?)?),
        _ => return Err(invalid("an unknown reply")),
    };
    Ok(Some((call, reply)))
}

fn number(output: &mut impl Write, number: u64) -> io::Result<()> {
    output.write_all(&number.to_le_bytes())
}

fn bytes(output: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    number(output, bytes.len() as u64)?;
    output.write_all(bytes)
}

fn values(output: &mut impl Write, values: &[Value]) -> io::Result<()> {
    number(output, values.len() as u64)?;
    for value in values {
        match value {
            Value::Null => output.write_all(&[0])?,
            Value::Integer(integer) => {
                output.write_all(&[1])?;
                output.write_all(&integer.to_le_bytes())?;
            }
            Value::Real(real) => {
                output.write_all(&[2])?;
                output.write_all(&real.to_bits().to_le_bytes())?;
            }
            Value::Text(text) => {
                output.write_all(&[3])?;
                bytes(output, text.as_bytes())?;
            }
            Value::Blob(blob) => {
                output.write_all(&[4])?;
                bytes(output, blob)?;
            }
        }
    }
    Ok(())
}

/// The number at the start of a frame, or `None` if the input ends before it.
fn first_number(input: &mut impl Read) -> io::Result<Option<u64>> {
    let mut number = [0; 8];
    let mut read = 0;
    while read < number.len() {
        match input.read(&mut number[read..]) {
            Ok(0) if read == 0 => return Ok(None),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(more) => read += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Some(u64::from_le_bytes(number)))
}

/// Reads the parts of one frame.
struct Decoder<R> {
    input: R,
    /// How many bytes the frame may still have.
    left: u64,
}

impl<R: Read> Decoder<R> {
    fn take(&mut self, bytes: u64) -> io::Result<()> {
        self.left = self.left.checked_sub(bytes).ok_or_else(|| invalid("a frame that is too long"))?;
        Ok(())
    }

    fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        self.take(N as u64)?;
        let mut array = [0; N];
        self.input.read_exact(&mut array)?;
        Ok(array)
    }

    fn byte(&mut self) -> io::Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    fn number(&mut self) -> io::Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn bytes(&mut self) -> io::Result<Vec<u8>> {
        let length = self.number()?;
        self.take(length)?;
        let mut bytes = Vec::new();
        if (&mut self.input).take(length).read_to_end(&mut bytes)? as u64 != length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(bytes)
    }

    fn text(&mut self) -> io::Result<String> {
        String::from_utf8(self.bytes()?).map_err(|_| invalid("a text that is not UTF-8"))
    }

    fn values(&mut self) -> io::Result<Vec<Value>> {
        (0..self.number()?).map(|_| self.value()).collect()
    }

    fn value(&mut self) -> io::Result<Value> {
        Ok(match self.byte()? {
            0 => Value::Null,
            1 => Value::Integer(i64::from_le_bytes(self.array()?)),
            2 => Value::Real(f64::from_bits(self.number()?)),
            3 => Value::Text(self.text()?),
            4 => Value::Blob(self.bytes()?),
            _ => return Err(invalid("an unknown value")),
        })
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn all_values() -> Vec<Value> {
        vec![
            Value::Null,
            Value::Integer(i64::MIN),
            Value::Real(-0.5),
            Value::Text("tea\0☕".into()),
            Value::Blob(vec![0, 255]),
        ]
    }

    #[test]
    fn requests_and_replies_are_read_as_they_were_written() {
        let statement = Statement::new("SELECT ?1", all_values());
        let mut written = Vec::new();
        write_work(&mut written, 1, Duration::from_millis(5), Work::Query(&statement)).unwrap();
        write_work(&mut written, 2, Duration::from_secs(9), Work::Execute(&[statement.clone(), statement.clone()]))
            .unwrap();
        write_work(&mut written, 3, Duration::ZERO, Work::Execute(&[])).unwrap();
        write_cancel(&mut written, 2).unwrap();
        let mut input = written.as_slice();
        let mut next = || read_request(&mut input).unwrap();
        assert!(matches!(next(), Some((1, Request::Query { statement: read, left }))
            if read == statement && left == Duration::from_millis(5)));
        assert!(
            matches!(next(), Some((2, Request::Execute { statements, .. })) if statements == [statement.clone(), statement])
        );
        assert!(matches!(next(), Some((3, Request::Execute { statements, .. })) if statements.is_empty()));
        assert!(matches!(next(), Some((2, Request::Cancel))));
        assert!(next().is_none());

        let rows = Rows { columns: vec!["a".into(), String::new()], rows: vec![all_values(), Vec::new()] };
        let mut written = Vec::new();
        write_reply(&mut written, 1, &Reply::Rows(rows.clone())).unwrap();
        write_reply(&mut written, 2, &Reply::Changes(vec![0, u64::MAX])).unwrap();
        write_reply(&mut written, 3, &Reply::Failed(SqlError::Answer { most: 7 })).unwrap();
        let (mut input, quota) = (written.as_slice(), Quota::standard());
        let mut next = || read_reply(&mut input, &quota).unwrap();
        assert!(matches!(next(), Some((1, Reply::Rows(read))) if read == rows));
        assert!(matches!(next(), Some((2, Reply::Changes(changes))) if changes == [0, u64::MAX]));
        assert!(matches!(next(), Some((3, Reply::Failed(SqlError::Answer { most: 7 })))));
        assert!(next().is_none());
    }

    #[test]
    fn a_reply_cannot_claim_more_than_the_quota_allows() {
        let quota = Quota::standard();
        let mut claims = Vec::new();
        number(&mut claims, 1).unwrap();
        claims.push(0);
        number(&mut claims, u64::MAX).unwrap();
        assert!(read_reply(claims.as_slice(), &quota).is_err(), "columns");
        let mut claims = Vec::new();
        number(&mut claims, 1).unwrap();
        claims.push(2);
        number(&mut claims, 1 << 40).unwrap();
        let error = read_reply(claims.as_slice(), &quota).unwrap_err();
        assert_eq!(error.to_string(), "a frame that is too long");
    }
}
