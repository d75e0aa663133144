//! The bundled plugin `files`: pictures that `read_file` shows, and the form of files that `write_file` replaces.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hermes_tests::oracle::{assert_extends, assert_valid_anthropic_request, assert_valid_request};
use hermes_tests::{Call, Home, Reply, Server};
use serde_json::{Value, json};

/// A picture of one black pixel.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\0\0\0\0:~\x9bU\0\0\0\nIDATx\xdac`\0\0\0\x02\0\x01\xe5'\xde\xfc\0\0\0\0IEND\xaeB`\x82";

/// A model that makes one call in each turn whose message begins with `Go`.
fn calling(name: &'static str, arguments: &Value) -> Server {
    let arguments = arguments.clone();
    Server::answering(move |body, _| {
        let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
        let last = messages.last().map(Value::to_string).unwrap_or_default();
        match last.contains("Go.") {
            true => Reply::calls([Call::new("call_1", name, &arguments)]),
            false => Reply::text("Done."),
        }
    })
}

#[test]
fn read_file_shows_the_model_a_picture_and_later_requests_have_the_same_bytes() {
    for home in [Home::with as fn(&Server) -> Home, Home::with_anthropic] {
        let server = calling("read_file", &json!({"path": "dot.png"}));
        let home = home(&server);
        home.write_workspace("dot.png", PNG);
        home.hermes(&["-z", "Go."]).run().success();
        let request = server.last_turn();
        match request.body["system"].is_null() {
            true => assert_valid_request(&request.body),
            false => assert_valid_anthropic_request(&request.body),
        }
        let sent = request.raw_member("messages");
        assert!(sent.contains(&STANDARD.encode(PNG)), "{sent}");
        assert!(sent.contains("[dot.png is a PNG picture of 1 x 1 pixels, 67 bytes."), "{sent}");
        home.hermes(&["-z", "And now?", "--continue"]).run().success();
        assert_extends(&request.body, &server.last_turn().body);
    }
}

#[test]
fn a_model_without_vision_is_told_what_the_picture_is() {
    let server = calling("read_file", &json!({"path": "dot.png"}));
    let home = Home::with(&server);
    home.set("model.default", json!("deepseek-chat"));
    home.write_workspace("dot.png", PNG);
    home.hermes(&["-z", "Go."]).run().success();
    let request = server.last_turn();
    let result = request.trailing_results()[0].1.to_owned();
    assert!(result.starts_with("[dot.png is a PNG picture of 1 x 1 pixels, 67 bytes."), "{result}");
    assert!(
        result.contains("unless your model takes no pictures.]") && result.contains("[image: image/png]"),
        "{result}"
    );
    assert!(!request.body.to_string().contains(&STANDARD.encode(PNG)));
}

/// A picture of 2,500 pixels by 1.
const WIDE: &str = "iVBORw0KGgoAAAANSUhEUgAACcQAAAABAQAAAADStQJEAAAADUlEQVR42mNgGAXkAQABOgABiVZAzgAAAABJRU5ErkJggg==";

