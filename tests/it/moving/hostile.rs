//! Homes that are damaged, of another version, or made to do harm.

use std::fs;

use hermes_tests::{Home, Output};

use crate::fixtures::peer::Peer;

fn homes() -> (Home, Peer) {
    let home = Home::new();
    let peer = Peer::at(&home.user().join("peer"));
    peer.session("one", &[]);
    peer.says("one", &[">hello", "hi"]);
    (home, peer)
}

fn import(home: &Home, peer: &Peer) -> Output {
    home.hermes(&["import", "peer", peer.path(), "--yes"]).run()
}

#[test]
fn the_own_home_and_other_folders_are_refused() {
    let (home, _peer) = homes();
    home.write("config.yaml", "");
    let own = home.path();
    home.hermes(&["import", "peer", own.to_str().unwrap(), "--yes"])
        .run()
        .exits(2)
        .says(&["is the home of this program"]);
    home.hermes(&["import", "peer", ".", "--yes"]).run().exits(1).says(&["contains no state.db"]);
    home.hermes(&["import", "peer", "missing", "--yes"]).run().exits(1).says(&["missing: "]);
    let other = Home::new();
    other.hermes(&["--model", "offline", "--provider", "offline", "-z", "hello"]).run().success();
    let other = other.path().to_str().unwrap().to_owned();
    home.hermes(&["import", "peer", &other, "--yes"]).run().exits(1).says(&["another home of this program"]);
}

#[test]
fn the_peers_usual_home_is_not_taken_for_its_own() {
    let home = Home::new();
    let _peer = Peer::at(&home.user().join(".hermes"));
    let usual = home.user().join(".hermes");
    let refused = home.hermes(&["import", "peer", "--yes"]).env("HERMES_HOME", usual.to_str().unwrap()).run().exits(2);
    refused.says(&["is the home of this program", "set HERMES_HOME to a folder of this program's own"]);
}

#[test]
fn a_damaged_database_and_one_of_another_program_are_left_with_one_line() {
    let (home, peer) = homes();
    peer.database.pragma_update(None, "wal_checkpoint", "TRUNCATE").unwrap();
    let file = std::path::Path::new(peer.path()).join("state.db");
    let sound = fs::read(&file).unwrap();
    let mut damaged = sound.clone();
    damaged[4096..].fill(0x5a);
    fs::write(&file, damaged).unwrap();
    let output = import(&home, &peer).success();
    assert!(output.stdout.contains("state.db is damaged there"), "{output}");
    peer.write("state.db", &"not a database, but some text".repeat(200));
    let output = import(&home, &peer).success();
    assert!(output.stdout.contains("state.db is not a database of SQLite"), "{output}");
    // Restores the database, because an open connection reads it again when it is closed.
    fs::write(&file, sound).unwrap();
}

#[test]
fn other_schemas_are_read_as_far_as_they_are_known() {
    let (home, peer) = homes();
    // An older one lacks columns, a newer one has more.
    peer.database
        .execute_batch("ALTER TABLE messages DROP COLUMN compacted; ALTER TABLE sessions DROP COLUMN title")
        .unwrap();
    let output = import(&home, &peer).success();
    assert!(output.stdout.contains("1 session with 2 messages"), "{output}");
    peer.database
        .execute_batch("UPDATE schema_version SET version = 40; ALTER TABLE messages ADD COLUMN more TEXT")
        .unwrap();
    peer.session("two", &[]);
    peer.says("two", &[">hello", "hi"]);
    let output = import(&home, &peer).success();
    assert!(
        output.stdout.contains("the newer schema 40") && output.stdout.contains("1 session with 2 messages"),
        "{output}"
    );
    peer.database.execute_batch("DROP TABLE messages").unwrap();
    let output = import(&home, &peer).success();
    assert!(output.stdout.contains("no table `messages`"), "{output}");
}

