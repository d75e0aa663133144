//! Signs the statement of a plugin with a minisign key.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hermes_plugin_host::artifact::Place;
use minisign::{PublicKey, SecretKey, SecretKeyBox};

use crate::error::{InstallError, Reason};
use crate::pack::up_to_date;
use crate::project::{KEY, Project};
use crate::signature::own_key;
use crate::statement::{self, STATEMENT, STATEMENT_SIGNATURE};

/// A secret key of minisign.
#[derive(Clone)]
pub struct SigningKey(SecretKey);

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SigningKey")
    }
}

impl SigningKey {
    /// Reads the text of a key file of `minisign -G`. A key with a password is decrypted, which takes about a second.
    /// `password` is called only for such a key.
    ///
    /// # Errors
    ///
    /// If the text is not a key, the password is wrong, or `password` fails.
    pub fn read<E: From<InstallError>>(text: &str, password: impl FnOnce() -> Result<String, E>) -> Result<Self, E> {
        let unusable = |error: minisign::PError| {
            let fix = "give the secret key file that `minisign -G` wrote";
            InstallError::SigningKey(Reason::new(format!("the key file cannot be read: {error}"), fix))
        };
        let key_box = || SecretKeyBox::from_string(text).map_err(unusable);
        if is_encrypted(text) {
            let key = key_box()?.into_secret_key(Some(password()?));
            return key.map(Self).map_err(|error| match error.kind() {
                minisign::ErrorKind::Verify => {
                    InstallError::SigningKey(Reason::new("the password is wrong", "try again")).into()
                }
                _ => unusable(error).into(),
            });
        }
        if let Some(bytes) = without_checksum(text) {
            return Ok(Self(SecretKey::from_bytes(&bytes).map_err(unusable)?));
        }
        Ok(Self(key_box()?.into_unencrypted_secret_key().map_err(unusable)?))
    }

    /// The line of the public key that a manifest names.
    pub fn public(&self) -> Result<String, InstallError> {
        Ok(self.public_key()?.to_base64())
    }

    fn public_key(&self) -> Result<PublicKey, InstallError> {
        PublicKey::from_secret_key(&self.0).map_err(failed)
    }
}

fn failed(error: minisign::PError) -> InstallError {
    InstallError::SigningKey(format!("the key cannot sign: {error}").into())
}

/// Whether a key file has a password. A key begins with the algorithms of the signature and of the key's encryption.
fn is_encrypted(text: &str) -> bool {
    // `EdSc` in base64: Ed25519 and scrypt. Without a password, zeros follow `Ed`.
    text.lines().nth(1).is_some_and(|line| line.trim().starts_with("RWRTY"))
}

/// The bytes of a key without a password and without a checksum, as `minisign -G -W` writes it. The library would miss the checksum.
fn without_checksum(text: &str) -> Option<Vec<u8>> {
    const KEY: usize = 158;
    const CHECKSUM: usize = 32;
    let bytes = STANDARD.decode(text.lines().nth(1)?.trim()).ok()?;
    (bytes.len() == KEY && bytes[KEY - CHECKSUM..].iter().all(|byte| *byte == 0)).then_some(bytes)
}

/// What a signing adds to the folder of a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signed {
    /// The plugin's name.
    pub name: String,
    /// Its version.
    pub version: semver::Version,
    /// The public key; none if only the statement was requested.
    pub key: Option<String>,
    /// The files that the statement covers.
    pub covered: Vec<String>,
    /// The files to write beside `plugin.yaml`, in this order.
    pub files: Vec<(&'static str, Vec<u8>)>,
}

/// Makes the statement of the plugin in a folder, and signs it if there is a key. Changes nothing.
///
/// # Errors
///
/// If the folder has no current build of a plugin, or the plugin names the public key of another secret key.
pub fn sign(folder: &Path, key: Option<&SigningKey>) -> Result<Signed, InstallError> {
    let from = folder.display().to_string();
    let project = Project::find(folder, Place::Local, &from, None)?;
    up_to_date(folder, &project)?;
    let mut files = project.files()?;
    files.retain(|(name, _)| statement::covers(name));
    let manifest = &project.manifest;
    let mut written = Vec::new();
    let public = key.map(SigningKey::public).transpose()?;
    match (own_key(manifest, &files)?, key) {
        (Some(named), Some(_)) if Some(&named) != public.as_ref() => {
            let why = format!("the plugin names the public key {named}, which does not belong to this secret key");
            let fix = format!("sign with the other key, or correct `publisher_key` in plugin.yaml or {KEY}");
            return Err(InstallError::SigningKey(Reason::new(why, fix)));
        }
        (None, Some(key)) => {
            let text = key.public_key()?.to_box().map_err(failed)?.into_string().into_bytes();
            files.push((KEY.to_owned(), text.clone()));
            written.push((KEY, text));
        }
        _ => {}
    }
    let text = statement::of(manifest, &files).map_err(|reason| InstallError::NoPlugin { from, reason })?;
    if let Some(key) = key {
        let comment = format!("hermes plugin {} {}", manifest.name, manifest.version);
        let signature =
            minisign::sign(None, &key.0, text.as_bytes(), Some(&comment), Some("signature of plugin.statement"))
                .map_err(failed)?;
        written.push((STATEMENT, text.into_bytes()));
        written.push((STATEMENT_SIGNATURE, signature.into_string().into_bytes()));
    } else {
        written.push((STATEMENT, text.into_bytes()));
    }
    let mut covered: Vec<String> = files.into_iter().map(|(name, _)| name).collect();
    covered.sort();
    Ok(Signed { name: manifest.name.clone(), version: manifest.version.clone(), key: public, covered, files: written })
}
