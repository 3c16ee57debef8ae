//! The rules of 802.11 cells.

use super::Rules;
use crate::error::{join, listed};
use crate::keys::cell::{Band, CellTable, Preamble, Protection, Rules as AccessRules, Slot, Standard};
use crate::keys::edca::EdcaAccess;
use crate::keys::file::{File, Topology};
use crate::keys::queue::Queue;
use crate::keys::windows::Windows;
use paceline_path::wifi::{self, Phy};
use paceline_units::Rate;
use std::collections::BTreeSet;

/// Maximum stations of a cell, limited by the association identifier (IEEE Std 802.11-2016, clause 9.4.1.8).
const MAX_STATIONS: usize = 2007;

impl Rules {
    /// Reports cells in a topology without cells, and returns the file as a home, so that the same mistake is not
    /// reported for each link and flow as well.
    pub(super) fn supposed_home(&mut self, file: &File) -> Option<File> {
        if file.cell.is_empty() || !matches!(file.topology, Topology::Dumbbell | Topology::ParkingLot) {
            return None;
        }
        for name in file.cell.keys() {
            let problem = "a cell needs `topology = \"home\"` or `topology = \"graph\"`";
            self.note(join("cell", name), problem);
        }
        Some(File { topology: Topology::Home, ..file.clone() })
    }

    /// Rules for cells; adds their nodes.
    pub(super) fn cells(&mut self, file: &File, nodes: &mut BTreeSet<String>) {
        for (name, cell) in &file.cell {
            let path = join("cell", name);
            self.name(&path, name);
            if file.link.contains_key(name) {
                self.note(&*path, format!("`{name}` is also the name of a link: results could not tell them apart"));
            }
            self.cell(&path, cell);
            self.contention(&path, cell, file);
            nodes.insert(cell.access_point.clone());
            nodes.extend(cell.station.keys().cloned());
        }
    }

    /// Rules for access categories.
    fn contention(&mut self, path: &str, cell: &CellTable, file: &File) {
        if cell.access_rules(file.profile) != AccessRules::Ieee {
            for name in file.flow.iter().filter(|(_, flow)| flow.access_category.is_some()).map(|(name, _)| name) {
                let problem = format!("needs `rules = \"ieee\"` of {path}: others know no categories");
                self.note(join(&join("flow", name), "access_category"), problem);
            }
        }
        let Some(edca) = &cell.edca else { return };
        for category in wifi::Category::ALL {
            if let Some(EdcaAccess { cw_min: Some(min), cw_max: Some(max), .. }) = edca.of(category)
                && max < min
            {
                let key = join(&join(&join(path, "edca"), category.name()), "cw_max");
                self.note(key, format!("`{max}` must not be less than cw_min, {min}"));
            }
        }
    }

    fn cell(&mut self, path: &str, cell: &CellTable) {
        self.name(&join(path, "access_point"), &cell.access_point);
        let stations = join(path, "station");
        if cell.station.is_empty() {
            self.note(&*stations, format!("a cell needs a station: add a table such as `[{stations}.laptop]`"));
        }
        if cell.station.len() > MAX_STATIONS {
            self.note(&*stations, format!("{} stations, but at most {MAX_STATIONS}", cell.station.len()));
        }
        self.cell_queue(&join(path, "queue"), &cell.queue);
        if let Some(Windows::Voap { alpha, beta, .. }) = &cell.windows
            && alpha > beta
        {
            self.note(join(&join(path, "windows"), "alpha"), format!("`{alpha}` must be at most beta, {beta}"));
        }
        if let Some(queue) = &cell.station_queue {
            self.cell_queue(&join(path, "station_queue"), queue);
        }
        self.cell_rate(cell, &join(path, "rate"), cell.rate);
        for (i, rate) in cell.basic_rates.iter().flatten().enumerate() {
            self.cell_rate(cell, &format!("{path}.basic_rates[{i}]"), Some(*rate));
        }
        if cell.basic_rates.as_ref().is_some_and(Vec::is_empty) {
            self.note(join(path, "basic_rates"), "needs at least one rate");
        }
        let lowest = match cell.standard {
            Standard::B => 31,
            Standard::G | Standard::N => 15,
        };
        let cw_min = cell.cw_min.unwrap_or(lowest);
        if let Some(cw_max) = cell.cw_max
            && cw_max < cw_min
        {
            self.note(join(path, "cw_max"), format!("`{cw_max}` must not be less than cw_min, {cw_min}"));
        }
        self.of_g_alone(path, cell);
        self.of_n_alone(path, cell);
        for (name, station) in &cell.station {
            let path = join(&stations, name);
            self.name(&path, name);
            if *name == cell.access_point {
                self.note(&*path, format!("`{name}` is the access point"));
            }
            self.cell_rate(cell, &join(&path, "rate"), station.rate);
            if station.distance.is_some() && station.signal.is_some() {
                self.note(join(&path, "signal"), "must not be given beside `distance`, from which it follows");
            }
            if station.frame_error.is_some_and(|share| share.0 >= 1.0) {
                let problem = "a station all of whose frames fail receives nothing: less than 100 %";
                self.note(join(&path, "frame_error"), problem);
            }
            let cw_max = cell.cw_max.unwrap_or(cw_min.max(1023));
            if let Some(own) = station.cw_min.filter(|own| *own > cw_max) {
                let problem = format!("`{own}` must not be more than the cell's cw_max, {cw_max}");
                self.note(join(&path, "cw_min"), problem);
            }
            if let Some(queue) = &station.queue {
                self.cell_queue(&join(&path, "queue"), queue);
            }
        }
    }

