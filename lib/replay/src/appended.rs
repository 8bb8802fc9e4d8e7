//! Files that grow by a line for every piece of work that is over, so that what was interrupted goes on where it was.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// The whole lines of a file, whatever is in them; nothing where there is none. A program that was killed leaves half a line, which is
/// left out.
///
/// # Errors
/// A file that cannot be read.
pub fn whole_lines(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = match std::fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        read => read?,
    };
    bytes.truncate(bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1));
    Ok(bytes)
}

/// Each line of them, without its end.
pub fn each_line(whole: &[u8]) -> impl Iterator<Item = &[u8]> {
    whole.split_inclusive(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\n").unwrap_or(line))
}

/// Opens a file to append to it after its `whole` lines; the file is made where there is none.
///
/// # Errors
/// A file that cannot be written.
pub fn append_after(path: &Path, whole: &[u8]) -> io::Result<File> {
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
        assert_eq!(whole_lines(&path).expect("is read"), b"");
        let cases: [(&[u8], &[u8], usize); 5] = [
            (b"", b"", 0),
            (b"hal", b"", 0),
            (b"a\nb\nhal", b"a\nb\n", 2),
            (b"a\n", b"a\n", 1),
            // A letter of two bytes that was cut, in the middle and at the end.
            (b"a\n\xd0\nb\n\xd0", b"a\n\xd0\nb\n", 3),
        ];
        for (before, whole, count) in cases {
            std::fs::write(&path, before).expect("is written");
            let lines = whole_lines(&path).expect("is read");
            assert_eq!((lines.as_slice(), each_line(&lines).count()), (whole, count));
            append_after(&path, &lines).and_then(|mut file| file.write_all(b"c\n")).expect("is written");
            assert_eq!(std::fs::read(&path).expect("is read"), [whole, b"c\n"].concat());
        }
    }
}
