//! The comparison of memories, through the real components.

use hermes_tests::Home;
use serde_json::{Value, json};

use crate::fixtures::service::{Answer, Service};

/// A dialogue in the published form of LoCoMo. Its second session is about another subject than the first.
fn dialogue() -> Value {
    let filler = |session: u32, from: u32| {
        (from..from + 12).map(move |at| {
            let speaker = if at % 2 == 0 { "Ben" } else { "Ada" };
            let text = format!("Nothing much happened on walk {at} of week {session}.");
            json!({ "speaker": speaker, "dia_id": format!("D{session}:{at}"), "text": text })
        })
    };
    let session = |number: u32, first: &str| -> Vec<Value> {
        let first = json!({ "speaker": "Ada", "dia_id": format!("D{number}:1"), "text": first });
        std::iter::once(first).chain(filler(number, 2)).collect()
    };
    json!({
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ada", "speaker_b": "Ben",
            "session_1_date_time": "1:10 pm on 27 March, 2023",
            "session_1": session(1, "My new ferry is called Albatross."),
            "session_2_date_time": "9:05 am on 2 May, 2023",
            "session_2": session(2, "The lanterns of the harbour need oil."),
        },
        "qa": [
            { "question": "What is the ferry of Ada called?", "evidence": ["D1:1"], "category": 4 },
            { "question": "Which lanterns need oil?", "evidence": ["D2:1"], "category": 1 },
        ],
    })
}

#[test]
fn memories_are_compared_on_dialogues_and_the_report_is_reproducible() {
    let home = Home::new();
    home.write_workspace("dialogues.json", json!([dialogue(), dialogue()]).to_string());
    let arguments = ["lab", "recall", "dialogues.json", "--only", "1", "--no-timing", "--provider", "chronicle"];
    let run = |more: &[&str]| home.hermes(&[&arguments, more].concat()).run().success().stdout;
    let first = run(&["--json", "--plot", "plot.svg"]);
    assert_eq!(first, run(&["--json"]));
    let report: Value = serde_json::from_str(&first).unwrap();
    assert_eq!((&report["sets"][0]["dialogues"], &report["sets"][0]["questions"]), (&json!(1), &json!(2)), "{report}");
    let columns = report["columns"].as_array().unwrap();
    let names: Vec<&str> = columns.iter().map(|column| column["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["bm25", "session-search", "recall", "chronicle"]);
    for column in columns {
        assert_eq!(column["failures"]["first"], Value::Null, "{column}");
        let all = &column["figures"][0];
        let within_ten = all["found"].as_array().unwrap().iter().find(|found| found["hits"] == 10).unwrap();
        assert_eq!(within_ten["with_neighbours"]["share_of_all_evidence"], 1.0, "{column}");
        assert!(all["mean_bytes"].as_u64().unwrap() > 20, "{column}");
    }
    let text = run(&[]);
    for part in ["share of all evidence within 10 hits", "mean of questions within 10 hits", "single-hop (1)"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(std::fs::read_to_string(home.workspace().join("plot.svg")).unwrap().starts_with("<svg"));
}

/// A model for which a vessel is the same as a ferry, and everything else is something else.
fn vectors() -> Service {
    Service::start_at(0, |asked| {
        let vector = |text: &Value| {
            let text = text.as_str().unwrap_or_default();
            if text.contains("ferry") || text.contains("vessel") { json!([1.0, 0.0]) } else { json!([0.0, 1.0]) }
        };
        let texts = asked.body["input"].as_array().into_iter().flatten().enumerate();
        let rows = texts.map(|(index, text)| json!({ "index": index, "embedding": vector(text) }));
        Answer::Json(200, json!({ "data": rows.collect::<Vec<_>>() }))
    })
}

#[test]
fn embeddings_that_are_asked_for_find_what_shares_no_word_with_the_question() {
    let home = Home::new();
    let service = vectors();
    let mut asking = dialogue();
    asking["qa"] = json!([{ "question": "Which vessel has somebody bought?", "evidence": ["D1:1"], "category": 4 }]);
    // Two dialogues: the connections of the first one are gone with it.
    home.write_workspace("dialogues.json", json!([asking, asking]).to_string());
    let run = |more: &[&str]| {
        let arguments = ["lab", "recall", "dialogues.json", "--no-timing", "--json", "--provider", "chronicle"];
        home.hermes(&[&arguments, more].concat()).run()
    };
    let found = |more: &[&str]| {
        let report: Value = serde_json::from_str(&run(more).success().stdout).unwrap();
        let column = report["columns"].as_array().unwrap().last().unwrap().clone();
        assert_eq!(column["failures"]["first"], Value::Null, "{column}");
        (column["figures"][0]["found"][0]["alone"]["share_of_all_evidence"].clone(), report["embeddings"].clone())
    };
    let url = format!("{}/v1", service.url());
    home.set("auxiliary.embeddings", json!({ "base_url": url, "model": "large", "api_key": "secret" }));
    // Without the option, a configured model is not asked.
    assert_eq!(found(&[]), (json!(0.0), Value::Null));
    assert_eq!(service.asked().len(), 0);
    assert_eq!(found(&["--embeddings", &url, "--embeddings-model", "small"]), (json!(1.0), json!("small of custom")));
    let asked = service.asked();
    assert!(asked.iter().all(|asked| asked.body["model"] == "small" && asked.header("authorization").is_none()));
    assert_eq!(found(&["--embeddings", "configured"]), (json!(1.0), json!("large of custom")));
    let asked = service.asked().split_off(asked.len());
    assert!(asked.iter().all(|asked| asked.header("authorization") == Some("Bearer secret")), "{asked:?}");
    for (wrong, why) in [
        (&["--embeddings", url.as_str()][..], "no model is named"),
        (&["--embeddings", "configured", "--embeddings-model", "small"], "the model of config.yaml"),
        (&["--embeddings", "nowhere", "--embeddings-model", "small"], "nowhere"),
    ] {
        run(wrong).says(&["the embedding model on the command line is invalid", why]);
    }
    home.set("auxiliary.embeddings", json!({}));
    run(&["--embeddings", "configured"]).says(&["the embedding model cannot be used", "auxiliary.embeddings"]);
}
