use std::env;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

struct Throttle<C> {
    state: Mutex<(Instant, C)>,
    pause: Duration,
}

impl<C: Copy + Into<u64> + From<u8>> Throttle<C> {
    #[inline(never)]
    fn admit(&self) -> u64 {
        let mut state = self.state.lock().unwrap();
        let due = state.0 + self.pause;
        let now = Instant::now();
        if due > now {
            thread::sleep(due - now);
        }
        state.0 = Instant::now();
        state.1.into()
    }
}

fn serve(mut stream: TcpStream, throttle: Arc<Throttle<u32>>) {
    let mut buffer = [0u8; 2048];
    while matches!(stream.read(&mut buffer), Ok(count) if count > 0) {
        let body = throttle.admit().to_string();
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}", body.len(), body);
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn main() {
    let port = env::args().nth(1).unwrap();
    let throttle = Arc::new(Throttle { state: Mutex::new((Instant::now(), 7u32)), pause: Duration::from_millis(30) });
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).unwrap();
    for stream in listener.incoming().flatten() {
        let throttle = throttle.clone();
        thread::spawn(move || serve(stream, throttle));
    }
}
