//! The `hermes` binary.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    hermes_cli::start()
}
