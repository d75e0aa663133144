//! The terms of a comparison on a command line.

use hermes_engine_trials::Terms;

use crate::LabError;

/// The terms with another window.
///
/// # Errors
///
/// [`LabError::Terms`] if system prompt and tools leave too little of the window.
pub fn with_window(terms: Terms, window: u32) -> Result<Terms, LabError> {
    let least = terms.fixed_tokens.saturating_mul(2);
    if window < least {
        return Err(LabError::Terms { window, fixed: terms.fixed_tokens, least });
    }
    Ok(Terms { window, ..terms })
}
