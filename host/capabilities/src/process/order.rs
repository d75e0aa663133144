//! A plugin's request to run a program, and the program that was found for it.

use std::ffi::OsString;
use std::path::PathBuf;

use super::chain::Places;
use super::sandbox::Confinement;

/// A plugin's request to run a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// The program, exactly as it was granted.
    pub program: String,
    /// Each is one argument; there is no shell.
    pub arguments: Vec<String>,
    /// Variables that the plugin sets, with their values.
    pub environment: Vec<(String, String)>,
    /// The name of the granted folder.
    pub root: String,
    /// A directory relative to that folder.
    pub folder: String,
    /// Its standard input.
    pub input: Vec<u8>,
    /// Whether it runs in the background.
    pub background: bool,
    /// Whether its standard error goes into its standard output, so that the order of both is kept.
    pub merged: bool,
}

/// A program that was found. It may run if the user agrees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The program, exactly as it was granted.
    pub program: String,
    /// The path of the program.
    pub path: PathBuf,
    /// The same path with links resolved.
    pub real: PathBuf,
    /// The hash of the program and its interpreters, if plugins may change one of them. An approval holds for this hash only.
    pub pin: Option<String>,
    /// Where plugins may change programs.
    pub places: Places,
    /// Each is one argument; there is no shell.
    pub arguments: Vec<String>,
    /// The folder that it runs in.
    pub folder: PathBuf,
    /// Its standard input.
    pub input: Vec<u8>,
    /// Its whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// The part of it that the plugin sets.
    pub variables: Vec<(String, String)>,
    /// The names of the user's variables in it, which a right of their own grants.
    pub inherited: Vec<String>,
    /// Whether it runs in the background, until the session ends.
    pub background: bool,
    /// Whether its standard error goes into its standard output.
    pub merged: bool,
    /// How it is confined.
    pub confinement: Confinement,
}
