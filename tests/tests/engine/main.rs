//! The engine under faults that are enumerated and faults that are drawn.
#![expect(clippy::panic, clippy::unwrap_used, reason = "tests panic where something is wrong")]

mod announce;
mod answers;
mod budget;
mod crash;
mod failures;
mod happy;
mod late;
mod learned;
mod lease;
mod mail;
mod many_rows;
mod outbox;
mod parallel;
mod pause;
mod place;
mod planning;
mod rules;
mod simulation;
mod slots;
mod split;
mod steps;
