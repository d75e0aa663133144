//! The gate: it consults the rules first, then earlier answers, then the user.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use hermes_capabilities::changes::Changes;
use hermes_capabilities::files::{Change, Concern, Guard, Seen};
use hermes_capabilities::process::{Confinement, Run};
use hermes_conversation::ToolCall;
use hermes_diagnostic::{Diagnose as _, Notice};
use hermes_plugin_host::services::{Approval, Refusal};
use hermes_plugin_host::{Effect, Fault, FaultKind, Identity};
use hermes_private_files::Documents;
use hermes_protocol::{
    Decision, FileChange, Mode, Objection, ProgramRun, Question, SAMPLING, SERVER_VERSION, SamplingRequest, Subject,
};

use super::beside::RunningCalls;
use super::code;
use super::command;
use super::kept::Kept;
use super::line::Line;
use super::mode::SessionMode;
use super::pattern::{self, Pattern};
use super::right::{COMMAND, EDIT, Right};
use super::rules::{ApprovalRules, Commands, UNCONFINED, Verdict};
use super::settings::Approvals;
use super::variable::is_about_output;
use crate::call_record::CallRecord;
use crate::offer::Consent;
use crate::owner::HOST;
use crate::questions::Questions;
use crate::report::NoticeSender;

/// Rights that the user granted until the session is closed. They outlive the plugins' instances.
pub(crate) type SessionRights = Arc<Mutex<HashSet<Right>>>;

/// What a call of a tool does, as far as its approval is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallEffect {
    /// The tool's own effect, by which the mode `plan` goes.
    pub(crate) effect: Effect,
    /// Whether this call cannot be undone.
    pub(crate) dangerous: bool,
    /// What the plugin says that the call does.
    pub(crate) sentence: Option<String>,
}

impl CallEffect {
    /// A call that does what every call of the tool does.
    pub(crate) fn of(effect: Effect) -> Self {
        Self { effect, dangerous: effect == Effect::Dangerous, sentence: None }
    }
}

/// A refusal, and who refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) by: Refusal,
    /// For the model: what was refused, why, and what not to try next.
    pub(crate) text: String,
}

/// The gate of one session in this process.
pub(crate) struct Gate {
    rules: ApprovalRules,
    kept: Kept,
    for_session: SessionRights,
    identities: Mutex<HashMap<String, Identity>>,
    /// The MCP servers that the mode `auto` covers.
    covered: Mutex<HashSet<String>>,
    running: RunningCalls,
    pub(super) can_ask: bool,
    files: Guard,
    notices: NoticeSender,
    questions: Questions,
    mode: SessionMode,
    /// What calls change, and what is refused to plugins.
    record: Arc<CallRecord>,
}

/// The right to replace files that the session has not read.
const UNREAD: &str = "unread";
/// The right to change skills of the user.
const SKILLS: &str = "skills";
/// Without this instruction a model tries another way to the same end.
const NO_OTHER_WAY: &str =
    "Do not try to reach the same end in another way: say what you wanted to do and why, and wait for the user.";

/// The answer to a call that the mode `plan` refuses. The tool has not failed.
const PLAN: &str = "the user works in plan mode, which changes nothing. Read and search what you need, then say what you would do and why. The \
     user leaves plan mode to let you do it.";

fn planned(name: &str, undone: &str) -> Refused {
    Refused { by: Refusal::Plan, text: format!("`{name}` {undone}: {PLAN}") }
}

/// The right to set these variables for a program. Many programs run others that a variable names, so an approval holds for exactly
/// the variables that the question showed.
fn variables(program: &Right, run: &Run) -> Option<Right> {
    // The last value of a name counts.
    let mut decisive: BTreeMap<_, _> = run.variables.iter().map(|(name, value)| (name, value)).collect();
    decisive.retain(|name, value| !is_about_output(name, value));
    let mut hasher = blake3::Hasher::new();
    for (name, value) in &decisive {
        // Neither a name nor a value contains NUL.
        hasher.update(name.as_bytes()).update(b"\0").update(value.as_bytes()).update(b"\0");
    }
    let of = format!("{} with variables of the hash {}", program.of, hasher.finalize().to_hex());
    (!decisive.is_empty()).then(|| Right {
        plugin: program.plugin.clone(),
        what: format!("variables:{}", run.program),
        of,
    })
}

