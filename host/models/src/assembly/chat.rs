//! The chunks of chat completions.
//!
//! Servers differ in what they leave out and in what they repeat; the rules here are those under which all of them
//! come out right.

use std::collections::BTreeMap;

use hermes_conversation::Usage;
use serde_json::Value;

use super::{Assemble, Broken, Progress, Slot, Unread, settle};
use crate::{Delta, Finish, OnDelta, Reply, failure::Stated, usage, wire::is_object};

/// What has arrived of a reply.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    text: String,
    reasoning: String,
    refusal: String,
    calls: Vec<Slot>,
    /// The newest slot of each index on the wire.
    newest: BTreeMap<u64, usize>,
    finish: Option<String>,
    usage: Option<Usage>,
    model: Option<String>,
    /// The server has said that nothing more follows.
    ended: bool,
}

impl Assemble for Assembly {
    fn take(&mut self, chunk: &Value, on_delta: OnDelta<'_>) -> Result<(), Stated> {
        if chunk.get("error").is_some_and(|error| !error.is_null()) {
            return Err(Stated::from_value(200, chunk));
        }
        if self.model.is_none() {
            self.model =
                chunk.get("model").and_then(Value::as_str).filter(|model| !model.is_empty()).map(str::to_owned);
        }
        let choice = chunk.pointer("/choices/0");
        let counted = chunk.get("usage").or_else(|| choice?.get("usage")).and_then(usage::read);
        if let Some(counted) = counted {
            self.usage = Some(counted);
            // With `include_usage`, the chunk that has counts and no choice is the last one.
            self.ended |= choice.is_none() && !self.is_empty();
        }
        let Some(choice) = choice else { return Ok(()) };
        if let Some(delta) = choice.get("delta").filter(|delta| delta.is_object()) {
            self.take_delta(delta, false, on_delta);
        } else if let Some(message) = choice.get("message") {
            self.take_delta(message, true, on_delta);
            self.ended = true;
        }
        match choice.get("finish_reason") {
            Some(Value::String(reason)) if !reason.is_empty() => self.finish = Some(reason.clone()),
            Some(Value::Number(reason)) => self.finish = Some(reason.to_string()),
            _ => {}
        }
        if self.finish.as_deref() == Some("error") {
            return Err(Stated { status: 500, code: String::new(), message: "the model failed midway".to_owned() });
        }
        Ok(())
    }

    /// A whole completion stands in one chunk.
    fn take_whole(&mut self, reply: &Value, on_delta: OnDelta<'_>) -> Result<(), Unread> {
        self.take(reply, on_delta)?;
        reply.pointer("/choices/0").map(|_| ()).ok_or(Unread::Lacks("choices"))
    }

    fn done(&mut self) {
        self.ended = true;
    }

    fn progress(&self) -> Progress {
        // Whatever gave a reason to end: only counts can follow, and `[DONE]`.
        if self.finish.is_some() || self.ended { Progress::Whole } else { Progress::Open }
    }

    fn into_text(self: Box<Self>) -> String {
        self.text
    }

    fn finish(mut self: Box<Self>, asked: &str, new_id: &mut dyn FnMut() -> String) -> Result<Reply, Broken> {
        if self.progress() == Progress::Open {
            return Err(Broken::Cut { partial: self.text });
        }
        let mut finish = match self.finish.as_deref() {
            Some("length" | "max_tokens") => Finish::Length,
            Some("content_filter" | "refusal") => Finish::Refused,
            _ => Finish::Stop,
        };
        if self.text.trim().is_empty() && self.calls.is_empty() && !self.refusal.trim().is_empty() {
            self.text = std::mem::take(&mut self.refusal);
            if finish == Finish::Stop {
                finish = Finish::Refused;
            }
        }
        let (tool_calls, finish) = settle(self.calls, finish, new_id)?;
        Ok(Reply {
            text: self.text,
            reasoning: Some(self.reasoning).filter(|reasoning| !reasoning.is_empty()),
            tool_calls,
            finish,
            usage: self.usage,
            model: self.model.unwrap_or_else(|| asked.to_owned()),
            parts: Vec::new(),
        })
    }
}

impl Assembly {
    fn is_empty(&self) -> bool {
        self.text.is_empty() && self.reasoning.is_empty() && self.refusal.is_empty() && self.calls.is_empty()
    }

