//! Tool catalogs that offer what no provider takes, what another plugin has, and more than anyone needs. One bad tool costs
//! the plugin that tool, and the session goes on with all others.

use hermes_tests::oracle::assert_valid_request;
use hermes_tests::{Home, Reply, Server};
use hermes_zoo::{Offered, Shell};
use serde_json::json;

/// Tools beside a good one: a name, parameters, and whether the model gets the tool.
fn tools() -> Vec<(&'static str, String, String, bool)> {
    const OBJECT: &str = r#"{"type":"object"}"#;
    let named = |what, name: &str, is_offered| (what, name.to_owned(), OBJECT.to_owned(), is_offered);
    let with = |what, parameters: String| (what, "odd".to_owned(), parameters, false);
    vec![
        named("no name", "", false),
        named("a name with a blank", "read file", false),
        named("a name with a line feed", "a\nb", false),
        named("a name with an escape sequence", "a\u{1b}[2J", false),
        named("a name with a slash", "files/read_file", false),
        named("a name that climbs", "../read_file", false),
        named("a name with look-alike letters", "re\u{430}d_file", false),
        named("a name that reads backwards", "\u{202e}elif_daer", false),
        named("a name with an invisible letter", "read\u{200b}_file", false),
        named("a name of a thousand letters", &"a".repeat(1_000), false),
        named("the name of a bundled tool", "write_file", false),
        named("the name of a tool of the host", "skill_view", false),
        named("a property that every object has", "__proto__", true),
        named("a word of JSON", "null", true),
        with("parameters that are no JSON", "{\"type\":".to_owned()),
        with("parameters that are a list", "[]".to_owned()),
        with("parameters that are a text", "\"object\"".to_owned()),
        with("parameters that are nothing", String::new()),
        with("parameters that nest without end", format!("{}1{}", "{\"a\":".repeat(3_000), "}".repeat(3_000))),
        with("parameters behind others", format!("{OBJECT}{OBJECT}")),
    ]
}

#[test]
fn one_bad_tool_costs_the_plugin_that_tool_and_nothing_else() {
    for (what, name, parameters, is_offered) in tools() {
        let mut shell = Shell::with_tool("nop");
        let offered = [Offered::new(&name).parameters(&parameters), Offered::new("good")];
        let catalog = shell.memory().catalog(&offered);
        let component = shell.body("tools/catalog", &format!("(i32.const {catalog})")).build();
        let server = Server::answering(|_, _| Reply::text("Fine."));
        let home = Home::with(&server);
        home.write("plugins/beast/plugin.yaml", "name: beast\nversion: 0.1.0\ndescription: a beast\n");
        home.write("plugins/beast/beast.wasm", component);
        home.grant("beast");
        home.set("plugins.enabled", json!(["beast"]));
        let output = home.hermes(&["-z", "hello"]).run().success();
        assert_eq!(output.stdout, "Fine.\n", "{what}");
        let request = server.last_turn();
        assert_valid_request(&request.body);
        let names = request.tool_names();
        assert!(names.contains(&"good") && names.contains(&"read_file"), "{what}: {names:?}");
        let of_name = names.iter().filter(|offered| **offered == name).count();
        let expected = usize::from(is_offered || ["write_file", "skill_view"].contains(&name.as_str()));
        assert!(of_name <= 1 && (of_name == expected || name == "skill_view"), "{what}: {names:?}");
        if !is_offered {
            assert!(output.stderr.contains("beast"), "{what}: nothing is reported\n{output}");
        }
        assert!(!output.stderr.contains(['\u{1b}', '\u{202e}']), "{what}: {output}");
    }
}

#[test]
fn the_same_tool_many_times_is_offered_once() {
    let mut shell = Shell::with_tool("nop").pages(16, None);
    let offered: Vec<Offered> = (0..100).map(|_| Offered::new("good")).collect();
    let catalog = shell.memory().catalog(&offered);
    let component = shell.body("tools/catalog", &format!("(i32.const {catalog})")).build();
    let server = Server::answering(|_, _| Reply::text("Fine."));
    let home = Home::with(&server);
    home.write("plugins/beast/plugin.yaml", "name: beast\nversion: 0.1.0\ndescription: a beast\n");
    home.write("plugins/beast/beast.wasm", component);
    home.grant("beast");
    home.set("plugins.enabled", json!(["beast"]));
    home.hermes(&["-z", "hello"]).run().success();
    let request = server.last_turn();
    assert_eq!(request.tool_names().iter().filter(|name| **name == "good").count(), 1);
    assert_valid_request(&request.body);
}
