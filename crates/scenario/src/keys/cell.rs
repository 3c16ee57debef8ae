//! 802.11 cells in a scenario file: the channel, the access point, the stations.

use super::edca::EdcaTable;
use super::file::Profile;
use super::queue::Queue;
use super::values::{Distance, Limit, Power};
use super::windows::Windows;
use paceline_path::wifi;
use paceline_units::{Rate, Ratio, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An IEEE 802.11 cell: an access point and its stations on one channel, which all hear each other (docs/wifi.md).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CellTable {
    /// Node of the access point.
    #[serde(default = "ap")]
    pub access_point: String,
    /// The physical layer.
    #[serde(default)]
    pub standard: Standard,
    /// Band of an 802.11n cell; 802.11b and 802.11g are at 2.4 GHz.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "2.4 GHz in 802.11n"))]
    pub band: Option<Band>,
    /// Rate of data frames to and from stations without a rate of their own. 802.11b: 1, 2, 5.5 or 11 Mbit/s; 802.11g
    /// also 6, 9, 12, 18, 24, 36, 48 or 54 Mbit/s. An 802.11n cell has `mcs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "54 Mbit/s; 802.11b: 11 Mbit/s"))]
    pub rate: Option<Rate>,
    /// 802.11n: modulation, coding and streams of data frames to and from stations without an `mcs` or `rate` of
    /// their own. 8 to 15 have two streams, 16 to 23 three, 24 to 31 four.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 31), extend("x-default" = "7 in 802.11n"))]
    pub mcs: Option<u8>,
    /// Width of these frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "20 MHz in 802.11n"))]
    pub width: Option<Width>,
    /// Guard interval of these frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "long in 802.11n"))]
    pub guard_interval: Option<GuardInterval>,
    /// Rates of ACK, CTS and RTS. A response has the highest of them that is no higher than the frame's, among those
    /// of the same kind (OFDM, or DSSS and CCK).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "1, 2, 6, 12, 24 Mbit/s; at 5 GHz 6, 12, 24 Mbit/s; 802.11b: 1, 2 Mbit/s; rules ns2: 6 Mbit/s, 802.11b: 1 Mbit/s", "examples" = ["6 Mbit/s"]))]
    pub basic_rates: Option<Vec<Rate>>,
    /// Preamble of DSSS and CCK frames.
    #[serde(default)]
    pub preamble: Preamble,
    /// Slot of 802.11g and 802.11n; 802.11b has a long slot, 5 GHz a short one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "short; long in 802.11b and with protection"))]
    pub slot: Option<Slot>,
    /// How OFDM frames are announced to stations of 802.11b in the cell.
    #[serde(default)]
    pub protection: Protection,
    /// Rate of these announcements: one of 802.11b.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "11 Mbit/s, with protection"))]
    pub protection_rate: Option<Rate>,
    /// Data frames of more bytes than this, `overhead` included, use RTS and CTS.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "never", "x-max" = "65535 B"))]
    pub rts_threshold: Option<Size>,
    /// Attempts at a frame without RTS, or at an RTS, before it is dropped: dot11ShortRetryLimit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 255), extend("x-default" = "7; rules bianchi: no limit"))]
    pub short_retry_limit: Option<u32>,
    /// Attempts at a frame with RTS and CTS: dot11LongRetryLimit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 255), extend("x-default" = "4; rules bianchi: no limit"))]
    pub long_retry_limit: Option<u32>,
    /// Initial contention window: backoffs are from 0 to this many slots.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 32767), extend("x-default" = "15; 802.11b: 31"))]
    pub cw_min: Option<u32>,
    /// Upper bound of the window, which doubles with each failure. Not less than `cw_min`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 32767), extend("x-default" = "1023"))]
    pub cw_max: Option<u32>,
    /// Rules of channel access.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "ieee; ns2 in profiles ns2 and ns2-linux"))]
    pub rules: Option<Rules>,
    /// Bytes of a data frame beside the packet: MAC header, LLC/SNAP, FCS. 802.11n has 2 B more, for QoS control.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "36 B (24 + 8 + 4); rules ns2: 34 B, with room for a fourth address", "x-max" = "1000 B"))]
    pub overhead: Option<Size>,
    /// Queue of the access point, for all stations.
    #[serde(default)]
    pub queue: Queue,
    /// Law by which the access point lowers the advertised windows of TCP flows to its stations.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "none: it does not"))]
    pub windows: Option<Windows>,
    /// Queue of each station that has none of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "as queue"))]
    pub station_queue: Option<Queue>,
    /// How traffic with access categories contends; flows name their category.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "IEEE 802.11, Table 8-105"))]
    pub edca: Option<EdcaTable>,
    /// The stations by name, which is their node's; `[cell.NAME.station.laptop]` without keys is enough.
    pub station: BTreeMap<String, StationTable>,
}

/// A station of a cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StationTable {
    /// Rate of data frames to and from it. In an 802.11n cell, a station with a rate is one of 802.11b or 802.11g.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "the cell's"))]
    pub rate: Option<Rate>,
    /// Modulation, coding and streams of data frames to and from an 802.11n station.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 31), extend("x-default" = "the cell's"))]
    pub mcs: Option<u8>,
    /// Width of these frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "the cell's"))]
    pub width: Option<Width>,
    /// Guard interval of these frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "the cell's"))]
    pub guard_interval: Option<GuardInterval>,
    /// Distance from the access point: the greater it is, the more frames arrive damaged, and the faster ones first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "none: no frame is damaged"))]
    pub distance: Option<Distance>,
    /// Instead of `distance`: the power with which it and the access point receive each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "none"))]
    pub signal: Option<Power>,
    /// Share of the data frames to and from it that arrive damaged, whatever their length.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "none"))]
    pub frame_error: Option<Ratio>,
    /// Initial contention window. A flow's `access_category` overrides it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 32767), extend("x-default" = "the cell's; with protection and a rate of 802.11b that of 802.11b, 31"))]
    pub cw_min: Option<u32>,
    /// The station's queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "station_queue"))]
    pub queue: Option<Queue>,
}

