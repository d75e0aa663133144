//! The system prompt and the tools of a session: built once, stored, and restored unchanged. A rebuild is always
//! announced to the user.

use std::path::Path;

use hermes_conversation::{Model, SessionId, ToolSchema};
use hermes_diagnostic::{Action, Notice};
use hermes_plugin_host::Skill;
use hermes_prompt::{Inputs, ProviderBlock, SkillEntry, SystemPrompt, files, shape};
use hermes_session_store::{Frozen, SessionStore, StoreError};

use crate::crowding::Shares;
use crate::error::AgentError;
use crate::host::Host;
use crate::live::plugins::RunningPlugins;
use crate::opening::Opening;
use crate::owner::HOST;
use crate::project_files::{Moment, changed_since_last};
use crate::shelf;
use crate::skills::flaws;

/// An opening built from the current inputs.
pub(crate) struct Fresh {
    pub(crate) opening: Opening,
    /// Failures and warnings for the user.
    pub(crate) notices: Vec<String>,
}

/// Builds the opening from its current inputs. Parts that cannot be read now are copied from `before`.
pub(crate) async fn build(
    host: &Host,
    workspace: &Path,
    plugins: &RunningPlugins,
    before: Option<&Opening>,
    moment: Moment,
) -> Fresh {
    let settings = &host.settings.prompt;
    let (mut blocks, mut notices, mut failures, mut unread) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut shares = Shares::default();
    for memory in &plugins.memories {
        match memory.system_prompt().await {
            Ok(text) if text.trim().is_empty() => {}
            Ok(text) => {
                let (block, blocked) = ProviderBlock::new(memory.name(), &text);
                shares.add(memory.name(), &text);
                blocks.push((memory.name().to_owned(), block));
                notices.extend(blocked);
            }
            Err(error) => {
                failures.push(format!("{error}; its part of the system prompt {}", fallback(before)));
                unread.push(format!("memory: {}", memory.name()));
            }
        }
    }
    for (server, text) in &plugins.instructions {
        let (block, blocked) = ProviderBlock::of_server(server, text);
        shares.add(server, text);
        blocks.push((server.clone(), block));
        notices.extend(blocked);
    }
    let collecting = plugins.notices.collect(plugins.toolbox.skills().plugins());
    let (skills, failed, suspicious) = plugins.toolbox.skills().index().await;
    let untold = flaws::untold(host.store.as_ref(), collecting.end(), failed.is_empty()).await;
    untold.into_iter().for_each(|notice| plugins.notices.notice(notice));
    notices.extend(suspicious);
    if !failed.is_empty() {
        failures.extend(failed.iter().map(|error| format!("{error}; the index of skills {}", fallback(before))));
        unread.push("skills".to_owned());
    }
    let limit = characters(host);
    let soul = files::soul(&host.home, limit);
    let project =
        settings.context_files.then(|| plugins.project.follow(&host.approvals.listed, workspace, limit, moment));
    let (project, changed) = project.unwrap_or_default();
    failures.extend(changed);
    let context_files = project.files;
    notices.extend(soul.notices.into_iter().chain(project.notices));
    if before.is_none() {
        notices.extend(not_told_yet(host.store.as_ref(), workspace, project.unread).await);
        if settings.context_files {
            notices.extend(changed_since_last(host.store.as_ref(), workspace, &project.texts).await);
        }
    }
    failures.extend(notices.iter().map(ToString::to_string));
    let mut schemas = plugins.toolbox.schemas();
    // A prompt that is stored keeps its tools, unless the user wants a new one.
    let shelf = match before {
        Some(_) if moment == Moment::Asked => shelf::choice::chosen(host, workspace, &plugins.toolbox).await,
        Some(before) => shelf::choice::beside(host, &before.tools, &schemas),
        None => plugins.toolbox.shelf().cloned(),
    };
    let mut deferred = Vec::new();
    if let Some(shelf) = &shelf {
        deferred = shelf.deferred(&schemas);
        schemas.retain(|(_, schema)| !shelf.has(&schema.name));
        schemas.extend(shelf.schemas().map(|schema| (HOST.to_owned(), schema)));
    }
    for (plugin, schema) in &schemas {
        shares.add(plugin, &hermes_models::tools_json(std::slice::from_ref(schema)));
    }
    for (plugin, skill) in &skills {
        shares.add(plugin.name(), &format!("{}: {} {}", skill.name, skill.description, skill.category));
    }
    let opening = |left_out: &[&str]| {
        let stays = |plugin: &str| !left_out.contains(&plugin);
        let schemas: Vec<ToolSchema> =
            schemas.iter().filter(|(plugin, _)| stays(plugin)).map(|(_, schema)| schema.clone()).collect();
        let entry = |skill: &Skill| SkillEntry {
            name: skill.name.clone(),
            description: skill.description.clone(),
            category: skill.category.clone(),
        };
        let inputs = Inputs {
            identity: soul.text.clone(),
            tools: schemas.iter().map(|schema| schema.name.clone()).collect(),
            skills: skills.iter().filter(|(plugin, _)| stays(plugin.name())).map(|(_, skill)| entry(skill)).collect(),
            platform: host.settings.platform.clone(),
            platform_hint: settings.platform_hint.clone(),
            environment_hint: settings.environment_hint.clone(),
            os: std::env::consts::OS.to_owned(),
            home: std::env::home_dir(),
            workspace: workspace.to_owned(),
            context_files: context_files.clone(),
            system_message: settings.system_message.clone(),
            provider_blocks: blocks
                .iter()
                .filter(|(plugin, _)| stays(plugin))
                .map(|(_, block)| block.clone())
                .collect(),
            date: host.settings.clock.local().date(),
            model: Model::clone(&host.model),
        };
        Opening { prompt: hermes_prompt::build(&inputs), tools: hermes_models::deferred_json(&schemas, &deferred) }
    };
    let mut whole = opening(&[]);
    let bundled = host.plugins.identities().into_iter().filter(|plugin| plugin.is_bundled).map(|plugin| plugin.name);
    let bundled = bundled.chain([HOST.to_owned()]).collect();
    let crowding = shares.crowding(whole.tokens(), host.model.context_length, &bundled);
    if !crowding.is_empty() {
        failures.extend(crowding.iter().map(|crowding| crowding.notice(plugins.toolbox.is_server(&crowding.plugin))));
        whole = opening(&crowding.iter().map(|crowding| crowding.plugin.as_str()).collect::<Vec<_>>());
    }
    if let Some(why) = shelf::choice::room(host).refuses(schemas.len()) {
        failures.push(format!(
            "{why}: it may refuse each message of this session; take names out of `tool_search.pinned`, set `tool_search.enabled: true`, \
             or exclude tools of servers with `mcp_servers.NAME.tools`"
        ));
    }
    let mut opening = whole;
    if let Some(before) = before {
        if !plugins.toolbox.is_complete() {
            unread.push("tools".to_owned());
            opening.tools.clone_from(&before.tools);
        }
        for layer in unread {
            restore_layer(&mut opening.prompt, &before.prompt, &layer);
        }
    }
    Fresh { opening, notices: failures }
}

