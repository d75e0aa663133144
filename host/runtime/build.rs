//! Passes the build target to the crate: a plugin names its native libraries by target.

fn main() {
    let target = std::env::var("TARGET").expect("cargo sets TARGET");
    println!("cargo::rustc-env=HERMES_TARGET={target}");
    println!("cargo::rerun-if-changed=build.rs");
}
