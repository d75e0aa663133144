#![allow(clippy::unwrap_used)]

use std::cell::RefCell;
use std::fs;

use hermes_runtime::Compiler;
use tempfile::TempDir;

use super::*;
use crate::{AppError, Home, Setup};

/// Answers every question in the same way, and keeps what it was asked.
struct Answers {
    yes: bool,
    asked: RefCell<Vec<String>>,
}

impl Answers {
    fn new(yes: bool) -> Self {
        Self { yes, asked: RefCell::default() }
    }
}

impl Consent for Answers {
    type Error = AppError;

    fn present(&self, manifest: &Manifest, _: &Pin, _: bool) {
        self.asked.borrow_mut().push(format!("present {}", manifest.name));
    }

    fn accept_key(&self, changed: InstallError) -> Result<(), AppError> {
        Err(changed.into())
    }

    fn allows_drafts(&self) -> bool {
        false
    }

    fn hand_over(&self, left: &Leftovers<'_>) -> Result<bool, AppError> {
        let lines: Vec<String> = left.asked.iter().map(ToString::to_string).collect();
        self.asked.borrow_mut().push(format!("hand over {}", lines.join(", ")));
        Ok(self.yes)
    }

    fn adopt(&self, adoption: &Adoption) -> Result<bool, AppError> {
        self.asked.borrow_mut().push(format!("adopt {}", adoption.now));
        Ok(self.yes)
    }

    fn permissions(&self, offer: &Offer<'_>) -> Result<Option<Granted>, AppError> {
        self.asked.borrow_mut().push(format!("{:?}: {}", offer.purpose, offer.permissions.lines().join(", ")));
        Ok(self.yes.then(|| offer.on_yes.clone()))
    }

    fn purge(&self, _: &Path) -> Result<bool, AppError> {
        self.asked.borrow_mut().push("purge".to_owned());
        Ok(self.yes)
    }

    fn variables(&self, _: &[&RequiredVariable]) -> Result<Vec<(String, String)>, AppError> {
        Ok(Vec::new())
    }
}

/// A home with a plugin that was put there by hand.
fn home() -> (TempDir, Setup) {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("plugins/tools/mine");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("plugin.yaml"), "name: mine\nversion: 1.2.0\npermissions: {history: true, sql: true}\n")
        .unwrap();
    fs::write(folder.join("mine.wasm"), hermes_zoo::Shell::of("tools-plugin").build()).unwrap();
    fs::write(root.path().join("config.yaml"), "plugins:\n  enabled: [mine]\n").unwrap();
    let setup = Setup::read(Home::at(root.path()), Compiler::InProcess).unwrap();
    setup.own().unwrap();
    (root, setup)
}

fn request(permissions: PermissionsRequest) -> GrantRequest {
    GrantRequest { name: "mine".to_owned(), permissions, native: false }
}

#[tokio::test]
async fn a_plugin_gets_only_the_rights_that_were_presented_and_accepted() {
    let (root, setup) = home();
    let no = Answers::new(false);
    assert_eq!(
        grant(&request(PermissionsRequest::All), &setup, &no, &crate::Quiet).await.unwrap(),
        GrantReport::Declined
    );
    assert!(setup.installer().entry("mine").is_err(), "a declined grant changes nothing");

    let yes = Answers::new(true);
    let named = PermissionsRequest::Named(vec!["history".to_owned()]);
    let granted = grant(&request(named), &setup, &yes, &crate::Quiet).await.unwrap();
    assert!(matches!(&granted, GrantReport::Granted { version, .. } if version == "1.2.0"), "{granted:?}");
    assert_eq!(*yes.asked.borrow(), ["present mine", "hand over ", "Grant: read and search your conversations"]);
    let permissions = setup.installer().entry("mine").unwrap().pin.granted.unwrap();
    assert!(permissions.history && !permissions.sql);

    // A plugin that does not work is not granted.
    let component = root.path().join("plugins/tools/mine/mine.wasm");
    fs::write(&component, &fs::read(&component).unwrap()[..100]).unwrap();
    let before = setup.installer().entry("mine").unwrap();
    let broken = grant(&request(PermissionsRequest::All), &setup, &yes, &crate::Quiet).await.unwrap_err();
    assert!(matches!(broken, AppError::Install(InstallError::Broken { .. })), "{broken}");
    assert_eq!(setup.installer().entry("mine").unwrap(), before);

    let unknown = grant(&request(PermissionsRequest::Named(vec!["http".to_owned()])), &setup, &yes, &crate::Quiet)
        .await
        .unwrap_err();
    assert!(matches!(unknown, AppError::Install(InstallError::NotAsked { .. })), "{unknown}");
}

#[tokio::test]
async fn a_revocation_reports_the_rights_that_are_left() {
    let (_root, setup) = home();
    grant(&request(PermissionsRequest::All), &setup, &Answers::new(true), &crate::Quiet).await.unwrap();
    let left = revoke("mine", &["sql".to_owned()], &setup).unwrap();
    assert!(matches!(&left, RevokeReport::Left(left) if left.history && !left.sql), "{left:?}");
    assert_eq!(revoke("mine", &[], &setup).unwrap(), RevokeReport::MayNotRun);
}

#[tokio::test]
async fn a_removal_takes_the_configuration_along_and_asks_about_data() {
    let (root, setup) = home();
    grant(&request(PermissionsRequest::All), &setup, &Answers::new(true), &crate::Quiet).await.unwrap();
    let data = root.path().join("data/mine");
    fs::create_dir_all(&data).unwrap();
    fs::write(data.join("notes"), "kept").unwrap();
    let keeps = Answers::new(false);
    let report = remove("mine", &setup, &keeps).unwrap();
    assert!(report.was_installed && report.data == Some(data), "{report:?}");
    let taken_out: Vec<String> = report.taken_out.iter().map(ToString::to_string).collect();
    assert_eq!(taken_out, ["plugins.enabled: mine"]);
    assert_eq!(*keeps.asked.borrow(), ["purge"]);
    assert!(!root.path().join("plugins/tools/mine").exists());
    assert!(!fs::read_to_string(root.path().join("config.yaml")).unwrap().contains("mine"));
    let report = remove("mine", &setup, &Answers::new(true)).unwrap();
    assert_eq!(report, RemovalReport::default());
    assert!(matches!(remove("mine", &setup, &keeps), Err(AppError::Install(InstallError::Unknown { .. }))));
}

#[tokio::test]
async fn a_plugin_without_a_source_cannot_be_updated() {
    let (_root, setup) = home();
    grant(&request(PermissionsRequest::All), &setup, &Answers::new(true), &crate::Quiet).await.unwrap();
    assert_eq!(installed_names(None, &setup).unwrap(), ["mine"]);
    let error = prepare_update("mine", false, &setup, &crate::Quiet).await.err().unwrap();
    assert!(matches!(error, AppError::NoSource { .. }), "{error}");
}
