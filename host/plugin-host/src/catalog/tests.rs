#![allow(clippy::unwrap_used)]

use hermes_diagnostic::Diagnose as _;
use hermes_runtime::{Limit, LimitSet};

use super::*;
use crate::digest;
use crate::lock::{Entry, Pin};

const TEXT: &str =
    "name: mine\nversion: 1.0.0\npermissions: {history: true, sql: true}\nlimits: {memory: 1GiB, handles: 5000}\n";

/// The catalog of a home with one plugin and a lock.
fn catalog(home: &Path, place: &str, granted: Option<&str>) -> Catalog {
    let folder = home.join("plugins").join(place);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(MANIFEST), TEXT).unwrap();
    fs::write(folder.join("mine.wasm"), "code").unwrap();
    let pin = Pin {
        source: "/src".to_owned(),
        resolved: None,
        folder: "tools/mine".to_owned(),
        version: semver::Version::new(1, 0, 0),
        digest: digest::of_folder(&folder).unwrap(),
        signer: None,
        exports: None,
        drafts: Vec::new(),
        granted: granted.map(|granted| serde_json::from_str(granted).unwrap()),
        limits: LimitSet::default().and(Limit::Memory, 512 << 20).and(Limit::Handles, 9_000),
        native: false,
        edited: false,
    };
    let mut lock = Lock::default();
    lock.plugins.insert("mine".to_owned(), Entry::new(pin, None));
    lock.write(&Lock::path(home)).unwrap();
    Catalog::find(&[], &home.join("plugins"), &HashMap::new())
}

