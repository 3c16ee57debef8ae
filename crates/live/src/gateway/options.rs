//! A gateway's options as text, for the Python command and for the program without Python.

use super::bpf::attach::Hook;
use super::delay::{DelayFrom, bucket};
use super::error::GatewayError;
use super::run::GatewayOptions;
use paceline_path::access_point::{Growth, Law, SapLaw, Voap, VoapModel};
use paceline_units::{Rate, Size, Span};
use serde::Deserialize;
use std::fmt::Display;
use std::str::FromStr;

/// The options given; the others have defaults.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "named as the options are, which `HELP` explains")]
pub struct RawOptions {
    pub lan: Option<String>,
    pub wan: Option<String>,
    pub algorithm: Option<String>,
    pub alpha: Option<String>,
    pub beta: Option<String>,
    pub interval: Option<String>,
    pub growth: Option<String>,
    pub capacity: Option<String>,
    pub rtt: Option<String>,
    pub window: Option<String>,
    pub rate: Option<String>,
    pub queue: Option<String>,
    pub delay_from: Option<String>,
    pub hook: Option<String>,
    pub duration: Option<String>,
    pub dry_run: bool,
}

/// The options as printed by the program without Python.
pub const HELP: &str = "\
Keeps the queue towards the stations of a home short by lowering the windows that they announce to TCP senders.