#[test]
fn a_view_in_place_of_a_table_is_not_read() {
    let (home, peer) = homes();
    let endless = "ALTER TABLE messages RENAME TO real; CREATE VIEW messages AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL \
                   SELECT id + 1 FROM n) SELECT id, 'one' AS session_id, 'user' AS role, 'x' AS content, 1.0 AS timestamp FROM n";
    peer.database.execute_batch(endless).unwrap();
    let output = import(&home, &peer).success();
    assert!(output.stdout.contains("no table `messages`"), "{output}");
}

#[test]
fn a_link_that_leads_out_of_the_home_is_not_followed() {
    let (home, peer) = homes();
    let folder = home.user().join("linked");
    fs::create_dir(&folder).unwrap();
    std::os::unix::fs::symlink(std::path::Path::new(peer.path()).join("state.db"), folder.join("state.db")).unwrap();
    let output = home.hermes(&["import", "peer", folder.to_str().unwrap(), "--yes"]).run().success();
    assert!(output.stdout.contains("leads out of the home"), "{output}");
}

#[test]
fn ids_titles_and_texts_cannot_write_to_the_terminal_or_leave_the_store() {
    let (home, peer) = homes();
    peer.session("../../etc/passwd", &[("title", "'a' || char(27) || '[2J' || char(10) || 'b'")]);
    peer.says("../../etc/passwd", &[">hello", "hi"]);
    peer.session(&"x".repeat(5_000), &[]);
    peer.says(&"x".repeat(5_000), &[">hello"]);
    let output = import(&home, &peer).success();
    assert!(!output.stdout.contains('\u{1b}'), "{output}");
    assert!(output.stdout.contains("2 sessions with 4 messages"), "{output}");
    let sessions = home.sessions_json();
    assert!(sessions.iter().all(|session| !session["id"].as_str().unwrap().contains('/')), "{sessions:?}");
    assert!(sessions.iter().any(|session| session["title"] == "a[2Jb"), "{sessions:?}");
}

#[test]
fn an_import_that_is_killed_is_completed_by_the_next_one() {
    let (home, peer) = homes();
    peer.database.execute_batch("BEGIN").unwrap();
    let long = "word ".repeat(2_000);
    for at in 0..60 {
        let id = format!("s{at}");
        peer.session(&id, &[]);
        peer.says(&id, &[&format!(">{long}"), &long, &format!(">{long}"), &long]);
    }
    peer.database.execute_batch("COMMIT").unwrap();
    let temporary = home.user().join("temporary");
    fs::create_dir(&temporary).unwrap();
    let command = || home.hermes(&["import", "peer", peer.path(), "--yes"]).env("TMPDIR", temporary.to_str().unwrap());
    let copies = || {
        let entries = fs::read_dir(&temporary).unwrap().map(|entry| entry.unwrap().file_name());
        entries.filter(|name| name.to_string_lossy().starts_with("hermes-import-")).count()
    };
    for pause in [200, 350, 500] {
        let running = command().spawn();
        std::thread::sleep(std::time::Duration::from_millis(pause));
        drop(running.kill());
        if home.state_db().exists() {
            let sessions = home.sessions_json();
            assert!(
                sessions.iter().all(|session| [4, 2].contains(&session["message_count"].as_u64().unwrap())),
                "{sessions:?}"
            );
        }
    }
    // A killed import at its question leaves a copy of all conversations.
    peer.session("late", &[]);
    peer.says("late", &[">new", "yes"]);
    let asking = home.hermes(&["import", "peer", peer.path()]).env("TMPDIR", temporary.to_str().unwrap());
    let asking = asking.at_terminal_of(80, 24);
    asking.wait_for("[y/N]", 1);
    drop(asking);
    assert_eq!(copies(), 1);
    command().run().success();
    assert_eq!(copies(), 0);
    assert_eq!(home.sessions_json().len(), 62);
    let output = import(&home, &peer).success();
    assert!(output.stderr.contains("nothing is new"), "{output}");
}
