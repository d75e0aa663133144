//! `hermes skills`: finds, installs, updates and removes skills.

mod consent;
mod files;
mod listing;
mod search;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use hermes_app::operations::{self, SkillReport};
use hermes_app::plugins::Digest;
use hermes_app::skills::{FetchedSkills, OfferedSkill};

use self::consent::Terminal as Consent;
use crate::console::{Console, print};
use crate::failure::{Failure, Kind};
use crate::launch::{self, Setup};
use crate::progress::Terminal;
use crate::text;

/// What to do with skills.
#[derive(Debug, Subcommand)]
pub(crate) enum SkillsCommand {
    /// List your skills with their state
    #[command(visible_alias = "ls")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show a skill with its files and where it came from
    Info {
        /// The skill's name
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Search your skills and those of `skills.sources` in config.yaml
    Search(SearchArguments),
    /// Install skills from a source, after you have seen what they contain
    Install(InstallArguments),
    /// Install the current version of skills from their sources
    Update(UpdateArguments),
    /// Remove a skill that Hermes installed
    #[command(visible_alias = "rm")]
    Remove {
        /// The skill's name
        name: String,
        /// Remove the skill although you changed it since it was installed
        #[arg(long)]
        discard_edits: bool,
    },
}

/// What to search for.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub(crate) struct SearchArguments {
    /// Words that the name or the description contains [default: all skills]
    query: Vec<String>,
    /// Fetch the sources again, also if they were fetched within a day
    #[arg(long)]
    refresh: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The skills to install, and how.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub(crate) struct InstallArguments {
    /// A folder, a .tar.gz or .zip, an https address, owner/repo[@ref][#folder], a git address, oci://host/name:tag
    source: String,
    /// The skills to install, if the source has several
    name: Vec<String>,
    /// Replace a skill of this name that has another source, that you changed, or that is your own
    #[arg(long)]
    replace: bool,
    /// Accept what the scan refuses in the skill with exactly this digest, which the refusal names
    #[arg(long, value_name = "DIGEST")]
    accept: Vec<Digest>,
    /// Allow unencrypted connections
    #[arg(long)]
    insecure: bool,
    /// Do not ask for confirmation, and agree to everything that is shown
    #[arg(short, long)]
    yes: bool,
}

/// The skill to update, and how.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub(crate) struct UpdateArguments {
    /// The skill's name [default: all skills that Hermes installed]
    name: Option<String>,
    /// Replace files that you changed since the skill was installed
    #[arg(long)]
    discard_edits: bool,
    /// Accept what the scan refuses in the skill with exactly this digest, which the refusal names
    #[arg(long, value_name = "DIGEST")]
    accept: Vec<Digest>,
    /// Allow unencrypted connections
    #[arg(long)]
    insecure: bool,
    /// Do not ask for confirmation, and agree to everything that is shown
    #[arg(short, long)]
    yes: bool,
}

pub(crate) async fn run(command: &SkillsCommand, console: Console) -> Result<ExitCode, Failure> {
    let setup = launch::setup(console)?;
    match command {
        SkillsCommand::List { json } => listing::list(&setup, *json, console),
        SkillsCommand::Info { name, json } => listing::info(&setup, name, *json, console),
        SkillsCommand::Search(arguments) => {
            search::run(&setup, &arguments.query.join(" "), arguments.refresh, arguments.json, console).await
        }
        SkillsCommand::Install(arguments) => install(&setup, arguments, console).await,
        SkillsCommand::Update(arguments) => update(&setup, arguments, console).await,
        SkillsCommand::Remove { name, discard_edits } => {
            operations::remove_skill(name, *discard_edits, &setup)?;
            console.note(&format!("removed `{name}`"));
            Ok(ExitCode::SUCCESS)
        }
    }
}

