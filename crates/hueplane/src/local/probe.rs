//! Runs ping and iperf3 on hosts, many at the same time, and reads their output.
//!
//! Every command ends by itself within seconds; an interrupted command kills the running ones.

use std::io::{BufRead, BufReader, Read};
use std::net::IpAddr;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hue_host::netns::Namespace;
use serde_json::Value;

use super::stop;
use crate::failure::Failure;

/// Concurrent pings: enough to keep two cores busy, few enough to start in time.
const PARALLEL: usize = 64;
/// Interval of checks of a running command.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Port of the iperf3 server.
const IPERF_PORT: &str = "5201";

/// Parameters of a ping.
#[derive(Clone, Copy, Debug)]
pub struct Ping {
    /// Number of requests.
    pub count: u32,
    /// Interval between requests.
    pub gap: Duration,
    /// Longest time to wait for an answer.
    pub wait: Duration,
}

/// The counts printed by `ping`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Pinged {
    /// Requests sent.
    pub sent: u64,
    /// Requests that were answered.
    pub received: u64,
    /// Duplicate answers.
    pub doubled: u64,
}

impl Pinged {
    /// Sum of both.
    pub fn plus(self, other: Self) -> Self {
        Self {
            sent: self.sent + other.sent,
            received: self.received + other.received,
            doubled: self.doubled + other.doubled,
        }
    }
}

/// Calls `work` for every item, many at the same time. Results are in order. Stops early if the program is
/// interrupted.
pub fn all<T: Sync, R: Send>(
    items: &[T],
    work: impl Fn(&T) -> Result<R, Failure> + Sync,
) -> Result<Vec<R>, Failure> {
    all_of(PARALLEL, items, work)
}