#[test]
fn pictures_that_anthropic_would_refuse_are_named_in_words() {
    let names: Vec<String> = (0..21).map(|number| format!("{number:02}.png")).collect();
    let calls: Vec<Call> = (0..)
        .zip(&names)
        .map(|(number, name): (u32, _)| Call::new(&format!("call_{number}"), "read_file", &json!({ "path": name })))
        .collect();
    let server = Server::scripted([Reply::calls(calls), Reply::text("Seen.")]);
    let home = Home::with_anthropic(&server);
    let wide = STANDARD.decode(WIDE).unwrap();
    for (name, content) in names.iter().zip([&wide[..]].into_iter().chain(std::iter::repeat(PNG))) {
        home.write_workspace(name, content);
    }
    let output = home.hermes(&["-z", "Go."]).run().success();
    // Beside a picture of more than 2,000 pixels there may be 20: the oldest are left out, ten at once.
    let request = server.last_turn();
    let body = request.body.to_string();
    assert_eq!(body.matches(r#""type":"image""#).count(), 11, "{output}\n{body}");
    let results: Vec<String> = request.trailing_results().iter().map(|(_, text)| (*text).to_owned()).collect();
    let words = "[image: image/png] [This picture is not sent: a request takes only so many, and newer ones are sent.]";
    assert!(results[0].contains(words) && results[9].contains(words), "{results:?}");
    assert!(!results[10].contains("not sent"), "{results:?}");
}

#[test]
fn a_picture_that_a_provider_would_refuse_never_gets_into_the_conversation() {
    let large = [PNG, &vec![0; 4 << 20]].concat();
    for (content, words) in [(&PNG[..40], "damaged or cut off"), (&large[..], "4194371 bytes")] {
        let server = calling("read_file", &json!({"path": "dot.png"}));
        let home = Home::with(&server);
        home.write_workspace("dot.png", content);
        home.hermes(&["-z", "Go."]).run().success();
        let request = server.last_turn();
        let result = request.trailing_results()[0].1.to_owned();
        assert!(result.contains("dot.png is a PNG picture") && result.contains(words), "{result}");
        assert!(!request.body.to_string().contains("image_url"), "{}", request.body);
    }
}

#[test]
fn write_file_keeps_line_ends_the_byte_order_mark_and_the_encoding_of_a_file() {
    for (before, content, after, kept) in [
        (
            &b"\xef\xbb\xbfone\r\ntwo\r\n"[..],
            "three\n",
            &b"\xef\xbb\xbfthree\r\n"[..],
            "CR LF line ends, byte order mark",
        ),
        (b"one\r\r\ntwo\r\r\n", "three\n", b"three\r\r\n", "CR CR LF line ends"),
        (b"caf\xe9\n", "th\u{e9}\n", b"th\xe9\n", "probably windows-1252 encoding"),
    ] {
        let server = Server::scripted([
            Reply::calls([Call::new("call_1", "read_file", &json!({"path": "a.txt"}))]),
            Reply::calls([Call::new("call_2", "write_file", &json!({"path": "a.txt", "content": content}))]),
            Reply::text("Done."),
        ]);
        let home = Home::with(&server);
        home.write_workspace("a.txt", before);
        home.hermes(&["-z", "Go."]).run().success();
        assert_eq!(std::fs::read(home.workspace().join("a.txt")).unwrap(), after);
        let result = server.last_turn().trailing_results()[0].1.to_owned();
        assert!(result.ends_with(&format!("; kept of the file: {kept}")), "{result}");
    }
}

#[test]
fn write_file_does_not_write_a_file_under_the_name_of_a_folder() {
    for (path, words) in [("n/", "`n/` names a folder"), (".", "names a folder"), ("folder", "folder is a folder")] {
        let server = calling("write_file", &json!({"path": path, "content": "x"}));
        let home = Home::with(&server);
        home.write_workspace("folder/a.txt", "a");
        home.hermes(&["-z", "Go."]).run().success();
        let result = server.last_turn().trailing_results()[0].1.to_owned();
        assert!(result.contains(words) && result.contains("give the path of a file"), "{path}: {result}");
        assert!(!home.workspace().join("n").exists());
    }
}

/// A plugin has 64 MiB of memory.
#[test]
fn a_large_file_is_patched_or_refused_with_the_way_out() {
    let line = "a line of a log with some words in it 0123456789\n";
    let large = line.repeat((7_600 << 10) / line.len());
    let crlf = large.replace('\n', "\r\n");
    let edit = |old: &str, new: &str| json!({"path": "a.txt", "old_string": old, "new_string": new});
    let diff = json!({"patch": "--- a/a.txt\n+++ b/a.txt\n@@\n-last line\n+changed\n"});
    for (content, call, words) in [
        (format!("{large}last line\n"), edit("last line", "changed"), "patched a.txt"),
        (format!("{crlf}last line\r\n"), edit("last line", "changed"), "patched a.txt"),
        (format!("{large}the \u{201c}last\u{201d} line\n"), edit("\"last\" line", "changed"), "patched a.txt"),
        (format!("{large}last line\n"), diff, "patched a.txt"),
        (format!("{large}last line\n"), edit("no such line", "changed"), "no such line"),
        (format!("{}last line\n", "\n".repeat(4 << 20)), edit("last line", "changed"), "such as `sed`"),
        (format!("{}last line\n", "x".repeat(9 << 20)), edit("last line", "changed"), "such as `sed`"),
    ] {
        let server = calling("patch", &call);
        let home = Home::with(&server);
        home.write_workspace("a.txt", &content);
        home.hermes(&["-z", "Go."]).run().success();
        let result = server.last_turn().trailing_results()[0].1.to_owned();
        assert!(result.contains(words), "{call}: {result}");
        let now = std::fs::read_to_string(home.workspace().join("a.txt")).unwrap();
        assert_eq!(now.contains("changed"), words.starts_with("patched"), "{call}");
        assert!(now.len().abs_diff(content.len()) < 100, "{call}");
    }
}
