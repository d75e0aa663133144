//! Sources of plugins, recognised by their text alone, without the network.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use hermes_plugin_host::divide_address;
use url::Url;

use crate::error::{InstallError, Reason};

/// A source to install from. `plugins.lock` keeps its text, which parses to the same source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A folder with a `plugin.yaml`, a Rust project that was built, or a folder with skills.
    Folder(PathBuf),
    /// A component file.
    Component(PathBuf),
    /// A `.tar.gz`, `.tgz` or `.zip` file, or a `.skill` file, which is one of the two.
    Archive(PathBuf),
    /// The address of a component or an archive.
    Url(Url),
    /// A git repository.
    Git(Repository),
    /// An image of an OCI registry.
    Oci(Image),
}

/// A git repository, a reference and a folder in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// The address as git takes it.
    pub url: String,
    /// A branch, a tag or a whole commit id. The default is the remote's default branch.
    pub reference: Option<String>,
    /// The folder of the plugin in the repository.
    pub subfolder: Option<String>,
}

/// An image of an OCI registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Host and port.
    pub registry: String,
    /// The repository's name in the registry.
    pub repository: String,
    /// A tag, or a digest `sha256:…`.
    pub reference: String,
}

/// Names of hosts that serve only repositories: an address with two parts there is a repository.
const FORGES: &[&str] = &["github.com", "gitlab.com", "codeberg.org", "bitbucket.org", "git.sr.ht"];

/// Most bytes of a source: a path can be this long.
const MOST_BYTES: usize = 4_096;

impl Source {
    /// Parses a source from a user or a lock. Paths are relative to `current`.
    pub fn parse(text: &str, current: &Path) -> Result<Self, InstallError> {
        parse(text.trim(), current).map_err(|reason| InstallError::Source { text: text.to_owned(), reason })
    }

    /// The source at what `plugins.lock` recorded of it, and not at what its reference leads to now. None if the record is
    /// neither a whole commit id nor a digest: a lock from elsewhere could name another branch, or another image.
    pub fn at(mut self, resolved: &str) -> Option<Self> {
        let is_hex = |text: &str, digits: &[usize]| {
            digits.contains(&text.len()) && text.chars().all(|c| c.is_ascii_digit() || matches!(c, 'a'..='f'))
        };
        match &mut self {
            Self::Git(repository) if is_hex(resolved, &[40, 64]) => repository.reference = Some(resolved.to_owned()),
            Self::Oci(image) if resolved.strip_prefix("sha256:").is_some_and(|digest| is_hex(digest, &[64])) => {
                image.reference = resolved.to_owned();
            }
            Self::Git(_) | Self::Oci(_) => return None,
            Self::Folder(_) | Self::Component(_) | Self::Archive(_) | Self::Url(_) => {}
        }
        Some(self)
    }

    /// Whether the source is on this machine.
    pub fn is_local(&self) -> bool {
        matches!(self, Self::Folder(_) | Self::Component(_) | Self::Archive(_))
    }
}

fn parse(text: &str, current: &Path) -> Result<Source, Reason> {
    if text.is_empty() {
        return Err("it is empty".into());
    }
    if text.len() > MOST_BYTES {
        return Err(format!("it is longer than {MOST_BYTES} bytes").into());
    }
    if text.chars().any(|character| character.is_control()) {
        return Err("it contains control characters".into());
    }
    if !text.starts_with(['.', '/', '~']) && text.chars().count() > LONGEST {
        return Err(format!("it has more than {LONGEST} characters").into());
    }
    if let Some(rest) = text.strip_prefix("oci://") {
        return image(rest).map(Source::Oci);
    }
    if let Some(rest) = text.strip_prefix("git+") {
        return repository(rest).map(Source::Git);
    }
    if let Some((scheme, _)) = text.split_once("://") {
        return address(scheme, text);
    }
    let path = current.join(expanded(text));
    let as_path = text.starts_with(['.', '/', '~']) || cfg!(windows) && text.contains([':', '\\']);
    if as_path || path.exists() {
        return local(&path);
    }
    if is_scp(text) {
        return repository(text).map(Source::Git);
    }
    if let Some(short) = shorthand(text) {
        return repository(&short).map(Source::Git);
    }
    Err("no such file or folder".into())
}

