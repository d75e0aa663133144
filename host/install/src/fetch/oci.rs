//! Images of OCI registries: the part of the distribution API that pulls need. All content is verified by its digest; only
//! the tag is trusted to the registry. `docs/dependencies.md` says why oci-client is not used.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use reqwest::header::{ACCEPT, AUTHORIZATION, WWW_AUTHENTICATE};
use reqwest::{Response, StatusCode};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use url::Url;

use super::web::{Web, failed, save};
use super::{Fetched, Fetching, below, made, unpacked};
use crate::error::{At, InstallError, Reason};
use crate::source::Image;

const INDEX: &[&str] =
    &["application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json"];
pub(super) const MANIFESTS: &[&str] =
    &["application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json"];
pub(super) const TITLE: &str = "org.opencontainers.image.title";
/// Most bytes of a manifest or of the answer with a token.
const MOST_JSON: usize = 4 << 20;
const MOST_LAYERS: usize = 64;
/// The remedy for a registry that requires a login.
const BY_HAND: &str = "download the image by other means, and install its folder";

#[derive(Debug, Deserialize)]
struct Manifest {
    #[serde(default, rename = "mediaType")]
    media_type: String,
    #[serde(default)]
    layers: Vec<Descriptor>,
    #[serde(default)]
    manifests: Vec<Descriptor>,
}

#[derive(Debug, Clone, Deserialize)]
struct Descriptor {
    #[serde(default, rename = "mediaType")]
    media_type: String,
    digest: String,
    size: u64,
    #[serde(default)]
    annotations: std::collections::BTreeMap<String, String>,
}

struct Registry<'a> {
    web: Web,
    base: Url,
    image: &'a Image,
    token: Option<String>,
}

pub(super) async fn fetch(image: &Image, work: &Path, how: &Fetching<'_>) -> Result<Fetched, InstallError> {
    how.progress.step(&format!("fetching {image}"));
    let wrong = |reason: Reason| InstallError::Fetch { from: image.to_string(), reason };
    // A registry speaks one of the two at its port. A user who allows unencrypted connections means `http`.
    let scheme = if how.insecure { "http" } else { "https" };
    let base = Url::parse(&format!("{scheme}://{}/v2/{}/", image.registry, image.repository));
    let base = base.map_err(|error| wrong(error.to_string().into()))?;
    let mut registry = Registry { web: Web::new(how.insecure)?, base, image, token: None };

    let (mut manifest, mut digest) = registry.manifest(&image.reference).await?;
    if manifest.layers.is_empty() && !manifest.manifests.is_empty() {
        let inner = only(&manifest.manifests).ok_or_else(|| {
            let why = "it is an index of several images, and none of them is for WebAssembly";
            wrong(Reason::new(why, "name one of them by its digest"))
        })?;
        // A tag here would name content that the registry can change.
        if sha256_of(&inner.digest).is_none() {
            return Err(registry.unsupported(&inner.digest));
        }
        (manifest, digest) = registry.manifest(&inner.digest.clone()).await?;
    }
    if INDEX.contains(&manifest.media_type.as_str())
        || manifest.layers.is_empty()
        || manifest.layers.len() > MOST_LAYERS
    {
        return Err(wrong("the image does not contain a plugin".into()));
    }
    if let [layer] = manifest.layers.as_slice()
        && layer.media_type.contains("tar")
    {
        let archive = work.join("archive");
        registry.blob(layer, &archive, how).await?;
        return match layer.media_type.contains("gzip") {
            true => Ok(Fetched { resolved: Some(digest), ..unpacked(archive, &image.to_string(), work, how)? }),
            false => {
                let folder = made(work, "unpacked")?;
                let size = fs::metadata(&archive).at(&archive)?.len();
                let file = fs::File::open(&archive).at(&archive)?;
                let links = below(&folder, crate::archive::unpack_tar(file, size, &folder, how.caps)?);
                let folder = crate::project::root_of(&folder)?;
                Ok(Fetched { folder, resolved: Some(digest), archive: None, links })
            }
        };
    }
    let folder = made(work, "plugin")?;
    let mut room = how.caps.total;
    for layer in &manifest.layers {
        let Some(name) = file_name(layer) else { continue };
        room = room.checked_sub(layer.size).ok_or_else(|| {
            wrong(format!("it is larger than {} MiB, the most that can be installed", how.caps.total >> 20).into())
        })?;
        let file = folder.join(&name);
        if file.exists() {
            return Err(wrong(format!("it contains `{name}` twice").into()));
        }
        registry.blob(layer, &file, how).await?;
    }
    Ok(Fetched { folder, resolved: Some(digest), archive: None, links: Vec::new() })
}

