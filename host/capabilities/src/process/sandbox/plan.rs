//! From a sandbox to the plan of one run.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use hermes_sandbox::{Plan, Temporary};

use super::entry::{changed_at, identity};
use super::git_folder::GitFolders;
use super::leads::leads;
use super::named::named;
use super::repository::{Repository, has_parts, is_repository};
use super::search::Search;
use super::watched::Watched;
use super::{Confined, Sandbox, denial};

/// The variable that names the folder for temporary files.
pub(in crate::process) const TMPDIR: &str = "TMPDIR";
/// The system, which programs cannot do without: no folder for temporary files takes its place, whatever `TMPDIR` says.
const SYSTEM: [&str; 11] =
    ["/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/nix", "/proc", "/sbin", "/sys", "/usr"];
/// Folders that contain those of users and of the system, and other people's.
const PARENTS: [&str; 6] = ["/home", "/mnt", "/opt", "/root", "/srv", "/var"];
/// Each sandbox has its own.
const SHARED_MEMORY: &str = "/dev/shm";
/// Where programs expect to write temporary files.
const TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];
/// Sockets of the system are in here, and appear empty.
const RUNTIME: [&str; 2] = ["/run", "/var/run"];
/// Secrets of well-known programs, in the user's home.
const SECRETS: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".config/gcloud",
    ".config/gh",
    ".config/hub",
    ".config/glab-cli",
    ".config/op",
    ".config/git/credentials",
    ".git-credentials",
    ".docker",
    ".config/containers/auth.json",
    ".netrc",
    ".pgpass",
    ".my.cnf",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".gem/credentials",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".terraform.d/credentials.tfrc.json",
    ".vault-token",
    ".password-store",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".mozilla",
    ".var/app",
    "snap",
    ".thunderbird",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".hermes",
    ".claude",
    ".claude.json",
    ".codex",
    ".gemini",
    ".config/github-copilot",
    ".copilot",
    ".codeium",
    ".cursor",
    ".config/cursor",
    ".config/Cursor",
    ".qwen",
    ".aider",
    ".factory",
    ".local/share/opencode",
    ".config/opencode",
    ".config/goose",
    ".local/share/goose",
    ".config/amp",
    ".local/share/amp",
    ".config/crush",
    ".local/share/crush",
    ".config/io.datasette.llm",
    ".openai",
    ".config/vivaldi",
    ".config/opera",
    ".librewolf",
    ".config/Code/User/globalStorage",
    ".config/Signal",
    ".config/Slack",
    ".config/Bitwarden",
    ".config/rclone",
    ".config/sops",
    ".config/age",
    ".cache/huggingface/token",
    ".huggingface",
    ".kaggle",
    ".config/kaggle",
    ".config/hcloud",
    ".config/doctl",
    ".config/tea",
    ".oci",
    ".fly",
    ".pulumi/credentials.json",
    ".terraformrc",
    ".databrickscfg",
    ".snowflake",
    ".s3cfg",
    ".boto",
    ".gradle/gradle.properties",
    ".m2/settings-security.xml",
    ".local/share/uv/credentials",
    ".config/uv/credentials.toml",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".subversion/auth",
    ".config/helm/registry",
    ".config/stripe",
    ".config/ngrok",
    ".config/netlify",
    ".config/.wrangler",
    ".local/share/com.vercel.cli",
    ".config/solana",
    ".bitcoin",
    ".electrum",
    ".step/secrets",
    ".config/Yubico",
    ".authinfo",
    ".authinfo.gpg",
    ".mylogin.cnf",
    ".msmtprc",
    ".wgetrc",
    ".curlrc",
    ".bash_history",
    ".zsh_history",
    ".local/share/fish/fish_history",
    ".python_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
];
/// Secrets of the system. Only root could read them anyway.
const OF_SYSTEM: [&str; 5] = ["/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/root/.ssh"];

/// A plan, with what must be looked at after the run.
#[derive(Debug)]
pub(in crate::process) struct Planned {
    pub(in crate::process) plan: Plan,
    /// The value that `TMPDIR` must have instead of its own, which is no folder for temporary files.
    pub(in crate::process) other_temporary: Option<PathBuf>,
    watched: Watched,
}

