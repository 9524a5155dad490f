use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

struct Vault {
    name: &'static str,
    coins: Mutex<u64>,
}

#[inline(never)]
fn move_coins(from: &Vault, to: &Vault) {
    let mut left = from.coins.lock().unwrap();
    thread::sleep(Duration::from_millis(30));
    let mut right = to.coins.lock().unwrap();
    *left -= 1;
    *right += 1;
    if *right == u64::MAX {
        println!("{} {}", from.name, to.name);
    }
}

#[inline(never)]
fn audit_loop(vaults: &[Arc<Vault>]) -> ! {
    loop {
        thread::sleep(Duration::from_secs(1));
        println!("{} vaults", vaults.len());
    }
}

fn main() {
    let vaults: Vec<Arc<Vault>> = ["north", "east", "south"]
        .iter()
        .map(|name| Arc::new(Vault { name, coins: Mutex::new(1_000_000) }))
        .collect();
    for number in 0..3 {
        let (from, to) = (vaults[number].clone(), vaults[(number + 1) % 3].clone());
        thread::Builder::new()
            .name(format!("courier-{number}"))
            .spawn(move || loop {
                move_coins(&from, &to);
            })
            .unwrap();
    }
    audit_loop(&vaults)
}
