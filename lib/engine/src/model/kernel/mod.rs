//! The CPU kernels: plain Rust bodies, compiled once for each instruction set and chosen at run time.
//!
//! This is the only module of the workspace with unsafe code, and it has three kinds of it:
//!
//! * calling a body that was compiled for AVX-512 or AVX2. An [`Isa`] of that kind exists only where the processor was
//!   asked and said yes, so holding one is the proof;
//! * writing disjoint parts of one buffer from several threads ([`shared::SharedMut`]), where the parts are strided and
//!   `chunks_mut` cannot express them. Each use says why its parts are disjoint;
//! * loads and stores of whole registers in [`q8`], whose integer instructions the compiler does not find by itself.
//!   Each goes from or to an array of the register's size.
//!
//! All other bodies are safe: fixed-size arrays give the compiler the lengths, so it unrolls and vectorises
//! without bounds checks. Every body is tested, on every instruction set the machine has, against a naive version, and
//! the whole backend against the stock one.
#![allow(unsafe_code)]

pub mod argmax;
pub mod attention;
pub mod isa;
mod math;
pub mod matmul;
pub mod q8;
pub mod rope;
mod shared;
pub mod swiglu;
mod tasks;
mod tile;
pub mod write;

pub use isa::Isa;
