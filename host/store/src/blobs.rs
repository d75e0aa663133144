//! The bytes of pictures and files. Each content is stored once under its hash, as long as a message refers to it.

pub(crate) mod references;

use std::sync::Arc;

use hermes_conversation::media::{Blob, MOST_BYTES};
use hermes_conversation::{BlobId, Draft, Media, Part};
use hermes_session_store::MOST_IN_A_MESSAGE;
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::error::Fault;
use crate::{Store, StoreError};

/// The most bytes of all blobs of a store: 2 GiB.
pub const MAX_STORE_BYTES: u64 = 2 << 30;

impl Store {
    /// The bytes of a blob; `None` if no message refers to it, or if its bytes are damaged.
    pub fn blob(&self, id: &BlobId) -> Result<Option<Arc<[u8]>>, StoreError> {
        self.read(|connection| read(connection, id))
    }

    /// The number of blobs, and the sum of their sizes.
    pub fn blobs(&self) -> Result<(u64, u64), StoreError> {
        self.read(|connection| {
            let sql = "SELECT count(*), coalesce(sum(size), 0) FROM blobs";
            let both = connection.query_row(sql, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))?;
            Ok((both.0.cast_unsigned(), both.1.cast_unsigned()))
        })
    }
}

pub(crate) fn read(connection: &Connection, id: &BlobId) -> Result<Option<Arc<[u8]>>, Fault> {
    let mut statement = connection.prepare_cached("SELECT bytes FROM blobs WHERE hash = ?1")?;
    let bytes: Option<Vec<u8>> = statement.query_row([id.as_str()], |row| row.get(0)).optional()?;
    Ok(bytes.filter(|bytes| is_intact(id, bytes)).map(Arc::from))
}

/// Whether the bytes have the expected hash.
fn is_intact(id: &BlobId, bytes: &[u8]) -> bool {
    BlobId::of(bytes) == *id
}

/// The size of a stored blob.
pub(crate) fn size(connection: &Connection, id: &BlobId) -> Result<Option<u64>, Fault> {
    let mut statement = connection.prepare_cached("SELECT size FROM blobs WHERE hash = ?1")?;
    let size: Option<i64> = statement.query_row([id.as_str()], |row| row.get(0)).optional()?;
    Ok(size.map(i64::cast_unsigned))
}

/// The sum of all sizes.
pub(crate) fn used(connection: &Connection) -> Result<u64, Fault> {
    let mut statement = connection.prepare_cached("SELECT coalesce(sum(size), 0) FROM blobs")?;
    Ok(statement.query_row([], |row| row.get::<_, i64>(0))?.cast_unsigned())
}

/// Checks the parts and blobs of a message before it is stored.
pub(crate) fn check(draft: &Draft) -> Result<(), StoreError> {
    let mut total: u64 = 0;
    for blob in draft.media().filter_map(Media::blob) {
        if blob.size == 0 {
            return Err(StoreError::EmptyBlob);
        }
        if blob.size > MOST_BYTES as u64 {
            return Err(StoreError::BlobTooLarge { size: blob.size, most: MOST_BYTES as u64 });
        }
        total = total.saturating_add(blob.size);
        if let Some(bytes) = &blob.bytes
            && (bytes.0.len() as u64 != blob.size || BlobId::of(&bytes.0) != blob.hash)
        {
            return Err(StoreError::BlobChanged(blob.hash.clone()));
        }
    }
    if total > MOST_IN_A_MESSAGE {
        return Err(StoreError::BlobTooLarge { size: total, most: MOST_IN_A_MESSAGE });
    }
    Ok(draft.check_parts()?)
}

/// Stores the blobs of a message and its references to them.
pub(crate) fn put(connection: &Connection, message: i64, draft: &Draft) -> Result<(), Fault> {
    for media in draft.media() {
        let Some(blob) = media.blob() else { continue };
        put_one(connection, blob, &media.media_type)?;
        connection
            .prepare_cached("INSERT OR IGNORE INTO message_blobs (message_id, hash) VALUES (?1, ?2)")?
            .execute(params![message, blob.hash.as_str()])?;
    }
    Ok(())
}