#[test]
fn a_granted_plugin_has_the_permissions_that_it_requests_and_was_granted() {
    let home = tempfile::tempdir().unwrap();
    let catalog = catalog(home.path(), "tools/mine", Some(r#"{"sql": true, "process": ["git"]}"#));
    let found = catalog.get("mine").unwrap();
    assert_eq!(found.code().unwrap().bytes(), b"code");
    let may = found.permissions();
    assert!(may.sql && !may.history && may.process.is_empty());
    let limits = LimitSet::default().and(Limit::Memory, 512 << 20).and(Limit::Handles, 5_000);
    assert_eq!(found.limits(), limits, "neither more than was granted nor more than it requests");
}

#[test]
fn any_change_in_the_folder_ends_the_grant() {
    let home = tempfile::tempdir().unwrap();
    for (file, content) in [("mine.wasm", "evil"), ("plugin.yaml", "name: mine\nversion: 1.0.0\n"), ("more", "")] {
        let catalog = catalog(home.path(), "tools/mine", Some("{}"));
        let found = catalog.get("mine").unwrap();
        found.code().unwrap();
        let path = home.path().join("plugins/tools/mine").join(file);
        fs::write(&path, content).unwrap();
        let error = found.code().unwrap_err();
        assert!(matches!(error, PluginsError::Ungranted { why: Ungranted::Altered { .. }, .. }), "{file}: {error}");
        assert!(error.sentence().contains("grant the plugin `mine` its permissions"), "{error}");
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn a_plugin_without_a_grant_does_not_run_and_gives_a_remedy() {
    for (place, granted, why) in
        [("tools/mine", None, "grant the plugin `mine` its permissions"), ("elsewhere", Some("{}"), "tools/mine")]
    {
        let home = tempfile::tempdir().unwrap();
        let catalog = catalog(home.path(), place, granted);
        let found = catalog.get("mine").unwrap();
        assert!(found.permissions().is_empty() && found.limits().is_empty());
        let error = found.code().unwrap_err().sentence();
        assert!(error.contains(why), "{error}");
    }
    let home = tempfile::tempdir().unwrap();
    catalog(home.path(), "tools/mine", Some("{}"));
    fs::remove_file(Lock::path(home.path())).unwrap();
    let catalog = Catalog::find(&[], &home.path().join("plugins"), &HashMap::new());
    assert!(matches!(catalog.get("mine").unwrap().status, GrantStatus::Ungranted(Ungranted::Unknown(_))));
    fs::write(Lock::path(home.path()), "{").unwrap();
    let catalog = Catalog::find(&[], &home.path().join("plugins"), &HashMap::new());
    assert_eq!(catalog.problems().len(), 1);
    assert!(catalog.get("mine").unwrap().code().is_err());
    let catalog = Catalog::vouched(&[], &home.path().join("plugins"));
    let found = catalog.get("mine").unwrap();
    assert!(found.permissions().history && found.code().is_ok());
}

fn put(home: &Path, files: &[(&str, &str)]) {
    for (file, content) in files {
        let path = home.join("plugins").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

#[test]
fn a_folder_without_a_usable_plugin_is_reported_by_name_with_a_remedy() {
    for (files, name, parts) in [
        (&[("mine/plugin.yaml", "name: mine\nconfig: [1]\n")][..], "mine", &["line 2", "correct"][..]),
        (&[("tools/mine/plugin.yaml", "name: mine\napi: ^9\n")], "mine", &["line 2", "^9", "update"]),
        (&[("mine/plugin.yaml", "name: other\n")], "other", &["no component", "build it"]),
        (
            &[("mine/plugin.yaml", "name: mine\ncomponent: a.wasm\n"), ("mine/b.wasm", "")],
            "mine",
            &["a.wasm", "build it"],
        ),
        (&[("mine/plugin.yaml", "name: mine\n"), ("mine/a.wasm", ""), ("mine/b.wasm", "")], "mine", &["2 components"]),
        (&[("mine/mine.wasm", ""), ("mine/src/lib.rs", "")], "mine", &["no plugin.yaml", "add a plugin.yaml"]),
        (&[("tools/mine/mine.wasm", "")], "mine", &["no plugin.yaml"]),
    ] {
        let home = tempfile::tempdir().unwrap();
        put(home.path(), files);
        let catalog = Catalog::find(&[], &home.path().join("plugins"), &HashMap::new());
        assert!(catalog.all().is_empty() && catalog.problems().len() == 1, "{files:?}: {:?}", catalog.problems());
        let sentence = catalog.problem_with(name).unwrap().sentence();
        assert!(parts.iter().all(|part| sentence.contains(part)), "{files:?}: {sentence}");
    }
    let home = tempfile::tempdir().unwrap();
    put(
        home.path(),
        &[
            (".stage-1/x", ""),
            ("tools/README", ""),
            ("tools/mine/plugin.yaml", "name: mine\n"),
            ("tools/mine/m.wasm", ""),
        ],
    );
    fs::create_dir_all(home.path().join("plugins/left/over")).unwrap();
    let catalog = Catalog::find(&[], &home.path().join("plugins"), &HashMap::new());
    assert!(catalog.problems().is_empty() && catalog.get("mine").is_some(), "{:?}", catalog.problems());
}

#[test]
fn a_bundled_plugin_has_precedence_unless_the_user_chooses_the_installed_one() {
    let ours = Bundled::new("name: mine\nversion: 2.0.0\n", b"ours");
    let set = |source| {
        let settings = PluginSettings { source, ..PluginSettings::default() };
        HashMap::from([("mine".to_owned(), settings)])
    };
    let home = tempfile::tempdir().unwrap();
    let find = |bundled: &[Bundled], source| Catalog::find(bundled, &home.path().join("plugins"), &set(source));
    let only_installed = find(&[ours], Some(PreferredSource::Installed));
    assert!(only_installed.get("mine").is_none(), "the bundled plugin is not used instead");
    assert!(only_installed.problem_with("mine").unwrap().sentence().contains("install one"));

    put(home.path(), &[("mine/plugin.yaml", "name: mine\nversion: 1.0.0\n"), ("mine/mine.wasm", "theirs")]);
    for (source, is_bundled, problems) in
        [(None, true, 1), (Some(PreferredSource::Bundled), true, 0), (Some(PreferredSource::Installed), false, 0)]
    {
        let catalog = find(&[ours], source);
        let found = catalog.get("mine").unwrap();
        assert_eq!((found.origin == Origin::Bundled, catalog.problems().len()), (is_bundled, problems), "{source:?}");
        assert_eq!(found.code().is_ok(), is_bundled, "an installed plugin runs only with a grant");
    }
    let twice = find(&[ours], None).problem_with("mine").unwrap().sentence();
    assert!(twice.contains("plugins.settings.mine.source: installed"), "{twice}");
    assert!(find(&[], Some(PreferredSource::Bundled)).get("mine").is_none());
}
