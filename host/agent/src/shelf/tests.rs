use super::search::Found;
use super::*;

fn tool(owner: &str, name: &str, description: &str) -> Owned {
    let parameters = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
    let name = hermes_mcp::tool_name(owner, name);
    (owner.to_owned(), ToolSchema { name, description: description.to_owned(), parameters: parameters.to_string() })
}

fn tools(owner: &str, count: usize) -> Vec<Owned> {
    (0..count)
        .map(|number| tool(owner, &format!("tool_{number:03}"), &format!("Does the thing number {number}.")))
        .collect()
}

fn total(schemas: &[Owned]) -> u32 {
    schemas.iter().map(|(_, schema)| size(schema)).sum()
}

const NONE: fn(&str, &str) -> bool = |_, _| false;

#[test]
fn everything_stays_while_it_has_room() {
    let all = tools("a", 100);
    let enough = Room { tokens: total(&all), tools: Some(100) };
    assert_eq!(Shelf::choose(&all, enough, NONE, &[]), None);
    let fewer_tokens = Room { tokens: total(&all) - 1, ..enough };
    assert_eq!(Shelf::choose(&all, fewer_tokens, NONE, &[]).map(|shelf| shelf.len()), Some(100));
    let fewer_tools = Room { tools: Some(99), ..enough };
    assert_eq!(Shelf::choose(&all, fewer_tools, NONE, &[]).map(|shelf| shelf.len()), Some(100));
    // Without a tool that may be moved, there is no shelf.
    assert_eq!(Shelf::choose(&all, Room { tokens: 0, tools: Some(1) }, |_, _| true, &[]), None);
}

#[test]
fn what_was_used_most_stays_in_half_of_the_room_and_never_above_the_limit_of_the_provider() {
    let all = tools("a", 200);
    let used: Vec<String> = all.iter().rev().map(|(_, schema)| schema.name.clone()).collect();
    let kept = |room| {
        let shelf = Shelf::choose(&all, room, NONE, &used).expect("there is a shelf");
        let kept: Vec<Owned> = all.iter().filter(|(_, schema)| !shelf.has(&schema.name)).cloned().collect();
        kept
    };
    let room = Room { tokens: total(&all) / 2, tools: None };
    let stays = kept(room);
    assert!(total(&stays) <= room.tokens / 2 && total(&stays) > room.tokens / 3, "{}", total(&stays));
    // The tools that were used most stay.
    assert_eq!(stays.last(), all.last());
    assert_eq!(kept(Room { tools: Some(12), ..room }).len(), 10);
    assert_eq!(kept(Room { tools: Some(1), ..room }).len(), 0);
}

#[test]
fn the_prompt_names_the_tools_of_each_server_and_stays_the_same_for_the_same_tools() {
    let all = [tools("git-lab", 3), tools("sympy", 1), vec![tool("notes", "add", "Adds a note.")]].concat();
    let room = Room { tokens: 100, tools: None };
    let shelf = Shelf::choose(&all, room, |owner, _| owner == "notes", &[]).expect("a shelf");
    let [search, call] = shelf.schemas();
    assert_eq!((search.name.as_str(), call.name.as_str()), (SEARCH, USE));
    let lines: Vec<&str> = search.description.lines().skip(1).collect();
    assert_eq!(lines, ["- git-lab: tool_000, tool_001, tool_002", "- sympy: tool_000"]);
    let prompt = ToolNames { shown: [SEARCH, USE, "mcp_notes_add"].map(str::to_owned).into(), ..ToolNames::default() };
    let again = Shelf::beside(&prompt, &all, room);
    assert_eq!(again.map(|shelf| shelf.schemas()), Some([search, call]));
    let without = ToolNames { shown: ["mcp_notes_add".to_owned()].into(), ..ToolNames::default() };
    assert_eq!(Shelf::beside(&without, &all, room), None);
}

#[test]
fn a_prompt_with_deferred_tools_keeps_their_definitions_and_one_without_gets_none() {
    let all = tools("git", 3);
    let room = Room { tokens: 0, tools: None };
    let chosen = Shelf::choose(&all, room, NONE, &[]).expect("a shelf");
    assert_eq!(chosen.deferred(&all), []);
    let deferring = Shelf { is_deferred: true, ..chosen };
    let deferred = deferring.deferred(&all);
    assert_eq!(deferred.len(), 3);
    let list = hermes_models::deferred_json(&deferring.schemas(), &deferred);
    assert_eq!(Shelf::beside(&ToolNames::of(&list), &all, room), Some(deferring.clone()));
    // A tool that a server added later is found too, and called with `tool_use`.
    let more = [all.clone(), tools("notes", 1)].concat();
    let later = Shelf::beside(&ToolNames::of(&list), &more, room).expect("a shelf");
    assert!(later.has("mcp_notes_tool_000") && later.is_deferred);
    assert_ne!(
        deferring.schemas()[1].description,
        Shelf { is_deferred: false, ..deferring.clone() }.schemas()[1].description
    );
}

#[test]
fn definitions_that_no_request_has_room_for_are_not_deferred() {
    let mut all = tools("a", 9_000);
    let shelf = |all: &[Owned]| Shelf::choose(all, Room { tokens: 0, tools: None }, NONE, &[]).expect("a shelf");
    assert!(shelf(&all).can_be_deferred(&all));
    all[0].1.description = "x".repeat(MOST_DEFERRED_BYTES);
    assert!(!shelf(&all).can_be_deferred(&all));
    let many = tools("a", 9_001);
    assert!(!shelf(&many).can_be_deferred(&many));
}

