use std::net::ToSocketAddrs;

#[inline(never)]
fn find_peer() -> bool {
    ("bank.example", 443).to_socket_addrs().is_ok()
}

fn main() {
    let threads: Vec<_> = (0..3).map(|_| std::thread::spawn(|| loop { find_peer(); })).collect();
    for one in threads {
        one.join().unwrap();
    }
}
