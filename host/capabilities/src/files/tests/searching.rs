//! What a search finds and skips, and when it stops.

use std::cell::Cell;
use std::fs;

use super::super::*;
use super::Fixture;
use crate::FaultKind;

/// A tree with ignore files, hidden files and files that no search should find.
fn tree() -> Fixture {
    let fixture = Fixture::new();
    for (path, content) in [
        (".gitignore", "target/\n*.log\n!keep.log\n/only-here.txt\n[\n"),
        (".ignore", "vendor/\n"),
        (".git/config", "needle"),
        (".github/workflows/ci.yml", "needle"),
        ("README.md", "needle\r\nhay\r\nneedle"),
        ("a.log", "needle"),
        ("keep.log", "needle"),
        ("only-here.txt", "needle"),
        ("src/.gitignore", "!a.log\ngenerated.rs\n"),
        ("src/a.log", "Needle"),
        ("src/deep/lib.rs", "hay\nneedle\n\n"),
        ("src/generated.rs", "needle"),
        ("src/only-here.txt", "needle"),
        ("target/out.rs", "needle"),
        ("vendor/dep.rs", "needle"),
    ] {
        let path = fixture.at("root").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    fs::write(fixture.at("root/binary.rs"), b"needle\0").unwrap();
    fs::write(fixture.at("root/latin.rs"), b"caf\xe9 needle\n").unwrap();
    fixture
}

#[test]
fn globs_find_what_users_expect() {
    let fixture = tree();
    let rust = ["binary.rs", "latin.rs", "src/deep/lib.rs", "src/main.rs"];
    for (glob, expected) in [
        ("*.rs", &rust[..]),
        ("**/*.rs", &rust),
        ("./**/*.rs", &rust),
        ("src/*.rs", &["src/main.rs"]),
        ("src/**/*.rs", &rust[2..]),
        ("src/", &["src/a.log", "src/deep/lib.rs", "src/main.rs", "src/only-here.txt"]),
        ("{src/deep,src}/*.rs", &rust[2..]),
        ("README.md", &["README.md"]),
        ("s?c/[a-m]*", &["src/a.log", "src/main.rs"]),
        ("*.log", &["keep.log", "src/a.log"]),
        ("*.yml", &[]),
        (".github/**", &[".github/workflows/ci.yml"]),
        (".git/**", &[]),
        ("target/**", &[]),
        ("home/*", &[]),
    ] {
        assert_eq!(fixture.globbed(glob), expected, "{glob}");
    }
    let files = fixture.search("README.md", None).unwrap();
    assert_eq!(files, [Found { path: "README.md".to_owned(), line: 0, text: String::new() }]);
}

#[test]
fn lines_are_found_in_text_files_with_their_numbers() {
    let fixture = tree();
    let lines = |pattern: &str| -> Vec<String> {
        let found = fixture.search("**", Some(pattern)).unwrap();
        found.into_iter().map(|found| format!("{}:{}:{}", found.path, found.line, found.text)).collect()
    };
    let expected = [
        "README.md:1:needle",
        "README.md:3:needle",
        "keep.log:1:needle",
        "latin.rs:1:café needle",
        "src/deep/lib.rs:2:needle",
        "src/only-here.txt:1:needle",
    ];
    assert_eq!(lines("needle"), expected);
    assert_eq!(lines("^needle$").len(), 5);
    assert_eq!(lines("^$"), ["src/deep/lib.rs:3:"]);
    assert_eq!(lines("hay\nneedle"), [""; 0]);

    let pattern = Pattern { regex: "NEEDLE".to_owned(), ignore_case: true };
    let page =
        |offset, limit| fixture.roots.search("workspace", "**", Some(&pattern), offset, limit, &|| false).unwrap();
    let all = page(0, u32::MAX);
    assert_eq!((all.found.len(), all.more), (7, false));
    for size in 1..=8 {
        let mut paged = Vec::new();
        loop {
            let next = page(u32::try_from(paged.len()).unwrap(), size);
            paged.extend(next.found);
            if !next.more {
                break;
            }
        }
        assert_eq!(paged, all.found, "{size}");
    }
    assert_eq!(page(0, 0), Findings { found: Vec::new(), more: true });

    fs::File::create(fixture.at("root/large.txt")).unwrap().set_len(MAX_HASHED + 1).unwrap();
    assert_eq!(lines("needle"), expected);
}

#[test]
fn lines_are_searched_whole_in_files_of_any_size_and_encoding() {
    let fixture = Fixture::new();
    let (before, after) = ("x".repeat(1_500_000), "y".repeat(3_000_000));
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let large = "hay\n".repeat(usize::try_from(MAX_HASHED).unwrap() / 4 + 1000) + "needle at the end";
    for (path, content) in [
        ("a.min.js", format!("{before}needle{after}").into_bytes()),
        ("b.log", large.into_bytes()),
        ("c.txt", utf16("\u{feff}eins\r\nneedle für alle\r\n")),
        ("d.txt", utf16("one\nneedle\n")),
        ("e.txt", b"\x82\xa0\x82\xa2\x82\xa4\x82\xa6\x82\xa8 needle \x95\\\x8e\xa6\n".to_vec()),
        ("f.txt", b"one\rneedle\rthree".to_vec()),
    ] {
        fs::write(fixture.at("root").join(path), content).unwrap();
    }
    let found = fixture.search("*", Some("needle")).unwrap();
    let places: Vec<_> = found.iter().map(|found| (found.path.as_str(), found.line)).collect();
    let last = u32::try_from(MAX_HASHED).unwrap() / 4 + 1001;
    assert_eq!(places, [("a.min.js", 1), ("b.log", last), ("c.txt", 2), ("d.txt", 2), ("e.txt", 1), ("f.txt", 2)]);
    assert!(found[0].text.contains("xneedley") && found[0].text.chars().count() == 500, "{}", found[0].text);
    assert_eq!(found[2].text, "needle für alle");
    assert_eq!(found[4].text, "あいうえお needle 表示");
    // Half of a character is not the character that its byte means in ASCII.
    assert_eq!(fixture.search("e.txt", Some(r"\\")).unwrap(), []);
}

#[cfg(unix)]
#[test]
fn a_search_says_what_it_left_out_if_it_is_asked() {
    use std::os::unix::ffi::OsStrExt as _;

    let fixture = tree();
    let write = |path: &str, content: &[u8]| fs::write(fixture.at("root").join(path), content).unwrap();
    for name in ["1.png", "2.png", "3.png", "4.png"] {
        write(name, b"\x89PNG\0\0");
    }
    write("utf32.txt", b"\xff\xfe\0\0n\0\0\0");
    write("empty.txt", b"");
    fs::write(fixture.at("root").join(std::ffi::OsStr::from_bytes(b"caf\xe9")), "needle").unwrap();
    let asked = |glob: &str, regex: &str| fixture.search(glob, Some(&format!("(?<unsearched>){{0}}{regex}")));
    let (notes, found): (Vec<_>, Vec<_>) =
        asked("**", "needle|x").unwrap().into_iter().partition(|found| found.line == 0);
    assert_eq!(found, fixture.search("**", Some("needle|x")).unwrap());
    let texts: Vec<&str> = notes.iter().map(|note| note.text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "5 binary files (1.png, 2.png, 3.png, …)",
            "1 file in UTF-32 (utf32.txt)",
            "1 entry whose name is not UTF-8 (.)"
        ]
    );
    assert_eq!(asked("*.md", "hay").unwrap().len(), 1, "what the glob leaves out is not searched on purpose");
    // An error shows the expression as it was meant.
    let error = asked("**", "(").unwrap_err().to_string();
    assert!(!error.contains("unsearched"), "{error}");
}