/// The right to run a program without a sandbox, where this machine offers none and the user has not turned it off. Rules and
/// answers about the program are about confined runs.
fn unconfined(program: &Right, run: &Run) -> Option<Right> {
    let is_unavailable = matches!(run.confinement, Confinement::Unavailable(_));
    is_unavailable.then(|| Right { what: format!("{UNCONFINED}{}", run.program), ..program.clone() })
}

fn is_denied(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Denied(_))
}

/// Whether a call asks for a program that it does not wait for.
fn is_in_background(call: &ToolCall) -> bool {
    let arguments = serde_json::from_str(&call.arguments).unwrap_or(serde_json::Value::Null);
    arguments["background"] == true || arguments["background"] == "true"
}

fn by_name(identities: impl IntoIterator<Item = Identity>) -> HashMap<String, Identity> {
    identities.into_iter().map(|identity| (identity.name.clone(), identity)).collect()
}

impl Gate {
    pub(crate) fn new(
        approvals: &Approvals,
        documents: Arc<dyn Documents>,
        identities: impl IntoIterator<Item = Identity>,
        notices: NoticeSender,
        workspace: &Path,
        (questions, for_session, seen, changes, mode): (Questions, SessionRights, Arc<Seen>, Changes, SessionMode),
    ) -> Self {
        let record = CallRecord::new(workspace);
        Self {
            rules: approvals.rules.clone(),
            kept: Kept::new(documents),
            for_session,
            identities: Mutex::new(by_name(identities)),
            covered: Mutex::default(),
            running: RunningCalls::new(),
            can_ask: approvals.can_ask,
            files: Guard::new(Arc::clone(&approvals.listed), seen)
                .recording(record.watching(changes))
                .with_every_change(mode.every_change().clone()),
            notices,
            questions,
            mode,
            record,
        }
    }

    /// What the running call changed, and what was refused to it.
    pub(crate) fn record(&self) -> &CallRecord {
        &self.record
    }

    /// The error that a plugin gets for a refusal.
    fn fault(&self, refused: Refused) -> Fault {
        self.record.refused(refused.by, &refused.text);
        Fault::new(FaultKind::Denied, refused.by.code(), refused.text)
    }

    /// Checks whether a tool call may run; `plugin` is `None` for the host's own tools.
    pub(crate) async fn tool(
        &self,
        plugin: Option<&str>,
        call: &ToolCall,
        deed: CallEffect,
        objections: Vec<Objection>,
    ) -> Result<(), Refused> {
        let own = self.identity(plugin.unwrap_or(HOST));
        let CallEffect { effect, dangerous, sentence } = deed;
        let dangerous = dangerous && !self.is_covered(&own);
        let right = |plugin: Identity, of: String| Right { plugin, what: call.name.clone(), of };
        let itself = right(own.clone(), String::new());
        // `approvals.deny` also applies to tools that need no approval.
        let verdict = self.rules.verdict(&itself, None);
        if let Verdict::Denied(entry) = &verdict {
            return Err(Self::refused(entry, &call.name, "was not run"));
        }
        let reads_command = self.mode.get() == Mode::Plan && self.reads_command(&own.name, call);
        let only_reads =
            || effect == Effect::Reads || self.rules.reads(&itself) || (reads_command && !is_in_background(call));
        if self.mode.get() == Mode::Plan && !only_reads() {
            let undone = match own.version.as_str() {
                SERVER_VERSION => format!(
                    "was not run, because Hermes cannot know whether a tool of an MCP server only reads \
                     (`approvals.reads: [{}]` in config.yaml says so)",
                    itself.entry()
                ),
                _ if reads_command => "was not run in the background; in the foreground it may run".to_owned(),
                _ => "was not run".to_owned(),
            };
            return Err(planned(&call.name, &undone));
        }
        let mut rights: Vec<(Right, Verdict)> = objections
            .iter()
            .map(|objection| {
                // An approval is valid only for the reason that the user saw.
                let reason = blake3::hash(objection.why.as_bytes()).to_hex();
                self.judged(right(self.identity(&objection.plugin), format!("reason {reason}")))
            })
            .collect();
        let rule = verdict.must_ask().map(|(why, _)| why.to_owned());
        if dangerous || rule.is_some() {
            rights.push((itself, verdict));
        }
        let question = Question {
            plugin: own.name,
            version: own.version,
            subject: Subject::Tool {
                name: call.name.clone(),
                arguments: call.arguments.clone(),
                sentence,
                dangerous,
                objections,
                rule,
            },
        };
        self.pass(question, rights, true).await
    }

