//! Minisign signatures of plugins, and the key that is pinned by the first installation.
//!
//! A signature counts only over the statement of the whole plugin ([`crate::statement`]), so it covers what the user reads in
//! the manifest. Signatures of single files or of an archive, as before, do not: they can only make a plugin invalid.

use std::fs;
use std::path::Path;

use hermes_diagnostic::Action;
use hermes_plugin_host::Manifest;
use minisign_verify::{PublicKey, Signature};

use crate::error::{At, InstallError, Reason};
use crate::project::SIGNATURE;
use crate::project::{self, KEY, PLUGIN_SIGNATURE};
use crate::statement::{self, File, STATEMENT, STATEMENT_SIGNATURE};

/// What to check.
pub(crate) struct Evidence<'a> {
    pub(crate) manifest: &'a Manifest,
    /// The files of the plugin, exactly as they will be installed.
    pub(crate) files: &'a [File],
    /// The name of the component, which `plugin.minisig` may belong to.
    pub(crate) component: Option<&'a str>,
    /// The archive that contained the plugin, if a signature is beside the archive.
    pub(crate) archive: Option<&'a Path>,
    /// The key on the command line.
    pub(crate) given: Option<&'a str>,
    /// The key of the first installation.
    pub(crate) pinned: Option<&'a str>,
    /// Whether exactly these files are installed already, so that nothing changes.
    pub(crate) unchanged: bool,
}

fn refused(why: impl Into<String>, fix: impl Into<hermes_diagnostic::Fix>) -> InstallError {
    InstallError::Signature(Reason::new(why, fix))
}

/// The key of the signature. None for an unsigned plugin.
///
/// # Errors
///
/// If a signature is missing where a key is pinned or given, or if any signature file does not belong to exactly these
/// files.
pub(crate) fn check(evidence: &Evidence<'_>) -> Result<Option<String>, InstallError> {
    let others = single_signatures(evidence)?;
    let signature = match (content(evidence, STATEMENT), content(evidence, STATEMENT_SIGNATURE)) {
        (Some(statement), Some(signature)) => Some((statement, signature)),
        (Some(_), None) => return Err(half(STATEMENT, STATEMENT_SIGNATURE)),
        (None, Some(_)) => return Err(half(STATEMENT_SIGNATURE, STATEMENT)),
        (None, None) => None,
    };
    let named = evidence.manifest.publisher_key.as_deref();
    match (&signature, others.first()) {
        (None, None) if evidence.pinned.is_some() => {
            return Err(InstallError::Key {
                name: evidence.manifest.name.clone(),
                pinned: evidence.pinned.unwrap_or_default().to_owned(),
                now: None,
            });
        }
        (None, None) if named.or(evidence.given).is_some() => {
            let why = format!("a publisher's key is given, but the signature {STATEMENT_SIGNATURE} is missing");
            return Err(refused(why, "ask the publisher to sign the plugin, or leave the key out"));
        }
        (None, None) => return Ok(None),
        (None, Some(single)) if !evidence.unchanged => {
            let why = format!(
                "{} signs {}, but not the whole plugin with its plugin.yaml, so it does not cover what you would agree to",
                single.name, single.of
            );
            return Err(refused(why, "ask the publisher to sign the plugin with `hermes plugins sign`"));
        }
        (None, Some(_)) | (Some(_), _) => {}
    }
    let key = key(evidence)?
        .ok_or_else(|| refused("the plugin is signed, but its public key is not known", Action::StatePublisherKey))?;
    let public = PublicKey::from_base64(&key).map_err(|_| {
        let fix = "give the line of the public key file that begins with RW";
        refused(format!("`{key}` is not a minisign public key"), fix)
    })?;
    if let Some((statement, signature)) = signature {
        verify(&public, &key, STATEMENT, statement, signature)?;
        let found = statement::of(evidence.manifest, evidence.files).map_err(InstallError::Signature)?;
        if let Some(reason) = statement::mismatch(statement, &found) {
            return Err(InstallError::Signature(reason));
        }
    }
    for single in &others {
        verify(&public, &key, &single.of, &single.content, &single.signature)?;
    }
    Ok(Some(key))
}

