//! `hermes plugins dev`: rebuilds a plugin project at every change and hands the result to running sessions.

mod log;
mod project;
mod slot;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use hermes_plugin_host::Selection;
use hermes_runtime::{Runtime, executor};
use notify::Watcher;

use self::log::Tail;
use self::project::{Built, Project};
use self::slot::Slot;
use crate::console::{Console, Tone, print};
use crate::failure::{Failure, Kind};
use crate::launch;
use crate::progress::Terminal;
use crate::text;
use hermes_app::{ModelChoice, Reporter as _};

/// The wait after a change: editors often save several files, and each in several steps.
const DEBOUNCE: Duration = Duration::from_millis(200);
/// How often the plugin's log is read.
const POLL: Duration = Duration::from_millis(200);

/// The project, and the command that builds it.
#[derive(Debug, Clone, Args)]
pub(crate) struct DevArguments {
    /// The project folder, with a plugin.yaml and the build file of its language: Cargo.toml, build.py, package.json, build.go or Makefile
    path: PathBuf,
    /// Build with this command instead of the one of the language; it runs in the project folder, without a shell
    #[arg(long, value_name = "COMMAND", conflicts_with = "cargo")]
    build: Option<String>,
    /// Allow draft interfaces of the contract, which a later version of Hermes may change or remove
    #[arg(long)]
    allow_draft: bool,
    /// Arguments for cargo
    #[arg(last = true, value_name = "CARGO ARGUMENTS")]
    cargo: Vec<String>,
}

/// Builds and watches until Ctrl-C.
pub(crate) async fn run(arguments: &DevArguments, console: Console) -> Result<ExitCode, Failure> {
    let setup = launch::setup(console)?;
    let project = Project::open(&arguments.path, arguments.build.as_deref(), &arguments.cargo)?;
    let name = project.manifest()?.name;
    let slot = Slot::hold(&setup.home.plugins(), &name)?;
    let development = Development {
        tail: Tail::at_end(setup.home.logs().join(format!("{name}.jsonl"))),
        runtime: Arc::new(setup.runtime()),
        project,
        slot,
        name,
        allow_draft: arguments.allow_draft,
        console,
    };
    let folder = development.project.folder().display();
    development.say(Tone::Faint, &format!("developing `{}` in {folder}; ctrl-c ends", development.name));
    if let Some(hint) = unselected(&development.name, &setup.selection(&ModelChoice::default())) {
        development.say(Tone::Warning, &hint);
    }
    // Ctrl-C drops everything: a running build is killed, and the slot is emptied.
    tokio::select! {
        // Listens before the first build: a signal that nobody listens for ends the process as it is.
        biased;
        _ = tokio::signal::ctrl_c() => Ok(ExitCode::SUCCESS),
        ended = development.run() => ended,
    }
}

/// A hint if the configuration does not select the plugin, so that no session would use it.
fn unselected(name: &str, selection: &Selection) -> Option<String> {
    let named = |names: &[String]| names.iter().any(|other| other == name);
    let selected = selection.engine == name
        || selection.memory.as_deref() == Some(name)
        || (!named(&selection.disabled)
            && (named(&selection.enabled) || name == Selection::MEMORY || Selection::ON.contains(&name)));
    (!selected).then(|| {
        format!(
            "`{name}` is disabled, so no session uses it; depending on its kind, add it to plugins.enabled, or set \
             context.engine or memory.provider in config.yaml"
        )
    })
}

struct Development {
    project: Project,
    slot: Slot,
    name: String,
    allow_draft: bool,
    runtime: Arc<Runtime>,
    tail: Tail,
    console: Console,
}

impl Development {
    async fn run(mut self) -> Result<ExitCode, Failure> {
        let changes = Arc::new(tokio::sync::Notify::new());
        let _watcher = self.watch(&changes)?;
        loop {
            let built_from = self.project.state();
            if let Err(failure) = self.rebuild().await {
                self.console.report(&failure);
                self.say(Tone::Faint, "sessions keep the last successful build; waiting for the next change");
            }
            while self.project.state() == built_from {
                self.follow(&changes).await?;
            }
        }
    }

