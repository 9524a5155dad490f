use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

struct Spool {
    jobs: Mutex<VecDeque<u64>>,
    filled: Condvar,
}

#[inline(never)]
fn take_job(spool: &Spool) -> u64 {
    let mut jobs = spool.jobs.lock().unwrap();
    loop {
        if let Some(job) = jobs.pop_front() {
            return job;
        }
        jobs = spool.filled.wait(jobs).unwrap();
    }
}

#[inline(never)]
fn add_job(spool: &Spool, job: u64) {
    spool.jobs.lock().unwrap().push_back(job);
    spool.filled.notify_all();
}

fn main() {
    let spool = Arc::new(Spool { jobs: Mutex::new(VecDeque::new()), filled: Condvar::new() });
    for _ in 0..40 {
        let spool = spool.clone();
        thread::spawn(move || loop {
            std::hint::black_box(take_job(&spool));
        });
    }
    for job in 0.. {
        add_job(&spool, job);
        thread::sleep(Duration::from_micros(300));
    }
}
