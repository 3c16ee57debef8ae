//! NDTC in whole scenarios: what its draft says of it, with an encoder that follows it.
