//! The import `notes` of the draft in `tests/draft-1.2`.

use hermes_bindings::imported;
use imported::types::Error;

use crate::context::Context;
use crate::convert::fault;
use crate::error::{Fault, FaultKind};

/// The most bytes of a note.
const NOTE: usize = 200;

impl imported::notes::Host for Context {
    async fn show(&mut self, text: String) -> Result<(), Error> {
        if text.len() > NOTE {
            let why = format!("the note has more than {NOTE} bytes: shorten it");
            return Err(fault(Fault::new(FaultKind::InvalidInput, "too-long", why)));
        }
        self.services.reporter.progress(&text);
        Ok(())
    }
}
