//! One run of a program, in a task of its own: the caller may stop waiting at any moment.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::kept::Captured;
use super::running::{Input, Running, begin, undone};
use super::{End, Exit, GRACE, Run, shown};
use crate::fault::{Fault, FaultKind};

/// Shows a line of a program's output to the user.
pub type ShowLine = Box<dyn Fn(&str) + Send + Sync>;

/// How often the user sees another line.
const PACE: Duration = Duration::from_millis(400);

/// Runs a program for at most `time`, and shows its last line from time to time. When the future is dropped, the program and what it
/// started are ended.
pub async fn run(run: Run, time: Duration, show: Option<ShowLine>) -> Result<Exit, Fault> {
    let (reply, answer) = oneshot::channel();
    tokio::spawn(async move { run_to_end(run, time, show, reply).await });
    let lost = || Fault::new(FaultKind::Failed, "io", "the program was lost: this process is about to end");
    answer.await.unwrap_or_else(|_| Err(lost()))
}

async fn run_to_end(run: Run, time: Duration, show: Option<ShowLine>, mut reply: oneshot::Sender<Result<Exit, Fault>>) {
    let begun = tokio::task::spawn_blocking(move || {
        let begun = begin(&run).map_err(|error| not_started(&run, &error));
        begun.map(|running| (running, run.input))
    });
    let (mut running, input) = match begun.await {
        Ok(Ok(begun)) => begun,
        Ok(Err(fault)) => {
            // If this fails, the caller is gone.
            let _ = reply.send(Err(fault));
            return;
        }
        // The caller learns that the program is lost.
        Err(_) => return,
    };
    let feeding = feed(&mut running, input);
    let (output, errors) = (Capture::of(running.output.take()), Capture::of(running.errors.take()));

    let end = tokio::select! {
        end = running.ended() => end,
        () = tokio::time::sleep(time) => Ok(End::TimedOut),
        () = reply.closed() => Ok(End::TimedOut),
        () = show_lines(show, [&output, &errors]) => Ok(End::TimedOut),
    };
    // A process that outlives the program would keep its outputs open and run on unseen.
    if running.terminate() {
        let silence = async {
            let _ = running.ended().await;
            output.at_end().await;
            errors.at_end().await;
        };
        let _ = tokio::time::timeout(GRACE, silence).await;
    }
    running.kill();
    let _ = running.ended().await;
    feeding.abort();
    let planned = running.planned();
    let ((output, cut), (errors, cut_too)) = tokio::join!(output.finish(), errors.finish());
    let succeeded = matches!(end, Ok(End::Exited(0)));
    let denials = planned.as_ref().map(|planned| planned.denials(&[&output, &errors], succeeded));
    let mut denied = denials.unwrap_or_default();
    denied.extend(undone(planned).await);
    let exit = end.map(|end| Exit { end, output, errors, truncated: cut || cut_too, denied });
    let _ = reply.send(exit);
}

/// Shows the last line of the outputs whenever there is another one. Never returns.
async fn show_lines(show: Option<ShowLine>, outputs: [&Capture; 2]) {
    let Some(show) = show else { return std::future::pending().await };
    let mut shown = [None, None];
    loop {
        tokio::time::sleep(PACE).await;
        for (output, shown) in outputs.iter().zip(&mut shown) {
            let line = output.last_line();
            if line != *shown {
                line.iter().for_each(|line| show(line));
                *shown = line;
            }
        }
    }
}

pub(super) fn not_started(run: &Run, error: &std::io::Error) -> Fault {
    let why = format!("{} cannot be started: {error}", shown(&run.path));
    Fault::new(FaultKind::Unavailable, "not-started", why)
}

/// Writes the input concurrently: a program may write before it reads, or never read.
fn feed(running: &mut Running, input: Vec<u8>) -> JoinHandle<()> {
    let pipe: Option<Input> = running.input.take();
    tokio::spawn(async move {
        if let Some(mut pipe) = pipe {
            // A program may end without reading all input, which breaks the pipe.
            let _ = pipe.write_all(&input).await;
        }
    })
}

/// An output. It is read at once, so that the program never waits for a reader.
struct Capture {
    kept: Arc<Mutex<Captured>>,
    reading: JoinHandle<()>,
    ended: tokio::sync::watch::Receiver<bool>,
}

impl Capture {
    fn of(pipe: Option<impl AsyncRead + Unpin + Send + 'static>) -> Self {
        let kept = Arc::<Mutex<Captured>>::default();
        let (end, ended) = tokio::sync::watch::channel(false);
        let into = Arc::clone(&kept);
        let reading = tokio::spawn(async move {
            let mut buffer = vec![0; 64 << 10];
            if let Some(mut pipe) = pipe {
                while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
                    into.lock().unwrap_or_else(PoisonError::into_inner).take_in(&buffer[..count]);
                }
            }
            end.send_replace(true);
        });
        Self { kept, reading, ended }
    }

    fn last_line(&self) -> Option<String> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).last_line()
    }

    async fn at_end(&self) {
        let _ = self.ended.clone().wait_for(|ended| *ended).await;
    }

    /// Reads on for a moment: a process that left the group may keep the pipe open forever.
    async fn finish(self) -> (Vec<u8>, bool) {
        let _ = tokio::time::timeout(GRACE, self.at_end()).await;
        self.reading.abort();
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).finish()
    }
}
