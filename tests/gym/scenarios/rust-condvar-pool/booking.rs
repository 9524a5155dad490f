use std::env;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

struct Pool {
    idle: Mutex<Vec<TcpStream>>,
    returned: Condvar,
}

impl Pool {
    fn new(port: &str, size: usize) -> Self {
        let idle = (0..size).map(|_| TcpStream::connect(format!("127.0.0.1:{port}")).unwrap()).collect();
        Pool { idle: Mutex::new(idle), returned: Condvar::new() }
    }

    fn checkout(&self) -> TcpStream {
        let mut idle = self.idle.lock().unwrap();
        loop {
            if let Some(stream) = idle.pop() {
                return stream;
            }
            idle = self.returned.wait(idle).unwrap();
        }
    }

    fn give_back(&self, stream: TcpStream) {
        self.idle.lock().unwrap().push(stream);
        self.returned.notify_one();
    }
}

fn free_seats(pool: &Pool) -> usize {
    let mut stream = pool.checkout();
    let mut answer = [0u8; 512];
    stream.write_all(b"GET /seats HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let count = stream.read(&mut answer).unwrap();
    pool.give_back(stream);
    count
}

fn serve(mut client: TcpStream, pool: Arc<Pool>) {
    let mut request = [0u8; 2048];
    while matches!(client.read(&mut request), Ok(count) if count > 0) {
        let body = free_seats(&pool).to_string();
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}", body.len(), body);
        if client.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn main() {
    let words: Vec<String> = env::args().collect();
    let pool = Arc::new(Pool::new(&words[2], 2));
    let listener = TcpListener::bind(format!("127.0.0.1:{}", words[1])).unwrap();
    for client in listener.incoming().flatten() {
        let pool = pool.clone();
        thread::spawn(move || serve(client, pool));
    }
}
