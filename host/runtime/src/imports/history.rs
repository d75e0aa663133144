//! The import `history`: the original messages of the conversation.

use hermes_bindings::imported;
use imported::history as wit;
use imported::types::{Error, Header, MessageRange};

#[cfg(feature = "draft")]
use hermes_conversation::MessageId;

use crate::context::Context;
use crate::convert::{fault, header, message, part, range, range_back, role_back};
use crate::error::{Fault, FaultKind};
use crate::services::{HistoryQuery, Matching};

/// The most hits that one search returns.
const HITS: u32 = 100;

/// The most bytes of a search text.
const QUERY: usize = 64 << 10;

/// The most bytes of text that one call of `read` returns.
const PAGE: usize = 4 << 20;

impl Context {
    fn may_read(&self) -> Result<(), Error> {
        if self.services.may_read { Ok(()) } else { Err(fault(Fault::denied("history"))) }
    }
}

impl wit::Host for Context {
    async fn whole(&mut self) -> Result<Option<MessageRange>, Error> {
        self.may_read()?;
        Ok(self.services.history.whole().map(range))
    }

    async fn headers(&mut self, range: MessageRange) -> Result<Vec<Header>, Error> {
        self.may_read()?;
        Ok(self.services.history.headers(range_back(range)).iter().map(header).collect())
    }

    async fn read(&mut self, range: MessageRange) -> Result<wit::Page, Error> {
        self.may_read()?;
        let (messages, next) = self.services.history.read(range_back(range), PAGE);
        Ok(wit::Page {
            messages: messages.into_iter().map(|(said, tokens)| message(said, tokens)).collect(),
            next: next.map(|id| id.0),
        })
    }

    async fn parts(&mut self, range: MessageRange) -> Result<wit::PartsPage, Error> {
        self.may_read()?;
        let (messages, next) = self.services.history.read(range_back(range), PAGE);
        let with_parts = messages.into_iter().map(|(said, _)| said).filter(|said| !said.parts.is_empty());
        Ok(wit::PartsPage {
            messages: with_parts
                .map(|said| wit::MessageParts {
                    id: said.id.0,
                    parts: said.draft.parts.into_iter().map(part).collect(),
                })
                .collect(),
            next: next.map(|id| id.0),
        })
    }

    async fn summary(&mut self, key: String) -> Result<String, Error> {
        self.may_read()?;
        let history = self.services.history.clone();
        self.call.bounded(history.summary(&key)).await.map_err(fault)?.ok_or_else(|| {
            fault(Fault::new(FaultKind::InvalidInput, "not-found", format!("no view has or had the summary `{key}`")))
        })
    }

    async fn search(&mut self, query: wit::Query) -> Result<Vec<wit::Hit>, Error> {
        self.may_read()?;
        let query = HistoryQuery {
            text: query.text,
            matching: match query.matching {
                wit::Matching::Any => Matching::Any,
                wit::Matching::All => Matching::All,
                wit::Matching::Phrase => Matching::Phrase,
            },
            roles: query.roles.into_iter().map(role_back).collect::<Result<_, _>>().map_err(fault)?,
            tools: query.tools,
            within: query.within.map(range_back),
            offset: query.offset as usize,
            limit: query.limit.min(HITS) as usize,
        };
        if query.text.len() > QUERY {
            let why = format!("the text to look for has more than {} KiB: look for a part of it", QUERY >> 10);
            return Err(fault(Fault::new(FaultKind::InvalidInput, "too-long", why)));
        }
        let history = self.services.history.clone();
        let found = self.call.bounded(history.search(&query)).await.map_err(fault)?;
        Ok(found
            .into_iter()
            .map(|hit| wit::Hit {
                id: hit.id.0,
                session_id: hit.session,
                excerpt: hit.excerpt,
                score: hit.score,
                extra: Vec::new(),
            })
            .collect())
    }

    #[cfg(feature = "draft")]
    async fn search_dated(&mut self, query: wit::Query) -> Result<Vec<wit::DatedHit>, Error> {
        let found = self.search(query).await?;
        let history = self.services.history.clone();
        let dated = found.into_iter().map(|hit| {
            let (id, only) = (MessageId(hit.id), MessageRange { first: hit.id, last: hit.id });
            let headers = history.headers(range_back(only));
            let created_at = headers.iter().find(|header| header.id == id).map_or(0, |header| header.created_at);
            wit::DatedHit { hit, created_at, extra: Vec::new() }
        });
        Ok(dated.collect())
    }

    #[cfg(feature = "draft")]
    async fn count(&mut self, range: MessageRange) -> Result<u32, Error> {
        Ok(u32::try_from(self.headers(range).await?.len()).unwrap_or(u32::MAX))
    }
}
