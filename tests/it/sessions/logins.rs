//! Several processes with one login whose access token has expired.

use hermes_tests::{Home, Reply, Server};
use serde_json::{Value, json};

#[test]
fn two_processes_with_an_expired_token_refresh_it_once() {
    let server = Server::answering(|_, _| Reply::text("Good morning."));
    let home = Home::with(&server);
    home.set("model.api_key", Value::Null);
    home.set("model.auth", json!("work"));
    let login = json!({"token_url": server.token_url(), "client_id": "hermes-test", "refresh_token": "refresh-0",
        "access_token": "access-0", "expires_at": 1});
    home.write("auth.json", json!({"logins": {"work": login}}).to_string());
    // The first start of a home is not what is tested.
    home.hermes(&["sessions", "list"]).run().success();

    let running = ["one", "two"].map(|text| home.hermes(&["-z", text]).spawn());
    for process in running {
        assert_eq!(process.wait().success().stdout, "Good morning.\n");
    }
    assert_eq!(server.tokens(), 1, "each process refreshed");
    let sent: Vec<String> =
        server.turns().iter().map(|request| request.header("authorization").unwrap().to_owned()).collect();
    assert_eq!(sent, ["Bearer access-1", "Bearer access-1"]);
    let kept: Value = serde_json::from_str(&home.read("auth.json")).unwrap();
    assert_eq!(kept["logins"]["work"]["refresh_token"], "refresh-1");
}
