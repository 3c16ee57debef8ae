//! A cell's parameters, as plain data.

use super::dcf::{Limits, Rules};
use super::edca::{Access, Category, Edca};
use super::ht::Ht;
use super::signal::{PowerDbm, ht_error, packet_error};
use super::timing::{BLOCK_ACK_REQUEST, Phy, Protection, Waveform};
use crate::Queue;
use paceline_units::{Rate, Ratio, Span};

/// An access point, its stations, and the channel between them. All hear each other, and there is no capture effect.
#[derive(Clone, Debug)]
pub struct CellModel {
    /// Slots, frame spaces, frame durations.
    pub phy: Phy,
    /// The rules of access.
    pub rules: Rules,
    /// The retry limits.
    pub limits: Limits,
    /// How ERP-OFDM frames are protected.
    pub protection: Protection,
    /// The rate of the protection frames.
    pub protection_rate: Rate,
    /// Rates of ACK, CTS and RTS, ascending and not empty.
    pub basic_rates: Vec<Rate>,
    /// Frames of more octets than this are sent with RTS and CTS (dot11RTSThreshold).
    pub rts_threshold: Option<u32>,
    /// Its access categories, if any.
    pub edca: Option<Edca>,
    /// Octets that a data frame adds to the packet: MAC header, LLC/SNAP, FCS.
    pub overhead: u32,
    /// The access point's queue, for all stations.
    pub queue: Queue,
    /// The stations.
    pub stations: Vec<StationModel>,
}

/// Additional octets of a QoS data frame (clause 9.2.4.5).
const QOS_CONTROL: u32 = 2;

/// A station of a cell.
#[derive(Clone, Debug)]
pub struct StationModel {
    /// The rate of data frames to and from it; unused with `ht`.
    pub rate: Rate,
    /// 802.11n parameters, if it is an 802.11n station.
    pub ht: Option<Ht>,
    /// The fraction of data frames, to and from it, that arrive damaged; control frames never do.
    pub frame_error: Option<Ratio>,
    /// The power with which it and the access point receive each other; it determines the error rates of all frames.
    pub power: Option<PowerDbm>,
    /// Its initial contention window, if not [`Phy::cw_min`]. Categories have their own windows.
    pub cw_min: Option<u32>,
    /// Its queue.
    pub queue: Queue,
}

impl CellModel {
    /// The minimum time between a packet's arrival at a queue and its arrival at the other end of the air: that of the
    /// shortest data frame. The order of transmissions is decided before, so this is how far the cell looks ahead.
    #[must_use]
    pub fn min_delay(&self) -> Span {
        let times = self.stations.iter().map(|station| match station.ht {
            None => station.airtime(&self.phy, self.overhead),
            // a BlockAckReq releases packets that have arrived before
            Some(_) => station.airtime(&self.phy, self.octets(station, 0)).min(self.request_time(station)),
        });
        times.min().unwrap_or(self.phy.slot) + self.phy.propagation
    }

    /// Octets of the data frame with a packet of this size.
    pub(super) fn octets(&self, station: &StationModel, size: u32) -> u32 {
        let with_qos = station.ht.is_some() || self.edca.is_some();
        size + self.overhead + if with_qos { QOS_CONTROL } else { 0 }
    }

    /// The number of categories of each transmitter.
    #[must_use]
    pub fn categories(&self) -> usize {
        self.edca.as_ref().map_or(1, |edca| edca.categories.len())
    }

    /// The contention parameters of a device's transmitters, the most urgent first: device 0 is the access point,
    /// stations follow from 1.
    pub(super) fn access(&self, device: usize) -> Vec<Access> {
        if let Some(edca) = &self.edca {
            return edca.categories.iter().map(|(_, access)| *access).collect();
        }
        let station = device.checked_sub(1).map(|station| &self.stations[station]);
        let with_qos = match station {
            Some(station) => station.ht.is_some(),
            None => self.stations.iter().any(|station| station.ht.is_some()),
        };
        let windows = (station.and_then(|station| station.cw_min).unwrap_or(self.phy.cw_min), self.phy.cw_max);
        let best_effort = Access::standard(Category::BestEffort, windows, false);
        // DIFS contains two slots
        vec![if with_qos { best_effort } else { Access { with_qos: false, aifsn: 2, ..best_effort } }]
    }

