//! Numbers in the control channel's form, and limits for lists from the other end.

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::marker::PhantomData;

/// A column of numbers; non-finite ones become null.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Numbers(pub Vec<f64>);

impl Serialize for Numbers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|value| value.is_finite().then_some(*value)))
    }
}

impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Numbers, D::Error> {
        struct Column;
        impl<'de> Visitor<'de> for Column {
            type Value = Numbers;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("numbers and nulls")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Numbers, A::Error> {
                let mut numbers = Vec::new();
                while let Some(value) = from.next_element::<Option<f64>>()? {
                    numbers.push(value.unwrap_or(f64::NAN));
                }
                Ok(Numbers(numbers))
            }
        }
        deserializer.deserialize_seq(Column)
    }
}

/// Deserializes a list of at most `MAX` items. A list of empty items takes twelve times as much memory as its text, so
/// lists that need only a few items are limited.
///
/// # Errors
/// If there are more.
pub(super) fn few<'de, D: Deserializer<'de>, T: Deserialize<'de>, const MAX: usize>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    struct Few<T, const MAX: usize>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for Few<T, MAX> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a list of {MAX} at most")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Vec<T>, A::Error> {
            let mut few = Vec::new();
            while let Some(one) = from.next_element()? {
                if few.len() == MAX {
                    return Err(A::Error::custom(format!("a list of more than {MAX}")));
                }
                few.push(one);
            }
            Ok(few)
        }
    }
    deserializer.deserialize_seq(Few::<T, MAX>(PhantomData))
}

#[cfg(test)]
mod tests {
    use super::super::half::Half;
    use super::*;

    #[test]
    fn numbers_come_back_and_what_is_none_is_null() {
        let text = serde_json::to_string(&Numbers(vec![1.5, f64::NAN, f64::INFINITY, -0.1])).unwrap();
        assert_eq!(text, "[1.5,null,null,-0.1]");
        let Numbers(back) = serde_json::from_str(&text).unwrap();
        assert!(back.len() == 4 && back[0] == 1.5 && back[1].is_nan() && back[2].is_nan() && back[3] == -0.1);
        assert!(serde_json::from_str::<Numbers>("[\"1\"]").is_err());
    }

    #[test]
    fn lists_of_nothing_are_not_taken() {
        let of = |tables: usize, columns: usize| {
            let columns = vec!["[\"\",[]]"; columns].join(",");
            let tables = vec![format!("{{\"table\":\"\",\"columns\":[{columns}]}}"); tables].join(",");
            serde_json::from_str::<Half>(&format!("{{\"tables\":[{tables}]}}"))
        };
        assert_eq!(of(16, 64).unwrap().tables.len(), 16);
        assert!(of(17, 0).unwrap_err().to_string().contains("more than 16"));
        assert!(of(1, 65).unwrap_err().to_string().contains("more than 64"));
    }
}
