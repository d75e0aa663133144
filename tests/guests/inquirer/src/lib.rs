//! Asks models what a tool call says, and answers with what came of it, errors included.

use hermes_plugin::llm::{self, Content, Delta, Generation, Image, ImageSource, PromptMessage, Request};
use hermes_plugin::tools::{Effect, Invocation, Output, Tool};
use hermes_plugin::{Error, MediaSource, MessageRange, Part, Plugin, Role, Tools, embeddings, history, info};
use serde_json::{Value, json};

/// The start of a PNG picture of 2 by 3 pixels.
const PICTURE: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x02\0\0\0\x03\x08\x02\0\0\0";

/// The plugin.
#[derive(Default)]
pub struct Inquirer {
    kept: Vec<Generation>,
}

impl Plugin for Inquirer {
    fn configure(_: &str) -> Result<Self, Error> {
        Ok(Self::default())
    }
}

impl Tools for Inquirer {
    fn catalog(&self) -> Result<Vec<Tool>, Error> {
        let tool = |name: &str| {
            Tool::new(name, "Asks a model.", json!({ "type": "object" })).toolset("inquirer").effect(Effect::Reads)
        };
        Ok(["look", "stream", "vectors"].map(tool).to_vec())
    }

    fn call(&mut self, invocation: &Invocation) -> Result<Output, Error> {
        let arguments: Value = invocation.parse()?;
        let how = arguments["how"].as_str().unwrap_or_default();
        let answer = match invocation.name.as_str() {
            "look" => look(how),
            "stream" => self.stream(how),
            "vectors" => vectors(how, &arguments),
            _ => return Err(invocation.unknown()),
        };
        Ok(Output::text(answer.unwrap_or_else(|error| format!("{:?} {}: {error}", error.kind, error.code))))
    }
}

/// Asks about a picture.
fn look(how: &str) -> Result<String, Error> {
    let request = Request::new("vision").message(Role::User, "What is this?");
    let request = match how {
        "blob" => {
            let whole = history::whole()?.ok_or_else(|| Error::failed("there is no conversation"))?;
            let (media_type, blob) = picture_in(whole)?;
            request.image_of(&media_type, blob)
        }
        "unknown-blob" => request.image_of("image/png", hermes_plugin::Blob { hash: "0".repeat(64), size: 1 }),
        "wrong-type" => request.image("image/jpeg", PICTURE.to_vec()),
        "no-picture" => request.image("image/png", b"a letter".to_vec()),
        "many" => (0..17).fold(request, |request, _| request.image("image/png", PICTURE.to_vec())),
        "later" => {
            let mut request = request;
            request.messages[0].content.push(Content::Other("hologram".to_owned()));
            request
        }
        "assistant" => {
            let picture = Image::new("image/png", ImageSource::Bytes(PICTURE.to_vec()));
            let mut message = PromptMessage::text(Role::Assistant, "Look.");
            message.content.push(Content::Image(picture));
            let mut request = request;
            request.messages.push(message);
            request
        }
        _ => request.image("image/png", PICTURE.to_vec()),
    };
    Ok(llm::complete(&request)?.text)
}

/// The first picture of the conversation.
fn picture_in(range: MessageRange) -> Result<(String, hermes_plugin::Blob), Error> {
    let parts = history::all_parts(range)?.into_iter().flat_map(|message| message.parts);
    let mut pictures = parts.filter_map(|part| match part {
        Part::Image(picture) => Some(picture),
        _ => None,
    });
    match pictures.next() {
        Some(picture) => match picture.source {
            MediaSource::Blob(blob) => Ok((picture.media_type, blob)),
            _ => Err(Error::failed("the picture is elsewhere")),
        },
        None => Err(Error::failed("there is no picture")),
    }
}

impl Inquirer {
    fn stream(&mut self, how: &str) -> Result<String, Error> {
        let request = Request::new("memory").message(Role::User, "Tell a story.");
        match how {
            "granted" => Ok(info::has("hermes:llm/llm-stream").to_string()),
            // Reads one delta and drops the rest.
            "drop" => {
                let first = llm::stream(&request)?.next().transpose()?;
                Ok(format!("{first:?}"))
            }
            // Keeps a generation for a later call.
            "keep" => {
                let mut generation = llm::stream(&request)?;
                let first = generation.next().transpose()?;
                self.kept.push(generation);
                Ok(format!("{first:?}"))
            }
            "resume" => {
                let mut kept = self.kept.pop().ok_or_else(|| Error::failed("nothing is kept"))?;
                Ok(format!("{:?}", kept.next().transpose()?))
            }
            "many" => {
                let all: Result<Vec<_>, _> = (0..9).map(|_| llm::stream(&request)).collect();
                all.map(|all| all.len().to_string())
            }
            _ => {
                let mut pieces = Vec::new();
                let mut generation = llm::stream(&request)?;
                let reply = loop {
                    match generation.next().transpose()? {
                        Some(Delta::Text(text)) => pieces.push(text),
                        Some(Delta::Done(reply)) => break reply,
                        Some(_) => {}
                        None => return Err(Error::failed("the generation has no end")),
                    }
                };
                let after = generation.next().is_none();
                Ok(json!({ "pieces": pieces, "text": reply.text, "nothing after": after }).to_string())
            }
        }
    }
}

/// Asks for vectors.
fn vectors(how: &str, arguments: &Value) -> Result<String, Error> {
    let texts = |value: &Value| {
        value
            .as_array()
            .into_iter()
            .flatten()
            .map(|text| text.as_str().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    let reply = match how {
        "resolve" => {
            let model = embeddings::resolve()?;
            return Ok(format!("{} {} {:?}", model.provider, model.name, model.dimensions));
        }
        "too-many" => embeddings::documents(vec![String::new(); 257])?,
        "too-long" => embeddings::documents(["a".repeat((64 << 10) + 1)])?,
        "nothing" => embeddings::documents(Vec::<String>::new())?,
        _ => embeddings::documents(texts(&arguments["texts"]))?,
    };
    // Similarity of each text to the first one.
    let first = reply.vectors[0].clone();
    let similarity = |vector: &Vec<f32>| {
        vector.iter().zip(&first).map(|(a, b)| a * b).sum::<f32>() / (length(vector) * length(&first))
    };
    let similar: Vec<String> = reply.vectors.iter().map(|vector| format!("{:.2}", similarity(vector))).collect();
    Ok(format!("{} {} {}", reply.model, reply.dimensions, similar.join(" ")))
}

fn length(vector: &[f32]) -> f32 {
    vector.iter().map(|number| number * number).sum::<f32>().sqrt()
}

hermes_plugin::export!(Inquirer: Tools);
