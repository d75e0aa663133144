//! The repository, and the cargo commands that run in it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The arguments of clippy as `cargo clippy` passes them on.
const DENY_WARNINGS: &str = "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__";

/// The folder of the staged bundled plugins, relative to the repository. The binary's build script looks there.
pub(crate) const BUNDLED: &str = "target/bundled";

/// The profile of a host build or of native guests. Components have only one profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    Dev,
    Release,
}

/// A checkout of the repository.
#[derive(Debug)]
pub(crate) struct Repository {
    root: PathBuf,
    /// Whether cargo lints what it compiles for this machine.
    linted: bool,
}

impl Repository {
    pub(crate) fn find() -> Result<Self> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = here.parent().context("the xtask package has no parent folder")?;
        let root = root.canonicalize().with_context(|| format!("cannot open {}", root.display()))?;
        Ok(Self { root, linted: false })
    }

    /// The same checkout, in which clippy compiles the crates that are built for this machine, and lints them while it does so.
    /// Warnings are errors. `cargo clippy` alone would check every dependency before a build for tests compiles all of them again.
    pub(crate) fn linted(mut self) -> Self {
        self.linted = true;
        self
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The manifest of the guests' workspace.
    pub(crate) fn guests_manifest(&self) -> Result<PathBuf> {
        let manifest = self.root.join("plugins/Cargo.toml");
        if !manifest.is_file() {
            bail!("{} is missing: the checkout is not complete", manifest.display());
        }
        Ok(manifest)
    }

    /// The guests' target folder, separate from that of the host.
    pub(crate) fn guests_target(&self) -> PathBuf {
        self.target().join("guests")
    }

    /// The target folder of fuzz targets.
    pub(crate) fn fuzz_target(&self) -> PathBuf {
        self.target().join("fuzz")
    }

    /// The target folder of the host's workspace.
    pub(crate) fn target(&self) -> PathBuf {
        match std::env::var_os("CARGO_TARGET_DIR") {
            // Cargo reads it relative to the current folder.
            Some(target) if !target.is_empty() => {
                std::path::absolute(Path::new(&target)).unwrap_or_else(|_| self.root.join(&target))
            }
            _ => self.root.join("target"),
        }
    }

    /// A cargo command for the host's workspace. It keeps the user's settings and drops the variables that the outer cargo
    /// set for xtask.
    pub(crate) fn cargo(&self) -> Command {
        let mut command = Command::new(program());
        command.current_dir(&self.root);
        for name in environment() {
            if is_of_a_package(&name) {
                command.env_remove(name);
            }
        }
        self.lint(&mut command);
        command
    }

    /// Makes a cargo command use clippy as the compiler of its workspace's crates if this checkout is linted.
    pub(crate) fn lint(&self, cargo: &mut Command) {
        if self.linted {
            cargo.env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver").env("CLIPPY_ARGS", DENY_WARNINGS);
        }
    }

    /// A cargo command that builds guests for wasm: the same sources give the same component on every machine.
    pub(crate) fn wasm_cargo(&self) -> Command {
        let mut command = self.guests_cargo();
        command.env("CARGO_ENCODED_RUSTFLAGS", self.without_local_paths());
        command
    }

    /// A cargo command for the guests' workspace, with its own target folder and without flags: flags would also apply to
    /// macros, unless a target is named, and macros would be compiled once with them and once without.
    pub(crate) fn guests_cargo(&self) -> Command {
        let mut command = Command::new(program());
        command.current_dir(&self.root);
        for name in environment() {
            if disturbs_guests(&name) {
                command.env_remove(name);
            }
        }
        command.env("CARGO_TARGET_DIR", self.guests_target());
        command
    }

    /// Flags that keep this machine's paths out of panic messages, so that the same sources give the same component.
    fn without_local_paths(&self) -> OsString {
        let registry =
            std::env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| Some(std::env::home_dir()?.join(".cargo")));
        let remap = |from: &Path, to: &str| {
            let mut flag = OsString::from("--remap-path-prefix=");
            flag.push(from);
            flag.push("=");
            flag.push(to);
            flag
        };
        let mut flags = remap(&self.root, "hermes");
        if let Some(registry) = registry {
            // The separator cannot occur in a path.
            flags.push("\u{1f}");
            flags.push(remap(&registry.join("registry/src"), "crates"));
        }
        flags
    }

    /// Precompiles the staged plugins, then builds the programs that include them: `hermes`, whose path is returned, and `hermes-lab`
    /// beside it, which `hermes lab` starts.
    pub(crate) fn build_hermes(&self, profile: Profile) -> Result<PathBuf> {
        let mut precompile = Command::new(self.build_binaries(profile, &["hermes-precompile"])?);
        precompile.arg(self.root.join(BUNDLED));
        must(precompile)?;
        self.build_binaries(profile, &["hermes", "hermes-lab"])
    }

    /// Builds programs, and returns the path of the first one.
    fn build_binaries(&self, profile: Profile, names: &[&str]) -> Result<PathBuf> {
        let mut command = self.cargo();
        command.arg("build");
        match profile {
            // With the whole workspace selected, dependencies have the features that the tests need.
            Profile::Dev => command.arg("--workspace"),
            // All packages are selected for each binary, so that dependencies have the same features and are built once.
            Profile::Release => {
                let packages = ["hermes-cli", "hermes-lab", "hermes-precompile"];
                command.arg("--release").args(packages.iter().flat_map(|package| ["--package", package]))
            }
        };
        command.args(names.iter().flat_map(|name| ["--bin", name]));
        let name = names.first().copied().unwrap_or_default();
        artifacts(command)?
            .into_iter()
            .find(|artifact| artifact.name == name)
            .and_then(|artifact| artifact.executable)
            .with_context(|| format!("cargo reported no binary named `{name}`"))
    }
}