fn put_one(connection: &Connection, blob: &Blob, media_type: &str) -> Result<(), Fault> {
    match size(connection, &blob.hash)? {
        Some(size) if size == blob.size => return Ok(()),
        Some(_) => return Err(StoreError::BlobChanged(blob.hash.clone()).into()),
        None => {}
    }
    let Some(bytes) = &blob.bytes else { return Err(StoreError::NoSuchBlob(blob.hash.clone()).into()) };
    let used = used(connection)?;
    if used + blob.size > MAX_STORE_BYTES {
        return Err(StoreError::BlobQuota { size: blob.size, used, most: MAX_STORE_BYTES }.into());
    }
    connection
        .prepare_cached("INSERT INTO blobs (hash, media_type, size, bytes) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![blob.hash.as_str(), media_type, blob.size.cast_signed(), &*bytes.0])?;
    Ok(())
}

/// The message without the bytes, as the log stores it.
pub(crate) fn stripped(draft: &Draft) -> Draft {
    let mut draft = draft.clone();
    draft.media_mut().for_each(|media| media.set_bytes(None));
    draft
}

/// Loads the bytes into a message for an export. A picture or file without bytes becomes the text that requests contain
/// in its place, because an import refuses a reference without bytes.
pub(crate) fn filled(connection: &Connection, draft: &mut Draft) -> Result<(), Fault> {
    let mut lost = false;
    for media in draft.media_mut() {
        if let Some(id) = media.blob().map(|blob| blob.hash.clone()) {
            let bytes = read(connection, &id)?;
            lost |= bytes.is_none();
            media.set_bytes(bytes);
        }
    }
    if lost {
        let mut parts = draft.parts.clone();
        name_lost(&mut parts);
        *draft = draft.clone().with_parts(parts);
    }
    Ok(())
}

fn name_lost(parts: &mut [Part]) {
    for part in parts {
        if let Part::ToolResult(result) = part {
            name_lost(&mut result.parts);
        }
        if part.media().and_then(Media::blob).is_some_and(|blob| blob.bytes.is_none()) {
            *part = Part::text(part.mention().unwrap_or_default());
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_conversation::{Role, SessionId, ToolResult};

    use super::*;
    use crate::testing::{new_session, store};
    use crate::{Depth, ParentKind};

    fn image(fill: u8, size: usize) -> Media {
        Media::image([b"GIF89a\x01\0\x01\0".as_slice(), &vec![fill; size]].concat(), Some("a.gif")).unwrap()
    }

    fn message(media: Media) -> Draft {
        Draft::of_parts(Role::User, vec![Part::text("look"), Part::Image(media)], 1)
    }

    fn session(store: &Store) -> SessionId {
        store.create_session(new_session()).unwrap().id
    }

    #[test]
    fn bytes_are_stored_once_and_messages_are_read_back_unchanged() {
        let (home, store) = store();
        let id = session(&store);
        let result = Part::ToolResult(ToolResult {
            call_id: "c".into(),
            tool_name: Some("camera".into()),
            parts: vec![Part::text("a picture"), Part::Image(image(1, 9))],
            failed: true,
            structured: Some(r#"{"a":1}"#.into()),
            reminder: Some("one step is left".into()),
        });
        let drafts = [message(image(1, 9)), Draft::of_parts(Role::Tool, vec![result], 2), message(image(2, 9))];
        let written = store.append(&id, &drafts).unwrap();
        assert_eq!(store.blobs().unwrap(), (2, 38));
        assert_eq!((written[1].content.as_str(), written[1].tool_call_id.as_deref()), ("a picture", Some("c")));
        assert!(written[0].media().all(|media| media.bytes().is_none()), "bytes are not kept in memory");
        drop(store);
        let store = Store::open(home.path()).unwrap();
        assert_eq!(store.conversation(&id).unwrap(), written);
        let hash = &written[0].media().next().unwrap().blob().unwrap().hash;
        assert_eq!(store.blob(hash).unwrap().as_deref(), image(1, 9).bytes());
        assert_eq!(store.check(Depth::Full).unwrap().problems, Vec::<String>::new());
        // A reference to a stored blob needs no bytes.
        store.append(&id, &[written[0].draft.clone()]).unwrap();
        assert_eq!(store.blobs().unwrap(), (2, 38));
    }

    #[test]
    fn a_blob_is_deleted_with_the_last_message_that_refers_to_it() {
        let (_home, store) = store();
        let (one, two) = (session(&store), session(&store));
        store.append(&one, &[message(image(1, 9)), message(image(2, 9))]).unwrap();
        store.append(&two, &[message(image(2, 9))]).unwrap();
        let parent = store.session(&two).unwrap();
        crate::testing::child(&store, &parent, ParentKind::Branch, None);
        store.delete(&[one], false).unwrap();
        assert_eq!(store.blobs().unwrap(), (1, 19));
        store.delete(&[two], true).unwrap();
        assert_eq!(store.blobs().unwrap(), (0, 0));
    }

    #[test]
    fn invalid_blobs_are_refused_and_store_nothing() {
        let (_home, store) = store();
        let id = session(&store);
        let change = |change: fn(&mut Blob)| {
            let mut media = image(1, 9);
            if let hermes_conversation::media::Source::Blob(blob) = &mut media.source {
                change(blob);
            }
            let error = store.append(&id, &[Draft::user("first", 1), message(media)]).unwrap_err();
            assert_eq!((store.conversation(&id).unwrap().len(), store.blobs().unwrap()), (0, (0, 0)));
            error
        };
        assert!(matches!(change(|blob| blob.size = 0), StoreError::EmptyBlob));
        assert!(matches!(change(|blob| blob.size = 1 << 30), StoreError::BlobTooLarge { .. }));
        assert!(matches!(change(|blob| blob.size = 7), StoreError::BlobChanged(_)));
        assert!(matches!(change(|blob| blob.hash = BlobId("beef".into())), StoreError::BlobChanged(_)));
        assert!(matches!(change(|blob| blob.bytes = None), StoreError::NoSuchBlob(_)));
        let many: Vec<Part> = (0..3).map(|fill| Part::Image(image(fill, 15_000_000))).collect();
        let error = store.append(&id, &[Draft::of_parts(Role::User, many, 1)]).unwrap_err();
        assert!(matches!(error, StoreError::BlobTooLarge { .. }));
    }

    #[test]
    fn the_quota_of_a_store_is_enforced() {
        let (_home, store) = store();
        let id = session(&store);
        let other = crate::connection::connect(store.path()).unwrap();
        let full = MAX_STORE_BYTES.cast_signed() - 20;
        other.execute("INSERT INTO blobs VALUES ('x', 'image/gif', ?1, x'00')", [full]).unwrap();
        store.append(&id, &[message(image(1, 9))]).unwrap();
        let error = store.append(&id, &[message(image(2, 9))]).unwrap_err();
        assert!(matches!(error, StoreError::BlobQuota { size: 19, .. }), "{error}");
    }

    #[test]
    fn a_part_of_a_newer_version_is_an_error_that_names_the_version() {
        let (_home, store) = store();
        let id = session(&store);
        let other = crate::connection::connect(store.path()).unwrap();
        let sql = "INSERT INTO messages (session_id, role, content, origin, created_at, parts) \
                   VALUES (?1, 'user', '', 'said', 1, '[{\"kind\":\"hologram\"}]')";
        other.execute(sql, [id.as_str()]).unwrap();
        let error = store.conversation(&id).unwrap_err().to_string();
        assert!(error.contains("hologram") && error.contains("newer version"), "{error}");
    }
}
