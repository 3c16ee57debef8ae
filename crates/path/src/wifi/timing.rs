//! Slots, frame spaces and the duration of frames.
//!
//! IEEE Std 802.11-2016: clause 10.3.7 (DCF timing relations), clause 16 (HR/DSSS, "802.11b") with Table 16-4, clause
//! 17 (OFDM) with Tables 17-4 and 17-21, clause 18 (ERP, "802.11g") with Table 18-5.

use paceline_units::{Rate, Span};

/// The physical layer of a cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standard {
    /// 802.11b: DSSS and CCK up to 11 Mbit/s.
    B,
    /// 802.11g: ERP-OFDM up to 54 Mbit/s.
    G,
}

/// The preamble of DSSS and CCK frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Preamble {
    /// 144 us, then 48 us of PLCP header (clause 16.2.2.2).
    Long,
    /// 72 us, then 24 us of PLCP header (clause 16.2.2.3); frames at 1 Mbit/s always have the long preamble, since they
    /// have no short one.
    Short,
}

/// The slot of an 802.11g cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Slot {
    /// 20 us: with 802.11b stations.
    Long,
    /// 9 us.
    Short,
}

/// How ERP-OFDM frames are announced to DSSS-only stations (clause 10.26).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protection {
    /// No protection: all stations support ERP-OFDM.
    None,
    /// Each data frame follows a CTS-to-self, at a DSSS or CCK rate.
    CtsToSelf,
    /// Each data frame follows RTS and CTS, at a DSSS or CCK rate.
    RtsCts,
}

/// How a frame's octets map to airtime.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waveform {
    /// The standard's: whole symbols and microseconds, service and tail bits, signal extension.
    Standard,
    /// A header of fixed length, then the bits at the rate: ns-2, and Bianchi's model.
    Plain {
        /// Preamble and header of the physical layer.
        header: Span,
    },
}

/// The physical layer's characteristics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Phy {
    /// aSlotTime.
    pub slot: Span,
    /// aSIFSTime.
    pub sifs: Span,
    /// aCWmin.
    pub cw_min: u32,
    /// aCWmax.
    pub cw_max: u32,
    /// Preamble and PLCP header of a DSSS or CCK frame at 2 Mbit/s and above.
    pub dsss_header: Span,
    /// How airtime is computed.
    pub waveform: Waveform,
    /// The signal extension after each OFDM frame: 6 us at 2.4 GHz, zero at 5 GHz.
    pub signal_extension: Span,
    /// Propagation delay through the air.
    pub propagation: Span,
}

/// Octets of an ACK and of a CTS (clauses 9.3.1.4 and 9.3.1.3).
pub(super) const ACK: u32 = 14;
/// Octets of an RTS (clause 9.3.1.2).
pub(super) const RTS: u32 = 20;
/// Octets of a compressed BlockAck (clause 9.3.1.9.3) and of the BlockAckReq for it (clause 9.3.1.8.3).
pub(super) const BLOCK_ACK: u32 = 32;
pub(super) const BLOCK_ACK_REQUEST: u32 = 24;

/// ERP-OFDM's rates in Mbit/s with the data bits per symbol (Table 17-4).
const OFDM: [(u64, u64); 8] = [(6, 24), (9, 36), (12, 48), (18, 72), (24, 96), (36, 144), (48, 192), (54, 216)];
/// Rates of DSSS and CCK in kbit/s (clause 16.2.3.4).
const DSSS: [u64; 4] = [1000, 2000, 5500, 11000];
/// The rate that a short preamble cannot announce (clause 16.2.2.3).
const LOWEST: Rate = Rate(1_000_000);
/// A long preamble with its header.
const LONG_HEADER: Span = Span::from_micros(192);
/// Training sequences and SIGNAL: 16 us + 4 us (Table 17-5).
const OFDM_HEADER: Span = Span::from_micros(20);
/// The symbol duration (Table 17-5).
const SYMBOL: Span = Span::from_micros(4);
/// SERVICE and tail bits (clause 17.3.5).
const SERVICE_AND_TAIL: u64 = 16 + 6;
/// The pause after an OFDM frame at 2.4 GHz (clause 18.3.2.4), with which a SIFS of 10 us is enough.
const SIGNAL_EXTENSION: Span = Span::from_micros(6);

impl Phy {
    /// 802.11b (Table 16-4).
    #[must_use]
    pub const fn b(preamble: Preamble) -> Phy {
        Phy {
            slot: Span::from_micros(20),
            sifs: Span::from_micros(10),
            cw_min: 31,
            cw_max: 1023,
            dsss_header: match preamble {
                Preamble::Long => LONG_HEADER,
                Preamble::Short => Span::from_micros(96),
            },
            waveform: Waveform::Standard,
            signal_extension: SIGNAL_EXTENSION,
            propagation: Span::ZERO,
        }
    }

    /// 802.11g (Table 18-5).
    #[must_use]
    pub const fn g(slot: Slot, preamble: Preamble) -> Phy {
        Phy {
            slot: match slot {
                Slot::Long => Span::from_micros(20),
                Slot::Short => Span::from_micros(9),
            },
            // aCWmin(1): for stations that support ERP-OFDM
            cw_min: 15,
            ..Phy::b(preamble)
        }
    }

    /// OFDM at 5 GHz (Table 17-21).
    #[must_use]
    pub const fn ghz5() -> Phy {
        let signal_extension = Span::ZERO;
        Phy { sifs: Span::from_micros(16), signal_extension, ..Phy::g(Slot::Short, Preamble::Long) }
    }

