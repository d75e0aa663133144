//! Converts a path written by the model to a path relative to the workspace.

use hermes_plugin::{Error, files};

use crate::ROOT;

/// The path relative to the workspace; empty for the workspace itself.
pub(crate) fn locate(path: &str) -> Result<String, Error> {
    // Plain paths do not depend on the workspace's location.
    let plain = !path.contains("..") && !path.trim_start().starts_with(['/', '~']);
    let workspace = if plain { String::new() } else { files::root(ROOT)?.path };
    relative(path, &workspace)
}

/// Checks the form of a path only. The host decides about links and protected files.
pub(crate) fn relative(path: &str, workspace: &str) -> Result<String, Error> {
    let path = path.trim();
    if path.is_empty() {
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
            (" src/ ", "src"),
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
