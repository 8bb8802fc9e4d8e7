//! The fleet file: where the shards of a table really are (`cacheroute.fleet/1`, TOML).

use super::ExportError;
use serde::Deserialize;

const SCHEMA: &str = "cacheroute.fleet/1";

/// Addresses of a fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetFile {
    listen: String,
    key_header: String,
    admin_socket: Option<String>,
    addresses: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    schema: String,
    listen: String,
    key_header: String,
    admin_socket: Option<String>,
    shards: Vec<WireShard>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireShard {
    address: String,
}

impl FleetFile {
    /// Parses the TOML of a fleet; `file` names it in errors.
    ///
    /// # Errors
    /// Text that is no TOML of this schema, no shards, or a value that could break out of a configuration file.
    pub fn from_toml(text: &str, file: &str) -> Result<FleetFile, ExportError> {
        let error = |what: String| ExportError::Fleet { file: file.into(), what };
        let wire: Wire = toml::from_str(text).map_err(|cause| {
            let (line, what) = cr_trace::config_text::explain(text, cause.span(), cause.message());
            ExportError::Fleet { file: format!("{file}:{line}"), what }
        })?;
        if wire.schema != SCHEMA {
            return Err(error(format!("schema is {:?}, expected {SCHEMA:?}", wire.schema)));
        }
        if wire.shards.is_empty() {
            return Err(error("there are no [[shards]]; each has an address".into()));
        }
        if wire.key_header.is_empty()
            || !wire.key_header.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
        {
            return Err(error(format!("key_header {:?} is no header name", wire.key_header)));
        }
        let addresses: Vec<String> = wire.shards.into_iter().map(|shard| shard.address).collect();
        for address in addresses.iter().chain([&wire.listen]) {
            let plain = |b: u8| b.is_ascii_alphanumeric() || b"-.:[]_".contains(&b);
            if !address.contains(':') || !address.bytes().all(plain) {
                return Err(error(format!("address {address:?} is not of the form host:port")));
            }
        }
        if let Some(socket) = &wire.admin_socket
            && !socket.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._/".contains(&b))
        {
            return Err(error(format!("admin_socket {socket:?} is no plain path")));
        }
        Ok(FleetFile {
            listen: wire.listen,
            key_header: wire.key_header,
            admin_socket: wire.admin_socket,
            addresses,
        })
    }

    /// Where the proxy listens, as host:port.
    pub fn listen(&self) -> &str {
        &self.listen
    }

    /// The request header that carries the routing key.
    pub fn key_header(&self) -> &str {
        &self.key_header
    }

    /// The path of the proxy's admin socket, for updates at run time.
    pub fn admin_socket(&self) -> Option<&str> {
        self.admin_socket.as_deref()
    }

    /// The address of each shard, as host:port.
    pub fn addresses(&self) -> &[String] {
        &self.addresses
    }
}
