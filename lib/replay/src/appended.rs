//! Files that grow by a line for every piece of work that is over, so that what was interrupted goes on where it was.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// The whole lines of a file; nothing where there is none. A program that was killed leaves half a line, which is left out.
///
/// # Errors
/// A file that cannot be read.
pub fn whole_lines(path: &Path) -> io::Result<String> {
    let mut text = match std::fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        read => read?,
    };
    text.truncate(text.rfind('\n').map_or(0, |at| at + 1));
    Ok(text)
}

/// Opens a file to append to it after its `whole` lines; the file is made where there is none.
///
/// # Errors
/// A file that cannot be written.
pub fn append_after(path: &Path, whole: &str) -> io::Result<File> {
    let file = OpenOptions::new().create(true).append(true).open(path)?;
    file.set_len(whole.len() as u64)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn half_a_line_gives_way_and_whole_ones_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lines");
        assert_eq!(whole_lines(&path).expect("is read"), "");
        for (before, whole) in [("", ""), ("hal", ""), ("a\nb\nhal", "a\nb\n"), ("a\n", "a\n")] {
            std::fs::write(&path, before).expect("is written");
            let lines = whole_lines(&path).expect("is read");
            assert_eq!(lines, whole);
            append_after(&path, &lines).and_then(|mut file| file.write_all(b"c\n")).expect("is written");
            assert_eq!(std::fs::read_to_string(&path).expect("is read"), format!("{whole}c\n"));
        }
    }
}
