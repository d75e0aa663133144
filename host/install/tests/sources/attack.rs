//! Attacks by registries, servers and repositories.

use super::*;

const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";

/// An image that only an index names, under any digest that the attacker chooses.
fn index(server: &Server, tag: &str, inner: &str, body: &[u8]) {
    let index = serde_json::json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [{"mediaType": MANIFEST_TYPE, "digest": inner, "size": body.len()}],
    });
    server.page(&format!("/v2/team/mine/manifests/{tag}"), &[], index.to_string().as_bytes());
    server.page(&format!("/v2/team/mine/manifests/{inner}"), &[], body);
}

/// The manifest of an image with a plugin, whose layers have good digests.
fn good_image(server: &Server) -> Vec<u8> {
    let layers: [(&str, Option<&str>, &[u8]); 2] =
        [("application/yaml", Some("plugin.yaml"), MANIFEST.as_bytes()), ("application/wasm", Some("mine.wasm"), CODE)];
    let digest = image(server, "good", &layers);
    server.pages.lock().unwrap()[&format!("/v2/team/mine/manifests/{digest}")].2.clone()
}

#[tokio::test]
async fn an_inner_manifest_without_a_verifiable_digest_is_refused() {
    let server = Server::start().await;
    let body = good_image(&server);
    let base = format!("oci://{}/team/mine", server.address);
    index(&server, "v1", &sha(&body), &body);
    comes(&format!("{base}:v1"), true).await;
    let evil = body.iter().copied().chain(*b" ").collect::<Vec<u8>>();
    for (at, inner) in [
        format!("sha512:{}", "0".repeat(128)),
        format!("md5:{}", "0".repeat(32)),
        format!("SHA256:{}", "0".repeat(64)),
        format!("sha256:{}", "0".repeat(63)),
        format!("sha256+x:{}", "0".repeat(64)),
        "blake3:00".to_owned(),
        "sha256:".to_owned(),
        // Tags, which name whatever the registry wants.
        "good".to_owned(),
        "latest".to_owned(),
        String::new(),
        "../../other/manifests/x".to_owned(),
    ]
    .iter()
    .enumerate()
    {
        let tag = format!("evil{at}");
        index(&server, &tag, inner, &evil);
        let error = refused(&format!("{base}:{tag}"), true).await;
        assert!(error.contains("not a sha256 digest"), "{inner}: {error}");
    }
    // A good digest with other bytes behind it.
    index(&server, "swapped", &sha(&body), &evil);
    let error = refused(&format!("{base}:swapped"), true).await;
    assert!(error.contains("do not trust this registry"), "{error}");
}

#[tokio::test]
async fn a_layer_without_a_verifiable_digest_is_refused() {
    let server = Server::start().await;
    for (at, digest) in [
        format!("sha512:{}", "0".repeat(128)),
        format!("sha256:{}", "g".repeat(64)),
        "sha256:../../x".to_owned(),
        String::new(),
    ]
    .iter()
    .enumerate()
    {
        let manifest = serde_json::json!({
            "schemaVersion": 2, "mediaType": MANIFEST_TYPE,
            "layers": [{"mediaType": "application/wasm", "digest": digest, "size": CODE.len()}],
        });
        server.page(&format!("/v2/team/mine/manifests/t{at}"), &[], manifest.to_string().as_bytes());
        server.page(&format!("/v2/team/mine/blobs/{digest}"), &[], CODE);
        let error = refused(&format!("oci://{}/team/mine:t{at}", server.address), true).await;
        assert!(error.contains("not a sha256 digest"), "{digest}: {error}");
    }
}

#[tokio::test]
async fn an_index_in_an_index_and_endless_layers_are_refused() {
    let server = Server::start().await;
    let base = format!("oci://{}/team/mine", server.address);
    let nested = serde_json::json!({
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [{"mediaType": MANIFEST_TYPE, "digest": sha(b"x"), "size": 1}],
    });
    let nested = nested.to_string().into_bytes();
    index(&server, "nested", &sha(&nested), &nested);
    assert!(refused(&format!("{base}:nested"), true).await.contains("does not contain a plugin"));
    let layer = serde_json::json!({"mediaType": "text/plain", "digest": sha(b"x"), "size": 1});
    let many = serde_json::json!({"mediaType": MANIFEST_TYPE, "layers": vec![layer; 10_000]});
    server.page("/v2/team/mine/manifests/many", &[], many.to_string().as_bytes());
    assert!(refused(&format!("{base}:many"), true).await.contains("does not contain a plugin"));
    server.page("/v2/team/mine/manifests/huge", &[], &vec![b' '; 5 << 20]);
    assert!(refused(&format!("{base}:huge"), true).await.contains("too long"));
    // A layer that is longer than it says.
    let short = serde_json::json!({
        "mediaType": MANIFEST_TYPE,
        "layers": [{"mediaType": "application/wasm", "digest": sha(CODE), "size": 1}],
    });
    server.page("/v2/team/mine/manifests/short", &[], short.to_string().as_bytes());
    server.page(&format!("/v2/team/mine/blobs/{}", sha(CODE)), &[], CODE);
    assert!(refused(&format!("{base}:short"), true).await.contains("larger than"));
}

#[tokio::test]
async fn a_server_cannot_lead_from_https_or_to_local_files() {
    let server = Server::start().await;
    let base = format!("http://{}", server.address);
    for (path, to) in
        [("/file", "file:///etc/passwd"), ("/data", "data:text/plain,x"), ("/ftp", "ftp://host.example/x")]
    {
        server.answer(path, StatusCode::FOUND, &[("location", to)], b"");
        let error = refused(&format!("{base}{path}"), true).await;
        assert!(error.contains("cannot be fetched"), "{to}: {error}");
    }
}

#[tokio::test]
async fn files_beside_a_component_do_not_replace_it() {
    let server = Server::start().await;
    let base = format!("http://{}", server.address);
    // A server that answers every address with the component.
    for name in ["mine.wasm", "plugin.yaml", "mine.wasm.minisig", "plugin.statement", "plugin.statement.minisig"] {
        server.page(&format!("/d/{name}"), &[], CODE);
    }
    assert!(prepare(&format!("{base}/d/mine.wasm"), true).await.is_err());
    // A statement without a manifest is never asked for, and one that is not signed is refused.
    server.page("/e/mine.wasm", &[], CODE);
    server.page("/e/plugin.statement", &[], b"hermes plugin statement 1\n");
    comes(&format!("{base}/e/mine.wasm"), true).await;
    server.page("/e/plugin.yaml", &[], MANIFEST.as_bytes());
    let error = refused(&format!("{base}/e/mine.wasm"), true).await;
    assert!(error.contains("plugin.statement.minisig is missing"), "{error}");
}

#[cfg(unix)]
#[path = "repositories.rs"]
mod repositories;
