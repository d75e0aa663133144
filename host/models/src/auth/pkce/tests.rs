//! The address for the browser, and a browser that never comes back.

use std::collections::BTreeMap;

use super::*;
use crate::{Flow, LoginSettings};

fn client() -> LoginClient {
    let text = |text: &str| Some(text.to_owned());
    let settings = LoginSettings {
        flow: Some(Flow::Pkce),
        client_id: text("hermes test"),
        authorize_url: text("https://id.test/authorize?tenant=1"),
        token_url: text("https://id.test/token"),
        scope: text("models offline"),
        parameters: BTreeMap::from([("audience".to_owned(), "https://llm.test/&x".to_owned())]),
        ..LoginSettings::default()
    };
    LoginClient::new("work", &settings).unwrap()
}

#[test]
fn the_challenge_is_that_of_the_standard() {
    // RFC 7636, appendix B.
    let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".to_owned();
    let proof = Proof { state: String::new(), verifier };
    assert_eq!(proof.challenge(), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
}

#[test]
fn each_login_has_values_of_its_own_that_fit_the_standard() {
    let (one, two) = (Proof::new().unwrap(), Proof::new().unwrap());
    assert!(one.state != two.state && one.verifier != two.verifier && one.state != one.verifier);
    let unreserved = |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_');
    for value in [&one.state, &one.verifier] {
        assert!(value.len() == 43 && value.chars().all(unreserved), "{value}");
    }
}

#[test]
fn the_address_for_the_browser_says_all_and_holds_no_verifier() {
    let client = client();
    let super::super::login::Start::Browser(browser) = &client.start else { panic!("another flow") };
    let redirect = Url::parse("http://127.0.0.1:4567/callback").unwrap();
    let proof = Proof::new().unwrap();
    let page = page(&client, &browser.authorize_url, &redirect, &proof);
    let fields: BTreeMap<String, String> = page.query_pairs().into_owned().collect();
    for (name, value) in [
        ("tenant", "1"),
        ("response_type", "code"),
        ("client_id", "hermes test"),
        ("redirect_uri", "http://127.0.0.1:4567/callback"),
        ("scope", "models offline"),
        ("state", proof.state.as_str()),
        ("code_challenge_method", "S256"),
        ("code_challenge", proof.challenge().as_str()),
        ("audience", "https://llm.test/&x"),
    ] {
        assert_eq!(fields.get(name).map(String::as_str), Some(value), "{name}");
    }
    assert!(!page.as_str().contains(&proof.verifier));
}

#[tokio::test]
async fn a_browser_that_does_not_come_back_ends_the_login_in_time() {
    let client = client();
    let super::super::login::Start::Browser(browser) = client.start.clone() else { panic!("another flow") };
    let mut port = 0;
    let mut on_step = |step: LoginStep<'_>| {
        if let LoginStep::Open { redirect, .. } = step {
            port = redirect.port().unwrap();
        }
    };
    let error = log_in(&client, &browser, Duration::from_millis(50), &mut on_step).await.unwrap_err();
    assert!(matches!(error, LoginError::Late { .. }), "{error:?}");
    assert!(tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err(), "the port is closed");
}
