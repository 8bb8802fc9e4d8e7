//! Exported tables on real proxies, with stub HTTP servers on loopback as shards. A proxy that is not installed (Debian:
//! haproxy and socat, nginx) is skipped with a word. `CR_PROXY_KEYS=128824` asks for every key of the paper's workload.

// A skipped test says so.
#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const KEY_HEADER: &str = "x-cacheroute-key";

/// Shards that answer with their number; one more address answers nobody.
const LIVE: usize = 4;

/// A shard: answers every request with its number.
fn stub(number: usize) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
    let port = listener.local_addr().expect("has an address").port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || serve(stream, number));
        }
    });
    port
}

fn serve(stream: TcpStream, number: usize) {
    let Ok(mut out) = stream.try_clone() else { return };
    let mut lines = BufReader::new(stream).lines();
    loop {
        // A request without a body ends at the first blank line.
        loop {
            match lines.next() {
                Some(Ok(line)) if line.is_empty() => break,
                Some(Ok(_)) => {}
                _ => return,
            }
        }
        // In one piece: several small writes would each wait for the other side's acknowledgement.
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{number}");
        if out.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("binds").port()
}

/// A client of the proxy; keeps its connection where the proxy does.
struct Client {
    port: u16,
    connection: Option<BufReader<TcpStream>>,
    keep_alive: bool,
}

impl Client {
    fn new(port: u16, keep_alive: bool) -> Client {
        Client { port, connection: None, keep_alive }
    }

    /// The shard that answers a request of this key.
    fn ask(&mut self, key: &str) -> Result<usize, String> {
        let fail = |e: std::io::Error| e.to_string();
        if self.connection.is_none() {
            let stream = TcpStream::connect(("127.0.0.1", self.port)).map_err(fail)?;
            stream.set_read_timeout(Some(Duration::from_secs(20))).map_err(fail)?;
            stream.set_nodelay(true).map_err(fail)?;
            self.connection = Some(BufReader::new(stream));
        }
        let connection = self.connection.as_mut().ok_or("no connection")?;
        let close = if self.keep_alive { "" } else { "Connection: close\r\n" };
        let request = format!("GET / HTTP/1.1\r\nHost: x\r\n{KEY_HEADER}: {key}\r\n{close}\r\n");
        connection.get_mut().write_all(request.as_bytes()).map_err(fail)?;
        let (mut status, mut length, mut closes) = (String::new(), 0, !self.keep_alive);
        connection.read_line(&mut status).map_err(fail)?;
        loop {
            let mut line = String::new();
            connection.read_line(&mut line).map_err(fail)?;
            let line = line.trim_end().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(n) = line.strip_prefix("content-length:") {
                length = n.trim().parse().map_err(|_| "bad length")?;
            }
            closes |= line == "connection: close";
        }
        let mut body = vec![0; length];
        connection.read_exact(&mut body).map_err(fail)?;
        if closes {
            self.connection = None;
        }
        if !status.starts_with("HTTP/1.1 200") {
            return Err(format!("{} {}", status.trim_end(), String::from_utf8_lossy(&body)));
        }
        String::from_utf8_lossy(&body).parse().map_err(|_| "no number".to_string())
    }
}

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // A polite signal: a killed nginx would leave its workers behind.
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let start = Instant::now();
        while matches!(self.0.try_wait(), Ok(None)) && start.elapsed() < Duration::from_secs(5) {
            thread::sleep(Duration::from_millis(20));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn installed(program: &str) -> bool {
    let found = Command::new(program).arg("-v").stdout(Stdio::null()).stderr(Stdio::null()).status();
    found
        .or_else(|_| Command::new(program).arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status())
        .is_ok()
}

fn run(program: &str, args: &[&str]) -> std::process::Output {
    Command::new(program).args(args).output().expect("starts")
}

type Places = BTreeMap<String, Vec<usize>>;

fn places(table: &str) -> Places {
    let value: serde_json::Value = serde_json::from_str(table).expect("is JSON");
    serde_json::from_value(value["keys"].clone()).expect("are places")
}

/// The table with every lone place moved to the next living shard; replica sets stay.
fn rotated(table: &str) -> String {
    let mut value: serde_json::Value = serde_json::from_str(table).expect("is JSON");
    for shards in value["keys"].as_object_mut().expect("is an object").values_mut() {
        if let [shard] = shards.as_array().expect("is a list").as_slice()
            && let Some(shard) = shard.as_u64().filter(|&shard| shard < LIVE as u64)
        {
            *shards = serde_json::json!([(shard + 1) % LIVE as u64]);
        }
    }
    format!("{value}\n")
}

struct Setup {
    folder: tempfile::TempDir,
    table: String,
    port: u16,
}

impl Setup {
    fn new() -> Setup {
        let folder = tempfile::tempdir().expect("is made");
        let keys: usize = std::env::var("CR_PROXY_KEYS").ok().and_then(|n| n.parse().ok()).unwrap_or(3_000);
        let rates: String = (0..keys).map(|n| format!("key-{n},{}\n", 1_000.0 / (n + 1) as f64)).collect();
        let rates_path = folder.path().join("rates.csv");
        fs::write(&rates_path, rates).expect("is written");
        // The two hottest keys get copies; nearly all keys are admitted.
        let shards = (LIVE + 1).to_string();
        let slots = (keys as f64 / (LIVE + 1) as f64).to_string();
        let output = run(
            env!("CARGO_BIN_EXE_cr-plan"),
            &[
                rates_path.to_str().expect("is text"),
                "--shards",
                &shards,
                "--qcap",
                "400",
                "--warm-slots",
                &slots,
                "-q",
            ],
        );
        let table = String::from_utf8(output.stdout).expect("is text");
        let port = free_port();
        let mut fleet = format!(
            "schema = \"cacheroute.fleet/1\"\nlisten = \"127.0.0.1:{port}\"\nkey_header = \"{KEY_HEADER}\"\nadmin_socket = \"{}\"\n",
            folder.path().join("admin.sock").display()
        );
        let addresses = (0..LIVE).map(stub).chain([free_port()]);
        addresses.for_each(|port| fleet += &format!("[[shards]]\naddress = \"127.0.0.1:{port}\"\n"));
        fs::write(folder.path().join("fleet.toml"), fleet).expect("is written");
        Setup { folder, table, port }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn export(&self, table: &str, to: &str, name: &str) -> String {
        let (path, folder) = (self.path(&format!("{name}.json")), self.path(name));
        fs::write(&path, table).expect("is written");
        let fleet = self.path("fleet.toml");
        let output = run(
            env!("CARGO_BIN_EXE_cr-plan"),
            &["export", &path, "--to", to, "--fleet", &fleet, "-o", &folder, "-q"],
        );
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        folder
    }

    fn wait_until_it_listens(&self) {
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(start.elapsed() < Duration::from_secs(30), "the proxy does not listen");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Every admitted key reaches a shard of its own, one whose shards are all dead any other, and cold keys spread.
    fn assert_routed(&self, table: &str) {
        let mut client = Client::new(self.port, true);
        for (key, shards) in places(table) {
            let served = client.ask(&key).unwrap_or_else(|error| panic!("{key}: {error}"));
            let dead = shards.contains(&LIVE);
            assert!(dead || shards.contains(&served), "{key} of {shards:?} was served by {served}");
        }
        let mut counts = [0u32; LIVE];
        for n in 0..400 {
            counts[client.ask(&format!("cold-{n}")).expect("is served")] += 1;
        }
        assert!(counts.iter().all(|&count| count > 40), "{counts:?}");
    }

    /// Runs an update while requests go on; none of them may fail.
    fn while_asking(&self, keep_alive: bool, update: impl FnOnce()) {
        let stop = Arc::new(AtomicBool::new(false));
        let keys: Vec<String> = places(&self.table).into_keys().take(500).collect();
        let (port, flag) = (self.port, Arc::clone(&stop));
        let asking = thread::spawn(move || {
            let mut client = Client::new(port, keep_alive);
            let mut asked = 0u64;
            while !flag.load(Ordering::Relaxed) {
                for key in &keys {
                    client.ask(key).unwrap_or_else(|error| panic!("{key} during the update: {error}"));
                    asked += 1;
                }
            }
            asked
        });
        update();
        stop.store(true, Ordering::Relaxed);
        assert!(asking.join().expect("no request failed") > 0);
    }
}

#[test]
fn haproxy_routes_by_the_table_and_swaps_it_in_one_step() {
    if !installed("haproxy") || !installed("socat") {
        println!("skipped: haproxy or socat is not installed");
        return;
    }
    let setup = Setup::new();
    let folder = setup.export(&setup.table, "haproxy", "now");
    let config = format!("{folder}/haproxy.cfg");
    let _proxy = Running(
        Command::new("haproxy")
            .args(["-db", "-f", &config])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("starts"),
    );
    setup.wait_until_it_listens();
    setup.assert_routed(&setup.table);

    let next = rotated(&setup.table);
    let new_map = format!("{}/cacheroute.map", setup.export(&next, "haproxy", "next"));
    let script = format!("{folder}/update.sh");
    setup.while_asking(true, || {
        let output = run(&script, &[&new_map]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    });
    setup.assert_routed(&next);
    assert_eq!(
        fs::read(&new_map).expect("is there"),
        fs::read(format!("{folder}/cacheroute.map")).expect("is there")
    );

    // A map that needs a backend which is not there is refused, and nothing changes.
    let strange = setup.path("strange.map");
    fs::write(&strange, "key-0 set_0_1_2_3\n").expect("is written");
    assert_eq!(run(&script, &[&strange]).status.code(), Some(3));
    setup.assert_routed(&next);
}

#[test]
fn nginx_routes_by_the_table_and_reloads_without_a_dropped_request() {
    if !installed("nginx") {
        println!("skipped: nginx is not installed");
        return;
    }
    let setup = Setup::new();
    let folder = setup.export(&setup.table, "nginx", "now");
    let main = format!("{folder}/nginx.conf");
    let temp: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {folder}/{kind}; "))
        .concat();
    let text = format!(
        "daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log; worker_processes 2; worker_rlimit_nofile 4096;\nevents {{ worker_connections 1024; }}\nhttp {{ access_log off; {temp} include {folder}/cacheroute.conf; }}\n"
    );
    fs::write(&main, text).expect("is written");
    let _proxy = Running(
        Command::new("nginx")
            .args(["-p", &folder, "-c", &main])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("starts"),
    );
    setup.wait_until_it_listens();
    setup.assert_routed(&setup.table);

    let next = rotated(&setup.table);
    let new = setup.export(&next, "nginx", "next");
    setup.while_asking(false, || {
        let output = Command::new(format!("{folder}/update.sh"))
            .args([format!("{new}/cacheroute.map")])
            .env("NGINX", format!("nginx -p {folder} -c {main}"))
            .output()
            .expect("starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        wait_for_reload(&setup, &next, Path::new(&folder));
    });
    setup.assert_routed(&next);
}

/// A reload is asynchronous: the new workers take over within moments.
fn wait_for_reload(setup: &Setup, next: &str, folder: &Path) {
    let (key, shards) = places(next)
        .into_iter()
        .find(|(_, shards)| shards.len() == 1 && shards[0] < LIVE)
        .expect("some key has one shard");
    let start = Instant::now();
    // Thirty in a row: old workers still take connections for a moment.
    let mut in_a_row = 0;
    while in_a_row < 30 {
        assert!(start.elapsed() < Duration::from_secs(60), "no reload; see {}", folder.display());
        let served = Client::new(setup.port, false).ask(&key).expect("is served");
        in_a_row = if served == shards[0] { in_a_row + 1 } else { 0 };
    }
}
