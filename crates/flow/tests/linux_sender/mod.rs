//! The sender of profile `linux`, alone: a test writes its acknowledgements.

use super::segments::packet;
use paceline_control::{Profile, TcpController, WindowController, registry};
use paceline_flow::Segment;
use paceline_flow::tcp::{TcpConfig, TcpSender};
use paceline_packet::{Block, Flags, Stamp, TcpOptions};
use paceline_random::Stream;
use paceline_units::{Span, Time};

/// A sender whose acknowledgements the test writes; time in milliseconds.
pub struct Bench {
    pub sender: TcpSender,
    pub now: Time,
    pub out: Vec<Segment>,
}

pub fn ms(n: u64) -> Span {
    Span::from_millis(n)
}

pub fn config(scheme: &str) -> TcpConfig {
    TcpConfig::new(Profile::Linux, registry::scheme(scheme).unwrap())
}

impl Bench {
    /// Established after a handshake of `rtt` milliseconds, with `segments` to send (all, if 0).
    pub fn new(scheme: &str, rtt: u64, segments: u64) -> Bench {
        Bench::of(&config(scheme), scheme, rtt, segments)
    }

    /// The same with other settings.
    pub fn of(config: &TcpConfig, scheme: &str, rtt: u64, segments: u64) -> Bench {
        let scheme = registry::scheme(scheme).unwrap();
        let controller = TcpController::new(scheme, Profile::Linux, &[]).unwrap();
        let mut sender = TcpSender::new(config, controller, Stream::new(1, "t"));
        let (now, mut out) = (Time(1_000_000_000), Vec::new());
        match segments {
            0 => sender.supply_endless(now, &mut out),
            n => sender.supply(n * 1448, now, &mut out),
        }
        sender.start(now, &mut out);
        let mut bench = Bench { sender, now, out };
        bench.pass(rtt);
        bench.ack(1, rtt, &[]);
        bench
    }

    /// Lets so many milliseconds pass, timers included.
    pub fn pass(&mut self, span: u64) {
        let end = self.now + ms(span);
        while self.sender.next_wake() <= end {
            self.now = self.sender.next_wake().max(self.now);
            self.sender.on_timer(self.now, &mut self.out);
        }
        self.now = end;
    }

    /// An acknowledgement that echoes a stamp made `ago` milliseconds before.
    pub fn ack(&mut self, next: u32, ago: u64, blocks: &[(u32, u32)]) {
        let mut extra = TcpOptions::NONE;
        for (slot, &(start, end)) in extra.sack.iter_mut().zip(blocks) {
            *slot = Block { start, end };
        }
        let stamp = Stamp::at(self.now - ms(ago));
        let ack = Segment { seq: next, stamp, size: 52, flags: Flags::ACK, extra: None };
        let extra = (!blocks.is_empty()).then_some(&extra);
        self.sender.on_ack(self.now, &packet(self.now, &ack), extra, &mut self.out);
    }

    pub fn seqs(&mut self) -> Vec<u32> {
        self.out.drain(..).map(|s| s.seq).collect()
    }

    pub fn window(&self) -> f64 {
        self.sender.controller().window()
    }
}
