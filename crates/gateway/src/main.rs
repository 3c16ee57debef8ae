//! `paceline-gateway`: the gateway as a standalone program, for routers without Python.
//!
//! It reads its options, and writes the measurements of [`paceline_live::gateway`] to the terminal (lines, or JSON with
//! `--json`) and to a file. Exit codes: 0 done, 1 a system error, 2 invalid options.

use paceline_live::gateway::options::HELP;
use paceline_live::gateway::privileges::keep_needed;
use paceline_live::gateway::{GatewayError, GatewayReport, RawOptions, Status, run};
use paceline_live::path::Stop;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

/// Stops the gateway; used by the signal handler.
static STOP: OnceLock<Stop> = OnceLock::new();

extern "C" fn on_signal(_number: i32) {
    if let Some(stop) = STOP.get() {
        stop.stop();
    }
}

/// This program's own options, beside the gateway's.
#[derive(Default)]
struct Options {
    words: RawOptions,
    json: bool,
    out: Option<PathBuf>,
}

/// Parses the arguments; `None` if they only requested help, which was printed.
fn read() -> Result<Option<Options>, String> {
    use lexopt::prelude::{Long, Short, ValueExt};
    let mut options = Options::default();
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next().map_err(|error| error.to_string())? {
        match argument {
            Long("help") | Short('h') => {
                say(format_args!("{HELP}{MORE}"));
                return Ok(None);
            }
            Long("version") => {
                say(format_args!("paceline-gateway {}\n", env!("CARGO_PKG_VERSION")));
                return Ok(None);
            }
            Long("dry-run") => options.words.dry_run = true,
            Long("json") => options.json = true,
            Long("out") => options.out = Some(parser.value().map_err(|error| error.to_string())?.into()),
            Long(name) => {
                let name = name.to_owned();
                let Some(place) = options.words.place(&name) else {
                    return Err(format!("there is no option --{name}: --help lists them"));
                };
                let value = parser.value().and_then(|value| value.string()).map_err(|error| error.to_string())?;
                *place = Some(value);
            }
            other => return Err(format!("{}: --help lists the options", other.unexpected())),
        }
    }
    Ok(Some(options))
}

const MORE: &str = "  --json                One JSON object an interval on stdout, and one at the end.
  --out FILE            The same into a file.
  --version             The version.

Example: paceline-gateway --lan br-lan --rate 50Mbit/s
";

fn main() -> ExitCode {
    let options = match read() {
        Ok(Some(options)) => options,
        Ok(None) => return ExitCode::SUCCESS,
        Err(why) => return fail(&why, 2),
    };
    match gateway(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error @ (GatewayError::Options(_) | GatewayError::NoInterface { .. })) => fail(&error.to_string(), 2),
        Err(error) => fail(&error.to_string(), 1),
    }
}

/// Writes to standard output, and ignores errors such as a closed pipe.
fn say(text: std::fmt::Arguments<'_>) {
    let _ = io::stdout().write_fmt(text);
}

/// Writes to standard error, if there is one.
fn complain(why: &str) {
    let _ = writeln!(io::stderr(), "paceline-gateway: {why}");
}

fn fail(why: &str, code: u8) -> ExitCode {
    complain(why);
    ExitCode::from(code)
}

fn gateway(arguments: &Options) -> Result<(), GatewayError> {
    let system = |what| move |error| GatewayError::System { what, error };
    let options = arguments.words.options()?;
    let stop = Stop::new().map_err(system("eventfd(2)"))?;
    let stop = STOP.get_or_init(|| stop);
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: complete structures; the handler only stores a flag and makes one system call, write(2).
        unsafe {
            let mut before = std::mem::zeroed::<libc::sigaction>();
            libc::sigaction(signal, std::ptr::null(), &raw mut before);
            // signals ignored under nohup or in a shell's background stay ignored
            if signal != libc::SIGTERM && before.sa_sigaction == libc::SIG_IGN {
                continue;
            }
            let mut action = std::mem::zeroed::<libc::sigaction>();
            action.sa_sigaction = on_signal as *const () as usize;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        }
    }
    let mut out = match &arguments.out {
        Some(path) => Some(Out::create(path)?),
        None => None,
    };
    // after the file is open, and before there is a second thread
    keep_needed()?;
    let terminal = Terminal::open();
    let mut shown = 0_u64;
    let report = run(&options, stop, &mut |status| {
        let json = || serde_json::to_string(status).unwrap_or_default();
        if let Some(out) = &mut out {
            out.write(&json());
        }
        let second = status.time_s as u64;
        if arguments.json {
            terminal.say(json());
        } else if second > shown {
            shown = second;
            terminal.say(line(status));
        }
    })?;
    let json = serde_json::to_string(&report).unwrap_or_default();
    if let Some(out) = &mut out {
        out.write(&json);
    }
    terminal.end(if arguments.json { json } else { summary(&report) });
    out.map_or(Ok(()), Out::end)
}

