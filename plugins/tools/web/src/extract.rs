//! The tool `web_extract`: pages, PDF files and texts of the web, each as a text with its title and address.

use hermes_plugin::http::{Request, Response};
use hermes_plugin::tools::Output;
use hermes_plugin::{Error, task};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use crate::config::Config;
use crate::html::{self, Page};
use crate::{beginning, charset, one_line, pdf, summary, visible, without_keys};

pub(crate) const DESCRIPTION: &str = "Reads web pages as Markdown, and the text of PDF files. A long page comes as a summary, with a \
                                      file that has all of it.";
/// The time limit of a call.
pub(crate) const TIME_MS: u32 = 300_000;

const URLS: usize = 5;
const REQUEST_MS: u32 = 30_000;
/// What is left of a call's time for the answer.
const RESERVE_MS: u32 = 3_000;
const TITLE: usize = 200;
/// Most bytes of HTML that are read: its tree takes many times as much memory.
const HTML: usize = 4 << 20;
/// Most characters of a page in the file with the whole text.
const WHOLE: usize = 1_000_000;
const ACCEPT: &str = "text/markdown, text/html, application/xhtml+xml, application/pdf, text/plain;q=0.9, */*;q=0.5";

pub(crate) fn parameters() -> Value {
    json!({
        "type": "object",
        "properties": {
            "urls": {
                "type": "array",
                "items": { "type": "string" },
                "minItems": 1,
                "maxItems": URLS,
                "description": "The addresses, at most 5, with https:// or http://.",
            },
        },
        "required": ["urls"],
    })
}

#[derive(Deserialize)]
pub(crate) struct Extract {
    #[serde(deserialize_with = "addresses")]
    urls: Vec<String>,
}

/// Accepts addresses as models write them: also a single one, or a list as a text.
fn addresses<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let wrong = |value: &Value| serde::de::Error::custom(format!("urls is a list of addresses, not {value}"));
    match Value::deserialize(deserializer)? {
        Value::String(text) if text.trim_start().starts_with('[') => {
            serde_json::from_str(&text).map_err(|_| wrong(&Value::String(text)))
        }
        Value::String(text) => Ok(vec![text]),
        value => serde_json::from_value(value.clone()).map_err(|_| wrong(&value)),
    }
}

/// What was read at an address.
struct Read {
    page: Page,
    /// The address after redirects.
    url: String,
    /// What the text is, if it is not a page, and what is missing.
    note: String,
}

/// A text for the model, and all of it if that is more.
struct Shown {
    text: String,
    whole: Option<String>,
}

pub(crate) fn run(config: &Config, extract: &Extract) -> Result<Output, Error> {
    let mut urls: Vec<String> = Vec::new();
    for url in extract.urls.iter().map(|url| complete(url)) {
        if !urls.contains(&url) {
            urls.push(url);
        }
    }
    if urls.is_empty() || urls.len() > URLS {
        return Err(Error::invalid(format!("urls has {} addresses: give 1 to {URLS}", urls.len())));
    }
    let mut shown = Vec::new();
    for (at, url) in urls.iter().enumerate() {
        if at > 0 && (task::cancelled() || task::time_left() < REQUEST_MS + RESERVE_MS) {
            shown.push(Err(Error::new(
                hermes_plugin::ErrorKind::Timeout,
                "no time is left: read it in a call of its own",
            )));
            continue;
        }
        if urls.len() > 1 {
            task::progress(&format!("reading {url}"));
        }
        shown.push(read(config, url).map(|read| show(config, url, read)));
    }
    if let [Err(error)] = shown.as_slice() {
        return Err(error.clone());
    }
    let (mut texts, mut wholes, mut is_more) = (Vec::new(), Vec::new(), false);
    for (url, shown) in urls.iter().zip(shown) {
        match shown {
            Ok(Shown { text, whole }) => {
                is_more |= whole.is_some();
                wholes.push(whole.unwrap_or_else(|| text.clone()));
                texts.push(text);
            }
            Err(error) => texts.push(format!("URL: {url}\nerror: {}", error.message)),
        }
    }
    let output = Output::text(texts.join("\n\n---\n\n"));
    Ok(if is_more { output.whole_text(wholes.join("\n\n---\n\n")) } else { output })
}

/// An address as models write it: also without a scheme.
fn complete(url: &str) -> String {
    let url = url.trim();
    if url.contains("://") { url.to_owned() } else { format!("https://{url}") }
}

fn read(config: &Config, url: &str) -> Result<Read, Error> {
    without_keys("the address", url)?;
    let time = task::time_left().saturating_sub(RESERVE_MS).clamp(1_000, REQUEST_MS);
    let answer = Request::get(url)
        .header("accept", ACCEPT)
        .timeout_ms(time)
        .send()
        .map_err(|error| explained(config, error, url))?;
    let status = answer.status();
    if !(200..300).contains(&status) {
        return Err(Error::failed(format!("{} answered {status}{}", answer.url(), meaning(status))));
    }
    understood(&answer)
}