#[test]
fn where_names_have_no_room_each_server_has_as_many_as_the_others() {
    let all = [tools("large", 600), tools("small", 2)].concat();
    let shelf = Shelf::choose(&all, Room { tokens: 0, tools: None }, NONE, &[]).expect("a shelf");
    let description = &shelf.schemas()[0].description;
    let lines: Vec<&str> = description.lines().skip(1).collect();
    assert!(lines[0].starts_with("- large: 600 tools, such as tool_000, tool_00"), "{}", lines[0]);
    assert!(lines[0].len() > LEAST_NAMES / 2 && description.len() < LEAST_NAMES + 400, "{}", lines[0].len());
    assert_eq!(lines[1], "- small: tool_000, tool_001");
}

#[test]
fn hundreds_of_servers_have_room_in_the_prompt() {
    let all: Vec<Owned> =
        (0..500).flat_map(|server| tools(&format!("a-server-with-a-long-name-{server}"), 3)).collect();
    let shelf = Shelf::choose(&all, Room { tokens: 0, tools: None }, NONE, &[]).expect("a shelf");
    let description = &shelf.schemas()[0].description;
    assert!(description.len() < LINES + 400 && description.ends_with("\n- and others"), "{}", description.len());
}

fn call(arguments: &Value) -> ToolCall {
    ToolCall { id: "1".to_owned(), name: USE.to_owned(), arguments: arguments.to_string() }
}

fn open(arguments: &Value) -> Result<ToolCall, String> {
    let (_, schema) = tool("notes", "add", "Adds a note.");
    opened(&call(arguments), |name| (name == schema.name).then_some(schema.parameters.as_str()), |call, _| call.clone())
}

#[test]
fn a_call_of_the_shelf_is_a_call_of_the_tool() {
    let right = json!({"name": "mcp_notes_add", "arguments": {"text": "milk"}});
    let expected =
        ToolCall { id: "1".to_owned(), name: "mcp_notes_add".to_owned(), arguments: r#"{"text":"milk"}"#.to_owned() };
    assert_eq!(open(&right), Ok(expected.clone()));
    // Some models encode the arguments.
    assert_eq!(open(&json!({"name": "mcp_notes_add", "arguments": r#"{"text":"milk"}"#})), Ok(expected));
}

#[test]
fn a_call_that_cannot_be_made_says_why() {
    for (arguments, why) in [
        (
            json!({"name": "mcp_notes_remove", "arguments": {}}),
            "there is no tool `mcp_notes_remove`; find its name with `tool_search`",
        ),
        (json!({"arguments": {}}), "`name` must be the name of a tool"),
        (json!({"name": "mcp_notes_add"}), "\"text\" is a required property; its parameters: {"),
        (json!({"name": "mcp_notes_add", "arguments": {"text": 5}}), "`/text`: 5 is not of type \"string\""),
        (json!({"name": "mcp_notes_add", "arguments": "milk"}), "`arguments` must be a JSON object"),
        (json!({"name": USE, "arguments": {}}), "there is no tool `tool_use`"),
    ] {
        let error = open(&arguments).expect_err("it cannot be made");
        assert!(error.contains(why), "{arguments}: {error}");
    }
}

#[test]
fn the_search_knows_names_words_and_arguments() {
    let mut all = tools("a", 60);
    all.push(tool("mail", "listMailMessages", "Reads a folder."));
    all.push(tool("math", "solve", "Finds the roots of an equation."));
    let mut deep = tool("web", "fetch", "Reads a page.");
    deep.1.parameters = json!({"properties": {"options": {"properties": {"headers": {"description": "Sent with the request, such as cookies."}}}}}).to_string();
    all.push(deep);
    for (query, expected) in [
        ("mcp_a_tool_042", "mcp_a_tool_042"),
        ("tool_007", "mcp_a_tool_007"),
        ("list my mails", "mcp_mail_listMailMessages"),
        ("solving equations", "mcp_math_solve"),
        ("send a cookie", "mcp_web_fetch"),
    ] {
        let Found { text: answer, shown } = find(query, None, &all);
        assert_eq!(shown.first().map(String::as_str), Some(expected));
        assert!(answer.starts_with(&format!("## {expected}\n")), "{query}: {answer}");
        assert!(answer.contains("parameters: {") && answer.ends_with("Call one with `tool_use`."), "{answer}");
    }
    let nothing = find("thing", Some("math"), &all);
    assert!(nothing.text.starts_with("No tool has any of these words") && nothing.shown.is_empty());
    assert!(
        find("solve", Some("maths"), &all)
            .text
            .starts_with("`maths` has no tools here. These have some: a, mail, math, web.")
    );
    assert!(
        find("the thing number", None, &all)
            .text
            .contains("Less likely (search for the name to see the parameters): mcp_a_")
    );
}

#[test]
fn an_answer_is_bounded_and_shows_the_best_tool_whatever_its_size() {
    let mut all = tools("a", 20);
    for (_, tool) in &mut all {
        tool.parameters = json!({"properties": {"thing": {"description": "x".repeat(20_000)}}}).to_string();
        tool.description = "thing ".repeat(2_000);
    }
    let answer = find("thing", None, &all).text;
    assert!(answer.len() < 48 << 10 && answer.contains("…\nparameters: {"), "{}", answer.len());
}
