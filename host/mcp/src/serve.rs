//! Hermes as a server: it answers another agent over two streams, or many over HTTP on loopback.
//!
//! The client is a program that the user trusts with what is offered, but its requests come from a model. So a request is
//! bounded, and so is the number of requests at a time: what is beyond waits in the pipe, not in memory.

mod web;

use std::borrow::Cow;
use std::sync::Arc;

use async_trait::async_trait;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult, ErrorCode,
    ErrorData, GetExtensions as _, GetPromptRequestParams, GetPromptResponse, GetPromptResult, Implementation,
    JsonObject, JsonRpcMessage, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, Prompt, PromptArgument, PromptMessage, PromptsCapability, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, Resource, ResourceContents, ResourceTemplate, ResourcesCapability, Role,
    ServerCapabilities, ServerConfig, Tool, ToolAnnotations, ToolsCapability,
};
use rmcp::service::{RequestContext, RxJsonRpcMessage, ServerInitializeError, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{RoleServer, ServerHandler, ServiceExt as _};
use serde_json::{Map, Value, json};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use crate::bounded::lines;
use crate::error::line;
use crate::limits;

pub use self::web::{PATH, serve_web};

/// A tool that Hermes offers.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnTool {
    /// Its name.
    pub name: &'static str,
    /// What it does, for a model.
    pub description: &'static str,
    /// The JSON Schema of its arguments, an object.
    pub parameters: Map<String, Value>,
    /// Whether it changes nothing.
    pub reads_only: bool,
}

/// A text that Hermes offers, or a pattern of the addresses of such texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnResource {
    /// Its address, or a URI template.
    pub uri: String,
    /// A name for people.
    pub name: String,
}

/// A prompt that Hermes offers: a text that the user of the client chooses, with words of their own in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnPrompt {
    /// Its name.
    pub name: String,
    /// When it helps.
    pub description: String,
}

/// The argument of each prompt: what its user writes behind the name.
const ARGUMENTS: &str = "arguments";

/// What Hermes offers to other agents. Its texts are within limits of their own.
#[async_trait]
pub trait Offer: Send + Sync + 'static {
    /// How a model should use it.
    fn instructions(&self) -> &str;
    /// The tools.
    fn tools(&self) -> Vec<OwnTool>;
    /// Calls a tool: its text, or why there is none. `None` if there is no such tool.
    async fn call(&self, tool: &str, arguments: Map<String, Value>) -> Option<Result<String, String>>;
    /// The texts that have an address.
    async fn resources(&self) -> Result<Vec<OwnResource>, String>;
    /// The patterns of addresses.
    fn templates(&self) -> Vec<OwnResource>;
    /// Reads a text by its address, or says why there is none.
    async fn read(&self, uri: &str) -> Result<String, String>;
    /// The prompts.
    async fn prompts(&self) -> Result<Vec<OwnPrompt>, String>;
    /// The text of a prompt with these words of its user, or why there is none.
    async fn prompt(&self, name: &str, arguments: &str) -> Result<String, String>;
}

/// Why Hermes does not answer as a server.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ServeError {
    /// The client did not speak the protocol.
    #[error("the client does not speak the protocol: {0}")]
    Protocol(String),
    /// The streams cannot be used any more.
    #[error("the connection to the client failed: {0}")]
    Broken(String),
}

/// Answers one client until it closes its stream. Requests that it sent before are answered.
///
/// # Errors
///
/// When the client does not speak the protocol, or the streams fail.
pub async fn serve(
    offer: Arc<dyn Offer>,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<(), ServeError> {
    let load = Load::default();
    let (input, too_long) = lines(input, limits::REQUEST);
    let inner = AsyncRwTransport::<RoleServer, _, _>::new(input, output).with_max_line_length(limits::REQUEST + 1);
    let service = match (Desk { offer }).serve(Paced { inner, load, too_long, has_begun: false }).await {
        Ok(service) => service,
        // It asked nothing.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(ServerInitializeError::TransportError { error, .. }) => {
            return Err(ServeError::Broken(line(&error.to_string())));
        }
        Err(ServerInitializeError::ExpectedInitializeRequest(_)) => {
            return Err(ServeError::Protocol("its first message is not `initialize`".to_owned()));
        }
        Err(error) => return Err(ServeError::Protocol(line(&error.to_string()))),
    };
    service.waiting().await.map_err(|error| ServeError::Broken(line(&error.to_string())))?;
    Ok(())
}

