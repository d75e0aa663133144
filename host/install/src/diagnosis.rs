//! The code and the remedy of each failure of an installation.

use hermes_diagnostic::{Action, Diagnose, Fix, Parts};

use crate::InstallError;

hermes_diagnostic::codes! {
    /// The codes of installations.
    pub mod codes {
        SOURCE = "install.source", Category::Usage, "the source of a plugin cannot be understood";
        FETCH = "install.fetch", Category::Plugin, "a plugin cannot be fetched";
        PUSH = "install.push", Category::General, "a plugin cannot be pushed to a registry";
        INSECURE = "install.insecure", Category::Plugin, "the address is not encrypted";
        ARCHIVE = "install.archive", Category::Plugin, "an archive breaks a rule";
        NO_PLUGIN = "install.no-plugin", Category::Plugin, "the source contains no plugin";
        MANIFEST = "install.manifest", Category::Plugin, "a `plugin.yaml` is invalid";
        SIGNATURE = "install.signature", Category::Plugin, "a signature is missing or wrong";
        KEY = "install.key", Category::Plugin, "the publisher's key has changed";
        OLDER = "install.older", Category::Plugin, "a signed version is older than the installed one";
        SIGNING_KEY = "install.signing-key", Category::General, "a plugin cannot be signed with this key";
        BROKEN = "install.broken", Category::Plugin, "the plugin does not work here";
        NATIVE = "install.native", Category::Plugin, "the plugin is a native library, which runs outside the sandbox";
        DRAFTS = "install.drafts", Category::Plugin, "the plugin uses draft interfaces of the contract";
        NO_LIBRARY = "install.no-library", Category::Plugin, "the plugin has no native library for this machine";
        INSTALLED = "install.installed", Category::Plugin, "a plugin of this name is installed from another source";
        UNKNOWN = "install.unknown", Category::General, "no installed plugin has this name";
        BUNDLED = "install.bundled", Category::Plugin, "the plugin is part of Hermes";
        OCCUPIED = "install.occupied", Category::Plugin, "a folder of this name exists that `plugins.lock` does not list";
        NO_PREVIOUS = "install.no-previous", Category::Plugin, "no earlier version is stored";
        NOT_PINNED = "install.not-pinned", Category::Plugin, "the source differs from what `plugins.lock` pins";
        NOT_ASKED = "install.not-asked", Category::Usage, "the plugin does not request this permission";
        NO_SKILL = "skills.none", Category::Plugin, "the source contains no skill";
        SKILL_NAMED = "skills.named", Category::Usage, "the source does not have exactly one skill of this name";
        SKILL_BROKEN = "skills.broken", Category::Plugin, "a skill breaks a rule";
        SKILL_OCCUPIED = "skills.occupied", Category::Plugin, "a skill of this name exists that Hermes did not install";
        SKILL_EDITED = "skills.edited", Category::Plugin, "you changed the skill since it was installed";
        SKILL_INSTALLED = "skills.installed", Category::Plugin, "a skill of this name is installed from another source";
        SKILL_NAME = "skills.name", Category::Plugin, "a skill in another folder has this name";
        UNKNOWN_SKILL = "skills.unknown", Category::General, "no installed skill has this name";
        SKILLS_LOCK = "skills.lock", Category::General, "`skills.lock` is damaged";
        RACED = "install.raced", Category::Plugin, "another command changed the plugin or skill at the same time";
        FILE = "install.file", Category::General, "a file or folder cannot be used";
    }
}

