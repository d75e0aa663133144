//! The import `process`: granted programs, each start approved by the user.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hermes_bindings::imported;
use hermes_capabilities::changes::RunningProgram;
use hermes_capabilities::process::{
    self, Background, Confinement, End, Exit, GRACE, Host, Order, ProgramId, Programs, Run, ShowLine,
};
use imported::process as wit;
use imported::types::Error;

use crate::context::{Context, margin};
use crate::convert::fault;
use crate::error::{Fault, FaultKind};
use crate::imports::basics::{PROGRESS, beginning};
use crate::services::Refusal;

/// The most time it takes to end a program and to read its last output.
const SHUTDOWN: Duration = GRACE.saturating_mul(2).saturating_add(Duration::from_millis(50));

/// The most bytes of a line that tells the user what the sandbox denied.
const DENIAL: usize = 2 << 10;

/// The keys of `command.extra` that the contract's README defines.
const MERGE_ERRORS: &str = "merge-errors";
const SHOW_OUTPUT: &str = "show-output";
/// The key of `exit.extra` and `chunk.extra` with a line for each thing that the sandbox denied.
const DENIED: &str = "sandbox-denied";

fn is_set(command: &wit::Command, key: &str) -> bool {
    command.extra.iter().any(|(name, value)| name == key && value == "true")
}

impl Context {
    fn programs(&self) -> Result<Programs, Fault> {
        self.services.programs.clone().ok_or_else(|| Fault::denied("process"))
    }

    /// Finds a program and asks the user.
    async fn approved(&mut self, command: wit::Command, background: bool) -> Result<Run, Fault> {
        let programs = self.programs()?;
        let merged = is_set(&command, MERGE_ERRORS);
        let wit::Command { program, arguments, environment, root, folder, input, .. } = command;
        let order = Order { program, arguments, environment, root, folder, input, background, merged };
        let finder = programs.clone();
        let run = self.off_thread(move || finder.find(order, &Host::new(&|name| std::env::var_os(name)))).await?;
        self.warn_unconfined(&run.confinement);
        // Otherwise a plugin could repeat a refused question without end.
        let may_ask = !self.call.refused;
        if let Err(refusal) = self.call.ask_user(programs.approve(&run, may_ask)).await {
            if !may_ask && refusal.code == Refusal::Unattended.code() {
                let why = "not run: the user has refused this call a program already, and is not asked again";
                return Err(Fault::new(FaultKind::Denied, Refusal::User.code(), why));
            }
            self.call.refused |= refusal.code == Refusal::User.code();
            return Err(refusal);
        }
        Ok(run)
    }

    /// Says once in a process that programs run without a sandbox, and why.
    fn warn_unconfined(&self, confinement: &Confinement) {
        static SAID: AtomicBool = AtomicBool::new(false);
        if let Confinement::Unavailable(why) = confinement
            && !SAID.swap(true, Ordering::Relaxed)
        {
            let line = format!("programs run without a sandbox: {why}; `hermes doctor` says what is missing");
            self.services.reporter.notice(&line);
        }
    }

    async fn run_program(&mut self, command: wit::Command) -> Result<Exit, Fault> {
        let wanted = command.timeout_ms;
        let show = is_set(&command, SHOW_OUTPUT).then(|| {
            let reporter = Arc::clone(&self.services.reporter);
            Box::new(move |line: &str| reporter.progress(beginning(line, PROGRESS))) as ShowLine
        });
        let run = self.approved(command, false).await?;
        let recorded = self.recorded(&run).await?;
        // The program must have ended, and the plugin have its answer, before the call's own time is up.
        let left = self.call.time_left();
        let most = left.saturating_sub(margin(left) + SHUTDOWN);
        let time = wanted.map_or(most, |wanted| most.min(Duration::from_millis(wanted.into())));
        let ended = self.call.bounded(process::run(run, time, show)).await;
        if let Some(recorded) = recorded
            && ended.is_ok()
        {
            self.unhurried(move || recorded.ended()).await?;
        }
        ended
    }

    /// Lets the host look at the files before a program starts. The call's time does not pass meanwhile.
    async fn recorded(&mut self, run: &Run) -> Result<Option<Box<dyn RunningProgram>>, Fault> {
        let changes = self.programs()?.changes().clone();
        if !changes.are_recorded() {
            return Ok(None);
        }
        let run = run.clone();
        self.unhurried(move || changes.program(&run)).await
    }

