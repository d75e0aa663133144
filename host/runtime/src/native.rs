//! Plugins that are native libraries: trusted code in this process, behind the same functions as components.
//!
//! An instance is a thread that carries out one call after the other. Its imports are carried out by whoever waits for the
//! call, just as a component's are, with the same rights, limits and deadlines. What cannot be had here is an end by
//! force: a call that misses its deadline is no longer waited for, and its thread goes on until it returns by itself
//! or asks for an import, which ends it. Memory and time that it computes are not limited.

mod imports;
mod library;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::sync::mpsc as blocking;

use hermes_conversation::one_line_within;
use hermes_plugin_abi::{Answer, Function, Import, RErr, ROk, RSlice, RStr};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

use crate::context::Context;
use crate::limits::Limit;

/// Most bytes of the message of a panic.
const MOST_PANIC: usize = 1 << 10;
pub(crate) use library::{Library, Tables};

/// What this program is built for: the name by which a manifest lists a library that it can load.
pub const TARGET: &str = env!("HERMES_TARGET");

/// Bytes of a thread's stack, most of which are never touched.
const STACK: usize = 8 << 20;

/// An instance of a library.
pub(crate) struct Guest {
    pub(crate) context: Context,
    library: Library,
    jobs: blocking::Sender<Job>,
    news: mpsc::UnboundedReceiver<News>,
}

/// A call for the thread.
struct Job {
    function: Function,
    arguments: Vec<u8>,
}

/// What the thread says.
enum News {
    Asks(Asking),
    Answers(Result<Vec<u8>, String>),
}

/// An import on its way to whoever waits for the call.
struct Asking {
    interface: String,
    function: String,
    arguments: Vec<u8>,
    reply: blocking::Sender<Vec<u8>>,
}

impl Guest {
    /// A thread of its own, which ends with this and with the call that it is in.
    pub(crate) fn start(library: Library, plugin: &str, context: Context) -> std::io::Result<Self> {
        let (jobs, queue) = blocking::channel::<Job>();
        let (tell, news) = mpsc::unbounded_channel();
        let thread = std::thread::Builder::new().name(format!("plugin {plugin}")).stack_size(STACK);
        thread.spawn(move || {
            ASKS.set(Some(tell.clone()));
            (library.enter)(Import { call: import });
            while let Ok(job) = queue.recv() {
                let answer = (job.function)(RSlice::from_slice(&job.arguments));
                let answer = answer.into_result().map(Into::into).map_err(Into::into);
                if tell.send(News::Answers(answer)).is_err() {
                    break;
                }
            }
            (library.leave)();
        })?;
        Ok(Self { context, library, jobs, news })
    }

    pub(crate) fn tables(&self) -> &Tables {
        &self.library.tables
    }

    /// Has a function carried out, and its imports meanwhile. An error is a crash: there is no other call after it.
    pub(crate) async fn call<A, R>(&mut self, function: Function, arguments: &A) -> wasmtime::Result<R>
    where
        A: Serialize + Sync,
        R: DeserializeOwned,
    {
        let gone = || wasmtime::Error::msg("its thread has ended");
        let arguments = postcard::to_stdvec(arguments)?;
        self.jobs.send(Job { function, arguments }).map_err(|_| gone())?;
        loop {
            match self.news.recv().await.ok_or_else(gone)? {
                News::Asks(Asking { interface, function, arguments, reply }) => {
                    self.hold_to_output(arguments.len())?;
                    let answer = self.context.import(&interface, &function, &arguments).await?;
                    // One that does not listen any more has crashed, and says so.
                    let _ = reply.send(answer);
                }
                News::Answers(answer) => {
                    let bytes = answer.map_err(|words| wasmtime::Error::msg(one_line_within(&words, MOST_PANIC)))?;
                    self.hold_to_output(bytes.len())?;
                    return postcard::from_bytes(&bytes).map_err(|error| {
                        wasmtime::Error::msg(format!("its answer does not fit the contract: {error}"))
                    });
                }
            }
        }
    }

    /// What it hands over at once is limited as it is for components.
    fn hold_to_output(&mut self, bytes: usize) -> wasmtime::Result<()> {
        if bytes > self.context.meter.limits().size(Limit::Output) {
            self.context.meter.refused = Some(Limit::Output);
            return Err(wasmtime::Error::msg("it hands over too much"));
        }
        Ok(())
    }
}

thread_local! {
    /// In the thread of an instance, how to reach whoever waits for its call.
    static ASKS: RefCell<Option<mpsc::UnboundedSender<News>>> = const { RefCell::new(None) };
}

/// Handed to every library; runs in the thread of an instance.
extern "C" fn import(interface: RStr<'_>, function: RStr<'_>, arguments: RSlice<'_, u8>) -> Answer {
    const NOBODY: &str = "nobody waits for this call any more";
    let Some(asks) = ASKS.with_borrow(Clone::clone) else {
        return RErr("imports work only in the thread in which the host calls the plugin".into());
    };
    let (reply, answer) = blocking::channel();
    let (interface, function) = (interface.to_string(), function.to_string());
    let asking = Asking { interface, function, arguments: arguments.to_vec(), reply };
    if asks.send(News::Asks(asking)).is_err() {
        return RErr(NOBODY.into());
    }
    match answer.recv() {
        Ok(bytes) => ROk(bytes.into()),
        Err(_) => RErr(NOBODY.into()),
    }
}
