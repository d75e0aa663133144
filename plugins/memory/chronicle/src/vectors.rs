//! The meaning of messages, where the host has a model of embeddings. Without one, nothing happens here.

use hermes_guest_backend::cut;
use hermes_plugin::sql::{self, Statement};
use hermes_plugin::{Error, embeddings, log, params};

/// Messages of one request, and bytes of each.
const BATCH: i64 = 64;
const MESSAGE: usize = 4_000;
/// The vectors that are compared, the newest first, and their bytes together.
const COMPARED: usize = 20_000;
const BYTES: usize = 12 << 20;
/// The messages that are found, and the least cosine of one.
const FOUND: usize = 50;
const LEAST: f32 = 0.25;
/// Letters that a question needs: a greeting has no meaning to look for.
const ASKED: usize = 12;

/// Embeds some messages. Returns whether there are more.
pub(crate) fn step() -> Result<bool, Error> {
    let model = match embeddings::resolve() {
        Ok(model) => model,
        Err(error) => {
            log::debug(format!("messages are found without embeddings: {error}"));
            return Ok(false);
        }
    };
    let waiting: Vec<(i64, String)> = sql::query_as(
        "SELECT m.id, substr(m.text, 1, ?2) FROM message m LEFT JOIN vector v ON v.message = m.id AND v.model = ?3 \
         WHERE v.message IS NULL ORDER BY m.id DESC LIMIT ?1",
        params![BATCH, i64::try_from(MESSAGE).unwrap_or(i64::MAX), model.name.as_str()],
    )?;
    if waiting.is_empty() {
        return Ok(false);
    }
    let reply = embeddings::documents(waiting.iter().map(|(_, text)| cut(text, MESSAGE)))?;
    let statements: Vec<Statement> = waiting
        .iter()
        .zip(&reply.vectors)
        .map(|((id, _), vector)| {
            Statement::new(
                "INSERT OR REPLACE INTO vector (message, model, vector) VALUES (?1, ?2, ?3)",
                params![*id, model.name.as_str(), packed(vector)],
            )
        })
        .collect();
    sql::execute(&statements)?;
    Ok(waiting.len() as i64 == BATCH)
}

/// The messages that are nearest to a question; none if there is no model or it fails: words find something anyway.
pub(crate) fn nearest(question: &str, present: &str) -> Vec<i64> {
    if question.chars().filter(|letter| letter.is_alphanumeric()).count() < ASKED {
        return Vec::new();
    }
    let Ok(model) = embeddings::resolve() else { return Vec::new() };
    compare(question, present, &model.name).unwrap_or_else(|error| {
        log::debug(format!("messages were found without embeddings: {error}"));
        Vec::new()
    })
}

fn compare(question: &str, present: &str, model: &str) -> Result<Vec<i64>, Error> {
    let any = sql::query_one::<(i64,)>("SELECT message FROM vector WHERE model = ?1 LIMIT 1", params![model])?;
    if any.is_none() {
        return Ok(Vec::new());
    }
    let asked = packed(&embeddings::query(cut(question, MESSAGE))?);
    let rows = (BYTES / asked.len().max(1)).min(COMPARED);
    let vectors: Vec<(i64, Vec<u8>)> = sql::query_as(
        "SELECT v.message, v.vector FROM vector v JOIN message m ON m.id = v.message WHERE v.model = ?1 \
         AND m.conversation NOT IN (SELECT value FROM json_each(?2)) ORDER BY v.message DESC LIMIT ?3",
        params![model, present, i64::try_from(rows).unwrap_or(i64::MAX)],
    )?;
    let mut near: Vec<(f32, i64)> = vectors
        .iter()
        .filter_map(|(id, vector)| Some((cosine(&asked, vector)?, *id)))
        .filter(|(cosine, _)| *cosine >= LEAST)
        .collect();
    near.sort_by(|one, other| other.0.total_cmp(&one.0).then(other.1.cmp(&one.1)));
    Ok(near.into_iter().take(FOUND).map(|(_, id)| id).collect())
}

/// A vector with a byte for each number: only its direction counts.
fn packed(vector: &[f32]) -> Vec<u8> {
    let largest = vector.iter().fold(f32::MIN_POSITIVE, |largest, number| largest.max(number.abs()));
    vector.iter().map(|number| (number / largest * 127.0).round() as i8 as u8).collect()
}

/// None if the lengths differ, as those of two models do.
fn cosine(one: &[u8], other: &[u8]) -> Option<f32> {
    if one.len() != other.len() {
        return None;
    }
    let signed = |byte: &u8| i64::from(*byte as i8);
    let product = |one: &[u8], other: &[u8]| -> i64 { one.iter().zip(other).map(|(a, b)| signed(a) * signed(b)).sum() };
    let lengths = ((product(one, one) * product(other, other)) as f64).sqrt();
    (lengths > 0.0).then(|| (product(one, other) as f64 / lengths) as f32)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn packed_vectors_keep_their_direction() {
        let cosine = |one: &[f32], other: &[f32]| cosine(&packed(one), &packed(other));
        assert!(cosine(&[0.1, -0.2, 0.3], &[10.0, -20.0, 30.0]).unwrap() > 0.999);
        assert!(cosine(&[1.0, 0.0], &[0.0, 1.0]).unwrap().abs() < 0.001);
        assert!(cosine(&[1.0, 0.5], &[-1.0, -0.5]).unwrap() < -0.999);
        assert_eq!(cosine(&[1.0], &[1.0, 0.0]), None);
        assert_eq!(cosine(&[0.0], &[0.0]), None);
    }
}
