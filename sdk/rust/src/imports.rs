//! The contract's imports on native targets: calls to the host of a native library, or to the fake host of a test.
#![allow(missing_docs, unreachable_pub)]

macro_rules! imports {
    ($($module:ident { $(fn $function:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)+ })+) => {$(
        pub mod $module {
            #[allow(unused_imports)]
            use crate::Error;
            // An interface may declare functions only, which leaves no type to export.
            #[allow(unused_imports)]
            pub use crate::bindings::imports::$module::*;

            $(pub fn $function($($argument: $type),*) $(-> $result)? {
                #[cfg(feature = "native")]
                if crate::native::host::in_host() {
                    return crate::native::host::import(stringify!($module), stringify!($function), &($($argument,)*));
                }
                let name = concat!(stringify!($module), "::", stringify!($function));
                crate::testing::current(name).$module.borrow_mut().$function($($argument),*)
            })+
        }
    )+};
}

imports! {
    info {
        fn version() -> String;
        fn has(feature: &str) -> bool;
    }
    log {
        fn write(level: Level, text: &str);
    }
    task {
        fn cancelled() -> bool;
        fn time_left() -> u32;
        fn progress(text: &str);
    }
    clock {
        fn now() -> u64;
        fn utc_offset() -> i32;
    }
    random {
        fn bytes(count: u32) -> Vec<u8>;
    }
    llm {
        fn resolve(task: &str) -> Result<Model, Error>;
        fn complete(request: &Request) -> Result<Reply, Error>;
        fn count_tokens(text: &str) -> u32;
    }
    embeddings {
        fn resolve() -> Result<EmbeddingModel, Error>;
        fn embed(request: &Request) -> Result<Reply, Error>;
    }
    history {
        fn whole() -> Result<Option<MessageRange>, Error>;
        fn headers(range: MessageRange) -> Result<Vec<Header>, Error>;
        fn read(range: MessageRange) -> Result<Page, Error>;
        fn parts(range: MessageRange) -> Result<PartsPage, Error>;
        fn summary(key: &str) -> Result<String, Error>;
        fn search(query: &Query) -> Result<Vec<Hit>, Error>;
    }
    sql {
        fn query(statement: &Statement) -> Result<Rows, Error>;
        fn execute(statements: &[Statement]) -> Result<Vec<u64>, Error>;
    }
    documents {
        fn read(name: &str) -> Result<Option<Document>, Error>;
        fn write(name: &str, content: &str, version: Option<&str>) -> Result<WriteOutcome, Error>;
    }
    files {
        fn roots() -> Result<Vec<Root>, Error>;
        fn stat(root: &str, path: &str) -> Result<Entry, Error>;
        fn entries(root: &str, path: &str) -> Result<Vec<Entry>, Error>;
        fn read(root: &str, path: &str, offset: u64, limit: u32) -> Result<Slice, Error>;
        fn write(root: &str, path: &str, content: &[u8], version: Option<&str>) -> Result<String, Error>;
        fn rename(root: &str, path: &str, to: &str) -> Result<(), Error>;
        fn remove(root: &str, path: &str) -> Result<(), Error>;
        fn search(root: &str, glob: &str, pattern: Option<&Pattern>, offset: u32, limit: u32) -> Result<Findings, Error>;
    }
    http {
        fn send(request: &Request) -> Result<Response, Error>;
        fn has_secret(name: &str) -> bool;
        fn replace_secret(name: &str, value: &str) -> Result<(), Error>;
    }
    process {
        fn run(command: &Command) -> Result<Exit, Error>;
        fn start(command: &Command) -> Result<ProgramId, Error>;
        fn read(id: ProgramId, wait_ms: u32) -> Result<Chunk, Error>;
        fn write(id: ProgramId, bytes: &[u8]) -> Result<(), Error>;
        fn close_input(id: ProgramId) -> Result<(), Error>;
        fn wait(id: ProgramId, wait_ms: u32) -> Result<Option<End>, Error>;
        fn stop(id: ProgramId) -> Result<End, Error>;
        fn programs() -> Result<Vec<Background>, Error>;
    }
}

/// Streams. A resource has no bytes, so the host of a native library names a generation by a number.
pub mod llm_stream {
    use std::cell::RefCell;
    use std::collections::VecDeque;

    use crate::Error;
    pub use crate::bindings::imports::llm_stream::{Delta, Request};

    #[cfg(feature = "native")]
    const INTERFACE: &str = "llm_stream";

    pub fn start(request: &Request) -> Result<Generation, Error> {
        #[cfg(feature = "native")]
        if crate::native::host::in_host() {
            let number = crate::native::host::import::<_, Result<u32, Error>>(INTERFACE, "start", &(request,))?;
            return Ok(Generation::Native(number));
        }
        let deltas = crate::testing::current("llm::stream").llm.borrow_mut().stream(request)?;
        Ok(Generation::Fake(RefCell::new(deltas)))
    }

    #[derive(Debug)]
    pub enum Generation {
        #[cfg(feature = "native")]
        Native(u32),
        Fake(RefCell<VecDeque<Result<Delta, Error>>>),
    }

    impl Generation {
        pub fn next(&self) -> Result<Option<Delta>, Error> {
            match self {
                #[cfg(feature = "native")]
                Self::Native(number) => crate::native::host::import(INTERFACE, "next", &(number,)),
                Self::Fake(deltas) => deltas.borrow_mut().pop_front().transpose(),
            }
        }
    }

    #[cfg(feature = "native")]
    impl Drop for Generation {
        fn drop(&mut self) {
            // A panic in a drop would end the process. If the host is gone, so is the generation.
            if let Self::Native(number) = self
                && !std::thread::panicking()
                && crate::native::host::in_host()
            {
                crate::native::host::import::<_, ()>(INTERFACE, "drop", &(*number,));
            }
        }
    }
}
