use std::collections::BTreeMap;
use std::env;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

trait Quotes {
    fn best(&self) -> u64;
}

struct Book {
    levels: BTreeMap<u64, Vec<u64>>,
}

impl Quotes for Book {
    #[inline(never)]
    fn best(&self) -> u64 {
        let copy = self.levels.clone();
        *copy.last_key_value().unwrap().0
    }
}

fn serve(mut stream: TcpStream, book: Arc<dyn Quotes + Send + Sync>) {
    let mut buffer = [0u8; 2048];
    while matches!(stream.read(&mut buffer), Ok(count) if count > 0) {
        let body = book.best().to_string();
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}", body.len(), body);
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn main() {
    let port = env::args().nth(1).unwrap();
    let levels = (0..60_000u64).map(|price| (price, vec![price; 4])).collect();
    let book: Arc<dyn Quotes + Send + Sync> = Arc::new(Book { levels });
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).unwrap();
    for stream in listener.incoming().flatten() {
        let book = book.clone();
        thread::spawn(move || serve(stream, book));
    }
}
