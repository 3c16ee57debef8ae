//! The integration tests of this crate: one program, as each would be linked with the whole library anew.

mod acks;
mod copa;
mod cubic;
mod gcc_port;
mod law;
mod lda_plus_noise;
mod ledbat;
mod ledbat_plus_plus;
mod media;
mod models;
mod models_monte_carlo;
mod nada_reference;
mod ndtc;
mod prague;
mod reno;
mod scream;
mod scream_loop;
mod tfrc_reference;
mod vegas;
mod veno;
