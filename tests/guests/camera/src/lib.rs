//! Returns a picture: the tool `snap`.

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
        let snap = Tool::new("snap", "Takes a picture.", json!({ "type": "object" }));
        Ok(vec![snap.toolset("camera").effect(Effect::Reads).parallel(true)])
    }

    fn call(&mut self, invocation: &Invocation) -> Result<Output, Error> {
        match invocation.name.as_str() {
            "snap" => Ok(Output::text("a shot of the harbour").image(Image::Bytes(PICTURE.to_vec()))),
            _ => Err(invocation.unknown()),
        }
    }
}

hermes_plugin::export!(Camera: Tools);
