//! Which files usually hold secrets, by their names: what is copied and shown to models leaves them out.

use std::ffi::OsStr;
use std::path::Path;

/// Folders in which programs keep keys.
const FOLDERS: [&str; 7] = [".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store"];

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
    let is_ssh = SSH.iter().any(|key| name.starts_with(key)) && !name.ends_with(".pub");
    NAMES.contains(&name.as_str())
        || STEMS.contains(&stem) && DATA.contains(&kind)
        || is_ssh && !name.contains(".rs")
        || ENDS.iter().any(|end| name.ends_with(end))
}

/// Whether a file below a folder usually holds secrets, by its name or by a folder on the way.
pub fn is_secret(inside: &Path) -> bool {
    let mut names = inside.iter().map(|name| name.to_string_lossy().to_ascii_lowercase());
    inside.file_name().is_some_and(holds_secrets) || names.any(|name| FOLDERS.contains(&name.as_str()))
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
            "identity.md",
            "secret",
        ] {
            assert!(!holds_secrets(name.as_ref()), "{name}");
        }
        for (path, expected) in [
            (".ssh/notes.md", true),
            ("home/.SSH/config.txt", true),
            (".aws/x.md", true),
            ("a/b/.env", true),
            (".github/copilot-instructions.md", false),
            ("ssh/notes.md", false),
            ("docs/secrets.md", false),
        ] {
            assert_eq!(is_secret(Path::new(path)), expected, "{path}");
        }
    }
}
