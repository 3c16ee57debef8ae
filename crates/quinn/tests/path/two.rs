//! Two endpoints of quinn-proto over a path in memory: a link with a rate and a queue one way, a delay both ways. The time is the path's.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "quinn is told the time as an Instant, which only the clock makes"
)]

use paceline_quinn::{Call, Gate, Observer, SendTime, What};
use quinn_proto::congestion::ControllerFactory;
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig, Event, ServerConfig,
    StreamEvent, StreamId, TransportConfig, VarInt,
};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// UDP payload of a full packet, and what IPv4 and UDP add.
pub const DATAGRAM: u16 = 1452;
const HEADER: u64 = 28;

/// A path: Mbit/s, one-way delay in ms, limit of the queue in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    pub rate: u32,
    pub delay: u32,
    pub limit: u32,
}

/// What received of a flow between its fifth second and its end.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Of the link's rate.
    pub share: f64,
    /// Mean round trip in ms.
    pub trip: f64,
    /// Of the packets.
    pub lost: f64,
    /// What quinn has counted, and what our adaptor has, of the whole flow.
    pub quinn_lost: (u64, u64),
    pub ours_lost: (u64, u64),
}

/// One end.
struct End {
    endpoint: Endpoint,
    address: SocketAddr,
    connection: Option<(ConnectionHandle, Connection)>,
    /// What comes, and when.
    inbox: VecDeque<(Duration, Vec<u8>)>,
}

impl End {
    fn peer(&self) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 3 - self.address.port() as u8], 3 - self.address.port()))
    }

    fn take(&mut self, began: Instant, now: Duration) {
        let mut answer = Vec::new();
        while self.inbox.front().is_some_and(|&(due, _)| due <= now) {
            let (due, data) = self.inbox.pop_front().unwrap();
            let at = began + due;
            match self.endpoint.handle(at, self.peer(), None, None, data[..].into(), &mut answer) {
                Some(DatagramEvent::NewConnection(incoming)) => {
                    self.connection = Some(self.endpoint.accept(incoming, at, &mut answer, None).unwrap());
                }
                Some(DatagramEvent::ConnectionEvent(_, event)) => {
                    self.connection.as_mut().unwrap().1.handle_event(event)
                }
                Some(DatagramEvent::Response(_)) | None => {}
            }
        }
    }

    /// Timers, then what is to be sent, each datagram by itself. A gate is asked before each packet, with what is in flight; when it is to be
    /// asked again, if that is known.
    fn drive(
        &mut self,
        now: Instant,
        gate: Option<(&Gate, &Observer)>,
        send: &mut impl FnMut(Vec<u8>),
    ) -> Option<Instant> {
        let (handle, connection) = self.connection.as_mut()?;
        if connection.poll_timeout().is_some_and(|due| due <= now) {
            connection.handle_timeout(now);
        }
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        let mut data = Vec::new();
        loop {
            let in_flight = |observer: &Observer| observer.state().map_or(0, |state| state.in_flight);
            let send_time = gate.map(|(gate, observer)| gate.poll(now, in_flight(observer)));
            let at_once = if gate.is_some() { 1 } else { 10 };
            let Some(transmit) = connection.poll_transmit(now, at_once, &mut data) else {
                return if let Some(SendTime::At(then)) = send_time { Some(then) } else { None };
            };
            let size = transmit.segment_size.unwrap_or(transmit.size);
            data[..transmit.size].chunks(size).for_each(|datagram| send(datagram.to_vec()));
            data.clear();
        }
    }
}

fn transport(factory: Option<Arc<dyn ControllerFactory + Send + Sync>>) -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    let window = VarInt::from_u32(1 << 30);
    transport.initial_mtu(DATAGRAM).mtu_discovery_config(None).stream_receive_window(window).send_window(1 << 26);
    if let Some(factory) = factory {
        transport.congestion_controller_factory(factory);
    }
    Arc::new(transport)
}

fn ends(began: Instant, factory: Arc<dyn ControllerFactory + Send + Sync>) -> (End, End) {
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    let certificate = rcgen::CertificateParams::new(vec!["there".into()]).unwrap().self_signed(&key).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.der().clone()).unwrap();
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(key.serialize_der());
    let mut server = ServerConfig::with_single_cert(vec![certificate.der().clone()], key.into()).unwrap();
    server.transport_config(transport(None));
    let mut client = ClientConfig::with_root_certificates(Arc::new(roots)).unwrap();
    client.transport_config(transport(Some(factory)));
    let end = |n: u8, server| {
        let config = Arc::new(EndpointConfig::default());
        let endpoint = Endpoint::new(config, server, true, Some([n; 32]));
        let address = SocketAddr::from(([10, 0, 0, n], n.into()));
        End { endpoint, address, connection: None, inbox: VecDeque::new() }
    };
    let (mut near, far) = (end(1, None), end(2, Some(Arc::new(server))));
    near.connection = Some(near.endpoint.connect(began, client, far.address, "there").unwrap());
    (near, far)
}

