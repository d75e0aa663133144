//! Finding out how to log in to a server on the web that asks for a login, such as an MCP server: the metadata of the resource
//! (RFC 9728), the metadata of its login server (RFC 8414), and the registration of this program (RFC 7591).
//!
//! Nobody has checked the server, so a document counts only if it speaks of the resource or of the login server that was asked
//! about, and an address only if it is encrypted. A server elsewhere cannot lead to this machine.

use serde_json::{Value, json};
use url::Url;

use super::{
    login::{Flow, LoginError, LoginSettings},
    server::{self, Answer},
};
use crate::providers;

/// The most bytes of an address, a scope or an id of a server.
const LONGEST: usize = 4 << 10;
/// How a program proves its id.
const NONE: &str = "none";
const POST: &str = "client_secret_post";
const BASIC: &str = "client_secret_basic";
/// The paths of metadata.
const RESOURCE: &str = "/.well-known/oauth-protected-resource";
const ISSUER: &str = "/.well-known/oauth-authorization-server";
const OPENID: &str = "/.well-known/openid-configuration";

/// What the user knows about this program at the login server. Without an id, the program is registered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownClient {
    /// The name of this program at the server.
    pub id: Option<String>,
    /// Its password there.
    pub secret: Option<String>,
    /// What the tokens shall allow.
    pub scope: Option<String>,
    /// The port of this machine that the browser is sent back to; any free one if it is missing.
    pub port: Option<u16>,
}

/// Finds out how to log in to a server on the web, and registers this program if needed.
///
/// # Errors
///
/// [`LoginError::Server`], with what is wrong.
pub async fn discover_login(name: &str, url: &Url, known: &KnownClient) -> Result<LoginSettings, LoginError> {
    discover(url, known).await.map_err(|why| LoginError::Server { login: name.to_owned(), why })
}

async fn discover(url: &Url, known: &KnownClient) -> Result<LoginSettings, String> {
    let challenge = server::challenge(url).await.map_err(server::NoAnswer::into_why)?;
    let challenge = challenge.as_deref().map(Challenge::of).unwrap_or_default();
    let mut resource = url.clone();
    resource.set_query(None);
    resource.set_fragment(None);
    // As the server writes it: some compare it letter by letter, and an address without a path gets a slash when it is read.
    let mut published = None;
    let mut issuer = origin(url)?;
    let mut scope = known.scope.clone().or_else(|| challenge.scope.clone());
    let mut is_old = true;
    if let Some(document) = resource_metadata(url, &challenge).await? {
        is_old = false;
        published = document.word("resource").map(str::to_owned);
        let named = published.as_deref().and_then(|text| Url::parse(text).ok());
        let named = named.filter(|named| covers(named, url));
        resource = named.ok_or_else(|| format!("the metadata of {} is about another address", host(url)))?;
        let issuers = document.words_of("authorization_servers");
        let first = issuers.first().ok_or_else(|| format!("{} names no login server", host(url)))?;
        issuer = reachable(url, first)?;
        scope = scope.or_else(|| Some(document.words_of("scopes_supported").join(" ")));
    }
    let server = issuer_metadata(&issuer, is_old).await?;
    if server.is_none() && !is_old {
        return Err(format!("{} says nothing about how to log in", host(&issuer)));
    }
    let address = |key: &str| match &server {
        Some(server) => server.word(key).map(|text| reachable(url, text)).transpose(),
        None => usual_place(key).map(|path| at(&issuer, path)).transpose(),
    };
    let required =
        |key: &'static str| address(key)?.ok_or_else(|| format!("the metadata of {} has no {key}", host(&issuer)));
    let (authorize_url, token_url) = (required("authorization_endpoint")?, required("token_endpoint")?);
    let words_of = |key: &str| server.as_ref().map(|server| server.words_of(key)).unwrap_or_default();
    let methods = words_of("code_challenge_methods_supported");
    if !methods.is_empty() && !methods.contains(&"S256") {
        return Err(format!("{} offers no login with a proof key (S256)", host(&issuer)));
    }
    let scope = scope.filter(|scope| !scope.trim().is_empty() && scope.len() <= LONGEST);
    let port = known.port.map_or_else(free_port, Ok)?;
    let redirect_url = format!("http://127.0.0.1:{port}/callback");
    let methods = words_of("token_endpoint_auth_methods_supported");
    let (client_id, client_secret, is_basic) = match &known.id {
        // Without a list, servers read the header (RFC 8414, section 2).
        Some(id) => (id.clone(), known.secret.clone(), !methods.contains(&POST)),
        None => {
            let registration = address("registration_endpoint")?.ok_or_else(|| {
                format!("{} registers no programs by itself: pass the id that it gave you for one", host(&issuer))
            })?;
            register(&registration, &methods, &redirect_url, scope.as_deref()).await?
        }
    };
    let resource = published.unwrap_or_else(|| resource.into());
    Ok(LoginSettings {
        flow: Some(Flow::Pkce),
        client_id: Some(client_id),
        client_secret,
        authorize_url: Some(authorize_url.into()),
        redirect_url: Some(redirect_url),
        token_url: Some(token_url.into()),
        revoke_url: address("revocation_endpoint")?.map(Into::into),
        scope,
        parameters: [("resource".to_owned(), resource.clone())].into(),
        resource: Some(resource),
        is_basic,
        issuer: server.as_ref().and_then(|server| server.word("issuer")).map(str::to_owned),
        names_issuer: server
            .as_ref()
            .is_some_and(|server| server.is_true("authorization_response_iss_parameter_supported")),
        ..LoginSettings::default()
    })
}

