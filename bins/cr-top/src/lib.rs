//! `cr-top`: watches a run live, or reads what one has left.
//!
//! * [`state`], [`input`], [`keys`], [`view`] — pure: from events and keys to a picture;
//! * [`palette`], [`ascii`], [`figures`] — how it looks;
//! * [`source`], [`ingest`], [`session`] — where events come from, on threads of their own, and their replay;
//! * [`export`], [`system`] — views as files; what the machine does;
//! * [`ui`], [`term`], [`plain`] — the terminal, and the way without one; [`last_words`] — what is printed in the end;
//! * [`cli`], [`program`] — flags, and what they ask for.
#![forbid(unsafe_code)]

pub mod ascii;
pub mod cli;
pub mod export;
pub mod figures;
pub mod ingest;
pub mod input;
pub mod keys;
pub mod last_words;
pub mod palette;
pub mod plain;
pub mod program;
pub mod session;
pub mod source;
pub mod state;
pub mod system;
pub mod term;
pub mod ui;
pub mod view;
