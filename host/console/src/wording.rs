//! Words remedies as commands and options of this program.

use hermes_diagnostic::{Action, Fix, Notice};

/// The remedy in words, with commands in place of actions.
pub fn fix(fix: &Fix) -> String {
    fix.worded(action)
}

/// A notice in one line.
pub fn notice(notice: &Notice) -> String {
    with_fix(&notice.text, &notice.fix)
}

/// A text and its remedy in one line.
pub fn with_fix(text: &str, remedy: &Fix) -> String {
    if remedy.is_empty() { text.to_owned() } else { format!("{text}; {}", fix(remedy)) }
}

fn action(action: &Action) -> String {
    match action {
        Action::Diagnose => "run `hermes doctor` to see what is wrong".to_owned(),
        Action::ShowConfiguration => "see `hermes config show`".to_owned(),
        Action::CorrectSetting => "correct it; `hermes config schema` describes all keys".to_owned(),
        Action::CorrectKey => "correct or remove it; `hermes config schema` describes all keys".to_owned(),
        Action::ListPlugins => {
            "check the name; `hermes plugins list` shows all plugins, also those that are part of Hermes".to_owned()
        }
        Action::VerifyPlugins => "check the installed plugins with `hermes plugins verify`".to_owned(),
        Action::ShowPlugin { plugin } => format!("see `hermes plugins info {plugin}`"),
        Action::ReadPluginLog { plugin } => format!("see `hermes plugins logs {plugin}`"),
        Action::InstallPlugin => "install one with `hermes plugins install SOURCE`".to_owned(),
        Action::RestorePinned => "restore it with `hermes plugins install --locked`".to_owned(),
        Action::UpdatePlugin { plugin } => format!("update it with `hermes plugins update {plugin}`"),
        Action::RemovePlugin { plugin } => format!("remove it with `hermes plugins remove {plugin}`"),
        Action::GrantPlugin { plugin } => {
            format!("review its permissions and grant them with `hermes plugins grant {plugin}`")
        }
        Action::GrantNative { plugin } => {
            format!("if you trust its author, grant it with `hermes plugins grant {plugin} --native`")
        }
        Action::EnablePlugin { plugin } => format!("enable it with `hermes plugins enable {plugin}`"),
        Action::DisablePlugin { plugin } => format!("disable it with `hermes plugins disable {plugin}`"),
        Action::AllowUnencrypted => "add --insecure for a server that you trust".to_owned(),
        Action::StatePublisherKey => "give the publisher's key with --key".to_owned(),
        Action::AcceptPublisherKey => "add --accept-key if you know why the key changed".to_owned(),
        Action::ReplaceInstalled => {
            "add --replace to install it from the new source, with new permissions and without the data; if the plugin has \
             moved, tell Hermes first with `hermes plugins adopt NAME SOURCE`"
                .to_owned()
        }
        Action::ChooseNative => "add --native if you trust its author".to_owned(),
        Action::AllowDrafts => "add --allow-draft if you accept that the plugin may stop working".to_owned(),
        Action::ChooseComponent => "remove --native to run its component".to_owned(),
        Action::ListSessions => "choose a session of `hermes sessions list`".to_owned(),
        Action::ResumeListed => "resume a session of `hermes sessions list` with `--resume ID`".to_owned(),
        Action::ShowSession { session } => {
            format!("`hermes sessions show {session}` shows the numbers of its messages")
        }
        Action::BranchSession => "continue in a copy with `--branch`".to_owned(),
        Action::DeleteWithChildren => "add --with-children to delete all of them".to_owned(),
        Action::CheckStore => "run `hermes sessions check` to see what is wrong".to_owned(),
        Action::RepairStore => "run `hermes sessions repair`, which makes a backup first".to_owned(),
        Action::SetUpModel => "run `hermes setup`, which asks for a provider, its key and a model".to_owned(),
        Action::ChooseProvider => "choose a provider with --provider or model.provider".to_owned(),
        Action::ChooseModel => "choose a model with --model or model.default".to_owned(),
        Action::ChooseAnotherProvider => "choose another provider with --provider or model.provider".to_owned(),
        Action::ChooseAnotherModel => "choose another model with --model or model.default".to_owned(),
        Action::ChooseAddress => "set --base-url or model.base_url".to_owned(),
        Action::Compress => "try again with `/compress`".to_owned(),
        Action::RebuildPrompt { session } => format!("update it with `hermes prompt --rebuild {session}`"),
        Action::LogIn { login } => format!("log in with `hermes login {login}`"),
        Action::ListLogins => "`hermes login --list` shows all logins".to_owned(),
        Action::RemoveLogin { login } => {
            format!("remove it from this machine only with `hermes logout {login} --local`")
        }
        Action::ChooseEngine => "choose another engine with --engine or context.engine".to_owned(),
    }
}
