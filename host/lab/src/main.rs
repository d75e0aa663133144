//! The program `hermes-lab`.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    hermes_lab::start()
}
