//! The machine of ns-2's TCP-Linux.

use super::Transmit;
use super::sender::TcpSender;
use paceline_packet::{Extra, Packet};
use paceline_units::Time;

#[derive(Debug, Default)]
pub(super) struct Linux {}

impl TcpSender {
    pub(super) fn on_ack_linux(&mut self, now: Time, p: &Packet, extra: Option<&Extra>, out: &mut impl Transmit) {
        self.on_ack_sack(now, p, extra, out);
    }
    pub(super) fn pump_linux(&mut self, now: Time, out: &mut impl Transmit) {
        self.pump(now, u32::MAX, out);
    }
    pub(super) fn expired_linux(&mut self, now: Time, out: &mut impl Transmit) {
        self.linux = None;
        self.expired(now, out);
    }
}