#[test]
fn a_cancelled_search_stops() {
    let fixture = Fixture::new();
    fixture.write("long", &"hay\n".repeat(100_000), None).unwrap();
    let checks = Cell::new(0);
    let pattern = Pattern { regex: "needle".to_owned(), ignore_case: false };
    let search = |stop_at| {
        checks.set(0);
        fixture.roots.search("workspace", "long", Some(&pattern), 0, 10, &|| {
            checks.set(checks.get() + 1);
            checks.get() == stop_at
        })
    };
    assert_eq!(search(usize::MAX).unwrap().found, []);
    assert!(checks.get() >= 6, "{}", checks.get());
    for stop_at in 1..=checks.get() {
        assert_eq!(search(stop_at).unwrap_err().kind(), FaultKind::Cancelled);
        assert_eq!(checks.get(), stop_at);
    }
}

#[test]
fn invalid_or_oversized_patterns_are_refused_with_a_reason() {
    let fixture = Fixture::new();
    let long = "a".repeat(9000);
    let nested = format!("{}a{}", "(".repeat(200), ")".repeat(200));
    for regex in ["(", "a{1000}{1000}", "(((a{100}){100}){100}){100}", r"\w{5000}", r"(a)\1", "(?=a)", &long, &nested] {
        let error = fixture.search("**", Some(regex)).unwrap_err();
        assert_eq!((error.kind(), error.code()), (FaultKind::InvalidInput, "bad-pattern"), "{regex}");
        assert!(error.to_string().len() < 700 && !error.to_string().contains('\n'), "{error}");
    }
    for glob in ["", "/etc/*", "../*", "src/../../*", "[a", "{a", &long] {
        assert_eq!(fixture.search(glob, None).unwrap_err().code(), "bad-pattern", "{glob}");
    }
    let page = fixture.roots.search("workspace", "*.{rs,md}", None, 0, 10, &|| false).unwrap();
    assert_eq!(page.found.len(), 1);
}
