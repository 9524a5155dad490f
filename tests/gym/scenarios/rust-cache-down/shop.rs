use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

struct Cache {
    address: String,
}

impl Cache {
    #[inline(never)]
    fn lookup_price(&self, _article: &str) -> Option<String> {
        for _attempt in 0..3 {
            if let Ok(mut stream) = TcpStream::connect(&self.address) {
                let mut text = String::new();
                let _ = stream.read_to_string(&mut text);
                return Some(text);
            }
        }
        None
    }
}

fn compute_price(article: &str) -> String {
    format!("{}", article.len() * 3)
}

fn serve(mut client: TcpStream, cache: &Cache) {
    let mut text = [0u8; 2048];
    while let Ok(size) = client.read(&mut text) {
        if size == 0 {
            return;
        }
        let article = String::from_utf8_lossy(&text[4..24.min(size)]).to_string();
        let price = cache.lookup_price(&article).unwrap_or_else(|| compute_price(&article));
        let _ = write!(client, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}", price.len(), price);
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let cache = Arc::new(Cache { address: format!("127.0.0.1:{}", arguments[2]) });
    let listener = TcpListener::bind(("127.0.0.1", arguments[1].parse::<u16>().unwrap())).unwrap();
    for client in listener.incoming().flatten() {
        let cache = Arc::clone(&cache);
        thread::spawn(move || serve(client, &cache));
    }
}
