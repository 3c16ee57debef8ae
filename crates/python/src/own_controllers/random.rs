//! Random numbers for a controller in Python. They depend on the run's seed and the flow's name, so that runs can be
//! repeated.

use paceline_random::{Sequence, Stream};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A controller's stream of random numbers.
#[pyclass(module = "paceline._core")]
#[derive(Debug)]
pub struct Random {
    sequence: Sequence,
}

impl Random {
    /// From the start of `stream`.
    pub fn of(stream: Stream) -> Random {
        Random { sequence: Sequence::new(stream) }
    }
}

#[pymethods]
impl Random {
    #[new]
    #[pyo3(signature = (seed = 0))]
    fn new(seed: u64) -> Random {
        Random::of(Stream::new(seed, "controller"))
    }

    /// Uniform in [0, 1).
    fn random(&mut self) -> f64 {
        self.sequence.unit()
    }

    /// Uniform from `least` to `most`.
    fn uniform(&mut self, least: f64, most: f64) -> f64 {
        least + (most - least) * self.sequence.unit()
    }

    /// Exponential with this mean.
    fn exponential(&mut self, mean: f64) -> f64 {
        mean * self.sequence.exponential()
    }

    /// Normal, with this mean and standard deviation.
    #[pyo3(signature = (mean = 0.0, sd = 1.0))]
    fn normal(&mut self, mean: f64, sd: f64) -> f64 {
        mean + sd * self.sequence.normal()
    }

    /// A whole number from 0 to `many` - 1.
    fn below(&mut self, many: u64) -> PyResult<u64> {
        if many == 0 {
            return Err(PyValueError::new_err("below(0): there is no whole number from 0 to -1"));
        }
        Ok(((self.sequence.unit() * many as f64) as u64).min(many - 1))
    }
}