impl Diagnose for InstallError {
    fn parts(&self) -> Parts {
        let (code, fix) = match self {
            Self::Source { reason, .. } => (
                codes::SOURCE,
                reason.fix_or(Fix::words(
                    "give a folder, a .wasm, a .tar.gz or .zip, an https address, owner/repo[@ref][#folder], a git \
                     address, or oci://host/name:tag",
                )),
            ),
            Self::Fetch { reason, .. } => {
                (codes::FETCH, reason.fix_or(Fix::words("check the address and the connection, and try again")))
            }
            Self::Push { reason, .. } => {
                (codes::PUSH, reason.fix_or(Fix::words("check the address and the connection, and try again")))
            }
            Self::Insecure(_) => (codes::INSECURE, Fix::words("use https").or(Action::AllowUnencrypted)),
            Self::WithoutTls(_) => (codes::INSECURE, Fix::words("use another address").or(Action::AllowUnencrypted)),
            Self::NotAnArchive { .. } => {
                (codes::ARCHIVE, Fix::words("give another file").or("download the archive again"))
            }
            Self::Archive(_) => (codes::ARCHIVE, Fix::words("ask its author for a corrected archive")),
            Self::NoPlugin { reason, .. } => {
                (codes::NO_PLUGIN, reason.fix_or(Fix::words("give the folder or file that contains the plugin")))
            }
            Self::Manifest { source, .. } => {
                let correct = "correct plugin.yaml, or ask its author for a corrected plugin";
                (codes::MANIFEST, Fix::words(source.why.fix().unwrap_or(correct)))
            }
            Self::Signature(reason) => {
                let usual = Fix::words("ask the publisher for a correct signature").or(Action::StatePublisherKey);
                (codes::SIGNATURE, reason.fix_or(usual))
            }
            Self::SigningKey(reason) => {
                (codes::SIGNING_KEY, reason.fix_or(Fix::words("check the file of the secret key")))
            }
            Self::Older { name, .. } => (
                codes::OLDER,
                Fix::words(format!("`hermes plugins rollback {name}` restores the version that was installed before"))
                    .or(Action::RemovePlugin { plugin: name.clone() }),
            ),
            Self::Key { name, now: None, .. } => (
                codes::KEY,
                Fix::words("ask the publisher for the signed plugin").or(Action::RemovePlugin { plugin: name.clone() }),
            ),
            Self::Key { .. } => {
                (codes::KEY, Fix::words("ask the publisher why the key changed").or(Action::AcceptPublisherKey))
            }
            Self::Broken { name, was_edited: true, .. } => (
                codes::BROKEN,
                Fix::from(Action::UpdatePlugin { plugin: name.clone() }).or("correct its files, and grant it again"),
            ),
            Self::Broken { .. } => (codes::BROKEN, Fix::words("install another version").or("ask its author")),
            Self::Native(_) => (codes::NATIVE, Fix::words("ask its author for a component").or(Action::ChooseNative)),
            Self::Drafts { .. } => {
                (codes::DRAFTS, Fix::words("ask its author for a release without them").or(Action::AllowDrafts))
            }
            Self::NoLibrary(_) => (codes::NO_LIBRARY, Action::ChooseComponent.into()),
            Self::Installed { name, .. } => (
                codes::INSTALLED,
                Fix::from(Action::ReplaceInstalled).or(Action::UpdatePlugin { plugin: name.clone() }),
            ),
            Self::Unusable { problem, .. } => (problem.code, problem.fix.clone()),
            Self::Unknown { .. } => (codes::UNKNOWN, Action::ListPlugins.into()),
            Self::Bundled(name) => (codes::BUNDLED, Action::DisablePlugin { plugin: name.clone() }.into()),
            Self::BundledName(name) => (
                codes::BUNDLED,
                Fix::words(format!("set `plugins.settings.{name}.source: installed` in config.yaml to replace it"))
                    .or("rename the plugin"),
            ),
            Self::Occupied { name, .. } => {
                (codes::OCCUPIED, Fix::words("move the folder away").or(Action::GrantPlugin { plugin: name.clone() }))
            }
            Self::NoPrevious(_) => (codes::NO_PREVIOUS, Fix::words("install the wanted version from its source")),
            Self::NotPinned { .. } => {
                (codes::NOT_PINNED, Fix::words("install the plugin from its source to accept the new content"))
            }
            Self::NotAsked { .. } => (codes::NOT_ASKED, Fix::words("leave it out to grant what the plugin requests")),
            Self::NoSkill { reason, .. } => {
                (codes::NO_SKILL, reason.fix_or(Fix::words("check the source, or ask its author")))
            }
            Self::NoSuchSkill { .. } => (codes::SKILL_NAMED, Fix::words("name one of its skills")),
            Self::SkillTwice { .. } => (codes::SKILL_NAMED, Fix::words("name the folder in place of the name")),
            Self::SkillBroken { .. } => {
                (codes::SKILL_BROKEN, Fix::words("correct the skill in its source, or ask its author"))
            }
            Self::SkillOccupied { .. } => (
                codes::SKILL_OCCUPIED,
                Fix::words("move or remove its folder by hand").or("to install over it, add --replace"),
            ),
            Self::SkillEdited { .. } => (
                codes::SKILL_EDITED,
                Fix::words("copy what you want to keep, and add --discard-edits (for `install`: --replace)"),
            ),
            Self::SkillInstalled { name, .. } => (
                codes::SKILL_INSTALLED,
                Fix::words("add --replace to replace it")
                    .or(format!("`hermes skills update {name}` updates the installed one")),
            ),
            Self::SkillName { .. } => (codes::SKILL_NAME, Fix::words("rename or remove one of the two")),
            Self::UnknownSkill { .. } => (codes::UNKNOWN_SKILL, Fix::words("`hermes skills list` lists all skills")),
            Self::SkillsLock { path, .. } => {
                (codes::SKILLS_LOCK, Fix::words(format!("move {} away, and install the skills again", path.display())))
            }
            Self::Raced(_) => (codes::RACED, Fix::words("check its state and try again")),
            Self::Journal { path, .. } => (codes::FILE, Fix::words(format!("remove {}", path.display()))),
            Self::Lock(error) => {
                let (code, _, fix) = error.parts();
                (code, fix)
            }
            Self::File { .. } => (codes::FILE, Fix::words("check its permissions and the free space")),
        };
        (code, "nothing was changed".into(), fix)
    }
}

