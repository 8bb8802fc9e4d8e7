//! A stand-in for the hub: one repository over HTTP, on a port of this machine. Large files are redirected to another path, as the
//! real one does.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Files from this size on are "large": known by their SHA-256 and served from elsewhere.
const LARGE: usize = 4096;

/// What a server serves, and what may go wrong.
#[derive(Clone, Default)]
pub struct Served {
    pub files: BTreeMap<String, Vec<u8>>,
    /// Asked for with every question to the hub itself.
    pub token: Option<String>,
    /// An answer with a body is cut off after so many bytes.
    pub cut_after: Option<usize>,
    /// Large files are announced so much longer than they are.
    pub announce_more: usize,
    /// Large files are announced with the hash of something else.
    pub wrong_hash: bool,
    /// Parts of a file are not given.
    pub no_ranges: bool,
}

/// The running server. Its thread ends with the process.
pub struct HubServer {
    pub endpoint: String,
    pub served: Arc<Mutex<Served>>,
    /// Requests so far, as `GET /path range`.
    pub seen: Arc<Mutex<Vec<String>>>,
}

impl HubServer {
    pub fn start(served: Served) -> HubServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let server = HubServer { endpoint, served: Arc::new(Mutex::new(served)), seen: Arc::default() };
        let (served, seen) = (Arc::clone(&server.served), Arc::clone(&server.seen));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let served = served.lock().unwrap().clone();
                // A client that hangs up is none of the server's business.
                let _ = answer(stream, &served, &seen);
            }
        });
        server
    }

    /// The requests that ask for the content of a file.
    pub fn downloads(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        seen.iter()
            .filter(|line| line.starts_with("GET /cdn/") || line.starts_with("GET /org"))
            .cloned()
            .collect()
    }
}

struct Asked {
    method: String,
    path: String,
    from: usize,
    authorization: Option<String>,
}

fn read_request(stream: &TcpStream) -> std::io::Result<Asked> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next().unwrap_or(Ok(String::new()))?;
    let mut words = first.split(' ').map(str::to_string);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut asked = Asked { method, path, from: 0, authorization: None };
    for line in lines {
        let line = line?;
        match line.split_once(": ") {
            None => break,
            Some((name, value)) if name.eq_ignore_ascii_case("range") => {
                asked.from = value.trim_start_matches("bytes=").trim_end_matches('-').parse().unwrap();
            }
            Some((name, value)) if name.eq_ignore_ascii_case("authorization") => {
                asked.authorization = Some(value.into());
            }
            Some(_) => {}
        }
    }
    Ok(asked)
}

fn answer(mut stream: TcpStream, served: &Served, seen: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let asked = read_request(&stream)?;
    let line = format!("{} {} {}", asked.method, asked.path, asked.from);
    seen.lock().unwrap().push(line.trim().into());
    let elsewhere = asked.path.strip_prefix("/cdn/");
    assert!(elsewhere.is_none() || asked.authorization.is_none(), "the token is nobody else's business");
    let wanted = served.token.as_ref().map(|token| format!("Bearer {token}"));
    if elsewhere.is_none() && wanted.is_some() && asked.authorization != wanted {
        return respond(&mut stream, "401 Unauthorized", "", b"", &asked);
    }
    if asked.path == "/api/models/org/tiny/revision/main" {
        let siblings: Vec<_> =
            served.files.keys().map(|name| serde_json::json!({ "rfilename": name })).collect();
        let info = serde_json::json!({ "sha": "c0ffee", "siblings": siblings, "private": false });
        return respond(&mut stream, "200 OK", "", info.to_string().as_bytes(), &asked);
    }
    let name = elsewhere.or_else(|| asked.path.strip_prefix("/org/tiny/resolve/c0ffee/"));
    match name.and_then(|name| Some((name, served.files.get(name)?))) {
        Some((name, content)) if elsewhere.is_none() && content.len() >= LARGE => {
            let hash = if served.wrong_hash { "0".repeat(64) } else { sha256(content) };
            let headers = format!(
                "Location: /cdn/{name}\r\nX-Linked-Etag: \"{hash}\"\r\nX-Linked-Size: {}\r\n",
                content.len().wrapping_add(served.announce_more)
            );
            respond(&mut stream, "302 Found", &headers, b"", &asked)
        }
        Some((_, content)) => send(&mut stream, content, served, &asked),
        None => respond(&mut stream, "404 Not Found", "", b"Entry not found", &asked),
    }
}

/// A file, or the rest of it.
fn send(stream: &mut TcpStream, content: &[u8], served: &Served, asked: &Asked) -> std::io::Result<()> {
    let etag = format!("ETag: \"{}\"\r\n", &sha256(content)[..40]);
    if asked.from == 0 || served.no_ranges {
        return respond_cut(stream, "200 OK", &etag, content, asked, served.cut_after);
    }
    if asked.from >= content.len() {
        return respond(stream, "416 Range Not Satisfiable", "", b"", asked);
    }
    let headers =
        format!("{etag}Content-Range: bytes {}-{}/{}\r\n", asked.from, content.len() - 1, content.len());
    respond_cut(stream, "206 Partial Content", &headers, &content[asked.from..], asked, served.cut_after)
}

fn respond(
    stream: &mut TcpStream,
    status: &str,
    headers: &str,
    body: &[u8],
    asked: &Asked,
) -> std::io::Result<()> {
    respond_cut(stream, status, headers, body, asked, None)
}

fn respond_cut(
    stream: &mut TcpStream,
    status: &str,
    headers: &str,
    body: &[u8],
    asked: &Asked,
    cut_after: Option<usize>,
) -> std::io::Result<()> {
    let length = body.len();
    write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n{headers}\r\n")?;
    if asked.method != "HEAD" {
        stream.write_all(&body[..length.min(cut_after.unwrap_or(length))])?;
    }
    stream.flush()
}

pub fn sha256(content: &[u8]) -> String {
    use sha2::Digest;
    sha2::Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}
