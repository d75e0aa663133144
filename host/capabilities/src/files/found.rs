//! The results of a search.

/// A file, or a line in one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The path, relative to the root.
    pub path: String,
    /// The line number, starting at 1; 0 if the search was by glob alone.
    pub line: u32,
    /// The line, cut to 500 characters around the match; empty if the search was by glob alone.
    pub text: String,
}

/// A page of results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Findings {
    /// Sorted by the parts of the path, then by line.
    pub found: Vec<Found>,
    /// Whether there are more results.
    pub more: bool,
}
