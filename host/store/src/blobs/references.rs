//! Checks the bytes of blobs, and the references of messages to them.
//!
//! A row of `message_blobs` links a message to each blob that it names. A message whose blob was lost keeps the name
//! without a row; requests then contain a text in place of the picture.

use std::collections::BTreeSet;

use hermes_conversation::part::Part;
use hermes_conversation::{BlobId, Draft, Media, Role};
use rusqlite::{Connection, params};

use super::is_intact;
use crate::error::Fault;

/// A message and the hash of one of its blobs.
type Reference = (i64, String);

/// The problems of blobs and references.
#[derive(Debug, Default)]
struct Findings {
    /// Blobs whose bytes do not match their hash.
    damaged: Vec<String>,
    /// Stored blobs that a message names without a link.
    not_held: Vec<Reference>,
    /// Linked blobs that the message does not name.
    not_named: Vec<Reference>,
    /// Linked blobs that are not stored.
    missing: Vec<Reference>,
    /// Blobs that no message links or names.
    orphans: Vec<String>,
}

fn find(connection: &Connection) -> Result<Findings, Fault> {
    let mut findings = Findings::default();
    let mut stored = BTreeSet::new();
    let mut blobs = connection.prepare("SELECT hash, size, bytes FROM blobs ORDER BY hash")?;
    let mut rows = blobs.query([])?;
    while let Some(row) = rows.next()? {
        let (hash, size): (String, i64) = (row.get(0)?, row.get(1)?);
        let bytes = row.get_ref(2)?;
        let bytes = bytes.as_blob().unwrap_or_default();
        if is_intact(&BlobId(hash.clone()), bytes) && bytes.len() as u64 == size.cast_unsigned() {
            stored.insert(hash);
        } else {
            findings.damaged.push(hash);
        }
    }
    let mut named = BTreeSet::new();
    let mut messages = connection.prepare("SELECT id, role, parts FROM messages WHERE parts IS NOT NULL")?;
    let mut rows = messages.query([])?;
    while let Some(row) = rows.next()? {
        let (id, parts): (i64, String) = (row.get(0)?, row.get(2)?);
        // An unreadable list is reported with its message.
        let Ok(parts) = serde_json::from_str::<Vec<Part>>(&parts) else { continue };
        let draft = Draft { parts, ..Draft::of_parts(Role::User, Vec::new(), 0) };
        named.extend(draft.media().filter_map(Media::blob).map(|blob| (id, blob.hash.0.clone())));
    }
    let mut held = connection.prepare("SELECT message_id, hash FROM message_blobs")?;
    let held: BTreeSet<Reference> =
        held.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
    findings.not_held = named.difference(&held).filter(|(_, hash)| stored.contains(hash)).cloned().collect();
    findings.not_named = held.difference(&named).cloned().collect();
    let damaged: BTreeSet<&String> = findings.damaged.iter().collect();
    let gone = |hash: &String| !stored.contains(hash) && !damaged.contains(hash);
    findings.missing = held.iter().filter(|(_, hash)| gone(hash)).cloned().collect();
    let wanted: BTreeSet<&String> = held.iter().chain(&named).map(|(_, hash)| hash).collect();
    findings.orphans = stored.iter().filter(|hash| !wanted.contains(hash)).cloned().collect();
    Ok(findings)
}

/// The problems, one per line.
pub(crate) fn problems(connection: &Connection) -> Result<Vec<String>, Fault> {
    let found = find(connection)?;
    let of_blobs = |hashes: Vec<String>, what: &'static str| {
        hashes.into_iter().map(move |hash| format!("picture or file {hash}: {what}"))
    };
    let of_messages = |references: Vec<Reference>, what: &'static str| {
        references.into_iter().map(move |(message, hash)| format!("message {message}: {what} {hash}"))
    };
    Ok(of_blobs(found.damaged, "its bytes are damaged")
        .chain(of_messages(found.missing, "its picture or file is missing:"))
        .chain(of_messages(found.not_held, "the reference to its picture or file is missing:"))
        .chain(of_messages(found.not_named, "it refers to a picture or file of another message:"))
        .chain(of_blobs(found.orphans, "no message names it"))
        .collect())
}

/// Rebuilds the links from the messages and deletes damaged bytes. Adds the losses to `lost`.
pub(crate) fn mend(connection: &Connection, lost: &mut Vec<String>) -> Result<(), Fault> {
    let found = find(connection)?;
    // Insert first, so that no blob is deleted that another message names.
    for (message, hash) in &found.not_held {
        connection
            .prepare_cached("INSERT OR IGNORE INTO message_blobs (message_id, hash) VALUES (?1, ?2)")?
            .execute(params![message, hash])?;
    }
    for (message, hash) in found.not_named.iter().chain(&found.missing) {
        connection
            .prepare_cached("DELETE FROM message_blobs WHERE message_id = ?1 AND hash = ?2")?
            .execute(params![message, hash])?;
    }
    for hash in found.damaged.iter().chain(&found.orphans) {
        connection.prepare_cached("DELETE FROM message_blobs WHERE hash = ?1")?.execute([hash])?;
        connection.prepare_cached("DELETE FROM blobs WHERE hash = ?1")?.execute([hash])?;
    }
    let missing: BTreeSet<&String> = found.missing.iter().map(|(_, hash)| hash).chain(&found.damaged).collect();
    if !missing.is_empty() {
        lost.push(format!("the bytes of {} pictures or files: requests name them in words", missing.len()));
    }
    if !found.orphans.is_empty() {
        lost.push(format!("{} pictures or files whose messages are lost", found.orphans.len()));
    }
    Ok(())
}
