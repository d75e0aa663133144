//! A plugin on the stage: what is new in it for the user, what it would be granted, and its first start.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hermes_plugin_host::rehearsal::{Shown, rehearse};
use hermes_plugin_host::{CodeFiles, Digest, Entry, LimitSet, Manifest, Permissions, Pin, code_in, skills_in};
use hermes_runtime::{CompileProgress, Limits, Loaded, Runtime, draft_interfaces, exported_interfaces};

use super::{Prepared, pinned_key};
use crate::error::{At, InstallError};
use crate::grants::reason;
use crate::transaction::Rewrite;

/// The draft interfaces that a component uses. None for one that does not fit this host, which is reported when it is loaded.
pub(crate) fn drafts_in(folder: &Path, manifest: &Manifest) -> Vec<String> {
    let Ok(CodeFiles { component: Some(file), .. }) = code_in(folder, manifest) else { return Vec::new() };
    let Ok(bytes) = fs::read(folder.join(file)) else { return Vec::new() };
    draft_interfaces(&bytes, manifest.later_versions()).unwrap_or_default()
}

/// Refuses draft interfaces that the user has not allowed, for the earlier version or now.
pub(crate) fn allow_drafts(pin: &Pin, before: Option<&Pin>, name: &str, allowed: bool) -> Result<(), InstallError> {
    let known = |draft: &String| before.is_some_and(|pin| pin.granted.is_some() && pin.drafts.contains(draft));
    let drafts: Vec<String> = pin.drafts.iter().filter(|draft| !known(draft)).cloned().collect();
    if allowed || drafts.is_empty() {
        return Ok(());
    }
    Err(InstallError::Drafts { name: name.to_owned(), version: pin.version.to_string(), drafts })
}

/// What a component exports; none if it cannot be read, or there is only a native library.
pub(crate) fn exports_in(folder: &Path, manifest: &Manifest) -> Option<Vec<String>> {
    let mut exports = match code_in(folder, manifest).ok()? {
        CodeFiles { component: Some(file), .. } => exported_interfaces(&fs::read(folder.join(file)).ok()?).ok()?,
        CodeFiles { native: Some(_), .. } => return None,
        _ => Vec::new(),
    };
    if !skills_in(folder).is_empty() && !exports.iter().any(|export| export == "skills") {
        exports.push("skills".to_owned());
        exports.sort();
    }
    Some(exports)
}

impl Prepared {
    /// The installed plugin, if it has the same source and its entry was written here. Nothing is inherited from another one.
    pub fn known(&self) -> Option<&Entry> {
        self.of_same_source().filter(|before| before.is_ours())
    }

    fn of_same_source(&self) -> Option<&Entry> {
        self.before.as_ref().filter(|before| before.pin.origin().has_same_source(&self.pin.origin()))
    }

    /// Whether it would replace a plugin from another source.
    pub fn replaces_another(&self) -> bool {
        self.before.is_some() && self.of_same_source().is_none()
    }

    /// Whether a lock pins it.
    pub fn is_pinned(&self) -> bool {
        self.is_pinned
    }

    /// Changes a file together with the installation.
    pub fn rewrite(&mut self, rewrite: Option<Rewrite>) {
        self.rewrite = rewrite;
    }

    /// Its folder until it is committed.
    pub fn folder(&self) -> PathBuf {
        self.stage.plugin()
    }

    /// Whether exactly this plugin is installed already, with unchanged files.
    pub fn is_installed(&self) -> bool {
        let same = |before: &Pin| {
            before.digest == self.pin.digest
                && before.source == self.pin.source
                && before.signer == self.pin.signer
                && before.native >= self.pin.native
                && !before.edited
        };
        self.asked_before.is_some() && self.known().is_some_and(|before| same(&before.pin))
    }

    /// Lets the plugin run as a native library, which the user trusts with everything.
    pub fn as_native(&mut self) -> Result<(), InstallError> {
        if self.code()?.native.is_none() {
            return Err(InstallError::NoLibrary(self.manifest.name.clone()));
        }
        self.pin.native = true;
        Ok(())
    }

    /// Refuses a plugin that can run only as a native library, if the user has not agreed to that.
    pub fn can_run(&self) -> Result<(), InstallError> {
        self.candidate().can_run()
    }

    /// Refuses draft interfaces of the contract, unless the user allows them, or allowed them for the installed version.
    pub fn allow_drafts(&self, allowed: bool) -> Result<(), InstallError> {
        allow_drafts(&self.pin, self.known().map(|before| &before.pin), &self.manifest.name, allowed)
    }