/// How many characters of a project file are part of the prompt.
pub(crate) fn characters(host: &Host) -> usize {
    shape::limit(host.settings.prompt.context_file_max_chars, Some(host.model.context_length))
}

/// The notice of files that other agents would read, unless the user has seen the same notice in this workspace.
async fn not_told_yet(
    store: &dyn SessionStore,
    workspace: &Path,
    unread: Option<hermes_prompt::Notice>,
) -> Option<hermes_prompt::Notice> {
    let unread = unread?;
    let name = format!("unread context files {}", blake3::hash(workspace.as_os_str().as_encoded_bytes()).to_hex());
    let digest = blake3::hash(unread.to_string().as_bytes()).to_hex();
    if store.note(&name).await.ok().flatten().as_deref() == Some(digest.as_str()) {
        return None;
    }
    if let Err(error) = store.set_note(&name, Some(digest.as_str())).await {
        tracing::warn!(%error, "the user will be told again which context files are not read");
    }
    Some(unread)
}

fn fallback(before: Option<&Opening>) -> &'static str {
    if before.is_some() { "stays unchanged" } else { "is left out" }
}

/// Replaces a layer by the one of an earlier prompt.
fn restore_layer(prompt: &mut SystemPrompt, before: &SystemPrompt, name: &str) {
    let tiers = [
        (&mut prompt.stable, &before.stable),
        (&mut prompt.context, &before.context),
        (&mut prompt.volatile, &before.volatile),
    ];
    for (now, then) in tiers {
        now.retain(|layer| layer.name != name);
        if let Some(at) = then.iter().position(|layer| layer.name == name) {
            now.insert(at.min(now.len()), then[at].clone());
        }
    }
}

/// Restores the stored opening of a session, or builds and stores it. Also returns a notice of the inputs that have
/// changed since.
pub(crate) async fn restore_or_build(
    host: &Host,
    session: &hermes_session_store::Session,
    plugins: &RunningPlugins,
) -> Result<(Frozen, Option<Notice>), AgentError> {
    let before = session.frozen.as_ref().map(Opening::restore);
    let fresh = build(host, &session.workspace, plugins, before.as_ref(), Moment::Opening).await;
    let (Some(before), Some(mut frozen)) = (before, session.frozen.clone()) else {
        fresh.notices.into_iter().for_each(|notice| plugins.notices.notice(notice));
        return Ok((store(host, &session.id, fresh.opening.freeze("a new session")).await?, None));
    };
    let drift = before.drift(&fresh.opening).map(|changed| {
        let text =
            format!("the system prompt of this session is older than your files and plugins (changed: {changed})");
        Notice::new(text, Action::RebuildPrompt { session: session.id.to_string() })
    });
    let renamed = Opening { prompt: before.prompt.with_model(&host.model), tools: before.tools };
    if renamed.prompt.text() != frozen.system_prompt {
        frozen = store(host, &session.id, renamed.freeze(&format!("the model is {} now", host.model.name))).await?;
    }
    Ok((frozen, drift))
}

pub(crate) async fn store(host: &Host, id: &SessionId, frozen: Frozen) -> Result<Frozen, StoreError> {
    let number = host.store.freeze(id, &frozen, host.settings.clock.now()).await?;
    Ok(Frozen { number, ..frozen })
}
