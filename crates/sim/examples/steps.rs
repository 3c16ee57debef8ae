//! Control steps a second of an environment: one flow on 12 Mbit/s, steps of 10 ms, on one core.
//!
//!     cargo run --release --example steps -p paceline-sim

#[expect(clippy::disallowed_types, clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn main() {
    use paceline_scenario::Document;
    use paceline_sim::environment::{Acts, Driver, Environment, Step};
    use paceline_units::Span;
    let text = "duration = \"60 s\"\n[link.bottleneck]\nrate = \"12 Mbit/s\"\ndelay = \"15 ms\"\n[flow.own]\n";
    for (acts, decision) in [(Acts::Rate, 11e6), (Acts::Window, 40.0)] {
        let document = Document::parse(text, "steps").unwrap();
        let step = Step::Time(Span::from_millis(10));
        let mut own =
            Environment::new(document, &mut |_| Err(String::new()), &[], ("own", Driver::Agent(acts), step)).unwrap();
        let (mut steps, began) = (0u32, std::time::Instant::now());
        for seed in 0..50 {
            let mut result = own.reset(seed).unwrap();
            while !result.is_over {
                result = own.step(decision).unwrap();
                steps += 1;
            }
        }
        let seconds = began.elapsed().as_secs_f64();
        println!("{acts:?}: {steps} steps in {seconds:.2} s, {:.0} a second", f64::from(steps) / seconds);
    }
}
