//! QUIC with programs that are not ours: an echo over a stream and datagrams, under one of Paceline's controllers.
//!
//!     cargo run --release -p paceline-quinn --example echo -- serve 127.0.0.1:4433 cubic cert.der key.der
//!     cargo run --release -p paceline-quinn --example echo -- 127.0.0.1:4433 cubic cert.der 1000000
//!
//! The server answers whatever comes. The client sends 50 datagrams of 1000 bytes, one at a time, then so many bytes on a stream; it
//! says what received_byte back as JSON, and what the connection received_byte to. `tests/test_quic_interop.py` has aioquic at the other end.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a program takes time, arguments and files")]

use paceline_quinn::{Adaptor, Controllers};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Connection, Endpoint, ReadError, RecvStream, SendStream, ServerConfig, TransportConfig};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What both ends say they speak (RFC 7301).
const PROTOCOL: &[u8] = b"echo";
/// How many datagrams go, and of how many bytes.
const DATAGRAMS: (u32, usize) = (50, 1000);
/// Bytes that are handed on at once.
const PIECE: usize = 1 << 14;
/// No answer to a datagram for so long: it was lost.
const PATIENCE: Duration = Duration::from_secs(1);

type Failure = Box<dyn Error>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match &words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", address, scheme, certificate, key] => serve(address.parse()?, scheme, certificate, key).await,
        [address, scheme, certificate, bytes] => {
            run_client(address.parse()?, scheme, certificate, bytes.parse()?).await
        }
        _ => Err("say serve ADDRESS SCHEME CERTIFICATE KEY, or ADDRESS SCHEME CERTIFICATE BYTES".into()),
    }
}

fn transport(scheme: &str) -> Result<Arc<TransportConfig>, Failure> {
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(Arc::new(Controllers::new(scheme, &[], std::process::id().into())?));
    Ok(Arc::new(transport))
}

fn certificate(file: &str) -> Result<CertificateDer<'static>, Failure> {
    Ok(CertificateDer::from(std::fs::read(file)?))
}

async fn serve(address: SocketAddr, scheme: &str, file: &str, key: &str) -> Result<(), Failure> {
    let key = PrivatePkcs8KeyDer::from(std::fs::read(key)?);
    let mut tls =
        rustls::ServerConfig::builder().with_no_client_auth().with_single_cert(vec![certificate(file)?], key.into())?;
    tls.alpn_protocols = vec![PROTOCOL.to_vec()];
    let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    config.transport_config(transport(scheme)?);
    let here = Endpoint::server(config, address)?;
    while let Some(incoming) = here.accept().await {
        let connection = incoming.await?;
        let ended = tokio::select! {
            ended = answer_datagrams(&connection) => ended,
            ended = answer_streams(&connection) => ended,
        };
        eprintln!("{}", ended.expect_err("it ends with the connection"));
    }
    Ok(())
}

async fn answer_datagrams(connection: &Connection) -> Result<(), Failure> {
    loop {
        connection.send_datagram(connection.read_datagram().await?)?;
    }
}

async fn answer_streams(connection: &Connection) -> Result<(), Failure> {
    loop {
        let (mut to, mut from) = connection.accept_bi().await?;
        while let Some(chunk) = from.read_chunk(PIECE, true).await? {
            to.write_chunk(chunk.bytes).await?;
        }
        to.finish()?;
    }
}

/// What stands at a place of the stream.
fn byte(at: usize) -> u8 {
    (at.wrapping_mul(0x9e37_79b1) >> 13) as u8
}

async fn run_client(address: SocketAddr, scheme: &str, file: &str, bytes: usize) -> Result<(), Failure> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate(file)?)?;
    let mut tls = rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    tls.alpn_protocols = vec![PROTOCOL.to_vec()];
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    config.transport_config(transport(scheme)?);
    let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let here = Endpoint::client(any.parse()?)?;
    let connection = here.connect_with(config, address, "localhost")?.await?;

    let (mut trips, mut answered) = (Vec::new(), 0);
    for number in 0..DATAGRAMS.0 {
        let (mut datagram, left) = (number.to_be_bytes().to_vec(), Instant::now());
        datagram.resize(DATAGRAMS.1, number as u8);
        connection.send_datagram(datagram.clone().into())?;
        if let Ok(answer) = tokio::time::timeout(PATIENCE, connection.read_datagram()).await {
            answered += u32::from(answer? == datagram);
            trips.push(left.elapsed());
        }
    }
    let (to, from) = connection.open_bi().await?;
    let began = Instant::now();
    let ((), same) = tokio::try_join!(give(to, bytes), take(from))?;
    let seconds = began.elapsed().as_secs_f64();

    let adaptor = connection.congestion_state().into_any().downcast::<Adaptor>().map_err(|_| "another controller")?;
    let state = adaptor.into_law().state();
    connection.close(0_u32.into(), b"all here");
    here.wait_idle().await;
    let stats = connection.stats();
    let trip = trips.iter().min().map_or(0.0, Duration::as_secs_f64);
    println!(
        "{{\"same\": {same}, \"seconds\": {seconds}, \"datagrams\": {answered}, \"rtt_min_s\": {trip}, \"srtt_s\": {}, \
         \"window\": {}, \"lost\": {}, \"sent\": {}, \"received\": {}}}",
        state.rtt.smoothed_rtt.as_secs_f64(),
        state.window,
        stats.path.lost_packets,
        stats.udp_tx.datagrams,
        stats.udp_rx.datagrams,
    );
    Ok(())
}

async fn give(mut to: SendStream, bytes: usize) -> Result<(), Failure> {
    for begin in (0..bytes).step_by(PIECE) {
        let piece: Vec<u8> = (begin..bytes.min(begin + PIECE)).map(byte).collect();
        to.write_all(&piece).await?;
    }
    Ok(to.finish()?)
}

/// How many bytes received_byte back as they went, from the first one on.
async fn take(mut from: RecvStream) -> Result<usize, Failure> {
    let mut same = 0;
    loop {
        match from.read_chunk(PIECE, true).await {
            Ok(Some(chunk)) => {
                for received_byte in chunk.bytes {
                    if received_byte != byte(same) {
                        return Err(format!("byte {same} is another one").into());
                    }
                    same += 1;
                }
            }
            Ok(None) => return Ok(same),
            Err(ReadError::Reset(code)) => return Err(format!("the other end has reset the stream: {code}").into()),
            Err(lost) => return Err(lost.into()),
        }
    }
}