/// The parts of a run that a plan depends on.
pub(in crate::process) struct Start<'a> {
    pub(in crate::process) folder: &'a Path,
    pub(in crate::process) environment: &'a [(OsString, OsString)],
    pub(in crate::process) background: bool,
    /// The files that are executed, and folders with copies of them.
    pub(in crate::process) files: Vec<PathBuf>,
}

impl Sandbox {
    /// The folder for temporary files in which a path lies that programs in this sandbox do not see, because they have a folder of
    /// their own in its place.
    pub fn temporary_around(&self, path: &Path, environment: &[(OsString, OsString)]) -> Option<PathBuf> {
        let path = path.canonicalize().ok()?;
        let wanted = self.rules.writable.iter().map(|path| expanded(path));
        let shown = self.writable.iter().chain(&self.readable).cloned().chain(wanted);
        let shown: Vec<PathBuf> = shown.filter_map(|path| path.canonicalize().ok()).collect();
        let is_shown = shown.iter().any(|folder| path.starts_with(folder));
        let places = if is_shown { Vec::new() } else { temporary_places(environment, &shown) };
        places.into_iter().find(|place| path.starts_with(place) && path != *place)
    }
}

impl Planned {
    pub(in crate::process) fn new(confined: &Confined, start: Start<'_>) -> io::Result<Self> {
        let sandbox = &confined.sandbox;
        let real = |path: &PathBuf| path.canonicalize().ok();
        let mut writable: Vec<PathBuf> = sandbox.writable.iter().filter_map(real).collect();
        let granted = writable.clone();
        let guarded: Vec<PathBuf> = granted.iter().cloned().chain(sandbox.guarded.iter().filter_map(real)).collect();
        writable.extend(
            sandbox
                .rules
                .writable
                .iter()
                .map(|path| expanded(path))
                .filter(|path| path.is_absolute())
                .filter_map(|path| real(&path)),
        );
        if writable.iter().any(|path| path == Path::new("/")) {
            return Err(io::Error::other(
                "the whole file system cannot be a writable folder of the sandbox; work in another folder, or set \
                 `sandbox.mode: off` in config.yaml",
            ));
        }
        let temporary = temporary_places(start.environment, &writable);
        let other_temporary = other_temporary(&start, &temporary, &writable);
        let mut hidden: Vec<PathBuf> = std::env::home_dir()
            .into_iter()
            .flat_map(|home| SECRETS.iter().map(move |name| home.join(name)))
            .chain(OF_SYSTEM.iter().map(PathBuf::from))
            .filter(|path| !granted.contains(path))
            .collect();
        hidden.extend(sandbox.rules.hidden.iter().map(|path| expanded(path)));
        hidden.push(sandbox.home.clone());
        hidden.extend(confined.closed.iter().cloned());

        let unseen: Vec<PathBuf> = hidden.iter().filter_map(real).collect();
        if let Some(folder) = granted.iter().find(|path| path.is_dir() && std::fs::read_dir(path).is_err()) {
            let why = format!("{} cannot be read, so nothing in it could be protected", folder.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        let before = Search::of(&writable, &unseen, &sandbox.listed);
        if let Some(why) = &before.failed {
            return Err(io::Error::other(format!("what it must not change cannot be found: {why}; try again")));
        }
        let mut repositories = repositories(&granted, &guarded, &before);
        repositories.retain(|repository| is_seen(&repository.folder, &unseen, &writable));
        if let Some(folder) = repositories.iter().find_map(Repository::unlistable) {
            let why = format!("{} cannot be read, so nothing in it could be protected", folder.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        let inside = |path: &PathBuf| writable.iter().any(|folder| path.starts_with(folder));
        let mut read_only: Vec<PathBuf> = before.listed.iter().filter_map(real).filter(inside).collect();
        let unprotected = only_oldest(&mut read_only);
        let decisive = repositories.iter().flat_map(|repository| &repository.decisive);
        let git: Vec<PathBuf> = before.git.iter().filter(|path| path.is_file()).cloned().collect();
        let links = decisive.clone().filter(|path| path.is_symlink()).filter_map(real).filter(inside);
        read_only.extend(links);
        read_only.extend(decisive.filter(|path| !path.is_symlink()).cloned());
        read_only.extend(git.iter().filter_map(real).filter(inside));
        let named = named(&repositories, &granted);
        let leads = leads(&before, &repositories, &named, &sandbox.listed, &|path| inside(&path.to_owned()));
        let targets = leads.iter().filter(|lead| !lead.is_git).filter_map(|lead| lead.target.clone());
        read_only.extend(targets.filter(inside).filter(|path| !writable.contains(path)));
        // The contents of a hidden folder are not visible, so they need no protection.
        read_only.retain(|path| is_seen(path, &unseen, &writable));
        read_only.sort();
        read_only.dedup();
        let ways: Vec<PathBuf> = leads.iter().filter_map(|lead| lead.target.clone()).collect();
        let mut pinned = pinned(&repositories, &unseen, &ways, &writable);
        // A folder is mounted so that it can be written.
        pinned.retain(|path| {
            let is_repository = repositories.iter().any(|repository| repository.folder == *path);
            is_repository || !read_only.iter().any(|kept| path.starts_with(kept))
        });

        let covered = temporary.iter().chain(&hidden).cloned().chain(RUNTIME.map(PathBuf::from));
        let covered: Vec<PathBuf> = covered.filter_map(|path| path.canonicalize().ok()).collect();
        let path = start.environment.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value);
        let programs = path
            .iter()
            .flat_map(std::env::split_paths)
            .chain(start.files.iter().cloned())
            .filter_map(|path| real(&path));
        let readable = programs
            .filter(|path| covered.iter().any(|folder| path.starts_with(folder) && path != folder))
            .chain(confined.readable.iter().cloned())
            .chain(sandbox.readable.iter().filter_map(real))
            .filter(|path| !writable.iter().any(|folder| path.starts_with(folder)));
        let plan = Plan {
            readable: readable.collect(),
            temporary: Some(Temporary { folder: confined.scratch.path().canonicalize()?, at: temporary }),
            pinned,
            writable: writable.clone(),
            read_only,
            hidden,
            network: sandbox.rules.network,
            folder: start.folder.to_owned(),
        };
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let watched = Watched {
            roots: writable,
            unseen,
            background: start.background,
            since: i64::try_from(now.as_secs()).unwrap_or(i64::MAX),
            protected: repositories.iter().filter_map(|known| Some(identity(&known.folder)?.0)).collect(),
            absent: Watched::absent_in(&repositories),
            states: Watched::states_of(&repositories),
            folders: GitFolders::of(
                repositories.iter().filter(|known| !known.is_passage).map(|known| known.folder.clone()),
            ),
            leads,
            unprotected,
            before,
            repositories,
            listed: std::sync::Arc::clone(&sandbox.listed),
        };
        Ok(Self { plan, other_temporary, watched })
    }

    /// The same plan, but only the granted folders are searched for new files afterwards, and not caches and the like.
    pub(in crate::process) fn watching_granted(mut self, confined: &Confined) -> Self {
        let sandbox = &confined.sandbox;
        let watched = sandbox.writable.iter().chain(&sandbox.guarded).filter_map(|path| path.canonicalize().ok());
        self.watched.roots = watched.collect();
        self
    }

    /// What the program was denied, by its outputs and whether it succeeded.
    pub(in crate::process) fn denials(&self, outputs: &[&[u8]], succeeded: bool) -> Vec<String> {
        denial::denials(outputs, self.plan.network, succeeded)
    }

    /// Renames what the program created against the rules, and says so.
    pub(in crate::process) fn undo(&self) -> Vec<String> {
        self.watched.undo()
    }
}

/// Keeps only so many files of the list that mounting them takes no minute. The oldest stay: a program can make files as it likes, but
/// none that is older than the user's. Returns how many are left out.
fn only_oldest(read_only: &mut Vec<PathBuf>) -> usize {
    const MOST: usize = 4_000;
    let left_out = read_only.len().saturating_sub(MOST);
    if left_out > 0 {
        read_only.sort_by_cached_key(|path| changed_at(path));
        read_only.truncate(MOST);
    }
    left_out
}

/// The folders that cannot be moved: those of git, and those around hidden ones and around what protected links lead to, which another
/// folder could replace otherwise.
fn pinned(repositories: &[Repository], unseen: &[PathBuf], ways: &[PathBuf], writable: &[PathBuf]) -> Vec<PathBuf> {
    let inside = |path: &&Path| writable.iter().any(|folder| path.starts_with(folder) && path != folder);
    let around = |path: &'_ PathBuf| -> Vec<PathBuf> {
        path.ancestors().skip(1).take_while(inside).map(Path::to_owned).collect()
    };
    let seen = |path: &PathBuf| is_seen(path, unseen, writable);
    let around = unseen.iter().flat_map(around).chain(ways.iter().flat_map(around).filter(seen));
    let mut all: Vec<PathBuf> = repositories.iter().map(|repository| repository.folder.clone()).chain(around).collect();
    all.sort();
    all.dedup();
    all
}

/// Whether programs see a path: no folder around it is hidden, or a writable one lies in between.
fn is_seen(path: &Path, unseen: &[PathBuf], writable: &[PathBuf]) -> bool {
    unseen.iter().filter(|hidden| path.starts_with(hidden)).all(|hidden| {
        writable.iter().any(|folder| folder != hidden && folder.starts_with(hidden) && path.starts_with(folder))
    })
}

/// A path of the configuration: `~` is the user's home.
fn expanded(path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), std::env::home_dir()) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_owned(),
    }
}

