//! A host's work for the bundles among its flows.

use super::Host;
use crate::build::Folded;
use crate::port::Port;
use paceline_engine::Network;
use paceline_flow::Sender;
use paceline_units::Time;

impl Host {
    /// For a source in a bundle: reports its backlog to its leader, grants turns to send, and divides the rate again.
    pub(super) fn settle(&mut self, slot: usize, now: Time, network: &mut Network<Folded>) {
        let (sources, clock) = (&mut self.sources, &mut self.clock);
        let Some((bundle, place)) = self.bundling.as_ref().and_then(|bundling| bundling.bundle(slot)) else { return };
        let leader = bundle.members[0];
        if let Sender::Quic(_) = sources[leader].sender {
            return self.settle_tracks(slot, now, network);
        }
        if let Some(place) = place {
            let waiting = sources[slot].waiting();
            let source = &mut sources[leader];
            let mut port = Port::of(source, network, clock, now);
            if let Sender::Rtp(rtp) = &mut source.sender {
                rtp.others(place, waiting, now, &mut port);
            }
        }
        if let Sender::Rtp(rtp) = &mut sources[leader].sender
            && rtp.take_discarded_of_others()
        {
            for (place, &member) in bundle.members[1..].iter().enumerate() {
                if let Sender::Rtp(rtp) = &mut sources[member].sender {
                    rtp.discard_queue();
                }
                let waiting = sources[member].waiting();
                let source = &mut sources[leader];
                let mut port = Port::of(source, network, clock, now);
                if let Sender::Rtp(rtp) = &mut source.sender {
                    rtp.others(place, waiting, now, &mut port);
                }
            }
        }
        while let Some((place, turn)) = sources[leader].turn() {
            let source = &mut sources[bundle.members[place + 1]];
            let mut out = Port::of(source, network, clock, now);
            let Sender::Rtp(rtp) = &mut source.sender else { return };
            let (sent, waiting) = (rtp.send_in_turn(turn, now, &mut out), rtp.waiting());
            let source = &mut sources[leader];
            let mut out = Port::of(source, network, clock, now);
            let Sender::Rtp(rtp) = &mut source.sender else { return };
            rtp.took(sent, waiting, now, &mut out);
        }
        if let Some(grant) = sources[leader].grant() {
            let demands: Vec<f64> = bundle.members.iter().map(|member| sources[*member].demand(now)).collect();
            let parts = bundle.division.parts(grant.target, &demands);
            for (member, part) in bundle.members.iter().zip(parts) {
                if let (Sender::Rtp(rtp), Some(part)) = (&mut sources[*member].sender, part) {
                    rtp.allot(part, &grant, now);
                }
            }
        }
        for member in &bundle.members {
            self.timers.set(*member, sources[*member].set_entry(now));
        }
    }

    /// The same over QUIC: passes members' writes to the leader and reports their state back.
    fn settle_tracks(&mut self, slot: usize, now: Time, network: &mut Network<Folded>) {
        let (sources, clock) = (&mut self.sources, &mut self.clock);
        let Some((bundle, _)) = self.bundling.as_ref().and_then(|bundling| bundling.bundle(slot)) else { return };
        let leader = bundle.members[0];
        let mut again = true;
        while core::mem::take(&mut again) {
            for (track, &member) in (1..).zip(&bundle.members[1..]) {
                while let Sender::Track(led) = &mut sources[member].sender
                    && let Some(write) = led.take()
                {
                    let source = &mut sources[leader];
                    let mut out = Port::of(source, network, clock, now);
                    if let Sender::Quic(quic) = &mut source.sender {
                        quic.write_track(track, write, now, &mut out);
                    }
                }
            }
            let source = &mut sources[leader];
            let mut out = Port::of(source, network, clock, now);
            source.send_on(now, &mut out);
            let mut demands: Vec<f64> = bundle.members.iter().map(|member| sources[*member].demand(now)).collect();
            let Sender::Quic(quic) = &mut sources[leader].sender else { return };
            // A track without a rate limit claims what it uses.
            for (track, demand) in (0..).zip(&mut demands).filter(|(_, demand)| demand.is_infinite()) {
                *demand = quic.claim(track, now);
            }
            let parts = quic.rate().map(|rate| bundle.division.parts(rate, &demands)).unwrap_or_default();
            let part = |track: u8| parts.get(usize::from(track)).copied().flatten();
            for (track, &member) in (1..).zip(&bundle.members[1..]) {
                let Sender::Quic(quic) = &sources[leader].sender else { return };
                let state = quic.state(track, part(track));
                let source = &mut sources[member];
                if let Sender::Track(led) = &mut source.sender {
                    led.set_state(state);
                }
                if source.wants_to_know() {
                    let mut out = Port::of(source, network, clock, now);
                    source.all_acked(now, &mut out);
                    again |= !source.sender.acked_all();
                }
            }
            if let Sender::Quic(quic) = &mut sources[leader].sender {
                quic.allot(part(0));
            }
        }
        for member in &bundle.members {
            self.timers.set(*member, sources[*member].set_entry(now));
        }
    }

    /// Passes arrivals on a leader's connection to the sinks of the tracks.
    fn hand_over(&mut self, slot: usize, now: Time) {
        let Some(bundling) = &self.bundling else { return };
        for (track, &member) in (1..).zip(bundling.led_sinks(slot)) {
            if let Some(arrivals) = self.sinks[slot].take_track(track) {
                self.sinks[member].on_arrivals(now, &arrivals);
            }
        }
    }

    /// Handles a packet at a led sink: its leader's receiver includes it in feedback.
    #[cold]
    #[inline(never)]
    pub(super) fn carry(&mut self, slot: usize, now: Time, network: &mut Network<Folded>) {
        self.hand_over(slot, now);
        let Some(leader) = self.bundling.as_ref().and_then(|bundling| bundling.leader_of_sink(slot)) else { return };
        let Some(packet) = self.sinks[slot].take_carried() else { return };
        let sink = &mut self.sinks[leader];
        let mut port = Port::back(sink, network, &mut self.clock, now);
        sink.carry(now, packet, &mut port);
        self.timers.set(self.sources.len() + leader, sink.set_entry(now));
    }
}