    /// What happens when the model calls a tool now, apart from what hooks object to.
    pub(crate) fn consent(&self, plugin: Option<&str>, name: &str, effect: Effect) -> Consent {
        let right = Right { plugin: self.identity(plugin.unwrap_or(HOST)), what: name.to_owned(), of: String::new() };
        let verdict = self.rules.verdict(&right, None);
        if let Verdict::Denied(entry) = &verdict {
            return Consent::Refused { why: format!("`approvals.deny` has `{entry}`") };
        }
        let only_reads = effect == Effect::Reads || self.rules.reads(&right);
        if self.mode.get() == Mode::Plan && !only_reads {
            return Consent::Refused { why: "the mode is plan".to_owned() };
        }
        let dangerous = effect == Effect::Dangerous && !self.is_covered(&right.plugin);
        let asks = dangerous || verdict.must_ask().is_some();
        match only_reads {
            _ if asks && !self.has(&right, &verdict) => Consent::Asks,
            true => Consent::Reads,
            false => Consent::Changes,
        }
    }

    /// What happens when the model calls the tool that changes skills now. The user decides about each change, whatever the mode.
    pub(crate) fn consent_to_skills(&self, name: &str) -> Consent {
        let consent = self.consent(None, name, Effect::Writes);
        let right = Right { plugin: self.identity(HOST), what: format!("files:{SKILLS}"), of: String::new() };
        match (consent, self.rules.verdict(&right, None)) {
            (Consent::Changes, Verdict::Denied(entry)) => {
                Consent::Refused { why: format!("`approvals.deny` has `{entry}`") }
            }
            (Consent::Changes, verdict) if !self.has(&right, &verdict) => Consent::Asks,
            (consent, _) => consent,
        }
    }

    /// Whether a call is a command of the user's list of those that change nothing. The program that it runs is checked again.
    fn reads_command(&self, plugin: &str, call: &ToolCall) -> bool {
        let arguments = serde_json::from_str(&call.arguments).unwrap_or(serde_json::Value::Null);
        let line = arguments["command"].as_str().and_then(|line| Line::read(line).ok());
        line.is_some_and(|line| self.rules.reads_line(plugin, &line))
    }

