//! Every kind of mistake in a scenario file has a file in tests/mistakes and, beside it, the message that it must get.
//! `PACELINE_BLESS=1` writes the messages anew: read the diff before you keep it.

use crate::messages::{checked, hold};

#[test]
fn messages() {
    hold("mistakes", 60, |name, text| match checked(name, text) {
        Ok(_) => "no mistake found".into(),
        Err(error) => error.to_string(),
    });
}
