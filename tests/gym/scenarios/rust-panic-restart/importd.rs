use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpListener;

struct Importer {
    known: HashMap<u32, String>,
}

impl Importer {
    #[inline(never)]
    fn import_row(&mut self, number: u32) -> usize {
        if number % 8 == 7 {
            return self.known.get(&(number + 1)).expect("a row before it").len();
        }
        self.known.insert(number, format!("row {number}"));
        self.known.len()
    }
}

fn main() {
    let port = std::env::args().nth(1).unwrap();
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).unwrap();
    let mut importer = Importer { known: HashMap::new() };
    for (number, stream) in listener.incoming().flatten().enumerate() {
        let mut stream = stream;
        let mut request = [0u8; 2048];
        if stream.read(&mut request).unwrap_or(0) > 0 {
            let size = importer.import_row(number as u32).to_string();
            let text = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{}", size.len(), size);
            let _ = stream.write_all(text.as_bytes());
        }
    }
}
