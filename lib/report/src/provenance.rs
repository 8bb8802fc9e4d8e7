//! `run.json`: what differs between machines and runs. Nothing of it is found in any other file of a report.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::SystemTime;
use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind, System};

/// The schema of `run.json`.
pub const SCHEMA: &str = "cacheroute.provenance/1";

/// The lock file that this crate was built with.
const LOCK: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock"));

/// Crates whose version can change a result.
const NAMED: [&str; 8] =
    ["candle-core", "candle-nn", "gemm", "hdrhistogram", "plotters", "rand_chacha", "rand_distr", "statrs"];

/// Where, when and with what a report was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    /// [`SCHEMA`].
    pub schema: String,
    /// Program and version.
    pub program: String,
    /// The command line, word by word.
    pub command: Vec<String>,
    /// When it started, in UTC (RFC 3339).
    pub started: String,
    /// Wall time of its parts, in seconds.
    pub wall_s: BTreeMap<String, f64>,
    /// What the model ran on: `cpu`, a GPU's name, or `none`.
    pub device: String,
    /// The machine.
    pub machine: Machine,
    /// Compiler and target.
    pub build: Build,
    /// Versions of the crates whose version can change a result.
    pub dependencies: BTreeMap<String, String>,
}

/// The machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Its name on the network.
    pub host: String,
    /// Operating system and version.
    pub os: String,
    /// Kernel version.
    pub kernel: String,
    /// The processor's name.
    pub cpu: String,
    /// Logical processors.
    pub logical_cpus: usize,
    /// Memory, in bytes.
    pub memory_bytes: u64,
}

/// How the program was built.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Build {
    /// The compiler's own word.
    pub rustc: String,
    /// The target triple.
    pub target: String,
    /// Whether debug assertions are on.
    pub debug_assertions: bool,
}

impl Provenance {
    /// Looks at the machine. `program` names program and version; `command` is the command line; `device` is what the model ran on.
    pub fn collect(
        program: &str,
        command: impl IntoIterator<Item = String>,
        device: &str,
        started: SystemTime,
    ) -> Provenance {
        Provenance {
            schema: SCHEMA.into(),
            program: program.into(),
            command: command.into_iter().collect(),
            started: humantime::format_rfc3339_seconds(started).to_string(),
            wall_s: BTreeMap::new(),
            device: device.into(),
            machine: Machine::here(),
            build: Build {
                rustc: env!("CR_RUSTC").into(),
                target: env!("CR_TARGET").into(),
                debug_assertions: cfg!(debug_assertions),
            },
            dependencies: locked(LOCK),
        }
    }
}

impl Machine {
    fn here() -> Machine {
        let wanted = RefreshKind::nothing()
            .with_memory(MemoryRefreshKind::nothing().with_ram())
            .with_cpu(CpuRefreshKind::nothing());
        let known =
            |text: Option<String>| text.filter(|text| !text.is_empty()).unwrap_or_else(|| "unknown".into());
        // A system that hides its parts still gets a report.
        let system = System::new_with_specifics(wanted).ok();
        let cpus = system.as_ref().map_or(&[][..], System::cpus);
        Machine {
            host: known(System::host_name().ok()),
            os: known(System::long_os_version().ok()),
            kernel: known(System::kernel_version().ok()),
            cpu: known(cpus.first().map(|cpu| cpu.brand().trim().to_owned())),
            logical_cpus: std::thread::available_parallelism().map_or(cpus.len(), usize::from),
            memory_bytes: system.as_ref().map_or(0, System::total_memory),
        }
    }
}

/// The versions of [`NAMED`] in a lock file; several of one crate are joined.
fn locked(lock: &str) -> BTreeMap<String, String> {
    let mut versions: BTreeMap<String, String> = BTreeMap::new();
    let mut name = None;
    for line in lock.lines() {
        let value = |key: &str| line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"');
        if let Some(found) = value("name") {
            name = NAMED.contains(&found).then_some(found);
        } else if let (Some(found), Some(name)) = (value("version"), name.take()) {
            let text = versions.entry(name.to_owned()).or_default();
            text.push_str(if text.is_empty() { "" } else { ", " });
            text.push_str(found);
        }
    }
    versions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_come_from_the_lock_file() {
        let lock = "[[package]]\nname = \"gemm\"\nversion = \"0.18.2\"\n\n[[package]]\nname = \"gemm\"\nversion = \"0.19.0\"\n\n\
                    [[package]]\nname = \"other\"\nversion = \"1.0.0\"\n";
        assert_eq!(locked(lock), BTreeMap::from([("gemm".into(), "0.18.2, 0.19.0".into())]));
        assert!(locked(LOCK).contains_key("hdrhistogram"));
    }

    #[test]
    fn a_machine_is_described() {
        let made =
            Provenance::collect("cr-serve 0.1.0", ["cr-serve".to_string()], "cpu", SystemTime::UNIX_EPOCH);
        assert_eq!(made.started, "1970-01-01T00:00:00Z");
        assert!(made.machine.logical_cpus > 0 && made.machine.memory_bytes > 0);
        assert!(made.build.rustc.starts_with("rustc"));
        let text = crate::json::stable(&made).expect("plain JSON");
        assert_eq!(serde_json::from_str::<Provenance>(&text).expect("reads back"), made);
    }
}
