//! Publishing to an OCI registry: an image with the packed plugin as its only layer, which [`super::oci`] fetches.

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, LOCATION, WWW_AUTHENTICATE};
use reqwest::{Body, Method, Response, StatusCode};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use url::{Host, Url};

use super::Progress;
use super::login::Login;
use super::oci::{MANIFESTS, TITLE, hex, limited, parameter, token_in};
use super::web::{Web, failed};
use crate::error::{InstallError, Reason};
use crate::pack::Package;
use crate::source::Image;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
/// What the image is, for the lists of registries.
const PLUGIN: &str = "application/vnd.hermes.plugin.v1";
/// An image without a program has this configuration.
const EMPTY: (&str, &[u8]) = ("application/vnd.oci.empty.v1+json", b"{}");
/// The remedy where a registry refuses.
const LOG_IN: &str =
    "log in with `docker login` or `podman login`, or add --username NAME; the account must be allowed to write there";

/// What a tag names before a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tagged {
    /// Nothing.
    Free,
    /// The same image.
    Same,
    /// Another image, with this digest.
    Other(String),
}

/// An image that is ready to be pushed.
pub struct Push<'a> {
    registry: Registry<'a>,
    package: &'a Package,
    manifest: Vec<u8>,
    /// What its tag names now.
    pub tagged: Tagged,
}

impl<'a> Push<'a> {
    /// Makes the image and asks the registry for what its tag names. Nothing is written.
    ///
    /// # Errors
    ///
    /// When the registry cannot be reached, or refuses the login.
    pub async fn prepare(
        package: &'a Package,
        image: &'a Image,
        insecure: bool,
        login: Option<&'a Login>,
    ) -> Result<Self, InstallError> {
        let wrong = |reason: Reason| InstallError::Push { to: image.to_string(), reason };
        if image.reference.contains(':') {
            let why = "a digest names content that exists already";
            return Err(wrong(Reason::new(why, "name a tag, as in oci://host/name:1.0")));
        }
        let scheme = if insecure { "http" } else { "https" };
        let base = Url::parse(&format!("{scheme}://{}/v2/{}/", image.registry, image.repository));
        let base = base.map_err(|error| wrong(error.to_string().into()))?;
        let mut registry = Registry { web: Web::new(insecure)?, base, image, login, token: None };
        let manifest = manifest(package);
        let tagged = match registry.tagged().await? {
            None => Tagged::Free,
            Some(found) if found == digest(&manifest) => Tagged::Same,
            Some(found) => Tagged::Other(found),
        };
        Ok(Self { registry, package, manifest, tagged })
    }

    /// The digest of the image.
    pub fn digest(&self) -> String {
        digest(&self.manifest)
    }

    /// Writes the image, its tag last: a push that is interrupted leaves the tag as it was.
    ///
    /// # Errors
    ///
    /// When the registry refuses a part.
    pub async fn write(mut self, progress: &dyn Progress) -> Result<(), InstallError> {
        progress.step(&format!("pushing {}", self.registry.image));
        self.registry.blob(EMPTY.1).await?;
        self.registry.blob(&self.package.archive).await?;
        let url = self.registry.at(&format!("manifests/{}", self.registry.image.reference))?;
        let answer = self.registry.send(Method::PUT, &url, Some((MANIFEST, &self.manifest))).await?;
        self.registry.expect(&answer, &[StatusCode::CREATED, StatusCode::OK])?;
        if self.registry.tagged().await?.as_deref() != Some(&self.digest()) {
            let why = "the registry accepted the image, and its tag names another one";
            return Err(self.registry.wrong(Reason::new(why, "push again; somebody else may have pushed meanwhile")));
        }
        Ok(())
    }
}

/// The image's manifest. The same package gives the same bytes.
fn manifest(package: &Package) -> Vec<u8> {
    let mut annotations = Map::new();
    for (key, value) in &package.about {
        annotations.insert(format!("org.opencontainers.image.{key}"), Value::from(value.as_str()));
    }
    let layer = &package.archive;
    let manifest = json!({
        "schemaVersion": 2, "mediaType": MANIFEST, "artifactType": PLUGIN,
        "config": { "mediaType": EMPTY.0, "digest": digest(EMPTY.1), "size": EMPTY.1.len() },
        "layers": [{
            "mediaType": LAYER, "digest": digest(layer), "size": layer.len(),
            "annotations": { TITLE: package.file_name },
        }],
        "annotations": annotations,
    });
    manifest.to_string().into_bytes()
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex(&Sha256::digest(bytes)))
}