/// The paths where programs expect to write temporary files, unless they are writable themselves.
fn temporary_places(environment: &[(OsString, OsString)], writable: &[PathBuf]) -> Vec<PathBuf> {
    let own = named_temporary(environment).filter(|path| !is_of_system(path));
    let all = TEMPORARY.iter().filter_map(|path| Path::new(path).canonicalize().ok()).chain(own);
    let mut places: Vec<PathBuf> =
        all.filter(|path| path.is_dir() && !writable.iter().any(|folder| path.starts_with(folder))).collect();
    places.sort();
    places.dedup();
    places
}

/// What `TMPDIR` leads to, if that is anything.
fn named_temporary(environment: &[(OsString, OsString)]) -> Option<PathBuf> {
    let named = environment.iter().find(|(name, _)| name == TMPDIR).map(|(_, path)| PathBuf::from(path));
    named.filter(|path| path.is_absolute()).and_then(|path| path.canonicalize().ok())
}

/// Whether programs would miss what is in a folder.
fn is_of_system(folder: &Path) -> bool {
    SYSTEM.iter().any(|known| folder.starts_with(known))
        || PARENTS.iter().any(|known| folder == Path::new(known))
        || std::env::home_dir().is_some_and(|home| home.canonicalize().unwrap_or(home).starts_with(folder))
        || folder.parent().is_none()
}

