//! `hermes skills search`: the skills of the sources in `skills.sources`. What a source contains is kept in the cache, with
//! the time of the fetch, so that a search works without a network.

use std::path::Path;

use hermes_install::Source;
use hermes_install::skills::FetchedSkills;
use hermes_plugin_host::{Digest, PluginOrigin};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::operations::Downloads;
use crate::{AppError, Reporter, Setup};

/// A fetched index is used for this long before it is fetched again.
const FRESH: SignedDuration = SignedDuration::from_hours(24);
/// Most bytes of a kept index, and most skills in it.
const MOST_BYTES: u64 = 8 << 20;
const MOST_SKILLS: usize = 2_000;

/// The skills of a source, as they are kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Index {
    source: String,
    resolved: Option<String>,
    /// The time of the fetch, in RFC 3339.
    fetched: String,
    skills: Vec<Indexed>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Indexed {
    name: String,
    description: String,
    path: String,
}

/// A skill that matches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hit {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: String,
    /// The source as it is configured, or as it was installed from; empty for the user's own skill.
    pub source: String,
    /// Whether it is in the user's folder.
    pub is_installed: bool,
    /// The name by which the source knows it: its folder, if several have the name.
    pub argument: String,
}

/// The end of a search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchReport {
    /// The matches: those by name first.
    pub hits: Vec<Hit>,
    /// What the user should know about the sources.
    pub notices: Vec<String>,
    /// How many skills were searched.
    pub searched: usize,
}

/// Searches the names and descriptions of the installed skills and of the configured sources. A source is fetched if it is not
/// kept, the kept index is a day old, or `refresh` asks for it.
///
/// # Errors
///
/// When the user's skills cannot be read.
pub async fn search(
    query: &str,
    refresh: bool,
    setup: &Setup,
    reporter: &dyn Reporter,
) -> Result<SearchReport, AppError> {
    let mut report = SearchReport::default();
    let own = setup.skill_installer().inventory()?;
    let mut all: Vec<Hit> = Vec::new();
    for found in &own {
        let Ok(header) = &found.header else { continue };
        let (name, description) = (header.name.clone(), header.description.clone());
        let source = found.entry.as_ref().map(|entry| entry.source.clone()).unwrap_or_default();
        all.push(Hit { argument: name.clone(), name, description, source, is_installed: true });
    }
    let now = setup.clock()?.local().timestamp();
    for text in &setup.config.settings().skills.sources {
        let Some(index) = indexed(text, refresh, now, setup, reporter, &mut report.notices).await else { continue };
        for Indexed { name, description, path } in index.skills.iter().cloned() {
            let is_same =
                |hit: &Hit| hit.name == name && hit.is_installed && origin(&hit.source) == origin(&index.source);
            if all.iter().any(is_same) {
                continue;
            }
            let is_only = index.skills.iter().filter(|other| other.name == name).count() == 1;
            let argument = if is_only { name.clone() } else { path };
            all.push(Hit { name, description, source: text.clone(), is_installed: false, argument });
        }
    }
    report.searched = all.len();
    let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
    let has = |text: &str| {
        let text = text.to_lowercase();
        words.iter().all(|word| text.contains(word.as_str()))
    };
    let (by_name, others): (Vec<Hit>, Vec<Hit>) = all.into_iter().partition(|hit| has(&hit.name));
    let others = others.into_iter().filter(|hit| has(&format!("{} {}", hit.name, hit.description)));
    report.hits = by_name.into_iter().chain(others).collect();
    Ok(report)
}

/// The index of a source: the kept one if it is fresh enough, or if the source cannot be fetched.
async fn indexed(
    text: &str,
    refresh: bool,
    now: Timestamp,
    setup: &Setup,
    reporter: &dyn Reporter,
    notices: &mut Vec<String>,
) -> Option<Index> {
    let source = match Source::parse(text, setup.home.path()) {
        Ok(source) => source,
        Err(error) => {
            notices.push(format!("skills.sources: {error}"));
            return None;
        }
    };
    let cache = setup.home.skill_indexes();
    let file = cache.join(format!("{}.json", Digest::of(source.to_string().as_bytes()).short()));
    let kept = kept(&file).filter(|index| index.source == source.to_string());
    let is_fresh = |index: &Index| (SignedDuration::ZERO..FRESH).contains(&age(index, now));
    // A folder is read as it is now: that costs less than to keep it.
    if let Some(index) = kept.as_ref().filter(|index| !refresh && !source.is_local() && is_fresh(index)) {
        return Some(index.clone());
    }
    let looked = setup.skill_installer().look(&cache, &source, false, &Downloads(reporter)).await;
    match (looked, kept) {
        (Ok(fetched), _) => {
            let index = Index::of(&fetched, now);
            keep(&index, &file);
            Some(index)
        }
        (Err(error), Some(kept)) => {
            notices.push(format!("{error}; the search covers what it had {}", ago(age(&kept, now))));
            Some(kept)
        }
        (Err(error), None) => {
            notices.push(format!("{error}; nothing of it is kept from an earlier search"));
            None
        }
    }
}

impl Index {
    fn of(fetched: &FetchedSkills, now: Timestamp) -> Self {
        let one = |skill: &hermes_install::skills::OfferedSkill| {
            let header = skill.header.as_ref().ok()?;
            let (name, description) = (header.name.clone(), header.description.clone());
            Some(Indexed { name, description, path: skill.path.clone() })
        };
        let skills = fetched.skills.iter().filter_map(one).take(MOST_SKILLS).collect();
        Self { source: fetched.source.clone(), resolved: fetched.resolved.clone(), fetched: now.to_string(), skills }
    }
}

fn kept(file: &Path) -> Option<Index> {
    let bytes = hermes_private_files::read_regular(file, MOST_BYTES).ok()?;
    // A damaged index is fetched again.
    serde_json::from_slice(&bytes).ok()
}

/// Keeps an index. Without it, the next search fetches the source again.
fn keep(index: &Index, file: &Path) {
    let text = serde_json::to_vec(index).unwrap_or_default();
    if let Err(error) = hermes_private_files::write_atomically(file, &text) {
        tracing::warn!(file = %file.display(), %error, "what a source of skills contains cannot be kept");
    }
}

/// The source without what differs between spellings of the same one.
fn origin(source: &str) -> PluginOrigin {
    PluginOrigin::of(source, None)
}

/// The age of an index. Without a valid time it counts as infinitely old, and serves only if nothing newer can be fetched.
fn age(index: &Index, now: Timestamp) -> SignedDuration {
    index.fetched.parse::<Timestamp>().map_or(SignedDuration::MAX, |then| now.duration_since(then))
}

fn ago(age: SignedDuration) -> String {
    let hours = age.as_hours().max(0);
    match hours {
        0 => "less than an hour ago".to_owned(),
        1..48 => format!("{} ago", crate::counted(hours.unsigned_abs(), "hour")),
        _ => format!("{} ago", crate::counted(hours.unsigned_abs() / 24, "day")),
    }
}
