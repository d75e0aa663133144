use encoding_rs::{BIG5, EUC_JP, EUC_KR, GBK, IBM866, KOI8_U, SHIFT_JIS, WINDOWS_1251, WINDOWS_1252};
use proptest::prelude::*;

use super::*;

fn utf16(text: &str, little: bool) -> Vec<u8> {
    let bytes = if little { u16::to_le_bytes } else { u16::to_be_bytes };
    text.encode_utf16().flat_map(bytes).collect()
}

fn found(bytes: &[u8]) -> Result<(Charset, usize), NoText> {
    detect(bytes, true).map(|found| (found.charset, found.mark))
}

#[test]
fn unicode_is_recognised_with_and_without_a_mark() {
    for (bytes, expected) in [
        (b"plain".to_vec(), Ok((Charset::Utf8, 0))),
        (b"".to_vec(), Ok((Charset::Utf8, 0))),
        ("grüße 日本".into(), Ok((Charset::Utf8, 0))),
        ("\u{feff}a".into(), Ok((Charset::Utf8, 3))),
        (b"\xef\xbb\xbfa\xe9".to_vec(), Ok((Charset::Mixed, 3))),
        (utf16("\u{feff}a\r\n", true), Ok((Charset::Utf16Le, 2))),
        (utf16("\u{feff}日本", false), Ok((Charset::Utf16Be, 2))),
        (utf16("a\nb\n", true), Ok((Charset::Utf16Le, 0))),
        (utf16("a\nb\n", false), Ok((Charset::Utf16Be, 0))),
        (utf16("日本語\nの文章\n。\n", false), Ok((Charset::Utf16Be, 0))),
        // Half a pair is text in a file with a mark.
        (b"\xff\xfe\x3d\xd8a\0".to_vec(), Ok((Charset::Utf16Le, 2))),
        (b"a\0b".to_vec(), Err(NoText::Binary)),
        (b"a\0".to_vec(), Err(NoText::Binary)),
        (b"\x7fELF\x02\x01\x01\0\0\0".to_vec(), Err(NoText::Binary)),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0".to_vec(), Err(NoText::Binary)),
        (b"\xff\xfe\0\0a\0\0\0".to_vec(), Err(NoText::Utf32)),
        (b"\0\0\xfe\xff\0\0\0a".to_vec(), Err(NoText::Utf32)),
    ] {
        assert_eq!(found(&bytes), expected, "{bytes:?}");
    }
}

#[test]
fn a_part_may_end_amid_a_character() {
    assert_eq!(detect(b"gr\xc3\xbc\xc3", false).unwrap().charset, Charset::Utf8);
    assert_ne!(detect(b"gr\xc3\xbc\xc3", true).unwrap().charset, Charset::Utf8);
    assert_eq!(detect(&utf16("a\nb\nc\n", true)[..9], false).unwrap().charset, Charset::Utf16Le);
    let gbk = GBK.encode("第一行是中文，第二行也是中文").0.into_owned();
    assert_eq!(detect(&gbk[..gbk.len() - 1], false).unwrap().charset, Charset::Legacy(GBK));
}

#[test]
fn few_odd_bytes_make_a_mixture_and_many_an_unknown_encoding() {
    let text = |good: usize, bad: usize| ["ü".repeat(good).into_bytes(), b" \xff".repeat(bad)].concat();
    for (good, bad, charset) in
        [(4, 1, Charset::Mixed), (40, 10, Charset::Mixed), (1, 1, Charset::Unknown), (4, 2, Charset::Unknown)]
    {
        assert_eq!(found(&text(good, bad)), Ok((charset, 0)), "{good} {bad}");
    }
    // No text has such control characters.
    assert_eq!(found(b"\x01\x02\xe9\x03"), Ok((Charset::Unknown, 0)));
}

