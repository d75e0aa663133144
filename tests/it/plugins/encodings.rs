//! Files in many encodings and with all forms of line ends, through the tools `patch`, `write_file` and `search_files`: which bytes
//! change, and which stay.

use std::fmt::Write as _;
use std::fs;

use encoding_rs::Encoding;
use hermes_tests::{Call, Home, Reply, Server};
use serde_json::{Value, json};

/// How the texts are stored. The marks and UTF-16 are made here, and the rest with the encoders of browsers.
#[derive(Clone, Copy)]
enum Stored {
    Utf8 { mark: bool },
    Utf16 { little: bool, mark: bool },
    Legacy(&'static Encoding),
}

impl Stored {
    fn bytes(self, text: &str) -> Vec<u8> {
        match self {
            Self::Utf8 { mark } => [if mark { "\u{feff}" } else { "" }, text].concat().into_bytes(),
            Self::Utf16 { little, mark } => {
                let text = [if mark { "\u{feff}" } else { "" }, text].concat();
                text.encode_utf16().flat_map(if little { u16::to_le_bytes } else { u16::to_be_bytes }).collect()
            }
            Self::Legacy(encoding) => {
                let (bytes, _, failed) = encoding.encode(text);
                assert!(!failed, "{} does not have {text}", encoding.name());
                bytes.into_owned()
            }
        }
    }
}

/// Each encoding with a sentence of a language that used it, and two words of the sentence.
const ENCODINGS: [(&str, Stored, &str, [&str; 2]); 25] = {
    use encoding_rs::*;
    const JAPANESE: (&str, [&str; 2]) = ("設定ファイルは日本語で書かれ、表示の能力を試す", ["表示", "能力"]);
    const RUSSIAN: (&str, [&str; 2]) = ("файл настроек читает программа и показывает результат", ["файл", "результат"]);
    const CZECH: (&str, [&str; 2]) = ("Příliš žluťoučký kůň úpěl ďábelské ódy, řekl učitel", ["žluťoučký", "kůň"]);
    const GERMAN: (&str, [&str; 2]) =
        ("Zwölf Boxkämpfer jagen über den großen Deich – “schön” für Zuhörer", ["über", "schön"]);
    [
        ("utf-8", Stored::Utf8 { mark: false }, "Grüße – 日本 🦀", ["Grüße", "日本"]),
        ("utf-8-mark", Stored::Utf8 { mark: true }, "Grüße – 日本 🦀", ["Grüße", "日本"]),
        ("utf-16le-mark", Stored::Utf16 { little: true, mark: true }, JAPANESE.0, JAPANESE.1),
        ("utf-16be-mark", Stored::Utf16 { little: false, mark: true }, "Grüße – 日本 🦀", ["Grüße", "🦀"]),
        ("utf-16le", Stored::Utf16 { little: true, mark: false }, "Grüße – 日本 🦀", ["Grüße", "日本"]),
        ("utf-16be", Stored::Utf16 { little: false, mark: false }, JAPANESE.0, JAPANESE.1),
        ("gbk", Stored::Legacy(GBK), "配置文件用中文书写，程序读取文件并显示结果", ["文件", "结果"]),
        ("big5", Stored::Legacy(BIG5), "設定檔用中文書寫，程式讀取檔案並顯示結果", ["檔案", "程式"]),
        ("shift-jis", Stored::Legacy(SHIFT_JIS), JAPANESE.0, JAPANESE.1),
        ("euc-jp", Stored::Legacy(EUC_JP), JAPANESE.0, JAPANESE.1),
        ("iso-2022-jp", Stored::Legacy(ISO_2022_JP), JAPANESE.0, JAPANESE.1),
        ("euc-kr", Stored::Legacy(EUC_KR), "설정 파일은 한국어로 쓰이고 프로그램이 결과를 보여 준다", ["파일", "결과"]),
        ("koi8-r", Stored::Legacy(KOI8_R), RUSSIAN.0, RUSSIAN.1),
        ("windows-1251", Stored::Legacy(WINDOWS_1251), RUSSIAN.0, RUSSIAN.1),
        ("ibm866", Stored::Legacy(IBM866), RUSSIAN.0, RUSSIAN.1),
        ("iso-8859-5", Stored::Legacy(ISO_8859_5), RUSSIAN.0, RUSSIAN.1),
        ("windows-1252", Stored::Legacy(WINDOWS_1252), GERMAN.0, GERMAN.1),
        ("windows-1250", Stored::Legacy(WINDOWS_1250), CZECH.0, CZECH.1),
        ("iso-8859-2", Stored::Legacy(ISO_8859_2), CZECH.0, CZECH.1),
        ("windows-1253", Stored::Legacy(WINDOWS_1253), "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία", ["ψυχοφθόρα", "την"]),
        (
            "windows-1254",
            Stored::Legacy(WINDOWS_1254),
            "Pijamalı hasta yağız şoföre çabucak güvendi, öğretmen şaştı",
            ["yağız", "şoföre"],
        ),
        ("windows-1255", Stored::Legacy(WINDOWS_1255), "דג סקרן שט בים מאוכזב ולפתע מצא לו חברה", ["סקרן", "חברה"]),
        ("windows-1256", Stored::Legacy(WINDOWS_1256), "صف خلق خود كمثل الشمس إذ بزغت", ["خلق", "الشمس"]),
        (
            "windows-1257",
            Stored::Legacy(WINDOWS_1257),
            "Įlinkdama fechtuotojo špaga sublykčiojusi pragręžė apvalų arbūzą",
            ["špaga", "arbūzą"],
        ),
        ("windows-874", Stored::Legacy(WINDOWS_874), "เป็นมนุษย์สุดประเสริฐเลิศคุณค่า", ["มนุษย์", "คุณค่า"]),
    ]
};

/// The line ends of the four lines of each file.
const FORMS: [(&str, [&str; 4]); 5] = [
    ("lf", ["\n"; 4]),
    ("crlf", ["\r\n"; 4]),
    ("cr", ["\r"; 4]),
    ("mixed", ["\r\n", "\n", "\n", "\r\n"]),
    ("open", ["\n", "\n", "\n", ""]),
];

struct File {
    path: String,
    stored: Stored,
    form: &'static str,
    lines: [String; 4],
    ends: [&'static str; 4],
    words: [&'static str; 2],
}

impl File {
    fn text(&self, lines: &[String; 4]) -> String {
        lines.iter().zip(self.ends).map(|(line, end)| format!("{line}{end}")).collect()
    }

    fn before(&self) -> Vec<u8> {
        self.stored.bytes(&self.text(&self.lines))
    }

    /// The lines after the three calls of `patch`.
    fn patched(&self) -> [String; 4] {
        let [one, two] = self.words;
        [self.lines[0].clone(), "value = 2".to_owned(), format!("{one} = {two}"), format!("name = {one} {two}")]
    }

    /// Whether parts of it can be changed.
    fn is_stateful(&self) -> bool {
        matches!(self.stored, Stored::Legacy(encoding) if encoding == encoding_rs::ISO_2022_JP)
    }
}

/// Each encoding with three of the forms.
fn files() -> Vec<File> {
    let mut files = Vec::new();
    for (number, (encoding, stored, sentence, words)) in ENCODINGS.into_iter().enumerate() {
        for which in 0..3 {
            let (form, ends) = FORMS[(number + 2 * which) % FORMS.len()];
            let lines = [
                format!("# {sentence}"),
                "value = 1".to_owned(),
                format!("{} = old", words[0]),
                format!("name = {}", words[1]),
            ];
            files.push(File { path: format!("{encoding}/{form}.txt"), stored, form, lines, ends, words });
        }
    }
    files
}

/// A session whose model makes these calls, in groups of one reply each.
fn session(files: &[File], groups: Vec<Vec<(&str, Value)>>) -> (Home, Server) {
    let calls = |group: Vec<(&str, Value)>| {
        Reply::calls(
            group.iter().enumerate().map(|(at, (name, arguments))| Call::new(&format!("call_{at}"), name, arguments)),
        )
    };
    let server = Server::scripted(groups.into_iter().map(calls).chain([Reply::text("Done.")]));
    let home = Home::with(&server);
    for file in files {
        fs::create_dir_all(home.workspace().join(&file.path).parent().unwrap()).unwrap();
        home.write_workspace(&file.path, file.before());
    }
    home.hermes(&["-z", "Go."]).run().success();
    (home, server)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn patches_change_the_bytes_of_the_changed_words_alone() {
    let files = files();
    let patches = |file: &File| {
        let [one, two] = file.words;
        let replace =
            |old: &str, new: &str| ("patch", json!({"path": file.path, "old_string": old, "new_string": new}));
        let hunk = format!("--- {0}\n+++ {0}\n@@ -4 +4 @@\n-name = {two}\n+name = {one} {two}\n", file.path);
        [
            replace("value = 1", "value = 2"),
            replace(&format!("{one} = old"), &format!("{one} = {two}")),
            ("patch", json!({ "patch": hunk })),
        ]
    };
    let (home, server) = session(&files, files.iter().map(|file| patches(file).into()).collect());
    let mut table = String::new();
    for (file, request) in files.iter().zip(server.turns().iter().skip(1)) {
        let found = fs::read(home.workspace().join(&file.path)).unwrap();
        let lines = if file.is_stateful() { file.lines.clone() } else { file.patched() };
        let results: Vec<String> = request.trailing_results().iter().map(|(_, text)| (*text).to_owned()).collect();
        assert_eq!(hex(&found), hex(&file.stored.bytes(&file.text(&lines))), "{}: {results:?}", file.path);
        let refused = results.iter().filter(|result| result.contains("cannot be changed alone")).count();
        assert_eq!(refused, if file.is_stateful() { 3 } else { 0 }, "{}: {results:?}", file.path);
        let line = |lines: &[String; 4]| hex(&file.stored.bytes(&format!("{}{}", lines[2], file.ends[2])));
        writeln!(table, "{:<24} {}\n{:24} {}", file.path, line(&file.lines), "", line(&lines)).unwrap();
    }
    insta::assert_snapshot!(table);
}

#[test]
fn a_file_that_is_written_anew_keeps_its_encoding_and_line_ends() {
    let files = files();
    let content = |file: &File| {
        let text = file.patched().join("\n");
        if file.form == "open" { text } else { text + "\n" }
    };
    let calls = |file: &File| {
        let write = json!({"path": file.path, "content": content(file)});
        vec![("read_file", json!({"path": file.path})), ("write_file", write)]
    };
    let (home, server) = session(&files, files.iter().map(calls).collect());
    for (file, request) in files.iter().zip(server.turns().iter().skip(1)) {
        let results = request.trailing_results();
        let [(_, read), (_, written)] = results[..] else { panic!("{results:?}") };
        for (number, line) in (1..).zip(&file.lines) {
            assert!(read.contains(&format!("{number}|{line}\n")), "{}: {read}", file.path);
        }
        let found = fs::read(home.workspace().join(&file.path)).unwrap();
        let end = match file.form {
            "crlf" => "\r\n",
            "cr" => "\r",
            _ => "\n",
        };
        let expected = file.stored.bytes(&content(file).replace('\n', end));
        assert_eq!(hex(&found), hex(&expected), "{}: {written}", file.path);
    }
}

#[test]
fn a_search_finds_the_words_of_all_files() {
    let files = files();
    let search = |(encoding, _, _, words): (&str, Stored, &str, [&str; 2])| {
        ("search_files", json!({"pattern": format!("^name = {}$", words[1]), "path": encoding}))
    };
    let binary = ("search_files", json!({"pattern": "value = 1$", "limit": 200}));
    let groups = ENCODINGS.into_iter().map(search).chain([binary]).map(|call| vec![call]).collect();
    let (_home, server) = session(&files, groups);
    let results: Vec<String> =
        server.turns()[1..].iter().map(|request| request.trailing_results()[0].1.to_owned()).collect();
    for ((encoding, _, _, words), result) in ENCODINGS.into_iter().zip(&results) {
        assert!(result.ends_with("[3 lines]"), "{encoding}: {result}");
        for file in files.iter().filter(|file| file.path.starts_with(&format!("{encoding}/"))) {
            let found = format!("{}\n4|name = {}\n", file.path, words[1]);
            assert!(result.contains(&found), "{encoding}: {result}");
        }
    }
    let all = results.last().unwrap();
    assert!(all.ends_with(&format!("[{} lines]", files.len())), "{all}");
}

#[test]
fn a_search_names_what_it_leaves_out() {
    let search = ("search_files", json!({"pattern": "needle"}));
    let server = Server::scripted([Reply::calls([Call::new("call_0", search.0, &search.1)]), Reply::text("Done.")]);
    let home = Home::with(&server);
    home.write_workspace("a.min.js", format!("{}needle{}", "x".repeat(200_000), "y".repeat(200_000)));
    home.write_workspace("b.bin", b"needle\0\x01");
    home.write_workspace("c.txt", b"\xff\xfe\0\0n\0\0\0");
    home.hermes(&["-z", "Go."]).run().success();
    let result = server.last_turn().trailing_results()[0].1.to_owned();
    assert!(result.starts_with("a.min.js\n1|…") && result.contains("xneedley") && result.len() < 2_000, "{result}");
    assert!(result.ends_with("[1 line]\n[not searched: 1 binary file (b.bin); 1 file in UTF-32 (c.txt)]"), "{result}");
}

#[test]
fn a_guess_that_is_not_certain_writes_nothing_and_says_what_to_do() {
    let (gbk, _, _) = encoding_rs::GBK.encode("第一行 alpha\n");
    let mixed = b"\xc3\xa9 \xe9 alpha\n";
    for (content, new, words) in [
        (&gbk[..], "贝塔", "not certain"),
        (&gbk, "caf\u{fffd}", "�"),
        (mixed, "é", "encoding is not known"),
        (b"caf\xe9 alpha\n", "ж", "has no place in it"),
    ] {
        let arguments = json!({"path": "a.txt", "old_string": "alpha", "new_string": new});
        let server = Server::scripted([Reply::calls([Call::new("call_0", "patch", &arguments)]), Reply::text("Done.")]);
        let home = Home::with(&server);
        home.write_workspace("a.txt", content);
        home.hermes(&["-z", "Go."]).run().success();
        let result = server.last_turn().trailing_results()[0].1.to_owned();
        assert!(result.contains(words) && (new.contains('�') || result.contains("iconv -f")), "{result}");
        assert_eq!(fs::read(home.workspace().join("a.txt")).unwrap(), content);
    }
}
