//! Finds a program and its folder.

use std::path::{Component, Path, PathBuf};

use super::{Folder, Host, invalid, shown};
use crate::fault::{Fault, FaultKind};

/// Finds a program: a name in the host's `PATH`, or an absolute path. The caller has checked the grant.
pub(super) fn program(program: &str, host: &Host<'_>) -> Result<PathBuf, Fault> {
    let path = Path::new(program);
    if path.is_absolute() {
        return if is_program(path) {
            Ok(path.to_owned())
        } else {
            Err(not_found(program, "nothing there can be run"))
        };
    }
    // `./x`, `../x` and `x/y` depend on the working directory, where a plugin might write.
    let plain = path.components().eq([Component::Normal(program.as_ref())]);
    if !plain || program.contains(['/', '\\', '\0']) {
        return Err(not_found(program, "a program is a plain name or an absolute path"));
    }
    let found = host.path().into_iter().map(|folder| folder.join(program)).find(|path| is_program(path));
    found.ok_or_else(|| not_found(program, "no folder of PATH has it"))
}

fn not_found(program: &str, why: &str) -> Fault {
    let why = format!("the program {program:?} cannot be run: {why}; install it, or put its folder into PATH");
    Fault::new(FaultKind::Unavailable, "not-found", why)
}

#[cfg(unix)]
pub(super) fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
pub(super) fn is_program(path: &Path) -> bool {
    path.is_file()
}

/// A directory below one of the granted folders, with links resolved.
pub(super) fn folder(folders: &[Folder], root: &str, relative: &str) -> Result<PathBuf, Fault> {
    let Some(granted) = folders.iter().find(|folder| folder.name == root) else {
        let names: Vec<&str> = folders.iter().map(|folder| folder.name.as_str()).collect();
        return Err(invalid(
            "folder",
            format!("there is no root {root:?} to run it in; there are: {}", names.join(", ")),
        ));
    };
    let path = Path::new(relative);
    let inside = path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if !inside || relative.contains('\0') {
        return Err(invalid("folder", format!("the folder {relative:?} leaves the root `{root}`")));
    }
    let real = |path: &Path| {
        path.canonicalize().map_err(|error| invalid("folder", format!("{} cannot be entered: {error}", shown(path))))
    };
    let (top, found) = (real(&granted.path)?, real(&granted.path.join(path))?);
    let denied = granted.denied.iter().filter_map(|denied| denied.canonicalize().ok());
    if !found.starts_with(&top) || denied.into_iter().any(|denied| found.starts_with(denied)) {
        return Err(invalid("folder", format!("the folder {relative:?} leaves the root `{root}`")));
    }
    if !found.is_dir() {
        return Err(invalid("folder", format!("{} is not a folder", shown(&found))));
    }
    Ok(found)
}
