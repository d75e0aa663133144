//! The imports by name, for native libraries, which have no linker.

use hermes_bindings::imported;
use hermes_bindings::imported::types::{Error, ErrorKind};

use crate::context::Context;
use crate::limits::Limit;

macro_rules! imports {
    ($($interface:ident { $($function:ident($($argument:ident),*);)+ })+) => {
        impl Context {
            /// Carries out an import with serialized arguments. An error ends the call, as a trap does.
            pub(crate) async fn import(
                &mut self,
                interface: &str,
                function: &str,
                arguments: &[u8],
            ) -> wasmtime::Result<Vec<u8>> {
                self.call.host_calls += 1;
                if self.call.host_calls > self.meter.limits().get(Limit::HostCalls) {
                    self.meter.refused = Some(Limit::HostCalls);
                    return Err(wasmtime::Error::msg("it uses imports too often"));
                }
                match (interface, function) {
                    // A library names a generation by a number, where a component has a handle.
                    ("llm_stream", "start") => {
                        let (request,) = hermes_plugin_abi::decode(arguments)?;
                        Ok(hermes_plugin_abi::encode(&self.start_generation(request).await)?)
                    }
                    ("llm_stream", "next") => {
                        let (generation,) = hermes_plugin_abi::decode(arguments)?;
                        Ok(hermes_plugin_abi::encode(&self.next_delta(generation).await)?)
                    }
                    ("llm_stream", "drop") => {
                        let (generation,) = hermes_plugin_abi::decode(arguments)?;
                        Ok(hermes_plugin_abi::encode(&self.drop_generation(generation))?)
                    }
                    $($((stringify!($interface), stringify!($function)) => {
                        let ($($argument,)*) = hermes_plugin_abi::decode(arguments)?;
                        let answer = imported::$interface::Host::$function(self, $($argument),*).await;
                        Ok(hermes_plugin_abi::encode(&answer)?)
                    })+)+
                    // Read by functions that return a result; a call of any other ends.
                    _ => {
                        let import = format!("{interface}.{}", function.replace('_', "-"));
                        Ok(hermes_plugin_abi::encode(&Err::<(), _>(unsupported(&import)))?)
                    }
                }
            }
        }
    };
}

fn unsupported(import: &str) -> Error {
    Error {
        kind: ErrorKind::Unsupported,
        code: "unsupported".to_owned(),
        message: format!("this version of Hermes has no `{import}`"),
        retry_after_ms: None,
        extra: Vec::new(),
    }
}

imports! {
    info { version(); has(feature); }
    log { write(level, text); }
    task { cancelled(); time_left(); progress(text); }
    clock { now(); utc_offset(); }
    random { bytes(count); }
    llm { resolve(task); complete(request); count_tokens(text); }
    embeddings { resolve(); embed(request); }
    history { whole(); headers(range); read(range); parts(range); summary(key); search(query); }
    sql { query(statement); execute(statements); }
    documents { read(name); write(name, content, version); }
    files {
        roots();
        stat(root, path);
        entries(root, path);
        read(root, path, offset, limit);
        write(root, path, content, version);
        rename(root, path, to);
        remove(root, path);
        search(root, glob, pattern, offset, limit);
    }
    http { send(request); has_secret(name); replace_secret(name, value); }
    process {
        run(command);
        start(command);
        read(id, wait_ms);
        write(id, bytes);
        close_input(id);
        wait(id, wait_ms);
        stop(id);
        programs();
    }
}