/// The usual addresses of a login for servers of the protocol's version 2025-03-26 that do not describe their login.
fn usual_place(key: &str) -> Option<&'static str> {
    match key {
        "authorization_endpoint" => Some("/authorize"),
        "token_endpoint" => Some("/token"),
        "registration_endpoint" => Some("/register"),
        _ => None,
    }
}

/// Whether a token for a resource may be sent to an address: the same server, at or below the resource's path.
pub(super) fn covers(resource: &Url, url: &Url) -> bool {
    let own = resource.path().trim_end_matches('/');
    let below = url.path().strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    resource.origin() == url.origin() && below
}

/// What the server asks for in its header `WWW-Authenticate`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Challenge {
    resource_metadata: Option<String>,
    scope: Option<String>,
}

impl Challenge {
    fn of(header: &str) -> Self {
        let parameter = |name: &str| {
            let mut rest = header;
            while let Some(at) = rest.find(name) {
                let is_word = rest[..at].ends_with([' ', ',', '\t']);
                let value = rest[at + name.len()..].strip_prefix("=\"");
                if let Some((value, _)) = value.filter(|_| is_word).and_then(|value| value.split_once('"')) {
                    return Some(value.to_owned()).filter(|value| value.len() <= LONGEST);
                }
                rest = &rest[at + name.len()..];
            }
            None
        };
        Self { resource_metadata: parameter("resource_metadata"), scope: parameter("scope") }
    }
}

async fn resource_metadata(url: &Url, challenge: &Challenge) -> Result<Option<Answer>, String> {
    let path = url.path().trim_end_matches('/');
    let own = [format!("{RESOURCE}{path}"), RESOURCE.to_owned()];
    let places = match &challenge.resource_metadata {
        Some(named) => vec![reachable(url, named)?],
        None => own.iter().map(|path| at(url, path)).collect::<Result<_, _>>()?,
    };
    first_document(&places).await
}

/// `is_old`: the server itself is the login server, as in the protocol's version 2025-03-26. It may call a path of its own the
/// login server.
async fn issuer_metadata(issuer: &Url, is_old: bool) -> Result<Option<Answer>, String> {
    let path = issuer.path().trim_end_matches('/');
    let mut places = vec![at(issuer, &format!("{ISSUER}{path}"))?, at(issuer, &format!("{OPENID}{path}"))?];
    if !path.is_empty() {
        places.push(at(issuer, &format!("{path}{OPENID}"))?);
    }
    let Some(found) = first_document(&places).await? else { return Ok(None) };
    let same = |text: &str| {
        let is_below = || Url::parse(text).is_ok_and(|named| named.origin() == issuer.origin());
        text.trim_end_matches('/') == issuer.as_str().trim_end_matches('/') || (is_old && is_below())
    };
    match found.word("issuer").is_some_and(same) {
        true => Ok(Some(found)),
        false => Err(format!("the metadata of {} is about another login server", host(issuer))),
    }
}

/// The first place that has a document.
async fn first_document(places: &[Url]) -> Result<Option<Answer>, String> {
    for place in places {
        let answer = server::get(place).await.map_err(server::NoAnswer::into_why)?;
        match answer.status {
            200..300 if answer.is_object() => return Ok(Some(answer)),
            200..300 | 400..500 => {}
            status => return Err(format!("{} failed (status {status}): {}", host(place), answer.words())),
        }
    }
    Ok(None)
}

