//! `paceline send rtp://...`: a flow to a foreign receiver of plain RTP (for example GStreamer's rtpbin).
//!
//! There is no server to request flows from: the module of [`crate::session::RtpPeer`] describes what the receiver's
//! reports must contain, and when the flow ends because there are none. RTP and RTCP have one socket each, at both
//! ends.

use super::client::{SendError, SendWatch, ended_by};
use super::driver::{Driver, NewFlow, Running};
use super::half::{Half, Table, joined, recordings};
use super::numbers::Numbers;
use super::options::RequestedFlow;
use super::outcome::{FlowNotes, LiveRun, Notes};
use super::server::rest;
use super::udp::UdpPort;
use crate::clock::Clock;
use crate::host::{HostReport, HostState};
use crate::results::{FlowRow, LiveOutput, LiveSummary};
use crate::session::{Family, RtpPeer, Session, SessionSpec, Side};
use paceline_sim::recorder::SENDING;
use paceline_units::Time;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::time::Duration;

const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A receiver of plain RTP.
#[derive(Clone, Debug)]
pub struct RtpTarget {
    /// Its name or address.
    pub host: String,
    /// Its port for RTP.
    pub rtp_port: u16,
    /// Its port for RTCP.
    pub rtcp_port: u16,
    /// Local port for RTP; 0: any.
    pub local_rtp_port: u16,
    /// Local port for its reports.
    pub local_rtcp_port: u16,
    /// How the data are labelled.
    pub peer: RtpPeer,
}

/// Sends a flow to its end, or until the watch stops it.
///
/// # Errors
/// [`SendError`]. A flow that ends badly is not an error: the results say how it ended.
pub fn send_rtp(
    target: &RtpTarget,
    requested: &RequestedFlow,
    logs: Option<PathBuf>,
    watch: &SendWatch,
) -> Result<LiveRun, SendError> {
    let address = resolved(target)?;
    let mut flow = requested.offer.spec.clone();
    flow.family = if address.is_ipv6() { Family::V6 } else { Family::V4 };
    let rtp = Some(target.peer);
    let connection = 0;
    let spec = SessionSpec { side: Side::Sender, flow, connection, nonce: 0, limit: None, announces: false, rtp };
    // report mistakes before sending anything
    Session::new(&spec).map_err(|error| SendError::Flow(error.to_string()))?;
    let clock = Clock::start();
    let ports = bound(target, address, clock)?;
    let rtcp = Some((1, SocketAddr::new(address.ip(), target.rtcp_port)));
    let log = logs.map(|folder| folder.join(format!("{}-{}.events", requested.name, requested.instance)));
    let before = HostState::now().ok();
    let Running { thread, handle, outcomes } = Driver::spawn(clock, ports)?;
    let (measure, charge, only) = (None, None, address.ip());
    let added = handle.add(NewFlow {
        id: 0,
        spec,
        port: 0,
        peer: Some(address),
        only,
        rtcp,
        log,
        qlog: None,
        measure,
        charge,
        keys: None,
        announcer: None,
    });
    if let Err(why) = added {
        handle.quit();
        return Err(SendError::Flow(why));
    }
    watch.begin(&handle, std::slice::from_ref(requested));
    let mut stopped = false;
    let mut half = loop {
        match outcomes.try_recv() {
            Ok(outcome) => break outcome.half,
            Err(std::sync::mpsc::TryRecvError::Empty) => {}
            Err(std::sync::mpsc::TryRecvError::Disconnected) => {
                let failed = thread.join().unwrap_or_else(|_| Err(io::Error::other("its thread has failed")));
                let error = failed.err().unwrap_or_else(|| io::Error::other("the endpoint has ended"));
                return Err(ended_by(error).map_or_else(|error| error, |why| SendError::System(io::Error::other(why))));
            }
        }
        if watch.is_stopped() && !stopped {
            stopped = true;
            handle.stop(0);
        }
        rest(POLL_INTERVAL);
    };
    handle.quit();
    if let Ok(Err(error)) = thread.join() {
        half.failed(&ended_by(error)?);
    }
    let host = before.and_then(|before| HostReport::since(before).ok());
    Ok(results(target, requested, address, host, half))
}

fn resolved(target: &RtpTarget) -> Result<SocketAddr, SendError> {
    let no_address = |why: String| SendError::NoAddress { host: target.host.clone(), why };
    let mut found =
        (target.host.as_str(), target.rtp_port).to_socket_addrs().map_err(|error| no_address(error.to_string()))?;
    let address = found.next().ok_or_else(|| no_address("it has none".to_owned()))?;
    let address = match address.ip().to_canonical() {
        // only IPv6 addresses have a scope
        IpAddr::V6(_) => address,
        ip => SocketAddr::new(ip, address.port()),
    };
    // one receiver's reports do not describe all receivers of a group or network
    let many = match address.ip() {
        IpAddr::V4(ip) => ip.is_multicast() || ip.is_broadcast(),
        IpAddr::V6(ip) => ip.is_multicast(),
    };
    if many {
        return Err(SendError::Flow(format!("{address} is not one host's address: a flow goes to one receiver")));
    }
    Ok(address)
}