Usage: paceline-gateway --lan IF [OPTIONS]

  --lan IF              The interface towards the stations; all that is done is done there.
  --wan IF              The interface towards the Internet: looked for, and left alone.
  --algorithm NAME      voap (default) or sap-law.
  --alpha SPAN          VoAP: windows grow below this delay. Default: 5ms.
  --beta SPAN           VoAP: windows shrink above this delay. Default: 15ms.
  --interval SPAN       From one decision to the next. Default: 200ms; of sap-law 2s.
  --growth all|used     VoAP: which windows grow: all of active flows (default), or those that are used up.
  --capacity RATE       SAP-LAW: what the stations' channel carries. Default: --rate.
  --rtt SPAN            SAP-LAW: the RTT of flows whose handshake was not seen whole. Default: 100ms.
  --window SIZE         A fixed window for all connections instead of an algorithm.
  --rate RATE           Shape what goes to the stations, so that packets wait in a queue of the gateway's.
  --queue SIZE          How much may wait in it. Default: 250 ms at its rate.
  --delay-from WHERE    shaper (default with --rate), queue (the interface's own queueing discipline), or ack
                        (default without --rate: from data to their acknowledgement; for Wi-Fi).
  --hook tcx|cls_bpf    How the programs are attached. Default: tcx, or cls_bpf before Linux 6.6.
  --for SPAN            How long. Default: until SIGINT or SIGTERM.
  --dry-run             Measure, and lower nothing.
";

impl RawOptions {
    /// Names of the options that take a value.
    pub const NAMES: [&'static str; 15] = [
        "lan",
        "wan",
        "algorithm",
        "alpha",
        "beta",
        "interval",
        "growth",
        "capacity",
        "rtt",
        "window",
        "rate",
        "queue",
        "delay-from",
        "hook",
        "for",
    ];

    /// The field of an option's value; `None` if there is no such option.
    pub fn place(&mut self, name: &str) -> Option<&mut Option<String>> {
        Some(match name {
            "lan" => &mut self.lan,
            "wan" => &mut self.wan,
            "algorithm" => &mut self.algorithm,
            "alpha" => &mut self.alpha,
            "beta" => &mut self.beta,
            "interval" => &mut self.interval,
            "growth" => &mut self.growth,
            "capacity" => &mut self.capacity,
            "rtt" => &mut self.rtt,
            "window" => &mut self.window,
            "rate" => &mut self.rate,
            "queue" => &mut self.queue,
            "delay-from" => &mut self.delay_from,
            "hook" => &mut self.hook,
            "for" => &mut self.duration,
            _ => return None,
        })
    }

    /// Parses the options.
    ///
    /// # Errors
    /// Missing, invalid or inconsistent options.
    pub fn options(&self) -> Result<GatewayOptions, GatewayError> {
        let Some(lan) = self.lan.clone() else {
            return Err(wrong("--lan IF is missing: the interface towards the stations (ip link shows them)"));
        };
        let rate: Option<Rate> = read("rate", self.rate.as_ref())?;
        let law = self.law(rate)?;
        let interval = law.interval();
        if !(Span::from_millis(10)..=Span::from_secs(60)).contains(&interval) {
            return Err(wrong(format!("--interval {interval}: from 10 ms to 60 s")));
        }
        Ok(GatewayOptions {
            lan,
            wan: self.wan.clone(),
            law,
            delay: self.delay(rate)?,
            dry_run: self.dry_run,
            duration: read("for", self.duration.as_ref())?,
            hook: match self.hook.as_deref() {
                None => Hook::Any,
                Some("tcx") => Hook::Link,
                Some("cls_bpf") => Hook::Filter,
                Some(other) => return Err(one_of("hook", other, "tcx, cls_bpf")),
            },
        })
    }

    /// Parses a law from one word: `voap`, `sap-law` or `window`, with settings, for example `voap,beta=20ms`,
    /// `sap-law,capacity=8Mbit/s`, `window=30kB`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn law_of(text: &str) -> Result<Law, GatewayError> {
        let mut words = RawOptions::default();
        for part in text.split(',') {
            let (name, value) = part.split_once('=').unwrap_or(("algorithm", part));
            let known = ["algorithm", "alpha", "beta", "interval", "growth", "capacity", "rtt", "window"];
            let Some(place) = known.contains(&name).then(|| words.place(name)).flatten() else {
                return Err(wrong(format!("an access point has no `{name}`: it has {}", known[1..].join(", "))));
            };
            *place = Some(value.to_owned());
        }
        // here these are parts of one option, not separate options
        words.law(None).map_err(|error| wrong(format!("access point: {}", error.to_string().replace("--", ""))))
    }

    fn law(&self, rate: Option<Rate>) -> Result<Law, GatewayError> {
        let interval: Option<Span> = read("interval", self.interval.as_ref())?;
        let only = |names: &[(&str, &Option<String>)], with: &str| match names.iter().find(|(_, word)| word.is_some()) {
            Some((name, _)) => Err(wrong(format!("--{name} goes with {with}"))),
            None => Ok(()),
        };
        let of_voap = [("alpha", &self.alpha), ("beta", &self.beta), ("growth", &self.growth)];
        let of_sap_law = [("capacity", &self.capacity), ("rtt", &self.rtt)];
        if let Some(size) = read::<Size>("window", self.window.as_ref())? {
            let others = [("algorithm", &self.algorithm), ("interval", &self.interval)];
            only(&[&of_voap[..], &of_sap_law, &others].concat(), "an algorithm, not with --window")?;
            if !(1..=u64::from(u32::MAX)).contains(&size.bytes()) {
                return Err(wrong(format!("--window {}B: from 1 B to 4 GB", size.bytes())));
            }
            return Ok(Law::Fixed(size.bytes()));
        }
        match self.algorithm.as_deref().unwrap_or("voap") {
            "voap" => {
                only(&of_sap_law, "--algorithm sap-law")?;
                let default = VoapModel::default();
                let model = VoapModel {
                    alpha: read("alpha", self.alpha.as_ref())?.unwrap_or(default.alpha),
                    beta: read("beta", self.beta.as_ref())?.unwrap_or(default.beta),
                    interval: interval.unwrap_or(default.interval),
                    growth: match self.growth.as_deref() {
                        None | Some("all") => Growth::All,
                        Some("used") => Growth::Used,
                        Some(other) => return Err(one_of("growth", other, "all, used")),
                    },
                    ..default
                };
                if model.alpha > model.beta {
                    return Err(wrong(format!("--alpha {} must be at most --beta {}", model.alpha, model.beta)));
                }
                Ok(Law::Voap(Voap::new(model)))
            }
            "sap-law" => {
                only(&of_voap, "--algorithm voap")?;
                let capacity = read("capacity", self.capacity.as_ref())?.or(rate);
                let Some(capacity) = capacity else {
                    return Err(wrong("SAP-LAW must be told what the stations' channel carries: --capacity RATE"));
                };
                if !(8e3..=1e12).contains(&capacity.bps()) {
                    return Err(wrong(format!("--capacity {capacity}: from 8 kbit/s to 1 Tbit/s")));
                }
                let rtt = read("rtt", self.rtt.as_ref())?.unwrap_or(Span::from_millis(100));
                if !(Span::from_micros(1)..=Span::from_secs(60)).contains(&rtt) {
                    return Err(wrong(format!("--rtt {rtt}: from 1 us to 60 s")));
                }
                let law = SapLaw::new(capacity, rtt);
                Ok(Law::SapLaw(SapLaw { interval: interval.unwrap_or(law.interval), ..law }))
            }
            other => Err(one_of("algorithm", other, "voap, sap-law")),
        }
    }

    fn delay(&self, rate: Option<Rate>) -> Result<DelayFrom, GatewayError> {
        let limit: Option<Size> = read("queue", self.queue.as_ref())?;
        let shaper = |rate| {
            let limit = limit.unwrap_or_else(|| GatewayOptions::queue(rate));
            // reject a bucket that the kernel could not create before changing anything
            bucket(rate, limit, 0).map(|_| DelayFrom::Shaper { rate, limit })
        };
        match (self.delay_from.as_deref(), rate) {
            (None | Some("shaper"), Some(rate)) => shaper(rate),
            (Some("shaper"), None) => Err(wrong("--delay-from shaper needs --rate RATE")),
            (_, None) if limit.is_some() => Err(wrong("--queue goes with --rate")),
            (Some("queue" | "ack"), Some(_)) => {
                Err(wrong("--rate makes a queue whose delay is known: leave --delay-from out, or --rate"))
            }
            (None | Some("ack"), None) => Ok(DelayFrom::Ack),
            (Some("queue"), None) => Ok(DelayFrom::Queue),
            (Some(other), _) => Err(one_of("delay-from", other, "shaper, queue, ack")),
        }
    }
}

