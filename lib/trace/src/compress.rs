//! Reading gzip and zstd as if they were plain.

use flate2::bufread::MultiGzDecoder;
use std::io::{self, BufRead, BufReader};

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const BUFFER_BYTES: usize = 256 * 1024;

/// Unpacks a gzip or zstd stream, told by its first bytes; anything else passes as it is.
///
/// # Errors
///
/// The input cannot be read, or zstd cannot be set up. Corrupt data shows when it is read.
pub fn unpacked(mut reader: Box<dyn BufRead + Send>) -> io::Result<Box<dyn BufRead + Send>> {
    let head = reader.fill_buf()?;
    if head.starts_with(GZIP) {
        return Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(reader))));
    }
    if head.starts_with(ZSTD) {
        let decoder = zstd::Decoder::with_buffer(reader)?;
        return Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, decoder)));
    }
    Ok(reader)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    fn read(bytes: Vec<u8>) -> io::Result<String> {
        let mut text = String::new();
        unpacked(Box::new(io::Cursor::new(bytes)))?.read_to_string(&mut text)?;
        Ok(text)
    }

    fn gzip(text: &str) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).expect("packs");
        encoder.finish().expect("packs")
    }

    #[test]
    fn packed_and_plain_read_the_same() {
        let text = "one\ntwo\n".repeat(1000);
        assert_eq!(read(text.clone().into_bytes()).expect("reads"), text);
        assert_eq!(read(gzip(&text)).expect("reads"), text);
        assert_eq!(read([gzip("a"), gzip("b")].concat()).expect("reads"), "ab", "files joined by cat");
        assert_eq!(read(zstd::encode_all(text.as_bytes(), 1).expect("packs")).expect("reads"), text);
        assert_eq!(read(Vec::new()).expect("reads"), "");
    }

    #[test]
    fn a_cut_file_is_an_error() {
        let packed = gzip(&"text".repeat(1000));
        assert!(read(packed[..packed.len() / 2].to_vec()).is_err());
        let packed = zstd::encode_all(&b"text".repeat(1000)[..], 1).expect("packs");
        assert!(read(packed[..packed.len() / 2].to_vec()).is_err());
    }
}