/// The sockets for RTP and RTCP.
fn bound(target: &RtpTarget, to: SocketAddr, clock: Clock) -> Result<Vec<UdpPort>, SendError> {
    let any = if to.is_ipv6() { IpAddr::V6(Ipv6Addr::UNSPECIFIED) } else { IpAddr::V4(Ipv4Addr::UNSPECIFIED) };
    let bind = |ip: IpAddr, port: u16| {
        UdpPort::bind(SocketAddr::new(ip, port), clock).map_err(|error| {
            SendError::System(io::Error::new(
                error.kind(),
                format!("{error}: port {port}; take others by rtp://HOST:PORT?localrtpport=N"),
            ))
        })
    };
    let mut data = bind(any, target.local_rtp_port)?;
    data.connect(to)?;
    // the address that the receiver sees
    let reports = bind(data.local()?.ip(), target.local_rtcp_port)?;
    Ok(vec![data, reports])
}

/// The result: what the sender knows, and what the reports say about the receiver.
fn results(
    target: &RtpTarget,
    requested: &RequestedFlow,
    address: SocketAddr,
    host: Option<HostReport>,
    near: Half,
) -> LiveRun {
    let for_s = requested.offer.spec.for_ms as f64 / 1e3;
    // the column of the sending rate is placed beside one of receiving
    let sending = near.tables.iter().find(|table| table.table == SENDING);
    let times = sending.and_then(|table| table.columns.iter().find(|(name, _)| name == "time_s"));
    let unknown = times.map(|(name, times)| Table {
        table: "rate".to_owned(),
        columns: vec![
            (name.clone(), times.clone()),
            ("goodput_bps".to_owned(), Numbers(vec![f64::NAN; times.0.len()])),
        ],
    });
    let far = Half { well: true, tables: unknown.into_iter().collect(), ..Half::default() };
    let reported = near.reported;
    let expected = reported.map(|reported| reported.expected).filter(|expected| *expected > 0);
    // duplicates offset losses in the count
    let lost = reported.map(|reported| u64::try_from(reported.lost).unwrap_or(0).min(reported.expected));
    let row = FlowRow {
        flow: requested.name.clone(),
        instance: requested.instance,
        group: requested.name.clone(),
        from: "here".to_owned(),
        to: target.host.clone(),
        goodput_bps: f64::NAN,
        throughput_bps: None,
        packets_delivered: expected.zip(lost).map(|(expected, lost)| expected - lost),
        packets_lost: lost,
        loss_rate: expected.zip(lost).map(|(expected, lost)| lost as f64 / expected as f64),
        receiving_ratio: expected.zip(lost).map(|(expected, lost)| 1.0 - lost as f64 / expected as f64),
        bytes_delivered: None,
        ecn_marks: None,
        active_s: near.end_s.min(for_s),
        ended: Some(near.ended.clone()),
        ..joined(&near, &far, 0.0, for_s)
    };
    let series = recordings(&near, &far, &requested.name, requested.instance);
    let mut summary = LiveSummary::new("live", Time::from_secs_f64(near.end_s), vec![row]);
    summary.duration_s = Some(for_s);
    let flows = vec![FlowNotes::of(requested, &near, &far)];
    LiveRun { output: LiveOutput { summary, series }, notes: Notes { server: address.to_string(), host, flows } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::control::{Direction, Offer};
    use crate::session::{End, FlowSpec, ForeignSchemes, Reported};

    /// A row contains no more about the receiver than its reports, and nothing without reports.
    #[test]
    fn a_row_has_what_the_receiver_has_reported() {
        let (host, local_rtp_port, local_rtcp_port) = ("there".to_owned(), 0, 0);
        let peer = RtpPeer::default();
        let target = RtpTarget { host, rtp_port: 5004, rtcp_port: 5005, local_rtp_port, local_rtcp_port, peer };
        let spec = FlowSpec {
            settings: vec![("cc".to_owned(), "lda-plus".to_owned())],
            for_ms: 60_000,
            seed: 1,
            family: Family::V4,
            name: None,
            foreign: ForeignSchemes::default(),
        };
        let offer = Offer { spec, direction: Direction::Forward, kernel: None, measure: None };
        let requested = RequestedFlow { name: "lda-plus".to_owned(), instance: 0, offer };
        let row = |reported: Option<Reported>| {
            let row = FlowRow { packets_sent: Some(100), send_rate_bps: Some(64e3), ..FlowRow::default() };
            let mut near = Half { row, reported, end_s: 16.0, ..Half::default() };
            near.end(End::NoReports, true);
            let run = results(&target, &requested, "127.0.0.1:5004".parse().unwrap(), None, near);
            assert!(!run.notes.flows[0].well && run.notes.flows[0].reported == reported);
            run.output.summary.flows.into_iter().next().unwrap()
        };
        let unknown = row(None);
        assert_eq!((unknown.packets_sent, unknown.send_rate_bps), (Some(100), Some(64e3)));
        assert_eq!((unknown.packets_delivered, unknown.packets_lost, unknown.loss_rate), (None, None, None));
        assert!(unknown.goodput_bps.is_nan() && unknown.throughput_bps.is_none() && unknown.bytes_delivered.is_none());
        assert_eq!((unknown.ended.as_deref(), unknown.active_s), (Some(End::NoReports.to_string().as_str()), 16.0));
        let reported = |lost| Some(Reported { reports: 3, expected: 80, lost, jitter_s: None, without_cname: 0 });
        let known = row(reported(20));
        assert_eq!((known.packets_delivered, known.packets_lost, known.loss_rate), (Some(60), Some(20), Some(0.25)));
        // GStreamer counts the packet twice that makes it accept the stream
        let none = row(reported(-1));
        assert_eq!((none.packets_delivered, none.packets_lost, none.loss_rate), (Some(80), Some(0), Some(0.0)));
        assert!(none.goodput_bps.is_nan(), "what arrives is not known by its bytes");
    }
}
