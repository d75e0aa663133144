//! The tool `background`: steps with background programs, such as `{"start": {...}}` and `{"read": 1, "wait": 1000}`.

use hermes_plugin::Error;
use hermes_plugin::process::{Program, programs};
use serde_json::{Value, json};

use crate::{command, refused, shown};

/// Carries out all steps and returns an answer for each. With `repeat`, a step is carried out that often, and its last answer
/// is returned with the number of errors.
pub(crate) fn steps(arguments: &Value) -> Value {
    arguments["steps"].as_array().into_iter().flatten().map(repeated).collect()
}

fn repeated(wanted: &Value) -> Value {
    let times = wanted["repeat"].as_u64().unwrap_or(1);
    let mut errors = 0;
    let mut last = Value::Null;
    for _ in 0..times {
        last = step(wanted).unwrap_or_else(|error| {
            errors += 1;
            refused(&error)
        });
    }
    if times == 1 { last } else { json!({ "last": last, "errors": errors }) }
}

fn step(wanted: &Value) -> Result<Value, Error> {
    let of = |step: &str| wanted[step].as_u64().map(|id| Program(u32::try_from(id).unwrap_or(u32::MAX)));
    let wait = wanted["wait"].as_u64().and_then(|wait| u32::try_from(wait).ok()).unwrap_or_default();
    let text = wanted["text"].as_str().unwrap_or_default();
    if wanted["start"].is_object() {
        return Ok(json!(command(&wanted["start"]).start()?.0));
    }
    if let Some(program) = of("read") {
        let chunk = program.read(wait)?;
        return Ok(json!({
            "output": chunk.output_text(),
            "errors": chunk.errors_text(),
            "lost": chunk.output_lost + chunk.errors_lost,
            "end": chunk.end.as_ref().map(shown),
        }));
    }
    if let Some(program) = of("write") {
        let bytes =
            wanted["bytes"].as_u64().map_or_else(|| text.as_bytes().to_vec(), |count| vec![b'x'; count as usize]);
        return program.write(bytes).map(|()| json!("written"));
    }
    if let Some(program) = of("close") {
        return program.close_input().map(|()| json!("closed"));
    }
    if let Some(program) = of("await") {
        return Ok(json!(program.wait(wait)?.as_ref().map(shown)));
    }
    if let Some(program) = of("stop") {
        return Ok(shown(&program.stop()?));
    }
    if wanted["crash"].is_string() {
        panic!("{}", wanted["crash"]);
    }
    let listed = programs()?;
    let shown = |program: &hermes_plugin::process::Background| json!({ "id": program.id, "program": program.program, "end": program.end.as_ref().map(shown) });
    Ok(listed.iter().map(shown).collect())
}
