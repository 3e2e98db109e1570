//! The bearer token of one server.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Keeps these tokens apart from everything else that the secret may ever sign.
const PURPOSE: &[u8] = b"mcp-over-acp-http-adapter/server/v1\0";

/// What all tokens of one connection are made from. Make it from 32 random bytes.
#[derive(Clone)]
pub struct Secret {
    /// HMAC fills a short key up with zeros to the size of a block; here it is done already.
    block: [u8; 64],
}

impl Secret {
    /// A secret of these bytes.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Self {
        let mut block = [0; 64];
        block[..32].copy_from_slice(&bytes);
        Self { block }
    }

    fn mac(&self, server_id: &str) -> Hmac<Sha256> {
        Hmac::<Sha256>::new(&self.block.into()).chain_update(PURPOSE).chain_update(server_id.as_bytes())
    }

    /// The token of one server. It opens no other server and survives no other secret.
    #[must_use]
    pub fn token(&self, server_id: &str) -> String {
        URL_SAFE_NO_PAD.encode(self.mac(server_id).finalize().into_bytes())
    }

    /// Whether `token` is the token of this server. How long it takes says nothing about how much
    /// of the token was right.
    #[must_use]
    pub fn accepts(&self, server_id: &str, token: &str) -> bool {
        URL_SAFE_NO_PAD.decode(token).is_ok_and(|bytes| self.mac(server_id).verify_slice(&bytes).is_ok())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}
