use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

struct Step {
    barrier: Barrier,
    tiles: usize,
}

#[inline(never)]
fn compute_tiles(count: usize) -> f64 {
    let mut sum = 0.0;
    for tile in 0..count {
        for x in 0..40_000usize {
            sum += ((tile * x) as f64).sqrt();
        }
    }
    sum
}

#[inline(never)]
fn join_step(step: &Step) {
    step.barrier.wait();
}

fn run_worker(number: usize, step: &Step) -> f64 {
    let mut total = 0.0;
    loop {
        let count = if number == 0 { step.tiles * 24 } else { step.tiles };
        total += compute_tiles(count);
        join_step(step);
        if total.is_nan() {
            return total;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

fn main() {
    let step = Arc::new(Step { barrier: Barrier::new(6), tiles: 25 });
    let workers: Vec<_> = (0..6)
        .map(|number| {
            let step = Arc::clone(&step);
            thread::spawn(move || run_worker(number, &step))
        })
        .collect();
    for worker in workers {
        let _ = worker.join();
    }
}
