use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

type Shared = Arc<Mutex<u64>>;

#[inline(never)]
fn debit_first(debit: &Shared, credit: &Shared) {
    let mut from = debit.lock().unwrap();
    thread::sleep(Duration::from_millis(200));
    let mut to = credit.lock().unwrap();
    *from -= 1;
    *to += 1;
}

#[inline(never)]
fn credit_first(debit: &Shared, credit: &Shared) {
    let mut to = credit.lock().unwrap();
    thread::sleep(Duration::from_millis(200));
    let mut from = debit.lock().unwrap();
    *from -= 1;
    *to += 1;
}

fn main() {
    let debit = Arc::new(Mutex::new(1_000_000u64));
    let credit = Arc::new(Mutex::new(0u64));
    let (a, b) = (debit.clone(), credit.clone());
    let one = thread::spawn(move || loop { debit_first(&a, &b) });
    let two = thread::spawn(move || loop { credit_first(&debit, &credit) });
    one.join().unwrap();
    two.join().unwrap();
}
