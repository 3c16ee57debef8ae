//! `paceline send rtp://...`: a flow to a receiver of plain RTP, which is no program of ours (GStreamer's rtpbin, say).
//!
//! There is no server to ask: what its reports must show, and when the flow ends for want of them, is in
//! [`crate::session::RtpPeer`]'s module. RTP and RTCP have a socket each, on this side as on the other.

use super::client::{SendError, SendWatch, Wanted, failure};
use super::driver::{Driver, NewFlow, Running};
use super::half::{Half, Table, joined, recordings};
use super::numbers::Numbers;
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

const LOOK: Duration = Duration::from_millis(20);

/// A receiver of plain RTP.
#[derive(Clone, Debug)]
pub struct RtpTarget {
    /// Its name or address.
    pub host: String,
    /// Where it takes RTP.
    pub rtp_port: u16,
    /// Where it takes RTCP.
    pub rtcp_port: u16,
    /// Where RTP leaves from here; 0: anywhere.
    pub local_rtp_port: u16,
    /// Where its reports come to.
    pub local_rtcp_port: u16,
    /// How the data are labelled.
    pub peer: RtpPeer,
}

/// Sends a flow to its end, or until the watch says stop.
///
/// # Errors
/// [`SendError`]. A flow that ends badly is no error: the results say how it ended.
pub fn send_rtp(
    target: &RtpTarget,
    wanted: &Wanted,
    logs: Option<PathBuf>,
    watch: &SendWatch,
) -> Result<LiveRun, SendError> {
    let address = resolved(target)?;
    let mut flow = wanted.offer.spec.clone();
    flow.family = if address.is_ipv6() { Family::V6 } else { Family::V4 };
    let rtp = Some(target.peer);
    let connection = 0;
    let spec = SessionSpec { side: Side::Sender, flow, connection, nonce: 0, limit: None, announces: false, rtp };
    // a mistake is told before anything is sent
    Session::new(&spec).map_err(|error| SendError::Flow(error.to_string()))?;
    let clock = Clock::start();
    let ports = bound(target, address, clock)?;
    let rtcp = Some((1, SocketAddr::new(address.ip(), target.rtcp_port)));
    let log = logs.map(|folder| folder.join(format!("{}-{}.events", wanted.name, wanted.instance)));
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
    watch.begin(&handle, std::slice::from_ref(wanted));
    let mut stopped = false;
    let half = loop {
        match outcomes.try_recv() {
            Ok(outcome) => break outcome.half,
            Err(std::sync::mpsc::TryRecvError::Empty) => {}
            Err(std::sync::mpsc::TryRecvError::Disconnected) => {
                let failed = thread.join().unwrap_or_else(|_| Err(io::Error::other("its thread has failed")));
                let error = failed.err().unwrap_or_else(|| io::Error::other("the endpoint has ended"));
                return Err(failure(error));
            }
        }
        if watch.is_stopped() && !stopped {
            stopped = true;
            handle.stop(0);
        }
        rest(LOOK);
    };
    handle.quit();
    let _ = thread.join();
    let host = before.and_then(|before| HostReport::since(before).ok());
    Ok(results(target, wanted, address, host, half))
}

fn resolved(target: &RtpTarget) -> Result<SocketAddr, SendError> {
    let no_address = |why: String| SendError::NoAddress { host: target.host.clone(), why };
    let mut found =
        (target.host.as_str(), target.rtp_port).to_socket_addrs().map_err(|error| no_address(error.to_string()))?;
    let address = found.next().ok_or_else(|| no_address("it has none".to_owned()))?;
    let address = match address.ip().to_canonical() {
        // a scope belongs to an address of IPv6 itself
        IpAddr::V6(_) => address,
        ip => SocketAddr::new(ip, address.port()),
    };
    // reports of one receiver do not speak for a group's or a network's many
    let many = match address.ip() {
        IpAddr::V4(ip) => ip.is_multicast() || ip.is_broadcast(),
        IpAddr::V6(ip) => ip.is_multicast(),
    };
    if many {
        return Err(SendError::Flow(format!("{address} is not one host's address: a flow goes to one receiver")));
    }
    Ok(address)
}

/// The sockets of RTP and of RTCP.
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

/// What the sender knows, and what the reports told it; of the receiver nothing else is known.
fn results(target: &RtpTarget, wanted: &Wanted, address: SocketAddr, host: Option<HostReport>, near: Half) -> LiveRun {
    let for_s = wanted.offer.spec.for_ms as f64 / 1e3;
    // the rate of sending stands beside one of receiving
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
    let told = near.reported;
    let expected = told.map(|told| told.expected).filter(|expected| *expected > 0);
    // copies make up for losses in the count
    let lost = told.map(|told| u64::try_from(told.lost).unwrap_or(0).min(told.expected));
    let row = FlowRow {
        flow: wanted.name.clone(),
        instance: wanted.instance,
        group: wanted.name.clone(),
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
    let series = recordings(&near, &far, &wanted.name, wanted.instance);
    let mut summary = LiveSummary::new("live", Time::from_secs_f64(near.end_s), vec![row]);
    summary.duration_s = Some(for_s);
    let flows = vec![FlowNotes::of(wanted, &near, &far)];
    LiveRun { output: LiveOutput { summary, series }, notes: Notes { server: address.to_string(), host, flows } }
}