/// Registers this program: its id, its password if it gets one, and whether that goes into a header.
async fn register(
    url: &Url,
    methods: &[&str],
    redirect_url: &str,
    scope: Option<&str>,
) -> Result<(String, Option<String>, bool), String> {
    // Without a password there is none to lose.
    let method = match methods {
        [] => NONE,
        some => [NONE, POST, BASIC]
            .into_iter()
            .find(|known| some.contains(known))
            .ok_or_else(|| format!("{} offers no way to prove a program's id that Hermes knows", host(url)))?,
    };
    let mut wanted = json!({
        "client_name": "Hermes",
        "application_type": "native",
        "redirect_uris": [redirect_url],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": method,
    });
    if let Some(scope) = scope {
        wanted["scope"] = Value::from(scope);
    }
    let answer = server::post_json(url, &wanted).await.map_err(server::NoAnswer::into_why)?;
    if !answer.is_success() {
        return Err(format!(
            "{} does not register this program: {} (status {})",
            host(url),
            answer.words(),
            answer.status
        ));
    }
    let id = answer.word("client_id").filter(|id| id.len() <= LONGEST);
    let id = id.ok_or_else(|| format!("the answer of {} to the registration has no client_id", host(url)))?;
    // The server may have chosen another way than the one that was asked for.
    let method = answer.word("token_endpoint_auth_method").unwrap_or(method);
    let secret = answer.word("client_secret").filter(|_| method != NONE).map(str::to_owned);
    Ok((id.to_owned(), secret, method == BASIC))
}

/// An address that a server names. One that is elsewhere cannot name this machine.
fn reachable(from: &Url, text: &str) -> Result<Url, String> {
    let wrong = |flaw: &str| format!("{} names an address for the login that {flaw}", host(from));
    if text.len() > LONGEST {
        return Err(wrong("is too long"));
    }
    let named = server::address(text).map_err(wrong)?;
    match () {
        () if providers::is_loopback(&named) && !providers::is_loopback(from) => Err(wrong("leads to this machine")),
        () if !named.username().is_empty() || named.password().is_some() => Err(wrong("has a user name")),
        () => Ok(named),
    }
}

fn origin(url: &Url) -> Result<Url, String> {
    at(url, "/")
}

fn at(url: &Url, path: &str) -> Result<Url, String> {
    let mut url = reachable(url, url.as_str())?;
    url.set_path(path);
    url.set_query(None);
    url.set_fragment(None);
    Ok(url)
}

fn host(url: &Url) -> String {
    providers::host(url).unwrap_or_default()
}

/// A port that is free now. Servers compare the whole address with the registered one, so it must be known before the login.
fn free_port() -> Result<u16, String> {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0));
    let port = listener.and_then(|listener| listener.local_addr()).map(|address| address.port());
    port.map_err(|why| format!("no port of this machine is free: {why}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn a_challenge_names_its_metadata_and_scope() {
        let challenge = Challenge::of(
            "Bearer error=\"invalid_token\", resource_metadata=\"https://a.test/meta\", scope=\"read write\"",
        );
        assert_eq!(challenge.resource_metadata.as_deref(), Some("https://a.test/meta"));
        assert_eq!(challenge.scope.as_deref(), Some("read write"));
        for header in ["Bearer", "Bearer xscope=\"a\"", "Bearer scope=a", "scope=\"", "Bearer scope"] {
            assert_eq!(Challenge::of(header), Challenge::default(), "{header}");
        }
    }

    #[test]
    fn a_token_goes_to_its_resource_and_nowhere_else() {
        let resource = url("https://a.test/mcp");
        for (address, expected) in [
            ("https://a.test/mcp", true),
            ("https://a.test/mcp/", true),
            ("https://a.test/mcp/x?y", true),
            ("https://a.test/mcpx", false),
            ("https://a.test/", false),
            ("http://a.test/mcp", false),
            ("https://a.test:8443/mcp", false),
            ("https://a.test.evil.test/mcp", false),
        ] {
            assert_eq!(covers(&resource, &url(address)), expected, "{address}");
        }
        assert!(covers(&url("https://a.test"), &url("https://a.test/mcp")));
    }

    #[test]
    fn a_server_elsewhere_cannot_lead_to_this_machine_or_to_plain_text() {
        let (far, near) = (url("https://a.test/mcp"), url("http://127.0.0.1:8080/mcp"));
        assert!(reachable(&far, "https://login.test/authorize").is_ok());
        assert!(reachable(&near, "http://127.0.0.1:9090/authorize").is_ok());
        for hostile in [
            "http://127.0.0.1:8080/",
            "https://localhost/",
            "https://[::1]/",
            "http://login.test/",
            "javascript:alert(1)",
            "file:///etc/passwd",
            "https://a.test@evil.test/",
            "not an address",
        ] {
            assert!(reachable(&far, hostile).is_err(), "{hostile}");
        }
        assert!(reachable(&far, &format!("https://a.test/{}", "x".repeat(LONGEST))).is_err());
    }
}
