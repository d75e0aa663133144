//! Skills in use: as commands of the user, within their conditions, with their configuration.

use hermes_tests::oracle::{assert_extends, assert_valid_request};
use hermes_tests::{Call, Home, Reply, Server};
use serde_json::json;

const BREW: &str = "---\nname: brew\ndescription: Brews tea.\n---\nUse $1 leaves. Run ${HERMES_SKILL_DIR}/pour.sh for \
    $ARGUMENTS.\n";

fn answering() -> Server {
    Server::answering(|_, _| Reply::text("Done."))
}

#[test]
fn a_skill_is_a_command_and_the_conversation_has_the_users_own_words() {
    let server = answering();
    let home = Home::with(&server);
    home.write("skills/brew/SKILL.md", BREW);
    home.write("skills/brew/pour.sh", "echo tea\n");
    home.write("skills/model/SKILL.md", "---\nname: model\ndescription: Builds models.\n---\nGlue it.\n");
    let typed = "/brew 'green tea' now\n/brewery\n/skill:nothing x\n/skill:model\n/help\n";
    let output = home.hermes(&[]).stdin(typed).run().success();
    let output = output.says(&["unknown command /brewery", "there is no skill nothing in this session"]);
    assert!(output.stdout.contains("/skill:model     Builds models."), "{output}");
    let turns = server.turns();
    assert_eq!(turns.len(), 2, "only two lines are messages");
    for turn in &turns {
        assert_valid_request(&turn.body);
    }
    let folder = home.path().join("skills/brew").canonicalize().unwrap().display().to_string();
    let sent = turns[0].last_user_text();
    assert!(
        sent.starts_with("/brew 'green tea' now\n\n<loaded-skill name=\"brew\">\n[The user called this skill"),
        "{sent}"
    );
    assert!(sent.contains(&format!("Use green tea leaves. Run {folder}/pour.sh for 'green tea' now.")), "{sent}");
    assert!(sent.ends_with("Files of this skill, for `path`: pour.sh\n</loaded-skill>"), "{sent}");
    assert!(turns[1].last_user_text().contains("Glue it."), "{}", turns[1].last_user_text());

    let messages = home.messages();
    assert_eq!(
        (&messages[0]["content"], &messages[2]["content"]),
        (&json!("/brew 'green tea' now"), &json!("/skill:model"))
    );
    let shown = home.hermes(&["sessions", "show", &home.newest_session()]).run().success();
    assert!(shown.stdout.contains("/brew 'green tea' now") && !shown.stdout.contains("Glue it."), "{shown}");
    home.hermes(&["--continue", "-z", "And now?"]).run().success();
    assert_extends(&turns[1].body, &server.last_turn().body);
}

#[test]
fn a_single_message_is_sent_as_it_is() {
    let server = answering();
    let home = Home::with(&server);
    home.write("skills/brew/SKILL.md", BREW);
    home.hermes(&["-z", "/brew green"]).run().success();
    assert_eq!(server.last_turn().last_user_text(), "/brew green");
}

#[cfg(target_os = "linux")]
#[test]
fn the_menu_offers_skills_with_their_descriptions_and_a_clash_is_said_once() {
    let server = answering();
    let home = Home::with(&server);
    home.write("skills/brew/SKILL.md", BREW);
    home.write("skills/new/SKILL.md", "---\nname: new\ndescription: Makes new things.\n---\nBe bold.\n");
    let mut terminal = home.hermes(&[]).at_drawn_terminal(80, 24);
    let shows = |rows: &[String], text: &str| rows.iter().any(|row| row.contains(text));
    terminal.wait_until(|rows| shows(rows, "the skill `new` has the name of a command: `/skill:new` calls the skill"));
    terminal.press("/br");
    terminal.wait_until(|rows| shows(rows, "/brew") && shows(rows, "Brews tea."));
    terminal.press("ew green\r");
    let rows = terminal.wait_until(|rows| shows(rows, "Done."));
    assert!(shows(&rows, "> /brew green") && !shows(&rows, "Use green leaves"), "{rows:#?}");
    terminal.press("/exit\r");
    assert!(terminal.wait().success(), "{}", terminal.shown());
    assert_eq!(terminal.shown().matches("has the name of a command").count(), 1, "{}", terminal.shown());
    assert!(server.last_turn().last_user_text().contains("Use green leaves."));

    let mut again = home.hermes(&["--continue"]).at_drawn_terminal(80, 24);
    let rows = again.wait_until(|rows| shows(rows, "> /brew green"));
    assert!(!shows(&rows, "Use green leaves"), "{rows:#?}");
    again.press("/exit\r");
    assert!(again.wait().success());
}