/// The requests that are carried out, and the answers that the client has not read.
#[derive(Debug, Clone, Default)]
struct Load(Arc<watch::Sender<usize>>);

/// A request or an answer, until it is dropped.
struct Burden(Load);

impl Load {
    fn begin(&self) -> Burden {
        self.0.send_modify(|count| *count += 1);
        Burden(self.clone())
    }

    /// Waits until there is room. Nothing is lost if the future is dropped.
    async fn room(&self) {
        // The sender is in `self`, so that waiting cannot fail.
        let _ = self.0.subscribe().wait_for(|count| *count < limits::REQUESTS).await;
    }
}

impl Drop for Burden {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}

/// A transport that reads no further request while there are too many.
struct Paced<T> {
    inner: T,
    load: Load,
    /// The ids of requests that are longer than the limit.
    too_long: mpsc::Receiver<Value>,
    /// Whether a request has come. A notification before it says nothing.
    has_begun: bool,
}

/// An error with the words that other programs know: the library says only the name of a method that it does not have.
fn in_standard_words(mut item: TxJsonRpcMessage<RoleServer>) -> TxJsonRpcMessage<RoleServer> {
    if let JsonRpcMessage::Error(error) = &mut item
        && error.error.code == ErrorCode::METHOD_NOT_FOUND
        && let Some(message) = standard_words(&error.error.message)
    {
        error.error.message = message.into();
    }
    item
}

/// The message of an error about an unknown method, if it has not these words yet.
fn standard_words(message: &str) -> Option<String> {
    const UNKNOWN: &str = "Method not found";
    (!message.starts_with(UNKNOWN)).then(|| format!("{UNKNOWN}: {message}"))
}

