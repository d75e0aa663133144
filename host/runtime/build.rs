//! Tells the crate what it is built for: a plugin names its native libraries by target.

fn main() {
    let target = std::env::var("TARGET").expect("cargo says what it builds for");
    println!("cargo::rustc-env=HERMES_TARGET={target}");
    println!("cargo::rerun-if-changed=build.rs");
}
