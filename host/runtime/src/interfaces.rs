//! The interfaces that a plugin may export, and their functions.
//!
//! [`interfaces`] is their only description. It generates how a component is probed and bound (`component.rs`), how a
//! native library's functions are looked up (`native/library.rs`), the list of a plugin's exports (`loaded.rs`) and the calls to
//! either (`live.rs`).

/// Passes the table of interfaces to a macro. An interface has its module in the bindings and its name in the contract; a
/// function has its name, the method of the bindings and its signature.
macro_rules! interfaces {
    ($callback:ident) => {
        $callback! {
            required lifecycle "lifecycle" {
                configure call_configure(config: &str) -> Result<(), Error>;
                session_start call_session_start(session: &Session, how: &Start) -> Result<(), Error>;
                session_end call_session_end(how: &Ending) -> Result<(), Error>;
            }
            /// `context-engine`.
            context_engine "context-engine" {
                model_changed call_model_changed(model: &Model) -> Result<(), Error>;
                observe call_observe(headers: &[Header]) -> Result<(), Error>;
                rewound call_rewound(first: u64) -> Result<(), Error>;
                assess call_assess(pressure: &exported::context_engine::Pressure) -> Advice;
                prepare call_prepare(request: &exported::context_engine::Request) -> Result<Progress, Error>;
                propose call_propose(
                    request: &exported::context_engine::Request
                ) -> Result<Option<exported::context_engine::Plan>, Error>;
                settled call_settled(outcome: &exported::context_engine::Outcome) -> Result<(), Error>;
                status call_status() -> String;
            }
            /// `context-assist`, optional for an engine.
            context_assist "context-assist" {
                assist call_assist(draft: &AssistDraft, budget: u32) -> Result<Vec<Quote>, Error>;
            }
            /// `memory-provider`.
            memory_provider "memory-provider" {
                system_prompt call_system_prompt() -> Result<String, Error>;
                recall call_recall(query: &Query) -> Result<Vec<Recollection>, Error>;
                sync_turn call_sync_turn(turn: &exported::memory_provider::Turn) -> Result<(), Error>;
            }
            /// `memory-events`, optional for a memory provider.
            memory_events "memory-events" {
                before_compact call_before_compact(messages: MessageRange) -> Result<String, Error>;
            }
            /// `memory-prefetch`, optional for a memory provider.
            memory_prefetch "memory-prefetch" {
                prefetch call_prefetch(outlook: &Outlook) -> Result<Vec<Prefetched>, Error>;
            }
            /// `memory-mirror`, optional for a memory provider.
            memory_mirror "memory-mirror" {
                written call_written(write: &MemoryWrite) -> Result<(), Error>;
            }
            /// `memory-rewind`, optional for a memory provider.
            memory_rewind "memory-rewind" {
                turns_rewound call_rewound(session: &str, first: u64) -> Result<(), Error>;
            }
            /// `memory-upkeep`, optional for a memory provider.
            memory_upkeep "memory-upkeep" {
                upkeep call_upkeep() -> Result<Progress, Error>;
            }
            /// `tools`.
            tools "tools" {
                catalog call_catalog() -> Result<Vec<Tool>, Error>;
                call call_call(invocation: &Invocation) -> Result<exported::tools::Output, Error>;
            }
            /// `tool-preview`, optional for a plugin with tools.
            tool_preview "tool-preview" {
                preview call_preview(name: &str, arguments: &str) -> Result<CallPreview, Error>;
            }
            /// `skills`.
            skills "skills" {
                index call_index() -> Result<Vec<Skill>, Error>;
                view call_view(name: &str, path: Option<&str>) -> Result<SkillDocument, Error>;
            }
            /// `hooks`.
            hooks "hooks" {
                interests call_interests() -> Vec<String>;
                on_event call_on_event(event: &Event) -> Verdict;
            }
            /// `embedder`.
            embedder "embedder" {
                describe call_describe() -> Result<exported::embedder::Description, Error>;
                embed call_embed(request: &exported::embedder::Request) -> Result<Vec<Vec<f32>>, Error>;
            }
        }
    };
}
pub(crate) use interfaces;