/// The output file. Its old content is removed with the first line, so a failed start keeps it. A full disk ends the
/// output, not the gateway.
struct Out {
    #[expect(clippy::disallowed_types, reason = "a file that the user asked for")]
    file: std::fs::File,
    fresh: bool,
    error: Option<io::Error>,
}

impl Out {
    fn create(path: &std::path::Path) -> Result<Out, GatewayError> {
        let opened = std::fs::OpenOptions::new().append(true).create(true).open(path);
        let file = opened.map_err(|error| GatewayError::Options(format!("--out {}: {error}", path.display())))?;
        Ok(Out { file, fresh: true, error: None })
    }

    /// Writes a line without buffering: readers that follow the file see it at once, and a killed gateway loses
    /// nothing.
    fn write(&mut self, json: &str) {
        if self.error.is_some() {
            return;
        }
        let emptied = if std::mem::take(&mut self.fresh) { self.empty() } else { Ok(()) };
        if let Err(error) = emptied.and_then(|()| self.file.write_all(format!("{json}\n").as_bytes())) {
            complain(&format!("writing --out: {error}; nothing more is written there, the gateway goes on"));
            self.error = Some(error);
        }
    }

    fn empty(&self) -> io::Result<()> {
        // a pipe or a terminal has no content to remove
        if self.file.metadata()?.is_file() { self.file.set_len(0) } else { Ok(()) }
    }

    fn end(self) -> Result<(), GatewayError> {
        self.error.map_or(Ok(()), |error| Err(GatewayError::System { what: "writing --out", error }))
    }
}

/// Standard output, written on a separate thread: a reader that has stopped reading must not block the gateway.
struct Terminal {
    lines: SyncSender<String>,
    done: Receiver<()>,
}

impl Terminal {
    /// Maximum number of lines waiting for a slow reader; further ones are dropped.
    const WAITING: usize = 64;
    /// How long to wait for a reader at the end.
    const PATIENCE: Duration = Duration::from_secs(2);

    fn open() -> Terminal {
        let (lines, to_write) = sync_channel::<String>(Terminal::WAITING);
        let (finished, done) = sync_channel(1);
        std::thread::spawn(move || {
            // a reader that has gone does not end the gateway
            for line in to_write {
                let _ = writeln!(io::stdout(), "{line}");
            }
            let _ = finished.send(());
        });
        Terminal { lines, done }
    }

    fn say(&self, line: String) {
        let _ = self.lines.try_send(line);
    }

    fn end(self, line: String) {
        // wait until the thread has room, unless the reader is gone
        let mut line = line;
        for _ in 0..100 {
            match self.lines.try_send(line) {
                Err(TrySendError::Full(back)) => line = back,
                Ok(()) | Err(TrySendError::Disconnected(_)) => break,
            }
            let _ = self.done.recv_timeout(Terminal::PATIENCE / 100);
        }
        drop(self.lines);
        let _ = self.done.recv_timeout(Terminal::PATIENCE);
    }
}

/// Formats a status as one line.
fn line(status: &Status) -> String {
    let limited = status.flows.iter().filter(|flow| flow.window_bytes.is_some()).count();
    let rate = status.flows.iter().fold(0.0, |sum, flow| sum + flow.rate_bps);
    let beside = match status.left_alone {
        0 => String::new(),
        alone => format!(" beside {alone} that began before the gateway"),
    };
    format!(
        "{:.0} s: delay {:.1} ms, TCP {:.2} Mbit/s in {} flows ({limited} limited){beside}, UDP {:.2} Mbit/s, {} windows \
         lowered",
        status.time_s,
        status.delay_s * 1e3,
        rate / 1e6,
        status.flows.len(),
        status.udp_bps / 1e6,
        status.lowered
    )
}

fn summary(report: &GatewayReport) -> String {
    let waits = match (report.delay_mean_s, report.delay_max_s) {
        (Some(mean), Some(max)) => {
            format!("longest waits {:.1} ms in the mean, {:.1} ms at most; ", mean * 1e3, max * 1e3)
        }
        _ => String::new(),
    };
    format!(
        "{:.1} s on {} ({}, delay from {}): {waits}{} windows {}",
        report.duration_s,
        report.lan,
        report.attached,
        report.delay_from,
        report.lowered,
        if report.dry_run { "would have been lowered" } else { "lowered" }
    )
}
