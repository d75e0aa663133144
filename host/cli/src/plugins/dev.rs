//! `hermes plugins dev`: builds a plugin's project at every change and puts it where running sessions take it over.

mod log;
mod project;
mod slot;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use hermes_plugin_host::Selection;
use hermes_runtime::Runtime;
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

/// Files are saved in pieces, and often several at once.
const QUIET: Duration = Duration::from_millis(200);
/// How often the plugin's log is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// The project, and the command that builds it.
#[derive(Debug, Clone, Args)]
pub(crate) struct DevArguments {
    /// The project folder, with a plugin.yaml and a Cargo.toml
    path: PathBuf,
    /// Build with this command instead of `cargo build --release --target wasm32-wasip2`; it runs in the project folder, without a shell
    #[arg(long, value_name = "COMMAND", conflicts_with = "cargo")]
    build: Option<String>,
    /// Arguments for cargo
    #[arg(last = true, value_name = "CARGO ARGUMENTS")]
    cargo: Vec<String>,
}

/// Develops until ctrl-c.
pub(crate) async fn run(arguments: &DevArguments, console: Console) -> Result<ExitCode, Failure> {
    let setup = launch::setup(console)?;
    let project = Project::open(&arguments.path, arguments.build.as_deref(), &arguments.cargo)?;
    let name = project.manifest()?.name;
    let slot = Slot::hold(&setup.home.plugins(), &name)?;
    let bench = Bench {
        tail: Tail::at_end(setup.home.logs().join(format!("{name}.jsonl"))),
        runtime: Arc::new(setup.runtime()),
        project,
        slot,
        name,
        console,
    };
    bench
        .say(Tone::Faint, &format!("developing `{}` in {}; ctrl-c ends", bench.name, bench.project.folder().display()));
    if let Some(hint) = unselected(&bench.name, &setup.selection(&ModelChoice::default())) {
        bench.say(Tone::Warning, &hint);
    }
    // Whatever is under way is dropped: a build with its process, and the slot with what lies in it.
    tokio::select! {
        ended = bench.develop() => ended,
        _ = tokio::signal::ctrl_c() => Ok(ExitCode::SUCCESS),
    }
}

/// A plugin that nothing selects runs nowhere.
fn unselected(name: &str, selection: &Selection) -> Option<String> {
    let named = |names: &[String]| names.iter().any(|other| other == name);
    let selected = selection.engine == name
        || selection.memory.as_deref() == Some(name)
        || (!named(&selection.disabled)
            && (named(&selection.enabled) || name == Selection::MEMORY || Selection::ON.contains(&name)));
    (!selected).then(|| {
        format!(
            "no session has `{name}` yet: name it in plugins.enabled, context.engine or memory.provider of config.yaml, \
             by what it is"
        )
    })
}

struct Bench {
    project: Project,
    slot: Slot,
    name: String,
    runtime: Arc<Runtime>,
    tail: Tail,
    console: Console,
}

impl Bench {
    async fn develop(mut self) -> Result<ExitCode, Failure> {
        let stirred = Arc::new(tokio::sync::Notify::new());
        let _watcher = self.watch(&stirred)?;
        loop {
            let built_from = self.project.state();
            if let Err(failure) = self.round().await {
                self.console.report(&failure);
                self.say(Tone::Faint, "what was built before stays in use; waiting for the next change");
            }
            while self.project.state() == built_from {
                self.follow(&stirred).await?;
            }
        }
    }

    /// Passes on what the plugin says until something has changed.
    async fn follow(&mut self, stirred: &tokio::sync::Notify) -> Result<(), Failure> {
        let stirs = stirred.notified();
        tokio::pin!(stirs);
        loop {
            tokio::select! {
                () = &mut stirs => {
                    tokio::time::sleep(QUIET).await;
                    return Ok(());
                }
                () = tokio::time::sleep(LOOK) => {
                    for line in self.tail.lines() {
                        print(&format!("{}\n", text::line(&line)))?;
                    }
                }
            }
        }
    }

    /// Builds, checks, and puts it into its slot.
    async fn round(&self) -> Result<(), Failure> {
        let begun = Instant::now();
        let manifest = self.project.manifest()?;
        if manifest.name != self.name {
            let why = format!("it is named `{}` now, and was `{}`", manifest.name, self.name);
            let fix = "end this with ctrl-c and begin anew";
            return Err(Failure::new(Kind::Plugin, "the plugin cannot be taken over", why, fix));
        }
        let Built { component, bytes } = self.project.build(&manifest).await?;
        let (runtime, name, console) = (Arc::clone(&self.runtime), self.name.clone(), self.console);
        let size = bytes.len();
        // Compiled here, it only has to be mapped in the sessions.
        let checked = tokio::task::spawn_blocking(move || {
            let shown = Terminal::new(console);
            let loaded = runtime.load_watched(&bytes, &|elapsed| shown.compiling(&name, elapsed))?;
            Ok((loaded.exports().names(), bytes))
        });
        let refused = |why: String| {
            let fix = "correct the plugin; `docs/plugins.md` says what a component may import and has to export";
            Failure::new(Kind::Plugin, format!("{} cannot be used", component.display()), why, fix)
        };
        let checked: Result<_, hermes_runtime::LoadError> =
            checked.await.map_err(|error| refused(error.to_string()))?;
        let (kinds, bytes) = checked.map_err(|error| refused(error.to_string()))?;
        self.slot.place(&manifest, &self.project.manifest_text()?, &bytes)?;
        self.say(
            Tone::Good,
            &format!(
                "`{}` {} ({}, {} KiB) is ready after {:.1} s; running sessions have it from their next turn on",
                self.name,
                manifest.version,
                kinds.join(", "),
                text::grouped((size as u64) >> 10),
                begun.elapsed().as_secs_f64()
            ),
        );
        Ok(())
    }

    fn watch(&self, stirred: &Arc<tokio::sync::Notify>) -> Result<notify::RecommendedWatcher, Failure> {
        let failed = |error: notify::Error| {
            let fix = "raise the limit of watches (fs.inotify.max_user_watches), or move the project to a local disk";
            Failure::new(Kind::General, "the project cannot be watched", error.to_string(), fix)
        };
        let told = Arc::clone(stirred);
        let mut watcher = notify::recommended_watcher(move |_| told.notify_one()).map_err(failed)?;
        for (folder, mode) in self.project.watched() {
            watcher.watch(&folder, mode).map_err(failed)?;
        }
        Ok(watcher)
    }

    fn say(&self, tone: Tone, line: &str) {
        // Nobody is left to be told when standard output is closed.
        let _ = print(&format!("{}\n", self.console.paint(tone, &text::line(line))));
    }
}