    /// Whether the installed version runs as a native library and this one does not.
    pub fn leaves_native(&self) -> bool {
        !self.pin.native && self.known().is_some_and(|before| before.pin.native)
    }

    fn code(&self) -> Result<CodeFiles, InstallError> {
        self.candidate().code()
    }

    /// The plugin on the stage, for its first start.
    pub fn candidate(&self) -> Candidate<'_> {
        Candidate { folder: self.folder(), from: self.source.to_string(), manifest: &self.manifest, pin: &self.pin }
    }

    /// Whether the installed files are gone.
    pub fn is_missing(&self) -> bool {
        self.before.is_some() && self.on_disk.is_none()
    }

    /// The digest of the installed files, if they are not those that were granted.
    pub fn altered(&self) -> Option<Digest> {
        self.on_disk.filter(|found| self.before.as_ref().is_some_and(|before| before.pin.digest != *found))
    }

    /// Permissions that the user was not asked about before. For a new plugin these are all.
    pub fn widening(&self) -> Permissions {
        let Some(granted) = self.granted_before() else { return self.manifest.permissions.clone() };
        let answered = self.asked_before.as_ref().map(|manifest| manifest.permissions.clone()).unwrap_or_default();
        // An address that the user declined stays declined, whatever the configuration says now.
        let declined = answered.declined_templates(granted);
        self.manifest
            .permissions
            .clone()
            .without_templates(&declined)
            .widening(&answered.without_templates(&declined).and(granted))
    }

    /// Replaces the requested permissions by those with the addresses of the user's configuration.
    pub fn resolve(&mut self, resolved: Permissions) {
        self.manifest.permissions = resolved;
    }

    /// Exports that the user did not see before. For a new plugin these are all.
    pub fn new_exports(&self) -> Vec<String> {
        let before: &[String] = if self.granted_before().is_some() { &self.exported_before } else { &[] };
        self.pin.exports.iter().flatten().filter(|export| !before.contains(export)).cloned().collect()
    }

    /// Raised limits that the user was not asked about before.
    pub fn wider_limits(&self) -> LimitSet {
        if self.granted_before().is_none() {
            return self.manifest.limits.clone();
        }
        let answered = self.asked_before.as_ref().map(|manifest| manifest.limits.clone()).unwrap_or_default();
        self.manifest.limits.widening(&self.limits_before()).widening(&answered)
    }

    /// The new grant: earlier permissions that the plugin still requests, and new ones if the user agreed.
    pub fn granted(&self, with_more: bool) -> (Permissions, LimitSet) {
        let mut granted =
            self.granted_before().map(|granted| self.manifest.permissions.within(granted)).unwrap_or_default();
        let mut limits = self.manifest.limits.within(&self.limits_before());
        if with_more {
            granted = granted.and(&self.widening());
            limits = self.wider_limits().iter().fold(limits, |limits, (limit, value)| limits.and(limit, value));
        }
        (granted, limits)
    }

    fn limits_before(&self) -> LimitSet {
        self.known().map(|before| before.pin.limits.clone()).unwrap_or_default()
    }

    fn granted_before(&self) -> Option<&Permissions> {
        self.known().and_then(|before| before.pin.granted.as_ref())
    }

    /// Refuses a key that differs from the pinned one.
    pub fn same_key(&self) -> Result<(), InstallError> {
        match self.of_same_source().and_then(pinned_key) {
            Some(pinned) if self.pin.signer.as_deref() != Some(pinned) => Err(InstallError::Key {
                name: self.manifest.name.clone(),
                pinned: pinned.to_owned(),
                now: self.pin.signer.clone(),
            }),
            _ => Ok(()),
        }
    }

    /// Refuses a signed version that is older than the installed one by the same key.
    pub fn not_older(&self) -> Result<(), InstallError> {
        let Some(before) = &self.before else { return Ok(()) };
        let same_key = self.pin.signer.is_some() && self.pin.signer == before.pin.signer;
        if !same_key || self.pin.version >= before.pin.version {
            return Ok(());
        }
        Err(InstallError::Older {
            name: self.manifest.name.clone(),
            installed: before.pin.version.to_string(),
            found: self.pin.version.to_string(),
        })
    }

    /// Refuses to replace a plugin from another source.
    pub fn same_source(&self) -> Result<(), InstallError> {
        match &self.before {
            Some(before) if self.replaces_another() => Err(InstallError::Installed {
                name: self.manifest.name.clone(),
                version: before.pin.version.to_string(),
                source_text: before.pin.source.clone(),
            }),
            _ => Ok(()),
        }
    }

    /// Marks the plugin as pinned by a lock. Refuses one that differs from the pinned one.
    pub fn pinned_by(&mut self, pin: &Pin) -> Result<(), InstallError> {
        if self.pin.digest == pin.digest {
            self.is_pinned = true;
            return Ok(());
        }
        Err(InstallError::NotPinned {
            name: self.manifest.name.clone(),
            from: self.source.to_string(),
            why: format!("the digest is {} instead of {}", self.pin.digest.short(), pin.digest.short()),
        })
    }
}

