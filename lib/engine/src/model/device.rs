//! Where the model runs.

use candle_core::{DType, Device};

/// The kind of device, by the name that events and reports use: `cpu`, `cuda` or `metal`.
pub type DeviceKind = &'static str;

/// The best device this build can use: the first CUDA or Metal one where the feature is on and a device answers, else
/// the CPU.
pub fn pick_device() -> (Device, DeviceKind) {
    #[cfg(feature = "cuda")]
    if let Ok(device) = Device::new_cuda(0) {
        return (device, "cuda");
    }
    #[cfg(feature = "metal")]
    if let Ok(device) = Device::new_metal(0) {
        return (device, "metal");
    }
    (Device::Cpu, "cpu")
}

/// The type in which a device computes: f32 on a CPU, bf16 on CUDA, f16 on Metal, where not every device has bf16.
pub fn compute_dtype(device: &Device) -> DType {
    match device {
        Device::Cpu => DType::F32,
        Device::Cuda(_) => DType::BF16,
        Device::Metal(_) => DType::F16,
    }
}
