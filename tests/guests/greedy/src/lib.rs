//! A tool that reaches for everything that Rust's standard library offers through WASI: files, sockets, environment,
//! arguments, standard input, clocks, random numbers. It reports what it got.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io::Read;
use std::net::{TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{env, fs, io, process, thread};

use hermes_plugin::tools::{Invocation, Output, Tool};
use hermes_plugin::{Error, Plugin, Tools};
use serde_json::{Value, json};

/// The plugin.
pub struct Greedy;

impl Plugin for Greedy {
    fn configure(_: &str) -> Result<Self, Error> {
        Ok(Self)
    }
}

impl Tools for Greedy {
    fn catalog(&self) -> Result<Vec<Tool>, Error> {
        let text = json!({ "type": "string" });
        let parameters = json!({ "type": "object", "properties": { "what": text, "of": text } });
        Ok(vec![Tool::new("grab", "Reaches for something.", parameters)])
    }

    fn call(&mut self, invocation: &Invocation) -> Result<Output, Error> {
        let arguments: Value = invocation.parse()?;
        let of = arguments["of"].as_str().unwrap_or_default();
        let grabbed: io::Result<String> = match arguments["what"].as_str().unwrap_or_default() {
            "read" => fs::read_to_string(of),
            "write" => fs::write(of, "mine").map(|()| "written".to_owned()),
            "list" => fs::read_dir(of).map(|entries| format!("{} entries", entries.count())),
            "connect" => TcpStream::connect(of).map(got),
            "listen" => TcpListener::bind(of).map(got),
            "datagram" => UdpSocket::bind(of).map(got),
            "resolve" => of.to_socket_addrs().map(|found| format!("{} addresses", found.count())),
            "environment" => Ok(format!("{} variables", env::vars().count())),
            "arguments" => Ok(format!("{} arguments", env::args().count())),
            "input" => {
                let mut input = String::new();
                io::stdin().read_to_string(&mut input).map(|read| format!("{read} bytes of input"))
            }
            "random" => Ok(RandomState::new().build_hasher().finish().to_string()),
            "clock" => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map(|since| since.as_secs().to_string())
                .map_err(io::Error::other),
            "sleep" => {
                let begin = Instant::now();
                thread::sleep(Duration::from_millis(of.parse().unwrap_or(u64::MAX)));
                Ok(format!("slept {}", begin.elapsed().as_millis()))
            }
            "print" => {
                println!("to stdout: {of}");
                eprintln!("to stderr: {of}");
                print!("without an end");
                Ok("printed".to_owned())
            }
            "exit" => process::exit(of.parse().unwrap_or(1)),
            "traceback" => {
                eprintln!("Traceback (most recent call last):");
                for line in 0..150 {
                    eprintln!("  File \"plugin.py\", line {line}, in step_{line}");
                }
                eprintln!("ValueError: {of}");
                process::abort()
            }
            other => return Err(Error::invalid(format!("`{other}` is not known"))),
        };
        grabbed.map(Output::text).map_err(|error| Error::failed(error.to_string()))
    }
}

fn got<T>(_: T) -> String {
    "got it".to_owned()
}

hermes_plugin::export!(Greedy: Tools);
