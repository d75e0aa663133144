//! The settings, under the names that users of Honcho know.

use std::collections::BTreeMap;

use hermes_plugin::{Error, config};

#[config]
#[serde(rename_all = "camelCase")]
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// Where memories are kept: `server` (the default) or `local`, in a database of the plugin's own that needs no service.
    #[serde(default)]
    pub(crate) mode: Mode,
    /// The address of the Honcho server, without `/v3`.
    #[serde(default = "base_url")]
    pub(crate) base_url: String,
    /// Most seconds of a request that is not a question to the dialectic.
    #[schemars(range(min = 1, max = 110))]
    #[serde(default = "timeout")]
    pub(crate) timeout: u32,
    /// The workspace, which all profiles can share; by default `hermes`, or `hermes_PROFILE`.
    pub(crate) workspace: Option<String>,
    /// The user's name as a peer; `user` by default.
    pub(crate) peer_name: Option<String>,
    /// The agent's name as a peer; by default `hermes`, or `hermes_PROFILE`.
    pub(crate) ai_peer: Option<String>,
    /// Whether every person of a front end with several people is `peerName`.
    #[serde(default)]
    pub(crate) pin_user_peer: bool,
    /// Ids of people in a front end, with their names as peers.
    #[serde(default)]
    pub(crate) user_peer_aliases: BTreeMap<String, String>,
    /// Comes before the id of a person who has no alias.
    #[serde(default)]
    pub(crate) runtime_peer_prefix: String,
    /// `hybrid` (the default) recalls by itself and offers tools, `context` only recalls, `tools` only offers tools.
    #[serde(default)]
    pub(crate) recall_mode: RecallMode,
    /// Who learns about whom: `directional` (the default) switches all four settings of `observation` on; with `unified`, the user
    /// observes only themselves, and the agent only others.
    #[serde(default)]
    pub(crate) observation_mode: ObservationMode,
    /// Who learns about whom, in detail. What is missing follows from `observationMode`.
    #[serde(default)]
    pub(crate) observation: Observation,
    /// Whether conversations are stored.
    #[serde(default = "yes")]
    pub(crate) save_messages: bool,
    /// Which conversations share a Honcho session: those of a folder (`per-directory`, the default), each its own (`per-session`), or
    /// all (`global`). `per-repo` means the git repository that contains the folder.
    #[serde(default)]
    pub(crate) session_strategy: SessionStrategy,
    /// Whether names of sessions begin with the user's peer.
    #[serde(default)]
    pub(crate) session_peer_prefix: bool,
    /// Folders, with the names of their sessions.
    #[serde(default)]
    pub(crate) sessions: BTreeMap<String, String>,
    /// Questions to the dialectic in a row, each about the answer before.
    #[schemars(range(min = 1, max = 3))]
    #[serde(default = "one")]
    pub(crate) dialectic_depth: u32,
    /// The level of each of these questions.
    #[serde(default)]
    pub(crate) dialectic_depth_levels: Vec<Level>,
    /// How thoroughly the dialectic thinks; `low` by default.
    #[serde(default)]
    pub(crate) dialectic_reasoning_level: Level,
    /// Whether the model can choose the level in `honcho_reasoning`.
    #[serde(default = "yes")]
    pub(crate) dialectic_dynamic: bool,
    /// Most characters of an answer that is recalled by itself.
    #[schemars(range(min = 1, max = 20_000))]
    #[serde(default = "dialectic_max_chars")]
    pub(crate) dialectic_max_chars: usize,
    /// Most characters of a question.
    #[schemars(range(min = 100, max = 10_000))]
    #[serde(default = "dialectic_max_input_chars")]
    pub(crate) dialectic_max_input_chars: usize,
    /// Whether long messages raise the level: from 120 characters by one, from 400 by two.
    #[serde(default = "yes")]
    pub(crate) reasoning_heuristic: bool,
    /// The highest level that long messages lead to; `high` by default.
    #[serde(default = "high")]
    pub(crate) reasoning_level_cap: Level,
    /// Most tokens of what is recalled for a message; without it, the host's budget.
    #[schemars(range(min = 1))]
    pub(crate) context_tokens: Option<u32>,
    /// Most characters of a stored message; longer ones are stored in pieces.
    #[schemars(range(min = 1_000, max = 25_000))]
    #[serde(default = "message_max_chars")]
    pub(crate) message_max_chars: usize,
    /// After so many turns, what is known is recalled again.
    #[schemars(range(min = 1))]
    #[serde(default = "one")]
    pub(crate) context_cadence: u32,
    /// After so many turns, the dialectic is asked again.
    #[schemars(range(min = 1))]
    #[serde(default = "one")]
    pub(crate) dialectic_cadence: u32,
    /// `every-turn` (the default), or `first-turn`: what is known is recalled for the first message only.
    #[serde(default)]
    pub(crate) injection_frequency: InjectionFrequency,
}

