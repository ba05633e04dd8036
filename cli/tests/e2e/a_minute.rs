//! The one test that waits for a real minute to begin. In a module of its own so that it comes first: libtest starts
//! tests in the order of their names, and the others run meanwhile.

#[test]
fn the_timer_plans_and_publishes_an_instance_also_when_the_process_is_killed_in_between() {
    crate::up::a_minute_passes();
}
