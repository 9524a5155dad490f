use std::hint::black_box;

#[inline(never)]
fn render_frame(n: u8) -> u64 {
    let mut frame = vec![0u8; 32 << 20];
    for at in (0..frame.len()).step_by(4096) {
        frame[at] = n;
    }
    black_box(&frame).iter().step_by(1 << 16).map(|&b| u64::from(b)).sum()
}

fn main() {
    let mut n = 0u8;
    loop {
        n = n.wrapping_add(1);
        black_box(render_frame(n));
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}
