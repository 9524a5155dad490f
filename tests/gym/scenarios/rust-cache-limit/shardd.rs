use std::fs::File;
use std::os::unix::fs::FileExt;

#[inline(never)]
fn read_block(file: &File, block: &mut [u8], number: u64) -> u64 {
    file.read_at(block, number * block.len() as u64).unwrap_or(0) as u64 + block[7] as u64
}

fn main() {
    let file = File::open(std::env::args().nth(1).unwrap()).unwrap();
    let blocks = file.metadata().unwrap().len() / 16384;
    let mut block = vec![0u8; 16384];
    let (mut seed, mut sum) = (88172645463325252u64, 0u64);
    loop {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        sum = sum.wrapping_add(read_block(&file, &mut block, seed % blocks));
        std::hint::black_box(sum);
    }
}
