//! The limits that a kernel's buffers set on outstanding data: the receive buffer, which grows with the arriving data
//! ("dynamic right-sizing"), and the send buffer.
//!
//! Sources: M. Fisk and W. Feng, "Dynamic right-sizing in TCP", LACSI 2001; the behaviour of a kernel 6.18
//! (`tcp_rcv_space_adjust`, `tcp_rcvbuf_grow`, `tcp_grow_window`), whose own numbers are compared in the test below.
//! The receive window is computed here, at the sender, from the acknowledgements: in their order and by the round-trip
//! time, as the receiver would compute it. So no acknowledgement needs to carry it.

use crate::tcp::TcpConfig;
use paceline_units::{Span, Time};

/// `tcp_rmem[1]`: the initial receive buffer in bytes of memory.
const FIRST: u64 = 131_072;
/// The window in the SYN-ACK: 16 bits without a scale, rounded down to whole segments.
const FIRST_WINDOW: u64 = 65_535;
/// `TCP_INIT_CWND`: the number of segments that the receiver initially expects in a round trip.
const EXPECTED: u64 = 10;
/// The unit of receive memory in bytes: `ratio` of them are payload.
const UNIT: u64 = 256;

/// The state of buffer tuning.
#[derive(Debug)]
pub(super) struct Autotune {
    segment: u64,
    /// The maximum memory of the receive buffer; `None`: unlimited, and nothing is tuned.
    rmem_max: Option<u64>,
    /// Payload in 256 bytes of receive memory (`scaling_ratio`).
    ratio: u64,
    /// Memory of the receive buffer (`sk_rcvbuf`).
    buffer: u64,
    /// The most bytes received in a round trip (`rcvq_space.space`); the start time and first segment of the current
    /// one.
    space: u64,
    since: Time,
    from: u32,
    /// The limit of the window, and the window, which grows by two segments for each one received (`window_clamp`,
    /// `rcv_ssthresh`).
    clamp: u64,
    window: u64,
    /// The size of the send buffer in segments.
    sndbuf_segments: u32,
    /// The smaller of the two limits, in segments. `behind`: it may be below the window, because out-of-order segments
    /// took a share.
    bound: u32,
    behind: bool,
}

impl Autotune {
    pub(super) fn new(config: &TcpConfig, base: u32) -> Autotune {
        let segment = u64::from(config.segment.max(1));
        // memory of a packet: its frame with headroom and tail, rounded up to a power of 2, and its descriptor
        let memory = (u64::from(config.wire()) + 400).next_power_of_two() + 256;
        let rmem_max = config.receive_buffer;
        let window = FIRST_WINDOW / segment * segment;
        let mut tune = Autotune {
            segment,
            rmem_max,
            ratio: (segment * UNIT / memory).clamp(1, UNIT - 1),
            buffer: FIRST.min(rmem_max.unwrap_or(FIRST)),
            space: EXPECTED * segment,
            since: Time::ZERO,
            from: base,
            clamp: 0,
            window,
            sndbuf_segments: config.send_buffer.map_or(u32::MAX, |bytes| segments_in(bytes, segment)),
            bound: 0,
            behind: false,
        };
        tune.clamp = tune.window_of(tune.buffer);
        tune.window = tune.window.min(tune.clamp).max(segment);
        tune.bind();
        tune
    }

    fn window_of(&self, memory: u64) -> u64 {
        memory * self.ratio / UNIT
    }

    /// The number of segments that may be outstanding; at least one.
    #[inline]
    pub(super) fn bound(&self) -> u32 {
        self.bound
    }

    fn bind(&mut self) {
        let window = if self.rmem_max.is_some() { self.window / self.segment } else { u64::MAX };
        self.bound = u32::try_from(window).unwrap_or(u32::MAX).min(self.sndbuf_segments).max(1);
    }

    /// The connection is established; its data begins with segment `from`.
    pub(super) fn begin(&mut self, now: Time, from: u32) {
        (self.since, self.from) = (now, from);
    }

    /// Processes `acked` segments that arrived in order, up to `una`; others have arrived out of order up to `forward`.
    #[inline]
    pub(super) fn arrived(&mut self, now: Time, una: u32, acked: u32, forward: u32, rtt: Span) {
        if self.rmem_max.is_none() || acked == 0 {
            return;
        }
        if now.since(self.since) >= rtt && rtt > Span::ZERO {
            self.round(now, una, forward.saturating_sub(una));
        }
        if self.window < self.clamp || self.behind {
            self.behind = false;
            self.window = (self.window + 2 * self.segment * u64::from(acked)).min(self.clamp);
            self.bind();
        }
    }

    /// Processes `fresh` segments that arrived out of order, up to `forward`; `held` is the number waiting there,
    /// including these (`tcp_data_queue_ofo`). Their memory is not the window's, whose right edge never moves back.
    #[inline]
    pub(super) fn arrived_beyond(&mut self, una: u32, fresh: u32, forward: u32, held: u32) {
        if self.rmem_max.is_some() {
            self.make_room(una, fresh, forward, held);
        }
    }

    #[cold]
    fn make_room(&mut self, una: u32, fresh: u32, forward: u32, held: u32) {
        self.provide(2 * self.space + u64::from(forward.saturating_sub(una)) * self.segment);
        self.window = (self.window + 2 * self.segment * u64::from(fresh)).min(self.clamp);
        self.behind = true;
        let free = self.window.min(self.clamp.saturating_sub(u64::from(held) * self.segment)) / self.segment;
        self.bound = self.bound.max(u32::try_from(free).unwrap_or(u32::MAX).min(self.sndbuf_segments));
    }

