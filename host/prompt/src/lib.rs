//! The system prompt: built once for a session, stored with it, and sent byte for byte ever after.
//!
//! Everything that goes into it is handed in; nothing here reads a file, a clock or the environment. The
//! same inputs give the same bytes. What changes least stands first, so that sessions share as much of a
//! provider's cache as they can.
//!
//! ```
//! use hermes_conversation::Model;
//! use hermes_prompt::{Inputs, build};
//!
//! let prompt = build(&Inputs {
//!     identity: None,
//!     tools: vec!["memory".into()],
//!     skills: Vec::new(),
//!     platform: "cli".into(),
//!     os: "linux".into(),
//!     workspace: "/home/ada/engine".into(),
//!     system_message: None,
//!     provider_blocks: Vec::new(),
//!     date: jiff::civil::date(2026, 11, 21),
//!     model: Model { provider: "offline".into(), name: "offline".into(), context_length: 32_000 },
//! });
//! assert!(prompt.text().ends_with("\n\nModel: offline (provider: offline)"));
//! ```

#![forbid(unsafe_code)]

pub mod ledger;
mod skills;
mod wording;

use std::path::PathBuf;

use hermes_conversation::Model;
use jiff::civil::Date;

pub use skills::SkillEntry;

/// What a prompt is built from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inputs {
    /// Who the model is to be; none, or a blank one, for the built-in identity.
    pub identity: Option<String>,
    /// Names of the tools that the session offers, in any order.
    pub tools: Vec<String>,
    /// The skills that the session offers, in any order.
    pub skills: Vec<SkillEntry>,
    /// Where the conversation is held, such as `cli`.
    pub platform: String,
    /// The operating system, such as `linux`.
    pub os: String,
    /// The folder that the session works in.
    pub workspace: PathBuf,
    /// The user's own instructions for the session.
    pub system_message: Option<String>,
    /// Texts of memory providers, in the order in which they are to stand.
    pub provider_blocks: Vec<ProviderBlock>,
    /// The day on which the session begins; a time of day would be different in every session.
    pub date: Date,
    /// The model that answers.
    pub model: Model,
}

/// What a memory provider has to say at the beginning of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderBlock {
    /// The plugin that it is from.
    pub plugin: String,
    /// As the plugin gave it.
    pub text: String,
}

/// A part of the prompt, by name, so that it can be shown what takes how much room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// What it is.
    pub name: String,
    /// Never blank, and without blanks around it.
    pub text: String,
}

/// A system prompt in three tiers, from what changes least to what changes most.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SystemPrompt {
    /// Identity, guidance for tools, the index of skills, the environment.
    pub stable: Vec<Layer>,
    /// The user's instructions for the session.
    pub context: Vec<Layer>,
    /// What providers remember, the date, the model.
    pub volatile: Vec<Layer>,
}

impl SystemPrompt {
    /// All layers in their order.
    pub fn layers(&self) -> impl Iterator<Item = &Layer> {
        self.stable.iter().chain(&self.context).chain(&self.volatile)
    }

    /// What the model is sent: the layers, a blank line between each two.
    pub fn text(&self) -> String {
        self.layers().map(|layer| layer.text.as_str()).collect::<Vec<_>>().join("\n\n")
    }
}

const DATE: &str = "date";

/// Builds the prompt. The line that names model and provider is the very last.
pub fn build(inputs: &Inputs) -> SystemPrompt {
    let mut prompt = SystemPrompt::default();

    let identity = inputs.identity.as_deref().filter(|identity| !identity.trim().is_empty());
    push(&mut prompt.stable, "identity", identity.unwrap_or(wording::IDENTITY));
    push(&mut prompt.stable, "tools", &wording::tools(&inputs.tools));
    push(&mut prompt.stable, "skills", &skills::index(&inputs.skills));
    push(&mut prompt.stable, "environment", &wording::environment(&inputs.os, &inputs.workspace, &inputs.platform));

    push(&mut prompt.context, "system message", inputs.system_message.as_deref().unwrap_or_default());

    for block in &inputs.provider_blocks {
        push(&mut prompt.volatile, &format!("memory: {}", block.plugin), &block.text);
    }
    push(&mut prompt.volatile, DATE, &wording::date(inputs.date));
    push(&mut prompt.volatile, "model", &wording::model(&inputs.model));
    prompt
}

