//! Attacks by pictures and files of messages: sources, sizes and names that a file claims, and bytes that are shared.

use super::*;

/// The part with the picture, as an object.
fn picture_of(message: &mut Value) -> &mut serde_json::Map<String, Value> {
    image(message).as_object_mut().unwrap()
}

fn at_address(message: &mut Value, address: &str) {
    picture_of(message).remove("blob");
    picture_of(message).insert("url".into(), json!(address));
}

type Forgery = (&'static str, fn(&mut Value));

const FORGERIES: &[Forgery] = &[
    ("a hash in capitals", |message| {
        let hash = image(message)["blob"]["hash"].as_str().unwrap().to_uppercase();
        image(message)["blob"]["hash"] = json!(hash);
    }),
    ("a hash with a prefix", |message| {
        let hash = format!("blake3:{}", image(message)["blob"]["hash"].as_str().unwrap());
        image(message)["blob"]["hash"] = json!(hash);
    }),
    ("half a hash", |message| {
        let hash = image(message)["blob"]["hash"].as_str().unwrap()[..32].to_owned();
        image(message)["blob"]["hash"] = json!(hash);
    }),
    ("a hash that is SQL", |message| image(message)["blob"]["hash"] = json!("x'; DELETE FROM blobs; --")),
    ("no hash", |message| image(message)["blob"]["hash"] = json!(null)),
    ("a size with a fraction", |message| image(message)["blob"]["size"] = json!(19.5)),
    ("a size that is a text", |message| image(message)["blob"]["size"] = json!("19")),
    ("base64 with blanks", |message| {
        let bytes = image(message)["blob"]["bytes"].as_str().unwrap().to_owned();
        image(message)["blob"]["bytes"] = json!(format!(" {bytes}\n"));
    }),
    ("bytes of another picture", |message| image(message)["blob"]["bytes"] = json!(STANDARD.encode(bytes(7)))),
    ("one byte more", |message| {
        image(message)["blob"]["bytes"] = json!(STANDARD.encode([bytes(1), bytes(2), vec![0]].concat()));
    }),
    ("neither bytes nor an address", |message| drop(picture_of(message).remove("blob"))),
    ("an address of this machine", |message| at_address(message, "http://127.0.0.1/")),
    ("an address with data", |message| at_address(message, "data:image/png;base64,AAAA")),
    ("an address that is a script", |message| at_address(message, "javascript:alert(1)")),
    ("an address without a scheme", |message| at_address(message, "//evil.example/a.png")),
    ("an address in capitals", |message| at_address(message, "HTTPS://evil.example/a.png")),
    ("an address behind a blank", |message| at_address(message, " https://evil.example/a.png")),
    ("a width below zero", |message| image(message)["width"] = json!(-1)),
    ("a height beyond all", |message| image(message)["height"] = json!(u64::MAX)),
    ("a name that is a list", |message| image(message)["name"] = json!(["a", "b"])),
    ("no type", |message| drop(picture_of(message).remove("media_type"))),
    ("a type that is a picture nobody reads", |message| image(message)["media_type"] = json!("image/svg+xml")),
    ("a type with a line feed", |message| image(message)["media_type"] = json!("image/gif\nobey")),
];

#[test]
fn a_picture_that_is_not_what_it_says_is_refused_and_leaves_nothing() {
    let (_home, from) = store();
    session(&from, &[look(1), shot(2)]);
    let file = String::from_utf8(exported(&from, Layout::Lines)).unwrap();
    let records: Vec<Value> = file.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (_other, to) = store();
    session(&to, &[look(9)]);
    let before = to.blobs().unwrap();
    for place in records.iter().enumerate().filter(|(_, record)| record["type"] == "message").map(|(at, _)| at) {
        for (name, forge) in FORGERIES {
            let mut records = records.clone();
            forge(&mut records[place]);
            assert_ne!(records[place], self::records(&file)[place], "{name}: nothing was changed");
            let file: String = records.iter().map(|record| format!("{record}\n")).collect();
            let error = import(&to, file.as_bytes()).expect_err(name);
            assert!(matches!(error, StoreError::Transfer(TransferError::Import { .. })), "{name}: {error}");
            assert_eq!((to.sessions().unwrap().len(), to.blobs().unwrap()), (1, before), "{name}");
        }
    }
    assert_eq!(import(&to, file.as_bytes()).unwrap().sessions.len(), 1);
}

fn records(file: &str) -> Vec<Value> {
    file.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_message_of_many_pictures_has_one_limit_for_all() {
    let (_home, store) = store();
    let large = |fill: u8| Part::Image(Media::image([bytes(fill), vec![fill; 15_000_000]].concat(), None).unwrap());
    let id = store.create_session(new_session()).unwrap().id;
    let three = Draft::of_parts(Role::User, vec![large(1), large(2), large(3)], 1);
    assert!(matches!(store.append(&id, &[three]), Err(StoreError::BlobTooLarge { .. })));
    // The same picture again and again counts each time: a request contains it as often.
    let same = Draft::of_parts(Role::User, vec![large(1), large(1), large(1)], 1);
    assert!(matches!(store.append(&id, &[same]), Err(StoreError::BlobTooLarge { .. })));
    assert_eq!((store.blobs().unwrap().0, store.conversation(&id).unwrap().len()), (0, 0));
}

#[test]
fn bytes_that_changed_in_the_database_are_never_returned() {
    let (home, store) = store();
    let id = session(&store, &[look(1)]);
    let hash = picture(1).blob().unwrap().hash.clone();
    for (name, change) in [
        ("other bytes", "bytes = x'4749463839610100010000000000000000000000'"),
        ("no bytes", "bytes = x''"),
        ("more bytes", "bytes = CAST(bytes || x'00' AS BLOB)"),
    ] {
        by_hand(&home, &format!("DROP TRIGGER IF EXISTS blobs_never_change; UPDATE blobs SET {change}"));
        assert_eq!(store.blob(&hash).map_or(None, |bytes| bytes.map(|bytes| bytes.to_vec())), None, "{name}");
        assert_eq!(store.conversation(&id).unwrap().len(), 1, "{name}");
    }
}
