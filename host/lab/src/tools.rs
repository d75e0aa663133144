//! How well the search on the shelf finds tools: questions with the tools that answer them, over lists of servers.

use std::fmt::{self, Display};

use hermes_agent::ToolIndex;
use hermes_conversation::ToolSchema;
use hermes_ranking::Records;
use serde::{Deserialize, Serialize};

/// The places that count.
const PLACES: [usize; 3] = [1, 5, 15];

/// A question, and the tools that are right.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ToolQuestion {
    /// What the user wants, in their words.
    #[serde(default)]
    pub task: Option<String>,
    /// What a model writes into the search for it.
    pub query: String,
    /// Each is right, as SERVER/TOOL.
    pub tool: Vec<String>,
}

/// A tool of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedTool {
    /// The server.
    pub server: String,
    /// The server's own name of the tool.
    pub own_name: String,
    /// As the model gets it.
    pub schema: ToolSchema,
}

/// How often a right tool was among the first ones.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hits {
    /// Who searched.
    pub name: &'static str,
    /// Of all questions, with a right tool among the first 1, 5 and 15.
    pub within: [usize; 3],
    /// The mean of one divided by the place of the first right tool.
    pub reciprocal: f64,
    /// The questions without a right tool among the first five, each with the first five.
    pub missed: Vec<(String, Vec<String>)>,
}

/// The search on the shelf, beside BM25 over names and descriptions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolReport {
    /// How many tools there are, and how many servers.
    pub tools: usize,
    /// See [`Self::tools`].
    pub servers: usize,
    /// How many questions were asked.
    pub questions: usize,
    /// The questions that were not asked, because no list has their tools.
    pub unanswerable: Vec<String>,
    /// A column for each search.
    pub columns: Vec<Hits>,
}

impl ToolReport {
    /// Asks every question.
    pub fn new(tools: &[ServedTool], questions: &[ToolQuestion]) -> Self {
        let names: Vec<String> = tools.iter().map(|tool| format!("{}/{}", tool.server, tool.own_name)).collect();
        let (asked, unanswerable): (Vec<_>, Vec<_>) =
            questions.iter().partition(|question| question.tool.iter().any(|tool| names.contains(tool)));
        let owned: Vec<(String, ToolSchema)> =
            tools.iter().map(|tool| (tool.server.clone(), tool.schema.clone())).collect();
        let shelf = ToolIndex::new(&owned);
        let texts: Vec<String> =
            tools.iter().map(|tool| format!("{} {}", tool.own_name, tool.schema.description)).collect();
        let bm25 = Records::new(texts.iter().map(|text| [text.as_str()]));
        let query = |question: &ToolQuestion| question.query.clone();
        let task = |question: &ToolQuestion| question.task.clone().unwrap_or_else(|| question.query.clone());
        let plain = |query: &str| bm25.rank(query, [1.0]).into_iter().map(|(at, _)| at).collect();
        let mut servers: Vec<&str> = tools.iter().map(|tool| tool.server.as_str()).collect();
        servers.sort_unstable();
        servers.dedup();
        Self {
            tools: tools.len(),
            servers: servers.len(),
            questions: asked.len(),
            unanswerable: unanswerable.into_iter().map(|question| question.query.clone()).collect(),
            columns: vec![
                hits("tool_search", &asked, &names, query, |query| shelf.find(query)),
                hits("BM25", &asked, &names, query, plain),
                hits("tool_search, with the task's own words", &asked, &names, task, |task| shelf.find(task)),
            ],
        }
    }
}

fn hits(
    name: &'static str,
    questions: &[&ToolQuestion],
    names: &[String],
    words: impl Fn(&ToolQuestion) -> String,
    search: impl Fn(&str) -> Vec<usize>,
) -> Hits {
    let mut hits = Hits { name, within: [0; 3], reciprocal: 0.0, missed: Vec::new() };
    for question in questions {
        let found = search(&words(question));
        let place = found.iter().position(|at| question.tool.contains(&names[*at]));
        for (count, most) in hits.within.iter_mut().zip(PLACES) {
            *count += usize::from(place.is_some_and(|place| place < most));
        }
        hits.reciprocal += place.map_or(0.0, |place| 1.0 / (place + 1) as f64);
        if place.is_none_or(|place| place >= 5) {
            let first = found.iter().take(5).map(|at| names[*at].clone()).collect();
            hits.missed.push((question.query.clone(), first));
        }
    }
    hits.reciprocal /= questions.len().max(1) as f64;
    hits
}

impl Display for ToolReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tools, servers, questions, .. } = self;
        writeln!(f, "{questions} questions over {tools} tools of {servers} servers\n")?;
        writeln!(f, "| a right tool is | {} |", self.columns.iter().map(|it| it.name).collect::<Vec<_>>().join(" | "))?;
        writeln!(f, "|---|{}", "---|".repeat(self.columns.len()))?;
        for (at, most) in PLACES.into_iter().enumerate() {
            let cells = self.columns.iter().map(|column| {
                let share = 100.0 * column.within[at] as f64 / (*questions).max(1) as f64;
                format!(" {} ({share:.1} %) |", column.within[at])
            });
            let what = if most == 1 { "first".to_owned() } else { format!("among the first {most}") };
            writeln!(f, "| {what} |{}", cells.collect::<String>())?;
        }
        let means = self.columns.iter().map(|column| format!(" {:.3} |", column.reciprocal)).collect::<String>();
        writeln!(f, "| mean of 1 / place |{means}")?;
        if !self.unanswerable.is_empty() {
            writeln!(f, "\nnot asked, because no list has their tools: {}", self.unanswerable.join("; "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(server: &str, own_name: &str, description: &str) -> ServedTool {
        let name = format!("mcp_{server}_{own_name}");
        let schema = ToolSchema { name, description: description.to_owned(), parameters: "{}".to_owned() };
        ServedTool { server: server.to_owned(), own_name: own_name.to_owned(), schema }
    }

    fn question(query: &str, tool: &str) -> ToolQuestion {
        ToolQuestion { task: None, query: query.to_owned(), tool: vec![tool.to_owned()] }
    }

    #[test]
    fn the_report_counts_places_and_names_what_was_missed() {
        let mut tools: Vec<ServedTool> = (0..9).map(|at| tool("a", &format!("red_{at}"), "Paints it red.")).collect();
        tools.push(tool("b", "solve", "Finds the roots of an equation."));
        let questions =
            [question("roots of equations", "b/solve"), question("paint it red", "a/red_8"), question("x", "c/none")];
        let report = ToolReport::new(&tools, &questions);
        assert_eq!((report.tools, report.servers, report.questions), (10, 2, 2));
        assert_eq!((report.unanswerable, report.columns[0].within), (vec!["x".to_owned()], [1, 1, 2]));
        assert_eq!(report.columns[0].missed[0].0, "paint it red");
        assert_eq!(report.columns[0].missed[0].1.len(), 5);
    }
}
