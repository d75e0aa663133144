//! Servers that are programs: started below a supervisor, spoken to over their standard streams, ended with everything that they
//! started.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::sync::Arc;

use hermes_capabilities::process::{NoScratch, OwnProgram};
use rmcp::RoleClient;
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;

use crate::child::Child;
use crate::confinement::Confined;
use crate::definition::Program;
use crate::error::Cause;
use crate::flow::{Counted, Flow, Guarded};
use crate::front::Front;
use crate::said::Said;
use crate::{joined, limits};

/// Starts a server. `base` is the folder of the session.
pub(crate) async fn start(
    server: &str,
    program: &Program,
    base: &Path,
    flow: &Flow,
    front: &Arc<dyn Front>,
    said: &Said,
) -> Result<Guarded<impl Transport<RoleClient> + 'static>, Cause> {
    let arguments: Vec<OsString> = program.arguments.iter().map(OsString::from).collect();
    let mut environment = program.environment.clone();
    for (name, value) in &program.variables {
        environment.retain(|(own, _)| own != name.as_str());
        environment.push((name.into(), value.into()));
    }
    let not_started = |why: String| Cause::NotStarted { program: program.command.clone(), why };
    let folder = base.join(&program.folder);
    if !folder.is_dir() {
        return Err(not_started(format!("its folder {} does not exist", folder.display())));
    }
    let (confinement, workspace) = (program.confinement.clone(), base.to_owned());
    let sandbox = tokio::task::spawn_blocking(move || confinement.sandbox(&workspace)).await;
    let sandbox = sandbox.unwrap_or_else(|error| Err(error.to_string())).map_err(not_started)?;
    let is_confined = sandbox.is_some();
    let path = environment.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.clone()).unwrap_or_default();
    let started = OwnProgram::talk(program.command.as_ref(), &arguments, &folder, environment, sandbox).await;
    let mut started = started.map_err(|error| {
        if let Some(no) = error.get_ref().and_then(|inner| inner.downcast_ref::<NoScratch>()) {
            let (program, root) = (program.command.clone(), no.root.display().to_string());
            return Cause::NoScratch { program, root, why: no.to_string() };
        }
        // The sandbox may hide the program, for example in a folder for temporary files, or the interpreter of a script.
        let is_unseen = is_confined && error.kind() == io::ErrorKind::NotFound && exists(&program.command, &folder, &path);
        let hint = match is_unseen {
            true => {
                " (it exists, but the sandbox may not show its folder, or that of its interpreter: add the folder to `write` \
                 in its section)"
            }
            false => "",
        };
        not_started(format!("{error}{hint}"))
    })?;
    let (Some(input), Some(output)) = (started.input.take(), started.output.take()) else {
        return Err(not_started("it has no standard streams".to_owned()));
    };
    let reading = started.errors.take().map(|pipe| tokio::spawn(said.clone().listen(pipe)));
    let child =
        Child { program: started, said: said.clone(), reading, server: server.to_owned(), front: Arc::clone(front) };
    let output = Counted { inner: output, flow: flow.clone(), line: 0 };
    // Mending can lengthen a line: a byte that is not valid UTF-8 becomes three.
    let inner = AsyncRwTransport::<RoleClient, _, _>::new(joined::lines(output), input)
        .with_max_line_length(4 * limits::MESSAGE);
    Ok(Guarded { inner, flow: flow.clone(), child: Some(child) })
}

/// Whether a program exists outside of the sandbox: in its folder, or if it is a mere name, in `PATH`.
fn exists(command: &str, folder: &Path, path: &OsStr) -> bool {
    match command.contains('/') {
        true => folder.join(command).exists(),
        false => std::env::split_paths(path).any(|within| folder.join(within).join(command).exists()),
    }
}

/// A confined program that does not answer may miss what the sandbox denies.
pub(crate) fn hinted(server: &str, program: &Program, base: &Path, said: &Said, cause: Cause) -> Cause {
    match cause {
        Cause::Ended(why) if program.confinement.here() == Confined::Yes => {
            let denied = program.confinement.remedy(base, &format!("mcp_servers.{server}"), &said.text());
            let hint = unseen(program, base).or(denied).unwrap_or_else(|| {
                "it runs in the sandbox: `write` in its section widens it, and `sandbox: off`, or `hermes mcp add --sandbox off`, \
                 lifts it"
                    .to_owned()
            });
            Cause::Ended(format!("{why} ({hint})"))
        }
        cause => cause,
    }
}

/// Which of its files a confined program does not see, although it exists, and the way out.
fn unseen(program: &Program, base: &Path) -> Option<String> {
    let sandbox = program.confinement.sandbox(base).ok()??;
    let folder = base.join(&program.folder);
    let variables = program.variables.iter().map(|(name, value)| (name.into(), value.into()));
    let environment: Vec<(OsString, OsString)> = program.environment.iter().cloned().chain(variables).collect();
    let paths = program.arguments.iter().map(|argument| folder.join(argument));
    let (path, place) = paths.into_iter().find_map(|path| {
        let place = sandbox.temporary_around(&path, &environment)?;
        Some((path, place))
    })?;
    Some(format!(
        "{} lies below {}, and programs in the sandbox have a folder of their own in its place: move it, or add its folder to `write` \
         in its section",
        path.display(),
        place.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_looked_for_as_the_system_does() {
        let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
        let bin = folder.path().join("bin");
        std::fs::create_dir(&bin)
            .and_then(|()| std::fs::write(bin.join("tool"), ""))
            .unwrap_or_else(|error| panic!("{error}"));
        let path = std::env::join_paths([Path::new("/no/such/folder"), &bin]).unwrap_or_default();
        let found = |command: &str, path: &OsStr| exists(command, folder.path(), path);
        assert!(found("tool", &path) && found("bin/tool", OsStr::new("")) && found("tool", OsStr::new("bin")));
        assert!(found(&bin.join("tool").display().to_string(), OsStr::new("")));
        assert!(!found("tool", OsStr::new("/no/such/folder")) && !found("other", &path) && !found("./tool", &path));
    }
}
