//! One direction of an online game: small packets at a fixed tick, without rate adaptation.
//!
//! The server sends the state of the world to each client, and the client sends its player's commands; sizes hardly
//! vary (Feng, Chang, Feng, Walpole, "Provisioning on-line games: a traffic analysis of a busy Counter-Strike server",
//! IMW 2002; Claypool, LaPoint, Winslow, "Network analysis of Counter-Strike and Starcraft", IPCCC 2003). The scenario
//! defaults are those of the work on home gateways by Palazzi, Ferretti, Roccetti, Pau and Gerla: 200 B every 50 ms to
//! the client, 42 B every 60 ms to the server.

use paceline_random::Sequence;
use paceline_units::{Size, Span, Time};

/// One direction of a game.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GameModel {
    /// Payload of a packet.
    pub packet: Size,
    /// The tick interval.
    pub interval: Span,
    /// A packet's delay after its tick, uniform up to this.
    pub jitter: Span,
}

/// A game's ticks.
#[derive(Clone, Debug)]
pub(crate) struct Game {
    model: GameModel,
    start: Time,
    ticks: u64,
}

impl Game {
    /// The first tick is at `start`.
    pub(crate) fn new(model: GameModel, start: Time) -> Game {
        Game { model, start, ticks: 0 }
    }

    pub(crate) fn next(&mut self, draws: &mut Sequence) -> (Time, Size) {
        let tick = self.start + Span(self.model.interval.0.saturating_mul(self.ticks));
        self.ticks += 1;
        let late = if self.model.jitter > Span::ZERO { self.model.jitter.mul_f64(draws.unit()) } else { Span::ZERO };
        (tick + late, self.model.packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::application::Period;
    use crate::timed::{Timed, written};
    use paceline_random::Stream;

    fn game(jitter: u64) -> Vec<(f64, u64)> {
        let model = GameModel {
            packet: Size::from_bytes(200),
            interval: Span::from_millis(50),
            jitter: Span::from_millis(jitter),
        };
        let period = Period { start: Time::from_secs_f64(1.0), stop: Time::from_secs_f64(101.0) };
        written(Timed::game(model, Stream::new(1, "game"), period))
    }

    #[test]
    fn ticks_do_not_drift() {
        let packets = game(0);
        assert_eq!(packets.len(), 2000);
        assert!(
            packets.iter().enumerate().all(|(n, &(at, size))| (at - 1.0 - 0.05 * n as f64).abs() < 1e-9 && size == 200)
        );
    }

    #[test]
    fn jitter_is_uniform_after_the_tick() {
        let packets = game(10);
        let late: Vec<f64> = packets.iter().enumerate().map(|(n, (at, _))| at - 1.0 - 0.05 * n as f64).collect();
        let mean = late.iter().sum::<f64>() / late.len() as f64;
        assert!(late.iter().all(|late| (-1e-9..=0.010).contains(late)), "all within 10 ms");
        // 10 ms / sqrt(12 * 2000) of standard error.
        assert!((mean - 0.005).abs() < 4.0 * 0.01 / (12.0f64 * 2000.0).sqrt(), "{mean}");
    }
}
