use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

fn rank_documents(text: &[u8]) -> usize {
    let mut score = 0usize;
    for round in 0..60_000usize {
        score = score.wrapping_mul(31).wrapping_add(text[round % text.len()] as usize);
    }
    score
}

fn serve(mut client: TcpStream) {
    let mut text = [0u8; 2048];
    loop {
        match client.read(&mut text) {
            Ok(size) if size > 0 => {
                let body = rank_documents(&text[..size]).to_string();
                let _ = write!(client, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}", body.len(), body);
            }
            _ => return,
        }
    }
}

fn main() {
    let port: u16 = std::env::args().nth(1).unwrap().parse().unwrap();
    for client in TcpListener::bind(("127.0.0.1", port)).unwrap().incoming().flatten() {
        thread::spawn(move || serve(client));
    }
}
