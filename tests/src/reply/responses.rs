//! A reply in the form of the Responses API: a list of items, each of which is added, grows and is done.

use serde_json::{Value, json};

use super::{Completion, pieces};

/// How the parts of one type arrive.
struct Growth {
    /// Prefix of the events that begin and end a part.
    part: &'static str,
    /// Prefix of the events with its text.
    text: &'static str,
    /// The member that numbers the part within its item.
    index: &'static str,
    /// The member that has the text.
    member: &'static str,
}

const CONTENT: &str = "response.content_part";

fn growth(kind: &str) -> Growth {
    match kind {
        "summary_text" => Growth {
            part: "response.reasoning_summary_part",
            text: "response.reasoning_summary_text",
            index: "summary_index",
            member: "text",
        },
        "reasoning_text" => {
            Growth { part: CONTENT, text: "response.reasoning_text", index: "content_index", member: "text" }
        }
        "refusal" => Growth { part: CONTENT, text: "response.refusal", index: "content_index", member: "refusal" },
        _ => Growth { part: CONTENT, text: "response.output_text", index: "content_index", member: "text" },
    }
}

/// The events so far.
#[derive(Default)]
struct Events(Vec<String>);

impl Events {
    /// Adds an event with these members.
    fn push(&mut self, name: &str, members: Value) {
        let mut data = json!({"type": name, "sequence_number": self.0.len()});
        if let (Some(data), Value::Object(members)) = (data.as_object_mut(), members) {
            data.extend(members);
        }
        self.0.push(format!("event: {name}\ndata: {data}\n\n"));
    }

    fn item(&mut self, at: usize, item: &Value, step: usize) {
        self.push("response.output_item.added", json!({"output_index": at, "item": begun(item)}));
        for list in ["summary", "content"] {
            for (number, part) in item[list].as_array().into_iter().flatten().enumerate() {
                self.part(at, &item["id"], number, part, step);
            }
        }
        if let Some(arguments) = item["arguments"].as_str() {
            let place = json!({"output_index": at, "item_id": item["id"]});
            self.text("response.function_call_arguments", &place, "arguments", arguments, step);
        }
        self.push("response.output_item.done", json!({"output_index": at, "item": item}));
    }

    fn part(&mut self, at: usize, id: &Value, number: usize, part: &Value, step: usize) {
        let growth = growth(part["type"].as_str().unwrap_or_default());
        let place = json!({"output_index": at, "item_id": id, growth.index: number});
        let mut empty = part.clone();
        empty[growth.member] = "".into();
        self.push(&format!("{}.added", growth.part), with(&place, "part", &empty));
        self.text(growth.text, &place, growth.member, part[growth.member].as_str().unwrap_or_default(), step);
        self.push(&format!("{}.done", growth.part), with(&place, "part", part));
    }

    /// A text in pieces, and once more as a whole.
    fn text(&mut self, name: &str, place: &Value, member: &str, text: &str, step: usize) {
        for piece in pieces(text, step) {
            self.push(&format!("{name}.delta"), with(place, "delta", &json!(piece)));
        }
        self.push(&format!("{name}.done"), with(place, member, &json!(text)));
    }
}

fn with(place: &Value, key: &str, value: &Value) -> Value {
    let mut members = place.clone();
    members[key] = value.clone();
    members
}

/// An item as it is when it begins. Its sealed content is then only a part of the later one.
fn begun(item: &Value) -> Value {
    let mut begun = item.clone();
    for (key, empty) in [("summary", json!([])), ("content", json!([])), ("arguments", json!(""))] {
        if !item[key].is_null() {
            begun[key] = empty;
        }
    }
    if let Some(sealed) = item["encrypted_content"].as_str() {
        begun["encrypted_content"] = pieces(sealed, sealed.len().div_ceil(2).max(1)).next().into();
    }
    begun["status"] = "in_progress".into();
    begun
}

impl Completion {
    /// The items as they are when they are done.
    fn items(&self, request: &Value) -> Vec<Value> {
        let part = if self.refused {
            json!({"type": "refusal", "refusal": self.text})
        } else {
            json!({"type": "output_text", "text": self.text, "annotations": []})
        };
        let said = (!self.text.is_empty()).then(|| {
            json!({"type": "message", "id": "msg_scripted", "role": "assistant", "status": "completed", "content": [part]})
        });
        let searches =
            request["tools"].as_array().is_some_and(|tools| tools.iter().any(|tool| tool["type"] == "tool_search"));
        let calls = self.calls.iter().map(|call| {
            if searches && call.name == "tool_search" {
                let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
                return json!({"type": "tool_search_call", "id": format!("tsc_{}", call.id), "call_id": call.id,
                              "execution": "client", "arguments": arguments, "status": "completed"});
            }
            json!({"type": "function_call", "id": format!("fc_{}", call.id), "call_id": call.id, "name": call.name,
                   "arguments": call.arguments, "status": "completed"})
        });
        self.reasoning.iter().cloned().chain(said).chain(calls).collect()
    }

