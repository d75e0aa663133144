//! Replies of Anthropic's messages, token counts, costs.

use hermes_conversation::{Part, Usage};
use serde_json::{Value, json};

use super::{differs, run};
use crate::{
    Finish, Prices, Ttl,
    assembly::{Assemble, messages::Assembly},
    cost, usage,
};

#[test]
fn anthropic_reply() {
    run(
        "anthropic_reply",
        &[differs(
            "stop/tool_use",
            "a reply without calls waits for no results",
            json!({"content": "hello", "finish_reason": "stop", "reasoning": null,
                    "tool_calls": null, "provider_data": null}),
        )],
        |input| {
            let mut assembly = Assembly::new(false);
            assembly.take_whole(input, &mut |_| {}).unwrap();
            let reply = Box::new(assembly).finish("m", &mut || "made".to_owned()).unwrap();
            let calls: Vec<Value> = reply
                .tool_calls
                .iter()
                .map(|call| {
                    let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
                    json!({"id": call.id, "name": call.name, "arguments": arguments})
                })
                .collect();
            let finish = match reply.finish {
                Finish::Stop => "stop",
                Finish::ToolCalls => "tool_calls",
                Finish::Length => "length",
                Finish::Refused => "content_filter",
            };
            json!({
                "content": Some(reply.text).filter(|text| !text.is_empty()),
                "finish_reason": finish,
                "reasoning": reply.reasoning,
                "tool_calls": Some(calls).filter(|calls| !calls.is_empty()),
                "provider_data": provider_data(&reply.parts),
            })
        },
        // Whether an empty reply is accepted is the loop's to say.
        |expected| {
            let calls = expected["tool_calls"].as_array().map(|calls| {
                let parsed = calls.iter().map(|call| {
                    let arguments: Value = serde_json::from_str(call["arguments"].as_str().unwrap()).unwrap();
                    json!({"id": call["id"], "name": call["name"], "arguments": arguments})
                });
                parsed.collect::<Vec<_>>()
            });
            json!({
                "content": expected["content"],
                "finish_reason": expected["finish_reason"],
                "reasoning": expected["reasoning"],
                "tool_calls": calls,
                "provider_data": expected["provider_data"],
            })
        },
    );
}

/// What is kept for the provider, in the recorded form: the blocks of reasoning, and all blocks where calls stand between them.
fn provider_data(parts: &[Part]) -> Value {
    let payload = |part: &Part| part.payload().map(|payload| serde_json::from_str::<Value>(&payload.data).unwrap());
    let reasoning: Vec<Value> = parts.iter().filter_map(payload).collect();
    if reasoning.is_empty() {
        return Value::Null;
    }
    let blocks = parts.iter().filter_map(|part| match part {
        Part::ToolCall(call) => {
            let input: Value = serde_json::from_str(&call.arguments).unwrap();
            Some(json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input}))
        }
        Part::Text { text } => Some(json!({"type": "text", "text": text})),
        part => payload(part),
    });
    let mut data = json!({ "reasoning_details": reasoning });
    if parts.iter().any(|part| matches!(part, Part::ToolCall(_))) {
        data["anthropic_content_blocks"] = blocks.collect();
    }
    data
}

#[test]
fn usage_normalisation() {
    run(
        "usage",
        &[],
        |input| {
            let counted = match input["api_mode"].as_str() {
                Some("anthropic_messages") => usage::read_messages(&input["usage"]),
                _ => usage::read(&input["usage"]),
            };
            let Usage { input, output, cache_read, cache_write, reasoning } = counted.unwrap_or_default();
            json!({
                "input": input - cache_read - cache_write,
                "output": output,
                "cache_read": cache_read,
                "cache_write": cache_write,
                "reasoning": reasoning,
                "prompt": input,
                "total": input + output,
            })
        },
        Value::clone,
    );
}

#[test]
fn costs() {
    run(
        "cost",
        &[differs(
            "included",
            "a subscription is no list price: what it costs is not known",
            json!({"amount_usd": null, "prices": null}),
        )],
        |input| {
            let price = Prices::built_in().of(input["provider"].as_str().unwrap(), input["model"].as_str().unwrap());
            let count = |key: &str| input["usage"][key].as_u64().unwrap_or(0) as u32;
            let (cache_read, cache_write) = (count("cache_read_tokens"), count("cache_write_tokens"));
            let input = count("input_tokens") + cache_read + cache_write;
            let usage = Usage { input, output: count("output_tokens"), cache_read, cache_write, reasoning: 0 };
            let amount = price.map(|price| (cost(&usage, &price, Ttl::FiveMinutes) * 1e9).round() / 1e9);
            let prices = price.map(|price| json!([price.input, price.output, price.cache_read, price.cache_write]));
            json!({"amount_usd": amount, "prices": prices})
        },
        |expected| {
            let prices = &expected["prices"];
            let of = |key: &str| prices[format!("{key}_cost_per_million")].clone();
            let listed = json!([of("input"), of("output"), of("cache_read"), of("cache_write")]);
            json!({"amount_usd": expected["amount_usd"], "prices": if prices.is_null() { Value::Null } else { listed }})
        },
    );
}