#[config]
#[serde(rename_all = "lowercase")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    #[default]
    Server,
    Local,
}

#[config]
#[serde(rename_all = "lowercase")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RecallMode {
    #[default]
    Hybrid,
    Context,
    Tools,
}

#[config]
#[serde(rename_all = "lowercase")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ObservationMode {
    #[default]
    Directional,
    Unified,
}

#[config]
#[serde(rename_all = "kebab-case")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SessionStrategy {
    #[default]
    PerDirectory,
    PerRepo,
    PerSession,
    Global,
}

#[config]
#[serde(rename_all = "kebab-case")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum InjectionFrequency {
    #[default]
    EveryTurn,
    FirstTurn,
}

#[config]
#[serde(rename_all = "lowercase")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Minimal,
    #[default]
    Low,
    Medium,
    High,
    Max,
}

#[config]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Observation {
    #[serde(default)]
    pub(crate) user: Sight,
    #[serde(default)]
    pub(crate) ai: Sight,
}

#[config]
#[serde(rename_all = "camelCase")]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sight {
    pub(crate) observe_me: Option<bool>,
    pub(crate) observe_others: Option<bool>,
}

/// What a peer observes, decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Observes {
    pub(crate) me: bool,
    pub(crate) others: bool,
}

impl Level {
    const ALL: [Self; 5] = [Self::Minimal, Self::Low, Self::Medium, Self::High, Self::Max];

    pub(crate) fn name(self) -> &'static str {
        ["minimal", "low", "medium", "high", "max"][self as usize]
    }

    /// The level so many steps higher, or lower if negative.
    fn moved(self, steps: i32) -> Self {
        let at = (self as i32 + steps).clamp(0, 4);
        Self::ALL[at as usize]
    }
}

fn base_url() -> String {
    "https://api.honcho.dev".to_owned()
}

fn timeout() -> u32 {
    30
}

fn yes() -> bool {
    true
}

fn one() -> u32 {
    1
}

fn high() -> Level {
    Level::High
}

fn dialectic_max_chars() -> usize {
    600
}

fn dialectic_max_input_chars() -> usize {
    10_000
}

fn message_max_chars() -> usize {
    25_000
}

impl Config {
    pub(crate) fn check(&self) -> Result<(), Error> {
        let base = self.base_url.trim_end_matches('/');
        if self.mode == Mode::Server && !base.starts_with("https://") && !base.starts_with("http://") {
            return Err(Error::invalid("`baseUrl`: an address begins with https:// or http://"));
        }
        if base.ends_with("/v3") {
            return Err(Error::invalid("`baseUrl`: the plugin adds /v3 itself; leave it out"));
        }
        Ok(())
    }

    /// What the user and the agent observe.
    pub(crate) fn observes(&self) -> (Observes, Observes) {
        let all = self.observation_mode == ObservationMode::Directional;
        let decided = |sight: Sight, me: bool, others: bool| Observes {
            me: sight.observe_me.unwrap_or(me),
            others: sight.observe_others.unwrap_or(others),
        };
        (decided(self.observation.user, true, all), decided(self.observation.ai, all, true))
    }

    /// The level of a question that is asked by itself. The first of several is lighter.
    pub(crate) fn level(&self, pass: u32, message: &str) -> Level {
        if let Some(level) = self.dialectic_depth_levels.get(pass as usize) {
            return *level;
        }
        let lighter = if self.dialectic_depth > 1 && pass == 0 { -1 } else { 0 };
        let base = self.dialectic_reasoning_level.moved(lighter);
        let steps = match message.chars().take(400).count() {
            _ if !self.reasoning_heuristic => 0,
            400.. => 2,
            120.. => 1,
            _ => 0,
        };
        // A cap limits the raise, not what the user has set.
        base.moved(steps).min(self.reasoning_level_cap.max(base))
    }
}
