use std::env;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

struct Cache {
    stream: TcpStream,
}

impl Cache {
    fn fetch(&mut self, key: &str) -> usize {
        let request = format!("*2\r\n$3\r\nGET\r\n${}\r\n{}\r\n", key.len(), key);
        self.stream.write_all(request.as_bytes()).unwrap();
        let mut answer = [0u8; 256];
        self.stream.read(&mut answer).unwrap()
    }
}

#[inline(never)]
fn price_basket(cache: &mut Cache) -> usize {
    (0..400).map(|item| cache.fetch(&format!("price:{item}"))).sum()
}

fn serve(mut client: TcpStream, port: String) {
    let mut cache = Cache { stream: TcpStream::connect(format!("127.0.0.1:{port}")).unwrap() };
    cache.stream.set_nodelay(true).unwrap();
    let mut request = [0u8; 2048];
    while matches!(client.read(&mut request), Ok(count) if count > 0) {
        let body = price_basket(&mut cache).to_string();
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}", body.len(), body);
        if client.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn main() {
    let words: Vec<String> = env::args().collect();
    let listener = TcpListener::bind(format!("127.0.0.1:{}", words[1])).unwrap();
    for client in listener.incoming().flatten() {
        let port = words[2].clone();
        thread::spawn(move || serve(client, port));
    }
}
