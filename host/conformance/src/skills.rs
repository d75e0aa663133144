//! Checks of `skills`: a stable index, readable documents, and no access to other files.

use std::collections::BTreeSet;

use hermes_plugin_host::{Skill, SkillDocument, skills_in};

use crate::arguments::UNICODE;
use crate::bench::{CallFailure, Session, TestBench, ignore_errors};
use crate::difference::difference;
use crate::error::ConformanceError;
use crate::fixtures::Folders;
use crate::report::{Checks, Fail, Verdict, counted, passed};

const GROUP: &str = "skills";

pub(crate) async fn check(bench: &TestBench<'_>, checks: &mut Checks) -> Result<(), ConformanceError> {
    let session = bench.open(&bench.setup())?;
    let (first, second) = (index(&session).await, index(&session).await);
    let fix = "answer the same list, in the same order, while nothing changed: it is part of the prompt";
    let verdict: Verdict = match (&first, &second) {
        (Ok(one), Ok(other)) if format!("{one:?}") == format!("{other:?}") => Ok(counted(one.len(), "skill")),
        (Ok(one), Ok(other)) => Err(difference(&format!("{one:?}"), &format!("{other:?}")).into()),
        (Err(failure), _) | (_, Err(failure)) => Err(failure.clone().into()),
    };
    checks.add(GROUP, "has the same index each time it is asked", fix, verdict);
    let Ok(skills) = first else { return Ok(()) };

    if let Some(folder) = &bench.subject.skills {
        let fix = "give each SKILL.md a `name` of its own, and keep it below 1 MiB";
        checks.add(GROUP, "lists each skill in its folder", fix, listed(&skills, &skills_in(folder)));
    }
    let fix = "give each skill a name of its own and one line that says when it helps";
    checks.add(GROUP, "names and describes its skills", fix, named(&skills));
    let fix = "what the index names must be there, and what a document lists under `files` too";
    checks.add(GROUP, "shows every skill and every file of it, twice the same", fix, viewed(&session, &skills).await);
    let fix = "answer an error that names what there is, not an empty document";
    checks.add(GROUP, "answers unknown names with an error", fix, absent(&session, &skills).await);
    let fix = "compare a path with the files that the skill lists; never put it together with a folder's name";
    checks.add(GROUP, "shows nothing outside of its skills", fix, outside(&session, &skills).await);
    Ok(())
}

pub(crate) async fn exercise(session: &Session<'_>) -> Result<(), CallFailure> {
    let skills = ignore_errors(index(session).await)?.unwrap_or_default();
    let names = skills.iter().map(|skill| skill.name.as_str()).chain(["no such skill"]);
    for name in names {
        ignore_errors(view(session, name, None).await)?;
        ignore_errors(view(session, name, Some("no/such/file.md")).await)?;
    }
    Ok(())
}

async fn index(session: &Session<'_>) -> Result<Vec<Skill>, CallFailure> {
    session.call("index", session.instance.skills()).await
}

async fn view(session: &Session<'_>, name: &str, path: Option<&str>) -> Result<SkillDocument, CallFailure> {
    session.call("view", session.instance.skill(name.to_owned(), path.map(str::to_owned))).await
}

/// Whether the index has as many skills as there are folders with a `SKILL.md`.
fn listed(skills: &[Skill], folders: &[String]) -> Verdict {
    if skills.len() < folders.len() {
        let names: Vec<&str> = skills.iter().map(|skill| skill.name.as_str()).collect();
        let (found, listed) = (folders.join(", "), names.join(", "));
        return Err(format!("there are the folders {found}, and the index has only: {listed}").into());
    }
    passed()
}

fn named(skills: &[Skill]) -> Verdict {
    let mut names = BTreeSet::new();
    for skill in skills {
        let name = &skill.name;
        if name.trim().is_empty() || name.contains(char::is_control) {
            return Err(format!("`{name}` is no name").into());
        }
        if !names.insert(name) {
            return Err(format!("`{name}` is listed twice").into());
        }
        if skill.description.trim().is_empty() || skill.description.contains('\n') {
            return Err(format!("the description of `{name}` is empty or has several lines").into());
        }
    }
    passed()
}

async fn viewed(session: &Session<'_>, skills: &[Skill]) -> Verdict {
    let mut shown = 0;
    for skill in skills {
        let name = &skill.name;
        let document = twice(session, name, None).await?;
        if document.content.trim().is_empty() {
            return Err(format!("`{name}` is empty").into());
        }
        shown += 1;
        for file in &document.files {
            twice(session, name, Some(file)).await?;
            shown += 1;
        }
    }
    Ok(format!("{shown} documents"))
}

async fn twice(session: &Session<'_>, name: &str, path: Option<&str>) -> Result<SkillDocument, Fail> {
    let fail = |failure: CallFailure| failure.of(&format!("`{name}`, {}", path.unwrap_or("itself")));
    let first = view(session, name, path).await.map_err(fail)?;
    let second = view(session, name, path).await.map_err(fail)?;
    if (&first.content, &first.files) != (&second.content, &second.files) {
        return Err(format!("`{name}`: {}", difference(&first.content, &second.content)).into());
    }
    Ok(first)
}

async fn absent(session: &Session<'_>, skills: &[Skill]) -> Verdict {
    let known = skills.first().map(|skill| skill.name.as_str());
    let paths = [None, Some("no/such/file.md"), Some(UNICODE)];
    let unknown = ["no such skill", "", UNICODE].map(|name| (name, None));
    let below = known.into_iter().flat_map(|name| paths[1..].iter().map(move |path| (name, *path)));
    for (name, path) in unknown.into_iter().chain(below) {
        match view(session, name, path).await {
            Err(CallFailure::Returned(_) | CallFailure::Down(_)) => {}
            Err(crash) => return Err(crash.into()),
            Ok(_) => return Err(format!("`{name}`, {}: it answers a document", path.unwrap_or("itself")).into()),
        }
    }
    passed()
}

async fn outside(session: &Session<'_>, skills: &[Skill]) -> Verdict {
    const PATHS: [&str; 9] = [
        "../../secret.txt",
        "../secret.txt",
        "../../../secret.txt",
        "references/../../../secret.txt",
        "/etc/passwd",
        "..\\..\\secret.txt",
        "./../../secret.txt",
        "%2e%2e/secret.txt",
        "SKILL.md\u{0}.txt",
    ];
    for skill in skills.iter().take(3) {
        for path in PATHS {
            refused(view(session, &skill.name, Some(path)).await, &skill.name, path)?;
        }
    }
    for name in ["..", "../", "../..", "/", "lamps/..", "."] {
        refused(view(session, name, None).await, name, "itself")?;
        refused(view(session, name, Some("secret.txt")).await, name, "secret.txt")?;
    }
    passed()
}

fn refused(answer: Result<SkillDocument, CallFailure>, name: &str, path: &str) -> Result<(), Fail> {
    match answer {
        Err(CallFailure::Returned(fault)) if fault.message.contains(Folders::SECRET) => {
            Err(format!("`{name}`, {path}: the error reveals a file outside of the skills").into())
        }
        Err(CallFailure::Returned(_) | CallFailure::Down(_)) => Ok(()),
        Err(crash) => Err(crash.into()),
        Ok(_) => Err(format!("`{name}`, {path:?}: it answers a document").into()),
    }
}