    fn take_delta(&mut self, delta: &Value, whole: bool, on_delta: OnDelta<'_>) {
        // Some send the same words under both names.
        let reasoning = ["reasoning", "reasoning_content"]
            .iter()
            .find_map(|key| delta.get(key).map(text_of).filter(|text| !text.is_empty()));
        if let Some(more) = reasoning {
            on_delta(Delta::Reasoning(&more));
            self.reasoning.push_str(&more);
        }
        let more = delta.get("content").map(text_of).unwrap_or_default();
        if !more.is_empty() {
            // Behind the first call, text is an aside that would tear the display of calls apart.
            if self.calls.is_empty() {
                on_delta(Delta::Text(&more));
            }
            self.text.push_str(&more);
        }
        if let Some(more) = delta.get("refusal").and_then(Value::as_str) {
            self.refusal.push_str(more);
        }
        let calls = delta.get("tool_calls").and_then(Value::as_array);
        for (position, call) in calls.into_iter().flatten().enumerate() {
            // A whole message numbers its calls by their places.
            let index = if whole { position as u64 } else { call.get("index").and_then(Value::as_u64).unwrap_or(0) };
            self.take_call(index, call, on_delta);
        }
    }

    fn take_call(&mut self, index: u64, call: &Value, on_delta: OnDelta<'_>) {
        let id = match call.get("id") {
            Some(Value::String(id)) => id.clone(),
            Some(Value::Number(id)) => id.to_string(),
            _ => String::new(),
        };
        let function = call.get("function").unwrap_or(&Value::Null);
        let name = function.get("name").and_then(Value::as_str).unwrap_or_default();
        let arguments = match function.get("arguments") {
            Some(Value::String(arguments)) => arguments.clone(),
            Some(arguments @ Value::Object(_)) => arguments.to_string(),
            _ => String::new(),
        };

        let open = self.newest.get(&index).copied().filter(|at| {
            let slot = &self.calls[*at];
            let other_id = !id.is_empty() && !slot.id.is_empty() && slot.id != id;
            // Servers without ids may put all calls at one index: a name behind whole arguments begins another.
            let next = id.is_empty() && !name.is_empty() && !arguments.is_empty() && is_object(&slot.arguments);
            !other_id && !next
        });
        let at = open.unwrap_or_else(|| {
            self.calls.push(Slot::default());
            self.calls.len() - 1
        });
        self.newest.insert(index, at);
        let slot = &mut self.calls[at];
        if !id.is_empty() {
            slot.id = id;
        }
        if !name.is_empty() {
            if slot.name.is_empty() {
                on_delta(Delta::ToolName(name));
            }
            // Some repeat the name in every chunk.
            name.clone_into(&mut slot.name);
        }
        slot.arguments.push_str(&arguments);
    }
}