/// The folder to name in the place of one that is missing, or no folder for temporary files.
fn other_temporary(start: &Start<'_>, places: &[PathBuf], writable: &[PathBuf]) -> Option<PathBuf> {
    start.environment.iter().find(|(name, _)| name == TMPDIR)?;
    let is_usable = |path: &PathBuf| {
        places.contains(path)
            || path.starts_with(SHARED_MEMORY)
            || writable.iter().any(|folder| path.starts_with(folder))
    };
    if named_temporary(start.environment).is_some_and(|path| is_usable(&path)) {
        return None;
    }
    Some(TEMPORARY.iter().map(PathBuf::from).find(|path| path.is_dir()).unwrap_or_else(|| SHARED_MEMORY.into()))
}

/// The folders of git in the guarded folders, that of a project around the granted ones, and those behind files called `.git`.
fn repositories(granted: &[PathBuf], guarded: &[PathBuf], search: &Search) -> Vec<Repository> {
    let around = granted.iter().filter_map(|root| {
        let folders = root.ancestors().skip(1).map(|folder| folder.join(".git"));
        folders.into_iter().find(|git| git.symlink_metadata().is_ok()).filter(|_| !root.join(".git").exists())
    });
    let mut all: Vec<Repository> = Vec::new();
    // Nothing can be mounted over a link, but over what it leads to.
    let real = |git: &PathBuf| if git.is_symlink() { git.canonicalize().ok() } else { Some(git.clone()) };
    let inside = |git: &PathBuf| guarded.iter().any(|root| git.starts_with(root));
    for git in search.git.iter().filter_map(real).filter(inside).chain(around) {
        let found = match git.symlink_metadata() {
            // A repository whose `HEAD` was taken away is one again with it.
            Ok(data) if data.is_dir() && (is_repository(&git) || has_parts(&git)) => Repository::with_parts(git),
            Ok(data) if data.is_file() => Repository::behind(&git).unwrap_or_default(),
            _ => Vec::new(),
        };
        for repository in found {
            if !all.iter().any(|known| known.folder == repository.folder) {
                all.push(repository);
            }
        }
    }
    all
}
