//! Which files usually hold secrets, by their names: what is copied and shown to models leaves them out.

use std::ffi::OsStr;
use std::path::Path;

/// Folders of keys.
const KEYS: [&str; 3] = [".ssh", ".gnupg", ".password-store"];
/// Folders in which programs keep keys in the user's home, and texts about themselves in projects.
const SETTINGS: [&str; 4] = [".aws", ".azure", ".kube", ".docker"];
/// The ends of texts for people and agents.
const TEXTS: [&str; 5] = ["md", "mdc", "markdown", "txt", "rst"];

/// Whether files of this name usually hold secrets.
pub fn holds_secrets(name: &OsStr) -> bool {
    const NAMES: &[&str] = &[
        ".env",
        ".netrc",
        "_netrc",
        ".pgpass",
        ".my.cnf",
        ".git-credentials",
        ".pypirc",
        ".npmrc",
        ".htpasswd",
        ".vault-token",
        "credentials",
        "secrets",
        ".secrets",
    ];
    const STEMS: &[&str] = &["credential", "credentials", "secret", "secrets"];
    const DATA: &[&str] = &["json", "yaml", "yml", "toml", "ini", "env", "properties", "cfg", "conf"];
    const SSH: &[&str] = &["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"];
    const KEPT: &[&str] = &[".bak", ".old", ".orig"];
    const ENDS: &[&str] = &[".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk"];
    const EXAMPLES: &[&str] = &["example", "sample", "template", "dist", "defaults"];
    let name = name.to_string_lossy().to_ascii_lowercase();
    if let Some(kind) = name.strip_prefix(".env.") {
        return !EXAMPLES.contains(&kind);
    }
    // Also `secrets.prod.yaml` and `.secrets`, but not the code in `secrets.rs`.
    let (stem, kind) =
        name.strip_prefix('.').unwrap_or(&name).split_once('.').unwrap_or((name.trim_start_matches('.'), ""));
    let kind = kind.rsplit_once('.').map_or(kind, |(_, last)| last);
    // Not the code in `id_rsa_test.go`.
    let key = KEPT.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    let is_ssh = SSH.contains(&key.strip_suffix("_sk").unwrap_or(key));
    NAMES.contains(&name.as_str())
        || STEMS.contains(&stem) && DATA.contains(&kind)
        || is_ssh
        || ENDS.iter().any(|end| name.ends_with(end))
}

/// Whether a file below a folder usually holds secrets, by its name or by a folder on the way. The folder is given by its real path.
pub fn is_secret(root: &Path, inside: &Path) -> bool {
    let home = std::env::home_dir().and_then(|home| home.canonicalize().ok());
    is_secret_of(home.as_deref(), root, inside)
}

fn is_secret_of(home: Option<&Path>, root: &Path, inside: &Path) -> bool {
    let is_text = inside.extension().is_some_and(|end| TEXTS.iter().any(|text| end.eq_ignore_ascii_case(text)));
    let is_in_keys = inside.ancestors().any(|folder| {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let is_of_home = || home.is_some_and(|home| root.join(folder).parent() == Some(home));
        KEYS.contains(&name.as_str()) || SETTINGS.contains(&name.as_str()) && (!is_text || is_of_home())
    });
    is_in_keys || inside.file_name().is_some_and(holds_secrets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_name() {
        for name in [
            ".env",
            ".ENV",
            ".env.production",
            "server.pem",
            "id_ed25519",
            "id_rsa",
            "id_rsa.bak",
            "id_ecdsa_sk",
            "id_ed25519_sk.old",
            "ID_DSA.orig",
            ".netrc",
            "secrets.yaml",
            "Secrets.YML",
            "secrets.prod.yaml",
            "secret.json",
            ".secrets",
            "credentials",
            "credentials.json",
        ] {
            assert!(holds_secrets(name.as_ref()), "{name}");
        }
        for name in [
            ".env.example",
            "env",
            "keys.rs",
            "monkey",
            "main.rs",
            ".envrc",
            "secrets.rs",
            "secrets.md",
            "credentials.py",
            "secretary.yaml",
            "id_rsa.pub",
            "id_ed25519_sk.pub",
            "id_rsa_test.go",
            "id_rsa.rs",
            "id_ecdsa.py",
            "id_ed25519_utils.ts",
            "id_rsa_sk_notes.md",
            "identity.md",
            "secret",
        ] {
            assert!(!holds_secrets(name.as_ref()), "{name}");
        }
        for (path, expected) in [
            (".ssh/notes.md", true),
            ("home/.SSH/config.txt", true),
            (".aws/x.md", false),
            (".kube/config", true),
            ("a/.Docker/config.json", true),
            (".docker/AGENTS.md", false),
            ("user/.docker/AGENTS.md", true),
            ("user/a/.docker/AGENTS.md", false),
            ("user/.docker.md", false),
            ("a/b/.env", true),
            (".github/copilot-instructions.md", false),
            ("ssh/notes.md", false),
            ("docs/secrets.md", false),
        ] {
            let (home, root) = (Path::new("/homes/user"), Path::new("/homes"));
            assert_eq!(is_secret_of(Some(home), root, Path::new(path)), expected, "{path}");
        }
    }
}