async fn install(setup: &Setup, arguments: &InstallArguments, console: Console) -> Result<ExitCode, Failure> {
    setup.own()?;
    let consent = Consent { console, yes: arguments.yes };
    consent.can_settle(!arguments.accept.is_empty(), "installed")?;
    let source = operations::source_of(&arguments.source, &std::env::current_dir()?)?;
    let reporter = Terminal::new(console);
    let fetched = operations::fetch_skills(&source, arguments.insecure, setup, &reporter).await?;
    drop(reporter);
    let names: Vec<String> = match (arguments.name.as_slice(), fetched.skills.as_slice()) {
        ([], [only]) if only.path.is_empty() => vec![only.name().to_owned()],
        ([], [only]) => vec![only.path.clone()],
        ([], several) => {
            print(&offers(several, &arguments.source, console))?;
            let why = format!("the source has {}, and none was named", text::counted(several.len() as u64, "skill"));
            let fix = format!("hermes skills install {} NAME…", quoted(&arguments.source));
            return Err(Failure::new(Kind::Usage, "nothing was installed", why, fix));
        }
        (names, _) => names.to_vec(),
    };
    let one = |name: &String, fetched: &FetchedSkills| {
        let report = operations::install_skill(fetched, name, (arguments.replace, &arguments.accept), setup, &consent)?;
        Ok(show(&report, console))
    };
    all(&names, console, "installed", names.iter().map(|name| one(name, &fetched)))
}

async fn update(setup: &Setup, arguments: &UpdateArguments, console: Console) -> Result<ExitCode, Failure> {
    setup.own()?;
    let consent = Consent { console, yes: arguments.yes };
    consent.can_settle(!arguments.accept.is_empty(), "updated")?;
    let names = operations::installed_skills(arguments.name.as_deref(), setup)?;
    if names.is_empty() {
        console.note("Hermes installed no skills, so there is nothing to update");
    }
    let mut ended = Vec::new();
    for name in &names {
        let reporter = Terminal::new(console);
        let how = (arguments.insecure, arguments.discard_edits, arguments.accept.as_slice());
        let report = operations::update_skill(name, how, setup, &consent, &reporter).await;
        drop(reporter);
        ended.push(report.map(|report| show(&report, console)));
    }
    all(&names, console, "updated", ended.into_iter())
}

/// The exit code of a command on several skills: a failure of one does not stop the others.
fn all(
    names: &[String],
    console: Console,
    done: &str,
    ended: impl Iterator<Item = Result<Option<Kind>, Failure>>,
) -> Result<ExitCode, Failure> {
    let (mut failed, mut code) = (0, ExitCode::SUCCESS);
    for one in ended {
        match one {
            Ok(None) => {}
            Ok(Some(kind)) => code = kind.into(),
            Err(failure) if names.len() == 1 => return Err(failure),
            Err(failure) => {
                failed += 1;
                console.report(&failure);
            }
        }
    }
    if failed == 0 {
        return Ok(code);
    }
    let why = format!("{} could not be {done}", text::counted(failed, "skill"));
    Err(Failure::new(Kind::Plugin, format!("not every skill was {done}"), why, "see the errors above"))
}

/// Shows the end of an installation or an update. Returns the exit code of a refusal.
fn show(report: &SkillReport, console: Console) -> Option<Kind> {
    match report {
        SkillReport::Unchanged { name, edits } if edits.is_empty() => {
            console.note(&format!("`{name}` is installed as its source has it"));
        }
        SkillReport::Unchanged { name, edits } => {
            let files = edits.iter().map(|edit| edit.name.as_str()).collect::<Vec<_>>().join(", ");
            console.note(&format!(
                "the source of `{name}` has nothing new, and your changes stay: {}; --discard-edits takes them back",
                text::exact_within(&files, 500)
            ));
        }
        SkillReport::Declined { name } => {
            console.note(&format!("`{name}` was not changed"));
            return Some(Kind::General);
        }
        SkillReport::Installed { name, is_update } => {
            let done = if *is_update { "updated" } else { "installed" };
            console.note(&format!("{done} `{name}`; new sessions see it"));
        }
    }
    None
}

/// The skills of a source, each with the command that installs it.
fn offers(skills: &[OfferedSkill], source: &str, console: Console) -> String {
    let mut out = String::new();
    for skill in skills {
        let is_only = skills.iter().filter(|other| other.name() == skill.name()).count() == 1;
        let argument = if is_only { skill.name() } else { &skill.path };
        let command = format!("hermes skills install {} {}", quoted(source), quoted(argument));
        let (about, command) = match &skill.header {
            Ok(header) => (header.description.clone(), command),
            Err(flaw) => (format!("broken: {flaw}"), String::new()),
        };
        out.push_str(&listing::block(&text::exact(skill.name()), &[&about, &command], console));
    }
    out
}

/// A word for a shell, without characters that the terminal would not show.
fn quoted(word: &str) -> String {
    let shown = text::exact(word);
    shlex::try_quote(&shown).map(|quoted| quoted.into_owned()).unwrap_or_default()
}
