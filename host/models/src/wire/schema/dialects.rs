//! The table of dialects: what each kind of server refuses in a schema of parameters, beyond what all of them refuse.
//!
//! A dialect belongs to the server that reads a request, not to the model. The rows say what `fit.rs` has to mend, and the tests hold
//! what is sent against the same rows. Sources are named at each row; where a documentation and reported errors differ, the stricter
//! of the two counts.

/// How a server reads schemas of parameters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum SchemaDialect {
    /// OpenAI's APIs without `strict`. Most other servers of chat completions read as much or more.
    #[default]
    OpenAi,
    /// OpenAI's APIs with `strict`, and servers that hold every schema to its rules.
    OpenAiStrict,
    /// Anthropic's messages.
    Anthropic,
    /// The endpoint of Gemini that is compatible with OpenAI's chat completions.
    Gemini,
    /// llama.cpp and programs that contain it: a schema becomes a grammar.
    LlamaCpp,
}

impl SchemaDialect {
    /// Every dialect.
    pub const ALL: &[SchemaDialect] =
        &[Self::OpenAi, Self::OpenAiStrict, Self::Anthropic, Self::Gemini, Self::LlamaCpp];

    /// Its name in the configuration.
    pub fn as_str(self) -> &'static str {
        self.row().name
    }

    /// The reverse of [`SchemaDialect::as_str`], in any case.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|dialect| dialect.as_str().eq_ignore_ascii_case(name))
    }

    pub(crate) fn row(self) -> &'static Row {
        match self {
            Self::OpenAi => &OPENAI,
            Self::OpenAiStrict => &OPENAI_STRICT,
            Self::Anthropic => &ANTHROPIC,
            Self::Gemini => &GEMINI,
            Self::LlamaCpp => &LLAMA_CPP,
        }
    }
}

/// Which names a property may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameRule {
    Any,
    /// Letters, digits, `_`, `.` and `-`, at most 64.
    Word,
    /// Letters, digits and `_`, not a digit first, at most 64.
    Identifier,
    /// Not the words by which the server looks for references anywhere in a schema.
    NoKeyword,
}

/// Which references a server follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum References {
    Any,
    /// References without other keywords beside them.
    Bare,
    /// References directly to a definition with a plain name. Only notes may be beside them.
    Direct,
    None,
}

/// A row of the table.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// The only keywords that are taken; none if all are, apart from `refused`.
    pub(crate) known: Option<&'static [&'static str]>,
    /// Keywords that are refused, or read as something else.
    pub(crate) refused: &'static [&'static str],
    /// Whether the root needs `properties`.
    pub(crate) needs_properties: bool,
    pub(crate) names: NameRule,
    pub(crate) references: References,
    /// Whether keywords beside a choice are refused or ignored, apart from [`NOTES`].
    pub(crate) lone_choices: bool,
    /// Whether every schema needs a type, a choice or a reference, and only the keywords of its type.
    pub(crate) typed: bool,
    /// Whether a list of types is refused, and `nullable` says that a value may be null.
    pub(crate) single_types: bool,
    /// Whether only texts that are not empty may be listed in `enum`.
    pub(crate) text_choices: bool,
    /// The only values of `format`, if not all are taken.
    pub(crate) formats: Option<&'static [&'static str]>,
    /// Whether patterns have to be such that [`super::grammar`] reads them.
    pub(crate) grammar_patterns: bool,
    /// The largest bound on the length of a text or a list, if there is one.
    pub(crate) most_repeats: Option<u64>,
    /// Whether objects take the described properties only, and need all of them.
    pub(crate) closed: bool,
    /// How many objects may be inside of each other, if that is limited.
    pub(crate) deepest: Option<usize>,
}

/// Keywords that only describe a value. A choice may have them, too.
pub(super) const NOTES: &[&str] = &["title", "description", "default", "nullable", "$defs", "definitions"];

/// Keywords that constrain a value. Where they have to be left out, the description says them.
pub(super) const RULES: &[&str] = &[
    "additionalProperties",
    "anyOf",
    "const",
    "contains",
    "default",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "if",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "propertyNames",
    "then",
    "uniqueItems",
];

