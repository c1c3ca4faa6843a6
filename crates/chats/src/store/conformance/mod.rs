//! The laws that every back end keeps, each a sentence. A new back end is one more line in `backends!`; a new promise is one
//! more law, and all answer for it.

mod accounts;
mod chats;
pub(crate) mod device;
mod interleavings;
pub(crate) mod letters;
pub(crate) mod marks;
pub(crate) mod person;
mod rotation;
mod sessions;
pub(crate) mod snapshots;

use super::ChatStore;
use super::sqlite::SqliteChats;

/// A back end on a fresh namespace of its own, gone when this is.
struct Fresh {
    store: Box<dyn ChatStore>,
    /// The same store as another process has it.
    other: Box<dyn ChatStore>,
    _folder: Option<tempfile::TempDir>,
}

/// A folder in memory, where that can be had: these tests kill processes, not machines, and nobody waits for a disk.
pub(crate) fn fresh_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    folder.unwrap()
}

async fn sqlite() -> Option<Fresh> {
    let folder = fresh_folder();
    let open = || Box::new(SqliteChats::open(folder.path()).unwrap());
    Some(Fresh { store: open(), other: open(), _folder: Some(folder) })
}

#[cfg(feature = "postgres")]
async fn postgres() -> Option<Fresh> {
    on_postgres("CONFIDANT_TEST_POSTGRES").await
}

#[cfg(feature = "postgres")]
async fn postgres_over_tls() -> Option<Fresh> {
    on_postgres("CONFIDANT_TEST_POSTGRES_TLS").await
}

/// In a schema of its own, which goes with the server.
#[cfg(feature = "postgres")]
async fn on_postgres(variable: &str) -> Option<Fresh> {
    let link = super::postgres::tests::link(variable)?;
    let open = async || Box::new(super::postgres::open(&link).await.unwrap());
    Some(Fresh { store: open().await, other: open().await, _folder: None })
}

macro_rules! backends {
    ($($(#[$when:meta])? $backend:ident)+ : $laws:tt) => { $(backends!(@ $(#[$when])? $backend $laws);)+ };
    (@ $(#[$when:meta])? $backend:ident { $($file:ident: $($law:ident)+;)+ }) => {
        $(#[$when])?
        mod $backend {
            $($(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $law() {
                    if let Some(fresh) = super::$backend().await {
                        super::$file::$law(&fresh).await;
                    }
                }
            )+)+
        }
    };
}

backends! {
    sqlite
    #[cfg(feature = "postgres")] postgres
    #[cfg(feature = "postgres")] postgres_over_tls: {
        accounts:
            an_account_is_found_by_its_tags_and_changed_by_compare_and_set
            a_registration_is_whole_or_not_at_all
            a_pass_is_used_up_by_the_account_that_it_makes
            erasing_leaves_nothing_of_one_account_and_all_of_another
            an_erasure_that_has_begun_is_found_until_it_is_done
            a_lost_account_is_put_back_once_and_as_it_was_read
            a_lost_account_that_begins_anew_has_nothing_of_before
            data_is_compare_and_set_and_its_revision_never_goes_back;
        chats:
            a_chat_is_written_read_and_checked_by_another_device
            a_write_that_is_wrong_anywhere_changes_nothing
            deleted_ids_are_not_used_again
            of_two_writers_of_one_head_one_wins
            another_accounts_ids_are_not_found
            sizes_and_counts_are_limited
            drafts_are_not_part_of_the_head
            floors_and_manifest_follow_from_those_before
            changes_are_numbered_without_gaps
            chats_come_in_phases;
        interleavings:
            two_devices_never_break_an_invariant
            two_devices_at_once_lose_nothing;
        letters:
            a_letter_waits_until_it_is_taken
            a_reply_that_was_stored_needs_no_letter
            letters_come_in_order_as_many_as_fit
            letters_are_their_accounts_and_go_with_their_chat
            letters_are_limited_in_size_number_and_time
            a_safety_row_is_compare_and_set_and_goes_with_its_chat;
        marks:
            a_mark_is_due_when_nobody_holds_it_any_more
            a_mark_goes_with_its_letter_its_answer_and_its_chat
            marks_are_limited_in_size_number_and_time;
        rotation:
            a_rotation_replaces_every_entry_in_one_commit
            a_rotation_that_is_not_committed_changes_nothing
            an_early_or_wrong_commit_is_a_conflict
            rings_are_frozen_until_the_rotation_ends
            staged_floors_and_new_sessions_end_with_the_rotation;
        sessions:
            sessions_end_by_time_by_epoch_and_with_their_device
            a_device_gets_another_label
            a_code_counts_once_for_all_processes
            a_pairing_slot_is_answered_and_taken_once
            failures_are_counted_per_login_and_network;
        snapshots:
            a_snapshot_is_found_by_its_id_until_it_ends
            a_snapshot_is_its_accounts_and_goes_with_its_chat
            snapshots_are_limited_in_size_and_number;
    }
}
