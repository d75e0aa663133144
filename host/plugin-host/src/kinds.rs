//! The kinds of plugins as the agent sees them, whatever a plugin is built from.
//!
//! [`for_each_kind`] is the one description of all kinds. It generates the traits here, their forwarding to the running
//! generation (`generations.rs`) and their implementation over instances (`component.rs`).
//!
//! Every function answers within its deadline or with an error that names the plugin. Dropping the future cancels
//! the call.

use async_trait::async_trait;
use hermes_conversation::{MessageId, MessageRange, Model, Plan};
use hermes_runtime::services::{EmbeddingModel, EmbeddingRequest};
use hermes_runtime::{
    Advice, AssistDraft, CallError, CallPreview, Event, Invocation, MemoryWrite, Outcome, Outlook, Output, PlanRequest,
    Pressure, Progress, Query, Quote, Recollection, Skill, SkillDocument, Tool, TurnRecord, Verdict,
};

/// Passes the table of kinds to a macro. After its signature, each function names:
///
/// - the function of the contract, for messages;
/// - the instance and method that carry it out: `foreground` serves turns, `background` never delays them, `vectors`
///   serves other plugins, `recipe` uses an instance of its own;
/// - its [`RetryPolicy`](crate::supervision::RetryPolicy);
/// - after a rollback to the previous generation: `again` repeats the call there, `once` does not;
/// - optionally `needs`, a right of the plugin, with the answer of a plugin that does not have it; `when_off`, the answer of a plugin that is switched off; `then`, a method that completes the answer; and
///   `note`, a method of the slot that sees the answer.
macro_rules! for_each_kind {
    ($callback:ident) => {
        $callback! {
            /// Decides when the conversation is compacted, and into what.
            ContextEngine {
                /// Another model serves the session from now on.
                model_changed(model: &Model) -> () {
                    "model-changed", running.model_changed, ENGINE_WRITE, again
                }
                /// The user took back this message and all later ones. Instances that do not run learn it when they start.
                rewound(first: MessageId) -> () { "rewound", running.rewound, ENGINE_WRITE, again }
                /// After every reply and before every request.
                assess(pressure: &Pressure) -> Advice { "assess", foreground.assess, ENGINE_READ, again }
                /// A step of slow work; it never delays the other functions.
                prepare(request: &PlanRequest) -> Progress { "prepare", background.prepare, ENGINE_WRITE, again }
                /// A new view, or none.
                propose(request: &PlanRequest) -> Option<Plan> {
                    "propose", foreground.propose, ENGINE_WRITE, again, then bounded_plan
                }
                /// Tells the engine what became of the plan it has just proposed.
                settled(outcome: &Outcome) -> () { "settled", foreground.settled, ENGINE_WRITE, again }
                /// A JSON object for `/context`.
                status() -> String { "status", foreground.status, ENGINE_READ, again, then bounded_status }
            }
            /// Brings back passages of folded messages without being asked.
            ContextAssist {
                /// Passages for a message that is about to take its final form, best first, in at most `budget` tokens.
                assist(draft: AssistDraft, budget: u32) -> Vec<Quote> {
                    "assist", foreground.assist, ENGINE_READ, again
                }
            }
            /// Recall across sessions.
            MemoryProvider {
                /// Text for the system prompt; may be empty.
                system_prompt() -> String {
                    "system-prompt", foreground.system_prompt, READ, again, then bounded_prompt
                }
                /// Memories that match the user's message. The caller decides how long it waits: the call may take as long as
                /// one in the background.
                recall(query: Query) -> Vec<Recollection> {
                    "recall", foreground.recall_at_leisure, READ, again, when_off Vec::new(), then bounded_recollections
                }
                /// Stores a turn, at least once; it never delays the other functions.
                sync_turn(turn: &TurnRecord) -> () { "sync-turn", background.sync_turn, WRITE, again }
            }
            /// Further events of a memory provider.
            MemoryEvents {
                /// What a summary of these messages should keep; it never delays the other functions.
                before_compact(messages: MessageRange) -> String {
                    "before-compact", background.before_compact, READ, again, when_off String::new(), then bounded_keep
                }
            }
            /// Recalls ahead of the next message.
            MemoryPrefetch {
                /// For the turn after the one that ended; it delays no other function.
                prefetch(outlook: Outlook) -> Vec<Recollection> {
                    "prefetch", recipe.prefetch, READ, again, when_off Vec::new(), then bounded_recollections
                }
            }
            /// Sees what other memory providers of the session write.
            MemoryMirror {
                /// Another provider wrote; it never delays the other functions.
                written(write: MemoryWrite) -> () { "written", background.written, WRITE, once }
            }
            /// Learns about messages that the user took back.
            MemoryRewind {
                /// This message of the session and all later ones are gone.
                turns_rewound(session: String, first: MessageId) -> () {
                    "rewound", background.turns_rewound, WRITE, again
                }
            }
            /// Cares for its store.
            MemoryUpkeep {
                /// One step; it delays no other function.
                upkeep() -> Progress { "upkeep", recipe.upkeep, WRITE, once, when_off Progress::Done }
            }
            /// Functions that the model may call.
            Tools {
                /// The tools that the plugin offers.
                catalog() -> Vec<Tool> {
                    "catalog", foreground.catalog, READ, again, then bounded_tools, note remember_offer
                }
                /// Runs a tool; calls do not wait for each other. After a crash the model decides whether to call it
                /// again, because its effects are unknown.
                call(invocation: Invocation) -> Output { "call", recipe.call_tool, by_effect invocation, once, then bounded_output }
            }
            /// Says what a call of its tools would do.
            ToolPreview {
                /// For the approval of a call.
                preview(name: String, arguments: String) -> CallPreview {
                    "preview", foreground.preview, READ, again, then bounded_preview
                }
            }
            /// Instructions that are disclosed step by step.
            Skills {
                /// The skills that the plugin offers.
                index() -> Vec<Skill> { "index", foreground.skills, READ, again, then bounded_skills }
                /// A skill, or one of its files.
                view(name: String, path: Option<String>) -> SkillDocument { "view", foreground.skill, READ, again }
            }
            /// Watches the loop.
            Hooks {
                /// The events it subscribes to.
                interests() -> Vec<String> {
                    "interests", foreground.interests, READ, again, needs may_hook or Vec::new()
                }
                /// Delivers an event.
                on_event(event: Event) -> Verdict {
                    "on-event", foreground.on_event, WRITE, again, needs may_hook or Verdict::Proceed,
                    when_off Verdict::Proceed, then bounded_verdict
                }
            }
            /// Computes vectors of texts for the other plugins.
            Embedder {
                /// Its model, with the length of the vectors.
                describe() -> EmbeddingModel { "describe", vectors.describe, READ, again, then bounded_model }
                /// Vectors of texts, unchecked.
                embed(request: EmbeddingRequest) -> Vec<Vec<f32>> { "embed", vectors.embed, READ, again }
            }
        }
    };
}
pub(crate) use for_each_kind;

macro_rules! traits {
    ($($(#[$kind_doc:meta])* $kind:ident {
        $($(#[$doc:meta])* $function:ident($($argument:ident: $type:ty),*) -> $answer:ty { $($forwarding:tt)* })+
    })+) => {
        $(
            $(#[$kind_doc])*
            #[async_trait]
            pub trait $kind: Send + Sync {
                /// The plugin's name.
                fn name(&self) -> &str;
                $(
                    $(#[$doc])*
                    async fn $function(&self, $($argument: $type),*) -> Result<$answer, CallError>;
                )+
            }
        )+
    };
}

for_each_kind!(traits);
