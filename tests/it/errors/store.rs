use std::fs::OpenOptions;
use std::io::{Seek as _, SeekFrom, Write as _};

use hermes_tests::{Home, Reply, Server};
use rusqlite::Connection;

use super::Screens;

/// A home with a stored session, whose database is one file.
fn home(server: &Server) -> Home {
    let home = Home::with(server);
    home.hermes(&["-z", "hello"]).run().success();
    let store = Connection::open(home.state_db()).unwrap();
    store.execute_batch("PRAGMA wal_checkpoint(TRUNCATE);").unwrap();
    home
}

#[test]
fn stores_that_cannot_be_used() {
    let mut screens = Screens::default();
    let server = Server::answering(|_, _| Reply::text("Hello."));
    let list = |home: &Home| home.hermes(&["sessions", "list"]);

    let other = Home::with(&server);
    let database = Connection::open(other.state_db()).unwrap();
    database.execute_batch("CREATE TABLE sessions (id TEXT); INSERT INTO sessions VALUES ('theirs');").unwrap();
    drop(database);
    screens.error("the database of another program", &other, other.hermes(&["-z", "hello"]));

    let words = Home::with(&server);
    words.write("state.db", "These are words, not a database. ".repeat(100));
    screens.error("a text in place of the database", &words, list(&words));

    let orphan = home(&server);
    orphan.write("state.db-wal", "the newest messages");
    std::fs::remove_file(orphan.state_db()).unwrap();
    screens.error("a log without its database", &orphan, orphan.hermes(&["-z", "hello"]));

    let newer = home(&server);
    let database = Connection::open(newer.state_db()).unwrap();
    database.pragma_update(None, "user_version", 9_999).unwrap();
    drop(database);
    screens.error("the database of a newer version", &newer, list(&newer));

    let damaged = home(&server);
    let mut file = OpenOptions::new().write(true).open(damaged.state_db()).unwrap();
    let size = file.metadata().unwrap().len();
    for page in 1..size / 4_096 {
        file.seek(SeekFrom::Start(page * 4_096)).unwrap();
        file.write_all(&[0x5a; 64]).unwrap();
    }
    drop(file);
    screens.error("a damaged database", &damaged, list(&damaged));
    screens.error("a turn with a damaged database", &damaged, damaged.hermes(&["-z", "hello"]));

    let wrong = Home::with(&server);
    wrong.write_workspace("chart.gif", b"GIF89a\x01\0\x01\0 a very small chart");
    wrong.hermes(&["-z", "What does it show?", "--image", "chart.gif"]).run().success();
    let database = Connection::open(wrong.state_db()).unwrap();
    let sql = "DROP TRIGGER blobs_leave_with_their_last_message; DELETE FROM message_blobs";
    database.execute_batch(sql).unwrap();
    drop(database);
    screens.error("damage that a check finds", &wrong, wrong.hermes(&["sessions", "check"]));

    let folder = Home::with(&server);
    folder.write("state.db/notes.txt", "");
    screens.error("a folder in place of the database", &folder, list(&folder));
    insta::assert_snapshot!(screens.text());
}