    /// Checks whether a plugin may run a program.
    pub(super) async fn program(&self, plugin: &Identity, run: &Run, attended: bool) -> Result<(), Refused> {
        let (line, patterns) = (command::of(run), self.patterns(plugin));
        let is_whole = line.as_ref().is_ok_and(|line| command::is_all_of_it(line, run));
        let right = |of: String| Right { plugin: plugin.clone(), what: format!("process:{}", run.program), of };
        let commands = Commands { line: &line, is_whole, approved: &patterns };
        let verdict = self.rules.verdict(&right(String::new()), Some(&commands));
        // A rule about commands asks about this one, so the answer is about no other.
        let is_exact = code::runs_its_arguments(run) || matches!(verdict, Verdict::MustAsk { of_command: true, .. });
        let file = match &run.pin {
            // Plugins may change this file.
            Some(hash) => format!("{} with the hash {hash}", run.real.display()),
            None => run.real.display().to_string(),
        };
        let right = right(if is_exact { format!("{file} {}", code::exactly(run)) } else { file });
        let further = [variables(&right, run), unconfined(&right, run)];
        let rights: Vec<(Right, Verdict)> =
            further.into_iter().flatten().map(|right| self.judged(right)).chain([(right, verdict)]).rev().collect();
        if let Some((_, Verdict::Denied(entry))) = rights.iter().find(|(_, verdict)| is_denied(verdict)) {
            let mut refused = Self::refused(entry, &run.program, "was not run");
            if line.is_ok_and(|line| !line.is_plain) {
                refused.text.push_str(
                    " If the command means something else, write the names of programs out: without variables, and each \
                     command by itself.",
                );
            }
            return Err(refused);
        }
        let asked = rights.iter().find_map(|(_, verdict)| verdict.must_ask()).map(|(why, _)| why.to_owned());
        let mode = if attended { self.mode.get() } else { Mode::Ask };
        let only_reads = || {
            // In this mode nothing reads the output of a background program, and nothing ends it.
            let reads = |line: &Line| !run.background && is_whole && self.rules.reads_line(&plugin.name, line);
            self.rules.reads(&rights[0].0) || line.as_ref().is_ok_and(reads)
        };
        if mode == Mode::Plan && !only_reads() {
            return Err(planned(&run.program, "was not run"));
        }
        // Keys of the user could leave the sandbox over the network.
        let is_covered = matches!(run.confinement, Confinement::Confined(_)) && run.inherited.is_empty();
        if mode == Mode::Auto && is_covered && asked.is_none() {
            return Ok(());
        }
        // A pattern allows neither variables nor a run without a sandbox.
        let may_be_pattern = is_whole && asked.is_none() && rights.len() == 1 && !plugin.digest.is_empty();
        let pattern = line.as_ref().ok().filter(|_| may_be_pattern).and_then(pattern::safe);
        let question = Question {
            plugin: plugin.name.clone(),
            version: plugin.version.clone(),
            subject: Subject::Program(Box::new(ProgramRun {
                pattern: pattern.map(|pattern| pattern.to_string()),
                rule: asked,
                exact: is_exact,
                ..super::question::program_run(run)
            })),
        };
        self.pass(question, rights, attended).await
    }

    /// A right with what the rules say about it.
    fn judged(&self, right: Right) -> (Right, Verdict) {
        let verdict = self.rules.verdict(&right, None);
        (right, verdict)
    }

    /// The patterns of commands that the user approved for a plugin.
    fn patterns(&self, plugin: &Identity) -> Vec<Pattern> {
        let kept = self.kept.commands(plugin).unwrap_or_default();
        let for_session = self.for_session.lock().unwrap_or_else(PoisonError::into_inner);
        let of_session = for_session.iter().filter(|right| right.plugin == *plugin);
        let of_session = of_session.filter_map(|right| right.what.strip_prefix(COMMAND)).map(str::to_owned);
        kept.into_iter().chain(of_session).filter_map(|pattern| pattern.parse().ok()).collect()
    }

    /// Whether the user can be asked.
    pub(crate) fn can_ask(&self) -> bool {
        self.can_ask
    }

    /// Checks whether an MCP server may ask a model of the user. The budget in its section is the user's word for sessions without a
    /// user, and for all modes but `ask`.
    pub(crate) async fn sampling(&self, server: &str, request: SamplingRequest) -> Result<(), Refused> {
        let own = self.identity(server);
        let right = Right { plugin: own.clone(), what: SAMPLING.to_owned(), of: String::new() };
        let verdict = self.rules.verdict(&right, None);
        if let Verdict::Denied(entry) = &verdict {
            return Err(Self::refused(entry, SAMPLING, "was not carried out"));
        }
        let rule = verdict.must_ask().map(|(why, _)| why.to_owned());
        if rule.is_none() && (self.mode.get() != Mode::Ask || !self.can_ask) {
            return Ok(());
        }
        let subject = Subject::Sampling(Box::new(SamplingRequest { rule, ..request }));
        self.pass(Question { plugin: own.name, version: own.version, subject }, vec![(right, verdict)], true).await
    }

    /// Asks the user a question of the model, or of an MCP server; `None` if nobody can answer.
    pub(crate) async fn clarify(
        &self,
        server: Option<&str>,
        question: String,
        choices: Vec<String>,
        takes_values: bool,
    ) -> Option<String> {
        if !self.can_ask {
            return None;
        }
        self.running.alone().await;
        let _one_at_a_time = self.questions.turn().await;
        let _asking = self.running.asks();
        self.questions.text_of(server, question, choices, true, takes_values).await
    }

