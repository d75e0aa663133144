//! A reply in the form of Anthropic's messages.

use serde_json::{Value, json};

use super::{Call, Completion, pieces};

impl Completion {
    fn stop_reason(&self) -> &'static str {
        match (self.refused, self.calls.is_empty()) {
            _ if self.cut => "max_tokens",
            (true, _) => "refusal",
            (false, true) => "end_turn",
            (false, false) => "tool_use",
        }
    }

    pub(super) fn anthropic_events(&self, request: &Value, usage: &Value) -> Vec<String> {
        let mut begun = usage.clone();
        begun["output_tokens"] = 1.into();
        let mut events = vec![
            event(json!({"type": "message_start", "message": {
                "id": "msg_scripted", "type": "message", "role": "assistant", "model": self.model(request), "content": [],
                "stop_reason": null, "stop_sequence": null, "usage": begun,
            }})),
            event(json!({"type": "ping"})),
        ];
        let mut index = 0;
        let mut block = |begin: Value, deltas: Vec<Value>| {
            events.push(event(json!({"type": "content_block_start", "index": index, "content_block": begin})));
            let deltas = deltas.into_iter();
            events.extend(
                deltas.map(|delta| event(json!({"type": "content_block_delta", "index": index, "delta": delta}))),
            );
            events.push(event(json!({"type": "content_block_stop", "index": index})));
            index += 1;
        };
        for reasoning in &self.reasoning {
            let Some(thinking) = reasoning["thinking"].as_str() else {
                // Redacted reasoning arrives whole.
                block(reasoning.clone(), Vec::new());
                continue;
            };
            let mut deltas: Vec<Value> =
                pieces(thinking, self.step).map(|piece| json!({"type": "thinking_delta", "thinking": piece})).collect();
            deltas.push(json!({"type": "signature_delta", "signature": reasoning["signature"]}));
            block(json!({"type": "thinking", "thinking": "", "signature": ""}), deltas);
        }
        if !self.text.is_empty() {
            let deltas = pieces(&self.text, self.step).map(|piece| json!({"type": "text_delta", "text": piece}));
            block(json!({"type": "text", "text": ""}), deltas.collect());
        }
        for call in &self.calls {
            let deltas = pieces(&call.arguments, self.step)
                .map(|piece| json!({"type": "input_json_delta", "partial_json": piece}));
            block(use_of(call, &json!({})), deltas.collect());
        }
        events.push(event(json!({
            "type": "message_delta", "delta": {"stop_reason": self.stop_reason(), "stop_sequence": null},
            "usage": {"output_tokens": usage["output_tokens"]},
        })));
        events.push(event(json!({"type": "message_stop"})));
        events
    }

    pub(super) fn anthropic_whole(&self, request: &Value, usage: &Value) -> Value {
        let text = (!self.text.is_empty()).then(|| json!({"type": "text", "text": self.text}));
        let calls =
            self.calls.iter().map(|call| use_of(call, &serde_json::from_str(&call.arguments).unwrap_or_default()));
        json!({
            "id": "msg_scripted", "type": "message", "role": "assistant", "model": self.model(request),
            "content": self.reasoning.iter().cloned().chain(text).chain(calls).collect::<Vec<_>>(),
            "stop_reason": self.stop_reason(), "stop_sequence": null, "usage": usage,
        })
    }
}

fn use_of(call: &Call, input: &Value) -> Value {
    json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input})
}

fn event(data: Value) -> String {
    let name = data["type"].as_str().unwrap_or_default();
    format!("event: {name}\ndata: {data}\n\n")
}

/// The error type for a status.
pub(super) fn error_type(status: u16) -> &'static str {
    match status {
        400 => "invalid_request_error",
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        _ => "api_error",
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::reply::{Kind, Reply};

    #[test]
    fn the_events_of_a_stream_add_up_to_the_whole_reply() {
        let input = json!({"path": "a long/päth.txt"});
        let thinking = json!({"type": "thinking", "thinking": "I look.", "signature": "c2ln"});
        let redacted = json!({"type": "redacted_thinking", "data": "xyz"});
        let reply = Reply::calls([Call::new("c1", "read_file", &input)]).saying("Grüße, a moment").in_steps_of(3);
        let reply = reply.thinking([thinking.clone(), redacted.clone()]);
        let Kind::Completion(completion) = &reply.kind else { panic!("no completion") };
        let usage = json!({"input_tokens": 7, "output_tokens": 30});
        let events = completion.anthropic_events(&json!({"model": "m"}), &usage);
        let data: Vec<Value> = events
            .iter()
            .map(|event| {
                let (name, data) = event.trim_end().split_once("\ndata: ").unwrap();
                let data: Value = serde_json::from_str(data).unwrap();
                assert_eq!(name, format!("event: {}", data["type"].as_str().unwrap()));
                data
            })
            .collect();
        let joined = |pointer: &str| data.iter().filter_map(|data| data.pointer(pointer)?.as_str()).collect::<String>();
        let whole = completion.anthropic_whole(&json!({"model": "m"}), &usage);
        assert_eq!((&whole["content"][0], &whole["content"][1]), (&thinking, &redacted));
        assert_eq!((joined("/delta/thinking"), joined("/delta/signature")), ("I look.".to_owned(), "c2ln".to_owned()));
        assert!(data.iter().any(|data| data["content_block"] == redacted));
        assert_eq!(joined("/delta/text"), whole["content"][2]["text"].as_str().unwrap());
        assert_eq!(
            serde_json::from_str::<Value>(&joined("/delta/partial_json")).unwrap(),
            whole["content"][3]["input"]
        );
        assert_eq!((joined("/delta/stop_reason").as_str(), &whole["stop_reason"]), ("tool_use", &json!("tool_use")));
        assert_eq!(data[0]["message"]["usage"]["input_tokens"], 7);
        assert_eq!(data.last().unwrap()["type"], "message_stop");
        assert_eq!(data[data.len() - 2]["usage"]["output_tokens"], 30);
    }
}
