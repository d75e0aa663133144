//! Which memories fit a query: by words, and where the host has a model of embeddings, also by meaning.

use hermes_guest_backend::cut;
use hermes_plugin::{Error, embeddings, log, params, sql};

use super::words;
use crate::memory::{Memory, QUERY};

/// The candidates of each way.
const CANDIDATES: u32 = 60;
/// The vectors that are compared, newest first, and their most bytes together.
const VECTORS: usize = 5_000;
const BYTES: usize = 12 * 1024 * 1024;
/// The least cosine of a candidate.
const LEAST: f32 = 0.1;
/// Reciprocal rank fusion.
const RANK: f64 = 60.0;

type Row = (String, String, Option<String>);

pub(super) fn search(user: &str, query: &str, most: u32) -> Result<Vec<Memory>, Error> {
    let query = cut(query, QUERY);
    let ways = [by_words(user, query)?, by_meaning(user, query)];
    let mut found: Vec<Memory> = Vec::new();
    for way in ways {
        for (place, (id, text, session)) in way.into_iter().enumerate() {
            let score = 1.0 / (RANK + place as f64 + 1.0);
            match found.iter_mut().find(|memory| memory.id == id) {
                Some(memory) => memory.score += score,
                None => found.push(Memory { id, text, score, session }),
            }
        }
    }
    // A stable sort: equal scores keep the order of the words.
    found.sort_by(|one, other| other.score.total_cmp(&one.score));
    found.truncate(most as usize);
    let best = found.first().map_or(1.0, |memory| memory.score);
    found.iter_mut().for_each(|memory| memory.score /= best);
    Ok(found)
}

fn by_words(user: &str, query: &str) -> Result<Vec<Row>, Error> {
    let Some(query) = words::query(query) else { return Ok(Vec::new()) };
    let found = "SELECT m.id, m.text, m.session FROM memory_words w JOIN memory m ON m.number = w.rowid
        WHERE memory_words MATCH ?1 AND m.user = ?2 ORDER BY bm25(memory_words), m.number DESC LIMIT ?3";
    sql::query_as(found, params![query, user, CANDIDATES])
}

/// Nothing if there is no model or it fails: the words have found something anyway.
fn by_meaning(user: &str, query: &str) -> Vec<Row> {
    if query.trim().is_empty() || embeddings::resolve().is_err() {
        return Vec::new();
    }
    nearest(user, query).unwrap_or_else(|error| {
        log::debug(format!("memories were found by words alone: {error}"));
        Vec::new()
    })
}

fn nearest(user: &str, query: &str) -> Result<Vec<Row>, Error> {
    let request = embeddings::Request::new(embeddings::Purpose::Query, [query]);
    let reply = embeddings::embed(&request)?;
    let Some(asked) = reply.vectors.first() else { return Ok(Vec::new()) };
    let rows = (BYTES / (4 * asked.len().max(1))).min(VECTORS) as u64;
    let vectors = "SELECT v.number, v.vector FROM vector v JOIN memory m ON m.number = v.number
        WHERE m.user = ?1 AND v.model = ?2 ORDER BY v.number DESC LIMIT ?3";
    let vectors: Vec<(i64, Vec<u8>)> = sql::query_as(vectors, params![user, &reply.model, rows])?;
    let near = |(number, vector): (i64, Vec<u8>)| Some((cosine(asked, &vector)?, number));
    let mut near: Vec<(f32, i64)> =
        vectors.into_iter().filter_map(near).filter(|(cosine, _)| *cosine >= LEAST).collect();
    near.sort_by(|one, other| other.0.total_cmp(&one.0).then(other.1.cmp(&one.1)));
    near.truncate(CANDIDATES as usize);
    let mut found = Vec::new();
    for (_, number) in near {
        let memory = "SELECT id, text, session FROM memory WHERE number = ?1";
        found.extend(sql::query_one::<Row>(memory, params![number])?);
    }
    Ok(found)
}

/// A vector as it is stored.
pub(super) fn bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// None for vectors of different lengths, and for one without a direction.
fn cosine(asked: &[f32], stored: &[u8]) -> Option<f32> {
    if stored.len() != asked.len() * 4 {
        return None;
    }
    let numbers = stored.chunks_exact(4).map(|bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
    let (mut product, mut of_asked, mut of_stored) = (0.0_f32, 0.0_f32, 0.0_f32);
    for (one, other) in asked.iter().zip(numbers) {
        product += one * other;
        of_asked += one * one;
        of_stored += other * other;
    }
    let cosine = product / (of_asked.sqrt() * of_stored.sqrt());
    cosine.is_finite().then_some(cosine)
}