    /// Asks the user a question of Hermes itself, with a choice as the answer; `None` if nobody can answer.
    pub(crate) async fn choice(&self, question: String, choices: Vec<String>) -> Option<String> {
        if !self.can_ask {
            return None;
        }
        self.running.alone().await;
        let _one_at_a_time = self.questions.turn().await;
        let _asking = self.running.asks();
        self.questions.choice(question, choices).await
    }

    /// The calls that run at the moment.
    pub(crate) fn running(&self) -> &RunningCalls {
        &self.running
    }

    /// The rules for changes of files in this session.
    pub(crate) fn files(&self) -> &Guard {
        &self.files
    }

    /// Checks whether a plugin may make a change of a file that needs approval.
    pub(super) async fn file(&self, plugin: &Identity, change: &Change, attended: bool) -> Result<(), Refused> {
        let right = |concern: &Concern| {
            let (of, pattern) = match concern {
                Concern::Listed { path, pattern, .. } => (path.display().to_string(), pattern.as_str()),
                Concern::Unread { path, .. } => (path.display().to_string(), UNREAD),
                Concern::Edit { .. } => (String::new(), EDIT),
            };
            Right { plugin: plugin.clone(), what: format!("files:{pattern}"), of }
        };
        let rights: Vec<(Right, Verdict)> = change.concerns.iter().map(|concern| self.judged(right(concern))).collect();
        let name = change.path.display().to_string();
        if let Some((_, Verdict::Denied(entry))) = rights.iter().find(|(_, verdict)| is_denied(verdict)) {
            return Err(Self::refused(entry, &name, "was not changed"));
        }
        let mode = if attended { self.mode.get() } else { Mode::AcceptEdits };
        if mode == Mode::Plan {
            return Err(planned(&name, "was not changed"));
        }
        let rule = rights.iter().find_map(|(_, verdict)| verdict.must_ask()).map(|(why, _)| why.to_owned());
        let is_ordinary = change.concerns.iter().all(|concern| matches!(concern, Concern::Edit { .. }));
        // Without a user to ask, `ask` lets ordinary changes pass: nothing could be changed otherwise.
        let asks = rule.is_some() || (mode == Mode::Ask && self.can_ask);
        if is_ordinary && !asks {
            return Ok(());
        }
        let question = Question {
            plugin: plugin.name.clone(),
            version: plugin.version.clone(),
            subject: Subject::File(Box::new({
                let mut shown = super::question::file_change(change);
                shown.because.extend(rule);
                shown
            })),
        };
        let passed = self.pass(question, rights, attended).await;
        passed.map_err(|mut refused| {
            let only_unread = change.concerns.iter().all(|concern| matches!(concern, Concern::Unread { .. }));
            if let (true, Some(Concern::Unread { path, .. })) = (only_unread, change.concerns.first())
                && refused.by == Refusal::Unattended
            {
                let entry = change.path.display();
                refused.text = match *path == change.path {
                    true => format!(
                        "{entry} was not changed, because this session has not read what it contains now. Read the file, \
                         and then change it."
                    ),
                    false => format!(
                        "{entry} was not moved, because this session has not read what {} contains now. Read the files in \
                         the folder, and then move it.",
                        path.display()
                    ),
                };
            }
            refused
        })
    }

    /// Asks whether the model may change a skill of the user. `note` says more about the change.
    pub(crate) async fn skill(&self, change: &Change, note: Option<String>) -> Result<(), Refused> {
        let (plugin, path) = (self.identity(HOST), change.path.display().to_string());
        if self.mode.get() == Mode::Plan {
            let refused = planned(&path, "was not changed");
            self.record.refused(refused.by, &refused.text);
            return Err(refused);
        }
        let right = Right { plugin: plugin.clone(), what: format!("files:{SKILLS}"), of: path };
        let why = "a skill instructs the model in this session and in later ones".to_owned();
        let shown = FileChange {
            because: note.into_iter().chain([why]).collect(),
            is_ordinary: false,
            ..super::question::file_change(change)
        };
        let question =
            Question { plugin: plugin.name, version: plugin.version, subject: Subject::File(Box::new(shown)) };
        let passed = self.pass(question, vec![self.judged(right)], true).await;
        passed.inspect_err(|refused| self.record.refused(refused.by, &refused.text))
    }

