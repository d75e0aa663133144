//! `skills`: an index that stands while nothing changed, and documents that can be read, but nothing beside them.

use std::collections::BTreeSet;

use hermes_plugin_host::{Skill, SkillDocument};

use crate::arguments::UNICODE;
use crate::error::ConformanceError;
use crate::fixtures::Folders;
use crate::lifecycle::differing;
use crate::report::{Checks, Fail, Verdict, fine};
use crate::stand::{Ill, Stand, Worker, alive};

const GROUP: &str = "skills";

pub(crate) async fn check(stand: &Stand<'_>, checks: &mut Checks) -> Result<(), ConformanceError> {
    let worker = stand.put_on(&stand.scene())?;
    let (first, second) = (index(&worker).await, index(&worker).await);
    let fix = "answer the same list, in the same order, while nothing changed: it is part of the prompt";
    let verdict: Verdict = match (&first, &second) {
        (Ok(one), Ok(other)) if format!("{one:?}") == format!("{other:?}") => Ok(format!("{} skills", one.len())),
        (Ok(one), Ok(other)) => Err(differing(&format!("{one:?}"), &format!("{other:?}")).into()),
        (Err(ill), _) | (_, Err(ill)) => Err(ill.clone().into()),
    };
    checks.add(GROUP, "has the same index each time it is asked", fix, verdict);
    let Ok(skills) = first else { return Ok(()) };

    let fix = "give each skill a name of its own and one line that says when it helps";
    checks.add(GROUP, "names and describes its skills", fix, named(&skills));
    let fix = "what the index names must be there, and what a document lists under `files` too";
    checks.add(GROUP, "shows every skill and every file of it, twice the same", fix, viewed(&worker, &skills).await);
    let fix = "answer an error that names what there is, not an empty document";
    checks.add(GROUP, "answers what is not there with an error", fix, absent(&worker, &skills).await);
    let fix = "compare a path with the files that the skill lists; never put it together with a folder's name";
    checks.add(GROUP, "shows nothing outside of its skills", fix, outside(&worker, &skills).await);
    Ok(())
}

pub(crate) async fn exercise(worker: &Worker<'_>) -> Result<(), Ill> {
    let skills = alive(index(worker).await)?.unwrap_or_default();
    let names = skills.iter().map(|skill| skill.name.as_str()).chain(["no such skill"]);
    for name in names {
        alive(view(worker, name, None).await)?;
        alive(view(worker, name, Some("no/such/file.md")).await)?;
    }
    Ok(())
}

async fn index(worker: &Worker<'_>) -> Result<Vec<Skill>, Ill> {
    worker.ask("index", worker.instance.skills()).await
}

async fn view(worker: &Worker<'_>, name: &str, path: Option<&str>) -> Result<SkillDocument, Ill> {
    worker.ask("view", worker.instance.skill(name.to_owned(), path.map(str::to_owned))).await
}

fn named(skills: &[Skill]) -> Verdict {
    let mut names = BTreeSet::new();
    for skill in skills {
        let name = &skill.name;
        if name.trim().is_empty() || name.contains(char::is_control) {
            return Err(format!("`{name}` is no name").into());
        }
        if !names.insert(name) {
            return Err(format!("`{name}` stands twice").into());
        }
        if skill.description.trim().is_empty() || skill.description.contains('\n') {
            return Err(format!("the description of `{name}` is empty or has several lines").into());
        }
    }
    fine()
}

async fn viewed(worker: &Worker<'_>, skills: &[Skill]) -> Verdict {
    let mut shown = 0;
    for skill in skills {
        let name = &skill.name;
        let document = twice(worker, name, None).await?;
        if document.content.trim().is_empty() {
            return Err(format!("`{name}` is empty").into());
        }
        shown += 1;
        for file in &document.files {
            twice(worker, name, Some(file)).await?;
            shown += 1;
        }
    }
    Ok(format!("{shown} documents"))
}

async fn twice(worker: &Worker<'_>, name: &str, path: Option<&str>) -> Result<SkillDocument, Fail> {
    let told = |ill: Ill| Fail::from(format!("`{name}`, {}: {ill}", path.unwrap_or("itself")));
    let first = view(worker, name, path).await.map_err(told)?;
    let second = view(worker, name, path).await.map_err(told)?;
    if (&first.content, &first.files) != (&second.content, &second.files) {
        return Err(format!("`{name}`: {}", differing(&first.content, &second.content)).into());
    }
    Ok(first)
}

async fn absent(worker: &Worker<'_>, skills: &[Skill]) -> Verdict {
    let known = skills.first().map(|skill| skill.name.as_str());
    let paths = [None, Some("no/such/file.md"), Some(UNICODE)];
    let asked = ["no such skill", "", UNICODE].map(|name| (name, None));
    let below = known.into_iter().flat_map(|name| paths[1..].iter().map(move |path| (name, *path)));
    for (name, path) in asked.into_iter().chain(below) {
        match view(worker, name, path).await {
            Err(Ill::Answered(_)) => {}
            Err(died) => return Err(died.into()),
            Ok(_) => return Err(format!("`{name}`, {}: it answers a document", path.unwrap_or("itself")).into()),
        }
    }
    fine()
}

async fn outside(worker: &Worker<'_>, skills: &[Skill]) -> Verdict {
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
            refused(view(worker, &skill.name, Some(path)).await, &skill.name, path)?;
        }
    }
    for name in ["..", "../", "../..", "/", "lamps/..", "."] {
        refused(view(worker, name, None).await, name, "itself")?;
        refused(view(worker, name, Some("secret.txt")).await, name, "secret.txt")?;
    }
    fine()
}

fn refused(answer: Result<SkillDocument, Ill>, name: &str, path: &str) -> Result<(), Fail> {
    match answer {
        Err(Ill::Answered(fault)) if fault.message.contains(Folders::SECRET) => {
            Err(format!("`{name}`, {path}: the error tells what lies outside").into())
        }
        Err(Ill::Answered(_)) => Ok(()),
        Err(died) => Err(died.into()),
        Ok(_) => Err(format!("`{name}`, {path:?}: it answers a document").into()),
    }
}
