//! The codes of failures that have none of their own: one for each category.

crate::codes! {
    /// The codes by category. Their names begin with `cli`, where the first of them were reported.
    mod codes {
        READER_GONE = "cli.reader-gone", Category::ReaderGone, "the reader of standard output closed it";
        GENERAL = "cli.general", Category::General, "any other failure of a command";
        USAGE = "cli.usage", Category::Usage, "the command line is invalid";
        CONFIGURATION = "cli.configuration", Category::Configuration, "a setting or file of the user cannot be used";
        MODEL = "cli.model", Category::Model, "the model cannot be used";
        PLUGIN = "cli.plugin", Category::Plugin, "a command on a plugin failed";
        STORE = "cli.store", Category::Store, "a command on stored sessions failed";
        IN_USE = "cli.in-use", Category::InUse, "another process is working on the session";
        BUDGET = "cli.budget", Category::Budget, "the turn used up its requests to the model";
        CUT = "cli.cut", Category::Cut, "the reply reached the model's output limit, so the answer is not whole";
        INTERRUPTED = "cli.interrupted", Category::Interrupted, "the user pressed ctrl-c";
    }
}

use crate::{Category, Code};

pub use codes::ALL;

impl From<Category> for Code {
    /// The code of a failure of this category that has none of its own.
    fn from(category: Category) -> Self {
        match category {
            Category::ReaderGone => codes::READER_GONE,
            Category::General => codes::GENERAL,
            Category::Usage => codes::USAGE,
            Category::Configuration => codes::CONFIGURATION,
            Category::Model => codes::MODEL,
            Category::Plugin => codes::PLUGIN,
            Category::Store => codes::STORE,
            Category::InUse => codes::IN_USE,
            Category::Budget => codes::BUDGET,
            Category::Cut => codes::CUT,
            Category::Interrupted => codes::INTERRUPTED,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_general_code_of_each_category_is_of_that_category() {
        let categories: Vec<Category> = ALL.iter().map(|code| code.category()).collect();
        for (at, category) in categories.iter().enumerate() {
            assert!(!categories[..at].contains(category), "{category:?} has two general codes");
            // The code decides the exit status, by which scripts tell a cut reply from a failed command.
            assert_eq!(Code::from(*category), ALL[at], "{category:?}");
        }
    }
}
