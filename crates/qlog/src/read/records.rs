//! A file of one JSON value after another: a JSON text sequence (RFC 7464, a record separator before each), or one a line.

use super::contained::LONGEST;
use std::io::{self, BufRead, Read as _};

/// What a JSON text sequence has before each record.
pub const SEPARATOR: u8 = 0x1e;

/// A record that was read.
pub struct Record {
    pub bytes: Vec<u8>,
    /// The line that it begins in, from 1 on.
    pub line: usize,
    /// Whether nothing comes after it.
    pub last: bool,
    /// Whether it ends with its line, as all do that were written to their end.
    pub whole: bool,
}

/// Records, one after another.
pub struct Records<R> {
    from: R,
    /// What stands between two.
    between: u8,
    line: usize,
}

impl<R: BufRead> Records<R> {
    /// By what the file begins with: a separator, or the first record itself.
    ///
    /// # Errors
    /// Those of reading.
    pub fn new(mut from: R) -> io::Result<Records<R>> {
        let between = if from.fill_buf()?.first() == Some(&SEPARATOR) { SEPARATOR } else { b'\n' };
        Ok(Records { from, between, line: 1 })
    }

    /// The next one that has something in it; none: the file has ended.
    ///
    /// # Errors
    /// Those of reading; `InvalidData` for a record that is too long.
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
            // Lines of a text sequence that was cut at its head still have separators.
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