fn ap() -> String {
    "ap".to_owned()
}

/// The physical layer of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Standard {
    /// 802.11b: up to 11 Mbit/s.
    B,
    /// 802.11g: up to 54 Mbit/s.
    #[default]
    G,
    /// 802.11n: up to 600 Mbit/s, aggregation with block ACK.
    N,
}

/// Where in the spectrum a cell is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Band {
    /// SIFS of 10 us, signal extension of 6 us.
    #[serde(rename = "2.4 GHz")]
    Ghz2,
    /// SIFS of 16 us; no stations of 802.11b.
    #[serde(rename = "5 GHz")]
    Ghz5,
}

/// The width of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Width {
    /// 52 subcarriers with data.
    #[serde(rename = "20 MHz")]
    Mhz20,
    /// 108 subcarriers with data.
    #[serde(rename = "40 MHz")]
    Mhz40,
}

/// What is between the symbols of 802.11n.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GuardInterval {
    /// 800 ns.
    Long,
    /// 400 ns.
    Short,
}

/// The preamble of DSSS and CCK frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Preamble {
    /// 192 us with the PLCP header.
    #[default]
    Long,
    /// 96 us with the PLCP header.
    Short,
}

/// The slot of an 802.11g cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Slot {
    /// 20 us.
    Long,
    /// 9 us.
    Short,
}

/// How OFDM frames are announced to stations that know DSSS alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Protection {
    /// Not at all.
    #[default]
    None,
    /// By a CTS-to-self.
    CtsToSelf,
    /// By RTS and CTS.
    RtsCts,
}

/// Rules of access to the channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rules {
    /// IEEE 802.11-2016's.
    #[default]
    Ieee,
    /// ns-2.35's, including its durations of frames.
    Ns2,
    /// Bianchi's model of saturation (JSAC 2000).
    Bianchi,
}

impl CellTable {
    /// The access rules: the cell's own, or the profile's.
    pub(crate) fn access_rules(&self, profile: Profile) -> Rules {
        let is_ns2 = profile.is_ns2() && self.standard != Standard::N;
        self.rules.unwrap_or(if is_ns2 { Rules::Ns2 } else { Rules::Ieee })
    }

