//! The frames of one exchange, and from when each station counts slots after it.

use super::model::CellModel;
use super::session::{Length, Mpdu};
use super::timing::{ACK, BLOCK_ACK, BLOCK_ACK_REQUEST, Protection, RTS};
use paceline_units::{Rate, Span, Time};
use std::collections::VecDeque;

/// The result of an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// The ACK arrived.
    Acknowledged,
    /// No CTS arrived in response to the RTS.
    NoCts,
    /// No ACK arrived for the data frame.
    NoAck,
}

/// An exchange, from its beginning to the end of its last frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exchange {
    /// When the data frame arrives; `None` if it is damaged.
    pub(super) delivered: Option<Time>,
    pub(super) outcome: Outcome,
    /// The end of the last frame.
    pub(super) end: Time,
    /// From when the sender counts slots.
    pub(super) own: Time,
    /// From when the receiver counts slots.
    pub(super) peer: Time,
    /// From when all others count slots.
    pub(super) others: Time,
}

/// The content of an exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// A single packet.
    Packet,
    /// One or more held packets for an 802.11n station.
    Aggregate,
    /// A BlockAckReq.
    Request,
}

/// The frames of an attempt to send to, or from, one station.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frames {
    pub(super) station: usize,
    pub(super) kind: Kind,
    /// Octets of the data frame, and of its response.
    octets: u32,
    answer: u32,
    /// The CTS-to-self, SIFS included.
    announcement: Span,
    /// The rate of the RTS, if there is one.
    rts: Option<Rate>,
    data: Span,
}

impl Frames {
    /// The frames for a data frame of `octets` to or from `station`.
    pub(super) fn new(model: &CellModel, station: usize, octets: u32) -> Frames {
        let (phy, table) = (&model.phy, &model.stations[station]);
        let rate = table.control_rate();
        let protection = model.protection_of(station);
        let announcement = match protection {
            Protection::CtsToSelf => phy.airtime(model.protection_rate, ACK) + phy.sifs,
            Protection::None | Protection::RtsCts => Span::ZERO,
        };
        let rts = match protection {
            Protection::RtsCts => Some(model.protection_rate),
            _ if model.rts_threshold.is_some_and(|threshold| octets > threshold) => Some(model.response_rate(rate)),
            _ => None,
        };
        let data = table.airtime(phy, octets);
        Frames { station, kind: Kind::Packet, octets, answer: ACK, announcement, rts, data }
    }

    /// The frames for one or more packets, to or from an 802.11n station.
    pub(super) fn aggregate(model: &CellModel, station: usize, length: Length) -> Frames {
        let frames = Frames::new(model, station, length.octets());
        Frames { kind: Kind::Aggregate, answer: length.answer(), ..frames }
    }

    /// A BlockAckReq, without RTS.
    pub(super) fn request(model: &CellModel, station: usize) -> Frames {
        Frames {
            station,
            kind: Kind::Request,
            octets: BLOCK_ACK_REQUEST,
            answer: BLOCK_ACK,
            announcement: Span::ZERO,
            rts: None,
            data: model.request_time(&model.stations[station]),
        }
    }

    /// Whether the data frame follows RTS and CTS: its failures then count towards the long retry limit.
    pub(super) fn has_rts(&self) -> bool {
        self.rts.is_some()
    }

    /// How long the sender transmits in a collision: until it waits for a response.
    pub(super) fn until_answer(&self, model: &CellModel) -> Span {
        match self.rts {
            Some(rate) => model.phy.airtime(rate, RTS),
            None => self.announcement + self.data,
        }
    }

    /// From the end of these frames until the sender knows that there is no response.
    pub(super) fn timeout(&self, model: &CellModel) -> Span {
        let rate = self.rts.unwrap_or(model.stations[self.station].control_rate());
        model.rules.timeout(&model.phy, model.response_rate(rate))
    }

    /// How long the exchange takes if all frames arrive.
    pub(super) fn lasts(&self, model: &CellModel) -> Span {
        let (phy, through) = (&model.phy, model.phy.propagation);
        let response = model.response_rate(model.stations[self.station].control_rate());
        let cleared = self.rts.map_or(Span::ZERO, |rate| {
            let cts = phy.airtime(model.response_rate(rate), ACK);
            phy.airtime(rate, RTS) + cts + (phy.sifs + through) * 2
        });
        self.announcement + cleared + self.data + phy.sifs + phy.airtime(response, self.answer) + through * 2
    }

    /// The exchange that begins at `start` without a collision. A station that receives a damaged frame waits for
    /// `eifs` after it. `fails` draws whether a frame with the given error probability fails. The damaged packets of an
    /// aggregate are marked in `held`.
    #[inline(always)]
    pub(super) fn exchange(
        &self,
        model: &CellModel,
        start: Time,
        eifs: Span,
        held: &mut VecDeque<Mpdu>,
        mut fails: impl FnMut(f64) -> bool,
    ) -> Exchange {
        let (phy, rules) = (&model.phy, model.rules);
        let (through, sifs, difs) = (phy.propagation, phy.sifs, phy.difs());
        let station = &model.stations[self.station];
        let response = model.response_rate(station.control_rate());
        let ack = sifs + phy.airtime(response, self.answer) + through;
        // A damaged frame ended at `end`; its receiver heard only noise.
        let not_received = |outcome, end: Time, others| Exchange {
            delivered: None,
            outcome,
            end,
            own: rules.own_space(phy, end, end + self.timeout(model)),
            peer: end + eifs,
            others,
        };
        let mut begin = start + self.announcement;
        // the end of the others' NAV, from the frames' announced durations
        let mut reserved = Time::ZERO;
        if let Some(rate) = self.rts {
            let answer = model.response_rate(rate);
            let rts_end = begin + phy.airtime(rate, RTS) + through;
            let cts = sifs + phy.airtime(answer, ACK) + through;
            let cts_end = rts_end + cts;
            if fails(station.control_error(rate, RTS)) {
                // The others reset their NAV when nothing follows the RTS (clause 10.3.2.4).
                let reset = rts_end + sifs + cts + phy.start_delay(answer) + phy.slot * 2;
                return not_received(Outcome::NoCts, rts_end, reset + difs);
            }
            if fails(station.control_error(answer, ACK)) {
                let others = cts_end + sifs + self.data + through + ack + difs;
                let (outcome, end) = (Outcome::NoCts, cts_end);
                return Exchange { delivered: None, outcome, end, own: end + eifs, peer: others, others };
            }
            begin = cts_end + sifs;
            reserved = rts_end + rules.announced(begin.since(rts_end) + self.data + through + ack);
        }
        let data_end = begin + self.data + through;
        let end = data_end + ack;
        let others = reserved.max(data_end + rules.announced(ack)) + difs;
        let lost = match self.kind {
            Kind::Packet => fails(station.data_error(self.octets)),
            Kind::Request => fails(station.control_error(response, self.octets)),
            Kind::Aggregate => held.iter_mut().filter(|mpdu| mpdu.aboard).fold(true, |all, mpdu| {
                mpdu.damaged = fails(station.data_error(mpdu.octets));
                all && mpdu.damaged
            }),
        };
        if lost {
            // The others have read the frame's duration field: their NAV covers the ACK.
            return not_received(Outcome::NoAck, data_end, others);
        }
        let (outcome, own) = if fails(station.control_error(response, self.answer)) {
            (Outcome::NoAck, end + eifs)
        } else {
            (Outcome::Acknowledged, end + difs)
        };
        Exchange { delivered: Some(data_end), outcome, end, own, peer: end + difs, others }
    }
}