/// Most characters of an address. A user who is asked about it can read all of it.
const LONGEST: usize = 500;
/// Most characters of a user name in the address of a repository.
const LONGEST_USER: usize = 64;

fn address(scheme: &str, text: &str) -> Result<Source, Reason> {
    match scheme {
        "ssh" | "git" => return repository(text).map(Source::Git),
        "file" => {
            let (plain, _, _) = divide_address(text);
            let path = Url::parse(&plain).ok().and_then(|url| url.to_file_path().ok());
            return match path {
                Some(path) if is_file_of_a_plugin(&path) => local(&path),
                _ => repository(text).map(Source::Git),
            };
        }
        // Such a text and the address that it is read as would be taken for different kinds of sources.
        "https" | "http" if text.contains('\\') || text.contains(":///") => {
            return Err(Reason::new(
                "the host name is missing or contains a backslash",
                "write it like https://host/path",
            ));
        }
        "https" | "http" => {}
        other => return Err(format!("addresses with `{other}:` are not supported").into()),
    }
    let whole = Url::parse(text).map_err(|error| error.to_string())?;
    // The kind is read off the normal form, which is what plugins.lock keeps.
    let (plain, _, _) = divide_address(whole.as_str());
    let url = Url::parse(&plain).map_err(|error| error.to_string())?;
    let forge = url.host_str().is_some_and(|host| FORGES.contains(&host))
        && url.path_segments().is_some_and(|parts| parts.filter(|part| !part.is_empty()).count() == 2);
    if url.path().ends_with(".git") || (forge && !is_file_of_a_plugin(Path::new(url.path()))) {
        return repository(text).map(Source::Git);
    }
    if whole.fragment().is_some() {
        return Err("`#` is allowed for repositories only".into());
    }
    refuse_password(&whole)?;
    if !whole.username().is_empty() {
        // It is not used, and a long one would hide the host.
        return Err(Reason::new("the address contains a user name", "leave out what precedes the `@`"));
    }
    Ok(Source::Url(whole))
}

fn refuse_password(url: &Url) -> Result<(), Reason> {
    match url.password() {
        // plugins.lock would keep it, and people share that file.
        Some(_) => {
            let why = "the address contains a password, which plugins.lock would store";
            Err(Reason::new(why, "leave the password out, and use git's credential helper"))
        }
        None => Ok(()),
    }
}

fn expanded(text: &str) -> PathBuf {
    match (text.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => Path::new(&home).join(rest),
        _ => PathBuf::from(text),
    }
}

fn is_file_of_a_plugin(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    [".wasm", ".tar.gz", ".tgz", ".zip", ".skill"].iter().any(|ending| name.ends_with(ending))
}

fn local(path: &Path) -> Result<Source, Reason> {
    let path = std::fs::canonicalize(path).map_err(|error| {
        // Without `.` in the middle.
        let shown = path.components().collect::<PathBuf>();
        match error.kind() {
            io::ErrorKind::NotFound => Reason::new(format!("{} does not exist", shown.display()), "check the path"),
            _ => format!("{}: {error}", shown.display()).into(),
        }
    })?;
    if path.to_str().is_none() {
        return Err("its path is not UTF-8".into());
    }
    if path.is_dir() {
        return Ok(Source::Folder(path));
    }
    let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    match name.as_str() {
        "plugin.yaml" | "skill.md" => Ok(Source::Folder(path.parent().unwrap_or(&path).to_owned())),
        name if name.ends_with(".wasm") => Ok(Source::Component(path)),
        _ if is_file_of_a_plugin(&path) => Ok(Source::Archive(path)),
        _ => Err("it is not a .wasm, .tar.gz, .tgz or .zip file".into()),
    }
}

