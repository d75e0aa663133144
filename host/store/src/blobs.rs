//! The bytes of pictures and files: each once, under the hash of its content, as long as a message names it.

use std::sync::Arc;

use hermes_conversation::media::{Blob, MOST_BYTES};
use hermes_conversation::{BlobId, Draft, Media};
use hermes_session_store::MOST_IN_A_MESSAGE;
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::error::Fault;
use crate::{Store, StoreError};

/// Bytes that all blobs of a store may have together: 2 GiB.
pub const MOST_IN_A_STORE: u64 = 2 << 30;

impl Store {
    /// The bytes of a blob; none where no message names it any more, or where damage took it.
    pub fn blob(&self, id: &BlobId) -> Result<Option<Arc<[u8]>>, StoreError> {
        self.read(|connection| read(connection, id))
    }

    /// How many blobs there are, and their bytes.
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
    Ok(bytes.map(Arc::from))
}

/// Checks the blobs of a message before anything of it is stored.
pub(crate) fn check(draft: &Draft) -> Result<(), StoreError> {
    let mut total = 0;
    for blob in draft.media().filter_map(Media::blob) {
        if blob.size == 0 {
            return Err(StoreError::EmptyBlob);
        }
        if blob.size > MOST_BYTES as u64 {
            return Err(StoreError::BlobTooLarge { size: blob.size, most: MOST_BYTES as u64 });
        }
        total += blob.size;
        if let Some(bytes) = &blob.bytes
            && (bytes.0.len() as u64 != blob.size || BlobId::of(&bytes.0) != blob.hash)
        {
            return Err(StoreError::BlobChanged(blob.hash.clone()));
        }
    }
    if total > MOST_IN_A_MESSAGE {
        return Err(StoreError::BlobTooLarge { size: total, most: MOST_IN_A_MESSAGE });
    }
    Ok(())
}

/// Stores the blobs of a message with it.
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
    let known: bool = connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM blobs WHERE hash = ?1)")?
        .query_row([blob.hash.as_str()], |row| row.get(0))?;
    if known {
        return Ok(());
    }
    let Some(bytes) = &blob.bytes else { return Err(StoreError::NoSuchBlob(blob.hash.clone()).into()) };
    let used: i64 =
        connection.prepare_cached("SELECT coalesce(sum(size), 0) FROM blobs")?.query_row([], |row| row.get(0))?;
    let used = used.cast_unsigned();
    if used + blob.size > MOST_IN_A_STORE {
        return Err(StoreError::BlobQuota { size: blob.size, used, most: MOST_IN_A_STORE }.into());
    }
    connection
        .prepare_cached("INSERT INTO blobs (hash, media_type, size, bytes) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![blob.hash.as_str(), media_type, blob.size.cast_signed(), &*bytes.0])?;
    Ok(())
}

/// The same message without the bytes, as it is kept.
pub(crate) fn stripped(draft: &Draft) -> Draft {
    let mut draft = draft.clone();
    draft.media_mut().for_each(|media| media.set_bytes(None));
    draft
}

/// The same message with the bytes, for an export. Bytes that damage took are left out.
pub(crate) fn filled(connection: &Connection, draft: &mut Draft) -> Result<(), Fault> {
    for media in draft.media_mut() {
        if let Some(id) = media.blob().map(|blob| blob.hash.clone()) {
            media.set_bytes(read(connection, &id)?);
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_conversation::{Part, Role, SessionId, ToolResult};

    use super::*;
    use crate::testing::{new_session, store};
    use crate::{Depth, ParentKind};

    fn image(fill: u8, size: usize) -> Media {
        Media::image([b"GIF89a\x01\0\x01\0".as_slice(), &vec![fill; size]].concat(), Some("a.gif")).unwrap()
    }

    fn said(media: Media) -> Draft {
        Draft::of_parts(Role::User, vec![Part::text("look"), Part::Image(media)], 1)
    }

    fn session(store: &Store) -> SessionId {
        store.create_session(new_session()).unwrap().id
    }

    #[test]
    fn bytes_are_stored_once_and_read_back_and_messages_are_read_as_they_were_written() {
        let (home, store) = store();
        let id = session(&store);
        let result = Part::ToolResult(ToolResult {
            call_id: "c".into(),
            tool_name: Some("camera".into()),
            parts: vec![Part::text("a picture"), Part::Image(image(1, 9))],
            failed: true,
            structured: Some(r#"{"a":1}"#.into()),
        });
        let drafts = [said(image(1, 9)), Draft::of_parts(Role::Tool, vec![result], 2), said(image(2, 9))];
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
        // A message that names a blob which is there needs no bytes.
        store.append(&id, &[written[0].draft.clone()]).unwrap();
        assert_eq!(store.blobs().unwrap(), (2, 38));
    }

    #[test]
    fn a_blob_goes_with_the_last_message_that_names_it() {
        let (_home, store) = store();
        let (one, two) = (session(&store), session(&store));
        store.append(&one, &[said(image(1, 9)), said(image(2, 9))]).unwrap();
        store.append(&two, &[said(image(2, 9))]).unwrap();
        let parent = store.session(&two).unwrap();
        crate::testing::child(&store, &parent, ParentKind::Branch, None);
        store.delete(&[one], false).unwrap();
        assert_eq!(store.blobs().unwrap(), (1, 19));
        store.delete(&[two], true).unwrap();
        assert_eq!(store.blobs().unwrap(), (0, 0));
    }

    #[test]
    fn what_cannot_be_stored_is_refused_and_nothing_of_it_stays() {
        let (_home, store) = store();
        let id = session(&store);
        let change = |change: fn(&mut Blob)| {
            let mut media = image(1, 9);
            if let hermes_conversation::media::Source::Blob(blob) = &mut media.source {
                change(blob);
            }
            let error = store.append(&id, &[Draft::user("first", 1), said(media)]).unwrap_err();
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
    fn the_quota_of_a_store_is_kept() {
        let (_home, store) = store();
        let id = session(&store);
        let other = crate::database::connect(store.path()).unwrap();
        let full = MOST_IN_A_STORE.cast_signed() - 20;
        other.execute("INSERT INTO blobs VALUES ('x', 'image/gif', ?1, x'00')", [full]).unwrap();
        store.append(&id, &[said(image(1, 9))]).unwrap();
        let error = store.append(&id, &[said(image(2, 9))]).unwrap_err();
        assert!(matches!(error, StoreError::BlobQuota { size: 19, .. }), "{error}");
    }

    #[test]
    fn a_part_of_a_newer_version_is_an_error_that_says_so() {
        let (_home, store) = store();
        let id = session(&store);
        let other = crate::database::connect(store.path()).unwrap();
        let sql = "INSERT INTO messages (session_id, role, content, origin, created_at, parts) \
                   VALUES (?1, 'user', '', 'said', 1, '[{\"kind\":\"hologram\"}]')";
        other.execute(sql, [id.as_str()]).unwrap();
        let error = store.conversation(&id).unwrap_err().to_string();
        assert!(error.contains("hologram") && error.contains("newer version"), "{error}");
    }
}