/// What a program of these languages could have, in its older encodings.
const TEXTS: [(&Encoding, &str); 9] = [
    (GBK, "# 配置文件\n名称 = \"测试程序\"\n说明 = \"读取文件并显示结果\"\n"),
    (BIG5, "# 設定檔\n名稱 = \"測試程式\"\n說明 = \"讀取檔案並顯示結果\"\n"),
    (SHIFT_JIS, "# 設定ファイル\n名前 = \"表示テスト\"\n説明 = \"ファイルを読んで結果を表示する\"\n"),
    (EUC_JP, "# 設定ファイル\n名前 = \"表示テスト\"\n説明 = \"ファイルを読んで結果を表示する\"\n"),
    (EUC_KR, "# 설정 파일\n이름 = \"시험 프로그램\"\n설명 = \"파일을 읽고 결과를 보여 준다\"\n"),
    (KOI8_U, "# файл настроек\nимя = \"проверка\"\nописание = \"Читает файл и показывает результат\"\n"),
    (WINDOWS_1251, "# файл настроек\nимя = \"проверка\"\nописание = \"Читает файл и показывает результат\"\n"),
    (IBM866, "# файл настроек\nимя = \"проверка\"\nописание = \"Читает файл и показывает результат\"\n"),
    (
        WINDOWS_1252,
        "# réglages\nnom = \"essai\"\ndescription = \"Lit le fichier, où qu'il soit, et montre le résultat\"\n",
    ),
];

#[test]
fn older_encodings_are_recognised_by_their_letters() {
    for (encoding, text) in TEXTS {
        let bytes = Charset::Legacy(encoding).encode(text).unwrap();
        let (charset, _) = found(&bytes).unwrap();
        assert_eq!(charset, Charset::Legacy(encoding), "{text}");
        assert_eq!(charset.decode(&bytes), text);
        // A long head of plain code does not hide the letters.
        let long = [b"x = 1\n".repeat(100_000), bytes].concat();
        assert_eq!(found(&long), Ok((charset, 0)));
    }
    let jis = Charset::Legacy(ISO_2022_JP).encode("日本語\n").unwrap();
    assert_eq!(found(&jis), Ok((Charset::Legacy(ISO_2022_JP), 0)));
    assert_eq!(found(b"\x1b[31mred\x1b[0m"), Ok((Charset::Utf8, 0)));
}

#[test]
fn characters_are_admitted_if_they_certainly_mean_the_same() {
    let latin = |text: &str, new: &str| Charset::Legacy(WINDOWS_1252).admits(text, new);
    assert_eq!(latin("café", "plain"), Ok(()));
    assert_eq!(latin("café", "é"), Ok(()));
    assert_eq!(latin("café", "ü"), Ok(()), "all Latin encodings that have é there have ü at the same place");
    assert_eq!(latin("café", "ż"), Err(Refused::Missing('ż')));
    assert_eq!(
        latin("café", "ñ"),
        Err(Refused::Uncertain('ñ')),
        "Central European encodings have another letter there"
    );
    assert_eq!(latin("café", "€"), Err(Refused::Uncertain('€')), "ISO-8859-15 has it elsewhere");
    assert_eq!(
        latin("“Déjà” vu, où es-tu, garçon? Là-bas, très près, à côté: œuvre achevée, fenêtre fermée", "€"),
        Ok(())
    );
    assert_eq!(latin("caf\u{e9}\rd\u{e9}j\u{e0}\r", "ü"), Err(Refused::Uncertain('ü')), "a classic Macintosh");
    let russian = Charset::Legacy(WINDOWS_1251);
    assert_eq!(russian.admits("да", "нет"), Err(Refused::Uncertain('е')), "two letters are too few");
    assert_eq!(russian.admits("Читает файл и показывает результат", "Ждёт"), Ok(()));
    assert_eq!(Charset::Unknown.admits("x", "é"), Err(Refused::Uncertain('é')));
    assert_eq!(Charset::Utf16Le.admits("x", "日"), Ok(()));
    let japanese = Charset::Legacy(SHIFT_JIS);
    assert_eq!(
        japanese.admits("設定ファイルは日本語で書かれている", "¥"),
        Err(Refused::Missing('¥')),
        "its byte is a backslash"
    );
    assert_eq!(japanese.encode("¥"), None);
}

