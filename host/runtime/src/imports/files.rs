//! The import `files`: granted folders. The work runs off the thread that drives the guest.

use std::sync::Arc;

use hermes_bindings::imported;
use imported::files as wit;
use imported::types::Error;

use crate::context::Context;
use crate::convert::fault;
use crate::error::{Fault, FaultKind};
use crate::services::Refusal;
use hermes_capabilities::files::{Agreed, Change, Entry, FilesError, Kind, Pattern, Roots};

impl Context {
    fn may_use_files(&self) -> Result<(), Error> {
        match self.services.files.roots().is_empty() {
            true => Err(fault(Fault::denied("files"))),
            false => Ok(()),
        }
    }

    /// Runs `work` on the folders. Its second argument returns whether the caller has stopped waiting.
    async fn on_files<T, F>(&mut self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&Roots, &dyn Fn() -> bool) -> Result<T, FilesError> + Send + 'static,
    {
        self.may_use_files()?;
        let roots = Arc::clone(&self.services.files);
        let call = self.call.clone();
        let work = move || Ok(work(&roots, &|| call.is_cancelled() || call.time_left().is_zero())?);
        self.off_thread(work).await.map_err(fault)
    }

    /// Changes a file. If the change needs approval, the user is asked, and the change is tried again with it.
    async fn change<T, F>(&mut self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Fn(&Roots, &Agreed) -> Result<T, FilesError> + Clone + Send + 'static,
    {
        /// A file that changes meanwhile asks again, but not without end.
        const MAX_QUESTIONS: usize = 3;
        self.may_use_files()?;
        let mut agreed = Agreed::to_nothing();
        for _ in 0..MAX_QUESTIONS {
            let (roots, work, so_far) = (Arc::clone(&self.services.files), work.clone(), agreed.clone());
            // An approval is an answer of the work, not a failure: the plugin does not see it.
            let tried = self
                .off_thread(move || match work(&roots, &so_far) {
                    Ok(done) => Ok(Ok(done)),
                    Err(FilesError::Approval { change, .. }) => Ok(Err(change)),
                    Err(error) => Err(error.into()),
                })
                .await
                .map_err(fault)?;
            match tried {
                Ok(done) => return Ok(done),
                Err(change) => {
                    self.approve(&change).await.map_err(fault)?;
                    agreed.add(&change);
                }
            }
        }
        let why = "the file changes while the user is asked: try again later";
        Err(fault(Fault::new(FaultKind::Unavailable, "locked", why)))
    }

    async fn approve(&mut self, change: &Change) -> Result<(), Fault> {
        let approval = self.services.changes.clone();
        // Otherwise a plugin could repeat a refused question without end.
        let may_ask = !self.call.refused;
        let refusal = match self.call.ask_user(approval.approve(change, may_ask)).await {
            Ok(()) => return Ok(()),
            Err(refusal) => refusal,
        };
        if !may_ask && refusal.code == Refusal::Unattended.code() {
            let why = "not changed: the user has refused this call something already, and is not asked again";
            return Err(Fault::new(FaultKind::Denied, Refusal::User.code(), why));
        }
        self.call.refused |= refusal.code == Refusal::User.code();
        Err(refusal)
    }
}

fn entry(entry: Entry) -> wit::Entry {
    wit::Entry {
        path: entry.path,
        kind: match entry.kind {
            Kind::File => wit::Kind::File,
            Kind::Directory => wit::Kind::Directory,
            Kind::Link => wit::Kind::Link,
            Kind::Other => wit::Kind::Other("special".to_owned()),
        },
        size: entry.size,
        modified_at: entry.modified_at,
        version: entry.version,
    }
}

impl wit::Host for Context {
    async fn roots(&mut self) -> Result<Vec<wit::Root>, Error> {
        self.may_use_files()?;
        let roots = self.services.files.roots();
        Ok(roots
            .into_iter()
            .map(|root| wit::Root { name: root.name, path: root.path, writable: root.writable })
            .collect())
    }

    async fn stat(&mut self, root: String, path: String) -> Result<wit::Entry, Error> {
        self.on_files(move |roots, _| roots.stat(&root, &path)).await.map(entry)
    }

    async fn entries(&mut self, root: String, path: String) -> Result<Vec<wit::Entry>, Error> {
        let entries = self.on_files(move |roots, _| roots.entries(&root, &path)).await?;
        Ok(entries.into_iter().map(entry).collect())
    }

    async fn read(&mut self, root: String, path: String, offset: u64, limit: u32) -> Result<wit::Slice, Error> {
        let slice = self.on_files(move |roots, _| roots.read(&root, &path, offset, limit)).await?;
        Ok(wit::Slice { content: slice.content, total: slice.total, version: slice.version })
    }

    async fn write(
        &mut self,
        root: String,
        path: String,
        content: Vec<u8>,
        version: Option<String>,
    ) -> Result<String, Error> {
        let content = Arc::new(content);
        self.change(move |roots, agreed| roots.write(&root, &path, &content, version.as_deref(), agreed)).await
    }

    async fn rename(&mut self, root: String, path: String, to: String) -> Result<(), Error> {
        self.change(move |roots, agreed| roots.rename(&root, &path, &to, agreed)).await
    }

    async fn remove(&mut self, root: String, path: String) -> Result<(), Error> {
        self.change(move |roots, agreed| roots.remove(&root, &path, agreed)).await
    }

    async fn search(
        &mut self,
        root: String,
        glob: String,
        pattern: Option<wit::Pattern>,
        offset: u32,
        limit: u32,
    ) -> Result<wit::Findings, Error> {
        let pattern = pattern.map(|pattern| Pattern { regex: pattern.regex, ignore_case: pattern.ignore_case });
        let findings = self
            .on_files(move |roots, cancelled| roots.search(&root, &glob, pattern.as_ref(), offset, limit, cancelled))
            .await?;
        let found = findings.found.into_iter();
        Ok(wit::Findings {
            found: found.map(|found| wit::Found { path: found.path, line: found.line, text: found.text }).collect(),
            more: findings.more,
        })
    }
}
