//! Which instruction set a kernel uses.

use std::fmt;
use std::sync::OnceLock;

/// An instruction set that this processor has. There is no other way to get one than to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Isa(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    Portable,
}

impl Isa {
    /// All that this processor has, the best first; [`Isa::portable`] is always the last.
    pub fn available() -> Vec<Isa> {
        let mut found = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            let fma = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            let wide = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq");
            if fma && wide {
                found.push(Isa(Kind::Avx512));
            }
            if fma {
                found.push(Isa(Kind::Avx2));
            }
        }
        found.push(Isa::portable());
        found
    }

    /// The best that this processor has.
    pub fn best() -> Isa {
        static BEST: OnceLock<Isa> = OnceLock::new();
        *BEST.get_or_init(|| Isa::available()[0])
    }

    /// What every processor of the target has: SSE2 on x86-64, NEON on aarch64.
    pub fn portable() -> Isa {
        Isa(Kind::Portable)
    }

    pub(super) fn kind(self) -> Kind {
        self.0
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => "avx512",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "avx2+fma",
            Kind::Portable => "portable",
        })
    }
}

/// A body's version: no fused multiply-add.
pub(super) const PLAIN: u8 = 0;
/// Fused multiply-add, 16 registers of 8 lanes or 32 of 4.
pub(super) const FUSED: u8 = 1;
/// Fused multiply-add, 32 registers of 16 lanes.
pub(super) const WIDE: u8 = 2;
/// The portable one: aarch64 always fuses, x86-64 without AVX2 would call a library for it.
pub(super) const PORTABLE: u8 = if cfg!(target_arch = "aarch64") { FUSED } else { PLAIN };

/// Defines `fn name(isa, args…)` that runs `body::<V>(args…)` compiled for the instruction set.
///
/// `body` must be `#[inline(always)]`, so that it is compiled anew inside each of the versions.
macro_rules! versions {
    ($(#[$doc:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) = $body:ident) => {
        $(#[$doc])*
        #[allow(clippy::too_many_arguments)]
        $vis fn $name(isa: $crate::model::kernel::isa::Isa, $($arg: $ty),*) {
            use $crate::model::kernel::isa::Kind;
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")]
            fn avx512($($arg: $ty),*) {
                $body::<{ $crate::model::kernel::isa::WIDE }>($($arg),*);
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            fn avx2($($arg: $ty),*) {
                $body::<{ $crate::model::kernel::isa::FUSED }>($($arg),*);
            }
            match isa.kind() {
                // SAFETY: an `Isa` of this kind exists only where all these features were detected.
                #[cfg(target_arch = "x86_64")]
                Kind::Avx512 => unsafe { avx512($($arg),*) },
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                Kind::Avx2 => unsafe { avx2($($arg),*) },
                Kind::Portable => $body::<{ $crate::model::kernel::isa::PORTABLE }>($($arg),*),
            }
        }
    };
}
pub(super) use versions;
