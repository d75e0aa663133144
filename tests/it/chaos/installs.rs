//! `kill -9` at random moments of `install`, `update`, `grant` and a reload, for components and native libraries: the home has
//! the old plugin or the new one, everything works with it, and the same command succeeds when it is run again.
//!
//! `HERMES_KILLED_INSTALLS` sets the number of kills. The seed is fixed, so a run is repeatable as far as the clock allows.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use hermes_tests::{Home, Reply, Running, Server, renamed, staged_guest};
use serde_json::{Value, json};

use super::random_kills::Dice;

/// Default number of kills.
const KILLS: usize = 10;
const SEED: u64 = 0x696e_7374_616c_6c73;
const NAME: &str = "mine";
const NOTE: &str = "data/mine/documents/note";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Install,
    Update,
    Grant,
    Reload,
}

const STEPS: [(Step, bool); 8] = [
    (Step::Install, false),
    (Step::Install, true),
    (Step::Update, false),
    (Step::Update, true),
    (Step::Grant, false),
    (Step::Grant, true),
    (Step::Reload, false),
    (Step::Reload, true),
];

/// A home, and the plugin in it or beside it.
struct Ground {
    server: Server,
    home: Home,
    step: Step,
    is_native: bool,
}

impl Ground {
    /// The state before the step.
    fn new(step: Step, is_native: bool) -> Self {
        let server = Server::answering(|_, _| Reply::text("Here I am."));
        let home = Home::with(&server);
        home.set("plugins.enabled", json!([NAME]));
        let ground = Self { server, home, step, is_native };
        ground.write_source("0.1.0");
        if step != Step::Install {
            ground.hermes(&["plugins", "install", "./source"]).success();
            ground.home.write(NOTE, "of the plugin");
            ground.write_source("0.2.0");
        }
        if step == Step::Grant {
            ground.change_by_hand();
        }
        ground
    }

    fn write_source(&self, version: &str) {
        if self.is_native {
            let staged = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/test-natives/hostile-native");
            for entry in fs::read_dir(&staged).unwrap().flatten() {
                let file = entry.file_name().into_string().unwrap();
                self.home.write_workspace(&format!("source/{file}"), fs::read(entry.path()).unwrap());
            }
            let manifest = fs::read_to_string(staged.join("plugin.yaml")).unwrap();
            self.home.write_workspace("source/plugin.yaml", of_version(&renamed(&manifest, NAME), version));
        } else {
            let (manifest, component) = staged_guest("runner");
            self.home.write_workspace("source/plugin.yaml", of_version(&renamed(&manifest, NAME), version));
            self.home.write_workspace("source/mine.wasm", component);
        }
    }

    /// Gives the installed files another version, as an editor does.
    fn change_by_hand(&self) {
        let manifest = self.home.path().join("plugins/mine/plugin.yaml");
        let changed = of_version(&fs::read_to_string(&manifest).unwrap(), "0.2.0");
        let aside = manifest.with_extension("part");
        fs::write(&aside, changed).unwrap();
        fs::rename(aside, manifest).unwrap();
    }