/// `git@host:owner/repo`, the form of ssh.
fn is_scp(text: &str) -> bool {
    text.split_once(':').is_some_and(|(host, path)| {
        host.split_once('@').is_some_and(|(user, host)| !user.is_empty() && !host.is_empty() && !host.contains('/'))
            && !path.is_empty()
    })
}

/// `owner/repo` is a repository of github.com.
fn shorthand(text: &str) -> Option<String> {
    let end = text.find(['@', '#']).unwrap_or(text.len());
    let (owner, repo) = text[..end].split_once('/')?;
    let plain = |part: &str| {
        !part.is_empty()
            && !part.starts_with(['-', '.'])
            && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
    };
    (plain(owner) && plain(repo))
        .then(|| format!("https://github.com/{owner}/{}.git{}", repo.trim_end_matches(".git"), &text[end..]))
}

fn repository(text: &str) -> Result<Repository, Reason> {
    let (url, reference, subfolder) = divide_address(text);
    if url.starts_with('-') {
        return Err("an address must not begin with a hyphen".into());
    }
    match url.split_once("://") {
        Some(("https" | "http" | "ssh" | "file", _)) => {
            let parsed = Url::parse(&url).map_err(|error| error.to_string())?;
            refuse_password(&parsed)?;
            // Escapes could make it look like a host and a path.
            if parsed.username().len() > LONGEST_USER || parsed.username().contains('%') {
                return Err("the user name of an address must be short and without `%`".into());
            }
            // Git passes the host to ssh as an argument.
            if parsed.host_str().is_some_and(|host| host.starts_with('-')) || parsed.username().starts_with('-') {
                return Err("a host name must not begin with a hyphen".into());
            }
        }
        Some((scheme, _)) => {
            return Err(format!("repositories are fetched over https, ssh or file, not `{scheme}`").into());
        }
        None if is_scp(&url) => {}
        None => return Err("it is not the address of a repository".into()),
    }
    if let Some(reference) = &reference {
        let odd = |c: char| c.is_whitespace() || matches!(c, '~' | '^' | ':' | '?' | '*' | '[' | '\\');
        if reference.is_empty()
            || reference.starts_with(['-', '/', '+'])
            || reference.contains("..")
            || reference.contains(odd)
        {
            return Err(format!("`{reference}` is not a branch, tag or commit").into());
        }
    }
    if let Some(folder) = &subfolder
        && !is_folder_within(folder)
    {
        return Err(format!("`{folder}` is not a folder within the repository").into());
    }
    Ok(Repository { url, reference, subfolder: subfolder.map(|folder| folder.trim_end_matches('/').to_owned()) })
}

fn is_folder_within(folder: &str) -> bool {
    let trimmed = folder.trim_end_matches('/');
    !trimmed.is_empty()
        && trimmed.split('/').all(|part| {
            // A blank at the end would be lost when the address is read again.
            !matches!(part, "" | "." | "..") && part.trim() == part && !part.contains(['\\', ':', '@', '#'])
        })
}