/// A plugin before it may run: on the stage, or in its folder before a grant.
#[derive(Debug, Clone)]
pub struct Candidate<'a> {
    pub(crate) folder: PathBuf,
    /// Where it comes from, for messages.
    pub(crate) from: String,
    /// Its manifest.
    pub manifest: &'a Manifest,
    /// Its entry in the lock, with nothing granted.
    pub pin: &'a Pin,
}

impl Candidate<'_> {
    fn code(&self) -> Result<CodeFiles, InstallError> {
        code_in(&self.folder, self.manifest)
            .map_err(|error| InstallError::NoPlugin { from: self.from.clone(), reason: reason(&error) })
    }

    /// Refuses a plugin that can run only as a native library, if the user has not agreed to that.
    pub fn can_run(&self) -> Result<(), InstallError> {
        let code = self.code()?;
        if self.pin.native || code.component.is_some() || code.is_empty() {
            return Ok(());
        }
        Err(InstallError::Native(self.manifest.name.clone()))
    }

    fn broken(&self, why: String) -> InstallError {
        let (name, version) = (self.manifest.name.clone(), self.manifest.version.to_string());
        InstallError::Broken { name, version, why, was_edited: self.pin.edited }
    }

    /// What a plugin without code offers: its skills. None for other plugins.
    pub fn only_skills(&self) -> Result<Option<Shown>, InstallError> {
        if !self.code()?.is_empty() {
            return Ok(None);
        }
        Ok(Some(Shown::of_skills(skills_in(&self.folder))))
    }

    /// Compiles the plugin if necessary; none of its code runs. A native library is opened, and runs.
    pub fn load(&self, runtime: &Runtime, progress: CompileProgress<'_>) -> Result<Arc<Loaded>, InstallError> {
        self.can_run()?;
        let CodeFiles { component, native } = self.code()?;
        let file = if self.pin.native { native } else { component };
        let path = self.folder.join(file.unwrap_or_default());
        let bytes = fs::read(&path).at(&path)?;
        let loaded = match self.pin.native {
            true => runtime.load_native(&bytes, self.manifest.later_versions()),
            false => runtime.load_watched(&bytes, self.manifest.later_versions(), progress),
        };
        let loaded = loaded.map_err(|error| self.broken(error.to_string()))?;
        let mut exports = loaded.exports().names();
        exports.extend((!skills_in(&self.folder).is_empty()).then_some("skills"));
        let claims = self.manifest.claims_beyond(&exports);
        if !claims.is_empty() {
            return Err(self.broken(format!(
                "plugin.yaml says that it provides {}, which the component does not export",
                claims.join(", ")
            )));
        }
        Ok(loaded)
    }

    /// Starts the plugin once with its section of the configuration, without permissions, and with the limits of a session:
    /// those that were granted, and then those that are configured. With the right to `sql` it has a temporary database.
    pub async fn rehearse(
        &self,
        loaded: Arc<Loaded>,
        granted: &Permissions,
        limits: [&LimitSet; 2],
        entry: &serde_json::Value,
    ) -> Result<Shown, InstallError> {
        let misfits = self.manifest.misfits(entry);
        let version = self.manifest.version.to_string();
        let [allowed, configured] = limits;
        let limits = Limits::of(loaded.exports().tier()).with(allowed).with(configured);
        let shown = rehearse(&self.manifest.name, &version, loaded, entry.to_string(), limits, granted.sql).await;
        let mut shown = shown.map_err(|error| self.broken(error.to_string()))?;
        if !misfits.is_empty() {
            shown.complaint = Some(misfits.join("; "));
        }
        Ok(shown)
    }
}