    fn command(&self) -> Vec<&'static str> {
        match self.step {
            Step::Install => vec!["plugins", "install", "./source"],
            Step::Update => vec!["plugins", "update", NAME],
            Step::Grant | Step::Reload => vec!["plugins", "grant", NAME],
        }
    }

    fn start(&self, arguments: &[&str]) -> Running {
        let consent: &[&str] = if self.is_native { &["--yes", "--native"] } else { &["--yes"] };
        self.home.hermes(&[arguments, consent].concat()).spawn()
    }

    fn hermes(&self, arguments: &[&str]) -> hermes_tests::Output {
        self.start(arguments).wait()
    }

    /// The version and the digest in the lock.
    fn locked(&self) -> Option<(String, String)> {
        let lock = fs::read_to_string(self.home.path().join("plugins.lock")).ok()?;
        let lock: Value = serde_json::from_str(&lock).unwrap_or_else(|error| panic!("{error}\n{lock}"));
        let entry = lock["plugins"].get(NAME)?;
        Some((entry["version"].as_str()?.to_owned(), entry["digest"].as_str()?.to_owned()))
    }

    /// Everything that a user would run next works.
    fn works(&self, at: &str) {
        let run = |arguments: &[&str]| self.home.hermes(arguments).run();
        run(&["plugins", "list"]).success();
        let doctor = run(&["plugins", "doctor"]);
        assert!(matches!(doctor.status.code(), Some(0 | 1)), "{at}\n{doctor}");
        let answer = run(&["-z", "hi"]).success();
        assert_eq!(answer.stdout, "Here I am.\n", "{at}\n{answer}");
    }

    /// Nothing of a killed process is left.
    fn is_clean(&self, at: &str) {
        let names = |folder: &str| -> Vec<String> {
            let entries = fs::read_dir(self.home.path().join(folder)).into_iter().flatten().flatten();
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
        };
        let left = |name: &&String| name.starts_with(".stage") || name.starts_with(".journal");
        assert_eq!(names("plugins").iter().find(left), None, "{at}");
        assert_eq!(names("cache/code").iter().find(|name| name.starts_with("native-")), None, "{at}");
    }

    /// A chat that reloads the plugin which was changed and granted.
    fn reloading(&self) -> Running {
        let mut chat = self.home.hermes(&["-v"]).talking().spawn();
        chat.say("hi");
        self.server.wait_for_finished(1);
        self.change_by_hand();
        self.hermes(&self.command()).success();
        chat
    }
}

fn of_version(manifest: &str, version: &str) -> String {
    let lines = manifest.lines().map(|line| match line.starts_with("version:") {
        true => format!("version: {version}\n"),
        false => format!("{line}\n"),
    });
    lines.collect()
}

/// Kills a step once. Returns whether it was killed in time.
fn kill(step: Step, is_native: bool, dice: &mut Dice, duration: Duration) -> bool {
    let ground = Ground::new(step, is_native);
    let before = ground.locked();
    let waits = duration.mul_f64(dice.below(1_100) as f64 / 1_000.0);
    let at = format!("{step:?}, native: {is_native}, after {waits:?}");
    let running = match step {
        Step::Reload => ground.reloading(),
        _ => ground.start(&ground.command()),
    };
    std::thread::sleep(waits);
    let output = running.kill();
    let was_killed = output.status.code().is_none();
    assert!(was_killed || output.status.success(), "{at}\n{output}");
    let after = ground.locked();
    ground.works(&at);
    if step != Step::Reload {
        ground.hermes(&ground.command()).success();
    }
    let now = ground.locked();
    assert!(after == before || after == now, "{at}: {before:?}, {after:?}, {now:?}");
    assert_ne!(before, now, "{at}");
    let version = if step == Step::Install { "0.1.0" } else { "0.2.0" };
    assert_eq!(now.map(|(version, _)| version).as_deref(), Some(version), "{at}");
    ground.works(&at);
    ground.home.hermes(&["plugins", "verify"]).run().success();
    ground.is_clean(&at);
    if step != Step::Install {
        assert_eq!(ground.home.read(NOTE), "of the plugin", "{at}");
    }
    was_killed
}

/// How long a step takes undisturbed.
fn duration(step: Step, is_native: bool) -> Duration {
    let ground = Ground::new(step, is_native);
    let begun = Instant::now();
    match step {
        // The examination of the change ends with a line of the log.
        Step::Reload => {
            let chat = ground.reloading();
            let begun = Instant::now();
            chat.wait_for_stderr("change=\"ready\"");
            chat.kill();
            begun.elapsed()
        }
        _ => {
            ground.hermes(&ground.command()).success();
            begun.elapsed()
        }
    }
}

#[test]
fn killed_at_any_moment_the_home_has_the_old_plugin_or_the_new_one() {
    let kills = std::env::var("HERMES_KILLED_INSTALLS").map_or(KILLS, |count| count.parse().expect("a count of kills"));
    let mut dice = Dice(SEED);
    let durations: Vec<Duration> = STEPS.iter().map(|(step, is_native)| duration(*step, *is_native)).collect();
    let in_time = (0..kills).filter(|number| {
        let (step, is_native) = STEPS[number % STEPS.len()];
        kill(step, is_native, &mut dice, durations[number % STEPS.len()])
    });
    let killed = in_time.count();
    // Some steps end before they are killed.
    assert!(killed * 2 >= kills, "{killed} of {kills} kills were in time");
    println!("{killed} of {kills} steps were killed before they ended");
}