    /// Lets an action pass if every right is there, or the user gives the missing ones. `rights` have the verdict of the rules, which
    /// nothing here overrides.
    async fn pass(&self, question: Question, rights: Vec<(Right, Verdict)>, attended: bool) -> Result<(), Refused> {
        if let Some((_, Verdict::Denied(entry))) = rights.iter().find(|(_, verdict)| is_denied(verdict)) {
            return Err(Self::refused(entry, question.subject.name(), question.subject.undone()));
        }
        let missing = |rights: Vec<(Right, Verdict)>| -> Vec<(Right, Verdict)> {
            rights.into_iter().filter(|(right, verdict)| !self.has(right, verdict)).collect()
        };
        let rights = missing(rights);
        if rights.is_empty() {
            return Ok(());
        }
        if !self.can_ask || !attended {
            return Err(self.unattended(&question, &rights));
        }
        // First, because a call that holds the lock would wait for another that waits for the lock.
        self.running.alone().await;
        let _one_at_a_time = self.questions.turn().await;
        // The answer to the previous question may cover this one too.
        let rights = missing(rights);
        if rights.is_empty() {
            return Ok(());
        }
        let asking = self.running.asks();
        let answer = self.questions.approval(question.clone()).await;
        drop(asking);
        if answer.is_none() {
            return Err(self.unattended(&question, &rights));
        }
        let rights: Vec<Right> = rights.into_iter().map(|(right, _)| right).collect();
        let lasting = match answer {
            Some((Decision::Deny, instead)) => {
                let (name, undone) = (question.subject.name(), question.subject.undone());
                let text = match instead {
                    Some(instead) => format!("`{name}` {undone}: the user refused it, and answers:\n{instead}"),
                    None => format!("`{name}` {undone}: the user refused it. {NO_OTHER_WAY}"),
                };
                return Err(Refused { by: Refusal::User, text });
            }
            None | Some((Decision::Once, _)) => return Ok(()),
            Some((Decision::Session, _)) => {
                self.remember(rights);
                return Ok(());
            }
            Some((Decision::Always, _)) => rights,
            Some((Decision::Pattern, _)) => match &question.subject {
                Subject::Program(run) if run.pattern.is_some() => {
                    let what = format!("{COMMAND}{}", run.pattern.clone().unwrap_or_default());
                    rights
                        .into_iter()
                        .take(1)
                        .map(|right| Right { what: what.clone(), of: String::new(), ..right })
                        .collect()
                }
                // The question offered none.
                _ => return Ok(()),
            },
        };
        if let Err(error) = self.kept.add(&lasting) {
            let text = format!("the approval is valid for this session only: {error}");
            self.notices.notice(Notice::new(text, error.parts().2));
        }
        self.remember(lasting);
        Ok(())
    }

    /// Replaces the identities of plugins with those of their new generations. Approvals of the old generations do not
    /// apply to the new ones.
    pub(crate) fn renew(&self, newer: impl IntoIterator<Item = Identity>) {
        self.identities.lock().unwrap_or_else(PoisonError::into_inner).extend(by_name(newer));
    }

    /// Lets the mode `auto` cover these MCP servers, which can do no more than a confined program.
    pub(crate) fn cover(&self, servers: HashSet<String>) {
        *self.covered.lock().unwrap_or_else(PoisonError::into_inner) = servers;
    }

    fn is_covered(&self, owner: &Identity) -> bool {
        self.mode.get() == Mode::Auto
            && owner.version == SERVER_VERSION
            && self.covered.lock().unwrap_or_else(PoisonError::into_inner).contains(&owner.name)
    }

    fn identity(&self, plugin: &str) -> Identity {
        let identities = self.identities.lock().unwrap_or_else(PoisonError::into_inner);
        identities.get(plugin).cloned().unwrap_or_else(|| Identity {
            name: plugin.to_owned(),
            version: String::new(),
            digest: String::new(),
            is_bundled: false,
        })
    }