/// The only image of an index, else the one for WebAssembly.
fn only(manifests: &[Descriptor]) -> Option<&Descriptor> {
    match manifests {
        [one] => Some(one),
        several => several
            .iter()
            .find(|one| one.media_type.contains("wasm") || one.annotations.values().any(|v| v.contains("wasm"))),
    }
}

/// The name of the file in a layer: its title, or a default for a component without one.
fn file_name(layer: &Descriptor) -> Option<String> {
    match layer.annotations.get(TITLE) {
        Some(title) => {
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
            let fits = title.len() <= 100 && !title.starts_with('.') && !title.is_empty() && title.chars().all(plain);
            fits.then(|| title.clone())
        }
        None => layer.media_type.contains("wasm").then(|| "plugin.wasm".to_owned()),
    }
}

impl Registry<'_> {
    fn wrong(&self, reason: impl Into<Reason>) -> InstallError {
        InstallError::Fetch { from: self.image.to_string(), reason: reason.into() }
    }

    fn unsupported(&self, digest: &str) -> InstallError {
        let shown: String = digest.chars().take(100).collect();
        let why = format!("its content is named by `{shown}`, which is not a sha256 digest, so it cannot be verified");
        self.wrong(Reason::new(why, "ask its publisher for an image with sha256 digests"))
    }

    async fn manifest(&mut self, reference: &str) -> Result<(Manifest, String), InstallError> {
        // A tag has no colon. Only a digest that can be verified names content.
        if reference.contains(':') && sha256_of(reference).is_none() {
            return Err(self.unsupported(reference));
        }
        let url = self.base.join(&format!("manifests/{}", reference.replace(':', "%3A")));
        let url = url.map_err(|error| self.wrong(error.to_string()))?;
        let accepted: Vec<&str> = MANIFESTS.iter().chain(INDEX).copied().collect();
        let response = self.get(&url, &accepted.join(", ")).await?;
        let bytes = limited(response, &url).await?;
        let digest = format!("sha256:{}", hex(&Sha256::digest(&bytes)));
        if sha256_of(reference).is_some() && reference.to_lowercase() != digest {
            let why = format!("the registry sent an image with the digest {digest} instead of {reference}");
            return Err(self.wrong(Reason::new(why, "do not trust this registry")));
        }
        let manifest =
            serde_json::from_slice(&bytes).map_err(|error| self.wrong(format!("its manifest is damaged: {error}")))?;
        Ok((manifest, digest))
    }

    async fn blob(&mut self, layer: &Descriptor, file: &Path, how: &Fetching<'_>) -> Result<(), InstallError> {
        let Some(wanted) = sha256_of(&layer.digest) else { return Err(self.unsupported(&layer.digest)) };
        let url = self.base.join(&format!("blobs/sha256%3A{wanted}")).map_err(|error| self.wrong(error.to_string()))?;
        let response = self.get(&url, "*/*").await?;
        save(response, &url, file, layer.size.min(how.caps.total), how).await?;
        let mut hasher = Sha256::new();
        let mut content = fs::File::open(file).at(file)?;
        let mut buffer = vec![0; 64 << 10];
        loop {
            match content.read(&mut buffer).at(file)? {
                0 => break,
                read => hasher.update(&buffer[..read]),
            }
        }
        let found = hex(&hasher.finalize());
        if found != wanted.to_lowercase() {
            let why = format!("a layer has the digest sha256:{found}, but should be {}", layer.digest);
            return Err(self.wrong(Reason::new(why, "try again; if it fails again, do not trust this registry")));
        }
        Ok(())
    }

    /// Sends a request, and again with an anonymous token if the registry wants one.
    async fn get(&mut self, url: &Url, accept: &str) -> Result<Response, InstallError> {
        self.web.allow(url)?;
        let mut response = self.ask(url, accept).await?;
        if response.status() == StatusCode::UNAUTHORIZED && self.token.is_none() {
            let challenge = response.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
            let challenge = challenge.unwrap_or_default().to_owned();
            self.token = Some(self.anonymous(&challenge).await?);
            response = self.ask(url, accept).await?;
        }
        match response.status() {
            StatusCode::OK => Ok(response),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                Err(self.wrong(Reason::new("the registry requires a login", BY_HAND)))
            }
            StatusCode::NOT_FOUND => {
                Err(self.wrong(Reason::new("the registry has no such image", "check its name and tag")))
            }
            other => Err(self.wrong(Reason::new(format!("the registry answers {other}"), "try again later"))),
        }
    }

    async fn ask(&self, url: &Url, accept: &str) -> Result<Response, InstallError> {
        let mut request = self.web.client.get(url.clone()).header(ACCEPT, accept);
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        request.send().await.map_err(|error| failed(url, &error))
    }

    async fn anonymous(&self, challenge: &str) -> Result<String, InstallError> {
        let realm = parameter(challenge, "realm").filter(|_| challenge.to_lowercase().starts_with("bearer "));
        let realm = realm.ok_or_else(|| self.wrong(Reason::new("the registry requires a login", BY_HAND)))?;
        let mut url = Url::parse(&realm).map_err(|_| self.wrong("the registry gives no valid address for a token"))?;
        self.web.allow(&url)?;
        {
            let mut query = url.query_pairs_mut();
            if let Some(service) = parameter(challenge, "service") {
                query.append_pair("service", &service);
            }
            query.append_pair("scope", &format!("repository:{}:pull", self.image.repository));
        }
        let response = self.web.client.get(url.clone()).send().await.map_err(|error| failed(&url, &error))?;
        if response.status() != StatusCode::OK {
            return Err(self.wrong(Reason::new("the registry gives no anonymous token", BY_HAND)));
        }
        token_in(&limited(response, &url).await?).ok_or_else(|| self.wrong("the registry's token cannot be read"))
    }
}

/// The token in the answer of a registry's token service.
pub(super) fn token_in(answer: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Answer {
        #[serde(default)]
        token: String,
        #[serde(default)]
        access_token: String,
    }
    let answer: Answer = serde_json::from_slice(answer).ok()?;
    Some(if answer.token.is_empty() { answer.access_token } else { answer.token })
}

/// The hexadecimal digits of a digest `sha256:…`.
fn sha256_of(digest: &str) -> Option<&str> {
    let hex = digest.strip_prefix("sha256:")?;
    (hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(hex)
}

/// The value of a parameter of a challenge, such as `realm="https://…"`.
pub(super) fn parameter(challenge: &str, name: &str) -> Option<String> {
    let start = challenge.find(&format!("{name}=\""))? + name.len() + 2;
    challenge[start..].split_once('"').map(|(value, _)| value.to_owned())
}

pub(super) async fn limited(mut response: Response, url: &Url) -> Result<Vec<u8>, InstallError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| failed(url, &error))? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > MOST_JSON {
            return Err(InstallError::Fetch { from: url.to_string(), reason: "its answer is too long".into() });
        }
    }
    Ok(bytes)
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