    /// Writes the defaults that depend on other keys.
    pub(crate) fn fill(&mut self, profile: Profile) {
        let is_n = self.standard == Standard::N;
        let rules = self.access_rules(profile);
        self.rules = Some(rules);
        let mbps = |list: &[u64]| list.iter().map(|mbps| Rate(mbps * 1_000_000)).collect::<Vec<_>>();
        let is_b = self.standard == Standard::B;
        if is_n {
            self.band.get_or_insert(Band::Ghz2);
            self.mcs.get_or_insert(7);
            self.width.get_or_insert(Width::Mhz20);
            self.guard_interval.get_or_insert(GuardInterval::Long);
        } else {
            self.rate.get_or_insert(Rate(if is_b { 11_000_000 } else { 54_000_000 }));
        }
        let is_5ghz = self.band == Some(Band::Ghz5);
        self.basic_rates.get_or_insert_with(|| match (rules, self.standard) {
            (Rules::Ns2, Standard::B) => mbps(&[1]),
            (Rules::Ns2, Standard::G) => mbps(&[6]),
            (_, Standard::B) => mbps(&[1, 2]),
            (_, Standard::N) if is_5ghz => mbps(&[6, 12, 24]),
            (_, Standard::G | Standard::N) => mbps(&[1, 2, 6, 12, 24]),
        });
        let short = !is_b && self.protection == Protection::None;
        self.slot.get_or_insert(if short { Slot::Short } else { Slot::Long });
        if self.protection != Protection::None {
            self.protection_rate.get_or_insert(Rate(11_000_000));
        }
        if rules != Rules::Bianchi {
            self.short_retry_limit.get_or_insert(7);
            self.long_retry_limit.get_or_insert(4);
        }
        let mixed = self.protection != Protection::None && rules == Rules::Ieee && self.cw_min.is_none();
        let cw_min = *self.cw_min.get_or_insert(if is_b { 31 } else { 15 });
        let cw_max = *self.cw_max.get_or_insert(cw_min.max(1023));
        self.overhead.get_or_insert(Size::from_bytes(if rules == Rules::Ns2 { 34 } else { 36 }));
        let queue = self.station_queue.get_or_insert_with(|| self.queue.clone()).clone();
        for station in self.station.values_mut() {
            if is_n && station.rate.is_none() {
                station.mcs = station.mcs.or(self.mcs);
                station.width = station.width.or(self.width);
                station.guard_interval = station.guard_interval.or(self.guard_interval);
            } else {
                station.rate = station.rate.or(self.rate);
            }
            if mixed && station.rate.is_some_and(wifi::Phy::is_dsss) {
                // aCWmin(0): such a station knows the rates of 802.11b alone (clause 10.3.9). If the cell sets
                // `cw_min`, that applies to it too.
                station.cw_min.get_or_insert(cw_max.min(31));
            }
            station.queue.get_or_insert_with(|| queue.clone());
        }
    }

    /// Whether it is an 802.11b cell.
    #[must_use]
    pub fn is_b(&self) -> bool {
        self.standard == Standard::B
    }

    /// The physical layer, from a table with defaults filled in.
    #[must_use]
    pub fn phy(&self) -> wifi::Phy {
        let preamble = match self.preamble {
            Preamble::Long => wifi::Preamble::Long,
            Preamble::Short => wifi::Preamble::Short,
        };
        let slot = match self.slot {
            Some(Slot::Long) => wifi::Slot::Long,
            None | Some(Slot::Short) => wifi::Slot::Short,
        };
        let phy = match self.standard {
            Standard::B => wifi::Phy::b(preamble),
            Standard::N if self.band == Some(Band::Ghz5) => wifi::Phy::ghz5(),
            Standard::G | Standard::N => wifi::Phy::g(slot, preamble),
        };
        let waveform = match (self.rules, self.standard) {
            // 96 bits of preamble and 24 of header at 6 Mbit/s, in place of OFDM's 20 us.
            (Some(Rules::Ns2), Standard::G) => wifi::Waveform::Plain { header: paceline_units::Span::from_micros(20) },
            (Some(Rules::Ns2), Standard::B) => wifi::Waveform::Plain { header: phy.dsss_header },
            _ => phy.waveform,
        };
        let (cw_min, cw_max) = (self.cw_min.unwrap_or(phy.cw_min), self.cw_max.unwrap_or(phy.cw_max));
        wifi::Phy { waveform, cw_min, cw_max, ..phy }
    }