/// One end writes as much as it can for `length`, by this gate if there is one.
pub fn flow(
    factory: impl FnOnce(Observer) -> Arc<dyn ControllerFactory + Send + Sync>,
    gate: Option<&Gate>,
    path: Path,
    length: Duration,
) -> Outcome {
    const WARMUP: Duration = Duration::from_secs(5);
    let began = Instant::now();
    let trips = Arc::new(Mutex::new((0.0, 0_u32)));
    let sum = Arc::clone(&trips);
    let observer = Observer::with_callback(move |seen| {
        if matches!(seen.what, What::Called(Call::Acked { .. })) && seen.now.duration_since(began) >= WARMUP {
            let mut sum = sum.lock().unwrap();
            *sum = (sum.0 + seen.state.rtt.latest_rtt.as_secs_f64() * 1e3, sum.1 + 1);
        }
    });
    let (mut near, mut far) = ends(began, factory(observer.clone()));
    let delay = Duration::from_millis(path.delay.into());
    let per_byte = 8e3 / f64::from(path.rate);
    // when each packet's transmission begins, and its size
    let (mut queue, mut free): (VecDeque<(Duration, u64)>, Duration) = (VecDeque::new(), Duration::ZERO);
    let (mut now, mut stream, mut received, mut before) = (Duration::ZERO, None::<StreamId>, 0_u64, None);
    let chunk = vec![0; 1 << 16];
    while now < length {
        near.take(began, now);
        far.take(began, now);
        let connection = &mut near.connection.as_mut().unwrap().1;
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected => stream = connection.streams().open(Dir::Uni),
                Event::ConnectionLost { reason } => panic!("{reason}"),
                _ => {}
            }
        }
        if let Some(stream) = stream {
            while connection.send_stream(stream).write(&chunk).is_ok() {}
        }
        if before.is_none() && now >= WARMUP {
            before = Some((received, connection.stats().path));
        }
        let paced = near.drive(began + now, gate.map(|gate| (gate, &observer)), &mut |datagram| {
            let size = datagram.len() as u64 + HEADER;
            while queue.front().is_some_and(|&(begins, _)| begins <= now) {
                queue.pop_front();
            }
            let waiting: u64 = queue.iter().map(|&(_, size)| size).sum();
            if free > now && waiting + size > path.limit.into() {
                return;
            }
            let begins = free.max(now);
            free = begins + Duration::from_nanos((size as f64 * per_byte) as u64);
            queue.push_back((begins, size));
            far.inbox.push_back((free + delay, datagram));
        });
        far.drive(began + now, None, &mut |datagram| near.inbox.push_back((now + delay, datagram)));
        if let Some((_, connection)) = &mut far.connection {
            while let Some(event) = connection.poll() {
                if let Event::Stream(StreamEvent::Opened { dir }) = event {
                    connection.streams().accept(dir);
                }
            }
            let id = StreamId::new(quinn_proto::Side::Client, Dir::Uni, 0);
            if let Ok(mut chunks) = connection.recv_stream(id).read(true) {
                while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
                    received += chunk.bytes.len() as u64;
                }
                let _ = chunks.finalize();
            }
            // what reading allows is to be told
            far.drive(began + now, None, &mut |datagram| near.inbox.push_back((now + delay, datagram)));
        }
        let mut next = paced.map_or(length, |at| length.min(at.duration_since(began)));
        for end in [&mut near, &mut far] {
            next = end.inbox.front().map_or(next, |&(due, _)| next.min(due));
            let timer = end.connection.as_mut().and_then(|(_, connection)| connection.poll_timeout());
            next = timer.map_or(next, |at| next.min(at.saturating_duration_since(began)));
        }
        now = next.max(now + Duration::from_nanos(1));
    }
    let (received_before, then) = before.unwrap();
    let stats = near.connection.as_ref().unwrap().1.stats().path;
    let (sum, samples) = *trips.lock().unwrap();
    let rate = (received - received_before) as f64 * 8.0 / (length - WARMUP).as_secs_f64();
    let last = observer.state();
    Outcome {
        share: rate / (f64::from(path.rate) * 1e6),
        trip: sum / f64::from(samples),
        lost: (stats.lost_packets - then.lost_packets) as f64 / (stats.sent_packets - then.sent_packets) as f64,
        quinn_lost: (stats.lost_packets, stats.lost_bytes),
        ours_lost: last.map_or((0, 0), |state| (state.lost.datagrams, state.lost.bytes)),
    }
}
