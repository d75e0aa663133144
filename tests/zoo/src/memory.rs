//! What lies in a plugin's memory from the beginning: texts and records as the canonical ABI lays them out.

/// Where it begins, behind what is zero.
const BEGIN: u32 = 8192;

/// Bytes from [`BEGIN`] on.
#[derive(Debug, Clone)]
pub struct Memory(Vec<u8>);

/// A tool of a catalog.
#[derive(Debug, Clone)]
pub struct Offered {
    name: String,
    parameters: String,
    effect: u8,
}

impl Offered {
    /// One that reads.
    pub fn new(name: &str) -> Self {
        let parameters = r#"{"type":"object","properties":{}}"#.to_owned();
        Self { name: name.to_owned(), parameters, effect: 0 }
    }

    /// One that writes.
    #[must_use]
    pub fn writes(mut self) -> Self {
        self.effect = 1;
        self
    }

    /// With other parameters than none.
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

    /// Where the next thing lies.
    pub(crate) fn end(&self) -> u32 {
        BEGIN + u32::try_from(self.0.len()).expect("less than a memory")
    }

    pub(crate) fn data(&self) -> String {
        let bytes: String = self.0.iter().map(|byte| format!("\\{byte:02x}")).collect();
        format!("(data (i32.const {BEGIN}) \"{bytes}\")\n")
    }

    /// Bytes, and how many they are.
    pub fn bytes(&mut self, bytes: &[u8]) -> [u32; 2] {
        let at = self.end();
        self.0.extend_from_slice(bytes);
        [at, u32::try_from(bytes.len()).expect("less than a memory")]
    }

    /// Words in a row, at a place that any record may have.
    pub fn words(&mut self, words: &[u32]) -> u32 {
        self.0.resize(self.0.len().next_multiple_of(8), 0);
        let at = self.end();
        self.0.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        at
    }

    /// A list, as it is answered.
    pub fn list(&mut self, items: &[u32], count: usize) -> u32 {
        let at = self.words(items);
        self.words(&[at, u32::try_from(count).expect("few")])
    }

    /// What `catalog` answers.
    pub fn catalog(&mut self, tools: &[Offered]) -> u32 {
        let mut items = Vec::new();
        for Offered { name, parameters, effect } in tools {
            for text in [name.as_str(), "It is what it is.", parameters, "zoo"] {
                items.extend(self.bytes(text.as_bytes()));
            }
            // `parallel`, `effect`, and no `extra`.
            items.extend([1 | u32::from(*effect) << 8, 0, 0]);
        }
        self.list(&items, tools.len())
    }

    /// What `call` answers when all is well.
    pub fn output(&mut self, content: &str) -> u32 {
        let [at, length] = self.bytes(content.as_bytes());
        self.words(&[0, at, length, 0, 0, 0, 0])
    }

    /// An error as the answer of a function that has results of any kind: kind, code and message.
    pub fn error(&mut self, kind: u8, message: [u32; 2]) -> u32 {
        self.words(&[1, u32::from(kind), 0, 0, message[0], message[1], 0, 0])
    }
}
