#![allow(clippy::unwrap_used)]

use super::*;

const OLD: Generation = [1; 32];
const NEW: Generation = [2; 32];

/// A session that selects `mine` and runs this generation of it.
fn session(running: Option<Generation>) -> State {
    let known = Known { running, seen: running, folder: None };
    State { known: HashMap::from([("mine".to_owned(), known)]), pending: BTreeMap::new() }
}

fn usable(generation: Generation) -> Sighting {
    Sighting::Usable { folder: Some("/plugins/mine".into()), generation }
}

fn revoked() -> Sighting {
    Sighting::Ungranted { folder: None, why: Ungranted::Revoked("mine".to_owned()) }
}

/// The step in one word.
fn step(state: &mut State, sighting: &Sighting) -> &'static str {
    let empty = tempfile::tempdir().unwrap();
    let catalog = Catalog::vouched(&[], empty.path());
    match state.compare("mine", sighting, &catalog) {
        None => "nothing",
        Some(Step::Build) => "build",
        Some(Step::Report(kind)) => {
            let word = kind.word();
            state.pending.insert("mine".to_owned(), kind);
            word
        }
    }
}

#[test]
fn only_a_generation_that_does_not_run_is_built_and_only_once() {
    let mut state = session(Some(OLD));
    assert_eq!(step(&mut state, &usable(OLD)), "nothing");
    assert_eq!(step(&mut state, &usable(NEW)), "build");
    assert_eq!(step(&mut state, &usable(NEW)), "nothing");
    // A plugin that was missing when the session began is built as well.
    assert_eq!(step(&mut session(None), &usable(NEW)), "build");
    let mut other = session(Some(OLD));
    other.known.clear();
    assert_eq!(step(&mut other, &usable(NEW)), "nothing", "the session does not select it");
}

#[test]
fn a_change_that_is_taken_back_leaves_nothing_to_collect() {
    let mut state = session(Some(OLD));
    assert_eq!(step(&mut state, &Sighting::Absent), "removed");
    assert_eq!(step(&mut state, &Sighting::Absent), "nothing");
    assert_eq!(step(&mut state, &usable(OLD)), "nothing");
    assert!(state.pending.is_empty());
}

#[test]
fn a_revoked_plugin_is_reported_once_and_comes_back_when_it_is_granted_again() {
    let subscriber =
        Subscriber { selection: Arc::new(Selection::only("engine")), state: Mutex::new(session(Some(OLD))) };
    assert_eq!(step(&mut subscriber.state(), &revoked()), "revoked");
    assert_eq!(step(&mut subscriber.state(), &revoked()), "nothing");
    assert_eq!(subscriber.collect().len(), 1);
    assert!(subscriber.collect().is_empty());
    // The session now runs the plugin without permissions, so the same bytes are a newer generation.
    assert_eq!(step(&mut subscriber.state(), &usable(OLD)), "build");
}

#[test]
fn an_altered_plugin_is_broken_and_the_granted_one_goes_on() {
    let mut state = session(Some(OLD));
    let altered =
        Sighting::Ungranted { folder: None, why: Ungranted::Altered { name: "mine".to_owned(), has_source: true } };
    assert_eq!(step(&mut state, &altered), "broken");
    // Its files are being written: nothing is known yet.
    assert_eq!(step(&mut state, &Sighting::Unreadable { folder: None }), "nothing");
    assert_eq!(step(&mut state, &usable(OLD)), "nothing");
    assert!(state.pending.is_empty());
}
