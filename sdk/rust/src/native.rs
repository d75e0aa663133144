//! Builds the same plugin as a native library: the contract's functions over the binary interface of `hermes-plugin-abi`.
//!
//! The host runs each instance in a thread of its own, so thread-local storage holds the instance. A panic ends only the
//! current call, as in a component, and never reaches the host.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};

use hermes_plugin_abi as abi;
use hermes_plugin_abi::{Answer, PrefixTypeTrait, RErr, ROk, ROption, RSlice, RStr};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bindings::{
    context_assist, context_engine, hooks, lifecycle, memory_events, memory_provider, skills, tools,
};
use crate::export::{STAMP, Slot};
use crate::{
    ContextAssist, ContextEngine, Header, Hooks, MemoryEvents, MemoryProvider, MessageId, MessageRange, Model, Session,
    Skills, Tools,
};

thread_local! {
    static HOST: Cell<Option<abi::Import>> = const { Cell::new(None) };
    /// Message and location of the current panic.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// The library's description; [`export!`](crate::export) adds the kinds.
pub fn plugin<S: Slot>() -> abi::Plugin {
    abi::Plugin {
        stamp: RStr::from_str(STAMP),
        fingerprint: abi::FINGERPRINT,
        enter,
        leave: leave::<S>,
        lifecycle: lifecycle_of::<S>(),
        context_engine: ROption::RNone,
        context_assist: ROption::RNone,
        memory_provider: ROption::RNone,
        memory_events: ROption::RNone,
        tools: ROption::RNone,
        skills: ROption::RNone,
        hooks: ROption::RNone,
    }
}

/// Leaks the description, so that it lives as long as the library.
pub fn lasting(plugin: abi::Plugin) -> abi::PluginRef {
    plugin.leak_into_prefix()
}

/// Silences the panic output: the panic's message goes to the host with the answer.
extern "C" fn enter(import: abi::Import) {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        std::panic::set_hook(Box::new(|panic| {
            let _ = PANIC.try_with(|words| *words.borrow_mut() = Some(panic.to_string()));
        }));
    });
    HOST.set(Some(import));
}

extern "C" fn leave<S: Slot>() {
    // Drop the instance here: a panic during thread shutdown would end the process.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(S::with(Option::take))));
}

fn answer<A: DeserializeOwned, R: Serialize>(arguments: RSlice<'_, u8>, call: impl FnOnce(A) -> R) -> Answer {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let arguments = postcard::from_bytes(arguments.as_slice())?;
        postcard::to_stdvec(&call(arguments))
    }));
    match outcome {
        Ok(Ok(bytes)) => ROk(bytes.into()),
        Ok(Err(error)) => RErr(format!("a record of the call is invalid: {error}").into()),
        Err(panic) => RErr(message_of(panic).into()),
    }
}

fn message_of(panic: Box<dyn Any + Send>) -> String {
    // Leak the payload: dropping it could panic again.
    std::mem::forget(panic);
    PANIC.with(|words| words.borrow_mut().take()).unwrap_or_else(|| "it panicked".to_owned())
}

/// Calls the host from the thread of an instance.
fn import<A: Serialize, R: DeserializeOwned>(interface: &str, function: &str, arguments: &A) -> R {
    let Some(import) = HOST.get() else {
        panic!("{interface}.{function} was called outside of a host, or in a thread that the plugin created");
    };
    let arguments = postcard::to_stdvec(arguments).expect("the contract's records are plain data");
    match (import.call)(interface.into(), function.into(), RSlice::from_slice(&arguments)) {
        ROk(bytes) => match postcard::from_bytes(&bytes) {
            Ok(value) => value,
            Err(error) => panic!("{interface}.{function} returned an unexpected record: {error}"),
        },
        RErr(why) => panic!("{interface}.{function}: {why}"),
    }
}

macro_rules! tables {
    ($($make:ident: $table:ident, $reference:ident, $slot:path, $guest:path {
        $($function:ident($($argument:ident: $type:ty),*);)+
    })+) => {$(
        #[doc = concat!("The functions of `", stringify!($table), "`.")]
        pub fn $make<S: $slot>() -> abi::$reference {
            $(
                extern "C" fn $function<S: $slot>(arguments: RSlice<'_, u8>) -> Answer {
                    answer(arguments, |($($argument,)*): ($($type,)*)| <S as $guest>::$function($($argument),*))
                }
            )+
            abi::$table { $($function: $function::<S>),+ }.leak_into_prefix()
        }
    )+};
}

use context_assist::exports::hermes::context_engine::context_assist as assist_wit;
use context_engine::exports::hermes::context_engine::context_engine as engine_wit;
use hooks::exports::hermes::hooks::hooks as hooks_wit;
use lifecycle::exports::hermes::lifecycle::lifecycle as lifecycle_wit;
use memory_events::exports::hermes::memory::memory_events as events_wit;
use memory_provider::exports::hermes::memory::memory_provider as memory_wit;
use skills::exports::hermes::skills::skills as skills_wit;
use tools::exports::hermes::tools::tools as tools_wit;

