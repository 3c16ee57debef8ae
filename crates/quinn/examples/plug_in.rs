//! An ordinary quinn application under one of Paceline's controllers: the three lines are marked.
//!
//!     cargo run --release -p paceline-quinn --example plug_in -- bbr3
//!
//! It sends 20 MB over the loopback interface, to itself, and prints the rate that the controller reached.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a program takes the time, and its arguments")]

use paceline_quinn::{Adaptor, Controllers};
use quinn::{ClientConfig, Endpoint, ServerConfig, TransportConfig};
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

const BYTES: usize = 20_000_000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    run().await.map_or_else(
        |error| {
            eprintln!("plug_in: {error}");
            ExitCode::FAILURE
        },
        |()| ExitCode::SUCCESS,
    )
}

async fn run() -> Result<(), Box<dyn Error>> {
    let scheme = std::env::args().nth(1).unwrap_or_else(|| "bbr3".into());

    let controllers = Controllers::new(&scheme, &[], std::process::id().into())?; // 1
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(Arc::new(controllers)); // 2

    let certified = rcgen::generate_simple_self_signed(vec!["localhost".into()])?;
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    let server = ServerConfig::with_single_cert(vec![certified.cert.der().clone()], key.into())?;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certified.cert.der().clone())?;
    let mut client = ClientConfig::with_root_certificates(Arc::new(roots))?;
    client.transport_config(Arc::new(transport)); // 3

    let there = Endpoint::server(server, "127.0.0.1:0".parse()?)?;
    let here = Endpoint::client("127.0.0.1:0".parse()?)?;
    let connecting = here.connect_with(client, there.local_addr()?, "localhost")?;
    let takes = async {
        let connection = there.accept().await.ok_or("closed")?.await?;
        let received = connection.accept_uni().await?.read_to_end(BYTES).await?.len();
        connection.close(0_u32.into(), b"all here");
        Ok::<usize, Box<dyn Error>>(received)
    };
    let gives = async {
        let connection = connecting.await?;
        let mut stream = connection.open_uni().await?;
        stream.write_all(&vec![0; BYTES]).await?;
        stream.finish()?;
        connection.closed().await;
        Ok::<_, Box<dyn Error>>(connection)
    };
    let began = Instant::now();
    let (received, connection) = tokio::try_join!(takes, gives)?;
    let rate = received as f64 * 8e-6 / began.elapsed().as_secs_f64();
    println!("{scheme}: {received} bytes at {rate:.0} Mbit/s");

    let adaptor = connection.congestion_state().into_any().downcast::<Adaptor>().map_err(|_| "another controller")?;
    let state = adaptor.into_law().state();
    println!(
        "window {} bytes, round trip {:.6} s, {:?}",
        state.window,
        state.rtt.smoothed_rtt.as_secs_f64(),
        state.phase
    );
    Ok(())
}
