"""Modules whose tests run twice: with sessions in files, and with sessions in a database, without a change.

The fixture `sessions_in` of conftest.py does it, with DAYPACK_STORE_URL. All tests of a process share one database,
which is emptied after each.
"""

from functools import cache

import postgres_server
import psycopg

MODULES = frozenset(
    {
        "cli/test_accept.py",
        "cli/test_append.py",
        "cli/test_budget.py",
        "cli/test_child.py",
        "cli/test_compact.py",
        "cli/test_compactions.py",
        "cli/test_diff.py",
        "cli/test_explain.py",
        "cli/test_export.py",
        "cli/test_find.py",
        "cli/test_import.py",
        "cli/test_import_envelope.py",
        "cli/test_log.py",
        "cli/test_observed_turns.py",
        "cli/test_pack.py",
        "cli/test_prepare.py",
        "cli/test_question.py",
        "cli/test_recall.py",
        "cli/test_redaction.py",
        "cli/test_replay.py",
        "cli/test_rules.py",
        "cli/test_search.py",
        "cli/test_session.py",
        "cli/test_session_names.py",
        "cli/test_switch.py",
        "cli/test_tiers.py",
        "cli/test_turn_summary.py",
        "cli/test_turns.py",
        "cli/test_undo.py",
        "history/test_calls.py",
        "history/test_message_events.py",
        "history/test_parts.py",
        "history/test_resolve.py",
        "history/test_session.py",
        "session/test_close.py",
        "session/test_repeats.py",
        "derived/test_children.py",
        "turn/test_accept.py",
        "turn/test_compaction.py",
        "turn/test_compaction_again.py",
        "turn/test_epochs.py",
        "turn/test_ledger.py",
        "turn/test_memory_binding.py",
        "turn/test_missing.py",
        "turn/test_prepare.py",
        "turn/test_questions.py",
        "turn/test_recall.py",
        "turn/test_replies.py",
        "turn/test_rules.py",
        "turn/test_streams.py",
        "turn/test_tools.py",
        "turn/test_working_state.py",
        "turn/evidence/test_envelope.py",
        "turn/evidence/test_record.py",
        "turn/evidence/test_replay.py",
        "upkeep/test_rebuild.py",
    }
)
# Tests in them that are about files as such, by the reason.
_OF_FILES = {
    "the folder is the only copy: a damaged, edited or deleted file there is damage; a cache is fetched again": (
        "history/test_session.py::test_a_replaced_log_is_noticed_by_open_sessions",
        "history/test_session.py::test_a_session_whose_log_was_deleted_is_not_silently_begun_anew",
        "history/test_session.py::test_a_torn_tail_found_twice_is_kept_once",
        "history/test_session.py::test_a_torn_tail_is_moved_aside_and_told_in_an_event",
        "history/test_message_events.py::test_looking_writes_nothing",
        "derived/test_children.py::test_an_event_that_cannot_be_had_again_is_warned_of",
        "turn/test_recall.py::test_a_message_that_was_changed_since_is_not_passed_off_as_what_left",
        "turn/test_tools.py::test_a_lost_definition_is_reported",
        "turn/evidence/test_replay.py::test_a_message_that_an_excerpt_quotes_is_missed_when_it_is_lost",
        "turn/evidence/test_replay.py::test_a_message_that_was_changed_makes_replay_fail",
        "turn/evidence/test_replay.py::test_a_message_that_was_edited_and_lost_its_seal_makes_replay_fail",
        "turn/evidence/test_replay.py::test_every_blob_of_a_turn_is_needed_and_checked",
        "upkeep/test_rebuild.py::test_a_rebuild_leaves_a_torn_line_to_the_next_append",
        "upkeep/test_rebuild.py::test_a_turn_that_cannot_be_replayed_is_reported_and_the_rest_is_rebuilt",
        "upkeep/test_rebuild.py::test_verify_reports_that_the_newest_turn_cannot_be_replayed",
    ),
    "lines are written by hand, which only a log of files takes": (
        "history/test_calls.py::test_a_result_after_lines_written_by_hand_finds_its_call",
        "history/test_message_events.py::test_lines_written_by_hand_and_by_older_versions_get_their_events",
    ),
    "it is about syncs and full disks; an append to a database does not depend on the disk here": (
        "history/test_message_events.py::test_no_append_syncs_a_second_time",
        "turn/test_accept.py::test_a_full_disk_refuses_the_reply_and_the_next_one_is_taken",
        "turn/test_working_state.py::test_a_full_disk_refuses_the_compaction_and_nothing_changes",
    ),
    "several homes are meant to have different sessions of one name": (
        "derived/test_children.py::test_an_error_at_any_call_leaves_all_of_a_child_or_none",
        "turn/test_rules.py::test_a_rule_once_shown_disappears_only_by_a_drop_a_later_rule_or_the_cap",
        "upkeep/test_rebuild.py::test_the_next_turn_is_the_same_whether_context_was_deleted_or_not",
    ),
    "the test writes config.toml into a folder that only a memory in files has": (
        "turn/test_memory_binding.py::test_the_settings_say_how_often_the_document_is_written",
    ),
    "the test damages the log of a folder, which is fetched again from the database": (
        "cli/test_diff.py::test_turns_that_cannot_be_proved_are_still_compared",
        "cli/test_observed_turns.py::test_a_request_that_changed_or_is_unknown_is_not_verified",
        "cli/test_recall.py::test_an_id_that_stands_for_other_words_now_is_damage",
        "cli/test_replay.py::test_a_difference_is_told_and_exits_with_3",
        "cli/test_replay.py::test_an_event_that_cannot_be_read_is_damage_also_when_the_others_verify",
        "cli/test_replay.py::test_turns_that_fail_among_all_are_named",
        "cli/test_session.py::test_a_damaged_session_keeps_its_row",
        "cli/test_session.py::test_tokens_of_many_foreign_lines_are_not_counted_for_a_list",
        "cli/test_turns.py::test_damaged_events_are_reported",
    ),
    "a user without rights to the files has none to the socket of the database either": (
        "cli/test_find.py::test_a_home_that_cannot_be_written_is_searched",
        "cli/test_session_names.py::test_an_unreadable_home_is_permission_denied_with_its_owner",
        "cli/test_session_names.py::test_an_unreadable_session_is_permission_denied",
    ),
    "an archive has files": (
        "cli/test_session_names.py::test_a_session_is_deleted_or_archived_by_its_whole_name_only",
    ),
    "it counts the functions that a turn calls": (
        "turn/test_prepare.py::test_a_plain_turn_passes_through_few_files_and_functions",
    ),
    "a file that a cache lacks is no difference": (
        "upkeep/test_rebuild.py::test_verify_reports_edited_and_missing_files",
    ),
}
_ATTEMPTS = 5
_TABLES = (
    "SELECT relname FROM pg_class WHERE relnamespace = 'daypack'::regnamespace AND relkind IN ('r', 'p')"
    " AND NOT relispartition AND relname NOT IN ('store', 'migrations', 'audit_end')"
)
FILES_ONLY = frozenset(name for names in _OF_FILES.values() for name in names)


@cache
def shared_database() -> str:
    """Return the address of the database that the tests of this process use one after the other."""
    return postgres_server.new_database()


def empty_database(url: str) -> None:
    """Remove everything that a test stored; DELETE, because TRUNCATE of all partitions takes longer than most tests.

    A process that a test left in the background may still be writing, so a deadlock is tried again.
    """
    for attempt in range(_ATTEMPTS):
        try:
            with psycopg.connect(url) as connection:
                for (name,) in connection.execute(_TABLES).fetchall():
                    connection.execute(f"DELETE FROM daypack.{name}".encode())
        except psycopg.errors.DeadlockDetected:
            if attempt == _ATTEMPTS - 1:
                raise
        else:
            return