    /// Whether a right is there: by a rule, unless the rules demand a question, or by an answer to the same question.
    fn has(&self, right: &Right, verdict: &Verdict) -> bool {
        match verdict {
            Verdict::Denied(_) => return false,
            Verdict::Allowed => return true,
            Verdict::MustAsk { .. } | Verdict::Open => {}
        }
        if self.for_session.lock().unwrap_or_else(PoisonError::into_inner).contains(right) {
            return true;
        }
        self.kept.has(right).unwrap_or_else(|error| {
            let text = format!("permanent approvals cannot be read, so Hermes asks again: {error}");
            self.notices.notice(Notice::new(text, error.parts().2));
            false
        })
    }

    fn remember(&self, rights: Vec<Right>) {
        self.for_session.lock().unwrap_or_else(PoisonError::into_inner).extend(rights);
    }

    fn refused(entry: &str, name: &str, undone: &str) -> Refused {
        let text = format!("`{name}` {undone}: `approvals.deny` has `{entry}`. {NO_OTHER_WAY}");
        Refused { by: Refusal::Configuration, text }
    }

    fn unattended(&self, question: &Question, rights: &[(Right, Verdict)]) -> Refused {
        let (name, undone) = (question.subject.name(), question.subject.undone());
        let deed = match question.subject {
            Subject::File(_) => "change",
            Subject::Tool { .. } | Subject::Program(_) => "run",
            Subject::Sampling(_) => "ask a model, which rules call",
        };
        if let Some((why, of_command)) = rights.iter().find_map(|(_, verdict)| verdict.must_ask()) {
            self.notices.notice(format!(
                "{} was not allowed to {deed} `{name}`: {why}, so it needs your approval whatever else allows it, and this session \
                 cannot ask for approval; start a chat on a terminal to be asked, or change the rule in config.yaml",
                question.owner()
            ));
            let otherwise = match of_command {
                true => {
                    " If the command only does what is allowed, write it without variables, aliases and input for a shell, each \
                     program by its name."
                }
                false => "",
            };
            let text = format!(
                "`{name}` {undone}: it needs the user's approval, because {why}, and this session cannot ask for approval.{otherwise} \
                 {NO_OTHER_WAY}"
            );
            return Refused { by: Refusal::Unattended, text };
        }
        // The entry covers more than this command.
        let allowed = match &question.subject {
            Subject::Program(run) if run.exact => "every command of it",
            _ => "it",
        };
        let entries: Vec<String> = rights.iter().map(|(right, _)| right.entry()).collect();
        let entries = entries.join(", ");
        let unconfined = match &question.subject {
            Subject::Program(run) => run.unconfined.as_ref(),
            _ => None,
        };
        let further = unconfined.map_or_else(String::new, |why| {
            format!(
                " (`unconfined`, because this machine offers no sandbox: {why}; with `sandbox.mode: off`, rules count without it)"
            )
        });
        self.notices.notice(format!(
            "{} was not allowed to {deed} `{name}`: it needs approval, and this session cannot ask for approval; \
             `approvals.allow: [{entries}]` in config.yaml allows {allowed}{further}",
            question.owner()
        ));
        let text = format!(
            "`{name}` {undone}: it needs the user's approval, and this session cannot ask for approval. The user can \
             allow {allowed} with `approvals.allow: [{entries}]` in config.yaml{further}, or in a chat on a terminal. {NO_OTHER_WAY}"
        );
        Refused { by: Refusal::Unattended, text }
    }
}

/// The gate for the programs and the changes of one plugin.
pub(crate) struct PluginGate {
    pub(crate) gate: Arc<Gate>,
    pub(crate) plugin: Identity,
}

#[async_trait]
impl Approval for PluginGate {
    async fn process(&self, run: &Run, attended: bool) -> Result<(), Fault> {
        let passed = self.gate.program(&self.plugin, run, attended).await;
        passed.map_err(|refused| self.gate.fault(refused))
    }

    async fn file(&self, change: &Change, attended: bool) -> Result<(), Fault> {
        let passed = self.gate.file(&self.plugin, change, attended).await;
        passed.map_err(|refused| self.gate.fault(refused))
    }
}
