//! The migration of a large store of commit 4403e97: killed at random moments, on a full disk, and while other processes hold the
//! store. Nothing is lost, and its time is printed.
//!
//! `cargo xtask chaos migration [MESSAGES] [--old BINARY]` sets the number of messages and of kills. `BINARY` is one of 4403e97,
//! which then holds the store in the middle of a turn. The moments are drawn with a fixed seed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hermes_store::{SCHEMA_VERSION, Store};
use hermes_tests::{Home, Output, Reply, Server};

use crate::chaos::random_kills::Dice;
use crate::fixtures::old_store::{self, Contents, Tables};

/// Defaults, for the run among all tests.
const MESSAGES: usize = 2_000;
const KILLS: usize = 5;
/// Up to here every row is compared after each kill; beyond it the rows are counted, and compared at the end.
const SMALL: usize = 10_000;
const OLD: u32 = 5;
const SEED: u64 = 0x6d69_6772_6174;

/// The store before the migration, from which every trial begins anew.
struct Trial {
    home: Home,
    pristine: PathBuf,
    messages: usize,
    tables: Tables,
    before: Contents,
}

impl Trial {
    fn begin(messages: usize) -> Self {
        let home = Home::new();
        fs::create_dir_all(home.path()).unwrap();
        let pristine = home.workspace().join("pristine.db");
        let begun = Instant::now();
        old_store::write(&pristine, messages);
        let size = fs::metadata(&pristine).unwrap().len() >> 20;
        println!("a store of schema {OLD}: {messages} messages, {size} MB, written in {:.1?}", begun.elapsed());
        let tables = Tables::of(&pristine);
        let before = tables.contents(&pristine);
        let trial = Self { home, pristine, messages, tables, before };
        trial.restore(&trial.home.path());
        trial
    }

    fn restore(&self, home: &Path) {
        for name in ["state.db-wal", "state.db-shm"] {
            let _ = fs::remove_file(home.join(name));
        }
        fs::copy(&self.pristine, home.join("state.db")).unwrap();
    }

    fn store(&self) -> PathBuf {
        self.home.state_db()
    }

    /// Nothing is missing; returns the schema version.
    #[track_caller]
    fn assert_whole(&self, store: &Path) -> u32 {
        let (version, messages) = old_store::glance(store);
        assert_eq!(messages, self.messages as u64);
        assert!(version == OLD || version == SCHEMA_VERSION, "schema {version} is half a migration");
        if self.messages <= SMALL {
            assert_eq!(self.tables.contents(store), self.before);
        }
        version
    }

    /// The program migrates what it finds, and every row is there.
    #[track_caller]
    fn assert_migrates(&self, home: &Path) {
        self.run(home, &["sessions", "stats"]).success();
        let store = home.join("state.db");
        assert_eq!(old_store::glance(&store), (SCHEMA_VERSION, self.messages as u64));
        assert_eq!(self.tables.contents(&store), self.before);
        let connection = rusqlite::Connection::open(&store).unwrap();
        let sound: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(sound, "ok");
    }

    fn run(&self, home: &Path, arguments: &[&str]) -> Output {
        self.home.hermes(arguments).env("HERMES_HOME", home.to_str().unwrap()).run()
    }
}

fn count(variable: &str, default: usize) -> usize {
    std::env::var(variable).map_or(default, |count| count.parse().expect("a number"))
}

#[test]
fn a_migration_that_is_killed_or_has_no_room_or_is_in_the_way_of_others_loses_nothing() {
    let trial = Trial::begin(count("HERMES_MIGRATION_MESSAGES", MESSAGES));
    time(&trial);
    kill(&trial, count("HERMES_MIGRATION_KILLS", KILLS));
    fill_the_disk(&trial);
    hold(&trial);
    if let Some(old) = std::env::var_os("HERMES_MIGRATION_OLD") {
        hold_by_an_old_process(&trial, Path::new(&old));
    }
}

