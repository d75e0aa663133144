//! Publishing a packed plugin.

use hermes_install::Push;

use super::installation::Downloads;
use crate::{AppError, Reporter};

/// Writes a prepared image to its registry, its tag last: a push that is interrupted leaves the tag as it was.
///
/// # Errors
///
/// When the registry refuses a part.
pub async fn push_image(push: Push<'_>, reporter: &dyn Reporter) -> Result<(), AppError> {
    Ok(push.write(&Downloads(reporter)).await?)
}
