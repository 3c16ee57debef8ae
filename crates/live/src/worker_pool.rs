//! Threads that own items, and apply the same work to each on request.
//!
//! Starting a thread for one round of work costs tens of microseconds, and its data are then in another core's cache.
//! Here a thread keeps its share of the items for as long as the pool lives. It waits for work by spinning for a
//! moment, then by sleeping.

use std::hint::spin_loop;
use std::io;
use std::process;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread;

/// Number of polls for work before a thread sleeps: some tens of microseconds, about the cost of waking it.
const LOOKS: u32 = 1000;

/// Work on a thread's share, whose first item has this index.
type Job<T> = Box<dyn FnOnce(usize, &mut [T]) + Send>;

/// Items in order, and the threads that own them. The caller's thread owns the first share. When it is dropped, the
/// threads end after their pending work, without being waited for.
#[derive(Debug)]
pub struct WorkerPool<T> {
    own: Vec<T>,
    others: Vec<Sender<Job<T>>>,
    process: u32,
}

impl<T: Send + 'static> WorkerPool<T> {
    /// Distributes `all` over `workers` threads, including the caller's.
    ///
    /// # Errors
    /// If the system starts no thread.
    pub fn new(mut all: Vec<T>, workers: usize) -> io::Result<WorkerPool<T>> {
        let share = all.len().div_ceil(workers.clamp(1, all.len().max(1)));
        let mut rest = all.split_off(share.min(all.len()));
        let mut pool = WorkerPool { own: all, others: Vec::new(), process: process::id() };
        let mut first = share;
        while !rest.is_empty() {
            let after = rest.split_off(share.min(rest.len()));
            let mut items = std::mem::replace(&mut rest, after);
            let (jobs, queue) = channel::<Job<T>>();
            let place = first;
            thread::Builder::new().name("paceline-crew".into()).spawn(move || {
                while let Some(job) = next(&queue) {
                    job(place, &mut items);
                }
            })?;
            pool.others.push(jobs);
            first += share;
        }
        Ok(pool)
    }

    /// Applies `work` to each item and its index; returns the results in the items' order.
    ///
    /// # Errors
    /// A message, in a process that was forked from the pool's, since the threads do not exist there.
    ///
    /// # Panics
    /// If `work` does, in whichever thread; that thread's share is then lost, and each later call panics.
    pub fn each<R: Send + 'static>(
        &mut self,
        work: impl Fn(usize, &mut T) -> R + Clone + Send + 'static,
    ) -> Result<Vec<R>, String> {
        if !self.others.is_empty() && self.process != process::id() {
            let mother = self.process;
            return Err(format!(
                "the threads are in process {mother}, not in this one, forked from it: make them anew"
            ));
        }
        let (done, answers) = channel();
        for (number, jobs) in self.others.iter().enumerate() {
            let (work, done) = (work.clone(), done.clone());
            let job: Job<T> = Box::new(move |first, items| {
                let part: Vec<R> = items.iter_mut().zip(first..).map(|(item, place)| work(place, item)).collect();
                // the caller may have panicked
                let _ = done.send((number, part));
            });
            jobs.send(job).unwrap_or_else(|_| panic!("a worker thread has panicked before"));
        }
        drop(done);
        let mut all: Vec<R> = self.own.iter_mut().enumerate().map(|(place, item)| work(place, item)).collect();
        let mut parts: Vec<Option<Vec<R>>> = self.others.iter().map(|_| None).collect();
        while let Some((number, part)) = next(&answers) {
            parts[number] = Some(part);
        }
        for part in parts {
            all.extend(part.unwrap_or_else(|| panic!("a worker thread has panicked")));
        }
        Ok(all)
    }
}

/// Receives the next message, first spinning for a moment, then sleeping; `None` when all senders are gone.
fn next<M>(from: &Receiver<M>) -> Option<M> {
    for _ in 0..LOOKS {
        match from.try_recv() {
            Ok(message) => return Some(message),
            Err(TryRecvError::Disconnected) => return None,
            Err(TryRecvError::Empty) => spin_loop(),
        }
    }
    from.recv().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;
    use std::thread::ThreadId;

    #[test]
    fn each_is_worked_on_once_and_answers_stand_in_order() {
        for (many, workers) in [(1, 1), (1, 4), (5, 1), (5, 2), (5, 3), (5, 4), (5, 5), (6, 9), (0, 2)] {
            let mut pool = WorkerPool::new((0..many).map(|n| n * 10).collect(), workers).unwrap();
            for round in 1..=20 {
                let results = pool.each(|place, item: &mut usize| {
                    *item += 1;
                    (place, *item)
                });
                let expected: Vec<_> = (0..many).map(|place| (place, place * 10 + round)).collect();
                assert_eq!(results.unwrap(), expected, "{many} among {workers}");
            }
        }
    }

    #[test]
    fn a_thread_keeps_its_share() {
        let mut pool = WorkerPool::new(vec![(); 6], 3).unwrap();
        let mut who = || pool.each(|_, _: &mut ()| thread::current().id()).unwrap();
        let (first, second): (Vec<ThreadId>, Vec<ThreadId>) = (who(), who());
        assert_eq!(first, second);
        assert_eq!(first[0], thread::current().id());
        assert!(first[0] == first[1] && first[2] == first[3] && first[4] == first[5]);
        assert!(first[0] != first[2] && first[2] != first[4] && first[0] != first[4]);
    }

    #[test]
    fn what_panics_in_a_thread_panics_here_and_hangs_nobody() {
        let mut pool = WorkerPool::new(vec![0, 1, 2, 3], 2).unwrap();
        let mut apply = |bad: usize| {
            catch_unwind(AssertUnwindSafe(|| {
                pool.each(move |place, _: &mut i32| assert!(place != bad, "place {place}")).map(|done| done.len())
            }))
        };
        assert_eq!(apply(9).unwrap(), Ok(4));
        assert!(apply(0).is_err());
        assert_eq!(apply(9).unwrap(), Ok(4));
        assert!(apply(3).is_err());
        assert!(apply(9).is_err());
    }

    #[test]
    fn dropped_it_lets_go_of_what_it_keeps() {
        let kept = Arc::new(());
        let pool = WorkerPool::new(vec![kept.clone(); 4], 4).unwrap();
        assert_eq!(Arc::strong_count(&kept), 5);
        drop(pool);
        while Arc::strong_count(&kept) > 1 {
            thread::yield_now();
        }
    }
}
