//! TLS, with certificates that each test makes.

use std::sync::Arc;

use greenroom_transports::{HttpClient, HttpClientBuilder};
use reqwest::{Certificate, Identity};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use crate::local::{Local, initialize};
use crate::server::{Io, Server};

/// An authority, and a certificate of it for `localhost`.
struct Made {
    authority: rcgen::Certificate,
    certificate: rcgen::Certificate,
    key: rcgen::KeyPair,
}

fn make() -> Made {
    let key_of_authority = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority = params.self_signed(&key_of_authority).unwrap();
    let issuer = rcgen::Issuer::new(params, key_of_authority);
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate =
        rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    Made { authority, certificate, key }
}

impl Made {
    fn key(&self) -> PrivateKeyDer<'static> {
        PrivatePkcs8KeyDer::from(self.key.serialize_der()).into()
    }

    fn root(&self) -> Certificate {
        Certificate::from_der(self.authority.der()).unwrap()
    }

    fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.der().clone()).unwrap();
        roots
    }

    /// A server with this certificate; `clients` must show one as well.
    async fn server(&self, clients: bool, protocols: &[&str]) -> Server {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder =
            ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions().unwrap();
        let builder = if clients {
            let roots = Arc::new(self.roots());
            builder.with_client_cert_verifier(
                WebPkiClientVerifier::builder_with_provider(roots, provider).build().unwrap(),
            )
        } else {
            builder.with_no_client_auth()
        };
        let mut config = builder.with_single_cert(vec![self.certificate.der().clone()], self.key()).unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        Server::with(move |stream: TcpStream| {
            let accepted = acceptor.accept(stream);
            async move { accepted.await.ok().map(|stream| Box::new(stream) as Box<dyn Io>) }
        })
        .await
    }
}

fn builder(scheme: &str, server: &Server) -> HttpClientBuilder {
    HttpClient::builder(format!("{scheme}://localhost:{}", server.address.port()))
        .configure_http(|http| http.no_proxy())
}

/// Over `https` and `wss` the first message arrives.
async fn arrives(mut server: Server, configure: impl Fn(reqwest::ClientBuilder) -> reqwest::ClientBuilder) {
    let client = builder("https", &server).configure_http(&configure).build().unwrap();
    let (local, _events) = Local::connect(client, &mut server).await;
    local.abandon().await;
    server.expect("DELETE").await.accepted().await;

    let client = builder("wss", &server).configure_http(&configure).build().unwrap();
    let local = Local::start(client);
    local.send(initialize(0));
    let mut socket = server.expect("GET").await.upgraded().await;
    let heard = futures_util::StreamExt::next(&mut socket).await.unwrap().unwrap();
    assert_eq!(heard.into_text().unwrap().as_str(), initialize(0).to_string());
}

#[tokio::test]
async fn a_private_authority_is_trusted_when_it_is_the_only_one() {
    let made = make();
    let server = made.server(false, &["http/1.1"]).await;
    arrives(server, |http| http.tls_certs_only([made.root()])).await;
}

#[tokio::test]
async fn a_private_authority_can_be_added() {
    let made = make();
    let server = made.server(false, &[]).await;
    arrives(server, |http| http.tls_certs_merge([made.root()])).await;
}

#[tokio::test]
async fn a_backend_can_be_given_whole() {
    let made = make();
    let server = made.server(false, &["http/1.1"]).await;
    arrives(server, |http| {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(made.roots())
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        http.tls_backend_preconfigured(config)
    })
    .await;
}

#[tokio::test]
async fn a_client_can_show_a_certificate() {
    let made = make();
    let server = made.server(true, &["http/1.1"]).await;
    arrives(server, |http| {
        let pem = made.certificate.pem() + &made.key.serialize_pem();
        http.tls_certs_only([made.root()]).identity(Identity::from_pem(pem.as_bytes()).unwrap())
    })
    .await;
}

#[tokio::test]
async fn an_authority_that_is_not_trusted_is_named_as_the_trouble() {
    let (made, other) = (make(), make());
    for scheme in ["https", "wss"] {
        let mut server = made.server(false, &["http/1.1"]).await;
        let root = other.root();
        let client = builder(scheme, &server).configure_http(|http| http.tls_certs_only([root])).build().unwrap();
        let local = Local::start(client);
        local.send(initialize(0));
        let said = local.reason().await;
        assert!(said.contains("TLS failed (invalid peer certificate") && said.contains("trust roots"), "{said}");
        server.stays_quiet().await;
    }
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused() {
    let made = make();
    let mut server = made.server(false, &["http/1.1"]).await;
    let (root, address) = (made.root(), server.address);
    let client = HttpClient::builder(format!("https://other.example:{}", address.port()))
        .configure_http(|http| http.no_proxy().resolve("other.example", address).tls_certs_only([root]))
        .build()
        .unwrap();
    let local = Local::start(client);
    local.send(initialize(0));
    assert!(local.reason().await.contains("TLS failed"));
    server.stays_quiet().await;
}
