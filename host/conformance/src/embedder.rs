//! Checks of `embedder`: vectors of the described length, the same for the same text, in the order of the texts.

use hermes_conversation::Usage;
use hermes_plugin_host::services::{EmbeddingModel, EmbeddingRequest, Purpose, Vectors, vectors};

use crate::arguments::UNICODE;
use crate::bench::{CallFailure, Session, TestBench, ignore_errors};
use crate::error::ConformanceError;
use crate::report::{Checks, Fail, Verdict, passed};

const GROUP: &str = "embedder";
const TEXTS: [&str; 4] = [
    "The ferry Albatross leaves at 07:45.",
    "Lanterns need two spoons of oil a night.",
    "Wo ist die Fähre?",
    "The ferry Albatross leaves at 07:45 from the western pier.",
];
/// The part of a vector's length by which two vectors of one text may differ: batches are rounded differently.
const ROUNDING: f32 = 1e-3;

pub(crate) async fn check(bench: &TestBench<'_>, checks: &mut Checks) -> Result<(), ConformanceError> {
    let session = bench.open(&bench.setup())?;
    let fix = "return the name of the model and the length of its vectors, from 1 to 4096; read them from configuration and code";
    let described = describe(&session).await;
    let verdict = described.as_ref().map(|model| format!("{}, {} numbers", model.name, length(model)));
    checks.add(GROUP, "describes its model, the same each time", fix, verdict.map_err(Clone::clone));
    let Ok(model) = described else { return Ok(()) };
    let fix = "return one vector for each text, of the described length, with finite numbers";
    checks.add(GROUP, "returns what it describes", fix, as_described(&session, &model).await);
    let fix = "compute a vector from the text and the purpose alone: plugins compare new vectors with stored ones";
    checks.add(GROUP, "has the same vector for the same text", fix, same(&session, &model).await);
    let fix = "return the vectors in the order of the texts";
    checks.add(GROUP, "keeps the order of a batch", fix, ordered(&session, &model).await);
    let fix = "return a vector for an empty text too, such as that of a space";
    checks.add(GROUP, "has a vector for an empty text", fix, empty(&session, &model).await);
    let fix = "cut a text that is too long for the model, and take up to 256 texts at once";
    checks.add(GROUP, "has vectors for long, strange and many texts", fix, strange(&session, &model).await);
    Ok(())
}

pub(crate) async fn exercise(session: &Session<'_>) -> Result<(), CallFailure> {
    ignore_errors(session.call("describe", session.instance.describe()).await)?;
    ignore_errors(embed(session, &TEXTS, Purpose::Document).await)?;
    Ok(())
}

async fn describe(session: &Session<'_>) -> Result<EmbeddingModel, Fail> {
    let first = session.call("describe", session.instance.describe()).await?;
    let second = session.call("describe", session.instance.describe()).await?;
    if first != second {
        return Err(format!("first {first:?}, then {second:?}").into());
    }
    if first.name.trim().is_empty() {
        return Err("the model has no name".into());
    }
    if !(1..=vectors::MOST_DIMENSIONS).contains(&length(&first)) {
        return Err(format!("the vectors have {} numbers", length(&first)).into());
    }
    Ok(first)
}

fn length(model: &EmbeddingModel) -> u32 {
    model.dimensions.unwrap_or_default()
}

async fn embed(session: &Session<'_>, texts: &[&str], purpose: Purpose) -> Result<Vec<Vec<f32>>, CallFailure> {
    let request = EmbeddingRequest { texts: texts.iter().map(|text| (*text).to_owned()).collect(), purpose };
    session.call("embed", session.instance.embed(request)).await
}

/// Vectors that keep the contract.
async fn sound(
    session: &Session<'_>,
    model: &EmbeddingModel,
    texts: &[&str],
    purpose: Purpose,
) -> Result<Vec<Vec<f32>>, Fail> {
    let vectors = embed(session, texts, purpose).await?;
    let found = Vectors { vectors, model: model.name.clone(), usage: Usage::default() };
    found.check(texts.len(), model.dimensions, "it").map_err(|fault| Fail::from(fault.message))?;
    Ok(found.vectors)
}

async fn as_described(session: &Session<'_>, model: &EmbeddingModel) -> Verdict {
    for purpose in [Purpose::Document, Purpose::Query] {
        sound(session, model, &TEXTS, purpose).await?;
        sound(session, model, &TEXTS[..1], purpose).await?;
    }
    // Texts of every length.
    let beginnings: Vec<&str> = (1..=TEXTS[0].len()).map(|end| &TEXTS[0][..end]).collect();
    sound(session, model, &beginnings, Purpose::Document).await?;
    passed()
}

async fn same(session: &Session<'_>, model: &EmbeddingModel) -> Verdict {
    let first = sound(session, model, &TEXTS, Purpose::Document).await?;
    let second = sound(session, model, &TEXTS, Purpose::Document).await?;
    match first.iter().zip(&second).position(|(first, second)| !alike(first, second)) {
        Some(at) => Err(format!("`{}` has another vector the second time", TEXTS[at]).into()),
        None => passed(),
    }
}

async fn ordered(session: &Session<'_>, model: &EmbeddingModel) -> Verdict {
    let batch = sound(session, model, &TEXTS, Purpose::Document).await?;
    for (text, vector) in TEXTS.iter().zip(&batch) {
        let alone = sound(session, model, &[*text], Purpose::Document).await?;
        if !alone.first().is_some_and(|alone| alike(alone, vector)) {
            return Err(format!("`{text}` has another vector alone than in a batch").into());
        }
    }
    passed()
}

async fn empty(session: &Session<'_>, model: &EmbeddingModel) -> Verdict {
    sound(session, model, &[""], Purpose::Document).await?;
    sound(session, model, &["", TEXTS[0]], Purpose::Query).await?;
    passed()
}

async fn strange(session: &Session<'_>, model: &EmbeddingModel) -> Verdict {
    let long = "ferry ".repeat(vectors::MOST_TEXT_BYTES / 6);
    sound(session, model, &[" ", UNICODE, "\u{0}", "日本語", &long], Purpose::Document).await?;
    let many = vec!["a"; vectors::MOST_TEXTS];
    sound(session, model, &many, Purpose::Document).await?;
    Ok(format!("{} texts at once", vectors::MOST_TEXTS))
}

fn alike(one: &[f32], other: &[f32]) -> bool {
    let norm = |numbers: &mut dyn Iterator<Item = f32>| numbers.map(|number| number * number).sum::<f32>().sqrt();
    let length = norm(&mut one.iter().copied());
    norm(&mut one.iter().zip(other).map(|(one, other)| one - other)) <= length * ROUNDING
}
