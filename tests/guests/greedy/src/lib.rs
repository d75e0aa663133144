//! A tool that opens files and sockets through the standard library. The component imports `wasi:filesystem` and `wasi:sockets`,
//! so the host must refuse it before any of its code runs.

use std::fs;
use std::net::TcpStream;

use hermes_plugin::tools::{Invocation, Output, Tool};
use hermes_plugin::{Error, Plugin, Tools};
use serde_json::{Value, json};

/// The plugin.
pub struct Greedy;

impl Plugin for Greedy {
    fn configure(_: &str) -> Result<Self, Error> {
        Ok(Self)
    }
}

impl Tools for Greedy {
    fn catalog(&self) -> Vec<Tool> {
        let text = json!({ "type": "string" });
        let parameters = json!({ "type": "object", "properties": { "path": text, "address": text } });
        vec![Tool::new("grab", "Reads a file, or connects to an address.", parameters)]
    }

    fn call(&mut self, invocation: &Invocation) -> Result<Output, Error> {
        let arguments: Value = invocation.parse()?;
        let grabbed = match (arguments["path"].as_str(), arguments["address"].as_str()) {
            (Some(path), _) => fs::read_to_string(path),
            (None, Some(address)) => TcpStream::connect(address).map(|_| "connected".to_owned()),
            (None, None) => return Err(Error::invalid("path or address is missing")),
        };
        grabbed.map(Output::text).map_err(|error| Error::failed(error.to_string()))
    }
}

hermes_plugin::export!(Greedy: Tools);
