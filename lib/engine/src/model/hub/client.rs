//! What is asked of the hub, over HTTP.

use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;
use ureq::config::RedirectAuthHeaders;
use ureq::http::{HeaderMap, Response, StatusCode};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Body};

/// Redirections of one question about a file that are followed.
const MOST_REDIRECTS: usize = 5;

/// Nothing heard for so long is a broken connection.
const PATIENCE: Duration = Duration::from_secs(30);

/// The files of a model at one commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Listing {
    pub(super) commit: String,
    pub(super) files: Vec<String>,
}

/// What the hub says of a file's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Content {
    /// The SHA-256 of a large file, in 64 hexadecimal digits; of a small one some other name for its content.
    pub(super) hash: String,
    pub(super) bytes: u64,
}

/// Why there is no answer that helps.
#[derive(Debug, thiserror::Error)]
pub(super) enum ClientError {
    #[error("{0}")]
    Unreachable(#[from] ureq::Error),
    #[error(
        "{endpoint} has no such model or file, or not for this token ({status}); a model that asks for a login needs HF_TOKEN"
    )]
    Refused { endpoint: String, status: StatusCode },
    #[error("{endpoint} has no such model or file (404)")]
    Missing { endpoint: String },
    #[error("{endpoint} answers {status}")]
    Status { endpoint: String, status: StatusCode },
    #[error("{endpoint} answers what a hub does not: {what}")]
    Strange { endpoint: String, what: String },
}

impl ClientError {
    /// Whether nobody answered, so that another time or place might help.
    pub(super) fn is_unreachable(&self) -> bool {
        matches!(self, ClientError::Unreachable(_))
    }
}

/// A connection to a hub.
pub(super) struct Client {
    agent: Agent,
    endpoint: String,
    token: Option<String>,
}

#[derive(Deserialize)]
struct ModelInfo {
    sha: String,
    siblings: Vec<Sibling>,
}

#[derive(Deserialize)]
struct Sibling {
    rfilename: String,
}

impl Client {
    /// For a hub; the error says that no certificates were found to know it by.
    pub(super) fn new(endpoint: &str, token: Option<String>) -> Result<Client, String> {
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .redirect_auth_headers(RedirectAuthHeaders::Never)
            .timeout_connect(Some(PATIENCE))
            .timeout_per_read(Some(PATIENCE))
            .user_agent(concat!("cacheroute-lab/", env!("CARGO_PKG_VERSION")));
        if endpoint.starts_with("https:") {
            config = config.tls_config(tls()?);
        }
        Ok(Client { agent: config.build().new_agent(), endpoint: endpoint.into(), token })
    }

    /// The newest commit of a model and its files.
    pub(super) fn listing(&self, repository: &str) -> Result<Listing, ClientError> {
        let url = format!("{}/api/models/{repository}/revision/main", self.endpoint);
        let mut response = self.agent.get(&url).header_if(self.authorization(&url)).call()?;
        self.expect_ok(response.status())?;
        let text = response.body_mut().read_to_string()?;
        let info: ModelInfo = serde_json::from_str(&text).map_err(|e| self.strange(e.to_string()))?;
        if !super::is_plain(&info.sha) {
            return Err(self.strange(format!("{:?} for a commit", info.sha)));
        }
        Ok(Listing {
            commit: info.sha,
            files: info.siblings.into_iter().map(|sibling| sibling.rfilename).collect(),
        })
    }

    /// Where a file of a commit is asked for.
    pub(super) fn url(&self, repository: &str, commit: &str, file: &str) -> String {
        format!("{}/{repository}/resolve/{commit}/{file}", self.endpoint)
    }

    /// What a file's content is, without getting it. `url` becomes where a model lies that goes by another name now.
    pub(super) fn content(&self, url: &mut String) -> Result<Content, ClientError> {
        for _ in 0..MOST_REDIRECTS {
            let request = self.agent.head(&*url).config().max_redirects(0).build();
            let response = request.header_if(self.authorization(url)).call()?;
            let (status, headers) = (response.status(), response.headers());
            // A large file lies elsewhere; the hub itself says what it is and sends there.
            let linked = header(headers, "x-linked-etag").is_some();
            let location = header(headers, "location").filter(|_| status.is_redirection() && !linked);
            match location {
                Some(path) if path.starts_with('/') => *url = format!("{}{path}", self.endpoint),
                Some(elsewhere) => *url = elsewhere.to_string(),
                None if linked => return self.content_of(headers, "x-linked-etag", "x-linked-size"),
                None => {
                    self.expect_ok(status)?;
                    return self.content_of(headers, "etag", "content-length");
                }
            }
        }
        Err(self.strange(format!("more than {MOST_REDIRECTS} redirections")))
    }

    fn content_of(&self, headers: &HeaderMap, hash: &str, bytes: &str) -> Result<Content, ClientError> {
        let hash = header(headers, hash).map(|etag| etag.trim_start_matches("W/").trim_matches('"'));
        let bytes = header(headers, bytes).and_then(|bytes| bytes.parse().ok());
        match (hash, bytes) {
            (Some(hash), Some(bytes)) if super::is_plain(hash) => Ok(Content { hash: hash.into(), bytes }),
            _ => Err(self.strange("a file without hash or size".into())),
        }
    }

    /// The content of a file from a byte on, or all of it where the server does not give parts; the caller looks which.
    pub(super) fn get(&self, url: &str, from: u64) -> Result<Response<Body>, ClientError> {
        let mut request = self.agent.get(url).header_if(self.authorization(url));
        if from > 0 {
            request = request.header("range", format!("bytes={from}-"));
        }
        let response = request.header("accept-encoding", "identity").call()?;
        self.expect_ok(response.status())?;
        Ok(response)
    }

    /// The token, shown to the hub and to nobody else.
    fn authorization(&self, url: &str) -> Option<String> {
        let is_hub = url.strip_prefix(&self.endpoint).is_some_and(|rest| rest.starts_with('/'));
        self.token.as_ref().filter(|_| is_hub).map(|token| format!("Bearer {token}"))
    }

    fn expect_ok(&self, status: StatusCode) -> Result<(), ClientError> {
        let endpoint = self.endpoint.clone();
        match status {
            status if status.is_success() => Ok(()),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                Err(ClientError::Refused { endpoint, status })
            }
            StatusCode::NOT_FOUND => Err(ClientError::Missing { endpoint }),
            status => Err(ClientError::Status { endpoint, status }),
        }
    }

    fn strange(&self, what: String) -> ClientError {
        ClientError::Strange { endpoint: self.endpoint.clone(), what }
    }
}

/// A header that may be left out.
trait HeaderIf {
    fn header_if(self, authorization: Option<String>) -> Self;
}

impl<B> HeaderIf for ureq::RequestBuilder<B> {
    fn header_if(self, authorization: Option<String>) -> Self {
        match authorization {
            Some(value) => self.header("authorization", value),
            None => self,
        }
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// TLS that trusts whom the system trusts.
fn tls() -> Result<TlsConfig, String> {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        return Err("no certificates of this system were found to know a server by; install ca-certificates, or name a file of \
                    them in SSL_CERT_FILE"
            .into());
    }
    let certificates = found.certs.iter().map(|der| Certificate::from_der(der).to_owned()).collect();
    Ok(TlsConfig::builder()
        .root_certs(RootCerts::Specific(Arc::new(certificates)))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build())
}
