//! What the machine is doing: sampled once a second on a thread of its own.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use sysinfo::System;

use crate::source::Stop;

const EVERY: Duration = Duration::from_secs(1);

/// One GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gpu {
    /// Share of the time that it was busy, 0 to 1.
    pub busy: f64,
    /// In bytes.
    pub memory_used: u64,
    /// In bytes.
    pub memory_total: u64,
}

/// What is used of the machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Usage {
    /// Mean over the cores, 0 to 1.
    pub cpu: f64,
    /// Logical cores.
    pub cores: usize,
    /// In bytes.
    pub memory_used: u64,
    /// In bytes.
    pub memory_total: u64,
    /// Where the driver answers; none on other machines.
    pub gpus: Vec<Gpu>,
}

/// The latest sample.
#[derive(Clone, Debug, Default)]
pub struct Monitor(Arc<Mutex<Option<Usage>>>);

impl Monitor {
    /// Starts sampling until `stop`.
    pub fn start(stop: Stop) -> Monitor {
        let monitor = Monitor::default();
        let latest = Arc::clone(&monitor.0);
        thread::spawn(move || {
            let Ok(mut system) = System::new() else { return };
            let gpus = gpu::Gpus::open();
            while !stop.is_set() {
                // A share of the CPU is known from the second sample on.
                system.refresh_cpu_usage();
                system.refresh_memory();
                thread::sleep(sysinfo::MINIMUM_CPU_UPDATE_INTERVAL);
                system.refresh_cpu_usage();
                let usage = Usage {
                    cpu: f64::from(system.global_cpu_usage()) / 100.0,
                    cores: system.cpus().len(),
                    memory_used: system.used_memory(),
                    memory_total: system.total_memory(),
                    gpus: gpus.sample(),
                };
                *latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(usage);
                thread::sleep(EVERY);
            }
        });
        monitor
    }

    /// The latest sample; `None` before the first.
    pub fn latest(&self) -> Option<Usage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(feature = "nvml")]
mod gpu {
    use super::Gpu;
    use nvml_wrapper::Nvml;

    /// NVIDIA's management library, loaded at run time where it is there.
    pub(super) struct Gpus(Option<Nvml>);

    impl Gpus {
        pub(super) fn open() -> Gpus {
            Gpus(Nvml::init().ok())
        }

        pub(super) fn sample(&self) -> Vec<Gpu> {
            let Some(nvml) = &self.0 else { return Vec::new() };
            let one = |index| {
                let device = nvml.device_by_index(index).ok()?;
                let (busy, memory) = (device.utilization_rates().ok()?, device.memory_info().ok()?);
                Some(Gpu {
                    busy: f64::from(busy.gpu) / 100.0,
                    memory_used: memory.used,
                    memory_total: memory.total,
                })
            };
            (0..nvml.device_count().unwrap_or(0)).filter_map(one).collect()
        }
    }
}

#[cfg(not(feature = "nvml"))]
mod gpu {
    use super::Gpu;

    pub(super) struct Gpus;

    impl Gpus {
        pub(super) fn open() -> Gpus {
            Gpus
        }

        pub(super) fn sample(&self) -> Vec<Gpu> {
            Vec::new()
        }
    }
}