fn time(trial: &Trial) {
    let begun = Instant::now();
    drop(Store::open_read_only(&trial.home.path()).unwrap());
    println!("the migration took {:.1?}", begun.elapsed());
    trial.assert_migrates(&trial.home.path());
    trial.restore(&trial.home.path());
}

/// Kills the process that migrates: at any moment of its life, and in the milliseconds after its first write.
fn kill(trial: &Trial, kills: usize) {
    let begun = Instant::now();
    trial.home.hermes(&["sessions", "stats"]).run().success();
    let whole = begun.elapsed();
    trial.restore(&trial.home.path());
    let mut dice = Dice(SEED);
    let (mut before, mut after, mut too_late) = (0, 0, 0);
    for number in 0..kills {
        let running = trial.home.hermes(&["sessions", "stats"]).spawn();
        if number % 2 == 0 {
            std::thread::sleep(whole.mul_f64(dice.below(1_000) as f64 / 1_000.0));
        } else {
            wait_for_a_write(&trial.home.path().join("state.db-wal"), whole * 4);
            std::thread::sleep(Duration::from_micros(dice.below(4_000) as u64));
        }
        let output = running.kill();
        too_late += usize::from(output.status.success());
        assert!(output.status.success() || output.status.code().is_none(), "it ended by itself\n{output}");
        if trial.assert_whole(&trial.store()) == OLD {
            before += 1;
        } else {
            after += 1;
            trial.restore(&trial.home.path());
        }
    }
    println!("{kills} kills: {before} before the migration was stored, {after} after it, {too_late} after the exit");
    trial.assert_migrates(&trial.home.path());
    trial.restore(&trial.home.path());
}

