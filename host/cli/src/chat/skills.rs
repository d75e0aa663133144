//! Skills as commands of the chat.

use hermes_app::{InapplicableSkill, OfferedSkill};
use hermes_protocol::Command;

use super::Chat;
use crate::console::Tone;
use crate::skill_commands::{self, Wanted};
use crate::text;

impl Chat {
    /// Calls the skill that a text names. Returns whether the text is settled.
    pub(super) async fn use_skill(&mut self, text: &str) -> bool {
        let Some(wanted) = Wanted::parse(text) else { return false };
        let skills = match self.front.session().skills().await {
            Ok(skills) => skills,
            Err(problem) if wanted.is_skill => {
                self.fail(&problem.into());
                return true;
            }
            Err(_) => return false,
        };
        match wanted.find(&skills.offered) {
            Some(skill) => {
                self.say(Command::UseSkill { skill: skill.name.clone(), text: text.to_owned() }, text).await;
            }
            None => match wanted.find_inapplicable(&skills.inapplicable) {
                Some(InapplicableSkill { name, why, fix, .. }) => {
                    let line = format!("the skill {name} does not apply here: {why}; {fix}");
                    self.console.warning(&text::line(&line));
                }
                None if wanted.is_skill => {
                    let name = text::line(wanted.name);
                    self.console.warning(&format!("there is no skill {name} in this session (/help lists the skills)"));
                }
                None => return false,
            },
        }
        true
    }

    /// Shows the skills that the user can call.
    pub(super) async fn list_skills(&mut self) {
        let Ok(skills) = self.front.session().skills().await else { return };
        for (command, about) in skill_commands::commands(&skills.offered) {
            self.screen.line(Tone::Plain, &format!("{:<16} {}", text::line(&command), text::line(&about)));
        }
        self.tell_clash(&skills.offered);
    }

    /// Offers the skills where commands are completed. The prompt does not wait for them.
    pub(super) fn offer_skills(&mut self) {
        if !self.at_terminal {
            return;
        }
        let completion = self.completion.clone();
        let (session, console) = (self.front.session().clone(), self.console);
        // A line in the middle of the input would tear it, so a terminal that is not drawn says it with /help.
        let tells = self.live.is_some() && !std::mem::replace(&mut self.knows_clash, true);
        tokio::spawn(async move {
            // Without them, the menu has the commands of the chat.
            let Ok(skills) = session.skills().await else { return };
            completion.offer_skills(skill_commands::commands(&skills.offered));
            if let Some(line) = skill_commands::clash(&skills.offered).filter(|_| tells) {
                console.note(&line);
            }
        });
    }

    /// Says once which skills have the name of a command.
    fn tell_clash(&mut self, skills: &[OfferedSkill]) {
        if !self.knows_clash
            && let Some(line) = skill_commands::clash(skills)
        {
            self.knows_clash = true;
            self.screen.line(Tone::Faint, &line);
        }
    }
}