    /// The cell's model in crate `path`, from a table with defaults filled in.
    #[must_use]
    pub fn model(&self, queue: &dyn Fn(&Queue, Rate) -> paceline_path::Queue) -> wifi::CellModel {
        let fastest = self.station.values().filter_map(|table| table.ht().map(wifi::Ht::rate)).max();
        let rate = self.rate.or(fastest).unwrap_or(Rate(54_000_000));
        let mut basic_rates = self.basic_rates.clone().unwrap_or_default();
        basic_rates.sort_unstable();
        let band = match self.band {
            None | Some(Band::Ghz2) => wifi::Band::Ghz2,
            Some(Band::Ghz5) => wifi::Band::Ghz5,
        };
        let station = |table: &StationTable| {
            let ht = table.ht();
            let rate = ht.map_or(table.rate.unwrap_or(rate), wifi::Ht::rate);
            let power = table.signal.map(|power| power.0);
            let at_distance = |distance: Distance| wifi::at_distance(band, distance.0);
            wifi::StationModel {
                rate,
                ht,
                frame_error: table.frame_error,
                power: power.or(table.distance.map(at_distance)),
                cw_min: table.cw_min,
                queue: queue(table.queue.as_ref().unwrap_or(&self.queue), rate),
            }
        };
        wifi::CellModel {
            phy: self.phy(),
            rules: match self.rules {
                None | Some(Rules::Ieee) => wifi::Rules::Ieee,
                Some(Rules::Ns2) => wifi::Rules::Ns2,
                Some(Rules::Bianchi) => wifi::Rules::Bianchi,
            },
            limits: wifi::Limits { short: self.short_retry_limit, long: self.long_retry_limit },
            protection: match self.protection {
                Protection::None => wifi::Protection::None,
                Protection::CtsToSelf => wifi::Protection::CtsToSelf,
                Protection::RtsCts => wifi::Protection::RtsCts,
            },
            protection_rate: self.protection_rate.unwrap_or(Rate(11_000_000)),
            basic_rates,
            rts_threshold: self.rts_threshold.map(|size| size.bytes() as u32),
            edca: None,
            overhead: self.overhead.map_or(0, |size| size.bytes() as u32),
            queue: queue(&self.queue, rate),
            stations: self.station.values().map(station).collect(),
        }
    }
}

impl StationTable {
    /// How an 802.11n station's data frames are sent, from a table with defaults filled in.
    #[must_use]
    pub fn ht(&self) -> Option<wifi::Ht> {
        let width = match self.width? {
            Width::Mhz20 => wifi::Width::Mhz20,
            Width::Mhz40 => wifi::Width::Mhz40,
        };
        let guard = match self.guard_interval? {
            GuardInterval::Long => wifi::GuardInterval::Long,
            GuardInterval::Short => wifi::GuardInterval::Short,
        };
        wifi::Ht::new(self.mcs?, width, guard)
    }
}

impl Default for CellTable {
    fn default() -> CellTable {
        CellTable {
            access_point: ap(),
            standard: Standard::default(),
            band: None,
            rate: None,
            mcs: None,
            width: None,
            guard_interval: None,
            basic_rates: None,
            preamble: Preamble::default(),
            slot: None,
            protection: Protection::default(),
            protection_rate: None,
            rts_threshold: None,
            short_retry_limit: None,
            long_retry_limit: None,
            cw_min: None,
            cw_max: None,
            rules: None,
            overhead: None,
            queue: Queue::Droptail { limit: Limit::Packets(100) },
            windows: None,
            station_queue: None,
            edca: None,
            station: BTreeMap::new(),
        }
    }
}