/// Encodings of MS-DOS are not known here, so that another one is guessed.
#[test]
fn what_does_not_read_like_a_language_admits_nothing_new() {
    // "Größe über Maß", "déjà vu", and a frame, in code page 437.
    let german =
        b"Gr\x94\xe1e \x81ber Ma\xe1, Stra\xe1e, M\x84dchen, sch\x94n, f\x81r, Gr\x81n, K\x94ln, T\x81r, h\x94ren\n"
            .repeat(3);
    let french =
        b"d\x82j\x85 vu, l'\x82t\x82 derni\x8ar, o\x97 \x88tes-vous, fran\x87ais, \x82l\x8ave, t\x88te\n".repeat(3);
    let frame =
        [b"\xc9", &b"\xcd".repeat(30)[..], b"\xbb\n\xba Menu \xba\n\xc8", &b"\xcd".repeat(30), b"\xbc\n"].concat();
    for bytes in [german, french, frame] {
        let Ok((charset, 0)) = found(&bytes) else { panic!("{bytes:?}") };
        let text = charset.decode(&bytes);
        for new in ["\u{436}", "\u{fc}", "\u{e9}"] {
            let admitted = charset.admits(&text, new);
            assert!(admitted.is_err() || text.contains(new), "{charset:?} {new}: {text}");
        }
        assert_eq!(charset.admits(&text, "plain"), Ok(()));
        assert!(charset == Charset::Unknown || charset.is_guess() && charset.is_in().starts_with("is probably in "));
    }
    let russian = "Файл USB-кабеля, SMS-ки, iPhone'ом, «ёлки» — 5°С, и т.д. Читает строку…";
    assert!(Charset::Legacy(WINDOWS_1251).admits(russian, "ж").is_ok());
    assert_eq!(
        (Charset::Utf16Le.is_in(), Charset::Legacy(ISO_2022_JP).is_guess()),
        ("is in UTF-16LE".to_owned(), false)
    );
}

#[test]
fn places_are_found_in_the_bytes() {
    for (charset, text) in TEXTS.map(|(encoding, text)| (Charset::Legacy(encoding), text)).into_iter().chain([
        (Charset::Utf8, "aü\n日b"),
        (Charset::Utf16Le, "aü\n日b🦀c"),
        (Charset::Utf16Be, "aü\n日b🦀c"),
    ]) {
        let bytes = charset.encode(text).unwrap();
        let places: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        let found = charset.places(&bytes, text, &places).unwrap();
        for (at, place) in places.iter().zip(found) {
            assert_eq!(charset.encode(&text[..*at]).unwrap().len(), place, "{text} {at}");
        }
    }
    let bytes = b"a\xffb\xff";
    let text = Charset::Unknown.decode(bytes);
    assert_eq!(Charset::Unknown.places(bytes, &text, &[0, 1, 4, 5, 8]), Some(vec![0, 1, 2, 3, 4]));
    // Half a unit at the end is a part of the file.
    let bytes = b"a\0b";
    let text = Charset::Utf16Le.decode(bytes);
    assert_eq!(Charset::Utf16Le.places(bytes, &text, &[0, 1, text.len()]), Some(vec![0, 2, 3]));
    // Two letters that one code stands for.
    let bytes = b"\x88\x62x";
    let text = Charset::Legacy(BIG5).decode(bytes);
    assert_eq!(Charset::Legacy(BIG5).places(bytes, &text, &[2]), None, "{text}");
}

proptest! {
    #[test]
    fn a_stream_gives_the_same_text_as_all_bytes_at_once(
        bytes in prop::collection::vec(any::<u8>(), 0..60),
        cut in 0_usize..60,
        which in 0_usize..12,
    ) {
        let legacy = TEXTS.get(which).map(|(encoding, _)| Charset::Legacy(encoding));
        let charset = legacy.unwrap_or([Charset::Utf16Le, Charset::Utf16Be, Charset::Utf8][which.saturating_sub(9)]);
        let (one, two) = bytes.split_at(cut.min(bytes.len()));
        let mut stream = Stream::new(charset);
        let streamed = [stream.feed(one, false).into_owned(), stream.feed(two, true).into_owned()].concat();
        let whole = if charset == Charset::Utf8 { bytes.clone() } else { charset.decode(&bytes).into_owned().into_bytes() };
        prop_assert_eq!(streamed, whole);
    }

    #[test]
    fn nothing_is_recognised_that_does_not_decode(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        if let Ok(Found { charset: charset @ Charset::Legacy(_), mark }) = detect(&bytes, true) {
            prop_assert!(!charset.decode(&bytes[mark..]).contains(char::REPLACEMENT_CHARACTER));
        }
    }
}