    /// Prints new lines of the plugin's log until a file changes.
    async fn follow(&mut self, changes: &tokio::sync::Notify) -> Result<(), Failure> {
        let changed = changes.notified();
        tokio::pin!(changed);
        loop {
            for line in self.tail.lines() {
                print(&format!("{}\n", text::line(&line)))?;
            }
            tokio::select! {
                () = &mut changed => {
                    tokio::time::sleep(DEBOUNCE).await;
                    return Ok(());
                }
                () = tokio::time::sleep(POLL) => {}
            }
        }
    }

    /// Builds and checks the plugin, and puts it into its slot.
    async fn rebuild(&self) -> Result<(), Failure> {
        let begun = Instant::now();
        let manifest = self.project.manifest()?;
        if manifest.name != self.name {
            let why = format!("its name changed from `{}` to `{}`", self.name, manifest.name);
            let fix = "stop with ctrl-c and start `hermes plugins dev` again";
            return Err(Failure::new(Kind::Plugin, "the plugin cannot be reloaded", why, fix));
        }
        let Built { component, bytes } = self.project.build(&manifest).await?;
        super::check_drafts(&manifest, &bytes, self.allow_draft, "the plugin cannot be reloaded")?;
        let (runtime, name, console) = (Arc::clone(&self.runtime), self.name.clone(), self.console);
        let (size, later) = (bytes.len(), manifest.later_versions());
        // Sessions use the compiled code from the cache, so they need not compile it.
        let checked = tokio::task::spawn_blocking(move || {
            let shown = Terminal::new(console);
            let loaded = runtime.load_watched(&bytes, later, &|elapsed| shown.compiling(&name, elapsed))?;
            Ok((loaded.exports().names(), bytes))
        });
        let refused = |why: String| {
            let fix = "correct the plugin; `hermes plugins new` creates a working one of each kind";
            Failure::new(Kind::Plugin, format!("{} cannot be used", component.display()), why, fix)
        };
        let checked: Result<_, hermes_runtime::LoadError> =
            checked.await.map_err(|error| refused(error.to_string()))?;
        let (kinds, bytes) = checked.map_err(|error| refused(error.to_string()))?;
        self.slot.place(&manifest, &self.project.manifest_text()?, &bytes)?;
        self.say(
            Tone::Good,
            &format!(
                "built `{}` {} ({}, {} KiB) in {:.1} s; running sessions use it from their next turn",
                self.name,
                manifest.version,
                kinds.join(", "),
                text::grouped((size as u64) >> 10),
                begun.elapsed().as_secs_f64()
            ),
        );
        Ok(())
    }

    fn watch(&self, changes: &Arc<tokio::sync::Notify>) -> Result<notify::RecommendedWatcher, Failure> {
        let unwatched =
            |why: String, fix: &str| Failure::new(Kind::General, "the project cannot be watched for changes", why, fix);
        let failed = |error: notify::Error| {
            let fix =
                "raise the limit of file watches (fs.inotify.max_user_watches), or move the project to a local disk";
            unwatched(error.to_string(), fix)
        };
        // A watcher without its thread would panic at the first folder.
        executor::starts(1).map_err(|error| {
            let fix = "end other programs, or raise the limits of threads and memory";
            unwatched(format!("the system starts no thread: {error}"), fix)
        })?;
        let changes = Arc::clone(changes);
        let notify = move |event: notify::Result<notify::Event>| {
            // Looking for changes reads the folder, which is an event too.
            if !event.is_ok_and(|event| event.kind.is_access()) {
                changes.notify_one();
            }
        };
        let mut watcher = notify::recommended_watcher(notify).map_err(failed)?;
        for (folder, mode) in self.project.watched() {
            watcher.watch(&folder, mode).map_err(failed)?;
        }
        Ok(watcher)
    }

    fn say(&self, tone: Tone, line: &str) {
        // A closed standard output cannot be reported anywhere.
        let _ = print(&format!("{}\n", self.console.paint(tone, &text::line(line))));
    }
}