    /// DIFS (clause 10.3.7): SIFS and two slots.
    #[must_use]
    pub fn difs(&self) -> Span {
        self.sifs + self.slot * 2
    }

    /// Whether this is an ERP-OFDM rate.
    #[must_use]
    pub fn is_ofdm(rate: Rate) -> bool {
        OFDM.iter().any(|(mbps, _)| Rate(mbps * 1_000_000) == rate)
    }

    /// Whether this is a DSSS or CCK rate.
    #[must_use]
    pub fn is_dsss(rate: Rate) -> bool {
        DSSS.iter().any(|kbps| Rate(kbps * 1000) == rate)
    }

    /// The rates of a standard, ascending; 802.11g includes those of 802.11b.
    #[must_use]
    pub fn rates(standard: Standard) -> Vec<Rate> {
        let dsss = DSSS.iter().map(|kbps| Rate(kbps * 1000));
        let mut rates: Vec<Rate> = match standard {
            Standard::B => dsss.collect(),
            Standard::G => dsss.chain(OFDM.iter().map(|(mbps, _)| Rate(mbps * 1_000_000))).collect(),
        };
        rates.sort_unstable();
        rates
    }

    /// The duration of a frame of `octets`, FCS included (TXTIME: clauses 16.3.4, 17.4.3 and 18.5.3.2).
    #[must_use]
    pub fn airtime(&self, rate: Rate, octets: u32) -> Span {
        let bits = u64::from(octets) * 8;
        // would overflow at 2 GB, far above any frame
        let bits_last = Span(bits.saturating_mul(1_000_000_000).div_ceil(rate.0.max(1)));
        match self.waveform {
            Waveform::Plain { header } => header + bits_last,
            Waveform::Standard => {
                let symbol = OFDM.iter().find(|(mbps, _)| Rate(mbps * 1_000_000) == rate).map(|(_, symbol)| *symbol);
                match symbol {
                    Some(symbol) => {
                        let symbols = (SERVICE_AND_TAIL + bits).div_ceil(symbol);
                        OFDM_HEADER + SYMBOL * symbols + self.signal_extension
                    }
                    // a whole number of microseconds
                    None => self.header(rate) + Span(bits_last.0.div_ceil(1000) * 1000),
                }
            }
        }
    }

    /// aRxPHYStartDelay (Tables 16-4 and 17-21): from a frame's start at this rate until it is recognized as a frame.
    #[must_use]
    pub fn start_delay(&self, rate: Rate) -> Span {
        match self.waveform {
            Waveform::Plain { header } => header,
            Waveform::Standard if Phy::is_ofdm(rate) => OFDM_HEADER,
            Waveform::Standard => self.header(rate),
        }
    }

    /// Preamble and PLCP header of a DSSS or CCK frame of this rate.
    fn header(&self, rate: Rate) -> Span {
        if rate == LOWEST { LONG_HEADER } else { self.dsss_header }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(span: Span) -> f64 {
        span.0 as f64 / 1e3
    }

    /// Worked by hand from TXTIME's equations.
    #[test]
    fn frames_last_as_long_as_the_standard_says() {
        let g = Phy::g(Slot::Short, Preamble::Short);
        // 22 + 8 * 1536 bits in symbols of 216: 57; 20 + 228 + 6 us
        assert_eq!(us(g.airtime(Rate::from_mbps(54.0), 1536)), 254.0);
        // 22 + 200 bits, 6 too many for one symbol
        assert_eq!(us(g.airtime(Rate::from_mbps(54.0), 25)), 34.0);
        // 22 + 112 bits in symbols of 96: 2
        assert_eq!(us(g.airtime(Rate::from_mbps(24.0), ACK)), 34.0);
        assert_eq!(us(g.airtime(Rate::from_mbps(6.0), ACK)), 50.0);
        let b = Phy::b(Preamble::Long);
        // 12288 bits at 11 Mbit/s: 1117.09 us
        assert_eq!(us(b.airtime(Rate::from_mbps(11.0), 1536)), 192.0 + 1118.0);
        assert_eq!(us(b.airtime(Rate::from_mbps(1.0), ACK)), 304.0);
        let short = Phy::b(Preamble::Short);
        assert_eq!(us(short.airtime(Rate::from_mbps(2.0), ACK)), 152.0);
        assert_eq!(us(short.airtime(Rate::from_mbps(1.0), ACK)), 304.0, "no short preamble with 1 Mbit/s");
        let delays = [1.0, 11.0].map(|mbps| us(short.start_delay(Rate::from_mbps(mbps))));
        assert_eq!(delays, [192.0, 96.0]);
        assert_eq!((us(b.difs()), us(g.difs())), (50.0, 28.0));
        assert_eq!(us(Phy::g(Slot::Long, Preamble::Long).difs()), 50.0);
        let plain = Phy { waveform: Waveform::Plain { header: Span::from_micros(20) }, ..g };
        assert_eq!(plain.airtime(Rate::from_mbps(54.0), 1028), Span(20_000 + 152_297));
    }

    #[test]
    fn rates_by_standard() {
        assert_eq!(Phy::rates(Standard::B).len(), 4);
        let g = Phy::rates(Standard::G);
        assert_eq!((g.len(), g[0], g[11]), (12, Rate(1_000_000), Rate(54_000_000)));
        assert!(g.iter().all(|&rate| Phy::is_ofdm(rate) != Phy::is_dsss(rate)));
    }
}
