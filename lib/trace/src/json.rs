//! Pieces of JSON, appended to a buffer: the bytes that `serde_json` would write, without its detours.
//!
//! For lines that are written by the million. What is not a plain number or plain text goes through `serde_json`.

/// Appends a whole number.
pub fn number(out: &mut Vec<u8>, number: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Appends a number; one that is not finite is `null`.
///
/// # Errors
/// None for a buffer in memory.
pub fn float(out: &mut Vec<u8>, number: f64) -> Result<(), serde_json::Error> {
    serde_json::to_writer(out, &number)
}

/// Appends a string, in quotes and with escapes where it needs them.
///
/// # Errors
/// None for a buffer in memory.
pub fn text(out: &mut Vec<u8>, text: &str) -> Result<(), serde_json::Error> {
    // Without a branch a byte: texts are short.
    let escapes = |byte: u8| (byte < b' ') | (byte == b'"') | (byte == b'\\');
    if text.bytes().fold(false, |any, byte| any | escapes(byte)) {
        return serde_json::to_writer(out, text);
    }
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
    Ok(())
}
