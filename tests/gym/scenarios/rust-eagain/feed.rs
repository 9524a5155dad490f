use std::io::{ErrorKind, Read};
use std::net::{TcpListener, TcpStream};

#[inline(never)]
fn poll_feed(stream: &mut TcpStream, buffer: &mut [u8]) -> usize {
    match stream.read(buffer) {
        Ok(n) => n,
        Err(e) if e.kind() == ErrorKind::WouldBlock => 0,
        Err(_) => 0,
    }
}

fn main() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let _peer = listener.accept().unwrap();
    stream.set_nonblocking(true).unwrap();
    let mut buffer = [0u8; 4096];
    loop {
        poll_feed(&mut stream, &mut buffer);
    }
}
