//! Classes of failures, waits, and the silence of models that think.

use std::time::Duration;

use serde_json::{Value, json};

use super::{differs, run, run_without};
use crate::ModelError;
use crate::auth::cooldown;
use crate::failure::{Stated, class, limit, room, silence, wait};

/// The recorded reasons in the classes of this crate.
fn class(reason: &str) -> &str {
    match reason {
        "timeout" | "server_error" | "overloaded" | "unknown" => "server",
        "rate_limit" | "upstream_rate_limit" => "rate_limited",
        "context_overflow" | "payload_too_large" | "long_context_tier" => "too_long",
        "model_not_found" => "not_found",
        "content_policy_blocked" | "provider_policy_blocked" => "refused",
        "format_error" => "bad_request",
        other => other,
    }
}

#[test]
fn error_classification() {
    const CODE: &str = "a word for programs counts whatever the status is (the recording calls this a defect)";
    const UNCHANGED: &str = "a request is not changed behind the user's back: the message says what is wrong with it";
    const VAGUE: &str = "a refusal that says nothing about length compacts no conversation";
    let ours = |class: &str| json!({"class": class, "again": false});
    run(
        "error_classification",
        &[
            differs("400/context-code-only", CODE, ours("too_long")),
            differs("400/image-size", UNCHANGED, ours("bad_request")),
            differs("400/encrypted-nested-json", UNCHANGED, ours("bad_request")),
            differs("400/1m-beta", UNCHANGED, ours("bad_request")),
            differs("400/generic-large-fraction", VAGUE, ours("bad_request")),
        ],
        |input| {
            // Without a status, the error is an event in a stream where HTTP said 200.
            let status = input["status"].as_u64().map_or(200, |status| u16::try_from(status).unwrap());
            let stated = match &input["body"] {
                Value::Null => Stated::from_value(status, &json!({"error": input["message"]})),
                body => Stated::from_value(status, body),
            };
            let again = stated.passes();
            let class = match stated.into_error("h", "u", "m", "k") {
                ModelError::Auth { .. } => "auth",
                ModelError::Billing { .. } => "billing",
                ModelError::NotFound { .. } => "not_found",
                ModelError::RateLimited { .. } => "rate_limited",
                ModelError::TooLong { .. } => "too_long",
                ModelError::Refused { .. } => "refused",
                ModelError::BadRequest { .. } => "bad_request",
                ModelError::Server { .. } => "server",
                other => panic!("{other}"),
            };
            json!({"class": class, "again": again})
        },
        |expected| {
            let again = expected["retryable"] == true && expected["compress"] == false;
            json!({"class": class(expected["reason"].as_str().unwrap()), "again": again})
        },
    );
}

#[test]
fn retry_delays() {
    const MINUTES: &str = "a wait in minutes is read too";
    const NO_TIERS: &str = "a window is not guessed in steps: the conversation is compacted";
    const NO_MOMENTS: &str = "the rest of a key is a length of time, and no moment is stored";
    run_without(
        "retry_delays",
        &[("tier/", NO_TIERS), ("timestamp/", NO_MOMENTS)],
        &[differs("delay/try-again-in", MINUTES, json!(120.0))],
        |input| match input["op"].as_str().unwrap() {
            "backoff" => {
                let failures = u32::try_from(input["attempt"].as_u64().unwrap()).unwrap();
                let [base, longest] =
                    ["base", "max"].map(|name| Duration::from_secs_f64(input[name].as_f64().unwrap()));
                let at = |chance| wait::backoff(failures, base, longest, chance).as_secs_f64();
                json!({"min": at(0.0), "max": at(1.0)})
            }
            "cooldown" => {
                let status = u16::try_from(input["status"].as_u64().unwrap()).unwrap();
                json!(cooldown(status).as_secs())
            }
            "delay" => json!(wait::named(input["text"].as_str().unwrap()).map(|wait| wait.as_secs_f64())),
            other => panic!("{other}"),
        },
        Value::clone,
    );
}

#[test]
fn error_limits() {
    run(
        "error_limits",
        &[],
        |input| {
            let text = input["text"].as_str().unwrap();
            let window = limit::stated(text);
            json!({
                "context": window,
                "output": room::for_output(text),
                "output_cap": class::is_output_cap(text),
                "lowered": window.filter(|window| *window < 200_000),
            })
        },
        Value::clone,
    );
}

#[test]
fn stale_floor() {
    run(
        "stale_floor",
        &[],
        |input| {
            let floor = silence::thinking_silence(input["model"].as_str().unwrap());
            json!({"floor": floor.map(|seconds| json!(Duration::from_secs(seconds).as_secs_f64()))})
        },
        Value::clone,
    );
}