    /// Work of the host that may block, and for which the call's time does not pass.
    async fn unhurried<T: Send + 'static>(&mut self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Fault> {
        let work = tokio::task::spawn_blocking(work);
        let failed = |error: tokio::task::JoinError| Fault::new(FaultKind::Failed, "io", error.to_string());
        self.call.pausing(async { work.await.map_err(failed) }).await
    }

    async fn start_program(&mut self, command: wit::Command) -> Result<ProgramId, Fault> {
        let time = command.timeout_ms.map(|wanted| Duration::from_millis(wanted.into()));
        let run = self.approved(command, true).await?;
        let recorded = self.recorded(&run).await?;
        let (background, now) = (self.background()?, self.services.clock.now());
        self.off_thread(move || background.start_recorded(run, time, now, recorded)).await
    }

    /// Tells the user what the sandbox denied, and hands it over for the model.
    fn denials(&self, lines: Vec<String>) -> Vec<(String, String)> {
        for line in &lines {
            self.services.reporter.notice(beginning(&format!("sandbox: {line}"), DENIAL));
        }
        lines.into_iter().map(|line| (DENIED.to_owned(), line)).collect()
    }

    fn background(&self) -> Result<Background, Fault> {
        Ok(self.programs()?.background().clone())
    }

    /// How long an import may wait for a background program: as long as the plugin wants, within its call.
    fn patience(&self, wait_ms: u32) -> Duration {
        let left = self.call.time_left();
        Duration::from_millis(wait_ms.into()).min(left.saturating_sub(margin(left) * 2))
    }
}

fn end(end: End) -> wit::End {
    match end {
        End::Exited(code) => wit::End::Exited(code),
        End::Killed(signal) => wit::End::Killed(signal),
        End::TimedOut => wit::End::TimedOut,
        End::Stopped => wit::End::Stopped,
    }
}

impl wit::Host for Context {
    async fn run(&mut self, command: wit::Command) -> Result<wit::Exit, Error> {
        let Exit { end: how, output, errors, truncated, denied } = self.run_program(command).await.map_err(fault)?;
        let extra = self.denials(denied);
        Ok(wit::Exit { end: end(how), output, errors, truncated, extra })
    }

    async fn start(&mut self, command: wit::Command) -> Result<wit::ProgramId, Error> {
        self.start_program(command).await.map(|id| id.0).map_err(fault)
    }

    async fn read(&mut self, id: wit::ProgramId, wait_ms: u32) -> Result<wit::Chunk, Error> {
        let (background, patience) = (self.background().map_err(fault)?, self.patience(wait_ms));
        let read = self.call.bounded(background.read(ProgramId(id), patience)).await.map_err(fault)?;
        Ok(wit::Chunk {
            output: read.output,
            errors: read.errors,
            output_lost: read.output_lost,
            errors_lost: read.errors_lost,
            end: read.end.map(end),
            extra: self.denials(read.denied),
        })
    }

    async fn write(&mut self, id: wit::ProgramId, bytes: Vec<u8>) -> Result<(), Error> {
        self.background().and_then(|background| background.write(ProgramId(id), bytes)).map_err(fault)
    }

    async fn close_input(&mut self, id: wit::ProgramId) -> Result<(), Error> {
        self.background().and_then(|background| background.close_input(ProgramId(id))).map_err(fault)
    }

    async fn wait(&mut self, id: wit::ProgramId, wait_ms: u32) -> Result<Option<wit::End>, Error> {
        let (background, patience) = (self.background().map_err(fault)?, self.patience(wait_ms));
        let ended = self.call.bounded(background.wait(ProgramId(id), patience)).await.map_err(fault)?;
        Ok(ended.map(end))
    }

    async fn stop(&mut self, id: wit::ProgramId) -> Result<wit::End, Error> {
        let background = self.background().map_err(fault)?;
        self.call.bounded(background.stop(ProgramId(id))).await.map(end).map_err(fault)
    }

    async fn programs(&mut self) -> Result<Vec<wit::Background>, Error> {
        let listed = self.background().map_err(fault)?.list();
        let shown = |program: process::Listed| wit::Background {
            id: program.id.0,
            program: program.program,
            arguments: program.arguments,
            started_at: program.started_at,
            end: program.end.map(end),
            extra: Vec::new(),
        };
        Ok(listed.into_iter().map(shown).collect())
    }
}
