use std::collections::HashMap;
use std::env;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

struct Catalog {
    items: Mutex<HashMap<u32, String>>,
}

impl Catalog {
    fn new() -> Self {
        let items = (0..30_000).map(|n| (n, format!("article {n}"))).collect();
        Catalog { items: Mutex::new(items) }
    }

    #[inline(never)]
    fn render_listing(&self) -> String {
        let items = self.items.lock().unwrap();
        let mut rows: Vec<_> = items.iter().map(|(id, name)| format!("{name};{id}")).collect();
        rows.sort();
        rows.iter().take(20).cloned().collect::<Vec<_>>().join("\n")
    }
}

fn serve(mut stream: TcpStream, catalog: Arc<Catalog>) {
    let mut buffer = [0u8; 2048];
    while let Ok(count) = stream.read(&mut buffer) {
        if count == 0 {
            return;
        }
        let body = catalog.render_listing();
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}", body.len(), body);
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn main() {
    let port = env::args().nth(1).unwrap();
    let catalog = Arc::new(Catalog::new());
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).unwrap();
    for stream in listener.incoming().flatten() {
        let catalog = catalog.clone();
        thread::spawn(move || serve(stream, catalog));
    }
}
