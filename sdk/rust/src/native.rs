//! Builds the same plugin as a native library: the contract's functions over the binary interface of `hermes-plugin-abi`.
//!
//! The host runs each instance in a thread of its own, so thread-local storage holds the instance. A panic ends only the
//! current call, as in a component, and never reaches the host.

pub(crate) mod host;

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use hermes_plugin_abi as abi;
use hermes_plugin_abi::{Answer, NamedFunction, PrefixTypeTrait, RErr, ROk, RSlice, RStr};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::export::{STAMP, Slot};
use crate::lifecycle::Prepared;
use crate::{
    ContextAssist, ContextEngine, Embedder, Header, Hooks, MemoryEvents, MemoryMirror, MemoryPrefetch, MemoryProvider,
    MemoryRewind, MemoryUpkeep, MessageId, MessageRange, Model, Session, Skills, ToolPreview, Tools,
};

thread_local! {
    /// Message and location of the current panic.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// The library's description, with the functions of its kinds. It lives as long as the library.
pub fn library<S: Slot>(kinds: &[&[NamedFunction]]) -> abi::PluginRef {
    let functions: Vec<_> = lifecycle::<S>().into_iter().chain(kinds.concat()).collect();
    abi::Plugin {
        stamp: RStr::from_str(STAMP),
        enter,
        leave: leave::<S>,
        functions: RSlice::from_slice(Vec::leak(functions)),
    }
    .leak_into_prefix()
}

/// Silences the panic output: the panic's message goes to the host with the answer.
extern "C" fn enter(import: abi::Import) {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        std::panic::set_hook(Box::new(|panic| {
            let _ = PANIC.try_with(|words| *words.borrow_mut() = Some(panic.to_string()));
        }));
    });
    host::connect(import);
}

extern "C" fn leave<S: Slot>() {
    // Drop the instance here: a panic during thread shutdown would end the process.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(S::with(|slot| std::mem::replace(slot, Prepared::Nothing)))));
}

fn answer<A: DeserializeOwned, R: Serialize>(arguments: RSlice<'_, u8>, call: impl FnOnce(A) -> R) -> Answer {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let arguments = abi::decode(arguments.as_slice()).map_err(|error| error.to_string())?;
        abi::encode(&call(arguments)).map_err(|error| error.to_string())
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

macro_rules! kinds {
    ($($make:ident $name:literal, $slot:path, $guest:path {
        $($function:ident($($argument:ident: $type:ty),*);)+
    })+) => {$(
        #[doc = concat!("The functions of `", $name, "`.")]
        pub fn $make<S: $slot>() -> Vec<NamedFunction> {
            $(
                extern "C" fn $function<S: $slot>(arguments: RSlice<'_, u8>) -> Answer {
                    answer(arguments, |($($argument,)*): ($($type,)*)| <S as $guest>::$function($($argument),*))
                }
            )+
            vec![$(NamedFunction {
                name: RStr::from_str(concat!($name, "#", stringify!($function))),
                call: $function::<S>,
            }),+]
        }
    )+};
}

use crate::bindings::context_assist::exports::hermes::context_engine::context_assist as assist_wit;
use crate::bindings::context_engine::exports::hermes::context_engine::context_engine as engine_wit;
use crate::bindings::embedder::exports::hermes::embeddings::embedder as embedder_wit;
use crate::bindings::hooks::exports::hermes::hooks::hooks as hooks_wit;
use crate::bindings::lifecycle::exports::hermes::lifecycle::lifecycle as lifecycle_wit;
use crate::bindings::memory_events::exports::hermes::memory::memory_events as events_wit;
use crate::bindings::memory_mirror::exports::hermes::memory::memory_mirror as mirror_wit;
use crate::bindings::memory_prefetch::exports::hermes::memory::memory_prefetch as prefetch_wit;
use crate::bindings::memory_provider::exports::hermes::memory::memory_provider as memory_wit;
use crate::bindings::memory_rewind::exports::hermes::memory::memory_rewind as rewind_wit;
use crate::bindings::memory_upkeep::exports::hermes::memory::memory_upkeep as upkeep_wit;
use crate::bindings::skills::exports::hermes::skills::skills as skills_wit;
use crate::bindings::tool_preview::exports::hermes::tools::tool_preview as preview_wit;
use crate::bindings::tools::exports::hermes::tools::tools as tools_wit;

kinds! {
    lifecycle "hermes:lifecycle/lifecycle@1.0.0", Slot, lifecycle_wit::Guest {
        configure(config: String);
        session_start(session: Session, how: lifecycle_wit::Start);
        session_end(how: lifecycle_wit::Ending);
    }
    context_engine "hermes:context-engine/context-engine@1.0.0", Slot<Plugin: ContextEngine>, engine_wit::Guest {
        model_changed(model: Model);
        observe(headers: Vec<Header>);
        rewound(first: MessageId);
        assess(pressure: engine_wit::Pressure);
        prepare(request: engine_wit::Request);
        propose(request: engine_wit::Request);
        settled(outcome: engine_wit::Outcome);
        status();
    }
    context_assist "hermes:context-engine/context-assist@1.0.0", Slot<Plugin: ContextAssist>, assist_wit::Guest {
        assist(draft: assist_wit::Draft, budget: u32);
    }
    memory_provider "hermes:memory/memory-provider@1.0.0", Slot<Plugin: MemoryProvider>, memory_wit::Guest {
        system_prompt();
        recall(query: memory_wit::Query);
        sync_turn(turn: memory_wit::Turn);
    }
    memory_events "hermes:memory/memory-events@1.0.0", Slot<Plugin: MemoryEvents>, events_wit::Guest {
        before_compact(messages: MessageRange);
    }
    memory_prefetch "hermes:memory/memory-prefetch@1.0.0", Slot<Plugin: MemoryPrefetch>, prefetch_wit::Guest {
        prefetch(outlook: prefetch_wit::Outlook);
    }
    memory_mirror "hermes:memory/memory-mirror@1.0.0", Slot<Plugin: MemoryMirror>, mirror_wit::Guest {
        written(write: mirror_wit::Write);
    }
    memory_rewind "hermes:memory/memory-rewind@1.0.0", Slot<Plugin: MemoryRewind>, rewind_wit::Guest {
        rewound(session: String, first: MessageId);
    }
    memory_upkeep "hermes:memory/memory-upkeep@1.0.0", Slot<Plugin: MemoryUpkeep>, upkeep_wit::Guest {
        upkeep();
    }
    tools "hermes:tools/tools@1.1.0", Slot<Plugin: Tools>, tools_wit::Guest {
        catalog();
        call(invocation: tools_wit::Invocation);
    }
    tool_preview "hermes:tools/tool-preview@1.1.0", Slot<Plugin: ToolPreview>, preview_wit::Guest {
        preview(name: String, arguments: String);
    }
    skills "hermes:skills/skills@1.0.0", Slot<Plugin: Skills>, skills_wit::Guest {
        index();
        view(name: String, path: Option<String>);
    }
    hooks "hermes:hooks/hooks@1.0.0", Slot<Plugin: Hooks>, hooks_wit::Guest {
        interests();
        on_event(event: hooks_wit::Event);
    }
    embedder "hermes:embeddings/embedder@1.0.0", Slot<Plugin: Embedder>, embedder_wit::Guest {
        describe();
        embed(request: embedder_wit::Request);
    }
}
