use std::time::{Duration, Instant};

extern "C" {
    fn fork() -> i32;
    fn _exit(code: i32) -> !;
    fn waitpid(pid: i32, status: *mut i32, options: i32) -> i32;
    fn usleep(microseconds: u32) -> i32;
}

#[inline(never)]
fn put_record(table: &mut [u8], key: usize) -> u8 {
    let at = key.wrapping_mul(2654435761) % table.len();
    table[at] = table[at].wrapping_add(1);
    table[at]
}

#[inline(never)]
fn save_snapshot() -> i32 {
    unsafe {
        let child = fork();
        if child == 0 {
            usleep(60_000);
            _exit(0);
        }
        child
    }
}

fn main() {
    let mut table = vec![1u8; 400 << 20];
    let (mut key, mut sum) = (0usize, 0u64);
    loop {
        let child = save_snapshot();
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(80) {
            for _ in 0..50 {
                sum += put_record(&mut table, key) as u64;
                key += 1;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        unsafe { waitpid(child, std::ptr::null_mut(), 0) };
        std::hint::black_box(sum);
    }
}