    pub(super) fn responses_events(&self, request: &Value, usage: &Value) -> Vec<String> {
        let mut events = Events::default();
        let begun = response(request, "in_progress", &[], &Value::Null);
        events.push("response.created", json!({"response": begun}));
        events.push("response.in_progress", json!({"response": begun}));
        for (at, item) in self.items(request).iter().enumerate() {
            events.item(at, item, self.step);
        }
        let name = if self.cut { "response.incomplete" } else { "response.completed" };
        events.push(name, json!({"response": self.responses_whole(request, usage)}));
        events.0
    }

    pub(super) fn responses_whole(&self, request: &Value, usage: &Value) -> Value {
        if self.cut {
            let mut cut = response(request, "incomplete", &self.items(request), usage);
            cut["incomplete_details"] = json!({"reason": "max_output_tokens"});
            return cut;
        }
        response(request, "completed", &self.items(request), usage)
    }
}

fn response(request: &Value, status: &str, output: &[Value], usage: &Value) -> Value {
    json!({
        "id": "resp_scripted", "object": "response", "created_at": 1_700_000_000, "status": status,
        "error": null, "incomplete_details": null, "model": request["model"], "store": request["store"],
        "output": output, "usage": usage,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::reply::{Call, Kind, Reply};

    /// The data of the events, whose names and numbers are checked.
    fn data(events: &[String]) -> Vec<Value> {
        let read = |(number, event): (usize, &String)| {
            let (name, data) = event.trim_end().split_once("\ndata: ").unwrap();
            let data: Value = serde_json::from_str(data).unwrap();
            assert_eq!(name, format!("event: {}", data["type"].as_str().unwrap()));
            assert_eq!(data["sequence_number"], number);
            data
        };
        events.iter().enumerate().map(read).collect()
    }

    fn thought() -> Value {
        json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "I look."}],
               "encrypted_content": "sealed-as-a-whole"})
    }

    fn completion(reply: &Reply) -> &Completion {
        let Kind::Completion(completion) = &reply.kind else { panic!("no completion") };
        completion
    }

    #[test]
    fn the_events_of_a_stream_add_up_to_the_whole_reply() {
        let arguments = json!({"path": "a long/päth.txt"});
        let reply = Reply::calls([Call::new("c1", "read_file", &arguments)]).saying("Grüße, a moment").in_steps_of(3);
        let reply = reply.thinking([thought()]);
        let usage = json!({"input_tokens": 7, "output_tokens": 30});
        let data = data(&completion(&reply).responses_events(&json!({"model": "m"}), &usage));
        let whole = completion(&reply).responses_whole(&json!({"model": "m"}), &usage);

        let joined = |kind: &str| {
            let deltas = data.iter().filter(|data| data["type"] == format!("response.{kind}.delta"));
            deltas.map(|data| data["delta"].as_str().unwrap()).collect::<String>()
        };
        assert_eq!(joined("reasoning_summary_text"), "I look.");
        assert_eq!(joined("output_text"), "Grüße, a moment");
        assert_eq!(joined("function_call_arguments"), arguments.to_string());
        let done: Vec<&Value> = data.iter().filter(|data| data["type"] == "response.output_item.done").collect();
        assert_eq!(done.iter().map(|data| &data["item"]).collect::<Vec<_>>(), [0, 1, 2].map(|at| &whole["output"][at]));
        assert_eq!((&whole["output"][0], &whole["output"][2]["call_id"]), (&thought(), &json!("c1")));
        let last = data.last().unwrap();
        assert_eq!((&last["type"], &last["response"]), (&json!("response.completed"), &whole));
        assert_eq!((&whole["status"], &whole["usage"]), (&json!("completed"), &usage));
    }

    #[test]
    fn an_item_begins_empty_and_with_a_part_of_its_sealed_content() {
        let reply = Reply::refusal("I cannot.").thinking([thought()]);
        let data = data(&completion(&reply).responses_events(&json!({"model": "m"}), &Value::Null));
        let added: Vec<&Value> = data.iter().filter(|data| data["type"] == "response.output_item.added").collect();
        assert_eq!((&added[0]["item"]["summary"], &added[1]["item"]["content"]), (&json!([]), &json!([])));
        assert_eq!(added[0]["item"]["encrypted_content"], "sealed-as");
        let said = data.iter().find(|data| data["type"] == "response.refusal.done").unwrap();
        assert_eq!((&said["refusal"], &said["content_index"]), (&json!("I cannot."), &json!(0)));
    }
}