tables! {
    lifecycle_of: Lifecycle, LifecycleRef, Slot, lifecycle_wit::Guest {
        configure(config: String);
        session_start(session: Session, how: lifecycle_wit::Start);
        session_end(how: lifecycle_wit::Ending);
    }
    context_engine_of: ContextEngine, ContextEngineRef, Slot<Plugin: ContextEngine>, engine_wit::Guest {
        model_changed(model: Model);
        observe(headers: Vec<Header>);
        rewound(first: MessageId);
        assess(pressure: engine_wit::Pressure);
        prepare(request: engine_wit::Request);
        propose(request: engine_wit::Request);
        settled(outcome: engine_wit::Outcome);
        status();
    }
    context_assist_of: ContextAssist, ContextAssistRef, Slot<Plugin: ContextAssist>, assist_wit::Guest {
        assist(draft: assist_wit::Draft, budget: u32);
    }
    memory_provider_of: MemoryProvider, MemoryProviderRef, Slot<Plugin: MemoryProvider>, memory_wit::Guest {
        system_prompt();
        recall(query: memory_wit::Query);
        sync_turn(turn: memory_wit::Turn);
    }
    memory_events_of: MemoryEvents, MemoryEventsRef, Slot<Plugin: MemoryEvents>, events_wit::Guest {
        before_compact(messages: MessageRange);
    }
    tools_of: Tools, ToolsRef, Slot<Plugin: Tools>, tools_wit::Guest {
        catalog();
        call(invocation: tools_wit::Invocation);
    }
    skills_of: Skills, SkillsRef, Slot<Plugin: Skills>, skills_wit::Guest {
        index();
        view(name: String, path: Option<String>);
    }
    hooks_of: Hooks, HooksRef, Slot<Plugin: Hooks>, hooks_wit::Guest {
        interests();
        on_event(event: hooks_wit::Event);
    }
}

macro_rules! imports {
    ($($module:ident { $(fn $function:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)+ })+) => {$(
        #[allow(missing_docs)]
        pub mod $module {
            #[allow(unused_imports)]
            use crate::Error;
            // An interface may declare functions only, which leaves no type to export.
            #[allow(unused_imports, unreachable_pub)]
            pub use crate::bindings::imports::$module::*;

            $(pub fn $function($($argument: $type),*) $(-> $result)? {
                super::import(stringify!($module), stringify!($function), &($($argument,)*))
            })+
        }
    )+};
}

/// The imports of the contract, implemented by calling the host over the binary interface.
pub mod imports {
    use super::import;

    imports! {
        info {
            fn version() -> String;
            fn has(feature: &str) -> bool;
        }
        log {
            fn write(level: Level, text: &str);
        }
        task {
            fn cancelled() -> bool;
            fn time_left() -> u32;
            fn progress(text: &str);
        }
        clock {
            fn now() -> u64;
            fn utc_offset() -> i32;
        }
        random {
            fn bytes(count: u32) -> Vec<u8>;
        }
        llm {
            fn resolve(task: &str) -> Result<Model, Error>;
            fn complete(request: &Request) -> Result<Reply, Error>;
            fn count_tokens(text: &str) -> u32;
        }
        history {
            fn whole() -> Result<Option<MessageRange>, Error>;
            fn headers(range: MessageRange) -> Result<Vec<Header>, Error>;
            fn read(range: MessageRange) -> Result<Page, Error>;
            fn parts(range: MessageRange) -> Result<PartsPage, Error>;
            fn summary(key: &str) -> Result<String, Error>;
            fn search(query: &Query) -> Result<Vec<Hit>, Error>;
        }
        sql {
            fn query(statement: &Statement) -> Result<Rows, Error>;
            fn execute(statements: &[Statement]) -> Result<Vec<u64>, Error>;
        }
        documents {
            fn read(name: &str) -> Result<Option<Document>, Error>;
            fn write(name: &str, content: &str, version: Option<&str>) -> Result<WriteOutcome, Error>;
        }
        files {
            fn roots() -> Result<Vec<Root>, Error>;
            fn stat(root: &str, path: &str) -> Result<Entry, Error>;
            fn entries(root: &str, path: &str) -> Result<Vec<Entry>, Error>;
            fn read(root: &str, path: &str, offset: u64, limit: u32) -> Result<Slice, Error>;
            fn write(root: &str, path: &str, content: &[u8], version: Option<&str>) -> Result<String, Error>;
            fn rename(root: &str, path: &str, to: &str) -> Result<(), Error>;
            fn remove(root: &str, path: &str) -> Result<(), Error>;
            fn search(root: &str, glob: &str, pattern: Option<&Pattern>, offset: u32, limit: u32) -> Result<Findings, Error>;
        }
        http {
            fn send(request: &Request) -> Result<Response, Error>;
            fn has_secret(name: &str) -> bool;
        }
        process {
            fn run(command: &Command) -> Result<Exit, Error>;
        }
    }
}
