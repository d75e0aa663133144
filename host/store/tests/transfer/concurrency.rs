//! Imports beside other writers and other imports.

use super::*;

/// A file that calls a function at each read.
struct Watched<'a>(Cursor<&'a [u8]>, &'a mut dyn FnMut());

impl std::io::Read for Watched<'_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        (self.1)();
        let most = to.len().min(4096);
        self.0.read(&mut to[..most])
    }
}

impl std::io::Seek for Watched<'_> {
    fn seek(&mut self, to: std::io::SeekFrom) -> std::io::Result<u64> {
        self.0.seek(to)
    }
}

#[test]
fn other_writers_see_an_imported_session_only_when_it_is_complete() {
    let (_home, from) = store();
    let session = from.create_session(new_session()).unwrap().id;
    let said: Vec<Draft> = (0..1_000).map(|at| Draft::user(format!("message {at}"), at)).collect();
    from.append(&session, &said).unwrap();
    let file = exported(&from, None);
    let (home, to) = store();
    let other = Store::open(home.path()).unwrap();
    let own = other.create_session(new_session()).unwrap().id;
    let mut looks = 0;
    let mut look = || {
        looks += 1;
        other.append(&own, &[Draft::user("meanwhile", 1)]).unwrap();
        assert_eq!(other.sessions().unwrap().len(), 1);
        for refused in [other.session(&session).map(drop), other.resolve_session(session.as_str()).map(drop)] {
            assert!(matches!(refused, Err(StoreError::Session(SessionError::UnknownSession(_)))));
        }
        assert!(other.lease(&session).is_err());
    };
    let mut watched = std::io::BufReader::new(Watched(Cursor::new(&file), &mut look));
    assert_eq!(to.import(&mut watched, NOW, Trust::OwnFiles).unwrap().messages, 1_000);
    assert!(looks > 20, "{looks}");
    assert_eq!(drafts(&to, &session), said);
}

#[test]
fn the_next_import_removes_the_rest_of_an_interrupted_one() {
    let (_home, from) = store();
    family(&from);
    let file = exported(&from, None);
    let (home, to) = store();
    let cut_off = rusqlite::Connection::open(home.path().join("state.db")).unwrap();
    let id = from.sessions().unwrap()[0].id.clone();
    cut_off
        .execute(
            "INSERT INTO sessions (id, source, workspace, engine, provider, model, context_length, started_at, \
             updated_at) VALUES (?1, 'import, not finished', '/', '', '', '', 1, 1, 1)",
            [id.as_str()],
        )
        .unwrap();
    to.append(&id, &[Draft::user("halfway", 1)]).unwrap();
    assert_eq!(to.sessions().unwrap(), []);
    assert_eq!(to.search(&SearchQuery::new("halfway")).unwrap(), []);
    let done = to.import(&mut Cursor::new(file), NOW, Trust::OwnFiles).unwrap();
    assert_eq!((done.sessions.len(), done.skipped.len()), (4, 0));
    assert_eq!(drafts(&to, &id), drafts(&from, &id));
}

#[test]
fn two_imports_of_one_file_at_once_store_each_session_once() {
    let (_home, from) = store();
    let ids = family(&from).map(|session| session.id);
    let file = exported(&from, None);
    let (home, to) = store();
    let done: Vec<Imported> = std::thread::scope(|scope| {
        let import =
            || Store::open(home.path()).unwrap().import(&mut Cursor::new(&file), NOW, Trust::OwnFiles).unwrap();
        let threads = [0; 2].map(|_| scope.spawn(import));
        threads.map(|thread| thread.join().unwrap()).into()
    });
    for id in &ids {
        assert_eq!(done.iter().filter(|done| done.sessions.contains(id)).count(), 1, "{done:?}");
        assert_eq!(drafts(&to, id), drafts(&from, id));
    }
}
