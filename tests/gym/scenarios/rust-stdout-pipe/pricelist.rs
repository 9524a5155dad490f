use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

struct Catalogue {
    prices: Vec<(String, u32)>,
}

#[inline(never)]
fn note_access(client: usize, entry: &(String, u32)) {
    println!("access client={} article={} price={} {}", client, entry.0, entry.1, "-".repeat(400));
}

#[inline(never)]
fn answer(catalogue: &Catalogue, mut stream: TcpStream, client: usize) {
    let mut request = [0u8; 4096];
    let mut turn = client;
    while let Ok(got) = stream.read(&mut request) {
        if got == 0 {
            break;
        }
        turn = (turn * 31 + 7) % catalogue.prices.len();
        let entry = &catalogue.prices[turn];
        note_access(client, entry);
        let body = format!("{} {}", entry.0, entry.1);
        let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}", body.len(), body);
        if stream.write_all(text.as_bytes()).is_err() {
            break;
        }
    }
}

fn main() {
    let port = std::env::args().nth(1).unwrap();
    let prices = (0..500).map(|n| (format!("article-{n}"), n * 3 + 1)).collect();
    let catalogue = Arc::new(Catalogue { prices });
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).unwrap();
    for (client, stream) in listener.incoming().flatten().enumerate() {
        let catalogue = Arc::clone(&catalogue);
        std::thread::spawn(move || answer(&catalogue, stream, client));
    }
}
