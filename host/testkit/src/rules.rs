//! The rules for every [`SessionStore`], one function each. [`crate::session_store_rules!`] generates tests from them.

#![allow(clippy::unwrap_used, reason = "a rule fails by panicking, as a test does")]
#![allow(missing_docs, reason = "the names are the rules")]

mod catalogue;
mod deletion;
mod log;
mod outbox;
mod recall;
mod requests;
mod rewind;
mod sessions;
mod titles;
mod views;

use std::fmt::Debug;

use hermes_conversation::{Draft, Message, MessageId, MessageRange, Model, SessionId};
use hermes_session_store::{NewSession, Parent, ParentKind, Session, SessionError, SessionStore, StoreError};

pub use self::catalogue::*;
pub use self::deletion::*;
pub use self::log::*;
pub use self::outbox::*;
pub use self::recall::*;
pub use self::requests::*;
pub use self::rewind::*;
pub use self::sessions::*;
pub use self::titles::*;
pub use self::views::*;

/// Generates one test per rule. `$open` is an async function that returns a new, empty store together with a guard that
/// keeps it alive, such as its temporary folder.
#[macro_export]
macro_rules! session_store_rules {
    ($open:path) => {
        $crate::session_store_rules! { $open;
            a_session_is_returned_as_it_was_created
            a_model_and_an_engine_are_replaced
            calls_about_an_unknown_session_name_it
            leases_exclude_each_other_until_they_are_dropped
            notes_and_engine_faults_are_kept_until_they_are_replaced
            delegated_tasks_are_numbered_by_session_and_replaced
            messages_are_returned_as_they_were_appended
            an_append_is_all_or_nothing_and_ordered
            parallel_appends_lose_nothing
            a_branch_shows_its_parents_conversation_up_to_its_start
            a_search_finds_only_what_the_conversation_shows
            a_recall_finds_what_other_conversations_show
            a_recall_is_filtered_and_shows_neighbours
            conversations_are_listed_and_found_by_title
            views_round_trip_and_the_newest_is_in_force
            a_summary_never_changes_under_its_key
            a_branch_inherits_the_view_of_its_start
            rewound_messages_are_hidden_and_can_be_restored
            a_rewind_hides_the_views_that_reach_beyond_it
            parent_and_branch_rewind_independently
            frozen_prompts_are_numbered_and_inherited
            requests_are_numbered_and_summed_up
            a_request_is_recorded_before_its_reply_and_completed_once
            the_last_request_and_usage_are_found_by_message_and_route
            past_requests_of_all_sessions_are_found_by_route_and_time
            titles_are_cleaned_and_unique
            titles_are_numbered_in_a_branch_and_move_to_a_continuation
            a_deletion_takes_delegates_and_spares_inherited_messages
            a_leased_session_is_not_deleted
            only_a_session_in_which_nothing_was_said_is_discarded
            a_turn_ends_and_enters_the_outbox_in_one_write
            queued_turns_leave_in_order_and_a_rejected_one_is_passed_over
            rewound_turns_are_not_delivered
            a_delivery_lease_is_apart_for_each_session_and_provider
            a_session_is_found_by_what_a_person_types
            all_sessions_are_searched_with_snippets
            an_export_is_imported_once_and_waits_for_the_user_if_it_is_a_strangers
            old_sessions_are_pruned_as_the_user_agreed
            usage_is_told_by_time_and_session
            finished_turns_are_queued_once_and_sent_again_at_will
            a_store_counts_what_it_has_and_finds_no_damage
        }
    };
    ($open:path; $($rule:ident)*) => {
        $(
            #[tokio::test]
            async fn $rule() {
                let (_guard, store) = $open().await;
                $crate::rules::$rule(&store).await;
            }
        )*
    };
}

fn model() -> Model {
    Model { provider: "offline".into(), name: "offline".into(), context_length: 32_000 }
}

fn new_session() -> NewSession {
    NewSession {
        source: "cli".into(),
        workspace: "/home/ada/engine".into(),
        engine: "compressor".into(),
        model: model(),
        title: None,
        frozen: None,
        started_at: 1_795_300_000_000,
        parent: None,
    }
}

async fn created(store: &dyn SessionStore) -> Session {
    store.create_session(new_session()).await.unwrap()
}

async fn child(store: &dyn SessionStore, of: &Session, kind: ParentKind, through: Option<MessageId>) -> Session {
    let parent = Some(Parent { id: of.id.clone(), kind, through });
    store.create_session(NewSession { parent, ..new_session() }).await.unwrap()
}

/// Appends one message per letter: capitals are the user's, the others the model's.
async fn say(store: &dyn SessionStore, session: &Session, letters: &str) -> Vec<MessageId> {
    let drafts: Vec<Draft> = letters
        .chars()
        .map(|letter| match letter.is_uppercase() {
            true => Draft::user(letter.to_string(), 1),
            false => Draft::assistant(letter.to_string(), Vec::new(), 1),
        })
        .collect();
    store.append(&session.id, &drafts).await.unwrap().iter().map(|message| message.id).collect()
}

fn letters(messages: &[Message]) -> String {
    messages.iter().map(|message| message.content.as_str()).collect()
}

async fn said(store: &dyn SessionStore, session: &Session) -> String {
    letters(&store.conversation(&session.id).await.unwrap())
}

fn range(first: MessageId, last: MessageId) -> MessageRange {
    MessageRange::new(first, last)
}

fn nobody() -> SessionId {
    SessionId("20260101_000000_ffffff".into())
}

/// The rule that refused a call.
#[track_caller]
fn refused<T: Debug>(result: Result<T, StoreError>) -> SessionError {
    match result {
        Err(StoreError::Session(error)) => error,
        other => panic!("expected the store to refuse the call, got {other:?}"),
    }
}
