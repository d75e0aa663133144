//! The page on errors has every code of the program. The laboratory checks its own rows.

use hermes_diagnostic::general;

use crate::failure::Kind;

#[test]
fn the_page_on_errors_has_one_row_for_each_code() {
    let page = include_str!("../../../docs/use/errors.md");
    let own = [general::ALL, hermes_conformance::codes::ALL, hermes_peer::codes::ALL].concat();
    let mut rows: Vec<String> = hermes_app::CODES
        .concat()
        .into_iter()
        .chain(own)
        .map(|code| {
            let exit = Kind::from(code.category()) as u8;
            format!("| `{}` | {exit} | {} |", code.name(), code.meaning())
        })
        .collect();
    rows.sort();
    let known = page.lines().filter(|line| line.starts_with("| `") && !line.starts_with("| `lab."));
    assert_eq!(known.collect::<Vec<_>>(), rows, "docs/use/errors.md needs these rows:\n{}", rows.join("\n"));
    let count = rows.len();
    rows.dedup_by_key(|row| row.split('`').nth(1).map(str::to_owned));
    assert_eq!(rows.len(), count, "two situations share a code");
}