/// Which keywords belong to which types. A keyword without a type means the first type of its row.
pub(super) const OF_TYPES: &[(&[&str], &[&str])] = &[
    (
        &["object"],
        &[
            "properties",
            "required",
            "additionalProperties",
            "minProperties",
            "maxProperties",
            "patternProperties",
            "propertyNames",
            "propertyOrdering",
            "dependencies",
            "dependentRequired",
            "dependentSchemas",
        ],
    ),
    (
        &["array"],
        &["items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains"],
    ),
    (&["string"], &["pattern", "minLength", "maxLength"]),
    (&["number", "integer"], &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]),
    (&["string", "number", "integer"], &["format"]),
];

/// The root must be an object without choices, lists need `items`, and references must lead somewhere: reported errors begin with
/// `Invalid schema for function`. All of this holds for every dialect, and the common form of `keywords.rs` and `root.rs` meets it.
const OPENAI: Row = Row {
    name: "openai",
    known: None,
    refused: &[],
    needs_properties: true,
    names: NameRule::Any,
    references: References::Any,
    lone_choices: false,
    typed: false,
    single_types: false,
    text_choices: false,
    formats: None,
    grammar_patterns: false,
    most_repeats: None,
    closed: false,
    deepest: None,
};

/// The documentation of OpenAI's Structured Outputs, "Supported schemas". Errors name what is not permitted, and keywords beside `$ref`.
const OPENAI_STRICT: Row = Row {
    name: "openai-strict",
    known: Some(&[
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "enum",
        "const",
        "anyOf",
        "$ref",
        "$defs",
        "definitions",
        "title",
        "description",
        "pattern",
        "format",
        "multipleOf",
        "maximum",
        "minimum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "minItems",
        "maxItems",
    ]),
    references: References::Bare,
    lone_choices: true,
    typed: true,
    formats: Some(&["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"]),
    closed: true,
    deepest: Some(10),
    ..OPENAI
};

/// Reported errors: `Property keys should match pattern`, `JSON schema is invalid. It must match JSON Schema draft 2020-12`, and
/// `input_schema does not support oneOf, allOf, or anyOf at the top level`.
const ANTHROPIC: Row = Row { name: "anthropic", needs_properties: false, names: NameRule::Word, ..OPENAI };

/// The message `Schema` of the API's version `v1beta`, whose fields are the keywords; names of parameters as the documentation of
/// function declarations has them. Reported errors: `Unknown name … Cannot find field`, `only 'enum' and 'date-time' are supported for
/// STRING type`, `enum only allowed for STRING type`, `type must be specified when not using one_of, any_of or all_of fields`.
const GEMINI: Row = Row {
    name: "gemini",
    known: Some(&[
        "type",
        "format",
        "title",
        "description",
        "nullable",
        "enum",
        "maxItems",
        "minItems",
        "properties",
        "required",
        "minProperties",
        "maxProperties",
        "minLength",
        "maxLength",
        "pattern",
        "example",
        "anyOf",
        "propertyOrdering",
        "default",
        "items",
        "minimum",
        "maximum",
    ]),
    names: NameRule::Identifier,
    references: References::None,
    lone_choices: true,
    typed: true,
    single_types: true,
    text_choices: true,
    formats: Some(&["enum", "date-time", "float", "double", "int32", "int64"]),
    ..OPENAI
};

/// The source of `common/json-schema-to-grammar.cpp` as of 2026, and reported errors: `Pattern must start with '^' and end with '$'`,
/// `failed to parse grammar` for escapes such as `\d` and for a repetition of 2,000, which counts what it repeats. It requires every
/// property of the schemas in `allOf`, ignores the keywords beside a choice, and reads a schema of any value as one of an object; earlier
/// versions refuse a schema without a type (`Unrecognized schema`).
const LLAMA_CPP: Row = Row {
    name: "llama.cpp",
    refused: &["allOf", "not", "if", "then", "else", "nullable"],
    names: NameRule::NoKeyword,
    references: References::Direct,
    lone_choices: true,
    typed: true,
    grammar_patterns: true,
    most_repeats: Some(256),
    ..OPENAI
};