#[cfg(test)]
mod tests {
    use hermes_diagnostic::Diagnostic;
    use hermes_plugin_host::{LockError, Manifest};

    use super::*;
    use crate::Reason;
    use crate::skills::SkillFlaw;

    #[test]
    fn every_code_has_an_error_with_cause_and_remedy() {
        let text = || "x".to_owned();
        let reason = || Reason::from("x");
        let problem = Diagnostic::new(codes::BROKEN, "the plugin cannot run", "it was changed", "install it again");
        let errors = [
            InstallError::Source { text: text(), reason: reason() },
            InstallError::Fetch { from: text(), reason: reason() },
            InstallError::Push { to: text(), reason: reason() },
            InstallError::Insecure(text()),
            InstallError::WithoutTls(text()),
            InstallError::Archive(text()),
            InstallError::NotAnArchive { from: text() },
            InstallError::NoPlugin { from: text(), reason: reason() },
            InstallError::Manifest { from: text(), source: Manifest::parse("name: [").expect_err("no YAML") },
            InstallError::Signature(reason()),
            InstallError::Key { name: text(), pinned: text(), now: None },
            InstallError::Key { name: text(), pinned: text(), now: Some(text()) },
            InstallError::Older { name: text(), installed: text(), found: text() },
            InstallError::SigningKey(reason()),
            InstallError::Broken { name: text(), version: text(), why: text(), was_edited: false },
            InstallError::Broken { name: text(), version: text(), why: text(), was_edited: true },
            InstallError::Native(text()),
            InstallError::Drafts { name: text(), version: text(), drafts: vec![text()] },
            InstallError::NoLibrary(text()),
            InstallError::Installed { name: text(), version: text(), source_text: text() },
            InstallError::Unusable { name: text(), problem: Box::new(problem) },
            InstallError::Unknown { name: text(), there: Vec::new() },
            InstallError::Bundled(text()),
            InstallError::BundledName(text()),
            InstallError::Occupied { folder: "/p".into(), name: text() },
            InstallError::NoPrevious(text()),
            InstallError::NotPinned { name: text(), from: text(), why: text() },
            InstallError::NotAsked { name: text(), permission: text(), asked: Vec::new() },
            InstallError::NoSkill { from: text(), reason: reason() },
            InstallError::NoSuchSkill { name: text(), from: text(), there: vec![text(); 20] },
            InstallError::SkillTwice { name: text(), from: text(), paths: vec![text()] },
            InstallError::SkillBroken { name: text(), flaw: SkillFlaw::Rule(hermes_skill_format::Flaw::NoDescription) },
            InstallError::SkillOccupied { name: text() },
            InstallError::SkillEdited { name: text(), edits: Vec::new() },
            InstallError::SkillInstalled { name: text(), source_text: text() },
            InstallError::SkillName { name: text(), folder: "/s".into() },
            InstallError::UnknownSkill { name: text(), there: Vec::new() },
            InstallError::SkillsLock { path: "/l".into(), why: text() },
            InstallError::Raced(text()),
            InstallError::Journal { path: "/j".into(), why: text() },
            InstallError::Lock(LockError::Damaged { path: "/l".into(), why: text() }),
            InstallError::File { path: "/p".into(), source: std::io::Error::other("refused") },
        ];
        let diagnostics: Vec<_> = errors.iter().map(Diagnose::diagnose).collect();
        assert_eq!(hermes_diagnostic::gaps(codes::ALL, &diagnostics), Vec::<String>::new());
    }
}