struct Registry<'a> {
    web: Web,
    base: Url,
    image: &'a Image,
    login: Option<&'a Login>,
    /// The value of the `Authorization` header, once the registry wanted one.
    token: Option<String>,
}

impl Registry<'_> {
    fn wrong(&self, reason: impl Into<Reason>) -> InstallError {
        InstallError::Push { to: self.image.to_string(), reason: reason.into() }
    }

    fn at(&self, path: &str) -> Result<Url, InstallError> {
        self.base.join(path).map_err(|error| self.wrong(error.to_string()))
    }

    /// The digest of what the tag names; none if nothing.
    async fn tagged(&mut self) -> Result<Option<String>, InstallError> {
        let url = self.at(&format!("manifests/{}", self.image.reference))?;
        let answer = self.send(Method::GET, &url, None).await?;
        if answer.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        self.expect(&answer, &[StatusCode::OK])?;
        Ok(Some(digest(&limited(answer, &url).await?)))
    }

    /// Uploads content that the registry does not have.
    async fn blob(&mut self, bytes: &[u8]) -> Result<(), InstallError> {
        let name = digest(bytes);
        let there = self.at(&format!("blobs/{}", name.replace(':', "%3A")))?;
        if self.send(Method::HEAD, &there, None).await?.status() == StatusCode::OK {
            return Ok(());
        }
        let uploads = self.at("blobs/uploads/")?;
        let begun = self.send(Method::POST, &uploads, Some(("application/octet-stream", &[]))).await?;
        self.expect(&begun, &[StatusCode::ACCEPTED])?;
        let place = begun.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let place = place.and_then(|place| uploads.join(place).ok());
        let mut place = place.ok_or_else(|| self.wrong("the registry names no place for the upload"))?;
        place.query_pairs_mut().append_pair("digest", &name);
        let done = self.send(Method::PUT, &place, Some(("application/octet-stream", bytes))).await?;
        self.expect(&done, &[StatusCode::CREATED, StatusCode::OK])
    }

    fn expect(&self, answer: &Response, wanted: &[StatusCode]) -> Result<(), InstallError> {
        let status = answer.status();
        if wanted.contains(&status) {
            return Ok(());
        }
        Err(match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN if self.login.is_some() => {
                self.wrong(Reason::new("the registry does not let this login write there", LOG_IN))
            }
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                self.wrong(Reason::new("the registry requires a login", LOG_IN))
            }
            StatusCode::NOT_FOUND => {
                self.wrong(Reason::new("the registry has no such repository, and creates none", "check its name"))
            }
            other => self.wrong(Reason::new(format!("the registry answers {other}"), "try again later")),
        })
    }

    /// Sends a request, and again with a token if the registry wants one.
    async fn send(&mut self, method: Method, url: &Url, body: Option<(&str, &[u8])>) -> Result<Response, InstallError> {
        self.web.allow(url)?;
        let answer = self.ask(&method, url, body).await?;
        if answer.status() != StatusCode::UNAUTHORIZED || self.token.is_some() {
            return Ok(answer);
        }
        let challenge = answer.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
        let challenge = challenge.unwrap_or_default().to_owned();
        match self.token_for(&challenge).await? {
            None => Ok(answer),
            Some(token) => {
                self.token = Some(token);
                self.ask(&method, url, body).await
            }
        }
    }

    async fn ask(&self, method: &Method, url: &Url, body: Option<(&str, &[u8])>) -> Result<Response, InstallError> {
        let mut request = self.web.client.request(method.clone(), url.clone()).header(ACCEPT, MANIFESTS.join(", "));
        // Some registries let another host take uploads, by an address that needs no login.
        if let Some(token) = self.token.as_ref().filter(|_| url.origin() == self.base.origin()) {
            request = request.header(AUTHORIZATION, token);
        }
        if let Some((kind, bytes)) = body {
            request = request.header(CONTENT_TYPE, kind).body(Body::from(bytes.to_vec()));
        }
        request.send().await.map_err(|error| match failed(url, &error) {
            InstallError::Fetch { reason, .. } => self.wrong(reason),
            other => other,
        })
    }

    /// The value of an `Authorization` header for what a registry wants; none if there is no login and no anonymous token.
    async fn token_for(&self, challenge: &str) -> Result<Option<String>, InstallError> {
        let wants = challenge.to_lowercase();
        if wants.starts_with("basic") {
            return self.login.map(|login| self.guarded(login, &self.base)).transpose();
        }
        let Some(realm) = parameter(challenge, "realm").filter(|_| wants.starts_with("bearer ")) else {
            return Ok(None);
        };
        let mut url = Url::parse(&realm).map_err(|_| self.wrong("the registry gives no valid address for a token"))?;
        self.web.allow(&url)?;
        {
            let mut query = url.query_pairs_mut();
            if let Some(service) = parameter(challenge, "service") {
                query.append_pair("service", &service);
            }
            query.append_pair("scope", &format!("repository:{}:pull,push", self.image.repository));
        }
        let mut request = self.web.client.get(url.clone());
        if let Some(login) = self.login {
            request = request.header(AUTHORIZATION, self.guarded(login, &url)?);
        }
        let answer = request.send().await.map_err(|error| failed(&url, &error))?;
        if answer.status() != StatusCode::OK {
            return Ok(None);
        }
        let token = token_in(&limited(answer, &url).await?);
        let token = token.ok_or_else(|| self.wrong("the registry's token cannot be read"))?;
        Ok(Some(format!("Bearer {token}")))
    }

    /// The login for an address. Without encryption it goes to this machine only.
    fn guarded(&self, login: &Login, url: &Url) -> Result<String, InstallError> {
        let is_here = match url.host() {
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        };
        if url.scheme() == "https" || is_here {
            return Ok(login.basic());
        }
        let why = format!("the password of `{}` would be sent without encryption", login.name);
        Err(self.wrong(Reason::new(why, "push without --insecure, or to a registry on this machine")))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::{Arc, Mutex};

    use axum::extract::{Request, State};
    use axum::http::{HeaderMap, Response as Answer, Uri};
    use axum::{Router, body};
    use hermes_diagnostic::Diagnose as _;

    use super::*;
    use crate::fetch::Silent;
    use crate::pack::pack;
    use crate::testing::folder;

    /// What a registry asks for.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Asks {
        Nothing,
        Password,
        Token,
    }

    #[derive(Default)]
    struct Content {
        stored: BTreeMap<String, Vec<u8>>,
        lines: Vec<String>,
    }

    type Shared = (Asks, Arc<Mutex<Content>>);

    async fn answer(State((asks, content)): State<Shared>, request: Request) -> Answer<body::Body> {
        let (parts, sent) = request.into_parts();
        let sent = body::to_bytes(sent, 1 << 20).await.unwrap().to_vec();
        let (method, uri, headers): (_, Uri, HeaderMap) = (parts.method, parts.uri, parts.headers);
        let given = headers.get("authorization").map_or("", |value| value.to_str().unwrap()).to_owned();
        let mut content = content.lock().unwrap();
        content.lines.push(format!("{method} {uri}"));
        let plain = |status: u16| Answer::builder().status(status);
        let with = |status: u16, bytes: Vec<u8>| plain(status).body(bytes.into()).unwrap();
        let host = headers["host"].to_str().unwrap().to_owned();
        let password = format!("Basic {}", "bWU6c2VjcmV0");
        if uri.path() == "/token" {
            let known = given == password && uri.query().unwrap().contains("push");
            return with(if known { 200 } else { 401 }, br#"{"token":"t0"}"#.to_vec());
        }
        let (wanted, challenge) = match asks {
            Asks::Nothing => (String::new(), String::new()),
            Asks::Password => (password, "Basic realm=\"here\"".to_owned()),
            Asks::Token => ("Bearer t0".to_owned(), format!("Bearer realm=\"http://{host}/token\",service=\"here\"")),
        };
        if !wanted.is_empty() && given != wanted {
            return plain(401).header("www-authenticate", challenge).body(body::Body::empty()).unwrap();
        }
        let path = uri.path().replace("%3A", ":");
        match (method.as_str(), path.ends_with("/blobs/uploads/")) {
            ("POST", true) => {
                plain(202).header("location", "/v2/you/mine/blobs/uploads/1?state=x").body(body::Body::empty()).unwrap()
            }
            ("PUT", _) => {
                let query = uri.query().unwrap_or_default().replace("%3A", ":");
                let name = query.split_once("digest=").map_or(path, |(_, name)| format!("/v2/you/mine/blobs/{name}"));
                content.stored.insert(name, sent);
                with(201, Vec::new())
            }
            _ => match content.stored.get(&path) {
                Some(bytes) => with(200, bytes.clone()),
                None => with(404, Vec::new()),
            },
        }
    }

    /// A registry, and its address.
    async fn registry(asks: Asks) -> (Image, Arc<Mutex<Content>>) {
        let content = Arc::new(Mutex::new(Content::default()));
        let router = Router::new().fallback(answer).with_state((asks, Arc::clone(&content)));
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let registry = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move { axum::serve(listener, router).await });
        (Image { registry, repository: "you/mine".to_owned(), reference: "1.0".to_owned() }, content)
    }

    fn package(readme: &str) -> Package {
        let files = [
            ("plugin.yaml", "name: mine\nversion: 1.0.0\ndescription: Mine.\nlicense: MIT\n"),
            ("mine.wasm", "\0asm"),
            ("README.md", readme),
        ];
        pack(folder(&files).path()).unwrap()
    }

    #[tokio::test]
    async fn a_push_stores_content_before_the_tag_and_says_what_the_tag_named() {
        let me = Login { name: "me".to_owned(), password: "secret".to_owned() };
        for (asks, login) in [(Asks::Nothing, None), (Asks::Password, Some(&me)), (Asks::Token, Some(&me))] {
            let (image, content) = registry(asks).await;
            let first = package("# One\n");
            let push = Push::prepare(&first, &image, true, login).await.unwrap();
            assert_eq!(push.tagged, Tagged::Free, "{asks:?}");
            let name = push.digest();
            push.write(&Silent).await.unwrap();
            let lines = content.lock().unwrap().lines.clone();
            let at = |start: &str| lines.iter().rposition(|line| line.starts_with(start)).unwrap();
            assert!(at("PUT /v2/you/mine/manifests/1.0") > at("PUT /v2/you/mine/blobs/uploads/1?state=x&digest="));

            let again = Push::prepare(&first, &image, true, login).await.unwrap();
            assert_eq!(again.tagged, Tagged::Same);
            let other = package("# Two\n");
            let over = Push::prepare(&other, &image, true, login).await.unwrap();
            assert_eq!(over.tagged, Tagged::Other(name));
            let stored = content.lock().unwrap().stored["/v2/you/mine/manifests/1.0"].clone();
            let stored: Value = serde_json::from_slice(&stored).unwrap();
            assert_eq!(stored["layers"][0]["mediaType"], LAYER);
            assert_eq!(stored["annotations"]["org.opencontainers.image.version"], "1.0.0");
            assert_eq!(stored["annotations"]["org.opencontainers.image.licenses"], "MIT");
        }
    }

    #[tokio::test]
    async fn a_refused_login_and_a_missing_one_are_told_apart_and_a_password_is_not_sent_in_clear() {
        let package = package("# One\n");
        let wrong = Login { name: "me".to_owned(), password: "guess".to_owned() };
        let refusal = async |asks: Asks, login: Option<&Login>| {
            let (image, _) = registry(asks).await;
            Push::prepare(&package, &image, true, login).await.err().unwrap().sentence()
        };
        for asks in [Asks::Password, Asks::Token] {
            assert!(refusal(asks, None).await.contains("requires a login"), "{asks:?}");
            assert!(refusal(asks, Some(&wrong)).await.contains("does not let this login"), "{asks:?}");
        }
        let image =
            Image { registry: "registry.example".to_owned(), repository: "a".to_owned(), reference: "1".to_owned() };
        let base = Url::parse("http://registry.example/v2/a/").unwrap();
        let registry = Registry {
            web: Web::new(true).unwrap(),
            base: base.clone(),
            image: &image,
            login: Some(&wrong),
            token: None,
        };
        let refused = registry.guarded(&wrong, &base).unwrap_err().sentence();
        assert!(refused.contains("without encryption") && !refused.contains("guess"), "{refused}");
        for here in ["https://registry.example/", "http://127.0.0.1:5000/", "http://[::1]/", "http://localhost/"] {
            assert!(registry.guarded(&wrong, &Url::parse(here).unwrap()).is_ok(), "{here}");
        }
        let by_digest = Image { reference: format!("sha256:{}", "0".repeat(64)), ..image };
        assert!(Push::prepare(&package, &by_digest, true, None).await.is_err());
    }
}