/// As [`all`], with at most `parallel` at the same time.
pub fn all_of<T: Sync, R: Send>(
    parallel: usize,
    items: &[T],
    work: impl Fn(&T) -> Result<R, Failure> + Sync,
) -> Result<Vec<R>, Failure> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::with_capacity(items.len()));
    std::thread::scope(|scope| {
        for _ in 0..parallel.min(items.len()) {
            scope.spawn(|| {
                while let Some((index, item)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    items.get(index).map(|item| (index, item))
                } {
                    let result = stop::check().and_then(|()| work(item));
                    results.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Pings an address from a namespace.
pub fn ping(namespace: &Namespace, to: IpAddr, how: Ping) -> Result<Pinged, Failure> {
    let (count, gap) = (how.count.to_string(), how.gap.as_secs_f64().to_string());
    let (wait, to) = (how.wait.as_secs_f64().to_string(), to.to_string());
    let argv = ["ping", "-n", "-q", "-c", &count, "-i", &gap, "-W", &wait, &to];
    let (_, output) = finish(start(namespace, &argv)?)?;
    parse_ping(&output)
        .ok_or_else(|| Failure::Broken(format!("{}: unexpected output '{}'", argv.join(" "), output.trim())))
}

/// Measures a TCP connection. Returns the received bits per second.
pub fn iperf(from: &Namespace, to: &Namespace, address: IpAddr, seconds: u16) -> Result<f64, Failure> {
    let mut server = start(to, &["iperf3", "-s", "-1", "--forceflush", "-p", IPERF_PORT])?;
    let ready = server.stdout.take().is_some_and(wait_until_listening);
    let result = if ready {
        let (seconds, address) = (seconds.to_string(), address.to_string());
        let argv =
            ["iperf3", "-J", "--connect-timeout", "3000", "-p", IPERF_PORT, "-t", &seconds, "-c", &address];
        start(from, &argv).and_then(finish).and_then(|(_, output)| parse_iperf(&output))
    } else {
        Err(Failure::Broken("iperf3 -s does not listen".to_owned()))
    };
    // One-shot servers end after their client. Without a client, they must be killed.
    let _ = server.kill();
    let _ = server.wait();
    result
}

/// Waits until the server reports that it listens. Further output is discarded.
fn wait_until_listening(stdout: ChildStdout) -> bool {
    let mut lines = BufReader::new(stdout).lines();
    let ready = lines.by_ref().map_while(Result::ok).any(|line| line.contains("listening"));
    // The pipe stays open and empty until the server ends.
    std::thread::spawn(move || lines.for_each(drop));
    ready
}

fn start(namespace: &Namespace, argv: &[&str]) -> Result<Child, Failure> {
    let (program, arguments) = argv.split_first().unwrap_or((&"", &[]));
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // Only this process receives Ctrl-C; it decides when commands end.
    command.process_group(0);
    // A process starts in the namespace of the thread that creates it.
    let started = namespace.run(move || command.spawn())?;
    started.map_err(|error| Failure::Broken(format!("{program} cannot be run: {error}")))
}

/// Waits for a command, or kills it if this process is interrupted. Returns its exit code and output.
fn finish(mut child: Child) -> Result<(i32, String), Failure> {
    let read = |pipe: Option<Box<dyn Read + Send>>| {
        std::thread::spawn(move || {
            let mut text = String::new();
            pipe.map(|mut pipe| pipe.read_to_string(&mut text));
            text
        })
    };
    let output = read(child.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>));
    let errors = read(child.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>));
    let status = loop {
        match child
            .try_wait()
            .map_err(|error| Failure::Broken(format!("cannot wait for a command: {error}")))?
        {
            Some(status) => break status,
            None if stop::requested() => {
                let _ = child.kill();
            }
            None => std::thread::sleep(POLL_INTERVAL),
        }
    };
    let text = |thread: std::thread::JoinHandle<String>| thread.join().unwrap_or_default();
    let (output, errors) = (text(output), text(errors));
    stop::check()?;
    Ok((status.code().unwrap_or(-1), if output.trim().is_empty() { errors } else { output }))
}

/// `5 packets transmitted, 4 received, +1 duplicates, 20% packet loss, time 804ms`.
fn parse_ping(output: &str) -> Option<Pinged> {
    let line = output.lines().find(|line| line.contains(" packets transmitted, "))?;
    let number = |what: &str| {
        let part = line.split(", ").find(|part| part.contains(what))?;
        part.trim_start_matches('+').split(' ').next()?.parse::<u64>().ok()
    };
    Some(Pinged {
        sent: number("packets transmitted")?,
        received: number("received")?,
        doubled: number("duplicates").unwrap_or(0),
    })
}

/// The received rate in the JSON output of `iperf3 -J`.
fn parse_iperf(output: &str) -> Result<f64, Failure> {
    let json: Value = serde_json::from_str(output)
        .map_err(|error| Failure::Broken(format!("iperf3: {error} in '{}'", output.trim())))?;
    if let Some(error) = json["error"].as_str() {
        return Err(Failure::Broken(format!("iperf3: {error}")));
    }
    json["end"]["sum_received"]["bits_per_second"]
        .as_f64()
        .ok_or_else(|| Failure::Broken("iperf3: the result has no rate".to_owned()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use super::*;

    #[test]
    fn ping_output_is_parsed() {
        let line = "5 packets transmitted, 5 received, 0% packet loss, time 804ms";
        let text = format!("PING 10.0.1.2\n\n--- 10.0.1.2 ping statistics ---\n{line}\nrtt min/avg\n");
        assert_eq!(parse_ping(&text), Some(Pinged { sent: 5, received: 5, doubled: 0 }));
        let line =
            "3 packets transmitted, 1 received, +2 duplicates, +1 errors, 66.6667% packet loss, time 2ms";
        assert_eq!(parse_ping(line), Some(Pinged { sent: 3, received: 1, doubled: 2 }));
        assert_eq!(parse_ping("ping: connect: Network is unreachable"), None);
    }

    #[test]
    fn iperf_output_is_parsed() {
        let json = r#"{"end": {"sum_received": {"bits_per_second": 1.5e9}}}"#;
        assert!((parse_iperf(json).unwrap() - 1.5e9).abs() < 1.0);
        let error = parse_iperf(r#"{"error": "unable to connect"}"#).unwrap_err();
        assert_eq!(error.to_string(), "iperf3: unable to connect");
        assert!(parse_iperf("{}").is_err() && parse_iperf("no").is_err());
    }

    #[test]
    fn results_are_in_order() {
        let items: Vec<usize> = (0..500).collect();
        let done = all(&items, |item| Ok(item * 2)).unwrap();
        assert_eq!(done, (0..500).map(|item| item * 2).collect::<Vec<_>>());
        assert!(
            all(&items, |item| if *item == 77 { Err(Failure::Broken("77".into())) } else { Ok(()) }).is_err()
        );
        assert!(all(&[] as &[u8], |_| Ok(())).unwrap().is_empty());
    }
}
