//! Converts a path written by the model to a path relative to a root.

use hermes_plugin::{Error, files};

use crate::{RESULTS, ROOT};

/// The root and the relative path of what a tool reads: in the workspace, or a result of the session that the host has kept.
pub(crate) fn locate_readable(path: &str) -> Result<(&'static str, String), Error> {
    // The host names a kept result by its whole path.
    let kept = path.trim().starts_with('/').then(|| files::root(RESULTS).ok()).flatten();
    match kept.and_then(|folder| kept_result(path.trim(), &folder.path)) {
        Some(name) => Ok((RESULTS, name)),
        None => Ok((ROOT, locate(path)?)),
    }
}

/// The name of a kept result. A branch has copies of the results of its parent, and knows them by the paths of the parent: the folder
/// of every session leads to the own one.
fn kept_result(path: &str, folder: &str) -> Option<String> {
    let (results, _) = folder.trim_end_matches('/').rsplit_once('/')?;
    let (session, name) = below(path, results)?.strip_prefix('/')?.split_once('/')?;
    let is_plain = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
    };
    let is_name = |part: &str| is_plain(part) && !part.starts_with('.');
    (is_name(session) && is_name(name)).then(|| name.to_owned())
}

/// The path relative to the workspace; empty for the workspace itself.
pub(crate) fn locate(path: &str) -> Result<String, Error> {
    locate_named(path.trim())
}

/// The path of a file that is written: one that ends like the name of a folder is refused, because the file would get another name.
pub(crate) fn locate_file(path: &str) -> Result<String, Error> {
    locate_named_file(path.trim())
}

/// The same for a name whose blanks at the beginning and the end belong to it.
pub(crate) fn locate_named_file(path: &str) -> Result<String, Error> {
    let located = locate_named(path)?;
    match names_folder(path) {
        true => {
            Err(Error::invalid(format!("`{path}` names a folder: give the path of a file, such as `{}`", within(path))))
        }
        false => Ok(located),
    }
}

fn names_folder(path: &str) -> bool {
    matches!(path.rsplit('/').next(), Some("" | "." | ".."))
}

/// An example of a file in a folder.
fn within(folder: &str) -> String {
    match folder.trim_end_matches(['/', '.']) {
        "" => "NAME".to_owned(),
        _ => format!("{}/NAME", folder.trim_end_matches('/')),
    }
}

/// The path relative to the workspace for a name whose blanks at the beginning and the end belong to it.
pub(crate) fn locate_named(path: &str) -> Result<String, Error> {
    // Plain paths do not depend on the workspace's location.
    let plain = !path.contains("..") && !path.trim_start().starts_with(['/', '~']);
    let workspace = if plain { String::new() } else { files::root(ROOT)?.path };
    relative(path, &workspace)
}

/// Checks the form of a path only. The host decides about links and protected files.
pub(crate) fn relative(path: &str, workspace: &str) -> Result<String, Error> {
    if path.trim().is_empty() {
        return Err(Error::invalid(
            "path is empty: give one relative to the workspace, or `.` for the workspace itself",
        ));
    }
    let inside = match path.strip_prefix('/') {
        Some(_) => below(path, workspace).ok_or_else(|| outside(path, workspace))?,
        None if path == "~" || path.starts_with("~/") => return Err(outside(path, workspace)),
        None => path,
    };
    let parts: Vec<_> = inside.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let mut depth = 0_usize;
    for part in &parts {
        depth = match *part {
            ".." => depth.checked_sub(1).ok_or_else(|| outside(path, workspace))?,
            _ => depth + 1,
        };
    }
    Ok(parts.join("/"))
}

fn below<'p>(path: &'p str, workspace: &str) -> Option<&'p str> {
    let rest = path.strip_prefix(workspace.trim_end_matches('/'))?;
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}

fn outside(path: &str, workspace: &str) -> Error {
    Error::invalid(format!(
        "`{path}` lies outside the workspace {workspace}: give a path inside it, or ask the user to start a session in a \
         folder that contains it"
    ))
    .with_code("outside")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_relative_to_the_workspace() {
        for (path, expected) in [
            ("src/main.rs", "src/main.rs"),
            ("./src//main.rs", "src/main.rs"),
            ("src/ ", "src/ "),
            (".", ""),
            ("/home/ada/project/src", "src"),
            ("/home/ada/project", ""),
            // A link can precede `..`, so the host resolves it.
            ("a/../b", "a/../b"),
            ("~notes.txt", "~notes.txt"),
        ] {
            assert_eq!(relative(path, "/home/ada/project/").as_deref(), Ok(expected), "{path}");
        }
        assert_eq!(relative("/etc/hosts", "/").as_deref(), Ok("etc/hosts"));
    }

    #[test]
    fn a_kept_result_is_found_by_its_whole_path_alone() {
        let results = "/home/ada/.hermes/results";
        let found = |path: &str| kept_result(path, &format!("{results}/20260102_030405_aaaaaa"));
        for session in ["20260102_030405_aaaaaa", "20260101_030405_bbbbbb"] {
            assert_eq!(found(&format!("{results}/{session}/0a1b.txt")).as_deref(), Some("0a1b.txt"));
        }
        for other in ["", "/", "/s", "/s/", "/s/*", "/s/..", "/s/../t", "/../state.db", "/s/t/0a1b.txt", "/s/.."] {
            assert_eq!(found(&format!("{results}{other}")), None, "{other}");
        }
        for other in ["0a1b.txt", "/home/ada/.hermes/.env", "/home/ada/.hermes/results2/s/0a1b.txt"] {
            assert_eq!(found(other), None, "{other}");
        }
    }

    #[test]
    fn a_file_is_not_written_under_the_name_of_a_folder() {
        for path in ["n/", "n//", "a/n/", "./n/", "n/.", "n/./", ".", "./", " n/ ", "n/ "] {
            let error = locate_file(path).err().map(|error| error.message).unwrap_or_default();
            assert!(error.contains("names a folder"), "{path}: {error}");
        }
        assert!(names_folder("a/..") && names_folder("a/b/../") && !names_folder("..."));
        assert_eq!((within("n/"), within("a/.."), within("./")), ("n/NAME".into(), "a/../NAME".into(), "NAME".into()));
        for (path, located) in [("n", "n"), ("./n", "n"), ("a//n", "a/n"), (" n ", "n"), ("n/.x", "n/.x")] {
            assert_eq!(locate_file(path).as_deref(), Ok(located), "{path}");
        }
    }

    #[test]
    fn paths_outside_are_refused_with_a_suggestion() {
        for path in ["/etc/passwd", "/home/ada/project-b/x", "../x", "a/../../x", "~/x", "~"] {
            let error = relative(path, "/home/ada/project").map_err(|error| error.message).err().unwrap_or_default();
            assert!(
                error.contains(path) && error.contains("outside the workspace /home/ada/project"),
                "{path}: {error}"
            );
        }
        assert!(relative(" ", "/home").is_err_and(|error| error.message.contains("empty")));
    }
}
