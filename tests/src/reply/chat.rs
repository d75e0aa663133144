//! A reply in the form of chat completions.

use serde_json::{Value, json};

use super::{Completion, pieces};

impl Completion {
    fn finish(&self) -> &'static str {
        match self.calls.is_empty() {
            _ if self.cut => "length",
            true => "stop",
            false => "tool_calls",
        }
    }

    /// The member that has the text.
    fn said(&self) -> &'static str {
        if self.refused { "refusal" } else { "content" }
    }

    pub(super) fn chat_events(&self, request: &Value, usage: &Value) -> Vec<String> {
        let frames = self.frames(request, usage).into_iter().chain(["[DONE]".to_owned()]);
        frames.map(|frame| format!("data: {frame}\n\n")).collect()
    }

    /// The payloads of the events, without the closing one.
    fn frames(&self, request: &Value, usage: &Value) -> Vec<String> {
        let model = self.model(request);
        let frame = |choices: Value, usage: &Value| {
            let mut frame = json!({
                "id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": model,
                "choices": choices,
            });
            if !usage.is_null() {
                frame["usage"] = usage.clone();
            }
            frame.to_string()
        };
        let delta = |delta: Value, finish: Value| {
            frame(json!([{"index": 0, "delta": delta, "finish_reason": finish}]), &Value::Null)
        };

        let mut frames = vec![delta(json!({"role": "assistant", "content": ""}), Value::Null)];
        for reasoning in &self.reasoning {
            match reasoning {
                Value::String(text) => frames.extend(
                    pieces(text, self.step).map(|piece| delta(json!({"reasoning_content": piece}), Value::Null)),
                ),
                item => frames.push(delta(json!({"reasoning_details": [item]}), Value::Null)),
            }
        }
        let said = self.said();
        frames.extend(pieces(&self.text, self.step).map(|piece| delta(json!({said: piece}), Value::Null)));
        for (index, call) in self.calls.iter().enumerate() {
            let opening = json!({"tool_calls": [{
                "index": index, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": ""},
            }]});
            frames.push(delta(opening, Value::Null));
            frames.extend(pieces(&call.arguments, self.step).map(|piece| {
                delta(json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}), Value::Null)
            }));
        }
        frames.push(delta(json!({}), self.finish().into()));
        if request["stream_options"]["include_usage"] == true {
            frames.push(frame(json!([]), usage));
        }
        frames
    }

    pub(super) fn chat_whole(&self, request: &Value, usage: &Value) -> Value {
        let calls: Vec<Value> = self
            .calls
            .iter()
            .map(|call| {
                json!({"id": call.id, "type": "function",
                       "function": {"name": call.name, "arguments": call.arguments}})
            })
            .collect();
        let mut message = json!({"role": "assistant", "content": null});
        message[self.said()] = self.text.as_str().into();
        let (texts, items): (Vec<_>, Vec<_>) = self.reasoning.iter().cloned().partition(Value::is_string);
        if !texts.is_empty() {
            message["reasoning_content"] = texts.iter().filter_map(Value::as_str).collect::<String>().into();
        }
        if !items.is_empty() {
            message["reasoning_details"] = items.into();
        }
        if !calls.is_empty() {
            message["tool_calls"] = calls.into();
        }
        json!({
            "id": "chatcmpl-scripted", "object": "chat.completion", "created": 1_700_000_000, "model": self.model(request),
            "choices": [{"index": 0, "message": message, "finish_reason": self.finish()}],
            "usage": usage,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::reply::{Call, Kind, Reply};

    fn frames(reply: &Reply, request: &Value) -> Vec<Value> {
        let Kind::Completion(completion) = &reply.kind else { panic!("no completion") };
        let usage = json!({"total_tokens": 9});
        completion.frames(request, &usage).iter().map(|frame| serde_json::from_str(frame).unwrap()).collect()
    }

    #[test]
    fn the_pieces_of_a_stream_add_up_to_what_was_scripted() {
        let arguments = json!({"path": "a long/päth.txt"});
        let reply = Reply::calls([Call::new("c1", "read_file", &arguments)]).saying("Grüße, a moment").in_steps_of(3);
        let frames = frames(&reply, &json!({"model": "m"}));
        let joined =
            |pointer: &str| frames.iter().filter_map(|frame| frame.pointer(pointer)?.as_str()).collect::<String>();
        assert_eq!(joined("/choices/0/delta/content"), "Grüße, a moment");
        assert_eq!(joined("/choices/0/delta/tool_calls/0/function/arguments"), arguments.to_string());
        assert_eq!(joined("/choices/0/finish_reason"), "tool_calls");
        assert!(frames.iter().all(|frame| frame.get("usage").is_none()));
    }

    #[test]
    fn usage_comes_in_a_last_frame_without_choices_if_requested() {
        let request = json!({"model": "m", "stream_options": {"include_usage": true}});
        let frames = frames(&Reply::text("hi"), &request);
        let last = frames.last().unwrap();
        assert_eq!((&last["choices"], &last["usage"]["total_tokens"]), (&json!([]), &json!(9)));
    }

    #[test]
    fn a_refusal_and_reasoning_have_members_of_their_own() {
        let item = json!({"type": "reasoning.encrypted", "data": "x"});
        let reply = Reply::refusal("I cannot.").thinking([item.clone()]).in_steps_of(4);
        let frames = frames(&reply, &json!({"model": "m"}));
        let told =
            |pointer: &str| frames.iter().filter_map(|frame| frame.pointer(pointer)?.as_str()).collect::<String>();
        assert_eq!(
            (told("/choices/0/delta/refusal"), told("/choices/0/delta/content")),
            ("I cannot.".into(), "".into())
        );
        assert_eq!(frames[1]["choices"][0]["delta"]["reasoning_details"], json!([item]));
        let Kind::Completion(completion) = &reply.kind else { panic!("no completion") };
        let message = completion.chat_whole(&json!({"model": "m"}), &Value::Null)["choices"][0]["message"].clone();
        assert_eq!((&message["refusal"], &message["content"]), (&json!("I cannot."), &Value::Null));
        assert_eq!(message["reasoning_details"], json!([item]));
    }
}
