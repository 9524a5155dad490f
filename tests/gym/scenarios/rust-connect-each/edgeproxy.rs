use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

struct Metric {
    name: &'static str,
    value: u64,
}

#[inline(never)]
fn push_metric(collector: &str, metric: &Metric) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(collector)?;
    writeln!(stream, "{}={}", metric.name, metric.value)
}

fn main() {
    let collector = format!("127.0.0.1:{}", std::env::args().nth(1).unwrap());
    let mut metric = Metric { name: "requests", value: 0 };
    loop {
        metric.value += 1;
        let _ = push_metric(&collector, &metric);
        std::thread::sleep(Duration::from_micros(1500));
    }
}
