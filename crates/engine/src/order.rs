//! The longest window, and the matching order of elements.

use paceline_units::Span;

/// A path from one element to another: nothing sent over it arrives before `delay` has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The sending element.
    pub from: usize,
    /// The receiving element.
    pub to: usize,
    /// The minimum delay.
    pub delay: Span,
}

/// A window length, and the order in which to run the elements within it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunOrder {
    /// The window: the largest delay such that cutting every edge of at least that delay leaves no loop.
    pub window: Span,
    /// Element numbers in topological order of the edges not cut; among equals the lower number first.
    pub order: Vec<usize>,
}

/// The run order of `n` elements; `limit` shortens the window (for tests).
///
/// # Errors
/// The elements of a loop in which no edge has a delay: time could not advance in it.
pub fn schedule(n: usize, edges: &[Edge], limit: Option<Span>) -> Result<RunOrder, Vec<usize>> {
    let mut delays: Vec<Span> = edges.iter().map(|edge| edge.delay).filter(|delay| *delay > Span::ZERO).collect();
    delays.sort_unstable();
    delays.dedup();
    // Fewer cuts (a longer window) can only add loops, so bisection finds the longest window.
    let feasible = delays.partition_point(|delay| sort(n, edges, *delay).is_ok());
    let longest = match feasible.checked_sub(1) {
        Some(i) => delays[i],
        None => {
            sort(n, edges, Span::MAX)?;
            Span::MAX
        }
    };
    let window = limit.map_or(longest, |limit| limit.min(longest));
    Ok(RunOrder { window, order: sort(n, edges, window)? })
}

/// Kahn's algorithm over the edges shorter than `window`; if there is a loop, returns the elements left over.
fn sort(n: usize, edges: &[Edge], window: Span) -> Result<Vec<usize>, Vec<usize>> {
    let mut indegree = vec![0usize; n];
    let mut successors = vec![Vec::new(); n];
    for edge in edges.iter().filter(|edge| edge.delay < window) {
        indegree[edge.to] += 1;
        successors[edge.from].push(edge.to);
    }
    let mut order: Vec<usize> = (0..n).filter(|&i| indegree[i] == 0).collect();
    let mut done = 0;
    while done < order.len() {
        for &next in &successors[order[done]] {
            indegree[next] -= 1;
            if indegree[next] == 0 {
                order.push(next);
            }
        }
        done += 1;
    }
    if order.len() == n { Ok(order) } else { Err((0..n).filter(|&i| indegree[i] > 0).collect()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(from: usize, to: usize, ms: u64) -> Edge {
        Edge { from, to, delay: Span::from_millis(ms) }
    }

    #[test]
    fn the_window_is_the_longest_that_breaks_every_loop() {
        let loop_of_two = [edge(0, 1, 3), edge(1, 0, 20)];
        let s = schedule(2, &loop_of_two, None).unwrap();
        assert_eq!((s.window, s.order), (Span::from_millis(20), vec![0, 1]));
        let two_loops = [edge(0, 1, 3), edge(1, 0, 20), edge(1, 2, 5), edge(2, 1, 0)];
        assert_eq!(schedule(3, &two_loops, None).unwrap().window, Span::from_millis(5));
        assert_eq!(schedule(3, &two_loops, Some(Span::from_millis(1))).unwrap().window, Span::from_millis(1));
    }

    #[test]
    fn a_loop_without_delay_is_named() {
        assert_eq!(schedule(3, &[edge(0, 1, 0), edge(1, 0, 0), edge(0, 2, 5)], None).unwrap_err(), vec![0, 1, 2]);
    }

    #[test]
    fn without_a_loop_the_window_is_endless() {
        assert_eq!(schedule(2, &[edge(0, 1, 0)], None).unwrap().window, Span::MAX);
    }
}