fn wait_for_a_write(log: &Path, most: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < most && fs::metadata(log).map_or(0, |found| found.len()) == 0 {
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// A disk of its own with a few free pages, as root; otherwise a limit on the size of files.
fn fill_the_disk(trial: &Trial) {
    let size = fs::metadata(&trial.pristine).unwrap().len() + (4 << 20);
    let folder = trial.home.workspace().join("disk");
    fs::create_dir(&folder).unwrap();
    let Some(disk) = Disk::mount(&folder, size) else {
        println!("no disk can be mounted here: the size of files is limited instead");
        return limit_files(trial);
    };
    trial.restore(&disk.0);
    let (mut refused, mut migrated) = (0, 0);
    for pages in [0, 1, 2, 4, 8, 9, 10, 12, 16, 32, 64, 256] {
        disk.leave(pages);
        // Writes a title, so it cannot be content with reading.
        let output = trial.run(&disk.0, &["sessions", "rename", "20260101_000000_000000", "20260101_000000_000000"]);
        assert!(output.status.code().is_some_and(|code| code != 101), "it crashed\n{output}");
        // Even reading needs room for the index of the log.
        disk.leave(1 << 10);
        if trial.assert_whole(&disk.0.join("state.db")) == OLD {
            let output = output.refused();
            assert!(output.stderr.contains("disk is full"), "{output}");
            refused += 1;
        } else {
            migrated += 1;
            trial.restore(&disk.0);
        }
    }
    println!("a full disk: {refused} migrations refused, {migrated} with room enough");
    assert!(refused > 0 && migrated > 0);
    // While the disk is full the old store can be read.
    disk.leave(0);
    trial.run(&disk.0, &["sessions", "show", "20260101_000000_000000"]).success();
    disk.leave(1 << 10);
    assert_eq!(trial.assert_whole(&disk.0.join("state.db")), OLD);
    trial.assert_migrates(&disk.0);
}

fn limit_files(trial: &Trial) {
    // In blocks of 512 bytes: the log can hold a frame or two.
    let script = r#"trap "" XFSZ; ulimit -f 16; exec "$0" sessions rename 20260101_000000_000000 another"#;
    let output = Command::new("sh")
        .args(["-c", script])
        .arg(hermes_tests::binary())
        .env("HERMES_HOME", trial.home.path())
        .env("HOME", trial.home.workspace())
        .output()
        .unwrap();
    assert!(!output.status.success() && output.status.code() != Some(101), "{output:?}");
    assert_eq!(trial.assert_whole(&trial.store()), OLD);
    trial.assert_migrates(&trial.home.path());
    trial.restore(&trial.home.path());
}

/// A file system in memory; unmounted when dropped.
struct Disk(PathBuf);

impl Disk {
    fn mount(folder: &Path, size: u64) -> Option<Self> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(folder);
        let mounted = mount.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success());
        mounted.then(|| Self(folder.to_owned()))
    }

    /// Fills it up but for so many pages.
    fn leave(&self, pages: u64) {
        use std::io::Write;
        let path = self.0.join("filler");
        let _ = fs::remove_file(&path);
        let mut file = fs::File::create(&path).unwrap();
        while file.write_all(&[1; 4096]).is_ok() {}
        let length = file.metadata().unwrap().len() / 4096 * 4096;
        file.set_len(length.saturating_sub(pages * 4096)).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// A process that reads does not keep the migration from happening, one that writes delays it or refuses it.
fn hold(trial: &Trial) {
    let home = trial.home.path();
    let rename = ["sessions", "rename", "20260101_000000_000000", "20260101_000000_000000"];
    let reader = old_store::connect(&trial.store());
    reader.execute_batch("BEGIN").unwrap();
    let seen = || reader.query_row("SELECT count(*) FROM messages", [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(seen(), trial.messages as i64);
    trial.run(&home, &rename).success();
    assert_eq!(old_store::glance(&trial.store()).0, SCHEMA_VERSION);
    assert_eq!(seen(), trial.messages as i64);
    drop(reader);
    trial.assert_migrates(&home);
    trial.restore(&home);

    let writer = old_store::connect(&trial.store());
    writer.execute_batch("BEGIN IMMEDIATE; UPDATE sessions SET input_tokens = 7").unwrap();
    let refused = trial.run(&home, &rename).refused();
    assert!(refused.stderr.contains("locked by another process"), "{refused}");
    // Meanwhile the old store can be read.
    trial.run(&home, &["sessions", "show", "20260101_000000_000000"]).success();
    assert_eq!(trial.assert_whole(&trial.store()), OLD);
    writer.execute_batch("ROLLBACK; BEGIN IMMEDIATE").unwrap();
    let waiting = trial.home.hermes(&rename).spawn();
    std::thread::sleep(Duration::from_secs(1));
    writer.execute_batch("ROLLBACK").unwrap();
    waiting.wait().success();
    drop(writer);
    trial.assert_migrates(&home);
    trial.restore(&home);
}

/// An old process is in the middle of a turn while the store is migrated. It refuses to write into the newer store, says so, and
/// what the user said to it is kept.
fn hold_by_an_old_process(trial: &Trial, old: &Path) {
    let server = Server::answering(|_, _| Reply::text("a late answer".repeat(8)).every(Duration::from_millis(400)));
    let home = Home::with(&server);
    fs::copy(&trial.pristine, home.state_db()).unwrap();
    let mut command = Command::new(old);
    command.args(["-z", "said to an old process"]).current_dir(home.workspace()).env_clear();
    command.env("HERMES_HOME", home.path()).env("HOME", home.workspace()).env("PATH", std::env::var("PATH").unwrap());
    let running = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    server.wait_for_requests(1);
    home.hermes(&["sessions", "stats"]).run().success();
    assert_eq!(old_store::glance(&home.state_db()).0, SCHEMA_VERSION);
    let ended = running.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(!ended.status.success() && told.contains("newer version"), "{told}");
    assert_eq!(old_store::glance(&home.state_db()).1, trial.messages as u64 + 1);
    home.hermes(&["-z", "and now?", "--continue"]).run().success();
    let said = server.last_turn().body.to_string();
    assert!(said.contains("said to an old process"), "{said}");
    println!("an old process in the middle of a turn: {}", told.lines().last().unwrap_or_default());
}
