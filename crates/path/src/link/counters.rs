//! A link's counters: for its measured interval, its recording, and the end of the run.

use super::{General, Link, Refusal};
use crate::impair::{Counts, Impairments};
use crate::meter::{Series, Snapshot, Waits};
use crate::rate::Server;
use crate::{LinkReport, Totals};
use paceline_units::{Span, Time};

impl Link {
    /// When everything admitted so far has been sent.
    fn free(&self) -> u64 {
        self.general.as_ref().map_or_else(|| self.server.free(), |general| general.server.free())
    }

    /// The counters of everything before `time`. Nothing may have been admitted at `time` or later.
    fn snapshot(&mut self, time: u64) -> Snapshot {
        let (integrals, departed) = self.waiting.up_to(time);
        Snapshot {
            time,
            arrivals: self.arrivals,
            refused: self.refused,
            marks: self.marks,
            classes: None,
            departed,
            integrals,
            idle: self.idle + time.saturating_sub(self.free()),
            max: u32::try_from(self.waiting.max).unwrap_or(u32::MAX),
        }
    }

    /// Runs the meter up to `now` and computes when it must act next.
    #[cold]
    #[inline(never)]
    pub(super) fn cross_boundaries(&mut self, now: u64) {
        while self.boundary <= now {
            let time = self.boundary;
            if self.meter.from.is_none() && self.meter.window.from.0 <= time {
                self.meter.from = Some(self.snapshot(time));
                if let Some(watch) = &mut self.waiting.occupancy {
                    watch.1.begin();
                }
                self.waiting.release(time);
                self.waiting.max = self.waiting.packets();
            }
            if self.meter.to.is_none() && self.meter.window.to.0 <= time {
                self.meter.to = Some(self.snapshot(time));
                if let Some(watch) = &mut self.waiting.occupancy {
                    watch.1.end();
                }
            }
            if self.meter.next_sample <= time {
                let bytes = self.waiting.bytes(time);
                let packets = self.waiting.packets();
                self.meter.sample(time, u32::try_from(packets).unwrap_or(u32::MAX), bytes);
            }
            self.boundary = self.meter.next();
        }
    }

    /// Samples the queue every `every`, from time zero. Call it before the first packet.
    pub fn record(&mut self, every: Span) {
        self.record_waits();
        self.meter.record(every);
        self.boundary = self.meter.next();
    }

    /// Enables [`Link::waits`]. Call it before the first packet.
    pub fn record_waits(&mut self) {
        if self.general.is_none() {
            // Only the general path records waiting times.
            let (server, discipline) = (Server::Constant(self.server), Refusal::Packets(self.limit));
            let impairments = Impairments::of_loss(self.loss.take());
            self.only_sends = false;
            self.general = Some(Box::new(General {
                server,
                recovery: None,
                discipline,
                limits: None,
                policer: None,
                impairments,
                shares: None,
            }));
        }
    }

    /// Waiting times, if enabled by [`Link::record_waits`] or [`Link::record`]. A packet counts when it is admitted.
    #[must_use]
    pub fn waits(&self) -> Waits {
        self.meter.waits
    }

    /// The series requested with [`Link::record`], up to the end given to [`Link::finish`].
    pub fn take_series(&mut self) -> Series {
        core::mem::take(&mut self.meter.series)
    }

    /// Closes the measurement at `end`. A measured interval that is still open ends at `end`, or at the last arrival if
    /// that is later.
    ///
    /// # Panics
    /// If a packet vanished: arrivals must equal departures, drops and waiting packets.
    pub fn finish(&mut self, end: Time) -> LinkReport {
        let until = end;
        let end = end.0.max(self.last);
        self.cross_boundaries(end);
        self.meter.cut(until);
        let closing = self.snapshot(end);
        let (departures, _, drops) = closing.outcome();
        let waiting = self.waiting.packets() as u64;
        assert_eq!(self.arrivals, departures + drops.total() + waiting, "a link lost count of its packets");
        let Counts { reordered, duplicated, corrupted } =
            self.general.as_ref().map_or_else(Counts::default, |general| general.impairments.counts());
        let totals = Totals { arrivals: self.arrivals, departures, drops, waiting, reordered, duplicated, corrupted };
        let to = self.meter.to.unwrap_or(closing);
        let from = self.meter.from.unwrap_or(to);
        let capacity = self.general.as_ref().and_then(|general| general.server.capacity(from.time, to.time));
        let occupancy = self.waiting.occupancy.as_ref().map(|watch| watch.1.shares());
        let shares = self.general.as_mut().and_then(|general| general.shares.as_mut());
        let flows = shares.map_or_else(Vec::new, |shares| shares.finish(end));
        LinkReport { occupancy, flows, ..to.report(&from, capacity, totals) }
    }
}
