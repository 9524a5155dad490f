use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{mpsc, Arc, Mutex};
use std::thread;

struct Journal {
    file: Mutex<File>,
}

impl Journal {
    fn open(path: &str) -> Journal {
        let file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        Journal { file: Mutex::new(file) }
    }

    #[inline(never)]
    fn commit_payment(&self, line: &str) -> std::io::Result<()> {
        let mut file = self.file.lock().unwrap();
        file.write_all(line.as_bytes())?;
        file.flush()
    }
}

type Job = Box<dyn FnOnce() + Send + 'static>;

struct WorkPool {
    sender: mpsc::Sender<Job>,
}

impl WorkPool {
    fn start(size: usize) -> WorkPool {
        let (sender, receiver) = mpsc::channel::<Job>();
        let receiver = Arc::new(Mutex::new(receiver));
        for number in 0..size {
            let receiver = Arc::clone(&receiver);
            thread::Builder::new()
                .name(format!("worker-{number}"))
                .spawn(move || loop {
                    let job = receiver.lock().unwrap().recv();
                    match job {
                        Ok(job) => job(),
                        Err(_) => break,
                    }
                })
                .unwrap();
        }
        WorkPool { sender }
    }

    fn submit(&self, job: Job) {
        self.sender.send(job).unwrap();
    }
}

fn serve(stream: TcpStream, journal: &Journal) {
    let mut lines = BufReader::new(&stream).lines();
    let mut first = String::new();
    while let Some(Ok(line)) = lines.next() {
        if line.is_empty() {
            break;
        }
        if first.is_empty() {
            first = line;
        }
    }
    let ok = journal.commit_payment(&format!("{first}\n")).is_ok();
    let _ = write!(&stream, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\n{ok}");
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let journal = Arc::new(Journal::open(&arguments[2]));
    let pool = WorkPool::start(8);
    let listener = TcpListener::bind(("127.0.0.1", arguments[1].parse::<u16>().unwrap())).unwrap();
    for stream in listener.incoming().flatten() {
        let journal = Arc::clone(&journal);
        pool.submit(Box::new(move || serve(stream, &journal)));
    }
}