/// A target that cargo built, or found up to date.
#[derive(Debug)]
pub(crate) struct Artifact {
    pub(crate) name: String,
    pub(crate) manifest: PathBuf,
    pub(crate) files: Vec<PathBuf>,
    pub(crate) executable: Option<PathBuf>,
}

/// Runs a `cargo build` and returns what it reports.
pub(crate) fn artifacts(mut command: Command) -> Result<Vec<Artifact>> {
    command.args(["--message-format", "json-render-diagnostics"]).stderr(Stdio::inherit()).stdin(Stdio::null());
    let shown = shown(&command);
    let output = command.output().with_context(|| format!("cannot run {shown}"))?;
    if !output.status.success() {
        bail!("{shown} failed: {}", output.status);
    }
    let reports = String::from_utf8(output.stdout).with_context(|| format!("{shown} wrote what is not UTF-8"))?;
    Ok(reports.lines().filter_map(artifact).collect())
}

fn artifact(line: &str) -> Option<Artifact> {
    let report: Value = serde_json::from_str(line).ok()?;
    if report["reason"] != "compiler-artifact" {
        return None;
    }
    Some(Artifact {
        name: report["target"]["name"].as_str()?.to_owned(),
        manifest: report["manifest_path"].as_str()?.into(),
        files: report["filenames"].as_array()?.iter().filter_map(Value::as_str).map(PathBuf::from).collect(),
        executable: report["executable"].as_str().map(PathBuf::from),
    })
}

/// Runs a command with the terminal's input and output. Returns an error if the command fails.
pub(crate) fn must(mut command: Command) -> Result<()> {
    let shown = shown(&command);
    eprintln!("$ {shown}");
    let status = command.status().with_context(|| format!("cannot run {shown}"))?;
    if !status.success() {
        bail!("{shown} failed: {status}");
    }
    Ok(())
}

