//! Returns a picture, or nothing at all: the tools `snap` and `blink`.

use hermes_plugin::tools::{Effect, Image, Invocation, Output, Tool};
use hermes_plugin::{Error, Plugin, Tools};
use serde_json::json;

/// The start of a PNG picture of 2 by 3 pixels.
const PICTURE: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x02\0\0\0\x03\x08\x02\0\0\0";

/// The plugin.
pub struct Camera;

impl Plugin for Camera {
    fn configure(_: &str) -> Result<Self, Error> {
        Ok(Self)
    }
}

impl Tools for Camera {
    fn catalog(&self) -> Result<Vec<Tool>, Error> {
        let tool = |name, description| {
            let tool = Tool::new(name, description, json!({ "type": "object" }));
            tool.toolset("camera").effect(Effect::Reads).parallel(true)
        };
        Ok(vec![tool("snap", "Takes a picture."), tool("blink", "Opens the shutter without a film.")])
    }

    fn call(&mut self, invocation: &Invocation) -> Result<Output, Error> {
        match invocation.name.as_str() {
            "snap" => Ok(Output::text("a shot of the harbour").image(Image::Bytes(PICTURE.to_vec()))),
            "blink" => Ok(Output::text("")),
            _ => Err(invocation.unknown()),
        }
    }
}

hermes_plugin::export!(Camera: Tools);
