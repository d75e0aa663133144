//! Plugins that are native libraries: trusted code in this process, behind the same functions as components.
//!
//! An instance is a thread that carries out one call after the other. The task that waits for the call carries out the
//! plugin's imports, with the same rights, limits and deadlines as a component's. A native call cannot be ended by
//! force: after its deadline the host stops waiting, and the thread goes on until it returns or calls an import, which
//! ends it. Its memory and its computing time are not limited.

mod imports;
mod library;
mod shape;
#[cfg(test)]
mod tests;
mod trial;

use std::cell::RefCell;
use std::sync::mpsc as blocking;

use hermes_conversation::one_line_within;
use hermes_plugin_abi::{Answer, Function, Import, RErr, ROk, RSlice, RStr};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

use crate::context::Context;
use crate::limits::Limit;

/// The most bytes of a panic message.
const MOST_PANIC: usize = 1 << 10;
pub use library::try_library;
pub(crate) use library::{Library, sweep};
pub use trial::{EXIT_UNFIT, TRY_LIBRARY};

/// The stack size of a thread in bytes; most of it is never touched.
const STACK: usize = 8 << 20;

/// An instance of a library.
pub(crate) struct Guest {
    pub(crate) context: Context,
    library: Library,
    jobs: blocking::Sender<Job>,
    events: mpsc::UnboundedReceiver<ThreadEvent>,
}

/// A call for the thread.
struct Job {
    function: Function,
    arguments: Vec<u8>,
}

/// What the thread sends to the task that waits for its call.
enum ThreadEvent {
    Import(ImportCall),
    Answer(Result<Vec<u8>, String>),
}

/// An import that the plugin calls.
struct ImportCall {
    interface: String,
    function: String,
    arguments: Vec<u8>,
    reply: blocking::Sender<Vec<u8>>,
}

impl Guest {
    /// Starts the instance's thread. It ends when this value is dropped and its current call has returned.
    pub(crate) fn start(library: Library, plugin: &str, context: Context) -> std::io::Result<Self> {
        let (jobs, queue) = blocking::channel::<Job>();
        let (sender, events) = mpsc::unbounded_channel();
        let thread = std::thread::Builder::new().name(format!("plugin {plugin}")).stack_size(STACK);
        thread.spawn(move || {
            EVENTS.set(Some(sender.clone()));
            (library.enter)(Import { call: import });
            while let Ok(job) = queue.recv() {
                let answer = (job.function)(RSlice::from_slice(&job.arguments));
                let answer = answer.into_result().map(Into::into).map_err(Into::into);
                if sender.send(ThreadEvent::Answer(answer)).is_err() {
                    break;
                }
            }
            (library.leave)();
        })?;
        Ok(Self { context, library, jobs, events })
    }

    pub(crate) fn function(&self, interface: &str, method: &str) -> Option<Function> {
        self.library.functions.get(interface, method)
    }

    /// Calls a function, and carries out the imports that it calls. After an error the instance takes no more calls.
    pub(crate) async fn call<A, R>(&mut self, function: Function, arguments: &A) -> wasmtime::Result<R>
    where
        A: Serialize + Sync,
        R: DeserializeOwned,
    {
        let gone = || wasmtime::Error::msg("its thread has ended");
        let arguments = hermes_plugin_abi::encode(arguments)?;
        self.jobs.send(Job { function, arguments }).map_err(|_| gone())?;
        loop {
            match self.events.recv().await.ok_or_else(gone)? {
                ThreadEvent::Import(ImportCall { interface, function, arguments, reply }) => {
                    self.check_output(arguments.len())?;
                    let answer = self.context.import(&interface, &function, &arguments).await?;
                    // A thread that no longer listens has crashed, and its last event says so.
                    let _ = reply.send(answer);
                }
                ThreadEvent::Answer(answer) => {
                    let bytes = answer.map_err(|words| wasmtime::Error::msg(one_line_within(&words, MOST_PANIC)))?;
                    self.check_output(bytes.len())?;
                    return hermes_plugin_abi::decode(&bytes).map_err(|error| {
                        wasmtime::Error::msg(format!("its answer does not fit the contract: {error}"))
                    });
                }
            }
        }
    }

    /// Applies the limit `output`, as for components.
    fn check_output(&mut self, bytes: usize) -> wasmtime::Result<()> {
        if bytes > self.context.meter.limits().size(Limit::Output) {
            self.context.meter.refused = Some(Limit::Output);
            return Err(wasmtime::Error::msg("it passes too much at once"));
        }
        Ok(())
    }
}

thread_local! {
    /// In the thread of an instance: the channel to the task that waits for its call.
    static EVENTS: RefCell<Option<mpsc::UnboundedSender<ThreadEvent>>> = const { RefCell::new(None) };
}

/// The import function that is passed to every library; runs in the thread of an instance.
extern "C" fn import(interface: RStr<'_>, function: RStr<'_>, arguments: RSlice<'_, u8>) -> Answer {
    const CALLER_GONE: &str = "nobody waits for this call any more";
    let Some(events) = EVENTS.with_borrow(Clone::clone) else {
        return RErr("imports work only in the thread in which the host calls the plugin".into());
    };
    let (reply, answer) = blocking::channel();
    let (interface, function) = (interface.to_string(), function.to_string());
    let call = ImportCall { interface, function, arguments: arguments.to_vec(), reply };
    if events.send(ThreadEvent::Import(call)).is_err() {
        return RErr(CALLER_GONE.into());
    }
    match answer.recv() {
        Ok(bytes) => ROk(bytes.into()),
        Err(_) => RErr(CALLER_GONE.into()),
    }
}
