//! Names and passwords of registries, from the files in which docker and podman keep them.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// Most bytes of a file with passwords.
const MOST_BYTES: u64 = 1 << 20;

/// A name and its password at a registry.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The name.
    pub name: String,
    /// The password, or a token in its place.
    pub password: String,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Login {
    /// The login that `docker login` or `podman login` stored for a registry. `var` reads a variable, `home` is the user's folder.
    /// Passwords that a program keeps (`credsStore`) are not found.
    pub fn stored(
        registry: &str,
        var: &dyn Fn(&str) -> Option<std::ffi::OsString>,
        home: Option<&Path>,
    ) -> Option<Self> {
        let below = |name: &str, path: &str| var(name).map(|folder| PathBuf::from(folder).join(path));
        let files = [
            var("REGISTRY_AUTH_FILE").map(PathBuf::from),
            below("DOCKER_CONFIG", "config.json"),
            home.map(|home| home.join(".docker/config.json")),
            below("XDG_RUNTIME_DIR", "containers/auth.json"),
            home.map(|home| home.join(".config/containers/auth.json")),
        ];
        files.into_iter().flatten().find_map(|file| {
            let text = hermes_private_files::read_text(&file, MOST_BYTES).ok()?;
            Self::in_text(&text, registry)
        })
    }

    fn in_text(text: &str, registry: &str) -> Option<Self> {
        let file: Value = serde_json::from_str(text).ok()?;
        let entry = file.get("auths")?.as_object()?.iter().find(|(key, _)| host_of(key) == registry)?.1;
        let bytes = STANDARD.decode(entry.get("auth")?.as_str()?).ok()?;
        let (name, password) = std::str::from_utf8(&bytes).ok()?.split_once(':')?;
        Some(Self { name: name.to_owned(), password: password.to_owned() })
    }

    /// The value of an `Authorization` header.
    pub(super) fn basic(&self) -> String {
        format!("Basic {}", STANDARD.encode(format!("{}:{}", self.name, self.password)))
    }
}

/// The registry that a key names: docker writes some with a scheme and a path.
fn host_of(key: &str) -> &str {
    let key = key.split_once("://").map_or(key, |(_, rest)| rest);
    key.split('/').next().unwrap_or(key)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_found_in_the_files_of_docker_and_podman() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join(".docker/config.json");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let auth = STANDARD.encode("me:se:cret");
        let text = serde_json::json!({ "auths": {
            "https://index.docker.io/v1/": { "auth": auth },
            "ghcr.io": { "auth": auth },
            "kept.example": {},
            "odd.example": { "auth": "%" },
        }, "credsStore": "desktop" });
        std::fs::write(&file, text.to_string()).unwrap();
        let found = |registry: &str| Login::stored(registry, &|_| None, Some(home.path()));
        for registry in ["ghcr.io", "index.docker.io"] {
            let Login { name, password } = found(registry).unwrap();
            assert_eq!((name.as_str(), password.as_str()), ("me", "se:cret"), "{registry}");
        }
        for registry in ["kept.example", "odd.example", "elsewhere.example", "ghcr.io:443"] {
            assert_eq!(found(registry), None, "{registry}");
        }
        let named = |name: &str| (name == "REGISTRY_AUTH_FILE").then(|| file.clone().into_os_string());
        assert!(Login::stored("ghcr.io", &named, None).is_some());
        assert!(!format!("{:?}", found("ghcr.io").unwrap()).contains("cret"));
    }
}
