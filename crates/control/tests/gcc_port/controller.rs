//! What a loop tells a controller of calls, and asks of it. Times in nanoseconds, sizes in bytes on the wire.

pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1000 * MS;

/// A packet that has left.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    pub number: u32,
    pub at: u64,
    pub size: u64,
    /// The cluster of probes that it belongs to.
    pub cluster: Option<u32>,
}

/// A packet of which feedback tells; when it came, to 250 us, or that it is lost.
#[derive(Clone, Copy, Debug)]
pub struct PacketResult {
    pub sent: Sent,
    pub arrived: Option<u64>,
}

/// Feedback as it arrives.
pub struct Feedback {
    pub packets: Vec<PacketResult>,
    pub rtt: u64,
    pub in_flight: u64,
}

/// Rates in bits a second.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    pub encoder: f64,
    pub pacer: f64,
    pub padding: f64,
}

/// A cluster of probes to send.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    pub id: u32,
    pub rate: f64,
    pub bytes: u64,
    pub packets: u32,
}

/// Who decides.
pub trait Decides {
    fn start(&mut self, now: u64);
    fn process(&mut self, now: u64);
    fn sent(&mut self, packet: &Sent, in_flight: u64);
    fn feedback(&mut self, feedback: &Feedback, now: u64);
    fn rates(&self) -> Rates;
    fn order(&mut self) -> Option<Order>;
}