fn verify(public: &PublicKey, key: &str, of: &str, content: &[u8], signature: &[u8]) -> Result<(), InstallError> {
    let again = "do not trust this copy; get the plugin from its publisher again";
    let text = String::from_utf8_lossy(signature);
    let signature =
        Signature::decode(&text).map_err(|error| refused(format!("that of {of} is damaged: {error}"), again))?;
    // Signatures in minisign's old format, which are not over a digest, are refused.
    public
        .verify(content, &signature, false)
        .map_err(|error| refused(format!("that of {of} does not match its content and the key {key} ({error})"), again))
}

fn half(there: &str, missing: &str) -> InstallError {
    let fix = format!("ask the publisher for {missing}, which `hermes plugins sign` writes");
    refused(format!("there is {there}, but {missing} is missing"), fix)
}

fn content<'a>(evidence: &Evidence<'a>, name: &str) -> Option<&'a [u8]> {
    evidence.files.iter().find(|(own, _)| own == name).map(|(_, bytes)| bytes.as_slice())
}

/// A signature of one file or of an archive.
struct Single<'a> {
    /// The name of the signature file.
    name: String,
    /// What it signs.
    of: String,
    content: std::borrow::Cow<'a, [u8]>,
    signature: std::borrow::Cow<'a, [u8]>,
}

/// The signatures of single files, and that of the archive.
fn single_signatures<'a>(evidence: &Evidence<'a>) -> Result<Vec<Single<'a>>, InstallError> {
    let mut found = Vec::new();
    for (name, signature) in evidence.files {
        let Some(of) = name.strip_suffix(SIGNATURE).filter(|_| name != STATEMENT_SIGNATURE) else { continue };
        let of = if name == PLUGIN_SIGNATURE { evidence.component.unwrap_or(of) } else { of };
        let content = content(evidence, of).ok_or_else(|| {
            refused(format!("{name} signs nothing: there is no {of}"), "ask the publisher for a complete plugin")
        })?;
        found.push(Single {
            name: name.clone(),
            of: of.to_owned(),
            content: content.into(),
            signature: signature.into(),
        });
    }
    if let Some(archive) = evidence.archive {
        let signature = project::with_ending(archive, SIGNATURE);
        found.push(Single {
            name: "the signature beside the archive".to_owned(),
            of: "the archive".to_owned(),
            content: fs::read(archive).at(archive)?.into(),
            signature: fs::read(&signature).at(&signature)?.into(),
        });
    }
    Ok(found)
}

/// The user's key goes before the plugin's own; the pinned key is used if neither names one.
fn key(evidence: &Evidence<'_>) -> Result<Option<String>, InstallError> {
    if let Some(key) = evidence.given {
        return Ok(Some(key.trim().to_owned()));
    }
    Ok(own_key(evidence.manifest, evidence.files)?.or_else(|| evidence.pinned.map(str::to_owned)))
}

/// The key that a plugin names, in its manifest or in a file beside it.
pub(crate) fn own_key(manifest: &Manifest, files: &[File]) -> Result<Option<String>, InstallError> {
    if let Some(key) = &manifest.publisher_key {
        return Ok(Some(key.trim().to_owned()));
    }
    let Some((_, text)) = files.iter().find(|(name, _)| name == KEY) else { return Ok(None) };
    let text = String::from_utf8_lossy(text);
    // The second line of a public key file of `minisign -G`.
    let key = text.lines().map(str::trim).find(|line| line.starts_with("RW"));
    key.map(|key| Some(key.to_owned())).ok_or_else(|| {
        InstallError::Signature(format!("{KEY} is not a minisign public key: no line begins with RW").into())
    })
}

#[cfg(test)]
#[path = "signature/attack.rs"]
mod attack;
