//! Files from servers. Connections are encrypted unless the user allows otherwise, also after redirects, and sizes are
//! limited.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use hermes_http_client::innermost;
use reqwest::{Client, Response, StatusCode, redirect};
use url::Url;

use super::{Fetched, Fetching, SIGNATURE, made, unpacked};
use crate::error::{At, InstallError, Reason};
use crate::project;
use crate::statement::{STATEMENT, STATEMENT_SIGNATURE};

const CONNECT: Duration = Duration::from_secs(20);
const SILENCE: Duration = Duration::from_secs(60);
/// Longest time of a transfer, and of that of a small file.
const WHOLE: Duration = Duration::from_secs(600);
const SMALL: Duration = Duration::from_secs(20);
const REDIRECTS: usize = 8;
/// Most bytes of a signature or a manifest.
const MOST_SMALL: u64 = 64 << 10;

/// An HTTP client for sources.
pub(super) struct Web {
    pub(super) client: Client,
    insecure: bool,
}

impl Web {
    /// A client for `https` only, or also for `http`.
    pub(super) fn new(insecure: bool) -> Result<Self, InstallError> {
        let policy = redirect::Policy::custom(move |attempt| {
            if attempt.previous().len() > REDIRECTS {
                attempt.error("there are too many redirects")
            } else if attempt.url().scheme() != "https" && !insecure {
                attempt.error("it redirects to an address without encryption")
            } else {
                attempt.follow()
            }
        });
        let client = hermes_http_client::builder()
            .redirect(policy)
            .connect_timeout(CONNECT)
            .read_timeout(SILENCE)
            .timeout(WHOLE)
            .build()
            .map_err(|error| InstallError::Fetch { from: "the source".to_owned(), reason: innermost(&error).into() })?;
        Ok(Self { client, insecure })
    }

    pub(super) fn allow(&self, url: &Url) -> Result<(), InstallError> {
        if url.scheme() == "https" || self.insecure { Ok(()) } else { Err(InstallError::Insecure(url.to_string())) }
    }

    /// Sends a request.
    async fn get(&self, url: &Url) -> Result<Response, InstallError> {
        self.allow(url)?;
        self.client.get(url.clone()).send().await.map_err(|error| failed(url, &error))
    }

    /// Fetches a small file that may be missing. A server that does not send it soon does not have it.
    async fn small(&self, url: &Url) -> Option<Vec<u8>> {
        tokio::time::timeout(SMALL, self.beginning(url)).await.ok()?
    }

    async fn beginning(&self, url: &Url) -> Option<Vec<u8>> {
        let mut response = self.get(url).await.ok().filter(|response| response.status() == StatusCode::OK)?;
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.ok()? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() as u64 > MOST_SMALL {
                return None;
            }
        }
        Some(bytes)
    }
}

pub(super) fn failed(url: &Url, error: &reqwest::Error) -> InstallError {
    let why = innermost(error);
    // This is how rustls reports an unencrypted answer.
    if url.scheme() == "https" && why.contains("InvalidContentType") {
        return InstallError::WithoutTls(url.to_string());
    }
    InstallError::Fetch { from: url.to_string(), reason: why.into() }
}

/// Writes a body of at most `most` bytes to a file.
pub(super) async fn save(
    mut response: Response,
    url: &Url,
    file: &Path,
    most: u64,
    how: &Fetching<'_>,
) -> Result<(), InstallError> {
    let too_large = || InstallError::Fetch {
        from: url.to_string(),
        reason: Reason::new(
            format!("the file is larger than {} MiB, the most that can be installed", most >> 20),
            "check the address",
        ),
    };
    let all = response.content_length();
    if all.is_some_and(|all| all > most) {
        return Err(too_large());
    }
    let mut out = fs::File::create_new(file).at(file)?;
    let mut done = 0u64;
    how.progress.bytes(0, all);
    while let Some(chunk) = response.chunk().await.map_err(|error| failed(url, &error))? {
        done += chunk.len() as u64;
        if done > most {
            return Err(too_large());
        }
        out.write_all(&chunk).at(file)?;
        how.progress.bytes(done, all);
    }
    Ok(())
}

pub(super) async fn fetch(url: &Url, work: &Path, how: &Fetching<'_>) -> Result<Fetched, InstallError> {
    let web = Web::new(how.insecure)?;
    web.allow(url)?;
    how.progress.step(&format!("fetching {url}"));
    let response = web.get(url).await?;
    let status = response.status();
    if status != StatusCode::OK {
        let fix = match status.as_u16() {
            401 | 403 => "download the file by other means, and install the downloaded file",
            404 => "check the address",
            _ => "try again later",
        };
        let reason = Reason::new(format!("the server answers {status}"), fix);
        return Err(InstallError::Fetch { from: url.to_string(), reason });
    }
    let archive = work.join("archive");
    save(response, url, &archive, how.caps.total, how).await?;
    let mut beside = url.clone();
    beside.set_path(&format!("{}{SIGNATURE}", url.path()));
    let signature = web.small(&beside).await;
    let mut magic = [0; 4];
    let read = std::io::Read::read(&mut fs::File::open(&archive).at(&archive)?, &mut magic).at(&archive)?;
    if &magic[..read] != b"\0asm" {
        if let Some(signature) = signature {
            let file = project::with_ending(&archive, SIGNATURE);
            fs::write(&file, signature).at(&file)?;
        }
        return unpacked(archive, url.as_str(), work, how);
    }
    let folder = made(work, "plugin")?;
    let component = folder.join(component_name(url));
    fs::rename(&archive, &component).at(&component)?;
    if let Some(signature) = signature {
        let file = project::with_ending(&component, SIGNATURE);
        fs::write(&file, signature).at(&file)?;
    }
    for name in ["plugin.yaml", project::KEY, STATEMENT, STATEMENT_SIGNATURE] {
        let Ok(mut address) = url.join(name) else { break };
        address.set_query(url.query());
        let Some(text) = web.small(&address).await else {
            // Only a manifest can have a signed statement.
            if name == "plugin.yaml" { break } else { continue }
        };
        let file = folder.join(name);
        fs::write(&file, text).at(&file)?;
    }
    Ok(Fetched { folder, resolved: None, archive: None, links: Vec::new() })
}

/// The last part of the address if it is a plain name.
fn component_name(url: &Url) -> String {
    let last = url.path_segments().and_then(|mut parts| parts.next_back()).unwrap_or_default();
    let stem: String = last.strip_suffix(".wasm").unwrap_or(last).to_lowercase();
    let plain = !stem.is_empty()
        && stem.len() <= 64
        && stem.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    if plain { format!("{stem}.wasm") } else { "plugin.wasm".to_owned() }
}
