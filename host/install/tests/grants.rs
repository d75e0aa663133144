//! Tests which rights an update asks for, and what happens to rights that were denied.

#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use hermes_install::{InstallError, Installer, Prepared, Silent, Source, State, Wanted, only};
use hermes_plugin_host::{Catalog, Limit, LimitSet, Permissions};

fn prepare(home: &Path, from: &Path, version: &str, rights: &str) -> Prepared {
    fs::create_dir_all(from).unwrap();
    fs::write(from.join("plugin.yaml"), format!("name: mine\nversion: {version}\n{rights}\n")).unwrap();
    fs::write(from.join("mine.wasm"), format!("code of {version}")).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let wanted = Wanted { source: Source::Folder(from.to_owned()), name: None, insecure: false, key: None };
    runtime.block_on(Installer::new(home, []).prepare(&wanted, &Silent)).unwrap()
}

fn rights(json: &str) -> Permissions {
    serde_json::from_str(json).unwrap()
}

#[test]
fn an_update_asks_only_for_new_rights_and_denied_ones_stay_denied() {
    let place = tempfile::tempdir().unwrap();
    let (home, from) = (place.path().join("home"), place.path().join("source"));
    let installer = Installer::new(&home, []);
    let first = prepare(&home, &from, "1.0.0", "permissions: {sql: true, history: true}");
    assert_eq!(first.widening(), rights(r#"{"sql": true, "history": true}"#));
    let some = only(&first.manifest.permissions, &["sql".to_owned()], "mine").unwrap();
    installer.commit(&first, some, LimitSet::default(), &|_| ()).unwrap();

    let second = prepare(&home, &from, "1.1.0", "permissions: {sql: true, history: true}");
    assert!(second.widening().is_empty());
    let (granted, limits) = second.granted(false);
    assert_eq!(granted, rights(r#"{"sql": true}"#));
    installer.commit(&second, granted, limits, &|_| ()).unwrap();

    let third = prepare(&home, &from, "1.2.0", "permissions: {history: true, process: [git]}\nlimits: {memory: 1GiB}");
    assert_eq!(third.widening(), rights(r#"{"process": ["git"]}"#));
    assert_eq!(third.wider_limits(), LimitSet::default().and(Limit::Memory, 1 << 30));
    // Neither rights that are no longer requested nor denied ones are granted.
    assert_eq!(third.granted(true).0, rights(r#"{"process": ["git"]}"#));
    assert!(third.granted(false).0.is_empty() && third.granted(false).1.is_empty());
    let (granted, limits) = third.granted(true);
    installer.commit(&third, granted, limits, &|_| ()).unwrap();
    let fourth = prepare(&home, &from, "1.3.0", "limits: {memory: 2GiB}");
    assert_eq!(fourth.wider_limits(), LimitSet::default().and(Limit::Memory, 2 << 30));
}

#[test]
fn an_altered_folder_has_no_rights_and_can_be_restored() {
    let place = tempfile::tempdir().unwrap();
    let (home, from) = (place.path().join("home"), place.path().join("source"));
    let installer = Installer::new(&home, []);
    let first = prepare(&home, &from, "1.0.0", "permissions: {sql: true}");
    let (granted, limits) = first.granted(true);
    installer.commit(&first, granted, limits, &|_| ()).unwrap();
    assert!(prepare(&home, &from, "1.0.0", "permissions: {sql: true}").is_installed());

    fs::write(home.join("plugins/mine/mine.wasm"), "evil").unwrap();
    let state = || installer.verify(&Catalog::find(&[], &home.join("plugins"), &HashMap::new())).unwrap()[0].state;
    assert_eq!(state(), State::Altered);
    let again = prepare(&home, &from, "1.0.0", "permissions: {sql: true}");
    assert!(!again.is_installed() && again.widening().is_empty());
    let (granted, limits) = again.granted(false);
    let entry = installer.commit(&again, granted, limits, &|_| ()).unwrap();
    assert_eq!((state(), entry.previous), (State::Ok, None));
    assert!(matches!(installer.roll_back("mine", &|_| ()), Err(InstallError::NoPrevious(_))));
}

#[test]
fn a_manual_grant_is_for_the_inspected_bytes() {
    let place = tempfile::tempdir().unwrap();
    let (home, folder) = (place.path().join("home"), place.path().join("home/plugins/tools/mine"));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("plugin.yaml"), "name: mine\npermissions: {sql: true}\n").unwrap();
    fs::write(folder.join("mine.wasm"), "code").unwrap();
    let installer = Installer::new(&home, []);
    let catalog = || Catalog::find(&[], &home.join("plugins"), &HashMap::new());
    let granting = installer.granting("mine", false, &catalog()).unwrap();
    fs::write(folder.join("mine.wasm"), "other code").unwrap();
    let raced = installer.grant(&granting, granting.manifest.permissions.clone(), LimitSet::default());
    assert!(matches!(raced, Err(InstallError::Raced(_))), "{raced:?}");
    let granting = installer.granting("mine", false, &catalog()).unwrap();
    installer.grant(&granting, granting.manifest.permissions.clone(), LimitSet::default()).unwrap();
    assert!(catalog().get("mine").unwrap().permissions().sql);
    assert_eq!(installer.revoke("mine", &["sql".to_owned()]).unwrap(), Some(Permissions::default()));
    assert!(!catalog().get("mine").unwrap().permissions().sql && catalog().get("mine").unwrap().code().is_ok());
    assert_eq!(installer.revoke("mine", &[]).unwrap(), None);
    assert!(catalog().get("mine").unwrap().code().is_err());
}

#[test]
fn a_grant_of_changed_files_keeps_source_key_and_rollback_and_says_so() {
    let place = tempfile::tempdir().unwrap();
    let (home, from) = (place.path().join("home"), place.path().join("source"));
    let installer = Installer::new(&home, []);
    let catalog = || Catalog::find(&[], &home.join("plugins"), &HashMap::new());
    for version in ["1.0.0", "1.1.0"] {
        let prepared = prepare(&home, &from, version, "permissions: {sql: true}");
        let (granted, limits) = prepared.granted(true);
        installer.commit(&prepared, granted, limits, &|_| ()).unwrap();
    }
    let before = installer.entry("mine").unwrap();
    fs::create_dir_all(home.join("data/mine")).unwrap();
    fs::write(home.join("data/mine/note"), "kept").unwrap();
    installer.claim_data().unwrap();
    for (change, is_edited) in [("one", true), ("two", true)] {
        fs::write(home.join("plugins/mine/README.md"), change).unwrap();
        let granting = installer.granting("mine", false, &catalog()).unwrap();
        assert_eq!(granting.pin.edited, is_edited);
        assert!(granting.known().is_some() && granting.kept().is_none(), "its grant is asked for anew");
        installer.grant(&granting, rights(r#"{"sql": true}"#), LimitSet::default()).unwrap();
        let entry = installer.entry("mine").unwrap();
        assert_eq!(
            (&entry.pin.source, &entry.pin.resolved, &entry.previous),
            (&before.pin.source, &before.pin.resolved, &before.previous)
        );
        assert!(entry.pin.edited && entry.pin.signed_by().is_none() && catalog().get("mine").unwrap().code().is_ok());
        assert_eq!(fs::read_to_string(home.join("data/mine/note")).unwrap(), "kept");
    }
    // The same files once more: they are still not those of the source.
    let granting = installer.granting("mine", false, &catalog()).unwrap();
    assert!(granting.pin.edited && granting.kept().is_some());
    // A rollback and back.
    assert_eq!(installer.roll_back("mine", &|_| ()).unwrap().pin.digest, before.previous.as_ref().unwrap().digest);
    assert!(installer.roll_back("mine", &|_| ()).unwrap().pin.edited);
    // An update takes the files of the source, and keeps the changed ones for a rollback.
    let again = prepare(&home, &from, "1.1.0", "permissions: {sql: true}");
    assert!(!again.is_installed() && again.altered().is_none() && again.widening().is_empty());
    let (granted, limits) = again.granted(false);
    let entry = installer.commit(&again, granted, limits, &|_| ()).unwrap();
    assert!(!entry.pin.edited && entry.pin.digest == before.pin.digest && entry.previous.unwrap().edited);
}

#[test]
fn a_plugin_whose_source_is_its_folder_belongs_there_as_it_is() {
    let place = tempfile::tempdir().unwrap();
    let (home, folder) = (place.path().join("home"), place.path().join("home/plugins/mine"));
    fs::create_dir_all(&folder).unwrap();
    let installer = Installer::new(&home, []);
    let catalog = || Catalog::find(&[], &home.join("plugins"), &HashMap::new());
    for version in ["1.0.0", "2.0.0"] {
        fs::write(folder.join("plugin.yaml"), format!("name: mine\nversion: {version}\n")).unwrap();
        fs::write(folder.join("mine.wasm"), version).unwrap();
        let granting = installer.granting("mine", false, &catalog()).unwrap();
        installer.grant(&granting, Permissions::default(), LimitSet::default()).unwrap();
        let entry = installer.entry("mine").unwrap();
        assert!(!entry.pin.edited && entry.pin.is_from(&folder));
    }
}

mod attack {
    use super::*;

    /// A home whose lock, which came from elsewhere, says that `evil` lies in this folder.
    fn home_with_foreign_folder(folder: &str) -> (tempfile::TempDir, Installer) {
        let place = tempfile::tempdir().unwrap();
        let (home, from) = (place.path().join("home"), place.path().join("source"));
        let installer = Installer::new(&home, []);
        let first = prepare(&home, &from, "1.0.0", "");
        let entry = installer.commit(&first, Permissions::default(), LimitSet::default(), &|_| ()).unwrap();
        let lock = fs::read_to_string(home.join("plugins.lock")).unwrap();
        let lock = lock.replace("\"folder\": \"mine\"", &format!("\"folder\": \"{folder}\""));
        assert!(lock.contains(folder), "{lock}");
        fs::write(home.join("plugins.lock"), lock).unwrap();
        fs::remove_dir_all(home.join("plugins/mine")).unwrap();
        for name in ["work", "tools/one"] {
            fs::create_dir_all(home.join("plugins").join(name)).unwrap();
            fs::write(home.join("plugins").join(name).join("only-copy.rs"), "mine alone").unwrap();
        }
        fs::write(home.join("plugins/tools/one/plugin.yaml"), "name: one\n").unwrap();
        assert_eq!(entry.pin.folder, "mine");
        (place, installer)
    }

    #[test]
    fn a_folder_that_a_lock_names_is_not_deleted_unless_it_holds_the_plugin() {
        for folder in ["work", "tools", "tools/one"] {
            let (place, installer) = home_with_foreign_folder(folder);
            let (home, from) = (place.path().join("home"), place.path().join("source"));
            let is_there = || {
                ["work", "tools/one"].iter().all(|name| home.join("plugins").join(name).join("only-copy.rs").is_file())
            };
            let again = prepare(&home, &from, "1.1.0", "");
            let refused = installer.commit(&again, Permissions::default(), LimitSet::default(), &|_| ());
            assert!(matches!(refused, Err(InstallError::Occupied { .. })), "{folder}: {refused:?}");
            drop(again);
            assert!(is_there(), "{folder}");
            installer.remove("mine", None, false, &|_| ()).unwrap();
            assert!(is_there() && installer.lock().unwrap().plugins.is_empty(), "{folder}");
        }
    }

    #[test]
    fn nothing_is_inherited_from_an_entry_of_another_home() {
        let place = tempfile::tempdir().unwrap();
        let (home, from) = (place.path().join("home"), place.path().join("source"));
        let request = "permissions: {sql: true, history: true}\nlimits: {memory: 1GiB}";
        let bring = |home: &Path, version: &str, with_more: bool| {
            let prepared = prepare(home, &from, version, request);
            let (granted, limits) =
                if with_more { prepared.granted(true) } else { (Permissions::default(), LimitSet::default()) };
            Installer::new(home, []).commit(&prepared, granted, limits, &|_| ()).unwrap();
        };
        bring(&home, "1.0.0", false);
        bring(&home, "1.1.0", false);
        let other = place.path().join("other");
        bring(&other, "1.0.0", true);
        bring(&other, "1.1.0", true);
        fs::copy(other.join("plugins.lock"), home.join("plugins.lock")).unwrap();

        let installer = Installer::new(&home, []);
        let catalog = || Catalog::find(&[], &home.join("plugins"), &HashMap::new());
        assert_eq!(installer.verify(&catalog()).unwrap()[0].state, State::Foreign);
        assert!(catalog().get("mine").unwrap().code().is_err());
        let unusable = installer.roll_back("mine", &|_| ()).unwrap_err();
        assert!(unusable.to_string().contains("comes from elsewhere"), "{unusable}");
        assert!(installer.owner("mine").unwrap().is_none(), "the lock says where the plugin comes from");

        for version in ["1.1.0", "1.2.0"] {
            let again = prepare(&home, &from, version, request);
            assert!(again.known().is_none() && !again.is_installed() && !again.replaces_another());
            assert_eq!(again.widening(), rights(r#"{"sql": true, "history": true}"#));
            assert_eq!(again.wider_limits(), LimitSet::default().and(Limit::Memory, 1 << 30));
            assert_eq!(again.granted(false), (Permissions::default(), LimitSet::default()));
        }
        let granting = installer.granting("mine", false, &catalog()).unwrap();
        assert!(granting.known().is_none() && granting.kept().is_none() && !granting.pin.source.contains("source"));
        installer.grant(&granting, Permissions::default(), LimitSet::default()).unwrap();
        let entry = installer.entry("mine").unwrap();
        assert!(entry.is_ours() && entry.previous.is_none());
        assert_eq!(entry.pin.granted, Some(Permissions::default()));
    }
}
