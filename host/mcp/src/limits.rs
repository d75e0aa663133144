//! What a server may send. Beyond these limits something is cut, left out, or the connection ends, and the user or the model
//! learns it.

use std::time::Duration;

/// The most bytes of one message.
pub const MESSAGE: usize = 16 << 20;
/// The most bytes that a server may write at once, and how many it may write each second on average.
pub const BYTES: u64 = 64 << 20;
/// See [`BYTES`].
pub const BYTES_PER_SECOND: u64 = 8 << 20;
/// The most messages that a server may send at once, and how many it may send each second on average.
pub const MESSAGES: u64 = 2_000;
/// See [`MESSAGES`].
pub const MESSAGES_PER_SECOND: u64 = 200;
/// The most lines of streams over HTTP that carry nothing, such as comments, at once, and how many each second on average. A
/// message has up to four of them.
pub const IDLE_LINES: u64 = 4 * MESSAGES;
/// See [`IDLE_LINES`].
pub const IDLE_LINES_PER_SECOND: u64 = 4 * MESSAGES_PER_SECOND;
/// The time between two connections of one server for its stream of events: at least this, and twice as much each time.
pub const RECONNECT: Duration = Duration::from_secs(1);
/// The longest time between them.
pub const LONGEST_RECONNECT: Duration = Duration::from_secs(8);
/// After a stream that lived this long, the pause before the next one is short again.
pub const LASTING: Duration = Duration::from_secs(30);
/// The most tools of a server. How many of them are in a prompt is for others to decide.
pub const TOOLS: usize = 1_000;
/// The most pages of a list.
pub const PAGES: usize = 64;
/// The most bytes of a tool's description.
pub const DESCRIPTION: usize = 8 << 10;
/// The most bytes of a server's instructions.
pub const INSTRUCTIONS: usize = 16 << 10;
/// The most bytes of the schema of a tool's arguments.
pub const PARAMETERS: usize = 64 << 10;
/// The most bytes of the definitions of all tools of a server.
pub const DEFINITIONS: usize = 4 << 20;
/// The most bytes of text of a result.
pub const TEXT: usize = 1 << 20;
/// The most images of a result.
pub const IMAGES: usize = 16;
/// The most entries of a list of resources or prompts.
pub const ENTRIES: usize = 500;
/// The most parts of an entry of a list: values, and values in values. A larger one is left out before it takes memory.
pub const PARTS: usize = 30_000;
/// The most parts of one message, by the marks between them.
pub const MESSAGE_PARTS: usize = 4_000_000;
/// The most bytes of the arguments of a call that go into headers.
pub const HEADERS: usize = 8 << 10;
/// How often a server may answer one request with requests of its own.
pub const ROUNDS: u32 = 10;
/// The most requests in such an answer.
pub const INPUTS: usize = 16;
/// The most bytes of a server's state that comes back to it with its next request.
pub const STATE: usize = 1 << 20;
/// The most bytes of what a server asks the user.
pub const QUESTION: usize = 4 << 10;
/// The most bytes that a server may send to a model at once.
pub const SAMPLED: usize = 256 << 10;
/// The most messages that a server may send to a model at once.
pub const SAMPLED_MESSAGES: usize = 100;
/// The most tokens of a reply of a model to a server.
pub const SAMPLED_TOKENS: u32 = 4_096;
/// The most requests of a server to a model over one connection.
pub const SAMPLINGS: usize = 20;
/// The most bytes of an error of a server that the user reads.
pub const ERROR: usize = 2 << 10;
/// The most bytes of a line that shows progress.
pub const PROGRESS: usize = 200;
/// The most bytes of an answer that is searched for what the sandbox denied.
pub const EXPLAINED: usize = 8 << 10;
/// The most bytes of a program's standard error that are kept for its error.
pub const STANDARD_ERROR: usize = 64 << 10;
/// How long the first message of a session waits for all servers.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// How long a server that failed is left alone. Each further failure doubles the time.
pub const REST: Duration = Duration::from_secs(1);
/// The longest rest.
pub const LONGEST_REST: Duration = Duration::from_secs(60);
/// The most bytes of a request to Hermes as a server. A longer one is answered with an error.
pub const REQUEST: usize = 1 << 20;
/// The most requests to Hermes as a server that are carried out, or whose answers are not read yet. Others wait unread.
pub const REQUESTS: usize = 16;
/// The most bytes of an address in a request to Hermes as a server.
pub const ADDRESS: usize = 2 << 10;
/// The most connections to Hermes as a server over HTTP. Further ones are closed at once.
pub const CONNECTIONS: usize = 64;
/// How long the head of a request over HTTP may take to come, and then its body.
pub const ARRIVAL: Duration = Duration::from_secs(5);
/// How long Hermes as a server may take for an answer.
pub const ANSWER: Duration = Duration::from_secs(60);
/// The most bytes of a page that comes with an error.
pub(crate) const ERROR_PAGE: usize = 16 << 10;
