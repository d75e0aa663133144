//! The plugin kinds and the languages that have templates.

/// A kind of plugin with templates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PluginKind {
    /// Decides what the model sees of a long conversation.
    ContextEngine,
    /// Remembers across sessions.
    MemoryProvider,
    /// Adds tools.
    Tools,
    /// Adds skills.
    Skills,
    /// Runs at moments of the agent loop.
    Hooks,
    /// Computes vectors of texts.
    Embedder,
}

impl PluginKind {
    /// All of them.
    pub const ALL: &[Self] =
        &[Self::ContextEngine, Self::MemoryProvider, Self::Tools, Self::Skills, Self::Hooks, Self::Embedder];

    /// The name in the contract and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::ContextEngine => "context-engine",
            Self::MemoryProvider => "memory-provider",
            Self::Tools => "tools",
            Self::Skills => "skills",
            Self::Hooks => "hooks",
            Self::Embedder => "embedder",
        }
    }

    /// How to use a plugin of this kind.
    pub fn to_use(self, name: &str) -> String {
        match self {
            Self::ContextEngine => format!("hermes --engine {name}"),
            Self::MemoryProvider => format!("hermes # with `memory: {{provider: {name}}}` in config.yaml"),
            Self::Embedder => format!("hermes # with `auxiliary: {{embeddings: {{plugin: {name}}}}}` in config.yaml"),
            Self::Tools | Self::Skills | Self::Hooks => format!("hermes plugins enable {name}"),
        }
    }
}

/// A language with templates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectLanguage {
    /// Built by cargo.
    Rust,
    /// Built by `build.py`.
    Python,
    /// Built by npm.
    JavaScript,
    /// Built by make.
    C,
    /// Built by `build.go`.
    Go,
}

impl ProjectLanguage {
    /// All of them.
    pub const ALL: &[Self] = &[Self::Rust, Self::Python, Self::JavaScript, Self::C, Self::Go];

    /// Its name in lower case, and its folder of templates.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Python => "python",
            Self::JavaScript => "javascript",
            Self::C => "c",
            Self::Go => "go",
        }
    }

    /// The commands that test and build a new project, and its main file.
    pub fn steps(self) -> (&'static [&'static str], &'static str) {
        match self {
            Self::Rust => (&["cargo test", "cargo build --release --target wasm32-wasip2"], "src/lib.rs"),
            Self::Python => (&["python3 build.py test", "python3 build.py"], "src/plugin.py"),
            Self::JavaScript => (&["npm install", "npm test", "npm run build"], "src/plugin.js"),
            Self::C => (&["make test", "make"], "src/plugin.c"),
            Self::Go => (&["go test ./...", "go run build.go"], "plugin/plugin.go"),
        }
    }
}
