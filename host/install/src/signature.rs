//! Minisign signatures of plugins, and the key that is pinned by the first installation.

use std::fs;
use std::path::{Path, PathBuf};

use hermes_diagnostic::Action;
use minisign_verify::{PublicKey, Signature};

use crate::error::{At, InstallError, Reason};
use crate::fetch::SIGNATURE;
use crate::project::{self, KEY};

/// What to check.
pub(crate) struct Evidence<'a> {
    /// The staged folder.
    pub(crate) folder: &'a Path,
    /// The names of the files that contain code.
    pub(crate) code: &'a [&'a str],
    /// The archive that contained it, if a signature is beside the archive.
    pub(crate) archive: Option<&'a Path>,
    /// The key in the manifest.
    pub(crate) named: Option<&'a str>,
    /// The key on the command line.
    pub(crate) given: Option<&'a str>,
    /// The key of the first installation.
    pub(crate) pinned: Option<&'a str>,
}

/// The key of the signature. None for an unsigned plugin.
pub(crate) fn check(evidence: &Evidence<'_>) -> Result<Option<String>, InstallError> {
    let refused = |reason: Reason| InstallError::Signature(reason);
    let own: Vec<(PathBuf, PathBuf)> = evidence
        .code
        .iter()
        .map(|name| evidence.folder.join(name))
        .map(|file| (file.clone(), project::with_ending(&file, SIGNATURE)))
        .collect();
    let signed = match evidence.archive {
        // Check every file with code: an unsigned one would run under the name of the signer.
        _ if own.iter().any(|(_, signature)| signature.is_file()) => own,
        Some(archive) => vec![(archive.to_owned(), project::with_ending(archive, SIGNATURE))],
        None => {
            return match evidence.named.or(evidence.given) {
                Some(_) => {
                    let missing: Vec<String> = evidence.code.iter().map(|name| format!("{name}{SIGNATURE}")).collect();
                    let missing = missing.join(", ");
                    Err(refused(Reason::new(
                        format!("a publisher's key is given, but the signature {missing} is missing"),
                        format!("ask the publisher for {missing} and put it beside the plugin, or leave the key out"),
                    )))
                }
                None => Ok(None),
            };
        }
    };
    let key = key(evidence)?.ok_or_else(|| {
        refused(Reason::new("the plugin is signed, but its public key is not known", Action::StatePublisherKey))
    })?;
    let public = PublicKey::from_base64(&key).map_err(|_| {
        let fix = "give the line of the public key file that begins with RW";
        refused(Reason::new(format!("`{key}` is not a minisign public key"), fix))
    })?;
    for (file, signature) in signed {
        if !signature.is_file() {
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let why = format!("`{name}` is not signed, but other files are");
            return Err(refused(Reason::new(why, "ask the publisher to sign every file with code")));
        }
        let text = fs::read_to_string(&signature).at(&signature)?;
        let signature = Signature::decode(&text).map_err(|error| refused(format!("it is damaged: {error}").into()))?;
        let bytes = fs::read(&file).at(&file)?;
        public.verify(&bytes, &signature, false).map_err(|error| {
            let why = format!("it does not match the content and the key {key} ({error})");
            refused(Reason::new(why, "do not trust this copy; get the plugin from its publisher again"))
        })?;
    }
    Ok(Some(key))
}

/// The user's key goes before the plugin's own; the pinned key is used if neither names one.
fn key(evidence: &Evidence<'_>) -> Result<Option<String>, InstallError> {
    if let Some(key) = evidence.given.or(evidence.named) {
        return Ok(Some(key.trim().to_owned()));
    }
    let file = evidence.folder.join(KEY);
    if file.is_file() {
        let text = fs::read_to_string(&file).at(&file)?;
        // The second line of a public key file of `minisign -G`.
        let key = text.lines().map(str::trim).find(|line| line.starts_with("RW"));
        return key.map(|key| Some(key.to_owned())).ok_or_else(|| {
            let why = format!("{KEY} is not a minisign public key: no line begins with RW");
            InstallError::Signature(why.into())
        });
    }
    Ok(evidence.pinned.map(str::to_owned))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_diagnostic::Diagnose as _;

    use super::*;

    fn signed(content: &[u8], pair: &minisign::KeyPair) -> String {
        minisign::sign(Some(&pair.pk), &pair.sk, content, None, None).unwrap().into_string()
    }

    fn look(folder: &Path, named: Option<&str>, pinned: Option<&str>) -> Result<Option<String>, String> {
        let evidence = Evidence { folder, code: &["a.wasm"], archive: None, named, given: None, pinned };
        check(&evidence).map_err(|error| error.sentence())
    }

    #[test]
    fn a_signature_must_match_the_content_and_the_key() {
        let (pair, other) = (
            minisign::KeyPair::generate_unencrypted_keypair().unwrap(),
            minisign::KeyPair::generate_unencrypted_keypair().unwrap(),
        );
        let (key, wrong) = (pair.pk.to_base64(), other.pk.to_base64());
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("a.wasm"), "code").unwrap();
        assert_eq!(look(folder.path(), None, None), Ok(None));
        assert!(look(folder.path(), Some(&key), None).unwrap_err().contains("a.wasm.minisig"));

        fs::write(at("a.wasm.minisig"), signed(b"code", &pair)).unwrap();
        assert_eq!(look(folder.path(), Some(&key), None), Ok(Some(key.clone())));
        assert_eq!(look(folder.path(), None, Some(&key)), Ok(Some(key.clone())));
        assert!(look(folder.path(), None, None).unwrap_err().contains("public key is not known"));
        assert!(look(folder.path(), Some(&wrong), None).unwrap_err().contains("does not match"));
        assert!(look(folder.path(), Some("RWnonsense"), None).unwrap_err().contains("not a minisign public key"));

        fs::write(at(KEY), pair.pk.to_box().unwrap().to_string()).unwrap();
        assert_eq!(look(folder.path(), None, None), Ok(Some(key)));
        fs::write(at("a.wasm"), "evil").unwrap();
        assert!(look(folder.path(), None, None).unwrap_err().contains("does not match"));
        fs::write(at("a.wasm.minisig"), "nonsense").unwrap();
        assert!(look(folder.path(), None, None).unwrap_err().contains("damaged"));
    }

    #[test]
    fn an_archive_is_signed_as_a_whole() {
        let pair = minisign::KeyPair::generate_unencrypted_keypair().unwrap();
        let key = pair.pk.to_base64();
        let folder = tempfile::tempdir().unwrap();
        let archive = folder.path().join("archive");
        fs::write(folder.path().join("a.wasm"), "code").unwrap();
        fs::write(&archive, "packed").unwrap();
        fs::write(project::with_ending(&archive, SIGNATURE), signed(b"packed", &pair)).unwrap();
        let look = || {
            let evidence = Evidence {
                folder: folder.path(),
                code: &["a.wasm"],
                archive: Some(&archive),
                named: Some(&key),
                given: None,
                pinned: None,
            };
            check(&evidence)
        };
        assert_eq!(look().unwrap(), Some(key.clone()));
        fs::write(&archive, "altered").unwrap();
        assert!(look().is_err());
    }
}
