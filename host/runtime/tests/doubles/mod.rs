//! Services in place of a session's.

use async_trait::async_trait;
use hermes_conversation::{Header, Message, MessageId, MessageRange};
use hermes_runtime::Fault;
use hermes_runtime::services::{History, HistoryHit, HistoryQuery};

/// A history without messages, with a search by this function.
pub(crate) struct SearchOnly<F>(pub(crate) F);

#[async_trait]
impl<F, A> History for SearchOnly<F>
where
    F: Fn(HistoryQuery) -> A + Send + Sync,
    A: Future<Output = Vec<HistoryHit>> + Send,
{
    fn whole(&self) -> Option<MessageRange> {
        None
    }

    fn headers_after(&self, _: Option<MessageId>) -> Vec<Header> {
        Vec::new()
    }

    fn headers(&self, _: MessageRange) -> Vec<Header> {
        Vec::new()
    }

    fn read(&self, _: MessageRange, _: usize) -> (Vec<(Message, u32)>, Option<MessageId>) {
        (Vec::new(), None)
    }

    async fn summary(&self, _: &str) -> Result<Option<String>, Fault> {
        Ok(None)
    }

    async fn search(&self, query: &HistoryQuery) -> Result<Vec<HistoryHit>, Fault> {
        Ok((self.0)(query.clone()).await)
    }

    async fn picture(&self, _: &str) -> Result<Option<Vec<u8>>, Fault> {
        Ok(None)
    }
}
