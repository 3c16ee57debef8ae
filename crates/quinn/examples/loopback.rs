//! What quinn costs over the loopback interface under its own CUBIC and under ours: `bench/quinn` runs it in turn.
//!
//!     cargo run --release -p paceline-quinn --example loopback -- quinn 1000
//!
//! The first argument is `quinn` for its own CUBIC, else a scheme of ours; the second is how many MB go. Both ends are in this process. It prints
//! the bytes that received, the seconds that it took, and what `bench/quinn` makes of them.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a program takes the time, and its arguments")]

use paceline_quinn::Controllers;
use quinn::congestion::CubicConfig;
use quinn::{ClientConfig, Endpoint, ServerConfig, TransportConfig, VarInt};
use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

/// What is written and read at once.
const CHUNK: usize = 1 << 16;

/// Windows of flow control that do not bind.
fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    let window = 64 << 20;
    transport.stream_receive_window(VarInt::from_u32(window)).send_window(window.into());
    transport
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let scheme = arguments.next().unwrap_or_else(|| "quinn".into());
    let bytes = arguments.next().map_or(Ok(1000), |megabytes| megabytes.parse::<usize>())? * 1_000_000;

    let mut sends = transport();
    if scheme == "quinn" {
        sends.congestion_controller_factory(Arc::new(CubicConfig::default()));
    } else {
        sends.congestion_controller_factory(Arc::new(Controllers::new(&scheme, &[], 1)?));
    }
    let certified = rcgen::generate_simple_self_signed(vec!["localhost".into()])?;
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    let mut server = ServerConfig::with_single_cert(vec![certified.cert.der().clone()], key.into())?;
    server.transport_config(Arc::new(transport()));
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certified.cert.der().clone())?;
    let mut client = ClientConfig::with_root_certificates(Arc::new(roots))?;
    client.transport_config(Arc::new(sends));

    let there = Endpoint::server(server, "127.0.0.1:0".parse()?)?;
    let here = Endpoint::client("127.0.0.1:0".parse()?)?;
    let connecting = here.connect_with(client, there.local_addr()?, "localhost")?;
    let takes = async {
        let connection = there.accept().await.ok_or("closed")?.await?;
        let mut stream = connection.accept_uni().await?;
        let mut received = 0;
        while let Some(chunk) = stream.read_chunk(CHUNK, true).await? {
            received += chunk.bytes.len();
        }
        connection.close(0_u32.into(), b"all here");
        Ok::<usize, Box<dyn Error>>(received)
    };
    let gives = async {
        let connection = connecting.await?;
        let mut stream = connection.open_uni().await?;
        let (chunk, mut left) = (vec![0; CHUNK], bytes);
        while left > 0 {
            let now = left.min(CHUNK);
            stream.write_all(&chunk[..now]).await?;
            left -= now;
        }
        stream.finish()?;
        connection.closed().await;
        Ok::<_, Box<dyn Error>>(connection.stats())
    };
    let began = Instant::now();
    let (received, stats) = tokio::try_join!(takes, gives)?;
    let seconds = began.elapsed().as_secs_f64();
    let lost = stats.path.lost_packets;
    println!(
        "{{\"bytes\": {received}, \"seconds\": {seconds:.6}, \"packets\": {}, \"lost\": {lost}}}",
        stats.path.sent_packets
    );
    Ok(())
}