fn wrong(text: impl Into<String>) -> GatewayError {
    GatewayError::Options(text.into())
}

fn one_of(name: &str, word: &str, allowed: &str) -> GatewayError {
    wrong(format!("--{name} {word}: one of {allowed}"))
}

fn read<T: FromStr<Err: Display>>(name: &str, word: Option<&String>) -> Result<Option<T>, GatewayError> {
    let parse = |word: &String| word.parse().map_err(|error| wrong(format!("--{name} {word}: {error}")));
    word.map(parse).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Result<GatewayOptions, String> {
        let mut words = RawOptions::default();
        for pair in text.split_ascii_whitespace() {
            let (name, value) = pair.split_once('=').unwrap();
            *words.place(name).unwrap() = Some(value.to_owned());
        }
        words.options().map_err(|error| error.to_string())
    }

    #[test]
    fn words_become_options() {
        let options = words("lan=lan0").unwrap();
        assert_eq!((options.delay, options.law.interval()), (DelayFrom::Ack, Span::from_millis(200)));
        let options = words("lan=lan0 rate=8Mbit/s algorithm=sap-law").unwrap();
        let shaper = DelayFrom::Shaper { rate: Rate::from_mbps(8.0), limit: Size::from_bytes(250_000) };
        assert_eq!((options.delay, options.law.interval()), (shaper, Span::from_secs(2)));
        assert_eq!(words("lan=lan0 window=30kB").unwrap().law, Law::Fixed(30_000));
    }

    #[test]
    fn each_option_has_a_place_and_a_line_of_help() {
        for name in RawOptions::NAMES {
            assert!(RawOptions::default().place(name).is_some() && HELP.contains(&format!("\n  --{name} ")), "{name}");
        }
        assert!(RawOptions::default().place("dry-run").is_none());
    }

    #[test]
    fn a_law_in_a_word() {
        let Ok(Law::Voap(_)) = RawOptions::law_of("voap,beta=20ms") else { panic!() };
        assert_eq!(RawOptions::law_of("window=30kB").unwrap(), Law::Fixed(30_000));
        let error = |text| RawOptions::law_of(text).unwrap_err().to_string();
        assert!(error("voap,lan=eth0").starts_with("an access point has no `lan`: it has alpha, "));
        assert_eq!(error("vegas"), "access point: algorithm vegas: one of voap, sap-law");
        assert!(error("sap-law").contains("carries: capacity RATE"));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, part) in [
            ("wan=a", "--lan IF is missing"),
            ("lan=a alpha=20ms", "--alpha 20 ms must be at most --beta 15 ms"),
            ("lan=a algorithm=vegas", "--algorithm vegas: one of voap, sap-law"),
            ("lan=a algorithm=sap-law", "--capacity RATE"),
            ("lan=a algorithm=sap-law capacity=1Mbit/s beta=9ms", "--beta goes with --algorithm voap"),
            ("lan=a window=3kB beta=9ms", "--beta goes with an algorithm"),
            ("lan=a queue=3kB", "--queue goes with --rate"),
            ("lan=a rate=3Mbit/s delay-from=ack", "leave --delay-from out"),
            ("lan=a delay-from=here", "one of shaper, queue, ack"),
            ("lan=a rate=3 delay-from=ack", "--rate 3: "),
            ("lan=a interval=1ms", "from 10 ms to 60 s"),
            ("lan=a window=0B", "--window 0B: from 1 B to 4 GB"),
            ("lan=a window=5GB", "from 1 B to 4 GB"),
            ("lan=a algorithm=sap-law capacity=1kbit/s", "--capacity 1 kbit/s: from 8 kbit/s"),
            ("lan=a algorithm=sap-law capacity=1Mbit/s rtt=0s", "from 1 us to 60 s"),
            ("lan=a rate=1kbit/s", "--rate 1 kbit/s: from 8 kbit/s to 34 Gbit/s"),
            ("lan=a rate=1Mbit/s queue=100B", "--queue 100B: from 3200 B to 4 GB"),
        ] {
            let error = words(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
