//! The limits of an instance, in one table that generates parser, schema, documentation and errors.
//!
//! A limit has a default for each [`Tier`]. The user can raise it, and so can the manifest if the user granted that
//! ([`LimitSet`]). An error names the limit that caused it. [`Meter`] and the instance's task enforce the limits.

mod meter;
mod set;

use std::time::Duration;

pub(crate) use meter::Meter;
pub use set::{LimitError, LimitSet};

/// The name of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum Limit {
    Memory,
    TableElements,
    Tables,
    Instances,
    Memories,
    Handles,
    Cpu,
    StartTime,
    TurnTime,
    RecallTime,
    ToolTime,
    BackgroundTime,
    Input,
    Output,
    HostCalls,
    LogLines,
    LogBytes,
    ParallelCalls,
    SqlMemory,
    DocumentCount,
    DocumentBytes,
}

/// The unit of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes: `64MiB`.
    Bytes,
    /// Milliseconds: `2s`.
    Time,
    /// A number: `1000`.
    Count,
}

/// The set of defaults that a plugin gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// It offers tools, skills or hooks.
    Tools,
    /// It is a context engine or a memory provider, whose needs grow with the conversation, or an embedder, which holds a model.
    Session,
}

/// The definition of a limit.
#[derive(Debug, Clone, Copy)]
pub struct Definition {
    /// The limit.
    pub limit: Limit,
    /// Its name in manifests, in the configuration and in errors.
    pub name: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// The default for [`Tier::Tools`].
    pub tools: u64,
    /// The default for [`Tier::Session`].
    pub session: u64,
    /// The lowest value that can be set.
    pub least: u64,
    /// The highest value that can be set.
    pub most: u64,
    /// What it limits, in one line.
    pub meaning: &'static str,
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const SECOND: u64 = 1_000;
const HOUR: u64 = 3_600 * SECOND;

const fn bytes(
    limit: Limit,
    name: &'static str,
    defaults: (u64, u64),
    range: (u64, u64),
    meaning: &'static str,
) -> Definition {
    define(limit, name, Unit::Bytes, defaults, range, meaning)
}

const fn time(limit: Limit, name: &'static str, defaults: (u64, u64), meaning: &'static str) -> Definition {
    define(limit, name, Unit::Time, defaults, (10, 24 * HOUR), meaning)
}

const fn count(
    limit: Limit,
    name: &'static str,
    defaults: (u64, u64),
    range: (u64, u64),
    meaning: &'static str,
) -> Definition {
    define(limit, name, Unit::Count, defaults, range, meaning)
}

const fn define(
    limit: Limit,
    name: &'static str,
    unit: Unit,
    (tools, session): (u64, u64),
    (least, most): (u64, u64),
    meaning: &'static str,
) -> Definition {
    Definition { limit, name, unit, tools, session, least, most, meaning }
}

/// All limits, in the order of [`Limit`].
pub const LIMITS: [Definition; 21] = [
    bytes(
        Limit::Memory,
        "memory",
        (64 * MIB, 256 * MIB),
        (MIB, 4096 * MIB),
        "all linear memories of an instance together",
    ),
    count(
        Limit::TableElements,
        "table_elements",
        (20_000, 20_000),
        (1, 10_000_000),
        "elements of all tables of an instance together",
    ),
    // A language runtime linked from parts, such as Python's, has about thirty modules, a few of them with a table.
    count(Limit::Tables, "tables", (16, 16), (1, 1_000), "tables of an instance"),
    count(Limit::Instances, "instances", (64, 64), (1, 1_000), "core modules of an instance"),
    count(Limit::Memories, "memories", (8, 8), (1, 100), "linear memories of an instance"),
    count(
        Limit::Handles,
        "handles",
        (1_000, 10_000),
        (10, 1_000_000),
        "open resources of an instance, its own and the host's",
    ),
    time(
        Limit::Cpu,
        "cpu",
        (2 * SECOND, 5 * SECOND),
        "time a call computes inside the plugin; waiting for the host does not count",
    ),
    time(
        Limit::StartTime,
        "start_time",
        (5 * SECOND, 5 * SECOND),
        "creating an instance: its code, `configure`, `session-start`",
    ),
    time(Limit::TurnTime, "turn_time", (2 * SECOND, 2 * SECOND), "a call that a turn waits for"),
    time(
        Limit::RecallTime,
        "recall_time",
        (2 * SECOND, 2 * SECOND),
        "how long a turn waits for `recall`, whose late answer serves the next turn, and for `assist`",
    ),
    time(Limit::ToolTime, "tool_time", (30 * SECOND, 30 * SECOND), "a tool call, and `embed`"),
    time(
        Limit::BackgroundTime,
        "background_time",
        (180 * SECOND, 180 * SECOND),
        "a call in the background: `prepare`, `sync-turn`, `before-compact`, `prefetch`, `written`, `upkeep`, and `rewound` of a memory provider",
    ),
    bytes(
        Limit::Input,
        "input",
        (8 * MIB, 64 * MIB),
        (64 * KIB, 512 * MIB),
        "texts and lists passed to the plugin in a call",
    ),
    bytes(
        Limit::Output,
        "output",
        (8 * MIB, 64 * MIB),
        (64 * KIB, 512 * MIB),
        "what the plugin passes at once: to an import, or as the result of a call",
    ),
    count(
        Limit::HostCalls,
        "host_calls",
        (10_000, 100_000),
        (10, 100_000_000),
        "calls of imports per call of the plugin",
    ),
    count(Limit::LogLines, "log_lines", (256, 256), (1, 100_000), "log lines per call; further ones are dropped"),
    bytes(
        Limit::LogBytes,
        "log_bytes",
        (256 * KIB, 256 * KIB),
        (KIB, 64 * MIB),
        "log bytes per call; further lines are dropped",
    ),
    count(
        Limit::ParallelCalls,
        "parallel_calls",
        (4, 4),
        (1, 32),
        "concurrent tool calls of the plugin; further ones wait",
    ),
    bytes(
        Limit::SqlMemory,
        "sql_memory",
        (128 * MIB, 256 * MIB),
        (8 * MIB, 4096 * MIB),
        "memory of all SQL statements of the plugin in a process together",
    ),
    count(Limit::DocumentCount, "document_count", (1_000, 1_000), (1, 1_000_000), "documents of the plugin's own"),
    bytes(
        Limit::DocumentBytes,
        "document_bytes",
        (64 * MIB, 64 * MIB),
        (64 * KIB, 65_536 * MIB),
        "all documents of the plugin's own together",
    ),
];

impl Limit {
    /// Its definition.
    pub fn definition(self) -> &'static Definition {
        &LIMITS[self as usize]
    }