/// The answer to a request that is too long to be read.
fn refusal(id: Value) -> TxJsonRpcMessage<RoleServer> {
    let most = limits::REQUEST;
    let why = format!("the request is longer than {} MiB ({most} bytes), the most that Hermes reads", most >> 20);
    TxJsonRpcMessage::<RoleServer>::error(ErrorData::invalid_request(why, None), serde_json::from_value(id).ok())
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Paced<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let unread = self.load.begin();
        let sending = self.inner.send(in_standard_words(item));
        async move {
            let sent = sending.await;
            drop(unread);
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let mut message = loop {
            self.load.room().await;
            tokio::select! {
                biased;
                // Not awaited here, so that nothing is lost if this future is dropped.
                Some(id) = self.too_long.recv() => drop(tokio::spawn(self.send(refusal(id)))),
                message = self.inner.receive() => match message? {
                    JsonRpcMessage::Notification(_) if !self.has_begun => {}
                    message => break message,
                },
            }
        };
        self.has_begun = true;
        if let JsonRpcMessage::Request(request) = &mut message {
            // Dropped with the request, also when it is cancelled.
            request.request.extensions_mut().insert(Arc::new(self.load.begin()));
        }
        Some(message)
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}

/// Where requests arrive.
struct Desk {
    offer: Arc<dyn Offer>,
}

/// Carries out a request in bounded time.
async fn within<T>(answer: impl Future<Output = T>) -> Result<T, ErrorData> {
    let late = |_| ErrorData::internal_error(format!("no answer within {} s", limits::ANSWER.as_secs()), None);
    timeout(limits::ANSWER, answer).await.map_err(late)
}

impl ServerHandler for Desk {
    fn get_info(&self) -> ServerConfig {
        let mut capabilities = ServerCapabilities::default();
        capabilities.tools = Some(ToolsCapability::default());
        capabilities.resources = Some(ResourcesCapability::default());
        capabilities.prompts = Some(PromptsCapability::default());
        let name = Implementation::new("hermes", env!("CARGO_PKG_VERSION")).with_title("Hermes");
        ServerConfig::new(capabilities).with_server_info(name).with_instructions(self.offer.instructions())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.offer.tools().into_iter().map(listed).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments: JsonObject = request.arguments.unwrap_or_default();
        let result = match within(self.offer.call(&request.name, arguments)).await? {
            Some(Ok(text)) => CallToolResult::success(vec![ContentBlock::text(text)]),
            // A model can correct its call when it reads why.
            Some(Err(why)) => CallToolResult::error(vec![ContentBlock::text(why)]),
            None => {
                let why = format!("there is no tool `{}`", within_name(&request.name));
                return Err(ErrorData::invalid_params(why, None));
            }
        };
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let found = within(self.offer.resources()).await?;
        let found = found.map_err(|why| ErrorData::internal_error(why, None))?;
        let resource = |it: OwnResource| Resource::new(it.uri, it.name).with_mime_type(TEXT);
        Ok(ListResourcesResult::with_all_items(found.into_iter().map(resource).collect()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template = |it: OwnResource| ResourceTemplate::new(it.uri, it.name).with_mime_type(TEXT);
        Ok(ListResourceTemplatesResult::with_all_items(self.offer.templates().into_iter().map(template).collect()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        if request.uri.len() > limits::ADDRESS {
            let why = format!("the address has {} bytes; at most {} are allowed", request.uri.len(), limits::ADDRESS);
            return Err(ErrorData::invalid_params(why, None));
        }
        let text = within(self.offer.read(&request.uri)).await?;
        let text = text.map_err(|why| ErrorData::resource_not_found(why, Some(json!({ "uri": request.uri }))))?;
        Ok(ReadResourceResult::new(vec![ResourceContents::text(text, request.uri).with_mime_type(TEXT)]).into())
    }

    /// Answers requests that the library could not read: an unknown method, or parameters that do not fit the method.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        const KNOWN: &[&str] = &["tools/call", "resources/read", "prompts/get"];
        match KNOWN.contains(&request.method.as_str()) {
            true => {
                Err(ErrorData::invalid_params(format!("the parameters of {} cannot be read", request.method), None))
            }
            false => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, within_name(&request.method), None)),
        }
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let found = within(self.offer.prompts()).await?;
        let found = found.map_err(|why| ErrorData::internal_error(why, None))?;
        let argument = PromptArgument::new(ARGUMENTS).with_description("What to do with it.").with_required(false);
        let prompt = |it: OwnPrompt| Prompt::new(it.name, Some(it.description), Some(vec![argument.clone()]));
        Ok(ListPromptsResult::with_all_items(found.into_iter().map(prompt).collect()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let given = request.arguments.unwrap_or_default();
        if let Some(other) = given.keys().find(|name| *name != ARGUMENTS) {
            let why = format!("the prompts have no argument `{}`; theirs is `{ARGUMENTS}`", within_name(other));
            return Err(ErrorData::invalid_params(why, None));
        }
        let arguments = match given.get(ARGUMENTS) {
            None | Some(Value::Null) => "",
            Some(Value::String(text)) => text,
            Some(_) => return Err(ErrorData::invalid_params(format!("`{ARGUMENTS}` must be a text"), None)),
        };
        let text = within(self.offer.prompt(&request.name, arguments)).await?;
        let text = text.map_err(|why| ErrorData::invalid_params(why, None))?;
        Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]).into())
    }
}

/// The type of all texts.
const TEXT: &str = "text/plain";

fn within_name(name: &str) -> String {
    hermes_conversation::one_line_within(name, 64)
}

fn listed(tool: OwnTool) -> Tool {
    // What is removed from the notes is gone.
    let hints = ToolAnnotations::new().read_only(tool.reads_only).destructive(!tool.reads_only).open_world(false);
    Tool::new(Cow::Borrowed(tool.name), tool.description, Arc::new(tool.parameters)).with_annotations(hints)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};

    use super::*;

    /// Repeats texts, and counts calls that wait.
    #[derive(Default)]
    pub(super) struct Parrot {
        waiting: AtomicUsize,
    }

    #[async_trait]
    impl Offer for Parrot {
        fn instructions(&self) -> &str {
            "Repeat."
        }

        fn tools(&self) -> Vec<OwnTool> {
            let tool = |name, reads_only| OwnTool { name, description: "", parameters: Map::new(), reads_only };
            vec![tool("say", true), tool("wait", false)]
        }

        async fn call(&self, tool: &str, arguments: Map<String, Value>) -> Option<Result<String, String>> {
            match tool {
                "say" => Some(arguments.get("text").map(Value::to_string).ok_or("`text` is missing".to_owned())),
                "wait" => {
                    self.waiting.fetch_add(1, Ordering::SeqCst);
                    std::future::pending().await
                }
                _ => None,
            }
        }

        async fn resources(&self) -> Result<Vec<OwnResource>, String> {
            Ok(vec![OwnResource { uri: "parrot://1".to_owned(), name: "one".to_owned() }])
        }

        fn templates(&self) -> Vec<OwnResource> {
            Vec::new()
        }

        async fn read(&self, uri: &str) -> Result<String, String> {
            Err(format!("there is no {uri}"))
        }

        async fn prompts(&self) -> Result<Vec<OwnPrompt>, String> {
            Ok(vec![OwnPrompt { name: "sing".to_owned(), description: "Sings.".to_owned() }])
        }

        async fn prompt(&self, name: &str, arguments: &str) -> Result<String, String> {
            Ok(format!("{name}: {arguments}"))
        }
    }

    struct Client {
        input: WriteHalf<DuplexStream>,
        output: Lines<BufReader<ReadHalf<DuplexStream>>>,
        ended: tokio::task::JoinHandle<Result<(), ServeError>>,
    }

    impl Client {
        fn start(parrot: Arc<Parrot>) -> Self {
            let (ours, theirs) = tokio::io::duplex(1 << 16);
            let (input, output) = tokio::io::split(theirs);
            let ended = tokio::spawn(serve(parrot, input, output));
            let (output, input) = tokio::io::split(ours);
            Self { input, output: BufReader::new(output).lines(), ended }
        }

        async fn greeted(parrot: Arc<Parrot>) -> Self {
            let mut client = Self::start(parrot);
            let client_info = json!({ "name": "test", "version": "1" });
            let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client_info });
            let info = client.ask(0, "initialize", params).await;
            assert_eq!((&info["serverInfo"]["name"], &info["instructions"]), (&json!("hermes"), &json!("Repeat.")));
            client.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string()).await;
            client
        }

        async fn write(&mut self, line: &str) {
            self.input.write_all(format!("{line}\n").as_bytes()).await.unwrap();
        }

        async fn request(&mut self, id: u64, method: &str, params: Value) {
            let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
            self.write(&request.to_string()).await;
        }

        async fn read(&mut self) -> Value {
            serde_json::from_str(&self.output.next_line().await.unwrap().unwrap()).unwrap()
        }

        /// The result, or the error.
        async fn ask(&mut self, id: u64, method: &str, params: Value) -> Value {
            self.request(id, method, params).await;
            let answer = self.read().await;
            assert_eq!(answer["id"], id);
            answer.get("result").or(answer.get("error")).cloned().unwrap()
        }
    }

    #[tokio::test]
    async fn a_client_lists_calls_and_reads_until_it_closes_its_stream() {
        let mut client = Client::greeted(Arc::default()).await;
        let tools = client.ask(1, "tools/list", json!({})).await;
        let hint = |at: usize| tools["tools"][at]["annotations"]["readOnlyHint"].clone();
        assert_eq!((hint(0), hint(1)), (json!(true), json!(false)));
        let said = client.ask(2, "tools/call", json!({ "name": "say", "arguments": { "text": "hé\n" } })).await;
        assert_eq!((&said["content"][0]["text"], &said["isError"]), (&json!("\"hé\\n\""), &json!(false)));
        let refused = client.ask(3, "tools/call", json!({ "name": "say" })).await;
        assert_eq!((&refused["content"][0]["text"], &refused["isError"]), (&json!("`text` is missing"), &json!(true)));
        let unknown = client.ask(4, "tools/call", json!({ "name": "shout\u{1b}[2J" })).await;
        assert_eq!((&unknown["code"], &unknown["message"]), (&json!(-32602), &json!("there is no tool `shout [2J`")));
        let missing = client.ask(5, "resources/read", json!({ "uri": "file:///etc/passwd" })).await;
        let (message, data) = (&missing["message"], &missing["data"]["uri"]);
        assert_eq!((message, data), (&json!("there is no file:///etc/passwd"), &json!("file:///etc/passwd")));
        let odd = client.ask(7, "prompts/get", json!({ "name": "sing", "arguments": { "song": "x" } })).await;
        for odd in [json!({}), json!({ "name": "say", "arguments": "text" })] {
            let refused = client.ask(8, "tools/call", odd.clone()).await;
            assert_eq!(refused["code"], -32602, "{odd}: {refused}");
        }
        assert_eq!(odd["message"], "the prompts have no argument `song`; theirs is `arguments`");
        // Sent before the end, so it is answered.
        client.request(6, "tools/call", json!({ "name": "say", "arguments": { "text": 1 } })).await;
        client.input.shutdown().await.unwrap();
        assert_eq!(client.read().await["id"], 6);
        assert_eq!(client.ended.await.unwrap(), Ok(()));
    }

    #[tokio::test]
    async fn a_client_that_says_nothing_or_something_else_ends_it() {
        let mut client = Client::start(Arc::default());
        client.input.shutdown().await.unwrap();
        assert_eq!(client.ended.await.unwrap(), Ok(()));
        let mut client = Client::start(Arc::default());
        let refused = client.ask(1, "tools/call", json!({ "name": "say" })).await;
        assert!(refused["code"].is_i64(), "{refused}");
        client.input.shutdown().await.unwrap();
        assert!(timeout(Duration::from_secs(10), client.ended).await.unwrap().is_ok());
    }

    #[tokio::test]
    async fn further_requests_wait_unread_while_many_are_carried_out() {
        let parrot = Arc::<Parrot>::default();
        let mut client = Client::greeted(Arc::clone(&parrot)).await;
        let flood = async {
            for id in 1..100_000 {
                client.request(id, "tools/call", json!({ "name": "wait" })).await;
            }
        };
        // The pipe is full, so that the client cannot write any more.
        assert!(timeout(Duration::from_millis(500), flood).await.is_err());
        let waiting = parrot.waiting.load(Ordering::SeqCst);
        assert_eq!(waiting, limits::REQUESTS);
    }

    #[tokio::test]
    async fn a_request_that_is_too_long_is_answered_with_the_limit_and_so_is_the_next() {
        let mut client = Client::greeted(Arc::default()).await;
        client.write(&"x".repeat(3 * limits::REQUEST)).await;
        let long = "y".repeat(2 * limits::REQUEST);
        client.request(1, "tools/call", json!({ "name": "say", "arguments": { "text": long } })).await;
        let refused = client.read().await;
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(1), &json!(-32600)));
        let why = "the request is longer than 1 MiB (1048576 bytes), the most that Hermes reads";
        assert_eq!(refused["error"]["message"], why);
        // A notification has no answer.
        let long = "z".repeat(2 * limits::REQUEST);
        client
            .write(&json!({ "jsonrpc": "2.0", "method": "notifications/x", "params": { "id": long } }).to_string())
            .await;
        client.write("{not json").await;
        assert_eq!(client.ask(2, "tools/list", json!({})).await["tools"].as_array().map(Vec::len), Some(2));
    }
}
