//! A sender of profile `rfc` whose acknowledgements the test writes.

#![allow(missing_docs, dead_code)]

pub(crate) use crate::segments;

use paceline_control::{Profile, TcpController, WindowController, registry};
use paceline_flow::Segment;
use paceline_flow::tcp::{TcpConfig, TcpSender};
use paceline_packet::{Block, Flags, Stamp, TcpOptions};
use paceline_random::Stream;
use paceline_units::{Span, Time};
use segments::packet;

/// A sender whose acknowledgements the test writes.
pub struct Bench {
    pub sender: TcpSender,
    pub now: Time,
    pub out: Vec<Segment>,
    pub sent: Time,
}

pub fn config(scheme: &str) -> TcpConfig {
    TcpConfig::new(Profile::Rfc, registry::scheme(scheme).unwrap())
}

pub fn ms(n: u64) -> Span {
    Span::from_millis(n)
}

impl Bench {
    /// Established, with an initial window of `window`, after a handshake of 100 ms.
    pub fn new(scheme: &str, config: TcpConfig, window: u32) -> Bench {
        let scheme = registry::scheme(scheme).unwrap();
        let controller = TcpController::new(scheme, config.profile, &[]).unwrap();
        Bench::of(config, controller, window)
    }

    /// The same with this controller.
    pub fn of(config: TcpConfig, controller: TcpController, window: u32) -> Bench {
        let config = TcpConfig { initial_window: window, ..config };
        let sender = TcpSender::new(&config, controller, Stream::new(1, "t"));
        let mut bench = Bench { sender, now: Time(0), out: Vec::new(), sent: Time(0) };
        bench.sender.supply_endless(bench.now, &mut bench.out);
        bench.sender.start(bench.now, &mut bench.out);
        assert_eq!(bench.seqs(), [0]);
        bench.pass(ms(100));
        bench.ack(1);
        bench
    }

    pub fn pass(&mut self, span: Span) {
        self.now += span;
        self.sender.on_timer(self.now, &mut self.out);
    }

    pub fn ack(&mut self, next: u32) {
        self.ack_with(next, Flags::ACK, &[]);
    }

    pub fn ack_with(&mut self, next: u32, flags: Flags, blocks: &[(u32, u32)]) {
        let mut extra = TcpOptions::NONE;
        for (slot, &(start, end)) in extra.sack.iter_mut().zip(blocks) {
            *slot = Block { start, end };
        }
        let ack = Segment { seq: next, stamp: Stamp::at(self.sent), size: 40, flags, extra: None };
        let extra = (!blocks.is_empty()).then_some(&extra);
        self.sender.on_ack(self.now, &packet(self.now, &ack), extra, &mut self.out);
    }

    /// Numbers of what was sent since the last look.
    pub fn seqs(&mut self) -> Vec<u32> {
        self.sent = self.now;
        self.out.drain(..).map(|s| s.seq).collect()
    }

    pub fn window(&self) -> f64 {
        self.sender.controller().window()
    }
}