    /// Its name in manifests, in the configuration and in errors.
    pub fn name(self) -> &'static str {
        self.definition().name
    }

    /// The limit with this name.
    pub fn named(name: &str) -> Option<Self> {
        LIMITS.iter().find(|definition| definition.name == name).map(|definition| definition.limit)
    }

    /// The configuration key that sets it for a plugin.
    pub fn key(self, plugin: &str) -> String {
        format!("plugins.settings.{plugin}.limits.{}", self.name())
    }

    /// Formats a value with its unit: `64MiB`, `2s`, `1000`.
    pub fn show(self, value: u64) -> String {
        set::show(self.definition().unit, value)
    }
}

impl Definition {
    /// The default for a tier.
    pub fn default_for(&self, tier: Tier) -> u64 {
        match tier {
            Tier::Tools => self.tools,
            Tier::Session => self.session,
        }
    }
}

/// The limits of one instance. Deliberately without `Default`: the code that creates an instance chooses its tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits([u64; LIMITS.len()]);

impl Limits {
    /// The defaults of a tier.
    pub fn of(tier: Tier) -> Self {
        Self(LIMITS.map(|definition| definition.default_for(tier)))
    }

    /// The defaults of [`Tier::Session`].
    pub fn standard() -> Self {
        Self::of(Tier::Session)
    }

    /// These limits with the values of a set.
    #[must_use]
    pub fn with(mut self, set: &LimitSet) -> Self {
        for (limit, value) in set.iter() {
            self.0[limit as usize] = value;
        }
        self
    }

    /// The value, in bytes, milliseconds or pieces.
    pub fn get(&self, limit: Limit) -> u64 {
        self.0[limit as usize]
    }

    /// The value of a limit of time.
    pub fn time(&self, limit: Limit) -> Duration {
        Duration::from_millis(self.get(limit))
    }

    /// The value of a limit of bytes or pieces.
    pub(crate) fn size(&self, limit: Limit) -> usize {
        usize::try_from(self.get(limit)).unwrap_or(usize::MAX)
    }
}

/// The table in Markdown, for the documentation.
pub fn documentation() -> String {
    let rows = LIMITS.iter().map(|definition| {
        let Definition { limit, name, tools, session, meaning, .. } = definition;
        format!("| `{name}` | {} | {} | {meaning} |\n", limit.show(*tools), limit.show(*session))
    });
    let head = "| limit | tools, skills, hooks | engine, memory, embedder | what |\n|---|---|---|---|\n";
    std::iter::once(head.to_owned()).chain(rows).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_is_at_its_index_in_the_table_with_defaults_in_range() {
        for (index, definition) in LIMITS.iter().enumerate() {
            assert_eq!(definition.limit as usize, index, "{}", definition.name);
            assert_eq!(Limit::named(definition.name), Some(definition.limit));
            for default in [definition.tools, definition.session] {
                assert!((definition.least..=definition.most).contains(&default), "{}", definition.name);
            }
        }
    }

    #[test]
    fn the_defaults_are_those_that_the_contract_states() {
        let page = include_str!("../../../wit/README.md");
        let (_, table) = page.split_once("| limit | tools, skills, hooks | engine, memory, embedder | of |").unwrap();
        let mut stated = 0;
        for row in table.lines().skip(2).take_while(|line| line.starts_with('|')) {
            let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
            for name in cells[0].split(", ").map(|name| name.trim_matches('`')) {
                let limit = Limit::named(name).unwrap();
                let Definition { tools, session, .. } = *limit.definition();
                let plain = |cell: &str| cell.replace([' ', ','], "");
                assert_eq!((plain(cells[1]), plain(cells[2])), (limit.show(tools), limit.show(session)), "{name}");
                stated += 1;
            }
        }
        assert_eq!(stated, 10);
    }

    #[test]
    fn the_documentation_of_limits_has_the_table() {
        let page = include_str!("../../../docs/plugins/limits.md");
        assert!(page.contains(&documentation()), "docs/plugins/limits.md lacks the table\n{}", documentation());
    }
}
