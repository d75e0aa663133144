//! The initial memory of a plugin: texts and records in the layout of the canonical ABI.

/// Start of the data, after the area of zeros.
const BEGIN: u32 = 8192;

/// The bytes from [`BEGIN`] on.
#[derive(Debug, Clone)]
pub struct Memory(Vec<u8>);

/// A tool in a catalog.
#[derive(Debug, Clone)]
pub struct Offered {
    name: String,
    parameters: String,
    effect: u8,
}

impl Offered {
    /// A tool that reads.
    pub fn new(name: &str) -> Self {
        let parameters = r#"{"type":"object","properties":{}}"#.to_owned();
        Self { name: name.to_owned(), parameters, effect: 0 }
    }

    /// A tool that writes.
    #[must_use]
    pub fn writes(mut self) -> Self {
        self.effect = 1;
        self
    }

    /// Sets the parameters.
    #[must_use]
    pub fn parameters(mut self, schema: &str) -> Self {
        schema.clone_into(&mut self.parameters);
        self
    }
}

impl Memory {
    pub(crate) fn new() -> Self {
        Self(Vec::new())
    }

    /// The next free address.
    pub(crate) fn end(&self) -> u32 {
        BEGIN + u32::try_from(self.0.len()).expect("less than a memory")
    }

    pub(crate) fn data(&self) -> String {
        let bytes: String = self.0.iter().map(|byte| format!("\\{byte:02x}")).collect();
        format!("(data (i32.const {BEGIN}) \"{bytes}\")\n")
    }

    /// Stores bytes. Returns address and length.
    pub fn bytes(&mut self, bytes: &[u8]) -> [u32; 2] {
        let at = self.end();
        self.0.extend_from_slice(bytes);
        [at, u32::try_from(bytes.len()).expect("less than a memory")]
    }

    /// Stores words at an aligned address.
    pub fn words(&mut self, words: &[u32]) -> u32 {
        self.0.resize(self.0.len().next_multiple_of(8), 0);
        let at = self.end();
        self.0.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        at
    }

    /// Stores a list in the form of a result.
    pub fn list(&mut self, items: &[u32], count: usize) -> u32 {
        let at = self.words(items);
        self.words(&[at, u32::try_from(count).expect("few")])
    }

    /// Stores a successful result of `catalog`.
    pub fn catalog(&mut self, tools: &[Offered]) -> u32 {
        let mut items = Vec::new();
        for Offered { name, parameters, effect } in tools {
            for text in [name.as_str(), "It is what it is.", parameters] {
                items.extend(self.bytes(text.as_bytes()));
            }
            // No `extra` in the schema, no title, no schema of the output.
            items.extend([0; 8]);
            items.extend(self.bytes(b"zoo"));
            // `parallel`, `effect`, `idempotent`, `open-world`, and no `extra`.
            items.extend([1 | u32::from(*effect) << 8, 0, 0]);
        }
        let at = self.words(&items);
        self.words(&[0, at, u32::try_from(tools.len()).expect("few")])
    }

    /// Stores a successful result of `call`: one text.
    pub fn output(&mut self, content: &str) -> u32 {
        let [at, length] = self.bytes(content.as_bytes());
        // A case with the room of the largest one, which is a link.
        let text = self.words(&[0, at, length, 0, 0, 0, 0, 0, 0, 0, 0]);
        self.words(&[0, text, 1, 0, 0, 0, 0, 0])
    }

    /// Stores a successful result of `call`: a link and a picture at this address.
    pub fn links(&mut self, address: &str) -> u32 {
        let [at, length] = self.bytes(address.as_bytes());
        let link = [2, at, length, 0, 0, 0, 0, 0, 0, 0, 0];
        let picture = [1, 0, at, length, 0, 0, 0, 0, 0, 0, 0];
        let content = self.words(&[link, picture].concat());
        self.words(&[0, content, 2, 0, 0, 0, 0, 0])
    }

    /// Stores an error as the result of any function: kind, code and message.
    pub fn error(&mut self, kind: u8, message: [u32; 2]) -> u32 {
        // The case of `kind` without a text, no code, the message, no time for a retry, and no `extra`.
        self.words(&[1, u32::from(kind), 0, 0, 0, 0, message[0], message[1], 0, 0, 0, 0])
    }
}
