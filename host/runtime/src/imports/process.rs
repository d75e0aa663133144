//! The import `process`: granted programs, each run approved by the user.

use std::time::Duration;

use hermes_bindings::imported;
use imported::process as wit;
use imported::types::Error;

use crate::context::{Context, margin};
use crate::convert::fault;
use crate::error::{Fault, FaultKind};
use crate::services::Refusal;
use hermes_capabilities::process::{self, End, Exit, GRACE, Host, Order};

/// The most time it takes to end a program and to read its last output.
const SHUTDOWN: Duration = GRACE.saturating_mul(2).saturating_add(Duration::from_millis(50));

impl Context {
    async fn run_program(&mut self, command: wit::Command) -> Result<Exit, Fault> {
        let Some(programs) = self.services.programs.clone() else { return Err(Fault::denied("process")) };
        let wit::Command { program, arguments, root, folder, input, timeout_ms, .. } = command;
        let order = Order { program, arguments, root, folder, input };
        let finder = programs.clone();
        let run = self.off_thread(move || finder.find(order, &Host::new(&|name| std::env::var_os(name)))).await?;
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
        // The program must have ended, and the plugin have its answer, before the call's own time is up.
        let left = self.call.time_left();
        let most = left.saturating_sub(margin(left) + SHUTDOWN);
        let time = timeout_ms.map_or(most, |wanted| most.min(Duration::from_millis(wanted.into())));
        self.call.bounded(process::run(run, time)).await
    }
}

impl wit::Host for Context {
    async fn run(&mut self, command: wit::Command) -> Result<wit::Exit, Error> {
        let Exit { end, output, errors, truncated } = self.run_program(command).await.map_err(fault)?;
        let end = match end {
            End::Exited(code) => wit::End::Exited(code),
            End::Killed(signal) => wit::End::Killed(signal),
            End::TimedOut => wit::End::TimedOut,
        };
        Ok(wit::Exit { end, output, errors, truncated, extra: Vec::new() })
    }
}
