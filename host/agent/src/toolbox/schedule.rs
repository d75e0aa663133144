//! Which calls of a reply run beside each other, and which share the answer of an earlier call.

use std::borrow::Cow;
use std::collections::HashMap;

use hermes_conversation::ToolCall;
use hermes_plugin_host::{Effect, Tool};
use serde_json::Value;

/// What matters of a tool for the order of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Nature {
    /// Whether it may run beside other calls.
    pub(super) parallel: bool,
    /// Whether it changes nothing.
    pub(super) reads: bool,
    /// Whether the answer to a call is also the answer to an identical call that follows.
    pub(super) repeatable: bool,
}

impl Nature {
    pub(super) fn of(tool: &Tool) -> Self {
        let reads = tool.effect == Effect::Reads;
        // The user is asked about a dangerous tool, whatever its plugin says.
        Self {
            parallel: tool.parallel && tool.effect != Effect::Dangerous,
            reads,
            repeatable: reads && tool.idempotent,
        }
    }
}

/// Splits calls into runs. Adjacent calls that may run beside each other form one run; every other call is a run of its own.
pub(super) fn runs(calls: &[ToolCall], beside: impl Fn(&str, &str) -> bool) -> Vec<&[ToolCall]> {
    calls.chunk_by(|a, b| beside(&a.name, &b.name)).collect()
}

/// For each call, the earlier identical call whose answer it shares. A call between the two that may change something makes the
/// later one run again.
pub(super) fn originals(calls: &[ToolCall], nature: impl Fn(&str) -> Nature) -> Vec<Option<usize>> {
    let mut seen: HashMap<(&str, Cow<'_, str>), usize> = HashMap::new();
    let original = |(at, call)| {
        let ToolCall { name, arguments, .. }: &ToolCall = call;
        let nature = nature(name);
        if !nature.reads {
            seen.clear();
        }
        let first = nature.repeatable.then(|| *seen.entry((name, canonical(arguments))).or_insert(at));
        first.filter(|first| *first != at)
    };
    calls.iter().enumerate().map(original).collect()
}

/// The arguments with members in one order and without spaces between them.
fn canonical(arguments: &str) -> Cow<'_, str> {
    let text = arguments.trim();
    match serde_json::from_str::<Value>(text) {
        // Arguments with a repeated member stay as they are: the tool decides which of the two counts.
        Ok(mut value) if is_exact(&value) && !hermes_prompt::scan::has_repeated_member(text) => {
            value.sort_all_objects();
            Cow::Owned(value.to_string())
        }
        _ => Cow::Borrowed(text),
    }
}

/// Whether reading the value has lost nothing: numbers with many digits that differ may be equal afterwards.
fn is_exact(value: &Value) -> bool {
    match value {
        Value::Number(number) => !number.is_f64(),
        Value::Array(values) => values.iter().all(is_exact),
        Value::Object(members) => members.values().all(is_exact),
        Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls<const N: usize>(calls: [(&str, &str); N]) -> [ToolCall; N] {
        calls.map(|(name, arguments)| ToolCall {
            id: String::new(),
            name: name.to_owned(),
            arguments: arguments.to_owned(),
        })
    }

    fn nature(name: &str) -> Nature {
        let reads = name != "write";
        Nature { parallel: name == "read", reads, repeatable: reads && name != "clock" }
    }

    #[test]
    fn a_tool_that_is_not_parallel_runs_alone() {
        let calls = calls(["read", "read", "ask", "read", "ask", "ask"].map(|name| (name, "{}")));
        let runs = runs(&calls, |a, b| nature(a).parallel && nature(b).parallel);
        assert_eq!(runs.iter().map(|run| run.len()).collect::<Vec<_>>(), [2, 1, 1, 1, 1]);
    }

    #[test]
    fn a_call_shares_the_answer_of_an_identical_one_unless_something_may_have_changed() {
        let calls = calls([
            ("read", "{\"a\":1,\"b\":[{\"c\":2,\"d\":3}]}"),
            ("clock", "{}"),
            ("read", " {\"b\": [{\"d\": 3, \"c\": 2}], \"a\": 1} "),
            ("clock", "{}"),
            ("ask", "{\"a\":1,\"b\":[{\"c\":2,\"d\":3}]}"),
            ("read", "{\"b\":[{\"c\":2,\"d\":3}],\"a\":1}"),
            ("write", "{}"),
            ("write", "{}"),
            ("read", "{\"a\":1,\"b\":[{\"c\":2,\"d\":3}]}"),
            ("read", "{\"a\":1,\"b\":[{\"c\":2,\"d\":3}]}"),
        ]);
        let expected = [None, None, Some(0), None, None, Some(0), None, None, None, Some(8)];
        assert_eq!(originals(&calls, nature), expected);
    }

    #[test]
    fn arguments_that_only_look_alike_are_not_identical() {
        for (one, other) in [
            ("{\"a\":123456789012345678901}", "{\"a\":123456789012345678902}"),
            ("{\"a\":1}", "{\"a\":\"1\"}"),
            ("{\"a\":[1,2]}", "{\"a\":[2,1]}"),
            ("{\"a\":1,\"a\":2}", "{\"a\":2}"),
            ("{\"a\":1", "{\"a\":2"),
        ] {
            assert_eq!(originals(&calls([("read", one), ("read", other)]), nature), [None, None], "{one} {other}");
            assert_eq!(originals(&calls([("read", one), ("read", one)]), nature), [None, Some(0)], "{one}");
        }
    }

    #[test]
    fn the_user_is_asked_about_a_dangerous_tool_alone() {
        let tool = |effect, idempotent| Tool {
            schema: hermes_plugin_host::OfferedSchema {
                name: "t".to_owned(),
                description: String::new(),
                parameters: "{}".to_owned(),
                extra: Vec::new(),
            },
            title: None,
            output_schema: None,
            toolset: "t".to_owned(),
            parallel: true,
            effect,
            idempotent,
            open_world: false,
            extra: Vec::new(),
        };
        let natures =
            [(Effect::Reads, true), (Effect::Reads, false), (Effect::Writes, true), (Effect::Dangerous, true)]
                .map(|(effect, idempotent)| Nature::of(&tool(effect, idempotent)));
        let of = |nature: Nature| (nature.parallel, nature.reads, nature.repeatable);
        assert_eq!(
            natures.map(of),
            [(true, true, true), (true, true, false), (true, false, false), (false, false, false)]
        );
    }
}