fn push(tier: &mut Vec<Layer>, name: &str, text: &str) {
    let text = text.trim();
    if !text.is_empty() {
        tier.push(Layer { name: name.to_owned(), text: text.to_owned() });
    }
}

/// A hash of all that a prompt is built from, the built-in texts included and the date left out: it tells whether
/// a prompt built today would differ from the one that a session was frozen with by more than the day.
pub fn inputs_hash(inputs: &Inputs) -> String {
    // Destructured, so that an input added later cannot be forgotten here.
    let Inputs {
        identity,
        tools,
        skills,
        platform,
        os,
        workspace,
        system_message,
        provider_blocks,
        date: _,
        model: Model { provider, name, context_length },
    } = inputs;
    let mut hash = blake3::Hasher::new();
    let mut field = |parts: &[&[u8]]| {
        // With lengths, so that no text can pass for the end of its field.
        hash.update(&(parts.len() as u64).to_le_bytes());
        for part in parts {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part);
        }
    };
    let optional = |text: &Option<String>| text.as_ref().map(|text| text.as_bytes().to_vec());

    field(&optional(identity).iter().map(Vec::as_slice).collect::<Vec<_>>());
    let mut tools: Vec<&[u8]> = tools.iter().map(String::as_bytes).collect();
    tools.sort_unstable();
    tools.dedup();
    field(&tools);
    for skill in skills::in_order(skills) {
        field(&[skill.category.as_bytes(), skill.name.as_bytes(), skill.description.as_bytes()]);
    }
    field(&[platform.as_bytes(), os.as_bytes(), workspace.as_os_str().as_encoded_bytes()]);
    field(&optional(system_message).iter().map(Vec::as_slice).collect::<Vec<_>>());
    for block in provider_blocks {
        field(&[block.plugin.as_bytes(), block.text.as_bytes()]);
    }
    field(&[provider.as_bytes(), name.as_bytes(), &context_length.to_le_bytes()]);
    for layer in build(inputs).layers().filter(|layer| layer.name != DATE) {
        field(&[layer.name.as_bytes(), layer.text.as_bytes()]);
    }
    hash.finalize().to_hex().to_string()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_conversation::tokens;
    use proptest::prelude::*;

    use super::*;

    fn skill(category: &str, name: &str, description: &str) -> SkillEntry {
        SkillEntry { name: name.into(), description: description.into(), category: category.into() }
    }

    fn bare() -> Inputs {
        Inputs {
            identity: None,
            tools: Vec::new(),
            skills: Vec::new(),
            platform: "cli".into(),
            os: "linux".into(),
            workspace: "/home/ada/engine".into(),
            system_message: None,
            provider_blocks: Vec::new(),
            date: jiff::civil::date(2026, 11, 21),
            model: Model { provider: "openrouter".into(), name: "acme/large-2".into(), context_length: 200_000 },
        }
    }

    fn full() -> Inputs {
        Inputs {
            tools: ["write_file", "memory", "search_files", "read_file", "skill_view"].map(String::from).to_vec(),
            skills: vec![
                skill("writing", "letters", "Formal letters"),
                skill("", "loose", "Stands at the top"),
                skill(
                    "code",
                    "review",
                    "Goes through a change,\nline by line, and names what breaks <first> & what only looks odd",
                ),
                skill("code", "bisect", "Finds the change that broke it"),
            ],
            system_message: Some("Answer in French.\n".into()),
            provider_blocks: vec![
                ProviderBlock { plugin: "builtin".into(), text: "\n# Memory\n- The engine is brass.\n".into() },
                ProviderBlock { plugin: "silent".into(), text: " \n".into() },
            ],
            ..bare()
        }
    }

    #[test]
    fn a_full_prompt_reads_like_this() {
        insta::assert_snapshot!(build(&full()).text(), @r"
        You are Hermes, an assistant that works with its user in conversation and gets things done with tools. Be exact and direct. Tell apart what you know, what you assume and what you could not find out. Answer in the language of the user, as briefly as the matter allows.

        # Tools
        Where a tool can find out or do what is needed, call it instead of guessing or announcing it. Calls that do not depend on each other can be made together. Go on until the task is done or needs a decision that is the user's. Never invent the result of a tool: report what it returned. When a call fails, say so, read why, and try another way.
        `read_file`, `write_file`, `search_files` work in the workspace, with paths relative to it. Read a file before you change it.
        `memory` lasts beyond this conversation. Save on your own, in short statements, what will matter again: who the user is, what they prefer or corrected, how their projects and machines are set up. Leave out the progress of a task and what is easily looked up. What you save stands in this prompt from the next session on.

        # Skills
        Before you work on a task, look here for a skill that fits it, even in part. If there is one, call `skill_view` with its name first and follow what it says. If none fits, go on without.
        <available_skills>
          code:
            - bisect: Finds the change that broke it
            - review: Goes through a change, line by line, and names what break...
          general:
            - loose: Stands at the top
          writing:
            - letters: Formal letters
        </available_skills>

        # Environment
        System: linux
        Workspace: /home/ada/engine
        The user reads you in a terminal: plain text or light Markdown, no wide tables.

        Answer in French.

        # Memory
        - The engine is brass.

        Conversation started: Saturday, 21 November 2026

        Model: acme/large-2 (provider: openrouter)
        ");
    }

    #[test]
    fn a_prompt_without_tools_speaks_of_none() {
        insta::assert_snapshot!(build(&bare()).text(), @r"
        You are Hermes, an assistant that works with its user in conversation and gets things done with tools. Be exact and direct. Tell apart what you know, what you assume and what you could not find out. Answer in the language of the user, as briefly as the matter allows.

        # Environment
        System: linux
        Workspace: /home/ada/engine
        The user reads you in a terminal: plain text or light Markdown, no wide tables.

        Conversation started: Saturday, 21 November 2026

        Model: acme/large-2 (provider: openrouter)
        ");
    }

    #[test]
    fn the_default_prompt_is_small() {
        let inputs = Inputs { skills: Vec::new(), system_message: None, provider_blocks: Vec::new(), ..full() };
        let tokens = tokens::of_text(&build(&inputs).text());
        assert!(tokens < 450, "{tokens}");
    }

    #[test]
    fn an_identity_of_ones_own_takes_the_place_of_the_built_in_one() {
        let own = build(&Inputs { identity: Some("\nYou are Ada.\n".into()), ..bare() });
        assert_eq!(own.stable[0].text, "You are Ada.");
        assert_eq!(build(&Inputs { identity: Some(" \n".into()), ..bare() }), build(&bare()));
    }

    #[test]
    fn what_a_tier_holds_never_depends_on_a_later_one() {
        let other = Inputs { date: jiff::civil::date(2027, 1, 1), provider_blocks: Vec::new(), ..full() };
        assert_eq!((build(&full()).stable, build(&full()).context), (build(&other).stable, build(&other).context));
    }

    #[test]
    fn the_hash_follows_every_input_but_the_date() {
        let tomorrow = Inputs { date: jiff::civil::date(2026, 11, 22), ..full() };
        assert_eq!(inputs_hash(&tomorrow), inputs_hash(&full()));
        let mut longer = full();
        longer.skills[2].description.push_str(", and why");
        let others = [
            bare(),
            longer,
            Inputs { identity: Some(String::new()), ..full() },
            Inputs { tools: vec!["memory".into()], ..full() },
            Inputs { platform: "serve".into(), ..full() },
            Inputs { os: "macos".into(), ..full() },
            Inputs { workspace: "/".into(), ..full() },
            Inputs { system_message: None, ..full() },
            Inputs { provider_blocks: Vec::new(), ..full() },
            Inputs { model: Model { context_length: 1, ..full().model }, ..full() },
        ];
        let mut hashes: Vec<String> = others.iter().map(inputs_hash).collect();
        hashes.push(inputs_hash(&full()));
        hashes.sort();
        hashes.dedup();
        assert_eq!(hashes.len(), others.len() + 1);
        assert!(hashes.iter().all(|hash| hash.len() == 64));
    }

    fn any_skill() -> impl Strategy<Value = SkillEntry> {
        ("[a-c]?", "[a-d]{0,2}", "[ -~é\n]{0,70}")
            .prop_map(|(category, name, description)| skill(&category, &name, &description))
    }

    proptest! {
        #[test]
        fn the_order_of_skills_and_tools_makes_no_difference(
            (skills, shuffled) in prop::collection::vec(any_skill(), 0..8)
                .prop_flat_map(|skills| (Just(skills.clone()), Just(skills).prop_shuffle())),
            tools in Just(full().tools).prop_shuffle(),
        ) {
            let one = Inputs { skills, ..full() };
            let other = Inputs { skills: shuffled, tools, ..full() };
            prop_assert_eq!(build(&one).text(), build(&other).text());
            prop_assert_eq!(inputs_hash(&one), inputs_hash(&other));
        }
    }
}
