//! What a context engine learns of the conversation.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use hermes_conversation::{Conversation, Draft, Header, Message, MessageId, MessageRange};
use hermes_runtime::services::{History, HistoryHit, HistoryQuery};
use hermes_runtime::{Fault, Instance, Recipe, Services, Tier};
use hermes_zoo::Shell;

use crate::Fixture;
use crate::answers::request;
use crate::kept::pressure;

/// A conversation that grows and is cut off.
#[derive(Default)]
struct Growing(Mutex<Conversation>);

impl Growing {
    fn show(&self, ids: impl IntoIterator<Item = u64>) {
        let messages = ids.into_iter().map(|id| Draft::user("words", id).numbered(MessageId(id)));
        *self.0.lock().unwrap() = Conversation::new(messages);
    }
}

#[async_trait]
impl History for Growing {
    fn whole(&self) -> Option<MessageRange> {
        self.0.lock().unwrap().whole()
    }

    fn headers_after(&self, after: Option<MessageId>) -> Vec<Header> {
        self.0.lock().unwrap().headers_after(after).to_vec()
    }

    fn headers(&self, range: MessageRange) -> Vec<Header> {
        self.0.lock().unwrap().headers_in(range).to_vec()
    }

    fn read(&self, range: MessageRange, bytes: usize) -> (Vec<(Message, u32)>, Option<MessageId>) {
        self.0.lock().unwrap().read(range, bytes)
    }

    async fn summary(&self, _: &str) -> Result<Option<String>, Fault> {
        Ok(None)
    }

    async fn search(&self, _: &HistoryQuery) -> Result<Vec<HistoryHit>, Fault> {
        Ok(Vec::new())
    }

    async fn picture(&self, _: &str) -> Result<Option<Vec<u8>>, Fault> {
        Ok(None)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_observes_each_header_once_and_a_new_instance_observes_all() {
    // Logs the first id and the number of headers, each as a digit.
    let mut shell = Shell::of("context-engine-plugin").import("log", "write");
    let [digits, _] = shell.memory().bytes(b"0123456789");
    let digit =
        |value: &str| format!("(call $log/write (i32.const 1) (i32.add (i32.const {digits}) {value}) (i32.const 1))");
    let observe = format!("{} {} (i32.const 1024)", digit("(i32.load (local.get $p0))"), digit("(local.get $p1)"));
    let shell = shell.body("context-engine/observe", &observe).body("context-engine/propose", "unreachable");
    let fixture = Fixture::new(&shell.build(), Tier::Session);
    let history = Arc::new(Growing::default());
    let services = Services { history: history.clone(), ..fixture.recipe.services.clone() };
    let instance = Instance::new(Arc::new(Recipe { services, ..Recipe::clone(&fixture.recipe) }));
    let observed = async || {
        instance.assess(&pressure()).await.unwrap();
        let lines = std::mem::take(&mut *fixture.services.log_lines.lock().unwrap());
        lines.into_iter().map(|(_, text)| text).collect::<String>()
    };
    assert_eq!(observed().await, "");
    history.show(1..=3);
    assert_eq!(observed().await, "13");
    assert_eq!(observed().await, "");
    history.show(1..=5);
    assert_eq!(observed().await, "42");
    // The user takes back the messages from 4 on, and continues.
    history.show([1, 2, 3, 6]);
    instance.rewound(MessageId(4)).await.unwrap();
    assert_eq!(observed().await, "61");
    instance.propose(&request()).await.unwrap_err();
    assert_eq!(observed().await, "14", "a new instance, which does not learn of messages that are gone");
}
