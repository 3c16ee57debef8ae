//! A file with one JSON value after another: a JSON text sequence (RFC 7464, with a record separator before each), or
//! one value per line.

use super::contained::LONGEST;
use std::io::{self, BufRead, Read as _};

/// Precedes each record of a JSON text sequence.
pub const SEPARATOR: u8 = 0x1e;

/// One record.
pub struct Record {
    pub bytes: Vec<u8>,
    /// The line in which it begins, from 1.
    pub line: usize,
    /// Whether it is the last one.
    pub last: bool,
    /// Whether it ends with a line break, as every completely written record does.
    pub whole: bool,
}

/// Iterates over records.
pub struct Records<R> {
    from: R,
    /// Separator of the records.
    between: u8,
    line: usize,
}

impl<R: BufRead> Records<R> {
    /// Detects the form by the first byte: a separator, or the first record itself.
    ///
    /// # Errors
    /// Read errors.
    pub fn new(mut from: R) -> io::Result<Records<R>> {
        let between = if from.fill_buf()?.first() == Some(&SEPARATOR) { SEPARATOR } else { b'\n' };
        Ok(Records { from, between, line: 1 })
    }

    /// The next record that is not empty; `None` at the end of the file.
    ///
    /// # Errors
    /// Read errors; `InvalidData` if the record is too long.
    pub fn next(&mut self) -> io::Result<Option<Record>> {
        loop {
            let mut bytes = Vec::new();
            let read = (&mut self.from).take(LONGEST + 1).read_until(self.between, &mut bytes)?;
            if read == 0 {
                return Ok(None);
            }
            if bytes.len() as u64 > LONGEST {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!(
                        "the record that begins in line {} is longer than 16 MiB: no qlog has such a one",
                        self.line
                    ),
                ));
            }
            let line = self.line;
            self.line += bytes.iter().filter(|byte| **byte == b'\n').count();
            let ended = bytes.last() == Some(&self.between);
            // Lines of a text sequence that lost its beginning still have separators.
            let begins = bytes.iter().position(|byte| !byte.is_ascii_whitespace() && *byte != SEPARATOR);
            let Some(begins) = begins else { continue };
            let whole = bytes.iter().rev().find(|byte| **byte != SEPARATOR) == Some(&b'\n');
            let skipped = bytes[..begins].iter().filter(|byte| **byte == b'\n').count();
            let ends =
                bytes.iter().rposition(|byte| !byte.is_ascii_whitespace() && *byte != SEPARATOR).unwrap_or(begins);
            bytes.truncate(ends + 1);
            bytes.drain(..begins);
            let last = !ended || self.from.fill_buf()?.is_empty();
            return Ok(Some(Record { bytes, line: line + skipped, last, whole }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(text: &str) -> Vec<(String, usize, bool)> {
        let mut records = Records::new(text.as_bytes()).unwrap();
        std::iter::from_fn(|| records.next().unwrap())
            .map(|record| (String::from_utf8(record.bytes).unwrap(), record.line, record.last))
            .collect()
    }

    #[test]
    fn records_are_separated_either_way() {
        let expected = [("{}".to_owned(), 1, false), ("[1,\n2]".to_owned(), 2, false), ("3".to_owned(), 4, true)];
        assert_eq!(records("\u{1e}{}\n\u{1e}[1,\n2]\n\u{1e}3"), expected);
        let lines = [("{}".to_owned(), 1, false), ("{\"a\": 1}".to_owned(), 3, false), ("3".to_owned(), 4, true)];
        assert_eq!(records("{}\n\n \u{1e}{\"a\": 1}\r\n3\n"), lines);
        assert_eq!(records(""), []);
        assert_eq!(records("\u{1e}\u{1e}\n"), []);
    }

    #[test]
    fn what_never_ends_is_refused() {
        let mut records = Records::new(io::BufReader::new(io::repeat(b'1'))).unwrap();
        assert_eq!(records.next().err().unwrap().kind(), io::ErrorKind::InvalidData);
    }
}
