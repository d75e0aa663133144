//! List prices: those in use, and their replacement by those of the user.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use hermes_diagnostic::{Fix, Notice};

use crate::{AppError, Setup};

pub use hermes_models::{Price, Prices};

/// Why the prices were not replaced. `Display` gives the cause.
#[derive(Debug, thiserror::Error)]
pub enum PricesError {
    /// The file cannot be read.
    #[error("{} cannot be read: {source}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file has another form.
    #[error("{}: {why}", file.display())]
    Form {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The copy in the home cannot be written.
    #[error("{} cannot be written: {source}", file.display())]
    Unwritable {
        /// The copy.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The home cannot be used.
    #[error(transparent)]
    Home(Box<AppError>),
}

impl Setup {
    /// The list prices of models: the built-in ones with those of `prices.json`. If that file is invalid, only the built-in
    /// prices count, and the notice says why.
    pub fn prices(&self) -> (Prices, Option<Notice>) {
        let file = self.home.prices();
        let read = match hermes_private_files::read_text(&file, Prices::LARGEST) {
            Ok(text) => Prices::of_file(&text).map_err(|flaw| flaw.to_string()),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return (Prices::built_in(), None);
            }
            Err(error) => Err(error.to_string()),
        };
        match read {
            Ok(prices) => (prices, None),
            Err(why) => {
                let text = format!("{} is not used, so the built-in prices count: {why}", file.display());
                let fix = Fix::words("replace it with `hermes usage prices FILE`").or("remove it");
                (Prices::built_in(), Some(Notice::new(text, fix)))
            }
        }
    }

    /// Keeps the prices of a file in the home, and returns the prices that are in use from now on.
    ///
    /// # Errors
    ///
    /// When the file cannot be read or has another form, or the home cannot be written.
    pub fn keep_prices(&self, file: &Path) -> Result<Prices, PricesError> {
        let named = || file.to_owned();
        let text = hermes_private_files::read_text(file, Prices::LARGEST)
            .map_err(|source| PricesError::Unreadable { file: named(), source })?;
        let prices =
            Prices::of_file(&text).map_err(|flaw| PricesError::Form { file: named(), why: flaw.to_string() })?;
        self.own().map_err(|error| PricesError::Home(Box::new(error)))?;
        let kept = self.home.prices();
        hermes_private_files::write_whole(&kept, text.as_bytes())
            .map_err(|source| PricesError::Unwritable { file: kept, source })?;
        Ok(prices)
    }

    /// Uses only the built-in prices again, and returns whether the home had others.
    ///
    /// # Errors
    ///
    /// When the file of the home cannot be removed.
    pub fn forget_prices(&self) -> io::Result<bool> {
        match std::fs::remove_file(self.home.prices()) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}