/// Text, or the text of a list of parts.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
        _ => String::new(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// The reply, and what a viewer saw.
    fn assemble(chunks: &[Value], done: bool) -> (Result<Reply, Broken>, Vec<String>) {
        let mut assembly = Assembly::default();
        let mut shown = Vec::new();
        for chunk in chunks {
            let mut on_delta = |delta: Delta<'_>| {
                shown.push(match delta {
                    Delta::Text(text) => format!("text:{text}"),
                    Delta::Reasoning(text) => format!("reasoning:{text}"),
                    Delta::ToolName(name) => format!("tool:{name}"),
                    Delta::Notice(text) => format!("notice:{text}"),
                });
            };
            assembly.take(chunk, &mut on_delta).unwrap();
        }
        if done {
            assembly.done();
        }
        let mut made = 0;
        let reply = Box::new(assembly).finish("asked", &mut || {
            made += 1;
            format!("made_{made}")
        });
        (reply, shown)
    }

    fn delta(delta: Value) -> Value {
        json!({"choices": [{"index": 0, "delta": delta}]})
    }

    fn finish(reason: &str) -> Value {
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    }

    fn call(index: Option<u64>, id: Value, name: Option<&str>, arguments: &str) -> Value {
        let mut call = json!({"id": id, "function": {"arguments": arguments}});
        if let Some(index) = index {
            call["index"] = index.into();
        }
        if let Some(name) = name {
            call["function"]["name"] = name.into();
        }
        delta(json!({"tool_calls": [call]}))
    }

    fn calls(reply: &Reply) -> Vec<(&str, &str, &str)> {
        reply.tool_calls.iter().map(|call| (&*call.id, &*call.name, &*call.arguments)).collect()
    }

    #[test]
    fn text_and_reasoning_are_appended_and_counts_come_last() {
        let (reply, shown) = assemble(
            &[
                json!({"model": "served", "choices": [{"delta": {"role": "assistant", "reasoning_content": "hm"}}]}),
                delta(json!({"content": "Hel"})),
                delta(json!({"content": "lo", "reasoning": null})),
                finish("stop"),
                json!({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}}),
            ],
            false,
        );
        let reply = reply.unwrap();
        assert_eq!((&*reply.text, reply.reasoning.as_deref(), &*reply.model), ("Hello", Some("hm"), "served"));
        assert_eq!(reply.finish, Finish::Stop);
        assert_eq!(reply.usage.map(|usage| (usage.input, usage.output)), Some((5, 2)));
        assert_eq!(shown, ["reasoning:hm", "text:Hel", "text:lo"]);
    }

    #[test]
    fn interleaved_calls_are_kept_apart_by_index() {
        let (reply, shown) = assemble(
            &[
                call(Some(0), json!("c1"), Some("a"), "{\"x\":"),
                call(Some(1), json!("c2"), Some("b"), "{\"y\":"),
                call(Some(0), Value::Null, None, "1}"),
                call(Some(1), Value::Null, None, "2}"),
                delta(json!({"content": "an aside"})),
                finish("tool_calls"),
            ],
            true,
        );
        let reply = reply.unwrap();
        assert_eq!(calls(&reply), [("c1", "a", "{\"x\":1}"), ("c2", "b", "{\"y\":2}")]);
        assert_eq!((reply.finish, &*reply.text), (Finish::ToolCalls, "an aside"));
        assert_eq!(shown, ["tool:a", "tool:b"], "text behind a call is not shown");
    }

    #[test]
    fn calls_survive_the_habits_of_servers() {
        type Expected = (&'static str, &'static str, &'static str);
        let cases: Vec<(&str, Vec<Value>, Vec<Expected>)> = vec![
            (
                "the name again in every chunk",
                vec![call(Some(0), json!("c1"), Some("ls"), "{"), call(Some(0), json!("c1"), Some("ls"), "}")],
                vec![("c1", "ls", "{}")],
            ),
            (
                "the id late",
                vec![call(Some(0), Value::Null, Some("ls"), "{"), call(Some(0), json!("c1"), None, "}")],
                vec![("c1", "ls", "{}")],
            ),
            (
                "a new id at a used index",
                vec![
                    call(Some(0), json!("c1"), Some("a"), "{}"),
                    call(Some(0), json!("c2"), Some("b"), "{\"n\""),
                    call(Some(0), Value::Null, None, ":1}"),
                ],
                vec![("c1", "a", "{}"), ("c2", "b", "{\"n\":1}")],
            ),
            ("no index, a number for an id", vec![call(None, json!(7), Some("a"), "{}")], vec![("7", "a", "{}")]),
            (
                "neither ids nor indexes",
                vec![call(None, Value::Null, Some("a"), "{\"n\":1}"), call(None, json!(""), Some("a"), "{\"n\":2}")],
                vec![("made_1", "a", "{\"n\":1}"), ("made_2", "a", "{\"n\":2}")],
            ),
            (
                "one id for two calls",
                vec![call(Some(0), json!("c"), Some("a"), "{}"), call(Some(1), json!("c"), Some("b"), "{}")],
                vec![("c", "a", "{}"), ("c_2", "b", "{}")],
            ),
            ("no arguments", vec![call(Some(0), json!("c"), Some("a"), "")], vec![("c", "a", "{}")]),
            (
                "arguments as an object",
                vec![delta(json!({"tool_calls": [{"id": "c", "function": {"name": "a", "arguments": {"x": 1}}}]}))],
                vec![("c", "a", "{\"x\":1}")],
            ),
        ];
        for (habit, mut chunks, expected) in cases {
            // Some say `stop` where they mean calls.
            chunks.push(finish("stop"));
            let reply = assemble(&chunks, false).0.unwrap();
            assert_eq!(calls(&reply), expected, "{habit}");
            assert_eq!(reply.finish, Finish::ToolCalls, "{habit}");
        }
    }

    #[test]
    fn a_stream_that_does_not_say_it_ended_is_cut() {
        let text = delta(json!({"content": "half"}));
        let whole_call = call(Some(0), json!("c1"), Some("ls"), "{}");
        let counts = json!({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}});
        let cut = |partial: &str| Err(Broken::Cut { partial: partial.to_owned() });

        assert_eq!(assemble(std::slice::from_ref(&text), false).0, cut("half"));
        assert_eq!(assemble(&[], false).0, cut(""));
        assert_eq!(assemble(std::slice::from_ref(&counts), false).0, cut(""));
        // Whole arguments make no whole reply: further calls may have been about to come.
        assert_eq!(assemble(&[whole_call], false).0, cut(""));

        assert_eq!(assemble(std::slice::from_ref(&text), true).0.unwrap().finish, Finish::Stop, "`[DONE]` ends it");
        assert_eq!(assemble(&[text, counts], false).0.unwrap().finish, Finish::Stop, "so do counts without a choice");
    }

    #[test]
    fn at_the_cap_on_output_calls_stay_as_they_broke_off() {
        let (reply, _) = assemble(
            &[
                call(Some(0), json!("c1"), Some("write_file"), "{\"path\": \"a"),
                call(Some(1), json!("c2"), Some("ls"), ""),
                call(Some(2), json!("c3"), None, ""),
                finish("length"),
            ],
            true,
        );
        let reply = reply.unwrap();
        assert_eq!(reply.finish, Finish::Length);
        assert_eq!(calls(&reply), [("c1", "write_file", "{\"path\": \"a"), ("c2", "ls", "")]);
    }

    #[test]
    fn a_refusal_is_told_from_an_answer() {
        let whole = |message: Value, reason: Value| {
            assemble(&[json!({"choices": [{"message": message, "finish_reason": reason}]})], false).0.unwrap()
        };
        let refused = whole(json!({"content": "  ", "refusal": "I cannot"}), json!("stop"));
        assert_eq!((&*refused.text, refused.finish), ("I cannot", Finish::Refused));
        let at_length = whole(json!({"refusal": "no"}), json!("length"));
        assert_eq!((&*at_length.text, at_length.finish), ("no", Finish::Length));
        let filtered = whole(
            json!({"content": "so far", "tool_calls": [{"id": "c", "function": {"name": "a", "arguments": "{}"}}]}),
            json!("content_filter"),
        );
        assert_eq!((filtered.finish, filtered.tool_calls.len()), (Finish::Refused, 0));
        let odd = whole(json!({"content": [{"type": "text", "text": "x"}]}), json!(24));
        assert_eq!((&*odd.text, odd.finish), ("x", Finish::Stop));
    }

    #[test]
    fn a_whole_completion_without_indexes_keeps_its_calls_apart() {
        let call = |arguments: &str| json!({"function": {"name": "a", "arguments": arguments}});
        let message = json!({"content": null, "tool_calls": [call(""), call("{\"n\":2}")]});
        let (reply, shown) = assemble(&[json!({"choices": [{"message": message, "finish_reason": null}]})], false);
        assert_eq!(calls(&reply.unwrap()), [("made_1", "a", "{}"), ("made_2", "a", "{\"n\":2}")]);
        assert_eq!(shown, ["tool:a", "tool:a"]);
    }

    #[test]
    fn an_error_in_a_stream_is_an_error() {
        let mut assembly = Assembly::default();
        let stated = assembly.take(&json!({"error": {"code": 502, "message": "upstream"}}), &mut |_| {}).unwrap_err();
        assert_eq!((stated.status, &*stated.message), (502, "upstream"));
        assert!(assembly.take(&finish("error"), &mut |_| {}).is_err());
        assert!(assembly.take(&json!({"error": null, "choices": []}), &mut |_| {}).is_ok());
    }

    #[test]
    fn a_call_without_a_name_is_no_reply() {
        let nameless = call(Some(0), json!("c1"), None, "{}");
        assert_eq!(assemble(&[nameless, finish("tool_calls")], true).0, Err(Broken::NamelessCall));
    }

    proptest! {
        #[test]
        fn however_arguments_are_split_they_come_out_whole(
            cuts in proptest::collection::vec(0usize..40, 0..6),
            order in any::<bool>(),
        ) {
            let texts = [r#"{"path":"ä/b","n":[1,2,{"x":"}"}]}"#, r#"{"pattern":"\"quoted\" 漢字"}"#];
            let mut pieces: Vec<Vec<String>> = Vec::new();
            for text in texts {
                let characters: Vec<char> = text.chars().collect();
                let mut at: Vec<usize> = cuts.iter().map(|cut| cut % characters.len()).collect();
                at.extend([0, characters.len()]);
                at.sort_unstable();
                pieces.push(at.windows(2).map(|pair| characters[pair[0]..pair[1]].iter().collect()).collect());
            }
            let mut chunks = vec![
                call(Some(0), json!("c0"), Some("a"), ""),
                call(Some(1), json!("c1"), Some("b"), ""),
            ];
            for (one, other) in pieces[0].iter().zip(&pieces[1]) {
                let mut pair = [(0, one), (1, other)];
                if order {
                    pair.reverse();
                }
                chunks.extend(pair.map(|(index, piece)| call(Some(index), Value::Null, None, piece)));
            }
            chunks.push(finish("tool_calls"));
            let reply = assemble(&chunks, true).0.unwrap();
            prop_assert_eq!(calls(&reply), [("c0", "a", texts[0]), ("c1", "b", texts[1])]);
        }
    }
}