    /// The duration of a BlockAckReq, which is sent at the rate of its response.
    pub(super) fn request_time(&self, station: &StationModel) -> Span {
        self.phy.airtime(self.response_rate(station.control_rate()), BLOCK_ACK_REQUEST)
    }

    /// The rate of the ACK or CTS that answers a frame of this rate (clause 10.6.6.5.2): the highest basic rate of the
    /// same modulation class that is no higher; if there is none, the highest mandatory rate.
    pub(super) fn response_rate(&self, rate: Rate) -> Rate {
        let ofdm = Phy::is_ofdm(rate);
        let alike = |basic: &&Rate| **basic <= rate && self.is_alike(**basic, ofdm);
        if let Some(basic) = self.basic_rates.iter().rev().find(alike) {
            return *basic;
        }
        if self.phy.waveform != Waveform::Standard {
            return self.basic_rates.first().copied().unwrap_or(rate);
        }
        let mandatory: &[u64] = if ofdm { &[24, 12, 6] } else { &[11, 2, 1] };
        let mandatory = mandatory.iter().map(|mbps| Rate(mbps * 1_000_000));
        mandatory.into_iter().find(|mandatory| *mandatory <= rate).unwrap_or(rate)
    }

    /// Whether a rate has the given modulation class; in a plain waveform there is only one.
    fn is_alike(&self, rate: Rate, ofdm: bool) -> bool {
        self.phy.waveform != Waveform::Standard || Phy::is_ofdm(rate) == ofdm
    }

    /// The lowest rate of responses, which determines EIFS.
    pub(super) fn lowest_rate(&self) -> Rate {
        let slowest = self.stations.iter().map(|station| self.response_rate(station.control_rate())).min();
        let rate = slowest.unwrap_or(Rate(1_000_000));
        match self.phy.waveform {
            Waveform::Plain { .. } => self.basic_rates.first().copied().unwrap_or(rate),
            // the lowest mandatory rate of the modulation class (clause 10.3.7)
            Waveform::Standard if Phy::is_ofdm(rate) => Rate(6_000_000),
            Waveform::Standard => Rate(1_000_000),
        }
    }

    /// The protection of data frames to and from this station.
    pub(super) fn protection_of(&self, station: usize) -> Protection {
        if Phy::is_ofdm(self.stations[station].control_rate()) { self.protection } else { Protection::None }
    }
}

impl StationModel {
    /// The duration of a data frame of `octets`.
    pub(super) fn airtime(&self, phy: &Phy, octets: u32) -> Span {
        match self.ht {
            Some(ht) => ht.airtime(octets) + phy.signal_extension,
            None => phy.airtime(self.rate, octets),
        }
    }

    /// The rate of data frames to and from it.
    #[must_use]
    pub fn data_rate(&self) -> Rate {
        self.ht.map_or(self.rate, Ht::rate)
    }

    /// The data rate as far as it determines the rate of responses.
    pub(super) fn control_rate(&self) -> Rate {
        self.ht.map_or(self.rate, Ht::reference_rate)
    }

    /// The probability that a data frame of `octets` arrives damaged.
    pub(super) fn data_error(&self, octets: u32) -> f64 {
        let fixed = self.frame_error.map_or(0.0, |share| share.0);
        let drawn = self.power.map_or(0.0, |power| match self.ht {
            Some(ht) => ht_error(ht, octets, power).0,
            None => packet_error(self.rate, octets, power).0,
        });
        1.0 - (1.0 - fixed) * (1.0 - drawn)
    }

    /// The probability that a control frame of `octets` at this rate arrives damaged.
    pub(super) fn control_error(&self, rate: Rate, octets: u32) -> f64 {
        self.power.map_or(0.0, |power| packet_error(rate, octets, power).0)
    }
}