/// Whether a command runs and succeeds. Its output is dropped.
pub(crate) fn succeeds(mut command: Command) -> bool {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn shown(command: &Command) -> String {
    let name = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    std::iter::once(name)
        .chain(command.get_args())
        .map(|part| part.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}

fn program() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

fn environment() -> impl Iterator<Item = String> {
    // Cargo has no variable whose name is not UTF-8.
    std::env::vars_os().filter_map(|(name, _)| name.into_string().ok())
}

/// Whether `cargo run` sets this variable for the package that it runs.
fn is_of_a_package(name: &str) -> bool {
    const PREFIXES: [&str; 4] = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"];
    name == "CARGO_PRIMARY_PACKAGE" || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Whether a variable must not reach the guests' build. Only settings for the registry, the terminal and the number of jobs
/// are kept: flags, wrappers, targets and profiles for the host break a wasm build, or rebuild it every time.
fn disturbs_guests(name: &str) -> bool {
    const FLAGS: [&str; 4] = ["RUSTFLAGS", "RUSTDOCFLAGS", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER"];
    const KEPT: [&str; 2] = ["CARGO_HOME", "CARGO_BUILD_JOBS"];
    const KEPT_PREFIXES: [&str; 5] = ["CARGO_HTTP_", "CARGO_NET_", "CARGO_REGISTR", "CARGO_SOURCE_", "CARGO_TERM_"];
    if FLAGS.contains(&name) {
        return true;
    }
    name.starts_with("CARGO_") && !KEPT.contains(&name) && !KEPT_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// The compiler that cargo would use.
pub(crate) fn rustc() -> Command {
    let program = std::env::var_os("RUSTC").unwrap_or_else(|| OsStr::new("rustc").to_owned());
    Command::new(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_keep_the_registry_and_lose_settings_for_the_host() {
        for kept in [
            "CARGO_HOME",
            "CARGO_NET_OFFLINE",
            "CARGO_REGISTRIES_MINE_INDEX",
            "CARGO_TERM_COLOR",
            "PATH",
            "RUSTUP_TOOLCHAIN",
        ] {
            assert!(!disturbs_guests(kept), "{kept}");
        }
        for gone in [
            "RUSTFLAGS",
            "CARGO_ENCODED_RUSTFLAGS",
            "RUSTC_WRAPPER",
            "RUSTC_WORKSPACE_WRAPPER",
            "CARGO_BUILD_RUSTC_WRAPPER",
            "CARGO_BUILD_TARGET",
            "CARGO_TARGET_DIR",
            "CARGO_MANIFEST_DIR",
            "CARGO_PKG_VERSION",
            "CARGO_TARGET_WASM32_WASIP2_RUSTFLAGS",
            "CARGO_PROFILE_RELEASE_DEBUG",
        ] {
            assert!(disturbs_guests(gone), "{gone}");
        }
    }

    #[test]
    fn the_host_keeps_every_setting_of_the_user() {
        for kept in ["CARGO_TARGET_DIR", "RUSTFLAGS", "CARGO_INCREMENTAL", "RUSTC_WRAPPER", "CARGO_HOME"] {
            assert!(!is_of_a_package(kept), "{kept}");
        }
        for gone in ["CARGO_PKG_NAME", "CARGO_MANIFEST_DIR", "CARGO_MANIFEST_PATH", "CARGO_PRIMARY_PACKAGE"] {
            assert!(is_of_a_package(gone), "{gone}");
        }
    }

    #[test]
    fn only_artifacts_are_read_from_the_reports() {
        assert!(artifact("not json").is_none());
        assert!(artifact(r#"{"reason":"build-finished","success":true}"#).is_none());
        let built = artifact(
            r#"{"reason":"compiler-artifact","manifest_path":"/p/Cargo.toml","target":{"name":"files"},
                "filenames":["/t/files.wasm"],"executable":null}"#,
        )
        .expect("an artifact");
        assert_eq!((built.name.as_str(), built.files.len(), built.executable), ("files", 1, None));
    }
}