    /// Ends a round trip: `tcp_rcv_space_adjust`.
    #[inline(never)]
    fn round(&mut self, now: Time, una: u32, beyond: u32) {
        let copied = u64::from(una - self.from) * self.segment;
        if copied > self.space {
            self.grow(copied, u64::from(beyond) * self.segment);
        }
        self.from = una;
        self.since = now;
    }

    /// `tcp_rcvbuf_grow`: twice the bytes of a round trip, because the measurement lags by one, plus twice that value
    /// times its relative growth.
    fn grow(&mut self, copied: u64, beyond: u64) {
        let before = core::mem::replace(&mut self.space, copied).max(1);
        let twice = 2 * copied;
        let growth = u128::from(twice) * u128::from(copied - before) / u128::from(before);
        let growth = u64::try_from(growth).unwrap_or(u64::MAX / 4).min(u64::MAX / 4);
        self.provide(twice + 2 * growth + beyond);
    }

    /// Enlarges the buffer for a window, within its limit.
    fn provide(&mut self, window: u64) {
        let memory = (u128::from(window) * u128::from(UNIT) / u128::from(self.ratio)) as u64;
        let memory = memory.min(self.rmem_max.unwrap_or(u64::MAX));
        if memory > self.buffer {
            self.buffer = memory;
            self.clamp = self.window_of(memory);
        }
    }
}

/// Segments in a send buffer of `memory` bytes (`tcp_wmem[2]`): fifteen sixteenths of it are payload. A kernel 6.18
/// kept 3,932,160 B of an application's writes in its 4,194,304 B.
// Below that limit, the buffer is at least twice what the window takes (tcp_sndbuf_expand), and does not limit the
// sender.
fn segments_in(memory: u64, segment: u64) -> u32 {
    u32::try_from(memory / 16 * 15 / segment).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_control::{Profile, registry};

    fn tune(receive: Option<u64>, send: Option<u64>) -> Autotune {
        let linux = TcpConfig::new(Profile::Linux, registry::scheme("reno").unwrap());
        Autotune::new(&TcpConfig { receive_buffer: receive, send_buffer: send, ..linux }, 0)
    }

    /// `rcv_space` and `rb` of `ss -tim` at the receiver: a kernel 6.18, 100 Mbit/s, a round-trip time of 1 s,
    /// `tcp_rmem[2]` 6 MiB.
    #[test]
    fn grows_as_a_kernel_did() {
        let mut tune = tune(Some(6_291_456), None);
        assert_eq!(tune.bound(), 45); // snd_wnd 65160
        tune.arrived(Time::ZERO, 10, 10, 0, Span::ZERO);
        assert_eq!(tune.window.min(81_920) / 1448, 56); // rcv_ssthresh 80480, without a margin for the window's scale
        let seen = [
            (15_928, 131_072),
            (30_408, 274_224),
            (63_712, 650_467),
            (125_976, 1_191_043),
            (253_400, 2_451_280),
            (512_592, 4_995_865),
            (1_007_808, 6_291_456),
        ];
        for (space, buffer) in seen {
            tune.grow(space, 0);
            let error = tune.buffer.abs_diff(buffer) as f64 / buffer as f64;
            assert!(error < 1e-4, "{space}: {} against {buffer}", tune.buffer);
        }
        assert_eq!(tune.clamp, 3_932_160); // snd_wnd 3930752: the window's scale is 2^7
    }

    #[test]
    fn the_sender_s_buffer_binds_between_two_kernels() {
        let mut tune = tune(Some(33_554_432), Some(4_194_304));
        for space in [30_408, 125_976, 1_007_808, 8_000_000] {
            tune.grow(space, 0);
        }
        assert_eq!(tune.clamp, 20_971_520);
        tune.arrived(Time::ZERO, 0, 20_000, 0, Span::ZERO);
        assert_eq!(tune.bound(), 2715); // unacked of `ss -tim`: 2716, the last one short
    }

    /// A hole does not hold the sender back: the buffer grows by the data beyond it (6.16 and later).
    #[test]
    fn what_lies_beyond_a_hole_makes_room_for_itself() {
        let mut tune = tune(Some(6_291_456), None);
        tune.arrived(Time::ZERO, 40, 40, 40, Span::ZERO);
        assert_eq!(tune.bound(), 56);
        tune.grow(100 * 1448, 0);
        let edge = tune.bound();
        tune.arrived_beyond(40, 50, 95, 50);
        assert!((edge..edge + 101).contains(&tune.bound()), "{} after {edge}", tune.bound());
        tune.arrived(Time::ZERO, 95, 55, 95, Span::ZERO);
        assert_eq!(u64::from(tune.bound()), tune.window / 1448);
        assert!(tune.bound() > 200, "{}", tune.bound());
        // at the maximum buffer, the right edge stays
        let mut tune = super::tests::tune(Some(131_072), None);
        tune.arrived(Time::ZERO, 40, 40, 40, Span::ZERO);
        tune.arrived_beyond(40, 50, 95, 50);
        assert_eq!(tune.bound(), 56);
    }

    #[test]
    fn unlimited_buffers_bind_nothing() {
        assert_eq!(tune(None, None).bound(), u32::MAX);
        assert_eq!(tune(None, Some(16 * 1448)).bound(), 15);
        assert_eq!(tune(Some(1), None).bound(), 1);
    }
}
