//! What happened besides requests, newest last, in bounded memory.

use std::collections::VecDeque;

/// The most entries that are kept; older ones are dropped and counted.
pub const MAX_ENTRIES: usize = 1000;

/// What kind of thing happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A shard went down or became slow.
    Fault,
    /// A shard came back.
    Recovery,
    /// The run warns.
    Warning,
    /// A routing table was installed.
    Plan,
    /// A request failed.
    Fail,
    /// A line of the stream that is no event.
    BadLine,
    /// The stream began, ended, or started over.
    Note,
}

impl Kind {
    /// A word for the log.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Fault => "fault",
            Kind::Recovery => "recovery",
            Kind::Warning => "warning",
            Kind::Plan => "plan",
            Kind::Fail => "fail",
            Kind::BadLine => "bad line",
            Kind::Note => "note",
        }
    }
}

/// One entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Run time in seconds.
    pub t_s: f64,
    /// What kind.
    pub kind: Kind,
    /// In words.
    pub text: String,
    /// How often it came in a row.
    pub times: u64,
}

/// The entries.
#[derive(Clone, Debug, Default)]
pub struct Log {
    entries: VecDeque<Entry>,
    dropped: u64,
}

impl Log {
    /// Appends an entry; a repetition of the last one is only counted.
    pub fn push(&mut self, t_s: f64, kind: Kind, text: impl Into<String>) {
        let text = text.into();
        if let Some(last) = self.entries.back_mut()
            && last.kind == kind
            && last.text == text
        {
            last.times += 1;
            last.t_s = t_s;
            return;
        }
        if self.entries.len() == MAX_ENTRIES {
            self.entries.pop_front();
            self.dropped += 1;
        }
        self.entries.push_back(Entry { t_s, kind, text, times: 1 });
    }

    /// The entries, oldest first.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &Entry> + ExactSizeIterator {
        self.entries.iter()
    }

    /// How many entries were dropped for room.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The newest entry of a kind.
    pub fn last(&self, kind: Kind) -> Option<&Entry> {
        self.entries.iter().rev().find(|entry| entry.kind == kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stays_bounded_and_counts_what_it_drops() {
        let mut log = Log::default();
        (0..MAX_ENTRIES + 7).for_each(|n| log.push(n as f64, Kind::Note, format!("{n}")));
        assert_eq!((log.entries().len(), log.dropped()), (MAX_ENTRIES, 7));
        log.push(1.0, Kind::Fail, "same");
        log.push(2.0, Kind::Fail, "same");
        assert_eq!(log.last(Kind::Fail).map(|e| (e.times, e.t_s)), Some((2, 2.0)));
    }
}
