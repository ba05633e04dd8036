//! What every implementation of the port does, as checks that panic where one doesn't.
//!
//! [`conformance_tests!`](crate::conformance_tests) makes a test of each. Each check wants a store of its own, or one
//! in which nothing else is under the names that it uses.
#![expect(clippy::expect_used, clippy::missing_panics_doc, reason = "a check panics where an implementation is wrong")]

mod hooks;
mod reads;
mod samples;
mod sets;
mod transactions;
mod writes;

pub use hooks::lost_answers_are_resolved_by_write_id;
pub use reads::{
    a_skip_covers_its_times, backfills_of_one_job_only, effects_from_a_number_on_in_order,
    entries_of_all_buckets_come_earliest_first, entries_of_an_index_appear_and_vanish, instances_of_a_span_in_pages,
    jobs_are_listed, rejects_stand_in_the_order_of_the_input, results_beyond_a_megabyte_in_order,
    shards_of_one_group_only, skips_of_a_span,
};
pub use samples::{Samples, every_kind, transaction_token, write_id};
pub use sets::{
    a_full_group_is_added_to_its_generation_only, additions_commute_and_repeat, an_addition_makes_an_older_reader_lose,
    an_addition_without_an_item_is_missing,
};
pub use transactions::{
    a_refused_transaction_says_how_each_item_stood, a_token_applies_once, a_transaction_is_all_or_nothing,
    a_transaction_within_its_bounds,
};
pub use writes::{
    a_race_has_one_winner, a_row_rides_whatever_is_there, absence_is_guarded, an_item_within_its_bounds,
    an_owner_is_guarded_by_token_version_and_lease, every_kind_is_read_back_as_it_was_written,
    every_kind_with_versions_is_guarded, versions_are_guarded,
};

/// A test of each check, on what `$fixture` gives for the check's name: an async function to a pair of a store and
/// whatever must live as long.
#[macro_export]
macro_rules! conformance_tests {
    ($fixture:path) => {
        $crate::conformance_tests! { @each $fixture,
            absence_is_guarded,
            versions_are_guarded,
            every_kind_with_versions_is_guarded,
            an_owner_is_guarded_by_token_version_and_lease,
            a_row_rides_whatever_is_there,
            a_race_has_one_winner,
            an_item_within_its_bounds,
            every_kind_is_read_back_as_it_was_written,
            a_transaction_is_all_or_nothing,
            a_refused_transaction_says_how_each_item_stood,
            a_token_applies_once,
            a_transaction_within_its_bounds,
            additions_commute_and_repeat,
            an_addition_makes_an_older_reader_lose,
            an_addition_without_an_item_is_missing,
            a_full_group_is_added_to_its_generation_only,
            entries_of_an_index_appear_and_vanish,
            entries_of_all_buckets_come_earliest_first,
            jobs_are_listed,
            instances_of_a_span_in_pages,
            skips_of_a_span,
            a_skip_covers_its_times,
            backfills_of_one_job_only,
            shards_of_one_group_only,
            results_beyond_a_megabyte_in_order,
            rejects_stand_in_the_order_of_the_input,
            effects_from_a_number_on_in_order,
        }

        #[tokio::test]
        async fn lost_answers_are_resolved_by_write_id() {
            let (store, _kept) = $fixture("lost_answers_are_resolved_by_write_id").await;
            $crate::conformance::lost_answers_are_resolved_by_write_id(store).await;
        }
    };
    (@each $fixture:path, $($check:ident,)*) => {
        $(
            #[tokio::test]
            async fn $check() {
                let (store, _kept) = $fixture(stringify!($check)).await;
                $crate::conformance::$check(&store).await;
            }
        )*
    };
}