#[test]
fn a_skill_that_does_not_apply_is_offered_neither_to_the_model_nor_as_a_command() {
    let view = |name: &str| Reply::calls([Call::new("call_1", "skill_view", &json!({ "name": name }))]);
    let server = Server::scripted([view("needs-tool"), Reply::text("No.")]);
    let home = Home::with(&server);
    let skill = |name: &str, front: &str| {
        let text = format!("---\nname: {name}\ndescription: About {name}.\n{front}---\nText of {name}.\n");
        home.write(&format!("skills/{name}/SKILL.md"), text);
    };
    skill("applies", "metadata: {hermes: {requires_tools: [read_file, clarify], requires_toolsets: [file]}}\n");
    skill("elsewhere", "platforms: [plan9]\n");
    skill("needs-tool", "metadata: {hermes: {requires_tools: [browser_click]}}\n");
    skill("needs-toolset", "metadata: {hermes: {requires_toolsets: [browser]}}\n");
    skill("replaces-tool", "metadata: {hermes: {fallback_for_tools: [read_file]}}\n");
    skill("replaces-toolset", "metadata: {hermes: {fallback_for_toolsets: [file]}}\n");
    let typed = "Go.\n/needs-tool\n/skill:elsewhere\n/help\n";
    let output = home.hermes(&[]).stdin(typed).run().success();
    let output = output.says(&["unknown command /needs-tool", "there is no skill elsewhere"]);
    assert!(output.stdout.contains("/applies") && !output.stdout.contains("/replaces-tool"), "{output}");
    let prompt = server.turns()[0].system_text();
    assert!(prompt.contains("About applies."), "{prompt}");
    for name in ["elsewhere", "needs-tool", "needs-toolset", "replaces-tool", "replaces-toolset"] {
        assert!(!prompt.contains(name), "{name} in {prompt}");
    }
    let refused = server.last_turn().trailing_results()[0].1.to_owned();
    assert!(refused.contains("does not apply here: it needs the tool `browser_click`"), "{refused}");
}

#[test]
fn the_configuration_is_added_to_the_text_and_no_value_of_a_variable_is() {
    let view = Reply::calls([Call::new("call_1", "skill_view", &json!({ "name": "wiki" }))]);
    let server = Server::scripted([view, Reply::text("Done."), Reply::text("Done.")]);
    let home = Home::with(&server);
    let front = "prerequisites: {commands: [no-such-program]}\nrequired_environment_variables:\n  - {name: WIKI_KEY, \
        prompt: The key of the wiki, help: See its settings.}\n  - name: WIKI_TOKEN\nmetadata:\n  hermes:\n    config:\n      \
        - {key: wiki.path, description: Where it lies, default: ~/wiki}\n      - {key: wiki.language, default: en}\n";
    home.write("skills/wiki/SKILL.md", format!("---\nname: wiki\ndescription: Writes pages.\n{front}---\nWrite.\n"));
    home.write(".env", "WIKI_TOKEN=swordfish\n");
    home.hermes(&["config", "set", "skills.config.wiki.language", "fr"]).run().success();
    home.hermes(&["-z", "Go."]).run().success();
    let text = server.last_turn().trailing_results()[0].1.to_owned();
    let expected = [
        "[Skill configuration, from `skills.config` in config.yaml:\nwiki.path = ~/wiki\nwiki.language = fr\n]",
        "[Setup needed: the variable WIKI_KEY is not set (The key of the wiki: See its settings); the program \
         `no-such-program` is not installed.",
    ];
    for expected in expected {
        assert!(text.contains(expected), "`{expected}` is not in {text}");
    }
    home.hermes(&[]).stdin("/wiki about tea\n").run().success();
    let sent = server.last_turn().last_user_text().to_owned();
    assert!(expected.iter().all(|expected| sent.contains(expected)) && sent.contains("Arguments: about tea"), "{sent}");
    assert!(server.turns().iter().all(|turn| !turn.body.to_string().contains("swordfish")));
}