fn image(text: &str) -> Result<Image, Reason> {
    let (registry, rest) = text.split_once('/').ok_or("the image name is missing")?;
    let (repository, reference) = match rest.split_once('@') {
        Some((repository, digest)) => (repository, digest),
        None => match rest.rsplit_once(':') {
            Some((repository, tag)) => (repository, tag),
            None => (rest, "latest"),
        },
    };
    let host = Url::parse(&format!("https://{registry}/")).ok().filter(|url| {
        url.host_str().is_some() && url.username().is_empty() && url.password().is_none() && url.path() == "/"
    });
    if host.is_none() || registry.contains(['?', '#']) {
        return Err(format!("`{registry}` is not a host name").into());
    }
    let part = |part: &str| {
        !part.is_empty()
            && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '-'))
            && part.starts_with(|c: char| c.is_ascii_alphanumeric())
            && part.ends_with(|c: char| c.is_ascii_alphanumeric())
    };
    if repository.len() > 255 || !repository.split('/').all(part) {
        return Err(format!("`{repository}` is not an image name").into());
    }
    let tag = |tag: &str| {
        (1..=128).contains(&tag.len())
            && tag.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
            && !tag.starts_with(['.', '-'])
    };
    let digest = |text: &str| {
        text.strip_prefix("sha256:")
            .is_some_and(|hex| hex.len() == 64 && hex.chars().all(|c| c.is_ascii_digit() || matches!(c, 'a'..='f')))
    };
    if !digest(reference) && !tag(reference) {
        return Err(format!("`{reference}` is neither a tag nor a digest sha256:…").into());
    }
    Ok(Image { registry: registry.to_owned(), repository: repository.to_owned(), reference: reference.to_owned() })
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) | Self::Component(path) | Self::Archive(path) => path.display().fmt(f),
            Self::Url(url) => url.fmt(f),
            Self::Git(repository) => repository.fmt(f),
            Self::Oci(image) => image.fmt(f),
        }
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "git+{}", self.url)?;
        self.reference.iter().try_for_each(|reference| write!(f, "@{reference}"))?;
        self.subfolder.iter().try_for_each(|folder| write!(f, "#{folder}"))
    }
}

