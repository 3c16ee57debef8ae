//! Authentication: each end generates a key when it starts, and accepts only the other end's, by its fingerprint.
//!
//! TLS carries the bare public key (RFC 7250), without a signature: a certificate would add nothing. The control
//! channel, over which both ends exchange their fingerprints before the first packet, establishes that the key is the
//! right one; that channel is authenticated if the server has a key.

use crate::endpoint::control::{hex, unhex};
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, ServerConfig, SignatureScheme,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::io;
use std::sync::Arc;

/// The protocol that both ends negotiate (RFC 7301): with another version of it the handshake fails.
const PROTOCOL: &[u8] = b"paceline/1";

/// The SHA-256 of a public key (of its SubjectPublicKeyInfo, RFC 5280 section 4.1.2.7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    fn of(key: &[u8]) -> Fingerprint {
        let mut all = [0; 32];
        all.copy_from_slice(digest(&SHA256, key).as_ref());
        Fingerprint(all)
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&hex(&self.0))
    }
}

impl<'de> Deserialize<'de> for Fingerprint {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Fingerprint, D::Error> {
        let digits = String::deserialize(from)?;
        let bytes = unhex(&digits).and_then(|bytes| bytes.try_into().ok());
        bytes.map(Fingerprint).ok_or_else(|| serde::de::Error::custom("a fingerprint has 64 hexadecimal digits"))
    }
}

/// One end's key, generated at its start.
#[derive(Clone, Debug)]
pub struct OwnKey {
    key: Arc<CertifiedKey>,
    fingerprint: Fingerprint,
}

impl OwnKey {
    /// Generates a key (ECDSA over P-256).
    ///
    /// # Errors
    /// If the system has no random bytes.
    pub fn generate() -> io::Result<OwnKey> {
        let failed = |_| io::Error::other("no key for QUIC: the system has no random bytes");
        let text =
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &SystemRandom::new()).map_err(failed)?;
        let text = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(text.as_ref().to_vec()));
        let key = rustls::crypto::ring::sign::any_ecdsa_type(&text).map_err(io::Error::other)?;
        let public = key.public_key().ok_or_else(|| io::Error::other("a key without a public half"))?;
        let public = CertificateDer::from(public.as_ref().to_vec());
        let fingerprint = Fingerprint::of(&public);
        Ok(OwnKey { key: Arc::new(CertifiedKey::new(vec![public], key)), fingerprint })
    }

    /// The fingerprint to send to the other end.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }
}

/// The keys of a flow: this end's own, and the other end's fingerprint. Without a fingerprint no peer is accepted.
#[derive(Clone, Debug)]
pub struct Keys {
    /// This end's key.
    pub own: OwnKey,
    /// The other end's fingerprint.
    pub peer: Option<Fingerprint>,
}

impl Keys {
    /// TLS configuration of the end that opens the connection.
    pub(super) fn client(&self) -> Result<ClientConfig, Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let pinned = Arc::new(Pinned::new(self.peer, &provider));
        let mut tls = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(pinned)
            .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(Arc::clone(&self.own.key))));
        tls.alpn_protocols = vec![PROTOCOL.to_vec()];
        tls.resumption = Resumption::disabled();
        tls.enable_sni = false;
        Ok(tls)
    }

    /// TLS configuration of the end that accepts it.
    pub(super) fn server(&self) -> Result<ServerConfig, Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let pinned = Arc::new(Pinned::new(self.peer, &provider));
        let mut tls = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])?
            .with_client_cert_verifier(pinned)
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(Arc::clone(&self.own.key))));
        tls.alpn_protocols = vec![PROTOCOL.to_vec()];
        tls.send_tls13_tickets = 0;
        Ok(tls)
    }
}

/// Accepts only one key.
#[derive(Debug)]
struct Pinned {
    peer: Option<Fingerprint>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Pinned {
    fn new(peer: Option<Fingerprint>, provider: &CryptoProvider) -> Pinned {
        Pinned { peer, algorithms: provider.signature_verification_algorithms }
    }

    fn check(&self, key: &[u8]) -> Result<(), Error> {
        if self.peer == Some(Fingerprint::of(key)) {
            return Ok(());
        }
        Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
    }

    fn signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature_with_raw_key(
            message,
            &SubjectPublicKeyInfoDer::from(key.as_ref()),
            signed,
            &self.algorithms,
        )
    }
}

/// QUIC does not use TLS 1.2.
fn no_old_tls() -> Error {
    Error::General("TLS 1.2".to_owned())
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        key: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(key).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(no_old_tls())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signature(message, key, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for Pinned {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        key: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(key).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(no_old_tls())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signature(message, key, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
