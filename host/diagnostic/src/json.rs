//! Words for errors of the JSON parser.

use serde_json::error::Category;

/// Why a file is not the expected JSON, and where, as a clause for the user. It may quote the file, so it is not for files
/// with secrets.
///
/// ```
/// let error = serde_json::from_str::<Vec<u32>>("[1,\n 2").unwrap_err();
/// assert_eq!(hermes_diagnostic::json_fault(&error), "line 2, column 2: the JSON is incomplete");
/// ```
pub fn json_fault(error: &serde_json::Error) -> String {
    let (line, column) = (error.line(), error.column());
    let message = error.to_string();
    let what = message.rsplit_once(" at line ").map_or(message.as_str(), |(what, _)| what);
    let what = match error.classify() {
        Category::Eof if (line, column) == (1, 0) => return "the file is empty".to_owned(),
        Category::Eof => "the JSON is incomplete".to_owned(),
        Category::Syntax if matches!(what, "expected value" | "expected ident") => "a JSON value is missing".to_owned(),
        Category::Syntax => format!("this is not valid JSON: {what}"),
        Category::Data | Category::Io => what.to_owned(),
    };
    // An error of a value that was already parsed has no position.
    if line == 0 { what } else { format!("line {line}, column {column}: {what}") }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn fault(text: &str) -> String {
        json_fault(&serde_json::from_str::<Vec<u32>>(text).unwrap_err())
    }

    #[test]
    fn an_error_has_a_position_and_no_words_of_the_parser_for_a_cut_file() {
        assert_eq!(fault(""), "the file is empty");
        assert_eq!(fault("[1,\n2,\n3"), "line 3, column 1: the JSON is incomplete");
        assert_eq!(fault("[1,\n \"a"), "line 2, column 3: the JSON is incomplete");
        assert_eq!(fault("notes"), "line 1, column 2: a JSON value is missing");
        assert_eq!(fault("[1,]"), "line 1, column 4: this is not valid JSON: trailing comma");
        assert!(fault("{}").starts_with("line 1, column 0: invalid type: map"), "{}", fault("{}"));
    }
}
