//! The `shardcron` command, with the built-in works.

use std::process::ExitCode;

use shardcron_work::Works;

fn main() -> ExitCode {
    shardcron_cli::main(Works::builtin())
}