impl fmt::Display for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.reference.contains(':') { '@' } else { ':' };
        write!(f, "oci://{}/{}{mark}{}", self.registry, self.repository, self.reference)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Source, Reason> {
        parse(text, Path::new("/nowhere"))
    }

    #[test]
    fn repositories_are_parsed_with_reference_and_folder() {
        for (text, url, reference, folder) in [
            ("owner/repo", "https://github.com/owner/repo.git", None, None),
            ("owner/repo@v1.2", "https://github.com/owner/repo.git", Some("v1.2"), None),
            ("owner/repo@feature/x#sub/dir", "https://github.com/owner/repo.git", Some("feature/x"), Some("sub/dir")),
            ("owner/repo#sub/", "https://github.com/owner/repo.git", None, Some("sub")),
            ("https://host.example/a/b.git@main", "https://host.example/a/b.git", Some("main"), None),
            ("https://github.com/a/b", "https://github.com/a/b", None, None),
            ("git+https://me@host.example/a/b@v1#c", "https://me@host.example/a/b", Some("v1"), Some("c")),
            ("https://me:@host.example/a.git@v1", "https://me:@host.example/a.git", Some("v1"), None),
            ("ssh://git@host.example:22/a/b.git@v1", "ssh://git@host.example:22/a/b.git", Some("v1"), None),
            ("git@host.example:a/b.git@v1#c", "git@host.example:a/b.git", Some("v1"), Some("c")),
            ("file:///srv/repo@v1", "file:///srv/repo", Some("v1"), None),
        ] {
            let Source::Git(found) = read(text).unwrap() else { panic!("{text}") };
            assert_eq!(
                (found.url.as_str(), found.reference.as_deref(), found.subfolder.as_deref()),
                (url, reference, folder),
                "{text}"
            );
            assert_eq!(read(&Source::Git(found.clone()).to_string()), Ok(Source::Git(found)), "{text}");
        }
    }

    #[test]
    fn addresses_of_files_and_images_are_parsed() {
        assert!(matches!(read("https://github.com/a/b/releases/download/v1/x.tar.gz"), Ok(Source::Url(_))));
        assert!(matches!(read("http://127.0.0.1:8080/x.wasm"), Ok(Source::Url(_))));
        for (text, shown) in [
            ("oci://host.example/name", "oci://host.example/name:latest"),
            ("oci://127.0.0.1:5000/a/b:v1", "oci://127.0.0.1:5000/a/b:v1"),
        ] {
            let source = read(text).unwrap();
            assert_eq!(source.to_string(), shown);
            assert_eq!(read(shown).unwrap(), source);
        }
        let digest = format!("oci://h.example/a@sha256:{}", "0".repeat(64));
        assert_eq!(read(&digest).unwrap().to_string(), digest);
    }

    #[test]
    fn options_and_unsafe_addresses_are_refused() {
        for text in [
            "",
            "--upload-pack=touch /x",
            "git+--upload-pack=x",
            "git+ssh://-oProxyCommand=x/a",
            "git+ext::sh -c x",
            "ext::sh -c touch% /x",
            "owner/repo@--upload-pack=x",
            "owner/repo@a..b",
            "owner/repo@a b",
            "owner/repo#../x",
            "owner/repo#/etc",
            "owner/repo#a/../b",
            "-owner/repo",
            "https:///user@owner/repo.git",
            "https://\\user@owner/repo.git",
            "https://user:secret@host.example/x.wasm",
            "git+https://user:secret@host.example/a.git",
            "https://host.example/x.wasm#y",
            "https://me@host.example/x.wasm",
            "http://github.com%2Fhermes%2Fofficial%2Fmine.tar.gz%3F@127.0.0.1:8080/mine.tar.gz",
            "git+https://github.com%2Fowner%2Fofficial.git@host.example/a.git",
            "https://github.com/owner/ @",
            "ftp://host.example/x.wasm",
            "oci://host.example",
            "oci://host.example/UPPER",
            "oci://host.example/a/../b",
            "oci://user@host.example/a",
            "oci://host.example/a@sha256:00",
            "oci://host.example/a:-x",
            "bare",
            "a\nb",
        ] {
            assert!(read(text).is_err(), "{text:?} gives {:?}", read(text));
        }
        for start in
            ["https://host.example/", "git+https://host.example/", "oci://host.example/a/", "git@host.example:"]
        {
            assert!(read(&format!("{start}{}.git", "a".repeat(500))).is_err(), "{start}");
        }
    }

    #[test]
    fn an_existing_path_takes_precedence_over_a_repository() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("owner/repo")).unwrap();
        std::fs::write(folder.path().join("x.tgz"), "").unwrap();
        std::fs::write(folder.path().join("x.txt"), "").unwrap();
        assert!(matches!(parse("owner/repo", folder.path()), Ok(Source::Folder(_))));
        assert!(matches!(parse("x.tgz", folder.path()), Ok(Source::Archive(_))));
        assert!(parse("./x.txt", folder.path()).is_err());
        assert!(parse("./gone", folder.path()).is_err());
    }

    mod attack {
        use super::*;

        #[test]
        fn a_record_of_a_lock_leads_to_a_commit_or_a_digest_only() {
            let commit = "0123456789abcdef0123456789abcdef01234567";
            let repository = read("git+https://host.example/a.git@main").unwrap();
            assert_eq!(
                repository.clone().at(commit).unwrap().to_string(),
                format!("git+https://host.example/a.git@{commit}")
            );
            let digest = format!("sha256:{}", "a".repeat(64));
            let image = read("oci://host.example/a/b:1").unwrap();
            assert_eq!(image.clone().at(&digest).unwrap().to_string(), format!("oci://host.example/a/b@{digest}"));
            for other in [
                "",
                "main",
                "refs/pull/1/head",
                "+refs/heads/*:refs/heads/*",
                "--upload-pack=touch ran",
                "../../evil/manifests/1",
                "sha256:../../evil",
                "latest",
                &"g".repeat(40),
                &"a".repeat(300_000),
                &commit.to_uppercase(),
            ] {
                assert_eq!(repository.clone().at(other), None, "{other:.50}");
                assert_eq!(image.clone().at(other), None, "{other:.50}");
            }
        }

        #[test]
        fn an_address_has_no_room_to_hide_its_host() {
            let hidden = format!("https://github.com%2Fofficial%3F{}@evil.example/a.zip", "a".repeat(400));
            assert!(read(&hidden).unwrap_err().why.contains("user name"));
            assert!(read(&format!("https://evil.example/{}.zip", "a".repeat(5_000))).unwrap_err().why.contains("4096"));
        }
    }
}
