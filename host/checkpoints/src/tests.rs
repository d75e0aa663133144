//! A workspace that tools, programs and the user change, and the way back.

#![allow(clippy::unwrap_used)]

mod attack;
mod limits;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::*;

const SESSION: &str = "20260101_000000_abcdef";

const LIMITS: Limits = Limits {
    max_bytes: 1 << 30,
    max_age: Duration::from_secs(1 << 20),
    max_file: 1 << 20,
    max_files: 10_000,
    max_time: Duration::from_secs(60),
};

struct World {
    root: tempfile::TempDir,
    recorder: Arc<Recorder>,
    store: Store,
    limits: Limits,
    told: Arc<Mutex<Vec<String>>>,
}

impl World {
    fn new() -> Self {
        Self::with(LIMITS)
    }

    fn with(limits: Limits) -> Self {
        let root = tempfile::tempdir().unwrap();
        for folder in ["home", "work"] {
            fs::create_dir(root.path().join(folder)).unwrap();
        }
        let told = Arc::<Mutex<Vec<String>>>::default();
        let store = Store::in_home(&root.path().join("home"));
        let recorder = recorder(root.path(), &store, limits, &told);
        recorder.turn_begins(1, "first\nwords");
        Self { root, recorder, store, limits, told }
    }

    /// As after a start of Hermes.
    fn restart(&mut self) {
        self.recorder = recorder(self.root.path(), &self.store, self.limits, &self.told);
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join("work").join(path)
    }

    fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        fs::write(self.path(path), content).unwrap();
    }

    fn read(&self, path: &str) -> String {
        String::from_utf8_lossy(&fs::read(self.path(path)).unwrap_or_else(|_| b"(absent)".to_vec())).into_owned()
    }

    fn exists(&self, path: &str) -> bool {
        self.path(path).symlink_metadata().is_ok()
    }

    /// A program that does this.
    fn program(&self, work: impl FnOnce()) {
        let window = self.recorder.program_begins("sh -c work", false);
        work();
        window.end();
    }

    /// A file tool that writes this.
    fn tool(&self, path: &str, content: &str) {
        let changing = self.recorder.change_begins();
        changing.will_change(&self.path(path));
        self.write(path, content);
    }

    fn undo(&self, turns: Turns, on_conflict: OnConflict) -> Result<Undo, UndoError> {
        undo(&self.store, SESSION, turns, on_conflict, &self.limits)
    }

    #[track_caller]
    fn undone(&self) -> Vec<String> {
        let undo = self.undo(Turns::Last(1), OnConflict::Refuse).unwrap();
        undo.restored.iter().map(ToString::to_string).collect()
    }

    #[track_caller]
    fn refused(&self) -> Vec<String> {
        match self.undo(Turns::Last(1), OnConflict::Refuse) {
            Err(UndoError::Changed { conflicts }) => {
                conflicts.iter().map(|conflict| format!("{} {}", conflict.path, conflict.cause.words())).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    fn records(&self) -> Vec<Record> {
        records(&self.store, SESSION).unwrap()
    }
}

fn recorder(root: &Path, store: &Store, limits: Limits, told: &Arc<Mutex<Vec<String>>>) -> Arc<Recorder> {
    let places = Places { workspace: root.join("work"), hermes: root.join("home"), user: Some(root.join("user")) };
    let told = Arc::clone(told);
    let notify = Box::new(move |line| told.lock().unwrap().push(line));
    Arc::new(Recorder::new(store.clone(), SESSION, places, limits, notify).unwrap())
}

#[test]
fn a_file_tool_is_undone_exactly() {
    let world = World::new();
    world.write("a.txt", "one\r\n");
    fs::set_permissions(world.path("a.txt"), fs::Permissions::from_mode(0o640)).unwrap();
    world.tool("a.txt", "two\n");
    world.tool("new/deep/b.txt", "new\n");
    // What the user does meanwhile is not Hermes's.
    world.write("mine.txt", "mine");
    let (turns, text) = diff(&world.store, SESSION, Turns::Last(1)).unwrap();
    assert_eq!(turns, [1]);
    for part in ["--- a/a.txt", "-one", "+two", "--- /dev/null", "+++ b/new/deep/b.txt", "new folder"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(world.undone(), ["a.txt", "new", "new/deep", "new/deep/b.txt"]);
    assert_eq!(world.read("a.txt"), "one\r\n");
    assert_eq!(fs::metadata(world.path("a.txt")).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(!world.exists("new") && world.read("mine.txt") == "mine");
    assert!(matches!(world.undo(Turns::Last(1), OnConflict::Refuse), Err(UndoError::Nothing)));
}

#[test]
fn a_program_is_undone_with_modes_links_folders_and_removals() {
    let world = World::new();
    world.write("run.sh", "#!/bin/sh\n");
    world.write("gone/file.bin", [0_u8, 159, 146, 150]);
    world.write("becomes-link", "text");
    symlink("run.sh", world.path("link")).unwrap();
    world.program(|| {
        fs::set_permissions(world.path("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::remove_dir_all(world.path("gone")).unwrap();
        fs::remove_file(world.path("becomes-link")).unwrap();
        symlink("elsewhere", world.path("becomes-link")).unwrap();
        fs::remove_file(world.path("link")).unwrap();
        fs::create_dir(world.path("link")).unwrap();
        world.write("made/empty/x", "x");
        fs::remove_file(world.path("made/empty/x")).unwrap();
    });
    world.undone();
    assert_eq!(fs::metadata(world.path("run.sh")).unwrap().permissions().mode() & 0o777, 0o644);
    assert_eq!(fs::read(world.path("gone/file.bin")).unwrap(), [0_u8, 159, 146, 150]);
    assert_eq!(fs::read(world.path("becomes-link")).unwrap(), b"text");
    assert!(!world.path("becomes-link").is_symlink());
    assert_eq!(fs::read_link(world.path("link")).unwrap(), Path::new("run.sh"));
    assert!(!world.exists("made"));
}

#[test]
fn a_file_that_the_user_changed_since_is_named_and_nothing_is_undone() {
    let world = World::new();
    world.write("a", "1");
    world.write("b", "1");
    world.program(|| ["a", "b"].iter().for_each(|path| world.write(path, "2")));
    world.write("b", "mine");
    assert_eq!(world.refused(), ["b changed since"]);
    assert_eq!((world.read("a"), world.read("b")), ("2".into(), "mine".into()));
    // A removal is a change as well.
    fs::remove_file(world.path("a")).unwrap();
    assert_eq!(world.refused(), ["a changed since", "b changed since"]);
    world.write("a", "2");
    let undo = world.undo(Turns::Last(1), OnConflict::Skip).unwrap();
    assert_eq!((undo.restored.len(), undo.skipped.len()), (1, 1));
    assert_eq!((world.read("a"), world.read("b")), ("1".into(), "mine".into()));
}

#[test]
fn an_undo_that_may_overwrite_restores_what_the_user_changed() {
    let world = World::new();
    world.write("a", "1");
    world.tool("a", "2");
    world.write("a", "mine");
    world.undo(Turns::Last(1), OnConflict::Overwrite).unwrap();
    assert_eq!(world.read("a"), "1");
}

#[test]
fn a_change_between_two_changes_is_the_users() {
    let world = World::new();
    world.write("a", "1");
    world.tool("a", "2");
    world.write("a", "2 and mine");
    world.tool("a", "3");
    assert_eq!(world.refused(), ["a also changed by somebody else in between"]);
}

#[test]
fn several_turns_are_undone_together_and_none_twice() {
    let world = World::new();
    world.write("a", "1");
    world.tool("a", "2");
    world.recorder.turn_begins(5, "second");
    world.tool("a", "3");
    world.recorder.turn_begins(9, "nothing changes");
    world.recorder.turn_begins(12, "third");
    world.tool("b", "new");
    assert_eq!(world.undone(), ["b"]);
    let undo = world.undo(Turns::From(1), OnConflict::Refuse).unwrap();
    assert_eq!((undo.turns, undo.words.as_str()), (vec![1, 2], "first words"));
    assert_eq!(world.read("a"), "1");
    let again = world.undo(Turns::From(1), OnConflict::Refuse);
    assert!(matches!(again, Err(UndoError::NoSuchTurn { number: 1 })), "{again:?}");
    let told = untold(&world.store, SESSION);
    assert_eq!(told.len(), 3);
    set_told(&world.store, SESSION, told, 15);
    assert_eq!(untold(&world.store, SESSION), []);
}

#[test]
fn an_undo_is_told_again_once_the_message_that_told_it_is_rewound() {
    let world = World::new();
    world.write("a", "1");
    world.tool("a", "2");
    world.recorder.turn_begins(5, "second");
    world.tool("a", "3");
    world.recorder.turn_ends();
    world.undo(Turns::From(1), OnConflict::Refuse).unwrap();
    let told = untold(&world.store, SESSION);
    set_told(&world.store, SESSION, told, 9);
    rewound(&world.store, SESSION, 10).unwrap();
    assert_eq!(untold(&world.store, SESSION), []);
    // The rewind removed the turn of message 5, so the model no longer knows of its undo.
    rewound(&world.store, SESSION, 5).unwrap();
    let again: Vec<u64> = untold(&world.store, SESSION).iter().map(|record| record.message).collect();
    assert!(again.len() == 1 && again[0] < 5, "{again:?}");
}

#[test]
fn what_happens_beside_a_background_program_is_not_undone_without_being_asked_for() {
    let world = World::new();
    world.write("a", "1");
    world.write("b", "1");
    let server = world.recorder.program_begins("server", true);
    world.write("a", "2");
    // A program in the foreground is Hermes's, whatever else runs.
    world.program(|| world.write("b", "2"));
    world.write("c", "3");
    server.end();
    assert_eq!(
        world.refused(),
        ["a changed while a program ran in the background", "c changed while a program ran in the background"]
    );
    world.undo(Turns::Last(1), OnConflict::Skip).unwrap();
    assert_eq!((world.read("a"), world.read("b"), world.read("c")), ("2".into(), "1".into(), "3".into()));
}

#[test]
fn a_file_tool_beside_a_program_loses_neither_change() {
    let world = World::new();
    world.write("a", "1");
    world.program(|| {
        world.write("a", "2 by the program");
        world.tool("a", "3 by the tool");
    });
    let changes: Vec<bool> = world.records()[0].changes.iter().map(|change| change.path.to_string() == "a").collect();
    assert_eq!(changes, [true, true]);
    world.undone();
    assert_eq!(world.read("a"), "1");
}

#[test]
fn an_unchanged_file_is_not_read_again_and_a_changed_one_always_is() {
    let world = World::new();
    world.write("a", "11");
    world.program(|| {});
    // The same size and the same modification time: only the time of the change tells.
    let modified = fs::metadata(world.path("a")).unwrap().modified().unwrap();
    world.program(|| {
        world.write("a", "22");
        fs::File::options().write(true).open(world.path("a")).unwrap().set_modified(modified).unwrap();
    });
    world.undone();
    assert_eq!(world.read("a"), "11");
}

#[test]
fn a_program_that_was_running_when_hermes_was_killed_leaves_its_changes_named() {
    let mut world = World::new();
    world.write("a", "1");
    std::mem::forget(world.recorder.program_begins("sh -c long", false));
    world.write("a", "2");
    world.restart();
    world.recorder.settle();
    assert_eq!(world.refused(), ["a changed while a program ran in the background"]);
    let undo = world.undo(Turns::Last(1), OnConflict::Overwrite).unwrap();
    assert_eq!(undo.programs, ["sh -c long"]);
    assert_eq!(world.read("a"), "1");
}

#[test]
fn a_stopped_program_is_looked_at_a_little_later() {
    let world = World::new();
    world.write("a", "1");
    drop(world.recorder.program_begins("sh", false));
    world.write("a", "2");
    world.recorder.turn_begins(2, "next");
    assert_eq!(world.undone(), ["a"]);
}

#[test]
fn ignored_files_are_left_out_and_do_not_seem_new_when_the_list_changes() {
    let world = World::new();
    world.write(".gitignore", "built/\n");
    world.write("built/old", "mine");
    world.program(|| {
        world.write("built/new", "x");
        world.write("src", "x");
    });
    assert_eq!(world.undone(), ["src"]);
    std::thread::sleep(Duration::from_millis(50));
    world.recorder.turn_begins(2, "");
    world.program(|| {
        std::thread::sleep(Duration::from_millis(50));
        world.write(".gitignore", "");
    });
    // A file that git ignored before is the user's, although it appears only now.
    assert_eq!(world.undone(), [".gitignore"]);
    assert_eq!(world.read("built/old"), "mine");
    world.recorder.turn_begins(3, "");
    world.program(|| world.write(".gitignore", "src2\nbuilt\n"));
    // A path that git ignores from now on does not count as removed.
    assert_eq!(world.undone(), [".gitignore"]);
}

#[test]
fn a_moved_head_is_named_and_the_repository_is_never_touched() {
    let world = World::new();
    world.write(".git/HEAD", "ref: refs/heads/main\n");
    world.write(".git/refs/heads/main", "1111111111111111111111111111111111111111\n");
    world.write("a", "1");
    world.program(|| {
        world.write("a", "2");
        world.write(".git/refs/heads/main", "2222222222222222222222222222222222222222\n");
        world.write(".git/objects/22/22", "object");
    });
    let undo = world.undo(Turns::Last(1), OnConflict::Refuse).unwrap();
    let (before, after) = undo.heads.unwrap();
    assert_eq!(after.branch.as_deref(), Some("main"));
    assert!(before.commit.unwrap().starts_with("1111") && after.commit.unwrap().starts_with("2222"));
    assert_eq!(undo.restored.len(), 1);
    assert!(world.read(".git/refs/heads/main").starts_with("2222") && world.exists(".git/objects/22/22"));
}

#[test]
fn the_heads_of_several_turns_are_those_before_the_first_and_after_the_last() {
    let world = World::new();
    let commit = |digit: &str| world.write(".git/refs/heads/main", format!("{}\n", digit.repeat(40)));
    world.write(".git/HEAD", "ref: refs/heads/main\n");
    commit("1");
    for (turn, digit) in [(1, "2"), (2, "3"), (3, "3")] {
        world.recorder.turn_begins(turn, "words");
        world.program(|| {
            world.write("a", digit.repeat(turn as usize));
            commit(digit);
        });
    }
    let undo = world.undo(Turns::From(1), OnConflict::Refuse).unwrap();
    let (before, after) = undo.heads.unwrap();
    assert_eq!((before.commit.unwrap(), after.commit.unwrap()), ("1".repeat(40), "3".repeat(40)));
}

#[test]
fn a_file_outside_of_the_workspace_is_named() {
    let world = World::new();
    let outside = world.root.path().join("notes.md");
    world.recorder.change_begins().will_change(&outside);
    world.tool("a", "1");
    let undo = world.undo(Turns::Last(1), OnConflict::Refuse).unwrap();
    assert_eq!(undo.outside, [outside]);
}

#[test]
fn a_moved_folder_moves_back() {
    let world = World::new();
    world.write("old/deep/a", "1");
    {
        let changing = world.recorder.change_begins();
        changing.will_change(&world.path("old"));
        changing.will_change(&world.path("new"));
        fs::rename(world.path("old"), world.path("new")).unwrap();
    }
    world.undone();
    assert_eq!(world.read("old/deep/a"), "1");
    assert!(!world.exists("new"));
}

#[test]
fn programs_at_the_same_time_need_one_look_before_and_one_after() {
    let world = World::new();
    world.write("a", "1");
    let first = world.recorder.program_begins("first", false);
    world.write("a", "2");
    let second = world.recorder.program_begins("second", false);
    first.end();
    assert_eq!(world.records()[0].changes, []);
    world.write("a", "3");
    second.end_meanwhile();
    // Waits for the look.
    world.recorder.turn_ends();
    assert_eq!(world.records()[0].changes.len(), 1);
    assert_eq!(world.undone(), ["a"]);
    assert_eq!(world.read("a"), "1");
}

#[test]
fn an_undo_waits_for_the_look_after_a_program() {
    let world = World::new();
    for number in 0..500 {
        world.write(&number.to_string(), "1");
    }
    for _ in 0..10 {
        let window = world.recorder.program_begins("sh", false);
        world.write("7", "2");
        window.end_meanwhile();
        world.recorder.settle();
        assert_eq!(world.undone(), ["7"]);
        world.recorder.turn_begins(2, "again");
    }
}

#[test]
fn what_the_user_changed_while_there_was_no_look_is_not_taken_for_a_programs_work() {
    let world = World::new();
    world.write("a", "1");
    world.program(|| {});
    world.write("a", "mine");
    // The folder is away when the look before the program fails, and is back when the program ends.
    let away = world.root.path().join("away");
    fs::rename(world.root.path().join("work"), &away).unwrap();
    world.program(|| fs::rename(&away, world.root.path().join("work")).unwrap());
    let records = world.records();
    assert!(records.iter().all(|record| record.changes.is_empty()), "{records:?}");
    assert_eq!(records.last().unwrap().unrecorded.len(), 1);
    world.program(|| world.write("b", "new"));
    assert_eq!(world.undone(), ["b"]);
    assert_eq!(world.read("a"), "mine");
}

#[test]
fn a_workspace_that_is_too_large_is_not_looked_at_for_each_program() {
    let world = World::with(Limits { max_files: 10, ..LIMITS });
    for number in 0..20 {
        world.write(&format!("many/{number}"), "x");
    }
    // A look would find few files now.
    world.program(|| fs::remove_dir_all(world.path("many")).unwrap());
    world.program(|| world.write("a", "1"));
    assert_eq!(world.records()[0].changes, []);
}

#[test]
fn a_file_that_was_removed_and_written_again_gets_its_permissions_back() {
    let mut world = World::new();
    world.write("run.sh", "#!/bin/sh\n");
    fs::set_permissions(world.path("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    let changing = world.recorder.change_begins();
    changing.will_change(&world.path("run.sh"));
    fs::remove_file(world.path("run.sh")).unwrap();
    drop(changing);
    world.tool("run.sh", "#!/bin/sh\n");
    assert_eq!(fs::metadata(world.path("run.sh")).unwrap().permissions().mode() & 0o111, 0);
    // Killed before the next file of the same call: what was written until then is recorded.
    world.restart();
    assert_eq!(world.undone(), ["run.sh"]);
    assert_eq!(fs::metadata(world.path("run.sh")).unwrap().permissions().mode() & 0o777, 0o755);
}