/// The host names the permission, which the user cannot extend for a bundled plugin. The model needs to know what it can read.
fn explained(config: &Config, error: Error, url: &str) -> Error {
    let intranet = config.intranet.as_deref().map(|own| format!(", and {own}")).unwrap_or_default();
    let message = match error.code.as_str() {
        "grant" => format!(
            "{url} is not read, or leads to an address that is not read: web_extract reads public hosts by name, with https at port 443 \
             and http at port 80{intranet}"
        ),
        "too-long" => format!("{url} has more than 8 MiB, which is too long to read"),
        _ => return error.context(format!("{url} cannot be read")),
    };
    Error { message, ..error }
}

fn meaning(status: u16) -> &'static str {
    match status {
        401 => ": it wants a login",
        403 => ": it refuses access, perhaps to programs only",
        404 | 410 => ": there is no such page",
        429 => ": too many requests; wait before the next",
        500.. => ": the server has a fault; try later",
        _ => "",
    }
}

/// What an answer contains.
fn understood(answer: &Response) -> Result<Read, Error> {
    let header = answer.header("content-type").unwrap_or_default().to_ascii_lowercase();
    let kind = header.split(';').next().unwrap_or_default().trim();
    let (body, url) = (answer.body(), answer.url().to_owned());
    let start = String::from_utf8_lossy(&body[..body.len().min(1024)]).trim_start().to_ascii_lowercase();
    let is_html = kind.contains("html")
        || (is_vague(kind) && (start.starts_with("<!doctype html") || start.starts_with("<html")));
    if kind == "application/pdf" || body.starts_with(b"%PDF-") {
        let pdf = pdf::read(body).map_err(|why| Error::failed(format!("{url}: {why}")))?;
        let cut = if pdf.is_cut { "; only its beginning was read" } else { "" };
        let note = format!("PDF, {} page{}{cut}", pdf.pages, if pdf.pages == 1 { "" } else { "s" });
        return Ok(Read { page: Page { title: pdf.title, text: pdf.text }, url, note });
    }
    if is_html {
        let cut = &body[..body.len().min(HTML)];
        let page = html::page(&charset::decoded(cut, &header), &url);
        let note = if cut.len() < body.len() { "only the first 4 MiB were read".to_owned() } else { String::new() };
        if page.text.trim().is_empty() {
            let why = "the page has no text; perhaps a program in the page would load it";
            return Err(Error::failed(format!("{url}: {why}")));
        }
        return Ok(Read { page, url, note });
    }
    let is_text = kind.starts_with("text/")
        || ["json", "xml", "yaml", "javascript", "toml", "csv", "x-sh"].iter().any(|name| kind.contains(name))
        || (is_vague(kind) && !body.contains(&0));
    if !is_text {
        let kind = if kind.is_empty() { "unknown" } else { kind };
        let why = format!(
            "it is of the type {} ({} bytes); web_extract reads pages, PDF files and text",
            beginning(kind, 60),
            body.len()
        );
        return Err(Error::unsupported(format!("{url}: {why}")));
    }
    let text = charset::decoded(body, &header);
    let note = if kind.is_empty() || is_vague(kind) { "text".to_owned() } else { beginning(kind, 60) };
    Ok(Read { page: Page { title: String::new(), text }, url, note })
}

/// Whether a type says nothing.
fn is_vague(kind: &str) -> bool {
    matches!(kind, "" | "application/octet-stream" | "binary/octet-stream")
}

/// The text for the model.
fn show(config: &Config, asked: &str, read: Read) -> Shown {
    let Read { page, url, note } = read;
    let title = beginning(&one_line(&visible::of(&page.title)), TITLE);
    let url = visible::of(&url);
    let mut head = if title.is_empty() { String::new() } else { format!("# {title}\n") };
    head.push_str(&format!("URL: {url}\n"));
    if url.trim_end_matches('/') != asked.trim_end_matches('/') {
        head.push_str(&format!("Requested: {asked}\n"));
    }
    if !note.is_empty() {
        head.push_str(&format!("Note: {note}\n"));
    }
    let text = visible::of(&page.text);
    let length = text.chars().count();
    if length <= config.summarise_over {
        return Shown { text: format!("{head}\n{text}"), whole: None };
    }
    let whole = Some(format!("{head}\n{}", beginning(&text, WHOLE)));
    let text = match summary::of(&title, &url, &text) {
        Ok(summary) => {
            let extent = match length.saturating_sub(summary.covers) {
                0 => format!("all {length} characters"),
                _ => format!("the first {} of {length} characters", summary.covers),
            };
            format!("{head}Summary of {extent}, by a model:\n\n{}", visible::of(&summary.text))
        }
        Err(error) => format!("{head}{}", ends(&text, length, config.summarise_over, &error)),
    };
    Shown { text, whole }
}

/// The beginning and the end of a long text.
fn ends(text: &str, length: usize, most: usize, error: &Error) -> String {
    let (head, tail) = (most * 7 / 10, most * 3 / 10);
    let place = |nth: usize| text.char_indices().nth(nth).map_or(text.len(), |(at, _)| at);
    format!(
        "The page has {length} characters, and no model summarised it ({}). This is its beginning and its end:\n\n{}\n[{} characters \
         are left out here]\n{}",
        error.message,
        &text[..place(head)],
        length - head - tail,
        &text[place(length - tail)..]
    )
}
