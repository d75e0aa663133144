//! Packing, signing and publishing a built plugin.

use std::path::Path;

use hermes_diagnostic::Diagnostic;
use hermes_install::{InstallError, Source};

pub use hermes_install::{Image, Login, Package, Push, Signed, SigningKey, Tagged};

/// Packs the project in a folder. Builds nothing.
///
/// # Errors
///
/// When the project has no build, or one that is older than its sources, or a signature that does not belong to these files.
pub fn pack(folder: &Path) -> Result<Package, Diagnostic> {
    Ok(hermes_install::pack(folder)?)
}

/// Makes the statement of the plugin in a folder, and signs it if there is a key. Changes nothing.
///
/// # Errors
///
/// When the folder has no current build of a plugin, or the plugin names the public key of another secret key.
pub fn sign(folder: &Path, key: Option<&SigningKey>) -> Result<Signed, Diagnostic> {
    Ok(hermes_install::sign(folder, key)?)
}

/// Why a key was not read.
enum Unread<E> {
    Key(InstallError),
    Password(E),
}

impl<E> From<InstallError> for Unread<E> {
    fn from(error: InstallError) -> Self {
        Self::Key(error)
    }
}

/// Reads the text of a key file of `minisign -G`. `password` is called only for a key that has one; decrypting takes about a second.
///
/// # Errors
///
/// When the text is not a key, the password is wrong, or `password` fails.
pub fn read_key<E: From<Diagnostic>>(
    text: &str,
    password: impl FnOnce() -> Result<String, E>,
) -> Result<SigningKey, E> {
    SigningKey::read(text, || password().map_err(Unread::Password)).map_err(|unread| match unread {
        Unread::Key(error) => Diagnostic::from(error).into(),
        Unread::Password(error) => error,
    })
}

/// The image of a text such as `oci://registry.example/name`, with the plugin's version if the text names no tag.
///
/// # Errors
///
/// When the text names no image.
pub fn image(text: &str, package: &Package) -> Result<Image, Diagnostic> {
    if !text.starts_with("oci://") {
        return Err(not_an_image(text));
    }
    let version = package.about.iter().find(|(key, _)| *key == "version").map_or("latest", |(_, text)| text);
    let name = text.rsplit('/').next().unwrap_or_default();
    // A tag has no `+`.
    let text = match name.contains([':', '@']) {
        true => text.to_owned(),
        false => format!("{text}:{}", version.replace('+', "_")),
    };
    match Source::parse(&text, Path::new("."))? {
        Source::Oci(image) => Ok(image),
        _ => Err(not_an_image(&text)),
    }
}

fn not_an_image(text: &str) -> Diagnostic {
    let reason = "a plugin is pushed to an image, as in oci://registry.example/name:1.0";
    InstallError::Source { text: text.to_owned(), reason: reason.into() }.into()
}

/// The login that `docker login` or `podman login` stored for the registry of an image.
pub fn stored_login(image: &Image) -> Option<Login> {
    Login::stored(&image.registry, &|name| std::env::var_os(name), std::env::home_dir().as_deref())
}

/// Makes an image and asks its registry for what the tag names. Nothing is written.
///
/// # Errors
///
/// When the registry cannot be reached, or refuses the login.
pub async fn prepare_push<'a>(
    package: &'a Package,
    image: &'a Image,
    insecure: bool,
    login: Option<&'a Login>,
) -> Result<Push<'a>, Diagnostic> {
    Ok(Push::prepare(package, image, insecure, login).await?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_image_without_a_tag_gets_the_version() {
        let package = Package {
            file_name: String::new(),
            archive: Vec::new(),
            sha256: String::new(),
            signer: None,
            about: vec![("title", "mine".to_owned()), ("version", "1.2.0+b7".to_owned())],
            files: Vec::new(),
        };
        for (text, expected) in [
            ("oci://localhost:5000/you/mine", "oci://localhost:5000/you/mine:1.2.0_b7"),
            ("oci://ghcr.io/you/mine:latest", "oci://ghcr.io/you/mine:latest"),
        ] {
            assert_eq!(image(text, &package).unwrap().to_string(), expected);
        }
        for wrong in ["ghcr.io/you/mine", "./mine", "oci://ghcr.io"] {
            assert!(image(wrong, &package).is_err(), "{wrong}");
        }
    }
}