    /// Rules for a cell's queue. A transmitter in a cell takes the next packet when it has sent one, so the queue
    /// cannot pace.
    fn cell_queue(&mut self, path: &str, queue: &Queue) {
        self.queue(path, queue);
        if let Queue::Cake { bandwidth: Some(_), .. } = queue {
            let problem = "has no place in a cell, whose transmitters send whenever the channel is theirs: leave it out, and set it on the link \
                           to the access point";
            self.note(join(path, "bandwidth"), problem);
        }
    }

    fn cell_rate(&mut self, cell: &CellTable, path: &str, rate: Option<Rate>) {
        let (standard, name) = match cell.standard {
            Standard::B => (wifi::Standard::B, "802.11b"),
            Standard::G => (wifi::Standard::G, "802.11g"),
            Standard::N => (wifi::Standard::G, "802.11b or 802.11g"),
        };
        let mut rates = Phy::rates(standard);
        if cell.band == Some(Band::Ghz5) {
            rates.retain(|rate| Phy::is_ofdm(*rate));
        }
        if let Some(rate) = rate.filter(|rate| !rates.contains(rate)) {
            let rates: Vec<String> = rates.iter().map(ToString::to_string).collect();
            let at = if cell.band == Some(Band::Ghz5) { " at 5 GHz" } else { "" };
            let known = listed(rates.iter().map(String::as_str));
            self.note(path, format!("`{rate}` is no rate of {name}{at}, which has {known}"));
        }
    }

    /// Keys that only 802.11n cells have, or lack.
    fn of_n_alone(&mut self, path: &str, cell: &CellTable) {
        let is_n = cell.standard == Standard::N;
        let needs_n = "has a meaning only with `standard = \"n\"`";
        let given = |mcs: bool, width: bool, guard: bool| {
            let keys = [("mcs", mcs), ("width", width), ("guard_interval", guard)];
            keys.into_iter().filter(|(_, given)| *given).map(|(key, _)| key)
        };
        let own = given(cell.mcs.is_some(), cell.width.is_some(), cell.guard_interval.is_some());
        for key in own.chain(cell.band.map(|_| "band")).filter(|_| !is_n) {
            self.note(join(path, key), needs_n);
        }
        for (name, station) in &cell.station {
            let path = join(&join(path, "station"), name);
            for key in given(station.mcs.is_some(), station.width.is_some(), station.guard_interval.is_some()) {
                if !is_n {
                    self.note(join(&path, key), needs_n);
                } else if station.rate.is_some() {
                    let problem = "must not be given beside `rate`, which makes a station of 802.11b or 802.11g";
                    self.note(join(&path, key), problem);
                }
            }
        }
        if !is_n {
            return;
        }
        if cell.rate.is_some() {
            let problem = "802.11n has `mcs`, 0 to 31; a `rate` is for its stations of 802.11b and 802.11g";
            self.note(join(path, "rate"), problem);
        }
        if cell.rules == Some(AccessRules::Ns2) {
            self.note(join(path, "rules"), "ns-2.35 has no 802.11n: leave it out");
        }
        if cell.band == Some(Band::Ghz5) {
            if cell.slot == Some(Slot::Long) {
                self.note(join(path, "slot"), "that of 5 GHz is short: leave `long` out");
            }
            if cell.protection != Protection::None {
                self.note(join(path, "protection"), "no station of 802.11b is at 5 GHz: leave it out");
            }
        }
    }

    /// Keys that would have no effect, by standard.
    fn of_g_alone(&mut self, path: &str, cell: &CellTable) {
        if cell.standard == Standard::B {
            if cell.slot == Some(Slot::Short) {
                self.note(join(path, "slot"), "that of 802.11b is long: leave `short` out");
            }
            if cell.protection != Protection::None {
                self.note(join(path, "protection"), "802.11b has no OFDM frames to announce: leave it out");
            }
        }
        if let Some(rate) = cell.protection_rate {
            if !Phy::is_dsss(rate) {
                let known = "`1 Mbit/s`, `2 Mbit/s`, `5.5 Mbit/s`, `11 Mbit/s`";
                self.note(join(path, "protection_rate"), format!("`{rate}` must be one of {known}"));
            }
            if cell.protection == Protection::None {
                self.note(join(path, "protection_rate"), "has a meaning only with `protection`");
            }
        }
        let dsss = cell.station.values().filter_map(|station| station.rate).chain(cell.rate).any(Phy::is_dsss);
        let has_dsss = cell.standard == Standard::B || cell.protection != Protection::None || dsss;
        if cell.preamble == Preamble::Short && !has_dsss {
            self.note(join(path, "preamble"), "`short` changes nothing where all frames are OFDM: leave it out");
        }
    }
}
