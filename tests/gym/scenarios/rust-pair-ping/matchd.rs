use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

extern "C" {
    fn fork() -> i32;
}

#[inline(never)]
fn pass_order(peer: &mut UnixStream, order: &[u8; 8]) {
    peer.write_all(order).unwrap();
}

#[inline(never)]
fn take_order(peer: &mut UnixStream, order: &mut [u8; 8]) {
    peer.read_exact(order).unwrap();
}

fn main() {
    let (mut front, mut back) = UnixStream::pair().unwrap();
    let mut order = [7u8; 8];
    if unsafe { fork() } == 0 {
        loop {
            take_order(&mut back, &mut order);
            pass_order(&mut back, &order);
        }
    }
    loop {
        pass_order(&mut front, &order);
        take_order(&mut front, &mut order);
        order[0] = order[0].wrapping_add(1);
    }
}
